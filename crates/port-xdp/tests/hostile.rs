//! Frames that no peer sends, on their way to a port.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use taut_base::Locator;
use taut_ethernet::{FrameEnds, Reached, Stats};
use taut_port_xdp::{AttachMode, Netd, XdpConfig, XdpPort};
use taut_testbed::frame::{Udp, message, tagged};
use taut_testbed::{End, Pair, await_that, ip, with_pair};
use taut_xdp::{ChunkSize, Descriptor, GOES_ON, Interface, Link, Mode, Program, Rings, Socket, Umem};

const PORT: u16 = 7_411;

fn ipv6(end: End) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x88, 0, 0, 0, 0, 0, 1 + end as u16)
}

/// Over IPv4 and IPv6.
fn ends(end: End) -> [SocketAddr; 2] {
    [(end.ipv4(), PORT).into(), (ipv6(end), PORT).into()]
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
    let sum = complement(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum);
    frame
}

/// The same of IPv6, with the checksum that its datagram has then.
fn with_checksum_v6(frame: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = with(frame, &[changes, &[(60, 0), (61, 0)]].concat());
    let len = usize::from(u16::from_be_bytes([frame[58], frame[59]]));
    let sum = complement(&[&frame[22..54], &[0, 17], &frame[58..60], &frame[54..54 + len]].concat());
    frame[60..62].copy_from_slice(&sum);
    frame
}

fn complement(bytes: &[u8]) -> [u8; 2] {
    let sum: u32 = bytes.chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], half[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

/// A frame of IPv6 that is in good order.
fn whole_v6(udp: &Udp, payload: &[u8]) -> Vec<u8> {
    let mut frame = udp.ipv6(payload);
    frame[22..38].copy_from_slice(&ipv6(End::B).octets());
    frame[38..54].copy_from_slice(&ipv6(End::A).octets());
    with_checksum_v6(&frame, &[])
}

/// Makes frames that no peer sends, with this in them: those that are for our port but not whole, those that are for nobody, lies
/// of length.
type Hostile = fn(&Udp, &[u8]) -> Vec<Vec<u8>>;

fn hostile(udp: &Udp, rtps: &[u8]) -> Vec<Vec<u8>> {
    let v4 = udp.ipv4(rtps);
    let other = |change: fn(&mut Udp)| {
        let mut udp = udp.clone();
        change(&mut udp);
        udp.ipv4(rtps)
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
        other(|udp| udp.from = udp.to),
        other(|udp| udp.from = [0; 4]),
        other(|udp| udp.from = [255; 4]),
        other(|udp| udp.from = [239, 255, 0, 1]),
        other(|udp| udp.to_mac = [0xff; 6]),
        other(|udp| udp.to_mac = [2, 9, 9, 9, 9, 9]),
        other(|udp| udp.from_mac = udp.to_mac),
        udp.l2(rtps),
        udp.ipv4(b"RTPS"),
        udp.ipv4(&rtps[..20]),
    ];
    frames.extend((14..46).map(|len| v4[..len].to_vec()));
    frames
}

fn hostile_v6(udp: &Udp, rtps: &[u8]) -> Vec<Vec<u8>> {
    let v6 = whole_v6(udp, rtps);
    // Before the datagram: another header of eight bytes, which says that it follows.
    let extension = |kind: u8| {
        let len = (v6.len() - 54 + 8) as u8;
        [&with(&v6, &[(19, len), (20, kind)])[..54], &[17, 0, 1, 4, 0, 0, 0, 0], &v6[54..]].concat()
    };
    vec![
        v6.clone(),
        // The packet is longer than the datagram.
        with_checksum_v6(&v6, &[(58, 0), (59, 12)]),
        // The packet says that it is longer than the frame, shorter than the datagram, and than its header.
        with(&v6, &[(18, 0xff), (19, 0xff)]),
        with(&v6, &[(18, 0), (19, 19)]),
        with(&v6, &[(18, 0), (19, 7)]),
        with(&v6, &[(18, 0), (19, 0)]),
        with(&v6, &[(58, 1), (59, 0xff)]),
        v6[..v6.len() - 1].to_vec(),
        v6[..66].to_vec(),
        // Over IPv6 no sum is none.
        with(&v6, &[(60, 0), (61, 0)]),
        with(&v6, &[(60, 0x12), (61, 0x34)]),
        with(&v6, &[(100, 0xee)]),
        whole_v6(&Udp { to_mac: [2, 9, 9, 9, 9, 9], ..udp.clone() }, rtps),
        // What follows is the kernel's.
        with(&v6, &[(58, 0xff), (59, 0xff)]),
        with(&v6, &[(58, 0), (59, 11)]),
        with(&v6, &[(58, 0), (59, 0)]),
        with(&v6, &[(14, 0x45)]),
        v6[..65].to_vec(),
        tagged(&v6),
        extension(0),
        extension(43),
        extension(44),
        extension(60),
        udp.ipv6(rtps),
    ]
}

/// Frames that lie in several chunks.
fn hostile_in_pieces(udp: &Udp, rtps: &[u8]) -> Vec<Vec<u8>> {
    let (v4, v6) = (udp.ipv4(rtps), whole_v6(udp, rtps));
    vec![
        v4.clone(),
        v6.clone(),
        // The packet is longer than the frame, and ends in the first chunk; the datagram is longer than the packet.
        with_checksum(&v4, &[(16, 0x23), (17, 0)]),
        with_checksum(&v4, &[(16, 0), (17, 200)]),
        with(&v4, &[(38, 0x23), (39, 0)]),
        with(&v6, &[(18, 0x23), (19, 0)]),
        with(&v6, &[(18, 0), (19, 200)]),
        with(&v6, &[(58, 0x23), (59, 0)]),
        // Chunks are missing, and one ends early.
        v4[..5_000].to_vec(),
        v4[..v4.len() - 1].to_vec(),
        v6[..5_000].to_vec(),
        v6[..v6.len() - 1].to_vec(),
        with(&v4, &[(40, 0x12), (41, 0x34)]),
        with(&v6, &[(7_000, !v6[7_000])]),
        Udp { to_mac: [2, 9, 9, 9, 9, 9], ..udp.clone() }.ipv4(rtps),
    ]
}

/// The bytes of [`ChunkSize::B2048`].
const CHUNK: u64 = 2_048;

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
        let pieces: Vec<(&[u8], bool)> = frames
            .iter()
            .flat_map(|frame| {
                let pieces = frame.chunks(CHUNK as usize);
                let last = pieces.len() - 1;
                pieces.enumerate().map(move |(at, piece)| (piece, at < last))
            })
            .collect();
        let mut tx = socket.tx.reserve(pieces.len() as u32);
        for ((piece, goes_on), number) in pieces.iter().zip(0..) {
            let (address, len) = (number * CHUNK, piece.len() as u32);
            // SAFETY: nothing is received into these chunks, and what was in them before is sent.
            unsafe { umem.bytes_mut(address, len) }.unwrap().copy_from_slice(piece);
            assert!(tx.put(Descriptor { address, len, options: if *goes_on { GOES_ON } else { 0 } }));
        }
        tx.submit();
        let mut sent = 0;
        await_that("the kernel sends them", || {
            socket.kick().unwrap();
            let mut done = socket.completion.peek(u32::MAX);
            done.by_ref().for_each(drop);
            sent += done.release();
            sent >= pieces.len() as u32
        });
    }
}

