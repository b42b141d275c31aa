//! Which writer talks to which reader. DCPS 1.4 §2.2.3, DDS-XTypes 1.3 §7.6.

use std::sync::Arc;

use taut_base::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber, Time, VendorId};
use taut_qos::{
    DurabilityKind, Incompatibility, PolicyId, ReliabilityKind, compare_partitions, incompatible,
};

use super::locators::{groups_of, nearest};
use super::{EndpointData, Greeting, Local, LocalKind, ParticipantData, Refusal};
use crate::counters::bump;
use crate::event::Event;
use crate::intervals::IntervalSet;
use crate::limits;
use crate::participant::{Participant, Sink};
use crate::reader::WriterProxy;
use crate::timers::Timer;
use crate::writer::ReaderProxy;
use crate::{ReaderIndex, WriterIndex};

/// Whose writers take an ACKNACK that begins with 0 for the question what they have, as their readers ask it. One that begins
/// with 1 has those of Fast DDS count anew until the next periodic heartbeat, which never comes while they are asked more
/// often than that; those of Connext that keep a history and have nothing in it do not answer. For all others 0 is not
/// valid (RTPS 2.5 §8.3.5.5).
const ASKED_FROM_ZERO: [VendorId; 2] = [VendorId::FAST_DDS, VendorId::CONNEXT];

/// Whose readers that acknowledge only what they miss take nothing from writers that do not say that they can do without,
/// as no writer of this side does. Others may take it.
const NEEDS_NO_POSITIVE_ACKS: VendorId = VendorId::FAST_DDS;

/// May a writer and a reader of one topic talk to each other? Adds to `compared` what PARTITION has cost. *Errors*: why not, as
/// the writer's participant sees it.
fn check(
    writer: &Arc<EndpointData>,
    reader: &Arc<EndpointData>,
    compared: &mut usize,
) -> Result<(), Refusal> {
    if writer.type_name != reader.type_name {
        let (local, remote) = (writer.type_name.clone(), reader.type_name.clone());
        return Err(Refusal::Type { local, remote });
    }
    if writer.guid.entity.is_keyed() != reader.guid.entity.is_keyed() {
        return Err(Refusal::Key);
    }
    match compare_partitions(&writer.qos.partition, &reader.qos.partition, compared) {
        Some(true) => {}
        Some(false) => {
            return Err(Refusal::Partition { local: Arc::clone(writer), remote: Arc::clone(reader) });
        }
        None => return Err(Refusal::PartitionTooLong),
    }
    let why = incompatible(&writer.qos, &reader.qos);
    if why.is_empty() { Ok(()) } else { Err(Refusal::Qos(why)) }
}

/// An endpoint that a peer has named, and what it is yet to be matched with here, or, if it `ends`, to be parted from: the last
/// of them is next. So a step has as much of that as it may.
#[derive(Default)]
pub(crate) struct Found {
    remote: Guid,
    locals: Vec<EntityId>,
    ends: bool,
    /// Something is left, of this or of what has come behind it, that has a timer.
    pub waits: bool,
}

impl Found {
    fn begin(&mut self, remote: Guid, locals: impl Iterator<Item = EntityId>, ends: bool) {
        (self.remote, self.ends) = (remote, ends);
        self.locals.extend(locals);
        self.locals.reverse();
    }

    /// A participant is being forgotten: its endpoints have no part in this any more.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        if self.remote.prefix == prefix {
            self.locals.clear();
            self.ends = false;
        }
    }

    pub fn is_any_left(&self) -> bool {
        !self.locals.is_empty() || self.ends
    }
}

/// A local endpoint that was created, and what there was of its topic then that it is yet to be matched with: the last is next.
/// As many at a time as the user creates at a time.
pub(crate) struct Unmatched {
    pub local: EntityId,
    candidates: Vec<Guid>,
}

impl Participant {
    /// A new local endpoint is to be matched with all known endpoints of its topic. Discovery says nothing before: who learns of
    /// it says at once what it has to say, once.
    pub(super) fn await_matches(&mut self, local: EntityId) {
        let Some(data) = self.locals.get(&local).map(|local| &local.data) else { return };
        let remote = self.database.by_topic.get(&data.topic_name).into_iter().flatten().copied();
        let own = self.config.guid_prefix;
        let same_participant = self.topics.of(&data.topic_name).map(|entity| Guid::new(own, entity));
        let others = remote.chain(same_participant);
        let mut candidates: Vec<Guid> =
            others.filter(|guid| guid.entity.is_writer() != local.is_writer()).collect();
        if !candidates.is_empty() {
            candidates.reverse();
            self.unmatched.push_back(Unmatched { local, candidates });
        }
    }

