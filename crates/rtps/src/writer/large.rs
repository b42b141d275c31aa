//! Fresh changes that go in fragments: as many at a time as the readers have room for.
//! RTPS 2.5 §8.4.14.1 (large data), §8.3.8.7 (HEARTBEAT_FRAG).
//!
//! A HEARTBEAT_FRAG offers one fragment more than has left. A reader that has all before it asks for that one, and
//! so tells how far it is; what it asks for from there on is under way without being asked for.

use taut_base::{EntityId, FragmentNumber, FragmentNumberSet, Guid, SequenceNumber};
use taut_wire::HeartbeatFrag;

use super::reader_proxy::FragmentJob;
use super::transmit::{Outgoing, send_fragments};
use super::window::{Place, Window};
use super::{ReaderProxy, Writer};
use crate::history_cache::CacheChange;
use crate::limits;
use crate::message::{HEARTBEAT, Tx};

/// How many offers are remembered. Lower sends again what was only asked for to tell how far a reader is, higher
/// is looked through for each NACK_FRAG.
const OFFERS: usize = 16;

/// So often in a row a reader may leave the writer waiting that asks how far it is; then it is asked no more. Lower
/// takes one that has lost a few questions for one that answers none, as those of some vendors, and overruns it;
/// higher delays the first large change to these.
const SILENT: u32 = 3;

/// How far a change has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it.
    Whole,
    /// As much as the budget allows.
    Part,
    /// As much as the window allows: the rest follows when a reader is further.
    Blocked,
}

impl Writer {
    /// Sends the fragments of a change.
    #[inline(never)]
    pub(super) fn push_large(
        &mut self,
        tx: &mut Tx<'_>,
        out: &mut Outgoing,
        change: &CacheChange,
        size: usize,
    ) -> Sent {
        let number = change.sequence_number;
        tx.flush(&self.route);
        self.note_under_way(tx.sent, out);
        // KEEP_LAST may have dropped the change that was under way.
        let next = if self.fragment.0 == number { self.fragment.1 } else { 1 };
        let mut job = FragmentJob { number, next, only: None };
        let fragments = change.payload.len().div_ceil(size.max(1));
        loop {
            let room = self.room(number);
            let rest = fragments.saturating_sub(job.next.saturating_sub(1) as usize);
            let fits = rest <= Window::datagrams(room, size);
            if !fits && room < self.window.part() {
                self.blocked = true;
                return Sent::Blocked;
            }
            // What fits as a whole needs no answers in between.
            let part = if fits { rest } else { Window::datagrams(self.window.part(), size) };
            let part = part.saturating_mul(size);
            let mut left = part;
            let way = (&self.route[..], self.calls.as_ref());
            let whole = send_fragments(tx, change, size, EntityId::UNKNOWN, &mut job, way, &mut left);
            out.bytes = out.bytes.saturating_add(part.saturating_sub(left));
            self.fragment = (number, job.next);
            if whole {
                return Sent::Whole;
            }
            tx.flush(&self.route);
            self.note_under_way(tx.sent, out);
            if self.room(number) <= self.window.limit / 2 {
                self.ask_for_fragments(tx, change, size, job.next);
            }
            if tx.budget == 0 || tx.room < 0 {
                return Sent::Part;
            }
        }
    }

    /// Asks all readers how much they have of a change whose fragments before `next` have left.
    fn ask_for_fragments(
        &mut self,
        tx: &mut Tx<'_>,
        change: &CacheChange,
        size: usize,
        next: FragmentNumber,
    ) {
        self.heartbeat_frag_count = self.heartbeat_frag_count.wrapping_add(1);
        let fragments = change.payload.len().div_ceil(size.max(1));
        let last = u32::try_from(fragments).unwrap_or(u32::MAX);
        if self.offered.len() >= OFFERS {
            self.offered.pop_front();
        }
        self.offered.push_back((change.sequence_number, next.min(last)));
        tx.make_room(HEARTBEAT, &self.route);
        tx.message.heartbeat_frag(&HeartbeatFrag {
            reader_id: EntityId::UNKNOWN,
            writer_id: self.guid.entity,
            writer_sn: change.sequence_number,
            last_fragment_num: next.min(last),
            count: self.heartbeat_frag_count,
        });
        tx.flush(&self.route);
    }

