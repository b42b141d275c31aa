//! Frames that no peer sends, on their way to a port.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use taut_base::Locator;
use taut_ethernet::{FrameEnds, Reached, Stats};
use taut_port_xdp::{AttachMode, Netd, XdpConfig, XdpPort};
use taut_testbed::frame::{Udp, message, tagged};
use taut_testbed::{End, Pair, await_that, with_pair};
use taut_xdp::{ChunkSize, Descriptor, Interface, Link, Mode, Program, Rings, Socket, Umem};

const PORT: u16 = 7_411;

fn end(end: End) -> SocketAddr {
    (end.ipv4(), PORT).into()
}

/// A frame with some of its bytes changed.
fn with(frame: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    changes.iter().for_each(|(at, byte)| frame[*at] = *byte);
    frame
}

/// The same of IPv4, with the checksum that it has then.
fn with_checksum(frame: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = with(frame, &[changes, &[(24, 0), (25, 0)]].concat());
    let halves = frame[14..34].chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], half[1]])));
    let sum: u32 = halves.sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&folded.to_be_bytes());
    frame
}

/// Frames that no peer sends: those that are for our port but not whole, those that are for nobody, lies of length.
fn hostile(udp: &Udp) -> Vec<Vec<u8>> {
    let rtps = message(1, 200);
    let (v4, v6) = (udp.ipv4(&rtps), udp.ipv6(&rtps));
    let extension = |next: u8| with(&v6, &[(20, next)]);
    let other = |change: fn(&mut Udp)| {
        let mut udp = udp.clone();
        change(&mut udp);
        udp.ipv4(&rtps)
    };
    let mut frames = vec![
        v4.clone(),
        with_checksum(&v4, &[(20, 0x20)]),
        with_checksum(&v4, &[(20, 0x20), (21, 1)]),
        with_checksum(&v4, &[(20, 0x00), (21, 1)]),
        with_checksum(&v4, &[(20, 0x1f), (21, 0xff)]),
        with(&v4, &[(24, 0x12), (25, 0x34)]),
        with(&v4, &[(40, 0x12), (41, 0x34)]),
        // Longer than the MTU, which is the kernel's, and longer than the frame.
        with(&v4, &[(38, 0xff), (39, 0xff)]),
        with(&v4, &[(38, 1), (39, 0xff)]),
        with(&v4, &[(38, 0), (39, 12)]),
        with(&v4, &[(38, 0), (39, 8)]),
        with(&v4, &[(38, 0), (39, 0)]),
        with_checksum(&v4, &[(16, 0xff), (17, 0xff)]),
        with_checksum(&v4, &[(16, 0), (17, 19)]),
        with_checksum(&v4, &[(16, 0), (17, 29)]),
        with_checksum(&v4, &[(14, 0x4f)]),
        with_checksum(&v4, &[(14, 0x44)]),
        with_checksum(&v4, &[(14, 0x65)]),
        with_checksum(&v4, &[(22, 0)]),
        tagged(&v4),
        tagged(&tagged(&v4)),
        with(&tagged(&v4), &[(14, 0xc0), (15, 0)]),
        with(&tagged(&v4), &[(12, 0x88), (13, 0xa8)]),
        extension(0),
        extension(43),
        extension(44),
        extension(60),
        v6.clone(),
        with(&v6, &[(18, 0xff), (19, 0xff)]),
        other(|udp| udp.from = udp.to),
        other(|udp| udp.from = [0; 4]),
        other(|udp| udp.from = [255; 4]),
        other(|udp| udp.from = [239, 255, 0, 1]),
        other(|udp| udp.to_mac = [0xff; 6]),
        other(|udp| udp.to_mac = [2, 9, 9, 9, 9, 9]),
        other(|udp| udp.from_mac = udp.to_mac),
        udp.l2(&rtps),
        udp.ipv4(b"RTPS"),
        udp.ipv4(&rtps[..20]),
    ];
    frames.extend((14..46).map(|len| v4[..len].to_vec()));
    frames
}

/// Who sends them: a socket of AF_XDP that receives nothing.
struct Sender {
    socket: Socket,
    umem: Arc<Umem>,
    _link: Link,
}

impl Sender {
    /// At this end; the kernel's sockets there go on receiving.
    fn open(pair: &Pair, end: End) -> Sender {
        pair.enter(end);
        let interface = Interface::named(end.name()).unwrap();
        let link = Link::attach(Program::load(Mode::L2, interface.mtu).unwrap(), &interface, None).unwrap();
        let rings = Rings { fill: 64, completion: 1_024, rx: 64, tx: 1_024 };
        let umem = Arc::new(Umem::create(1_024, ChunkSize::B2048).unwrap());
        let socket = Socket::open(&link, 0, Arc::clone(&umem), &rings, None, true).unwrap();
        Sender { socket, umem, _link: link }
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        let Sender { socket, umem, .. } = self;
        let mut tx = socket.tx.reserve(frames.len() as u32);
        for (number, frame) in frames.iter().enumerate() {
            let (address, len) = (number as u64 * 2_048, frame.len() as u32);
            // SAFETY: nothing is received into these frames, and what was in them before is sent.
            unsafe { umem.bytes_mut(address, len) }.unwrap().copy_from_slice(frame);
            assert!(tx.put(Descriptor { address, len, options: 0 }));
        }
        tx.submit();
        let mut sent = 0;
        await_that("the kernel sends them", || {
            socket.kick().unwrap();
            let mut done = socket.completion.peek(u32::MAX);
            done.by_ref().for_each(drop);
            sent += done.release();
            sent >= frames.len() as u32
        });
    }
}

