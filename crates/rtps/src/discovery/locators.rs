//! Which of a peer's addresses to use.

use std::net::{IpAddr, Ipv4Addr};

use taut_base::Locator;

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

/// The one address of a peer that is nearest; it is enough, and a second would double the traffic.
/// A loopback address counts only if the peer spoke from this host (`source`).
pub fn nearest(candidates: &[Locator], interfaces: &[Interface], source: &Locator) -> Vec<Locator> {
    let local_peer = is_own(source, interfaces);
    let distance = |locator: &Locator| match locator.ip() {
        Some(IpAddr::V4(ip)) if ip.is_loopback() && !local_peer => None,
        Some(IpAddr::V4(ip)) => Some(distance_to(ip, interfaces)),
        Some(IpAddr::V6(_)) => Some(Distance::Routed),
        None => None,
    };
    let best = candidates.iter().filter_map(|locator| Some((distance(locator)?, locator)));
    best.min_by_key(|(distance, _)| *distance).map(|(_, locator)| *locator).into_iter().collect()
}

fn is_own(locator: &Locator, interfaces: &[Interface]) -> bool {
    match locator.ip() {
        Some(IpAddr::V4(ip)) => ip.is_loopback() || interfaces.iter().any(|own| own.address == ip),
        _ => false,
    }
}

fn distance_to(ip: Ipv4Addr, interfaces: &[Interface]) -> Distance {
    let same_network = |own: &Interface| {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(own.prefix_len))).unwrap_or(0);
        u32::from(ip) & mask == u32::from(own.address) & mask
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

    #[test]
    fn nearest_first() {
        let locator = |a, b, c, d| Locator::udp_v4(Ipv4Addr::new(a, b, c, d), 7410);
        let interfaces = [Interface { address: Ipv4Addr::new(10, 0, 0, 1), prefix_len: 24 }];
        let (own, near, far, lo) =
            (locator(10, 0, 0, 1), locator(10, 0, 0, 9), locator(10, 0, 1, 9), locator(127, 0, 0, 1));
        let pick = |candidates: &[Locator], source| nearest(candidates, &interfaces, &source);
        assert_eq!(pick(&[far, near, own], own), [own]);
        assert_eq!(pick(&[far, near], near), [near]);
        assert_eq!(pick(&[far], far), [far]);
        assert_eq!(pick(&[lo, far], far), [far], "its loopback is not ours");
        assert_eq!(pick(&[lo], lo), [lo]);
    }
}
