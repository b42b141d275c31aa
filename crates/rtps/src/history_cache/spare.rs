//! What a KEEP_LAST history gives up. One that late joiners get: without RESOURCE_LIMITS max_samples instances that its writer
//! has disposed of and unregistered, once all have heard so; with it more, for others' sake. Any: of very many that have ended
//! the first, though not all have heard so. DCPS 1.4 §2.2.2.4.2.7, §2.2.2.4.2.11, §2.2.3.5, §2.2.3.19.
//!
//! At max_samples any instance gives its older changes, as long as one remains for it; one that is unregistered gives all.
//! What is given up goes as what KEEP_LAST no longer keeps does: it may have to be sent first, and counts no more. Must
//! never give up the last change of an instance that its writer has not unregistered, nor, but of very many, that it has before
//! all have heard so.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::{InstanceHandle, SequenceNumber};

use super::{ChangeKind, HistoryCache};
use crate::limits;

/// The changes that may be given up, with their instances, and how many are kept. *Cost*: O(log n) for each change; without
/// max_samples O(1), but O(log n) for one that ends an instance.
pub(super) struct Spare {
    /// RESOURCE_LIMITS max_samples; `usize::MAX` if there is none.
    most: usize,
    /// Of an instance that is unregistered only, the last state holds.
    keeps_undisposed: bool,
    /// Changes that are held and not only to be sent.
    kept: usize,
    /// Those that another one of their instance follows, where there is a limit.
    older: BTreeMap<SequenceNumber, InstanceHandle>,
    /// Those by which an instance has ended, and that none follows.
    ended: BTreeMap<SequenceNumber, InstanceHandle>,
    /// Of those that are given up, what not all have heard yet. It counts no more, and is no more than is kept: a
    /// reader that has missed it would know its instance as alive for good.
    owed: BTreeSet<SequenceNumber>,
}

impl Spare {
    /// An instance has this newest change, after one that may be held.
    pub fn note(
        &mut self,
        instance: InstanceHandle,
        number: SequenceNumber,
        kind: ChangeKind,
        before: Option<SequenceNumber>,
    ) {
        self.kept = self.kept.saturating_add(1);
        if let Some(before) = before {
            self.ended.remove(&before);
            if self.most < usize::MAX {
                self.older.insert(before, instance);
            }
        }
        let is_disposed = kind == ChangeKind::NotAliveDisposedUnregistered;
        if kind.unregisters() && (is_disposed || !self.keeps_undisposed) {
            self.ended.insert(number, instance);
        }
    }

    /// One of those that are kept is so no longer.
    pub fn forget(&mut self, number: SequenceNumber) {
        self.kept = self.kept.saturating_sub(1);
        self.older.remove(&number);
        self.ended.remove(&number);
    }

    /// The instance whose end came first, if all that have what is up to `acked` have heard it.
    fn heard(&self, acked: SequenceNumber) -> Option<InstanceHandle> {
        self.ended.first_key_value().filter(|(end, _)| **end <= acked).map(|(_, of)| *of)
    }
}

