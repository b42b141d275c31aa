//! The roles `entities` and `node`: what entities cost, and how fast participants find each other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::{DataReader, DataWriter, Publisher, PublisherQos, Qos, Subscriber, SubscriberQos};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Payload, Stop};

use crate::settings::{Domain, qos};
use crate::types::Bytes;

/// The contract's number of writers, readers, publishers and subscribers.
const MANY: usize = 100;

/// How many samples the contract has held, and the size of each.
const HELD: usize = 1_000;
const HELD_SIZE: usize = 1_024;

/// Discovery of a hundred participants on two cores takes seconds; more is a failure.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// The role `entities`.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("waitset");
    let domain = Domain::open(options)?;
    step("participant", 1);
    let topic = domain.0.topic::<Bytes>("perf_entities")?;
    step("topic", 1);
    let writers: taut::Result<Vec<DataWriter<Bytes>>> =
        (0..MANY).map(|_| topic.writer(qos(options))).collect();
    let writers = writers?;
    step("writer", MANY);
    // On a topic of their own: a match of each with each would be counted as theirs.
    let topic = domain.0.topic::<Bytes>("perf_entities_read")?;
    let readers: taut::Result<Vec<DataReader<Bytes>>> =
        (0..MANY).map(|_| topic.reader(qos(options))).collect();
    let readers = readers?;
    step("reader", MANY);
    let publisher = |_| domain.0.publisher(PublisherQos::default());
    let publishers: Vec<Publisher> = (0..MANY).map(publisher).collect();
    step("publisher", MANY);
    let subscriber = |_| domain.0.subscriber(SubscriberQos::default());
    let subscribers: Vec<Subscriber> = (0..MANY).map(subscriber).collect();
    step("subscriber", MANY);
    let topic = domain.0.topic::<Bytes>("perf_entities_held")?;
    let holder = topic.writer(Qos::default().reliable().transient_local().keep_all())?;
    let sample = Bytes::sized(HELD_SIZE);
    holder.write(&sample)?;
    step("holding writer", 1);
    for _ in 0..HELD {
        holder.write(&sample)?;
    }
    step("held sample", HELD);
    Ok(json!({"entities": writers.len() + readers.len() + publishers.len() + subscribers.len()}))
}

/// The role `node`.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("waitset");
    let domain = Domain::open(options)?;
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let topic = domain.0.topic::<Bytes>(&format!("perf_node_{number}"))?;
        ends.push((topic.writer(qos(options))?, topic.reader(qos(options))?));
    }
    let end = Instant::now() + FOUND_WITHIN;
    let left = || end.saturating_duration_since(Instant::now());
    for (writer, reader) in &ends {
        writer.wait_matched_count(options.nodes, left())?;
        reader.wait_matched_count(options.nodes, left())?;
    }
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({}))
}
