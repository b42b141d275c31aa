//! A port that has lost its interface while the process has no descriptor left, in a process of its own: the limit is for
//! all threads.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut_base::Time;
use taut_ethernet::Reached;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, await_that, ip, with_pair};

#[test]
fn it_is_tried_again_once_there_are_descriptors() {
    with_pair("it_is_tried_again_once_there_are_descriptors", ["", ""], |pair| {
        pair.enter(End::A);
        let end: SocketAddr = (End::A.ipv4(), 7_411).into();
        let socket = UdpSocket::bind("0.0.0.0:7411").unwrap();
        let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
        let mut port = XdpPort::open(&config, Reached::Ip(vec![end]), &[socket.as_fd()]).unwrap();
        let now = Time(1_000_000_000_000);
        ip("link del xa");
        await_that("the port hears of it", || port.hear(now).1.is_some());
        drop(port.take_left());
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
        let next = port.next_try(now, vec![end], &[socket.as_fd()]);
        let resumed = port.resume(now, next.run());
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        let warning = resumed.warning.expect("it is said");
        assert!(warning.contains("raise the limit of open files"), "{warning}");
        assert!(port.next_timeout() < Time::NEVER, "there is another one");
    });
}
