//! The writing end of a writer's lane, in the hands of the thread that has the DataWriter.
//!
//! A sample goes into the lane, for readers of this machine, or through the protocol, for all others and
//! for what finds no room in the lane, or both. While the lane is enough the writer meets nobody: no token,
//! no lock, no system call unless a reader sleeps.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use taut_base::{Error, Guid, Result, SequenceNumber, Time, Timestamp};
use taut_dcps::{Write, cell};
use taut_lock::Mutex;
use taut_mem::Region;
use taut_mem::lane::{Commit, Feedback, INLINE, Lane, LaneWriter, MAX_CELLS, Peer, Slot};
use taut_port_shm::Memory;
use taut_qos::{DataWriterQos, DestinationOrderKind, History};
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{Limit, Link, WriterIndex};

use crate::clock::monotonic_now;
use crate::config::LaneMemory;
use crate::driver::waiting::Spin;
use crate::executor::Inner;
use crate::hooks::to_log;
use crate::lanes::ringer::Ringer;
use crate::sync::AtomicI64;
use crate::write::burst::{Burst, Suspension};
use crate::write::left::Line;
use crate::write::payload::{Payload, Place};
use crate::write::promises::Promise;
use crate::write::slow::Blame;
use crate::write::wakes::{Sleepers, TOGETHER, Wakes};
use crate::write::writes::SHORT;

/// So many changes a KEEP_ALL writer leaves to holders of the token before the protocol has seen the first of them. Lower and it
/// waits where many write at once, higher and more is under way than is allowed where readers fall behind at that moment.
pub(crate) const MOST_LEFT: i64 = 16;
/// Samples that a lane holds. Lower and a writer that is faster than its readers for a moment leaves the
/// lane, higher and what it writes is no longer in the cache when they come: 64 kB.
const CELLS: usize = 512;

/// Addresses that larger samples of one writer may lie at. Memory is taken for them as it is needed; a
/// sample that finds none goes through the protocol.
const ARENA: usize = 1 << 30;
/// The same where there is no shared memory.
const HEAP_ARENA: usize = 64 << 20;

/// The longest memory of another process that is read as a lane: none that this version makes is longer. What it takes
/// by being looked at where it is not there yet is charged to who looks.
pub(crate) const MAX_LANE: u64 = Lane::size(MAX_CELLS, ARENA) as u64;

/// Readers that have gone and still hold samples of a lane; with so many it takes no new ones, whose samples go through
/// the protocol. Each claim of a slot looks through what they hold: higher and who joins and leaves again and again
/// slows writes, lower and readers that keep samples for long are in the way of others.
const LEFT: usize = 64;

/// What becomes of a writer without memory that others can see.
const BY_NETWORK: &str =
    "; a writer without that memory sends to other processes by the network, which is told once";

/// From how many bytes on memory that is taken at once is to be huge pages: one of them.
const HUGE: usize = 2 << 20;

/// What a participant has said of memory that its lanes do not have: it would be the same for each of them.
#[derive(Default)]
pub(crate) struct Told(Mutex<BTreeSet<String>>);

impl Told {
    /// Is it the first refusal of this call? There are no more calls than [`shared_memory`] makes.
    fn is_first(&self, refused: &Error) -> bool {
        let text = refused.to_string();
        // What follows is how much was asked for, and where.
        let call = text.split(' ').next().unwrap_or_default();
        self.0.lock().insert(call.to_owned())
    }
}

/// Memory for a lane that other processes can see, its cells there to be written. What is asked for beyond
/// that and cannot be had is done without; `refused` is why. Returns how much of it is there, too.
fn shared_memory(how: LaneMemory, refused: &mut Vec<Error>) -> Option<(Memory, usize)> {
    let mut tell = |done: Result<()>| refused.extend(done.err());
    let made = Memory::create("lane", Lane::size(CELLS, ARENA));
    let memory = made.map_err(|error| tell(Err(error))).ok()?;
    if how.prefault >= HUGE {
        tell(memory.advise_huge());
    }
    let mut there = Lane::size(CELLS, 0);
    memory.commit(0, there).map_err(|error| tell(Err(error))).ok()?;
    if how.lock {
        tell(memory.lock());
    }
    if how.prefault > 0 {
        let wanted = Lane::size(CELLS, how.prefault.min(ARENA));
        match memory.prefault(0, wanted) {
            Ok(()) => there = wanted,
            refused => tell(refused),
        }
    }
    Some((memory, there))
}

