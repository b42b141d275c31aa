//! Who joins writers and readers of this machine by lanes.
//!
//! The protocol matches; then the participant of the writer offers its lane to that of the reader, which
//! takes the offer once it has matched too, attaches, and says from which sample on it reads there. Until
//! then, and whenever it does not come to that, samples come the usual way. An offer to a reader of this process is
//! kept by nobody: the reader's participant asks for one when it has matched. Order of locks: a token, then a route or
//! a door; never two tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use taut_base::{Guid, GuidPrefix, SequenceNumber};
use taut_dcps::{DomainParticipant, Match};
use taut_lock::Mutex;
use taut_mem::Region;
use taut_mem::fail::{self, Point};
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader};
use taut_port_shm::{Memory, Message};
use taut_qos::ReliabilityKind;
use taut_rtps::WriterIndex;

use crate::core::Core;
use crate::executor::Inner;
use crate::lanes::matched::Matched;
use crate::lanes::neighbours::Neighbour;
use crate::lanes::own::HOST_PROPERTY;
use crate::lanes::pairs::{PAIRS, Pair, Stage};
use crate::lanes::path::Who;
use crate::lanes::ringer::Ringer;
use crate::process::Process;
use crate::write::outlet::Route;

/// A lane of a writer of this process, offered to a reader.
struct Offer {
    writer: Guid,
    lane: Arc<Lane>,
    route: Arc<Route>,
    ringer: Ringer,
}

/// Why a writer's lane is not offered.
const NOT_SHARED: &str = "there was no memory for the writer that others can see: the log says why";

/// The same, once more.
const NOT_TOLD: &str = "the other participant has not listened to what was said to it before";

/// Why an offer is refused, for counters: there is no memory for a feedback, the neighbour has too many pairs, the lane
/// cannot be mapped, or its descriptor was not passed.
const NO_MEMORY: u8 = 1;
pub(crate) const NO_ROOM: u8 = 2;
pub(crate) const NO_ADDRESSES: u8 = 3;
pub(crate) const NO_DESCRIPTORS: u8 = 4;

/// Is the lane to be offered again?
pub(crate) fn may_pass(reason: u8) -> bool {
    matches!(reason, NO_MEMORY | NO_DESCRIPTORS)
}

/// The same for people, on the writer's side.
pub(crate) fn why_refused(reason: u8) -> String {
    let why = match reason {
        NO_MEMORY => "the reader's process has no memory to say how far it has read: its log says why",
        NO_ROOM => return format!("the two participants share as many pairs as they may: {PAIRS}"),
        NO_ADDRESSES => "the reader's process cannot map the writer's memory: its log says why",
        NO_DESCRIPTORS => "the reader's process may open no more files: raise its limit (`ulimit -n`)",
        _ => "the reader's process has refused the writer's memory",
    };
    why.to_owned()
}

/// What a participant knows of lanes.
#[derive(Default)]
pub(crate) struct Joins {
    /// Where the lanes of its writers lead.
    routes: Mutex<BTreeMap<WriterIndex, Arc<Route>>>,
    pub matched: Matched<Match>,
}

impl Joins {
    pub fn route(&self, index: WriterIndex) -> Arc<Route> {
        Arc::clone(self.routes.lock().entry(index).or_default())
    }

    /// Where the lane of a writer leads that there is. With the token, as its place in the table is the next writer's once
    /// somebody else has had that.
    fn route_of(&self, participant: &DomainParticipant, writer: Guid) -> Option<Arc<Route>> {
        participant.core().local_writer(writer).map(|index| self.route(index))
    }

    pub fn remove_route(&self, index: WriterIndex) {
        self.routes.lock().remove(&index);
    }
}

