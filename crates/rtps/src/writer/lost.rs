//! Readers that a durable writer has lost sight of. One that is only cut off believes this writer to be there all the same, and
//! comes back for the history: of what has ended meanwhile it has to hear then.

use std::collections::VecDeque;

use taut_base::{Guid, SequenceNumber, Time};

use super::Writer;
use crate::limits;

/// Up to where each had acknowledged, and when it was lost. Must hold no more than [`limits::LOST`].
#[derive(Default)]
pub(super) struct Lost(VecDeque<(SequenceNumber, Time)>);

impl Lost {
    fn note(&mut self, acked: SequenceNumber, now: Time) {
        self.0.push_back((acked, now));
        if self.0.len() > limits::LOST {
            self.0.pop_front();
        }
    }

    /// Who was lost long ago will not come back.
    pub fn give_up(&mut self, now: Time) {
        while self.0.front().is_some_and(|(_, at)| now.since(*at) >= limits::GONE_KEPT) {
            self.0.pop_front();
        }
    }

    pub fn acked(&self) -> impl Iterator<Item = SequenceNumber> {
        self.0.iter().map(|(acked, _)| *acked)
    }
}

impl Writer {
    /// A matched reader has gone without a word.
    pub fn lose_reader(&mut self, now: Time, guid: Guid) {
        if let Some(proxy) = self.proxies.get(&guid).filter(|proxy| self.durable && proxy.reliable) {
            self.lost.note(proxy.acked, now);
        }
        self.unmatch_reader(guid);
    }
}
