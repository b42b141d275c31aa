//! Fresh changes to all readers, with the heartbeats behind them.
//! RTPS 2.5 §8.4.9 (stateful writer), §8.4.14.1 (large data). What single readers are owed is in `repair`.

use taut_base::{EntityId, SequenceNumber};

use super::Writer;
use super::large::Sent;
use super::reader_proxy::FragmentJob;
use crate::anatomy::Calls;
use crate::history_cache::CacheChange;
use crate::limits;
use crate::message::{HEARTBEAT, Tx};

impl Writer {
    /// Sends fresh changes to all readers. Returns whether all are out; `false` when the budget
    /// is used up.
    #[inline(always)]
    pub fn push(&mut self, tx: &mut Tx<'_>) -> bool {
        self.push_with::<false>(tx)
    }

    /// The same behind what the message holds of others for them, and no more than pacing allows. If another writer's follow
    /// the message may stay open.
    #[inline(never)]
    pub(crate) fn push_together(&mut self, tx: &mut Tx<'_>) -> bool {
        self.push_with::<true>(tx)
    }

    /// Who is alone, as most are, pays nothing for others: the two are compiled apart.
    #[inline(always)]
    fn push_with<const TOGETHER: bool>(&mut self, tx: &mut Tx<'_>) -> bool {
        self.catch_up();
        self.expire(tx.now);
        self.learn_paths(tx);
        if self.route.is_empty() {
            self.sent = self.last;
        }
        if self.blocked && self.is_still_blocked(tx) {
            if TOGETHER {
                self.close(tx);
            }
            return true;
        }
        let mut out = Outgoing { from: self.sent.next(), noted: tx.sent, bytes: 0 };
        if TOGETHER {
            out.noted = tx.ended(self.route.len());
        }
        let done = self.push_fresh::<TOGETHER>(tx, &mut out);
        // All that there is waits in the datagram that a heartbeat would ride in.
        let is_one = tx.sent <= out.noted;
        let (acked, may_ride) = self.standing();
        if may_ride {
            self.piggyback_heartbeat(tx, is_one);
        }
        if TOGETHER {
            self.end_together(tx, &mut out, done);
        } else {
            tx.flush_here(&self.route);
            self.note_under_way(tx.sent, &mut out);
        }
        self.history.evict(self.sent);
        self.forget_through(acked.min(self.sent));
        self.update_link();
        done
    }

    /// Sends what the message holds, which nobody is to follow.
    #[cold]
    pub(crate) fn close(&self, tx: &mut Tx<'_>) {
        tx.is_followed = false;
        tx.flush(&self.route);
    }

    /// Leaves the message to the next writer, if there may be one.
    #[cold]
    fn end_together(&mut self, tx: &mut Tx<'_>, out: &mut Outgoing, done: bool) {
        if !tx.is_followed || !done || tx.budget == 0 {
            self.close(tx);
            return self.note_under_way(tx.sent, out);
        }
        // The datagram that is shared counts for each of those that share it.
        let shared = if self.sent >= out.from { self.route.len() } else { 0 };
        self.note_under_way(tx.ended(self.route.len()).saturating_add(shared), out);
    }

    /// The fresh changes themselves; the last message stays open. Returns `false` when the budget is used up.
    #[inline(always)]
    fn push_fresh<const TOGETHER: bool>(&mut self, tx: &mut Tx<'_>, out: &mut Outgoing) -> bool {
        loop {
            let next = self.push_small::<TOGETHER>(tx, out);
            let (change, size) = match next {
                Next::Large(change, size) => (change, size),
                Next::Nothing => break,
                Next::Later => return false,
            };
            match self.push_large(tx, out, &change, size) {
                Sent::Whole => self.sent = change.sequence_number,
                Sent::Part => return false,
                Sent::Blocked => return true,
            }
        }
        // What is not held any more is not sent.
        self.sent = self.last;
        true
    }

    /// Fresh changes that go in one piece each, up to one that does not, or as far as pacing allows.
    #[inline(always)]
    fn push_small<const TOGETHER: bool>(&mut self, tx: &mut Tx<'_>, out: &mut Outgoing) -> Next {
        let Writer { history, sent, last, route, paths, calls, .. } = self;
        while *sent < *last
            && let Some(change) = history.first_from(sent.next())
        {
            if tx.budget == 0 {
                return Next::Later;
            }
            let len = change.payload.len();
            if !paths.is_small(len)
                && let Some(size) = paths.fragment_size(change)
            {
                return Next::Large(change.clone(), size);
            }
            if TOGETHER && !tx.spend(len.saturating_add(CHANGE_AROUND)) {
                return Next::Later;
            }
            stamp(calls.as_ref(), change, tx);
            tx.data(EntityId::UNKNOWN, change, route);
            out.bytes = out.bytes.saturating_add(len);
            *sent = change.sequence_number;
        }
        Next::Nothing
    }

