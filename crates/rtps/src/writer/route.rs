//! Where a fresh change is sent, so that each reader gets it once. RTPS 2.5 §8.4.7.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::Locator;

use super::{ReaderProxy, Writer};

/// When a writer uses the multicast addresses of its readers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MulticastChoice {
    /// Where one multicast datagram takes the place of two or more unicast ones.
    #[default]
    Auto,
    /// Never for user data; discovery still uses it.
    Never,
    /// Wherever a reader announces an address.
    Always,
}

/// The destinations that reach every reader, each once: unicast, or a multicast address where it pays.
///
/// It pays where the readers of a group have two or more addresses, each with its port. Readers of one participant share
/// theirs, so that one datagram serves them all as it is. Two participants have two, on one host, too: one datagram
/// instead of two is half of the work here and on the way, and the host's kernel gives each its copy as it would
/// otherwise. Who is in the group and does not read the topic drops what it gets, at the price of a datagram received.
///
/// A group that is reached by one interface ([`Locator::interface`]) counts by itself; once it goes out by all of them,
/// it is the same group, as nobody is to be reached twice. *Cost*: O(n log n).
// Who sends a writer's liveliness asks for it, and stands on every sample's way.
#[inline(never)]
pub fn cover<'a>(
    readers: impl Iterator<Item = &'a ReaderProxy> + Clone,
    choice: MulticastChoice,
) -> Vec<Locator> {
    let mut route = Distinct::default();
    let mut groups: Vec<(Locator, Distinct)> = Vec::new();
    let mut places: BTreeMap<Locator, usize> = BTreeMap::new();
    for reader in readers {
        let Some(first) = reader.unicast.first().or(reader.multicast.first()) else { continue };
        let Some(group) = reader.multicast.first().filter(|_| choice != MulticastChoice::Never) else {
            route.push(*first);
            continue;
        };
        let place = *places.entry(*group).or_insert(groups.len());
        if place == groups.len() {
            groups.push((*group, Distinct::default()));
        }
        if let Some((_, members)) = groups.get_mut(place) {
            members.push(*first);
        }
    }
    let pays = |members: &Distinct| members.list.len() > 1 || choice == MulticastChoice::Always;
    let is_by_all = |(group, members): &&(Locator, Distinct)| group.interface().is_none() && pays(members);
    let by_all: BTreeSet<Locator> = groups.iter().filter(is_by_all).map(|(group, _)| *group).collect();
    for (group, members) in groups {
        if by_all.contains(&group.by_all()) {
            route.push(group.by_all());
        } else if pays(&members) {
            route.push(group);
        } else {
            members.list.into_iter().for_each(|member| route.push(member));
        }
    }
    route.list
}

impl Writer {
    /// Where fresh changes go, and how large datagrams are there.
    pub(crate) fn route(&self) -> (&[Locator], usize) {
        (&self.route, self.paths.datagram())
    }

    /// Do fresh changes of both go to the same readers' addresses, in datagrams of the same size?
    pub(crate) fn shares_route(&self, other: &Writer) -> bool {
        self.route == other.route && self.paths.datagram() == other.paths.datagram()
    }
}

/// Locators in the order in which they came, each once.
#[derive(Default)]
struct Distinct {
    list: Vec<Locator>,
    known: BTreeSet<Locator>,
}

impl Distinct {
    fn push(&mut self, locator: Locator) {
        if self.known.insert(locator) {
            self.list.push(locator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use taut_base::Guid;

    fn unicast(port: u16) -> Locator {
        Locator::udp_v4(Ipv4Addr::LOCALHOST, port)
    }

    const GROUP: Locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7401);

    fn reader(port: u16, group: Option<Locator>) -> ReaderProxy {
        ReaderProxy::new(Guid::UNKNOWN, true, vec![unicast(port)], group.into_iter().collect())
    }

    #[test]
    fn many_readers_of_many_addresses_are_covered_once_each() {
        // To look through what there is already for each would be four thousand million comparisons.
        let addresses = || (1..=u16::MAX).chain(1..=u16::MAX);
        let all: Vec<Locator> = (1..=u16::MAX).map(unicast).collect();
        let alone: Vec<_> = addresses().map(|port| reader(port, None)).collect();
        assert!(cover(alone.iter(), MulticastChoice::Auto) == all);
        let group = |port| Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 2), port);
        let own: Vec<_> = addresses().map(|port| reader(port, Some(group(port)))).collect();
        assert!(cover(own.iter(), MulticastChoice::Auto) == all);
    }

    #[test]
    fn a_group_goes_by_the_interfaces_of_its_readers() {
        let by = |n| Some(GROUP.by(Ipv4Addr::new(10, 0, n, 1)));
        let left = [reader(1, by(1)), reader(2, by(1))];
        let cover = |more: &[ReaderProxy], choice| cover(left.iter().chain(more), choice);
        assert_eq!(cover(&[], MulticastChoice::Auto), [by(1).unwrap()]);
        let right = [reader(3, by(2))];
        assert_eq!(cover(&right, MulticastChoice::Auto), [by(1).unwrap(), unicast(3)]);
        assert_eq!(cover(&right, MulticastChoice::Always), [by(1).unwrap(), by(2).unwrap()]);
        let both = [reader(3, by(2)), reader(4, by(2))];
        assert_eq!(cover(&both, MulticastChoice::Auto), [by(1).unwrap(), by(2).unwrap()]);
        let anywhere = [reader(3, Some(GROUP)), reader(4, by(2)), reader(5, Some(GROUP))];
        assert_eq!(cover(&anywhere[..2], MulticastChoice::Auto), [by(1).unwrap(), unicast(3), unicast(4)]);
        assert_eq!(cover(&anywhere, MulticastChoice::Auto), [GROUP], "nobody gets it twice");
    }

    #[test]
    fn multicast_where_it_pays() {
        let one = [reader(1, Some(GROUP)), reader(1, Some(GROUP))];
        assert_eq!(cover(one.iter(), MulticastChoice::Auto), [unicast(1)], "one participant");
        assert_eq!(cover(one.iter(), MulticastChoice::Always), [GROUP]);
        let two = [reader(1, Some(GROUP)), reader(2, Some(GROUP)), reader(3, None)];
        assert_eq!(cover(two.iter(), MulticastChoice::Auto), [unicast(3), GROUP]);
        let host = |n| Locator::udp_v4(Ipv4Addr::new(10, 0, 0, n), 7411);
        let of = |n| ReaderProxy::new(Guid::UNKNOWN, true, vec![host(n)], vec![GROUP]);
        assert_eq!(cover([of(1), of(2)].iter(), MulticastChoice::Auto), [GROUP], "two hosts");
        assert_eq!(cover(two[..2].iter(), MulticastChoice::Auto), [GROUP], "two participants of one host");
        let never = cover(two.iter(), MulticastChoice::Never);
        assert_eq!(never, [unicast(1), unicast(2), unicast(3)]);
    }
}
