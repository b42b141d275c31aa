//! Datagrams whose payload lies in a chunk of the port's frames.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use taut_mem::Bytes;
use taut_port_xdp::XdpPort;
use taut_testbed::{End, Pair, with_pair};

use common::{port, received, way};

/// As an RTPS message begins, so that the program lets it pass.
const HEAD: &[u8] = b"RTPS, and headers of some length";
const TAIL: &[u8] = b"what follows";

fn written(port: &XdpPort, len: usize) -> Bytes {
    let mut chunk = port.chunks(0).unwrap().claim(len).unwrap();
    chunk[..len].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    chunk.share(len)
}

fn goes_from_its_place(pair: &Pair, over_ip: bool) {
    let mut near = port(pair, End::A, over_ip);
    let mut far = port(pair, End::B, over_ip);
    let to = way(pair, &mut near, over_ip);
    let (near_free, far_free) = (near.stats().frames_free, far.stats().frames_free);
    // An odd length, too: the sum of what follows does not start at a word.
    for len in [100, 1_001, 1_300] {
        let payload = written(&near, len);
        let parts = [HEAD, &payload, TAIL];
        let before = near.stats();
        let counts = |near: &XdpPort| {
            let now = near.stats();
            [now.in_place_out - before.in_place_out, now.copied_out - before.copied_out]
        };
        assert!(near.send(&to, &parts));
        assert_eq!(counts(&near), [1, 0]);
        // It is on its way: what is around it is the driver's to read.
        assert!(near.send(&to, &[b"RTPS", &payload, b"another end"]));
        assert_eq!(counts(&near), [1, 1]);
        near.flush();
        assert_eq!(*received(&mut far), *parts.concat());
        assert_eq!(*received(&mut far), [b"RTPS", &*payload, b"another end"].concat());
        // Again, as a repair is; then parts of it, around which there is more of it.
        assert!(near.send(&to, &parts));
        near.flush();
        assert_eq!((&*received(&mut far), counts(&near)), (&*parts.concat(), [2, 1]));
        for part in [&payload[4..], &payload[..len - 4]] {
            assert!(near.send(&to, &[HEAD, part, TAIL]));
            near.flush();
            assert_eq!(*received(&mut far), [HEAD, part, TAIL].concat());
        }
        assert_eq!(counts(&near), [2, 3]);
        if len <= 1_200 {
            // What is before it has no room in its chunk.
            let long = [b"RTPS", &[0; 250][..]].concat();
            assert!(near.send(&to, &[&long, &payload]));
            near.flush();
            assert_eq!((&*received(&mut far), counts(&near)), (&*[&long, &*payload].concat(), [2, 4]));
        }
        // Whoever writes into chunks that are free does not write into this one.
        let chunks = near.chunks(0).unwrap();
        let mut others: Vec<_> = std::iter::from_fn(|| chunks.claim(len)).collect();
        others.iter_mut().for_each(|chunk| chunk.fill(0xee));
        drop(others);
        assert!(payload.iter().enumerate().all(|(at, byte)| *byte == at as u8), "nothing is written into it");
    }
    assert_eq!((near.stats().frames_free, far.stats().frames_free), (near_free, far_free));
    assert_eq!((far.stats().damaged, far.stats().copied_in), (0, 0));
}

#[test]
fn over_ip() {
    with_pair("over_ip", ["", ""], |pair| goes_from_its_place(pair, true));
}

#[test]
fn without_ip() {
    with_pair("without_ip", ["", ""], |pair| goes_from_its_place(pair, false));
}

#[test]
fn what_is_looked_at_outlives_its_port() {
    with_pair("outlives", ["", ""], |pair| {
        let mut near = port(pair, End::A, false);
        let mut far = port(pair, End::B, false);
        let to = way(pair, &mut near, false);
        let payload = written(&near, 500);
        assert!(near.send(&to, &[HEAD, &payload]));
        near.flush();
        let got = received(&mut far);
        let chunks = near.chunks(0).cloned().unwrap();
        drop((near, far));
        assert_eq!(*got, [HEAD, &payload].concat());
        drop(payload);
        assert!(chunks.claim(100).is_some(), "who has the chunks may go on to write into them");
    });
}
