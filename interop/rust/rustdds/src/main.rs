//! RustDDS in the interoperability matrix: one writer or one reader.
//!
//! Command line and output are those of every peer; `interop/README.md` is the contract. RustDDS takes all
//! interfaces, so `--interface` chooses nothing, and knows no PARTITION, so that `--partition` is refused.

mod ends;
mod types;

use std::fmt::Display;
use std::process::ExitCode;

use rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use rustdds::{DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder, Topic, TopicKind};
use taut_interop_kit::{
    Kept, MAX_BLOCKING, Options, Refusal, Result, Role, SampleType, look_again, publish, subscribe,
};

use ends::End;
use types::{Data, Keyed, Metric, Plain, Shape};

/// What KEEP_ALL may hold, as RustDDS sets it for its own discovery. Its default is 64 samples: a reader
/// that is not fast enough then loses what it has acknowledged.
const KEEP_ALL_LIMITS: ResourceLimits =
    ResourceLimits { max_samples: 4_096, max_instances: 4_096, max_samples_per_instance: 4_096 };

fn main() -> ExitCode {
    taut_interop_kit::run("peer-rustdds", |options| {
        if options.partition.is_some() {
            return Err("RustDDS has no PARTITION; run it without --partition".into());
        }
        match options.r#type {
            SampleType::Plain => run_plain(options),
            SampleType::Keyed => run::<Keyed>(options),
            SampleType::Shape => run::<Shape>(options),
            SampleType::Metric => run::<Metric>(options),
        }
    })
}

/// What RustDDS refused, as a sentence.
fn refused<E: Display>(what: &str) -> impl FnOnce(E) -> Refusal {
    move |error| format!("{what}: {error}").into()
}

fn qos(options: &Options) -> QosPolicies {
    let blocking = rustdds::Duration::from_std(MAX_BLOCKING);
    QosPolicyBuilder::new()
        .reliability(match options.is_reliable() {
            true => Reliability::Reliable { max_blocking_time: blocking },
            false => Reliability::BestEffort,
        })
        .durability(match options.is_transient_local() {
            true => Durability::TransientLocal,
            false => Durability::Volatile,
        })
        .history(match options.history {
            Kept::All => History::KeepAll,
            Kept::Last(depth) => History::KeepLast { depth: depth.cast_signed() },
        })
        .resource_limits(KEEP_ALL_LIMITS)
        .build()
}

/// A participant with a topic of this type, and the QoS of its ends.
fn join(
    options: &Options,
    type_name: &str,
    kind: TopicKind,
) -> Result<(DomainParticipant, Topic, QosPolicies)> {
    let domain = u16::try_from(options.domain).map_err(refused("--domain"))?;
    let participant = DomainParticipantBuilder::new(domain).build().map_err(refused("participant"))?;
    let qos = qos(options);
    let topic = participant
        .create_topic(options.topic.clone(), type_name.into(), &qos, kind)
        .map_err(refused("create_topic"))?;
    Ok((participant, topic, qos))
}

fn run_plain(options: &Options) -> Result<u8> {
    let (participant, topic, qos) = join(options, "interop::Plain", TopicKind::NoKey)?;
    match options.role {
        Role::Pub => {
            let publisher = participant.create_publisher(&qos).map_err(refused("create_publisher"))?;
            let writer = publisher.create_datawriter_no_key_cdr::<Plain>(&topic, None);
            publish(options, &mut [End::new(writer.map_err(refused("create_datawriter"))?)], &look_again)
        }
        Role::Sub => {
            let subscriber = participant.create_subscriber(&qos).map_err(refused("create_subscriber"))?;
            let reader = subscriber.create_datareader_no_key_cdr::<Plain>(&topic, None);
            subscribe(options, &mut End::new(reader.map_err(refused("create_datareader"))?), &look_again)
        }
    }
}

fn run<T: Data>(options: &Options) -> Result<u8> {
    let (participant, topic, qos) = join(options, T::NAME, TopicKind::WithKey)?;
    match options.role {
        Role::Pub => {
            let publisher = participant.create_publisher(&qos).map_err(refused("create_publisher"))?;
            let writer = publisher.create_datawriter_cdr::<T>(&topic, None);
            publish(options, &mut [End::new(writer.map_err(refused("create_datawriter"))?)], &look_again)
        }
        Role::Sub => {
            let subscriber = participant.create_subscriber(&qos).map_err(refused("create_subscriber"))?;
            let reader = subscriber.create_datareader_cdr::<T>(&topic, None);
            subscribe(options, &mut End::new(reader.map_err(refused("create_datareader"))?), &look_again)
        }
    }
}
