//! The address of a participant leaves its interface: what comes there then is whose the address is.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, setns, unshare};
use taut::XdpMode;
use taut_testbed::{End, LIMIT, Pair, await_that, ip, with_pair};

use crate::{SIZES, Stream, participant};

/// Where samples of the first participant of a domain 0 come.
const PORT: u16 = 7_411;
/// Datagrams that take longer, one after the other, than until an interface that was lost is tried for again.
const WHILE_IT_IS_TRIED: usize = 20_000;

/// A container behind the first end, `ca` there and `cb` in it, to which the address goes. The thread is in it then.
fn goes_to_a_container(pair: &Pair) -> File {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
    let container = File::open("/proc/thread-self/ns/net").expect("the namespace");
    let there = format!("/proc/{}/fd/{}", std::process::id(), container.as_raw_fd());
    pair.enter(End::A);
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    ip("addr del 10.88.0.1/24 dev xa");
    ip(&format!("link add ca type veth peer name cb address 02:00:00:00:99:02 netns {there}"));
    ip("link set ca up");
    ip("route add 10.88.0.2/32 dev xa");
    ip("route add 10.88.0.1/32 dev ca");
    ip("neigh replace 10.88.0.1 lladdr 02:00:00:00:99:02 nud permanent dev ca");
    setns(&container, CloneFlags::CLONE_NEWNET).unwrap();
    ip("addr add 10.88.0.1/32 dev cb");
    ip("link set cb up");
    container
}

#[test]
fn an_address_goes_to_a_container_of_the_same_host() {
    with_pair("an_address_goes_to_a_container", ["", ""], |pair| {
        pair.enter(End::A);
        ip("link set xa address 02:00:00:00:88:01");
        let far = participant(pair, End::B, Some(XdpMode::Native));
        let mut stream = Stream::new([far, participant(pair, End::A, Some(XdpMode::Native))]);
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        pair.enter(End::B);
        ip("neigh replace 10.88.0.1 lladdr 02:00:00:00:88:01 nud permanent dev xb");
        let sender = UdpSocket::bind((Ipv4Addr::from(End::B.ipv4()), 0)).unwrap();

        let _container = goes_to_a_container(pair);
        let receiver = UdpSocket::bind((Ipv4Addr::from(End::A.ipv4()), PORT)).unwrap();
        receiver.set_nonblocking(true).unwrap();
        await_that("what is for the container reaches it", || {
            sender.send_to(b"RTPS and so on", receiver.local_addr().unwrap()).unwrap();
            receiver.recv(&mut [0; 100]).is_ok_and(|len| len == 14)
        });

        // Lost and there again meanwhile, as it has another address of Ethernet, it leaves what comes there to the kernel.
        pair.enter(End::A);
        ip("link set xa address 02:00:00:00:88:03");
        pair.enter(End::B);
        ip("neigh replace 10.88.0.1 lladdr 02:00:00:00:88:03 nud permanent dev xb");
        receiver.set_nonblocking(false).unwrap();
        receiver.set_read_timeout(Some(LIMIT)).unwrap();
        for sent in 0..WHILE_IT_IS_TRIED {
            sender.send_to(b"RTPS and so on", receiver.local_addr().unwrap()).unwrap();
            assert_eq!(receiver.recv(&mut [0; 100]).ok(), Some(14), "{sent} have reached the container");
        }

        pair.enter(End::A);
        ip("route del 10.88.0.1/32 dev ca");
        ip("addr add 10.88.0.1/24 dev xa");
        stream.is_past_kernel(1);
        stream.carries(&SIZES);
        stream.is_past_kernel(1);
    });
}