impl Inner {
    pub fn follow(&self, Match { writer, reader, offered, matched }: Match) {
        if !matched {
            self.forget_return(if offered { reader.prefix } else { writer.prefix });
        }
        match (offered, matched) {
            (true, true) => self.offer(writer, reader),
            (true, false) => self.withdraw(writer, reader),
            (false, true) => {
                if Process::this().find(writer.prefix).is_none() && self.is_neighbour(writer.prefix) {
                    self.meet(writer.prefix);
                }
                if writer.prefix == self.prefix {
                    self.offer_again(self, writer, reader);
                } else if let Some(other) = self.other_here(writer.prefix) {
                    other.offer_again(self, writer, reader);
                } else if let Some(neighbour) = self.neighbours.find(writer.prefix) {
                    self.accept_there(&neighbour, (writer, reader));
                }
            }
            (false, false) => self.forget(writer, reader),
        }
    }

    /// A local writer has matched a reader.
    fn offer(&self, writer: Guid, reader: Guid) {
        if reader.prefix == writer.prefix {
            return self.offer_here(self, writer, reader);
        }
        match Process::this().find(reader.prefix) {
            Some(other) if other.local => self.offer_here(&other, writer, reader),
            Some(_) => {}
            None if self.is_neighbour(reader.prefix) => {
                match self.neighbours.find(reader.prefix) {
                    Some(neighbour) => return self.offer_there(&neighbour, writer, reader),
                    None => self.want(writer, reader),
                }
                self.meet(reader.prefix);
                // It may have said hello since it was looked for.
                if let Some(neighbour) = self.neighbours.find(reader.prefix) {
                    self.offer_wanted(&neighbour, reader.prefix);
                }
            }
            None => {}
        }
    }

    /// Another participant of this process that takes part in lanes, as this one does.
    fn other_here(&self, prefix: GuidPrefix) -> Option<Arc<Inner>> {
        let takes_part = prefix != self.prefix && self.local;
        Process::this().find(prefix).filter(|other| takes_part && other.local)
    }

    /// A reader of this process has matched, and had its history: its writer may have matched before.
    fn offer_again(&self, other: &Inner, writer: Guid, reader: Guid) {
        let is_wanted = self.peek(|core| {
            let route = self.joins.route_of(&core.participant, writer);
            let is_joined = route.is_none_or(|route| route.is_here(reader).is_some());
            !is_joined && is_matched(&core.participant, writer, reader)
        });
        if is_wanted {
            self.offer_here(other, writer, reader);
        }
    }

    /// Is it a participant of another process of this host, that shares memory?
    fn is_neighbour(&self, prefix: GuidPrefix) -> bool {
        let Some(own) = &self.neighbours.own else { return false };
        self.peek(|core| {
            let peer = core.participant.core().database().peer(prefix);
            let mut properties = peer.into_iter().flat_map(|peer| &peer.data.properties);
            properties.any(|(name, value)| name == HOST_PROPERTY && *value == own.host)
        })
    }

    fn route_of(&self, writer: Guid) -> Option<Arc<Route>> {
        self.peek(|core| self.joins.route_of(&core.participant, writer))
    }

    fn offer_here(&self, other: &Inner, writer: Guid, reader: Guid) {
        let Some(me) = self.me.upgrade().filter(|me| me.local) else { return };
        let Some(route) = self.route_of(writer) else { return };
        let lane = route.lane(self.lane_memory());
        let offer = Offer { writer, lane, route: Arc::clone(&route), ringer: Ringer::of(&me) };
        other.consider(reader, offer);
        // With the token: who unmatches them later finds what there is.
        self.peek(|core| {
            if !is_matched(&core.participant, writer, reader) {
                self.end_reading(&route, reader);
            }
        });
    }

    /// Offers what has waited for a neighbour's hello.
    pub fn offer_wanted(&self, neighbour: &Arc<Neighbour>, prefix: GuidPrefix) {
        for (writer, reader) in self.neighbours.take_wanted(prefix) {
            self.offer_there(neighbour, writer, reader);
        }
    }

