//! By which interfaces and addresses a port reaches others: loopback alone, several networks, IPv6, addresses of a link.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;

use taut_base::Locator;
use taut_port::{Frame, Port, Traffic};
use taut_port_udp::{Ipv6, UdpConfig, UdpPort};

use crate::common::{LIMIT, assert_silent, await_frames, open};
use crate::{addresses, alone, await_own, await_up, domain_zero, in_namespace, ip, ip_of, join};

#[test]
fn bare_loopback_without_any_route_is_enough() {
    alone("bare_loopback_without_any_route_is_enough", || {
        let text = UdpPort::open(&UdpConfig::default()).err().expect("nothing is up").to_string();
        assert!(text.contains("no usable network interface") && text.contains("ip link set lo up"), "{text}");
        let text = UdpPort::open(&domain_zero(&["lo"])).err().expect("lo is down").to_string();
        assert!(text.contains("lo is down"), "{text}");
        ip("link set lo up");
        ip("addr flush dev lo scope host");
        let text = UdpPort::open(&UdpConfig::default()).err().expect("lo has no address").to_string();
        assert!(text.contains("`ip addr add 127.0.0.1/8 dev lo` is enough"), "{text}");
        ip("addr add 127.0.0.1/8 dev lo");
        let (mut a, mut b) = (open(&UdpConfig::default()), open(&UdpConfig::default()));
        assert_eq!(a.interfaces()[0].name, "lo");
        let group = a.metatraffic_multicast().to_vec();
        a.send(&group, &[b"all"]);
        assert_eq!(await_frames(&mut b, Traffic::Meta, 1).len(), 1);
        assert_eq!(await_frames(&mut a, Traffic::Meta, 1).len(), 1);
    });
}

#[test]
fn multicast_leaves_by_every_interface() {
    let (tell_near, far_thread) = mpsc::channel::<i32>();
    let (tell_far, near_is_up) = mpsc::channel::<()>();
    let (far_is_open, await_far) = mpsc::channel();
    let far = in_namespace("multicast_leaves_by_every_interface", move || {
        tell_near.send(nix::unistd::gettid().as_raw()).unwrap();
        near_is_up.recv().unwrap();
        ["taut1", "taut2"].into_iter().for_each(await_up);
        let mut ports = ["10.77.1.2", "10.77.2.2"].map(|address| open(&domain_zero(&[address])));
        let mut both = open(&domain_zero(&[]));
        far_is_open.send(both.user_unicast().to_vec()).unwrap();
        for (port, source) in ports.iter_mut().zip(["10.77.1.1", "10.77.2.1"]) {
            let frames = await_frames(port, Traffic::Meta, 1);
            assert_eq!(frames.len(), 1, "only by the interface that it joined on");
            assert_eq!(frames[0].source.ip().unwrap().to_string(), source);
            assert_silent(port, Traffic::User);
        }
        assert_eq!(await_frames(&mut both, Traffic::Meta, 2).len(), 2, "once by each interface");
        let mut unicast = await_frames(&mut both, Traffic::User, 2);
        unicast.sort_by_key(|frame| frame.source);
        let sources: Vec<_> = unicast.iter().map(|f| f.source.ip().unwrap().to_string()).collect();
        assert_eq!(sources, ["10.77.1.1", "10.77.2.1"], "each by its own network");
    });
    let near = in_namespace("multicast_leaves_by_every_interface", move || {
        let far = far_thread.recv().unwrap();
        for (n, name) in [(1, "taut1"), (2, "taut2")] {
            ip(&format!("link add {name} type veth peer name {name} netns {far}"));
            ip(&format!("addr add 10.77.{n}.1/24 dev {name}"));
            ip(&format!("link set {name} up"));
            ip_of(far, &format!("addr add 10.77.{n}.2/24 dev {name}"));
            ip_of(far, &format!("link set {name} up"));
        }
        ["taut1", "taut2"].into_iter().for_each(await_up);
        tell_far.send(()).unwrap();
        let to = await_far.recv().unwrap();
        let mut port = open(&domain_zero(&[]));
        let names: Vec<_> = port.interfaces().iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["taut1", "taut2"]);
        assert_eq!(port.interfaces()[0].prefix_len, 24);
        let group = port.metatraffic_multicast().to_vec();
        port.send(&group, &[b"both ways"]);
        port.send(&to, &[b"one way"]);
        assert_eq!(port.stats().datagrams_out, 4);
        assert_eq!(await_frames(&mut port, Traffic::Meta, 2).len(), 2, "this host hears it too");
    });
    [far, near].into_iter().for_each(join);
}

