//! What a writer leaves behind when it is no longer matched. DCPS 1.4 §2.2.4.1 (SAMPLE_LOST).
//!
//! A reliable reader that is full leaves samples where they are, in the protocol or in a lane, and its writer waits for it.
//! Once the writer has gone nobody brings them any more.

use taut_base::{Guid, SequenceNumber};

use crate::reader_side::{ReaderSide, Source};
use crate::status::StatusMask;

impl Source {
    /// The number of the last that was written into the lane.
    fn last(&self) -> SequenceNumber {
        SequenceNumber(self.lane.lane().last().cast_signed())
    }
}

impl ReaderSide {
    /// A writer is no longer matched: what was written and has found no room, here, in its lane or in the protocol, is lost.
    pub(crate) fn leave_writer(
        &mut self,
        writer: Guid,
        undelivered: Option<(SequenceNumber, SequenceNumber)>,
    ) -> StatusMask {
        let in_lane = self.sources.iter().find(|source| source.writer == writer && source.reliable);
        let in_lane = in_lane.map(|source| (source.next, source.last()));
        self.remove_lane(writer);
        let Some((mut next, mut last)) = undelivered else { return StatusMask::NONE };
        if let Some((lane_next, lane_last)) = in_lane {
            (next, last) = (lane_next, last.max(lane_last));
        }
        match u64::try_from(last.0.saturating_sub(next.0).saturating_add(1)) {
            Err(_) | Ok(0) => StatusMask::NONE,
            Ok(lost) => {
                self.sample_lost.count(lost);
                StatusMask::SAMPLE_LOST
            }
        }
    }
}
