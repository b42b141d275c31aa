//! DDS QoS policies: defaults, consistency, request/offer matching, as pure functions.
//!
//! Owns the policies' types and the rules between them. Must never know an endpoint, a clock or the
//! wire's bytes. DCPS 1.4 §2.2.3 and DDS-XTypes 1.3 §7.6.3. Discovery matches with it, entities keep
//! it, the public API lets users build it.
#![forbid(unsafe_code)]

mod compatibility;
mod consistency;
mod endpoint;
mod entity;
mod fluent;
mod partition;
mod policy;

pub use compatibility::{Incompatibility, PolicyId, incompatible, offered_representation};
pub use consistency::MAX_OPAQUE_DATA;
pub use endpoint::EndpointQos;
pub use entity::{DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos};
pub use fluent::Qos;
pub use partition::{MAX_NAME, MAX_NAMES, MAX_WORK, compare_partitions, partitions_match};
pub use policy::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, EntityFactory, History,
    Liveliness, LivelinessKind, OwnershipKind, Presentation, PresentationAccessScopeKind,
    ReaderDataLifecycle, Reliability, ReliabilityKind, ResourceLimits, TypeConsistencyEnforcement,
    TypeConsistencyKind, WriterDataLifecycle,
};
