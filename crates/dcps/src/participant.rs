//! The DCPS entities of one participant above the protocol, driven from outside. DCPS 1.4 §2.2.2.

use std::collections::{BTreeMap, VecDeque};

use taut_base::{EntityId, Guid, GuidPrefix, SequenceNumber, Time, Timestamp};
use taut_mem::lane::LaneReader;
use taut_port::{Frame, Port};
use taut_qos::{
    DataReaderQos, DataWriterQos, EndpointQos, PublisherQos, ReliabilityKind, SubscriberQos, TopicQos,
};
use taut_rtps::{
    Addresses, Clock, Config, EndpointConfig, Full, MaxRate, NewChange, Participant, Progress, ReaderIndex,
    TxClass, WriterIndex,
};

use crate::doors::Doors;
use crate::entities::{DataReader, DataWriter, Entity, Readers};
use crate::lag::Late;
use crate::reader_side::{Pulled, ReaderSide};
use crate::sample_info::{Sample, Selection};
use crate::status::{InconsistentTopicStatus, StatusMask};
use crate::type_support::TypeSupport;

/// Lines for the log that wait to be written; more are dropped.
pub(crate) const LOG_LINES: usize = 1_024;

/// One participant: protocol, readers, writers, statuses.
pub struct DomainParticipant {
    pub(crate) core: Participant,
    pub(crate) readers: Readers,
    pub(crate) writers: BTreeMap<WriterIndex, DataWriter>,
    pub(crate) inconsistent_topics: BTreeMap<String, InconsistentTopicStatus>,
    pub(crate) log: VecDeque<String>,
    pub(crate) discovery_changes: DiscoveryChanges,
    /// Matches that came and went, for who joins them by lanes; `None` if nobody does.
    pub(crate) matches: Option<VecDeque<Match>>,
}

/// How often something of each built-in topic was found, changed or lost. DCPS 1.4 §2.2.5.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiscoveryChanges {
    /// Participants.
    pub participants: u64,
    /// Writers of others.
    pub publications: u64,
    /// Readers of others.
    pub subscriptions: u64,
}

/// A local endpoint has been matched with another one, or no longer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
    /// Is it the local writer that has been matched?
    pub offered: bool,
    /// Matched, or no longer.
    pub matched: bool,
}

/// What an endpoint is made of.
#[derive(Clone, Debug)]
pub struct Endpoint<Qos, Group> {
    /// The topic's name.
    pub topic_name: String,
    /// The topic's QoS.
    pub topic_qos: TopicQos,
    /// Its type.
    pub type_support: TypeSupport,
    /// Its own QoS, consistent.
    pub qos: Qos,
    /// The QoS of its publisher or subscriber.
    pub group: Group,
}

impl DomainParticipant {
    /// A participant that announces itself from the first [`DomainParticipant::on_timeout`] on.
    pub fn new(config: Config) -> DomainParticipant {
        DomainParticipant::make(config, Box::new(Vec::new()), None)
    }

    /// The same, whose readers' sides are kept by `doors`, for who polls
    /// [`DomainParticipant::poll_match`].
    pub fn with_doors(config: Config, doors: Box<dyn Doors>) -> DomainParticipant {
        DomainParticipant::make(config, doors, Some(VecDeque::new()))
    }

    /// Before any writer is made: no more goes to each destination than this; see [`Participant::set_max_rate`].
    pub fn set_max_rate(&mut self, max: MaxRate) {
        self.core.set_max_rate(max);
    }

    fn make(config: Config, doors: Box<dyn Doors>, matches: Option<VecDeque<Match>>) -> DomainParticipant {
        DomainParticipant {
            matches,
            core: Participant::new(config),
            readers: Readers::new(doors),
            writers: BTreeMap::new(),
            inconsistent_topics: BTreeMap::new(),
            log: VecDeque::new(),
            discovery_changes: DiscoveryChanges::default(),
        }
    }

    /// The protocol below, to look at.
    pub fn core(&self) -> &Participant {
        &self.core
    }

    /// Handles one datagram.
    pub fn on_frame(&mut self, now: Time, frame: &Frame) {
        self.readers.now = now;
        self.core.on_frame(now, frame, &mut self.readers);
        self.handle_events(now);
    }

