//! The sending side. RTPS 2.5 §8.4.7 (writer entities), §8.4.8, §8.4.9 (their behaviour).
//!
//! A [`Writer`] owns its changes, what each matched reader has acknowledged, and where fresh changes
//! go. It is told of writes, acknowledgements and matches at once, and sends only when
//! [`Writer::push`] or [`Writer::repair`] is called. The stateless SPDP writer is in
//! `discovery/spdp.rs`: it has no proxies and repeats itself by a timer.

mod apart;
mod gone;
mod heartbeats;
mod instances;
mod joiners;
mod lag;
mod lane;
mod large;
mod late_joiner;
mod lifespan;
mod link;
mod liveliness;
mod lost;
mod pacing;
mod path;
mod proxies;
mod reader_proxy;
mod repair;
mod route;
mod shared;
mod transmit;
mod turns;
mod vain;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;

use taut_base::{
    Duration, FragmentNumber, FragmentNumberSet, Guid, InstanceHandle, Locator, SequenceNumber,
    SequenceNumberSet, Time, Timestamp,
};
use taut_mem::Bytes;
use taut_qos::{DurabilityKind, EndpointQos, History, LivelinessKind, ReliabilityKind};
use taut_wire::Stamps;

use crate::anatomy::Calls;
use crate::answers::Answers;
use crate::history_cache::{CacheChange, ChangeKind, HistoryCache};
use crate::intervals::IntervalSet;
use crate::limits;
use crate::message::Tx;
use crate::{ReaderIndex, WriterIndex};

use apart::Kept;
use heartbeats::Hurried;
use path::PathSizes;
use proxies::Proxies;
use shared::Recent;
use turns::Turns;
use window::Window;

pub use lag::{Lag, Lagging, Limit};
pub use lane::LocalReader;
pub use link::Link;
pub use liveliness::Manual;
pub(crate) use reader_proxy::FragmentJob;
pub use reader_proxy::{Owed, ReaderProxy};
pub use route::MulticastChoice;
pub(crate) use transmit::send_fragments;

/// What the caller of a write gives.
#[derive(Clone, Debug)]
pub struct NewChange {
    /// What it does.
    pub kind: ChangeKind,
    /// The instance; `NIL` on topics without a key.
    pub instance: InstanceHandle,
    /// The writer's clock.
    pub source_timestamp: Option<Timestamp>,
    /// Encapsulation header and serialized data or key.
    pub payload: Bytes,
    /// Its number, if the writer's owner counts; the next one if not.
    pub number: Option<SequenceNumber>,
    /// It also goes through the writer's lane: readers that read the lane have no need of it here.
    pub in_lane: bool,
    /// When its write was called, by the monotonic clock of the machine; 0 if that is not known.
    pub called: Time,
    /// Its writer has gone on, as there seemed to be room: it goes above what may be under way at a time.
    pub was_left: bool,
}

/// One without anything, for tests.
#[cfg(test)]
pub(crate) fn change() -> NewChange {
    NewChange {
        kind: ChangeKind::Alive,
        instance: InstanceHandle::NIL,
        source_timestamp: None,
        payload: Bytes::new(),
        number: None,
        in_lane: false,
        called: Time::default(),
        was_left: false,
    }
}

/// The history is full of changes that a reliable reader has not acknowledged or, with KEEP_LAST and max_samples, of the
/// last ones of instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// What an ACKNACK was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    /// Of a reader that is not matched, old, or a lie.
    Nothing,
    /// Of more than was written, and a question.
    Beyond,
    /// News, or a question.
    More,
    /// Less than before: its reader has forgotten this writer and found it again.
    Less,
    /// What only one would send that has started again under its old name.
    Anew,
}