/// Takes what has come for a port.
fn receive(port: &mut XdpPort) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    while port.receive_from(0, 64, &mut |frame| got.push(frame.bytes.to_vec())) > 0 {}
    got
}

fn passes_through(pair: &Pair, attach: AttachMode) {
    pair.enter(End::A);
    let config =
        XdpConfig { interface: "xa".into(), attach: Some(attach), netd: Netd::Never, ..XdpConfig::default() };
    let mut port = XdpPort::open(&config, Reached::Ip(vec![end(End::A)]), &[]).unwrap();
    let to_mac = Interface::named("xa").unwrap().mac;
    let mut sender = Sender::open(pair, End::B);
    let from_mac = Interface::named("xb").unwrap().mac;
    let peer = UdpSocket::bind(end(End::B)).unwrap();
    let udp = Udp { to_mac, from_mac, from: End::B.ipv4(), to: End::A.ipv4(), port: PORT };
    let frames = hostile(&udp);
    println!("{} frames", frames.len());
    for round in 0..20 {
        sender.send(&frames);
        // A peer in good order is heard behind them.
        let good = message(1_000 + round, 300);
        peer.send_to(&good, end(End::A)).unwrap();
        let mut got = Vec::new();
        await_that("a message comes", || {
            got.extend(receive(&mut port));
            got.contains(&good)
        });
        // What is a whole datagram for us is the core's to judge; it is what was sent, or a part of it.
        let sent = message(1, 200);
        assert!(got.iter().all(|bytes| *bytes == good || sent.starts_with(bytes)), "{got:02x?}");
    }
    let Stats { malformed, not_ours, damaged, errors, receive_overflow, .. } = port.stats();
    let counts = [malformed, not_ours, damaged];
    // What has the tag of a network is the kernel's.
    assert_eq!(counts, [4 * 20, 2 * 20, 2 * 20], "each reason, each time");
    assert_eq!((errors, receive_overflow), (0, 0));
}

/// A frame without IP, of these ports and of this length, as it says.
fn bare(to: [u8; 6], ports: [u16; 2], len: u16, payload: &[u8]) -> Vec<u8> {
    let header = [ports[0], ports[1], len, 0].map(u16::to_be_bytes).concat();
    let udp = Udp { to_mac: to, ..Udp::to_port(PORT) };
    udp.l2(&[&header, payload].concat())
}

fn passes_through_bare(pair: &Pair, attach: AttachMode) {
    pair.enter(End::A);
    let (own, all) = ([0; 6], [1, 0, 0x5e, 0x7f, 0, 1]);
    let config =
        XdpConfig { interface: "xa".into(), attach: Some(attach), netd: Netd::Never, ..XdpConfig::default() };
    let ends = FrameEnds {
        user: vec![Locator::ethernet(own, PORT)],
        metatraffic: vec![Locator::ethernet(own, PORT - 1), Locator::ethernet(all, PORT - 11)],
    };
    let mut port = XdpPort::open(&config, Reached::Bare(ends), &[]).unwrap();
    let to = Interface::named("xa").unwrap().mac;
    let mut sender = Sender::open(pair, End::B);
    let rtps = message(1, 200);
    let whole = bare(to, [7, PORT], 200, &rtps);
    let mut frames = vec![
        bare(to, [7, PORT], 201, &rtps),
        bare(to, [7, PORT], u16::MAX, &rtps),
        bare(to, [7, PORT], 0, &[]),
        bare(to, [7, 0], 200, &rtps),
        bare(to, [7, PORT + 1], 200, &rtps),
        bare(to, [7, PORT - 11], 200, &rtps),
        bare(all, [7, PORT], 200, &rtps),
        bare([0xff; 6], [7, PORT], 200, &rtps),
        bare([2; 6], [7, PORT], 200, &rtps),
        tagged(&whole),
        [&whole[..12], &[0x81, 0, 0, 0, 0x81, 0, 0, 0], &whole[12..]].concat(),
    ];
    frames.extend((14..22).map(|len| whole[..len].to_vec()));
    for round in 0..20 {
        let good = message(1_000 + round, 300);
        frames.push(bare(to, [7, PORT], 300, &good));
        frames.push(bare(all, [7, PORT - 11], 200, &rtps));
        sender.send(&frames);
        frames.truncate(frames.len() - 2);
        let mut got = Vec::new();
        await_that("a message comes", || {
            got.extend(receive(&mut port));
            got.contains(&good)
        });
        assert!(got.iter().all(|bytes| *bytes == good || bytes.is_empty()), "{got:02x?}");
        await_that("a message to the group comes", || {
            got.extend(receive(&mut port));
            port.carrier().has_aside()
        });
        let mut aside = Vec::new();
        assert_eq!(port.carrier_mut().take_aside(8, &mut |frame| aside.push(frame.bytes.to_vec())), 1);
        assert_eq!(aside, [&rtps[..]]);
    }
    let Stats { malformed, not_ours, errors, receive_overflow, .. } = port.stats();
    assert!([malformed, not_ours].iter().all(|count| *count > 0 && count % 20 == 0), "{:?}", port.stats());
    assert_eq!((errors, receive_overflow), (0, 0));
}

#[test]
fn bare_native() {
    with_pair("bare_native", ["", ""], |pair| passes_through_bare(pair, AttachMode::Native));
}

#[test]
fn bare_generic() {
    with_pair("bare_generic", ["", ""], |pair| passes_through_bare(pair, AttachMode::Generic));
}

#[test]
fn native() {
    with_pair("native", ["", ""], |pair| passes_through(pair, AttachMode::Native));
}

#[test]
fn generic() {
    with_pair("generic", ["", ""], |pair| passes_through(pair, AttachMode::Generic));
}
