//! Participants, writers and readers of RustDDS as the options ask for them, and when they are matched.

use std::time::{Duration, Instant};

use rustdds::dds::statusevents::{DataReaderStatus, DataWriterStatus};
use rustdds::no_key::{DataReader, DataWriter};
use rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, Publisher, QosPolicies, QosPolicyBuilder, StatusEvented,
    Subscriber, Topic, TopicKind,
};
use taut_perf_kit::{Options, Stop};

use crate::types::Data;
use crate::wait::Waiter;

/// A hundred times what its discovery takes on an idle machine.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);

/// How long `write` may wait for room: longer than any machine stalls, and as long as a `pub` waits at its
/// end.
const BLOCK_AT_MOST: rustdds::Duration = rustdds::Duration::from_secs(5);

/// What KEEP_ALL may hold, as RustDDS sets it for its own discovery. Its default is 64 samples: a reader
/// that is not fast enough then loses what it has acknowledged.
const KEEP_ALL_LIMITS: ResourceLimits =
    ResourceLimits { max_samples: 4_096, max_instances: 4_096, max_samples_per_instance: 4_096 };

/// A participant with one publisher and one subscriber.
pub struct Domain {
    participant: DomainParticipant,
    publisher: Publisher,
    subscriber: Subscriber,
    qos: QosPolicies,
}

impl Domain {
    /// On all interfaces that RustDDS finds, loopback to the same host included: its default.
    pub fn open(options: &Options) -> Result<Domain, Stop> {
        let domain = u16::try_from(options.domain)?;
        let participant = DomainParticipantBuilder::new(domain).build()?;
        let qos = qos(options);
        let (publisher, subscriber) =
            (participant.create_publisher(&qos)?, participant.create_subscriber(&qos)?);
        Ok(Domain { participant, publisher, subscriber, qos })
    }

    /// A topic without a key.
    pub fn topic(&self, name: &str, options: &Options) -> Result<Topic, Stop> {
        let type_name = format!("perf::{}", options.kind);
        Ok(self.participant.create_topic(name.into(), type_name, &self.qos, TopicKind::NoKey)?)
    }

    /// A writer.
    pub fn writer<T: Data>(&self, topic: &Topic) -> Result<DataWriter<T>, Stop> {
        Ok(self.publisher.create_datawriter_no_key_cdr::<T>(topic, None)?)
    }

    /// A reader.
    pub fn reader<T: Data>(&self, topic: &Topic) -> Result<DataReader<T>, Stop> {
        Ok(self.subscriber.create_datareader_no_key_cdr::<T>(topic, None)?)
    }
}

/// The QoS that the options ask for.
pub fn qos(options: &Options) -> QosPolicies {
    let reliability = match options.reliable() {
        true => Reliability::Reliable { max_blocking_time: BLOCK_AT_MOST },
        false => Reliability::BestEffort,
    };
    let builder = QosPolicyBuilder::new().reliability(reliability).durability(Durability::Volatile);
    match options.depth() {
        Some(depth) => builder.history(History::KeepLast { depth: depth as i32 }).build(),
        None => builder.history(History::KeepAll).resource_limits(KEEP_ALL_LIMITS).build(),
    }
}

/// Waits until a writer is matched with so many readers; how many there are in the end.
pub fn readers_of<T: Data>(writer: &DataWriter<T>, waiter: &Waiter, count: usize, until: Instant) -> usize {
    let (mut events, mut found) = (writer.as_async_status_stream(), 0);
    while found < count {
        match waiter.next(&mut events, until) {
            Some(DataWriterStatus::PublicationMatched { current, .. }) => found = current.count() as usize,
            Some(_) => {}
            None => break,
        }
    }
    found
}

/// Waits until a reader is matched with so many writers; how many there are in the end.
pub fn writers_of<T: Data>(reader: &DataReader<T>, waiter: &Waiter, count: usize, until: Instant) -> usize {
    let (mut events, mut found) = (reader.as_async_status_stream(), 0);
    while found < count {
        match waiter.next(&mut events, until) {
            Some(DataReaderStatus::SubscriptionMatched { current, .. }) => found = current.count() as usize,
            Some(_) => {}
            None => break,
        }
    }
    found
}

/// An error if fewer were found than there are.
pub fn enough(kind: &str, found: usize, count: usize, within: Duration) -> Result<(), Stop> {
    if found >= count {
        return Ok(());
    }
    let seen = format!("the {kind} is matched with {found} of {count}");
    Err(Stop::Failed(format!("after {} s {seen}", within.as_secs())))
}
