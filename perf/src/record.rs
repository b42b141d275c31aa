//! What a run leaves behind: one line of JSON for each (workload, peer, transport, size, case).
//!
//! Scripts rely on these names, as do the report and the comparison: a field may be added, none renamed.
//! Times are whole nanoseconds. A line is complete in itself: [`Run`] says how to get it again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// `latency`, `throughput`, `bursts`, `fanout`, `types`, `interference`, `local`, `write`, `cdr`,
    /// `memory`, `calls`, `discovery` or `soak`.
    pub workload: String,
    /// The adapter's name, with `:variant` if it ran as one.
    pub peer: String,
    /// The version that the adapter reports.
    pub version: String,
    /// `thread`, `intra`, `shm`, `udp`, `xdp`, `xdp-l2` or `dpdk`.
    pub transport: String,
    /// How it waited for data: `listener`, `waitset`, `spin`; what was asked for if it did not run.
    pub wait: String,
    /// `same`, `split` or `none`.
    pub pin: String,
    /// What a sample takes when serialized, without an encapsulation header; 0 where there is no sample.
    pub size_bytes: u64,
    /// Samples a second that were asked for; 0 is as fast as possible or as soon as answered.
    pub rate_hz: f64,
    /// `reliable keep-last:1 volatile` and the like.
    pub qos: String,
    /// What else sets this line apart from its neighbours, as `subscribers=8 multicast` or
    /// `flood fifo+pin`; empty if nothing does.
    pub case: String,
    /// Did it run, and if not, why.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Rounds that were measured.
    pub rounds: u32,
    /// Rounds that failed beside them, or whose processes ended badly after their figures were complete.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_rounds: u32,
    /// Why the last of these did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Samples that were measured, of all rounds.
    pub samples: u64,
    /// Samples that were sent and never arrived, of all subscribers together.
    pub lost: u64,
    /// Writes of a stream that the middleware refused, each of which was made again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Samples that were to arrive at all subscribers together, where there are several or what is lost is not
    /// what is missing in `samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Samples of an open loop that were written more than a period after they were due.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// How long after they were due those of an open loop were written, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<f64>,
    /// How much of that was the machine's, which woke the sender late: the times of the line leave it out. Without it
    /// they count from when a sample was due, and without `behind_ns` from its write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overslept_ns: Option<Times>,
    /// Datagrams a second of the flood beside it that arrived, in both directions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood_per_s: Option<f64>,
    /// Samples that arrived after a later one.
    pub out_of_order: u64,
    /// Samples that arrived again.
    pub duplicates: u64,
    /// Samples that arrived with another content or length.
    pub corrupt: u64,
    /// Round trip, or write and take in one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<Times>,
    /// From the write on one side to the take on the other, where one clock serves both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ns: Option<Times>,
    /// From the write of a burst's first sample until all of the burst is taken (`bursts`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_ns: Option<Times>,
    /// `write` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<Times>,
    /// One encode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode_ns: Option<Times>,
    /// One decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_ns: Option<Times>,
    /// From the start until all endpoints of all participants are matched; of a late reader, until its first
    /// sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_ns: Option<Times>,
    /// Received by one subscriber, the median of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// The same in bytes of `size_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// CPU time of all processes of the peer, warm-up included, divided by the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_sample: Option<f64>,
    /// Context switches of all processes of the peer, of all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<u64>,
    /// The same divided by the samples that CPU time is divided by: those that were sent, lost ones and warm-up included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_sample: Option<f64>,
    /// Heap allocations per sample, where the adapter counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocations_per_sample: Option<f64>,
    /// Bytes that crossed the interface during discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_bytes: Option<u64>,
    /// Packets that crossed it; on loopback each is a datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_packets: Option<u64>,
    /// Memory of entities (`memory`) or of a process over time (`soak`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Memory>,
    /// System calls of each side, of all rounds (`calls`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Calls>,
    /// Of a stream in bursts what each pace brought: its table of demands and intervals. The line's rate is the best
    /// of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paces: Vec<Pace>,
    /// This line against the same one of every other peer.
    #[serde(default)]
    pub ratio: Vec<Ratio>,
    /// The figure that ratios and the comparison use (`p50` of the times above, or `samples_per_s`), of
    /// each round in its order; 0 for a round that failed.
    pub round_values: Vec<f64>,
    /// The same of encode alone (`cdr`), whose `round_values` are of both together. Finer than whole nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encode_round_values: Vec<f64>,
    /// The same of decode alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decode_round_values: Vec<f64>,
    /// `(value in ns, count)` of the times above, for tails: ascending, empty cells left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
    /// The times above over the run, at most [`SERIES_MOST`] slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Slice>,
    /// How to get it again.
    pub run: Run,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The word of a case that says how many subscribers a line has.
