//! Rules that change while netd runs: who is not allowed any more loses what it has, and nobody else.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::net::UdpSocket;
use std::os::fd::OwnedFd;

use taut_port_xdp::netd::{Connection, Message};
use taut_testbed::{End, ip, with_pair};

use common::{Running, bound, granted, next, refusal};

const TWO_QUEUES: [&str; 2] = ["numrxqueues 2 numtxqueues 2"; 2];

fn rule(queues: &str, more: &str) -> String {
    format!("[[allow]]\nuser = 0\ninterface = \"xa\"\nqueues = {queues}\ndomains = [0]\n{more}\n")
}

/// A participant that has a queue and receives by it.
struct Served {
    client: Connection,
    socket: UdpSocket,
    _fds: Vec<OwnedFd>,
}

impl Served {
    /// The participant of this number.
    fn by(netd: &Running, number: u16, queue: u32) -> Served {
        let socket = bound(number);
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, queue);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        let served = Served { client, socket, _fds };
        served.receives();
        served
    }

    fn receives(&self) {
        let ends = vec![self.socket.local_addr().unwrap()];
        self.client.send(&Message::Receive { ends }, &[]).unwrap();
        assert_eq!(next(&self.client).map(|(message, _)| message), Some(Message::Receiving));
    }

    /// Returns what it is told of its loss.
    fn has_lost(self) -> String {
        let why = refusal(&self.client);
        assert!(next(&self.client).is_none(), "the connection is at its end");
        why
    }
}

#[test]
fn who_is_not_allowed_any_more_loses_its_queue() {
    with_pair("not_allowed_any_more", TWO_QUEUES, |pair| {
        let netd = Running::start(pair, "not-allowed");
        let (first, second) = (Served::by(&netd, 0, 0), Served::by(&netd, 1, 1));
        netd.set_policy(&rule("[1]", ""));
        let told = first.has_lost();
        assert!(told.contains("on xa has queue 0"), "{told}");
        second.receives();
        assert!(pair.has_program(End::A));
        // It holds for who asks as well.
        let socket = bound(0);
        let client = netd.connect();
        let (told, _) = granted(&client, &socket, 0);
        assert!(matches!(&told[..], [Message::Refused { why }] if why.contains("has queue 0")), "{told:?}");
        netd.set_policy("");
        let told = second.has_lost();
        assert!(told.contains("no rule of netd.toml is for user 0"), "{told}");
        pair.await_no_program(End::A);
        let counts = netd.end();
        assert_eq!((counts.granted, counts.revoked, counts.refused, counts.hostile), (2, 2, 1, 0));
    });
}

/// Who came first keeps its place, whatever has become of the order of the others.
#[test]
fn of_fewer_the_oldest_stay() {
    with_pair("the_oldest_stay", ["numrxqueues 3 numtxqueues 3"; 2], |pair| {
        let netd = Running::start(pair, "oldest");
        netd.set_policy(&rule("[0, 1, 2]", ""));
        let [first, second, third] = [0, 1, 2].map(|at| Served::by(&netd, at, at.into()));
        drop(first);
        netd.serves(0);
        netd.set_policy(&rule("[1, 2]", "participants = 1"));
        let told = third.has_lost();
        assert!(
            told.contains("user 0 has as many participants on xa as the rules of netd.toml allow"),
            "{told}"
        );
        second.receives();
    });
}

/// One came by the rule that only the other one could go by, while there was room in both.
#[test]
fn nobody_loses_by_rules_that_allow_all() {
    with_pair("rules_that_allow_all", TWO_QUEUES, |pair| {
        let netd = Running::start(pair, "all");
        let (first, second) = (Served::by(&netd, 0, 0), Served::by(&netd, 1, 1));
        netd.set_policy(&(rule("[0, 1]", "participants = 1") + &rule("[0]", "participants = 1")));
        first.receives();
        second.receives();
        assert_eq!(netd.end().revoked, 0);
    });
}

/// Rules are for the name that an interface has now.
#[test]
fn an_interface_that_got_another_name() {
    with_pair("rules_another_name", ["", ""], |pair| {
        let netd = Running::start(pair, "another-name");
        let only = Served::by(&netd, 0, 0);
        ip("link set xa down");
        ip("link set xa name first");
        ip("link set first up");
        netd.set_policy(&rule("[0]", "").replace("\"xa\"", "\"first\""));
        only.receives();
        netd.set_policy(&rule("[0]", ""));
        let told = only.has_lost();
        assert!(told.contains("has interface first"), "{told}");
    });
}
