//! A round of one publisher and its subscribers.

use std::time::Duration;

use crate::accounting::Usage;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::figure;
use crate::record::{self, MEDIAN_SUBSCRIBER};
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::{self, exchange};
use crate::workload::{Round, Work};

/// So many samples without a pause, then the rest of an interval; 0 samples are no pause at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Samples.
    pub samples: u64,
    /// From the beginning of a burst to that of the next.
    pub interval: Duration,
}

impl Burst {
    /// As fast as possible.
    pub const NONE: Burst = Burst { samples: 0, interval: Duration::ZERO };

    /// The least time that so many samples take by this pace. The last burst has its interval, too: without it, five
    /// bursts of a second would be received in four fifths of it, and the rate would be above what was asked for.
    fn least_ns(&self, samples: u64) -> u64 {
        let bursts = samples as f64 / self.samples.max(1) as f64;
        (bursts * self.interval.as_nanos() as f64) as u64
    }
}

/// A round of many paces ends when so many more of them have failed than have run: each failure may take as long as ten
/// that run. Lower, who cannot do the first demands would not be asked for the others; higher, a broken peer would take
/// the time of a whole run.
const FAILED_MORE: usize = 3;

/// What a process says at its end.
type Figures = serde_json::Map<String, serde_json::Value>;

/// A publisher and its subscribers; of several paces the best counts.
pub struct Stream {
    /// How the publisher paces itself, one after the other.
    pub bursts: Vec<Burst>,
    /// How many subscribers.
    pub subscribers: u32,
    /// How many threads of the publisher write at once, each with a writer of its own.
    pub threads: u32,
}

/// What one pace brought.
struct Pace {
    rates: Vec<f64>,
    sent: u64,
    received: u64,
    expected: u64,
    lost: u64,
    refused: u64,
    out_of_order: u64,
    duplicates: u64,
    corrupt: u64,
    usage: Usage,
    wait: String,
    flaw: Option<String>,
}

impl Work for Stream {
    fn roles(&self) -> &'static [&'static str] {
        traffic::one_way(self.threads)
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        let starting_s = traffic::STARTING_S * (1.0 + 0.1 * f64::from(self.subscribers));
        self.bursts.len() as f64 * (starting_s + case.duration_ms as f64 / 1e3)
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let mut round = Round::default();
        let mut trouble = None;
        let (mut ran, mut failed) = (0, 0);
        for burst in &self.bursts {
            let mut cell = record::Pace {
                demand: burst.samples,
                interval_ms: burst.interval.as_millis() as u64,
                ..record::Pace::default()
            };
            match self.pace(bench, peer, case, *burst) {
                Ok(pace) => {
                    cell.samples_per_s = pace.rates[0];
                    (cell.expected, cell.lost) = (pace.expected, pace.lost);
                    add(&mut round, pace, case.warmup);
                    ran += 1;
                }
                Err(failure @ (Trouble::Failed(_) | Trouble::Hung(_))) => {
                    trouble =
                        Some(failure.of(&format!("burst of {} each {:?}", burst.samples, burst.interval)));
                    failed += 1;
                }
                Err(other) => return Err(other),
            }
            round.paces.extend(Some(cell).filter(|_| self.bursts.len() > 1));
            if failed >= ran + FAILED_MORE {
                break;
            }
        }
        match trouble {
            Some(failure) if round.rate.is_none() => return Err(failure),
            Some(Trouble::Failed(reason) | Trouble::Hung(reason)) => round.flaw = Some(reason),
            _ => {}
        }
        Ok(round)
    }
}

