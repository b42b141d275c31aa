//! The largest datagram that the way to an address takes in one piece, as the kernel's routes have it: the
//! interface's MTU, or less where a router has said so.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{Interface, sys};

/// What a kind of address has in front of a datagram's payload, and the payload of the largest datagram there is.
struct Kind {
    headers: usize,
    largest: usize,
}

/// 20 and 8 bytes of headers, and a length of 16 bits that counts both.
const V4: Kind = Kind { headers: 28, largest: 65_507 };

/// 40 and 8 bytes of headers, and a length of 16 bits that counts those of UDP only.
const V6: Kind = Kind { headers: 48, largest: 65_527 };

/// The MTU where the kernel does not tell: that of Ethernet.
const USUAL: usize = 1_500;

/// Addresses that are remembered. Lower asks again more often, higher holds what peers have made up.
const KNOWN: usize = 1_024;

/// The paths that were asked for.
pub(crate) struct PathSizes {
    /// What is asked with, of IPv4 and of IPv6. They are made with the port: whoever asks later may be a thread in
    /// another network.
    v4: io::Result<Socket>,
    v6: io::Result<Socket>,
    /// Where multicast leaves: the addresses, and the numbers of their interfaces.
    multicast: Vec<(IpAddr, u32)>,
    /// By addresses, and by the interface that a group is reached by, if it is one.
    known: BTreeMap<(IpAddr, Option<Ipv4Addr>), usize>,
    /// How often what was known has been forgotten.
    pub(crate) generation: u64,
}

impl PathSizes {
    pub(crate) fn new(uses_v6: bool) -> PathSizes {
        let open = |domain| Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        let v4 = open(Domain::IPV4);
        let v6 = if uses_v6 { open(Domain::IPV6) } else { Err(io::ErrorKind::Unsupported.into()) };
        PathSizes { v4, v6, multicast: Vec::new(), known: BTreeMap::new(), generation: 0 }
    }

    /// By these interfaces multicast leaves from now on.
    pub(crate) fn follow(&mut self, interfaces: &[Interface]) {
        let own = interfaces.iter().filter(|own| own.multicast);
        self.multicast = own.map(|own| (own.address, own.index)).collect();
        self.forget();
    }

    /// A path may have changed: ask again.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.generation += 1;
    }

    /// The same of the path to one address.
    pub(crate) fn forget_one(&mut self, to: IpAddr) {
        if self.known.remove(&(to, None)).is_some() {
            self.generation += 1;
        }
    }

    /// The payload of the largest datagram to an address, or to a group by `interface` if there is that.
    pub(crate) fn of(&mut self, to: SocketAddr, interface: Option<Ipv4Addr>) -> usize {
        let name = (to.ip(), interface);
        if let Some(size) = self.known.get(&name) {
            return *size;
        }
        let kind = if to.is_ipv4() { V4 } else { V6 };
        let payload =
            |asked: io::Result<usize>| asked.unwrap_or(USUAL).saturating_sub(kind.headers).min(kind.largest);
        let size = if to.ip().is_multicast() {
            let only = interface.filter(|by| self.multicast.iter().any(|(own, _)| own == by));
            let is_by = |own: &IpAddr| only.map_or(own.is_ipv4() == to.is_ipv4(), |by| *own == by);
            let by = self.multicast.iter().filter(|(own, _)| is_by(own));
            by.map(|own| payload(self.ask(to, Some(own)))).min().unwrap_or(kind.largest)
        } else {
            payload(self.ask(to, None))
        };
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(name, size);
        size
    }

    /// The MTU of the route to an address; to a group, of the one from an address of ours. *Cost*: three system calls.
    fn ask(&self, to: SocketAddr, from: Option<&(IpAddr, u32)>) -> io::Result<usize> {
        let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        let socket = socket.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        match from {
            Some((IpAddr::V4(address), _)) => socket.set_multicast_if_v4(address)?,
            Some((IpAddr::V6(_), index)) => socket.set_multicast_if_v6(*index)?,
            None => {}
        }
        let connected = socket.connect(&to.into());
        let mtu = match to {
            SocketAddr::V4(_) => getsockopt(socket, sockopt::IpMtu)
                .map(|mtu| usize::try_from(mtu).unwrap_or(0))
                .map_err(Into::into),
            SocketAddr::V6(_) => sys::path_mtu_v6(socket.as_fd()),
        };
        // The next question is not one from the address that this way begins at.
        sys::disconnect(socket.as_fd())?;
        connected.and(mtu)
    }
}
