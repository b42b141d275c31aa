//! Two ports at the ends of a pair, and the way from one to the other.

use std::net::SocketAddr;

use taut_base::Locator;
use taut_ethernet::{FrameEnds, Reached};
use taut_mem::Bytes;
use taut_port_xdp::{Netd, XdpConfig, XdpPort};
use taut_testbed::{End, Pair, await_that};
use taut_xdp::Interface;

const PORT: u16 = 7_411;

/// Over IP at 10.88.0.x, or without.
pub fn port(pair: &Pair, end: End, over_ip: bool) -> XdpPort {
    pair.enter(end);
    let reached = if over_ip {
        Reached::Ip(vec![address(end)])
    } else {
        Reached::Bare(FrameEnds { user: vec![Locator::ethernet([0; 6], PORT)], metatraffic: Vec::new() })
    };
    let config = XdpConfig { interface: end.name().into(), netd: Netd::Never, ..XdpConfig::default() };
    XdpPort::open(&config, reached, &[]).unwrap()
}

fn address(end: End) -> SocketAddr {
    (end.ipv4(), PORT).into()
}

/// How the second port is reached from the first.
pub fn way(pair: &Pair, near: &mut XdpPort, over_ip: bool) -> Locator {
    pair.enter(End::B);
    if !over_ip {
        return Locator::ethernet(Interface::named("xb").unwrap().mac, PORT);
    }
    let to = Locator::from(address(End::B));
    pair.enter(End::A);
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    await_that("the way is known", || {
        // The kernel looks for whom it sends to.
        socket.send_to(b"where are you?", address(End::B)).unwrap();
        near.carrier_mut().layer_mut().on_timeout(taut_base::Time(i64::MAX - 1));
        near.hear(taut_base::Time(0));
        near.reaches(&to)
    });
    to
}

/// The next datagram; it lies where it was received.
pub fn received(port: &mut XdpPort) -> Bytes {
    let mut got = Vec::new();
    await_that("a datagram comes", || {
        port.receive_from(0, 1, &mut |frame| got.push(frame.bytes.clone()));
        !got.is_empty()
    });
    got.remove(0)
}
