//! What a reader must know before the figures: that not all of them wait in the same way, and what that takes.

use std::fmt::Write;

use crate::record::{Outcome, Record};
use crate::report::peers;
use crate::report::units::time;

/// Whose processor time stands beside how long a round trip takes.
const WAITING: [&str; 4] = ["taut", "floor", "cyclonedds11", "cyclonedds"];

/// How who does not poll waits, and what of the processor that takes.
pub(super) fn explain(page: &mut String, shown: &[Record]) {
    page.push_str(
        "Where a line does not say that it polls, each waits as it does by default, and **that is not the same**: Taut looks \
         for samples for 20 µs, up to 60 µs where waits follow close upon each other, before it sleeps (`spin`, as long as \
         that finds something); the floor and all others but HDDS, whose reader never sleeps, sleep at once and are woken for \
         each sample: most of what they take is that. Of two that answer each other at once Taut's are seldom woken, and \
         keep both processors busy all the time. Polling lines have all of them awake.",
    );
    for (case, bytes, what) in [
        ("", 64, "round trip of 64 B by UDP, one upon another"),
        ("every 1 ms", 32, "of 32 B each millisecond"),
    ] {
        let cost = |peer: &&str| {
            let is = |r: &&Record| {
                (r.workload.as_str(), r.transport.as_str(), r.pin.as_str()) == ("latency", "udp", "none")
                    && (r.peer.as_str(), r.case.as_str(), r.size_bytes) == (*peer, case, bytes)
                    && r.wait != "spin"
                    && r.outcome == Outcome::Ok
            };
            let line = shown.iter().find(is)?;
            let (cpu, median) = (time(line.cpu_ns_per_sample?), time(line.rtt_ns?.p50 as f64));
            Some(format!("{} {cpu} in {median}", peers::name(peer)))
        };
        let costs: Vec<String> = WAITING.iter().filter_map(cost).collect();
        if !costs.is_empty() {
            let _ = write!(page, " Processor time of both sides for each {what}: {}.", costs.join(", "));
        }
    }
    page.push_str("\n\n");
}
