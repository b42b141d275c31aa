//! Where a change goes that has come to its reader: into the cache, or nowhere. DCPS 1.4 §2.2.2.3.5 (content filters),
//! §2.2.3.16 (LIFESPAN).
//!
//! What is usual, a sample that only waits to be taken, meets each question once; what has to be done where the answer is
//! another one is apart. The protocol's delivery and the lanes call it.

use taut_base::Time;
use taut_rtps::Offer;
use taut_rtps::history_cache::ChangeKind;

use super::ReaderSide;
use crate::reader_cache::Insert;
use crate::status::StatusMask;

/// How many samples that are too old go for one that comes, which needs the room of one. Lower than 2 and they would
/// become ever more, higher and the one that comes when many grow old waits longer: each takes some 100 ns.
const FORGOTTEN_BY_ONE: usize = 16;

impl ReaderSide {
    /// Puts a change into the cache. What has no room there stays where it is, if its reader is reliable.
    #[inline(never)]
    pub(crate) fn insert(&mut self, now: Time, strength: i32, offered: &mut Offer) -> StatusMask {
        if self.filter.is_some() && self.filters_out(now, strength, offered) {
            return StatusMask::NONE;
        }
        let Some(change) = offered else { return StatusMask::NONE };
        let Some(instance) = self.instance_of(change) else {
            self.sample_lost.count(1);
            *offered = None;
            return StatusMask::SAMPLE_LOST;
        };
        change.instance = Some(instance);
        let expires = self.lifespans.end_of(now, change);
        if expires.is_some_and(|at| at <= now) {
            self.cache.pass_over_expired(change);
            *offered = None;
            return StatusMask::NONE;
        }
        if self.cache.has_timeout() {
            // What comes so takes room, which is asked for below.
            self.cache.end_separations(change.time);
            self.forget_old(now, FORGOTTEN_BY_ONE);
        }
        if expires.is_none() && self.cache.insert_fresh(offered).is_some() {
            return StatusMask::DATA_AVAILABLE;
        }
        self.insert_settled(now, strength, offered, expires)
    }

    /// Does the filter let nothing come of a change? It is gone then.
    #[inline(never)]
    fn filters_out(&mut self, now: Time, strength: i32, offered: &mut Offer) -> bool {
        let (Some(filter), Some(change)) = (&self.filter, &*offered) else { return false };
        if change.kind == ChangeKind::Alive {
            let leaves_out = !filter.passes(&change.payload);
            self.filtered_out += u64::from(leaves_out);
            if leaves_out && let Some(change) = offered.take().filter(|_| self.cache.exclusive) {
                self.hear(now, strength, change);
            }
            return leaves_out;
        }
        if change.kind.has_data() {
            return false;
        }
        // Of an instance of which nothing has passed nobody hears that it has ended.
        let Some(instance) = self.instance_of(change) else { return false };
        let is_unheard = self.cache.lookup_instance(self.cache.known_as(instance)).is_none();
        if is_unheard && let Some(change) = offered.take() {
            self.end_unheard(instance, &change);
        }
        is_unheard
    }

