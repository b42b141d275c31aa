//! Changes and the writer's cache of them. RTPS 2.5 §8.2.2, §8.2.3, §8.4.7.
//!
//! Owns the changes of one writer, in the order of their numbers. Never sends, never waits.

mod ring;
mod spare;

use std::collections::{BTreeMap, VecDeque};

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;
use taut_qos::History;

use crate::limits;

use spare::Spare;

pub use ring::Ring;

/// What a change does to its instance. *Source*: RTPS 2.5 §8.2.3 ChangeKind_t, §9.6.4.9 StatusInfo_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// New data.
    Alive,
    /// The instance is disposed; the payload, if any, is its serialized key.
    NotAliveDisposed,
    /// The writer has unregistered the instance.
    NotAliveUnregistered,
    /// Both at once.
    NotAliveDisposedUnregistered,
    /// New data, and the instance is disposed of right after them, as by `dds_writedispose` of Cyclone DDS. Taut's writers
    /// write none of this kind and of those below.
    AliveThenDisposed,
    /// New data, the last that the writer has of the instance.
    AliveThenUnregistered,
    /// New data, then both at once.
    AliveThenDisposedUnregistered,
}

impl ChangeKind {
    /// The StatusInfo_t bits: disposed 1, unregistered 2.
    pub fn status_info(self) -> u32 {
        match self {
            ChangeKind::Alive => 0,
            ChangeKind::NotAliveDisposed | ChangeKind::AliveThenDisposed => 1,
            ChangeKind::NotAliveUnregistered | ChangeKind::AliveThenUnregistered => 2,
            ChangeKind::NotAliveDisposedUnregistered | ChangeKind::AliveThenDisposedUnregistered => 3,
        }
    }

    /// Does its writer not write the instance any more?
    pub(crate) fn unregisters(self) -> bool {
        self.status_info() & 2 != 0
    }

    /// Is a payload that is not empty data, rather than a key?
    pub fn has_data(self) -> bool {
        self == ChangeKind::Alive || self != self.end()
    }

    /// The same without new data: what is left for the instance once they have come.
    pub fn end(self) -> ChangeKind {
        ChangeKind::from_status_info(self.status_info())
    }

    /// The same with new data before it.
    pub(crate) fn after_data(self) -> ChangeKind {
        match self.end() {
            ChangeKind::Alive => ChangeKind::Alive,
            ChangeKind::NotAliveDisposed => ChangeKind::AliveThenDisposed,
            ChangeKind::NotAliveUnregistered => ChangeKind::AliveThenUnregistered,
            _ => ChangeKind::AliveThenDisposedUnregistered,
        }
    }

    /// From the StatusInfo_t bits.
    #[inline]
    pub fn from_status_info(bits: u32) -> ChangeKind {
        // Most often, and known without a jump through a table.
        if bits & 3 == 0 {
            return ChangeKind::Alive;
        }
        match bits & 3 {
            1 => ChangeKind::NotAliveDisposed,
            2 => ChangeKind::NotAliveUnregistered,
            _ => ChangeKind::NotAliveDisposedUnregistered,
        }
    }
}

/// One change of one writer.
#[derive(Clone, Debug)]
pub struct CacheChange {
    /// What it does.
    pub kind: ChangeKind,
    /// Who wrote it.
    pub writer_guid: Guid,
    /// Its number in that writer's order.
    pub sequence_number: SequenceNumber,
    /// The instance, if it is known: on the wire a key hash is optional.
    pub instance: Option<InstanceHandle>,
    /// The writer's clock at the write; `None` if no INFO_TS came with it.
    pub source_timestamp: Option<Timestamp>,
    /// This side's clock at the arrival (a reader's change) or at the write (a writer's).
    pub time: Time,
    /// Encapsulation header and serialized data, or the serialized key if `kind` [has no data](ChangeKind::has_data).
    pub payload: Bytes,
}

impl CacheChange {
    /// Becomes another change, of whose payload what is left is to be dropped.
    #[inline(always)]
    pub fn take_over(&mut self, from: &mut CacheChange) {
        // All that there is of a change: what is left out here would be that of another one.
        let CacheChange { kind, writer_guid, sequence_number, instance, source_timestamp, time, payload } =
            from;
        self.payload.take_over(payload);
        self.kind = *kind;
        self.writer_guid = *writer_guid;
        self.sequence_number = *sequence_number;
        self.instance = *instance;
        self.source_timestamp = *source_timestamp;
        self.time = *time;
    }