/// One writer.
pub struct Writer {
    /// Its name.
    pub guid: Guid,
    /// Its place in the participant's table.
    pub index: WriterIndex,
    /// Readers of this participant.
    pub local: Vec<LocalReader>,
    /// When the next heartbeat is due; `NEVER` when all is acknowledged.
    pub heartbeat_at: Time,
    /// TRANSPORT_PRIORITY.
    pub priority: i32,
    /// When it last kept a promise of manual liveliness.
    pub asserted_at: Time,
    /// What has become of that promise.
    pub manual: Manual,
    /// What of it has its turn to come.
    pub queued: Queued,
    /// What it shares with its owner.
    pub link: Arc<Link>,
    reliable: bool,
    durable: bool,
    /// Its being alive is no business of each write.
    automatic: bool,
    /// MANUAL_BY_PARTICIPANT: each write shows that the participant is alive.
    pub(crate) by_participant: bool,
    keep_all: bool,
    max_samples: usize,
    max_samples_per_instance: usize,
    /// Does one of them tell by the instance whether there is room?
    counts_instances: bool,
    /// The last change that did not go through the lane.
    off_lane: SequenceNumber,
    /// Some reader reads the lane.
    has_lane_readers: bool,
    history: HistoryCache,
    /// What it keeps no longer, and readers take all the same.
    kept: Kept,
    /// Some reader is apart.
    has_apart: bool,
    /// Changes by which a built-in writer tells that an endpoint is gone, and when.
    gone: VecDeque<(SequenceNumber, Time)>,
    lost: lost::Lost,
    proxies: Proxies,
    /// Proxies that are owed something.
    owed: Turns,
    /// Where fresh changes go: one datagram reaches as many readers as it can.
    route: Vec<Locator>,
    /// The same for all readers, those of the lane and the others, since it was last needed.
    routes_to_all: Option<Box<[Vec<Locator>; 2]>>,
    /// Where the one goes that is repaired next; working space.
    repair_route: Vec<Locator>,
    paths: PathSizes,
    multicast: MulticastChoice,
    recent: Recent,
    /// Fresh changes wait for their destination's bucket: what is written meanwhile must not be without bounds.
    pub(crate) waits: bool,
    /// When its changes were written, if they are to say so.
    pub(crate) calls: Option<Calls>,
    last: SequenceNumber,
    sent: SequenceNumber,
    /// The change whose fragments are under way, and the next of them.
    fragment: (SequenceNumber, u32),
    /// When fresh changes were last sent, when a heartbeat last rode behind them, and when acknowledgements were last
    /// asked for.
    pushed_at: Time,
    told_at: Time,
    asked_at: Time,
    /// How many single datagrams have followed each other soon.
    row: u32,
    heartbeat_count: i32,
    heartbeat_interval: Duration,
    /// A reader has answered since the last heartbeat by the timer.
    answered: bool,
    unasked_changes: usize,
    unasked_bytes: usize,
    unasked_datagrams: usize,
    /// Fresh changes that are not acknowledged.
    window: Window,
    /// The rest of a change waits for room in the window.
    blocked: bool,
    /// The readers are to be asked again how far they are, or have been.
    ask_again: bool,
    asked_again: bool,
    heartbeat_frag_count: i32,
    /// Fragments that were offered before they left.
    offered: VecDeque<(SequenceNumber, FragmentNumber)>,
    /// Somebody waits for acknowledgements: ask for them with the next heartbeat.
    hurry: bool,
    /// Somebody waited for room, and the readers were asked.
    hurried: Hurried,
    /// How long the readers of a built-in writer take to answer.
    answers: Answers,
    /// LIFESPAN.
    lifespan: Duration,
    /// What is up to this change has been looked at, and was too old.
    expired: SequenceNumber,
    /// When the timer for that runs out; `NEVER` if it is not set.
    pub(crate) expires_at: Time,
}

/// What of a writer has its turn to come.
#[derive(Default)]
pub struct Queued {
    /// Its fresh changes are in the schedule.
    pub push: bool,
    /// So is what it owes single readers.
    pub repair: bool,
    /// It has more for readers of its participant.
    pub delivery: bool,
}

