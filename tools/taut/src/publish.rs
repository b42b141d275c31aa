//! `taut pub`: writes samples at a rate.

use std::time::{Duration, Instant};

use serde::Serialize;
use taut::{DataWriter, DomainParticipant, Error, TopicQos};
use taut_perf::words::counted;

use crate::args::{Network, PublishArguments, PublishKind, PublishOptions};
use crate::failure::{End, Failure};
use crate::output;
use crate::stop::{self, Until};
use crate::subscribe::where_to_look;
use crate::types::{Metric, ShapeType, Spoken, Text};

/// How long the last samples may need until every reader has them. Less gives up on a slow link.
const ACKNOWLEDGE_S: f64 = 10.0;
/// How long a sample waits before the reader that it waits for is named; then four times as long, and so on. Lower
/// talks of readers that are slow for a moment, higher leaves the user wondering.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// Discovery on a local network needs some milliseconds. Less loses first samples, more is felt.
const SETTLE_S: f64 = 0.2;
/// The field of the shapes demo: width, height, and the size of a shape.
const FIELD: (i32, i32, i32) = (240, 270, 30);

/// Runs the command.
pub fn run(network: &Network, arguments: &PublishArguments) -> Result<End, Failure> {
    match &arguments.kind {
        PublishKind::Shapes { topic, type_name, color, options } => {
            let mut shape = Bouncing::new(color);
            publish::<ShapeType>(network, topic, type_name, options, |_| shape.next())
        }
        PublishKind::String { topic, type_name, text, options } => {
            publish(network, topic, type_name, options, |_| Text { data: text.clone() })
        }
        PublishKind::Metric { topic, type_name, name, value, unit, options } => {
            publish(network, topic, type_name, options, |seq| Metric {
                name: name.clone(),
                seq,
                sent_unix_ns: taut::wall_clock_now().to_unix_ns(),
                value: *value,
                unit: unit.clone(),
            })
        }
    }
}

/// A shape on its way through the field.
struct Bouncing {
    shape: ShapeType,
    step: (i32, i32),
}

impl Bouncing {
    fn new(color: &str) -> Bouncing {
        let (width, height, shapesize) = FIELD;
        // Shapes of different colors start apart, so that they do not cover each other.
        let spread = color.bytes().fold(7_i32, |sum, byte| (sum * 31 + i32::from(byte)) % 10_007);
        let (x, y) =
            (shapesize + spread % (width - 2 * shapesize), shapesize + spread % (height - 2 * shapesize));
        Bouncing { shape: ShapeType { color: color.to_owned(), x, y, shapesize }, step: (3, 2) }
    }

    fn next(&mut self) -> ShapeType {
        let (width, height, size) = FIELD;
        let bounce = |at: &mut i32, step: &mut i32, end: i32| {
            *at += *step;
            if *at <= size / 2 || *at >= end - size / 2 {
                *step = -*step;
            }
        };
        bounce(&mut self.shape.x, &mut self.step.0, width);
        bounce(&mut self.shape.y, &mut self.step.1, height);
        self.shape.clone()
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    topic: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    number: u64,
    data: &'a T,
}

fn publish<T: Spoken>(
    network: &Network,
    topic_name: &str,
    type_name: &str,
    options: &PublishOptions,
    mut sample: impl FnMut(u64) -> T,
) -> Result<End, Failure> {
    let participant = network.join("pub")?;
    let topic = participant.topic_as::<T>(topic_name, type_name, TopicQos::default())?;
    let writer = topic.writer(options.qos.writer())?;
    if !options.no_wait {
        wait_for_reader(&participant, &writer, options.wait, topic_name)?;
    }
    let period =
        if options.rate > 0.0 { Duration::try_from_secs_f64(1.0 / options.rate) } else { Ok(Duration::ZERO) };
    // A time that no clock tells does not come.
    let mut due = Some(Instant::now());
    let mut number = 0;
    while options.count.is_none_or(|count| number < count) && !stop::requested() {
        let sample = sample(number);
        if !write(&writer, &sample)? {
            break;
        }
        if options.json {
            output::json(&Line { topic: topic_name, type_name, number, data: &sample })?;
        }
        number += 1;
        if options.count == Some(number) {
            break;
        }
        due = due.zip(period.as_ref().ok()).and_then(|(due, period)| due.checked_add(*period));
        stop::sleep(Until::at(due));
    }
    let published = format!("published {}", counted(number as usize, "sample"));
    let told = Until::after(Some(ACKNOWLEDGE_S));
    match stop::wait(told, |slice| writer.wait_for_acknowledgments(slice)) {
        Ok(()) => {
            output::note(&published);
            Ok(End::Done)
        }
        Err(Error::Timeout(_)) if stop::requested() => {
            output::note(&format!("{published}, not all acknowledged"));
            Ok(End::Done)
        }
        Err(Error::Timeout(whom)) => {
            output::note(&format!(
                "{published}, but some were not acknowledged in {ACKNOWLEDGE_S} s: {whom}"
            ));
            Ok(End::TimedOut)
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits until there is somebody to write to; samples before that would be lost.
fn wait_for_reader<T: Spoken>(
    participant: &DomainParticipant,
    writer: &DataWriter<T>,
    seconds: f64,
    topic: &str,
) -> Result<(), Failure> {
    match stop::wait(Until::after(Some(seconds)), |slice| writer.wait_matched(slice)) {
        Err(Error::Timeout(why)) if !stop::requested() => {
            let more = where_to_look(participant);
            let why = if why.is_empty() { String::new() } else { format!(": {why}; {more}") };
            output::note(&format!("no reader of {topic} after {seconds} s, publishing all the same{why}"));
            Ok(())
        }
        Err(Error::Timeout(_)) => Ok(()),
        other => {
            other?;
            settle();
            Ok(())
        }
    }
}

/// Gives the readers that have matched here time to match there: they learn of it by a message of their
/// own, and a volatile reader of Cyclone DDS or Fast DDS passes over what was written before that.
pub fn settle() {
    stop::sleep(Until::after(Some(SETTLE_S)));
}

/// Writes a sample, as long as a slow reader lets it wait; `false` if the process was asked to end.
pub fn write<T: Spoken>(writer: &DataWriter<T>, sample: &T) -> Result<bool, Failure> {
    let began = Instant::now();
    let mut tell_after = TELL_AFTER;
    loop {
        match writer.write(sample) {
            Ok(()) => return Ok(true),
            Err(Error::Timeout(_)) if stop::requested() => return Ok(false),
            Err(Error::Timeout(whom)) if began.elapsed() >= tell_after => {
                output::note(&format!("a sample has waited {} s: {whom}", began.elapsed().as_secs()));
                tell_after = tell_after.saturating_mul(4);
            }
            Err(Error::Timeout(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_stays_in_the_field() {
        for color in ["BLUE", "RED", "", "a color of many letters"] {
            let mut shape = Bouncing::new(color);
            let first = shape.next();
            let mut moved = false;
            for _ in 0..10_000 {
                let ShapeType { x, y, .. } = shape.next();
                assert!((0..=FIELD.0).contains(&x) && (0..=FIELD.1).contains(&y), "{color} {x} {y}");
                moved |= x < first.x;
            }
            assert!(moved, "it turned around");
        }
    }
}