    /// Is it held? One that was removed from the middle leaves its number, without its payload and a time, until it reaches
    /// the front, or until such entries outnumber the others.
    #[inline]
    fn is_held(&self) -> bool {
        self.time != Time::NEVER
    }

    /// Returns the payload.
    fn leave(&mut self) -> Bytes {
        self.time = Time::NEVER;
        std::mem::take(&mut self.payload)
    }
}

/// Above all numbers.
const NONE: SequenceNumber = SequenceNumber(i64::MAX);

/// A writer's changes, by number. *Cost*: insert O(1), or O(log n) with KEEP_LAST on a keyed topic;
/// get O(log n); no allocation once warm, but for more instances at a time than before.
pub struct HistoryCache {
    entries: Ring,
    /// The lowest number held; above all others if none is.
    first: SequenceNumber,
    live: usize,
    live_bytes: usize,
    /// Per instance the numbers it still has, oldest first; only kept where something needs it.
    instances: BTreeMap<InstanceHandle, VecDeque<SequenceNumber>>,
    /// Those of instances that have none left, for the next ones: as many as have had some at a time.
    unused: Vec<VecDeque<SequenceNumber>>,
    /// Numbers that KEEP_LAST no longer keeps on a keyed topic, and that may have to be sent first.
    over: VecDeque<SequenceNumber>,
    /// KEEP_LAST's depth.
    depth: Option<usize>,
    keyed: bool,
    /// Are the changes of each instance counted?
    counted: bool,
    /// Instances that have ended may go, and max_samples may bound all together.
    spare: Option<Spare>,
}

impl HistoryCache {
    /// An empty cache.
    pub fn new(history: History, keyed: bool) -> HistoryCache {
        let depth = match history {
            History::KeepLast(depth) => Some(depth.max(1) as usize),
            History::KeepAll => None,
        };
        HistoryCache {
            entries: Ring::default(),
            first: NONE,
            live: 0,
            live_bytes: 0,
            instances: BTreeMap::new(),
            unused: Vec::new(),
            over: VecDeque::new(),
            depth,
            keyed,
            counted: keyed && depth.is_some(),
            spare: None,
        }
    }

    /// From now on the changes of each instance are counted, on a topic with a key.
    pub(crate) fn count_instances(&mut self) {
        self.counted = self.keyed;
    }

    /// How many changes of an instance are held, if they are counted.
    pub(crate) fn len_of(&self, instance: InstanceHandle) -> usize {
        self.instances.get(&instance).map_or(0, VecDeque::len)
    }

    /// Changes held.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Are none held?
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Payload bytes held.
    pub fn bytes(&self) -> usize {
        self.live_bytes
    }

    /// The lowest number held.
    #[inline]
    pub fn first(&self) -> Option<SequenceNumber> {
        if self.first == NONE { None } else { Some(self.first) }
    }

    /// Adds the newest change: `fill` sets all of it. What KEEP_LAST then no longer keeps goes with [`HistoryCache::evict`].
    #[inline(always)]
    pub fn insert(&mut self, fill: impl FnOnce(&mut CacheChange)) {
        let Some(change) = self.entries.push(fill) else { return };
        let number = change.sequence_number;
        self.live = self.live.saturating_add(1);
        self.live_bytes = self.live_bytes.saturating_add(change.payload.len());
        // Numbers rise.
        self.first = self.first.min(number);
        if self.counted {
            let (kind, instance) = (change.kind, change.instance.unwrap_or_default());
            self.count(number, kind, instance);
        }
    }

    /// An instance has this newest change.
    #[inline(never)]
    fn count(&mut self, number: SequenceNumber, kind: ChangeKind, instance: InstanceHandle) {
        let unused = &mut self.unused;
        let numbers = self.instances.entry(instance).or_insert_with(|| unused.pop().unwrap_or_default());
        let before = numbers.back().copied();
        numbers.push_back(number);
        let is_over = self.depth.is_some_and(|depth| numbers.len() > depth);
        let over = if is_over { numbers.pop_front() } else { None };
        self.over.extend(over);
        if let Some(spare) = &mut self.spare {
            spare.note(instance, number, kind, before);
            over.into_iter().for_each(|over| spare.forget(over));
        }
    }