    /// Takes note of what has left since the last time, with which the step has sent so many datagrams. KEEP_LAST only
    /// waits within a change.
    #[inline(always)]
    pub(super) fn note_under_way(&mut self, sent: usize, out: &mut Outgoing) {
        let datagrams = sent.saturating_sub(out.noted);
        let bytes = std::mem::take(&mut out.bytes);
        out.noted = sent;
        if datagrams > 0 && (self.keep_all || self.fragment.0 > self.sent) {
            self.unasked_datagrams = self.unasked_datagrams.saturating_add(datagrams);
            let each = datagrams.div_ceil(self.route.len().max(1));
            self.window.note_sent(out.from, self.place_out(), each, bytes);
        }
        out.from = self.sent.next();
    }

    /// Up to where all have acknowledged, and whether a heartbeat may ride behind fresh changes: somebody takes it, and
    /// nobody does who has not been greeted.
    #[inline(always)]
    pub(super) fn standing(&self) -> (SequenceNumber, bool) {
        let (mut acked, mut anybody, mut all_greeted) = (self.last, false, true);
        for proxy in self.proxies.values().filter(|proxy| proxy.reliable) {
            acked = acked.min(proxy.acked);
            if proxy.lane_from.is_none() {
                anybody = true;
                all_greeted &= proxy.greeted;
            }
        }
        for local in self.local.iter().filter(|local| local.reliable) {
            acked = acked.min(local.delivered);
        }
        (acked, anybody && all_greeted && !self.route.is_empty())
    }

    /// RTPS 2.5 §8.3.5: a heartbeat may travel behind the data. It is final, so that it costs no
    /// answer but from a reader that misses something; every so often it asks for acknowledgement. In a long row of
    /// single datagrams that follow each other soon most do without: the next one that rides says the same.
    #[inline(always)]
    fn piggyback_heartbeat(&mut self, tx: &mut Tx<'_>, is_one: bool) {
        let ask = self.hurry
            || self.keep_all
                && self.unasked_changes >= limits::ACK_EVERY_CHANGES.min(self.max_samples.div_ceil(2))
            || self.unasked_datagrams >= limits::ACK_EVERY_DATAGRAMS
            || self.unasked_bytes >= limits::ACK_EVERY_BYTES
            || self.is_to_be_asked(tx.now);
        let follows = is_one && tx.now < self.pushed_at + limits::HEARTBEAT_RIDES;
        self.row = if follows { self.row.saturating_add(1) } else { 0 };
        self.pushed_at = tx.now;
        let is_told_soon = tx.now < self.told_at + limits::HEARTBEAT_RIDES;
        let is_long = self.row > limits::HEARTBEAT_EACH && !self.guid.entity.is_builtin();
        if is_long && is_told_soon && !ask {
            return;
        }
        self.told_at = tx.now;
        if ask {
            self.asked_at = tx.now;
            self.hurry = false;
            self.forget_unasked();
        }
        let heartbeat = self.contents().heartbeat(EntityId::UNKNOWN, !ask, SequenceNumber::FIRST);
        tx.make_room(HEARTBEAT, &self.route);
        tx.message.heartbeat(&heartbeat);
    }
}

/// More than a change takes of the wire besides its payload, if it goes alone: Ethernet, IP and UDP 62 bytes, headers of RTPS up
/// to 140, a heartbeat 32. Lower sends more than the rate now and pays for it later, higher sends less at a time.
const CHANGE_AROUND: usize = 240;

/// What a step has sent of fresh changes and not taken note of.
pub(super) struct Outgoing {
    /// The first change of it.
    pub from: SequenceNumber,
    /// Datagrams that were taken note of, of those that the step has sent.
    pub noted: usize,
    /// Bytes of the others' payloads.
    pub bytes: usize,
}

/// What is next to be sent.
enum Next {
    /// Nothing.
    Nothing,
    /// More than the budget allows.
    Later,
    /// A change in fragments of this size.
    Large(CacheChange, usize),
}

/// The change that is sent next says when it was written, if somebody wants to know.
#[inline]
pub(super) fn stamp(calls: Option<&Calls>, change: &CacheChange, tx: &mut Tx<'_>) {
    if let Some(calls) = calls {
        tx.message.stamp(calls.stamps(change, tx.now));
    }
}

/// Sends the fragments of a job, of `size` bytes and one datagram each, as far as the budget and `room`, in bytes,
/// go; the last ones may stay in the message.
pub(crate) fn send_fragments(
    tx: &mut Tx<'_>,
    change: &CacheChange,
    size: usize,
    reader_id: EntityId,
    job: &mut FragmentJob,
    (to, calls): (&[taut_base::Locator], Option<&Calls>),
    room: &mut usize,
) -> bool {
    let total = u32::try_from(change.payload.len().div_ceil(size.max(1))).unwrap_or(u32::MAX);
    loop {
        if tx.budget == 0 || *room == 0 {
            return job.is_done(total);
        }
        if tx.pays && !job.is_done(total) && !tx.spend(size.saturating_add(CHANGE_AROUND)) {
            return false;
        }
        let Some(number) = job.take_next(total) else { return true };
        *room = room.saturating_sub(size);
        if number == 1 {
            stamp(calls, change, tx);
        }
        let aligned = tx.message.data_frag(reader_id, change, number, size);
        // The last one leaves with the heartbeat that follows it.
        if number < total || !aligned {
            tx.next_message(to);
        }
    }
}
