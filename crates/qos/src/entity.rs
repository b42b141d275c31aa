//! The QoS of each kind of entity: the policies that DCPS 1.4 §2.2.3 table 2.9 gives it, with the
//! standard's defaults. Built by the public API, kept by the entities.

use taut_base::Duration;

use crate::policy::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, EntityFactory, History,
    Liveliness, OwnershipKind, Presentation, ReaderDataLifecycle, Reliability, ResourceLimits,
    TypeConsistencyEnforcement, WriterDataLifecycle,
};

/// QoS of a DomainParticipant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DomainParticipantQos {
    /// Bytes of the application that discovery carries.
    pub user_data: Vec<u8>,
    /// Are its entities born enabled?
    pub entity_factory: EntityFactory,
}

/// QoS of a Publisher.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublisherQos {
    /// Grouping and order of changes.
    pub presentation: Presentation,
    /// Names or patterns; a writer meets a reader only if one of each agrees. Empty is one empty name.
    pub partition: Vec<String>,
    /// Bytes of the application that discovery carries.
    pub group_data: Vec<u8>,
    /// Are its writers born enabled?
    pub entity_factory: EntityFactory,
}

/// QoS of a Subscriber.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriberQos {
    /// Grouping and order of changes.
    pub presentation: Presentation,
    /// Names or patterns; a writer meets a reader only if one of each agrees. Empty is one empty name.
    pub partition: Vec<String>,
    /// Bytes of the application that discovery carries.
    pub group_data: Vec<u8>,
    /// Are its readers born enabled?
    pub entity_factory: EntityFactory,
}

/// QoS of a Topic. Its TOPIC_DATA is announced with each of its writers and readers; they inherit none of the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicQos {
    /// Bytes of the application that discovery carries.
    pub topic_data: Vec<u8>,
    /// How long samples outlive their write.
    pub durability: DurabilityKind,
    /// What a durability service keeps.
    pub durability_service: DurabilityService,
    /// The longest time between two samples of an instance.
    pub deadline: Duration,
    /// How long a sample may wait for company on its way.
    pub latency_budget: Duration,
    /// How it is known that a writer lives.
    pub liveliness: Liveliness,
    /// Are lost samples sent again?
    pub reliability: Reliability,
    /// Whose clock orders the changes.
    pub destination_order: DestinationOrderKind,
    /// Which samples are kept.
    pub history: History,
    /// How many at most.
    pub resource_limits: ResourceLimits,
    /// A hint for the transport; higher is more urgent.
    pub transport_priority: i32,
    /// Samples older than this are dropped.
    pub lifespan: Duration,
    /// May several writers update one instance?
    pub ownership: OwnershipKind,
    /// Ways to write samples as bytes, best first. Empty is XCDR1.
    pub representation: Vec<DataRepresentationId>,
}

/// QoS of a DataWriter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataWriterQos {
    /// How long samples outlive their write.
    pub durability: DurabilityKind,
    /// What a durability service keeps.
    pub durability_service: DurabilityService,
    /// The longest time between two samples of an instance: a promise.
    pub deadline: Duration,
    /// How long a sample may wait for company on its way.
    pub latency_budget: Duration,
    /// How it is known that the writer lives: a promise.
    pub liveliness: Liveliness,
    /// Are lost samples sent again?
    pub reliability: Reliability,
    /// Whose clock orders the changes.
    pub destination_order: DestinationOrderKind,
    /// Which samples are kept.
    pub history: History,
    /// How many at most.
    pub resource_limits: ResourceLimits,
    /// A hint for the transport; higher is more urgent.
    pub transport_priority: i32,
    /// Samples older than this are dropped.
    pub lifespan: Duration,
    /// Bytes of the application that discovery carries.
    pub user_data: Vec<u8>,
    /// May several writers update one instance?
    pub ownership: OwnershipKind,
    /// Which of several writers of an EXCLUSIVE topic is heard: the strongest.
    pub ownership_strength: i32,
    /// What unregister means.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// How samples are written as bytes: the first counts. Empty is XCDR1.
    pub representation: Vec<DataRepresentationId>,
}

/// QoS of a DataReader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataReaderQos {
    /// How long samples must outlive their write.
    pub durability: DurabilityKind,
    /// The longest time between two samples of an instance: a demand.
    pub deadline: Duration,
    /// How long a sample may wait for company on its way.
    pub latency_budget: Duration,
    /// How it is known that a writer lives: a demand.
    pub liveliness: Liveliness,
    /// Must lost samples be sent again?
    pub reliability: Reliability,
    /// Whose clock orders the changes.
    pub destination_order: DestinationOrderKind,
    /// Which samples are kept.
    pub history: History,
    /// How many at most.
    pub resource_limits: ResourceLimits,
    /// A hint for the transport: from 100 on the reader is reached at the participant's critical port, if it has one. Not
    /// announced: the standard knows it of writers only.
    pub transport_priority: i32,
    /// Bytes of the application that discovery carries.
    pub user_data: Vec<u8>,
    /// May several writers update one instance?
    pub ownership: OwnershipKind,
    /// TIME_BASED_FILTER's minimum_separation: the shortest time between two samples of an instance.
    /// A sample counts from when its reader could have it: over the network when it is delivered, through memory of this
    /// machine when it was written, however late that is taken.
    pub time_based_filter: Duration,
    /// How long unread samples of finished instances are kept.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Which bytes the reader understands. Empty is XCDR1.
    pub representation: Vec<DataRepresentationId>,
    /// How far the writer's type may differ.
    pub type_consistency: TypeConsistencyEnforcement,
}

impl Default for TopicQos {
    fn default() -> Self {
        TopicQos {
            topic_data: Vec::new(),
            durability: DurabilityKind::Volatile,
            durability_service: DurabilityService::default(),
            deadline: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            liveliness: Liveliness::default(),
            reliability: Reliability::BEST_EFFORT,
            destination_order: DestinationOrderKind::ByReceptionTimestamp,
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: 0,
            lifespan: Duration::INFINITE,
            ownership: OwnershipKind::Shared,
            representation: Vec::new(),
        }
    }
}

impl Default for DataWriterQos {
    fn default() -> Self {
        DataWriterQos {
            durability: DurabilityKind::Volatile,
            durability_service: DurabilityService::default(),
            deadline: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            liveliness: Liveliness::default(),
            reliability: Reliability::RELIABLE,
            destination_order: DestinationOrderKind::ByReceptionTimestamp,
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: 0,
            lifespan: Duration::INFINITE,
            user_data: Vec::new(),
            ownership: OwnershipKind::Shared,
            ownership_strength: 0,
            writer_data_lifecycle: WriterDataLifecycle::default(),
            representation: Vec::new(),
        }
    }
}

impl Default for DataReaderQos {
    fn default() -> Self {
        DataReaderQos {
            durability: DurabilityKind::Volatile,
            deadline: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            liveliness: Liveliness::default(),
            reliability: Reliability::BEST_EFFORT,
            destination_order: DestinationOrderKind::ByReceptionTimestamp,
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: 0,
            user_data: Vec::new(),
            ownership: OwnershipKind::Shared,
            time_based_filter: Duration::ZERO,
            reader_data_lifecycle: ReaderDataLifecycle::default(),
            representation: Vec::new(),
            type_consistency: TypeConsistencyEnforcement::default(),
        }
    }
}