#[test]
fn a_group_may_be_reached_by_one_interface() {
    alone("a_group_may_be_reached_by_one_interface", || {
        for (n, mtu) in [(1, 1500), (2, 1400)] {
            ip(&format!("link add taut{n} mtu {mtu} type veth peer name end{n}"));
            ip(&format!("link set end{n} up"));
            ip(&format!("addr add 10.77.1{n}.1/24 dev taut{n}"));
            ip(&format!("addr add 10.77.2{n}.1/24 dev taut{n}"));
            ip(&format!("link set taut{n} up"));
            await_up(&format!("taut{n}"));
        }
        let mut port = open(&domain_zero(&[]));
        let group = port.user_multicast()[0];
        let by = |address: &str| group.by(address.parse().unwrap());
        for (to, size, sources) in [
            (by("10.77.11.1"), 1_472, &["10.77.11.1"][..]),
            (by("10.77.12.1"), 1_372, &["10.77.12.1"]),
            (by("10.77.99.1"), 1_372, &["10.77.11.1", "10.77.12.1"]),
            (group, 1_372, &["10.77.11.1", "10.77.12.1"]),
        ] {
            assert_eq!(port.path_size(&to), size, "{sources:?}");
            let before = port.stats();
            port.send(&[to], &[b"who is there?"]);
            let after = port.stats();
            let count = sources.len() as u64;
            assert_eq!(after.send_calls - before.send_calls, count, "{sources:?}");
            assert_eq!(after.datagrams_out - before.datagrams_out, count, "{sources:?}");
            let frames = await_frames(&mut port, Traffic::User, sources.len());
            let heard: Vec<_> = frames.iter().map(|frame| frame.source.ip().unwrap().to_string()).collect();
            assert_eq!(heard, sources);
            assert_silent(&mut port, Traffic::User);
        }
    });
}

#[test]
fn ipv6_alone_is_enough() {
    alone("ipv6_alone_is_enough", || {
        ip("link set lo up");
        for n in [1, 2] {
            ip(&format!("link add taut{n} type veth peer name end{n}"));
            ip(&format!("link set end{n} up"));
            ip(&format!("addr add fd00:77:{n}::1/64 dev taut{n} nodad"));
            ip(&format!("link set taut{n} up multicast on"));
            ip(&format!("addr add fe80::{n}/64 dev taut{n} nodad"));
            await_up(&format!("taut{n}"));
            await_own(&format!("fd00:77:{n}::1"));
        }
        let both = UdpConfig { ipv6: Ipv6::On, ..UdpConfig::default() };
        let off = UdpConfig { ipv6: Ipv6::Off, ..UdpConfig::default() };
        assert_eq!(addresses(&open(&off)), ["127.0.0.1"]);
        let (mut a, mut b) = (open(&UdpConfig { dscp: 46, ..both }), open(&UdpConfig::default()));
        for port in [&a, &b] {
            assert_eq!(addresses(port), ["fd00:77:1::1", "fd00:77:2::1"]);
            let groups: Vec<_> = port.metatraffic_multicast().iter().map(ToString::to_string).collect();
            let of = |port| format!("udp/[ff02::ffff:efff:1]:{port}");
            assert_eq!(
                groups,
                [of(7400), "udp/[ff1e::ffff:efff:1]:7400".into()],
                "of Cyclone DDS and Fast DDS"
            );
            assert_eq!(port.user_multicast()[0].to_string(), of(7401));
            assert_eq!(port.user_multicast().len(), 1);
        }
        let to = [b.user_unicast(), b.metatraffic_multicast()].concat();
        a.send(&to, &[b"over", b" IPv6"]);
        assert_eq!((a.stats().send_errors.total(), a.stats().dropped_unreachable), (0, 0));
        let unicast = await_frames(&mut b, Traffic::User, 2);
        assert!(unicast.iter().all(|frame| &*frame.bytes == b"over IPv6"), "{unicast:?}");
        let ports = |frames: &[Frame]| frames.iter().map(|frame| frame.source.port).collect::<Vec<_>>();
        assert_eq!(
            ports(&unicast),
            [a.user_unicast()[0].port; 2],
            "what is sent comes from where it is announced"
        );
        let multicast = await_frames(&mut b, Traffic::Meta, 4);
        let mut sources: Vec<_> = multicast.iter().map(|f| f.source.ip().unwrap().to_string()).collect();
        sources.sort();
        let [one, two] = ["fd00:77:1::1", "fd00:77:2::1"];
        assert_eq!(sources, [one, one, two, two], "once to each group by each interface, from its address");
        assert_eq!(await_frames(&mut a, Traffic::Meta, 4).len(), 4);
        assert!(multicast.iter().all(|frame| frame.traffic == Traffic::MetaMulticast), "{multicast:?}");
        a.send(b.metatraffic_unicast(), &[b"over IPv6"]);
        let unicast = await_frames(&mut b, Traffic::Meta, 2);
        assert!(unicast.iter().all(|frame| frame.traffic == Traffic::Meta), "{unicast:?}");
        // More than one burst.
        for n in 0..40_u8 {
            a.send(&b.user_unicast()[..1], &[&[n]]);
        }
        let many = await_frames(&mut b, Traffic::User, 40);
        assert!(many.iter().map(|frame| frame.bytes[0]).eq(0..40), "in order");
        assert_silent(&mut b, Traffic::User);
    });
}

