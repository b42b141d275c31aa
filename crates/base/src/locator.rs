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
}

/// One address of an entity. *Shape*: 24 bytes on the wire; an IPv4 address is in the last four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// What moves the bytes.
    pub kind: LocatorKind,
    /// The UDP port for the UDP kinds.
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

    /// Is it a multicast address?
    pub fn is_multicast(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_multicast())
    }

    /// May a peer announce it as a destination? Rule R8: known kind, a port, an address of a host or,
    /// if `multicast`, of a group.
    pub fn is_plausible(&self, multicast: bool) -> bool {
        let Some(addr) = self.socket_addr() else { return false };
        let ip = addr.ip();
        let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
        !ip.is_unspecified() && !broadcast && ip.is_multicast() == multicast
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
        for bad in [
            Locator::udp_v4(Ipv4Addr::LOCALHOST, 0),
            Locator::udp_v4(Ipv4Addr::BROADCAST, 1),
            Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 1),
            Locator::INVALID,
        ] {
            assert!(!bad.is_plausible(false), "{bad}");
        }
    }
}
