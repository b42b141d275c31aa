//! A port follows its interfaces as they come, go and change, and warns of what it cannot follow or join.

use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::time::Instant;

use taut_base::Locator;
use taut_port::{Frame, Port, Traffic};
use taut_port_udp::{Ipv6, UdpConfig, UdpPort};
use taut_testbed::{Argument, refuse};

use crate::common::{LIMIT, await_frames, open};
use crate::{addresses, alone, await_own, await_up, domain_zero, follow, in_namespace, ip, ip_of, join};

#[test]
fn a_port_follows_its_interfaces() {
    let (to_far, at_far) = mpsc::channel::<Vec<Locator>>();
    let (tell_near, far_thread) = mpsc::channel::<i32>();
    let far = in_namespace("a_port_follows_its_interfaces", move || {
        tell_near.send(nix::unistd::gettid().as_raw()).unwrap();
        let mut port: Option<UdpPort> = None;
        for to in at_far {
            await_up("taut1");
            let port = port.get_or_insert_with(|| open(&domain_zero(&["taut1"])));
            port.send(&to, &[b"are you there?"]);
            // One by the group, beside what comes back of its own.
            let end = Instant::now() + LIMIT;
            let is_from_near = |frame: &Frame| frame.source.ip().unwrap().to_string() == "10.77.3.1";
            while !await_frames(port, Traffic::Meta, 1).iter().any(is_from_near) {
                assert!(Instant::now() < end, "nothing comes from the other side");
            }
        }
    });
    let near = in_namespace("a_port_follows_its_interfaces", move || {
        ip("link set lo up");
        let mut port = open(&domain_zero(&[]));
        let fds: Vec<_> = port.fds().map(|source| source.fd.as_raw_fd()).collect();
        assert_eq!(addresses(&port), ["127.0.0.1"]);
        let far = far_thread.recv().unwrap();
        ip(&format!("link add taut1 type veth peer name taut1 netns {far}"));
        ip_of(far, "addr add 10.77.3.2/24 dev taut1");
        ip_of(far, "link set taut1 up");
        ip("addr add 10.77.3.1/24 dev taut1");
        ip("link set taut1 up");
        await_up("taut1");
        assert!(follow(&mut port).unwrap());
        assert_eq!(addresses(&port), ["10.77.3.1"]);
        let group = port.metatraffic_multicast().to_vec();
        let is_heard = |port: &mut UdpPort, what: &str| {
            to_far.send([&group[..], port.metatraffic_unicast()].concat()).unwrap();
            assert_eq!(
                await_frames(port, Traffic::Meta, 2).len(),
                2,
                "{what}: by its address and by the group"
            );
            port.send(&group, &[b"yes"]);
            assert_eq!(port.stats().send_errors.total(), 0, "{what}");
            assert_eq!(await_frames(port, Traffic::Meta, 1).len(), 1, "{what}: this host hears it too");
        };
        is_heard(&mut port, "an interface that came");
        ip("link set taut1 down");
        ip("link set taut1 up");
        await_up("taut1");
        assert!(!follow(&mut port).unwrap(), "down and up: nothing to tell");
        is_heard(&mut port, "down and up");
        // With its last address an interface loses its memberships.
        ip("addr del 10.77.3.1/24 dev taut1");
        ip("addr add 10.77.3.1/24 dev taut1");
        assert!(follow(&mut port).unwrap(), "the same address again");
        is_heard(&mut port, "the same address again");
        ip("addr flush dev taut1");
        assert!(follow(&mut port).unwrap());
        assert_eq!(addresses(&port), ["127.0.0.1"], "what is left");
        ip("link set lo down");
        let text = follow(&mut port).unwrap_err().to_string();
        assert!(text.contains("no usable network interface"), "{text}");
        assert_eq!(addresses(&port), ["127.0.0.1"], "as before");
        ip("link set lo up");
        assert!(follow(&mut port).unwrap(), "it is there again, and the others are told");
        assert_eq!(port.fds().map(|source| source.fd.as_raw_fd()).collect::<Vec<_>>(), fds);
        assert!(open(&domain_zero(&["lo"])).watch().is_none(), "nothing changes there");
        assert!(port.follow().is_ok_and(|changed| !changed), "nothing new");
    });
    [far, near].into_iter().for_each(join);
}

