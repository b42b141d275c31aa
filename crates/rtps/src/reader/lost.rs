//! Writers that a reader has lost without a word, and how far each had come. One that is only cut off, or stopped, comes back
//! and goes on: what the reader has had of it is not to come again, and what it has not is missing. RTPS 2.5 §8.4.12.
//!
//! A durable KEEP_LAST reader remembers nobody: its instances have no writers then, and it is the last values, which come
//! again, that say that they have.

use std::collections::VecDeque;

use taut_base::{Guid, SequenceNumber, Time};

use super::{Reader, WriterProxy};
use crate::{IntervalSet, limits};

/// How far a lost writer had come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LostWriter {
    guid: Guid,
    at: Time,
    /// What is below has come.
    pub next: SequenceNumber,
    /// What is not, up to here, was counted as lost.
    pub told: SequenceNumber,
    /// The count of its last heartbeat: one that starts again under its name counts anew.
    pub count: i32,
}

/// Those that may come back, in the order in which they were lost. Must hold no more than [`limits::LOST_WRITERS`].
#[derive(Default)]
pub(super) struct LostWriters(VecDeque<LostWriter>);

impl LostWriters {
    fn note(&mut self, lost: LostWriter) {
        self.take(lost.at, lost.guid);
        self.0.push_back(lost);
        if self.0.len() > limits::LOST_WRITERS {
            self.0.pop_front();
        }
    }

    /// One that has come back. Who was lost long ago does not.
    pub fn take(&mut self, now: Time, writer: Guid) -> Option<LostWriter> {
        while self.0.front().is_some_and(|lost| now.since(lost.at) >= limits::GONE_KEPT) {
            self.0.pop_front();
        }
        let at = self.0.iter().position(|lost| lost.guid == writer)?;
        self.0.remove(at)
    }
}

impl Reader {
    /// A matched writer has gone without a word. *Cost*: O(writers that were lost).
    pub(crate) fn lose_writer(&mut self, now: Time, guid: Guid) -> Option<WriterProxy> {
        let proxy = self.unmatch_writer(guid)?;
        let next = proxy.next_expected();
        // How far its lane has come is yet to be said.
        let has_begun = next > SequenceNumber::FIRST || proxy.lane;
        let may_resume = proxy.reliable && has_begun && (self.keeps_all || !self.durable);
        if let Some(count) = proxy.last_count().filter(|_| may_resume) {
            let left = proxy.undelivered().as_ref().and_then(IntervalSet::last);
            let told = left.unwrap_or(SequenceNumber::ZERO);
            self.lost.note(LostWriter { guid, at: now, next, told, count });
        }
        Some(proxy)
    }

    /// All below `next` of a lost writer had come through its lane, and what that held up to `told` was counted as lost.
    pub(crate) fn lose_lane(&mut self, writer: Guid, next: SequenceNumber, told: SequenceNumber) {
        if let Some(lost) = self.lost.0.iter_mut().rev().find(|lost| lost.guid == writer) {
            (lost.next, lost.told) = (lost.next.max(next), lost.told.max(told));
        }
    }
}