impl Writer {
    /// A writer without readers.
    pub fn new(
        guid: Guid,
        index: WriterIndex,
        qos: &EndpointQos,
        history: History,
        max_samples: Option<u32>,
        multicast: MulticastChoice,
    ) -> Writer {
        Writer {
            guid,
            index,
            local: Vec::new(),
            heartbeat_at: Time::NEVER,
            priority: qos.transport_priority,
            asserted_at: Time(0),
            manual: Manual::default(),
            queued: Queued::default(),
            link: Arc::default(),
            automatic: qos.liveliness.kind == LivelinessKind::Automatic,
            by_participant: qos.liveliness.kind == LivelinessKind::ManualByParticipant,
            off_lane: SequenceNumber::ZERO,
            has_lane_readers: false,
            reliable: qos.reliability.kind == ReliabilityKind::Reliable,
            durable: qos.durability != DurabilityKind::Volatile,
            keep_all: matches!(history, History::KeepAll),
            max_samples: max_samples.map_or(usize::MAX, |max| max as usize),
            max_samples_per_instance: usize::MAX,
            counts_instances: false,
            history: HistoryCache::new(history, guid.entity.is_keyed()),
            kept: Kept::default(),
            has_apart: false,
            gone: VecDeque::new(),
            lost: lost::Lost::default(),
            proxies: Proxies::default(),
            owed: Turns::default(),
            route: Vec::new(),
            routes_to_all: None,
            repair_route: Vec::new(),
            paths: PathSizes::new(!guid.entity.is_builtin()),
            multicast,
            recent: Recent::default(),
            waits: false,
            calls: None,
            last: SequenceNumber::ZERO,
            sent: SequenceNumber::ZERO,
            fragment: (SequenceNumber::ZERO, 1),
            pushed_at: Time(i64::MIN),
            told_at: Time(i64::MIN),
            row: 0,
            asked_at: Time(i64::MIN),
            heartbeat_count: 0,
            heartbeat_interval: limits::HEARTBEAT_FIRST,
            answered: false,
            unasked_changes: 0,
            unasked_bytes: 0,
            unasked_datagrams: 0,
            window: Window::new(),
            blocked: false,
            ask_again: false,
            asked_again: false,
            heartbeat_frag_count: 0,
            offered: VecDeque::new(),
            hurry: false,
            hurried: Hurried::default(),
            answers: Answers::taking(limits::DISCOVERY_ANSWER),
            lifespan: qos.lifespan,
            expired: SequenceNumber::ZERO,
            expires_at: Time::NEVER,
        }
    }

    /// From now on its changes say when they were written.
    pub(crate) fn tell_anatomy(&mut self) {
        self.calls = Some(Calls::new());
        self.paths.reserve(Stamps::LEN);
    }

    /// From now on all of its changes that no path needs to take whole go in fragments.
    pub(crate) fn cut_all(&mut self) {
        self.paths.cut();
    }

