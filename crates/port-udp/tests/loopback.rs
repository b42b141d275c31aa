//! The port against the kernel's loopback interface.

mod common;

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use common::{LIMIT, assert_silent, await_frames, await_readable, free_domain, on_loopback, open};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use socket2::SockRef;
use taut_base::Locator;
use taut_port::{Port, Receive, Traffic};
use taut_port_udp::{Direct, Multicast, UdpConfig, UdpPort};

#[test]
fn unicast_arrives_on_its_sockets_with_its_source() {
    let domain = free_domain();
    let config = on_loopback(&domain);
    let (mut a, mut b) = (open(&config), open(&config));
    a.send(b.user_unicast(), &[b"to ", b"user"]);
    a.send(b.metatraffic_unicast(), &[b"to meta"]);
    let user = await_frames(&mut b, Traffic::User, 1);
    let meta = await_frames(&mut b, Traffic::Meta, 1);
    assert_eq!((&*user[0].bytes, user[0].traffic), (&b"to user"[..], Traffic::User));
    assert_eq!((&*meta[0].bytes, meta[0].traffic), (&b"to meta"[..], Traffic::Meta));
    assert_eq!(&[user[0].source], a.user_unicast(), "sent from an address that is announced");
    assert_silent(&mut a, Traffic::User);
    let (a, b) = (a.stats(), b.stats());
    assert_eq!((a.datagrams_out, a.bytes_out), (2, 14));
    assert_eq!((b.datagrams_in, b.bytes_in), (2, 14));
}

#[test]
fn what_a_look_finds_comes_before_what_is_behind_it() {
    let domain = free_domain();
    let config = on_loopback(&domain);
    let (mut a, mut b) = (open(&config), open(&config));
    let mut direct = b.direct().unwrap();
    assert!(direct.may_look() && !direct.look(), "nothing is there");
    for n in 0..3_u8 {
        a.send(b.user_unicast(), &[&[n]]);
    }
    // The kernel has delivered what was sent to itself.
    assert!(direct.look() && direct.look(), "a second look leaves what is in hand");
    let mut heard = Vec::new();
    let mut hear = |frame: &taut_port::Frame| heard.push((frame.bytes[0], frame.traffic, frame.source));
    assert_eq!(b.receive_direct(&mut direct, &mut hear), 1);
    assert_eq!(b.receive_direct(&mut direct, &mut hear), 0, "once");
    assert_eq!(b.receive_from(Direct::SOURCE, 8, &mut hear), 2);
    let me = a.user_unicast()[0];
    assert_eq!(heard, [0, 1, 2].map(|n| (n, Traffic::User, me)));
    assert!(!direct.look());
    assert_eq!(b.stats().datagrams_in, 3);
}

#[test]
fn who_sends_much_to_one_address_has_a_port_for_it() {
    let domain = free_domain();
    let config = on_loopback(&domain);
    let (mut a, mut b) = (open(&config), open(&config));
    let mut sources = Vec::new();
    for n in 0..100_u8 {
        a.send(b.user_unicast(), &[&[n]]);
        let frames = await_frames(&mut b, Traffic::User, 1);
        assert_eq!(frames[0].bytes[0], n);
        sources.push(frames[0].source);
    }
    assert_eq!(&sources[..1], a.user_unicast());
    let (first, last) = (sources[0], *sources.last().unwrap());
    assert!(first.ip() == last.ip() && first.port != last.port, "{first} {last}");
    // Whoever answers there is not heard.
    b.send(&[last], &[b"lost"]);
    assert_silent(&mut a, Traffic::User);
    assert_silent(&mut a, Traffic::Meta);
}

#[test]
fn multicast_reaches_every_port_of_the_domain_once() {
    let domain = free_domain();
    let (mut a, mut b) = (open(&on_loopback(&domain)), open(&on_loopback(&domain)));
    let other_domain = free_domain();
    let mut other = open(&on_loopback(&other_domain));
    for (traffic, said, group) in [
        (Traffic::Meta, Traffic::MetaMulticast, a.metatraffic_multicast().to_vec()),
        (Traffic::User, Traffic::User, a.user_multicast().to_vec()),
    ] {
        a.send(&group, &[b"all"]);
        for port in [&mut a, &mut b] {
            let frames = await_frames(port, traffic, 1);
            assert_eq!(frames.len(), 1);
            assert_eq!((&*frames[0].bytes, frames[0].traffic), (&b"all"[..], said));
            assert_eq!(frames[0].source.ip(), Some(Ipv4Addr::LOCALHOST.into()));
        }
        assert_silent(&mut other, traffic);
    }
    let group = a.user_multicast().to_vec();
    assert_eq!(group[0].port, 7401 + 250 * domain.id);
}

