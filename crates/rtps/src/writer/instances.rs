//! How many samples of one instance a KEEP_ALL writer holds. DCPS 1.4 §2.2.3.19.

use super::{NewChange, Writer};
use crate::history_cache::ChangeKind;

impl Writer {
    /// RESOURCE_LIMITS max_samples_per_instance of a KEEP_ALL writer, before its first change. None of them goes through the
    /// lane only.
    pub(crate) fn limit_instances(&mut self, most: usize) {
        if self.keep_all {
            self.max_samples_per_instance = most;
            self.history.count_instances();
        }
    }

    /// The same for the instance of a sample. That one ends is always told.
    pub(super) fn has_room_of(&self, new: &NewChange) -> bool {
        self.max_samples_per_instance == usize::MAX
            || new.kind != ChangeKind::Alive
            || self.history.len_of(new.instance) < self.max_samples_per_instance
    }
}