pub const SUBSCRIBERS: &str = "subscribers";

impl Record {
    /// How many subscribers it has, where that is part of its case.
    pub fn subscribers(&self) -> Option<u64> {
        let mut words = self.case.split_whitespace().filter_map(|word| word.split_once('='));
        words.find(|(name, _)| *name == SUBSCRIBERS).and_then(|(_, value)| value.parse().ok())
    }

    /// How many system calls a side has made for each burst.
    pub fn calls_per_burst(&self, side: &str, pick: fn(&Calls) -> u64) -> Option<f64> {
        let calls = self.calls.iter().find(|calls| calls.side == side)?;
        let pace = self.paces.first().filter(|pace| pace.expected > 0)?;
        Some(pick(calls) as f64 * pace.demand as f64 / pace.expected as f64)
    }

    /// How many whole bursts were measured (`bursts`); nothing of a line without its histogram.
    pub fn whole_bursts(&self) -> Option<u64> {
        let whole = self.histogram.iter().map(|(_, bursts)| bursts).sum();
        self.burst_ns.and((whole > 0).then_some(whole))
    }

    /// Which share of the samples that were to arrive did not.
    pub fn loss(&self) -> f64 {
        // `samples` are those of one subscriber, `lost` those of all. Lines of before do not say how many were expected.
        let taken = self.samples.saturating_mul(self.subscribers().unwrap_or(1));
        let expected = self.expected.unwrap_or(taken.saturating_add(self.lost));
        if expected == 0 { 0.0 } else { (self.lost as f64 / expected as f64).min(1.0) }
    }
}

/// Ends the case of a second line of the same rounds: the rate of the median subscriber instead of the slowest.
pub const MEDIAN_SUBSCRIBER: &str = "median subscriber";

/// Fewer would make an outlier look as wide as a stall; more are not seen on a screen, and a stored run has
/// hundreds of lines.
pub const SERIES_MOST: usize = 200;

/// So many samples have ten beyond the percentile. Of fewer it is little more than the largest of them, which is luck.
pub(crate) const LEAST_OF_P999: u64 = 10_000;
pub(crate) const LEAST_OF_P9999: u64 = 100_000;

/// Did it run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// A round ran, or more.
    Ok,
    /// The peer has no such path, or is not built.
    Absent(String),
    /// It should have run, and no round did as it should.
    Failed(String),
}

/// The distribution of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// 90 of 100 are at most this.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// 9,999 of 10,000.
    pub p9999: u64,
    /// All but one in a million; the maximum if there are fewer samples.
    pub p999999: u64,
    /// The most: the bound that was seen.
    pub max: u64,
    /// When the most occurred, since the start of its round.
    pub max_at_ns: u64,
    /// Standard deviation: D's jitter.
    pub stddev: u64,
    /// Packet delay variation, RFC 5481: p99.9 less the least.
    pub pdv: u64,
}

impl Times {
    /// How many times the mean the longest took; nothing without a mean.
    pub fn max_to_mean(&self) -> Option<f64> {
        (self.mean > 0).then(|| self.max as f64 / self.mean as f64)
    }
}

/// How this peer stands to another one: below 1, this one's figure is smaller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The other peer.
    pub to: String,
    /// Of the medians, by rounds; of the rates for throughput, where above 1 is faster.
    pub p50: f64,
    /// Of the 99th percentiles; null without times.
    pub p99: Option<f64>,
    /// Of the maxima; null without times.
    pub max: Option<f64>,
    /// 95 % confidence interval of the `p50` ratio from the pairs of rounds; null with one round.
    pub low: Option<f64>,
    /// Its other end.
    pub high: Option<f64>,
}

/// A slice of the series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Its beginning, since the first sample of the run's first round; rounds follow each other.
    pub at_ns: u64,
    /// Least of the slice.
    pub min: u64,
    /// Median of the slice.
    pub p50: u64,
    /// Most of the slice.
    pub max: u64,
}