    /// Handles timers that are due, at most so many. Returns how many: if that is all, there may be more.
    pub fn on_timeout(&mut self, now: Time, budget: usize) -> usize {
        let mut handled = self.core.on_timeout(now, budget);
        // Discovery waits for that, and who has created the endpoint may be kept from running.
        if self.core.is_matching() && self.match_more(now) {
            handled = budget;
        }
        self.look_at_deadlines(now);
        self.handle_events(now);
        handled
    }

    /// When [`DomainParticipant::on_timeout`] is to be called; ask again after any call.
    pub fn next_timeout(&self) -> Option<Time> {
        let core = self.core.next_timeout();
        // An infinite DEADLINE has no alarm.
        match self.readers.alarms.next() {
            None => core,
            Some(at) => Some(core.map_or(at, |core| core.min(at))),
        }
    }

    /// Does what comes have to be compared with the wall clock?
    #[inline]
    pub fn wants_wall_clock(&self) -> bool {
        self.readers.lags.are_on() || !self.readers.expiring.is_empty()
    }

    /// Does what a writer writes, as it is for readers of this participant whose samples expire?
    #[inline]
    pub fn wants_wall_clock_of(&self, writer: WriterIndex) -> bool {
        !self.readers.expiring.is_empty() && self.is_beside_expiring(writer)
    }

    #[cold]
    fn is_beside_expiring(&self, writer: WriterIndex) -> bool {
        let mut local = self.core.writer(writer).into_iter().flat_map(|writer| &writer.local);
        local.any(|local| self.readers.has_expiring(local.reader))
    }

    /// What the wall clock shows now.
    #[inline(never)]
    pub fn set_wall_clock(&mut self, now: Time, wall: Timestamp) {
        self.readers.lags.set_wall_clock(now, wall);
    }

    /// A sample that took longer than its writer's LATENCY_BUDGET, one in a second. There is news of the participant
    /// itself then.
    pub fn take_late(&mut self) -> Option<Late> {
        self.readers.lags.take()
    }

