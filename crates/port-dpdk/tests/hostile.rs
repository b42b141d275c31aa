//! Frames that no peer sends, on their way to an address of a port's own, and what others say of stations.
//!
//! Over memif, so that nobody else is on that network: each frame is counted.

use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use taut_base::{Duration, Locator, Time};
use taut_dpdk::{Burst, Device, DeviceConfig, Eal, EalConfig};
use taut_ethernet::{FrameEnds, OwnAddress, Reached, Stats};
use taut_port_dpdk::{DpdkConfig, DpdkPort, Incoming};
use taut_testbed::await_that;
use taut_testbed::frame::{Udp, message, tagged};
use tempfile::TempDir;

const PORT: u16 = 7_411;
const META: u16 = 7_410;
const GROUP_PORT: u16 = 7_400;
const OURS: [u8; 4] = [10, 0, 0, 2];
const PEER: [u8; 4] = [10, 0, 0, 1];
const GROUP: [u8; 4] = [239, 255, 0, 1];
const GROUP_MAC: [u8; 6] = [1, 0, 0x5e, 0x7f, 0, 1];
const ALL_HOSTS: [u8; 4] = [224, 0, 0, 1];
const ALL_HOSTS_MAC: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
const BROADCAST: [u8; 6] = [0xff; 6];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ROUNDS: u64 = 20;

/// A port with an address of its own, and what is at the other end of its cable.
struct Bench {
    port: DpdkPort,
    incoming: Incoming,
    wire: Device,
    mac: [u8; 6],
    now: Time,
    _directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// One at a time: DPDK's memory is that of a few devices.
static ALONE: Mutex<()> = Mutex::new(());

impl Bench {
    /// Devices of a process have numbers of their own.
    fn new(number: u32) -> Bench {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = TempDir::new().unwrap();
        let device = |number: u32, role: &str| {
            let socket = directory.path().join("socket");
            format!("net_memif{number},role={role},socket-abstract=no,socket={}", socket.display())
        };
        let end = |address: [u8; 4], port| Locator::udp_v4(address.into(), port);
        let ends = FrameEnds {
            user: vec![end(OURS, PORT)],
            metatraffic: vec![end(OURS, META), end(GROUP, GROUP_PORT)],
        };
        let own = OwnAddress { address: OURS.into(), prefix_len: 24, gateway: Some([10, 0, 0, 254].into()) };
        let config = DpdkConfig { device: device(number, "server"), ..DpdkConfig::default() };
        let reached = Reached::Own { own, ends, sockets: vec![([192, 168, 7, 1].into(), 24)] };
        let mut port = DpdkPort::open(&config, reached).unwrap();
        let eal = Eal::start(&EalConfig::default()).unwrap();
        let wire = Device::open(eal, &device(number + 1, "client"), &DeviceConfig::default()).unwrap();
        await_that("the link is up", || wire.link().is_up);
        port.on_timeout(Time(1));
        let incoming = port.incoming().unwrap();
        assert!(port.incoming().is_none(), "there is one");
        let mut bench =
            Bench { port, incoming, wire, mac: [0; 6], now: Time(1), _directory: directory, _alone: alone };
        let mut said = Vec::new();
        await_that("the port sees the link", || {
            said = bench.pass(Duration::from_millis(50));
            !said.is_empty()
        });
        assert_eq!(said.len(), 2, "who we are, and our group: {said:02x?}");
        bench.mac = said[0][6..12].try_into().unwrap();
        assert_eq!(said[0][..42], arp(BROADCAST, bench.mac, REQUEST, (bench.mac, OURS), ([0; 6], OURS)));
        assert_eq!(
            (&said[1][..6], &said[1][34..46]),
            (&GROUP_MAC[..], &[0x94, 4, 0, 0, 0x16, 0, 0xf9, 0xfe, 239, 255, 0, 1][..])
        );
        bench
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        let (mut burst, wire) = (Burst::new(), &mut self.wire);
        for part in frames.chunks(32) {
            for bytes in part {
                let mut frame = wire.frame().unwrap();
                frame.append(bytes.len()).unwrap().copy_from_slice(bytes);
                burst.push(frame).ok().unwrap();
            }
            await_that("the driver takes all", || {
                wire.send(0, &mut burst);
                burst.is_empty()
            });
        }
    }

