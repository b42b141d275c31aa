//! Interfaces that change while netd has them open: who comes then has them as they are.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::net::UdpSocket;

use taut_port_xdp::netd::Message;
use taut_testbed::{End, ip, with_pair};

use common::{PORT, Running, granted};

const TWO_QUEUES: [&str; 2] = ["numrxqueues 2 numtxqueues 2"; 2];

/// Our own program is there still, and is nobody else's.
#[test]
fn another_address_of_ethernet() {
    with_pair("another_address_of_ethernet", TWO_QUEUES, |pair| {
        let netd = Running::start(pair, "mac");
        let socket = UdpSocket::bind(("10.88.0.1", PORT + 2)).unwrap();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        ip("link set xa address 02:00:00:00:88:01");
        netd.serves(1);
        assert!(pair.has_program(End::A));
    });
}
