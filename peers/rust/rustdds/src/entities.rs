//! The roles `entities` and `node`: what entities cost, and how fast participants find each other.

use std::time::{Duration, Instant};

use rustdds::DomainParticipantBuilder;
use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Stop};

use crate::ends::{Domain, enough, qos, readers_of, writers_of};
use crate::types::Sample;
use crate::wait::Waiter;

/// The contract's number of writers, readers, publishers and subscribers.
const MANY: usize = 100;

/// Discovery of a hundred participants on two cores takes seconds; more is a failure.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// The role `entities`. Readers stand on a topic of their own: RustDDS matches within a participant. No step for
/// held samples: a thread of its own stores them, and nothing tells when it has.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("waitset");
    let participant = DomainParticipantBuilder::new(u16::try_from(options.domain)?).build()?;
    step("participant", 1);
    let (qos, kind) = (qos(options), rustdds::TopicKind::NoKey);
    let written = participant.create_topic("perf_entities".into(), "perf::bytes".into(), &qos, kind)?;
    step("topic", 1);
    let publisher = participant.create_publisher(&qos)?;
    let mut writers = Vec::new();
    for _ in 0..MANY {
        writers.push(publisher.create_datawriter_no_key_cdr::<Sample>(&written, None)?);
    }
    step("writer", MANY);
    let read = participant.create_topic("perf_entities_read".into(), "perf::bytes".into(), &qos, kind)?;
    let subscriber = participant.create_subscriber(&qos)?;
    let mut readers = Vec::new();
    for _ in 0..MANY {
        readers.push(subscriber.create_datareader_no_key_cdr::<Sample>(&read, None)?);
    }
    step("reader", MANY);
    let publishers = (0..MANY).map(|_| participant.create_publisher(&qos));
    let publishers = publishers.collect::<Result<Vec<_>, _>>()?;
    step("publisher", MANY);
    let subscribers = (0..MANY).map(|_| participant.create_subscriber(&qos));
    let subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    step("subscriber", MANY);
    Ok(json!({"entities": writers.len() + readers.len() + publishers.len() + subscribers.len()}))
}

/// The role `node`. RustDDS counts the ends of its own participant too.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("waitset");
    let (domain, waiter) = (Domain::open(options)?, Waiter::new());
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let topic = domain.topic(&format!("perf_node_{number}"), options)?;
        ends.push((domain.writer::<Sample>(&topic)?, domain.reader::<Sample>(&topic)?));
    }
    let (until, all) = (Instant::now() + FOUND_WITHIN, options.nodes);
    for (number, (writer, reader)) in ends.iter().enumerate() {
        let found = readers_of(writer, &waiter, all, until);
        enough(&format!("writer of topic {number}"), found, all, FOUND_WITHIN)?;
        let found = writers_of(reader, &waiter, all, until);
        enough(&format!("reader of topic {number}"), found, all, FOUND_WITHIN)?;
    }
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({}))
}