    /// Matches local endpoints that were created with what there was of their topics, the first ones first. `false` once all
    /// are, and those of this participant have the history. *Cost*: [`limits::LOCAL_STEP`] matches, fewer after
    /// [`limits::COMPARED_STEP`], and [`limits::LOCAL_CHANGES`]; between two steps others may have their turn, but for discovery, which says nothing until all
    /// are matched.
    pub fn match_more(&mut self, now: Time, sink: &mut dyn Sink) -> bool {
        let mut left = limits::LOCAL_CHANGES;
        self.compared = 0;
        self.deliver_more(now, sink, &mut left);
        for _ in 0..limits::LOCAL_STEP {
            let is_used_up = left == 0 || self.compared >= limits::COMPARED_STEP;
            if is_used_up || !self.undelivered.is_empty() {
                break;
            }
            let Some(Unmatched { local, candidates }) = self.unmatched.front_mut() else { break };
            let (local, other) = (*local, candidates.pop());
            if candidates.is_empty() {
                self.unmatched.pop_front();
            }
            match other {
                Some(other) if other.prefix != self.config.guid_prefix => self.try_match(now, local, other),
                Some(other) => {
                    let other = other.entity;
                    let (writer, reader) = if local.is_writer() { (local, other) } else { (other, local) };
                    self.try_match_within(now, writer, reader, (sink, &mut left));
                }
                None => {}
            }
        }
        self.is_matching()
    }

    /// Are some of these yet to be matched, or given what there is for them?
    pub fn is_matching(&self) -> bool {
        !self.unmatched.is_empty() || !self.undelivered.is_empty()
    }

    /// Parts a local endpoint, which is only good for being deleted from then on, from some of what it matches, of which it hears
    /// nothing. `false` once it is from all. *Cost*: [`limits::LOCAL_STEP`] matches, as with [`Participant::match_more`].
    pub fn part_more(&mut self, entity: EntityId) -> bool {
        let Some(local) = self.locals.get_mut(&entity) else { return false };
        local.ends = true;
        let some: Vec<Guid> = self.database.matches(entity).take(limits::LOCAL_STEP).collect();
        some.into_iter().for_each(|other| self.unmatch(entity, other));
        self.database.matches(entity).next().is_some()
    }

    /// A new or changed endpoint of a peer is to be matched with the local endpoints of its topic.
    pub(crate) fn match_remote_endpoint(&mut self, remote: Guid) {
        let Some(data) = self.database.endpoint(remote) else { return };
        let writer = remote.entity.is_writer();
        let of_topic = self.topics.of(&data.topic_name);
        self.found.begin(remote, of_topic.filter(|entity| entity.is_writer() != writer), false);
    }

    /// An endpoint of a peer has ended: it is to be parted from the local endpoints that it matches.
    pub(crate) fn part_remote_endpoint(&mut self, remote: Guid) {
        if self.database.endpoint(remote).is_some() {
            self.found.begin(remote, self.database.matches.of_remote(remote), true);
        }
    }

    /// Matches what was found last, or parts it, as long as `more` are to be. `false` if some are left.
    pub(crate) fn match_some(&mut self, now: Time, mut more: impl FnMut(&Participant) -> bool) -> bool {
        while self.found.is_any_left() {
            if self.compared >= limits::COMPARED_STEP || !more(self) {
                return false;
            }
            let remote = self.found.remote;
            match self.found.locals.pop() {
                Some(local) if self.found.ends => self.unmatch(local, remote),
                Some(local) => self.try_match(now, local, remote),
                None => {
                    self.found.ends = false;
                    // With those that have matched it meanwhile.
                    self.remove_endpoint(remote);
                }
            }
        }
        true
    }