/// Memory, as the kernel counts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// `process`, `participant`, `topic`, `writer` and the other steps of `peers/README.md`, or the second of a soak as
    /// `t=60`.
    pub entity: String,
    /// How many were made.
    pub count: u64,
    /// Resident set size that each of them added, in bytes; of the whole process in a soak.
    pub bytes_each: i64,
    /// Threads of the process afterwards.
    pub threads: u64,
    /// Open file descriptors afterwards.
    pub descriptors: u64,
}

/// System calls of one side, and how many of them are of a kind that says something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// `writer` or `reader`.
    pub side: String,
    /// All of them.
    pub all: u64,
    /// That send or write.
    pub send: u64,
    /// That receive or read.
    pub receive: u64,
    /// That wait for descriptors.
    pub wait: u64,
    /// That wait for another thread, or wake it: a lock that is contended, a condition.
    pub futex: u64,
}

/// A cell of the table of demands and intervals: so many samples without a pause, then the rest of the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Samples of a burst.
    pub demand: u64,
    /// From the beginning of a burst to that of the next, in milliseconds; 0 is no pause at all.
    pub interval_ms: u64,
    /// Received by the slowest subscriber, the median of the rounds; 0 if none of them ran.
    pub samples_per_s: f64,
    /// Samples that were to arrive, of all rounds.
    pub expected: u64,
    /// Those of them that did not.
    pub lost: u64,
}

impl Pace {
    /// Samples a second that were asked for; nothing where there is no pause.
    pub fn asked_per_s(&self) -> Option<f64> {
        (self.interval_ms > 0).then(|| self.demand as f64 * 1e3 / self.interval_ms as f64)
    }

    /// Which share of the samples did not arrive.
    pub fn loss(&self) -> f64 {
        if self.expected == 0 { 0.0 } else { self.lost as f64 / self.expected as f64 }
    }
}

/// The machine and the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The same for all lines of a run: start in seconds since 1970 and the process id.
    pub id: String,
    /// When it started, RFC 3339, UTC.
    pub started: String,
    /// The rules by which times were taken, see [`crate::rules`].
    #[serde(default = "crate::rules::unnumbered")]
    pub rules: u32,
    /// Do processor times have what threads did that ended meanwhile?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_ended_threads: bool,
    /// The command line that repeats it.
    pub command: String,
    /// Version of `taut perf`, with the commit that it was built from if that is known.
    pub taut: String,
    /// CPU model.
    pub cpu: String,
    /// Number of cores that the run could use.
    pub cores: u32,
    /// Kernel release.
    pub kernel: String,
    /// Frequency governor, `none` if the machine has none.
    pub governor: String,
    /// Hypervisor flag, real-time kernel, isolated cores and what else explains a number.
    pub notes: Vec<String>,
}

impl Run {
    /// Which processor and which build, in a few words: lines of another one are no comparison.
    pub(crate) fn label(&self) -> String {
        let cpu = self.cpu.replace("(R)", "").replace(" Processor", "");
        let build = self.taut.split(' ').next_back().unwrap_or_default();
        [cpu.trim(), build].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// The labels of several lines, each once.
    pub(crate) fn labels<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeSet<String> {
        records.into_iter().map(|record| record.run.label()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_a_share_of_what_all_subscribers_were_to_receive() {
        let record = |fields: serde_json::Value| -> Record {
            let mut all = serde_json::json!({
                "workload": "fanout", "peer": "taut", "version": "1", "transport": "udp", "wait": "waitset",
                "pin": "none", "size_bytes": 64, "rate_hz": 0.0, "qos": "", "case": "subscribers=4 unicast",
                "status": "ok", "rounds": 1, "samples": 60, "lost": 100, "out_of_order": 0, "duplicates": 0,
                "corrupt": 0, "round_values": [1.0], "run": serde_json::to_value(Run::default()).unwrap(),
            });
            all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        // Of 4 times 100 samples 60, 80, 80 and 80 came.
        assert_eq!(record(serde_json::json!({"expected": 400})).loss(), 0.25);
        // A line of before: at least as many came to the others as to the slowest.
        assert_eq!(record(serde_json::json!({})).loss(), 100.0 / 340.0);
        assert_eq!(record(serde_json::json!({"case": ""})).loss(), 100.0 / 160.0);
        assert_eq!(record(serde_json::json!({"lost": 0, "samples": 0})).loss(), 0.0);
    }
}