/// Memory for a lane that only this process sees. Where even addresses are few it has its cells alone: a larger sample
/// then finds no place in it.
fn own_memory() -> Region {
    Region::try_heap(Lane::size(CELLS, HEAP_ARENA)).unwrap_or_else(|| Region::heap(Lane::size(CELLS, 0)))
}

/// Where a writer's lane leads: changed by whoever joins readers, looked at by the writer's owner before
/// each write.
#[repr(align(64))]
pub(crate) struct Route {
    version: AtomicU64,
    ends: Mutex<Ends>,
    /// Until when who sleeps there is left asleep.
    left_asleep: AtomicI64,
}

impl Default for Route {
    fn default() -> Route {
        let left_asleep = AtomicI64::new(Time::NEVER.0);
        Route { version: AtomicU64::default(), ends: Mutex::default(), left_asleep }
    }
}

impl Sleepers for Route {
    fn left_until(&self) -> &AtomicI64 {
        &self.left_asleep
    }

    fn wake(&self) {
        let ends = self.ends.lock();
        let ringers = ends.readers.iter().flat_map(|(.., ringers)| ringers);
        for ringer in ringers.filter(|ringer| ringer.bell.armed().is_some()) {
            ringer.ring();
        }
    }
}

#[derive(Default)]
struct Ends {
    lane: Option<Arc<Lane>>,
    memory: Option<Memory>,
    /// Made, and not yet with the writer's owner. It takes 7 kB: most writers have none.
    writer: Option<Box<LaneWriter>>,
    readers: Vec<(Guid, Peer, Vec<Ringer>)>,
    /// [`LaneWriter::left`], when the writer's owner last looked.
    left: usize,
    /// Those that have gone since, and may read on. The owner may never have known them.
    gone: Vec<Peer>,
}

impl Ends {
    fn take_away(&mut self, reader: Guid) {
        let gone = self.readers.extract_if(.., |(known, ..)| *known == reader);
        self.gone.extend(gone.map(|(_, peer, _)| peer));
        self.gone.retain(|peer| !peer.feedback.has_ended());
    }
}

impl Route {
    /// The lane; made when there is none, in memory that other processes can see if it is said `how` and the
    /// machine has any. What is refused is told if it was not yet.
    pub fn lane(&self, how: Option<(LaneMemory, &Told)>) -> Arc<Lane> {
        let mut refused = Vec::new();
        let lane = self.make_lane(how.map(|(how, _)| how), &mut refused);
        refused.retain(|error| how.is_none_or(|(_, told)| told.is_first(error)));
        // Without the lock: a logger is the user's, who may write.
        for error in refused {
            let instead = if self.is_shared() { "" } else { BY_NETWORK };
            to_log(|| log::warn!("{error}{instead}"));
        }
        lane
    }

    fn make_lane(&self, how: Option<LaneMemory>, refused: &mut Vec<Error>) -> Arc<Lane> {
        let mut ends = self.ends.lock();
        if let Some(lane) = &ends.lane {
            return Arc::clone(lane);
        }
        let memory = how.and_then(|how| shared_memory(how, refused));
        let (region, there, commit): (Region, usize, Commit) = match &memory {
            Some((memory, there)) => {
                let pages = memory.clone();
                (memory.region(), *there, Box::new(move |at, len| pages.commit(at, len).is_ok()))
            }
            None => (own_memory(), 0, Box::new(|_, _| true)),
        };
        let lane = Arc::new(Lane::create(region, CELLS));
        ends.memory = memory.map(|(memory, _)| memory);
        ends.lane = Some(Arc::clone(&lane));
        ends.writer = Some(Box::new(LaneWriter::new(Arc::clone(&lane), commit).with_committed(there)));
        lane
    }

    /// Can other processes see the memory of the lane?
    pub fn is_shared(&self) -> bool {
        self.ends.lock().memory.is_some()
    }