    /// What has come at the other end.
    fn said(&mut self) -> Vec<Vec<u8>> {
        let (mut burst, mut said) = (Burst::new(), Vec::new());
        while self.wire.receive(0, &mut burst) > 0 {
            said.extend(burst.iter().map(<[u8]>::to_vec));
            burst.clear();
        }
        said
    }

    /// Has the port hear frames, all of them.
    fn hear(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        for part in frames.chunks(256) {
            self.send(part);
            let mut heard = 0;
            await_that("all are heard", || {
                heard +=
                    self.port.receive(&mut self.incoming, 64, &mut |frame| got.push(frame.bytes.to_vec()));
                heard == part.len()
            });
            self.port.carrier_mut().take_aside(usize::MAX, &mut |frame| got.push(frame.bytes.to_vec()));
        }
        got
    }

    fn pass(&mut self, time: Duration) -> Vec<Vec<u8>> {
        self.now = self.now + time;
        self.port.on_timeout(self.now);
        self.said()
    }

    /// Sends a datagram to a host, and gives the stations that it and questions went to.
    fn stations(&mut self, to: [u8; 4]) -> Vec<[u8; 6]> {
        assert!(self.port.send(&Locator::udp_v4(to.into(), PORT), &[b"RTPS"]));
        self.port.flush();
        self.port.on_timeout(self.now);
        self.said().iter().map(|frame| frame[..6].try_into().unwrap()).collect()
    }
}

fn arp(
    to: [u8; 6],
    from: [u8; 6],
    operation: u8,
    sender: ([u8; 6], [u8; 4]),
    target: ([u8; 6], [u8; 4]),
) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(sender.0);
    frame.extend(sender.1);
    frame.extend(target.0);
    frame.extend(target.1);
    frame
}

fn sum(bytes: &[u8]) -> [u8; 2] {
    let halves =
        bytes.chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], *half.get(1).unwrap_or(&0)])));
    let sum: u32 = halves.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

/// A frame of IPv4 with any protocol.
fn ip(to_mac: [u8; 6], from: [u8; 4], to: [u8; 4], hops: u8, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, hops, protocol, 0, 0].to_vec();
    header[2..4].copy_from_slice(&(20 + content.len() as u16).to_be_bytes());
    header.extend([from, to].concat());
    let of_header = sum(&header);
    header[10..12].copy_from_slice(&of_header);
    [&to_mac[..], &PEER_MAC, &[8, 0], &header, content].concat()
}

/// The same frame with some bytes changed, and the checksum of IP that it has then.
fn with(frame: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    changes.iter().for_each(|(at, byte)| frame[*at] = *byte);
    frame[24..26].fill(0);
    let of_header = sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&of_header);
    frame
}

fn igmp(kind: u8, code: u8, group: [u8; 4]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0][..], &group].concat();
    let of_message = sum(&message);
    message[2..4].copy_from_slice(&of_message);
    message
}

fn echo(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0, 0, 7, 0, 1][..], payload].concat();
    let of_message = sum(&message);
    message[2..4].copy_from_slice(&of_message);
    message
}

