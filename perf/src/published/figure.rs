//! What a row of the tables shows of a line.

use crate::record::{Calls, Memory, Record, Times};
use crate::report::units::{bytes, count, percent, rate, time, times};

/// What is shown of a line.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// Median, and the 99th percentile.
    P50P99,
    P50,
    /// Least and mean of one way: half of the round trip.
    HalfMinMean,
    /// Mean, and the standard deviation, which that study calls jitter.
    MeanJitter,
    Mean,
    /// Median, 99th and 99.9th percentile, and maximum.
    Tail,
    /// Median, 99th percentile and maximum of the way there alone.
    OneWay,
    /// The percentile 99.99.
    Rare,
    /// What all but one in a million take at most.
    OneInMillion,
    Max,
    /// What the 99.9th percentile is above the least (RFC 5481, packet delay variation).
    Variation,
    /// How many times the mean the maximum is.
    MaxToMean,
    /// Median of an encode and of a decode.
    Coding,
    Bytes,
    Samples,
    /// Processor time of both sides for a million samples that were sent.
    Cpu,
    /// Heap allocations of the writer's side for each sample.
    Allocations,
    /// Context switches of both sides for a thousand samples that were sent.
    Switches,
    /// What each entity of this name adds.
    Entity(&'static str),
    /// System calls of a side for each burst, and those of some kinds.
    Calls(&'static str),
    /// Memory of a process with one participant.
    One,
    /// The same with 100 writers and 100 readers, too, and threads.
    Whole,
    /// Time until matched, and datagrams.
    Matched,
}

impl Figure {
    pub(super) fn of(self, record: &Record) -> Option<String> {
        let rtt = record.rtt_ns.as_ref().or(record.write_ns.as_ref());
        let ns = |pick: fn(&Times) -> u64| rtt.map(|times| time(pick(times) as f64));
        match self {
            Figure::P50 => ns(|t| t.p50),
            Figure::P50P99 => Some(format!("{}, {}", ns(|t| t.p50)?, ns(|t| t.p99)?)),
            Figure::HalfMinMean => Some(format!("{}, {}", ns(|t| t.min / 2)?, ns(|t| t.mean / 2)?)),
            Figure::MeanJitter => Some(format!("{}, {}", ns(|t| t.mean)?, ns(|t| t.stddev)?)),
            Figure::Mean => mean_ns(record).map(time),
            Figure::Tail => rtt.map(|t| list(&[t.p50, t.p99, t.p999, t.max])),
            Figure::OneWay => record.one_way_ns.map(|t| list(&[t.p50, t.p99, t.max])),
            Figure::OneInMillion => ns(|t| t.p999999),
            Figure::Rare => ns(|t| t.p9999),
            Figure::Max => ns(|t| t.max),
            Figure::Variation => ns(|t| t.p999.saturating_sub(t.min)),
            Figure::MaxToMean => rtt?.max_to_mean().map(times),
            Figure::Coding => {
                let half = |of: &Option<Times>| of.as_ref().map(|t| time(t.p50 as f64));
                Some(format!("{}, {}", half(&record.encode_ns)?, half(&record.decode_ns)?))
            }
            Figure::Bytes => record.bytes_per_s.map(|per_s| format!("{}/s{}", bytes(per_s), lost(record))),
            Figure::Samples => record.samples_per_s.map(|per_s| rate(per_s) + &lost(record)),
            Figure::Cpu => record.cpu_ns_per_sample.map(|ns| time(1e6 * ns) + &lost(record)),
            Figure::Allocations => record.allocations_per_sample.map(|count| format!("{count:.4}")),
            Figure::Switches => record.switches_per_sample.map(|each| count(1e3 * each) + &lost(record)),
            Figure::Entity(name) => {
                let step = record.memory.iter().find(|step| step.entity == name)?;
                Some(bytes(step.bytes_each as f64))
            }
            Figure::Calls(side) => {
                let of = |pick: fn(&Calls) -> u64| record.calls_per_burst(side, pick).map(count);
                let (all, send, receive) =
                    (of(|calls| calls.all)?, of(|calls| calls.send)?, of(|calls| calls.receive)?);
                Some(format!("{all}, {send}, {receive}, {}", of(|calls| calls.futex)?))
            }
            Figure::One => of_participant(record).map(bytes),
            Figure::Whole => {
                let threads = with_endpoints(record).last()?.threads;
                Some(format!("{}, {threads}", bytes(of_all(record)?)))
            }
            Figure::Matched => {
                let took = time(record.matched_ns.as_ref()?.p50 as f64);
                Some(match record.network_packets {
                    Some(count) => format!("{took}, {count} datagrams"),
                    None => took,
                })
            }
        }
    }
}

/// Times beside each other.
fn list(all_ns: &[u64]) -> String {
    all_ns.iter().map(|ns| time(*ns as f64)).collect::<Vec<_>>().join(", ")
}

/// What a rate leaves out, and who does not deliver a sample saves: those that got lost. Of a reliable stream that is nothing.
fn lost(record: &Record) -> String {
    if record.lost == 0 { String::new() } else { format!(", {} lost", percent(record.loss())) }
}

/// Memory of a process with one participant.
pub(crate) fn of_participant(record: &Record) -> Option<f64> {
    held(record, |step| ["process", "participant"].contains(&step.entity.as_str()))
}

/// The same with all writers and readers.
pub(crate) fn of_all(record: &Record) -> Option<f64> {
    held(record, |_| true)
}

fn held(record: &Record, is: fn(&&Memory) -> bool) -> Option<f64> {
    let steps = with_endpoints(record).iter().filter(is);
    let sum: i64 = steps.map(|step| step.bytes_each * step.count as i64).sum();
    (sum > 0).then_some(sum as f64)
}

/// The steps to the last of writers and readers: what comes after them is weighed alone.
fn with_endpoints(record: &Record) -> &[Memory] {
    let is_of_endpoints = |step: &Memory| ["writer", "reader"].contains(&step.entity.as_str());
    let end = record.memory.iter().rposition(is_of_endpoints).map_or(record.memory.len(), |last| last + 1);
    &record.memory[..end]
}

/// How long before their write samples of an open loop count from, on average.
pub(super) fn held_up_ns(record: &Record) -> f64 {
    let overslept_ns = record.overslept_ns.as_ref().map_or(0.0, |times| times.mean as f64);
    record.behind_ns.map_or(0.0, |behind_ns| behind_ns - overslept_ns)
}

/// The mean from the write, as the study has it: without what the line's times count before it.
pub(crate) fn mean_ns(record: &Record) -> Option<f64> {
    let times = record.rtt_ns.as_ref().or(record.write_ns.as_ref());
    times.map(|times| (times.mean as f64 - held_up_ns(record)).max(0.0))
}
