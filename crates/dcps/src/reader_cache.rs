//! The reader's cache: which samples are kept, refused, replaced, and what becomes of their instances.
//! DCPS 1.4 §2.2.2.5.1 (states), §2.2.3 (HISTORY, RESOURCE_LIMITS, OWNERSHIP, TIME_BASED_FILTER, LIFESPAN,
//! DESTINATION_ORDER, READER_DATA_LIFECYCLE).
//!
//! Owns the samples of one reader, untyped. Must never read a clock or wait, nor touch the payload's bytes but for the key of
//! a long sample.
//! Sources insert, the application reads and takes (`reader_access`), instances
//! end and come back (`instance_state`), the driver calls the timeouts.

use taut_base::{Duration, InstanceHandle, Time};
use taut_qos::{
    DataReaderQos, DestinationOrderKind, History, OwnershipKind, Presentation, PresentationAccessScopeKind,
    ReaderDataLifecycle,
};
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::deadline::{Deadlines, Missed};
use crate::due::Due;
use crate::fresh::Fresh;
use crate::instance::{InstanceTable, SourceOrder};
use crate::leaving::Leaving;
use crate::list::{Chain, List, NIL, Slab};
use crate::reader_access::Selected;
use crate::sample_info::PayloadKind;
use crate::separation::Separation;
use crate::states::InstanceState;
use crate::status::SampleRejectedReason;
use crate::type_support::ONLY_INSTANCE;
use crate::unheard::Unheard;

/// Samples of a KEEP_ALL reader whose RESOURCE_LIMITS name no number. Lower and writers wait for short
/// pauses of the application, higher and a stalled one costs more memory before they do.
pub const DEFAULT_MAX_SAMPLES: usize = 8_192;

/// Payload bytes at which one reader takes no more. Lower and large samples are refused
/// though the limits in numbers allow them, higher and a writer that is faster than the application can
/// fill the machine.
pub const MAX_PAYLOAD_BYTES: usize = 512 << 20;

/// How many newer samples of an instance an older one may pass on its way to its place with
/// BY_SOURCE_TIMESTAMP; one that would pass more is dropped. Lower loses samples of writers whose paths
/// differ in delay, higher lets a peer whose clock runs backwards cost this many steps per sample.
pub const MAX_REORDER: usize = 64;

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// There is a new sample.
    Stored,
    /// There is a new sample, and HISTORY KEEP_LAST dropped the oldest of its instance for it.
    Replaced,
    /// A limit is reached. Who keeps changes until there is room asks before.
    Rejected(SampleRejectedReason),
    /// The change is of no interest; there is no new sample.
    Ignored(IgnoredReason),
}

/// Why a change is of no interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgnoredReason {
    /// Its LIFESPAN is over.
    Expired,
    /// OWNERSHIP EXCLUSIVE: a stronger writer has the instance.
    NotOwner,
    /// TIME_BASED_FILTER: too soon after the last.
    TooSoon,
    /// BY_SOURCE_TIMESTAMP: newer samples were taken, or are all that HISTORY keeps.
    OutOfOrder,
    /// The end of an instance that is not known.
    UnknownInstance,
    /// The instance's state is as before, or the topic has no key.
    NothingNew,
}

/// One sample in the cache.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) change: CacheChange,
    pub(crate) payload_kind: PayloadKind,
    pub(crate) instance: u32,
    pub(crate) read: bool,
    pub(crate) disposed_generations: u32,
    pub(crate) no_writers_generations: u32,
}

impl Entry {
    pub(crate) fn valid(&self) -> bool {
        self.change.kind == ChangeKind::Alive
    }

    pub(crate) fn generation(&self) -> u32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }
}

/// Where a change stands by its source; `None` if its writer does not say.
pub(crate) fn source_order(change: &CacheChange) -> Option<SourceOrder> {
    Some((change.source_timestamp?, change.writer_guid, change.sequence_number))
}

