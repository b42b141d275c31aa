//! The roles `entities` and `node`: what entities cost, and how fast nodes find each other.

use std::time::{Duration, Instant};

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::{Control, Options, Stop};

use crate::kind::{Factory, Kind, Slices};
use crate::line::{MATCH_LOOK, MATCH_WITHIN};
use crate::place::{self, wrong};

/// The contract's number of writers and of readers.
const MANY: usize = 100;

type Service = ipc::Service;

fn service(node: &Node<Service>, name: &str) -> Result<Factory<Service, Slices>, Stop> {
    Slices::service(node, &ServiceName::new(name).map_err(wrong)?)
}

/// The role `entities`. A service takes only so many ports, so each port has one of its own, which is
/// counted with it.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("waitset");
    let node = place::node::<Service>(options, control)?;
    step("participant", 1);
    let topic = service(&node, "perf_entities")?;
    step("topic", 1);
    let mut writers = Vec::new();
    for number in 0..MANY {
        let service = service(&node, &format!("perf_entities_write_{number}"))?;
        writers.push((Slices::publisher(&service, options.size)?, service));
    }
    step("writer", MANY);
    let mut readers = Vec::new();
    for number in 0..MANY {
        let service = service(&node, &format!("perf_entities_read_{number}"))?;
        readers.push((service.subscriber_builder().create().map_err(wrong)?, service));
    }
    step("reader", MANY);
    drop((writers, readers, topic));
    place::leave(node, options)?;
    Ok(json!({}))
}

/// The role `node`: all have found each other when each service counts the ports of all and is connected.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("waitset");
    let node = place::node::<Service>(options, control)?;
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let service = service(&node, &format!("perf_node_{number}"))?;
        let reader = service.subscriber_builder().create().map_err(wrong)?;
        ends.push((Slices::publisher(&service, options.size)?, reader, service));
    }
    let end = Instant::now() + MATCH_WITHIN;
    for (writer, reader, service) in &ends {
        let found = || {
            let ports = service.dynamic_config();
            ports.number_of_publishers().min(ports.number_of_subscribers()) >= options.nodes
        };
        while !found() {
            if Instant::now() >= end {
                return Err(Stop::Failed(format!("not all are there within {MATCH_WITHIN:?}")));
            }
            std::thread::sleep(MATCH_LOOK);
        }
        writer.update_connections().map_err(wrong)?;
        // A reader connects when it looks.
        reader.has_samples().map_err(wrong)?;
    }
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(ends);
    place::leave(node, options)?;
    Ok(json!({}))
}
