//! The receiving side. RTPS 2.5 §8.4.10 (reader entities), §8.4.12 (their behaviour).
//!
//! A [`Reader`] owns what it knows of each matched writer. It orders, completes and acknowledges;
//! what is ready goes to whoever delivers. It sends only when [`Reader::send_acks`] is called.

mod lane;
mod reassembly;
mod waiting;
mod writer_proxy;

use std::collections::VecDeque;

use taut_base::{Duration, Guid, Locator, Time};
use taut_qos::{DurabilityKind, EndpointQos, ReliabilityKind};
use taut_wire::{AckNack, NackFrag};

use crate::limits;
use crate::message::{NUMBERS, Tx};
use crate::recent::RecentMap;
use crate::{ReaderIndex, WriterIndex};

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
    /// Proxies with an ACKNACK or NACK_FRAG due, each at most once.
    acks: VecDeque<Guid>,
    /// When to look whether what was asked for has come; `NEVER` if nothing was.
    pub repeat_at: Time,
    /// It is in the schedule.
    pub acks_queued: bool,
    /// Until then no writer is found silent whose lease was over before: that was noticed late.
    pub(crate) grace_until: Time,
    reliable: bool,
    durable: bool,
    /// The last value of the count field of ACKNACK and NACK_FRAG. It belongs to the reader and outlives
    /// its proxies: a writer that did not notice that this side had forgotten it would take counts from
    /// 1 on for old messages.
    count: i32,
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, index: ReaderIndex, qos: &EndpointQos) -> Reader {
        Reader {
            guid,
            index,
            proxies: RecentMap::default(),
            local: Vec::new(),
            acks: VecDeque::new(),
            repeat_at: Time::NEVER,
            acks_queued: false,
            grace_until: Time::AT_ONCE,
            reliable: qos.reliability.kind == ReliabilityKind::Reliable,
            durable: qos.durability != DurabilityKind::Volatile,
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

    /// When the first lease of those writers ends that keep their promise, and that lease.
    pub(crate) fn first_lease(&self) -> Option<(Time, Duration)> {
        let leases = self.proxies.values().filter(|proxy| proxy.alive).map(|proxy| {
            let lease = proxy.liveliness.lease_duration;
            (proxy.heard + lease, lease)
        });
        leases.min()
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
    pub fn queue_ack(&mut self, guid: Guid) {
        if !self.acks.contains(&guid) {
            self.acks.push_back(guid);
        }
    }

    /// A writer is told what it is owed, if anything.
    pub(crate) fn queue_owed(&mut self, writer: Guid) {
        let owes = |proxy: &WriterProxy| proxy.ack_due || !proxy.assemblies.is_empty();
        if self.proxies.get(&writer).is_some_and(owes) {
            self.queue_ack(writer);
        }
    }

    /// Calls with each writer whose changes wait for room in the cache, to deliver them: it is told how far that came.
    pub(crate) fn for_each_blocked(&mut self, mut deliver: impl FnMut(&mut WriterProxy)) {
        let Reader { proxies, acks, .. } = self;
        proxies.for_each(|guid, proxy| {
            if !proxy.is_blocked() {
                return;
            }
            deliver(proxy);
            proxy.ack_due = true;
            if !acks.contains(guid) {
                acks.push_back(*guid);
            }
        });
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
            if let Some(proxy) = self.write_acks(tx, guid) {
                tx.flush(&proxy.locators);
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
        let proxy = proxies.get_mut(&guid).filter(|proxy| proxy.reliable)?;
        let mut next_count = || {
            *count = count.wrapping_add(1);
            *count
        };
        let (reader_id, writer_id) = (self.guid.entity, guid.entity);
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
        proxies.for_each(|guid, proxy| {
            let was_held = proxy.held;
            if proxy.is_repeat_due(now) && !acks.contains(guid) {
                acks.push_back(*guid);
            }
            released |= was_held && proxy.is_blocked();
            *repeat_at = (*repeat_at).min(proxy.repeat_at);
        });
        released
    }
}

#[cfg(test)]
mod tests;