/// The samples of one DataReader.
///
/// *Cost*: insert and take are O(log instances), for the instance of the last sample O(1); they allocate
/// nothing once the cache has been as full as it gets, but for an instance or a writer of it that is new.
#[derive(Debug)]
pub struct ReaderCache {
    /// What only waits to be taken, and how many may: as many as KEEP_LAST and the limits let one instance have.
    pub(crate) fresh: Fresh,
    pub(crate) most_fresh: usize,
    /// May a sample go past the others? It follows from QoS; told once, as each sample asks.
    pub(crate) passes: bool,
    /// The same for one that a lane hands on, of which nothing is noted.
    hands_on: bool,
    /// Is each sample noted?
    noted: bool,
    /// May samples have a LIFESPAN?
    expiring: bool,
    pub(crate) samples: Slab<Entry>,
    /// All samples in the order of arrival, and those of each instance in its order.
    pub(crate) arrival: Chain,
    pub(crate) all: List,
    pub(crate) in_instance: Chain,
    pub(crate) instances: InstanceTable,
    pub(crate) unread: usize,
    pub(crate) by_source: bool,
    /// PRESENTATION ordered_access over the whole topic.
    pub(crate) ordered: bool,
    /// Working space of read and take.
    pub(crate) selected: Vec<Selected>,
    pub(crate) visits: u64,
    pub(crate) keyed: bool,
    pub(crate) exclusive: bool,
    pub(crate) unheard: Unheard,
    pub(crate) separation: Separation,
    pub(crate) lifecycle: ReaderDataLifecycle,
    /// KEEP_LAST's depth, as far as `max_samples` lets it be reached.
    pub(crate) depth: Option<usize>,
    pub(crate) max_samples: usize,
    max_samples_per_instance: usize,
    lifespans: Due,
    /// Deadlines that were missed and not told yet.
    missed: Missed,
    /// There is a deadline before those that were known, or one was missed.
    pub(crate) alarm: bool,
    /// Samples have come of themselves, and nobody was told.
    pub(crate) surfaced: bool,
    /// Writers that have gone, of which not all instances know it yet.
    pub(crate) leaving: Vec<Leaving>,
    /// There is room that nobody has made by a take.
    pub(crate) freed: bool,
    /// Samples with data, and the bytes of all.
    data_count: usize,
    pub(crate) bytes: usize,
}

impl ReaderCache {
    /// An empty cache for a reader of this QoS, which must be consistent.
    pub fn new(qos: &DataReaderQos, keyed: bool) -> ReaderCache {
        let limit = |limit: Option<u32>| limit.map(|limit| limit as usize);
        let limits = &qos.resource_limits;
        let (depth, default_max) = match qos.history {
            History::KeepLast(depth) => (Some(depth.max(1) as usize), usize::MAX),
            History::KeepAll => (None, DEFAULT_MAX_SAMPLES),
        };
        let (max_samples, max_samples_per_instance) = (
            limit(limits.max_samples).unwrap_or(default_max),
            limit(limits.max_samples_per_instance).unwrap_or(usize::MAX),
        );
        // DCPS 1.4 §2.2.3.18: the newest take the place of the oldest, at whichever limit is reached first.
        let depth = depth.map(|depth| depth.min(max_samples));
        let mut cache = ReaderCache {
            fresh: Fresh::default(),
            most_fresh: depth.unwrap_or(max_samples).min(max_samples_per_instance),
            passes: false,
            hands_on: false,
            noted: false,
            expiring: false,
            samples: Slab::new(),
            arrival: Chain::default(),
            all: List::EMPTY,
            in_instance: Chain::default(),
            instances: InstanceTable::new(limit(limits.max_instances), Deadlines::new(qos.deadline)),
            unread: 0,
            by_source: qos.destination_order == DestinationOrderKind::BySourceTimestamp,
            ordered: false,
            selected: Vec::new(),
            visits: 0,
            keyed,
            exclusive: qos.ownership == OwnershipKind::Exclusive,
            unheard: Unheard::default(),
            separation: Separation::new(qos),
            lifecycle: qos.reader_data_lifecycle,
            depth,
            max_samples,
            max_samples_per_instance,
            lifespans: Due::default(),
            missed: Missed::default(),
            alarm: false,
            surfaced: false,
            leaving: Vec::new(),
            freed: false,
            data_count: 0,
            bytes: 0,
        };
        cache.note_passing();
        cache
    }

    /// May samples be passed on without a look at those that came before them?
    pub(crate) fn note_passing(&mut self) {
        self.passes = !self.exclusive
            && !self.is_leaving()
            && !self.by_source
            && !self.separation.is_on()
            && !self.instances.deadlines.are_on();
        self.hands_on = self.passes && !self.noted && !self.expiring;
    }

