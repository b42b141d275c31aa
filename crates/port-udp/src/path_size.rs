//! The largest datagram that the way to an address takes in one piece, as the kernel's routes have it: the
//! interface's MTU, or less where a router has said so.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use taut_base::Locator;

use crate::Interface;

/// What IPv4 and UDP put in front of a datagram's payload.
const HEADERS: usize = 28;

/// The payload of the largest datagram there is.
const LARGEST: usize = 65_507;

/// Where the kernel does not tell: what Ethernet takes.
const USUAL: usize = 1_500 - HEADERS;

/// What IPv6 gets through everywhere: its smallest MTU of 1,280 without the headers.
const OVER_V6: usize = 1_280 - 48;

/// Addresses that are remembered. Lower asks again more often, higher holds what peers have made up.
const KNOWN: usize = 1_024;

/// The paths that were asked for.
#[derive(Default)]
pub(crate) struct PathSizes {
    /// Where multicast leaves.
    multicast: Vec<Ipv4Addr>,
    known: BTreeMap<Ipv4Addr, usize>,
    /// How often what was known has been forgotten.
    pub(crate) generation: u64,
}

impl PathSizes {
    /// By these interfaces multicast leaves from now on.
    pub(crate) fn follow(&mut self, interfaces: &[Interface]) {
        let v4 = |own: &Interface| match own.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        };
        self.multicast = interfaces.iter().filter(|own| own.multicast).filter_map(v4).collect();
        self.forget();
    }

    /// A path may have changed: ask again.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.generation += 1;
    }

    pub(crate) fn of(&mut self, to: &Locator) -> usize {
        let to = match to.socket_addr() {
            Some(SocketAddr::V4(to)) => to,
            Some(SocketAddr::V6(_)) => return OVER_V6,
            None => return LARGEST,
        };
        if let Some(size) = self.known.get(to.ip()) {
            return *size;
        }
        let size = if to.ip().is_multicast() {
            self.multicast.iter().map(|from| usual(ask(to, Some(from)))).min().unwrap_or(LARGEST)
        } else {
            usual(ask(to, None))
        };
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(*to.ip(), size);
        size
    }
}

fn usual(asked: io::Result<usize>) -> usize {
    asked.map_or(USUAL, |mtu| mtu.saturating_sub(HEADERS).min(LARGEST))
}

/// The MTU of the route to an address; to a group, of the one from an address of ours.
fn ask(to: SocketAddrV4, from: Option<&Ipv4Addr>) -> io::Result<usize> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(from) = from {
        socket.set_multicast_if_v4(from)?;
    }
    socket.connect(&to.into())?;
    Ok(usize::try_from(getsockopt(&socket, sockopt::IpMtu)?).unwrap_or(0))
}
