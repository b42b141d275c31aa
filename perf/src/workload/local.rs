//! Within a machine, without a network: one thread, two threads, two processes; copied and borrowed.

use crate::args::{Options, Transport};
use crate::case::Case;
use crate::workload::round_trip::RoundTrip;
use crate::workload::{or, pick};

/// HDDS's 16 B, and sizes at which a copy starts to cost.
const SIZES: [u64; 3] = [16, 1_024, 65_536];
const SHARED_SIZES: [u64; 4] = [64, 65_536, 1_048_576, 8_388_608];
const FEW_SIZES: [u64; 1] = [64];

/// HDDS's method: 10,000 samples after 1,000, best effort, KEEP_LAST 1.
const WARMUP: u64 = 1_000;
const COUNT: u64 = 10_000;

/// Each path at each size, with and without loans.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in or(&options.transport, &[Transport::Thread, Transport::Intra, Transport::Shm]) {
        let own = if transport == Transport::Shm { &SHARED_SIZES[..] } else { &SIZES[..] };
        for size in pick(options, &options.sizes, own, &FEW_SIZES) {
            for (loan, label) in [(false, "copy"), (true, "loan")] {
                let mut case = Case::new("local", Some(transport), size, RoundTrip::over(transport))
                    .amount(WARMUP, COUNT, 2_000)
                    .label(label);
                (case.loan, case.kind, case.reliable) = (loan, "plain", false);
                cases.push(case.with(options, scale));
            }
        }
    }
    cases
}
