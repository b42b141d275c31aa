//! Round trips between two processes, by the methods of three papers.

use crate::args::{Options, Pin, Transport, Wait};
use crate::case::{CLOSED_MS, Case};
use crate::workload::round_trip::RoundTrip;
use crate::workload::{or, pick, transports};

/// eProsima's sizes.
const SIZES: [u64; 11] =
    [64, 512, 1_024, 4_096, 8_192, 16_384, 65_536, 1_048_576, 2_097_152, 4_194_304, 8_388_608];

/// For a short run: the small, the frame, the datagram, the fragmented one.
const FEW_SIZES: [u64; 3] = [64, 1_024, 65_536];

/// A control loop's sizes and period, of the study of timing isolation.
const LOOP_SIZES: [u64; 3] = [64, 512, 1_024];
pub(super) const LOOP_PERIOD_NS: u64 = 500_000;

/// The rate and size of the study of user-space networking.
const PERIODIC_SIZE: u64 = 32;
pub(super) const PERIODIC_PERIOD_NS: u64 = 1_000_000;

/// The priority of the study of timing isolation: above all that is not the kernel's own.
pub const PRIORITY: u8 = 99;

/// A closed loop at each size; and, unless the user wants a size or a rate, the two open loops.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in pick(options, &options.sizes, &SIZES, &FEW_SIZES) {
            cases.push(case(transport, size).with(options, scale));
        }
    }
    if options.sizes.is_empty() {
        cases.extend(open_loops(options, scale));
    }
    cases
}

/// The open loops of two papers, unless the user wants a rate: their names say theirs. KEEP_ALL: with KEEP_LAST the samples
/// that waited longest would be replaced, and the stall that they would have shown with them.
pub fn open_loops(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    if options.rate.is_some() {
        return cases;
    }
    for transport in transports(options) {
        let mut periodic = case(transport, PERIODIC_SIZE).label("every 1 ms").amount(200, 5_000, 5_000);
        (periodic.period_ns, periodic.history) = (PERIODIC_PERIOD_NS, "keep-all");
        cases.push(periodic.with(options, scale));
        let mut bounded =
            case(transport, PERIODIC_SIZE).label("every 1 ms fifo inline").amount(200, 5_000, 5_000);
        (bounded.period_ns, bounded.history) = (PERIODIC_PERIOD_NS, "keep-all");
        (bounded.fifo, bounded.wait) = (Some(PRIORITY), Wait::Inline);
        cases.push(bounded.with(options, scale));
        for size in pick(options, &[], &LOOP_SIZES, &LOOP_SIZES[..1]) {
            let mut open = case(transport, size).label("every 500 us").amount(200, 4_000, 2_000);
            (open.period_ns, open.history) = (LOOP_PERIOD_NS, "keep-all");
            cases.push(open.with(options, scale));
        }
    }
    cases
}

/// What `all` adds: the software's path without the machine's wake-up between two cores.
pub fn pinned_cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut own = options.clone();
    own.pin = Pin::Same;
    own.sizes = or(&options.sizes, &FEW_SIZES);
    cases(&own, scale)
}

fn case(transport: Transport, size: u64) -> Case {
    let mut case = Case::new("latency", Some(transport), size, RoundTrip::over(transport));
    // By memory a sample takes a tenth of the time: as many are had in half of it.
    case.least_ms = if transport == Transport::Shm { CLOSED_MS / 2 } else { CLOSED_MS };
    case
}
