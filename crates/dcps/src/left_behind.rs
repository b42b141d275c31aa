//! What a writer leaves behind when it is no longer matched. DCPS 1.4 §2.2.4.1 (SAMPLE_LOST).
//!
//! A reliable reader that is full leaves samples where they are, in the protocol or in a lane, and its writer waits for it.
//! Once the writer has gone nobody brings them any more.

use taut_base::{Guid, SequenceNumber};
use taut_rtps::IntervalSet;

use crate::reader_side::{ReaderSide, Source};
use crate::status::StatusMask;

impl Source {
    /// The number of the last that was written into the lane, as its writer says: no more than its cells hold come after
    /// the last that the protocol knows of.
    fn last(&self, known: SequenceNumber) -> SequenceNumber {
        let known = known.0.max(self.next.prev().0);
        let most = known.saturating_add(i64::try_from(self.cells()).unwrap_or(i64::MAX));
        SequenceNumber(self.lane.lane().last().cast_signed().clamp(known, most))
    }
}

impl ReaderSide {
    /// A writer is no longer matched: what was written and has found no room, here, in its lane or in the protocol, is lost.
    pub(crate) fn leave_writer(&mut self, writer: Guid, undelivered: Option<IntervalSet>) -> StatusMask {
        let known = undelivered.as_ref().and_then(IntervalSet::last).unwrap_or(SequenceNumber::ZERO);
        let reads = |source: &&Source| source.writer == writer && source.reliable && !source.broken;
        let in_lane = self.sources.iter().find(reads).map(|source| (source.next, source.last(known)));
        self.remove_lane(writer);
        let Some(mut left) = undelivered else { return StatusMask::NONE };
        if let Some((next, last)) = in_lane {
            left.remove(SequenceNumber::ZERO, next);
            left.insert(next, last.next());
        }
        match left.count() {
            0 => StatusMask::NONE,
            lost => {
                self.sample_lost.count(lost);
                StatusMask::SAMPLE_LOST
            }
        }
    }
}
