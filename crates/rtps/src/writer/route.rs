//! Where a fresh change is sent, so that each reader gets it once. RTPS 2.5 §8.4.7.

use taut_base::Locator;

use super::ReaderProxy;

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

/// The destinations that reach every reader: unicast, or a multicast address where it pays.
/// Readers of one participant share their addresses, so that one datagram serves them all.
pub fn cover<'a>(
    readers: impl Iterator<Item = &'a ReaderProxy> + Clone,
    choice: MulticastChoice,
) -> Vec<Locator> {
    let mut route: Vec<Locator> = Vec::new();
    let mut groups: Vec<(Locator, Vec<Locator>)> = Vec::new();
    for reader in readers {
        let Some(first) = reader.unicast.first().or(reader.multicast.first()) else { continue };
        let group = reader.multicast.first().filter(|_| choice != MulticastChoice::Never);
        match group {
            None if !route.contains(first) => route.push(*first),
            None => {}
            Some(group) => match groups.iter_mut().find(|(known, _)| known == group) {
                Some((_, members)) if !members.contains(first) => members.push(*first),
                Some(_) => {}
                None => groups.push((*group, vec![*first])),
            },
        }
    }
    for (group, members) in groups {
        if members.len() > 1 || choice == MulticastChoice::Always {
            route.push(group);
        } else {
            route.extend(members.into_iter().filter(|member| !route.contains(member)).collect::<Vec<_>>());
        }
    }
    route
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
    fn multicast_where_it_pays() {
        let one = [reader(1, Some(GROUP)), reader(1, Some(GROUP))];
        assert_eq!(cover(one.iter(), MulticastChoice::Auto), [unicast(1)], "one participant");
        assert_eq!(cover(one.iter(), MulticastChoice::Always), [GROUP]);
        let two = [reader(1, Some(GROUP)), reader(2, Some(GROUP)), reader(3, None)];
        assert_eq!(cover(two.iter(), MulticastChoice::Auto), [unicast(3), GROUP]);
        let never = cover(two.iter(), MulticastChoice::Never);
        assert_eq!(never, [unicast(1), unicast(2), unicast(3)]);
    }
}
