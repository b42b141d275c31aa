//! What the tests against real sockets share.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use taut_port::{Frame, Receive, Traffic};
use taut_port_udp::{UdpConfig, UdpPort};

/// No wait is longer. It passes only where something does not come at all.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A domain that one test has for itself among all that run on the host.
pub struct Domain {
    pub id: u32,
    _claim: UdpSocket,
}

/// A free domain, its ports below 32,768, where the kernel's own choice of ports begins. It is
/// claimed by a port of its range that no participant has (7402 + 250 * id).
pub fn free_domain() -> Domain {
    let random = RandomState::new().build_hasher().finish() as u32;
    let claim = |n: u32| {
        let id = 20 + (random.wrapping_add(n) % 80);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, (7402 + 250 * id) as u16)).ok()?;
        Some(Domain { id, _claim: socket })
    };
    (0..80).find_map(claim).expect("one of 80 domains is free")
}

pub fn on_loopback(domain: &Domain) -> UdpConfig {
    UdpConfig { domain_id: domain.id, interfaces: vec!["lo".into()], ..UdpConfig::default() }
}

pub fn open(config: &UdpConfig) -> UdpPort {
    UdpPort::open(config).expect("the port opens")
}

/// Waits until `count` frames have come in of `traffic`, for [`LIMIT`] at most.
pub fn await_frames(port: &mut UdpPort, traffic: Traffic, count: usize) -> Vec<Frame> {
    let end = Instant::now() + LIMIT;
    let mut frames = Vec::new();
    loop {
        port.receive(traffic, 64, &mut |frame| frames.push(frame.clone()));
        if frames.len() >= count || Instant::now() > end {
            return frames;
        }
        await_readable(port, Duration::from_millis(100));
    }
}

/// Waits for any socket of the port, and says which are readable.
pub fn await_readable(port: &UdpPort, longest: Duration) -> Vec<usize> {
    let sources: Vec<_> = port.fds().collect();
    let mut fds: Vec<_> =
        sources.iter().map(|source| PollFd::new(source.fd.as_fd(), PollFlags::POLLIN)).collect();
    nix::poll::poll(&mut fds, PollTimeout::try_from(longest).unwrap()).expect("poll");
    let ready = |fd: &PollFd| fd.any().unwrap_or(false);
    sources.iter().zip(&fds).filter(|(_, fd)| ready(fd)).map(|(source, _)| source.index).collect()
}

/// Nothing of this traffic waits. Loopback delivers within the sender's call: no need to wait.
pub fn assert_silent(port: &mut UdpPort, traffic: Traffic) {
    assert_eq!(port.receive(traffic, 64, &mut |frame| panic!("unexpected {frame:?}")), 0);
}
