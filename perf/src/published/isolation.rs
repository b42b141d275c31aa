//! Rows of the study of timing isolation: there and back, and there alone, beside a flood and without, with each
//! mitigation and with all of them, at the study's sizes; and how much a flood adds to the rarest times.

use std::collections::BTreeSet;

use super::{Figure, Row, Table, WAYS, is_linked, row, waits};
use crate::record::{Outcome, Record, Run, Times};
use crate::report::current::recency;
use crate::report::peers;
use crate::report::units::{size, thousands, time, times};
use crate::workload::{interference, is_as_named};

/// The study's sizes.
const SIZES: [u64; 3] = [64, 512, 1_024];

/// Maxima of the study, there and back; that of its flood is of 1,024 B.
fn published(label: &str) -> &'static str {
    match label {
        "quiet" => "max 1,215 µs",
        "quiet all" => "max 449 µs",
        "flood" => "max 3,285 µs",
        "flood all" => "max 197 µs",
        _ => "",
    }
}

/// By the kernel's sockets, as `all` and `interference` measure it.
pub(super) fn by_sockets() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for label in interference::labels() {
        let is = move |r: &Record| r.workload == "interference" && r.transport == "udp" && r.case == label;
        add(&mut rows, label, published(label), is);
    }
    rows
}

/// By one of the ways of `bypass`; before the flood the same exchange, polling and as by default.
pub(super) fn over_link(transport: &'static str) -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for spins in [true, false] {
        let wait = waits(transport, spins);
        let is = move |r: &Record| {
            r.workload == "latency"
                && r.transport == transport
                && r.case == "every 500 us link"
                && (r.wait == "spin") == spins
        };
        add(&mut rows, &format!("every 500 µs, {wait}"), "", is);
    }
    for label in interference::labels() {
        let is = move |r: &Record| {
            r.workload == "interference"
                && r.transport == transport
                && is_linked(r)
                && r.case.trim_end_matches(" link") == label
        };
        add(&mut rows, label, published(label), is);
    }
    rows
}

/// What is of these lines at each size.
fn add(
    rows: &mut Vec<Row<'static>>,
    what: &str,
    published: &'static str,
    is: impl Fn(&Record) -> bool + Copy + 'static,
) {
    for bytes in SIZES {
        let is = move |r: &Record| r.size_bytes == bytes && is(r);
        let of = |figures: &str| format!("{what}, {}: {figures}", size(bytes));
        rows.push(row(of("round trip p50, p99, p99.9, max"), published, Figure::Tail, is));
        rows.push(row(of("one way p50, p99, max"), "", Figure::OneWay, is));
    }
}

/// Fewer samples than this have no percentile 99.99 that is not one of the largest ten.
const RARE: u64 = 100_000;

/// A line without a flood, and that beside one.
type Pair<'a> = [&'a Record; 2];

/// The long pairs of this way and size, those of each run together.
fn pairs<'a>(records: &'a [Record], transport: &str, bytes: u64) -> Vec<Vec<Pair<'a>>> {
    let of = |label: &'static str| {
        let is = move |r: &&Record| {
            r.outcome == Outcome::Ok
                && is_as_named(r)
                && r.transport == transport
                && r.size_bytes == bytes
                && r.case.trim_end_matches(" link") == label
                && r.workload == "interference"
                && r.samples >= RARE
                && r.rtt_ns.is_some()
        };
        records.iter().filter(is)
    };
    let mut runs: Vec<Vec<Pair>> = Vec::new();
    let each = interference::LONG.into_iter().flat_map(|[quiet, flood]| of(quiet).map(move |of| (of, flood)));
    for (quiet, flood) in each {
        let same = |r: &&Record| r.run.id == quiet.run.id && r.peer == quiet.peer;
        let Some(flood) = of(flood).rfind(same) else { continue };
        match runs.iter_mut().find(|run| run.iter().any(|[of, _]| of.run.id == quiet.run.id)) {
            Some(run) => {
                run.retain(|[of, _]| of.peer != quiet.peer);
                run.push([quiet, flood]);
            }
            None => runs.push(vec![[quiet, flood]]),
        }
    }
    runs
}

/// How many pairs a run has, and how new it is.
fn rank<'a>(run: &[Pair<'a>]) -> (usize, Option<(bool, &'a str)>) {
    (run.len(), run.iter().map(|[quiet, _]| recency(quiet)).max())
}

/// The long pair of each way: the rarest times with all mitigations, without a flood and beside one.
pub(super) fn beside_flood(records: &[Record]) -> Option<Table> {
    let mut used: Vec<&Record> = Vec::new();
    let mut lines: Vec<(&Run, Vec<String>)> = Vec::new();
    let beside = records.iter().filter(|r| r.workload == "interference");
    let sizes: BTreeSet<u64> = beside.map(|r| r.size_bytes).collect();
    for (transport, way) in WAYS {
        for &bytes in &sizes {
            let run = pairs(records, transport, bytes).into_iter().max_by_key(|run| rank(run));
            for [quiet, flood] in run.into_iter().flatten() {
                let Some((alone, beside)) = quiet.rtt_ns.zip(flood.rtt_ns) else { continue };
                used.extend([quiet, flood]);
                let samples = thousands(quiet.samples.min(flood.samples));
                let what = format!("{} of {} by {way}", samples, size(bytes));
                let mut line = vec![what, peers::name(&quiet.peer)];
                for pick in [|t: &Times| t.p9999, |t: &Times| t.max] {
                    let (alone_ns, beside_ns) = (pick(&alone) as f64, pick(&beside) as f64);
                    line.extend([time(alone_ns), time(beside_ns), times(beside_ns / alone_ns.max(1.0))]);
                }
                lines.push((&quiet.run, line));
            }
        }
    }
    let says = "Every 500 µs with all mitigations, by DPDK without SCHED_FIFO, in pieces that take turns. Published: a maximum of 449 µs without a flood and of 197 µs beside it.";
    let mut table = Table::new("What a flood adds to isolated round trips", &used, says).with_heads(
        ["round trips", "peer"],
        ["p99.99 quiet", "flood", "ratio", "max quiet", "flood", "ratio"],
    );
    lines.into_iter().for_each(|(run, line)| table.add(line, Some(run)));
    (!used.is_empty()).then_some(table)
}