    fn try_match(&mut self, now: Time, local: EntityId, remote: Guid) {
        // What is being forgotten is matched with nothing new.
        let is_known = self.database.peer(remote.prefix).is_some();
        let Some(ours) = self.locals.get(&local).filter(|local| is_known && !local.ends) else { return };
        let Some(theirs) = self.database.endpoint(remote).map(Arc::clone) else { return };
        let (kind, data) = (ours.kind, Arc::clone(&ours.data));
        // It may have ended since it was found, and be one of another topic now.
        if theirs.topic_name != data.topic_name {
            return;
        }
        let verdict = match kind {
            LocalKind::Writer(_) => {
                check(&data, &theirs, &mut self.compared).and_then(|()| self.check_acks(&theirs))
            }
            LocalKind::Reader(_) => check(&theirs, &data, &mut self.compared).map_err(Refusal::seen_there),
        };
        let matched = self.database.matches.contains(local, remote);
        match (verdict, matched) {
            (Ok(()), true) => {
                let reader = kind.reader().and_then(|index| self.readers.get_mut(index.0));
                if let Some(proxy) = reader.and_then(|reader| reader.proxies.get_mut(&remote)) {
                    proxy.strength = theirs.qos.ownership_strength;
                }
                self.find_endpoint(now, local, remote);
            }
            (Ok(()), false) => {
                self.database.refusals.remove(remote, local);
                self.database.matches.insert(local, remote);
                match kind {
                    LocalKind::Writer(index) => self.match_reader(now, index, &theirs),
                    LocalKind::Reader(index) => self.match_writer(now, index, &theirs),
                }
            }
            (Err(refusal), _) => {
                if matched {
                    self.unmatch(local, remote);
                }
                self.refuse(kind, &data, &theirs, refusal);
            }
        }
    }

    /// Does a reader take what is written by one that waits for acknowledgements? Else it would be waited for in vain.
    fn check_acks(&self, reader: &EndpointData) -> Result<(), Refusal> {
        let vendor = self.database.peer(reader.guid.prefix).map(|peer| peer.data.vendor_id);
        if !reader.disable_positive_acks || vendor != Some(NEEDS_NO_POSITIVE_ACKS) {
            return Ok(());
        }
        let policy = PolicyId::DISABLE_POSITIVE_ACKS;
        Err(Refusal::Qos(vec![Incompatibility { policy, offered: "false".into(), requested: "true".into() }]))
    }

    /// The addresses of a peer's endpoint: its own, or its participant's.
    pub(super) fn locators_of(&self, data: &EndpointData) -> (Vec<Locator>, Vec<Locator>) {
        let Some(peer) = self.database.peer(data.guid.prefix) else { return (Vec::new(), Vec::new()) };
        let source = peer.metatraffic.first().copied().unwrap_or(Locator::INVALID);
        let own = &self.config.addresses;
        let named = nearest(&data.unicast_locators, own, &source);
        let unicast = if named.is_empty() { peer.unicast.clone() } else { named };
        let of_all: &[Locator] = if is_apart(data, &peer.data) { &[] } else { &peer.data.default_multicast };
        let multicast = named_or(&data.multicast_locators, of_all);
        let member = named_or(&data.unicast_locators, &peer.data.default_unicast);
        let multicast = groups_of(multicast, member, &unicast, own);
        (unicast, multicast)
    }

    fn match_reader(&mut self, now: Time, index: WriterIndex, reader: &EndpointData) {
        let (unicast, multicast) = self.locators_of(reader);
        let reliable = reader.qos.reliability.kind == ReliabilityKind::Reliable;
        let durable = reader.qos.durability != DurabilityKind::Volatile;
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        let entity = writer.guid.entity;
        writer.match_reader(ReaderProxy::new(reader.guid, reliable, unicast, multicast), durable);
        self.greet(now, entity, reader.guid);
        self.push_event(Event::PublicationMatched { writer: index, reader: reader.guid, matched: true });
        self.wake_writer(now, index);
    }

