//! Which hosts are reached past the kernel, by what it says of the way to them.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::net::SocketAddr;

use taut_base::{Locator, Time};
use taut_ethernet::Reached;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, await_that, ip, with_pair};

/// What the kernel puts around packets of a route, frames of ours have not.
#[test]
fn a_route_that_encapsulates_is_the_kernels() {
    with_pair("a_route_that_encapsulates_is_the_kernels", ["", ""], |pair| {
        pair.enter(End::A);
        for (network, encapsulated) in [("10.9.1", ""), ("10.9.2", "encap ip id 7 dst 10.88.0.2")] {
            ip(&format!("route add {network}.0/24 {encapsulated} dev xa"));
            ip(&format!("neigh add {network}.1 lladdr 02:00:00:00:00:01 dev xa"));
        }
        let end: SocketAddr = (End::A.ipv4(), 7_411).into();
        let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
        let mut port = XdpPort::open(&config, Reached::Ip(vec![end]), &[]).unwrap();
        let [plain, encapsulated] = [1, 2].map(|net| Locator::udp_v4([10, 9, net, 1].into(), 7_411));
        let mut reaches = |to: &Locator| {
            // Whoever is asked for first is known first.
            port.on_timeout(Time(1));
            port.reaches(to)
        };
        assert!(!reaches(&encapsulated) && !reaches(&plain), "they are not known yet");
        await_that("the way is known", || reaches(&plain));
        assert!(!reaches(&encapsulated), "the kernel is the way");
    });
}
