//! What a writer leaves behind when it is no longer matched. DCPS 1.4 §2.2.4.1 (SAMPLE_LOST).
//!
//! A reliable reader that is full leaves samples where they are, in the protocol or in a lane, and its writer waits for it.
//! Once the writer has gone nobody brings them any more. If only its lane is left they are still the reader's.

use std::ops::Range;

use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::lane::Next;
use taut_rtps::IntervalSet;
use taut_rtps::history_cache::CacheChange;

use crate::cell::{self, Head};
use crate::reader_side::{Pulled, ReaderSide, Source};
use crate::status::StatusMask;

/// Below the first all has come from a lane; up to the second it is lost.
type LaneEnd = (SequenceNumber, SequenceNumber);

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
    /// See [`taut_rtps::Sink::held_by_lane`].
    pub(crate) fn held_by_lane(&self, writer: Guid, numbers: &Range<SequenceNumber>) -> u64 {
        let sources = self.sources.iter().filter(|source| source.writer == writer && !source.broken);
        let held = sources.flat_map(|source| source.lane.peek_all()).map(|meta| Head::of(&meta).number);
        held.filter(|number| numbers.contains(number)).count() as u64
    }

    /// A writer is no longer matched: what was written and has found no room, here, in its lane or in the protocol, is lost.
    /// Returns up to where all has come from its lane, and up to where what that held is lost, too.
    pub(crate) fn leave_writer(
        &mut self,
        writer: Guid,
        undelivered: Option<IntervalSet>,
    ) -> (StatusMask, Option<LaneEnd>) {
        let known = undelivered.as_ref().and_then(IntervalSet::last).unwrap_or(SequenceNumber::ZERO);
        let reads = |source: &&Source| source.writer == writer && !source.broken;
        let last = |source: &Source| source.reliable.then(|| source.last(known));
        let in_lane = self.sources.iter().find(reads).map(|source| (source.next, last(source)));
        self.remove_lane(writer);
        let end = in_lane.map(|(next, last)| (next, last.unwrap_or(SequenceNumber::ZERO)));
        let Some(mut left) = undelivered else { return (StatusMask::NONE, end) };
        if let Some((next, last)) = in_lane {
            left.remove(SequenceNumber::ZERO, next);
            // Who waits for nothing has lost no more than what had begun to come.
            last.map(|last| left.insert(next, last.next()));
        }
        let news = match left.count() {
            0 => StatusMask::NONE,
            lost => {
                self.sample_lost.count(lost);
                StatusMask::SAMPLE_LOST
            }
        };
        (news, end)
    }

    /// A writer has fallen silent: what of its samples has to wait is of before that.
    pub(crate) fn note_silent(&mut self, writer: Guid) -> StatusMask {
        for source in self.sources.iter_mut().filter(|source| source.writer == writer && source.stalled) {
            source.silent_until = source.last(source.next);
        }
        StatusMask::NONE
    }

    /// It is alive again, and writes what it has written.
    pub(crate) fn note_alive(&mut self, writer: Guid) {
        for source in self.sources.iter_mut().filter(|source| source.writer == writer) {
            source.silent_until = SequenceNumber::ZERO;
        }
    }

    /// What a writer had written before it fell silent has come from its lane by now.
    #[cold]
    pub(crate) fn end_late(&mut self, now: Time, writer: Guid, pulled: &mut Pulled) {
        if self.cache.writer_gone(now, writer) {
            pulled.news = pulled.news | StatusMask::DATA_AVAILABLE;
        }
        // Whoever drives goes on with it.
        self.cache.separation.untold |= self.cache.is_leaving();
        self.await_expiry();
    }

    /// No longer reads the lane of a writer that it is still matched with. Returns the number after all that has come from
    /// the writer, and what the lane holds that has to wait, for room or for what has not come.
    pub(crate) fn leave_lane(
        &mut self,
        now: Time,
        writer: Guid,
    ) -> Option<(SequenceNumber, Vec<CacheChange>)> {
        let at = self.sources.iter().position(|source| source.writer == writer)?;
        let mut source = self.sources.remove(at);
        let mut waiting = Vec::new();
        let most = if source.reliable && !source.broken { source.cells() } else { 0 };
        for _ in 0..most {
            let Next::Sample { .. } = source.lane.poll(&mut self.entry) else { break };
            let payload = std::mem::take(&mut self.entry.payload).keep(&mut self.short);
            let change = cell::change(writer, now, &self.entry.meta, payload);
            // It may have come by the protocol.
            if change.sequence_number >= source.next {
                waiting.push(change);
            }
        }
        if !waiting.is_empty() {
            self.note_blocked();
        }
        Some((source.next, waiting))
    }
}