impl Stream {
    fn pace(&self, bench: &Bench, peer: &Peer, case: &Case, burst: Burst) -> Result<Pace, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        let publisher = Start::near(self.roles()[0])
            .with("threads", self.threads)
            .with("burst", burst.samples)
            .with("interval-ns", burst.interval.as_nanos())
            .with("samples", "");
        let subscriber = |index: u32| {
            let mut start = Start::far("sub").with("index", index).with("samples", "");
            start.cpu = 1 + index as usize;
            start.with("nodes", self.subscribers).with("threads", self.threads)
        };
        let ran =
            exchange(session, case, publisher, (0..self.subscribers).map(subscriber).collect(), &mut |_| {})?;
        let sent = figure(&ran.sender, "sent");
        let mut rates: Vec<(f64, usize)> = Vec::new();
        for (index, sub) in ran.servers.iter().enumerate() {
            let span_ns = span_ns(&ran.sender, sub);
            let received = figure(sub, "received");
            if received == 0 || span_ns == 0 {
                let reason = format!("subscriber {index} received {received} of {sent} samples");
                return Err(Trouble::Failed(reason));
            }
            let span_ns = span_ns.max(burst.least_ns(sent));
            rates.push((received as f64 * 1e9 / span_ns as f64, index));
        }
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let slowest = &ran.servers[rates[0].1];
        let sum = |name: &str| ran.servers.iter().map(|sub| figure(sub, name)).sum();
        Ok(Pace {
            sent,
            received: figure(slowest, "received"),
            expected: sent * ran.servers.len() as u64,
            lost: ran.servers.iter().map(|sub| sent.saturating_sub(figure(sub, "received"))).sum(),
            refused: figure(&ran.sender, "refused"),
            out_of_order: sum("out_of_order"),
            duplicates: sum("duplicates"),
            corrupt: sum("corrupt"),
            rates: rates.into_iter().map(|(rate, _)| rate).collect(),
            usage: ran.usage,
            wait: ran.wait,
            flaw: ran.flaw,
        })
    }
}

/// From the first write until the last sample is taken, or the writer has ended if that is later: a stall of the last writes
/// is the stream's, too.
fn span_ns(publisher: &Figures, subscriber: &Figures) -> u64 {
    let end_ns = figure(subscriber, "last_ns").max(figure(publisher, "stop_ns"));
    end_ns.saturating_sub(figure(publisher, "start_ns"))
}

/// The rate is the best one's, errors are those of all.
fn add(round: &mut Round, pace: Pace, warmup: u64) {
    let slowest = pace.rates[0];
    if round.rate.is_none_or(|best| slowest > best) {
        round.rate = Some(slowest);
        round.also = (pace.rates.len() > 1).then(|| (MEDIAN_SUBSCRIBER, pace.rates[pace.rates.len() / 2]));
    }
    round.samples += pace.received;
    round.cpu_samples += pace.sent + warmup;
    round.lost += pace.lost;
    round.refused += pace.refused;
    *round.expected.get_or_insert(0) += pace.expected;
    round.out_of_order += pace.out_of_order;
    round.duplicates += pace.duplicates;
    round.corrupt += pace.corrupt;
    round.usage.add(pace.usage);
    round.wait = pace.wait;
    round.flaw = round.flaw.take().or(pace.flaw);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_at_the_end_is_the_streams() {
        let figures = |of: serde_json::Value| of.as_object().unwrap().clone();
        let publisher =
            |stop_ns: u64| figures(serde_json::json!({"start_ns": 1_000, "stop_ns": stop_ns, "sent": 9}));
        let subscriber = figures(serde_json::json!({"last_ns": 3_000, "received": 9}));
        assert_eq!(span_ns(&publisher(2_990), &subscriber), 2_000);
        assert_eq!(span_ns(&publisher(9_000), &subscriber), 8_000);
        assert_eq!(span_ns(&figures(serde_json::json!({"start_ns": 1_000})), &subscriber), 2_000);
    }

    #[test]
    fn the_last_burst_has_its_interval_too() {
        let burst = Burst { samples: 100, interval: Duration::from_millis(10) };
        assert_eq!(
            [0, 50, 100, 500].map(|samples| burst.least_ns(samples)),
            [0, 5_000_000, 10_000_000, 50_000_000]
        );
        assert_eq!(Burst::NONE.least_ns(1_000_000), 0);
        let endless = Burst { interval: Duration::ZERO, ..burst };
        assert_eq!(endless.least_ns(1_000), 0);
    }
}
