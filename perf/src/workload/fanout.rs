//! One publisher to many subscribers: unicast and multicast, listener and waitset, best effort.
//!
//! The rate of a line is that of the slowest subscriber; a line beside it has the median one's.

use crate::args::{Options, Transport, Wait, name};
use crate::case::Case;
use crate::workload::stream::Burst;
use crate::workload::throughput::{finish, streaming};
use crate::workload::{or, pick, transports};

/// Numbers of subscribers of the Vanderbilt study, and what a machine of today is asked beyond.
const SUBSCRIBERS: [u32; 5] = [1, 4, 8, 12, 32];
const FEW_SUBSCRIBERS: [u32; 2] = [1, 4];

/// The middle of the study's sizes: one frame.
const SIZE: u64 = 1_024;

/// Each combination.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let waits = or(options.wait.as_slice(), &[Wait::Listener, Wait::Waitset]);
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in or(&options.sizes, &[SIZE]) {
            for subscribers in pick(options, &options.nodes, &SUBSCRIBERS, &FEW_SUBSCRIBERS) {
                for wait in &waits {
                    cases.push(case(options, scale, transport, size, subscribers, false, *wait));
                    if transport == Transport::Udp {
                        cases.push(case(options, scale, transport, size, subscribers, true, *wait));
                    }
                }
            }
        }
    }
    cases
}

fn case(
    options: &Options,
    scale: f64,
    transport: Transport,
    size: u64,
    subscribers: u32,
    multicast: bool,
    wait: Wait,
) -> Case {
    let way = if multicast { "multicast" } else { "unicast" };
    let mut case = streaming("fanout", transport, size, vec![Burst::NONE], subscribers)
        .label(format!("subscribers={subscribers} {way} {}", name(&wait)));
    (case.reliable, case.multicast, case.wait) = (false, multicast, wait);
    finish(case, options, scale)
}
