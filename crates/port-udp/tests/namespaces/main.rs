//! The port in network namespaces of its own: several interfaces, bare loopback, nothing at all.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

#[path = "../common/mod.rs"]
mod common;
mod following;
mod host_only;
mod paths;
mod reach;

use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use common::LIMIT;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sched::{CloneFlags, unshare};
use taut_port_udp::{UdpConfig, UdpPort};

/// Runs `test` in a thread with a network namespace of its own, which ends with the thread.
fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
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

/// Waits for such a thread, and fails as it has failed.
fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        thread.join().expect("the test in the namespace");
    }
}

/// Runs `test` in a namespace of its own, and waits for its end.
fn alone(name: &str, test: impl FnOnce() + Send + 'static) {
    join(in_namespace(name, test));
}

/// Children of this thread are in its namespace.
fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().expect("iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// The same in the namespace of another thread of this process.
fn ip_of(thread: i32, arguments: &str) {
    let enter = format!("--net=/proc/{}/task/{thread}/ns/net", std::process::id());
    let status = Command::new("nsenter").arg(enter).arg("ip").args(arguments.split_whitespace()).status();
    assert!(status.expect("nsenter").success(), "{arguments}");
}

/// Waits until the kernel has begun to use an interface that was set up; until then it drops what
/// is sent there.
fn await_up(name: &str) {
    let end = Instant::now() + LIMIT;
    let is_up = || {
        let shown = Command::new("ip").args(["-o", "link", "show", name]).output().expect("iproute2");
        String::from_utf8_lossy(&shown.stdout).contains("state UP")
    };
    while !is_up() {
        assert!(Instant::now() < end, "{name} does not come up");
        thread::yield_now();
    }
}

/// Waits until the kernel takes an address of IPv6 for its own, which it does some time after it shows it: until then what is
/// sent there leaves by the interface.
fn await_own(address: &str) {
    let end = Instant::now() + LIMIT;
    let is_own = || {
        let route = Command::new("ip").args(["route", "get", address]).output().expect("iproute2");
        String::from_utf8_lossy(&route.stdout).starts_with("local ")
    };
    while !is_own() {
        assert!(Instant::now() < end, "{address} is not taken");
        thread::yield_now();
    }
}

fn domain_zero(interfaces: &[&str]) -> UdpConfig {
    UdpConfig { interfaces: interfaces.iter().map(|s| s.to_string()).collect(), ..UdpConfig::default() }
}

fn addresses(port: &UdpPort) -> Vec<String> {
    port.user_unicast().iter().map(|locator| locator.ip().unwrap().to_string()).collect()
}

/// Waits until the kernel has told of a change, and follows it.
fn follow(port: &mut UdpPort) -> taut_base::Result<bool> {
    let watch = port.watch().expect("it follows");
    let mut fds = [PollFd::new(watch, PollFlags::POLLIN)];
    assert_eq!(
        nix::poll::poll(&mut fds, PollTimeout::try_from(LIMIT).unwrap()),
        Ok(1),
        "the kernel tells of a change"
    );
    port.hear_changes();
    port.follow()
}

/// Whoever gives an address may choose its label (`Label=` of systemd.network(5)), which iproute2 has begin with the name of
/// the interface.
#[test]
fn an_address_with_any_label() {
    alone("an_address_with_any_label", || {
        ip("link add near type veth peer name far");
        ip("link set near up");
        let index = nix::net::if_::if_nametoindex("near").unwrap();
        let address = [10, 0, 0, 1];
        let attributes = taut_netlink::Attributes::default()
            .with(libc::IFA_LOCAL, &address)
            .with(libc::IFA_ADDRESS, &address)
            .with_text(libc::IFA_LABEL, "public");
        let body = [&[taut_netlink::IPV4, 24, 0, 0][..], &index.to_ne_bytes(), &attributes.0].concat();
        let mut kernel = taut_netlink::Socket::of_routes().unwrap();
        kernel.request(libc::RTM_NEWADDR, taut_netlink::CREATE, &body).unwrap();
        for asked in [&[][..], &["near"], &["10.0.0.1"]] {
            let port = UdpPort::open(&domain_zero(asked)).unwrap();
            assert_eq!(addresses(&port), ["10.0.0.1"], "{asked:?}");
            assert_eq!(port.interfaces()[0].name, "near");
        }
    });
}
