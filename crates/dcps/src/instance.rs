//! The instances of a reader and the table of them. DCPS 1.4 §2.2.2.5.1, figure 2.11 (state chart).
//!
//! Owns what is known of an instance beyond its samples: its state, its writers, its owner, its key. Must
//! never decide about samples. Called by the reader cache.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use taut_base::{Duration, Guid, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;

use crate::deadline::Deadlines;
use crate::due::Due;
use crate::list::{Chain, List, NIL, Slab};
use crate::names::Names;
use crate::sample_info::PayloadKind;
use crate::states::{InstanceState, ViewState};
use crate::type_support::KeyOf;

/// Instances of a reader whose RESOURCE_LIMITS name no number. Lower and the state of instances without
/// samples is forgotten early (they come back as NEW), higher and a peer that makes up keys gets more
/// memory: an instance takes 0.3 kB and up to [`MAX_KEY_COPY`] of its key.
pub const DEFAULT_MAX_INSTANCES: usize = 65_536;

/// Payloads up to this size are copied to remember an instance's key; of larger ones the key is taken out. Lower and it
/// is looked for in more samples, higher and an instance takes more memory than its key.
pub const MAX_KEY_COPY: usize = 4_096;

/// Bytes of keys that are longer than that, at which a reader takes no more of them: what the others can take together.
/// Lower and a type with long keys has fewer instances, higher and a peer that makes up keys gets more memory.
pub const MAX_LONG_KEYS: usize = DEFAULT_MAX_INSTANCES * MAX_KEY_COPY;

/// Where a sample stands among those of its instance with DESTINATION_ORDER BY_SOURCE_TIMESTAMP: by
/// time; what is written at the same time has the same order at every reader (DCPS 1.4 §2.2.3.17).
pub(crate) type SourceOrder = (Timestamp, Guid, SequenceNumber);

/// What a key counts for [`MAX_LONG_KEYS`].
fn long_key(key: &Bytes) -> usize {
    if key.len() > MAX_KEY_COPY { key.len() } else { 0 }
}

/// OWNERSHIP EXCLUSIVE: a writer and its strength.
pub(crate) type Owner = (i32, Guid);

/// Does an owner give way to a writer of this strength? Of two that are equally strong to the one with the lower GUID, so
/// that all readers agree (DCPS 1.4 §2.2.3.9.2).
pub(crate) fn yields((best, owner): Owner, writer: Guid, strength: i32) -> bool {
    owner == writer || strength > best || (strength == best && writer < owner)
}

/// An instance without samples is in one of the table's two lists, so that room can be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Idle {
    No,
    Alive,
    NotAlive,
}

/// One instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) handle: InstanceHandle,
    pub(crate) state: InstanceState,
    pub(crate) view: ViewState,
    pub(crate) disposed_generations: u32,
    pub(crate) no_writers_generations: u32,
    /// A payload that holds the key, in a buffer of its own.
    pub(crate) key: Bytes,
    pub(crate) key_kind: PayloadKind,
    /// Its samples, oldest first.
    pub(crate) samples: List,
    /// Those of them that have data.
    pub(crate) data_count: usize,
    /// The newest of those that have none, or [`NIL`].
    pub(crate) marker: u32,
    /// When the time-based filter let the last sample through.
    pub(crate) accepted: Option<Time>,
    /// Where what has come too soon after that [waits](crate::separation::Separation).
    pub(crate) held: Option<u32>,
    /// BY_SOURCE_TIMESTAMP: the latest change that came, and the latest that was taken.
    pub(crate) newest: Option<SourceOrder>,
    pub(crate) taken: Option<SourceOrder>,
    /// Working space of a read or take: the call that last met the instance, and of its selected samples
    /// how many there are and the generation of the last.
    pub(crate) visit: u64,
    pub(crate) selected: u32,
    pub(crate) selected_generation: u32,
    /// Live writers, rising.
    writers: Vec<Guid>,
    /// OWNERSHIP EXCLUSIVE: who is heard.
    owner: Option<Owner>,
    /// When a content filter last kept a sample of its out.
    heard: Option<Time>,
    idle: Idle,
    /// It is counted as one that has ended.
    ended: bool,
}

