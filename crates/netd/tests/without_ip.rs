//! Queues for frames without IP: a rule gives all of them, to one participant of an interface, and to nobody by its ports.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use taut_base::Locator;
use taut_ethernet::{FrameEnds, Reached};
use taut_port_xdp::netd::{Connection, Granted, Message, Received};
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, LIMIT, Pair, await_that, ip, takes_group, while_none_starts, with_pair};
use taut_xdp::{AttachMode, FreeFrames, Interface, Mode, Socket, Umem};

use common::{PORT, RULES, Running, answered, bound, dropped, granted, refusal, take_of};

const TWO_QUEUES: [&str; 2] = ["numrxqueues 2 numtxqueues 2"; 2];
/// What the rules of all tests lack.
const FRAMES: &str = "[[allow]]\nuser = 0\ninterface = \"xa\"\nqueues = [0, 1]\nlayer = 2\n";

fn start(pair: &Pair, name: &str) -> Running {
    let netd = Running::start(pair, name);
    netd.set_policy(&format!("{RULES}{FRAMES}"));
    netd
}

/// Asks for a queue, and has it.
fn has(netd: &Running, queue: u32) -> (Connection, Vec<OwnedFd>) {
    let client = netd.connect();
    client.send(&take_of(Mode::L2, queue), &[]).unwrap();
    let (messages, fds) = answered(&client);
    assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
    (client, fds)
}

/// Why a request of a layer is refused.
fn refused(netd: &Running, layer: Mode, queue: u32) -> String {
    let client = netd.connect();
    match layer {
        Mode::L2 => client.send(&take_of(layer, queue), &[]).unwrap(),
        Mode::L3 => client.send(&take_of(layer, queue), &[bound(5).as_fd()]).unwrap(),
    }
    refusal(&client)
}

#[test]
fn who_breaks_the_rules_is_dropped() {
    with_pair("who_breaks_the_rules_without_ip", TWO_QUEUES, |pair| {
        let netd = start(pair, "bare-rules");
        let bytes_of = |change: fn(&mut Vec<u8>)| {
            let mut bytes = take_of(Mode::L2, 0).encode();
            change(&mut bytes);
            bytes
        };
        for (bytes, part) in [
            (bytes_of(|bytes| bytes[2] = 4), "fields that it does not have"),
            (bytes_of(|bytes| bytes[2] = 0), "fields that it does not have"),
            // As long as there was no layer.
            (
                bytes_of(|bytes| bytes[0] = 3),
                "version 3 of what netd and participants say, this is version 4",
            ),
        ] {
            let client = netd.connect();
            let iov = [std::io::IoSlice::new(&bytes)];
            sendmsg(client.fd(), &iov, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL).unwrap();
            assert!(dropped(&client).contains(part), "{part}");
        }
        // Nothing is to be shown, and nobody is to have netd keep a socket.
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        let client = netd.connect();
        client.send(&take_of(Mode::L2, 0), &[socket.as_fd()]).unwrap();
        assert!(dropped(&client).contains("1 descriptors with a message of its kind"));
        for ends in [Vec::new(), vec!["10.88.0.1:7411".parse().unwrap()]] {
            let (client, _fds) = has(&netd, 0);
            client.send(&Message::Receive { ends }, &[]).unwrap();
            assert!(dropped(&client).contains("Receive out of turn"));
            drop(_fds);
        }
        pair.await_no_program(End::A);
        let _has = has(&netd, 0);
        let counts = netd.end();
        assert_eq!((counts.hostile, counts.granted, counts.refused), (6, 3, 0), "{counts:?}");
    });
}

