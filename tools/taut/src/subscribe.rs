//! `taut sub`: prints samples as they come.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde::Serialize;
use taut::{DataReader, DomainParticipant, Duration, Error, InstanceState, Sample, SampleAnatomy, TopicQos};
use taut_perf::words::counted;

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

/// Who has heard nothing for so long is told why. Lower talks of writers that are about to be found, higher leaves the user
/// wondering.
const TELL_AFTER_S: f64 = 5.0;

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
    let mut patience = Some(Until::after(Some(TELL_AFTER_S)));
    let complete = |received| options.count.is_some_and(|count| received >= count);
    let ends = |received| complete(received) || stop::requested() || until.over();
    while !complete(received) {
        while let Some(sample) = reader.take_next()? {
            let anatomy = if options.anatomy { reader.anatomy_of(&sample.info) } else { None };
            match print(topic_name, type_name, options.json, &sample, anatomy, until) {
                Ok(()) => received += u64::from(sample.data.is_some()),
                // Nobody takes it, and this is to end: it has come all the same.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    patience = None;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            if ends(received) {
                break;
            }
        }
        if ends(received) {
            break;
        }
        let wait = |slice| {
            if received == 0 && patience.is_some_and(Until::over) {
                patience = None;
                tell_why(&participant, &reader, topic_name);
            }
            reader.wait(slice)
        };
        match stop::wait(until, wait) {
            Ok(()) => {}
            Err(Error::Timeout(_)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if received == 0 && patience.is_some() && !stop::requested() {
        tell_why(&participant, &reader, topic_name);
    }
    let (lost, rejected) = (reader.sample_lost_status(), reader.sample_rejected_status());
    output::note(&ending(received, topic_name, lost.total_count, rejected.total_count));
    let in_time = complete(received) || options.count.is_none() || stop::requested();
    Ok(if in_time { End::Done } else { End::TimedOut })
}

/// What has come, and what has not if the reader knows of any.
fn ending(received: u64, topic: &str, lost: u32, rejected: u32) -> String {
    let mut text = format!("received {} of {topic}", counted(received as usize, "sample"));
    for (count, what) in [(lost, "lost"), (rejected, "rejected")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// What tells more of an endpoint that has no match.
pub fn where_to_look(participant: &DomainParticipant) -> &'static str {
    if participant.discovered_participants().iter().all(|about| about.own) {
        "`taut doctor` says what of this machine keeps others from being found"
    } else {
        "`taut ls` lists what there is"
    }
}

/// Nothing has come so far: tells whether there is a writer, and if not, what is known of why.
fn tell_why<T: Spoken>(participant: &DomainParticipant, reader: &DataReader<T>, topic: &str) {
    match reader.wait_matched(Duration(1)) {
        Ok(()) => output::note(&format!("no sample of {topic} so far, though there is a writer of it")),
        Err(Error::Timeout(why)) => {
            output::note(&format!("no sample of {topic} so far: {why}; {}", where_to_look(participant)));
        }
        Err(error) => output::note(&error.to_string()),
    }
}

fn print<T: Spoken>(
    topic: &str,
    type_name: &str,
    json: bool,
    sample: &Sample<T>,
    anatomy: Option<SampleAnatomy>,
    until: Until,
) -> std::io::Result<()> {
    let state = state_name(sample.info.instance_state);
    if json {
        let line = Line {
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
        };
        return output::json_until(&line, until);
    }
    let mut text = match (&sample.data, &sample.key) {
        (Some(data), _) => output::escaped(&data.line()),
        (None, Some(key)) => format!("{:<8} {state}", output::escaped(key.key())),
        (None, None) => format!("(an instance) {state}"),
    };
    if let Some(one) = anatomy {
        text += &format!("\n  {one}");
    }
    output::line_until(&text, until)
}

#[cfg(test)]
mod tests {
    use super::ending;

    #[test]
    fn what_did_not_come_is_told_if_there_is_any() {
        assert_eq!(ending(1, "Square", 0, 0), "received 1 sample of Square");
        assert_eq!(ending(1_581, "Square", 419, 0), "received 1581 samples of Square, 419 lost");
        assert_eq!(ending(2, "Square", 3, 4), "received 2 samples of Square, 3 lost, 4 rejected");
    }
}