    /// Calls with the memory of the lane, if other processes can see it.
    pub fn with_memory(&self, call: impl FnOnce(&Memory) -> bool) -> bool {
        self.ends.lock().memory.as_ref().is_some_and(call)
    }

    /// `false`: too many have left that still hold samples ([`LEFT`]).
    pub fn add(&self, reader: Guid, feedback: Arc<Feedback>, reliable: bool, ringers: Vec<Ringer>) -> bool {
        let mut ends = self.ends.lock();
        // In any case: the writer's owner looks who of them still does.
        self.version.fetch_add(1, Ordering::SeqCst);
        ends.take_away(reader);
        let takes = ends.left + ends.gone.len() < LEFT;
        if takes {
            ends.readers.push((reader, Peer { feedback, reliable }, ringers));
        }
        takes
    }

    /// Is this reader of the lane in this process? `None` if it is no reader of it.
    pub fn is_here(&self, reader: Guid) -> Option<bool> {
        let ends = self.ends.lock();
        let (.., ringers) = ends.readers.iter().find(|(known, ..)| *known == reader)?;
        Some(ringers.iter().all(Ringer::is_here))
    }

    /// Returns whether the writer's owner waits for readers, which may be for this one: it is to look again.
    pub fn remove(&self, reader: Guid) -> bool {
        let mut ends = self.ends.lock();
        ends.take_away(reader);
        self.version.fetch_add(1, Ordering::SeqCst);
        // Who says that it waits after this has yet to look at the version.
        fence(Ordering::SeqCst);
        ends.lane.as_ref().is_some_and(|lane| lane.is_awaited())
    }
}

/// How far a reliable reader of the lane is behind.
pub(crate) struct LaneLag {
    pub reader: Guid,
    /// Samples that it has not taken over.
    pub unread: u64,
    /// The source timestamp of the first of them.
    pub since: Option<Timestamp>,
}

/// What a KEEP_ALL writer knows of the room that it has, without the token.
pub(crate) struct Room<'a> {
    link: &'a Link,
    given: SequenceNumber,
    may_leave: bool,
}

impl Room<'_> {
    /// Is there room for one more change of this length, whenever the holder of the token comes to it? So far as the protocol had
    /// some with the last that it has seen: a few short ones more are no harm, where no RESOURCE_LIMITS are the user's. A
    /// critical one is not left, but sent when its write returns.
    pub fn is_enough_for(&self, len: usize) -> bool {
        let unseen = self.given.0.saturating_sub(self.link.seen().0);
        self.may_leave && len <= SHORT && unseen < MOST_LEFT && !self.link.is_full()
    }
}

/// One writer's outlet. Belongs to one thread at a time.
pub struct Outlet {
    pub(crate) index: WriterIndex,
    link: Arc<Link>,
    route: Arc<Route>,
    version: u64,
    pub(crate) lane: Option<Box<LaneWriter>>,
    pub(crate) has_readers: bool,
    /// How long its encoded payloads are as a rule, in bytes.
    pub(crate) usual: usize,
    bells: Vec<(Ringer, u64)>,
    last: SequenceNumber,
    /// The last change that was given to the protocol.
    given: SequenceNumber,
    /// The last change that went neither to the protocol nor into the lane, as nobody read.
    gone: SequenceNumber,
    /// How many changes may wait in the lane.
    limit: u64,
    /// Only the protocol counts the samples of an instance: none goes through the lane.
    counts_instances: bool,
    /// None does for that, or not yet.
    leaves_lane: bool,
    waits: bool,
    pub(crate) spin: Spin,
    pub(crate) burst: Burst,
    pub(crate) wakes: Wakes,
    may_rest: bool,
    /// Where its writes are left while the token is taken.
    pub(crate) line: Line,
    pub(crate) blame: Blame,
    /// Its DEADLINE, if that is finite.
    pub(crate) promise: Option<Arc<Promise>>,
    /// Its changes say where their latency goes.
    pub(crate) tells_anatomy: bool,
    /// With DESTINATION_ORDER BY_SOURCE_TIMESTAMP the source timestamp of the last change.
    pub(crate) source_order: Option<Timestamp>,
    /// For one of these each call is looked at, and what was written.
    pub(crate) notes_calls: bool,
}

