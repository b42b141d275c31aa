//! An address of our own, and which destinations go by its device: routes are one network and one gateway.

use std::net::{IpAddr, Ipv4Addr};

/// An address of IPv4 or IPv6 that is a participant's alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// The address.
    pub address: IpAddr,
    /// Bits of it that name the network. *Range*: 1 to 30, over IPv6 to 126.
    pub prefix_len: u8,
    /// Who passes on what is for hosts beyond that network, if somebody does. Over IPv6 it may be known by its address of
    /// the link.
    pub gateway: Option<IpAddr>,
}

impl OwnAddress {
    /// Is it a host of that network, as far as its number says?
    pub fn is_near(&self, host: IpAddr) -> bool {
        self.address.is_ipv4() == host.is_ipv4() && Network::of(self.address, self.prefix_len).has(bits(host))
    }

    /// May it be somebody whom we ask for a station?
    pub(super) fn is_neighbour(&self, host: IpAddr) -> bool {
        self.is_near(host) || self.gateway == Some(host)
    }
}

/// The bits of an address from the first one on, so that prefixes of both kinds are masks.
#[inline]
fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << (u128::BITS - u32::BITS),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Addresses that begin with the same bits.
struct Network {
    mask: u128,
    /// Those that stand for no host: the network itself or all of its routers (RFC 4291 §2.6.1), and over IPv4 all hosts.
    first: u128,
    last: u128,
}

impl Network {
    fn of(address: IpAddr, prefix_len: u8) -> Network {
        let mask = !u128::MAX.checked_shr(u32::from(prefix_len)).unwrap_or(0);
        let first = bits(address) & mask;
        let last = if address.is_ipv4() { first | !mask & bits(Ipv4Addr::BROADCAST.into()) } else { first };
        Network { mask, first, last }
    }

    #[inline]
    fn begins(&self, to: u128) -> bool {
        to & self.mask == self.first
    }

    #[inline]
    fn has(&self, host: u128) -> bool {
        self.begins(host) && host != self.first && host != self.last
    }
}

/// Which destinations go by the device: those of the kind of its address that no socket is nearer to.
pub(super) struct Routes {
    own: OwnAddress,
    network: Network,
    /// What is the sockets'.
    sockets: Vec<Network>,
    /// What of that is within our network: hosts of this machine, and narrower networks.
    within: Vec<Network>,
}

impl Routes {
    pub fn new(own: OwnAddress, sockets: &[SocketNetwork]) -> Routes {
        let network = Network::of(own.address, own.prefix_len);
        let mut routes = Routes { own, network, sockets: Vec::new(), within: Vec::new() };
        routes.follow(sockets);
        routes
    }

    /// These are the sockets' from now on.
    pub fn follow(&mut self, sockets: &[SocketNetwork]) {
        let of_kind = || sockets.iter().filter(|(of, _)| of.is_ipv4() == self.own.address.is_ipv4());
        let own_host = Network::of(self.own.address, u8::MAX);
        let within = of_kind().filter(|(of, _)| self.network.begins(bits(*of)));
        let narrow = |len: u8| if len > self.own.prefix_len { len } else { u8::MAX };
        self.within = within.map(|(of, len)| Network::of(*of, narrow(*len))).chain([own_host]).collect();
        self.sockets = of_kind().map(|(of, len)| Network::of(*of, *len)).collect();
    }

    /// Who takes what is for an address: itself, a group, or the gateway. `None` for what is not the device's: sockets
    /// reach it, or nobody is to get it.
    #[inline]
    pub fn hop(&self, to: IpAddr) -> Option<IpAddr> {
        if to.is_ipv4() != self.own.address.is_ipv4() {
            return None;
        }
        if to.is_multicast() {
            return Some(to);
        }
        let host = bits(to);
        if self.within.iter().any(|of| of.begins(host)) {
            return None;
        }
        if self.network.has(host) { Some(to) } else { self.by_gateway(to, host) }
    }

    fn by_gateway(&self, to: IpAddr, host: u128) -> Option<IpAddr> {
        let is_host = !is_nobody(to) && !to.is_loopback() && !is_of_link(to);
        self.own.gateway.filter(|_| is_host && !self.sockets.iter().any(|of| of.begins(host)))
    }
}

/// Does it stand for no single host?
#[inline]
pub(super) fn is_nobody(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast(),
        // An address of IPv4 is on no network of IPv6 (RFC 4291 §2.5.5.2).
        IpAddr::V6(v6) => v6.is_unspecified() || v6.is_multicast() || v6.to_ipv4_mapped().is_some(),
    }
}