#[test]
fn multicast_reaches_another_process() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process"])
        .env("TAUT_TEST_DOMAIN", domain.id.to_string())
        .spawn()
        .unwrap();
    let heard = await_frames(&mut port, Traffic::Meta, 1);
    assert_eq!(&*heard[0].bytes, b"I am here");
    port.send(port.metatraffic_multicast().to_vec().as_slice(), &[b"so am I"]);
    assert!(child.wait().unwrap().success());
}

/// The far end of `multicast_reaches_another_process`, which starts it with the domain; else it does nothing.
#[test]
fn the_other_process() {
    let Ok(domain_id) = std::env::var("TAUT_TEST_DOMAIN") else { return };
    let domain_id = domain_id.parse().unwrap();
    let mut port =
        open(&UdpConfig { domain_id, interfaces: vec!["127.0.0.1".into()], ..UdpConfig::default() });
    let group = port.metatraffic_multicast().to_vec();
    port.send(&group, &[b"I am here"]);
    let frames = await_frames(&mut port, Traffic::Meta, 2);
    assert!(frames.iter().any(|frame| &*frame.bytes == b"so am I"), "{frames:?}");
}

#[test]
fn any_number_of_parts_is_one_datagram() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = port.user_unicast().to_vec();
    let bytes: Vec<u8> = (0..=255).collect();
    for count in [0, 1, 7, 8, 9, 95, 96, 97, 200] {
        let parts: Vec<&[u8]> = bytes.chunks(1).take(count).collect();
        port.send(&to, &parts);
        let frames = await_frames(&mut port, Traffic::User, 1);
        assert_eq!((frames.len(), &*frames[0].bytes), (1, &bytes[..count]), "{count} parts");
    }
    assert_eq!(port.stats().sends_copied, 2);
    for len in [511, 512, 513] {
        let payload: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        let (front, back) = payload.split_at(100);
        port.send(&to, &[front, &[], back]);
        assert_eq!(&*await_frames(&mut port, Traffic::User, 1)[0].bytes, &payload[..], "{len} bytes");
    }
}

#[test]
fn the_biggest_datagram_arrives_whole_and_a_bigger_one_is_counted() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = port.user_unicast().to_vec();
    let payload: Vec<u8> = (0..65_507u32).map(|n| (n * 7 % 251) as u8).collect();
    let (front, back) = payload.split_at(20);
    port.send(&to, &[front, back]);
    let frames = await_frames(&mut port, Traffic::User, 1);
    assert!(*frames[0].bytes == payload[..], "{} bytes", frames[0].bytes.len());
    port.send(&to, &[&payload, b"x"]);
    assert_eq!(port.stats().send_errors.of(libc::EMSGSIZE), 1);
    assert_silent(&mut port, Traffic::User);
}

#[test]
fn a_destination_that_fails_does_not_stop_the_others() {
    let domain = free_domain();
    let mut port = open(&UdpConfig { multicast: Multicast::Never, ..on_loopback(&domain) });
    assert!(port.metatraffic_multicast().is_empty() && port.user_multicast().is_empty());
    assert_eq!(port.fds().count(), 2);
    let good = port.user_unicast()[0];
    let group = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
    let broadcast = Locator::udp_v4(Ipv4Addr::BROADCAST, 7400);
    let v6 = Locator::from(std::net::SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 7400)));
    let nobody = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    port.send(&[Locator::INVALID, group, v6, broadcast, nobody, nobody, good], &[b"through"]);
    assert_eq!(await_frames(&mut port, Traffic::User, 1).len(), 1);
    let stats = port.stats();
    assert_eq!((stats.dropped_unreachable, stats.send_errors.total(), stats.datagrams_out), (3, 1, 3));
}

/// Sockets of this host, and where they are reached.
fn listeners(count: usize) -> (Vec<UdpSocket>, Vec<Locator>) {
    let open = |_| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let sockets: Vec<UdpSocket> = (0..count).map(open).collect();
    let reached = sockets.iter().map(|socket| Locator::from(socket.local_addr().unwrap())).collect();
    (sockets, reached)
}

/// The datagrams that have come there. Loopback delivers within the sender's call.
fn heard_by(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; 65_536];
    std::iter::from_fn(|| socket.recv(&mut bytes).ok().map(|len| bytes[..len].to_vec())).collect()
}

