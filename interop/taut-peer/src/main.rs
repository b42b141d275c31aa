//! Taut's peer of the interoperability matrix: one writer, or several that share datagrams, or one reader.
//! With `--then`, one after the other.
//!
//! Command line and output are those of every peer; `../README.md` is the contract, `../types.idl` the
//! types. Uses the public API only.
#![forbid(unsafe_code)]

mod bell;
mod options;
mod publish;
mod subscribe;
mod tally;
mod types;

use std::process::ExitCode;

use clap::Parser;
use taut::{Config, DomainParticipant, Duration, Qos, Result};

use options::{Options, Role, SampleType};
use types::{Keyed, Metric, Plain, Sample, Shape};

/// All went as it should.
const COMPLETE: u8 = 0;
/// Taut itself refused something.
const BROKEN: u8 = 1;
/// What was waited for did not come in time.
const TIMED_OUT: u8 = 3;

/// How long a reliable write waits for slow readers, as in the other peers.
const MAX_BLOCKING: Duration = Duration::from_secs(10);
/// Often enough that a lost announcement costs a second, as in the other peers.
const ANNOUNCEMENT_PERIOD: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let options = match Options::parse().checked() {
        Ok(options) => options,
        Err(wrong) => wrong.exit(),
    };
    let outcome = match options.r#type {
        SampleType::Plain => run::<Plain>(&options),
        SampleType::Keyed => run::<Keyed>(&options),
        SampleType::Shape => run::<Shape>(&options),
        SampleType::Metric => run::<Metric>(&options),
    };
    outcome.map_or_else(
        |error| {
            eprintln!("taut-interop-peer: {error}");
            ExitCode::from(BROKEN)
        },
        ExitCode::from,
    )
}

fn run<T: Sample>(options: &Options) -> Result<u8> {
    let config = Config {
        domain_id: options.domain,
        interfaces: vec![options.interface.clone()],
        announcement_period: ANNOUNCEMENT_PERIOD,
        name: "interop".into(),
        ..Config::load()?
    };
    let participant = DomainParticipant::with_config(&config)?;
    let first = play::<T>(&participant, options)?;
    match &options.then {
        Some(topic) => play::<T>(&participant, &Options { topic: topic.clone(), ..options.clone() }),
        None => Ok(first),
    }
}

fn play<T: Sample>(participant: &DomainParticipant, options: &Options) -> Result<u8> {
    let topic = participant.topic::<T>(&options.topic)?;
    match options.role {
        Role::Pub => {
            let writers = (0..options.writers).map(|_| topic.writer(qos(options)));
            publish::publish(options, &mut writers.collect::<Result<Vec<_>>>()?)
        }
        Role::Sub => subscribe::subscribe(options, &topic.reader(qos(options))?),
    }
}

fn qos(options: &Options) -> Qos {
    let qos = Qos::default().history(options.history.0);
    // Otherwise unregistering would dispose as well.
    let qos = qos.autodispose_unregistered_instances(false);
    let qos = if options.is_reliable() { qos.max_blocking_time(MAX_BLOCKING) } else { qos.best_effort() };
    let qos = if options.is_transient_local() { qos.transient_local() } else { qos.volatile() };
    qos.partition(options.partition.clone())
}
