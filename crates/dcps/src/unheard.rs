//! OWNERSHIP EXCLUSIVE and samples that a content filter keeps out. DCPS 1.4 §2.2.3.9.2, §2.2.2.3.3.
//!
//! Who owns an instance does not depend on what it writes: a reader with a filter gets some of what one without gets, and
//! never the value of a weaker writer in place of one that did not pass. So a sample that does not pass makes its writer
//! the owner all the same, and shows that the owner keeps its deadline; else it is as if it was never written.
//!
//! Owns the owners of instances that the reader does not know, as nothing of them has passed. Must never make an instance
//! of one.

use std::collections::BTreeMap;

use taut_base::{Duration, Guid, InstanceHandle, Time};
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::instance::{DEFAULT_MAX_INSTANCES, Owner, yields};
use crate::reader_cache::ReaderCache;
use crate::reader_side::ReaderSide;

/// Instances whose owners are remembered; of one beyond that a weaker writer is heard until a sample of the owner passes.
/// As many as are known: lower and filters that let little pass forget them, higher and a peer that makes up keys gets
/// more memory, some 60 B for each.
const MAX_OWNERS: usize = DEFAULT_MAX_INSTANCES;

/// The owners, and when they last wrote. *Cost*: O(log n), of samples that do not pass and new instances only.
#[derive(Debug, Default)]
pub(crate) struct Unheard {
    owners: BTreeMap<InstanceHandle, (Owner, Time)>,
}

impl Unheard {
    /// May a writer be heard that writes such an instance then? One that has not written for the period of DEADLINE owns it
    /// no longer.
    fn admits(
        &self,
        instance: InstanceHandle,
        (strength, writer): Owner,
        came: Time,
        period: Duration,
    ) -> bool {
        self.owners
            .get(&instance)
            .is_none_or(|(owner, heard)| came.since(*heard) > period || yields(*owner, writer, strength))
    }

    /// The instance is known, and has an owner that is heard.
    #[inline]
    pub fn begin(&mut self, instance: InstanceHandle) {
        if !self.owners.is_empty() {
            self.owners.remove(&instance);
        }
    }

    /// A writer unregisters an instance.
    pub fn unregister(&mut self, instance: InstanceHandle, writer: Guid) {
        if self.owners.get(&instance).is_some_and(|((_, owner), _)| *owner == writer) {
            self.owners.remove(&instance);
        }
    }

    /// A writer has gone.
    pub fn forget(&mut self, writer: Guid) {
        self.owners.retain(|_, ((_, owner), _)| *owner != writer);
    }

    /// The strength of a writer may have changed.
    pub fn weigh(&mut self, writer: Guid, strength: i32) {
        let owned = self.owners.values_mut().filter(|((_, owner), _)| *owner == writer);
        owned.for_each(|((known, _), _)| *known = strength);
    }
}

impl ReaderCache {
    /// A sample has not passed the filter. `change` is as [`ReaderCache::insert`] wants it.
    fn hear(&mut self, change: &CacheChange, strength: i32) {
        let (handle, writer, came) = (self.handle(change), change.writer_guid, change.time);
        if self.is_leaving() {
            self.leave_first(came, handle);
            self.come_back(writer, handle);
        }
        if let Some(index) = self.instances.find(handle) {
            self.lapse(index, came);
            let instance = self.instances.at_mut(index);
            instance.register(writer);
            instance.hear(writer, strength, came);
            self.instances.settle(index);
        } else if self.unheard.admits(handle, (strength, writer), came, self.deadline())
            && (self.unheard.owners.len() < MAX_OWNERS || self.unheard.owners.contains_key(&handle))
        {
            self.unheard.owners.insert(handle, ((strength, writer), came));
        }
    }

    /// A sample of an instance that is not known has passed: may its writer be heard?
    #[inline]
    pub(crate) fn may_begin(&self, handle: InstanceHandle, change: &CacheChange, strength: i32) -> bool {
        let (writer, came) = (change.writer_guid, change.time);
        self.unheard.owners.is_empty()
            || self.unheard.admits(handle, (strength, writer), came, self.deadline())
    }
}

impl ReaderSide {
    /// With OWNERSHIP EXCLUSIVE a sample has not passed the filter.
    #[cold]
    pub(crate) fn hear(&mut self, now: Time, strength: i32, mut change: CacheChange) {
        let Some(instance) = self.instance_of(&change) else { return };
        change.instance = Some(instance);
        if self.lifespans.end_of(now, &change).is_none_or(|at| at > now) {
            self.cache.hear(&change, strength);
        }
    }

