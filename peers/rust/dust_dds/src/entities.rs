//! The roles `entities` and `node`: what entities cost, and how fast participants find each other.

use std::time::{Duration, Instant};

use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::status::NO_STATUS;
use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Stop};

use crate::ends::{self, Domain, enough, readers_of, writers_of};
use crate::types::Sample;

/// The contract's number of writers and of readers.
const MANY: usize = 100;

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
    let publisher = participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS)?;
    step("publisher", 1);
    let subscriber = participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS)?;
    step("subscriber", 1);
    let mut writers = Vec::new();
    for _ in 0..MANY {
        writers.push(ends::writer::<Sample>(&publisher, &written, options)?);
    }
    step("writer", MANY);
    let read = ends::topic::<Sample>(&participant, "perf_entities_read")?;
    let mut readers = Vec::new();
    for _ in 0..MANY {
        readers.push(ends::reader::<Sample>(&subscriber, &read, options)?);
    }
    step("reader", MANY);
    Ok(json!({"entities": writers.len() + readers.len()}))
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
