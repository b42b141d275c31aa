//! By which interface peers were heard whose addresses mean something on one link only. A locator has no room for
//! it. RFC 4007 §6.
//!
//! An interface that is pulled out and put in again has another number, and the same name: peers are looked for by that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddrV6};

use crate::interface::is_of_link;
use crate::receive::Receiver;
use crate::{Interface, UdpPort};

/// Peers whose links are remembered. Lower forgets peers of a crowded link, higher lets somebody who invents peers fill
/// memory.
const PEERS: usize = 4_096;

/// The links of peers whose addresses are of the link.
#[derive(Default)]
pub(crate) struct Links {
    /// The number of the interface by which each is reached.
    of: BTreeMap<Ipv6Addr, u32>,
    /// What interfaces are called: those that are there, and those by which a peer was reached.
    names: BTreeMap<u32, String>,
    /// The interface for those that were never heard; 0 is none.
    first: u32,
}

impl Links {
    /// By which interface a peer is reached.
    pub(crate) fn find(&self, peer: Ipv6Addr) -> u32 {
        self.of.get(&peer).copied().unwrap_or(self.first)
    }

    /// A peer is reached by this interface. Returns whether that is another one than before.
    pub(crate) fn learn(&mut self, peer: Ipv6Addr, interface: u32) -> bool {
        if self.of.len() >= PEERS && !self.of.contains_key(&peer) {
            self.of.clear();
        }
        self.of.insert(peer, interface).unwrap_or(self.first) != interface
    }

    /// These interfaces with addresses of IPv6 are there now.
    pub(crate) fn follow<'a>(&mut self, interfaces: impl Iterator<Item = &'a Interface> + Clone) {
        self.first = interfaces.clone().find(|own| !own.loopback).map_or(0, |own| own.index);
        let there: BTreeMap<u32, String> = interfaces.map(|own| (own.index, own.name.clone())).collect();
        for (new, name) in &there {
            // One that is there under another name is another one.
            let same = |(old, called): &(&u32, &String)| *called == name && !there.contains_key(old);
            let before: Vec<u32> = self.names.iter().filter(same).map(|(old, _)| *old).collect();
            let moved = self.of.values_mut().filter(|link| before.contains(link));
            moved.for_each(|link| *link = *new);
        }
        let heard: BTreeSet<u32> = self.of.values().copied().collect();
        self.names.retain(|link, _| heard.contains(link));
        self.names.extend(there);
    }
}

impl Receiver {
    /// A datagram came from there.
    #[inline]
    pub(crate) fn note_link(&mut self, source: &SocketAddrV6) {
        let heard = (*source.ip(), source.scope_id());
        if is_of_link(heard.0.into()) && self.heard.last() != Some(&heard) {
            self.heard.push(heard);
        }
    }
}

impl UdpPort {
    /// Hands on which peers have been heard on which links.
    #[inline]
    pub(crate) fn learn_links(&mut self) {
        if !self.receiver.heard.is_empty() {
            let heard = self.receiver.heard.drain(..);
            heard.for_each(|(peer, link)| self.sender.learn_link(peer, link));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interfaces with an address of the link, by number and name; the one called `lo` is the host itself.
    fn follow(links: &mut Links, interfaces: &[(u32, &str)]) {
        let interfaces: Vec<Interface> = interfaces
            .iter()
            .map(|(index, name)| Interface {
                name: (*name).into(),
                index: *index,
                address: peer(99).into(),
                prefix_len: 64,
                loopback: *name == "lo",
                multicast: true,
            })
            .collect();
        links.follow(interfaces.iter());
    }

    fn peer(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n)
    }

    #[test]
    fn who_was_never_heard_is_reached_by_the_first_interface() {
        let mut links = Links::default();
        follow(&mut links, &[(1, "lo"), (3, "b"), (2, "a")]);
        assert_eq!(links.find(peer(1)), 3);
        assert!(!links.learn(peer(1), 3) && links.learn(peer(1), 2) && !links.learn(peer(1), 2));
        assert_eq!((links.find(peer(1)), links.find(peer(2))), (2, 3));
    }

    #[test]
    fn an_interface_that_is_put_in_again_leads_to_the_same_peers() {
        let mut links = Links::default();
        follow(&mut links, &[(2, "a"), (3, "b")]);
        [(1, 2), (2, 3)].into_iter().for_each(|(n, link)| _ = links.learn(peer(n), link));
        let found = |links: &Links| [links.find(peer(1)), links.find(peer(2))];
        follow(&mut links, &[(2, "a")]);
        assert_eq!(found(&links), [2, 3], "it may come back");
        follow(&mut links, &[(2, "a"), (7, "b")]);
        assert_eq!(found(&links), [2, 7]);
        follow(&mut links, &[(8, "a"), (9, "b")]);
        assert_eq!(found(&links), [8, 9]);
    }

    #[test]
    fn an_interface_stays_the_same_under_another_name() {
        let mut links = Links::default();
        follow(&mut links, &[(2, "a"), (3, "b")]);
        [(1, 2), (2, 3)].into_iter().for_each(|(n, link)| _ = links.learn(peer(n), link));
        follow(&mut links, &[(2, "b"), (3, "a"), (4, "c")]);
        follow(&mut links, &[(2, "d"), (3, "a"), (5, "b")]);
        assert_eq!([links.find(peer(1)), links.find(peer(2))], [2, 3]);
    }

    #[test]
    fn what_is_remembered_has_bounds() {
        let mut links = Links::default();
        for n in 0..=PEERS as u32 {
            links.learn(Ipv6Addr::from(u128::from(n) | 0xfe80 << 112), n);
        }
        assert_eq!(links.of.len(), 1, "the last one");
        for index in 2..100 {
            follow(&mut links, &[(index, &format!("veth{index}"))]);
            links.learn(peer(1), index);
        }
        assert_eq!(links.names.len(), 2, "the one that is there, and the one that was before it");
        follow(&mut links, &[(100, "veth100")]);
        assert_eq!(links.names.len(), 2);
    }
}
