//! DCPS entities without I/O: reader caches, instances, sample states, statuses.
//!
//! Must never touch a clock, a socket or a thread, and never knows a user's type. DCPS 1.4 §2.2.2 and
//! §2.2.4. The executor drives it, the public API reads from it.
#![forbid(unsafe_code)]

mod anatomy;
mod between_lanes;
mod blocked;
pub mod cell;
mod deadline;
#[cfg(test)]
mod deadline_tests;
mod doors;
mod due;
mod entities;
mod events;
mod filter;
mod fresh;
mod gone;
mod instance;
mod instance_state;
mod lag;
mod last;
mod leaving;
mod left_behind;
mod lifespan;
mod list;
mod names;
mod ownership;
mod participant;
#[cfg(test)]
mod participant_tests;
mod reader_access;
mod reader_cache;
#[cfg(test)]
mod reader_cache_model;
#[cfg(test)]
mod reader_cache_tests;
mod reader_side;
#[cfg(test)]
mod reader_side_model;
#[cfg(test)]
mod reader_side_tests;
mod sample_info;
mod separation;
mod states;
mod status;
mod type_support;
mod unheard;

pub use anatomy::{SampleAnatomy, Stage};
pub use deadline::{DEADLINES_PER_STEP, Missed, OfferedDeadlines, SHORTEST_PAUSE};
pub use doors::{Delivery, Doors};
pub use entities::{DataReader, DataWriter, Entity};
pub use filter::{Expression, Filter, MAX_EXPRESSION, MAX_PARAMETERS};
pub use instance::{DEFAULT_MAX_INSTANCES, MAX_KEY_COPY};
pub use lag::Late;
pub use participant::{DiscoveryChanges, DomainParticipant, Endpoint, Match};
pub use reader_cache::{
    DEFAULT_MAX_SAMPLES, IgnoredReason, Insert, MAX_PAYLOAD_BYTES, MAX_REORDER, ReaderCache,
};
pub use reader_side::{Passed, Pulled, ReaderSide, Taken, TakenPayload};
pub use sample_info::{PayloadKind, Sample, SampleInfo, Selection};
pub use states::{InstanceState, InstanceStateMask, SampleState, SampleStateMask, ViewState, ViewStateMask};
pub use status::{
    IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus, QosPolicyCount,
    RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedReason,
    SampleRejectedStatus, SlowReaderStatus, StatusKind, StatusMask, SubscriptionMatchedStatus,
};
pub use taut_rtps::NewChange as Write;
pub use type_support::{ContentFilter, KeyHash, KeyOf, ONLY_INSTANCE, TypeSupport, instance_handle};
