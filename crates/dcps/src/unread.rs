//! What a reader of another participant has left unread of a local writer's lane: it is matched still, and gets it over
//! the network. Called by who drives the writer's side.

use std::sync::Arc;

use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::Pool;
use taut_mem::lane::{Entry, Feedback, INLINE, Lane, LaneReader, Next};
use taut_rtps::{Unread, WriterIndex};

use crate::DomainParticipant;
use crate::cell::{self, Head};

/// Buffers for short payloads that are remembered. They are needed once: none.
const SHORT_BUFFERS: usize = 0;

/// Looks in a writer's lane for what a reader leaves unread.
pub struct Leaver {
    writer: Guid,
    lane: LaneReader,
    entry: Entry,
    short: Pool,
}

impl Leaver {
    /// Of a reader that has read as far as its feedback says. The writer reckons with that until all is found.
    pub fn new(writer: Guid, lane: Arc<Lane>, feedback: &Feedback) -> Leaver {
        let lane = LaneReader::behind(lane, feedback);
        Leaver { writer, lane, entry: Entry::default(), short: Pool::new(INLINE, SHORT_BUFFERS) }
    }

    /// What has not been found before. *Cost*: a copy of each; no more than the lane holds.
    pub fn find(&mut self, now: Time) -> Unread {
        let last = self.lane.last_read().map(|meta| Head::of(&meta).number);
        let mut unread = Unread { read_to: last.unwrap_or(SequenceNumber::ZERO), ..Unread::default() };
        for _ in 0..self.lane.lane().cells() {
            let Next::Sample { .. } = self.lane.poll(&mut self.entry) else { break };
            let payload = std::mem::take(&mut self.entry.payload).keep(&mut self.short);
            unread.changes.push(cell::change(self.writer, now, &self.entry.meta, payload));
        }
        unread
    }
}

impl DomainParticipant {
    /// A reader of another participant takes from a local writer's lane no longer what goes through it, and has left this.
    pub fn leave_reader_lane(&mut self, now: Time, writer: WriterIndex, reader: Guid, unread: Unread) {
        self.core.leave_reader_lane(now, writer, reader, unread);
    }

    /// The same of what was written into the lane since then.
    pub fn keep_unread(&mut self, now: Time, writer: WriterIndex, reader: Guid, unread: Unread) {
        self.core.keep_unread(now, writer, reader, unread);
    }
}
