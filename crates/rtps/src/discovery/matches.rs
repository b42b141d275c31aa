//! Which local endpoint talks to which of another participant: a set that is looked up from both ends.
//!
//! Owns no more than that. What a peer decides the number of is found by the peer's name, never by a look at all.

use std::collections::BTreeSet;
use std::ops::Bound;

use taut_base::{EntityId, Guid, GuidPrefix};

use super::Pair;

/// Pairs of a local and another endpoint. *Cost*: each step O(log n).
#[derive(Default)]
pub(super) struct Matches {
    by_local: BTreeSet<(EntityId, Guid)>,
    by_remote: BTreeSet<(Guid, EntityId)>,
}

impl Matches {
    /// Adds a pair.
    pub fn insert(&mut self, local: EntityId, remote: Guid) {
        self.by_local.insert((local, remote));
        self.by_remote.insert((remote, local));
    }

    /// Removes a pair. Returns whether it was there.
    pub fn remove(&mut self, local: EntityId, remote: Guid) -> bool {
        self.by_remote.remove(&(remote, local));
        self.by_local.remove(&(local, remote))
    }

    /// Is this a pair?
    pub fn contains(&self, local: EntityId, remote: Guid) -> bool {
        self.by_local.contains(&(local, remote))
    }

    /// What a local endpoint is matched with.
    pub fn of_local(&self, local: EntityId) -> impl Iterator<Item = Guid> + '_ {
        self.of_local_behind(local, Guid::UNKNOWN)
    }

    /// The same behind this one.
    pub fn of_local_behind(&self, local: EntityId, behind: Guid) -> impl Iterator<Item = Guid> + '_ {
        let behind = self.by_local.range((Bound::Excluded((local, behind)), Bound::Unbounded));
        behind.take_while(move |(entity, _)| *entity == local).map(|(_, guid)| *guid)
    }

    /// The local endpoints that are matched with another one.
    pub fn of_remote(&self, remote: Guid) -> impl Iterator<Item = EntityId> + '_ {
        let from = (remote, EntityId::UNKNOWN);
        self.by_remote.range(from..).take_while(move |(guid, _)| *guid == remote).map(|(_, local)| *local)
    }

    /// The pairs with endpoints of one participant behind a pair of it.
    pub fn of_peer_after(
        &self,
        prefix: GuidPrefix,
        after: (Guid, EntityId),
    ) -> impl Iterator<Item = (EntityId, Guid)> + '_ {
        let of_peer = self.behind(after).take_while(move |(guid, _)| guid.prefix == prefix);
        of_peer.map(|(remote, local)| (local, remote))
    }

    /// All pairs behind this one, by the other endpoint.
    pub fn behind(&self, pair: Pair) -> impl Iterator<Item = Pair> + '_ {
        self.by_remote.range((Bound::Excluded(pair), Bound::Unbounded)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_find_their_pairs_and_no_others() {
        let local = |key| EntityId::user(key, true, false);
        let remote = |prefix, key| Guid::new(GuidPrefix([prefix; 12]), EntityId::user(key, false, false));
        let mut matches = Matches::default();
        let pairs = [(1, 0, 1), (1, 0, 2), (1, 255, 1), (2, 0, 1), (2, 7, 1)]
            .map(|(l, p, r)| (local(l), remote(p, r)));
        pairs.iter().for_each(|(local, remote)| matches.insert(*local, *remote));
        assert_eq!(matches.of_local(local(1)).count(), 3);
        let behind = |key, guid| matches.of_local_behind(local(key), guid).collect::<Vec<_>>();
        assert_eq!(behind(1, remote(0, 1)), [remote(0, 2), remote(255, 1)]);
        assert_eq!((behind(1, remote(255, 1)), behind(2, remote(0, 1))), (vec![], vec![remote(7, 1)]));
        assert_eq!(matches.of_remote(remote(0, 1)).collect::<Vec<_>>(), [local(1), local(2)]);
        let of_peer =
            |prefix, after| matches.of_peer_after(GuidPrefix([prefix; 12]), after).collect::<Vec<_>>();
        let start = |prefix| (Guid::new(GuidPrefix([prefix; 12]), EntityId::UNKNOWN), EntityId::UNKNOWN);
        assert_eq!(of_peer(255, start(255)), [pairs[2]]);
        assert_eq!(of_peer(0, start(0)), [pairs[0], pairs[3], pairs[1]]);
        assert_eq!(of_peer(0, (remote(0, 1), local(1))), [pairs[3], pairs[1]]);
        assert!(matches.remove(local(1), remote(0, 1)) && !matches.remove(local(1), remote(0, 1)));
        assert!(matches.contains(local(2), remote(0, 1)) && !matches.contains(local(1), remote(0, 1)));
        assert_eq!(matches.of_remote(remote(0, 1)).collect::<Vec<_>>(), [local(2)]);
    }
}
