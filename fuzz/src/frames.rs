//! Frames of Ethernet, as the ports past the kernel read them. The first byte chooses the layer; frames follow, each with its
//! length, and what one begins the next may end.

use std::net::{IpAddr, SocketAddr};

use taut_base::{Duration, Locator, Time};
use taut_ethernet::{FrameEnds, Layer, Mac, OwnAddress, Reached, Station};

use crate::{byte, some};

const MAC: Mac = [2, 0, 0, 0, 0, 1];
const PORT: u16 = 7_411;

fn layer(choice: u8) -> Layer {
    let own = |address: IpAddr, prefix_len| {
        let end = |address| Locator::from(SocketAddr::new(address, PORT));
        let group = if address.is_ipv4() {
            IpAddr::from([239, 255, 0, 1])
        } else {
            "ff05::1".parse().expect("an address")
        };
        let ends = FrameEnds { user: vec![end(address), end(group)], metatraffic: vec![end(address)] };
        Reached::Own { own: OwnAddress { address, prefix_len, gateway: None }, ends, sockets: Vec::new() }
    };
    let reached = match choice % 3 {
        0 => {
            let ends = FrameEnds { user: vec![Locator::ethernet(MAC, PORT)], metatraffic: Vec::new() };
            Reached::Bare(ends)
        }
        1 => own(IpAddr::from([10, 0, 0, 1]), 24),
        _ => own("fe80::1".parse().expect("an address"), 64),
    };
    Layer::open("fuzz0", 1, MAC, reached).expect("it asks nobody")
}

pub fn play(mut bytes: &[u8]) {
    let choice = byte(&mut bytes);
    let (mut layer, own) = (layer(choice), Station { mac: MAC, tag: None });
    let (mut now, mut said) = (Time(1), [0; 2_048]);
    while !bytes.is_empty() {
        let len = usize::from(byte(&mut bytes)) << 8 | usize::from(byte(&mut bytes));
        // Who asks others, or is asked, answers; a time that passes has it forget.
        if len & 0x8000 != 0 {
            now = now + Duration::from_millis((len & 0x7fff) as i64);
            layer.on_timeout(now);
        }
        let frame = some(&mut bytes, len & 0x7fff);
        if let Ok(datagram) = layer.read(frame, &own) {
            assert!(datagram.payload.len() <= 65_535);
        }
        if let Some(own) = layer.own_mut() {
            let mut answers = 0;
            while own.say(&mut said).is_some() {
                answers += 1;
                assert!(answers <= 64, "one frame has few answers");
            }
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    (0..3_u8).filter_map(seed).collect()
}

/// A frame that its own layer has written.
fn seed(choice: u8) -> Option<Vec<u8>> {
    let (mut layer, own) = (layer(choice), Station { mac: MAC, tag: None });
    let to = match layer.bare_ends().or(layer.frame_ends()) {
        Some(ends) => *ends.user.last()?,
        None => return None,
    };
    let mut frame = [0; 256];
    let len = layer.route(&to).ok()?.write(&mut frame, &own, 0, &[b"RTPS", &[0; 60]])?;
    Some([&[choice, 0, len as u8], &frame[..len]].concat())
}
