//! Where bytes go: kind, port, address. RTPS 2.5 §8.2.4.6, §9.3.2.4.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What moves the bytes to a locator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocatorKind(pub i32);

impl LocatorKind {
    /// LOCATOR_KIND_INVALID.
    pub const INVALID: LocatorKind = LocatorKind(-1);
    /// LOCATOR_KIND_UDPv4.
    pub const UDP_V4: LocatorKind = LocatorKind(1);
    /// LOCATOR_KIND_UDPv6.
    pub const UDP_V6: LocatorKind = LocatorKind(2);
    /// Frames of Ethernet without IP, of the type 0x88b5. The standard does not know it: the number is of those that it
    /// leaves to vendors.
    pub const ETHERNET: LocatorKind = LocatorKind(0x0100_88b5);
}

/// One address of an entity. *Shape*: 24 bytes on the wire; an IPv4 address is in the last four, one of Ethernet in the
/// last six.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// What moves the bytes.
    pub kind: LocatorKind,
    /// The UDP port for the UDP kinds, and as one for Ethernet.
    pub port: u32,
    /// 16 bytes in network order.
    pub address: [u8; 16],
}

impl Locator {
    /// LOCATOR_INVALID.
    pub const INVALID: Locator = Locator { kind: LocatorKind::INVALID, port: 0, address: [0; 16] };

    /// A UDPv4 locator.
    pub const fn udp_v4(address: Ipv4Addr, port: u16) -> Locator {
        let [a, b, c, d] = address.octets();
        Locator {
            kind: LocatorKind::UDP_V4,
            port: port as u32,
            address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d],
        }
    }

    /// A locator of Ethernet.
    pub const fn ethernet(mac: [u8; 6], port: u16) -> Locator {
        let [a, b, c, d, e, f] = mac;
        Locator {
            kind: LocatorKind::ETHERNET,
            port: port as u32,
            address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f],
        }
    }

    /// The address of Ethernet of a locator of that kind.
    pub fn mac(&self) -> Option<[u8; 6]> {
        match (self.kind, self.address) {
            (LocatorKind::ETHERNET, [.., a, b, c, d, e, f]) => Some([a, b, c, d, e, f]),
            _ => None,
        }
    }

    /// The IP address of a UDP locator.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.kind {
            LocatorKind::UDP_V4 => {
                let [.., a, b, c, d] = self.address;
                Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
            }
            LocatorKind::UDP_V6 => Some(IpAddr::V6(Ipv6Addr::from(self.address))),
            _ => None,
        }
    }

    /// The socket address of a UDP locator; `None` for other kinds and for port 0 or above 65,535.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        let port = u16::try_from(self.port).ok().filter(|p| *p != 0)?;
        Some(SocketAddr::new(self.ip()?, port))
    }

    /// A group of IPv4 as it is reached by one interface of this host, the one with this address; anything else is
    /// returned as it is.
    ///
    /// It is for destinations only: the address is in bytes that are zero on the wire (RTPS 2.5 §9.3.2.4).
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use taut_base::Locator;
    /// let (group, interface) = (Locator::udp_v4([239, 255, 0, 1].into(), 7401), Ipv4Addr::new(10, 0, 0, 1));
    /// assert_eq!(group.by(interface).interface(), Some(interface));
    /// assert_eq!((group.interface(), group.by(interface).by_all()), (None, group));
    /// ```
    pub fn by(self, interface: Ipv4Addr) -> Locator {
        let [a, b, c, d] = interface.octets();
        match self.ip() {
            Some(IpAddr::V4(ip)) if ip.is_multicast() => {
                let [e, f, g, h] = ip.octets();
                Locator { address: [0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h], ..self }
            }
            _ => self,
        }
    }

    /// The same by all interfaces.
    pub fn by_all(self) -> Locator {
        self.by(Ipv4Addr::UNSPECIFIED)
    }

    /// The address of the only interface by which a group is to be reached; `None` for all of them. See [`Locator::by`].
    pub fn interface(&self) -> Option<Ipv4Addr> {
        let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = self.address;
        let of_group = self.kind == LocatorKind::UDP_V4 && self.is_multicast();
        of_group.then(|| Ipv4Addr::new(a, b, c, d)).filter(|interface| !interface.is_unspecified())
    }

    /// Is it a multicast address?
    pub fn is_multicast(&self) -> bool {
        // The lowest bit of a station's first byte says that it stands for a group (IEEE 802.3).
        self.ip().is_some_and(|ip| ip.is_multicast()) || self.mac().is_some_and(|[first, ..]| first & 1 != 0)
    }

    /// May a peer announce it as a destination? It may with a known kind, a port, and an address of a host or,
    /// if `multicast`, of a group.
    pub fn is_plausible(&self, multicast: bool) -> bool {
        let is_somebody = match (self.ip(), self.mac()) {
            (Some(IpAddr::V4(v4)), _) => !v4.is_unspecified() && !v4.is_broadcast(),
            (Some(IpAddr::V6(v6)), _) => !v6.is_unspecified(),
            (_, Some(mac)) => {
                *self == Locator::ethernet(mac, self.port as u16) && mac != [0; 6] && mac != [0xff; 6]
            }
            _ => false,
        };
        let is_port = (1..=u32::from(u16::MAX)).contains(&self.port);
        is_somebody && is_port && self.is_multicast() == multicast
    }
}