    /// Drops what KEEP_LAST does not keep, as far as it has been sent: changes that were written faster than
    /// they could be sent are sent once all the same, up to [`limits::UNSENT_CHANGES`] of them.
    #[inline]
    pub fn evict(&mut self, sent: SequenceNumber) {
        let Some(depth) = self.depth else { return };
        if self.keyed {
            self.evict_of_instances(sent);
        } else if self.live > depth {
            self.evict_above(depth, sent);
        }
    }

    #[inline(never)]
    fn evict_of_instances(&mut self, sent: SequenceNumber) {
        while let Some(first) = self.over.front().copied()
            && (first <= sent || self.over.len() > limits::UNSENT_CHANGES)
        {
            self.over.pop_front();
            self.remove_entry(first);
        }
    }

    #[inline(never)]
    fn evict_above(&mut self, depth: usize, sent: SequenceNumber) {
        while self.live > depth
            && let Some(first) = self.first()
            && (first <= sent || self.live > depth.saturating_add(limits::UNSENT_CHANGES))
        {
            self.remove_first();
        }
    }

    /// Drops what KEEP_LAST does not keep, sent or not, but for one change.
    #[cold]
    pub(crate) fn overwrite(&mut self, but: SequenceNumber) {
        let Some(depth) = self.depth else { return };
        if self.keyed {
            let over = std::mem::take(&mut self.over);
            let (kept, gone): (VecDeque<_>, VecDeque<_>) =
                over.into_iter().partition(|number| *number == but);
            self.over = kept;
            return gone.into_iter().for_each(|number| _ = self.remove_entry(number));
        }
        let is_held = self.get(but).is_some();
        while self.live > depth.saturating_add(usize::from(is_held)) {
            let numbers = self.held().map(|change| change.sequence_number);
            let Some(oldest) = numbers.take(2).find(|number| *number != but) else { return };
            self.remove_entry(oldest);
        }
    }

    /// The change of that number, if it is still held.
    pub fn get(&self, number: SequenceNumber) -> Option<&CacheChange> {
        self.entries.get(self.position(number)?).filter(|change| change.is_held())
    }

    /// How many changes below `number` are held, at most, and exactly that where KEEP_ALL leaves no holes.
    /// *Cost*: O(log n).
    pub fn count_before(&self, number: SequenceNumber) -> usize {
        self.entries.partition_point(|change| change.sequence_number < number).min(self.live)
    }

    /// Held changes with numbers from `from` on, rising.
    pub fn from(&self, from: SequenceNumber) -> impl Iterator<Item = &CacheChange> {
        self.entries.from(self.place(from)).filter(|change| change.is_held())
    }

    fn held(&self) -> impl Iterator<Item = &CacheChange> {
        self.entries.from(0).filter(|change| change.is_held())
    }

    /// The first of them. *Cost*: O(1) where no numbers are left out.
    #[inline]
    pub fn first_from(&self, from: SequenceNumber) -> Option<&CacheChange> {
        match self.entries.get(self.likely_place(from)) {
            Some(change) if change.is_held() && change.sequence_number == from => Some(change),
            _ => self.search_from(from),
        }
    }

    #[inline(never)]
    fn search_from(&self, from: SequenceNumber) -> Option<&CacheChange> {
        if self.entries.back()?.sequence_number < from { None } else { self.from(from).next() }
    }

    /// Where a number stands if none is left out.
    #[inline]
    fn likely_place(&self, number: SequenceNumber) -> usize {
        usize::try_from(number.0.wrapping_sub(self.first.0)).unwrap_or(usize::MAX)
    }

    /// Where the first entry stands whose number is no lower.
    fn place(&self, number: SequenceNumber) -> usize {
        let likely = self.likely_place(number);
        match self.entries.get(likely) {
            Some(change) if change.sequence_number == number => likely,
            _ => self.entries.partition_point(|change| change.sequence_number < number),
        }
    }

    /// The number of the last of the `count` oldest changes held, of fewer if there are no more.
    pub fn last_of_oldest(&self, count: usize) -> Option<SequenceNumber> {
        self.held().take(count).last().map(|change| change.sequence_number)
    }

