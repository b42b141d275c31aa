//! How much goes out by one call, and as how large datagrams, by what the path and the buffer take.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;

use taut_base::Locator;
use taut_port::{Frame, Port, Traffic};
use taut_port_udp::{Ipv6, UdpConfig, UdpPort};

use crate::common::{LIMIT, assert_silent, await_frames, await_readable, open};
use crate::{alone, await_own, await_up, domain_zero, follow, in_namespace, ip, ip_of, join};

/// Sends a row, and says what came of it and how many calls it took to send and to receive.
fn row(port: &mut UdpPort, to: &[Locator], each: usize, datagrams: usize) -> (Vec<Frame>, u64, u64) {
    let bytes: Vec<u8> = (0..each * (datagrams - 1) + each / 2).map(|n| (n % 251) as u8).collect();
    // Where parts end has nothing to do with where datagrams do.
    let parts: Vec<&[u8]> = bytes.chunks(700).collect();
    let before = port.stats();
    port.send_row(to, &parts, each);
    let mut frames = Vec::new();
    while frames.len() < datagrams {
        let readable = await_readable(port, LIMIT);
        assert_ne!(readable, [], "{} of {datagrams} datagrams of {each} came", frames.len());
        for index in readable {
            port.receive_from(index, 64, &mut |frame| frames.push(frame.clone()));
        }
    }
    let received: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
    assert_eq!((frames.len(), received), (datagrams, bytes), "datagrams of {each}");
    let after = port.stats();
    assert_eq!(after.datagrams_out - before.datagrams_out, datagrams as u64);
    assert_eq!(after.datagrams_in - before.datagrams_in, datagrams as u64);
    (frames, after.send_calls - before.send_calls, after.receive_calls - before.receive_calls)
}

#[test]
fn a_row_is_one_call_and_as_large_as_the_path_takes() {
    alone("a_row_is_one_call_and_as_large_as_the_path_takes", || {
        ip("link set lo up mtu 1500");
        for (is_v4, size) in [(true, 1_472), (false, 1_452)] {
            let mut port = open(&UdpConfig { ipv6: Ipv6::On, ..UdpConfig::default() });
            let of_kind = |all: &[Locator]| -> Vec<Locator> {
                all.iter().filter(|to| to.ip().unwrap().is_ipv4() == is_v4).copied().collect()
            };
            let (me, group) = (of_kind(port.user_unicast()), of_kind(port.user_multicast()));
            // Linux has no groups of IPv6 on loopback.
            assert_eq!((me.len(), group.len()), (1, usize::from(is_v4)));
            assert!(me.iter().chain(&group).all(|to| port.path_size(to) == size));

            let (frames, sends, first) = row(&mut port, &me, 1_000, 40);
            assert!(frames.iter().all(|frame| frame.source == me[0]));
            assert_eq!(sends, 1);
            assert!(first >= 4, "each datagram had a buffer of its own: {first}");
            // The burst was full of fragments: from now on the kernel hands them over together.
            let (_, sends, receives) = row(&mut port, &me, 1_000, 40);
            assert_eq!((sends, receives), (1, 1), "of {first}");
            assert_eq!(row(&mut port, &me, 1_000, 1).0.len(), 1, "one alone");
            assert_eq!(row(&mut port, &me, size, 20).1, 1, "as large as the path takes");
            assert!(group.is_empty() || row(&mut port, &group, 1_000, 20).1 == 1);

            // What does not fit the path is not cut by the kernel, and goes one by one.
            assert_eq!(port.stats().rows_refused, 0);
            assert_eq!(row(&mut port, &me, 2_000, 3).1, 4);
            assert_eq!(port.stats().rows_refused, 1);
            assert_eq!(row(&mut port, &me, 1_000, 40).1, 1, "the next one may");
        }
    });
}

#[test]
fn one_path_that_is_narrow_does_not_cut_the_rows_of_others() {
    alone("one_path_that_is_narrow_does_not_cut_the_rows_of_others", || {
        ip("link set lo up");
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("addr add 10.77.4.1/24 dev taut1");
        ip("addr add fd00:77:4::1/64 dev taut1 nodad");
        ip("link set taut1 up");
        ip("link set taut1 mtu 1450");
        await_up("taut1");
        await_own("fd00:77:4::1");
        ip("route add 10.77.5.0/24 dev taut1 mtu 1400");
        ip("route add fd00:77:5::/64 dev taut1 mtu 1400");
        let mut port = open(&UdpConfig { ipv6: Ipv6::On, ..UdpConfig::default() });
        let (own, groups) = (port.user_unicast().to_vec(), port.user_multicast().to_vec());
        for (group, size) in groups.iter().zip([1_422, 1_402]) {
            assert_eq!(port.path_size(group), size);
            assert_eq!(row(&mut port, std::slice::from_ref(group), size, 20).1, 1, "to {group}");
        }
        for (me, narrow, size) in [(own[0], "10.77.5.9:9", 1_372), (own[1], "[fd00:77:5::9]:9", 1_352)] {
            let narrow = Locator::from(narrow.parse::<SocketAddr>().unwrap());
            assert_eq!(port.path_size(&narrow), size);
            let (before, generation) = (port.stats(), port.path_generation());
            port.send_row(&[me, narrow, me, me], &[&[7; 2_000]], 1_400);
            let after = port.stats();
            assert_eq!(after.rows_refused - before.rows_refused, 1);
            assert_eq!((after.send_errors.total(), after.datagrams_out - before.datagrams_out), (0, 8));
            assert_eq!(
                after.send_calls - before.send_calls,
                5,
                "up to it, its row, its two datagrams, the others"
            );
            assert!(port.path_generation() > generation, "writers ask again");
            assert_eq!(await_frames(&mut port, Traffic::User, 6).len(), 6);
            assert_silent(&mut port, Traffic::User);
        }
    });
}