    fn match_writer(&mut self, now: Time, index: ReaderIndex, writer: &EndpointData) {
        let (unicast, multicast) = self.locators_of(writer);
        let reliable = writer.qos.reliability.kind == ReliabilityKind::Reliable;
        let to = if unicast.is_empty() { multicast } else { unicast };
        let mut proxy = WriterProxy::new(writer.guid, reliable, writer.qos.ownership_strength, to);
        proxy.heard = now;
        proxy.skips_history = writer.qos.durability != DurabilityKind::Volatile;
        proxy.liveliness = writer.qos.liveliness;
        proxy.clock = self.clock_of(writer.guid.prefix);
        let vendor = self.database.peer(writer.guid.prefix).map(|peer| peer.data.vendor_id);
        let is_taut = vendor == Some(VendorId::UNKNOWN);
        proxy.asks_from_zero = vendor.is_some_and(is_asked_from_zero);
        if is_taut && proxy.skips_history {
            proxy.history_until = Some(now + limits::HISTORY_PATIENCE);
        }
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        let entity = reader.guid.entity;
        let awaits_greeting = reader.match_writer(proxy, is_taut);
        if !is_taut || awaits_greeting {
            // Taut's writers greet by themselves, once they know the reader; others may wait to be asked.
            self.greet(now, entity, writer.guid);
        }
        // No peer decides how many there are: each is one of the application's own.
        if let Some(readers) = self.sources.get_or_default(writer.guid)
            && !readers.contains(&index)
        {
            readers.push(index);
        }
        self.push_event(Event::SubscriptionMatched {
            reader: index,
            writer: writer.guid,
            matched: true,
            alive: true,
            undelivered: None,
        });
        self.arm_reader_liveliness(index);
        self.wake_reader(index);
    }

    /// A local endpoint says what it has to say to one that it has matched, or asks it for that: once the other
    /// participant has acknowledged what it was told of this endpoint. Before, nobody there would listen.
    pub(super) fn greet(&mut self, now: Time, local: EntityId, remote: Guid) {
        if !self.is_known_to(local, remote.prefix) {
            let announced = self.announced(local);
            if let Some(peer) = self.database.peers.get_mut(&remote.prefix) {
                peer.greetings.insert(Greeting::new(announced, local, remote));
            }
            return;
        }
        match self.locals.get(&local).map(|local| local.kind) {
            Some(LocalKind::Writer(index)) => {
                if let Some(writer) = self.writers.get_mut(index.0) {
                    writer.greet(remote);
                    self.wake_writer(now, index);
                }
            }
            Some(LocalKind::Reader(index)) => {
                if let Some(reader) = self.readers.get_mut(index.0) {
                    let repeat_at = reader.repeat_at;
                    reader.greet(now, remote);
                    if reader.repeat_at != repeat_at {
                        self.timers.set(reader.repeat_at, Timer::Repeat(index));
                    }
                    self.wake_reader(index);
                }
            }
            None => {}
        }
    }

    /// Has a peer acknowledged what it was told of a local endpoint? One that is told nothing counts as if it had.
    fn is_known_to(&self, local: EntityId, prefix: GuidPrefix) -> bool {
        self.has_heard(prefix, local.is_writer(), self.announced(local))
    }

    /// The change that last told of a local endpoint.
    fn announced(&self, local: EntityId) -> SequenceNumber {
        self.locals.get(&local).map_or(SequenceNumber::ZERO, |local| local.announced)
    }

    /// Has a peer acknowledged a change that tells of a writer, or else of a reader?
    fn has_heard(&self, prefix: GuidPrefix, of_writer: bool, announced: SequenceNumber) -> bool {
        let [publications, subscriptions, _] = self.builtin.pairs();
        let pair = if of_writer { publications } else { subscriptions };
        let reader = Guid::new(prefix, pair.remote_reader);
        self.writers.get(pair.writer.0).is_none_or(|writer| writer.is_acknowledged_by(reader, announced))
    }

    /// A peer has acknowledged more of what it was told of writers, or else of readers: those that it knows now greet
    /// theirs. *Cost*: [`limits::ASK_STEP`] greetings, each O(log n); [`Timer::Look`] goes on.
    pub(crate) fn greet_known(&mut self, now: Time, prefix: GuidPrefix, of_writers: bool) {
        let first = Greeting {
            by_writer: of_writers,
            ..Greeting::new(SequenceNumber::ZERO, EntityId::UNKNOWN, Guid::UNKNOWN)
        };
        let mut greeted = 0..limits::ASK_STEP;
        while let Some(peer) = self.database.peer(prefix)
            && let Some(next) = peer.greetings.range(first..).next().copied()
            && next.by_writer == of_writers
            && self.has_heard(prefix, of_writers, next.announced)
        {
            if greeted.next().is_none() {
                return self.timers.set(now, Timer::Look(prefix));
            }
            if let Some(peer) = self.database.peers.get_mut(&prefix) {
                peer.greetings.remove(&next);
            }
            self.greet(now, next.local, next.remote);
        }
    }

