//! What a take finds in the order in which it came: samples that nobody has looked at.
//!
//! A program that takes the next sample each time one comes needs no cache: what is known of an instance
//! changes at the take, as it does for a sample that a lane passes on. So plain samples of instances that are
//! alive wait here, and go into the cache only when something is asked that needs it: a selection, another
//! order, the end of an instance. Invariant: what is here came after nothing that the cache holds.

use taut_base::{InstanceHandle, Time};
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind, Ring};

use crate::cell::Head;
use crate::reader_cache::{Insert, MAX_PAYLOAD_BYTES, ReaderCache};
use crate::sample_info::SampleInfo;
use crate::states::InstanceState;

/// The samples, oldest first, and the bytes of them all.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    changes: Ring,
    bytes: usize,
}

impl Fresh {
    #[inline]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Puts a change behind the others; what is left of it is to be dropped.
    #[inline(always)]
    fn push(&mut self, change: &mut CacheChange) {
        self.bytes = self.bytes.saturating_add(change.payload.len());
        self.changes.push(|place| place.take_over(change));
    }

    /// Takes the oldest out of the row. It stays in its place until another one comes there.
    #[inline]
    fn pass(&mut self) -> Option<&mut CacheChange> {
        let change = self.changes.pop()?;
        self.bytes = self.bytes.saturating_sub(change.payload.len());
        Some(change)
    }
}

/// The payload of a sample that is taken: what is left of it when this goes is let go.
pub(crate) struct FreshPayload<'a>(pub &'a mut Bytes);

impl Drop for FreshPayload<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

impl ReaderCache {
    /// Takes a change that only waits to be taken, if it is one and there is room for it without a look at what
    /// its instance holds. Else it stays in the offer, for [`ReaderCache::insert`], and there is no answer.
    ///
    /// *Cost*: O(1) for the instance of the last sample; allocates nothing once there have been as many.
    #[inline(always)]
    pub(crate) fn insert_fresh(&mut self, offer: &mut Option<CacheChange>) -> Option<Insert> {
        let is_full = self.fresh.len() >= self.most_fresh;
        let may = |change: &CacheChange| {
            change.kind == ChangeKind::Alive
                && self.passes
                && (self.samples.len() == 0 || self.replaces_all())
                && (!is_full || self.replaces_fresh())
                && self.fresh.bytes < MAX_PAYLOAD_BYTES
                && self.is_alive(change)
        };
        if !offer.as_ref().is_some_and(may) {
            return None;
        }
        let replaces = is_full || self.samples.len() > 0;
        if is_full {
            self.drop_oldest_fresh();
        } else if replaces {
            self.drop_only();
        }
        if let Some(change) = offer {
            self.fresh.push(change);
        }
        *offer = None;
        Some(if replaces { Insert::Replaced } else { Insert::Stored })
    }

    /// Its place is for the next one.
    #[inline(never)]
    fn drop_only(&mut self) {
        let index = self.remove(self.all.head);
        self.instances.settle(index);
    }

    /// Does the cache hold one sample, in whose place the next one comes?
    fn replaces_all(&self) -> bool {
        self.samples.len() == 1 && self.most_fresh == 1 && self.replaces_fresh()
    }

    /// Is it KEEP_LAST alone that bounds what waits? Without a key all is of one instance: the oldest makes room.
    fn replaces_fresh(&self) -> bool {
        !self.keyed && self.depth == Some(self.most_fresh)
    }

    /// Its writer has written the instance all the same.
    #[inline(never)]
    fn drop_oldest_fresh(&mut self) {
        let Some(oldest) = self.fresh.pass() else { return };
        oldest.payload.release();
        let (instance, writer) = (oldest.instance.unwrap_or_default(), oldest.writer_guid);
        let known_as = self.known_as(instance);
        if let Some(instance) = self.instances.look_mut(known_as) {
            instance.register(writer);
        }
    }

    fn is_alive(&self, change: &CacheChange) -> bool {
        let found = self.instances.look(self.handle(change));
        found.is_some_and(|instance| instance.state == InstanceState::Alive)
    }

    /// Is this all that KEEP_ALL has room for? Then there is none for one more of this instance, if that is known, whether
    /// these are moved into the cache or not: to move them is long.
    pub(crate) fn is_full_of_fresh(&self, instance: InstanceHandle) -> bool {
        let is_full = self.fresh.len() >= self.max_samples || self.fresh.bytes >= MAX_PAYLOAD_BYTES;
        is_full && self.depth.is_none() && self.instances.look(self.known_as(instance)).is_some()
    }