#[test]
fn addresses_of_the_link_lead_back_to_where_they_came_from() {
    let (tell_near, far_thread) = mpsc::channel::<i32>();
    let (tell_far, near_is_up) = mpsc::channel::<()>();
    let far = in_namespace("addresses_of_the_link_lead_back_to_where_they_came_from", move || {
        tell_near.send(nix::unistd::gettid().as_raw()).unwrap();
        near_is_up.recv().unwrap();
        let mut port = open(&domain_zero(&["taut2"]));
        assert_eq!(addresses(&port), ["fe80::22"]);
        let group = port.metatraffic_multicast().to_vec();
        port.send(&group, &[b"hello"]);
        assert_eq!(await_frames(&mut port, Traffic::User, 1).len(), 1, "the answer");
        // By its interfaces the other side sends to the group, too, from addresses that lead to none of them.
        let end = Instant::now() + LIMIT;
        let is_of_there = |frame: &Frame| frame.source.ip().unwrap().to_string() == "fd00:88::21";
        while !await_frames(&mut port, Traffic::Meta, 1).iter().any(is_of_there) {
            assert!(Instant::now() < end, "nothing comes by the group");
        }
    });
    let near = in_namespace("addresses_of_the_link_lead_back_to_where_they_came_from", move || {
        let far = far_thread.recv().unwrap();
        // The wrong one is first: only having heard the peer tells.
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("link set taut1 addrgenmode none");
        ip("link set taut1 up");
        ip("addr add fe80::11/64 dev taut1 nodad");
        ip(&format!("link add taut2 type veth peer name taut2 netns {far}"));
        let set_up = |end: u8, ip: &dyn Fn(&str)| {
            ip("link set taut2 addrgenmode none");
            ip("link set taut2 up");
            ip(&format!("addr add fe80::{end}/64 dev taut2 nodad"));
        };
        set_up(21, &ip);
        set_up(22, &|command| ip_of(far, command));
        await_up("taut2");
        ip("link set taut2 mtu 1400");
        let mut port = open(&domain_zero(&["taut1", "taut2"]));
        let far_end = Locator::from(SocketAddr::new("fe80::22".parse().unwrap(), 7411));
        let (before, generation) = (port.path_size(&far_end), port.path_generation());
        tell_far.send(()).unwrap();
        let frames = await_frames(&mut port, Traffic::Meta, 1);
        assert_eq!((before, port.path_size(&far_end)), (1_452, 1_352), "of the link where it was heard");
        assert!(port.path_generation() > generation);
        let peer = frames[0].source.ip().unwrap();
        assert_eq!(peer.to_string(), "fe80::22");
        port.send(&[Locator::from(SocketAddr::new(peer, 7411))], &[b"hello yourself"]);
        assert_eq!(port.stats().send_errors.total(), 0);
        for n in [1, 2] {
            ip(&format!("addr add fd00:88::{n}1/128 dev taut{n} nodad"));
        }
        let group = port.metatraffic_multicast().to_vec();
        open(&domain_zero(&["taut1", "taut2"])).send(&group, &[b"and to all"]);
    });
    [far, near].into_iter().for_each(join);
}