#[test]
fn groups_are_joined_again_after_a_time_without_any_address() {
    alone("groups_are_joined_again_after_a_time_without_any_address", || {
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("link set taut1 addrgenmode none");
        ip("link set taut1 up");
        ip("addr add fd00:77:8::1/64 dev taut1 nodad");
        await_up("taut1");
        let mut port = open(&domain_zero(&["taut1"]));
        let group = port.metatraffic_multicast()[..1].to_vec();
        // Less than IPv6 asks for: its addresses go, and the memberships with them.
        ip("link set taut1 mtu 1200");
        let text = follow(&mut port).unwrap_err().to_string();
        assert!(text.contains("has no address"), "{text}");
        ip("link set taut1 mtu 1500");
        ip("addr add fd00:77:8::1/64 dev taut1 nodad");
        assert!(follow(&mut port).unwrap());
        port.send(&group, &[b"who is there?"]);
        assert_eq!(await_frames(&mut port, Traffic::Meta, 1).len(), 1, "this host hears it, too");
    });
}

/// Sockets that this thread does not get from now on: those of a domain whose type has this bit.
fn refuse_sockets(domain: i32, bit: i32, with: i32) {
    refuse(libc::SYS_socket, &[(0, Argument::Is(domain)), (1, Argument::Has(bit))], with);
}

/// No socket of netlink that does not block, as one that is told of changes. Those that interfaces are asked for with do.
fn refuse_watches() {
    refuse_sockets(libc::AF_NETLINK, libc::SOCK_NONBLOCK, libc::EPERM);
}

#[test]
fn without_a_descriptor_no_address_of_ipv6_is_taken_for_one_that_is_not_ready() {
    alone("without_a_descriptor_no_address_of_ipv6_is_taken_for_one_that_is_not_ready", || {
        ip("link set lo up");
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("addr add 10.77.30.1/24 dev taut1");
        ip("addr add fd00:77:30::1/64 dev taut1 nodad");
        ip("link set taut1 up");
        await_up("taut1");
        await_own("fd00:77:30::1");
        let both = UdpConfig { ipv6: Ipv6::On, ..domain_zero(&["taut1"]) };
        let mut port = open(&both);
        let before = addresses(&port);
        assert_eq!(before, ["10.77.30.1", "fd00:77:30::1"]);
        ip("addr add 10.77.31.1/24 dev taut1");
        refuse_sockets(libc::AF_INET6, libc::SOCK_DGRAM, libc::EMFILE);
        let text = follow(&mut port).unwrap_err().to_string();
        assert!(text.contains("bind [fd00:77:30::1]:0") && text.contains("ulimit -n"), "{text}");
        assert!(port.is_stale() && addresses(&port) == before, "until it can be looked again");
    });
}

#[test]
fn a_network_that_cannot_be_followed_is_warned_of() {
    alone("a_network_that_cannot_be_followed_is_warned_of", || {
        ip("link set lo up");
        assert_eq!(open(&domain_zero(&[])).take_warnings(), [""; 0]);
        refuse_watches();
        let mut port = open(&domain_zero(&[]));
        let warnings = port.take_warnings();
        let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
        assert!(text.starts_with("the network is not followed"), "{text}");
        assert!(
            text.contains("rtnetlink") && text.contains("os error 1") && text.contains("allow"),
            "{text}"
        );
        assert!(port.watch().is_none());
        assert_eq!(open(&domain_zero(&["lo"])).take_warnings(), [""; 0], "nothing changes there");
    });
}

