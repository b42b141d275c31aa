//! The roles `entities` and `node`: what entities cost, and how fast participants find each other.

use std::time::{Duration, Instant};

use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::status::NO_STATUS;
use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Payload, Stop};

use crate::ends::{self, Domain, enough, readers_of, writers_of};
use crate::types::Sample;

/// The contract's number of writers, readers, publishers and subscribers.
const MANY: usize = 100;

/// How many samples the contract has held, and the size of each.
const HELD: usize = 1_000;
const HELD_SIZE: usize = 1_024;

/// Discovery of a hundred participants on two cores takes seconds; more is a failure.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// The role `entities`. Readers stand on a topic of their own: Dust DDS matches within a participant.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("waitset");
    let participant = ends::participant(options)?;
    step("participant", 1);
    let written = ends::topic::<Sample>(&participant, "perf_entities")?;
    step("topic", 1);
    let publisher = || participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS);
    let subscriber = || participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS);
    let writing = publisher()?;
    let mut writers = Vec::new();
    for _ in 0..MANY {
        writers.push(ends::writer::<Sample>(&writing, &written, options)?);
    }
    step("writer", MANY);
    let read = ends::topic::<Sample>(&participant, "perf_entities_read")?;
    let reading = subscriber()?;
    let mut readers = Vec::new();
    for _ in 0..MANY {
        readers.push(ends::reader::<Sample>(&reading, &read, options)?);
    }
    step("reader", MANY);
    let publishers = (0..MANY).map(|_| publisher()).collect::<Result<Vec<_>, _>>()?;
    step("publisher", MANY);
    let subscribers = (0..MANY).map(|_| subscriber()).collect::<Result<Vec<_>, _>>()?;
    step("subscriber", MANY);
    let kept = ends::topic::<Sample>(&participant, "perf_entities_held")?;
    let holder = ends::holding_writer::<Sample>(&writing, &kept)?;
    holder.write(Sample::sized(HELD_SIZE), None)?;
    step("holding writer", 1);
    for _ in 0..HELD {
        holder.write(Sample::sized(HELD_SIZE), None)?;
    }
    step("held sample", HELD);
    Ok(json!({"entities": writers.len() + readers.len() + publishers.len() + subscribers.len()}))
}

/// The role `node`. Dust DDS counts the ends of its own participant too.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("waitset");
    let domain = Domain::open(options)?;
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let topic = domain.topic::<Sample>(&format!("perf_node_{number}"))?;
        ends.push((domain.writer::<Sample>(&topic, options)?, domain.reader::<Sample>(&topic, options)?));
    }
    let (until, all) = (Instant::now() + FOUND_WITHIN, options.nodes);
    for (number, (writer, reader)) in ends.iter().enumerate() {
        let found = readers_of(writer, all, until)?;
        enough(&format!("writer of topic {number}"), found, all, FOUND_WITHIN)?;
        let found = writers_of(reader, all, until)?;
        enough(&format!("reader of topic {number}"), found, all, FOUND_WITHIN)?;
    }
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({}))
}
