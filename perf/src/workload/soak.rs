//! Round trips for a long time, with what both processes hold at each second.

use std::time::{Duration, Instant};

use crate::accounting::{Holding, holding};
use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::record::Memory;
use crate::session::{Session, Trouble};
use crate::workload::{Round, Work, or, round_trip, traffic, transports};

/// A control loop's rate.
pub(super) const PERIOD_NS: u64 = 1_000_000;

/// Long enough for a leak of a kilobyte a second to stand out from the noise of an allocator.
const DURATION_MS: u64 = 60_000;

/// Fewer seconds than this say nothing of growth: the first pages of a buffer look like a leak.
const POINTS_LEAST: usize = 5;

/// Between two looks at the processes.
const SECOND: Duration = Duration::from_secs(1);

/// One case for each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in or(&options.sizes, &[64]) {
            let mut case = Case::new("soak", Some(transport), size, Box::new(Soak));
            (case.period_ns, case.history) = (PERIOD_NS, "keep-all");
            case = case.amount(1_000, DURATION_MS, DURATION_MS);
            let mut case = case.with(options, scale);
            case.rounds = options.rounds.unwrap_or(1);
            cases.push(case);
        }
    }
    cases
}

/// What a line of a soak adds to a process each second, in bytes: least squares over its second half, as
/// the first is the filling of pools and histories.
pub fn growth_per_s(memory: &[Memory]) -> Option<f64> {
    let time = |entry: &Memory| entry.entity.strip_prefix("t=").and_then(|t| t.parse::<f64>().ok());
    let points: Vec<(f64, f64)> =
        memory.iter().filter_map(|entry| Some((time(entry)?, entry.bytes_each as f64))).collect();
    let points = &points[points.len() / 2..];
    if points.len() < POINTS_LEAST {
        return None;
    }
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (mean_t, mean_b) = (mean(|point| point.0), mean(|point| point.1));
    let product: f64 = points.iter().map(|(t, b)| (t - mean_t) * (b - mean_b)).sum();
    let square: f64 = points.iter().map(|(t, _)| (t - mean_t).powi(2)).sum();
    (square > 0.0).then(|| product / square)
}

struct Soak;

impl Work for Soak {
    fn roles(&self) -> &'static [&'static str] {
        &["ping", "pong"]
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        let start = Instant::now();
        let mut memory = Vec::new();
        let mut look = |session: &Session| {
            if start.elapsed() < SECOND * memory.len() as u32 {
                return;
            }
            let sum = session.pids().map(holding).fold(Holding::default(), |sum, held| Holding {
                bytes: sum.bytes + held.bytes,
                threads: sum.threads + held.threads,
                descriptors: sum.descriptors + held.descriptors,
            });
            memory.push(Memory {
                entity: format!("t={}", memory.len()),
                count: 1,
                bytes_each: sum.bytes as i64,
                threads: sum.threads,
                descriptors: sum.descriptors,
            });
        };
        let mut round = round_trip::run(session, case, false, &mut look)?;
        round.memory = memory;
        Ok(round)
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        traffic::STARTING_S + traffic::measuring_s(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64, bytes_each: i64) -> Memory {
        Memory { entity: format!("t={second}"), count: 1, bytes_each, threads: 1, descriptors: 1 }
    }

    #[test]
    fn a_leak_is_told_from_a_filling_pool() {
        let filling: Vec<Memory> = (0..20).map(|s| at(s, (s.min(10) * 1_000) as i64)).collect();
        assert_eq!(growth_per_s(&filling), Some(0.0));
        let leaking: Vec<Memory> = (0..20).map(|s| at(s, (s * 500) as i64)).collect();
        assert!((growth_per_s(&leaking).unwrap() - 500.0).abs() < 1e-6);
        assert_eq!(growth_per_s(&leaking[..8]), None);
    }
}