impl Outlet {
    pub(crate) fn new(
        index: WriterIndex,
        link: Arc<Link>,
        route: Arc<Route>,
        qos: &DataWriterQos,
        promise: Option<Arc<Promise>>,
        tells_anatomy: bool,
    ) -> Outlet {
        let is_by_source = qos.destination_order == DestinationOrderKind::BySourceTimestamp;
        let source_order = is_by_source.then(|| Timestamp::from_bits(0));
        let limit = qos.resource_limits.max_samples.map_or(u64::MAX, u64::from);
        let counts_instances =
            qos.history == History::KeepAll && qos.resource_limits.max_samples_per_instance.is_some();
        let notes_calls = tells_anatomy || promise.is_some() || is_by_source;
        Outlet {
            index,
            link,
            route,
            version: 0,
            lane: None,
            has_readers: false,
            usual: 0,
            bells: Vec::new(),
            last: SequenceNumber::ZERO,
            given: SequenceNumber::ZERO,
            gone: SequenceNumber::ZERO,
            limit,
            counts_instances,
            leaves_lane: counts_instances,
            waits: false,
            spin: Spin::default(),
            burst: Burst::new(qos.latency_budget),
            wakes: Wakes::default(),
            line: Line::of(qos.transport_priority),
            may_rest: Line::of(qos.transport_priority) == Line::Others && limit >= 2 * TOGETHER as u64,
            blame: Blame::new(qos),
            promise,
            tells_anatomy,
            source_order,
            notes_calls,
        }
    }

    /// What a write needs while the protocol is asked.
    #[inline]
    pub(crate) fn burst_and_room(&mut self) -> (&mut Burst, Room<'_>) {
        let may_leave = self.line == Line::Others && self.limit == u64::MAX && !self.counts_instances;
        (&mut self.burst, Room { link: &self.link, given: self.given, may_leave })
    }

    /// Of a writer of the publisher that this suspends.
    pub fn follow(&mut self, suspension: Arc<Suspension>) {
        self.burst.follow(suspension);
    }

    /// It goes in the child of a fork: its lane, which others see, is the parent's, who goes on with it.
    pub fn leave_to_parent(&mut self) {
        self.wakes = Wakes::default();
        std::mem::forget((self.lane.take(), Arc::clone(&self.route)));
    }

