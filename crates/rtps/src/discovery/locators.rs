//! Which of a peer's addresses to use.

use std::net::IpAddr;

use taut_base::{Locator, LocatorKind, Time};

use super::Peer;
use crate::limits;
use crate::participant::{Addresses, Interface};

/// How near an address is, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// One of this host's own.
    Host,
    /// In a network that this host is in.
    Network,
    /// Reached by a router, if at all.
    Routed,
    /// One of this host's own, which the peer's host has as well, as each with Docker has 172.17.0.1: what is sent
    /// there does not leave this host.
    Ambiguous,
}

/// The one address of a peer that is nearest; it is enough, and a second would double the traffic. Of two that
/// are equally near the one whose kind is ranked first. Only if the peer spoke from this host (`source`) a loopback address
/// counts, and is an address of this host the nearest. Of those behind a router, of which none need lead there, the one that
/// it spoke from comes first: of those in networks of this host each does, and it may speak by all of them in turn.
pub fn nearest(candidates: &[Locator], own: &Addresses, source: &Locator) -> Vec<Locator> {
    let local_peer = is_own(source, &own.interfaces);
    let distance = |locator: &Locator| {
        let distance = match locator.ip() {
            Some(ip) if ip.is_loopback() && !local_peer => return None,
            Some(ip) => match distance_to(ip, &own.interfaces) {
                Distance::Host if !local_peer => Distance::Ambiguous,
                distance => distance,
            },
            // Without IP there is one network.
            None => Distance::Network,
        };
        let is_doubtful = distance == Distance::Routed && locator.ip() != source.ip();
        Some((distance, rank(locator), is_doubtful))
    };
    let usable = candidates.iter().filter(|locator| is_usable(locator, own));
    let best = usable.filter_map(|locator| Some((distance(locator)?, locator)));
    best.min_by_key(|(distance, _)| *distance).map(|(_, locator)| *locator).into_iter().collect()
}

/// Which of two kinds that do: without IP, which somebody has asked for, then IPv4.
fn rank(locator: &Locator) -> u8 {
    match locator.kind {
        LocatorKind::ETHERNET => 0,
        LocatorKind::UDP_V4 => 1,
        _ => 2,
    }
}

/// Does this participant have an address of that kind? One that has none at all, as far as is known, has IPv4.
pub fn is_usable(locator: &Locator, own: &Addresses) -> bool {
    let interfaces = &own.interfaces;
    match locator.kind {
        LocatorKind::ETHERNET => own.default_unicast.iter().any(|own| own.kind == LocatorKind::ETHERNET),
        LocatorKind::UDP_V4 => interfaces.is_empty() || interfaces.iter().any(|own| own.address.is_ipv4()),
        LocatorKind::UDP_V6 => interfaces.iter().any(|own| own.address.is_ipv6()),
        _ => false,
    }
}

/// The groups that this participant reaches, of one kind: that by which the member is `reached`, as another may lead to
/// other networks only, else the one that is ranked first.
pub fn groups(candidates: &[Locator], reached: &[Locator], own: &Addresses) -> Vec<Locator> {
    let usable = || candidates.iter().filter(|locator| is_usable_group(locator, own)).copied();
    let rank = |locator: &Locator| (reached.iter().all(|by| by.kind != locator.kind), rank(locator));
    let first = usable().map(|locator| rank(&locator)).min();
    usable().filter(|locator| Some(rank(locator)) == first).map(Locator::by_all).collect()
}

/// Does this participant send to groups of that kind? An interface may refuse multicast.
fn is_usable_group(group: &Locator, own: &Addresses) -> bool {
    let Some(ip) = group.ip().filter(|_| !own.interfaces.is_empty()) else { return is_usable(group, own) };
    own.interfaces.iter().any(|own| own.multicast && own.address.is_ipv4() == ip.is_ipv4())
}

/// The same for a member that has these addresses: by the one link behind which it is, if that is known, and by none if
/// that one has no multicast.
pub fn groups_of(
    candidates: &[Locator],
    member: &[Locator],
    reached: &[Locator],
    own: &Addresses,
) -> Vec<Locator> {
    let mut groups = groups(candidates, reached, own);
    let Some(link) = only_link(member, &own.interfaces) else { return groups };
    let way = own.interfaces.iter().find_map(|own| match own.address {
        IpAddr::V4(address) if own.link == link && own.multicast => Some(address),
        _ => None,
    });
    match way {
        Some(interface) => groups.iter_mut().for_each(|group| *group = group.by(interface)),
        None => groups.retain(|group| group.kind != LocatorKind::UDP_V4),
    }
    groups
}

