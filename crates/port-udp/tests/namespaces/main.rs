//! The port in network namespaces of its own: several interfaces, bare loopback, nothing at all.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::mem::offset_of;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{assert_silent, await_frames, await_readable, open};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sched::{CloneFlags, unshare};
use taut_base::Locator;
use taut_port::{Frame, Port, Traffic};
use taut_port_udp::{Ipv6, UdpConfig, UdpPort};

/// Runs `test` in a thread with a network namespace of its own, which ends with the thread.
fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) -> Option<thread::JoinHandle<()>> {
    if !nix::unistd::geteuid().is_root() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{name} needs root");
        println!("LEFT OUT: {name} needs root for a network namespace");
        return None;
    }
    Some(thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        test();
    }))
}

/// Children of this thread are in its namespace.
fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().expect("iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// Waits until the kernel has begun to use an interface that was set up; until then it drops what
/// is sent there.
fn await_up(name: &str) {
    let end = Instant::now() + Duration::from_secs(5);
    let is_up = || {
        let shown = Command::new("ip").args(["-o", "link", "show", name]).output().expect("iproute2");
        String::from_utf8_lossy(&shown.stdout).contains("state UP")
    };
    while !is_up() {
        assert!(Instant::now() < end, "{name} does not come up");
        thread::yield_now();
    }
}

fn domain_zero(interfaces: &[&str]) -> UdpConfig {
    UdpConfig { interfaces: interfaces.iter().map(|s| s.to_string()).collect(), ..UdpConfig::default() }
}

#[test]
fn bare_loopback_without_any_route_is_enough() {
    let run = in_namespace("bare_loopback_without_any_route_is_enough", || {
        let text = UdpPort::open(&UdpConfig::default()).err().expect("nothing is up").to_string();
        assert!(text.contains("no usable network interface") && text.contains("ip link set lo up"), "{text}");
        let text = UdpPort::open(&domain_zero(&["lo"])).err().expect("lo is down").to_string();
        assert!(text.contains("lo is down"), "{text}");
        ip("link set lo up");
        let (mut a, mut b) = (open(&UdpConfig::default()), open(&UdpConfig::default()));
        assert_eq!(a.interfaces()[0].name, "lo");
        let group = a.metatraffic_multicast().to_vec();
        a.send(&group, &[b"all"]);
        assert_eq!(await_frames(&mut b, Traffic::Meta, 1).len(), 1);
        assert_eq!(await_frames(&mut a, Traffic::Meta, 1).len(), 1);
    });
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

/// Sends a row, and says what came of it and how many calls it took to send and to receive.
fn row(port: &mut UdpPort, to: &[Locator], each: usize, datagrams: usize) -> (Vec<Frame>, u64, u64) {
    let bytes: Vec<u8> = (0..each * (datagrams - 1) + each / 2).map(|n| (n % 251) as u8).collect();
    // Where parts end has nothing to do with where datagrams do.
    let parts: Vec<&[u8]> = bytes.chunks(700).collect();
    let before = port.stats();
    port.send_row(to, &parts, each);
    let mut frames = Vec::new();
    while frames.len() < datagrams {
        let readable = await_readable(port, 2_000);
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
    let run = in_namespace("a_row_is_one_call_and_as_large_as_the_path_takes", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn one_path_that_is_narrow_does_not_cut_the_rows_of_others() {
    let run = in_namespace("one_path_that_is_narrow_does_not_cut_the_rows_of_others", || {
        ip("link set lo up");
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("addr add 10.77.4.1/24 dev taut1");
        ip("addr add fd00:77:4::1/64 dev taut1 nodad");
        ip("link set taut1 up");
        ip("link set taut1 mtu 1450");
        await_up("taut1");
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn what_a_full_buffer_does_not_take_is_counted() {
    let run = in_namespace("what_a_full_buffer_does_not_take_is_counted", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
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
            let enter = format!("--net=/proc/{}/task/{far}/ns/net", std::process::id());
            for command in [format!("addr add 10.77.{n}.2/24 dev {name}"), format!("link set {name} up")] {
                let mut child = Command::new("nsenter");
                child.arg(&enter).arg("ip").args(command.split_whitespace());
                assert!(child.status().expect("nsenter").success(), "{command}");
            }
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
    for thread in [far, near].into_iter().flatten() {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn a_group_may_be_reached_by_one_interface() {
    let run = in_namespace("a_group_may_be_reached_by_one_interface", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

/// Waits until the kernel has told of a change, and follows it.
fn follow(port: &mut UdpPort) -> taut_base::Result<bool> {
    let watch = port.watch().expect("it follows");
    let mut fds = [PollFd::new(watch, PollFlags::POLLIN)];
    assert_eq!(
        nix::poll::poll(&mut fds, PollTimeout::from(2_000_u16)),
        Ok(1),
        "the kernel tells of a change"
    );
    port.hear_changes();
    port.follow()
}

fn addresses(port: &UdpPort) -> Vec<String> {
    port.user_unicast().iter().map(|locator| locator.ip().unwrap().to_string()).collect()
}

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
            let end = Instant::now() + Duration::from_secs(2);
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
        let enter = format!("--net=/proc/{}/task/{far}/ns/net", std::process::id());
        ip(&format!("link add taut1 type veth peer name taut1 netns {far}"));
        for command in ["addr add 10.77.3.2/24 dev taut1", "link set taut1 up"] {
            let mut child = Command::new("nsenter");
            child.arg(&enter).arg("ip").args(command.split_whitespace());
            assert!(child.status().expect("nsenter").success(), "{command}");
        }
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
    for thread in [far, near].into_iter().flatten() {
        thread.join().expect("the test in the namespace");
    }
}

/// From now on this thread gets no netlink socket that does not block, as one that is told of changes. Those that
/// interfaces are asked for with do.
fn refuse_watches() {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |at: usize| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at as u32, 0, 0);
    let is = |value: i64, jf: u8| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value as u32, 0, jf);
    let has = |bit: i32, jf: u8| step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, bit as u32, 0, jf);
    let end = |with: u32| step(libc::BPF_RET | libc::BPF_K, with, 0, 0);
    // The lower halves of the arguments.
    let argument = |n: usize| offset_of!(libc::seccomp_data, args) + 8 * n;
    let mut steps = [
        load(offset_of!(libc::seccomp_data, nr)),
        is(libc::SYS_socket, 5),
        load(argument(0)),
        is(libc::AF_NETLINK.into(), 3),
        load(argument(1)),
        has(libc::SOCK_NONBLOCK, 1),
        end(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    nix::sys::prctl::set_no_new_privs().expect("prctl");
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let filter = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the program and its steps live until the call returns; the kernel copies them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, filter, &raw const program) };
    assert_eq!(set, 0, "seccomp");
}

#[test]
fn a_network_that_cannot_be_followed_is_warned_of() {
    let run = in_namespace("a_network_that_cannot_be_followed_is_warned_of", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn a_refused_membership_is_warned_of_once() {
    let run = in_namespace("a_refused_membership_is_warned_of_once", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn groups_are_joined_again_after_a_time_without_any_address() {
    let run = in_namespace("groups_are_joined_again_after_a_time_without_any_address", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn an_mtu_that_changes_is_another_path() {
    let run = in_namespace("an_mtu_that_changes_is_another_path", || {
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
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
}

#[test]
fn ipv6_alone_is_enough() {
    let run = in_namespace("ipv6_alone_is_enough", || {
        ip("link set lo up");
        for n in [1, 2] {
            ip(&format!("link add taut{n} type veth peer name end{n}"));
            ip(&format!("link set end{n} up"));
            ip(&format!("addr add fd00:77:{n}::1/64 dev taut{n} nodad"));
            ip(&format!("link set taut{n} up multicast on"));
            ip(&format!("addr add fe80::{n}/64 dev taut{n} nodad"));
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
        // More than one burst.
        for n in 0..40_u8 {
            a.send(&b.user_unicast()[..1], &[&[n]]);
        }
        let many = await_frames(&mut b, Traffic::User, 40);
        assert!(many.iter().map(|frame| frame.bytes[0]).eq(0..40), "in order");
        assert_silent(&mut b, Traffic::User);
    });
    if let Some(thread) = run {
        thread.join().expect("the test in the namespace");
    }
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
        let end = Instant::now() + Duration::from_secs(2);
        let is_of_there = |frame: &Frame| frame.source.ip().unwrap().to_string() == "fd00:88::21";
        while !await_frames(&mut port, Traffic::Meta, 1).iter().any(is_of_there) {
            assert!(Instant::now() < end, "nothing comes by the group");
        }
    });
    let near = in_namespace("addresses_of_the_link_lead_back_to_where_they_came_from", move || {
        let far = far_thread.recv().unwrap();
        let enter = format!("--net=/proc/{}/task/{far}/ns/net", std::process::id());
        // The wrong one is first: only having heard the peer tells.
        ip("link add taut1 type veth peer name end1");
        ip("link set end1 up");
        ip("link set taut1 addrgenmode none");
        ip("link set taut1 up");
        ip("addr add fe80::11/64 dev taut1 nodad");
        ip(&format!("link add taut2 type veth peer name taut2 netns {far}"));
        for (end, enters) in [(21, false), (22, true)] {
            let commands = [
                "link set taut2 addrgenmode none".to_owned(),
                "link set taut2 up".to_owned(),
                format!("addr add fe80::{end}/64 dev taut2 nodad"),
            ];
            for command in commands {
                let mut child = if enters { Command::new("nsenter") } else { Command::new("ip") };
                if enters {
                    child.arg(&enter).arg("ip");
                }
                child.args(command.split_whitespace());
                assert!(child.status().expect("iproute2").success(), "{command}");
            }
        }
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
    for thread in [far, near].into_iter().flatten() {
        thread.join().expect("the test in the namespace");
    }
}