    /// Offers the lane of a local writer to a neighbour's reader.
    pub fn offer_there(&self, neighbour: &Arc<Neighbour>, writer: Guid, reader: Guid) {
        // With the token, as who unmatches them looks after that whether the pair is there.
        let offered = self.peek(|core| {
            let route = self.joins.route_of(&core.participant, writer)?;
            let is_matched = is_matched(&core.participant, writer, reader);
            is_matched.then(|| (route, neighbour.pairs.offer((writer, reader))))
        });
        let Some((route, number)) = offered else { return };
        let Some(number) = number else { return self.refuse_room(neighbour, (writer, reader)) };
        let lane = route.lane(self.lane_memory());
        drop(lane);
        fail::point(Point::BeforeOffer);
        let offer = Message::Offer { writer, reader, number };
        if !route.is_shared() {
            neighbour.pairs.remove((writer, reader));
            self.neighbours.reasons.note(Who::Pair(writer, reader), NOT_SHARED.to_owned());
            return;
        }
        let said = route.with_memory(|memory| self.say(neighbour, &offer, Some(memory)));
        // Whoever ends the connection takes only what is there when it has parted.
        let has_parted = neighbour.has_parted();
        if (has_parted || !said) && neighbour.pairs.remove((writer, reader)) {
            if has_parted {
                return self.want(writer, reader);
            }
            self.neighbours.doubt();
            self.neighbours.reasons.note(Who::Pair(writer, reader), NOT_TOLD.to_owned());
        } else if !neighbour.pairs.is((writer, reader), |_| true) {
            // Who took the pair away meanwhile, with its writer perhaps, may have said so before the offer.
            self.say(neighbour, &Message::End { writer, reader }, None);
        }
        fail::point(Point::OfferSent);
    }

    /// A neighbour offers the lane of one of its writers: it is taken now or when the reader has matched and had its
    /// history.
    pub fn on_offer(&self, from: &Arc<Neighbour>, (writer, reader): Pair, number: u64, lane: Arc<Lane>) {
        if !from.pairs.note_offer((writer, reader), number, lane) {
            return self.refuse_room(from, (writer, reader));
        }
        // Who deletes it looks after that whether the pair is there.
        if self.peek(|core| core.participant.core().local_reader(reader).is_none()) {
            from.pairs.remove((writer, reader));
            return;
        }
        self.accept_there(from, (writer, reader));
    }

    /// A neighbour's reader is ready to attach, and this is its feedback.
    pub fn on_accept(&self, from: &Arc<Neighbour>, (writer, reader): Pair, number: u64, feedback: Feedback) {
        let feedback = Arc::new(feedback);
        let added = self.peek(|core| {
            let participant = &core.participant;
            let route = self.joins.route_of(participant, writer)?;
            let ringer = Ringer::of_neighbour(from)?;
            let reliable = is_reliable(participant, writer) && is_reliable(participant, reader);
            let added = from.note_feedback(&feedback) && route.add(reader, feedback, reliable, vec![ringer]);
            fail::point(Point::RouteAdded);
            added.then_some(route)
        });
        let Some(route) = added else {
            if from.pairs.remove((writer, reader)) {
                self.say(from, &Message::End { writer, reader }, None);
            }
            return;
        };
        if !from.pairs.is((writer, reader), |stage| matches!(stage, Stage::Begun)) {
            // The pair is no longer matched: nobody would take the reader away again.
            return self.end_reading(&route, reader);
        }
        fail::point(Point::BeforeBegin);
        if !self.say(from, &Message::Begin { writer, reader, number }, None) {
            // It never attaches, and the lane would wait for it: by UDP, then.
            self.neighbours.doubt();
            self.end_reading(&route, reader);
        }
        fail::point(Point::BeginSent);
    }

    /// The lane of a neighbour's writer has not come, or cannot be mapped here. That has kept to the rules, and the lanes that
    /// were mapped before are there still.
    pub fn refuse_lane(&self, from: &Neighbour, (writer, reader): Pair, reason: u8, why: &str) {
        self.neighbours.doubt();
        self.neighbours.tell_why(Who::Pair(writer, reader), why);
        self.say(from, &Message::Refuse { writer, reader, reason }, None);
    }

