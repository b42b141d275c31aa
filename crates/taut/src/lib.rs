//! Taut: a DDS with a bound on latency. The public Rust API.
//!
//! Five words carry a program: [`DomainParticipant`], [`Topic`], [`DataWriter`], [`DataReader`] and
//! [`Qos`]. Types derive [`DdsType`]. Everything else is DDS as the standard has it (DCPS 1.4), under
//! the standard's names; `docs/dds.md` lists what of it is not there, and what is instead.
//!
//! ```
//! use taut::{DdsType, Duration, Qos};
//! # use taut::{Config, DomainParticipant};
//!
//! #[derive(DdsType)]
//! #[dds(final)]
//! struct Hello {
//!     text: String,
//! }
//!
//! # fn main() -> taut::Result<()> {
//! # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
//! # let participant = DomainParticipant::with_config(&config)?;
//! # let _ = r#"
//! let participant = DomainParticipant::new(0)?;
//! # "#;
//! let topic = participant.topic::<Hello>("Hello")?;
//! let (writer, reader) = (topic.writer(Qos::default().reliable())?, topic.reader(Qos::default().reliable())?);
//! writer.write(&Hello { text: "hello, world".into() })?;
//! reader.wait(Duration::from_secs(1))?;
//! assert_eq!(reader.take_next()?.unwrap().data.unwrap().text, "hello, world");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod builtin;
mod builtin_reader;
mod config;
mod content_filtered_topic;
mod erase;
mod instances;
mod loan;
mod participant;
mod reader;
mod report;
mod stream;
mod topic;
mod untyped_reader;
mod untyped_writer;
mod writer;

pub use builtin::{EndpointKind, EndpointSummary, LocalMatch, ParticipantSummary};
pub use builtin_reader::{BuiltinData, BuiltinReader, BuiltinSample};
pub use config::{Config, Driver, Ipv6, Setting, XdpMode};
pub use content_filtered_topic::ContentFilteredTopic;
pub use loan::{Loan, LoanBytes, LoanSequence, View};
pub use participant::{DomainParticipant, Publisher, Subscriber};
pub use reader::{DataReader, Sample};
pub use report::{ClassReport, HistogramReport, ParticipantReport, REPORT_TOPIC, SpreadReport};
pub use stream::Samples;
pub use topic::{ReaderQos, Topic, WriterQos};
pub use writer::DataWriter;

pub use taut_base::{
    Duration, EntityId, Error, ErrorText, Guid, GuidPrefix, InstanceHandle, Locator, Result, SequenceNumber,
    Time, Timestamp, VendorId,
};
pub use taut_cdr as cdr;
pub use taut_cdr::{DdsType, Octets, Plain, Representation};
pub use taut_dcps::{
    IncompatibleQosStatus, InconsistentTopicStatus, InstanceState, InstanceStateMask,
    LivelinessChangedStatus, LivelinessLostStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, QosPolicyCount, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleAnatomy, SampleInfo, SampleLostStatus, SampleRejectedReason, SampleRejectedStatus, SampleState,
    SampleStateMask, Selection, SlowReaderStatus, Stage, StatusMask, SubscriptionMatchedStatus, ViewState,
    ViewStateMask,
};
pub use taut_derive::DdsType;
pub use taut_ethernet::Stats as FrameStats;
pub use taut_exec::XdpLayer;
pub use taut_exec::{
    Activity, DeadlineScheduling, FlightRecord, Histogram, JobClass, JobReport, LatencyReport, RecordCause,
    RecordedStep, SamplePath, SlowReader, Spread, Stats, Steady, wall_clock_now,
};
pub use taut_port_udp::Interface;
pub use taut_port_xdp::{
    AttachMode as XdpAttachMode, BindMode as XdpBindMode, Netd as XdpNetd, Probed as XdpProbed,
    QueueCounts as XdpQueueCounts,
};
pub use taut_qos as qos;
pub use taut_qos::{
    DataReaderQos, DataRepresentationId, DataWriterQos, DomainParticipantQos, DurabilityKind, History,
    LivelinessKind, PublisherQos, Qos, ReliabilityKind, SubscriberQos, TopicQos,
};

/// The programs of the README compile; `tests/readme.rs` runs them.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The programs of the manual run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/real-time.md")]
pub struct RealTime;

/// The program of what goes over the network runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/network.md")]
pub struct Network;

/// The program of the way of a sample runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-to-take.md")]
pub struct WriteToTake;

/// The programs of the types run; `tests/types.rs` has what else that page shows.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/types.md")]
pub struct Types;