    /// What a reader asks for without what it only asks for as it was offered before it left. Asked for once more it
    /// was lost.
    pub(super) fn without_offer(
        &mut self,
        reader: Guid,
        number: SequenceNumber,
        set: &FragmentNumberSet,
    ) -> FragmentNumberSet {
        let offer = (number, set.iter().last().unwrap_or(0));
        let mut rest = *set;
        if self.offered.contains(&offer)
            && let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| proxy.offer_heard < offer)
        {
            proxy.offer_heard = offer;
            proxy.silent = 0;
            rest = FragmentNumberSet::new(set.base());
            set.iter().filter(|fragment| *fragment < offer.1).for_each(|fragment| {
                rest.insert(fragment);
            });
        }
        rest
    }

    /// Who asks only for fragments that a change does not have has begun one that somebody made up: the first one shows
    /// it that, or the change in one piece.
    pub(super) fn of_this_change(
        &self,
        number: SequenceNumber,
        asked: FragmentNumberSet,
    ) -> FragmentNumberSet {
        let Some(change) = self.sendable(number) else { return asked };
        let size = self.paths.fragment_size(change);
        let last = size.map_or(1, |size| change.payload.len().div_ceil(size.max(1)));
        if asked.iter().next().is_none_or(|first| first as usize <= last) {
            return asked;
        }
        let mut first = FragmentNumberSet::new(1);
        first.insert(1);
        first
    }

    /// The rest of a change has waited for as long as answers may take. Asks once more, as the question may have been
    /// lost with what it was behind; who then says nothing gets as much again.
    pub(super) fn on_blocked(&mut self) {
        if std::mem::replace(&mut self.asked_again, true) {
            self.window.forget();
            self.blocked = false;
            let listening = |proxy: &&mut ReaderProxy| proxy.reliable && proxy.lane_from.is_none();
            for proxy in self.proxies.values_mut().filter(listening) {
                proxy.silent = proxy.silent.saturating_add(1);
            }
        } else {
            self.ask_again = true;
        }
        self.heartbeat_interval = limits::HEARTBEAT_FIRST;
    }

    /// Is the rest of a change to wait on?
    pub(super) fn is_still_blocked(&mut self, tx: &mut Tx<'_>) -> bool {
        self.blocked &= self.room(self.fragment.0) < self.window.part();
        if !self.blocked {
            self.asked_again = false;
        } else if std::mem::take(&mut self.ask_again) {
            let (number, next) = self.fragment;
            let change = self.history.get(number).cloned();
            if let Some(change) = change
                && let Some(size) = self.paths.fragment_size(&change)
            {
                self.ask_for_fragments(tx, &change, size, next);
            }
        }
        self.blocked
    }

    /// Up to where fresh changes have left.
    pub(super) fn place_out(&self) -> Place {
        let (number, next) = self.fragment;
        if number > self.sent { (number.prev(), next.saturating_sub(1)) } else { (self.sent, 0) }
    }

    /// How much more of a change may leave: what was before it there was room for. The reader that is ahead decides:
    /// one that is slow, or loses much, does not hold up the others within a change. KEEP_LAST does not wait with a
    /// change that another one follows.
    pub(super) fn room(&self, number: SequenceNumber) -> usize {
        if !self.keep_all && self.last > self.sent.next().max(self.fragment.0) {
            return usize::MAX;
        }
        let begin = (number.prev(), 0);
        let room = |proxy: &ReaderProxy| proxy.pace.room(&self.window, proxy.place().max(begin));
        self.paced().map(room).max().unwrap_or(usize::MAX)
    }

    /// The readers that tell how far they are, as far as is known.
    fn paced(&self) -> impl Iterator<Item = &ReaderProxy> {
        let tells = |proxy: &&ReaderProxy| proxy.silent < SILENT && proxy.apart.is_none();
        self.proxies.values().filter(|proxy| proxy.reliable && proxy.lane_from.is_none()).filter(tells)
    }

    /// A reader has told how far it is and what it misses.
    pub(super) fn learn_pace(&mut self, reader: Guid) {
        let Writer { proxies, window, .. } = self;
        let Some(proxy) = proxies.get_mut(&reader) else { return };
        let (place, missing) = (proxy.place(), std::mem::take(&mut proxy.missing));
        let again = std::mem::take(&mut proxy.missing_again);
        let mut lost = missing > 0 && proxy.pace.note_lost(window, place, missing);
        if missing > 0 {
            let answer = std::mem::take(&mut proxy.answered);
            lost |= again > 0 && proxy.pace.note_answer_lost(window, answer, again);
        }
        if proxy.pace.note_arrived(window, place) || lost {
            self.learn_limit();
        }
    }

    /// The readers, or what is known of them, have changed.
    pub(super) fn learn_limit(&mut self) {
        let limit = self.paced().map(|proxy| proxy.pace.limit()).max();
        self.window.limit = limit.unwrap_or(limits::WINDOW_BYTES);
    }
}
