//! Round trips of a sequence of octets and of a sequence of structures, answered by four bytes.

use crate::args::Options;
use crate::case::Case;
use crate::workload::round_trip::RoundTrip;
use crate::workload::{pick, transports};

/// The Vanderbilt study's powers of 2. An item of the complex type takes 16 B: smaller ones there are not.
const SIZES: [u64; 13] = [4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384];
const ITEM: u64 = 16;
const FEW: [u64; 2] = [64, 4_096];

/// Both types at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for kind in ["simple", "complex"] {
            let sizes = pick(options, &options.sizes, &SIZES, &FEW).into_iter();
            for size in sizes.filter(|size| kind == "simple" || *size >= ITEM) {
                let mut case =
                    Case::new("types", Some(transport), size, RoundTrip::over(transport)).label(kind);
                case.kind = kind;
                cases.push(case.with(options, scale));
            }
        }
    }
    cases
}
