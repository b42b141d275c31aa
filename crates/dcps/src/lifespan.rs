//! LIFESPAN as readers see it: when a sample is too old. DCPS 1.4 §2.2.3.16.
//!
//! A sample expires its writer's LIFESPAN after its source timestamp, by this side's wall clock. One from the future
//! shows that the clocks differ: it counts from its arrival, as the standard allows, and so does one that has no
//! timestamp, or as long as nobody has told what the wall clock shows.

use taut_base::{Duration, Guid, Time, Timestamp};
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::cell;
use crate::participant::DomainParticipant;
use crate::reader_cache::ReaderCache;
use crate::reader_side::ReaderSide;
use crate::states::InstanceState;
use taut_rtps::ReaderIndex;

/// What a reader knows of its matched writers whose samples expire.
#[derive(Debug, Default)]
pub(crate) struct Lifespans {
    of: Vec<(Guid, Duration)>,
    /// From the monotonic clock to the wall clock, in ns.
    to_wall: Option<i64>,
}

impl Lifespans {
    /// Takes over the LIFESPAN of a writer; an infinite one is none.
    pub fn set(&mut self, writer: Guid, lifespan: Duration) {
        self.of.retain(|(known, _)| *known != writer);
        if !lifespan.is_infinite() {
            self.of.push((writer, lifespan));
        }
    }

    /// What the participant knows of the wall clock, from the monotonic one, in ns.
    #[inline]
    pub fn note_wall_clock(&mut self, to_wall: Option<i64>) {
        if self.are_on() && to_wall.is_some() {
            self.to_wall = to_wall;
        }
    }

    #[inline]
    pub fn are_on(&self) -> bool {
        !self.of.is_empty()
    }

    /// When a change that is delivered now expires, if it ever does.
    #[inline]
    pub fn end_of(&self, now: Time, change: &CacheChange) -> Option<Time> {
        if self.of.is_empty() { None } else { self.find_end(now, change) }
    }

    #[inline(never)]
    fn find_end(&self, now: Time, change: &CacheChange) -> Option<Time> {
        let (_, lifespan) = self.of.iter().find(|(writer, _)| *writer == change.writer_guid)?;
        // That an instance has ended stays true.
        if change.kind != ChangeKind::Alive {
            return None;
        }
        let wall = self.to_wall.map(|to_wall| now.0.saturating_add(to_wall));
        let written = change.source_timestamp.map(Timestamp::to_unix_ns);
        let age = wall.zip(written).map(|(wall, written)| wall.saturating_sub(written));
        Some(match age.filter(|age| *age >= 0) {
            Some(age) => now - Duration(age) + *lifespan,
            None => change.time.min(now) + *lifespan,
        })
    }
}

impl ReaderSide {
    /// Do samples of its writers expire? Then it is to know [what the wall clock shows](ReaderSide::set_wall_clock).
    #[inline]
    pub fn wants_wall_clock(&self) -> bool {
        self.lifespans.are_on()
    }

    /// What the wall clock shows now.
    pub fn set_wall_clock(&mut self, now: Time, wall: Timestamp) {
        self.lifespans.to_wall = Some(wall.to_unix_ns().saturating_sub(now.0));
    }

    pub(crate) fn set_lifespan(&mut self, writer: Guid, lifespan: Duration) {
        self.lifespans.set(writer, lifespan);
        // Nothing is noted of a sample that a lane hands on.
        self.cache.set_expiring(self.lifespans.are_on());
    }

    /// Forgets what is too old. Asks for the time only if something may be.
    #[inline]
    pub(crate) fn expire(&mut self, now: impl FnOnce() -> Time) {
        if self.cache.has_timeout() {
            self.on_timeout(now(), usize::MAX);
        }
    }

    /// The same, with the time, for so many samples at most; says how many. What lies unread in a lane came before
    /// separations that end later.
    pub(crate) fn on_timeout(&mut self, now: Time, most: usize) -> usize {
        let until = if self.cache.separation.is_on() { self.found_until(now) } else { now };
        self.cache.end_separations(until);
        self.forget_old(now, most)
    }

    /// The same but for what waits for its separation. What waits in a lane for room may find some.
    pub(crate) fn forget_old(&mut self, now: Time, most: usize) -> usize {
        let forgotten = self.cache.forget_old(now, most);
        if forgotten > 0 {
            self.sources.iter_mut().for_each(|source| source.stalled = false);
        }
        forgotten
    }

    /// Instances have ended, which go after a while and leave room that something may wait for.
    pub(crate) fn note_purge(&mut self) {
        if self.is_blocked() || self.is_stalled() {
            self.await_expiry();
        }
    }

    /// Something waits for room, which what expires makes: who drives is to look then.
    #[cold]
    pub(crate) fn await_expiry(&mut self) {
        if self.cache.next_timeout().is_some_and(|at| at < self.looked_at_next) {
            (self.cache.alarm, self.cache.separation.untold) = (true, true);
        }
    }

    /// Until when all that was written into lanes has been looked at, as far as these say.
    fn found_until(&self, now: Time) -> Time {
        let ready = self.sources.iter().filter(|source| source.is_ready());
        let called = ready.filter_map(|source| cell::called(&source.lane.peek()?));
        called.min().map_or(now, |first| first.min(now))
    }
}

impl ReaderCache {
    /// A sample is too old when somebody looks, as in a lane: its writer has kept the deadline even so.
    #[cold]
    pub(crate) fn pass_over_expired(&mut self, change: &CacheChange) {
        if self.is_leaving() {
            self.leave_first(change.time, self.handle(change));
        }
        let Some(index) = self.instances.find(self.handle(change)) else { return };
        let instance = self.instances.at(index);
        let counts = !self.exclusive || instance.heeds(change.writer_guid);
        if instance.state == InstanceState::Alive && counts {
            self.lapse(index, change.time);
            self.await_next(index, change.time);
        }
    }
}