    /// Puts a change into the cache that does not only wait to be taken.
    #[inline(never)]
    fn insert_settled(
        &mut self,
        now: Time,
        strength: i32,
        offered: &mut Offer,
        expires: Option<Time>,
    ) -> StatusMask {
        let instance = offered.as_ref().and_then(|change| change.instance).unwrap_or_default();
        let ends = offered.as_ref().is_some_and(|change| !change.kind.has_data());
        if self.cache.is_leaving() {
            // What comes so takes room, too.
            self.cache.leave_first(now, self.cache.known_as(instance));
        }
        if self.cache.has_timeout() && !self.cache.has_room(instance) {
            self.forget_old(now, usize::MAX);
        }
        if self.reliable && offered.as_ref().is_some_and(|change| self.cache.has_to_wait(change, strength)) {
            return StatusMask::NONE;
        }
        let Some(change) = offered.take() else { return StatusMask::NONE };
        if change.kind != ChangeKind::Alive && change.kind.has_data() {
            return self.insert_last(now, strength, change);
        }
        let inserted = self.cache.insert(now, change, strength, expires);
        if ends {
            self.note_purge();
        }
        match inserted {
            Insert::Stored | Insert::Replaced => StatusMask::DATA_AVAILABLE,
            Insert::Rejected(reason) => {
                self.sample_rejected.count(reason, self.cache.known_as(instance));
                StatusMask::SAMPLE_REJECTED
            }
            Insert::Ignored(_) => StatusMask::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::Duration;
    use taut_mem::Bytes;
    use taut_qos::{DataReaderQos, History, OwnershipKind};
    use taut_rtps::history_cache::CacheChange;

    use super::*;
    use crate::reader_cache_tests::{handle, writer};
    use crate::reader_side_tests::{data_of, keyed_with_room_for_one};
    use crate::{InstanceState, Selection};

    fn end_of(kind: ChangeKind, instance: u8, number: i64) -> Offer {
        let end = |change| CacheChange { payload: Bytes::new(), instance: Some(handle(instance)), ..change };
        data_of(kind, instance, number).map(end)
    }

    /// A reader that knows instances 1 and 2 and keeps the last of both: more it has no room for.
    fn full_of_two(qos: impl FnOnce(&mut DataReaderQos)) -> ReaderSide {
        let mut side = keyed_with_room_for_one(|of| {
            (of.history, of.resource_limits.max_samples) = (History::KeepLast(1), Some(2));
            qos(of);
        });
        for instance in [1, 2] {
            side.deliver(Time(1), 0, &mut data_of(ChangeKind::Alive, instance, instance.into()));
        }
        assert_eq!(side.read(Time(1), &Selection::ANY, |_| ()), 2);
        side
    }

    #[test]
    fn that_a_writer_leaves_an_unknown_instance_holds_nothing_back() {
        let mut side = full_of_two(|_| ());
        let mut leaves = end_of(ChangeKind::NotAliveUnregistered, 3, 3);
        assert_eq!(side.deliver(Time(2), 0, &mut leaves), StatusMask::NONE);
        assert!(leaves.is_none() && !side.is_blocked() && side.cache.instance_count() == 2);
        let mut next = data_of(ChangeKind::Alive, 1, 4);
        assert_eq!(side.deliver(Time(2), 0, &mut next), StatusMask::DATA_AVAILABLE, "in place of the last");
        // That one is disposed of is told, of an unknown one too.
        let mut end = end_of(ChangeKind::NotAliveDisposed, 3, 5);
        side.deliver(Time(3), 0, &mut end);
        assert!(end.is_some() && side.take_next(Time(3)).is_some());
        assert_eq!(side.deliver(Time(3), 0, &mut end), StatusMask::DATA_AVAILABLE);
        assert_eq!(side.take_next(Time(3)).map(|sample| sample.info.instance_handle), Some(handle(3)));
    }

    #[test]
    fn an_end_waits_with_what_came_too_soon_before_it() {
        for kind in [ChangeKind::NotAliveUnregistered, ChangeKind::NotAliveDisposed] {
            let mut side = keyed_with_room_for_one(|qos| qos.time_based_filter = Duration(10));
            side.deliver(Time(1), 0, &mut data_of(ChangeKind::Alive, 1, 1));
            assert!(side.take_next(Time(1)).is_some());
            side.deliver(Time(2), 0, &mut data_of(ChangeKind::Alive, 1, 2));
            side.deliver(Time(3), 0, &mut data_of(ChangeKind::Alive, 2, 3));
            let mut end = end_of(kind, 1, 4);
            side.deliver(Time(4), 0, &mut end);
            assert!(end.is_some() && side.take_next(Time(4)).is_some());
            side.deliver(Time(5), 0, &mut end);
            let told = std::iter::from_fn(|| side.take_next(Time(5))).map(|sample| sample.info);
            let told: Vec<_> = told.map(|info| (info.sequence_number.0, info.valid_data)).collect();
            assert_eq!(told, [(2, true), (4, false)]);
        }
    }

    #[test]
    fn who_drives_is_told_when_data_with_an_end_will_make_room() {
        let mut side = full_of_two(|qos| {
            qos.reader_data_lifecycle.autopurge_disposed_samples_delay = Duration(10);
        });
        let mut waits = data_of(ChangeKind::Alive, 3, 3);
        side.deliver(Time(1), 0, &mut waits);
        assert!(waits.is_some() && side.take_alarm().is_none(), "nothing makes room by itself");
        let mut last = data_of(ChangeKind::AliveThenDisposed, 1, 4);
        last.as_mut().unwrap().writer_guid = writer(2);
        side.deliver(Time(2), 0, &mut last);
        assert!(last.is_none() && side.take_untold());
        assert_eq!(side.take_alarm(), Some(Time(12)));
        side.look_at_deadlines(Time(12), &mut 9);
        assert!(side.take_freed());
        side.deliver(Time(12), 0, &mut waits);
        assert!(waits.is_none() && side.cache.instance_state(handle(3)).is_some());
    }

    /// Instance 1 is full of what its owner has written.
    fn full_of_its_owner(qos: impl FnOnce(&mut DataReaderQos)) -> ReaderSide {
        let mut side = keyed_with_room_for_one(|of| {
            let limits = &mut of.resource_limits;
            (limits.max_samples, limits.max_samples_per_instance) = (None, Some(1));
            of.ownership = OwnershipKind::Exclusive;
            qos(of);
        });
        side.deliver(Time(1), 2, &mut data_of(ChangeKind::Alive, 1, 1));
        side
    }

    fn from_another(kind: ChangeKind, instance: u8, number: i64) -> Offer {
        data_of(kind, instance, number).map(|change| CacheChange { writer_guid: writer(2), ..change })
    }

    #[test]
    fn what_does_not_count_beside_the_owner_waits_for_no_room() {
        let mut side = full_of_its_owner(|_| ());
        for kind in [ChangeKind::Alive, ChangeKind::AliveThenDisposedUnregistered] {
            let mut weaker = from_another(kind, 1, 1);
            assert_eq!(side.deliver(Time(2), 1, &mut weaker), StatusMask::NONE);
            assert!(weaker.is_none() && !side.is_blocked());
        }
        let mut of_its_own = from_another(ChangeKind::Alive, 2, 2);
        assert_eq!(side.deliver(Time(2), 1, &mut of_its_own), StatusMask::DATA_AVAILABLE);
        let mut stronger = from_another(ChangeKind::Alive, 1, 3);
        side.deliver(Time(3), 3, &mut stronger);
        assert!(stronger.is_some(), "it counts");
        let taken = std::iter::from_fn(|| side.take_next(Time(4))).map(|sample| sample.info);
        let taken: Vec<_> = taken.map(|info| (info.instance_handle, info.instance_state)).collect();
        assert_eq!(taken, [1, 2].map(|instance| (handle(instance), InstanceState::Alive)));
    }

    #[test]
    fn beside_an_owner_that_is_late_a_weaker_one_waits_for_room() {
        let mut side = full_of_its_owner(|qos| qos.deadline = Duration(10));
        let mut weaker = from_another(ChangeKind::Alive, 1, 1);
        side.deliver(Time(12), 1, &mut weaker);
        assert!(weaker.is_some() && side.take_next(Time(12)).is_some());
        assert_eq!(side.deliver(Time(12), 1, &mut weaker), StatusMask::DATA_AVAILABLE);
        assert_eq!(side.sample_rejected.total_count, 0);
    }
}
