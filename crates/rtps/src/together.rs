//! Fresh changes of several writers in the same datagrams. RTPS 2.5 §8.3.4 (one message, many submessages).
//!
//! Writers that have something to send at the same time, with the same TRANSPORT_PRIORITY and to the same addresses, fill
//! one message after the other: each its changes in their order and its heartbeat behind them. Nobody waits for that;
//! what meets has been left to the holder of the token, or was held back for LATENCY_BUDGET. Called by
//! `Participant::poll_transmit` only; owns nothing.

use crate::WriterIndex;
use crate::message::Tx;
use crate::participant::arm_timers;
use crate::schedule::{Schedule, TxClass, Work};
use crate::table::Table;
use crate::timers::Timers;
use crate::writer::Writer;

/// What they are found with.
pub(crate) struct Together<'a> {
    pub schedule: &'a mut Schedule,
    pub writers: &'a mut Table<Writer>,
    pub timers: &'a mut Timers,
}

impl Together<'_> {
    /// Sends fresh changes of a writer that has just been taken from the schedule, and of those that share its datagrams.
    /// Returns who was the last, and whether all of it are out: of those before they are. Each has its turn once before whoever waits longest has the next.
    #[inline(never)]
    pub fn push(
        &mut self,
        tx: &mut Tx<'_>,
        class: TxClass,
        priority: i32,
        mut index: WriterIndex,
    ) -> (WriterIndex, bool) {
        loop {
            let beside = self.schedule.find_beside(class, priority, |work| self.is_beside(index, work));
            let Some(writer) = self.writers.get_mut(index.0) else { return (index, true) };
            tx.is_followed = beside.is_some();
            if !writer.is_admitted(tx, priority) {
                writer.close(tx);
                (tx.pays, tx.room) = (false, i64::MAX);
                writer.waits = true;
                tx.waits = true;
                return (index, false);
            }
            writer.queued.push = !writer.push_together(tx);
            arm_timers(self.timers, tx.now, writer);
            let done = !writer.queued.push;
            writer.waits = !done && tx.pays;
            let next = beside.filter(|_| tx.is_followed).and_then(|at| self.schedule.take(class, at));
            let Some(Work::Push(next)) = next else {
                (tx.pays, tx.room) = (false, i64::MAX);
                return (index, done);
            };
            if let Some(flow) = &mut tx.flow {
                flow.leave(tx.now, Work::Push(index));
            }
            index = next;
        }
    }

    /// May fresh changes that `work` has to send follow those of a writer?
    fn is_beside(&self, index: WriterIndex, work: Work) -> bool {
        let Work::Push(other) = work else { return false };
        let writers = (self.writers.get(index.0), self.writers.get(other.0));
        matches!(writers, (Some(one), Some(other)) if one.shares_route(other))
    }
}

impl Writer {
    /// May it send now, as far as pacing goes? If not it waits for that.
    fn is_admitted(&mut self, tx: &mut Tx<'_>, priority: i32) -> bool {
        if tx.flow.is_none() {
            return true;
        }
        self.learn_paths(tx);
        let pending = tx.message.size();
        let (route, work) = (self.route(), Work::Push(self.index));
        let Some(flow) = &mut tx.flow else { return true };
        let Some(room) = flow.admit(tx.now, work, priority, route, pending) else {
            // What is in the message was admitted.
            tx.pays = true;
            return false;
        };
        (tx.pays, tx.room) = (true, room);
        true
    }
}
