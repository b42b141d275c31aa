//! Fresh changes to all readers, with the heartbeats behind them.
//! RTPS 2.5 §8.4.9 (stateful writer), §8.4.14.1 (large data). What single readers are owed is in `repair`.

use taut_base::{EntityId, SequenceNumber};

use super::Writer;
use super::reader_proxy::FragmentJob;
use crate::history_cache::CacheChange;
use crate::limits;
use crate::message::{HEARTBEAT, Tx};

impl Writer {
    /// Sends fresh changes to all readers. Returns whether all are out; `false` when the budget
    /// is used up.
    pub fn push(&mut self, tx: &mut Tx<'_>) -> bool {
        self.catch_up();
        self.learn_paths(tx);
        if self.route.is_empty() {
            self.sent = self.last;
        }
        let sent_before = tx.sent;
        let done = self.push_fresh(tx);
        self.piggyback_heartbeat(tx);
        tx.flush(&self.route);
        self.note_under_way(tx.sent.saturating_sub(sent_before));
        self.history.evict(self.sent);
        self.forget_acknowledged();
        self.update_link();
        done
    }

    /// The fresh changes themselves; the last message stays open.
    fn push_fresh(&mut self, tx: &mut Tx<'_>) -> bool {
        let Writer { history, sent, last, fragment, route, paths, .. } = self;
        for change in history.from(sent.next()) {
            if tx.budget == 0 {
                return false;
            }
            let number = change.sequence_number;
            if let Some(size) = paths.fragment_size(change) {
                tx.flush(route);
                // KEEP_LAST may have dropped the change that was under way.
                let next = if fragment.0 == number { fragment.1 } else { 1 };
                let mut job = FragmentJob { number, next, only: None };
                let sent_all = send_fragments(tx, change, size, EntityId::UNKNOWN, &mut job, route);
                *fragment = (number, job.next);
                if !sent_all {
                    return false;
                }
            } else {
                tx.data(EntityId::UNKNOWN, change, route);
            }
            *sent = number;
        }
        // What is not held any more is not sent.
        *sent = *last;
        true
    }

    /// So many datagrams have left.
    fn note_under_way(&mut self, datagrams: usize) {
        if self.keep_all {
            self.unasked_datagrams = self.unasked_datagrams.saturating_add(datagrams);
            // A change may be half out.
            let last = self.sent.max(self.fragment.0);
            self.under_way.extend(std::iter::repeat_n(last, datagrams));
        }
    }

    /// RTPS 2.5 §8.3.5: a heartbeat may travel behind the data. It is final, so that it costs no
    /// answer but from a reader that misses something; every so often it asks for acknowledgement.
    fn piggyback_heartbeat(&mut self, tx: &mut Tx<'_>) {
        let mut reliable =
            self.proxies.values().filter(|proxy| proxy.reliable && proxy.lane_from.is_none()).peekable();
        if reliable.peek().is_none() || reliable.any(|proxy| !proxy.greeted) {
            return;
        }
        let ask = self.hurry
            || self.unasked_changes >= limits::ACK_EVERY_CHANGES.min(self.max_samples.div_ceil(2))
            || self.unasked_datagrams >= limits::ACK_EVERY_DATAGRAMS
            || self.unasked_bytes >= limits::ACK_EVERY_BYTES;
        self.pushed_at = tx.now;
        if ask {
            self.asked_at = tx.now;
            self.hurry = false;
            self.forget_unasked();
        }
        let heartbeat = self.contents().heartbeat(EntityId::UNKNOWN, !ask, SequenceNumber::FIRST);
        tx.make_room(HEARTBEAT, &self.route);
        tx.message.heartbeat(&heartbeat);
    }

    /// Tells all readers that the writer is alive. *Source*: RTPS 2.5 §8.3.8.6, MANUAL_BY_TOPIC.
    pub fn send_liveliness(&mut self, tx: &mut Tx<'_>) {
        let mut heartbeat = self.contents().heartbeat(EntityId::UNKNOWN, true, SequenceNumber::FIRST);
        heartbeat.liveliness_flag = true;
        tx.message.heartbeat(&heartbeat);
        tx.flush(&self.route);
    }
}

/// Sends the fragments of a job, of `size` bytes and one datagram each, as far as the budget goes; the last ones
/// may stay in the message.
pub(super) fn send_fragments(
    tx: &mut Tx<'_>,
    change: &CacheChange,
    size: usize,
    reader_id: EntityId,
    job: &mut FragmentJob,
    to: &[taut_base::Locator],
) -> bool {
    let total = u32::try_from(change.payload.len().div_ceil(size.max(1))).unwrap_or(u32::MAX);
    loop {
        if tx.budget == 0 {
            return false;
        }
        let Some(number) = job.take_next(total) else { return true };
        let aligned = tx.message.data_frag(reader_id, change, number, size);
        // The last one leaves with the heartbeat that follows it.
        if number < total || !aligned {
            tx.next_message(to);
        }
    }
}