    /// Is there room for one more change? KEEP_LAST makes room itself.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        if !self.keep_all {
            return true;
        }
        if self.held() >= self.max_samples {
            return false;
        }
        let acked = self.acked_by_all();
        let unacked = usize::try_from(self.last.0.saturating_sub(acked.0)).unwrap_or(usize::MAX);
        if unacked == 0 {
            return true;
        }
        // A durable history also holds what is acknowledged: then only the number tells.
        let has_room = unacked < limits::WINDOW_CHANGES
            && self.window.has_room()
            && (self.durable || self.history.bytes() < limits::WINDOW_BYTES);
        has_room || self.proxies.has_joiners && self.has_room_beside_joiners()
    }

    /// Changes that the history or the lane holds. One that both hold counts once; from the first on that waits in the
    /// lane, each is in one of them. A durable history has them all.
    fn held(&self) -> usize {
        let Some(from) = self.link.unread_from().filter(|_| !self.durable) else { return self.history.len() };
        let unread = usize::try_from(self.last.next().0.saturating_sub(from.0)).unwrap_or(0);
        self.history.count_before(from).saturating_add(unread)
    }

    /// Adds a change, whose payload it takes. *Errors*: [`Full`] if it has to wait for acknowledgements, or for the end of
    /// an instance; it is as it was then.
    pub fn write(&mut self, now: Time, new: &mut NewChange) -> Result<SequenceNumber, Full> {
        self.catch_up();
        self.expire(now);
        if self.waits {
            self.overwrite_acknowledged(new.payload.len());
        }
        if !self.has_room() || !self.has_room_of(new) {
            self.hurry = true;
            self.link.set_full(true);
            if !new.was_left {
                return Err(Full);
            }
        }
        self.last = new.number.unwrap_or_default().max(self.last.next());
        if !new.in_lane {
            self.off_lane = self.last;
            self.owe_to_lane_readers();
        }
        let all_in_lane = new.in_lane && self.all_read_the_lane();
        if (self.proxies.is_empty() && self.local.is_empty() || all_in_lane) && !self.durable {
            self.sent = self.last;
            self.skip_lane();
            self.update_link();
            return Ok(self.last);
        }
        self.unasked_bytes = self.unasked_bytes.saturating_add(new.payload.len());
        self.unasked_changes = self.unasked_changes.saturating_add(1);
        if let Some(calls) = &mut self.calls {
            calls.note(self.last, new.called);
        }
        let (guid, last) = (self.guid, self.last);
        self.history.insert(|change| {
            let CacheChange {
                kind,
                writer_guid,
                sequence_number,
                instance,
                source_timestamp,
                time,
                payload,
            } = change;
            payload.take_over(&mut new.payload);
            *kind = new.kind;
            *writer_guid = guid;
            *sequence_number = last;
            *instance = Some(new.instance);
            *source_timestamp = new.source_timestamp;
            *time = now;
        });
        if self.route.is_empty() {
            self.sent = self.last;
        }
        self.history.evict(self.sent);
        if self.waits {
            self.history.overwrite(self.under_way());
        }
        if !self.kept.is_empty() {
            self.part_ways(now);
        }
        self.skip_lane();
        if new.kind != ChangeKind::Alive {
            self.note_end(now, new.kind);
        }
        self.update_link();
        Ok(self.last)
    }

    /// A reader of another participant has matched. `durable_reader`: it wants the history. It is sent nothing of
    /// what was before it matched until [`Writer::greet`].
    pub fn match_reader(&mut self, mut proxy: ReaderProxy, durable_reader: bool) {
        self.catch_up();
        proxy.reliable &= self.reliable;
        proxy.heartbeat_due = proxy.reliable;
        let is_late_joiner = self.durable && durable_reader;
        if is_late_joiner {
            // Discovery's history goes out on request only: an address that somebody announced is not
            // proven to be theirs, and a heartbeat is smaller than the announcement was.
            let (from, to) = (self.history.first(), self.history.last_of_oldest(limits::REPLAY_CHANGES));
            if let (Some(from), Some(to), false) = (from, to, self.guid.entity.is_builtin()) {
                proxy.owed = Owed::Replay(from, to.min(self.sent));
            }
            if !self.kept.is_empty() {
                proxy.first_relevant = self.history.first().unwrap_or(self.last.next());
            }
        } else {
            proxy.first_relevant = self.last.next();
            proxy.acked = self.last;
            proxy.greeted = !proxy.reliable;
        }
        let guid = proxy.guid;
        self.proxies.insert(guid, proxy);
        if is_late_joiner {
            self.begin_joining(guid);
        }
        self.update_route();
        if is_late_joiner {
            self.begin_catching_up(guid);
        }
        if self.proxies.has_joiners {
            // There may be somebody else to go by now.
            self.forget_acknowledged();
        }
        self.update_link();
    }

    /// A matched reader can listen: it gets what it is owed.
    pub fn greet(&mut self, reader: Guid) {
        if self.proxies.get(&reader).is_some_and(ReaderProxy::is_owed) {
            self.owe(reader);
        }
    }

    /// A matched reader is reached elsewhere from now on. What was lost on the way to where it was it learns from a
    /// heartbeat. Returns whether that is news.
    pub(crate) fn move_reader(&mut self, reader: Guid, unicast: &[Locator], multicast: &[Locator]) -> bool {
        let unicast = if unicast.is_empty() { multicast } else { unicast };
        let moved = |proxy: &&mut ReaderProxy| proxy.unicast != unicast || proxy.multicast != multicast;
        let Some(proxy) = self.proxies.get_mut(&reader).filter(moved) else { return false };
        (proxy.unicast, proxy.multicast) = (unicast.to_vec(), multicast.to_vec());
        proxy.heartbeat_due = proxy.reliable;
        self.update_route();
        self.owe(reader);
        true
    }

    /// The participant of a reader has spoken, so it knows this one by now: a heartbeat for a reader that
    /// has answered none may have come too early.
    pub fn greet_again(&mut self, reader: Guid) {
        if let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| !proxy.has_acknowledged()) {
            proxy.heartbeat_due = proxy.reliable;
            self.owe(reader);
        }
    }

    /// A matched reader has gone.
    pub fn unmatch_reader(&mut self, guid: Guid) {
        if self.proxies.remove(&guid) {
            self.release();
            self.update_route();
            self.forget_acknowledged();
            self.update_link();
        }
    }

    /// A reader of this participant has matched.
    pub fn match_local(&mut self, reader: ReaderIndex, reliable: bool, durable_reader: bool) {
        self.catch_up();
        let all = self.durable && durable_reader;
        let delivered = if all { SequenceNumber::ZERO } else { self.last };
        let reliable = reliable && self.reliable;
        let told = SequenceNumber::ZERO;
        self.local.push(LocalReader { reader, reliable, delivered, is_behind: false, lane_from: None, told });
        // It waits for nothing that the history no longer has.
        self.pass_holes();
        self.update_link();
    }

    /// A reader of this participant has gone.
    /// Returns whether more of the history is to go than goes in one step, of which its heartbeat timer sees to the rest.
    pub fn unmatch_local(&mut self, reader: ReaderIndex) -> bool {
        self.local.retain(|local| local.reader != reader);
        let more = self.forgets_more() && self.is_acknowledged() && self.heartbeat_at == Time::NEVER;
        self.update_link();
        more
    }

    /// A matched reader has forgotten this writer, finds it anew and hears nothing before: it goes on behind what it had
    /// acknowledged, if it wants no history.
    pub(crate) fn begin_anew(&mut self, reader: Guid, durable_reader: bool) {
        let is_late_joiner = self.durable && durable_reader;
        if is_late_joiner {
            self.begin_catching_up(reader);
        }
        let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| proxy.reliable) else { return };
        proxy.forget_owed();
        proxy.come_back();
        proxy.heartbeat_due = true;
        if is_late_joiner {
            self.begin_joining(reader);
        } else {
            (proxy.greeted, proxy.deaf) = (false, 0);
            proxy.first_relevant = proxy.acked.next();
        }
        self.release();
        if self.has_apart {
            self.update_route();
        }
    }

    /// An ACKNACK has arrived.
    pub fn on_acknack(
        &mut self,
        now: Time,
        reader: Guid,
        set: &SequenceNumberSet,
        count: i32,
        is_final: bool,
    ) -> Acknowledged {
        self.catch_up();
        let (last, sent) = (self.last, self.sent);
        let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| proxy.reliable) else {
            return Acknowledged::Nothing;
        };
        let before = proxy.acked;
        if self.guid.entity.is_builtin() && proxy.has_restarted(now, set, count) {
            return Acknowledged::Anew;
        }
        if !proxy.on_acknack(now, set, count, last) {
            return if is_final { Acknowledged::Nothing } else { self.on_question_beyond(now, reader, set) };
        }
        let fell = proxy.acked < before;
        proxy.heard = Some(now);
        // RTPS 2.5 §8.3.8.1: without the final flag it wants a heartbeat even if it misses nothing.
        // A reader that has all and asks again and again, or that was told of numbers that do not exist
        // by somebody else, would keep both sides busy: it gets one only now and then.
        let asks = set.iter().next().is_some_and(|first| first <= last);
        let wants = !is_final && !asks;
        if wants && ((set.is_empty() && set.base() <= last) || proxy.may_repeat(now)) {
            proxy.heartbeat_due = true;
        }
        // One that only asks for a heartbeat may have heard none: the greeting was lost or came too early.
        let is_question = !is_final && set.is_empty();
        let may_be_deaf = is_question && proxy.deaf < limits::DEAF_QUESTIONS;
        // Of what was asked twice nobody knows which of the two is answered.
        if !is_question && let Some((at, true)) = proxy.asked.take() {
            self.answers.note(now.since(at));
        }
        if may_be_deaf {
            proxy.deaf = proxy.deaf.saturating_add(1);
        } else if !proxy.greeted {
            proxy.greeted = true;
            proxy.heartbeat_due |= proxy.acked < sent;
        }
        let progress = proxy.acked > before;
        if asks {
            proxy.missing = self.window.lost(set, |number| self.history.get(number).map(|c| c.payload.len()));
        }
        let is_paced = asks || proxy.pace.is_limited();
        let is_apart = proxy.taking.is_some() || proxy.apart.is_some();
        if proxy.is_owed() {
            self.owe(reader);
        }
        // A reader that asks is there; one that only says what it has may just be slow to take it.
        self.answered |= progress || asks;
        if is_paced {
            self.learn_pace(reader);
        }
        if is_apart {
            self.settle(now, reader);
        }
        self.skip_lane();
        if fell {
            self.fall_back(reader);
        }
        if progress {
            self.forget_acknowledged();
        }
        if fell { Acknowledged::Less } else { Acknowledged::More }
    }

    /// A question has acknowledged nothing. One about more than was written may be meant for an earlier life of this writer
    /// under the same name: from a heartbeat its reader learns that this is another one, and would ask for ever without
    /// (RTPS 2.5 §8.3.8.1: it wants one). As it may as well be a lie, it gets one only now and then.
    #[cold]
    fn on_question_beyond(&mut self, now: Time, reader: Guid, set: &SequenceNumberSet) -> Acknowledged {
        let Some(proxy) = self.proxies.get_mut(&reader) else { return Acknowledged::Nothing };
        if set.base() <= self.last.next() || !proxy.may_repeat(now) {
            return Acknowledged::Nothing;
        }
        proxy.heartbeat_due = true;
        self.owe(reader);
        Acknowledged::Beyond
    }

    /// A NACK_FRAG has arrived.
    pub fn on_nack_frag(
        &mut self,
        now: Time,
        reader: Guid,
        number: SequenceNumber,
        set: FragmentNumberSet,
        count: i32,
    ) {
        let next = match self.fragment {
            _ if number <= self.sent => FragmentNumber::MAX,
            (under_way, next) if number == under_way => next,
            _ => return,
        };
        let asked = self.without_offer(reader, number, &set);
        let asked = self.of_this_change(number, asked);
        let missing = asked.iter().count();
        let size = self.sendable(number).and_then(|change| self.paths.fragment_size(change)).unwrap_or(0);
        let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| proxy.reliable) else { return };
        if proxy.on_nack_frag(now, (number, set, asked), count, next) {
            proxy.heard = Some(now);
            let cost = size.max(window::DATAGRAM);
            proxy.missing = proxy.missing.saturating_mul(cost);
            proxy.missing_again = proxy.missing_again.saturating_mul(cost);
            self.answered = true;
            if proxy.is_owed() {
                self.owe(reader);
            }
            self.learn_pace(reader);
            self.keep_for(now, reader, number, missing);
        }
    }

    /// How many changes it holds.
    pub fn changes_held(&self) -> usize {
        self.history.len()
    }

    /// Has every reliable reader acknowledged all changes?
    pub fn is_acknowledged(&self) -> bool {
        self.acked_by_all() >= self.last
    }

    /// Has a reader, if it is matched, acknowledged up to this number?
    pub fn is_acknowledged_by(&self, reader: Guid, number: SequenceNumber) -> bool {
        self.proxies.get(&reader).is_none_or(|proxy| proxy.acked >= number)
    }

    /// All reliable readers have acknowledged up to this number.
    fn acked_by_all(&self) -> SequenceNumber {
        self.standing().0
    }

    /// A volatile writer keeps only what somebody may still ask for.
    pub fn forget_acknowledged(&mut self) {
        self.forget_through(self.acked_by_all().min(self.sent));
        if self.link.is_full() && self.has_room() {
            self.link.set_full(false);
        }
    }

    /// All have acknowledged up to here.
    #[inline(always)]
    fn forget_through(&mut self, acked: SequenceNumber) {
        let mut arrived = acked;
        if !self.durable {
            self.history.remove_through(acked);
        } else {
            if self.expired > SequenceNumber::ZERO {
                self.forget_ends();
            }
            if self.history.has_ended(acked) {
                self.forget_ended();
            }
            if self.proxies.has_joiners {
                arrived = self.settle_joiners().min(self.sent);
            }
        }
        self.window.note_arrived((arrived, 0));
    }

    /// Readers of this participant have been given what they can take.
    pub fn after_delivery(&mut self) {
        self.skip_lane();
        self.forget_acknowledged();
        self.update_link();
    }

    /// Changes that readers of this participant have not been given. The caller delivers them.
    pub fn undelivered(&self, local: usize) -> Option<&CacheChange> {
        let delivered = self.local.get(local)?.delivered;
        self.history.first_from(delivered.next())
    }

    /// What is held that a reliable reader of this participant has not been given. *Cost*: O(changes held).
    pub fn left_to(&self, reader: ReaderIndex) -> Option<IntervalSet> {
        let local = self.local.iter().find(|local| local.reader == reader && local.reliable)?;
        // No more than changes are held.
        let mut left = IntervalSet::new(usize::MAX);
        let numbers = self.history.from(local.delivered.next()).map(|change| change.sequence_number);
        numbers.for_each(|number| _ = left.insert(number, number.next()));
        Some(left)
    }

    /// Is there a fresh change to send?
    pub fn has_fresh(&self) -> bool {
        self.sent < self.last
    }

    /// Is there something that has not been sent to a reader who does not acknowledge it?
    pub fn has_unsent(&self) -> bool {
        self.has_fresh() && self.proxies.values().any(|proxy| !proxy.reliable)
    }

    /// Is a reader owed something?
    pub fn has_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    fn owe(&mut self, reader: Guid) {
        let Writer { proxies, owed, .. } = self;
        if let Some(proxy) = proxies.get_mut(&reader) {
            owed.add(proxy);
        }
    }

    fn update_route(&mut self) {
        let listening = self
            .proxies
            .values()
            .filter(|proxy| proxy.lane_from.is_none() && !proxy.catches_up && proxy.apart.is_none());
        self.route = route::cover(listening, self.multicast);
        self.routes_to_all = None;
        self.has_apart = self.proxies.values().any(|proxy| proxy.apart.is_some());
        self.look_for_joiners();
        self.paths.forget();
        self.learn_limit();
    }

    /// How large datagrams and fragments to the readers may be.
    #[inline]
    pub(crate) fn learn_paths(&mut self, tx: &mut Tx<'_>) {
        if !self.paths.are_known(tx.port.path_generation()) {
            self.ask_for_paths(tx);
        }
        tx.message.set_limit(self.paths.datagram());
    }

    /// After a change of the readers.
    #[cold]
    fn ask_for_paths(&mut self, tx: &mut Tx<'_>) {
        let first = self.first_held();
        let Writer { route, proxies, paths, fragment, sent, .. } = self;
        let unicast = proxies.values().flat_map(|proxy| &proxy.unicast);
        let smallest = route.iter().chain(unicast).map(|to| tx.port.path_size(to)).min();
        // Of a change that is half out the rest has the same size.
        let from = (*sent).max(fragment.0).next();
        paths.learn(tx.port.path_generation(), smallest, from, first);
    }
}