#[test]
fn a_refused_membership_is_warned_of_once() {
    alone("a_refused_membership_is_warned_of_once", || {
        for n in [1, 2] {
            ip(&format!("link add taut{n} type veth peer name end{n}"));
            ip(&format!("link set end{n} up"));
            ip(&format!("link set taut{n} up"));
            await_up(&format!("taut{n}"));
        }
        ip("addr add 10.77.9.1/24 dev taut1");
        let limit = |most: &str| {
            std::fs::write("/proc/sys/net/ipv4/igmp_max_memberships", most)
                .expect("a sysctl of this namespace");
        };
        limit("0");
        let mut port = open(&domain_zero(&[]));
        let of = |port: &mut UdpPort, name: &str| {
            let warnings = port.take_warnings();
            let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
            assert!(text.starts_with(&format!("no multicast on {name}")), "{text}");
            assert!(text.contains("sysctl -w net.ipv4.igmp_max_memberships=20"), "{text}");
            assert!(
                text.contains("IP_ADD_MEMBERSHIP 239.255.0.1") && text.contains("os error 105"),
                "{text}"
            );
        };
        of(&mut port, "taut1");
        assert_eq!((port.metatraffic_multicast(), port.user_multicast()), (&[][..], &[][..]));
        ip("addr add 10.77.9.2/24 dev taut2");
        assert!(follow(&mut port).unwrap());
        of(&mut port, "taut2");
        limit("20");
        ip("addr add 10.77.10.1/24 dev taut2");
        assert!(follow(&mut port).unwrap());
        assert_eq!(port.take_warnings(), [""; 0]);
        let group = port.metatraffic_multicast().to_vec();
        port.send(&group, &[b"to all"]);
        assert_eq!(await_frames(&mut port, Traffic::Meta, 2).len(), 2, "by each of them");
    });
}

/// As one in a VRF, whose addresses are known to another table of routes only.
#[test]
fn an_interface_that_takes_no_socket_keeps_no_other_from_being_used() {
    alone("an_interface_that_takes_no_socket_keeps_no_other_from_being_used", || {
        for n in [1, 2] {
            ip(&format!("link add taut{n} type veth peer name end{n}"));
            ip(&format!("link set end{n} up"));
            ip(&format!("addr add 10.77.4{n}.1/24 dev taut{n}"));
            ip(&format!("link set taut{n} up"));
            await_up(&format!("taut{n}"));
        }
        let local = |what: &str| ip(&format!("route {what} local 10.77.42.1 dev taut2 table local"));
        local("del");
        let mut port = open(&domain_zero(&["taut1", "taut2"]));
        let warnings = port.take_warnings();
        let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
        assert!(text.starts_with("no multicast on taut2"), "{text}");
        assert!(text.contains("os error 99") && text.contains("`ip vrf exec VRF PROGRAM`"), "{text}");
        let leaves_by = |port: &mut UdpPort, count: usize| {
            let group = port.metatraffic_multicast()[..1].to_vec();
            let before = port.stats().datagrams_out;
            port.send(&group, &[b"to all"]);
            let stats = port.stats();
            assert_eq!((stats.datagrams_out - before, stats.send_errors.total()), (count as u64, 0));
            assert_eq!(await_frames(port, Traffic::Meta, count).len(), count);
            let uses: Vec<_> = port.interfaces().iter().map(|own| own.multicast).collect();
            assert_eq!(uses, [true, count == 2]);
        };
        leaves_by(&mut port, 1);
        // What the kernel tells of is another change: of tables it does not.
        let follow = |port: &mut UdpPort, alias: &str| {
            ip(&format!("link set taut1 alias {alias}"));
            follow(port).unwrap()
        };
        assert!(!follow(&mut port, "a"), "nothing new");
        local("add");
        assert!(follow(&mut port, "b"));
        leaves_by(&mut port, 2);
        local("del");
        assert!(follow(&mut port, "c"));
        leaves_by(&mut port, 1);
        assert_eq!(port.take_warnings(), [""; 0], "once for an interface");
    });
}
