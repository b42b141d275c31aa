//! A writer that was lost and has come back goes on where it was.

use taut_base::{SequenceNumber, Time};
use taut_wire::Heartbeat;

use super::WriterProxy;
use crate::reader::lost::LostWriter;

impl WriterProxy {
    /// It is one that was lost: where its stream goes on is known, so no greeting is awaited for that.
    pub(in crate::reader) fn resume(&mut self, lost: LostWriter) {
        self.pass(lost.next);
        self.resumed = Some(lost);
        self.held = false;
    }

    /// The count of its last heartbeat.
    pub(in crate::reader) fn last_count(&self) -> Option<i32> {
        self.heartbeat_count.last
    }

    /// It says for the first time what it has. Returns up to where what is missing is history, or was counted as lost already.
    #[cold]
    #[inline(never)]
    pub(super) fn history_before(&mut self, now: Time, heartbeat: &Heartbeat) -> SequenceNumber {
        self.is_fresh = false;
        match self.resumed {
            Some(lost) => self.go_on_from(now, lost, heartbeat),
            None if self.skips_history => heartbeat.last_sn.min(self.before_stream()),
            None => SequenceNumber::ZERO,
        }
    }

    /// The same of one that was lost. One that counts anew, or has written less than had come, is another one under its name,
    /// whose stream begins. It must say so for a while if it only says from where on it has something for this reader: its
    /// greeting may be of long ago.
    fn go_on_from(&mut self, now: Time, lost: LostWriter, heartbeat: &Heartbeat) -> SequenceNumber {
        let before = heartbeat.first_sn.prev();
        if heartbeat.count.wrapping_sub(lost.count) > 0 {
            if heartbeat.last_sn.next() >= self.next {
                self.resumed = None;
                return lost.told.min(before);
            }
            if heartbeat.last_sn < heartbeat.first_sn && !self.has_restarted(now, heartbeat) {
                self.is_fresh = true;
                return SequenceNumber::ZERO;
            }
        }
        self.resumed = None;
        self.next = SequenceNumber::FIRST;
        if self.skips_history { heartbeat.last_sn.min(self.before_stream()) } else { before }
    }
}
