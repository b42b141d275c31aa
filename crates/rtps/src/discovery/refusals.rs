//! Why local endpoints do not match others of their topic. DCPS 1.4 §2.2.3.
//!
//! Owns the reasons: no more than [`limits::REFUSALS`], of which no participant has more than others that have some to tell.
//! Must never copy a list that a peer names. Filled by `matching`, one for each pair.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use taut_base::{EntityId, Guid, GuidPrefix};
use taut_qos::Incompatibility;

use super::{EndpointData, Pair};
use crate::limits;

/// So many of a list of partitions are shown, and so many characters of each: a peer's list can be long, a text for people need
/// not be.
const SHOWN_PARTITIONS: usize = 8;
const SHOWN_CHARACTERS: usize = 64;

/// Why a local endpoint and another one of its topic do not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another type.
    Type {
        /// The local type's name.
        local: String,
        /// The other type's name.
        remote: String,
    },
    /// One of the two has a key, the other has none.
    Key,
    /// No common partition.
    Partition {
        /// The local endpoint.
        local: Arc<EndpointData>,
        /// The other one.
        remote: Arc<EndpointData>,
    },
    /// More of PARTITION would have to be compared than [`taut_qos::MAX_WORK`].
    PartitionTooLong,
    /// QoS policies that contradict each other, each with both values.
    Qos(Vec<Incompatibility>),
}