#[test]
fn an_mtu_that_changes_is_another_path() {
    alone("an_mtu_that_changes_is_another_path", || {
        ip("link set lo up");
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up mtu 9000");
        ip("addr add 10.77.7.1/24 dev taut1");
        ip("addr add fd00:77:7::1/64 dev taut1 nodad");
        ip("link set taut1 up");
        await_up("taut1");
        let mut port = open(&UdpConfig { ipv6: Ipv6::On, ..domain_zero(&["taut1"]) });
        let far = ["10.77.7.9:9", "[fd00:77:7::9]:9"].map(|to| to.parse::<SocketAddr>().unwrap().into());
        let paths = [&far[..], port.user_multicast()].concat();
        assert_eq!(paths.len(), 4);
        let sizes = |port: &mut UdpPort| paths.iter().map(|to| port.path_size(to)).collect::<Vec<_>>();
        assert_eq!(sizes(&mut port), [1_472, 1_452, 1_472, 1_452]);
        for mtu in [1_300, 9_000] {
            let generation = port.path_generation();
            ip(&format!("link set taut1 mtu {mtu}"));
            assert!(!follow(&mut port).unwrap(), "the others need not know");
            assert!(port.path_generation() > generation, "writers ask again");
            assert_eq!(sizes(&mut port), [mtu - 28, mtu - 48, mtu - 28, mtu - 48]);
        }
        let generation = port.path_generation();
        ip("link set taut1 alias another");
        assert!(!follow(&mut port).unwrap());
        assert_eq!(port.path_generation(), generation, "the MTU is the same");
    });
}

#[test]
fn what_a_full_buffer_does_not_take_is_counted() {
    alone("what_a_full_buffer_does_not_take_is_counted", || {
        ip("link set lo up");
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("addr add 10.77.6.1/24 dev taut1");
        ip("link set taut1 up");
        await_up("taut1");
        let mut port = open(&UdpConfig { send_buffer: 16_384, ..domain_zero(&["taut1"]) });
        // Nobody answers for these addresses: what is sent there waits in the buffer for an answer.
        let nobody: Vec<Locator> = (10..30)
            .map(|n| Locator::from(SocketAddr::from(([10, 77, 6, n], 9))))
            .chain(port.user_unicast().iter().copied())
            .collect();
        port.send(&nobody, &[&[0; 3_000], &[0; 3_000]]);
        let stats = port.stats();
        assert_eq!((stats.sends_waited, stats.send_errors.total()), (1, 0), "{stats:?}");
        assert!(stats.datagrams_out >= 2 && stats.dropped_full >= 2, "{stats:?}");
        assert_eq!(stats.datagrams_out + stats.dropped_full, nobody.len() as u64, "{stats:?}");
        assert_eq!(stats.bytes_out, 6_000 * stats.datagrams_out);
        // One call for what was taken, and one for each of the others.
        assert_eq!(stats.send_calls, 1 + stats.dropped_full, "{stats:?}");
    });
}

/// What a router says of a datagram the kernel tells at the next one's call, which it does not send then.
#[test]
fn what_a_router_says_of_one_datagram_loses_no_other() {
    let name = "what_a_router_says_of_one_datagram_loses_no_other";
    let (tell_near, router_thread) = mpsc::channel::<i32>();
    let (end, await_end) = mpsc::channel::<()>();
    let router = in_namespace(name, move || {
        tell_near.send(nix::unistd::gettid().as_raw()).unwrap();
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a sysctl of this namespace");
        // Until the other side has dropped its end.
        let _ = await_end.recv();
    });
    let near = in_namespace(name, move || {
        let _end = end;
        let router = router_thread.recv().unwrap();
        ip(&format!("link add taut1 type veth peer name taut1 netns {router}"));
        ip("addr add 10.77.50.1/24 dev taut1");
        ip("link set taut1 up");
        for command in [
            "link add far type veth peer name end",
            "addr add 10.77.50.2/24 dev taut1",
            "addr add 10.77.51.1/24 dev far",
            "link set far mtu 1400",
            "link set end up",
            "link set far up",
            "link set taut1 up",
            "neigh add 10.77.51.9 lladdr 02:00:00:00:00:09 dev far",
        ] {
            ip_of(router, command);
        }
        await_up("taut1");
        ip("route add 10.77.51.0/24 via 10.77.50.2");
        let mut port = open(&domain_zero(&["taut1"]));
        let to = [Locator::from("10.77.51.9:9".parse::<SocketAddr>().unwrap())];
        assert_eq!(port.path_size(&to[0]), 1_472, "of the first link");
        // So many that it gets a way of its own, and one that is too large for the second link.
        let (mut sent, generation) = (101, port.path_generation());
        (0..sent - 1).for_each(|_| port.send(&to, &[b"small"]));
        port.send(&to, &[&[0; 1_472]]);
        let limit = Instant::now() + LIMIT;
        while port.path_generation() == generation && port.stats().send_errors.total() == 0 {
            assert!(Instant::now() < limit, "the router says nothing");
            port.send(&to, &[b"small"]);
            sent += 1;
        }
        let stats = port.stats();
        assert_eq!((stats.send_errors.total(), stats.datagrams_out), (0, sent), "{stats:?}");
        assert!(port.path_generation() > generation, "writers ask again");
        assert_eq!(port.path_size(&to[0]), 1_372);
        // Now the kernel knows, and cuts.
        port.send(&to, &[&[0; 1_472]]);
        assert_eq!(port.stats().datagrams_out, sent + 1);
    });
    [router, near].into_iter().for_each(join);
}
