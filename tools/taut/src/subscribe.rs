//! `taut sub`: prints samples as they come.

use std::collections::BTreeMap;

use serde::Serialize;
use taut::{DomainParticipant, Error, InstanceState, Sample, SampleAnatomy, TopicQos};

use crate::args::{Network, SubscribeArguments, SubscribeKind, SubscribeOptions};
use crate::failure::{End, Failure};
use crate::output;
use crate::stop::{self, Until};
use crate::types::{Metric, ShapeType, Spoken, Text};

/// Runs the command.
pub fn run(network: &Network, arguments: &SubscribeArguments) -> Result<End, Failure> {
    match &arguments.kind {
        SubscribeKind::Shapes { topic, type_name, options } => {
            subscribe::<ShapeType>(network, topic, type_name, options)
        }
        SubscribeKind::String { topic, type_name, options } => {
            subscribe::<Text>(network, topic, type_name, options)
        }
        SubscribeKind::Metric { topic, type_name, options } => {
            subscribe::<Metric>(network, topic, type_name, options)
        }
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    topic: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    writer: String,
    sequence_number: i64,
    source_unix_ns: Option<i64>,
    instance_state: &'static str,
    data: Option<&'a T>,
    /// Of a sample without data: what is known of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The stages of its way, in ns; null for what two clocks would tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    anatomy: Option<BTreeMap<&'static str, Option<i64>>>,
}

/// Samples remembered with `--anatomy`, unless the settings say how many: each is looked up when it is taken.
const REMEMBERED: usize = 256;

/// The standard's name of a state.
fn state_name(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Alive => "ALIVE",
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS",
    }
}

fn subscribe<T: Spoken>(
    network: &Network,
    topic_name: &str,
    type_name: &str,
    options: &SubscribeOptions,
) -> Result<End, Failure> {
    let mut config = network.config_as("sub")?;
    if options.anatomy && config.anatomy == 0 {
        config.anatomy = REMEMBERED;
    }
    let participant = DomainParticipant::with_config(&config)?;
    let topic = participant.topic_as::<T>(topic_name, type_name, TopicQos::default())?;
    let reader = topic.reader(options.qos.reader())?;
    let until = Until::after(options.timeout);
    let mut received: u64 = 0;
    let complete = |received| options.count.is_some_and(|count| received >= count);
    let ends = |received| complete(received) || stop::requested() || until.over();
    while !complete(received) {
        while let Some(sample) = reader.take_next()? {
            let anatomy = if options.anatomy { reader.anatomy_of(&sample.info) } else { None };
            print(topic_name, type_name, options.json, &sample, anatomy)?;
            received += u64::from(sample.data.is_some());
            if ends(received) {
                break;
            }
        }
        if ends(received) {
            break;
        }
        match stop::wait(until, |slice| reader.wait(slice)) {
            Ok(()) => {}
            Err(Error::Timeout(_)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let samples = if received == 1 { "sample" } else { "samples" };
    output::note(&format!("received {received} {samples} of {topic_name}"));
    let in_time = complete(received) || options.count.is_none() || stop::requested();
    Ok(if in_time { End::Done } else { End::TimedOut })
}

fn print<T: Spoken>(
    topic: &str,
    type_name: &str,
    json: bool,
    sample: &Sample<T>,
    anatomy: Option<SampleAnatomy>,
) -> std::io::Result<()> {
    let state = state_name(sample.info.instance_state);
    if json {
        return output::json(&Line {
            topic,
            type_name,
            writer: taut::Guid::from_bytes(sample.info.publication_handle.0).to_string(),
            sequence_number: sample.info.sequence_number.0,
            source_unix_ns: sample.info.source_timestamp.map(taut::Timestamp::to_unix_ns),
            instance_state: state,
            data: sample.data.as_ref(),
            key: sample.key.as_ref().map(Spoken::key),
            anatomy: anatomy.map(|one| {
                one.stages().map(|(stage, time)| (stage.name(), time.map(|time| time.0))).collect()
            }),
        });
    }
    match (&sample.data, &sample.key) {
        (Some(data), _) => output::line(&data.line())?,
        (None, Some(key)) => output::line(&format!("{:<8} {state}", key.key()))?,
        (None, None) => output::line(&format!("(an instance) {state}"))?,
    }
    anatomy.map_or(Ok(()), |one| output::line(&format!("  {one}")))
}