/// What is malformed, by its reasons.
fn malformed(mac: [u8; 6], v4: &[u8]) -> Vec<Vec<u8>> {
    let ask = arp(BROADCAST, PEER_MAC, REQUEST, (PEER_MAC, PEER), ([0; 6], OURS));
    let of_nobody = |from: [u8; 4]| {
        Udp { to_mac: mac, from_mac: PEER_MAC, from, to: OURS, port: PORT }.ipv4(&message(1, 200))
    };
    let query = ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &igmp(0x11, 100, [0; 4]));
    let changed = |frame: &[u8], at: usize, byte: u8| {
        let mut frame = frame.to_vec();
        frame[at] = byte;
        frame
    };
    let mut frames = vec![
        // Messages of ARP: another network, another protocol, other lengths, no operation, groups.
        changed(&ask, 15, 6),
        changed(&ask, 16, 0x86),
        changed(&ask, 18, 8),
        changed(&ask, 19, 16),
        changed(&ask, 21, 0),
        changed(&ask, 21, 9),
        changed(&ask, 22, 1),
        arp(BROADCAST, PEER_MAC, REQUEST, ([0; 6], PEER), ([0; 6], OURS)),
        arp(mac, PEER_MAC, REPLY, (BROADCAST, PEER), (mac, OURS)),
        // IP: options, other versions, lies of length.
        with(v4, &[(14, 0x4f)]),
        with(v4, &[(14, 0x44)]),
        with(v4, &[(14, 0x65)]),
        with(v4, &[(16, 0xff), (17, 0xff)]),
        with(v4, &[(16, 0), (17, 27)]),
        with(v4, &[(20, 0x80)]),
        changed(v4, 38, 0xff),
        // Fragments of nothing, of too much, and with options.
        with(v4, &[(16, 0), (17, 20), (20, 0x20)]),
        with(v4, &[(16, 0), (17, 29), (20, 0x20)]),
        with(v4, &[(20, 0x1f), (21, 0xff)]),
        with(v4, &[(14, 0x46), (20, 0x20)]),
        // Nobody sends from there.
        of_nobody([0; 4]),
        of_nobody([255; 4]),
        of_nobody([127, 0, 0, 1]),
        of_nobody(GROUP),
        of_nobody(OURS),
        // Messages that end too early.
        ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &[0x11, 0, 0, 0]),
        with(&query, &[(20, 0x20)]),
    ];
    // A whole header with a length that is none, and what ends within a header.
    frames.extend((14..14 + 28).map(|len| ask[..len].to_vec()));
    frames.extend((34..42).map(|len| v4[..len].to_vec()));
    frames.extend((34..42).map(|len| query[..len].to_vec()));
    frames
}

fn not_ours(mac: [u8; 6], v4: &[u8]) -> Vec<Vec<u8>> {
    let rtps = message(1, 200);
    let udp = |to_mac, to, port| Udp { to_mac, from_mac: PEER_MAC, from: PEER, to, port }.ipv4(&rtps);
    let sent_by = |from_mac| Udp { to_mac: mac, from_mac, from: PEER, to: OURS, port: PORT }.ipv4(&rtps);
    let say = |to, operation, sender, target| arp(to, PEER_MAC, operation, sender, target);
    vec![
        udp(mac, OURS, PORT + 1),
        udp(mac, OURS, GROUP_PORT),
        udp(mac, [10, 0, 0, 3], PORT),
        udp(mac, [10, 0, 0, 255], PORT),
        udp(mac, GROUP, GROUP_PORT),
        udp(GROUP_MAC, GROUP, PORT),
        udp(GROUP_MAC, OURS, PORT),
        udp(GROUP_MAC, [239, 127, 0, 1], GROUP_PORT),
        udp(BROADCAST, OURS, PORT),
        udp(OTHER_MAC, OURS, PORT),
        sent_by(mac),
        sent_by(BROADCAST),
        tagged(v4),
        Udp { to_mac: mac, ..Udp::to_port(PORT) }.ipv6(&rtps),
        Udp { to_mac: mac, ..Udp::to_port(PORT) }.l2(&rtps),
        Udp { to_mac: mac, from_mac: PEER_MAC, from: PEER, to: OURS, port: PORT }.ipv4(b"R"),
        with(v4, &[(20, 0x20), (33, 3)]),
        // Of stations: for others, unasked, to others, ours.
        say(BROADCAST, REQUEST, (PEER_MAC, PEER), ([0; 6], [10, 0, 0, 3])),
        say(BROADCAST, REQUEST, (PEER_MAC, PEER), ([0; 6], PEER)),
        say(BROADCAST, REPLY, (PEER_MAC, PEER), (BROADCAST, PEER)),
        say(mac, REPLY, (PEER_MAC, [10, 0, 0, 5]), (mac, OURS)),
        say(OTHER_MAC, REQUEST, (PEER_MAC, PEER), ([0; 6], OURS)),
        say(BROADCAST, REQUEST, (mac, OURS), ([0; 6], OURS)),
        // Of groups: of others, to others, from beyond a router.
        ip(GROUP_MAC, PEER, GROUP, 1, 2, &igmp(0x16, 0, GROUP)),
        ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &igmp(0x17, 0, GROUP)),
        ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 64, 2, &igmp(0x11, 1, [0; 4])),
        ip(GROUP_MAC, PEER, GROUP, 1, 2, &igmp(0x11, 1, [239, 1, 2, 3])),
        ip(mac, PEER, OURS, 1, 2, &igmp(0x11, 1, GROUP)),
        // Other protocols; answers nobody has asked for, and questions that are too long or to all.
        ip(mac, PEER, OURS, 64, 6, &[0; 20]),
        ip(mac, PEER, OURS, 64, 1, &echo(0, b"hello")),
        ip(mac, PEER, OURS, 64, 1, &echo(8, &[0; 500])),
        ip(mac, PEER, OURS, 64, 1, &[8, 0, 0]),
        ip(mac, PEER, [10, 0, 0, 255], 64, 1, &echo(8, b"hello")),
        ip(mac, [127, 0, 0, 1], OURS, 64, 1, &echo(8, b"hello")),
        ip(BROADCAST, PEER, OURS, 64, 1, &echo(8, b"hello")),
    ]
}

