//! Writers and readers of simulated samples, above [`Network`].

use taut_base::{Guid, SequenceNumber, Time};
use taut_dcps::{ContentFilter, Endpoint, InstanceState, Sample, SampleInfo, Selection, TypeSupport, Write};
use taut_qos::Qos;
use taut_rtps::{ChangeKind, Full, ReaderIndex, WriterIndex};

use crate::network::Network;
use crate::payload::{Content, instance, key_hash, key_payload};

/// A topic as the endpoints of a run name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Its type's name.
    pub type_name: String,
    /// Does the type have a key?
    pub keyed: bool,
}

impl TopicSpec {
    /// A topic.
    pub fn new(name: &str, keyed: bool) -> TopicSpec {
        TopicSpec { name: name.into(), type_name: "Simulated".into(), keyed }
    }

    fn type_support(&self, filter: Option<ContentFilter>) -> TypeSupport {
        let key_hash = self.keyed.then_some(key_hash as _);
        TypeSupport { type_name: self.type_name.clone(), key_hash, filter, ..TypeSupport::default() }
    }
}

/// A writer in a run.
#[derive(Clone, Debug)]
pub struct SimWriter {
    /// Where.
    pub node: usize,
    /// Which of that node's.
    pub index: WriterIndex,
    /// Its name on the wire.
    pub guid: Guid,
    /// Its name in its samples.
    pub tag: u64,
    /// Changes written.
    pub written: u64,
    keyed: bool,
}

/// A reader in a run.
#[derive(Clone, Copy, Debug)]
pub struct SimReader {
    /// Where.
    pub node: usize,
    /// Which of that node's.
    pub index: ReaderIndex,
    /// Its name on the wire.
    pub guid: Guid,
}

/// A sample that was taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// What it says; `None` if it has no data, or if its data is not what was written.
    pub content: Option<Content>,
    /// What the cache says.
    pub info: SampleInfo,
}

impl Taken {
    fn new(sample: &Sample) -> Taken {
        let content = sample.info.valid_data.then(|| Content::decode(&sample.payload)).flatten();
        Taken { content, info: sample.info }
    }

    /// The number of a sample with data; 0 of one without.
    pub fn number(&self) -> u64 {
        self.content.map_or(0, |content| content.number)
    }

    /// Is it data that is not as it was written?
    pub fn is_damaged(&self) -> bool {
        self.info.valid_data && self.content.is_none()
    }

    /// The state of its instance.
    pub fn state(&self) -> InstanceState {
        self.info.instance_state
    }
}

impl Network {
    /// Creates a writer on a node that is up.
    pub fn create_writer(&mut self, node: usize, tag: u64, topic: &TopicSpec, qos: &Qos) -> SimWriter {
        let endpoint = Endpoint {
            topic_name: topic.name.clone(),
            topic_qos: qos.topic.clone(),
            type_support: topic.type_support(None),
            qos: qos.writer.clone(),
            group: qos.publisher.clone(),
        };
        let is_whole = self.nodes[node].options.step.is_none();
        let (index, guid) = self
            .on(node, |participant, now| {
                let index = participant.create_writer(now, endpoint);
                while is_whole && participant.match_more(now) {}
                (index, participant.core().writer(index).map_or(Guid::UNKNOWN, |writer| writer.guid))
            })
            .expect("the node is up");
        SimWriter { node, index, guid, tag, written: 0, keyed: topic.keyed }
    }

    /// Creates a reader on a node that is up.
    pub fn create_reader(&mut self, node: usize, topic: &TopicSpec, qos: &Qos) -> SimReader {
        self.create_reader_of(node, topic, qos, None)
    }

    /// Creates a reader that lets in what passes a filter.
    pub fn create_reader_of(
        &mut self,
        node: usize,
        topic: &TopicSpec,
        qos: &Qos,
        filter: Option<ContentFilter>,
    ) -> SimReader {
        let endpoint = Endpoint {
            topic_name: topic.name.clone(),
            topic_qos: qos.topic.clone(),
            type_support: topic.type_support(filter),
            qos: qos.reader.clone(),
            group: qos.subscriber.clone(),
        };
        let is_whole = self.nodes[node].options.step.is_none();
        let (index, guid) = self
            .on(node, |participant, now| {
                let index = participant.create_reader(now, endpoint);
                while is_whole && participant.match_more(now) {}
                (index, participant.core().reader(index).map_or(Guid::UNKNOWN, |reader| reader.guid))
            })
            .expect("the node is up");
        SimReader { node, index, guid }
    }

    /// Writes the next sample of a writer.
    pub fn write(&mut self, writer: &mut SimWriter, key: u32, filler: u32) -> Result<SequenceNumber, Full> {
        let content = Content { key, tag: writer.tag, number: writer.written + 1, filler };
        self.write_change(writer, ChangeKind::Alive, key, content.encode())
    }

    /// Disposes or unregisters an instance.
    pub fn end_instance(
        &mut self,
        writer: &mut SimWriter,
        kind: ChangeKind,
        key: u32,
    ) -> Result<SequenceNumber, Full> {
        self.write_change(writer, kind, key, key_payload(key))
    }

    fn write_change(
        &mut self,
        writer: &mut SimWriter,
        kind: ChangeKind,
        key: u32,
        payload: taut_mem::Bytes,
    ) -> Result<SequenceNumber, Full> {
        let instance = if writer.keyed { instance(key) } else { Default::default() };
        let source_timestamp = Some(self.wall_now(writer.node));
        let mut write = Write {
            kind,
            instance,
            source_timestamp,
            payload,
            number: None,
            in_lane: false,
            called: Time::default(),
            was_left: false,
        };
        let index = writer.index;
        let number = self
            .on(writer.node, |participant, now| {
                write.called = now;
                participant.write(now, index, &mut write)
            })
            .ok_or(Full)??;
        writer.written += 1;
        assert_eq!(number.0.cast_unsigned(), writer.written, "a write that succeeds takes the next number");
        Ok(number)
    }

    /// Takes up to `max_samples` out of a reader.
    pub fn take(&mut self, reader: &SimReader, max_samples: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        let selection = Selection { max_samples, ..Selection::ANY };
        let index = reader.index;
        self.on(reader.node, |participant, now| {
            participant.take(now, index, &selection, |sample| taken.push(Taken::new(&sample)))
        });
        taken
    }

    /// Reads, and leaves what was read.
    pub fn read(&mut self, reader: &SimReader, selection: &Selection) -> Vec<Taken> {
        let mut read = Vec::new();
        let index = reader.index;
        self.on(reader.node, |participant, now| {
            participant.read(now, index, selection, |sample| read.push(Taken::new(&sample)))
        });
        read
    }

    /// Is a writer matched with a reader, on the writer's side and on the reader's?
    pub fn is_matched(&self, writer: &SimWriter, reader: &SimReader) -> (bool, bool) {
        let matches = |node: usize, local: Guid, remote: Guid| {
            let participant = self.participant(node);
            participant.is_some_and(|p| p.core().database().matches(local.entity).any(|guid| guid == remote))
        };
        (matches(writer.node, writer.guid, reader.guid), matches(reader.node, reader.guid, writer.guid))
    }
}
