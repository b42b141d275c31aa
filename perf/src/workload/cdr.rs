//! Encoding and decoding, without a network.

use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::samples;
use crate::session::{Session, Start, Trouble};
use crate::statistics::median;
use crate::workload::traffic::{STARTING_S, exchange, measuring_s};
use crate::workload::{Figure, Round, Work, or};

/// HDDS's sizes.
const SIZES: [u64; 4] = [64, 256, 1_024, 4_096];

/// Samples of a batch, by the contract: what divides a batch's time.
const BATCH: u64 = 1_000;

/// The plain and the complex type at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["plain", "complex"] {
        for size in or(&options.sizes, &SIZES) {
            let mut case = Case::new("cdr", None, size, Box::new(Coding)).label(kind);
            case.kind = kind;
            cases.push(case.with(options, scale.max(0.5)));
        }
    }
    cases
}

struct Coding;

impl Work for Coding {
    fn roles(&self) -> &'static [&'static str] {
        &["cdr"]
    }

    fn has_ends(&self) -> bool {
        false
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        0.5 * STARTING_S + measuring_s(case)
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        let file = session.samples_file(0);
        let coder = Start::near("cdr").with("samples", file.display());
        let ran = exchange(session, case, coder, Vec::new(), &mut |_| {})?;
        let records = samples::read(&file).map_err(Trouble::Failed)?;
        let _ = std::fs::remove_file(&file);
        if records.is_empty() {
            return Err(Trouble::failed("no batch was timed"));
        }
        // The start of a batch is not known; batches follow each other.
        let mut start_ns = 0;
        let (mut both, mut encodes, mut decodes) = (Vec::new(), Vec::new(), Vec::new());
        for &[encode_ns, decode_ns, _] in &records {
            // In whole nanoseconds, cut off, as in runs of before: with those it is compared.
            both.push((start_ns, (encode_ns + decode_ns) / BATCH));
            encodes.push((start_ns, (encode_ns + BATCH / 2) / BATCH));
            decodes.push((start_ns, (decode_ns + BATCH / 2) / BATCH));
            start_ns += encode_ns + decode_ns;
        }
        // Of a few nanoseconds one is half.
        let median = |of: usize| {
            median(&records.iter().map(|record| record[of] as f64 / BATCH as f64).collect::<Vec<_>>())
        };
        Ok(Round {
            samples: both.len() as u64 * BATCH,
            times: vec![(Figure::Coding, both), (Figure::Encode, encodes), (Figure::Decode, decodes)],
            finer: vec![(Figure::Encode, median(0)), (Figure::Decode, median(1))],
            wait: ran.wait,
            flaw: ran.flaw,
            ..Round::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::options;
    use crate::case::CLOSED_MS;

    #[test]
    fn rounds_last_as_long_for_each_peer() {
        for case in cases(&options(""), 1.0) {
            assert!(case.is_timed() && case.duration_ms == CLOSED_MS, "{} {}", case.label, case.size);
        }
    }
}