fn damaged(mac: [u8; 6], v4: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |frame: &[u8], at: usize| {
        let mut frame = frame.to_vec();
        frame[at] ^= 0x10;
        frame
    };
    let (query, ping) = (igmp(0x11, 1, [0; 4]), echo(8, b"hello"));
    vec![
        flipped(v4, 24),
        flipped(v4, 41),
        flipped(&with(v4, &[(20, 0x20)]), 25),
        flipped(&ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &query), 25),
        ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &flipped(&query, 3)),
        ip(mac, PEER, OURS, 64, 1, &flipped(&ping, 9)),
        flipped(&ip(mac, PEER, OURS, 64, 1, &ping), 24),
    ]
}

#[test]
fn each_frame_that_no_peer_sends_is_counted_by_its_reason() {
    let mut bench = Bench::new(10);
    let (mac, rtps) = (bench.mac, message(1, 200));
    let udp = Udp { to_mac: mac, from_mac: PEER_MAC, from: PEER, to: OURS, port: PORT };
    let (v4, good) = (udp.ipv4(&rtps), message(2, 300));
    let to_group = Udp { to_mac: GROUP_MAC, to: GROUP, port: GROUP_PORT, ..udp.clone() };
    let groups = [malformed(mac, &v4), not_ours(mac, &v4), damaged(mac, &v4)];
    let conflicts = [
        arp(BROADCAST, OTHER_MAC, REQUEST, (OTHER_MAC, OURS), ([0; 6], OURS)),
        arp(mac, OTHER_MAC, REPLY, (OTHER_MAC, OURS), (mac, OURS)),
    ];
    for round in 0..ROUNDS {
        for frames in &groups {
            assert_eq!(bench.hear(frames), Vec::<Vec<u8>>::new(), "round {round}");
        }
        assert!(bench.hear(&conflicts).is_empty());
        assert_eq!(bench.said(), Vec::<Vec<u8>>::new(), "nothing is said to any of them");
        // A peer in good order is heard behind them, and so is a group.
        assert_eq!(bench.hear(&[udp.ipv4(&good), to_group.ipv4(&rtps)]), [good.clone(), rtps.clone()]);
        let Stats { malformed, not_ours, damaged, conflicts, .. } = bench.port.stats();
        let expected = groups.each_ref().map(|frames| (round + 1) * frames.len() as u64);
        assert_eq!([malformed, not_ours, damaged], expected, "each reason, each time");
        assert_eq!(conflicts, 2 * (round + 1));
    }
    let stats = bench.port.stats();
    assert_eq!((stats.errors, stats.receive_overflow, stats.dropped_aside, stats.control), (0, 0, 0, 0));
    assert_eq!(bench.pass(Duration::ZERO).len(), 1, "our address is defended, once");
    let own = bench.port.carrier_mut().layer_mut().own_mut().unwrap();
    assert_eq!((own.take_conflict(), own.take_conflict()), (Some(OTHER_MAC), None));
}

