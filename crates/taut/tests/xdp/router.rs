//! A peer behind a router: frames go to the router's address of Ethernet, which is another one's now and then.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, setns, unshare};
use taut::{Config, DomainParticipant, XdpMode};
use taut_testbed::{End, Pair, ip, with_pair};

use crate::{SIZES, Stream, config, participant};

/// The namespace of a server behind the second end, which passes on between it and the first: `rb` in it is at the other
/// end of a cable from `ra` in the router's. The thread is there then.
fn server_behind(pair: &Pair) -> File {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
    let server = File::open("/proc/thread-self/ns/net").expect("the namespace");
    pair.enter(End::B);
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    ip(&format!(
        "link add ra type veth peer name rb netns /proc/{}/fd/{}",
        std::process::id(),
        server.as_raw_fd()
    ));
    ip("addr add 10.89.0.1/24 dev ra");
    ip("link set ra up");
    pair.enter(End::A);
    ip("route add 10.89.0.0/24 via 10.88.0.2");
    setns(&server, CloneFlags::CLONE_NEWNET).unwrap();
    ip("link set lo up");
    ip("addr add 10.89.0.2/24 dev rb");
    ip("link set rb up");
    ip("route add default via 10.89.0.1");
    server
}

fn stream(pair: &Pair, server: &File) -> Stream {
    pair.enter(End::A);
    // Groups do not pass the router.
    let to_server =
        Config { initial_peers: vec!["10.89.0.2".into()], ..config(End::A, Some(XdpMode::Native)) };
    let near = DomainParticipant::with_config(&to_server).unwrap();
    setns(server, CloneFlags::CLONE_NEWNET).unwrap();
    let to_client = Config {
        initial_peers: vec!["10.88.0.1".into()],
        interfaces: vec!["rb".into()],
        xdp_interface: "rb".into(),
        ..config(End::B, Some(XdpMode::Native))
    };
    Stream::new([near, DomainParticipant::with_config(&to_client).unwrap()])
}

#[test]
fn a_peer_behind_a_router() {
    with_pair("a_peer_behind_a_router", ["", ""], |pair| {
        let server = server_behind(pair);
        let mut stream = stream(pair, &server);
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
        stream.answers_go_past_kernel();
        let before = stream.participants.each_ref().map(|of| of.stats().frames.unwrap());
        stream.carries(&SIZES);
        stream.carries(&[64; 5_000]);
        let after = stream.participants.each_ref().map(|of| of.stats().frames.unwrap());
        let bytes = SIZES.iter().sum::<usize>() as u64;
        assert!(after[0].bytes_out - before[0].bytes_out >= bytes, "{after:?}");
        assert!(after[1].bytes_in - before[1].bytes_in >= bytes, "{after:?}");
        assert_eq!(after.map(|of| [of.malformed, of.not_ours, of.damaged]), [[0; 3]; 2], "{after:?}");

        // Another router has the address.
        pair.enter(End::B);
        ip("link set xb address 02:00:00:00:00:77");
        pair.enter(End::A);
        ip("neigh flush dev xa");
        setns(&server, CloneFlags::CLONE_NEWNET).unwrap();
        stream.carries(&SIZES);
        stream.is_past_kernel(0);
    });
}

/// Of what is too long for the network behind it the router says so to the kernel, and drops it.
#[test]
fn a_narrower_network_behind_the_router() {
    with_pair("a_narrower_network_behind_the_router", ["", ""], |pair| {
        let server = server_behind(pair);
        ip("link set rb mtu 1300");
        pair.enter(End::B);
        ip("link set ra mtu 1300");
        let mut stream = stream(pair, &server);
        stream.is_past_kernel(0);
        stream.carries(&SIZES);
        stream.is_past_kernel(0);
    });
}

/// As it is where routers know each other by IPv6 alone. The kernel knows a station of the peer, too, of when there was none.
#[test]
fn a_router_of_ipv6_on_the_way_to_a_peer_of_ipv4() {
    with_pair("a_router_of_ipv6", ["", ""], |pair| {
        for end in End::BOTH {
            pair.enter(end);
            ip(&format!("addr add fe80::88:{}/64 dev {} nodad", end.ipv4()[3], end.name()));
        }
        pair.enter(End::A);
        ip("neigh replace 10.88.0.2 lladdr 02:00:00:00:00:77 nud permanent dev xa");
        ip("route add 10.88.0.2/32 via inet6 fe80::88:2 dev xa");
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        stream.carries(&SIZES);
        stream.is_past_kernel(0);
        stream.is_past_kernel(1);
    });
}