/// Takes what has come for a port.
fn receive(port: &mut XdpPort) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    while port.receive_from(0, 64, &mut |frame| got.push(frame.bytes.to_vec())) > 0 {}
    got
}

/// Sends them all, 20 times, with messages of so many bytes in them, by this MTU. So many each time are malformed, not ours and
/// damaged.
fn passes_through(
    pair: &Pair,
    attach: AttachMode,
    (mtu, len): (u32, usize),
    hostile: Hostile,
    reasons: [u64; 3],
) {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("link set {} mtu {mtu}", end.name()));
        ip(&format!("addr add {}/64 dev {} nodad", ipv6(end), end.name()));
    }
    pair.enter(End::A);
    let config =
        XdpConfig { interface: "xa".into(), attach: Some(attach), netd: Netd::Never, ..XdpConfig::default() };
    let mut port = XdpPort::open(&config, Reached::Ip(ends(End::A).to_vec()), &[]).unwrap();
    let to_mac = Interface::named("xa").unwrap().mac;
    let mut sender = Sender::open(pair, End::B);
    let from_mac = Interface::named("xb").unwrap().mac;
    let peers = ends(End::B).map(|own| UdpSocket::bind(own).unwrap());
    let udp = Udp { to_mac, from_mac, from: End::B.ipv4(), to: End::A.ipv4(), port: PORT };
    let sent = message(1, len);
    let frames = hostile(&udp, &sent);
    println!("{} frames", frames.len());
    for round in 0..20 {
        sender.send(&frames);
        let mut got = Vec::new();
        // Peers in good order are heard behind them.
        for (peer, (to, number)) in peers.iter().zip(ends(End::A).into_iter().zip(1_000..)) {
            let good = message(number + 2 * round, len + 100);
            peer.send_to(&good, to).unwrap();
            await_that("a message comes", || {
                got.extend(receive(&mut port));
                got.contains(&good)
            });
            got.retain(|bytes| *bytes != good);
        }
        // What is a whole datagram for us is the core's to judge; it is what was sent, or a part of it.
        assert!(got.contains(&sent) && got.iter().all(|bytes| sent.starts_with(bytes)), "{got:02x?}");
    }
    let Stats { malformed, not_ours, damaged, errors, receive_overflow, .. } = port.stats();
    let counts = [malformed, not_ours, damaged];
    // What has the tag of a network is the kernel's.
    assert_eq!(counts, reasons.map(|count| count * 20), "each reason, each time");
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

fn in_each_mode(name: &str, size: (u32, usize), hostile: Hostile, reasons: [u64; 3]) {
    for attach in [AttachMode::Native, AttachMode::Generic] {
        with_pair(name, ["", ""], move |pair| passes_through(pair, attach, size, hostile, reasons));
    }
}

#[test]
fn over_ipv4() {
    in_each_mode("over_ipv4", (1_500, 200), hostile, [4, 2, 2]);
}

#[test]
fn over_ipv6() {
    in_each_mode("over_ipv6", (1_500, 200), hostile_v6, [7, 1, 3]);
}

#[test]
fn in_pieces() {
    in_each_mode("in_pieces", (9_000, 8_000), hostile_in_pieces, [10, 1, 2]);
}