#[test]
fn questions_are_answered() {
    let mut bench = Bench::new(20);
    let mac = bench.mac;
    let ask = |sender| arp(BROADCAST, PEER_MAC, REQUEST, (PEER_MAC, sender), ([0; 6], OURS));
    // The second only looks whether the address is free.
    bench.hear(&[ask(PEER), ask([0; 4])]);
    let answers = bench.said();
    let answer = |to| arp(PEER_MAC, mac, REPLY, (mac, OURS), (PEER_MAC, to));
    assert_eq!(answers.iter().map(|frame| &frame[..42]).collect::<Vec<_>>(), [answer(PEER), answer([0; 4])]);
    assert!(answers.iter().all(|frame| frame.len() == 60), "networks take no shorter frame");
    let ping = ip(mac, PEER, OURS, 64, 1, &echo(8, b"hello"));
    bench.hear(std::slice::from_ref(&ping));
    let mut pong = ip(PEER_MAC, OURS, PEER, 64, 1, &echo(0, b"hello"));
    pong[6..12].copy_from_slice(&mac);
    pong.resize(60, 0);
    assert_eq!(bench.said(), [pong]);
    bench.pass(Duration::from_secs(3));
    bench.hear(&[ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &igmp(0x11, 10, [0; 4]))]);
    let (mut reports, mut passed) = (Vec::new(), 0);
    while reports.is_empty() && passed <= 1_000 {
        reports = bench.pass(Duration::from_millis(10));
        passed += 10;
    }
    assert_eq!((reports.len(), &reports[0][..6]), (1, &GROUP_MAC[..]), "within the second that was given");
    assert_eq!(bench.port.stats().control, 4);
}

#[test]
fn a_flood_of_questions_is_answered_within_bounds() {
    let mut bench = Bench::new(30);
    let mac = bench.mac;
    let ping = ip(mac, PEER, OURS, 64, 1, &echo(8, b"hello"));
    let query = ip(ALL_HOSTS_MAC, PEER, ALL_HOSTS, 1, 2, &igmp(0x11, 1, [0; 4]));
    let ask = arp(BROADCAST, PEER_MAC, REQUEST, (PEER_MAC, PEER), ([0; 6], OURS));
    let frames = [vec![ping; 5_000], vec![query; 5_000], vec![ask; 5_000]].concat();
    bench.hear(&frames);
    let stats = bench.port.stats();
    assert_eq!(stats.control, 15_000);
    bench.said();
    let reports = (0..100).map(|_| bench.pass(Duration::from_millis(10)).len()).sum::<usize>();
    assert!(reports <= 2, "{reports} reports in a second");
}

#[test]
fn nobody_takes_the_place_of_a_station_that_answers() {
    let mut bench = Bench::new(40);
    let mac = bench.mac;
    assert_eq!(bench.stations(PEER), [BROADCAST], "it is asked for");
    assert_eq!(bench.stations(PEER), [[0; 6]; 0], "once");
    assert_eq!(bench.port.stats().dropped_unknown, 2);
    let answer = |from, of| arp(mac, from, REPLY, (from, of), (mac, OURS));
    bench.hear(&[answer(PEER_MAC, PEER)]);
    assert_eq!(bench.stations(PEER), [PEER_MAC]);
    let lies = [
        answer(OTHER_MAC, PEER),
        arp(BROADCAST, OTHER_MAC, REQUEST, (OTHER_MAC, PEER), ([0; 6], PEER)),
        arp(BROADCAST, OTHER_MAC, REPLY, (OTHER_MAC, PEER), (BROADCAST, PEER)),
        arp(BROADCAST, OTHER_MAC, REQUEST, (OTHER_MAC, PEER), ([0; 6], OURS)),
    ];
    for _ in 0..50 {
        bench.hear(&lies);
        bench.said();
        let stations = bench.stations(PEER);
        assert!(stations.iter().all(|station| *station == PEER_MAC), "{stations:02x?}");
        bench.hear(&[answer(PEER_MAC, PEER)]);
        bench.stations(PEER);
    }
    // Thousands who ask for us, each from another address and station.
    let asks = |number: u32| {
        let [_, _, c, d] = number.to_be_bytes();
        arp(BROADCAST, [2, 1, 0, 0, c, d], REQUEST, ([2, 1, 0, 0, c, d], [10, 0, 0, d]), ([0; 6], OURS))
    };
    bench.hear(&(0..5_000).filter(|number| ![1, 2].contains(&(number & 0xff))).map(asks).collect::<Vec<_>>());
    bench.said();
    assert_eq!(bench.stations(PEER), [PEER_MAC]);
}

