//! What DCPS keeps of each reader and writer above the protocol: cache, statuses, what is news.

use taut_base::{InstanceHandle, Time};
use taut_qos::{DataReaderQos, DataWriterQos, ReliabilityKind};
use taut_rtps::history_cache::{CacheChange, ChangeKind};
use taut_rtps::{ReaderIndex, Sink, WriterIndex};

use crate::reader_cache::{Insert, ReaderCache};
use crate::status::{
    LivelinessChangedStatus, LivelinessLostStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
    SubscriptionMatchedStatus,
};
use crate::type_support::TypeSupport;

/// Who has news.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entity {
    /// The participant: somebody came or went.
    Participant,
    /// A local reader.
    Reader(ReaderIndex),
    /// A local writer.
    Writer(WriterIndex),
}

/// News of entities: each entity is in the queue once, with all its kinds.
#[derive(Default)]
pub(crate) struct News {
    queue: std::collections::VecDeque<(Entity, StatusMask)>,
}

impl News {
    pub fn add(&mut self, entity: Entity, kinds: StatusMask) {
        // Few entities have news at a time: a step handles a bounded number of frames.
        match self.queue.iter_mut().find(|(known, _)| *known == entity) {
            Some((_, known)) => *known = *known | kinds,
            None => self.queue.push_back((entity, kinds)),
        }
    }

    pub fn take(&mut self) -> Option<(Entity, StatusMask)> {
        self.queue.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// A reader.
pub struct DataReader {
    /// Its samples.
    pub cache: ReaderCache,
    /// Its QoS.
    pub qos: DataReaderQos,
    /// Its type.
    pub type_support: TypeSupport,
    /// Writers it has met.
    pub subscription_matched: SubscriptionMatchedStatus,
    /// Writers it could not meet.
    pub requested_incompatible_qos: RequestedIncompatibleQosStatus,
    /// Writers that are alive.
    pub liveliness_changed: LivelinessChangedStatus,
    /// Samples that were lost on their way.
    pub sample_lost: SampleLostStatus,
    /// Samples that found no room.
    pub sample_rejected: SampleRejectedStatus,
    /// Payloads that are no samples of its type.
    pub undecodable: u64,
    /// A change waits in the protocol for room in the cache.
    pub(crate) blocked: bool,
}

impl DataReader {
    pub(crate) fn new(qos: DataReaderQos, type_support: TypeSupport) -> DataReader {
        DataReader {
            cache: ReaderCache::new(&qos, type_support.key_hash.is_some()),
            qos,
            type_support,
            subscription_matched: SubscriptionMatchedStatus::default(),
            requested_incompatible_qos: RequestedIncompatibleQosStatus::default(),
            liveliness_changed: LivelinessChangedStatus::default(),
            sample_lost: SampleLostStatus::default(),
            sample_rejected: SampleRejectedStatus::default(),
            undecodable: 0,
            blocked: false,
        }
    }

    /// The instance, computed here where there are bytes to compute it from: peers differ in how they
    /// hash keys, and one instance must have one handle whoever wrote it.
    fn instance_of(&self, change: &CacheChange) -> Option<InstanceHandle> {
        match self.type_support.key_hash {
            None => Some(InstanceHandle::NIL),
            Some(_) if change.payload.is_empty() => change.instance,
            Some(key_hash) => key_hash(&change.payload, change.kind != ChangeKind::Alive),
        }
    }
}

/// A writer.
pub struct DataWriter {
    /// Its QoS.
    pub qos: DataWriterQos,
    /// Its type.
    pub type_support: TypeSupport,
    /// Readers it has met.
    pub publication_matched: PublicationMatchedStatus,
    /// Readers it could not meet.
    pub offered_incompatible_qos: OfferedIncompatibleQosStatus,
    /// Promises of liveliness it broke.
    pub liveliness_lost: LivelinessLostStatus,
}

impl DataWriter {
    pub(crate) fn new(qos: DataWriterQos, type_support: TypeSupport) -> DataWriter {
        DataWriter {
            qos,
            type_support,
            publication_matched: PublicationMatchedStatus::default(),
            offered_incompatible_qos: OfferedIncompatibleQosStatus::default(),
            liveliness_lost: LivelinessLostStatus::default(),
        }
    }
}

/// All readers, by their place in the protocol's table: where the protocol delivers.
#[derive(Default)]
pub(crate) struct Readers {
    slots: Vec<Option<DataReader>>,
    pub news: News,
    /// The time of the step in which changes are delivered.
    pub now: Time,
}

impl Readers {
    pub fn get(&self, index: ReaderIndex) -> Option<&DataReader> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, index: ReaderIndex) -> Option<&mut DataReader> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    pub fn set(&mut self, index: ReaderIndex, reader: Option<DataReader>) {
        let at = index.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at.saturating_add(1), || None);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = reader;
        }
    }
}

impl Sink for Readers {
    fn deliver(
        &mut self,
        index: ReaderIndex,
        strength: i32,
        mut change: CacheChange,
    ) -> Result<(), CacheChange> {
        let now = self.now;
        let Some(reader) = self.get_mut(index) else { return Ok(()) };
        let Some(instance) = reader.instance_of(&change) else {
            reader.undecodable = reader.undecodable.saturating_add(1);
            return Ok(());
        };
        change.instance = Some(instance);
        let reliable = reader.qos.reliability.kind == ReliabilityKind::Reliable;
        if reliable && !reader.cache.has_room(instance) {
            reader.blocked = true;
            return Err(change);
        }
        let news = match reader.cache.insert(now, change, strength, None) {
            Insert::Stored | Insert::Replaced => StatusMask::DATA_AVAILABLE,
            Insert::Rejected(reason) => {
                reader.sample_rejected.count(reason, instance);
                StatusMask::SAMPLE_REJECTED
            }
            Insert::Ignored(_) => return Ok(()),
        };
        self.news.add(Entity::Reader(index), news);
        Ok(())
    }
}
