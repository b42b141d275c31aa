//! Interfaces that change while netd has them open: who comes then has them as they are.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use taut_port_xdp::netd::Message;
use taut_testbed::{End, LIMIT, Pair, ip, with_pair};
use taut_xdp::{AttachMode, Mode};

use common::{PORT, Running, bound, granted, next};

const TWO_QUEUES: [&str; 2] = ["numrxqueues 2 numtxqueues 2"; 2];

/// Our own program is there still, and is nobody else's.
#[test]
fn another_address_of_ethernet() {
    with_pair("another_address_of_ethernet", TWO_QUEUES, |pair| {
        let netd = Running::start(pair, "mac");
        let socket = bound(1);
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        ip("link set xa address 02:00:00:00:88:01");
        netd.serves(1);
        assert!(pair.has_program(End::A));
    });
}

/// A rule and a participant may each call it by any of its names (`altname` of ip-link(8)).
#[test]
fn an_interface_by_another_name() {
    with_pair("an_interface_by_another_name", ["", ""], |pair| {
        let netd = Running::start(pair, "altname");
        ip("link property add dev xa altname enp0s1");
        let socket = bound(0);
        let client = netd.connect();
        let take = |interface: &str| {
            let interface = interface.into();
            let (layer, queues) = (Mode::L3, vec![0]);
            let message = Message::Take { interface, layer, queues, attach: None, bind: None };
            client.send(&message, &[socket.as_fd()]).unwrap();
            next(&client).unwrap().0
        };
        assert!(matches!(take("enp0s1"), Message::Taken { .. }));
        drop((client, netd));
        ip("link property del dev xa altname enp0s1");
        ip("link set xa down");
        ip("link set xa name first");
        ip("link property add dev first altname xa");
        ip("link set first up");
        let netd = Running::start(pair, "first");
        let client = netd.connect();
        let (interface, layer) = ("first".into(), Mode::L3);
        let message = Message::Take { interface, layer, queues: vec![0], attach: None, bind: None };
        client.send(&message, &[socket.as_fd()]).unwrap();
        let answer = next(&client).unwrap().0;
        assert!(matches!(answer, Message::Taken { .. }), "the rule has the other one: {answer:?}");
    });
}

fn set_mtu(pair: &Pair, mtu: u32) {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("link set {} mtu {mtu}", end.name()));
    }
}

/// What is too long for the frames of the second participant is the kernel's, although those of the first one take it:
/// datagrams that a sender's kernel has left uncut come as one frame there.
#[test]
fn a_smaller_mtu() {
    let words = ["numrxqueues 2 numtxqueues 2", "numrxqueues 2 numtxqueues 1"];
    with_pair("a_smaller_mtu", words, |pair| {
        let netd = Running::start(pair, "mtu");
        let begin = |socket: &UdpSocket, queue| {
            let client = netd.connect();
            let (interface, attach) = ("xa".into(), Some(AttachMode::Generic));
            client
                .send(
                    &Message::Take { interface, layer: Mode::L3, queues: vec![queue], attach, bind: None },
                    &[socket.as_fd()],
                )
                .unwrap();
            let taken = next(&client).unwrap().0;
            assert!(matches!(taken, Message::Taken { .. }), "{taken:?}");
            let (_, fds) = next(&client).unwrap();
            client.send(&Message::Receive { ends: vec![socket.local_addr().unwrap()] }, &[]).unwrap();
            assert_eq!(next(&client).unwrap().0, Message::Receiving);
            (client, fds)
        };
        set_mtu(pair, 9_000);
        pair.enter(End::A);
        let [first, second] = [PORT + 2, PORT].map(|port| UdpSocket::bind(("10.88.0.1", port)).unwrap());
        let _first = begin(&first, 1);
        set_mtu(pair, 1_500);
        pair.enter(End::A);
        let _second = begin(&second, 0);
        pair.enter(End::B);
        let sender = UdpSocket::bind(("10.88.0.2", PORT)).unwrap();
        setsockopt(&sender, UdpGsoSegment, &1_000).unwrap();
        let row = b"RTPS and so on, ".repeat(250);
        sender.send_to(&row, second.local_addr().unwrap()).unwrap();
        second.set_read_timeout(Some(LIMIT)).unwrap();
        for _ in 0..4 {
            assert_eq!(second.recv(&mut [0; 2_000]).expect("the kernel cuts and delivers it"), 1_000);
        }
    });
}