impl Refusal {
    /// The same as the other endpoint sees it.
    pub(super) fn seen_there(self) -> Refusal {
        match self {
            Refusal::Type { local: remote, remote: local } => Refusal::Type { local, remote },
            Refusal::Partition { local: remote, remote: local } => Refusal::Partition { local, remote },
            of_both => of_both,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What a peer says comes escaped.
            Refusal::Type { local, remote } => {
                write!(f, "type: here {local}, there {}", remote.escape_debug())
            }
            Refusal::Key => f.write_str("key: one side's type has a key, the other's has none"),
            Refusal::Partition { local, remote } => {
                let [local, remote] = [local, remote].map(|data| Partitions(&data.qos.partition));
                write!(f, "partition: here {local}, there {remote}")
            }
            Refusal::PartitionTooLong => {
                f.write_str("partition: the patterns take too long to compare: make them fewer or shorter")
            }
            Refusal::Qos(why) => {
                for (n, policy) in why.iter().enumerate() {
                    write!(f, "{}{policy}", if n == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

struct Partitions<'a>(&'a [String]);

impl fmt::Display for Partitions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().take(SHOWN_PARTITIONS);
        let shown = shown.map(|name| name.chars().take(SHOWN_CHARACTERS).collect::<String>());
        f.debug_list().entries(shown).finish()?;
        match self.0.len().saturating_sub(SHOWN_PARTITIONS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The reasons, by the other endpoint and the local one. *Cost*: each step O(log n), but for [`Refusals::remove_local`].
#[derive(Default)]
pub(super) struct Refusals {
    by_pair: BTreeMap<Pair, Arc<Refusal>>,
    /// How many there are of each participant.
    of_peer: BTreeMap<GuidPrefix, usize>,
    /// The same; who has the most is last.
    by_count: BTreeSet<(usize, GuidPrefix)>,
}

impl Refusals {
    /// Why two endpoints do not match.
    pub fn get(&self, remote: Guid, local: EntityId) -> Option<&Refusal> {
        self.by_pair.get(&(remote, local)).map(|why| &**why)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, Guid, &Refusal)> {
        self.by_pair.iter().map(|((remote, local), why)| (*local, *remote, &**why))
    }

    /// Those behind this pair.
    pub fn behind(&self, pair: Pair) -> impl Iterator<Item = (&Pair, &Arc<Refusal>)> {
        self.by_pair.range((Bound::Excluded(pair), Bound::Unbounded))
    }

    /// Notes a reason, in the place of the pair's earlier one. `false`: there is no room for one more, so that who has the most
    /// gives one up, or this one is not noted if that is of the same participant.
    pub fn insert(&mut self, remote: Guid, local: EntityId, why: Refusal) -> bool {
        if let Some(known) = self.by_pair.get_mut(&(remote, local)) {
            *known = Arc::new(why);
            return true;
        }
        let has_room = self.by_pair.len() < limits::REFUSALS;
        if has_room || self.take_from_most(remote.prefix) {
            self.by_pair.insert((remote, local), Arc::new(why));
            self.recount(remote.prefix, |count| count.saturating_add(1));
        }
        has_room
    }

    /// The participant that has the most gives up one for another one, if that has less with it.
    fn take_from_most(&mut self, prefix: GuidPrefix) -> bool {
        let Some((most, of)) = self.by_count.last().copied() else { return false };
        let count = self.of_peer.get(&prefix).copied().unwrap_or(0);
        if count.saturating_add(1) >= most {
            return false;
        }
        let end = (Guid::new(of, EntityId([u8::MAX; 4])), EntityId([u8::MAX; 4]));
        let last = self.by_pair.range(..=end).next_back().map(|(pair, _)| *pair);
        last.is_some_and(|(remote, local)| self.remove(remote, local))
    }

    /// Two endpoints match, or are no more. Returns whether there was a reason.
    pub fn remove(&mut self, remote: Guid, local: EntityId) -> bool {
        let removed = self.by_pair.remove(&(remote, local)).is_some();
        if removed {
            self.recount(remote.prefix, |count| count.saturating_sub(1));
        }
        removed
    }

    /// An endpoint of a peer is no more.
    pub fn remove_remote(&mut self, remote: Guid) {
        let (first, last) = ((remote, EntityId::UNKNOWN), (remote, EntityId([u8::MAX; 4])));
        let gone: Vec<EntityId> = self.by_pair.range(first..=last).map(|((_, local), _)| *local).collect();
        gone.into_iter().for_each(|local| _ = self.remove(remote, local));
    }

    /// A local endpoint is no more. *Cost*: a look at all.
    pub fn remove_local(&mut self, guid: Guid) {
        let is_of = |(remote, local): &(Guid, EntityId)| *local == guid.entity || *remote == guid;
        let gone: Vec<_> = self.by_pair.keys().copied().filter(is_of).collect();
        gone.into_iter().for_each(|(remote, local)| _ = self.remove(remote, local));
    }

    fn recount(&mut self, prefix: GuidPrefix, to: impl FnOnce(usize) -> usize) {
        let before = self.of_peer.remove(&prefix).unwrap_or(0);
        self.by_count.remove(&(before, prefix));
        let count = to(before);
        if count > 0 {
            self.of_peer.insert(prefix, count);
            self.by_count.insert((count, prefix));
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::EndpointQos;

    use super::*;

    const LOCAL: EntityId = EntityId([0, 0, 1, 3]);

    fn remote(prefix: u8, key: usize) -> Guid {
        Guid::new(GuidPrefix([prefix; 12]), EntityId::user(u32::try_from(key).unwrap(), false, false))
    }

    /// One participant has filled all there is.
    fn full() -> Refusals {
        let mut refusals = Refusals::default();
        (0..limits::REFUSALS).for_each(|key| assert!(refusals.insert(remote(2, key), LOCAL, Refusal::Key)));
        refusals
    }

    fn count(refusals: &Refusals, prefix: u8) -> usize {
        refusals.iter().filter(|(_, remote, _)| remote.prefix == GuidPrefix([prefix; 12])).count()
    }

    #[test]
    fn where_there_is_no_room_a_pair_has_its_last_reason() {
        let mut refusals = full();
        let why = Refusal::Qos(Vec::new());
        assert!(refusals.insert(remote(2, 7), LOCAL, why.clone()));
        assert_eq!(refusals.get(remote(2, 7), LOCAL), Some(&why));
        assert!(!refusals.insert(remote(2, limits::REFUSALS), LOCAL, why), "one more");
        assert_eq!(refusals.get(remote(2, limits::REFUSALS), LOCAL), None);
        assert_eq!(count(&refusals, 2), limits::REFUSALS);
    }

    #[test]
    fn who_has_the_most_leaves_the_others_as_much() {
        let mut refusals = full();
        let share = limits::REFUSALS / 3;
        for (prefix, wanted) in [(1, share + 2), (3, limits::REFUSALS)] {
            (0..wanted).for_each(|key| _ = refusals.insert(remote(prefix, key), LOCAL, Refusal::Key));
        }
        let counts = [1, 2, 3].map(|prefix| count(&refusals, prefix));
        assert_eq!(counts.iter().sum::<usize>(), limits::REFUSALS);
        assert!(counts.iter().all(|count| count.abs_diff(share) <= 2), "{counts:?}");
        // What is gone leaves room.
        (0..share).for_each(|key| refusals.remove_remote(remote(1, key)));
        let left = count(&refusals, 1);
        assert!(refusals.insert(remote(3, limits::REFUSALS), LOCAL, Refusal::Key));
        assert_eq!((left <= 2, refusals.iter().count()), (true, limits::REFUSALS - share + 1));
        refusals.remove_local(Guid::new(GuidPrefix([9; 12]), LOCAL));
        assert!(refusals.by_pair.is_empty() && refusals.of_peer.is_empty() && refusals.by_count.is_empty());
    }

    #[test]
    fn of_a_long_list_some_is_shown() {
        let of = |names: Vec<String>| {
            let qos = EndpointQos { partition: names, ..EndpointQos::default_writer() };
            Arc::new(EndpointData::of(remote(2, 1), "Topic", "Type", qos))
        };
        let (local, remote) = (of(vec!["a\u{1b}".into()]), of(vec!["long ".repeat(50); 256]));
        let text = Refusal::Partition { local, remote }.to_string();
        assert!(text.starts_with(r#"partition: here ["a\u{1b}"], there ["long long"#), "{text}");
        assert!(text.ends_with(r#""] and 248 more"#) && text.len() < 700, "{text}");
    }
}
