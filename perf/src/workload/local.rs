//! Within a machine, without a network: one thread, two threads, two processes; copied and borrowed.

use crate::args::{Options, Pin, Transport, Wait};
use crate::case::{CLOSED_MS, Case, LARGE};
use crate::workload::round_trip::RoundTrip;
use crate::workload::{or, pick};

/// The ways within a machine.
pub const TRANSPORTS: [Transport; 3] = [Transport::Thread, Transport::Intra, Transport::Shm];

/// HDDS's 16 B, a small message, and sizes at which a copy starts to cost.
const SIZES: [u64; 4] = [16, 64, 1_024, 65_536];
const SHARED_SIZES: [u64; 4] = [64, 65_536, 1_048_576, 8_388_608];
const FEW_SIZES: [u64; 1] = [64];

/// What is also measured with both ends on one core and with a core for each, blocking and looking: there the
/// wake-up is most of the way.
const PLACED_SIZE: u64 = 64;
const PLACES: [(Pin, Wait); 3] =
    [(Pin::Same, Wait::Block), (Pin::Split, Wait::Block), (Pin::Split, Wait::Spin)];

/// HDDS's method: best effort, KEEP_LAST 1, after 1,000 samples; but by time instead of 10,000 samples, which are over
/// in a millisecond.
const WARMUP: u64 = 1_000;

/// In 100 ms one thread writes and takes a million samples, which is as large as a table may be beside what is
/// measured. Two threads or processes share the machine with others: as long as other closed loops.
const THREAD_MS: u64 = 100;

/// Each path at each size, with and without loans.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in or(&options.transport, &TRANSPORTS) {
        let own = if transport == Transport::Shm { &SHARED_SIZES[..] } else { &SIZES[..] };
        for size in pick(options, &options.sizes, own, &FEW_SIZES) {
            for loan in [false, true] {
                cases.push(case(transport, size, loan).with(options, scale));
            }
        }
        let is_chosen = options.pin != Pin::None || options.wait.is_some() || !options.sizes.is_empty();
        if !options.quick && !is_chosen {
            cases.extend(placed_cases(transport, options, scale));
        }
    }
    cases
}

/// Both ends of a path on cores of their own and on one; there are none for a path of one thread.
pub fn placed_cases(transport: Transport, options: &Options, scale: f64) -> Vec<Case> {
    let places = PLACES.into_iter().filter(|_| transport != Transport::Thread);
    let placed = places.map(|(pin, wait)| {
        let mut placed = case(transport, PLACED_SIZE, false).with(options, scale);
        (placed.pin, placed.wait) = (pin, wait);
        placed
    });
    placed.collect()
}

fn case(transport: Transport, size: u64, loan: bool) -> Case {
    let mut case = Case::new("local", Some(transport), size, RoundTrip::over(transport)).label(if loan {
        "loan"
    } else {
        "copy"
    });
    case.duration_ms = if transport == Transport::Thread { THREAD_MS } else { CLOSED_MS };
    if size < LARGE {
        case.warmup = WARMUP;
    }
    (case.loan, case.kind, case.reliable) = (loan, "plain", false);
    case
}
