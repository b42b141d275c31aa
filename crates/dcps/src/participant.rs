//! The DCPS entities of one participant above the protocol, driven from outside. DCPS 1.4 §2.2.2.

use std::collections::{BTreeMap, VecDeque};

use taut_base::{InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;
use taut_port::{Frame, Port};
use taut_qos::{DataReaderQos, DataWriterQos, EndpointQos, History, PublisherQos, SubscriberQos, TopicQos};
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{
    Config, EndpointConfig, Full, NewChange, Participant, Progress, ReaderIndex, TxClass, WriterIndex,
};

use crate::entities::{DataReader, DataWriter, Entity, Readers};
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
    pub(crate) discovery_changes: u64,
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

/// What a write is about.
#[derive(Clone, Debug)]
pub struct Write {
    /// What it does to the instance.
    pub kind: ChangeKind,
    /// The instance; NIL on a topic without a key.
    pub instance: InstanceHandle,
    /// The writer's clock.
    pub source_timestamp: Option<Timestamp>,
    /// Encapsulation header and serialized data or key.
    pub payload: Bytes,
}

impl DomainParticipant {
    /// A participant that announces itself from the first [`DomainParticipant::on_timeout`] on.
    pub fn new(config: Config) -> DomainParticipant {
        DomainParticipant {
            core: Participant::new(config),
            readers: Readers::default(),
            writers: BTreeMap::new(),
            inconsistent_topics: BTreeMap::new(),
            log: VecDeque::new(),
            discovery_changes: 0,
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

    /// Handles the timers that are due.
    pub fn on_timeout(&mut self, now: Time) {
        self.core.on_timeout(now);
        self.handle_events(now);
    }

    /// When [`DomainParticipant::on_timeout`] is to be called; ask again after any call.
    pub fn next_timeout(&self) -> Option<Time> {
        self.core.next_timeout()
    }

    /// Is there something to send of class `lowest` or above?
    pub fn has_work(&self, lowest: TxClass) -> bool {
        self.core.has_work(lowest)
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
    pub fn has_news(&self) -> bool {
        !self.readers.news.is_empty()
    }

    /// Counts what discovery has found, changed or lost: a look at the same count sees the same.
    pub fn discovery_changes(&self) -> u64 {
        self.discovery_changes
    }

    /// The next line for the log.
    pub fn poll_log(&mut self) -> Option<String> {
        self.log.pop_front()
    }

    /// Creates a writer.
    pub fn create_writer(
        &mut self,
        now: Time,
        endpoint: Endpoint<DataWriterQos, PublisherQos>,
    ) -> WriterIndex {
        let Endpoint { topic_name, topic_qos, type_support, qos, group } = endpoint;
        let config = EndpointConfig {
            topic_name,
            type_name: type_support.type_name.clone(),
            keyed: type_support.key_hash.is_some(),
            qos: EndpointQos::of_writer(&qos, &group, &topic_qos),
            history: qos.history,
            max_samples: qos.resource_limits.max_samples,
        };
        self.readers.now = now;
        let index = self.core.create_writer(now, config, &mut self.readers);
        self.writers.insert(index, DataWriter::new(qos, type_support));
        self.handle_events(now);
        index
    }

    /// Creates a reader.
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
            history: History::KeepAll,
            max_samples: None,
        };
        let mut reader = DataReader::new(qos, type_support);
        reader.cache.set_presentation(&group.presentation);
        // The protocol may deliver a local writer's history while it makes the reader: its place
        // is the next free one, so the cache has to be there before.
        let index = self.core.next_reader_index();
        self.readers.set(index, Some(reader));
        self.readers.now = now;
        let made = self.core.create_reader(now, config, &mut self.readers);
        debug_assert_eq!(index, made);
        self.handle_events(now);
        made
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

    /// Writes. *Errors*: [`Full`] if KEEP_ALL has to wait for readers; the writer has news of no
    /// kind ([`StatusMask::NONE`]) when it may try again.
    pub fn write(&mut self, now: Time, index: WriterIndex, write: Write) -> Result<SequenceNumber, Full> {
        self.readers.now = now;
        let Write { kind, instance, source_timestamp, payload } = write;
        let change = NewChange { kind, instance, source_timestamp, payload };
        let outcome = self.core.write(now, index, change, &mut self.readers);
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

    /// The application says that a writer is alive.
    pub fn assert_liveliness(&mut self, now: Time, index: WriterIndex) {
        self.core.assert_liveliness(now, index);
    }

    /// The application says that the participant is alive.
    pub fn assert_participant(&mut self, now: Time) {
        self.core.assert_participant(now);
    }

    /// Takes selected samples out of a reader. Returns how many.
    pub fn take(
        &mut self,
        now: Time,
        index: ReaderIndex,
        selection: &Selection,
        out: impl FnMut(Sample),
    ) -> usize {
        let Some(reader) = self.readers.get_mut(index) else { return 0 };
        reader.cache.on_timeout(now);
        let taken = reader.cache.take(selection, out);
        self.after_take(now, index, taken);
        taken
    }

    /// Takes the next sample that was not read before.
    pub fn take_next(&mut self, now: Time, index: ReaderIndex) -> Option<Sample> {
        let reader = self.readers.get_mut(index)?;
        reader.cache.on_timeout(now);
        let sample = reader.cache.take_next();
        self.after_take(now, index, usize::from(sample.is_some()));
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
        let Some(reader) = self.readers.get_mut(index) else { return 0 };
        reader.cache.on_timeout(now);
        reader.cache.read(selection, out)
    }

    fn after_take(&mut self, now: Time, index: ReaderIndex, taken: usize) {
        let blocked = self.readers.get_mut(index).map(|reader| &mut reader.blocked);
        if taken > 0 && blocked.is_some_and(std::mem::take) {
            self.readers.now = now;
            self.core.on_room(now, index, &mut self.readers);
            self.handle_events(now);
        }
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