    /// A lane of ours was refused for what may pass: it is offered again in a while, if not too often.
    pub fn offer_later(&self, writer: Guid, reader: Guid) {
        self.want(writer, reader);
        self.return_to(reader.prefix, self.neighbours.returns.last(reader.prefix));
    }

    /// The feedback of a neighbour's reader has not come, or cannot be mapped here: that one takes its samples by UDP.
    pub fn refuse_feedback(&self, from: &Neighbour, (writer, reader): Pair, why: &str) {
        self.neighbours.doubt();
        self.neighbours.tell_why(Who::Pair(writer, reader), why);
        from.pairs.remove((writer, reader));
        self.say(from, &Message::End { writer, reader }, None);
    }

    /// The writer's owner looks at the feedback from now on: a local reader attaches.
    pub fn on_begin(
        &self,
        from: &Arc<Neighbour>,
        (writer, reader): Pair,
        lane: Arc<Lane>,
        feedback: Arc<Feedback>,
    ) {
        let Some(ringer) = Ringer::of_neighbour(from) else { return };
        let first = self.with_token(|core| {
            // Who has unmatched them meanwhile has taken the pair away, and matched them again perhaps.
            if !from.pairs.is((writer, reader), |stage| matches!(stage, Stage::Reading)) {
                return None;
            }
            fail::point(Point::BeforeAttach);
            let copies = !from.trusted || from.gives_up_with_connection();
            let lane = LaneReader::attach(lane, feedback, copies);
            fail::point(Point::Attached);
            let first = self.read_lane(core, writer, reader, lane, ringer);
            fail::point(Point::LaneAdded);
            first
        });
        match first {
            Some(first) => {
                let number = first.0.cast_unsigned();
                fail::point(Point::BeforeReading);
                self.say(from, &Message::Reading { writer, reader, from: number }, None);
                fail::point(Point::ReadingSent);
                // What has come in meanwhile rang no bell.
                self.be_rung();
            }
            None => drop(self.say(from, &Message::End { writer, reader }, None)),
        }
    }

    /// A neighbour's reader takes from the lane, from this sample on, what goes through it.
    pub fn on_reading(&self, writer: Guid, reader: Guid, number: u64) {
        self.set_reader_lane(writer, reader, SequenceNumber(number.cast_signed()));
        fail::point(Point::ReaderLaneSet);
    }

    /// It may come late: the lane has then been left, and the two have matched anew perhaps.
    fn set_reader_lane(&self, writer: Guid, reader: Guid, from: SequenceNumber) {
        self.with(|participant, now| {
            let Some(index) = participant.core().local_writer(writer) else { return };
            if self.joins.route(index).is_here(reader).is_some() {
                participant.set_reader_lane(now, index, reader, Some(from));
            }
        });
    }

    /// Nothing of a local writer goes to a reader through the lane any more: what it writes takes the usual way. With one
    /// token, as the protocol leaves to the lane only what that leads to. `false`: the writer is none of this participant.
    fn leave_lane_of(&self, writer: Guid, reader: Guid) -> bool {
        self.with(|participant, now| {
            let Some(index) = participant.core().local_writer(writer) else { return false };
            participant.set_reader_lane(now, index, reader, None);
            self.end_reading(&self.joins.route(index), reader);
            true
        })
    }

    /// The pair no longer uses a lane, though it may be matched still.
    pub fn leave_lane(&self, writer: Guid, reader: Guid) {
        if self.leave_lane_of(writer, reader) {
            return;
        }
        self.with(|participant, now| {
            if let Some(index) = participant.core().local_reader(reader) {
                participant.remove_lane(now, index, writer);
            }
        });
        self.forget(writer, reader);
    }

    /// Nothing goes to a reader through a lane any more, and its writer waits for it no longer.
    fn end_reading(&self, route: &Route, reader: Guid) {
        if route.remove(reader) {
            self.be_rung();
        }
    }

    /// Leaves the lanes whose writers broke their rules: what these write comes by UDP again.
    #[inline]
    pub fn leave_broken(&self) {
        if self.doors.has_broken() {
            self.leave_all_broken();
        }
    }