    /// Learns of readers that have come or gone.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        let version = self.route.version.load(Ordering::SeqCst);
        if version != self.version {
            self.learn();
        }
    }

    #[cold]
    fn learn(&mut self) {
        let mut ends = self.route.ends.lock();
        self.version = self.route.version.load(Ordering::SeqCst);
        if let Some(writer) = ends.writer.take() {
            self.lane = Some(writer);
        }
        self.has_readers = !ends.readers.is_empty();
        // Who is new, and waits for nothing, would read what comes behind that in the lane before it, and go without it. Who
        // reads there already would go without what does not.
        let is_new = |lane: &LaneWriter, peer: &Peer| !peer.reliable && !lane.knows(peer);
        let lane = self.lane.as_deref();
        let brings = lane.is_some_and(|lane| ends.readers.iter().any(|(_, peer, _)| is_new(lane, peer)));
        let is_behind = self.link.seen() < self.given && (self.leaves_lane || brings);
        self.leaves_lane = self.counts_instances || is_behind;
        if is_behind {
            self.version = u64::MAX;
        }
        if self.has_readers {
            // The protocol is to see the next change, so that it tells who may wait for what is gone.
            self.given = self.given.max(self.gone);
        }
        self.bells.clear();
        for ringer in ends.readers.iter().flat_map(|(.., ringers)| ringers) {
            if !self.bells.iter().any(|(known, _)| Arc::ptr_eq(&known.bell, &ringer.bell)) {
                self.bells.push((ringer.clone(), 0));
            }
        }
        if let Some(lane) = &mut self.lane {
            let peers: Vec<_> = ends.readers.iter().map(|(_, peer, _)| peer.clone()).collect();
            if !ends.gone.is_empty() {
                // Who comes and goes between two looks reads on all the same: it is known first, and then has left. [P]
                lane.set_peers(peers.iter().cloned().chain(ends.gone.drain(..)).collect());
            }
            lane.set_peers(peers);
            ends.left = lane.left();
        }
    }

    /// Does every reader find room for one more change in the lane?
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.refresh();
        let limit = self.limit;
        match &mut self.lane {
            Some(lane) if self.has_readers => {
                lane.has_room() && (limit > lane.lane().cells() || lane.unread() < limit)
            }
            _ => true,
        }
    }

    /// May a KEEP_ALL writer go on, as far as the lane is concerned? RESOURCE_LIMITS may allow more than a lane holds: the
    /// protocol then takes what the lane does not. It counts what waits in the lane, too: another reader gets the same over
    /// the network, and one that joins the lane late may still be owed what was written before.
    #[inline]
    pub(crate) fn may_write(&mut self) -> bool {
        let has_room = self.has_room();
        if self.limit == u64::MAX {
            return has_room;
        }
        let lane = self.lane.as_ref().filter(|_| self.has_readers);
        let first = lane.and_then(|lane| lane.first_unread()).map(|meta| cell::number(&meta));
        if self.link.unread_from() != first {
            self.link.set_unread_from(first);
        }
        has_room || lane.is_some_and(|lane| self.limit > lane.lane().cells())
    }

    /// What keeps a KEEP_ALL writer from one more sample in the lane.
    #[cold]
    pub(crate) fn lane_limit(&mut self) -> Option<Limit> {
        let is_full = !self.may_write();
        let lane = self.lane.as_ref().filter(|_| is_full)?;
        let is_limited = lane.unread() >= self.limit;
        Some(if is_limited { Limit::MaxSamples(self.limit) } else { Limit::Lane(lane.lane().cells()) })
    }

    /// Has every reader of the lane read all?
    pub(crate) fn is_read(&mut self) -> bool {
        self.refresh();
        self.end_rest();
        self.lane.as_ref().is_none_or(|lane| !self.has_readers || lane.unread() == 0)
    }

    /// Calls with how far each reliable reader of the lane is behind.
    pub(crate) fn each_lag(&self, mut call: impl FnMut(LaneLag)) {
        let Some(lane) = &self.lane else { return };
        let ends = self.route.ends.lock();
        for (reader, peer, _) in ends.readers.iter().filter(|(_, peer, _)| peer.reliable) {
            let (unread, first) = lane.unread_by(&peer.feedback);
            let since = first.and_then(|meta| cell::source_timestamp(&meta));
            call(LaneLag { reader: *reader, unread, since });
        }
    }

    /// Asks the readers to tell of room while the owner waits for it.
    pub(crate) fn set_waiting(&mut self, waits: bool) {
        if self.waits == waits {
            return;
        }
        self.waits = waits;
        if let Some(lane) = &self.lane {
            lane.await_readers(waits);
        }
    }

    /// Has those look whose samples only the lane holds.
    pub(crate) fn ring_readers(&self) {
        for (ringer, _) in &self.bells {
            ringer.ring();
        }
    }

    /// Finds a place in the lane for a payload; `false` if it cannot go there. The caller has looked for
    /// room.
    #[inline]
    pub(crate) fn place(&mut self, payload: &mut Payload<'_>) -> bool {
        let may = self.has_readers && !self.leaves_lane;
        let Some(lane) = self.lane.as_mut().filter(|_| may) else { return false };
        if payload.place.is_some() {
            return true;
        }
        if payload.len <= INLINE {
            payload.place = Some(Place::Cell);
            return true;
        }
        let Some(mut slot) = lane.claim(payload.len) else { return false };
        if let Some(to) = slot.get_mut(..payload.len) {
            payload.copy_to(to);
        }
        payload.place = Some(Place::Slot(slot));
        true
    }

    /// Memory for a payload; the lane is made if there is none.
    pub(crate) fn loan(&mut self, len: usize, how: Option<(LaneMemory, &Told)>) -> Option<Slot> {
        if self.lane.is_none() {
            self.route.lane(how);
            self.version = u64::MAX;
        }
        self.refresh();
        self.lane.as_mut()?.claim(len)
    }

    /// The loan is not used after all.
    pub fn give_back(&mut self, slot: Slot) {
        if let Some(lane) = &mut self.lane {
            lane.give_back(slot);
        }
    }

    /// The number of the next change.
    pub(crate) fn next_number(&self) -> SequenceNumber {
        self.last.next()
    }

    /// Is the lane enough for the next change, if it goes there?
    #[inline]
    pub(crate) fn is_direct(&self) -> bool {
        self.link.is_direct() && self.link.seen() >= self.given
    }

    /// Is there a reader in the lane?
    pub(crate) fn has_readers(&self) -> bool {
        self.has_readers
    }

    /// The protocol has been given the next change.
    pub(crate) fn note_given(&mut self) {
        self.given = self.last.next();
    }

    /// Puts the next change into its place in the lane, if it is to go there, and wakes who sleeps.
    #[inline]
    pub(crate) fn commit(&mut self, write: &Write, payload: &mut Payload<'_>, inner: &Inner) {
        self.last = self.last.next();
        let mut calls = false;
        if let Some(lane) = self.lane.as_mut().filter(|_| write.in_lane) {
            calls = lane.take_call();
            let meta = cell::meta(self.last, write);
            let pushed = match payload.place.take() {
                Some(Place::Slot(slot)) => lane.push_slot(&meta, slot, payload.len).is_ok(),
                _ => payload.push(lane, &meta),
            };
            debug_assert!(pushed, "there was room, and only this thread takes it away");
        }
        if self.given < self.last {
            if !write.in_lane {
                self.link.set_off_lane(self.last);
                self.gone = self.last;
            }
            self.link.set_last(self.last);
        } else if write.in_lane {
            fence(Ordering::SeqCst);
        }
        // After the fence. [W]
        if write.in_lane {
            self.ring(write, inner);
        }
        if calls {
            self.ring_readers();
        }
        payload.drop_into(self);
    }

    /// Wakes the participants that sleep, if they are not left asleep for more. The caller has fenced.
    #[inline]
    fn ring(&mut self, write: &Write, inner: &Inner) {
        if self.is_ring_owed() || self.wakes.is_owed() {
            self.ring_or_rest(write, inner);
        }
    }

    /// Does somebody sleep who was not rung since it does?
    #[inline]
    pub(crate) fn is_ring_owed(&self) -> bool {
        let is_owed =
            |(ringer, rung): &(Ringer, u64)| ringer.bell.armed().is_some_and(|value| value != *rung);
        self.bells.iter().any(is_owed)
    }

    #[inline(never)]
    fn ring_or_rest(&mut self, write: &Write, inner: &Inner) {
        let (now, may_rest) = (write.called, self.may_rest && write.kind == ChangeKind::Alive);
        // Whoever drives may have woken them meanwhile, and they sleep again: then nobody else will.
        let is_left = || self.route.left_asleep.load(Ordering::SeqCst) != Time::NEVER.0;
        if may_rest && self.wakes.goes_on(self.last, now) && is_left() {
            return;
        }
        let until = self.wakes.allows(self.last, now).filter(|_| may_rest);
        if until.is_some_and(|until| inner.leave_asleep(&self.route, &mut self.wakes, now, until)) {
            return;
        }
        self.wake_sleepers();
    }

    /// Wakes who was left asleep.
    #[inline]
    pub(crate) fn end_rest(&mut self) {
        if self.wakes.is_owed() {
            self.wake_sleepers();
        }
    }

    /// Wakes the participants that sleep, once for each time they do.
    fn wake_sleepers(&mut self) {
        self.route.left_asleep.store(Time::NEVER.0, Ordering::Release);
        for (ringer, rung) in &mut self.bells {
            if let Some(value) = ringer.bell.armed()
                && value != *rung
            {
                // Who could not be told is told by the next write.
                if ringer.ring() {
                    *rung = value;
                }
            }
        }
        self.wakes.end(self.last, monotonic_now());
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.end_rest();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use taut_base::{EntityId, GuidPrefix};
    use taut_dcps::Selection;
    use taut_mem::Pool;
    use taut_mem::lane::{Entry, FEEDBACK_LEN, LaneReader, Next};

    use super::*;
    use crate::Patience;
    use crate::executor_tests::{call, executor_with_lanes};

    #[test]
    fn a_lane_that_too_many_have_left_with_samples_takes_no_more() {
        let route = Route::default();
        let add = || {
            let reader = Guid::new(GuidPrefix([4; 12]), EntityId::user(1, false, false));
            let feedback = Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap();
            route.add(reader, Arc::new(feedback), true, Vec::new())
        };
        assert!(add());
        route.ends.lock().left = LEFT;
        let before = route.version.load(Ordering::SeqCst);
        assert!(!add() && route.ends.lock().readers.is_empty());
        assert!(route.version.load(Ordering::SeqCst) > before, "the writer's owner looks again");
        // One that has gone of which the owner has not heard.
        assert_eq!(route.ends.lock().gone.len(), 1);
        route.ends.lock().left = LEFT - 1;
        assert!(!add());
        route.ends.lock().left = LEFT - 2;
        assert!(add());
        let ended = || {
            route.ends.lock().gone.iter().for_each(|peer| peer.feedback.abandon());
            route.remove(Guid::UNKNOWN);
            route.ends.lock().gone.is_empty()
        };
        assert!(ended(), "who reads on no more counts no more");
    }

    #[test]
    fn a_claim_takes_no_pages_where_some_were_taken_at_once() {
        let (route, told) = (Route::default(), Told::default());
        // Less than a claim would take.
        route.lane(Some((LaneMemory { prefault: 1 << 16, lock: false }, &told)));
        let mut ends = route.ends.lock();
        let pages = File::from(ends.memory.as_ref().unwrap().fd().try_clone_to_owned().unwrap());
        let taken = || pages.metadata().unwrap().blocks();
        let before = taken();
        assert!(ends.writer.as_mut().unwrap().claim(1_000).is_some());
        assert!(taken() == before || !told.0.lock().is_empty(), "{before} {}", taken());
    }

    #[test]
    fn who_reads_the_lane_goes_on_with_it_unless_one_that_waits_for_nothing_is_new() {
        let (executor, index, _) = executor_with_lanes();
        let mut outlet = executor.outlet(index, &DataWriterQos::default()).unwrap();
        let route = executor.inner.joins.route(index);
        outlet.refresh();
        assert!(outlet.has_readers && !outlet.leaves_lane);
        // Of these the protocol has seen none.
        outlet.given = SequenceNumber(1_000);
        let other = Guid::new(GuidPrefix([4; 12]), EntityId::user(1, false, false));
        let mut leaves_as_joins = |reliable| {
            let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
            assert!(route.add(other, feedback, reliable, Vec::new()));
            outlet.refresh();
            outlet.leaves_lane
        };
        assert!(!leaves_as_joins(true) && leaves_as_joins(false));
    }

    /// It reads on, as it does not know yet: samples that the owner wrote when it had gone are not what it finds.
    #[test]
    fn who_comes_and_goes_between_two_writes_finds_no_other_samples() {
        /// More than a cell holds.
        const LEN: usize = 1_000;
        let (executor, index, reader) = executor_with_lanes();
        let mut outlet = executor.outlet(index, &DataWriterQos::default()).unwrap();
        let door = executor.door(reader).unwrap();
        let mut pool = Pool::new(LEN, 2);
        let mut write = |content: u8| {
            let value = [content; LEN - 4];
            let mut payload = Payload::value([0, 1], &value, &mut pool);
            executor.publish(&mut outlet, &mut call(Patience::KeepLast), &mut payload).unwrap();
            let mut taken = 0;
            executor.take(&door, &Selection::ANY, |_| taken += 1).unwrap();
            assert_eq!(taken, 1);
        };
        write(0);
        let route = executor.inner.joins.route(index);
        let other = Guid::new(GuidPrefix([4; 12]), EntityId::user(1, false, false));
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        assert!(route.add(other, Arc::clone(&feedback), true, Vec::new()));
        let mut late = LaneReader::attach(route.lane(None), feedback, false);
        route.remove(other);
        write(1);
        let next = late.peek().map(|meta| cell::number(&meta));
        write(2);
        let mut entry = Entry::default();
        assert!(matches!(late.poll(&mut entry), Next::Sample { .. }));
        let content = 1 + (cell::number(&entry.meta) != next.unwrap()) as u8;
        assert!(
            entry.payload[4..].iter().all(|byte| *byte == content),
            "{content}: {:?}",
            entry.payload.last()
        );
    }
}
