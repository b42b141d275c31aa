//! TIME_BASED_FILTER for reliable readers: what comes too soon waits. DCPS 1.4 §2.2.3.12.
//!
//! A reader that is not reliable drops what comes too soon. A reliable one is to see the last value of an instance all the
//! same: the newest sample that came too soon is held, one for each instance, and comes when the separation is over, or
//! before the instance ends, whichever is first.

use taut_base::{Duration, Time};
use taut_qos::{DataReaderQos, ReliabilityKind};
use taut_rtps::history_cache::CacheChange;

use crate::instance::SourceOrder;
use crate::list::Slab;
use crate::reader_cache::{ReaderCache, source_order};
use crate::reader_side::ReaderSide;
use crate::status::StatusMask;

/// A sample that waits.
#[derive(Debug)]
pub(crate) struct Held {
    change: CacheChange,
    expires: Time,
}

/// TIME_BASED_FILTER of a reader.
#[derive(Debug)]
pub(crate) struct Separation {
    pub(crate) minimum: Duration,
    holds: bool,
    /// The samples that wait, of as many instances as have some.
    held: Slab<Held>,
    /// A sample waits, for its time or for the room that expires before all else, and who drives was not told.
    pub(crate) untold: bool,
    /// How many had no room when their instance ended, of which nobody was told.
    pub(crate) lost: u64,
}

impl Separation {
    pub fn new(qos: &DataReaderQos) -> Separation {
        let holds = qos.reliability.kind == ReliabilityKind::Reliable;
        let (minimum, held) = (qos.time_based_filter, Slab::new());
        Separation { minimum, holds, held, untold: false, lost: 0 }
    }

    pub fn is_on(&self) -> bool {
        self.minimum > Duration::ZERO
    }
}

impl ReaderSide {
    /// Is who drives to be told when to look for what its owner has found too soon, or without room? Told once; then
    /// [`DomainParticipant::at_side`](crate::DomainParticipant::at_side) does so.
    #[inline]
    pub fn take_untold(&mut self) -> bool {
        std::mem::take(&mut self.cache.separation.untold)
    }

    /// What has come, or was lost, of itself. Forgets that.
    pub(crate) fn take_surfaced(&mut self) -> StatusMask {
        let has_surfaced = std::mem::take(&mut self.cache.surfaced);
        let news = if has_surfaced { StatusMask::DATA_AVAILABLE } else { StatusMask::NONE };
        let lost = std::mem::take(&mut self.cache.separation.lost);
        if lost == 0 {
            return news;
        }
        self.sample_lost.count(lost);
        news | StatusMask::SAMPLE_LOST
    }
}

impl ReaderCache {
    /// A sample has come too soon: it waits, in the place of one that has waited.
    pub(crate) fn hold(&mut self, index: u32, change: CacheChange, expires: Time) {
        if !self.separation.holds {
            return;
        }
        let instance = self.instances.at_mut(index);
        let at = instance.accepted.unwrap_or_default() + self.separation.minimum;
        let is_older = |held: &Held| self.by_source && source_order(&change) < source_order(&held.change);
        let size = change.payload.len();
        match instance.held.and_then(|id| self.separation.held.get_mut(id)) {
            Some(held) if is_older(held) => return,
            Some(held) => {
                self.bytes -= held.change.payload.len();
                *held = Held { change, expires };
            }
            None => instance.held = Some(self.separation.held.insert(Held { change, expires })),
        }
        self.bytes += size;
        if self.instances.separations.next().is_none_or(|next| at < next) {
            (self.alarm, self.separation.untold) = (true, true);
        }
        self.instances.separations.set(index, at);
        self.instances.settle(index);
    }

    /// Lets those come whose time it is.
    pub(crate) fn end_separations(&mut self, now: Time) {
        while let Some(index) = self.instances.separations.pop(now) {
            if self.refusal_of_held(index).is_some() {
                // It takes its next turn.
                self.instances.separations.set(index, now + self.separation.minimum.max(Duration(1)));
                continue;
            }
            self.release(now, index);
            self.instances.settle(index);
        }
    }