    /// With a filter an instance ends of which nothing has passed: nobody is told.
    pub(crate) fn end_unheard(&mut self, instance: InstanceHandle, change: &CacheChange) {
        if change.kind != ChangeKind::NotAliveDisposed {
            self.cache.unheard.unregister(self.cache.known_as(instance), change.writer_guid);
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::{Duration, InstanceHandle, Time};
    use taut_mem::Bytes;
    use taut_qos::{DataReaderQos, ResourceLimits};
    use taut_rtps::history_cache::ChangeKind::{self, Alive, NotAliveDisposed, NotAliveUnregistered};

    use crate::reader_cache_tests::{change, writer};
    use crate::reader_side::ReaderSide;
    use crate::{ContentFilter, InstanceState, TypeSupport};

    const PERIOD: i64 = 100;

    struct Rig {
        side: ReaderSide,
        last: i64,
    }

    impl Rig {
        /// A payload is its instance and a value, of which 0 does not pass.
        fn new(keyed: bool, deadline: bool) -> Rig {
            let mut qos = DataReaderQos::default().keep_all().exclusive();
            if deadline {
                qos = qos.deadline(Duration(PERIOD));
            }
            Rig::of(qos, keyed)
        }

        fn of(qos: DataReaderQos, keyed: bool) -> Rig {
            let key_hash = |payload: &[u8], _| Some(InstanceHandle([*payload.first()?; 16]));
            let type_support = TypeSupport {
                type_name: "Reading".into(),
                key_hash: keyed.then_some(key_hash),
                filter: Some(ContentFilter::new(|payload| payload.get(1) != Some(&0))),
                ..TypeSupport::default()
            };
            Rig { side: ReaderSide::new(&qos, &type_support), last: 0 }
        }

        fn put(&mut self, now: i64, kind: ChangeKind, w: u8, strength: i32, payload: [u8; 2]) {
            self.last += 1;
            let mut change = change(kind, w, payload[0], self.last);
            change.time = Time(now);
            change.payload = Bytes::copy_from(&payload);
            self.side.deliver(Time(now), strength, &mut Some(change));
        }

        /// Writer 2 is the stronger one.
        fn write(&mut self, now: i64, w: u8, payload: [u8; 2]) {
            self.put(now, Alive, w, i32::from(w), payload);
        }

        /// The values that are there.
        fn taken(&mut self, now: i64) -> Vec<u8> {
            let next = || self.side.take_next(Time(now)).map(|sample| sample.payload[1]);
            std::iter::from_fn(next).collect()
        }
    }

    #[test]
    fn a_sample_that_does_not_pass_makes_its_writer_the_owner() {
        for keyed in [true, false] {
            let mut rig = Rig::new(keyed, false);
            rig.write(1, 1, [7, 10]);
            rig.write(2, 2, [7, 0]);
            rig.write(3, 1, [7, 11]);
            rig.write(4, 2, [7, 20]);
            rig.write(5, 1, [7, 12]);
            assert_eq!(rig.taken(6), [10, 20], "keyed {keyed}");
        }
    }

    #[test]
    fn an_instance_of_which_nothing_has_passed_has_an_owner() {
        for keyed in [true, false] {
            let mut rig = Rig::new(keyed, false);
            rig.write(1, 2, [7, 0]);
            rig.write(2, 1, [7, 11]);
            assert_eq!((rig.taken(3), rig.side.cache.instance_count()), (vec![], 0), "keyed {keyed}");
            rig.write(4, 3, [7, 30]);
            rig.write(5, 2, [7, 20]);
            assert_eq!(rig.taken(6), [30]);
        }
        // Until it unregisters the instance, or goes.
        for ends in [true, false] {
            let mut rig = Rig::new(true, false);
            rig.write(1, 2, [7, 0]);
            rig.put(2, NotAliveDisposed, 2, 2, [7, 0]);
            rig.put(2, NotAliveUnregistered, 1, 1, [7, 0]);
            rig.write(3, 1, [7, 11]);
            if ends {
                rig.put(4, NotAliveUnregistered, 2, 2, [7, 0]);
            } else {
                rig.side.cache.writer_gone(Time(4), writer(2));
            }
            rig.write(5, 1, [7, 12]);
            assert_eq!(rig.taken(6), [12]);
        }
        // Or is no longer as strong.
        let mut rig = Rig::new(true, false);
        rig.write(1, 2, [7, 0]);
        rig.side.cache.weigh(writer(2), |_| 0);
        rig.write(2, 1, [7, 11]);
        assert_eq!(rig.taken(3), [11]);
    }

    #[test]
    fn an_owner_that_keeps_the_deadline_unheard_stays_the_owner() {
        let look = |rig: &mut Rig, now| _ = rig.side.look_at_deadlines(Time(now), &mut 9);
        let mut rig = Rig::new(true, true);
        rig.write(0, 2, [7, 20]);
        for now in (90..500).step_by(90) {
            rig.write(now, 2, [7, 0]);
            look(&mut rig, now + 5);
            rig.write(now + 6, 1, [7, 11]);
        }
        assert_eq!(rig.taken(500), [20]);
        // The last was at 450.
        look(&mut rig, 540);
        rig.write(541, 1, [7, 12]);
        look(&mut rig, 640);
        rig.write(641, 1, [7, 13]);
        assert_eq!(rig.taken(650), [13]);

        let mut rig = Rig::new(true, true);
        rig.write(0, 2, [7, 0]);
        rig.write(PERIOD, 1, [7, 11]);
        rig.write(PERIOD + 1, 1, [7, 12]);
        assert_eq!(rig.taken(PERIOD + 2), [12]);
    }

    #[test]
    fn a_sample_that_finds_no_room_takes_no_instance_over() {
        let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let mut rig = Rig::of(DataReaderQos::default().keep_all().exclusive().resource_limits(limits), true);
        rig.write(1, 2, [7, 0]);
        rig.write(2, 2, [8, 20]);
        rig.write(3, 3, [7, 30]);
        assert_eq!((rig.side.sample_rejected.total_count, rig.taken(4)), (1, vec![20]));
        rig.write(5, 1, [7, 11]);
        assert_eq!(rig.taken(6), [], "it is the second's still");
    }

    #[test]
    fn the_only_instance_of_a_topic_without_a_key_ends() {
        let mut rig = Rig::new(false, false);
        rig.write(1, 1, [7, 10]);
        rig.put(2, NotAliveDisposed, 1, 1, [7, 0]);
        let taken = rig.side.take_next(Time(3)).unwrap().info;
        assert_eq!(taken.instance_state, InstanceState::NotAliveDisposed);
    }
}