impl DomainParticipant {
    /// A reader has matched a writer, or no longer does.
    pub(crate) fn watch_lifespan(&mut self, reader: ReaderIndex, writer: Guid, matched: bool) {
        let endpoint = self.core.endpoint(writer).filter(|_| matched);
        let lifespan = endpoint.map_or(Duration::INFINITE, |endpoint| endpoint.qos.lifespan);
        if lifespan.is_infinite() {
            self.readers.expiring.remove(&(reader, writer));
        } else {
            self.readers.expiring.insert((reader, writer));
        }
        self.readers.at_side(reader, |side| side.set_lifespan(writer, lifespan));
    }

    /// A reader that is about to be made may get the history of these before anybody tells that it has matched them.
    pub(crate) fn lifespans_beside(&self, topic: &str) -> Vec<(Guid, Duration)> {
        let beside = self.core.local_endpoints();
        let beside = beside.filter(|data| data.topic_name == topic && data.guid.entity.is_writer());
        beside.map(|data| (data.guid, data.qos.lifespan)).collect()
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::DataReaderQos;

    use super::*;
    use crate::reader_cache_tests::{change, writer};

    const LIFESPAN: Duration = Duration::from_millis(5);
    const WALL: i64 = 1_700_000_000_000_000_000;

    fn ms(ms: i64) -> i64 {
        ms * 1_000_000
    }

    /// When a sample expires that is written, arrives and is delivered at these milliseconds.
    fn end_of(lifespans: &Lifespans, written: i64, arrived: i64, delivered: i64) -> Option<Time> {
        let mut change = change(ChangeKind::Alive, 1, 0, 1);
        change.source_timestamp = Some(Timestamp::from_unix_ns(WALL + ms(written)));
        change.time = Time(ms(arrived));
        lifespans.end_of(Time(ms(delivered)), &change)
    }

    #[test]
    fn it_counts_from_the_source_timestamp() {
        let mut lifespans = Lifespans::default();
        assert_eq!(end_of(&lifespans, 1, 2, 3), None);
        lifespans.set(writer(2), LIFESPAN);
        assert_eq!(end_of(&lifespans, 1, 2, 3), None, "of another writer");
        lifespans.set(writer(1), LIFESPAN);
        let end = |at: i64| Some(Time(ms(at)));
        assert_eq!(end_of(&lifespans, 1, 2, 3), end(7), "who knows no wall clock goes by the arrival");
        lifespans.note_wall_clock(Some(WALL));
        // A timestamp is no finer than a quarter of a nanosecond, and rounded.
        let near = |found: Option<Time>, at: i64| found.is_some_and(|found| (found.0 - ms(at)).abs() <= 1);
        assert!(near(end_of(&lifespans, 1, 2, 3), 6));
        assert!(near(end_of(&lifespans, -100, 2, 3), -95), "it is too old");
        assert_eq!(end_of(&lifespans, 9, 2, 3), end(7), "it comes from the future: the clocks differ");
        lifespans.note_wall_clock(None);
        assert!(near(end_of(&lifespans, 1, 2, 3), 6), "what was known stays known");
        let ended = change(ChangeKind::NotAliveDisposed, 1, 0, 1);
        assert_eq!(lifespans.end_of(Time(0), &ended), None);
        lifespans.set(writer(1), Duration::INFINITE);
        assert_eq!(end_of(&lifespans, 1, 2, 3), None);
    }

    #[test]
    fn a_sample_that_is_too_old_shows_that_its_writer_keeps_the_deadline() {
        const PERIOD: i64 = 100;
        for exclusive in [false, true] {
            let mut qos = DataReaderQos::default().keep_all().deadline(Duration(PERIOD));
            if exclusive {
                qos = qos.exclusive();
            }
            let mut cache = ReaderCache::new(&qos, true);
            cache.insert(Time(0), change(ChangeKind::Alive, 1, 1, 1), 9, None);
            let of_another = CacheChange { time: Time(PERIOD), ..change(ChangeKind::Alive, 2, 1, 1) };
            cache.pass_over_expired(&of_another);
            let missed = cache.look_at_deadlines(Time(PERIOD + 1), &mut 9).is_any();
            assert_eq!(missed, exclusive, "another one counts unless it may not be heard");
        }
    }

    #[test]
    fn many_that_grow_old_together_go_in_steps() {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_all(), true);
        for number in 1..=10 {
            cache.insert(Time(0), change(ChangeKind::Alive, 1, 1, number), 0, Some(Time(5)));
        }
        assert_eq!(cache.forget_old(Time(5), 4), 4);
        assert_eq!((cache.len(), cache.next_timeout()), (6, Some(Time(5))));
        cache.set_qos(&{
            let mut qos = DataReaderQos::default().keep_all();
            qos.reader_data_lifecycle.autopurge_disposed_samples_delay = Duration(1);
            qos
        });
        cache.insert(Time(0), change(ChangeKind::NotAliveDisposed, 1, 1, 11), 0, None);
        cache.insert(Time(0), change(ChangeKind::Alive, 1, 2, 1), 0, None);
        cache.insert(Time(0), change(ChangeKind::NotAliveDisposed, 1, 2, 2), 0, None);
        assert_eq!(cache.forget_old(Time(5), 6), 6, "those that are too old come first");
        assert_eq!(cache.len(), 3);
        let left: Vec<_> = (0..4).map(|_| (cache.forget_old(Time(5), 2), cache.len())).collect();
        assert_eq!(left, [(2, 2), (2, 1), (2, 0), (0, 0)]);
        assert_eq!(cache.instances.len(), 2, "their writer has not unregistered them");
    }
}