    #[cold]
    fn leave_all_broken(&self) {
        for (index, writer) in self.doors.take_broken() {
            let reader = self.peek(|core| core.participant.core().reader(index).map(|reader| reader.guid));
            if let Some(reader) = reader {
                self.neighbours.doubt();
                self.leave_lane(writer, reader);
            }
        }
    }

    /// A local writer and a reader no longer match.
    pub fn withdraw(&self, writer: Guid, reader: Guid) {
        // First of all: who is about to add the reader looks after that whether the pair is still there.
        let neighbour = self.neighbours.end(writer, reader, reader.prefix);
        if self.route_of(writer).is_some_and(|route| route.is_here(reader).is_some()) {
            self.leave_lane_of(writer, reader);
        }
        if let Some(neighbour) = neighbour {
            self.say(&neighbour, &Message::End { writer, reader }, None);
        }
    }

    /// A writer and a local reader no longer match.
    fn forget(&self, writer: Guid, reader: Guid) {
        // With the token, as a reader's place in the table is the next one's once somebody else has had that.
        self.peek(|core| {
            let index = core.participant.core().local_reader(reader);
            if let Some(door) = index.and_then(|index| self.doors.get(index)) {
                self.doors.remove_writer(&door, writer);
            }
        });
        // Its writer may know the match still: nobody reads the lane any more.
        if let Some(other) = self.other_here(writer.prefix) {
            other.leave_lane(writer, reader);
        }
        if let Some(neighbour) = self.neighbours.end(writer, reader, writer.prefix) {
            self.say(&neighbour, &Message::End { writer, reader }, None);
        }
    }

    /// Takes an offer of this process for one of this participant's readers, if that has matched and had its history: else
    /// there is another one then.
    fn consider(&self, reader: Guid, offer: Offer) {
        let writer = offer.writer;
        let from = self.with_token(|core| {
            if may_read_lane(core, writer, reader) { self.join_here(core, reader, offer) } else { None }
        });
        let Some(from) = from else { return };
        // A driver that sleeps since before has told no writer to wake it.
        self.kick();
        if writer.prefix != reader.prefix
            && let Some(other) = Process::this().find(writer.prefix)
        {
            other.set_reader_lane(writer, reader, from);
        }
    }

    /// Joins a writer of this process with a matched reader. Returns the first sample that comes by the lane, if any does.
    fn join_here(&self, core: &mut Core, reader: Guid, offer: Offer) -> Option<SequenceNumber> {
        let Offer { writer, lane, route, ringer } = offer;
        if route.is_here(reader).is_some() {
            // Both sides have seen to it.
            return None;
        }
        let feedback = Feedback::new(Region::heap(FEEDBACK_LEN)).map(Arc::new)?;
        let participant = &core.participant;
        let door = participant.core().local_reader(reader).and_then(|index| self.doors.get(index))?;
        let me = self.me.upgrade()?;
        let reliable = is_reliable(participant, writer) && is_reliable(participant, reader);
        // The writer's owner learns of the reader before that reads.
        let ringers = vec![Ringer::of(&me), Ringer::of_door(&door)];
        if !route.add(reader, Arc::clone(&feedback), reliable, ringers) {
            return None;
        }
        let lane = LaneReader::attach(lane, feedback, false);
        let from = self.read_lane(core, writer, reader, lane, ringer.clone());
        if from.is_none() && route.remove(reader) {
            ringer.ring();
        }
        from
    }

    /// Runs a step with the token, and tells what came of it.
    fn with_token<R>(&self, step: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.enter();
        let result = self.call(&mut core, step);
        self.give_back(core);
        result
    }