#[test]
fn who_is_beyond_the_network_is_reached_by_the_router() {
    let mut bench = Bench::new(50);
    let (mac, router) = (bench.mac, [2, 0, 0, 0, 0, 0xfe]);
    let port = &mut bench.port;
    let mut goes = |to: [u8; 4]| port.send(&Locator::udp_v4(to.into(), PORT), &[b"RTPS"]);
    // The host's own, its interface's network, ours, and what is no host.
    for to in [[127, 0, 0, 1], [192, 168, 7, 1], [192, 168, 7, 9], OURS, [10, 0, 0, 255], [255; 4], [0; 4]] {
        let by_router = to == [10, 0, 0, 255];
        assert_eq!(goes(to), by_router, "{}", Ipv4Addr::from(to));
    }
    assert!(goes([10, 9, 9, 9]));
    bench.pass(Duration::ZERO);
    bench.hear(&[arp(mac, router, REPLY, (router, [10, 0, 0, 254]), (mac, OURS))]);
    assert_eq!(bench.stations([10, 9, 9, 9]), [router]);
    let group = Locator::udp_v4(GROUP.into(), GROUP_PORT);
    assert!(bench.port.send(&group, &[b"RTPS"]));
    bench.port.flush();
    let said = bench.said();
    assert_eq!((&said[0][..6], said[0][22]), (&GROUP_MAC[..], 1), "no router passes it on");
    let carrier = bench.port.carrier();
    let far = Locator::udp_v4([192, 168, 7, 9].into(), 1);
    assert_eq!((carrier.path_size(&group), carrier.path_size(&far)), (Some(1_472), None));
}

/// A datagram as the kernel sends it: in fragments, with a checksum over all of it or none.
fn fragments(mac: [u8; 6], number: u16, payload: &[u8]) -> Vec<Vec<u8>> {
    let len = (8 + payload.len() as u16).to_be_bytes();
    let udp = [&7_000_u16.to_be_bytes()[..], &PORT.to_be_bytes(), &len, &[0, 0], payload].concat();
    let [high, low] = number.to_be_bytes();
    let count = udp.len().div_ceil(1_480);
    let fragment = |(at, part): (usize, &[u8])| {
        let [a, b] = (at as u16 * 185).to_be_bytes();
        let more = if at + 1 < count { 0x20 } else { 0 };
        with(&ip(mac, PEER, OURS, 64, 17, part), &[(18, high), (19, low), (20, a | more), (21, b)])
    };
    udp.chunks(1_480).enumerate().map(fragment).collect()
}

#[test]
fn datagrams_in_fragments_come_whole() {
    let mut bench = Bench::new(60);
    let mac = bench.mac;
    for (number, len) in [1_500, 5_000, 65_000].into_iter().enumerate() {
        let sent = message(number as u32, len);
        assert!(bench.hear(&fragments(mac, number as u16, &sent)) == [sent], "{len} bytes");
    }
    let lost = fragments(mac, 9, &message(9, 5_000));
    assert!(bench.hear(&lost[1..]).is_empty());
    bench.pass(Duration::ZERO);
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.port.stats().dropped_parts, 1);
    assert!(bench.hear(&lost[..1]).is_empty(), "the rest was given up");
}