impl Instance {
    fn new(handle: InstanceHandle) -> Instance {
        Instance {
            handle,
            state: InstanceState::Alive,
            view: ViewState::New,
            disposed_generations: 0,
            no_writers_generations: 0,
            key: Bytes::new(),
            key_kind: PayloadKind::Empty,
            samples: List::EMPTY,
            data_count: 0,
            marker: NIL,
            accepted: None,
            held: None,
            newest: None,
            taken: None,
            visit: 0,
            selected: 0,
            selected_generation: 0,
            writers: Vec::new(),
            owner: None,
            heard: None,
            idle: Idle::No,
            ended: false,
        }
    }

    /// How often it has come back.
    pub(crate) fn generation(&self) -> u32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }

    /// The writer writes the instance. *Cost*: O(log writers); allocates for a new writer only.
    #[inline]
    pub(crate) fn register(&mut self, writer: Guid) {
        if self.writers.first() != Some(&writer) {
            self.register_among(writer);
        }
    }

    #[cold]
    fn register_among(&mut self, writer: Guid) {
        if let Err(place) = self.writers.binary_search(&writer) {
            self.writers.insert(place, writer);
        }
    }

    /// The writer no longer does. `false` if it never did.
    pub(crate) fn unregister(&mut self, writer: Guid) -> bool {
        let found = self.writers.binary_search(&writer);
        if let Ok(place) = found {
            self.writers.remove(place);
        }
        if self.owner.is_some_and(|(_, owner)| owner == writer) {
            self.owner = None;
        }
        found.is_ok()
    }

    /// A sample has missed its deadline of this period then. If the owner has not written all the same, whoever writes next
    /// owns the instance (DCPS 1.4 §2.2.3.9.2).
    pub(crate) fn disown(&mut self, now: Time, period: Duration) {
        if self.heard.is_none_or(|heard| now.since(heard) > period) {
            self.owner = None;
        }
    }

    pub(crate) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// May the writer of this strength be heard? If so it is the owner from now on.
    pub(crate) fn own(&mut self, writer: Guid, strength: i32) -> bool {
        let wins = self.gives_way_to(writer, strength);
        if wins {
            self.owner = Some((strength, writer));
            self.heard = None;
        }
        wins
    }

    /// May it be? It is not yet.
    #[inline]
    pub(crate) fn gives_way_to(&self, writer: Guid, strength: i32) -> bool {
        self.owner.is_none_or(|owner| yields(owner, writer, strength))
    }

    /// Does what this writer says count?
    pub(crate) fn heeds(&self, writer: Guid) -> bool {
        self.owner.is_none_or(|(_, owner)| owner == writer)
    }

    /// A content filter keeps out what a writer of this strength has written then.
    pub(crate) fn hear(&mut self, writer: Guid, strength: i32, came: Time) {
        if self.own(writer, strength) {
            self.heard = Some(came);
        }
    }

    /// The strength of a writer has changed. If it is the owner, the strongest of those that write the instance is from now
    /// on (DCPS 1.4 §2.2.3.9.2); a stronger one that is not takes over by writing.
    pub(crate) fn weigh(&mut self, writer: Guid, strength_of: impl Fn(Guid) -> i32) {
        let is_owner = |(strength, owner)| owner == writer && strength != strength_of(owner);
        if self.owner.is_some_and(is_owner) {
            let writers = self.writers.iter().map(|writer| (strength_of(*writer), *writer));
            self.owner = writers.max_by_key(|(strength, writer)| (*strength, Reverse(*writer)));
            self.heard = self.heard.filter(|_| self.owner.is_some_and(|(_, owner)| owner == writer));
        }
    }

    /// A sample came: an instance that was not alive is born again.
    pub(crate) fn revive(&mut self) {
        match self.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => {
                self.disposed_generations = self.disposed_generations.saturating_add(1);
            }
            InstanceState::NotAliveNoWriters => {
                self.no_writers_generations = self.no_writers_generations.saturating_add(1);
            }
        }
        self.state = InstanceState::Alive;
        self.view = ViewState::New;
    }
}

