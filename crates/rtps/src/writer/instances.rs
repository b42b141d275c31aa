//! How many samples a writer holds of an instance, and with KEEP_LAST of all. DCPS 1.4 §2.2.2.4.2.11, §2.2.3.19.
//!
//! Where all are of one instance, or none is older than KEEP_ALL lets it be, the number of all tells.

use taut_base::InstanceHandle;

use super::{NewChange, Writer};
use crate::history_cache::ChangeKind;

impl Writer {
    /// RESOURCE_LIMITS max_samples_per_instance of a KEEP_ALL writer, before its first change. None of them goes through the
    /// lane only.
    pub(crate) fn limit_instances(&mut self, most: usize) {
        if self.keep_all {
            self.max_samples_per_instance = most;
            self.counts_instances = true;
            self.history.count_instances();
        }
    }

    /// RESOURCE_LIMITS max_samples of a durable KEEP_LAST writer, before its first change. What a volatile one holds its
    /// readers are about to acknowledge, and they stop no KEEP_LAST writer.
    pub(crate) fn limit_samples(&mut self) {
        if !self.keep_all && self.durable && self.max_samples != usize::MAX {
            self.counts_instances = self.guid.entity.is_keyed();
            self.history.limit(self.max_samples);
        }
    }

    /// Is there room for one more sample of its instance? That one ends is always told.
    #[inline]
    pub(super) fn has_room_of(&mut self, new: &NewChange) -> bool {
        !self.counts_instances || self.makes_room_of(new)
    }

    #[cold]
    fn makes_room_of(&mut self, new: &NewChange) -> bool {
        if self.keep_all {
            return new.kind != ChangeKind::Alive || self.has_room_for(new.instance);
        }
        let acked = self.acked_by_all();
        let has_room = self.history.make_room(new.instance, acked);
        self.history.evict(self.sent);
        has_room || new.kind.unregisters()
    }

    /// Does a KEEP_ALL writer hold less of an instance than it may?
    pub(super) fn has_room_for(&self, instance: InstanceHandle) -> bool {
        self.history.len_of(instance) < self.max_samples_per_instance
    }

    /// Is there no room for a change, and never will be? A durable KEEP_ALL history gives up what is too old, and nothing for
    /// who acknowledges it.
    #[cold]
    pub fn never_takes(&self, new: &NewChange) -> bool {
        let keeps_for_good = self.keep_all && self.durable && self.lifespan.is_infinite();
        let is_full = || self.held() >= self.max_samples;
        let is_full_of_it = || new.kind == ChangeKind::Alive && !self.has_room_for(new.instance);
        keeps_for_good && (is_full() || is_full_of_it())
    }
}
