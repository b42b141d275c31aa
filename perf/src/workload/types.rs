//! Round trips of a sequence of octets and of a sequence of structures, answered by four bytes.

use crate::args::Options;
use crate::case::Case;
use crate::workload::round_trip::RoundTrip;
use crate::workload::{pick, transports};

/// Powers of 4 in the Vanderbilt study's range of 4 B to 16 KiB. An item of the complex type takes 16 B.
const SIMPLE: [u64; 7] = [4, 16, 64, 256, 1_024, 4_096, 16_384];
const COMPLEX: [u64; 6] = [16, 64, 256, 1_024, 4_096, 16_384];
const FEW: [u64; 2] = [64, 4_096];

/// Both types at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for (kind, sizes) in [("simple", &SIMPLE[..]), ("complex", &COMPLEX[..])] {
            for size in pick(options, &options.sizes, sizes, &FEW) {
                let mut case =
                    Case::new("types", Some(transport), size, RoundTrip::over(transport)).label(kind);
                case.kind = kind;
                cases.push(case.with(options, scale));
            }
        }
    }
    cases
}
