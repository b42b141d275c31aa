//! All policies of one endpoint that travel in discovery, flat. DCPS 1.4 §2.2.5
//! (PublicationBuiltinTopicData, SubscriptionBuiltinTopicData). SEDP writes and reads it, matching
//! compares two of them.

use taut_base::Duration;

use crate::entity::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use crate::policy::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, Liveliness, OwnershipKind,
    Presentation, Reliability, TypeConsistencyEnforcement,
};

/// The policies of a writer or a reader as its peers see them. What one side does not have (a reader has
/// no lifespan) stays at the default. A parameter that did not travel has the value of
/// [`EndpointQos::default_writer`] or [`EndpointQos::default_reader`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointQos {
    /// DURABILITY.
    pub durability: DurabilityKind,
    /// DURABILITY_SERVICE, of writers.
    pub durability_service: DurabilityService,
    /// DEADLINE.
    pub deadline: Duration,
    /// LATENCY_BUDGET.
    pub latency_budget: Duration,
    /// LIVELINESS.
    pub liveliness: Liveliness,
    /// RELIABILITY.
    pub reliability: Reliability,
    /// OWNERSHIP.
    pub ownership: OwnershipKind,
    /// OWNERSHIP_STRENGTH, of writers.
    pub ownership_strength: i32,
    /// DESTINATION_ORDER.
    pub destination_order: DestinationOrderKind,
    /// TIME_BASED_FILTER, of readers.
    pub time_based_filter: Duration,
    /// TRANSPORT_PRIORITY, of writers.
    pub transport_priority: i32,
    /// LIFESPAN, of writers.
    pub lifespan: Duration,
    /// DATA_REPRESENTATION.
    pub representation: Vec<DataRepresentationId>,
    /// TYPE_CONSISTENCY_ENFORCEMENT, of readers.
    pub type_consistency: TypeConsistencyEnforcement,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// PRESENTATION of the publisher or subscriber.
    pub presentation: Presentation,
    /// PARTITION of the publisher or subscriber.
    pub partition: Vec<String>,
    /// GROUP_DATA of the publisher or subscriber.
    pub group_data: Vec<u8>,
    /// TOPIC_DATA of the topic.
    pub topic_data: Vec<u8>,
}

impl EndpointQos {
    /// What a writer offers.
    pub fn of_writer(writer: &DataWriterQos, publisher: &PublisherQos, topic: &TopicQos) -> EndpointQos {
        EndpointQos {
            durability: writer.durability,
            durability_service: writer.durability_service,
            deadline: writer.deadline.as_told(),
            latency_budget: writer.latency_budget.as_told(),
            liveliness: as_told(writer.liveliness),
            reliability: writer.reliability,
            ownership: writer.ownership,
            ownership_strength: writer.ownership_strength,
            destination_order: writer.destination_order,
            time_based_filter: Duration::ZERO,
            transport_priority: writer.transport_priority,
            lifespan: writer.lifespan.as_told(),
            representation: writer.representation.clone(),
            type_consistency: TypeConsistencyEnforcement::default(),
            user_data: writer.user_data.clone(),
            presentation: publisher.presentation,
            partition: publisher.partition.clone(),
            group_data: publisher.group_data.clone(),
            topic_data: topic.topic_data.clone(),
        }
    }

    /// What a reader requests.
    pub fn of_reader(reader: &DataReaderQos, subscriber: &SubscriberQos, topic: &TopicQos) -> EndpointQos {
        EndpointQos {
            durability: reader.durability,
            durability_service: DurabilityService::default(),
            deadline: reader.deadline.as_told(),
            latency_budget: reader.latency_budget.as_told(),
            liveliness: as_told(reader.liveliness),
            reliability: reader.reliability,
            ownership: reader.ownership,
            ownership_strength: 0,
            destination_order: reader.destination_order,
            time_based_filter: reader.time_based_filter.as_told(),
            transport_priority: reader.transport_priority,
            lifespan: Duration::INFINITE,
            representation: reader.representation.clone(),
            type_consistency: reader.type_consistency,
            user_data: reader.user_data.clone(),
            presentation: subscriber.presentation,
            partition: subscriber.partition.clone(),
            group_data: subscriber.group_data.clone(),
            topic_data: topic.topic_data.clone(),
        }
    }

    /// A writer's QoS of which nothing travelled. *Source*: RTPS 2.5 §9.6.3.2: what is missing has its
    /// default, and that of a writer is RELIABLE.
    pub fn default_writer() -> EndpointQos {
        Self::of_writer(&DataWriterQos::default(), &PublisherQos::default(), &TopicQos::default())
    }

    /// A reader's QoS of which nothing travelled: BEST_EFFORT.
    pub fn default_reader() -> EndpointQos {
        Self::of_reader(&DataReaderQos::default(), &SubscriberQos::default(), &TopicQos::default())
    }
}

/// Both sides compare what travels, so that they find the same.
fn as_told(liveliness: Liveliness) -> Liveliness {
    Liveliness { lease_duration: liveliness.lease_duration.as_told(), ..liveliness }
}
