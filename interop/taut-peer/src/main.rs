//! Taut's peer of the interoperability matrix: one writer, or several that share datagrams, or one reader.
//! With `--then`, one after the other.
//!
//! Command line and output are those of every peer; `../README.md` is the contract, `../types.idl` the
//! types. Uses the public API only.
#![forbid(unsafe_code)]

mod bell;
mod ends;
mod types;

use std::process::ExitCode;
use std::sync::Arc;

use taut::{Config, DomainParticipant, Duration, History, PublisherQos, Qos};
use taut_interop_kit::{Kept, MAX_BLOCKING, Options, Result, Role, SampleType, publish, subscribe};

use bell::Bell;
use ends::{Reader, Writer};
use types::{Data, Keyed, Metric, Plain, Shape};

/// Often enough that a lost announcement costs a second, as in the other peers.
const ANNOUNCEMENT_PERIOD: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    taut_interop_kit::run("taut-interop-peer", |options| match options.r#type {
        SampleType::Plain => run::<Plain>(options),
        SampleType::Keyed => run::<Keyed>(options),
        SampleType::Shape => run::<Shape>(options),
        SampleType::Metric => run::<Metric>(options),
    })
}

fn run<T: Data>(options: &Options) -> Result<u8> {
    let config = Config {
        domain_id: options.domain,
        interfaces: vec![options.interface.clone()],
        announcement_period: ANNOUNCEMENT_PERIOD,
        name: "interop".into(),
        ..Config::load()?
    };
    let participant = DomainParticipant::with_config(&config)?;
    // All is critical where there is a port for that.
    let priority = if config.critical_port > 0 { 100 } else { 0 };
    let first = play::<T>(&participant, options, priority)?;
    match &options.then {
        Some(topic) => {
            play::<T>(&participant, &Options { topic: topic.clone(), ..options.clone() }, priority)
        }
        None => Ok(first),
    }
}

fn play<T: Data>(participant: &DomainParticipant, options: &Options, priority: i32) -> Result<u8> {
    let topic = participant.topic::<T>(&options.topic)?;
    let qos = || qos(options).transport_priority(priority);
    let bell = Bell::new();
    match options.role {
        Role::Pub => {
            let partition = options.partition.iter().cloned().collect();
            let publisher = participant.publisher(PublisherQos { partition, ..PublisherQos::default() });
            let publisher = Arc::new(publisher);
            let mut writers = Vec::new();
            for _ in 0..options.writers {
                let writer = publisher.writer(&topic, qos())?;
                writer.set_listener(bell.listener());
                let suspended = (options.writers > 1).then(|| Arc::clone(&publisher));
                writers.push(Writer { writer, suspended });
            }
            publish(options, &mut writers, &|end| bell.wait_until(end))
        }
        Role::Sub => {
            let reader = topic.reader(qos())?;
            reader.set_listener(bell.listener());
            subscribe(options, &mut Reader(reader), &|end| bell.wait_until(end))
        }
    }
}

fn qos(options: &Options) -> Qos {
    let qos = Qos::default().history(match options.history {
        Kept::All => History::KeepAll,
        Kept::Last(depth) => History::KeepLast(depth),
    });
    // Otherwise unregistering would dispose as well.
    let qos = qos.autodispose_unregistered_instances(false);
    let qos = if options.is_reliable() {
        qos.reliable().max_blocking_time(MAX_BLOCKING)
    } else {
        qos.best_effort()
    };
    let qos = if options.is_transient_local() { qos.transient_local() } else { qos.volatile() };
    qos.partition(options.partition.clone())
}