    /// Drops all changes up to and including `number`, of a KEEP_LAST history the first [`limits::FORGOTTEN`] of them: what is
    /// more goes the next time. *Cost*: per change O(1), O(log n) where the changes of each instance are counted.
    #[inline]
    pub fn remove_through(&mut self, number: SequenceNumber) {
        if self.first <= number {
            self.remove_any_through(number);
        }
    }

    #[inline(never)]
    fn remove_any_through(&mut self, number: SequenceNumber) {
        // With KEEP_ALL no more can be acknowledged at once than may be under way, and a write may wait for all of it to go.
        let mut most = if self.depth.is_some() { limits::FORGOTTEN } else { usize::MAX };
        while most > 0
            && let Some(first) = self.first().filter(|first| *first <= number)
        {
            most = most.saturating_sub(1);
            if self.counted {
                self.remove(first);
            } else {
                self.remove_first();
            }
        }
    }

    /// Drops the first change, where no instance counts its changes.
    #[inline]
    fn remove_first(&mut self) {
        let Some(change) = self.entries.pop() else { return };
        self.live = self.live.saturating_sub(1);
        self.live_bytes = self.live_bytes.saturating_sub(change.payload.len());
        change.payload.release();
        self.skip_holes();
    }

    /// What is in front is held.
    #[inline]
    fn skip_holes(&mut self) {
        while self.entries.front().is_some_and(|change| !change.is_held()) {
            self.entries.pop();
        }
        self.first = self.entries.front().map_or(NONE, |change| change.sequence_number);
    }

    /// Drops one change.
    pub fn remove(&mut self, number: SequenceNumber) {
        if let Some(Some(instance)) = self.remove_entry(number)
            && self.counted
            && let Some(numbers) = self.instances.get_mut(&instance)
        {
            // Acknowledged ones go oldest first: a look through all for each would be quadratic.
            let before = numbers.len();
            if numbers.front() == Some(&number) {
                numbers.pop_front();
            } else {
                numbers.retain(|held| *held != number);
            }
            if let Some(spare) = self.spare.as_mut().filter(|_| numbers.len() < before) {
                spare.forget(number);
            }
            if numbers.is_empty() {
                self.unused.extend(self.instances.remove(&instance));
            }
        }
    }

    fn position(&self, number: SequenceNumber) -> Option<usize> {
        let place = self.place(number);
        self.entries.get(place).filter(|change| change.sequence_number == number).map(|_| place)
    }

