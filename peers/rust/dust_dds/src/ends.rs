//! Participants, writers and readers of Dust DDS as the options ask for them, and when they are matched.

use std::time::{Duration, Instant};

use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::{DdsError, DdsResult};
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::DurationKind;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::publication::publisher::Publisher;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::subscription::subscriber::Subscriber;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::wait_set::{Condition, WaitSet};
use taut_perf_kit::{Options, Stop};

use crate::types::Data;

/// A hundred times what its discovery takes on an idle machine.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);

/// How long `write` may wait for room: longer than any machine stalls, and as long as a `pub` waits at its
/// end.
pub const BLOCK_AT_MOST: Duration = Duration::from_secs(5);

/// A participant on the interface of the options.
pub fn participant(options: &Options) -> Result<DomainParticipant, Stop> {
    let factory = DomainParticipantFactory::get_instance();
    factory.get_mut_transport().set_interface_name(Some(options.interface.clone()));
    let domain = i32::try_from(options.domain)?;
    Ok(factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS)?)
}

fn reliability(options: &Options) -> ReliabilityQosPolicy {
    let kind = match options.reliable() {
        true => ReliabilityQosPolicyKind::Reliable,
        false => ReliabilityQosPolicyKind::BestEffort,
    };
    ReliabilityQosPolicy { kind, max_blocking_time: DurationKind::Finite(BLOCK_AT_MOST.into()) }
}

fn history(options: &Options) -> HistoryQosPolicy {
    let kind = match options.depth() {
        Some(depth) => HistoryQosPolicyKind::KeepLast(depth as u32),
        None => HistoryQosPolicyKind::KeepAll,
    };
    HistoryQosPolicy { kind }
}

/// A participant with one publisher and one subscriber.
pub struct Domain {
    participant: DomainParticipant,
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Domain {
    /// With the defaults of Dust DDS.
    pub fn open(options: &Options) -> Result<Domain, Stop> {
        let participant = participant(options)?;
        let publisher = participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS)?;
        let subscriber = participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS)?;
        Ok(Domain { participant, publisher, subscriber })
    }

    /// A topic of this type.
    pub fn topic<T: Data>(&self, name: &str) -> Result<Topic, Stop> {
        topic::<T>(&self.participant, name)
    }

    /// A writer.
    pub fn writer<T: Data>(&self, topic: &Topic, options: &Options) -> Result<DataWriter<T>, Stop> {
        writer(&self.publisher, topic, options)
    }

    /// A reader.
    pub fn reader<T: Data>(&self, topic: &Topic, options: &Options) -> Result<DataReader<T>, Stop> {
        reader(&self.subscriber, topic, options)
    }
}

/// A topic of this type.
pub fn topic<T: Data>(participant: &DomainParticipant, name: &str) -> Result<Topic, Stop> {
    let type_name = T::TYPE.get_name();
    Ok(participant.create_topic::<T>(name, type_name, QosKind::Default, NO_LISTENER, NO_STATUS)?)
}

/// A writer with the QoS that the options ask for.
pub fn writer<T: Data>(
    publisher: &Publisher,
    topic: &Topic,
    options: &Options,
) -> Result<DataWriter<T>, Stop> {
    let (reliability, history) = (reliability(options), history(options));
    let qos = QosKind::Specific(DataWriterQos { reliability, history, ..Default::default() });
    Ok(publisher.create_datawriter::<T>(topic, qos, NO_LISTENER, NO_STATUS)?)
}

/// A writer that keeps all for readers to come.
pub fn holding_writer<T: Data>(publisher: &Publisher, topic: &Topic) -> Result<DataWriter<T>, Stop> {
    let max_blocking_time = DurationKind::Finite(BLOCK_AT_MOST.into());
    let qos = QosKind::Specific(DataWriterQos {
        reliability: ReliabilityQosPolicy { kind: ReliabilityQosPolicyKind::Reliable, max_blocking_time },
        durability: DurabilityQosPolicy { kind: DurabilityQosPolicyKind::TransientLocal },
        history: HistoryQosPolicy { kind: HistoryQosPolicyKind::KeepAll },
        ..Default::default()
    });
    Ok(publisher.create_datawriter::<T>(topic, qos, NO_LISTENER, NO_STATUS)?)
}

/// A reader with the QoS that the options ask for.
pub fn reader<T: Data>(
    subscriber: &Subscriber,
    topic: &Topic,
    options: &Options,
) -> Result<DataReader<T>, Stop> {
    let (reliability, history) = (reliability(options), history(options));
    let qos = QosKind::Specific(DataReaderQos { reliability, history, ..Default::default() });
    Ok(subscriber.create_datareader::<T>(topic, qos, NO_LISTENER, NO_STATUS)?)
}

/// Waits until a writer is matched with so many readers; how many there are in the end.
pub fn readers_of<T: Data>(writer: &DataWriter<T>, count: usize, until: Instant) -> Result<usize, Stop> {
    let condition = writer.get_statuscondition();
    condition.set_enabled_statuses(&[StatusKind::PublicationMatched])?;
    matched(Condition::StatusCondition(condition), count, until, || {
        Ok(writer.get_publication_matched_status()?.current_count)
    })
}

/// Waits until a reader is matched with so many writers; how many there are in the end.
pub fn writers_of<T: Data>(reader: &DataReader<T>, count: usize, until: Instant) -> Result<usize, Stop> {
    let condition = reader.get_statuscondition();
    condition.set_enabled_statuses(&[StatusKind::SubscriptionMatched])?;
    matched(Condition::StatusCondition(condition), count, until, || {
        Ok(reader.get_subscription_matched_status()?.current_count)
    })
}

fn matched(
    condition: Condition,
    count: usize,
    until: Instant,
    current: impl Fn() -> DdsResult<i32>,
) -> Result<usize, Stop> {
    let mut waitset = WaitSet::new();
    waitset.attach_condition(condition)?;
    loop {
        let found = current()? as usize;
        let left = until.saturating_duration_since(Instant::now());
        if found >= count || left.is_zero() {
            return Ok(found);
        }
        match waitset.wait(left.into()) {
            Ok(_) | Err(DdsError::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// An error if fewer were found than there are.
pub fn enough(kind: &str, found: usize, count: usize, within: Duration) -> Result<(), Stop> {
    if found >= count {
        return Ok(());
    }
    let seen = format!("the {kind} is matched with {found} of {count}");
    Err(Stop::Failed(format!("after {} s {seen}", within.as_secs())))
}