/// No router passes on what is for such an address (RFC 4291 §2.5.6).
fn is_of_link(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Addresses that the host's sockets reach: one, and bits of it that name a network.
pub type SocketNetwork = (IpAddr, u8);

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn own(address: &str, prefix_len: u8, gateway: Option<&str>) -> OwnAddress {
        OwnAddress { address: ip(address), prefix_len, gateway: gateway.map(ip) }
    }

    /// Holds which hop destinations have without a router and with one.
    fn hops<const N: usize>(
        own: [OwnAddress; 2],
        sockets: &[SocketNetwork],
        hops: [(&str, Option<&str>, Option<&str>); N],
    ) {
        let [alone, routed] = own.map(|own| Routes::new(own, sockets));
        for (to, without, with) in hops {
            let found = (alone.hop(ip(to)), routed.hop(ip(to)));
            assert_eq!(found, (without.map(ip), with.map(ip)), "{to}");
        }
    }

    #[test]
    fn which_way_a_destination_is() {
        let sockets = [(ip("192.168.7.1"), 24), (ip("10.0.0.9"), 32)];
        let router = Some("10.0.0.254");
        let ours = [None, router].map(|router| own("10.0.0.2", 24, router));
        hops(
            ours,
            &sockets,
            [
                ("10.0.0.77", Some("10.0.0.77"), Some("10.0.0.77")),
                ("239.255.0.1", Some("239.255.0.1"), Some("239.255.0.1")),
                ("172.16.0.1", None, router),
                ("10.0.0.2", None, None),
                ("127.0.0.1", None, None),
                ("192.168.7.8", None, None),
                ("10.0.0.9", None, None),
                ("255.255.255.255", None, None),
                ("0.0.0.0", None, None),
                ("fd00::77", None, None),
                ("ff02::1", None, None),
            ],
        );
    }

    #[test]
    fn which_way_a_destination_of_ipv6_is() {
        let sockets = [(ip("fd00:7::1"), 64), (ip("fd00::9"), 128)];
        for router in ["fd00::fe", "fe80::fe"] {
            let ours = [None, Some(router)].map(|router| own("fd00::2", 64, router));
            let group = Some("ff02::ffff:239.255.0.1");
            hops(
                ours,
                &sockets,
                [
                    ("fd00::77", Some("fd00::77"), Some("fd00::77")),
                    ("ff02::ffff:239.255.0.1", group, group),
                    ("2001:db8::1", None, Some(router)),
                    // That of all routers of the network, one of another link, and of no host.
                    ("fd00::", None, Some(router)),
                    ("fe80::77", None, None),
                    ("fd00::2", None, None),
                    ("::1", None, None),
                    ("::", None, None),
                    ("::ffff:10.0.0.1", None, None),
                    ("fd00:7::8", None, None),
                    ("fd00::9", None, None),
                    ("10.0.0.77", None, None),
                    ("239.255.0.1", None, None),
                ],
            );
        }
        let of_link = own("fe80::2", 64, None);
        assert_eq!(Routes::new(of_link, &[]).hop(ip("fe80::77")), Some(ip("fe80::77")));
    }

    #[test]
    fn of_two_networks_the_narrower_one() {
        let ours = own("10.0.0.2", 16, None);
        for (prefix_len, hop) in [(24, None), (16, Some(ip("10.0.7.1"))), (8, Some(ip("10.0.7.1")))] {
            let sockets = [(ip("10.0.7.9"), prefix_len)];
            let routes = Routes::new(ours, &sockets);
            let found = (routes.hop(ip("10.0.9.1")), routes.hop(ip("10.0.7.1")));
            assert_eq!(found, (Some(ip("10.0.9.1")), hop), "/{prefix_len}");
        }
    }

    #[test]
    fn whose_number_stands_for_no_host() {
        for (address, prefix_len, is_host) in [
            ("10.0.0.1", 24, true),
            ("10.0.0.0", 24, false),
            ("10.0.0.255", 24, false),
            ("10.0.0.5", 30, true),
            ("10.0.0.7", 30, false),
            ("fd00::1", 64, true),
            ("fd00::", 64, false),
            ("fd00::ffff:ffff:ffff:ffff", 64, true),
            ("fd00::1", 126, true),
        ] {
            assert_eq!(
                own(address, prefix_len, None).is_near(ip(address)),
                is_host,
                "{address}/{prefix_len}"
            );
        }
    }
}
