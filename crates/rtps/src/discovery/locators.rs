//! Which of a peer's addresses to use.

use std::net::IpAddr;

use taut_base::{Locator, LocatorKind};

use crate::participant::Interface;

/// How near an address is, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// One of this host's own.
    Host,
    /// In a network that this host is in.
    Network,
    /// Reached by a router, if at all.
    Routed,
}

/// The one address of a peer that is nearest; it is enough, and a second would double the traffic. Of two that
/// are equally near one of IPv4. A loopback address counts only if the peer spoke from this host (`source`).
pub fn nearest(candidates: &[Locator], interfaces: &[Interface], source: &Locator) -> Vec<Locator> {
    let local_peer = is_own(source, interfaces);
    let distance = |locator: &Locator| {
        let ip = locator.ip().filter(|ip| local_peer || !ip.is_loopback())?;
        Some((distance_to(ip, interfaces), ip.is_ipv6()))
    };
    let usable = candidates.iter().filter(|locator| is_usable(locator, interfaces));
    let best = usable.filter_map(|locator| Some((distance(locator)?, locator)));
    best.min_by_key(|(distance, _)| *distance).map(|(_, locator)| *locator).into_iter().collect()
}

/// Does this host have an address of that kind? One that has none at all, as far as is known, has IPv4.
pub fn is_usable(locator: &Locator, interfaces: &[Interface]) -> bool {
    match locator.kind {
        LocatorKind::UDP_V4 => interfaces.is_empty() || interfaces.iter().any(|own| own.address.is_ipv4()),
        LocatorKind::UDP_V6 => interfaces.iter().any(|own| own.address.is_ipv6()),
        _ => false,
    }
}

/// The groups that this host reaches, of one kind, IPv4 if there are any.
pub fn groups(candidates: &[Locator], interfaces: &[Interface]) -> Vec<Locator> {
    let usable = || candidates.iter().filter(|locator| is_usable(locator, interfaces)).copied();
    let kind = usable().map(|locator| locator.kind).min();
    usable().filter(|locator| Some(locator.kind) == kind).collect()
}

fn is_own(locator: &Locator, interfaces: &[Interface]) -> bool {
    locator.ip().is_some_and(|ip| ip.is_loopback() || interfaces.iter().any(|own| own.address == ip))
}

fn distance_to(ip: IpAddr, interfaces: &[Interface]) -> Distance {
    let same_network = |own: &Interface| match (own.address, ip) {
        (IpAddr::V4(own_ip), IpAddr::V4(ip)) => {
            let host_bits = 32_u32.saturating_sub(u32::from(own.prefix_len));
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            u32::from(ip) & mask == u32::from(own_ip) & mask
        }
        (IpAddr::V6(own_ip), IpAddr::V6(ip)) => {
            let host_bits = 128_u32.saturating_sub(u32::from(own.prefix_len));
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            u128::from(ip) & mask == u128::from(own_ip) & mask
        }
        _ => false,
    };
    if interfaces.iter().any(|own| own.address == ip) {
        Distance::Host
    } else if interfaces.iter().any(same_network) {
        Distance::Network
    } else {
        Distance::Routed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn nearest_first() {
        let locator = |a, b, c, d| Locator::udp_v4(Ipv4Addr::new(a, b, c, d), 7410);
        let interfaces = [Interface { address: Ipv4Addr::new(10, 0, 0, 1).into(), prefix_len: 24 }];
        let (own, near, far, lo) =
            (locator(10, 0, 0, 1), locator(10, 0, 0, 9), locator(10, 0, 1, 9), locator(127, 0, 0, 1));
        let pick = |candidates: &[Locator], source| nearest(candidates, &interfaces, &source);
        assert_eq!(pick(&[far, near, own], own), [own]);
        assert_eq!(pick(&[far, near], near), [near]);
        assert_eq!(pick(&[far], far), [far]);
        assert_eq!(pick(&[lo, far], far), [far], "its loopback is not ours");
        assert_eq!(pick(&[lo], lo), [lo]);
    }

    fn parsed(text: &str) -> Locator {
        text.parse::<SocketAddr>().unwrap().into()
    }

    fn interface(address: &str, prefix_len: u8) -> Interface {
        Interface { address: address.parse().unwrap(), prefix_len }
    }

    #[test]
    fn of_two_kinds_the_one_that_both_have() {
        let v4 = interface("10.0.0.1", 24);
        let v6 = interface("fd00:1::1", 64);
        let (near4, near6) = (parsed("10.0.0.9:7410"), parsed("[fd00:1::9]:7410"));
        let (far4, far6) = (parsed("10.9.0.9:7410"), parsed("[fd00:2::9]:7410"));
        let pick = |candidates: &[Locator], own: &[Interface]| nearest(candidates, own, &near6);
        assert_eq!(pick(&[near6, near4], &[v6, v4]), [near4], "equally near");
        assert_eq!(pick(&[near6, far4], &[v6, v4]), [near6]);
        assert_eq!(pick(&[far6, far4], &[v6, v4]), [far4]);
        assert_eq!(pick(&[near6, near4], &[v6]), [near6]);
        assert_eq!(pick(&[near6, far4], &[v4]), [far4]);
        assert_eq!(pick(&[near6, far6], &[v4]), [], "not reached");
        assert_eq!(pick(&[parsed("[::1]:7410")], &[v6]), [], "its loopback is not ours");
    }

    #[test]
    fn groups_of_one_kind() {
        let (v4, v6) = (interface("10.0.0.1", 24), interface("fe80::1", 64));
        let both = [parsed("[ff02::1]:7400"), parsed("239.255.0.1:7400")];
        assert_eq!(groups(&both, &[v4, v6]), [both[1]]);
        assert_eq!(groups(&both, &[v6]), [both[0]]);
        assert_eq!(groups(&both[..1], &[v4]), []);
    }
}