/// The link that all addresses of IPv4 of a member are on, of several links that there are. One that has an address of no
/// network of this host, or of two, may be in the group anywhere.
fn only_link(member: &[Locator], interfaces: &[Interface]) -> Option<u32> {
    let v4 = || interfaces.iter().filter(|own| own.address.is_ipv4());
    let first = v4().next()?.link;
    if v4().all(|own| own.link == first) {
        return None;
    }
    let mut links = member.iter().filter_map(Locator::ip).filter(IpAddr::is_ipv4).map(|ip| {
        let mut near = v4().filter(|own| own.is_near(ip)).map(|own| own.link);
        let link = near.next()?;
        near.all(|other| other == link).then_some(link)
    });
    let link = links.next()??;
    links.all(|other| other == Some(link)).then_some(link)
}

/// The addresses by which a participant of another host that is reached at `peer` is likely to reach this one: those in a
/// network of its own. Nobody knows by which one it does that is behind a router.
pub fn likely_known(peer: &[Locator], own: &[Interface]) -> Vec<IpAddr> {
    if peer.iter().any(|locator| is_own(locator, own)) {
        return Vec::new();
    }
    let is_near = |own: &&Interface| peer.iter().filter_map(Locator::ip).any(|ip| own.is_near(ip));
    own.iter().filter(is_near).map(|own| own.address).collect()
}

/// Is of a peer's addresses the same one the [`nearest`] wherever of the two it has spoken from?
pub fn lead_alike(source: &Locator, other: &Locator, interfaces: &[Interface]) -> bool {
    is_own(source, interfaces) == is_own(other, interfaces)
        && (source.ip() == other.ip() || !is_far(source, interfaces) && !is_far(other, interfaces))
}

/// Is it in no network that this host is known to be in?
fn is_far(locator: &Locator, interfaces: &[Interface]) -> bool {
    locator.ip().is_some_and(|ip| distance_to(ip, interfaces) == Distance::Routed)
}

impl Peer {
    /// It announces itself from there: does where it did so before count all the same? From two addresses that lead elsewhere it
    /// may by turns.
    pub(super) fn keeps_source(&self, now: Time, source: &Locator, interfaces: &[Interface]) -> bool {
        self.source.ip() != source.ip()
            && is_far(&self.source, interfaces)
            && is_far(source, interfaces)
            && now.since(self.source_at) < self.lease.min(limits::SOURCE_KEPT)
    }
}

/// Is it an address of this host?
pub fn is_own(locator: &Locator, interfaces: &[Interface]) -> bool {
    locator.ip().is_some_and(|ip| ip.is_loopback() || interfaces.iter().any(|own| own.address == ip))
}

/// Is it behind a router, where groups do not lead as a rule?
pub fn is_routed(locator: &Locator, interfaces: &[Interface]) -> bool {
    let is_far = |ip: IpAddr| !ip.is_loopback() && distance_to(ip, interfaces) == Distance::Routed;
    !interfaces.is_empty() && locator.ip().is_some_and(is_far)
}

fn distance_to(ip: IpAddr, interfaces: &[Interface]) -> Distance {
    if interfaces.iter().any(|own| own.address == ip) {
        Distance::Host
    } else if interfaces.iter().any(|own| own.is_near(ip)) {
        Distance::Network
    } else {
        Distance::Routed
    }
}

