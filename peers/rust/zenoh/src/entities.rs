//! The roles `entities` and `node`: what entities cost, and how fast sessions find each other.

use std::time::Duration;

use serde_json::{Value, json};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::packed::Bytes;
use taut_perf_kit::{Control, Options, Stop};
use zenoh::Wait;

use crate::ends::Writer;
use crate::session::{Domain, wrong};

/// The contract's number of writers and of readers.
const MANY: usize = 100;

/// The role `entities`. There is no publisher or subscriber beside what writes and reads.
pub fn steps(options: &Options, control: &Control) -> Result<Value, Stop> {
    let step = |name: &str, count: usize| {
        control.event(&json!({"event": "step", "name": name, "count": count}));
        control.wait_go();
    };
    control.ready("listener");
    let domain = Domain::open(options)?;
    step("participant", 1);
    let topic = domain.session().declare_keyexpr("perf_entities").wait().map_err(wrong)?;
    step("topic", 1);
    let writers: Result<Vec<Writer<Bytes>>, Stop> =
        (0..MANY).map(|number| Writer::new(&domain, &format!("perf_write_{number}"), options)).collect();
    let writers = writers?;
    step("writer", MANY);
    let readers: Result<Vec<_>, Stop> =
        (0..MANY).map(|number| domain.listen(&format!("perf_read_{number}"), drop)).collect();
    let readers = readers?;
    step("reader", MANY);
    drop((writers, readers, topic));
    Ok(json!({}))
}

/// The role `node`: each session announces itself after its ends are declared; who has heard of all has
/// heard of all their ends.
pub fn node(options: &Options, control: &Control) -> Result<Value, Stop> {
    control.ready("listener");
    let domain = Domain::open(options)?;
    let mut ends = Vec::new();
    for number in 0..options.endpoints {
        let topic = format!("perf_node_{number}");
        ends.push((Writer::<Bytes>::new(&domain, &topic, options)?, domain.listen(&topic, drop)?));
    }
    let _token = domain.announce(options)?;
    domain.wait_announced(options.nodes, Domain::end_of_wait())?;
    control.event(&json!({"event": "matched", "ns": now_ns()}));
    while !control.ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({}))
}