    /// The payload of the first of them, the sample that [`ReaderCache::take_next`] gives; `info` is set.
    #[inline]
    pub(crate) fn take_fresh(&mut self, info: &mut SampleInfo) -> Option<FreshPayload<'_>> {
        let change = self.fresh.changes.front()?;
        let CacheChange { writer_guid, sequence_number: number, source_timestamp, kind, .. } = *change;
        let head = Head { number, source_timestamp, kind };
        let passed = self.pass(self.handle(change), (writer_guid, writer_guid.into()), &head, info);
        debug_assert!(passed, "what changes an instance settles what is fresh first");
        self.fresh.pass().map(|change| FreshPayload(&mut change.payload))
    }

    /// Moves them into the cache, where all questions are answered.
    #[inline]
    pub(crate) fn settle_fresh(&mut self) {
        if self.fresh.len() > 0 {
            self.insert_all_fresh();
        }
    }

    #[cold]
    fn insert_all_fresh(&mut self) {
        while let Some(change) = self.fresh.pass() {
            let payload = std::mem::take(&mut change.payload);
            let change = CacheChange { payload, ..change.clone() };
            // Only who owns an instance has a strength, and then nothing waits here.
            self.insert_data(change.time, change, 0, Time::NEVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use taut_qos::{DataReaderQos, History, Reliability, ResourceLimits};

    use super::*;
    use crate::TypeSupport;
    use crate::reader_cache_tests::change;
    use crate::reader_side::ReaderSide;

    /// So many samples wait in a plain reader that takes no more, of so many bytes each; one more is offered to it.
    fn offer_to_full(samples: i64, len: usize) -> ReaderSide {
        let max_samples = Some(4);
        let resource_limits = ResourceLimits { max_samples, ..ResourceLimits::default() };
        let reliability = Reliability::RELIABLE;
        let qos = DataReaderQos { resource_limits, reliability, ..DataReaderQos::default().keep_all() };
        let mut side = ReaderSide::new(&qos, &TypeSupport::default());
        let payload = Bytes::from(vec![0; len]);
        let offer = |side: &mut ReaderSide, number| {
            let payload = payload.clone();
            let mut offer = Some(CacheChange { payload, ..change(ChangeKind::Alive, 1, 0, number) });
            side.insert(Time(number), 0, &mut offer);
            offer.is_none()
        };
        // Until its instance is known a sample goes into the cache.
        assert!(offer(&mut side, 0) && side.take_next(Time(0)).is_some());
        assert!((1..=samples).all(|number| offer(&mut side, number)) && !offer(&mut side, samples + 1));
        side
    }

    #[test]
    fn what_waits_is_not_moved_to_refuse_one_more() {
        for (samples, len) in [(4, 1), (2, MAX_PAYLOAD_BYTES / 2)] {
            let mut side = offer_to_full(samples, len);
            assert_eq!(side.cache.fresh.len(), usize::try_from(samples).unwrap());
            assert!(!side.cache.has_room(InstanceHandle::NIL) && side.cache.fresh.len() > 0);
            let taken = std::iter::from_fn(|| side.take_next(Time(9)));
            assert!(taken.map(|sample| sample.info.sequence_number.0).eq(1..=samples));
        }
    }

    #[test]
    fn what_finds_room_otherwise_or_never_does_not_wait_behind_a_full_row() {
        let (max_samples, max_instances) = (Some(2), Some(1));
        let resource_limits = ResourceLimits { max_samples, max_instances, ..ResourceLimits::default() };
        for (history, waits) in [(History::KeepAll, true), (History::KeepLast(2), false)] {
            let qos = DataReaderQos { resource_limits, history, ..DataReaderQos::default() };
            let mut cache = ReaderCache::new(&qos, true);
            for number in 0..3 {
                cache.insert(Time(number), change(ChangeKind::Alive, 1, 1, number), 0, None);
                if number == 0 {
                    cache.take_next();
                }
            }
            assert_eq!(cache.fresh.len(), 2);
            let mut has_to_wait = |instance| cache.has_to_wait(&change(ChangeKind::Alive, 1, instance, 3), 0);
            assert_eq!(has_to_wait(1), waits, "KEEP_LAST drops the oldest");
            assert!(!has_to_wait(2), "another instance would have to end");
        }
    }

    #[test]
    fn the_ring_keeps_the_order_wherever_it_begins_when_it_grows() {
        for ahead in 0..5 {
            let (mut fresh, mut model) = (Fresh::default(), VecDeque::new());
            for number in 0..40 {
                let mut next = change(ChangeKind::Alive, 1, 0, number);
                next.payload = Bytes::from(vec![1; 100 + usize::try_from(number).unwrap()]);
                model.push_back((next.sequence_number, next.payload.clone()));
                fresh.push(&mut next);
                // It empties, and fills further than before, again and again.
                let most = if number % 13 == 12 { 0 } else { ahead + usize::try_from(number).unwrap() / 8 };
                while fresh.len() > most {
                    assert_eq!(
                        fresh.changes.front().map(|change| change.sequence_number),
                        model.front().map(|m| m.0)
                    );
                    let passed = fresh.pass().map(|change| (change.sequence_number, change.payload.clone()));
                    assert_eq!(passed, model.pop_front());
                }
                assert_eq!(fresh.len(), model.len());
                assert_eq!(fresh.bytes, model.iter().map(|(_, payload)| payload.len()).sum::<usize>());
            }
        }
    }
}
