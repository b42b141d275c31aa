//! By which interface peers are reached whose addresses mean something on one link only: the one that the user has named, else
//! the one by which they were heard. A locator has no room for it. RFC 4007 §6.
//!
//! An interface that is pulled out and put in again has another number, and the same name: peers are looked for by that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddrV6};

use crate::interface::is_of_link;
use crate::receive::Receiver;
use crate::{Interface, UdpPort};

/// Peers whose links are remembered, of those that were heard and of those that were named each. Lower forgets peers of a crowded link, higher lets somebody who invents peers fill
/// memory.
const PEERS: usize = 4_096;

/// The links of peers whose addresses are of the link.
#[derive(Default)]
pub(crate) struct Links {
    /// The number of the interface by which each was heard.
    of: BTreeMap<Ipv6Addr, u32>,
    /// The same of those whose link the user has named, which nobody's datagrams change.
    named: BTreeMap<Ipv6Addr, u32>,
    /// What interfaces are called: those that are there, and those by which a peer was reached.
    names: BTreeMap<u32, String>,
    /// The interface for those that were never heard; 0 is none.
    first: u32,
}

impl Links {
    /// By which interface a peer is reached.
    pub(crate) fn find(&self, peer: Ipv6Addr) -> u32 {
        *self.named.get(&peer).or_else(|| self.of.get(&peer)).unwrap_or(&self.first)
    }

    /// A peer was heard by this interface. Returns whether it is reached by another one than before. Where there is no room
    /// another one is forgotten, one beside it: of addresses that are made up in a row that is the one before.
    pub(crate) fn learn(&mut self, peer: Ipv6Addr, interface: u32) -> bool {
        if self.named.contains_key(&peer) {
            return false;
        }
        if self.of.len() >= PEERS && !self.of.contains_key(&peer) {
            let beside = self.of.range(..peer).next_back().or_else(|| self.of.last_key_value());
            if let Some(beside) = beside.map(|(peer, _)| *peer) {
                self.of.remove(&beside);
            }
        }
        self.of.insert(peer, interface).unwrap_or(self.first) != interface
    }

    /// A peer is reached by this interface whatever is heard, as the user says. Returns whether that is another one than
    /// before. More than [`PEERS`] are taken as heard.
    pub(crate) fn name(&mut self, peer: Ipv6Addr, interface: u32) -> bool {
        if self.named.len() >= PEERS && !self.named.contains_key(&peer) {
            return self.learn(peer, interface);
        }
        let before = self.find(peer);
        self.of.remove(&peer);
        self.named.insert(peer, interface);
        before != interface
    }

    /// These interfaces with addresses of IPv6 are there now.
    pub(crate) fn follow<'a>(&mut self, interfaces: impl Iterator<Item = &'a Interface> + Clone) {
        self.first = interfaces.clone().find(|own| !own.loopback).map_or(0, |own| own.index);
        let there: BTreeMap<u32, String> = interfaces.map(|own| (own.index, own.name.clone())).collect();
        for (new, name) in &there {
            // One that is there under another name is another one.
            let same = |(old, called): &(&u32, &String)| *called == name && !there.contains_key(old);
            let before: Vec<u32> = self.names.iter().filter(same).map(|(old, _)| *old).collect();
            let links = self.of.values_mut().chain(self.named.values_mut());
            let moved = links.filter(|link| before.contains(link));
            moved.for_each(|link| *link = *new);
        }
        let led: BTreeSet<u32> = self.of.values().chain(self.named.values()).copied().collect();
        self.names.retain(|link, _| led.contains(link));
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
            heard.for_each(|(peer, link)| self.sender.note_link(peer, |links| links.learn(peer, link)));
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
    fn a_link_that_the_user_has_named_is_not_unlearned() {
        let mut links = Links::default();
        follow(&mut links, &[(2, "a"), (3, "b")]);
        assert!(links.learn(peer(1), 3) && links.name(peer(1), 2), "whatever was heard before");
        assert!(!links.learn(peer(1), 3), "somebody else has the same address on another link");
        assert_eq!(links.find(peer(1)), 2);
        follow(&mut links, &[(3, "b")]);
        follow(&mut links, &[(3, "b"), (7, "a")]);
        assert_eq!(links.find(peer(1)), 7, "put in again");
        assert!(links.name(peer(1), 3) && !links.name(peer(1), 3));
        assert!(!links.name(peer(2), 3), "by the first one, as before");
    }

    #[test]
    fn what_is_remembered_has_bounds() {
        let mut links = Links::default();
        links.name(peer(7), 70);
        let made_up = |n: u32| Ipv6Addr::from(u128::from(n) << 16 | 0xfe80 << 112);
        for n in 1..=2 * PEERS as u32 {
            links.learn(made_up(n), n);
            assert_eq!((links.find(made_up(n)), links.find(peer(7))), (n, 70));
        }
        assert_eq!(links.of.len(), PEERS);
        let kept = |links: &Links| (1..PEERS as u32).filter(|n| links.find(made_up(*n)) == *n).count();
        assert_eq!(
            kept(&links),
            PEERS - 1,
            "of those that are made up in a row each takes the place of the one before"
        );
        links.learn(peer(0), 1);
        assert_eq!(
            (links.find(peer(0)), kept(&links)),
            (1, PEERS - 1),
            "before all of them: the last one gives way"
        );
        for n in 8..8 + PEERS as u16 {
            links.name(peer(n), 80);
        }
        assert_eq!((links.named.len(), links.of.len()), (PEERS, PEERS));
        assert_eq!(links.find(peer(7 + PEERS as u16)), 80, "as one that was heard");
        let mut links = Links::default();
        for index in 2..100 {
            follow(&mut links, &[(index, &format!("veth{index}"))]);
            links.learn(peer(1), index);
        }
        assert_eq!(links.names.len(), 2, "the one that is there, and the one that was before it");
        follow(&mut links, &[(100, "veth100")]);
        assert_eq!(links.names.len(), 2);
    }
}
