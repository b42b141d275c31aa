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

    /// It says what it has. Returns up to where what is missing is not lost, or was counted so already. One that counts anew, or
    /// has written less than had come, is another one under its name, whose stream begins. It must say so for a while if it
    /// only says from where on it has something for this reader: its greeting may be of long ago.
    #[cold]
    pub(super) fn go_on_from(
        &mut self,
        now: Time,
        lost: LostWriter,
        heartbeat: &Heartbeat,
    ) -> SequenceNumber {
        let before = heartbeat.first_sn.prev();
        if heartbeat.count.wrapping_sub(lost.count) > 0 {
            if heartbeat.last_sn.next() >= self.next {
                self.resumed = None;
                return lost.told.min(before);
            }
            if heartbeat.last_sn < heartbeat.first_sn && !self.has_restarted(now, heartbeat) {
                return SequenceNumber::ZERO;
            }
        }
        self.resumed = None;
        self.next = SequenceNumber::FIRST;
        if self.skips_history { heartbeat.last_sn.min(self.before_stream()) } else { before }
    }
}