    /// The instance ends: what waits comes before that, if there is room. Else it is lost: what a change says waits for
    /// room before, but a writer that goes waits for none.
    pub(crate) fn end_separation(&mut self, now: Time, index: u32) {
        if self.instances.at(index).held.is_none() {
            return;
        }
        self.instances.separations.cancel(index);
        if self.refusal_of_held(index).is_none() {
            self.release(now, index);
        } else if self.take_held(index).is_some_and(|held| held.expires > now) {
            self.separation.lost += 1;
            // Who drives is to tell it.
            self.alarm = true;
        }
    }

    /// BY_SOURCE_TIMESTAMP: the latest change of an instance, if it waits too.
    pub(crate) fn newest(&self, index: u32) -> Option<SourceOrder> {
        let instance = self.instances.at(index);
        let held = instance.held.and_then(|id| self.separation.held.get(id));
        held.and_then(|held| source_order(&held.change)).max(instance.newest)
    }

    /// What waits of an instance waits no longer.
    fn take_held(&mut self, index: u32) -> Option<Held> {
        let id = self.instances.at_mut(index).held.take()?;
        let held = self.separation.held.take(id)?;
        self.bytes -= held.change.payload.len();
        Some(held)
    }

    /// The caller settles the instance.
    fn release(&mut self, now: Time, index: u32) {
        let Some(Held { change, expires }) = self.take_held(index) else { return };
        if expires > now && self.accept(now, index, change, expires).is_some() {
            self.surfaced = true;
            // Who drives is to tell it.
            self.alarm = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::{SequenceNumber, Timestamp};
    use taut_qos::{DestinationOrderKind, ResourceLimits};
    use taut_rtps::history_cache::ChangeKind::{self, Alive, NotAliveDisposed, NotAliveUnregistered};

    use super::*;
    use crate::reader_cache_tests::{change, writer};
    use crate::reader_side_tests::{data_of, keyed_with_room_for_one};
    use crate::{IgnoredReason, Insert, InstanceState, MAX_PAYLOAD_BYTES};

    const TOO_SOON: Insert = Insert::Ignored(IgnoredReason::TooSoon);

    fn reliable() -> DataReaderQos {
        let mut qos = DataReaderQos::default().keep_all().time_based_filter(Duration(10));
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos
    }

    fn at(cache: &mut ReaderCache, now: i64, kind: ChangeKind, instance: u8) -> Insert {
        cache.insert(Time(now), change(kind, 1, instance, now), 0, None)
    }

    /// The numbers of what is taken, and of which kind it is.
    fn taken(cache: &mut ReaderCache) -> Vec<(i64, bool)> {
        let next = || cache.take_next().map(|sample| (sample.info.sequence_number.0, sample.info.valid_data));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_last_of_a_burst_comes_when_the_separation_is_over() {
        let mut cache = ReaderCache::new(&reliable(), true);
        assert_eq!(at(&mut cache, 100, Alive, 1), Insert::Stored);
        assert_eq!((at(&mut cache, 101, Alive, 1), at(&mut cache, 109, Alive, 1)), (TOO_SOON, TOO_SOON));
        assert_eq!((taken(&mut cache), cache.next_timeout()), (vec![(100, true)], Some(Time(110))));
        cache.on_timeout(Time(109));
        assert_eq!(taken(&mut cache), []);
        cache.on_timeout(Time(112));
        assert_eq!((taken(&mut cache), cache.next_timeout(), cache.bytes), (vec![(109, true)], None, 0));
        // The next separation counts from then.
        assert_eq!((at(&mut cache, 120, Alive, 1), at(&mut cache, 121, Alive, 1)), (TOO_SOON, TOO_SOON));
        cache.on_timeout(Time(122));
        assert_eq!(taken(&mut cache), [(121, true)]);
    }

    #[test]
    fn what_waits_has_the_place_of_what_has_waited() {
        let mut cache = ReaderCache::new(&reliable(), true);
        for start in (0..1_000).step_by(100) {
            for instance in [1, 2] {
                (start..start + 5).for_each(|now| _ = at(&mut cache, now, Alive, instance));
            }
            cache.on_timeout(Time(start + 20));
            assert_eq!((taken(&mut cache).len(), cache.bytes), (4, 0), "the first and the last of each");
        }
        assert_eq!((cache.separation.held.len(), cache.separation.held.end()), (0, 2));
    }

    #[test]
    fn it_comes_before_its_instance_ends() {
        for (kind, state) in [
            (NotAliveDisposed, InstanceState::NotAliveDisposed),
            (NotAliveUnregistered, InstanceState::NotAliveNoWriters),
        ] {
            let mut cache = ReaderCache::new(&reliable(), true);
            (100..105).for_each(|now| _ = at(&mut cache, now, Alive, 1));
            assert_eq!(at(&mut cache, 106, kind, 1), Insert::Stored);
            assert_eq!(cache.instances.at(0).state, state);
            assert_eq!(taken(&mut cache), [(100, true), (104, true), (106, false)]);
            assert_eq!(cache.next_timeout(), None);
        }
        let mut cache = ReaderCache::new(&reliable(), true);
        (100..105).for_each(|now| _ = at(&mut cache, now, Alive, 1));
        cache.writer_gone(Time(106), writer(1));
        assert_eq!(taken(&mut cache)[..2], [(100, true), (104, true)]);
    }

    #[test]
    fn what_brings_an_instance_back_is_never_too_soon() {
        let best_effort = DataReaderQos::default().keep_all().time_based_filter(Duration(10)).best_effort();
        for qos in [reliable(), best_effort] {
            for end in [NotAliveDisposed, NotAliveUnregistered] {
                let mut cache = ReaderCache::new(&qos, true);
                at(&mut cache, 100, Alive, 1);
                at(&mut cache, 101, end, 1);
                assert_eq!(
                    (at(&mut cache, 102, Alive, 1), at(&mut cache, 103, Alive, 1)),
                    (Insert::Stored, TOO_SOON)
                );
                assert_eq!(cache.instances.at(0).state, InstanceState::Alive);
                assert_eq!(taken(&mut cache), [(100, true), (101, false), (102, true)]);
            }
        }
    }

    #[test]
    fn it_waits_for_room_and_expires() {
        let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let mut cache = ReaderCache::new(&reliable().resource_limits(limits), true);
        at(&mut cache, 100, Alive, 1);
        let offer = |cache: &mut ReaderCache, now, expires| {
            cache.insert(Time(now), change(Alive, 1, 1, now), 0, Some(Time(expires)))
        };
        assert_eq!(offer(&mut cache, 101, 500), TOO_SOON);
        cache.on_timeout(Time(110));
        assert_eq!((cache.len(), cache.next_timeout()), (1, Some(Time(120))));
        assert_eq!(taken(&mut cache), [(100, true)]);
        cache.on_timeout(Time(120));
        assert_eq!(taken(&mut cache), [(101, true)]);
        assert_eq!(offer(&mut cache, 121, 125), TOO_SOON);
        cache.on_timeout(Time(130));
        assert_eq!((taken(&mut cache), cache.next_timeout(), cache.bytes), (vec![], None, 0));
    }

    /// Else what waits would keep itself, and all that comes, from having room.
    #[test]
    fn its_octets_are_there_already_and_do_not_keep_it_out() {
        let mut cache = ReaderCache::new(&reliable(), true);
        at(&mut cache, 100, Alive, 1);
        assert_eq!(taken(&mut cache), [(100, true)]);
        assert_eq!(at(&mut cache, 101, Alive, 1), TOO_SOON);
        cache.bytes += MAX_PAYLOAD_BYTES;
        cache.on_timeout(Time(110));
        assert_eq!(taken(&mut cache), [(101, true)]);
    }

    #[test]
    fn it_is_lost_if_its_writer_goes_while_there_is_no_room() {
        for lifespan in [None, Some(Duration(3))] {
            let mut side = keyed_with_room_for_one(|qos| qos.time_based_filter = Duration(10));
            side.deliver(Time(1), 0, &mut data_of(Alive, 1, 1));
            assert!(side.take_next(Time(1)).is_some());
            lifespan.into_iter().for_each(|lifespan| side.lifespans.set(writer(1), lifespan));
            side.deliver(Time(2), 0, &mut data_of(Alive, 1, 2));
            let other = |change| CacheChange { writer_guid: writer(2), ..change };
            side.deliver(Time(3), 0, &mut data_of(Alive, 2, 1).map(other));
            assert_eq!(side.take_alarm(), Some(Time(11)));
            assert!(side.cache.writer_gone(Time(5), writer(1)));
            let is_lost = lifespan.is_none();
            assert_eq!(side.take_alarm(), is_lost.then_some(Time::AT_ONCE));
            let ((_, next), news) = side.look_at_deadlines(Time(5), &mut 9);
            assert_eq!((news.intersects(StatusMask::SAMPLE_LOST), next), (is_lost, Time::NEVER));
            assert_eq!(side.sample_lost.total_count, u32::from(is_lost));
            assert_eq!(taken(&mut side.cache), [(1, true), (SequenceNumber::UNKNOWN.0, false)]);
        }
    }

    #[test]
    fn an_instance_whose_sample_waits_is_not_given_up() {
        let mut cache = ReaderCache::new(&reliable(), true);
        (100..103).for_each(|now| _ = at(&mut cache, now, Alive, 1));
        assert_eq!(taken(&mut cache), [(100, true)]);
        assert!(!cache.instances.has_spare());
        cache.on_timeout(Time(110));
        assert_eq!(taken(&mut cache), [(102, true)]);
        assert!(cache.instances.has_spare());
    }

    #[test]
    fn of_those_that_wait_the_newest_by_its_source_stays() {
        let qos = DataReaderQos { destination_order: DestinationOrderKind::BySourceTimestamp, ..reliable() };
        let mut cache = ReaderCache::new(&qos, true);
        for (now, seconds) in [(100, 1), (101, 9), (102, 5)] {
            by_source(&mut cache, Alive, now, seconds);
        }
        cache.on_timeout(Time(110));
        assert_eq!(taken(&mut cache), [(100, true), (101, true)]);
    }

    fn by_source(cache: &mut ReaderCache, kind: ChangeKind, now: i64, seconds: u32) -> Insert {
        let mut change = change(kind, 1, 1, now);
        change.source_timestamp = Some(Timestamp { seconds, fraction: 0 });
        cache.insert(Time(now), change, 0, None)
    }

    #[test]
    fn what_comes_out_of_order_leaves_the_separation_as_it_is() {
        let order = DestinationOrderKind::BySourceTimestamp;
        let mut cache = ReaderCache::new(&DataReaderQos { destination_order: order, ..reliable() }, true);
        by_source(&mut cache, Alive, 100, 5);
        by_source(&mut cache, Alive, 101, 9);
        // It is older than what waits, and than what is there.
        for seconds in [7, 3] {
            let late = by_source(&mut cache, NotAliveDisposed, 102, seconds);
            assert_eq!((late, cache.len()), (Insert::Ignored(IgnoredReason::OutOfOrder), 1));
        }
        let mut qos = DataReaderQos { destination_order: order, ..DataReaderQos::default() };
        qos.time_based_filter = Duration(10);
        let mut cache = ReaderCache::new(&qos, true);
        by_source(&mut cache, Alive, 100, 5);
        let late = Insert::Ignored(IgnoredReason::OutOfOrder);
        assert_eq!(by_source(&mut cache, Alive, 110, 4), late, "KEEP_LAST has the newer one");
        assert_eq!(by_source(&mut cache, Alive, 111, 6), Insert::Replaced);
    }
}
