//! Samples per second from one publisher to one subscriber.

use std::time::Duration;

use crate::args::{Options, Transport};
use crate::case::Case;
use crate::workload::stream::{Burst, Stream};
use crate::workload::{pick, transports};

/// 32 B and 1 KB of the study of user-space networking, then eProsima's.
const SIZES: [u64; 6] = [32, 1_024, 16_384, 65_536, 1_048_576, 8_388_608];
const FEW_SIZES: [u64; 3] = [32, 1_024, 65_536];

/// The sizes that are also sent with best effort: what is larger than a frame only shows its losses.
const BEST_EFFORT_SIZES: [u64; 2] = [32, 1_024];

/// eProsima's demands, and its burst intervals in milliseconds.
const DEMANDS: [u64; 6] = [100, 1_000, 10_000, 30_000, 40_000, 50_000];
const INTERVALS_MS: [u64; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// A few of these combinations: without a pause, and where a peer's queues just hold the burst.
const FEW: [(u64, u64); 3] = [(1_000, 0), (1_000, 10), (10_000, 50)];

/// What is sent before measuring: 16 MiB fill the caches and the queues, and are soon over.
const WARMUP_BYTES: u64 = 16 << 20;

/// More samples than any peer sends in the time of a round; there is no table for them.
const COUNT: u64 = 1_000_000_000;

/// A round's time: the slowest peer has sent 10 samples of the largest size by then.
const DURATION_MS: u64 = 1_000;

/// Without a limit at each size, the best of the bursts, best effort, and over shared memory with loans.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in pick(options, &options.sizes, &SIZES, &FEW_SIZES) {
            let unlimited = streaming("throughput", transport, size, vec![Burst::NONE], 1);
            cases.push(finish(unlimited, options, scale));
            if options.rate.is_some() || options.reliability.is_some() {
                continue;
            }
            if BEST_EFFORT_SIZES.contains(&size) {
                let mut best_effort = streaming("throughput", transport, size, vec![Burst::NONE], 1);
                best_effort.reliable = false;
                cases.push(finish(best_effort, options, scale));
            }
            if !options.quick {
                let bursts = streaming("throughput", transport, size, bursts(options.full), 1);
                let label = if options.full { "best of all bursts" } else { "best of bursts" };
                cases.push(finish(bursts.label(label), options, scale));
            }
            if transport == Transport::Shm {
                let mut loans = streaming("throughput", transport, size, vec![Burst::NONE], 1).label("loan");
                (loans.loan, loans.kind) = (true, "plain");
                cases.push(finish(loans, options, scale));
            }
        }
    }
    cases
}

/// A stream of KEEP_ALL.
pub fn streaming(
    workload: &'static str,
    transport: Transport,
    size: u64,
    bursts: Vec<Burst>,
    subscribers: u32,
) -> Case {
    let work = Box::new(Stream { bursts, subscribers });
    let warmup = (WARMUP_BYTES / size.max(1)).clamp(2, 1_000);
    let mut case = Case::new(workload, Some(transport), size, work).amount(warmup, COUNT, DURATION_MS);
    case.history = "keep-all";
    case
}

/// What the user wants, with a count that no table limits.
pub fn finish(case: Case, options: &Options, scale: f64) -> Case {
    let mut case = case.with(options, scale);
    if options.count.is_none() {
        case.count = COUNT;
    }
    case
}

fn bursts(full: bool) -> Vec<Burst> {
    let burst = |(samples, ms): (u64, u64)| Burst { samples, interval: Duration::from_millis(ms) };
    if !full {
        return FEW.into_iter().map(burst).collect();
    }
    let all = DEMANDS.into_iter().flat_map(|demand| INTERVALS_MS.into_iter().map(move |ms| (demand, ms)));
    all.map(burst).collect()
}
