//! What netd does while it may open no file. The limit is that of all threads: the process is this test's alone.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

mod common;

use std::fs::File;
use std::net::UdpSocket;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use taut_port_xdp::netd::Message;
use taut_testbed::{End, await_that, ip, with_pair};

use common::{PORT, Running, comes_by_the_kernel, granted, receive};

/// Above what the test and netd have open, and low enough to be filled.
const FILES: u64 = 512;

/// That nobody can tell whose an end is takes no end from anybody, and is over when it is over.
#[test]
fn what_one_has_is_kept_while_the_kernel_cannot_tell() {
    with_pair("kept_while_the_kernel_cannot_tell", ["", ""], |pair| {
        let netd = Running::start(pair, "files");
        ip("addr add 10.88.0.7/24 dev xa");
        let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(receive(&client, &["10.88.0.1"]), Message::Receiving);
        pair.enter(End::B);
        let sender = UdpSocket::bind(("10.88.0.2", PORT)).unwrap();
        pair.enter(End::A);
        let comes_by_the_kernel = |to| comes_by_the_kernel(&sender, &socket, to);
        await_that("the first goes past the kernel", || !comes_by_the_kernel("10.88.0.1"));
        await_that("the second goes by the kernel", || comes_by_the_kernel("10.88.0.7"));

        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum: before.maximum }).unwrap();
        // While it has none open for a moment, whose place it could have again.
        let all: Vec<File> =
            netd.while_held(|| std::iter::from_fn(|| File::open("/dev/null").ok()).collect());
        let answer = receive(&client, &["10.88.0.1", "10.88.0.7"]);
        assert!(matches!(&answer, Message::Refused { why } if why.contains("open files")), "{answer:?}");
        assert!(!comes_by_the_kernel("10.88.0.1"), "it is kept");
        assert!(comes_by_the_kernel("10.88.0.7"), "nobody knows whose it is");
        drop(all);
        setrlimit(Resource::Nofile, before).unwrap();
        await_that("the second goes past the kernel, too", || !comes_by_the_kernel("10.88.0.7"));
        assert!(!comes_by_the_kernel("10.88.0.1"));
        assert_eq!(netd.end().hostile, 0);
    });
}
