//! Which figures of a line stand in the table of its workload, and how each is written.

use crate::record::{Calls, Record, Times};
use crate::workload::soak::growth_per_s;

use super::units::{digits, nanoseconds, scaled};

/// A column: its title, its text if a line has that figure, and whether a narrow terminal keeps it.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) needed: bool,
    pub(super) text: fn(&Record) -> Option<String>,
}

/// The columns of a workload.
pub(super) fn columns(workload: &str) -> Vec<Column> {
    match workload {
        "throughput" | "fanout" => vec![
            column("samples/s", true, |r| r.samples_per_s.map(|n| scaled(n, ""))),
            column("bytes/s", true, |r| r.bytes_per_s.map(|n| scaled(n, "B"))),
            lost(true),
            cpu(),
        ],
        "bursts" => vec![
            column("sample", true, |r| time(r.one_way_ns.as_ref(), |t| t.p50)),
            column("p99", true, |r| time(r.one_way_ns.as_ref(), |t| t.p99)),
            column("max", true, |r| time(r.one_way_ns.as_ref(), |t| t.max)),
            column("burst", true, |r| time(r.burst_ns.as_ref(), |t| t.p50)),
            column("p99", true, |r| time(r.burst_ns.as_ref(), |t| t.p99)),
            column("max", true, |r| time(r.burst_ns.as_ref(), |t| t.max)),
            lost(false),
            cpu(),
        ],
        "cdr" => vec![
            column("encode", true, |r| time(r.encode_ns.as_ref(), |t| t.p50)),
            column("p99", false, |r| time(r.encode_ns.as_ref(), |t| t.p99)),
            column("decode", true, |r| time(r.decode_ns.as_ref(), |t| t.p50)),
            column("p99", false, |r| time(r.decode_ns.as_ref(), |t| t.p99)),
        ],
        "discovery" => vec![
            column("matched", true, |r| time(r.matched_ns.as_ref(), |t| t.p50)),
            column("max", true, |r| time(r.matched_ns.as_ref(), |t| t.max)),
            column("sent", true, |r| r.network_bytes.map(|n| scaled(n as f64, "B"))),
            column("datagrams", true, |r| r.network_packets.map(|n| n.to_string())),
            cpu(),
        ],
        "memory" => vec![
            column("process", false, |r| entity(r, "process")),
            column("participant", true, |r| entity(r, "participant")),
            column("topic", false, |r| entity(r, "topic")),
            column("writer", true, |r| entity(r, "writer")),
            column("reader", true, |r| entity(r, "reader")),
            column("held", false, |r| entity(r, "held sample")),
            column("threads", true, |r| r.memory.last().map(|m| m.threads.to_string())),
            column("fds", false, |r| r.memory.last().map(|m| m.descriptors.to_string())),
        ],
        "calls" => vec![
            column("writer", true, |r| per_burst(r, "writer", |calls| calls.all)),
            column("send", true, |r| per_burst(r, "writer", |calls| calls.send)),
            column("futex", false, |r| per_burst(r, "writer", |calls| calls.futex)),
            column("reader", true, |r| per_burst(r, "reader", |calls| calls.all)),
            column("receive", true, |r| per_burst(r, "reader", |calls| calls.receive)),
            column("wait", false, |r| per_burst(r, "reader", |calls| calls.wait)),
            column("futex", false, |r| per_burst(r, "reader", |calls| calls.futex)),
            lost(false),
            cpu(),
        ],
        "soak" => {
            let mut columns = bound_columns();
            columns.push(column("growth", true, |r| growth_per_s(&r.memory).map(|n| scaled(n, "B/s"))));
            columns
        }
        "interference" => {
            let mut columns = times_columns();
            columns.push(column("flood", true, |r| r.flood_per_s.map(|n| scaled(n, "/s"))));
            columns
        }
        _ => times_columns(),
    }
}

/// The columns of times that round trips and writes have.
fn times_columns() -> Vec<Column> {
    vec![
        column("p50", true, |r| time(main_times(r), |t| t.p50)),
        column("p99", true, |r| time(main_times(r), |t| t.p99)),
        column("p99.9", false, |r| time(main_times(r), |t| t.p999)),
        column("max", true, |r| time(main_times(r), |t| t.max)),
        lost(false),
        cpu(),
    ]
}

/// Those of a long run: how far the bound is from the mean.
fn bound_columns() -> Vec<Column> {
    vec![
        column("samples", true, |r| Some(scaled(r.samples as f64, ""))),
        column("mean", true, |r| time(main_times(r), |t| t.mean)),
        column("p99", false, |r| time(main_times(r), |t| t.p99)),
        column("p99.9", false, |r| time(main_times(r), |t| t.p999)),
        column("p99.99", true, |r| time(main_times(r), |t| t.p9999)),
        column("max", true, |r| time(main_times(r), |t| t.max)),
        column("max/mean", true, |r| main_times(r).and_then(Times::max_to_mean).map(digits)),
        lost(false),
        cpu(),
    ]
}

fn column(title: &'static str, needed: bool, text: fn(&Record) -> Option<String>) -> Column {
    Column { title, needed, text }
}

/// What both sides need of the processor for a sample.
fn cpu() -> Column {
    column("CPU", false, |r| r.cpu_ns_per_sample.map(nanoseconds))
}

/// What went wrong with samples.
fn lost(needed: bool) -> Column {
    column("lost", needed, |r| Some(errors(r)))
}

fn main_times(record: &Record) -> Option<&Times> {
    record.rtt_ns.as_ref().or(record.write_ns.as_ref())
}

fn time(times: Option<&Times>, pick: fn(&Times) -> u64) -> Option<String> {
    times.map(|times| nanoseconds(pick(times) as f64))
}

/// Lost samples in percent, those of an open loop that were written late, and whatever else was wrong.
fn errors(record: &Record) -> String {
    let mut words = Vec::new();
    if record.lost > 0 {
        words.push(format!("{:.2}%", 100.0 * record.loss()));
    }
    if record.late > 0 {
        words.push(format!("{} late", record.late));
    }
    for (count, what) in
        [(record.out_of_order, "order"), (record.duplicates, "twice"), (record.corrupt, "corrupt")]
    {
        if count > 0 {
            words.push(format!("{count} {what}"));
        }
    }
    if words.is_empty() { "0".to_string() } else { words.join(" ") }
}

/// Calls of a side for each burst.
fn per_burst(record: &Record, side: &str, pick: fn(&Calls) -> u64) -> Option<String> {
    record.calls_per_burst(side, pick).map(digits)
}

fn entity(record: &Record, name: &str) -> Option<String> {
    let found = record.memory.iter().find(|memory| memory.entity == name);
    found.map(|memory| scaled(memory.bytes_each as f64, "B"))
}
