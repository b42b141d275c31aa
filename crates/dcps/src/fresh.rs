//! What a take finds in the order in which it came: samples that nobody has looked at.
//!
//! A program that takes the next sample each time one comes needs no cache: what is known of an instance
//! changes at the take, as it does for a sample that a lane passes on. So plain samples of instances that are
//! alive wait here, and go into the cache only when something is asked that needs it: a selection, another
//! order, the end of an instance. Invariant: what is here came after nothing that the cache holds.

use std::collections::VecDeque;

use taut_base::Time;
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::cell::Head;
use crate::reader_cache::{Insert, MAX_PAYLOAD_BYTES, ReaderCache};
use crate::sample_info::SampleInfo;
use crate::states::InstanceState;

/// The samples, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    queue: VecDeque<CacheChange>,
    bytes: usize,
}

impl Fresh {
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    fn push(&mut self, change: CacheChange) {
        self.bytes = self.bytes.saturating_add(change.payload.len());
        self.queue.push_back(change);
    }

    fn pop(&mut self) -> Option<CacheChange> {
        let change = self.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(change.payload.len());
        Some(change)
    }
}

impl ReaderCache {
    /// Takes a change that only waits to be taken, if it is one and there is room for it without a look at what
    /// its instance holds. Else it stays in the offer, for [`ReaderCache::insert`], and there is no answer.
    ///
    /// *Cost*: O(1) for the instance of the last sample; allocates nothing once there have been as many.
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
            let index = self.remove(self.all.head);
            self.instances.settle(index);
        }
        if let Some(change) = offer.take() {
            self.fresh.push(change);
        }
        Some(if replaces { Insert::Replaced } else { Insert::Stored })
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
    fn drop_oldest_fresh(&mut self) {
        let Some(oldest) = self.fresh.pop() else { return };
        if let Some(index) = self.instances.find(self.handle(&oldest)) {
            self.instances.at_mut(index).register(oldest.writer_guid);
        }
    }

    fn is_alive(&self, change: &CacheChange) -> bool {
        let found = self.instances.find(self.handle(change));
        found.is_some_and(|index| self.instances.at(index).state == InstanceState::Alive)
    }

    /// The payload of the first of them, the sample that [`ReaderCache::take_next`] gives; `info` is set.
    #[inline]
    pub(crate) fn take_fresh(&mut self, info: &mut SampleInfo) -> Option<Bytes> {
        let change = self.fresh.pop()?;
        let CacheChange { writer_guid, sequence_number: number, source_timestamp, kind, .. } = change;
        let head = Head { number, source_timestamp, kind };
        let passed = self.pass(self.handle(&change), (writer_guid, writer_guid.into()), &head, info);
        debug_assert!(passed, "what changes an instance settles what is fresh first");
        Some(change.payload)
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
        while let Some(change) = self.fresh.pop() {
            // Only who owns an instance has a strength, and then nothing waits here.
            self.insert_data(change.time, change, 0, Time::NEVER);
        }
    }
}
