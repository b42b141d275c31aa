//! What a port keeps that loses its interface again and again, in a process of its own: descriptors and mappings are
//! counted.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::net::SocketAddr;
use std::sync::Arc;

use taut_base::{Duration, Time};
use taut_ethernet::Reached;
use taut_mem::Pool;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, await_that, ip, with_pair};

/// After so many times all that is made once has been made.
const FIRST: u8 = 5;
const TIMES: u8 = 40;

/// Descriptors and mappings of this process.
fn kept() -> [usize; 2] {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    [std::fs::read_dir("/proc/self/fd").unwrap().count(), maps.lines().count()]
}

#[test]
fn an_interface_that_is_lost_again_and_again_leaves_nothing() {
    with_pair("an_interface_that_is_lost_again_and_again", ["", ""], |pair| {
        pair.enter(End::A);
        let end: SocketAddr = (End::A.ipv4(), 7_411).into();
        let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
        let mut port = XdpPort::open(&config, Reached::Ip(vec![end]), &[]).unwrap();
        // Of a writer that does not write, and of one that does.
        let pool_of = |port: &XdpPort| Pool::new(16, 4).over(Some(Arc::clone(port.chunks(0).unwrap())));
        let (_silent, mut pool) = (pool_of(&port), pool_of(&port));
        let (mut now, mut at_first) = (Time(1_000_000_000_000), [0; 2]);
        for time in 0..TIMES {
            let mut slot = pool.claim();
            slot.extend_from_slice(&[7; 100]);
            drop(pool.share(slot));
            ip(&format!("link set xa address 02:00:00:00:62:{time:02x}"));
            await_that("the port hears of it", || port.hear(now).1.is_some());
            drop(port.take_left());
            let next = port.next_try(now, vec![end], &[]);
            assert!(port.resume(now, next.run()).is_back);
            now = now + Duration::from_secs(2);
            if time == FIRST {
                at_first = kept();
            }
        }
        assert_eq!(kept(), at_first, "descriptors and mappings");
    });
}
