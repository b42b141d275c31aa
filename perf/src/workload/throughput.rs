//! Samples per second from one publisher to one subscriber; of one thread, and of several that write at once.

use std::time::Duration;

use crate::args::{Options, Transport};
use crate::case::Case;
use crate::workload::stream::{Burst, Stream};
use crate::workload::{pick, traffic, transports};

/// 32 B and 1 KB of the study of user-space networking, then eProsima's.
const SIZES: [u64; 6] = [32, 1_024, 16_384, 65_536, 1_048_576, 8_388_608];
const FEW_SIZES: [u64; 3] = [32, 1_024, 65_536];

/// The sizes that are also sent with best effort: what is larger than a frame only shows its losses.
const BEST_EFFORT_SIZES: [u64; 2] = [32, 1_024];

/// eProsima's demands, and its burst intervals in milliseconds.
const DEMANDS: [u64; 6] = [100, 1_000, 10_000, 30_000, 40_000, 50_000];
const INTERVALS_MS: [u64; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// A few of them: the ends of the table, and where a peer's queues just hold the burst.
const FEW_DEMANDS: [u64; 3] = [100, 10_000, 50_000];
const FEW_INTERVALS_MS: [u64; 4] = [0, 10, 50, 100];

/// Each cell of the table is measured once for so long: five of the longest intervals. All 66 of a peer take 48 s.
/// Longer, a table of five peers and all sizes takes more than an hour; shorter, the longest interval has bursts in
/// number only.
const CELL_MS: u64 = 500;

/// No plan makes a cell shorter than this: three of the longest intervals.
const CELL_LEAST_MS: u64 = 300;

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
        for (at, size) in pick(options, &options.sizes, &SIZES, &FEW_SIZES).into_iter().enumerate() {
            let unlimited = streaming("throughput", transport, size, vec![Burst::NONE], 1);
            cases.push(finish(unlimited, options, scale));
            for threads in traffic::threads(at == 0).into_iter().filter(|threads| *threads > 1) {
                let work = Box::new(Stream { bursts: vec![Burst::NONE], subscribers: 1, threads });
                let crowd = stream("throughput", transport, size, work).label(traffic::of_threads(threads));
                cases.push(finish(crowd, options, scale));
            }
            if options.rate.is_some() || options.reliability.is_some() {
                continue;
            }
            if BEST_EFFORT_SIZES.contains(&size) {
                let mut best_effort = streaming("throughput", transport, size, vec![Burst::NONE], 1);
                best_effort.reliable = false;
                cases.push(finish(best_effort, options, scale));
            }
            if !options.quick {
                cases.push(table(options, scale, transport, size));
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

/// The best of the table of demands and intervals, which its line keeps.
fn table(options: &Options, scale: f64, transport: Transport, size: u64) -> Case {
    let bursts =
        if options.full { bursts(&DEMANDS, &INTERVALS_MS) } else { bursts(&FEW_DEMANDS, &FEW_INTERVALS_MS) };
    let label = if options.full {
        "best of all bursts".to_string()
    } else {
        format!("best of {} bursts", bursts.len())
    };
    let mut case = streaming("throughput", transport, size, bursts, 1).label(label);
    (case.duration_ms, case.least_ms, case.rounds) = (CELL_MS, CELL_LEAST_MS, 1);
    finish(case, options, scale)
}

/// A stream of KEEP_ALL.
pub fn streaming(
    workload: &'static str,
    transport: Transport,
    size: u64,
    bursts: Vec<Burst>,
    subscribers: u32,
) -> Case {
    stream(workload, transport, size, Box::new(Stream { bursts, subscribers, threads: 1 }))
}

fn stream(workload: &'static str, transport: Transport, size: u64, work: Box<Stream>) -> Case {
    let warmup = (WARMUP_BYTES / size.max(1)).clamp(2, 1_000);
    let mut case = timed(Case::new(workload, Some(transport), size, work), warmup, DURATION_MS);
    case.history = "keep-all";
    case
}

/// With rounds that end by their time, however many samples that are.
pub fn timed(case: Case, warmup: u64, duration_ms: u64) -> Case {
    case.amount(warmup, COUNT, duration_ms)
}

/// What the user wants, with a count that no table limits.
pub fn finish(case: Case, options: &Options, scale: f64) -> Case {
    let mut case = case.with(options, scale);
    if options.count.is_none() {
        case.count = COUNT;
    }
    case
}

fn bursts(demands: &[u64], intervals_ms: &[u64]) -> Vec<Burst> {
    let burst = |samples: u64, ms: u64| Burst { samples, interval: Duration::from_millis(ms) };
    demands.iter().flat_map(|demand| intervals_ms.iter().map(|ms| burst(*demand, *ms))).collect()
}
