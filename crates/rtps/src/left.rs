//! What single readers and writers are owed, in the same datagrams: acknowledgements of several readers, heartbeats and
//! repairs of several writers, each piece behind the one before if it goes to the same addresses. RTPS 2.5 §8.3.4 (one
//! message, many submessages).
//!
//! Nobody waits for that: what is left in the message leaves when something follows for somebody else, or at the end of the step.

use taut_base::Locator;

use crate::message::Tx;
use crate::schedule::{Schedule, TxClass, Work};

/// Bytes that are left for more; what is longer leaves. Higher makes a step longer, which is counted by the calls that it makes,
/// lower makes more of them. Some 60 acknowledgements.
const LEFT: usize = 2_048;

impl Tx<'_> {
    /// A piece of work begins: what is owed to single ones may go behind what was left.
    #[inline]
    pub(crate) fn begin_piece(&mut self, work: Work, schedule: &Schedule) {
        match work {
            Work::Acks(_) | Work::Repair(_) => self.is_followed = schedule.has(TxClass::Repair),
            _ => self.send_left(),
        }
    }

    /// What follows goes to these addresses: behind what was left for them, if that was for the same ones.
    #[inline]
    pub(crate) fn join(&mut self, to: &[Locator]) {
        if self.is_left && self.message.left_for != to {
            self.flush_left();
        }
    }

    /// Ends a piece. What the message holds is left for what may follow to the same addresses, if there is `more` to come. What
    /// is paced is charged by itself, so it is sent.
    #[inline]
    pub(crate) fn leave(&mut self, to: &[Locator], more: bool) {
        if more && self.flow.is_none() && !to.is_empty() && self.message.size() <= LEFT {
            self.note_left(to);
        } else {
            self.flush(to);
        }
    }

    #[inline(never)]
    fn note_left(&mut self, to: &[Locator]) {
        self.is_left = true;
        let left_for = &mut self.message.left_for;
        if left_for != to {
            left_for.clear();
            left_for.extend_from_slice(to);
        }
    }

    /// Sends what was left.
    #[inline]
    pub(crate) fn send_left(&mut self) {
        if self.is_left {
            self.flush_left();
        }
    }

    #[inline(never)]
    fn flush_left(&mut self) {
        self.is_left = false;
        let to = std::mem::take(&mut self.message.left_for);
        self.flush(&to);
        // The next one needs no memory of its own.
        self.message.left_for = to;
    }
}