    /// Sends the feedback of a reader to the neighbour that has offered it a lane, if it has and the reader may read it.
    fn accept_there(&self, neighbour: &Arc<Neighbour>, (writer, reader): Pair) {
        let pair = (writer, reader);
        let waits = neighbour.pairs.is(pair, |stage| matches!(stage, Stage::Waiting(..)));
        if !waits || !self.peek(|core| may_read_lane(core, writer, reader)) {
            return;
        }
        let memory = Memory::create("feedback", FEEDBACK_LEN)
            .and_then(|memory| memory.commit(0, FEEDBACK_LEN).map(|()| memory));
        let feedback = memory.as_ref().ok().and_then(|memory| Feedback::new(memory.region()));
        let feedback = feedback.map(|feedback| feedback.of_process(Process::this().word()));
        if let Err(error) = &memory {
            self.neighbours.tell_why(Who::Pair(writer, reader), &error.to_string());
        }
        let (Ok(memory), Some(feedback)) = (memory, feedback) else {
            neighbour.pairs.remove(pair);
            self.say(neighbour, &Message::Refuse { writer, reader, reason: NO_MEMORY }, None);
            return;
        };
        let Some(number) = neighbour.pairs.accept(pair, Arc::new(feedback)) else { return };
        fail::point(Point::BeforeAccept);
        self.say(neighbour, &Message::Accept { writer, reader, number }, Some(&memory));
        fail::point(Point::AcceptSent);
    }

    /// Has a matched reader read a lane; returns the first sample that it takes from there.
    fn read_lane(
        &self,
        core: &mut Core,
        writer: Guid,
        reader: Guid,
        lane: LaneReader,
        ringer: Ringer,
    ) -> Option<SequenceNumber> {
        let index = core.participant.core().local_reader(reader)?;
        let door = self.doors.get(index)?;
        let from = core.participant.add_lane(core.now, index, writer, lane)?;
        self.doors.add_writer(&door, writer, ringer);
        Some(from)
    }
}

fn may_read_lane(core: &mut Core, writer: Guid, reader: Guid) -> bool {
    core.participant.core().may_read_lane(reader.entity, writer)
}

/// Are a local writer and a reader matched?
pub(crate) fn is_matched(participant: &DomainParticipant, writer: Guid, reader: Guid) -> bool {
    let core = participant.core();
    core.local_writer(writer).is_some() && core.database().matches(writer.entity).any(|known| known == reader)
}

