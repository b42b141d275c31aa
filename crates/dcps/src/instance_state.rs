//! What ends an instance and what brings it back: the state chart of DCPS 1.4 §2.2.2.5.1.3.
//!
//! The part of the reader cache that handles dispose and unregister; writers that go are in `leaving`. It must never drop
//! data: what a state change costs is at most an older sample without data.

use taut_base::Time;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::instance::MAX_KEY_COPY;
use crate::list::NIL;
use crate::reader_cache::{IgnoredReason, Insert, MAX_PAYLOAD_BYTES, ReaderCache, source_order};
use crate::sample_info::PayloadKind;
use crate::states::InstanceState;
use crate::status::SampleRejectedReason;

impl ReaderCache {
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
        if known.is_none() && self.bytes >= MAX_PAYLOAD_BYTES {
            return Insert::Rejected(SampleRejectedReason::RejectedBySamplesLimit);
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
        let order = source_order(change).filter(|_| self.by_source);
        if order.is_some() && order < self.newest(index) {
            return Insert::Ignored(IgnoredReason::OutOfOrder);
        }
        self.end_separation(now, index);
        let instance = self.instances.at_mut(index);
        instance.newest = order.max(instance.newest);
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
    pub(crate) fn without_writers(
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
        // Of a long one the instance has the key itself; behind that may be anything.
        if change.payload.is_empty() || change.payload.len() > MAX_KEY_COPY {
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