#[test]
fn many_destinations_share_a_call() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let (sockets, to) = listeners(40);
    let long: Vec<u8> = (0..20_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let rest = &long[100..];
    let cases: [(&str, usize, Vec<&[u8]>); 4] = [
        ("of one part", 8, vec![b"whole"]),
        ("gathered", 8, vec![&long[..100], rest]),
        ("of many parts", 8, long.chunks(400).collect()),
        ("more than one call takes", 40, vec![b"many"]),
    ];
    for (what, count, parts) in cases {
        let before = port.stats();
        port.send(&to[..count], &parts);
        let after = port.stats();
        assert_eq!(after.send_calls - before.send_calls, count.div_ceil(32) as u64, "{what}");
        assert_eq!(after.datagrams_out - before.datagrams_out, count as u64, "{what}");
        let bytes = parts.concat();
        assert_eq!(after.bytes_out - before.bytes_out, (count * bytes.len()) as u64, "{what}");
        for (at, socket) in sockets.iter().enumerate() {
            let expected: &[Vec<u8>] = if at < count { std::slice::from_ref(&bytes) } else { &[] };
            assert_eq!(heard_by(socket), expected, "{what}, destination {at}");
        }
    }

    let before = port.stats();
    port.send_row(&to[..5], &[&long[..3_000], &long[3_000..4_500]], 1_000);
    let after = port.stats();
    assert_eq!((after.send_calls - before.send_calls, after.datagrams_out - before.datagrams_out), (1, 25));
    assert_eq!(after.bytes_out - before.bytes_out, 5 * 4_500);
    let row: Vec<Vec<u8>> = long[..4_500].chunks(1_000).map(<[u8]>::to_vec).collect();
    assert!(sockets[..5].iter().all(|socket| heard_by(socket) == row));
}

#[test]
fn a_call_that_stops_half_way_goes_on_behind() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let (sockets, to) = listeners(4);
    let (broadcast, nobody) =
        (Locator::udp_v4(Ipv4Addr::BROADCAST, 7400), Locator::udp_v4(Ipv4Addr::LOCALHOST, 1));
    for bytes in [b"through".to_vec(), vec![7; 3_000]] {
        let before = port.stats();
        let parts = [&bytes[..1], &bytes[1..]];
        let to = [to[0], to[1], broadcast, nobody, to[2], broadcast, to[3]];
        if bytes.len() < 1_000 {
            port.send(&to, &parts)
        } else {
            port.send_row(&to, &parts, 1_000)
        }
        for (at, socket) in sockets.iter().enumerate() {
            assert_eq!(heard_by(socket).concat(), bytes, "destination {at}, once");
        }
        let (after, each) = (port.stats(), bytes.len().div_ceil(1_000) as u64);
        assert_eq!(after.send_errors.of(libc::EACCES) - before.send_errors.of(libc::EACCES), 2);
        assert_eq!(after.send_errors.total(), after.send_errors.of(libc::EACCES));
        assert_eq!(after.datagrams_out - before.datagrams_out, 5 * each);
        assert_eq!(after.send_calls - before.send_calls, 5, "two each up to what fails, and one behind it");
    }
}

#[test]
fn more_participants_than_there_are_indexes() {
    let domain = free_domain();
    let config = UdpConfig { receive_buffer: 4096, send_buffer: 4096, ..on_loopback(&domain) };
    let mut ports: Vec<UdpPort> = (0..130).map(|_| open(&config)).collect();
    let indexes: Vec<u32> = ports.iter().filter_map(UdpPort::participant_index).collect();
    assert_eq!(indexes, (0..120).collect::<Vec<_>>());
    let first = &ports[0];
    assert_eq!(first.metatraffic_unicast()[0].port, 7410 + 250 * domain.id);
    assert_eq!(first.user_unicast()[0].port, 7411 + 250 * domain.id);
    let (mut last, mut middle) = (ports.pop().unwrap(), ports.remove(60));
    middle.send(last.user_unicast(), &[b"to the last"]);
    assert_eq!(await_frames(&mut last, Traffic::User, 1).len(), 1);
    drop(middle);
    assert_eq!(open(&config).participant_index(), Some(60), "an index is free once its port is dropped");
}

#[test]
fn a_lone_user_port_is_not_enough() {
    let domain = free_domain();
    let _taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, (7411 + 250 * domain.id) as u16)).unwrap();
    assert_eq!(open(&on_loopback(&domain)).participant_index(), Some(1));
}

