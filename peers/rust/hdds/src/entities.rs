//! The roles `entities` and `node`: what entities cost, and how fast participants find each other.

use std::time::{Duration, Instant};

use hdds::TransportMode;
use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Stop};

use crate::ends::{participant, qos, reader, writer};
use crate::types::Sample;

/// The contract's number of writers, readers, publishers and subscribers.
const MANY: usize = 100;

/// Discovery of a hundred participants on two cores takes seconds; more is a failure.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// The role `entities`. Each end has a topic of its own: ends of one topic share their entity id in HDDS. No
/// step for held samples: all writers of a process share 272 slots of a kibibyte and more, and `write` says nothing when
/// they are full.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("listener");
    let participant = participant(options, TransportMode::UdpMulticast)?;
    step("participant", 1);
    let topic = participant.topic::<Sample>("perf_entities")?;
    step("topic", 1);
    let mut writers = Vec::new();
    for number in 0..MANY {
        writers.push(writer::<Sample>(&participant, &format!("perf_entities_w_{number}"), options)?);
    }
    step("writer", MANY);
    let mut readers = Vec::new();
    for number in 0..MANY {
        readers.push(reader::<Sample>(&participant, &format!("perf_entities_r_{number}"), options, |_| {})?);
    }
    step("reader", MANY);
    let publishers = (0..MANY).map(|_| participant.create_publisher(qos(options)));
    let publishers = publishers.collect::<Result<Vec<_>, _>>()?;
    step("publisher", MANY);
    let subscribers = (0..MANY).map(|_| participant.create_subscriber(qos(options)));
    let subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    step("subscriber", MANY);
    drop(topic);
    Ok(json!({"entities": writers.len() + readers.len() + publishers.len() + subscribers.len()}))
}

/// The role `node`. HDDS does not count the ends of its own participant.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("listener");
    let participant = participant(options, TransportMode::UdpMulticast)?;
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let topic = format!("perf_node_{number}");
        let (writer, writes) = writer::<Sample>(&participant, &topic, options)?;
        let (reader, reads) = reader::<Sample>(&participant, &topic, options, |_| {})?;
        ends.push((writer, reader, [writes, reads]));
    }
    let (end, others) = (Instant::now() + FOUND_WITHIN, options.nodes.saturating_sub(1));
    for (number, (_, _, matches)) in ends.iter().enumerate() {
        for (matches, kind) in matches.iter().zip(["writer", "reader"]) {
            let found = matches.wait(others, end.saturating_duration_since(Instant::now()));
            if found < others {
                let seen = format!("the {kind} of topic {number} is matched with {found} of {others}");
                return Err(Stop::Failed(format!("after {} s {seen}", FOUND_WITHIN.as_secs())));
            }
        }
    }
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({}))
}