impl Interface {
    /// Is this address in its network?
    fn is_near(&self, ip: IpAddr) -> bool {
        match (self.address, ip) {
            (IpAddr::V4(own_ip), IpAddr::V4(ip)) => {
                let host_bits = 32_u32.saturating_sub(u32::from(self.prefix_len));
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                u32::from(ip) & mask == u32::from(own_ip) & mask
            }
            (IpAddr::V6(own_ip), IpAddr::V6(ip)) => {
                let host_bits = 128_u32.saturating_sub(u32::from(self.prefix_len));
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                u128::from(ip) & mask == u128::from(own_ip) & mask
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn nearest_first() {
        let locator = |a, b, c, d| Locator::udp_v4(Ipv4Addr::new(a, b, c, d), 7410);
        let (own, near, far, lo) =
            (locator(10, 0, 0, 1), locator(10, 0, 0, 9), locator(10, 0, 1, 9), locator(127, 0, 0, 1));
        let here = host(&[interface("10.0.0.1", 24)]);
        let pick = |candidates: &[Locator], source| nearest(candidates, &here, &source);
        assert_eq!(pick(&[far, near, own], own), [own]);
        assert_eq!(pick(&[far, near], near), [near]);
        assert_eq!(pick(&[far], far), [far]);
        assert_eq!(pick(&[lo, far], far), [far], "its loopback is not ours");
        assert_eq!(pick(&[lo], lo), [lo]);
        assert_eq!(pick(&[own, far], far), [far], "another host has the address, too");
        assert_eq!(pick(&[own], far), [own], "it has no other");
    }

    /// A VPN gives each host an address that is a network of its own.
    #[test]
    fn behind_a_router_the_one_that_it_spoke_from_is_the_nearest() {
        let own = [interface("10.0.0.1", 24), interface("100.64.0.1", 32)];
        let at = |ip: &str, port: u16| parsed(&format!("{ip}:{port}"));
        let [home, docker, vpn] = ["192.168.0.5", "172.17.0.1", "100.64.0.7"].map(|ip| at(ip, 7410));
        let near = [at("10.0.0.9", 7410), at("10.0.0.8", 7410)];
        let pick =
            |candidates: &[Locator], source: &str| nearest(candidates, &host(&own), &at(source, 40_000));
        assert_eq!(pick(&[home, docker, vpn], "100.64.0.7"), [vpn]);
        assert_eq!(pick(&[home, docker, vpn], "100.64.0.8"), [home], "it announces no such address");
        assert_eq!(pick(&[home, near[0], vpn], "100.64.0.7"), [near[0]]);
        assert_eq!(pick(&near, "10.0.0.8"), [near[0]], "each leads there, by whichever it speaks");
        let v6 = parsed("[fd00::7]:7410");
        let both = host(&[own[0], interface("fd01::1", 64)]);
        assert_eq!(nearest(&[home, v6], &both, &v6), [home], "the kind comes before that");
        let alike = |a: &str, b: &str| lead_alike(&at(a, 7410), &at(b, 40_000), &own);
        assert!(alike("100.64.0.7", "100.64.0.7") && alike("10.0.0.8", "10.0.0.9"));
        assert!(!alike("100.64.0.7", "192.168.0.5") && !alike("10.0.0.8", "192.168.0.5"));
        assert!(!alike("10.0.0.1", "10.0.0.9"), "of this host and of another one");
    }

    fn host(interfaces: &[Interface]) -> Addresses {
        Addresses { interfaces: interfaces.to_vec(), ..Addresses::default() }
    }

    fn parsed(text: &str) -> Locator {
        text.parse::<SocketAddr>().unwrap().into()
    }

    fn on_link(link: u32, address: &str, prefix_len: u8) -> Interface {
        Interface { address: address.parse().unwrap(), prefix_len, link, multicast: true }
    }

    fn interface(address: &str, prefix_len: u8) -> Interface {
        on_link(1, address, prefix_len)
    }

    #[test]
    fn of_two_kinds_the_one_that_both_have() {
        let v4 = interface("10.0.0.1", 24);
        let v6 = interface("fd00:1::1", 64);
        let (near4, near6) = (parsed("10.0.0.9:7410"), parsed("[fd00:1::9]:7410"));
        let (far4, far6) = (parsed("10.9.0.9:7410"), parsed("[fd00:2::9]:7410"));
        let pick = |candidates: &[Locator], own: &[Interface]| nearest(candidates, &host(own), &near6);
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
        assert_eq!(groups(&both, &[], &host(&[v4, v6])), [both[1]]);
        assert_eq!(groups(&both, &[], &host(&[v6])), [both[0]]);
        assert_eq!(groups(&both[..1], &[], &host(&[v4])), []);
        // Who is reached by one kind only may hear nothing of the other.
        let reached = |by: &str| groups(&both, &[parsed(by)], &host(&[v4, v6]));
        assert_eq!((reached("[fd00::9]:7410"), reached("10.0.0.9:7410")), (vec![both[0]], vec![both[1]]));
        assert_eq!(groups(&both[..1], &[parsed("10.0.0.9:7410")], &host(&[v4, v6])), [both[0]]);
    }

    #[test]
    fn a_group_goes_by_the_one_link_that_its_member_is_on() {
        let left = [on_link(2, "10.0.0.1", 24), on_link(2, "10.0.5.1", 24)];
        let own = [&left[..], &[on_link(3, "10.0.1.1", 24), on_link(3, "fd00::1", 64)]].concat();
        let [v4, v6] = ["239.255.0.1:7401", "[ff02::1]:7401"].map(parsed);
        let by = |own: &[Interface], member: &[&str]| {
            let member: Vec<Locator> = member.iter().map(|ip| parsed(&format!("{ip}:7411"))).collect();
            let [group] = groups_of(&[v6, v4], &member, &[], &host(own))[..] else { panic!("one group") };
            assert_eq!(group.by_all(), v4);
            group.interface().map(|interface| interface.to_string())
        };
        let (first, second) = (Some("10.0.0.1".to_owned()), Some("10.0.1.1".to_owned()));
        assert_eq!(by(&own, &["10.0.0.9"]), first);
        assert_eq!(by(&own, &["10.0.5.9"]), first, "two networks on one link");
        assert_eq!(by(&own, &["10.0.5.9", "[fd00::9]", "10.0.0.9"]), first);
        assert_eq!(by(&own, &["10.0.1.9"]), second);
        assert_eq!(by(&own, &["10.0.0.9", "10.0.1.9"]), None, "behind both");
        assert_eq!(by(&own, &["10.0.0.9", "172.17.0.1"]), None, "where else it is nobody knows");
        assert_eq!(by(&own, &["10.9.0.9"]), None, "behind a router");
        assert_eq!(by(&own, &["[fd00::9]"]), None);
        assert_eq!(by(&own, &[]), None);
        assert_eq!(by(&left, &["10.0.0.9"]), None, "there is no other link");
        let same = [on_link(2, "10.0.0.1", 24), on_link(3, "10.0.0.2", 24)];
        assert_eq!(by(&same, &["10.0.0.9"]), None, "two links into one network");
        let refuses = Interface { multicast: false, ..own[2] };
        let less = host(&[left[0], refuses]);
        let refused = [v4, v6].map(|group| groups_of(&[group], &[parsed("10.0.1.9:7411")], &[], &less));
        assert_eq!(refused, [[]; 2], "unicast is what is left");
        assert_eq!(groups_of(&[v4], &[parsed("10.9.0.9:7411")], &[], &less), [v4]);
        assert_eq!(groups(&[v4], &[], &host(&[refuses])), []);
        let said = v4.by([10, 0, 1, 1].into());
        assert_eq!(groups(&[said], &[], &host(&own)), [v4], "what a peer says of interfaces is nothing");
    }

    #[test]
    fn without_ip_for_whom_has_it() {
        let (near, station) = (parsed("10.0.0.9:7410"), Locator::ethernet([2, 0, 0, 0, 0, 9], 7410));
        let (own, lo) = (parsed("127.0.0.1:7412"), parsed("127.0.0.1:7410"));
        let with_ip = host(&[interface("10.0.0.1", 24), interface("127.0.0.1", 8)]);
        let us = Locator::ethernet([2, 0, 0, 0, 0, 1], 7410);
        let bare = Addresses { default_unicast: vec![own, us], ..with_ip.clone() };
        assert_eq!(
            nearest(&[near, station], &with_ip, &near),
            [near],
            "who has no such address cannot answer"
        );
        assert_eq!(nearest(&[lo, near, station], &bare, &station), [station]);
        assert_eq!(nearest(&[lo, station], &bare, &lo), [lo], "on one host");
        let both = [parsed("239.255.0.1:7400"), Locator::ethernet([1, 0, 0x5e, 0x7f, 0, 1], 7400)];
        assert_eq!((groups(&both, &[], &bare), groups(&both, &[], &with_ip)), (vec![both[1]], vec![both[0]]));
    }
}