#[test]
fn refusals_have_remedies() {
    let domain = free_domain();
    let text = |config: UdpConfig| UdpPort::open(&config).err().expect("refused").to_string();
    let asked = UdpConfig { participant_index: Some(3), ..on_loopback(&domain) };
    let _holder = open(&asked);
    let taken = text(asked);
    let port = 7416 + 250 * domain.id;
    assert!(
        taken.contains(&format!("127.0.0.1:{port}")) && taken.contains("another participant index"),
        "{taken}"
    );
    let unknown = text(UdpConfig { interfaces: vec!["eth77".into()], ..UdpConfig::default() });
    assert!(unknown.contains("eth77: choose of") && unknown.contains("lo (127.0.0.1)"), "{unknown}");
    let other = free_domain();
    let group = (Ipv4Addr::UNSPECIFIED, (7400 + 250 * other.id) as u16);
    let _selfish = UdpSocket::bind(group).unwrap();
    let unshared = text(on_loopback(&other));
    assert!(unshared.contains("bind 239.255.0.1:") && unshared.contains("ss -ulpn"), "{unshared}");
}

#[test]
fn one_socket_is_read_by_its_index_within_a_budget() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = port.user_unicast().to_vec();
    for n in 0..50u8 {
        port.send(&to, &[&[n]]);
    }
    let readable = await_readable(&port, LIMIT);
    assert_eq!(readable.len(), 1, "only the socket that was sent to");
    let mut heard = Vec::new();
    assert_eq!(port.receive_from(readable[0], 7, &mut |frame| heard.push(frame.bytes[0])), 7);
    assert_eq!(
        await_readable(&port, Duration::ZERO),
        readable,
        "level-triggered: the rest is still announced"
    );
    assert_eq!(port.receive_from(readable[0], 1_000, &mut |frame| heard.push(frame.bytes[0])), 43);
    assert_eq!(heard, (0..50).collect::<Vec<u8>>(), "in order");
    assert_eq!(port.receive_from(99, 1, &mut |_| ()), 0, "an index that does not exist");
}

#[test]
fn a_quiet_socket_that_gets_busy_loses_nothing() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = port.user_unicast().to_vec();
    let (mut heard, mut calls) = (Vec::new(), 0);
    let mut drain = |port: &mut UdpPort, heard: &mut Vec<u8>, until: usize| {
        while heard.len() < until {
            let readable = await_readable(port, LIMIT);
            port.receive_from(readable[0], 64, &mut |frame| heard.push(frame.bytes[0]));
            calls += 1;
        }
    };
    for n in 0..100u8 {
        port.send(&to, &[&[n]]);
        drain(&mut port, &mut heard, usize::from(n) + 1);
    }
    let stats = port.stats();
    assert_eq!((stats.send_calls, stats.receive_calls), (100, 100), "syscalls of 100 datagrams, one by one");
    for n in 100..200u8 {
        port.send(&to, &[&[n]]);
    }
    drain(&mut port, &mut heard, 200);
    assert_eq!(heard, (0..200).collect::<Vec<u8>>());
    assert!((101..=125).contains(&calls), "{calls} calls: one each while quiet, few for the stream");
}

#[test]
fn a_quiet_socket_does_not_make_the_bursts_of_a_busy_one_small() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let (user, meta) = (port.user_unicast().to_vec(), port.metatraffic_unicast().to_vec());
    let mut calls = Vec::new();
    for _ in 0..4 {
        for n in 0..40u8 {
            port.send(&user, &[&[n]]);
        }
        port.send(&meta, &[b"alone"]);
        let before = port.stats().receive_calls;
        for index in await_readable(&port, LIMIT) {
            port.receive_from(index, 64, &mut |_| ());
        }
        calls.push(port.stats().receive_calls - before);
    }
    assert_eq!(calls[1..], [4; 3], "16, 16 and 8, and the one alone");
}

#[test]
fn neither_socket_of_a_lane_starves_the_other() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let (unicast, group) = (port.user_unicast().to_vec(), port.user_multicast().to_vec());
    for _ in 0..40 {
        port.send(&unicast, &[b"u"]);
        port.send(&group, &[b"m"]);
    }
    let mut heard = Vec::new();
    assert_eq!(port.receive(Traffic::User, 20, &mut |frame| heard.push(frame.bytes[0])), 20);
    let of_unicast = heard.iter().filter(|byte| **byte == b'u').count();
    assert!((4..=16).contains(&of_unicast), "{of_unicast} of 20");
    let rest = await_frames(&mut port, Traffic::User, 60);
    assert_eq!(rest.len(), 60);
}

