//! An interface that carries packets without Ethernet's header, as tunnels do.
//!
//! Needs root. Without it the test says that it is left out; with `CI=true` that is a failure.

use std::net::SocketAddr;

use taut_base::Locator;
use taut_ethernet::{FrameEnds, Reached};
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, ip, with_pair};

/// Frames would be packets of nobody's there, and none would come.
#[test]
fn a_tunnel_is_refused() {
    with_pair("a_tunnel_is_refused", ["", ""], |pair| {
        pair.enter(End::A);
        ip("tuntap add dev tunnel mode tun");
        ip("link set tunnel up");
        let config = XdpConfig { interface: "tunnel".into(), netd: Netd::Never, ..XdpConfig::default() };
        let bare = FrameEnds { user: vec![Locator::ethernet([0; 6], 7_411)], metatraffic: Vec::new() };
        for reached in [Reached::Ip(vec![SocketAddr::from(([10, 77, 0, 1], 7_411))]), Reached::Bare(bare)] {
            let told = XdpPort::open(&config, reached, &[]).err().map(|error| error.to_string());
            let wanted = "tunnel has no frames of Ethernet: choose another";
            assert!(told.as_ref().is_some_and(|told| told.contains(wanted)), "{told:?}");
        }
    });
}