impl HistoryCache {
    /// From now on, before its first change, a KEEP_LAST history keeps at most so many changes; without a limit it forgets what
    /// has ended. `is_durable`: for late joiners.
    pub(crate) fn limit(&mut self, max_samples: usize, is_durable: bool) {
        self.depth = self.depth.map(|depth| depth.min(max_samples));
        if self.counted {
            let keeps_undisposed = is_durable && max_samples == usize::MAX;
            let (older, ended, owed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
            self.spare = Some(Spare { most: max_samples, keeps_undisposed, kept: 0, older, ended, owed });
        }
    }

    /// Of more instances that have ended than [`limits::ENDED`] those go that did so first, whoever has not heard it. *Cost*:
    /// O(log n) for each of their changes.
    #[cold]
    pub(crate) fn bound_ended(&mut self) {
        while let Some(spare) = self.spare.as_ref().filter(|spare| spare.ended.len() > limits::ENDED)
            && let Some((_, of)) = spare.ended.first_key_value()
        {
            self.give_up_first_of(*of, SequenceNumber(i64::MAX));
        }
    }

    /// Has an instance ended that is still held and needs no room to be forgotten for, and has who has all up to `acked` heard so?
    #[inline]
    pub(crate) fn has_ended(&self, acked: SequenceNumber) -> bool {
        self.spare.as_ref().is_some_and(|spare| spare.most == usize::MAX && spare.heard(acked).is_some())
    }

    /// All have heard what is up to `acked`: instances that have ended by then are gone. Of all their changes it drops no more
    /// than [`limits::FORGOTTEN`], and what is more the next time. *Cost*: O(log n) for each of them.
    #[cold]
    pub(crate) fn forget_ended(&mut self, acked: SequenceNumber) {
        for _ in 0..limits::FORGOTTEN {
            // The end is the last of its instance.
            let Some(ended) = self.spare.as_ref().and_then(|spare| spare.heard(acked)) else { break };
            self.give_up_first_of(ended, acked);
        }
    }

    /// May one more change of an instance be kept? What that takes is given up. All readers have acknowledged what is up to
    /// `acked`.
    pub(crate) fn make_room(&mut self, instance: InstanceHandle, acked: SequenceNumber) -> bool {
        self.let_go_of_heard(acked);
        while let Some(spare) = &self.spare {
            // At its depth the instance makes room itself.
            let replaces = self.depth.is_some_and(|depth| self.len_of(instance) >= depth);
            let kept = spare.kept.saturating_add(usize::from(!replaces));
            if kept <= spare.most {
                break;
            }
            if !self.give_up_one(instance, acked) {
                return replaces;
            }
        }
        true
    }

    /// For the sake of an instance: what has ended, else what is oldest, else its own last one. That an instance has ended
    /// not all may have heard: it goes last.
    fn give_up_one(&mut self, instance: InstanceHandle, acked: SequenceNumber) -> bool {
        let Some(Spare { older, ended, .. }) = &self.spare else { return false };
        let oldest = older.first_key_value().map(|(_, of)| *of);
        let end = ended.first_key_value().map(|(number, of)| (*number, *of));
        let heard = end.filter(|(number, _)| *number <= acked);
        // The oldest of all that are followed is the first of its instance.
        if heard.is_none() && (oldest.is_some() || self.len_of(instance) > 0) {
            return self.give_up_first_of(oldest.unwrap_or(instance), acked);
        }
        let Some((_, ended)) = end else { return false };
        // None of it without its end: it would seem to be alive.
        while self.give_up_first_of(ended, acked) {}
        self.let_go_of_heard(acked);
        true
    }

    /// Ends that all have heard by now are held no longer, nor are more of the others than changes may be kept.
    fn let_go_of_heard(&mut self, acked: SequenceNumber) {
        let Some(Spare { owed, most, .. }) = &mut self.spare else { return };
        while let Some(first) = owed.first().copied()
            && (first <= acked || owed.len() > *most)
        {
            owed.pop_first();
            self.over.push_back(first);
        }
    }

    fn give_up_first_of(&mut self, instance: InstanceHandle, acked: SequenceNumber) -> bool {
        let Some(numbers) = self.instances.get_mut(&instance) else { return false };
        let Some(first) = numbers.pop_front() else { return false };
        if numbers.is_empty() {
            self.unused.extend(self.instances.remove(&instance));
        }
        match self.spare.as_mut().filter(|spare| first > acked && spare.ended.contains_key(&first)) {
            Some(spare) => _ = spare.owed.insert(first),
            None => self.over.push_back(first),
        }
        if let Some(spare) = &mut self.spare {
            spare.forget(first);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use taut_base::Rng;
    use taut_qos::History;

    use super::*;
    use crate::history_cache::CacheChange;
    use crate::history_cache::tests::{change, put};

    const ALL: SequenceNumber = SequenceNumber(i64::MAX);

    fn handle(instance: u8) -> InstanceHandle {
        InstanceHandle([instance; 16])
    }

    struct Rig {
        cache: HistoryCache,
        last: i64,
        acked: SequenceNumber,
    }

    impl Rig {
        fn new(depth: u32, most: usize) -> Rig {
            let mut cache = HistoryCache::new(History::KeepLast(depth), true);
            cache.limit(most, true);
            Rig { cache, last: 0, acked: ALL }
        }

        fn put(&mut self, instance: u8, kind: ChangeKind) -> bool {
            let has_room = self.cache.make_room(handle(instance), self.acked);
            if has_room || kind.unregisters() {
                self.last += 1;
                put(&mut self.cache, CacheChange { kind, ..change(self.last, instance) });
            }
            self.cache.evict(ALL);
            has_room
        }

        fn numbers(&self) -> Vec<i64> {
            self.cache.from(SequenceNumber(0)).map(|change| change.sequence_number.0).collect()
        }
    }

    #[test]
    fn older_ones_of_any_instance_make_room_and_the_last_of_each_stays() {
        let mut rig = Rig::new(3, 4);
        [1, 1, 1, 1, 2, 2].iter().for_each(|of| assert!(rig.put(*of, ChangeKind::Alive)));
        assert_eq!(rig.numbers(), [3, 4, 5, 6]);
        [3, 4].iter().for_each(|of| assert!(rig.put(*of, ChangeKind::Alive)));
        assert_eq!(rig.numbers(), [4, 6, 7, 8]);
        assert!(!rig.put(5, ChangeKind::Alive) && !rig.put(5, ChangeKind::NotAliveDisposed));
        assert!(rig.put(1, ChangeKind::NotAliveDisposed), "its own last one makes room");
        assert_eq!(rig.numbers(), [6, 7, 8, 9]);
        assert!(!rig.put(5, ChangeKind::Alive), "it may be written again");
    }

    #[test]
    fn what_has_ended_makes_room_as_a_whole() {
        let mut rig = Rig::new(2, 4);
        [1, 2, 3].iter().for_each(|of| assert!(rig.put(*of, ChangeKind::Alive)));
        assert!(rig.put(2, ChangeKind::NotAliveUnregistered));
        assert!(rig.put(3, ChangeKind::Alive));
        assert_eq!(rig.numbers(), [1, 3, 5], "both of the one that has ended");
        // Not all have heard the next end: others go before it.
        rig.acked = SequenceNumber(5);
        assert!(rig.put(1, ChangeKind::NotAliveDisposedUnregistered));
        assert!(rig.put(4, ChangeKind::Alive));
        assert_eq!(rig.numbers(), [3, 5, 6, 7]);
        [5, 6].iter().for_each(|of| assert!(rig.put(*of, ChangeKind::Alive)));
        assert_eq!(rig.numbers(), [5, 6, 7, 8, 9], "and then it only waits to be heard");
        rig.acked = SequenceNumber(6);
        assert!(rig.put(6, ChangeKind::Alive));
        assert_eq!(rig.numbers(), [5, 7, 8, 10]);
        rig.acked = ALL;
        assert!(!rig.put(7, ChangeKind::Alive));
        assert!(!rig.put(7, ChangeKind::NotAliveUnregistered), "but an end is always told");
        assert_eq!(rig.numbers(), [5, 7, 8, 10, 11]);
        assert!(!rig.put(8, ChangeKind::Alive));
        assert_eq!(rig.numbers(), [5, 7, 8, 10], "and is the first to go");
    }

    #[test]
    fn no_more_ends_wait_to_be_heard_than_samples_are_kept() {
        let mut rig = Rig::new(1, 2);
        rig.acked = SequenceNumber(0);
        [1, 2].iter().for_each(|of| assert!(rig.put(*of, ChangeKind::Alive)));
        for of in 3..10 {
            assert!(!rig.put(of, ChangeKind::NotAliveUnregistered), "it is told all the same");
        }
        assert_eq!(rig.numbers(), [1, 2, 7, 8, 9], "two that wait, and the last one");
        rig.acked = SequenceNumber(8);
        assert!(rig.put(1, ChangeKind::Alive));
        assert_eq!(rig.numbers(), [2, 9, 10], "the others were heard, and the last one waits");
    }

    #[test]
    fn what_is_kept_is_what_instances_have() {
        let (mut rng, mut refused) = (Rng::new(7), 0);
        for _ in 0..200 {
            let (depth, most) = (1 + rng.below(3) as u32, 3 + rng.below(5) as usize);
            let mut rig = Rig::new(depth, most);
            let mut newest = std::collections::BTreeMap::new();
            rig.acked = SequenceNumber(0);
            for _ in 0..100 {
                let kind = match rng.below(8) {
                    0 => ChangeKind::NotAliveUnregistered,
                    1 => ChangeKind::NotAliveDisposed,
                    _ => ChangeKind::Alive,
                };
                let instance = rng.below(9) as u8;
                rig.acked = rig.acked.max(SequenceNumber(rig.last - rng.below(4) as i64));
                let has_room = rig.put(instance, kind);
                if has_room || kind.unregisters() {
                    newest.insert(instance, (rig.last, kind));
                }
                refused += usize::from(!has_room);
                if rng.chance(50)
                    && let Some(first) = rig.cache.first()
                {
                    rig.cache.remove(first);
                    newest.retain(|_, (number, _)| *number != first.0);
                }
                if rng.chance(50) {
                    rig.cache.forget_ended(rig.acked);
                    rig.cache.evict(ALL);
                    let is_left = |spare: &Spare| spare.heard(rig.acked).is_some();
                    assert!(!rig.cache.spare.as_ref().is_some_and(is_left));
                }
                let held = rig.numbers();
                let Some(spare) = &rig.cache.spare else { panic!("it has no limit") };
                let owed: Vec<i64> =
                    spare.owed.iter().map(|number| number.0).filter(|n| held.contains(n)).collect();
                let kept = held.len() - owed.len();
                assert!(kept <= most && owed.len() <= most || kind.unregisters(), "{held:?}");
                let has_room_for_ends = spare.owed.len() < most;
                for (number, kind) in newest.values() {
                    let is_heard = *number <= rig.acked.0 || !has_room_for_ends;
                    assert!(kind.unregisters() && is_heard || held.contains(number), "{number} of {held:?}");
                }
                let of_instances = rig.cache.instances.values().map(VecDeque::len);
                assert_eq!((spare.kept, of_instances.sum()), (kept, kept));
                let mut numbers = spare.older.keys().chain(spare.ended.keys());
                assert!(numbers.all(|number| held.contains(&number.0)));
            }
        }
        assert!(refused > 1_000, "{refused}");
    }
}