fn is_reliable(participant: &DomainParticipant, endpoint: Guid) -> bool {
    let endpoint = participant.core().endpoint(endpoint);
    endpoint.is_some_and(|endpoint| endpoint.qos.reliability.kind == ReliabilityKind::Reliable)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    use taut_base::Time;
    use taut_dcps::{Endpoint, Entity};
    use taut_qos::{DataReaderQos, DataWriterQos, DurabilityKind, History};
    use taut_rtps::ReaderIndex;

    use super::*;
    use crate::Executor;
    use crate::executor_tests::{endpoint, executor_with_lanes, take, write};

    const LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

    fn guids(executor: &Executor, writer: WriterIndex, reader: ReaderIndex) -> (Guid, Guid) {
        executor.inner.peek(|core| {
            let core = core.participant.core();
            (core.writer(writer).unwrap().guid, core.reader(reader).unwrap().guid)
        })
    }

    /// Does another thread take the token and wait for something since these were counted?
    fn waits_in(inner: &Inner, (tokens, waits): (u64, u64)) -> bool {
        let limit = Instant::now() + LIMIT;
        let is_so = || inner.tokens.load(Ordering::SeqCst) != tokens && taut_lock::waits() != waits;
        while !is_so() && Instant::now() < limit {
            std::thread::yield_now();
        }
        is_so()
    }

    /// An offer keeps the lane, with its memory and its descriptor.
    #[test]
    fn an_offer_that_comes_before_the_match_is_kept_by_nobody() {
        let (executor, writer, reader) = executor_with_lanes();
        let inner = &executor.inner;
        let (writer, reader) = guids(&executor, writer, reader);
        let writer = Guid { prefix: GuidPrefix([9; 12]), ..writer };
        let route = Arc::new(Route::default());
        let (left, lane) = (Arc::downgrade(&route), route.lane(None));
        inner.consider(reader, Offer { writer, lane, route, ringer: Ringer::of(inner) });
        assert!(left.upgrade().is_none());
    }

    #[test]
    fn a_reader_that_is_given_history_joins_when_it_has_had_it() {
        /// More than a reader is given at once.
        const SAMPLES: u32 = 300;
        let writes = DataWriterQos { history: History::KeepAll, ..DataWriterQos::default() };
        let writes = DataWriterQos { durability: DurabilityKind::TransientLocal, ..writes };
        let reads = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
        let reads = DataReaderQos { durability: DurabilityKind::TransientLocal, ..reads };
        let (executor, ..) = executor_with_lanes();
        let inner = &executor.inner;
        let (index, writer) = executor.create_writer(endpoint(writes.clone())).unwrap();
        let mut outlet = executor.outlet(index, &writes).unwrap();
        (0..SAMPLES).for_each(|n| write(&executor, &mut outlet, n));
        let made = inner.with(|of, now| of.create_reader(now, endpoint(reads)));
        let (_, reader) = guids(&executor, index, made);
        let is_joined = || inner.route_of(writer).unwrap().is_here(reader).is_some();
        inner.follow_matches(Time::NEVER);
        assert!(!is_joined(), "what is in the lane would come before it");
        while inner.with(|of, now| of.match_more(now)) {}
        inner.follow_matches(Time::NEVER);
        assert!(is_joined());
    }

    /// They match no longer by the time that the offer has come, and who withdrew it has found none.
    #[test]
    fn no_offer_comes_after_its_match() {
        let (executor, writer, reader) = executor_with_lanes();
        let inner = &executor.inner;
        let elsewhere = Endpoint { topic_name: "Others".into(), ..endpoint(DataReaderQos::default()) };
        let unmatched = executor.inner.with(|participant, now| participant.create_reader(now, elsewhere));
        let (_, unmatched) = guids(&executor, writer, unmatched);
        let (writer, reader) = guids(&executor, writer, reader);
        assert!(inner.route_of(writer).unwrap().is_here(reader).is_some());
        inner.offer_here(inner, writer, unmatched);
        assert!(inner.route_of(writer).unwrap().is_here(unmatched).is_none(), "nobody takes it away again");
    }

    /// A match may bring others, in other participants too: to follow them on the stack of who writes would take as long as it
    /// takes to join them all, and as much stack.
    #[test]
    fn who_writes_follows_no_match_and_whoever_drives_does() {
        let (executor, writer, _) = executor_with_lanes();
        let mut outlet = executor.outlet(writer, &Default::default()).unwrap();
        let inner = &executor.inner;
        let made = inner.with(|of, now| of.create_reader(now, endpoint(DataReaderQos::default())));
        let (writer, reader) = guids(&executor, writer, made);
        let is_joined = || inner.route_of(writer).unwrap().is_here(reader).is_some();
        write(&executor, &mut outlet, 1);
        assert!(inner.joins.matched.is_any_left() && !is_joined());
        let limit = Instant::now() + LIMIT;
        while inner.joins.matched.is_any_left() && Instant::now() < limit {
            executor.run_once(Some(Time(0))).unwrap();
        }
        assert!(is_joined());
    }

    /// Who waits for a match would write the first samples by another way, and take memory for the lane later.
    #[test]
    fn whoever_drives_joins_before_it_tells_of_a_match() {
        let (executor, index, _) = executor_with_lanes();
        let inner = &executor.inner;
        executor.run_once(Some(Time(0))).unwrap();
        let made = inner.peek(|core| {
            let (participant, now) = (&mut core.participant, core.now);
            participant.create_reader(now, endpoint(DataReaderQos::default()))
        });
        let (writer, reader) = guids(&executor, index, made);
        let (route, told) = (inner.route_of(writer).unwrap(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&told);
        let listener = move |_| seen.lock().push(route.is_here(reader).is_some());
        executor.set_listener(Entity::Writer(index), Some(crate::listener(listener))).unwrap();
        executor.run_once(Some(Time(0))).unwrap();
        assert_eq!(told.lock().first(), Some(&true));
    }

    /// Who is best effort waits for nothing: what lies in the lane would come before what was left to the token's holder.
    #[test]
    fn what_was_left_before_a_lane_begins_comes_before_what_it_brings() {
        let (executor, index, _) = executor_with_lanes();
        let mut outlet = executor.outlet(index, &Default::default()).unwrap();
        let inner = &executor.inner;
        let reads = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
        let made = inner.with(|of, now| of.create_reader(now, endpoint(reads)));
        let (writer, reader) = guids(&executor, index, made);
        let mut core = inner.enter();
        (0..5).for_each(|n| write(&executor, &mut outlet, n));
        let route = inner.joins.route(index);
        let offer = Offer { writer, lane: route.lane(None), route, ringer: Ringer::of(inner) };
        assert!(inner.join_here(&mut core, reader, offer).is_some());
        (5..8).for_each(|n| write(&executor, &mut outlet, n));
        drop(core);
        let mut taken = take(&executor, made);
        executor.run_once(Some(Time(0))).unwrap();
        taken.extend(take(&executor, made));
        assert_eq!(taken, Vec::from_iter(0..8));
        write(&executor, &mut outlet, 8);
        assert!(outlet.lane.as_ref().is_some_and(|lane| lane.lane().last() == 9), "it goes through the lane");
        assert_eq!(take(&executor, made), [8]);
    }

    #[test]
    fn one_that_sleeps_wakes_for_a_match() {
        let (executor, writer, reader) = executor_with_lanes();
        let inner = &executor.inner;
        let (writer, reader) = guids(&executor, writer, reader);
        inner.holding.fall_asleep(Time::NEVER, Time::NEVER);
        inner.leave_matches(vec![Match { writer, reader, offered: true, matched: false }]);
        assert_eq!(inner.holding.sleeps_until(), Time(i64::MIN));
        assert!(inner.route_of(writer).unwrap().is_here(reader).is_some(), "not at once");
        inner.follow_matches(Time(0));
        assert!(
            inner.route_of(writer).unwrap().is_here(reader).is_none() && !inner.joins.matched.is_any_left()
        );
    }

    /// A reader may be deleted, and the next one get its place, as soon as somebody else has the token: the lane would be
    /// taken from that one's door, or counted as gone twice.
    #[test]
    fn nobody_comes_between_a_reader_and_its_door() {
        let (executor, writer, reader) = executor_with_lanes();
        let inner = &executor.inner;
        let (writer, reader) = guids(&executor, writer, reader);
        let doors = inner.doors.hold();
        let before = (inner.tokens.load(Ordering::SeqCst), taut_lock::waits());
        std::thread::scope(|scope| {
            scope.spawn(|| inner.forget(writer, reader));
            let waits = waits_in(inner, before);
            let is_free = inner.core.try_lock().is_some();
            drop(doors);
            assert!(waits && !is_free, "it waits for the doors without the token");
        });
    }

    /// A writer may be deleted, and the next one get its place, as soon as somebody else has the token.
    #[test]
    fn nobody_comes_between_a_writer_and_where_its_lane_leads() {
        let (executor, writer, reader) = executor_with_lanes();
        let inner = &executor.inner;
        let (writer, reader) = guids(&executor, writer, reader);
        let calls: [fn(&Inner, Guid, Guid); 3] = [
            |inner, writer, reader| inner.offer_here(inner, writer, reader),
            Inner::leave_lane,
            Inner::withdraw,
        ];
        for call in calls {
            let routes = inner.joins.routes.lock();
            let before = (inner.tokens.load(Ordering::SeqCst), taut_lock::waits());
            std::thread::scope(|scope| {
                scope.spawn(|| call(inner, writer, reader));
                let waits = waits_in(inner, before);
                let is_free = inner.core.try_lock().is_some();
                drop(routes);
                assert!(waits && !is_free, "it waits for the routes without the token");
            });
        }
    }
}