/// The program takes what one layer has, and frames without IP are for whose queue they come by.
#[test]
fn an_interface_has_one_layer_and_without_ip_one_participant() {
    with_pair("one_layer_and_one_participant", TWO_QUEUES, |pair| {
        let netd = start(pair, "bare-layer");
        let (over_ip, socket) = (netd.connect(), bound(0));
        let (messages, fds) = granted(&over_ip, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        let told = refused(&netd, Mode::L2, 1);
        assert!(told.starts_with("others use xa over IP, and an interface has one program"), "{told}");
        // What the last one has left is no obstacle, if it has gone just before.
        let next = netd.connect();
        netd.while_held(|| {
            while_none_starts(|| drop((over_ip, fds, socket)));
            next.send(&take_of(Mode::L2, 0), &[]).unwrap();
        });
        let (messages, _fds) = answered(&next);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        let own = std::process::id();
        for (layer, queue) in [(Mode::L2, 1), (Mode::L2, 0), (Mode::L3, 1)] {
            let told = refused(&netd, layer, queue);
            let wanted = format!("process {own} of user 0 has xa without IP, where an interface has one");
            assert!(told.starts_with(&wanted), "{told}");
        }
        while_none_starts(|| drop((next, _fds)));
        netd.serves(1);
    });
}

/// Nor is the mode of the program that one has left who has gone just before.
#[test]
fn an_interface_in_another_mode_than_before() {
    with_pair("another_mode_than_before", TWO_QUEUES, |pair| {
        let netd = start(pair, "bare-mode");
        let ask = |client: &Connection, mode| {
            let (interface, attach) = ("xa".into(), Some(mode));
            let take = Message::Take { interface, layer: Mode::L2, queues: vec![0], attach, bind: None };
            client.send(&take, &[]).unwrap();
        };
        let first = netd.connect();
        ask(&first, AttachMode::Native);
        let (messages, fds) = answered(&first);
        assert!(matches!(messages[0], Message::Taken { attached: AttachMode::Native, .. }), "{messages:?}");
        let next = netd.connect();
        netd.while_held(|| {
            while_none_starts(|| drop((first, fds)));
            ask(&next, AttachMode::Generic);
        });
        let (messages, _fds) = answered(&next);
        assert!(matches!(messages[0], Message::Taken { attached: AttachMode::Generic, .. }), "{messages:?}");
    });
}

/// To look at it costs as much as with a socket that is shown.
#[test]
fn who_asks_by_ever_new_connections_waits() {
    with_pair("who_asks_by_ever_new_connections_without_ip", ["", ""], |pair| {
        let netd = Running::start(pair, "bare-new");
        let begun = Instant::now();
        let ask = |_| {
            let client = netd.connect();
            client.send(&take_of(Mode::L2, 0), &[]).unwrap();
            client
        };
        let clients: Vec<Connection> = (0..45).map(ask).collect();
        for client in &clients {
            assert!(refusal(client).contains("`layer = 2`"));
        }
        assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
        let counts = netd.end();
        assert_eq!((counts.refused, counts.stalled), (45, 0), "{counts:?}");
    });
}

/// Without IP the connection shows what a socket of UDP does over IP.
#[test]
fn who_is_in_another_network_namespace() {
    with_pair("who_is_in_another_network_namespace", ["", ""], |pair| {
        let netd = start(pair, "bare-elsewhere");
        pair.enter(End::B);
        let told = refused(&netd, Mode::L2, 0);
        assert!(told.contains("in another network namespace than netd"), "{told}");
        assert!(!pair.has_program(End::A), "nothing was opened");
        let _has = has(&netd, 0);
    });
}

/// The card takes what is sent to the group for as long as somebody is there, of the interface that netd has opened.
#[test]
fn groups_end_with_the_participant() {
    with_pair("groups_end_with_the_participant", ["", ""], |pair| {
        let netd = start(pair, "bare-groups");
        ip("link property add dev xa altname enp0s1");
        assert!(!takes_group("xa"));
        let (client, fds) = has(&netd, 0);
        assert!(takes_group("xa"));
        // Nothing is found in the looks of each second that would have it end.
        assert!(matches!(client.receive_within(Duration::from_millis(2_500)), Received::Empty));
        drop((client, fds));
        await_that("it has left", || !takes_group("xa"));
        let client = netd.connect();
        let take = Message::Take {
            interface: "enp0s1".into(),
            layer: Mode::L2,
            queues: vec![0],
            attach: None,
            bind: None,
        };
        client.send(&take, &[]).unwrap();
        assert_eq!(answered(&client).0.len(), 2);
        assert!(takes_group("xa"));
        assert_eq!(netd.end().hostile, 0);
        await_that("it ends with netd", || !takes_group("xa"));
    });
}

/// A rule for ports gives no frames, to who has them neither.
#[test]
fn rules_of_the_other_layer() {
    with_pair("rules_of_the_other_layer", ["", ""], |pair| {
        let netd = Running::start(pair, "bare-others");
        let missing = "on xa is for frames without IP: add an `[[allow]]` with `layer = 2`";
        let told = refused(&netd, Mode::L2, 0);
        assert!(told.contains(missing), "{told}");
        netd.set_policy(FRAMES);
        let told = refused(&netd, Mode::L3, 0);
        assert!(told.contains("on xa is for UDP over IP: add an `[[allow]]` with `domains`"), "{told}");
        let (client, _fds) = has(&netd, 0);
        netd.set_policy(&format!("{RULES}{FRAMES}"));
        assert!(matches!(client.receive_within(Duration::from_millis(100)), Received::Empty), "it keeps it");
        netd.set_policy(RULES);
        let told = dropped(&client);
        assert!(told.contains(missing), "{told}");
        pair.await_no_program(End::A);
        assert!(!takes_group("xa"));
        let counts = netd.end();
        assert_eq!((counts.granted, counts.revoked, counts.refused), (1, 1, 2), "{counts:?}");
    });
}

/// Who had a queue of it is told by the end of the connection, although it has shown nothing that is looked at.
#[test]
fn an_interface_that_is_removed_is_nobodys() {
    with_pair("an_interface_that_is_removed_without_ip", ["", ""], |pair| {
        let netd = start(pair, "bare-removed");
        let (client, _fds) = has(&netd, 0);
        ip("link del xa");
        assert!(dropped(&client).contains("the interface was removed"), "netd hangs up");
    });
}

/// A participant without IP at one end, at this port.
fn port(pair: &Pair, end: End, netd: Netd) -> XdpPort {
    pair.enter(end);
    let ends = FrameEnds { user: vec![Locator::ethernet([0; 6], PORT)], metatraffic: Vec::new() };
    let config = XdpConfig { interface: end.name().into(), netd, ..XdpConfig::default() };
    XdpPort::open(&config, Reached::Bare(ends), &[]).unwrap()
}

/// Sends a frame to the first end.
fn send(pair: &Pair, far: &mut XdpPort) {
    pair.enter(End::A);
    let to = Locator::ethernet(Interface::named("xa").unwrap().mac, PORT);
    assert!(far.send(&to, &[&[7; 1_000]]));
    far.flush();
}

/// A first sample is 60 bytes behind the beginning of its message, and then where memory has values of eight bytes.
#[test]
fn frames_have_room_in_front() {
    with_pair("frames_have_room_in_front", ["", ""], |pair| {
        let netd = start(pair, "bare-room");
        let mut near = port(pair, End::A, Netd::At(netd.path.clone()));
        let mut far = port(pair, End::B, Netd::Never);
        send(pair, &mut far);
        let mut place = None;
        await_that("it comes", || {
            near.receive_from(0, 1, &mut |frame| place = Some(frame.bytes.as_ptr() as usize % 8));
            place.is_some()
        });
        assert_eq!((place, near.stats().in_place_in), (Some(4), 1));
    });
}

/// The socket is its own for as long as it likes, and so is what it sends. Nothing comes by it any more, also when others have
/// the interface.
#[test]
fn who_keeps_a_queue_that_was_taken_back_gets_nothing() {
    with_pair("keeps_a_queue_that_was_taken_back", ["numrxqueues 2 numtxqueues 2", ""], |pair| {
        let netd = start(pair, "bare-kept");
        let client = netd.connect();
        client.send(&take_of(Mode::L2, 0), &[]).unwrap();
        let (messages, fds) = answered(&client);
        let [Message::Taken { .. }, Message::Queue(Granted { layout, .. })] = messages[..] else {
            panic!("{messages:?}")
        };
        let [socket, frames] = <[OwnedFd; 2]>::try_from(fds).unwrap();
        let umem = Arc::new(Umem::adopt(frames, layout.chunks, layout.chunk_size).unwrap());
        let mut free = FreeFrames::of(&umem);
        let interface = Interface::named("xa").unwrap();
        let mut kept = Socket::adopt(socket, 0, &interface, umem, &layout.rings).unwrap();
        let mut fill = kept.fill.reserve(64);
        (0..64).for_each(|_| assert!(fill.put(free.take().unwrap())));
        fill.submit();
        let mut far = port(pair, End::B, Netd::Never);
        let mut gets = |what: &str, is_wanted: bool| {
            let mut count = 0;
            // What had come before is no matter.
            let mut before = kept.rx.peek(u32::MAX);
            before.by_ref().for_each(drop);
            before.release();
            let end = Instant::now() + if is_wanted { LIMIT } else { Duration::from_millis(200) };
            while count == 0 && Instant::now() < end {
                send(pair, &mut far);
                let mut come = kept.rx.peek(64);
                count = come.by_ref().count();
                come.release();
            }
            assert_eq!(count > 0, is_wanted, "{what}");
        };
        gets("it has the queue", true);
        netd.set_policy(RULES);
        assert!(dropped(&client).contains("`layer = 2`"));
        gets("the rules have taken it", false);
        netd.set_policy(FRAMES);
        let _next = has(&netd, 1);
        gets("another one has the interface", false);
    });
}