    /// Is there something to send of class `lowest` or above?
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.core.has_work(lowest)
    }

    /// How many writers have fresh changes to send that are not critical, as [`taut_rtps::Participant::data_count`].
    pub fn data_count(&self) -> usize {
        self.core.data_count()
    }

    /// Is there work besides those of so many of them, as [`taut_rtps::Participant::has_work_beside`]?
    pub fn has_work_beside(&self, count: usize) -> bool {
        self.core.has_work_beside(count)
    }

    /// What waits to be sent of fresh changes is all of a burst.
    pub fn end_burst(&mut self, now: Time) {
        self.core.end_burst(now);
    }

    /// Sends at most about `budget` datagrams of class `lowest` or above.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        port: &mut dyn Port,
        lowest: TxClass,
        budget: usize,
    ) -> Progress {
        self.core.poll_transmit(now, port, lowest, budget)
    }

    /// The next entity with news, and of which kinds.
    pub fn poll_news(&mut self) -> Option<(Entity, StatusMask)> {
        self.readers.news.take()
    }

    /// Has an entity news?
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.readers.news.is_empty()
    }

    /// Is there nothing to tell: no line for the log, no news, no match that came or went?
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.log.is_empty() && !self.has_news() && !self.has_matches()
    }

    /// If all there is to tell is that one reader has samples, forgets it, as nobody wants to know. `false` if there is
    /// anything else.
    pub fn forget_samples(&mut self) -> bool {
        let is_all = self.log.is_empty() && !self.has_matches();
        is_all && self.readers.news.forget_samples()
    }

    /// The next match that came or went.
    pub fn poll_match(&mut self) -> Option<Match> {
        self.matches.as_mut()?.pop_front()
    }

    /// Is there a match that came or went?
    #[inline]
    pub fn has_matches(&self) -> bool {
        self.matches.as_ref().is_some_and(|matches| !matches.is_empty())
    }

    /// What discovery has found, changed or lost: a look at the same count sees the same.
    pub fn discovery_changes(&self) -> DiscoveryChanges {
        self.discovery_changes
    }

    /// The next line for the log.
    pub fn poll_log(&mut self) -> Option<String> {
        self.log.pop_front()
    }

    /// Creates a writer, and matches it with the first readers of its topic: [`DomainParticipant::match_more`] with the rest.
    pub fn create_writer(
        &mut self,
        now: Time,
        endpoint: Endpoint<DataWriterQos, PublisherQos>,
    ) -> WriterIndex {
        let Endpoint { topic_name, topic_qos, type_support, qos, group } = endpoint;
        let (keyed, limits) = (type_support.key_hash.is_some(), &qos.resource_limits);
        let of_one = limits.max_samples_per_instance;
        let config = EndpointConfig {
            topic_name,
            type_name: type_support.type_name.clone(),
            keyed,
            qos: EndpointQos::of_writer(&qos, &group, &topic_qos),
            history: qos.history,
            // Without a key all are of one instance.
            max_samples: of_one.filter(|_| !keyed).or(limits.max_samples),
        };
        self.readers.now = now;
        let index = self.core.create_writer(now, config, &mut self.readers);
        if let Some(most) = of_one {
            self.core.limit_instances(index, most as usize);
        }
        self.writers.insert(index, DataWriter::new(qos, type_support));
        self.handle_events(now);
        index
    }

    /// Creates a reader, and matches it with the first writers of its topic: [`DomainParticipant::match_more`] with the rest.
    pub fn create_reader(
        &mut self,
        now: Time,
        endpoint: Endpoint<DataReaderQos, SubscriberQos>,
    ) -> ReaderIndex {
        let Endpoint { topic_name, topic_qos, type_support, qos, group } = endpoint;
        let config = EndpointConfig {
            topic_name,
            type_name: type_support.type_name.clone(),
            keyed: type_support.key_hash.is_some(),
            qos: EndpointQos::of_reader(&qos, &group, &topic_qos),
            history: qos.history,
            max_samples: None,
        };
        let mut side = ReaderSide::new(&qos, &type_support);
        side.cache.set_presentation(&group.presentation);
        for (writer, lifespan) in self.lifespans_beside(&config.topic_name) {
            side.set_lifespan(writer, lifespan);
        }
        if let Some(anatomy) = &self.core.config().anatomy {
            side.remember(anatomy.samples);
        }
        let reader = DataReader::new(qos, type_support);
        // The protocol may deliver a local writer's history while it makes the reader: its place
        // is the next free one, so the cache has to be there before.
        let index = self.core.next_reader_index();
        self.readers.set(index, Some((reader, side)));
        self.readers.now = now;
        let made = self.core.create_reader(now, config, &mut self.readers);
        debug_assert_eq!(index, made);
        self.handle_events(now);
        made
    }

    /// Are endpoints that were created yet to be matched with some of what there was?
    pub fn is_matching(&self) -> bool {
        self.core.is_matching()
    }

    /// Matches endpoints that were created with some of what there was. `false` once they are with all. *Cost*: that of
    /// [`Participant::match_more`], and what the entities here make of it.
    pub fn match_more(&mut self, now: Time) -> bool {
        self.readers.now = now;
        let more = self.core.match_more(now, &mut self.readers);
        self.handle_events(now);
        more
    }

    /// Parts a writer that is about to be deleted from some of its readers. `false` once it is from all. *Cost*: as with
    /// [`DomainParticipant::match_more`].
    pub fn part_writer(&mut self, now: Time, index: WriterIndex) -> bool {
        let entity = self.core.writer(index).map(|writer| writer.guid.entity);
        self.part_more(now, entity)
    }

    /// The same of a reader and its writers.
    pub fn part_reader(&mut self, now: Time, index: ReaderIndex) -> bool {
        let entity = self.core.reader(index).map(|reader| reader.guid.entity);
        self.part_more(now, entity)
    }

    fn part_more(&mut self, now: Time, entity: Option<EntityId>) -> bool {
        let more = entity.is_some_and(|entity| self.core.part_more(entity));
        self.handle_events(now);
        more
    }

    /// Deletes a writer.
    pub fn delete_writer(&mut self, now: Time, index: WriterIndex) {
        self.core.delete_writer(now, index, &mut self.readers);
        self.writers.remove(&index);
        self.handle_events(now);
    }

    /// Deletes a reader with its samples.
    pub fn delete_reader(&mut self, now: Time, index: ReaderIndex) {
        self.core.delete_reader(now, index, &mut self.readers);
        self.readers.set(index, None);
        self.handle_events(now);
    }

    /// Tells everybody that this participant leaves; transmit what that takes before the end.
    pub fn leave(&mut self) {
        self.core.leave();
    }

    /// This participant is reached elsewhere from now on: all are told at once.
    pub fn set_addresses(&mut self, now: Time, addresses: Addresses) {
        self.readers.now = now;
        self.core.set_addresses(now, addresses, &mut self.readers);
        self.handle_events(now);
    }

    /// Tells everybody that this participant is there, each peer directly.
    pub fn announce(&mut self, now: Time) {
        self.core.announce(now);
    }

    /// Writes a change, whose payload it takes. *Errors*: [`Full`], with the change as it was, if KEEP_ALL has to wait
    /// for readers, or KEEP_LAST can give up nothing for it; the writer has news of no kind ([`StatusMask::NONE`])
    /// when it may try again.
    pub fn write(
        &mut self,
        now: Time,
        index: WriterIndex,
        write: &mut NewChange,
    ) -> Result<SequenceNumber, Full> {
        self.readers.now = now;
        let outcome = self.core.write(now, index, write, &mut self.readers);
        self.handle_events(now);
        outcome
    }

    /// Have all matched reliable readers acknowledged everything?
    pub fn is_acknowledged(&self, index: WriterIndex) -> bool {
        self.core.is_acknowledged(index)
    }

    /// Asks the readers of a writer to acknowledge now.
    pub fn ask_for_acknowledgements(&mut self, now: Time, index: WriterIndex) {
        self.core.ask_for_acknowledgements(now, index);
    }

    /// A writer is to go when it has sent all; see [`taut_rtps::Participant::note_going`].
    pub fn note_going(&mut self, index: WriterIndex) {
        self.core.note_going(index);
    }

    /// The application says that a writer is alive.
    pub fn assert_liveliness(&mut self, now: Time, index: WriterIndex) {
        self.core.assert_liveliness(now, index);
        self.handle_events(now);
    }

    /// The application says that the participant is alive.
    pub fn assert_participant(&mut self, now: Time) {
        self.core.assert_participant(now);
        self.handle_events(now);
    }

    /// Takes selected samples out of a reader. Returns how many.
    pub fn take(
        &mut self,
        now: Time,
        index: ReaderIndex,
        selection: &Selection,
        out: impl FnMut(Sample),
    ) -> usize {
        let taken = self.readers.at_side(index, |side| {
            let taken = side.take(now, selection, out);
            (taken, taken > 0 && side.is_blocked())
        });
        let (taken, blocked) = taken.unwrap_or_default();
        if blocked {
            self.note_taken(now, index);
        }
        taken
    }

    /// Takes the next sample that was not read before.
    pub fn take_next(&mut self, now: Time, index: ReaderIndex) -> Option<Sample> {
        let (mut sample, mut blocked) = (None, false);
        self.readers.doors.with(index, &mut |side| {
            sample = side.take_next(now);
            blocked = sample.is_some() && side.is_blocked();
        });
        if blocked {
            self.note_taken(now, index);
        }
        sample
    }

    /// Reads selected samples; they stay. Returns how many.
    pub fn read(
        &mut self,
        now: Time,
        index: ReaderIndex,
        selection: &Selection,
        out: impl FnMut(Sample),
    ) -> usize {
        self.readers.at_side(index, |side| side.read(now, selection, out)).unwrap_or(0)
    }

    /// Samples were taken of a reader for which the protocol holds changes back.
    #[cold]
    fn note_taken(&mut self, now: Time, index: ReaderIndex) {
        if self.readers.at_side(index, |side| side.take_blocked(|| now)) == Some(true) {
            self.on_room(now, index);
        }
    }

    /// A reader for which the protocol holds changes back has room again: see
    /// [`ReaderSide::take_blocked`].
    pub fn on_room(&mut self, now: Time, index: ReaderIndex) {
        self.readers.now = now;
        self.readers.change_side(index, |side| ((), side.offer_to_lanes(now)));
        self.core.on_room(now, index, &mut self.readers);
        self.handle_events(now);
    }

    /// Runs `call` with a reader's side; `None` if there is no such reader.
    pub fn at_side<R>(&mut self, index: ReaderIndex, call: impl FnOnce(&mut ReaderSide) -> R) -> Option<R> {
        self.readers.at_side(index, call)
    }

    /// What `call` finds in a reader's side; `None` if there is no such reader.
    pub fn side<R>(&self, index: ReaderIndex, call: impl FnOnce(&ReaderSide) -> R) -> Option<R> {
        let (mut call, mut result) = (Some(call), None);
        self.readers.doors.look(index, &mut |side| result = call.take().map(|call| call(side)));
        result
    }

    /// Empties the lanes of a reader, of at most so many samples, and tells of what is new.
    pub fn pull(&mut self, now: Time, index: ReaderIndex, most: usize) -> Pulled {
        self.readers.now = now;
        let pulled = self.readers.change_side(index, |side| {
            let pulled = side.pull_at_most(now, most);
            (pulled, pulled.news)
        });
        pulled.unwrap_or_default()
    }

    /// A local reader reads the lane of a writer that it is matched with. Returns the first change that it
    /// takes from there, for [`DomainParticipant::set_reader_lane`] of the writer's participant if that is
    /// another; `None` if the two are not matched.
    pub fn add_lane(
        &mut self,
        now: Time,
        reader: ReaderIndex,
        writer: Guid,
        lane: LaneReader,
    ) -> Option<SequenceNumber> {
        // One that its writer has offered anew may be read still.
        self.remove_lane(now, reader, writer);
        let qos = &self.core.endpoint(writer)?.qos;
        let (strength, reliable) =
            (qos.ownership_strength, qos.reliability.kind == ReliabilityKind::Reliable);
        let from = SequenceNumber(lane.lane().last().cast_signed()).next();
        let next = match self.core.local_writer(writer) {
            Some(index) => {
                let reader = self.core.reader(reader)?.guid;
                self.core.set_reader_lane(now, index, reader, Some(from))?
            }
            None => self.core.begin_writer_lane(reader, writer)?,
        };
        let tells_time = self.core.clock_of(writer.prefix) == Some(Clock::Own);
        self.readers.at_side(reader, |side| {
            side.add_lane(writer, strength, lane, reliable, next);
            if tells_time {
                side.believe_lane(writer);
            }
        })?;
        self.handle_events(now);
        Some(from)
    }

    /// A local reader no longer reads a writer's lane; what is in it is taken first, and not taken again if the
    /// protocol brings it too. What finds no room waits for it in the protocol from now on.
    pub fn remove_lane(&mut self, now: Time, reader: ReaderIndex, writer: Guid) {
        self.readers.now = now;
        let left = self.readers.change_side(reader, |side| {
            let pulled = side.pull(now);
            side.note_awaited(pulled);
            (side.leave_lane(now, writer), pulled.news)
        });
        if let Some((next, waiting)) = left.flatten() {
            self.core.end_writer_lane(reader, writer, next, waiting, &mut self.readers);
            self.handle_events(now);
        }
    }

    /// A participant has ended without saying so: it is forgotten now, not when its lease runs out.
    pub fn forget_participant(&mut self, now: Time, prefix: GuidPrefix) {
        self.readers.now = now;
        self.core.forget_participant(now, prefix);
        self.handle_events(now);
    }

    /// A reader of another participant takes from a local writer's lane, from this change on, what goes
    /// through it; `None`: no longer.
    pub fn set_reader_lane(
        &mut self,
        now: Time,
        writer: WriterIndex,
        reader: Guid,
        from: Option<SequenceNumber>,
    ) {
        self.core.set_reader_lane(now, writer, reader, from);
        self.handle_events(now);
    }

    /// A reader.
    pub fn reader(&self, index: ReaderIndex) -> Option<&DataReader> {
        self.readers.get(index)
    }

    /// A reader, to take its statuses.
    pub fn reader_mut(&mut self, index: ReaderIndex) -> Option<&mut DataReader> {
        self.readers.get_mut(index)
    }

    /// A writer.
    pub fn writer(&self, index: WriterIndex) -> Option<&DataWriter> {
        self.writers.get(&index)
    }

    /// A writer, to take its statuses.
    pub fn writer_mut(&mut self, index: WriterIndex) -> Option<&mut DataWriter> {
        self.writers.get_mut(&index)
    }

    /// What is known of other types under a topic's name.
    pub fn inconsistent_topic(&mut self, topic: &str) -> InconsistentTopicStatus {
        self.inconsistent_topics.get_mut(topic).map(InconsistentTopicStatus::take).unwrap_or_default()
    }
}