    /// Another change than `before` tells of a local endpoint now.
    pub(super) fn announce_by(&mut self, local: EntityId, before: SequenceNumber, announced: SequenceNumber) {
        let from = Greeting::new(before, local, Guid::UNKNOWN);
        self.database.peers.for_each(|_, peer| {
            let waiting = peer.greetings.range(from..);
            let waiting = waiting.take_while(|next| next.local == local && next.announced == before);
            let waiting: Vec<Greeting> = waiting.copied().collect();
            for greeting in waiting {
                peer.greetings.remove(&greeting);
                peer.greetings.insert(Greeting { announced, ..greeting });
            }
        });
    }

    /// Matches two endpoints of this participant: changes go from one to the other directly.
    fn try_match_within(
        &mut self,
        now: Time,
        writer: EntityId,
        reader: EntityId,
        (sink, left): (&mut dyn Sink, &mut usize),
    ) {
        let there = |entity| self.locals.get(entity).filter(|local| !local.ends);
        let (Some(w), Some(r)) = (there(&writer), there(&reader)) else { return };
        let (Some(writer_index), Some(reader_index)) = (w.kind.writer(), r.kind.reader()) else { return };
        let (writer_data, reader_data) = (Arc::clone(&w.data), Arc::clone(&r.data));
        if let Err(refusal) = check(&writer_data, &reader_data, &mut self.compared) {
            self.refuse(LocalKind::Writer(writer_index), &writer_data, &reader_data, refusal.clone());
            let refusal = refusal.seen_there();
            self.refuse(LocalKind::Reader(reader_index), &reader_data, &writer_data, refusal);
            return;
        }
        self.database.matches.insert(writer, reader_data.guid);
        self.database.matches.insert(reader, writer_data.guid);
        let reliable = reader_data.qos.reliability.kind == ReliabilityKind::Reliable;
        let durable = reader_data.qos.durability != DurabilityKind::Volatile;
        if let Some(writer) = self.writers.get_mut(writer_index.0) {
            writer.match_local(reader_index, reliable, durable);
        }
        if let Some(reader) = self.readers.get_mut(reader_index.0) {
            reader.local.push(writer_index);
        }
        let (reader, writer) = (reader_data.guid, writer_data.guid);
        self.push_event(Event::PublicationMatched { writer: writer_index, reader, matched: true });
        self.push_event(Event::SubscriptionMatched {
            reader: reader_index,
            writer,
            matched: true,
            alive: self.is_alive(writer_index),
            undelivered: None,
        });
        self.deliver_local(now, writer_index, sink, left);
        self.wake_writer(now, writer_index);
    }

    /// Ends a match of a local endpoint, on both sides if the other one is local too.
    pub(crate) fn unmatch(&mut self, local: EntityId, remote: Guid) {
        let within = remote.prefix == self.config.guid_prefix;
        let kind = |entity| Some(self.locals.get(&entity)?.kind);
        let ends = [kind(local), kind(remote.entity).filter(|_| within)];
        let writer = ends.into_iter().flatten().find_map(LocalKind::writer);
        let reader = ends.into_iter().flatten().find_map(LocalKind::reader);
        let left = reader.and_then(|reader| self.writers.get(writer?.0)?.left_to(reader));
        self.end_match(local, remote, left.clone());
        if within {
            self.end_match(remote.entity, Guid::new(self.config.guid_prefix, local), left);
        }
    }