impl From<SocketAddr> for Locator {
    fn from(addr: SocketAddr) -> Self {
        match addr.ip() {
            IpAddr::V4(v4) => Locator::udp_v4(v4, addr.port()),
            IpAddr::V6(v6) => {
                Locator { kind: LocatorKind::UDP_V6, port: u32::from(addr.port()), address: v6.octets() }
            }
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some([a, b, c, d, e, g]) = self.mac() {
            return write!(f, "ethernet/{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}:{}", self.port);
        }
        match (self.kind, self.ip()) {
            (LocatorKind::INVALID, _) => f.write_str("invalid"),
            (_, Some(IpAddr::V4(ip))) => write!(f, "udp/{ip}:{}", self.port),
            (_, Some(IpAddr::V6(ip))) => write!(f, "udp/[{ip}]:{}", self.port),
            (LocatorKind(kind), None) => write!(f, "kind {kind}/{:02x?}:{}", self.address, self.port),
        }
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plausible() {
        let host = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7400);
        assert!(host.is_plausible(false) && !host.is_plausible(true));
        assert!(Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400).is_plausible(true));
        let station = Locator::ethernet([2, 0, 0, 0, 0, 1], 7400);
        assert!(station.is_plausible(false) && !station.is_plausible(true));
        let group = Locator::ethernet([1, 0, 0x5e, 0x7f, 0, 1], 7400);
        assert!(group.is_plausible(true) && !group.is_plausible(false));
        for bad in [
            Locator::udp_v4(Ipv4Addr::LOCALHOST, 0),
            Locator::udp_v4(Ipv4Addr::BROADCAST, 1),
            Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 1),
            Locator::INVALID,
            Locator::ethernet([2, 0, 0, 0, 0, 1], 0),
            Locator::ethernet([0; 6], 7400),
            Locator::ethernet([0xff; 6], 7400),
            Locator { port: 1 << 16 | 7400, ..station },
            Locator { address: [1; 16], ..station },
        ] {
            assert!(!bad.is_plausible(false) && !bad.is_plausible(true), "{bad}");
        }
    }

    #[test]
    fn kinds_are_told_apart_by_people() {
        let texts = [
            (Locator::udp_v4(Ipv4Addr::LOCALHOST, 7400), "udp/127.0.0.1:7400"),
            (Locator::ethernet([2, 0, 0, 0, 0, 0xa1], 7400), "ethernet/02:00:00:00:00:a1:7400"),
            (Locator::INVALID, "invalid"),
        ];
        texts.iter().for_each(|(locator, text)| assert_eq!(locator.to_string(), *text));
    }
}
