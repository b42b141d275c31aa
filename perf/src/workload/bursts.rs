//! How long the samples of a burst take: any of them, and all of it.
//!
//! A control loop sends some values each period, as those of the joints of a robot, and goes on when the last is there.

use std::path::Path;

use crate::args::Options;
use crate::bench::Bench;
use crate::case::{COUNT_MOST, Case};
use crate::catalog::Peer;
use crate::samples;
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::{STARTING_S, exchange, some_delivered};
use crate::workload::{Figure, Round, Work, or, transports};

/// What a control loop sends.
const SIZES: [u64; 1] = [64];

/// Samples of a burst, and the milliseconds from one to the next: a value alone, the joints of a robot, and what fills no
/// datagram yet. All of it is taken long before the next begins.
const BURSTS: [(u64, u64); 3] = [(1, 1), (20, 1), (100, 10)];

/// The first bursts are not measured, for so long. Shorter, cold caches are, and what a peer has yet to learn of bursts; none
/// at all, and a file without numbers would look like one of the first sample. Longer, it is a round's time.
const WARMUP_MS: u64 = 100;

/// A round's time: a hundred bursts of the rarest, for its p99.
const DURATION_MS: u64 = 1_000;

/// No plan makes it shorter: with fifty of the rarest a p99 of three rounds is not yet the longest. Longer, `all` has no room
/// for three rounds.
const LEAST_MS: u64 = 500;

/// Each burst at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in or(&options.sizes, &SIZES) {
            for (demand, interval_ms) in BURSTS {
                let work = Box::new(Bursts { demand, interval_ms });
                let mut case =
                    Case::new("bursts", Some(transport), size, work).label(label(demand, interval_ms));
                (case.history, case.least_ms) = ("keep-all", LEAST_MS);
                case = case.amount(0, demand, DURATION_MS).with(options, scale);
                case.count = match options.count {
                    // Whole ones: of another nobody knows how long it takes.
                    Some(count) => count.next_multiple_of(demand),
                    None => (demand * (case.duration_ms / interval_ms).max(1)).min(COUNT_MOST),
                };
                // Bursts begin where a number is their multiple, whatever a user's rate would be.
                (case.warmup, case.period_ns) = (demand * WARMUP_MS / interval_ms, 0);
                cases.push(case);
            }
        }
    }
    cases
}

/// The name of a case.
fn label(demand: u64, interval_ms: u64) -> String {
    format!("{demand} each {interval_ms} ms")
}

struct Bursts {
    demand: u64,
    interval_ms: u64,
}

impl Work for Bursts {
    fn roles(&self) -> &'static [&'static str] {
        &["pub", "sub"]
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        let bursts_ms = case.count / self.demand * self.interval_ms;
        STARTING_S + (WARMUP_MS + bursts_ms.min(case.duration_ms)) as f64 / 1e3
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        let file = session.samples_file(0);
        let writer = Start::near("pub")
            .with("burst", self.demand)
            .with("interval-ns", self.interval_ms * 1_000_000)
            .with("samples", "");
        let reader = Start::far("sub").with("samples", file.display());
        let ran = exchange(session, case, writer, vec![reader], &mut |_| {})?;
        let of = some_delivered(&ran.sender, &ran.servers[0])?;
        let times = samples::bursts(&records(&file, case.warmup)?, self.demand).map_err(Trouble::Failed)?;
        if times.whole.is_empty() {
            let (lost, sent) = (of.lost, of.cpu_samples);
            return Err(Trouble::Failed(format!("no burst arrived whole: {lost} of {sent} samples lost")));
        }
        Ok(Round {
            times: vec![(Figure::Burst, times.whole), (Figure::OneWay, times.samples)],
            cpu_samples: of.cpu_samples + case.warmup,
            usage: ran.usage,
            wait: ran.wait,
            flaw: ran.flaw,
            ..of
        })
    }
}

/// What the subscriber has noted, of which each sample has its number.
fn records(file: &Path, warmup: u64) -> Result<Vec<[u64; 3]>, Trouble> {
    if !file.exists() {
        return Err(Trouble::Absent("its sub writes no file of samples".to_string()));
    }
    let records = samples::read(file).map_err(Trouble::Failed)?;
    let _ = std::fs::remove_file(file);
    // The warm-up's are not among them.
    if records.iter().any(|[_, seq, _]| *seq < warmup) {
        return Err(Trouble::Absent(
            "its sub does not say which samples it took: `make peers` builds it anew".to_string(),
        ));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::options;

    #[test]
    fn a_burst_begins_at_a_multiple_of_its_size_and_has_a_place_in_the_table() {
        for (words, scale) in
            [("", 1.0), ("", 0.2), ("--quick", 0.2), ("--rate 700", 1.0), ("--duration 0.7", 1.0)]
        {
            let all = cases(&options(words), scale);
            assert_eq!(all.len(), BURSTS.len());
            for (case, (demand, interval_ms)) in all.iter().zip(BURSTS) {
                assert!(case.warmup >= demand && case.warmup % demand == 0, "{words} {}", case.warmup);
                let paced = case.duration_ms / interval_ms * demand;
                assert_eq!((case.count, case.period_ns), (paced, 0), "{words} {}", case.label);
            }
        }
        let counted = &cases(&options("--count 77"), 1.0)[1];
        assert_eq!(counted.count, 80, "whole bursts of 20");
        assert!(counted.work.estimate_s(counted) < STARTING_S + 0.2);
    }
}
