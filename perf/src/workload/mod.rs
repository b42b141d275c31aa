//! The workloads: each file makes the cases of one and runs a round of a case.

pub mod bursts;
pub mod calls;
pub mod cdr;
pub mod discovery;
pub mod fanout;
mod first_sample;
pub mod interference;
pub mod latency;
pub mod local;
pub mod memory;
mod round_trip;
pub mod soak;
mod stream;
pub mod throughput;
pub mod traffic;
pub mod types;
pub mod write;

use crate::accounting::{Sent, Usage};
use crate::args::{Options, Transport};
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::record::{Calls, Memory, Pace, Record};
use crate::session::Trouble;

/// All workloads, in the order in which `all` runs them: what matters most first, should the time not
/// suffice.
pub const NAMES: [&str; 13] = [
    "latency",
    "throughput",
    "bursts",
    "local",
    "write",
    "cdr",
    "memory",
    "calls",
    "discovery",
    "types",
    "fanout",
    "interference",
    "soak",
];

/// What happens in a round of a case.
pub trait Work {
    /// The roles that an adapter must play.
    fn roles(&self) -> &'static [&'static str];

    /// Must an adapter know the case's type?
    fn has_type(&self) -> bool {
        true
    }

    /// Are there two ends, between which a link can be?
    fn has_ends(&self) -> bool {
        true
    }

    /// Is what a process holds its figure?
    fn weighs(&self) -> bool {
        false
    }

    /// The time of a round of one peer in seconds, roughly.
    fn estimate_s(&self, case: &Case) -> f64 {
        traffic::STARTING_S + traffic::measuring_s(case)
    }

    /// Runs a round of one peer.
    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble>;
}

/// What a time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// There and back, or write and take.
    RoundTrip,
    /// One way.
    OneWay,
    /// From the write of a burst's first sample until all of it is taken.
    Burst,
    /// How late the sender of an open loop was woken.
    Overslept,
    /// A write.
    Write,
    /// An encode and a decode.
    Coding,
    /// An encode.
    Encode,
    /// A decode.
    Decode,
    /// Until all are matched.
    Matched,
}

/// What a round brought.
#[derive(Debug, Default)]
pub struct Round {
    /// `(start, time)` of each sample; the first figure is the one that is compared.
    pub times: Vec<(Figure, Vec<(u64, u64)>)>,
    /// The medians of figures that are known more finely than to the nanosecond.
    pub finer: Vec<(Figure, f64)>,
    /// Samples per second; it is compared if it is there.
    pub rate: Option<f64>,
    /// A further line that differs in the rate only: what to add to its label, and the rate.
    pub also: Option<(&'static str, f64)>,
    /// Samples that were measured.
    pub samples: u64,
    /// Samples by which the CPU time is divided, warm-up included.
    pub cpu_samples: u64,
    /// Sent and not received, of all subscribers together.
    pub lost: u64,
    /// Writes that were refused and made again.
    pub refused: u64,
    /// What all subscribers together were to receive, where it is not `samples` and `lost`.
    pub expected: Option<u64>,
    /// Written more than a period after they were due.
    pub late: u64,
    /// How long after they were due samples of an open loop were written, on average.
    pub behind_ns: Option<f64>,
    /// Datagrams a second that arrived of the flood beside it.
    pub flood_per_s: Option<f64>,
    /// Received after a later one.
    pub out_of_order: u64,
    /// Received again.
    pub duplicates: u64,
    /// Received with another content.
    pub corrupt: u64,
    /// Of all processes.
    pub usage: Usage,
    /// How it really waited.
    pub wait: String,
    /// What crossed the interface.
    pub sent: Option<Sent>,
    /// Of entities, or over time.
    pub memory: Vec<Memory>,
    /// System calls of each side.
    pub calls: Vec<Calls>,
    /// Of a stream in bursts, what each pace brought.
    pub paces: Vec<Pace>,
    /// What went wrong after the figures were complete.
    pub flaw: Option<String>,
}

/// The cases of a workload.
pub fn cases(workload: &str, options: &Options, scale: f64) -> Vec<Case> {
    match workload {
        "latency" => latency::cases(options, scale),
        "throughput" => throughput::cases(options, scale),
        "bursts" => bursts::cases(options, scale),
        "fanout" => fanout::cases(options, scale),
        "types" => types::cases(options, scale),
        "interference" => interference::cases(options, scale),
        "local" => local::cases(options, scale),
        "write" => write::cases(options, scale),
        "cdr" => cdr::cases(options, scale),
        "memory" => memory::cases(options, scale),
        "calls" => calls::cases(options, scale),
        "discovery" => discovery::cases(options, scale),
        "soak" => soak::cases(options, scale),
        _ => Vec::new(),
    }
}

/// Is a line what its name stands for: at the workload's own rate, and reliable where it goes there and back? The user may
/// have chosen another rate and reliability, which are no part of the name.
pub(crate) fn is_as_named(record: &Record) -> bool {
    let period_ns = match record.workload.as_str() {
        "latency" if record.case.starts_with("every 1 ms") => latency::PERIODIC_PERIOD_NS,
        "latency" if record.case.starts_with("every 500 us") => latency::LOOP_PERIOD_NS,
        "soak" => soak::PERIOD_NS,
        "interference" => interference::PERIOD_NS,
        "write" => write::PERIOD_NS,
        "discovery" if record.case.starts_with("first sample") => first_sample::PERIOD_NS,
        _ => 0,
    };
    let is_round_trip = ["latency", "types", "interference", "soak"].contains(&record.workload.as_str());
    record.rate_hz == rate_hz(period_ns) && (!is_round_trip || record.qos.starts_with("reliable"))
}

/// Samples a second; 0 is a closed loop, which has no period.
pub(crate) fn rate_hz(period_ns: u64) -> f64 {
    if period_ns == 0 { 0.0 } else { 1e9 / period_ns as f64 }
}

/// What the user chose, or else the workload's own choice.
fn or<T: Copy>(chosen: &[T], own: &[T]) -> Vec<T> {
    if chosen.is_empty() { own.to_vec() } else { chosen.to_vec() }
}

/// A shorter list when a short run is wanted.
fn pick<T: Copy>(options: &Options, chosen: &[T], all: &[T], few: &[T]) -> Vec<T> {
    or(chosen, if options.quick { few } else { all })
}

/// UDP, unless the user chose.
fn transports(options: &Options) -> Vec<Transport> {
    or(&options.transport, &[Transport::Udp])
}

/// The same of those that cross a network.
fn networked(options: &Options) -> Vec<Transport> {
    transports(options).into_iter().filter(|transport| transport.has_network()).collect()
}
