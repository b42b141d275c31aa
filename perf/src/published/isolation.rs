//! Rows of the study of timing isolation: there and back, and there alone, beside a flood and without, with each
//! mitigation and with all of them, at the study's sizes.

use super::{Figure, Row, is_linked, row};
use crate::record::Record;
use crate::report::units::size;
use crate::workload::interference;

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

/// By one of the ways of `bypass`; before the flood the same exchange, awake and asleep.
pub(super) fn over_link(transport: &'static str) -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (wait, spins) in [("polling", true), ("asleep", false)] {
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