    /// Returns the instance of what was held.
    fn remove_entry(&mut self, number: SequenceNumber) -> Option<Option<InstanceHandle>> {
        let position = self.position(number)?;
        let change = self.entries.get_mut(position).filter(|change| change.is_held())?;
        let (instance, payload) = (change.instance, change.leave());
        self.live = self.live.saturating_sub(1);
        self.live_bytes = self.live_bytes.saturating_sub(payload.len());
        self.skip_holes();
        // Amortized: each compaction removes more entries than it keeps.
        if self.entries.len() > self.live.saturating_mul(2).saturating_add(64) {
            self.entries.retain(CacheChange::is_held);
        }
        Some(instance)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn change(number: i64, instance: u8) -> CacheChange {
        CacheChange {
            kind: ChangeKind::Alive,
            writer_guid: Guid::UNKNOWN,
            sequence_number: SequenceNumber(number),
            instance: Some(InstanceHandle([instance; 16])),
            source_timestamp: None,
            time: Time(0),
            payload: Bytes::copy_from(&[0; 8]),
        }
    }

    pub(crate) fn put(cache: &mut HistoryCache, mut change: CacheChange) {
        cache.insert(|place| place.take_over(&mut change));
    }

    fn inserted(mut cache: HistoryCache, changes: impl Iterator<Item = (i64, u8)>) -> HistoryCache {
        for (number, instance) in changes {
            put(&mut cache, change(number, instance));
            cache.evict(SequenceNumber(number));
        }
        cache
    }

    fn numbers(cache: &HistoryCache) -> Vec<i64> {
        cache.from(SequenceNumber(0)).map(|change| change.sequence_number.0).collect()
    }

    #[test]
    fn keep_last_without_a_key_counts_all() {
        let cache = HistoryCache::new(History::KeepLast(3), false);
        let cache = inserted(cache, (1..=10).map(|n| (n, n as u8)));
        assert_eq!((numbers(&cache), cache.bytes()), (vec![8, 9, 10], 24));
    }

    #[test]
    fn keep_last_counts_per_instance() {
        let cache = HistoryCache::new(History::KeepLast(1), true);
        let cache = inserted(cache, (1..=1_000).map(|n| (n, if n == 1 { 1 } else { 2 })));
        assert_eq!(numbers(&cache), [1, 1_000]);
        assert!(cache.entries.len() < 80, "holes are compacted: {}", cache.entries.len());
        assert!(cache.get(SequenceNumber(1)).is_some() && cache.get(SequenceNumber(500)).is_none());
    }

    #[test]
    fn a_deep_history_goes_in_parts_and_one_that_keeps_all_at_once() {
        let (most, rest) = (limits::FORGOTTEN, 7);
        for keyed in [false, true] {
            let held = |history, times: usize| {
                let mut cache = HistoryCache::new(history, keyed);
                let last = (2 * most + rest) as i64;
                (1..=last).for_each(|number| put(&mut cache, change(number, number as u8)));
                (0..times).for_each(|_| cache.remove_through(SequenceNumber(last)));
                cache.len()
            };
            let deep = History::KeepLast(1_000_000);
            assert_eq!([1, 2, 3].map(|times| held(deep, times)), [most + rest, rest, 0]);
            assert_eq!(held(History::KeepAll, 1), 0);
        }
    }

    #[test]
    fn what_was_not_sent_stays_for_a_while() {
        for keyed in [false, true] {
            let mut cache = HistoryCache::new(History::KeepLast(1), keyed);
            let kept = limits::UNSENT_CHANGES as i64 + 1;
            for number in 1..=kept {
                put(&mut cache, change(number, 1));
                cache.evict(SequenceNumber(0));
            }
            assert_eq!(cache.len() as i64, kept);
            cache.evict(SequenceNumber(3));
            assert_eq!((cache.first(), cache.len() as i64), (Some(SequenceNumber(4)), kept - 3));
            for number in kept + 1..=kept + 4 {
                put(&mut cache, change(number, 1));
                cache.evict(SequenceNumber(0));
            }
            assert_eq!((cache.first(), cache.len() as i64), (Some(SequenceNumber(5)), kept));
            cache.evict(SequenceNumber(kept + 4));
            assert_eq!(numbers(&cache), [kept + 4]);
        }
    }

    #[test]
    fn changes_of_an_instance_are_counted_whichever_goes_first() {
        let mut cache = HistoryCache::new(History::KeepAll, true);
        cache.count_instances();
        (1..=6).for_each(|n| put(&mut cache, change(n, 1 + (n % 2) as u8)));
        let counts = |cache: &HistoryCache| [1, 2].map(|of| cache.len_of(InstanceHandle([of; 16])));
        cache.remove(SequenceNumber(6));
        assert_eq!(counts(&cache), [2, 3]);
        cache.remove_through(SequenceNumber(3));
        assert_eq!(counts(&cache), [1, 1]);
        cache.remove_through(SequenceNumber(5));
        assert_eq!((counts(&cache), cache.instances.len()), ([0, 0], 0));
    }

    #[test]
    fn instances_without_changes_leave_their_room_to_others() {
        let mut cache = HistoryCache::new(History::KeepLast(2), true);
        for number in 1..=1_000 {
            put(&mut cache, change(number, (number % 100) as u8));
            cache.remove_through(SequenceNumber(number));
        }
        assert_eq!((cache.instances.len(), cache.unused.len()), (0, 1));
    }

    #[test]
    fn removal() {
        let mut cache = HistoryCache::new(History::KeepAll, true);
        (1..=5).for_each(|n| put(&mut cache, change(n, 1)));
        cache.remove_through(SequenceNumber(2));
        cache.remove(SequenceNumber(4));
        assert_eq!((numbers(&cache), cache.len()), (vec![3, 5], 2));
        (6..=8).for_each(|n| put(&mut cache, change(n, 1)));
        cache.remove(SequenceNumber(6));
        cache.remove_through(SequenceNumber(5));
        assert_eq!(
            (cache.first(), cache.len(), cache.bytes()),
            (Some(SequenceNumber(7)), 2, 16),
            "no hole is first"
        );
        cache.remove_through(SequenceNumber(9));
        assert!(cache.is_empty() && cache.first().is_none() && cache.bytes() == 0);
    }
}