/// All instances of a reader, by handle and by index.
#[derive(Debug)]
pub(crate) struct InstanceTable {
    by_handle: BTreeMap<InstanceHandle, u32>,
    pub(crate) names: Names,
    /// How to take the key out of a sample.
    pub(crate) key_of: Option<KeyOf>,
    slab: Slab<Instance>,
    idle: Chain,
    idle_alive: List,
    idle_not_alive: List,
    /// How many are not alive.
    ended: usize,
    /// Of how many no more of the key is known than a hash.
    nameless: usize,
    /// Bytes of keys longer than [`MAX_KEY_COPY`].
    long_keys: usize,
    /// When finished instances are purged.
    pub(crate) purge: Due,
    /// When samples that came too soon are to come.
    pub(crate) separations: Due,
    /// When those that are alive are to have their next samples.
    pub(crate) deadlines: Deadlines,
    /// The instance of the last sample: most often also that of the next.
    recent: u32,
    /// RESOURCE_LIMITS max_instances, if there is one.
    limit: Option<usize>,
}

impl InstanceTable {
    pub(crate) fn new(limit: Option<usize>, deadlines: Deadlines) -> InstanceTable {
        InstanceTable {
            by_handle: BTreeMap::new(),
            names: Names::default(),
            key_of: None,
            slab: Slab::new(),
            idle: Chain::default(),
            idle_alive: List::EMPTY,
            idle_not_alive: List::EMPTY,
            ended: 0,
            nameless: 0,
            long_keys: 0,
            purge: Due::default(),
            separations: Due::default(),
            deadlines,
            recent: NIL,
            limit,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// *Cost*: O(log n), O(1) for the instance that came last.
    pub(crate) fn find(&self, handle: InstanceHandle) -> Option<u32> {
        if self.slab.get(self.recent).is_some_and(|recent| recent.handle == handle) {
            return Some(self.recent);
        }
        self.search(handle)
    }

    /// The same instance itself.
    #[inline]
    pub(crate) fn look(&self, handle: InstanceHandle) -> Option<&Instance> {
        match self.slab.get(self.recent) {
            Some(recent) if recent.handle == handle => Some(recent),
            _ => self.slab.get(self.find(handle)?),
        }
    }

    /// The same, to change it. It is likely to be looked for again.
    #[inline]
    pub(crate) fn look_mut(&mut self, handle: InstanceHandle) -> Option<&mut Instance> {
        if self.slab.get(self.recent).is_none_or(|recent| recent.handle != handle) {
            self.recent = self.search(handle)?;
        }
        self.slab.get_mut(self.recent)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, handle: InstanceHandle) -> Option<u32> {
        self.by_handle.get(&handle).copied()
    }

    /// The handle of the instance that a key hash names; the hash itself if it names none.
    pub(crate) fn handle_of(&self, hash: InstanceHandle) -> InstanceHandle {
        if self.find(hash).is_some() {
            return hash;
        }
        self.names.find(hash).map_or(hash, |index| self.slab[index].handle)
    }

    /// The instance is likely to be looked for again.
    pub(crate) fn set_recent(&mut self, index: u32) {
        self.recent = index;
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Instance> {
        self.slab.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Instance> {
        self.slab.get_mut(index)
    }

    /// One above the highest index.
    pub(crate) fn end(&self) -> u32 {
        self.slab.end()
    }

    pub(crate) fn at(&self, index: u32) -> &Instance {
        &self.slab[index]
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Instance {
        &mut self.slab[index]
    }

    /// Calls with each instance.
    pub(crate) fn for_each(&mut self, mut call: impl FnMut(&mut Instance)) {
        let InstanceTable { by_handle, slab, .. } = self;
        by_handle.values().for_each(|index| call(&mut slab[*index]));
    }

    /// The first instance in the order of handles, or the first after `handle`.
    pub(crate) fn next_after(&self, handle: Option<InstanceHandle>) -> Option<u32> {
        let start = handle.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_handle.range((start, Bound::Unbounded)).next().map(|(_, index)| *index)
    }

    /// Would [`InstanceTable::create`] succeed?
    pub(crate) fn has_room(&self) -> bool {
        !self.is_full() || self.spare().is_some()
    }

    fn is_full(&self) -> bool {
        self.len() >= self.limit.unwrap_or(DEFAULT_MAX_INSTANCES) || self.long_keys >= MAX_LONG_KEYS
    }

    /// Is there an instance to give up once its samples are taken?
    pub(crate) fn gets_room_by_take(&self) -> bool {
        self.limit.is_none() || self.ended > 0
    }

    /// The instance to give up for a new one: one without samples that is not alive. If the limit is our
    /// own and not the user's also one that is alive; its next sample makes it NEW again.
    fn spare(&self) -> Option<u32> {
        let alive = if self.limit.is_none() { self.idle_alive.head } else { NIL };
        [self.idle_not_alive.head, alive].into_iter().find(|index| *index != NIL)
    }

    #[cfg(test)]
    pub(crate) fn has_spare(&self) -> bool {
        self.spare().is_some()
    }

    /// Adds an instance that is not there yet. `None` if there is no room.
    pub(crate) fn create(
        &mut self,
        handle: InstanceHandle,
        payload: &Bytes,
        kind: PayloadKind,
    ) -> Option<u32> {
        while self.is_full() {
            let spare = self.spare()?;
            self.remove(spare);
        }
        let index = self.slab.insert(Instance::new(handle));
        self.by_handle.insert(handle, index);
        self.nameless += 1;
        self.set_key(index, payload, kind);
        Some(index)
    }

    /// Is of some instance no more of the key known than a hash?
    pub(crate) fn has_nameless(&self) -> bool {
        self.nameless > 0
    }

    /// An instance of whose key no more than a hash was known has this handle.
    pub(crate) fn rename(&mut self, index: u32, handle: InstanceHandle) {
        let before = std::mem::replace(&mut self.slab[index].handle, handle);
        self.by_handle.remove(&before);
        self.by_handle.insert(handle, index);
    }

    /// And this payload has its key.
    pub(crate) fn set_key(&mut self, index: u32, payload: &Bytes, kind: PayloadKind) {
        let (key, kind) = match (kind, self.key_of) {
            (PayloadKind::Empty, _) => return,
            (PayloadKind::Data, Some(key_of)) if payload.len() > MAX_KEY_COPY => match key_of(payload) {
                Some(key) => (key.into(), PayloadKind::Key),
                None => return,
            },
            _ => (Bytes::copy_from(payload), kind),
        };
        self.long_keys += long_key(&key);
        let instance = &mut self.slab[index];
        (instance.key, instance.key_kind) = (key, kind);
        self.nameless -= 1;
        self.names.add(index, instance);
    }

    /// To be called when an instance's samples, state or writers have changed: one that is finished and
    /// has no samples is forgotten, one that is only without samples may be when room is needed.
    pub(crate) fn settle(&mut self, index: u32) {
        if self.slab.get(index).is_none() {
            return;
        }
        let instance = &mut self.slab[index];
        let ended = instance.state != InstanceState::Alive;
        let had_ended = std::mem::replace(&mut instance.ended, ended);
        self.ended = self.ended + usize::from(ended) - usize::from(had_ended);
        let idle = match instance.state {
            _ if instance.samples.len > 0 || instance.held.is_some() => Idle::No,
            InstanceState::Alive => Idle::Alive,
            _ if instance.has_writers() => Idle::NotAlive,
            _ => return self.remove(index),
        };
        if idle == instance.idle {
            return;
        }
        self.leave_idle(index);
        self.slab[index].idle = idle;
        match idle {
            Idle::No => {}
            Idle::Alive => self.idle.push_back(&mut self.idle_alive, index),
            Idle::NotAlive => self.idle.push_back(&mut self.idle_not_alive, index),
        }
    }

    fn leave_idle(&mut self, index: u32) {
        match self.slab[index].idle {
            Idle::No => {}
            Idle::Alive => self.idle.unlink(&mut self.idle_alive, index),
            Idle::NotAlive => self.idle.unlink(&mut self.idle_not_alive, index),
        }
    }

    fn remove(&mut self, index: u32) {
        self.leave_idle(index);
        self.ended -= usize::from(self.slab[index].ended);
        self.nameless -= usize::from(self.slab[index].key_kind == PayloadKind::Empty);
        self.long_keys -= long_key(&self.slab[index].key);
        self.purge.cancel(index);
        self.separations.cancel(index);
        self.deadlines.end(index);
        self.by_handle.remove(&self.slab[index].handle);
        self.names.remove(&self.slab[index]);
        self.slab.remove(index);
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::DataReaderQos;
    use taut_rtps::history_cache::{CacheChange, ChangeKind};

    use super::*;
    use crate::reader_cache_tests::{change, handle};
    use crate::{Insert, MAX_PAYLOAD_BYTES, ReaderCache, SampleRejectedReason};

    fn long(kind: ChangeKind, instance: u8, len: usize) -> CacheChange {
        CacheChange { payload: vec![instance; len].into(), ..change(kind, 1, instance, 1) }
    }

    fn keyed() -> ReaderCache {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_all(), true);
        cache.instances.key_of = Some(|payload| payload.first().map(|key| vec![*key]));
        cache
    }

    #[test]
    fn an_instance_keeps_the_key_of_a_long_sample_and_not_the_sample() {
        let mut cache = keyed();
        for (instance, len, kept, kind) in
            [(1, MAX_KEY_COPY, MAX_KEY_COPY, PayloadKind::Data), (2, MAX_KEY_COPY + 1, 1, PayloadKind::Key)]
        {
            cache.insert(Time(1), long(ChangeKind::Alive, instance, len), 0, None);
            let (key, found) = cache.key_payload(handle(instance)).unwrap();
            assert_eq!((key.len(), found), (kept, kind));
            assert_eq!(cache.take_next().unwrap().payload.len(), len);
        }
        // So does the sample that tells of its end, whatever is behind the key.
        cache.insert(Time(1), long(ChangeKind::NotAliveDisposed, 2, MAX_KEY_COPY + 1), 0, None);
        let end = cache.take_next().unwrap();
        assert_eq!((&end.payload[..], end.payload_kind), (&[2][..], PayloadKind::Key));
        assert!(!cache.instances.has_nameless());
    }

    #[test]
    fn long_keys_have_a_bound_together() {
        let mut cache = keyed();
        for instance in [1, 2] {
            let end = long(ChangeKind::NotAliveDisposed, instance, MAX_LONG_KEYS / 2);
            assert_eq!(cache.insert(Time(1), end, 0, None), Insert::Stored);
        }
        assert_eq!((cache.instances.has_room(), cache.instances.long_keys), (false, MAX_LONG_KEYS));
        while cache.take_next().is_some() {}
        let another = long(ChangeKind::NotAliveDisposed, 3, MAX_KEY_COPY + 1);
        assert_eq!(cache.insert(Time(1), another, 0, None), Insert::Stored, "one that has ended makes room");
        assert_eq!((cache.instance_count(), cache.instances.long_keys < MAX_LONG_KEYS), (2, true));
    }

    #[test]
    fn ends_of_unknown_instances_count_among_the_bytes() {
        let mut cache = keyed();
        cache.insert(Time(1), change(ChangeKind::Alive, 1, 1, 1), 0, None);
        cache.writer_gone(Time(1), change(ChangeKind::Alive, 2, 1, 1).writer_guid);
        cache.bytes = MAX_PAYLOAD_BYTES;
        let full = Insert::Rejected(SampleRejectedReason::RejectedBySamplesLimit);
        let mut end =
            |instance| cache.insert(Time(2), long(ChangeKind::NotAliveDisposed, instance, 9), 0, None);
        assert_eq!((end(2), end(1)), (full, Insert::Stored));
    }
}