    /// `left` is what a writer of this participant has for a reader of this participant that has not been given to it.
    fn end_match(&mut self, local: EntityId, remote: Guid, left: Option<IntervalSet>) {
        if !self.database.matches.remove(local, remote) {
            return;
        }
        let within = remote.prefix == self.config.guid_prefix;
        let greeting = Greeting::new(self.announced(local), local, remote);
        if let Some(peer) = self.database.peers.get_mut(&remote.prefix) {
            peer.greetings.remove(&greeting);
        }
        let (lost_at, may_return) = (self.lost_at(remote.prefix), self.may_return(remote.prefix));
        let Some(Local { kind, ends, .. }) = self.locals.get(&local) else { return };
        let (kind, is_told) = (*kind, !ends);
        match kind {
            LocalKind::Writer(index) => {
                let other = self.locals.get(&remote.entity).and_then(|other| other.kind.reader());
                if let Some(writer) = self.writers.get_mut(index.0) {
                    match other.filter(|_| within) {
                        Some(reader) if writer.unmatch_local(reader) => {
                            writer.heartbeat_at = Time::AT_ONCE;
                            self.timers.set(writer.heartbeat_at, Timer::Heartbeat(index));
                        }
                        Some(_) => {}
                        None => match lost_at {
                            Some(at) => writer.lose_reader(at, remote),
                            None => writer.unmatch_reader(remote),
                        },
                    }
                }
                if is_told {
                    let (writer, reader) = (index, remote);
                    self.push_event(Event::PublicationMatched { writer, reader, matched: false });
                    self.push_event(Event::Acknowledged { writer });
                }
            }
            LocalKind::Reader(index) => {
                let other = self.locals.get(&remote.entity).and_then(|other| other.kind.writer());
                let beside = other.filter(|_| within);
                let mut alive = beside.is_none_or(|writer| self.is_alive(writer));
                let mut undelivered = left;
                if let Some(reader) = self.readers.get_mut(index.0) {
                    match beside {
                        Some(writer) => reader.local.retain(|known| *known != writer),
                        None => {
                            let proxy = match lost_at.filter(|_| may_return) {
                                Some(at) => reader.lose_writer(at, remote),
                                None => reader.unmatch_writer(remote),
                            };
                            undelivered = proxy.as_ref().and_then(WriterProxy::undelivered);
                            alive = proxy.is_none_or(|proxy| proxy.alive);
                        }
                    }
                }
                self.forget_source(remote, index);
                if is_told {
                    let (reader, writer, matched) = (index, remote, false);
                    self.push_event(Event::SubscriptionMatched {
                        reader,
                        writer,
                        matched,
                        alive,
                        undelivered,
                    });
                }
            }
        }
    }

    fn forget_source(&mut self, writer: Guid, reader: ReaderIndex) {
        if let Some(readers) = self.sources.get_mut(&writer) {
            readers.retain(|known| *known != reader);
            if readers.is_empty() {
                self.sources.remove(&writer);
            }
        }
    }

    /// Notes why two endpoints do not match, once, and tells the layer above.
    fn refuse(&mut self, kind: LocalKind, ours: &EndpointData, theirs: &EndpointData, refusal: Refusal) {
        let (remote, local) = (theirs.guid, ours.guid.entity);
        if self.database.refusals.get(remote, local) == Some(&refusal) {
            return;
        }
        match &refusal {
            Refusal::Qos(why) => self.push_event(match kind {
                LocalKind::Writer(writer) => {
                    Event::OfferedIncompatibleQos { writer, reader: theirs.guid, why: why.clone() }
                }
                LocalKind::Reader(reader) => {
                    Event::RequestedIncompatibleQos { reader, writer: theirs.guid, why: why.clone() }
                }
            }),
            Refusal::Type { .. } | Refusal::Key => self.push_event(Event::InconsistentTopic {
                topic: ours.topic_name.clone(),
                local_type: ours.type_name.clone(),
                remote: theirs.guid,
                remote_type: theirs.type_name.clone(),
            }),
            // Partitions are meant to separate: DCPS 1.4 §2.2.3.13 calls for no status.
            Refusal::Partition { .. } | Refusal::PartitionTooLong => {}
        }
        if !self.database.refusals.insert(remote, local, refusal) {
            bump(&mut self.counters.too_many_endpoints);
        }
    }
}

/// Is this a vendor whose writers are asked so for their first heartbeat?
pub(super) fn is_asked_from_zero(vendor: VendorId) -> bool {
    ASKED_FROM_ZERO.contains(&vendor)
}

/// Is an endpoint reached at ports of its own? What is sent to it is to come there, and not by a group of all.
fn is_apart(endpoint: &EndpointData, participant: &ParticipantData) -> bool {
    let is_of_all = |port| participant.default_unicast.iter().any(|of_all| of_all.port == port);
    let own = &endpoint.unicast_locators;
    !own.is_empty() && !participant.default_unicast.is_empty() && !own.iter().any(|own| is_of_all(own.port))
}

/// What an endpoint names, or else what its participant does.
fn named_or<'a>(named: &'a [Locator], default: &'a [Locator]) -> &'a [Locator] {
    if named.is_empty() { default } else { named }
}
