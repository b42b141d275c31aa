//! The receiving side. RTPS 2.5 §8.4.10 (reader entities), §8.4.12 (their behaviour).
//!
//! A [`Reader`] owns what it knows of each matched writer. It orders, completes and acknowledges;
//! what is ready goes to whoever delivers. It sends only when [`Reader::send_acks`] is called.

mod lane;
mod lost;
mod reassembly;
mod waiting;
mod writer_proxy;

use std::collections::VecDeque;
use std::ops::Bound;

use taut_base::{Duration, Guid, Locator, SequenceNumber, Time};
use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};
use taut_wire::{AckNack, NackFrag};

use crate::limits;
use crate::message::{NUMBERS, Tx};
use crate::recent::RecentMap;
use crate::{ReaderIndex, WriterIndex};
use lost::LostWriters;

pub use reassembly::{Assembly, FragmentInfo, Said};
pub use writer_proxy::{Offer, WriterProxy};

/// One reader.
pub struct Reader {
    /// Its name.
    pub guid: Guid,
    /// Its place in the participant's table.
    pub index: ReaderIndex,
    /// The matched writers of other participants.
    pub proxies: RecentMap<Guid, WriterProxy>,
    /// The matched writers of this participant.
    pub local: Vec<WriterIndex>,
    /// Proxies with an ACKNACK or NACK_FRAG due, each at most once but for one that has gone and come back.
    acks: VecDeque<Guid>,
    /// The proxy that had room in a full cache last: those behind it come first.
    had_room: Guid,
    /// Those of this participant came first when there was room in a full cache last.
    local_first: bool,
    /// When to look whether what was asked for has come; `NEVER` if nothing was.
    pub repeat_at: Time,
    /// It is in the schedule.
    pub acks_queued: bool,
    /// That a lease was over was noticed late then, for the last time: see [`WriterProxy::lease_end`].
    pub(crate) late_since: Time,
    reliable: bool,
    durable: bool,
    /// HISTORY is KEEP_ALL.
    keeps_all: bool,
    lost: LostWriters,
    /// The last value of the count field of ACKNACK and NACK_FRAG. It belongs to the reader and outlives
    /// its proxies: a writer that did not notice that this side had forgotten it would take counts from
    /// 1 on for old messages.
    count: i32,
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, index: ReaderIndex, qos: &EndpointQos, history: History) -> Reader {
        Reader {
            guid,
            index,
            proxies: RecentMap::default(),
            local: Vec::new(),
            acks: VecDeque::new(),
            had_room: Guid::default(),
            local_first: false,
            repeat_at: Time::NEVER,
            acks_queued: false,
            late_since: Time::AT_ONCE,
            reliable: qos.reliability.kind == ReliabilityKind::Reliable,
            durable: qos.durability != DurabilityKind::Volatile,
            keeps_all: history == History::KeepAll,
            lost: LostWriters::default(),
            count: 0,
        }
    }

    /// A writer of another participant has matched. `greets`: it greets a reader that knows where its stream begins from
    /// nothing else. Returns whether this is one.
    pub fn match_writer(&mut self, mut proxy: WriterProxy, greets: bool) -> bool {
        proxy.reliable &= self.reliable;
        proxy.skips_history &= !self.durable;
        proxy.awaits_greeting = !self.durable;
        if let Some(until) = proxy.history_until.take().filter(|_| self.durable && !proxy.reliable) {
            proxy.await_history(until);
        }
        proxy.held = greets && proxy.reliable && proxy.awaits_greeting;
        proxy.ack_due = proxy.reliable;
        let lost = self.lost.take(proxy.heard, proxy.guid);
        if let Some(lost) = lost.filter(|lost| proxy.reliable && lost.next > SequenceNumber::FIRST) {
            proxy.resume(lost);
        }
        let is_held = proxy.held;
        self.proxies.insert(proxy.guid, proxy);
        is_held
    }

    /// A matched writer can listen. A reliable reader asks it for a heartbeat if it has heard none: it may have
    /// matched first and said all it had to say. One that greets by itself is given the time for it.
    pub fn greet(&mut self, now: Time, writer: Guid) {
        let silent = |proxy: &&mut WriterProxy| proxy.reliable && !proxy.has_heard();
        match self.proxies.get_mut(&writer).filter(silent) {
            Some(proxy) if proxy.held => self.repeat_at = self.repeat_at.min(proxy.await_greeting(now)),
            Some(_) => self.queue_ack(writer),
            None => {}
        }
    }

    /// When the first lease of those writers ends that keep their promise, and whether that is its second end.
    pub(crate) fn first_lease(&self) -> Option<(Time, bool)> {
        let alive = self.proxies.values().filter(|proxy| proxy.alive);
        alive.map(|proxy| proxy.lease_end(self.late_since)).min()
    }

    /// A matched writer has gone.
    pub fn unmatch_writer(&mut self, guid: Guid) -> Option<WriterProxy> {
        self.proxies.remove(&guid)
    }

    /// A matched writer is reached elsewhere from now on: what it has to know goes there at once. Returns whether
    /// that is news.
    pub(crate) fn move_writer(&mut self, writer: Guid, to: &[Locator]) -> bool {
        let Some(proxy) = self.proxies.get_mut(&writer).filter(|proxy| proxy.locators != to) else {
            return false;
        };
        proxy.locators = to.to_vec();
        proxy.ack_due = proxy.reliable;
        self.queue_ack(writer);
        true
    }

    /// Asks a writer again that has not answered the question of [`Reader::greet`]: it, or the answer, was lost, and it
    /// may believe that all is said. Returns whether it is such a one.
    pub fn ask_again(&mut self, writer: Guid) -> bool {
        let proxy = self.proxies.get_mut(&writer).filter(|proxy| proxy.reliable && !proxy.has_heard());
        let found = proxy.map(|proxy| proxy.ack_due = true).is_some();
        if found {
            self.queue_ack(writer);
        }
        found
    }

    /// Notes that a proxy may have something to send; [`Reader::send_acks`] finds out.
    ///
    /// *Cost*: none that grows with the writers, but to find it.
    pub fn queue_ack(&mut self, guid: Guid) {
        if let Some(proxy) = self.proxies.get_mut(&guid) {
            add_turn(&mut self.acks, proxy);
        }
    }

    /// A writer is told what it is owed, if anything.
    pub(crate) fn queue_owed(&mut self, writer: Guid) {
        let owes = |proxy: &WriterProxy| proxy.ack_due || !proxy.assemblies.is_empty();
        if self.proxies.get(&writer).is_some_and(owes) {
            self.queue_ack(writer);
        }
    }

    /// Calls with each writer whose changes wait for room in the cache, to deliver them: it is told how far that came, if
    /// anything did.
    ///
    /// One that writes faster than the reader takes would take all the room there ever is. So they come in turn: next time
    /// first those behind the last one that was given room before there was none for another. Of that one itself more may wait.
    pub(crate) fn for_each_blocked(&mut self, mut deliver: impl FnMut(&mut WriterProxy)) {
        let Reader { proxies, acks, had_room, .. } = self;
        let (last, mut is_given, mut is_full) = (*had_room, false, false);
        let mut visit = |guid: &Guid, proxy: &mut WriterProxy| {
            if !proxy.is_blocked() {
                return;
            }
            let before = proxy.next_expected();
            deliver(proxy);
            if proxy.next_expected() > before {
                proxy.ack_due = true;
                add_turn(acks, proxy);
                if !is_full {
                    (*had_room, is_given) = (*guid, true);
                }
            }
            // One whose instance alone is full, and that comes before all others, does not end a turn.
            is_full |= is_given && proxy.is_blocked();
        };
        proxies.for_each_in((Bound::Excluded(last), Bound::Unbounded), &mut visit);
        proxies.for_each_in(..=last, visit);
    }

    /// There is room in the cache: is it offered to the writers of this participant before those of others? Every other
    /// time it is, and then to another one of them first.
    pub(crate) fn offers_to_local(&mut self) -> bool {
        self.local_first = !self.local_first;
        if self.local_first {
            let one = self.local.len().min(1);
            self.local.rotate_left(one);
        }
        self.local_first
    }

    /// Is an acknowledgement to be sent?
    pub fn has_acks(&self) -> bool {
        !self.acks.is_empty()
    }

    /// Sends the ACKNACKs and NACK_FRAGs that are due. Returns whether all are out.
    pub fn send_acks(&mut self, tx: &mut Tx<'_>) -> bool {
        // They are small; which path they take nobody has asked.
        tx.message.set_limit(limits::DATAGRAM_MIN);
        while let Some(guid) = self.acks.front().copied() {
            if tx.budget == 0 {
                return false;
            }
            self.acks.pop_front();
            let more = tx.is_followed || !self.acks.is_empty();
            if let Some(proxy) = self.write_acks(tx, guid) {
                tx.leave(&proxy.locators, more);
            }
        }
        true
    }

    /// Puts the ACKNACKs and NACK_FRAGs that a built-in reader owes one writer into the message. What they ask for may
    /// take as long as `patience` to come. If some of what has come of it `waits` to be handled they are left out, until
    /// [`Reader::queue_owed`].
    pub(crate) fn send_acks_to(
        &mut self,
        tx: &mut Tx<'_>,
        writer: Guid,
        (patience, waits): (Duration, bool),
    ) {
        if let Some(at) = self.acks.iter().position(|guid| *guid == writer) {
            self.acks.remove(at);
            if let Some(proxy) = self.proxies.get_mut(&writer) {
                proxy.be_patient(patience);
                proxy.has_turn = false;
            }
            if !waits {
                self.write_acks(tx, writer);
            }
        }
    }

    /// A writer to which something may be due.
    pub(crate) fn next_owed(&self) -> Option<Guid> {
        self.acks.front().copied()
    }

    fn write_acks(&mut self, tx: &mut Tx<'_>, guid: Guid) -> Option<&WriterProxy> {
        let Reader { proxies, count, .. } = self;
        let proxy = proxies.get_mut(&guid)?;
        proxy.has_turn = false;
        if !proxy.reliable {
            return None;
        }
        let mut next_count = || {
            *count = count.wrapping_add(1);
            *count
        };
        let (reader_id, writer_id) = (self.guid.entity, guid.entity);
        tx.join(&proxy.locators);
        tx.message.directed(guid.prefix);
        for (writer_sn, fragment_number_state) in proxy.ask_fragments(tx.now) {
            let count = next_count();
            tx.make_room(NUMBERS, &proxy.locators);
            tx.message.nack_frag(&NackFrag { reader_id, writer_id, writer_sn, fragment_number_state, count });
        }
        if proxy.ack_due {
            let reader_sn_state = proxy.acknack(tx.now);
            // Before the first heartbeat it asks for one; later only what is missing wants an answer.
            let final_flag = proxy.has_heard() && reader_sn_state.is_empty();
            let count = next_count();
            tx.make_room(NUMBERS, &proxy.locators);
            tx.message.acknack(&AckNack { reader_id, writer_id, reader_sn_state, count, final_flag });
        }
        self.repeat_at = self.repeat_at.min(proxy.repeat_at);
        Some(proxy)
    }

    /// Looks which writers are to be asked again. Returns whether changes that were held may be delivered.
    pub fn on_repeat_timer(&mut self, now: Time) -> bool {
        self.repeat_at = Time::NEVER;
        let mut released = false;
        let Reader { proxies, acks, repeat_at, .. } = self;
        proxies.for_each(|_, proxy| {
            let was_held = proxy.held;
            if proxy.is_repeat_due(now) {
                add_turn(acks, proxy);
            }
            released |= was_held && proxy.is_blocked();
            *repeat_at = (*repeat_at).min(proxy.repeat_at);
        });
        released
    }
}

/// A writer gets a turn to be told, behind all others, if it has none yet.
fn add_turn(acks: &mut VecDeque<Guid>, proxy: &mut WriterProxy) {
    if !std::mem::replace(&mut proxy.has_turn, true) {
        acks.push_back(proxy.guid);
    }
}

#[cfg(test)]
mod tests;
