//! What ends an instance and what brings it back: the state chart of DCPS 1.4 §2.2.2.5.1.3.
//!
//! The part of the reader cache that handles dispose, unregister and writers that go. It must never drop
//! data: what a state change costs is at most an older sample without data.

use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::Bytes;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::list::NIL;
use crate::reader_cache::{IgnoredReason, Insert, ReaderCache, source_order};
use crate::sample_info::PayloadKind;
use crate::states::InstanceState;
use crate::status::SampleRejectedReason;

impl ReaderCache {
    /// The writer has gone or is no longer alive: what only it wrote has no writers. Says whether a new sample tells that.
    /// *Cost*: O(n log n) in the instances.
    pub fn writer_gone(&mut self, now: Time, writer: Guid) -> bool {
        self.settle_fresh();
        self.unheard.forget(writer);
        let mut is_told = false;
        let mut next = self.instances.next_after(None);
        while let Some(index) = next {
            let instance = self.instances.at_mut(index);
            let handle = instance.handle;
            if instance.unregister(writer) {
                self.lapse(index, now);
                let marked = self.without_writers(now, index, || CacheChange {
                    kind: ChangeKind::NotAliveUnregistered,
                    writer_guid: writer,
                    sequence_number: SequenceNumber::UNKNOWN,
                    instance: None,
                    source_timestamp: None,
                    time: now,
                    payload: Bytes::new(),
                });
                is_told |= marked == Some(Insert::Stored);
                self.instances.settle(index);
            }
            next = self.instances.next_after(Some(handle));
        }
        is_told
    }

    /// A dispose, an unregister, or both.
    pub(crate) fn insert_state(&mut self, now: Time, change: CacheChange, strength: i32) -> Insert {
        let handle = self.handle(&change);
        let disposes = change.kind != ChangeKind::NotAliveUnregistered;
        let unregisters = change.kind != ChangeKind::NotAliveDisposed;
        let writer = change.writer_guid;
        let known = self.instances.find(handle);
        if known.is_none() && !disposes {
            return Insert::Ignored(IgnoredReason::UnknownInstance);
        }
        let Some(index) = known.or_else(|| self.create(handle, &change, strength)) else {
            return Insert::Rejected(SampleRejectedReason::RejectedByInstancesLimit);
        };
        self.lapse(index, change.time);
        let mut outcome = Insert::Ignored(IgnoredReason::NothingNew);
        if disposes {
            outcome = self.dispose(now, index, &change, strength);
        }
        // A change that disposes and is heard leaves nothing for the unregister to tell.
        if unregisters
            && self.instances.at_mut(index).unregister(writer)
            && let Some(marked) = self.without_writers(now, index, || change)
        {
            outcome = marked;
        }
        self.instances.settle(index);
        outcome
    }

    fn dispose(&mut self, now: Time, index: u32, change: &CacheChange, strength: i32) -> Insert {
        let instance = self.instances.at_mut(index);
        instance.register(change.writer_guid);
        if self.exclusive && !instance.own(change.writer_guid, strength) {
            return Insert::Ignored(IgnoredReason::NotOwner);
        }
        self.end_separation(now, index);
        let instance = self.instances.at_mut(index);
        if self.by_source {
            let order = source_order(change);
            if order.is_some() && order < instance.newest {
                return Insert::Ignored(IgnoredReason::OutOfOrder);
            }
            instance.newest = order.max(instance.newest);
        }
        if instance.state == InstanceState::NotAliveDisposed {
            return Insert::Ignored(IgnoredReason::NothingNew);
        }
        instance.state = InstanceState::NotAliveDisposed;
        self.instances.deadlines.end(index);
        self.instances.purge.set(index, now + self.lifecycle.autopurge_disposed_samples_delay);
        self.mark(index, change.clone())
    }

    /// If the instance is alive and has lost its last writer, it has none from now on; says what became
    /// of the sample that tells.
    fn without_writers(
        &mut self,
        now: Time,
        index: u32,
        change: impl FnOnce() -> CacheChange,
    ) -> Option<Insert> {
        let instance = self.instances.at_mut(index);
        if instance.has_writers() || instance.state != InstanceState::Alive {
            return None;
        }
        self.end_separation(now, index);
        self.instances.at_mut(index).state = InstanceState::NotAliveNoWriters;
        self.instances.deadlines.end(index);
        self.instances.purge.set(index, now + self.lifecycle.autopurge_nowriter_samples_delay);
        Some(self.mark(index, change()))
    }

    /// Adds the sample without data that tells of an instance's new state. There is one per instance
    /// beside what HISTORY keeps; with KEEP_ALL each is kept while there is room.
    fn mark(&mut self, index: u32, mut change: CacheChange) -> Insert {
        if !self.keyed {
            return Insert::Ignored(IgnoredReason::NothingNew);
        }
        let instance = self.instances.at(index);
        let mut kind = PayloadKind::Key;
        if change.payload.is_empty() {
            (change.payload, kind) = (instance.key.clone(), instance.key_kind);
        }
        let (older, last) = (instance.marker, instance.samples.tail);
        let full = self.depth.is_some() || self.samples.len() >= self.max_samples;
        let id = self.link(index, last, change, kind);
        if full && older != NIL {
            self.remove(older);
        }
        self.instances.at_mut(index).marker = id;
        Insert::Stored
    }

    /// A sample came: the instance is alive, unless the sample is older than what made it end.
    pub(crate) fn revive(&mut self, index: u32, change: &CacheChange) {
        let instance = self.instances.at_mut(index);
        if self.by_source {
            instance.newest = source_order(change).max(instance.newest);
        }
        if instance.state != InstanceState::Alive {
            instance.revive();
            self.instances.purge.cancel(index);
        }
    }
}
