//! The port in network namespaces of its own: several interfaces, bare loopback, nothing at all.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{assert_silent, await_frames, open};
use nix::sched::{CloneFlags, unshare};
use taut_port::{Port, Traffic};
use taut_port_udp::{UdpConfig, UdpPort};

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