    /// From now on no sample goes past it.
    pub(crate) fn note_all(&mut self) {
        self.noted = true;
        self.note_passing();
    }

    /// From now on samples may have a LIFESPAN, or no longer.
    pub(crate) fn set_expiring(&mut self, expiring: bool) {
        self.expiring = expiring;
        self.note_passing();
    }

    /// Does a sample that comes now and is taken at once leave no trace but in its instance?
    pub(crate) fn may_pass(&self) -> bool {
        self.hands_on && self.is_empty()
    }

    /// Takes over the subscriber's PRESENTATION. With ordered access over more than the instance samples
    /// come in the order of arrival; else those of one instance come together (DCPS 1.4 §2.2.2.5.3.8).
    pub fn set_presentation(&mut self, presentation: &Presentation) {
        self.ordered =
            presentation.ordered_access && presentation.access_scope > PresentationAccessScopeKind::Instance;
    }

    /// Takes over the policies that may change in an enabled reader.
    pub fn set_qos(&mut self, qos: &DataReaderQos) {
        self.settle_fresh();
        self.separation.minimum = qos.time_based_filter;
        self.lifecycle = qos.reader_data_lifecycle;
        self.note_passing();
    }

    /// Samples held, with and without data.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.samples.len()
    }

    /// Is nothing held?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples that were not read before.
    pub fn unread_count(&self) -> usize {
        self.fresh.len() + self.unread
    }

    /// Instances that are known.
    pub fn instance_count(&self) -> usize {
        self.instances.len()
    }

    /// Would a sample of this instance be stored?
    pub fn has_room(&mut self, instance: InstanceHandle) -> bool {
        if self.is_full_of_fresh(instance) {
            return false;
        }
        self.settle_fresh();
        self.refusal(self.instances.find(self.known_as(instance))).is_none()
    }

    /// Is a change to wait until there is room for it? `change.instance` is as [`ReaderCache::insert`] wants it.
    pub(crate) fn has_to_wait(&mut self, change: &CacheChange, strength: i32) -> bool {
        if change.kind.has_data() && self.is_full_of_fresh(change.instance.unwrap_or_default()) {
            return true;
        }
        self.settle_fresh();
        let known = self.instances.find(self.handle(change));
        let is_heard = || known.is_none_or(|index| self.is_heard(index, change, strength));
        self.refusal(known).is_some_and(|why| self.waits_for_room(known, change, why) && is_heard())
    }

    /// The same of one for which there is none. One for which only the end of another instance makes room does not wait: its
    /// end would wait behind it, and so would all samples of instances that are known. Nor one that only ends a known instance,
    /// which has its place beside the samples; but what came too soon and waits is to come before. Nor one that will be ignored.
    #[cold]
    fn waits_for_room(&self, known: Option<u32>, change: &CacheChange, why: SampleRejectedReason) -> bool {
        match known {
            None if change.kind == ChangeKind::NotAliveUnregistered => false,
            None => {
                why != SampleRejectedReason::RejectedByInstancesLimit || self.instances.gets_room_by_take()
            }
            Some(index) => change.kind.has_data() || self.instances.at(index).held.is_some(),
        }
    }

    /// Adds a change, in the order of its writer. `change.instance` is the instance on a topic with a key. Its
    /// DEADLINE goes by `change.time`, as does TIME_BASED_FILTER.
    ///
    /// `strength` is its writer's OWNERSHIP_STRENGTH, `expires` the end of its LIFESPAN if it has one.
    pub fn insert(&mut self, now: Time, change: CacheChange, strength: i32, expires: Option<Time>) -> Insert {
        let mut offer = Some(change);
        if expires.is_none()
            && let Some(done) = self.insert_fresh(&mut offer)
        {
            return done;
        }
        self.settle_fresh();
        let Some(change) = offer else { return Insert::Stored };
        if self.separation.is_on() {
            self.end_separations(change.time);
        }
        let (writer, handle) = (change.writer_guid, self.handle(&change));
        if self.is_leaving() {
            self.leave_first(now, handle);
        }
        let done = match change.kind {
            ChangeKind::Alive => self.insert_data(now, change, strength, expires.unwrap_or(Time::NEVER)),
            _ => self.insert_state(now, change, strength),
        };
        if self.is_leaving() {
            self.come_back(writer, handle);
        }
        done
    }

    /// Drops samples whose LIFESPAN is over and instances whose autopurge delay is, and lets those come that have waited
    /// for their separation. To be called before a read or take if [`ReaderCache::next_timeout`] has passed; otherwise it
    /// does nothing.
    pub fn on_timeout(&mut self, now: Time) {
        self.end_separations(now);
        self.forget_old(now, usize::MAX);
    }

    /// The same but for what waits for its separation, and for so many samples and instances at most. Returns how many.
    #[inline]
    pub(crate) fn forget_old(&mut self, now: Time, most: usize) -> usize {
        let grows_old = !(self.lifespans.is_empty() && self.instances.purge.is_empty());
        if grows_old { self.forget_due(now, most) } else { 0 }
    }

    #[inline(never)]
    fn forget_due(&mut self, now: Time, most: usize) -> usize {
        let mut left = most;
        while left > 0
            && let Some(id) = self.lifespans.pop(now)
        {
            let index = self.remove(id);
            self.instances.settle(index);
            left -= 1;
        }
        while left > 0
            && let Some(index) = self.instances.purge.pop(now)
        {
            left -= 1;
            while left > 0 && self.instances.at(index).samples.head != NIL {
                self.remove(self.instances.at(index).samples.head);
                left -= 1;
            }
            if self.instances.at(index).samples.head != NIL {
                self.instances.purge.set(index, now);
            }
            self.instances.settle(index);
        }
        self.freed |= left < most;
        most - left
    }

    /// When to call [`ReaderCache::on_timeout`]; ask again after any call that changes the cache.
    pub fn next_timeout(&self) -> Option<Time> {
        let InstanceTable { purge, separations, .. } = &self.instances;
        [self.lifespans.next(), purge.next(), separations.next()].into_iter().flatten().min()
    }

    /// Is there a time to call it?
    #[inline]
    pub(crate) fn has_timeout(&self) -> bool {
        let InstanceTable { purge, separations, .. } = &self.instances;
        !(self.lifespans.is_empty() && purge.is_empty() && separations.is_empty())
    }

    pub(crate) fn insert_data(
        &mut self,
        now: Time,
        change: CacheChange,
        strength: i32,
        expires: Time,
    ) -> Insert {
        if expires <= now {
            return Insert::Ignored(IgnoredReason::Expired);
        }
        let handle = self.handle(&change);
        let known = self.instances.find(handle);
        let came = change.time;
        if let Some(index) = known {
            self.lapse(index, came);
            if let Some(why) = self.unwanted(index, &change, strength) {
                // Its writer has kept the deadline, and this reader wants no more of it.
                if why == IgnoredReason::TooSoon {
                    self.await_next(index, came);
                    self.hold(index, change, expires);
                }
                return Insert::Ignored(why);
            }
        } else if !self.may_begin(handle, &change, strength) {
            return Insert::Ignored(IgnoredReason::NotOwner);
        }
        if let Some(reason) = self.refusal(known) {
            return Insert::Rejected(reason);
        }
        let Some(index) = known.or_else(|| self.create(handle, &change, strength)) else {
            return Insert::Rejected(SampleRejectedReason::RejectedByInstancesLimit);
        };
        let Some(evicted) = self.accept(came, index, change, expires) else {
            return Insert::Ignored(IgnoredReason::OutOfOrder);
        };
        self.await_next(index, came);
        self.instances.settle(index);
        if evicted == NIL { Insert::Stored } else { Insert::Replaced }
    }

    /// Puts a sample into its place among those of its instance, for which there is room. Returns what KEEP_LAST dropped for
    /// it, or [`NIL`]; `None` if that is the sample itself. The caller settles the instance.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        came: Time,
        index: u32,
        change: CacheChange,
        expires: Time,
    ) -> Option<u32> {
        let before = self.place(index, &change)?;
        self.instances.set_recent(index);
        self.revive(index, &change);
        let id = self.link(index, before, change, PayloadKind::Data);
        self.note_lifespan(id, expires);
        let evicted = self.keep_last(index).unwrap_or(NIL);
        if evicted == id {
            return None;
        }
        if self.separation.is_on() {
            self.instances.at_mut(index).accepted = Some(came);
        }
        Some(evicted)
    }

    #[inline]
    fn note_lifespan(&mut self, id: u32, expires: Time) {
        if expires != Time::NEVER {
            self.alarm |= self.lifespans.next().is_none_or(|next| expires < next);
            self.lifespans.set(id, expires);
        }
    }

    /// A sample of the instance came then: when is the next to come?
    #[inline]
    pub(crate) fn await_next(&mut self, index: u32, came: Time) {
        let deadlines = &mut self.instances.deadlines;
        if deadlines.are_on() {
            let before = deadlines.next();
            deadlines.note(index, came);
            self.alarm |= deadlines.next() < before || before.is_none();
        }
    }

    /// Something of the instance came then: were samples to have come before?
    #[inline]
    pub(crate) fn lapse(&mut self, index: u32, came: Time) {
        let deadlines = &mut self.instances.deadlines;
        if deadlines.are_on() {
            let missed = deadlines.lapse(index, came);
            self.note_missed(came, index, missed);
            self.alarm |= missed > 0;
        }
    }

    fn note_missed(&mut self, now: Time, index: u32, missed: u64) {
        if missed > 0 {
            let period = self.deadline();
            let instance = self.instances.at_mut(index);
            instance.disown(now, period);
            self.missed.count(missed, instance.handle);
        }
    }

    /// Looks which deadlines have been missed, at `budget` instances at most, which it takes from there.
    pub(crate) fn look_at_deadlines(&mut self, now: Time, budget: &mut usize) -> Missed {
        while *budget > 0
            && let Some((index, missed)) = self.instances.deadlines.pop(now)
        {
            *budget -= 1;
            self.note_missed(now, index, missed);
        }
        self.surfaced |= self.go_on_leaving(now, budget);
        std::mem::take(&mut self.missed)
    }

    /// When to look at the deadlines.
    pub(crate) fn next_deadline(&self) -> Time {
        if self.missed.is_any() || self.surfaced || self.separation.lost > 0 || self.is_leaving() {
            return Time::AT_ONCE;
        }
        self.instances.deadlines.next().unwrap_or(Time::NEVER)
    }

    /// DEADLINE, infinite if nobody watches it.
    pub(crate) fn deadline(&self) -> Duration {
        self.instances.deadlines.period()
    }

    /// Why a sample of a known instance is of no interest. Its writer counts as one of the instance's
    /// writers even so.
    fn unwanted(&mut self, index: u32, change: &CacheChange, strength: i32) -> Option<IgnoredReason> {
        let instance = self.instances.at_mut(index);
        instance.register(change.writer_guid);
        if self.exclusive && !instance.own(change.writer_guid, strength) {
            return Some(IgnoredReason::NotOwner);
        }
        if self.by_source
            && let Some(order) = source_order(change)
        {
            let after_the_end = instance.state != InstanceState::Alive && Some(order) < instance.newest;
            if Some(order) < instance.taken || after_the_end {
                return Some(IgnoredReason::OutOfOrder);
            }
        }
        // What brings an instance back is no change of a value that may be left out.
        let is_change = instance.state == InstanceState::Alive;
        let too_soon = |last: Time| is_change && change.time.since(last) < self.separation.minimum;
        // What waits comes before what follows it.
        let waits = instance.held.is_some() || instance.accepted.is_some_and(too_soon);
        waits.then_some(IgnoredReason::TooSoon)
    }

    /// The limit that keeps a sample out, if there is one. Its size does not count, so that who has asked
    /// for room has it: the bytes may pass their limit by one sample.
    #[inline]
    pub(crate) fn refusal(&self, known: Option<u32>) -> Option<SampleRejectedReason> {
        self.refusal_beside(self.bytes, known)
    }

    /// The same for a sample that waits in the cache, so that its octets are there already.
    #[cold]
    pub(crate) fn refusal_of_held(&self, index: u32) -> Option<SampleRejectedReason> {
        self.refusal_beside(0, Some(index))
    }

    fn refusal_beside(&self, bytes: usize, known: Option<u32>) -> Option<SampleRejectedReason> {
        let mut freed = (0, 0);
        match known {
            None if !self.instances.has_room() => {
                return Some(SampleRejectedReason::RejectedByInstancesLimit);
            }
            None => {}
            Some(index) => {
                let instance = self.instances.at(index);
                if self.depth.is_some_and(|depth| instance.data_count >= depth) {
                    freed = (1, self.samples[instance.samples.head].change.payload.len());
                } else if instance.data_count >= self.max_samples_per_instance {
                    return Some(SampleRejectedReason::RejectedBySamplesPerInstanceLimit);
                }
            }
        }
        let (freed_samples, freed_bytes) = freed;
        let bytes = bytes.saturating_sub(freed_bytes);
        let full = self.data_count - freed_samples >= self.max_samples || bytes >= MAX_PAYLOAD_BYTES;
        full.then_some(SampleRejectedReason::RejectedBySamplesLimit)
    }

    pub(crate) fn handle(&self, change: &CacheChange) -> InstanceHandle {
        self.known_as(change.instance.unwrap_or_default())
    }

    #[inline]
    pub(crate) fn known_as(&self, instance: InstanceHandle) -> InstanceHandle {
        if self.keyed { instance } else { ONLY_INSTANCE }
    }

    pub(crate) fn create(
        &mut self,
        handle: InstanceHandle,
        change: &CacheChange,
        strength: i32,
    ) -> Option<u32> {
        let kind = match change.kind {
            _ if !self.keyed || change.payload.is_empty() => PayloadKind::Empty,
            ChangeKind::Alive => PayloadKind::Data,
            _ => PayloadKind::Key,
        };
        let index = self.instances.create(handle, &change.payload, kind)?;
        let instance = self.instances.at_mut(index);
        instance.register(change.writer_guid);
        instance.own(change.writer_guid, strength);
        self.unheard.begin(handle);
        Some(index)
    }

    /// The sample after which a new one of the instance belongs. `None` if that is too far back.
    fn place(&self, index: u32, change: &CacheChange) -> Option<u32> {
        let mut before = self.instances.at(index).samples.tail;
        let Some(order) = source_order(change).filter(|_| self.by_source) else { return Some(before) };
        for _ in 0..MAX_REORDER {
            if before == NIL || source_order(&self.samples[before].change) < Some(order) {
                return Some(before);
            }
            before = self.in_instance.prev(before);
        }
        None
    }

    pub(crate) fn link(
        &mut self,
        index: u32,
        before: u32,
        change: CacheChange,
        payload_kind: PayloadKind,
    ) -> u32 {
        let instance = self.instances.at_mut(index);
        let (size, valid) = (change.payload.len(), change.kind == ChangeKind::Alive);
        let id = self.samples.insert(Entry {
            change,
            payload_kind,
            instance: index,
            read: false,
            disposed_generations: instance.disposed_generations,
            no_writers_generations: instance.no_writers_generations,
        });
        instance.data_count += usize::from(valid);
        let next = if before == NIL { instance.samples.head } else { self.in_instance.next(before) };
        self.in_instance.insert_after(&mut instance.samples, before, id);
        // One that is older than others of its instance has its turn before them.
        let turn = if next == NIL { self.all.tail } else { self.arrival.prev(next) };
        self.arrival.insert_after(&mut self.all, turn, id);
        self.unread += 1;
        self.data_count += usize::from(valid);
        self.bytes += size;
        id
    }

    /// Drops a sample. Gives its instance, which the caller settles.
    pub(crate) fn remove(&mut self, id: u32) -> u32 {
        let entry = &self.samples[id];
        let index = entry.instance;
        let instance = self.instances.at_mut(index);
        instance.data_count -= usize::from(entry.valid());
        if instance.marker == id {
            instance.marker = NIL;
        }
        self.in_instance.unlink(&mut instance.samples, id);
        self.arrival.unlink(&mut self.all, id);
        self.lifespans.cancel(id);
        self.unread -= usize::from(!entry.read);
        self.data_count -= usize::from(entry.valid());
        self.bytes -= entry.change.payload.len();
        self.samples.remove(id);
        index
    }

    /// Drops the oldest sample with data if there are more than KEEP_LAST keeps.
    fn keep_last(&mut self, index: u32) -> Option<u32> {
        let instance = self.instances.at(index);
        self.depth.filter(|depth| instance.data_count > *depth)?;
        let mut id = instance.samples.head;
        // At most one sample of the instance has no data.
        while !self.samples[id].valid() {
            id = self.in_instance.next(id);
        }
        self.remove(id);
        Some(id)
    }
}
