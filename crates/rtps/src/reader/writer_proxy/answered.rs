//! How long a writer takes to answer: when what was asked for is asked for again, and when nothing is. RTPS 2.5 §8.4.12.

use taut_base::{Duration, Time};

use super::WriterProxy;
use crate::limits;

impl WriterProxy {
    /// A change that was asked for has arrived, all of it now or the rest of one that had begun to come before: what was
    /// asked for meanwhile is not answered by that, and waits behind it, which says nothing of how long answers take.
    #[cold]
    pub(super) fn note_answer(&mut self, now: Time, is_begin: bool) {
        self.asked = self.asked.saturating_sub(1);
        self.rests_until = None;
        if is_begin {
            self.time_answer(now);
        } else {
            self.timed_from = None;
        }
    }

    /// The answer to what was asked last has begun to come.
    pub(super) fn time_answer(&mut self, now: Time) {
        match self.timed_from.take() {
            Some((from, true)) => self.answers.note_once(now.since(from)),
            Some((from, false)) => self.answers.note(now.since(from)),
            None => {}
        }
    }

    /// What was asked for is gone, and nothing of it has come. What is asked for now would be gone as well when the question
    /// comes, if that takes as long, while each answer takes the place of a fresh change in a receive buffer that is full.
    /// For as long nothing is asked for, so that there is one question under way after that, not one for each datagram
    /// that is in the buffer. Who has its answers at once does not notice.
    #[cold]
    pub(super) fn rest(&mut self, now: Time) {
        if let Some((from, _)) = self.timed_from.take() {
            let took = now.since(from).min(limits::NACK_REPEAT_MAX);
            self.answers.note(took);
            self.rests_until = Some(now + took);
        }
    }

    /// How long an answer may take. What was asked for is not asked for again before.
    pub(super) fn patience(&self) -> Duration {
        self.answers.patience().max(self.least_patience)
    }

    /// Answers to what is asked from now on may take this long, as is known from elsewhere. What was asked for already
    /// is late when it was to be.
    pub(in crate::reader) fn be_patient(&mut self, patience: Duration) {
        if self.timed_from.is_none() {
            self.least_patience = patience;
        }
    }

    /// Is what was asked for late?
    pub(super) fn is_overdue(&self, now: Time) -> bool {
        self.asked_at.is_none_or(|at| now.since(at) >= self.patience())
    }
}