/// The most that the kernel gives a process without a privilege, and whether this one is given more.
fn receive_limit() -> (usize, bool) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let granted = SockRef::from(&socket);
    granted.set_recv_buffer_size(1 << 30).unwrap();
    let limit = granted.recv_buffer_size().unwrap() / 2;
    (limit, setsockopt(&socket, sockopt::RcvBufForce, &(1 << 20)).is_ok())
}

#[test]
fn the_limit_of_the_kernel_holds_only_without_the_privilege() {
    let (limit, is_privileged) = receive_limit();
    let asked = limit + (1 << 20);
    let domain = free_domain();
    let port = open(&UdpConfig { receive_buffer: asked, ..on_loopback(&domain) });
    assert_eq!(port.receive_buffer(), if is_privileged { asked } else { limit });
    if !is_privileged {
        return println!("refused");
    }
    // The same without it, by a process of its own.
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"])
        .arg(std::env::current_exe().unwrap());
    let name = "the_limit_of_the_kernel_holds_only_without_the_privilege";
    let output = command.args(["--exact", name, "--nocapture", "--quiet"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("refused"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_a_full_buffer_loses_is_known() {
    let domain = free_domain();
    let mut port = open(&UdpConfig { receive_buffer: 4096, ..on_loopback(&domain) });
    assert!((1_000..=8_192).contains(&port.receive_buffer()), "{}", port.receive_buffer());
    let to = port.user_unicast().to_vec();
    for _ in 0..100 {
        port.send(&to, &[&[0; 1_000]]);
    }
    let heard = await_frames(&mut port, Traffic::User, 1).len() as u64;
    let stats = port.stats();
    assert!(stats.receive_overflow > 0);
    assert_eq!(heard + stats.receive_overflow, 100);
}

#[test]
fn held_frames_are_never_written_again() {
    let domain = free_domain();
    let mut port = open(&on_loopback(&domain));
    let to = port.user_unicast().to_vec();
    let mut held = Vec::new();
    for n in 0..200u8 {
        port.send(&to, &[&[n; 100]]);
        held.extend(await_frames(&mut port, Traffic::User, 1));
    }
    assert!(held.iter().zip(0..).all(|(frame, n): (_, u8)| *frame.bytes == [n; 100]));
}

const EXPEDITED: u8 = 44;

/// Priorities, and the marks of what is sent by them: that of the setting, those of priorities, and that of the setting again.
const MARKED: [(i32, u8); 6] =
    [(0, EXPEDITED), (1, 18), (12, 34), (i32::MAX, 46), (-3, EXPEDITED), (0, EXPEDITED)];

/// What the kernel says besides of the next datagram, which has come.
fn said_of_next(heard: &UdpSocket) -> Vec<ControlMessageOwned> {
    let (mut bytes, mut space) = ([0; 8], nix::cmsg_space!(i32));
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<()>(heard.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_DONTWAIT);
    message.expect("it has come").cmsgs().unwrap().collect()
}

#[test]
fn what_is_sent_carries_its_mark() {
    let domain = free_domain();
    let mut port = open(&UdpConfig { dscp: EXPEDITED, ..on_loopback(&domain) });
    let heard = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let group = Ipv4Addr::new(239, 255, 0, 1);
    heard.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    SockRef::from(&heard).set_recv_tos_v4(true).unwrap();
    let to = heard.local_addr().unwrap().port();
    let to = [Locator::udp_v4(Ipv4Addr::LOCALHOST, to), Locator::udp_v4(group, to)];
    for (priority, mark) in MARKED {
        port.set_priority(priority);
        port.send(&to, &[b"first"]);
        for way in ["unicast", "multicast"] {
            let marks = said_of_next(&heard);
            assert_eq!(marks, [ControlMessageOwned::Ipv4Tos(mark << 2)], "{way}, priority {priority}");
        }
    }
}

/// Linux carries no multicast of IPv6 there.
#[test]
fn what_is_sent_over_ipv6_carries_its_mark() {
    let Ok(heard) = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "this test needs ::1");
        return println!("LEFT OUT: it needs ::1");
    };
    let domain = free_domain();
    let on_ipv6 = UdpConfig { interfaces: vec!["::1".into()], ..on_loopback(&domain) };
    let mut port = open(&UdpConfig { dscp: EXPEDITED, ..on_ipv6 });
    SockRef::from(&heard).set_recv_tclass_v6(true).unwrap();
    let to = [Locator::from(heard.local_addr().unwrap())];
    for (priority, mark) in MARKED {
        port.set_priority(priority);
        port.send(&to, &[b"first"]);
        let marks = said_of_next(&heard);
        assert_eq!(marks, [ControlMessageOwned::Ipv6TClass(i32::from(mark) << 2)], "priority {priority}");
    }
}
