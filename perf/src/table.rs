//! The lines of a workload as a table that fits the terminal.
//!
//! What failed says why below it, line by line; what is absent says it once for each reason.

mod columns;
mod units;

use std::fmt::Write;

use crate::half::Half;
use crate::record::{Outcome, Pace, Ratio, Record};
use crate::report::model::{failed_rounds, remark};

use columns::{Column, columns};
use units::{bytes, scaled};

/// A terminal whose width is not known, as a file.
const WIDTH: usize = 120;

/// The table of lines that belong to one workload; ratios are those to `base`, or to the first peer where
/// that has no figures.
pub fn render(records: &[Record], base: Option<&str>) -> String {
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
    render_within(records, base, width)
}

fn render_within(records: &[Record], base: Option<&str>, width: usize) -> String {
    let Some(first) = records.first() else { return String::new() };
    let mut out = format!("\n{}\n", first.workload);
    let ran: Vec<&Record> = records.iter().filter(|record| has_figures(record)).collect();
    let base = base.filter(|base| ran.iter().any(|record| record.peer == *base));
    let base = base.or(ran.first().map(|record| record.peer.as_str()));
    let base = base.filter(|base| ran.iter().any(|record| record.peer != *base));
    if !ran.is_empty() {
        let mut columns = columns(&first.workload);
        // A figure whose samples got lost, or were written late, is never shown without it.
        let is_lossy = ran.iter().any(|record| record.lost + record.late > 0);
        columns
            .iter_mut()
            .filter(|column| column.title == "lost")
            .for_each(|column| column.needed |= is_lossy);
        let mut rows = rows(&ran, &columns, base);
        while line_width(&rows) > width && columns.iter().any(|column| !column.needed) {
            if let Some(last) = columns.iter().rposition(|column| !column.needed) {
                columns.remove(last);
            }
            rows = self::rows(&ran, &columns, base);
        }
        write_rows(&mut out, &rows);
        for record in ran.iter().filter(|record| record.paces.len() > 1) {
            write_paces(&mut out, record);
        }
    }
    for record in records {
        if let Outcome::Failed(reason) = &record.outcome {
            let _ = writeln!(out, "failed  {} {}: {reason}", record.peer, place(record));
        } else if let Some(reason) = &record.failure {
            let _ = writeln!(
                out,
                "failed  {} {}: {}: {reason}",
                record.peer,
                place(record),
                failed_rounds(record)
            );
        }
    }
    write_absent(&mut out, records);
    out
}

/// Whether a line has anything to show.
fn has_figures(record: &Record) -> bool {
    record.rounds > 0
}

fn rows(records: &[&Record], columns: &[Column], base: Option<&str>) -> Vec<Vec<String>> {
    let mut header = vec!["".to_string(), "peer".to_string()];
    header.extend(columns.iter().map(|column| column.title.to_string()));
    let heads = if records.iter().any(|record| is_coding(record)) {
        Half::BOTH.map(|half| format!("{} to", half.word())).to_vec()
    } else {
        vec!["to".to_string()]
    };
    header.extend(base.iter().flat_map(|base| heads.iter().map(move |head| format!("{head} {base}"))));
    let mut rows = vec![header];
    let mut last_place = String::new();
    for record in records {
        let place = place(record);
        let shown = if place == last_place { String::new() } else { place.clone() };
        last_place = place;
        let mark =
            if matches!(record.outcome, Outcome::Failed(_)) { " (failed)".into() } else { remark(record) };
        let mut row = vec![shown, format!("{}{mark}", record.peer)];
        row.extend(columns.iter().map(|column| (column.text)(record).unwrap_or_default()));
        row.extend(base.map(|base| ratios(record, records, base)).unwrap_or_default());
        rows.push(row);
    }
    rows
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect()
}

fn line_width(rows: &[Vec<String>]) -> usize {
    widths(rows).iter().map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

/// Names to the left, figures to the right.
fn write_rows(out: &mut String, rows: &[Vec<String>]) {
    let widths = widths(rows);
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at < 2 { write!(line, "{cell:width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// A line's table of bursts: their samples across, their intervals down.
fn write_paces(out: &mut String, record: &Record) {
    let mut demands: Vec<u64> = record.paces.iter().map(|pace| pace.demand).collect();
    let mut intervals: Vec<u64> = record.paces.iter().map(|pace| pace.interval_ms).collect();
    for list in [&mut demands, &mut intervals] {
        list.sort_unstable();
        list.dedup();
    }
    let mut header = vec![String::new(), "bursts of".to_string()];
    header.extend(demands.iter().map(u64::to_string));
    let mut rows = vec![header];
    for interval_ms in intervals {
        let mut row = vec![String::new(), format!("each {interval_ms} ms")];
        row.extend(demands.iter().map(|demand| {
            let is = |pace: &&Pace| (pace.demand, pace.interval_ms) == (*demand, interval_ms);
            record.paces.iter().find(is).map_or(String::new(), pace)
        }));
        rows.push(row);
    }
    let _ = writeln!(out, "\n{} {}: samples/s, of those asked for, lost", record.peer, place(record));
    write_rows(out, &rows);
}

/// The rate of a burst, how much of what was asked for that is, and what got lost.
fn pace(pace: &Pace) -> String {
    if pace.samples_per_s == 0.0 {
        return "failed".to_string();
    }
    let mut text = scaled(pace.samples_per_s, "");
    if let Some(asked_per_s) = pace.asked_per_s() {
        let _ = write!(text, " {:.0}%", 100.0 * pace.samples_per_s / asked_per_s);
    }
    if pace.lost > 0 {
        let _ = write!(text, " lost {:.2}%", 100.0 * pace.loss());
    }
    text
}

/// One line for each reason, with everyone it is true of.
fn write_absent(out: &mut String, records: &[Record]) {
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for record in records {
        let Outcome::Absent(reason) = &record.outcome else { continue };
        match told.iter_mut().find(|(why, _)| why == reason) {
            Some((_, peers)) if peers.contains(&record.peer.as_str()) => {}
            Some((_, peers)) => peers.push(&record.peer),
            None => told.push((reason, vec![&record.peer])),
        }
    }
    for (reason, peers) in told {
        let _ = writeln!(out, "absent  {}: {reason}", peers.join(", "));
    }
}

/// Where a line belongs: what all peers of a case share.
fn place(record: &Record) -> String {
    let mut words = Vec::new();
    if record.workload != "cdr" {
        words.push(record.transport.clone());
    }
    if record.size_bytes > 0 {
        words.push(bytes(record.size_bytes));
    }
    if !record.case.is_empty() {
        words.push(record.case.clone());
    }
    if record.pin != "none" && record.workload != "interference" {
        words.push(format!("pin {}", record.pin));
    }
    if record.qos.starts_with("best-effort") && record.workload == "throughput" {
        words.push("best-effort".to_string());
    }
    words.join(" ")
}

fn is_coding(record: &Record) -> bool {
    record.workload == "cdr"
}

/// How a line stands to the base, of coding by each half.
fn ratios(record: &Record, records: &[&Record], base: &str) -> Vec<String> {
    if record.peer == base {
        return vec!["1".to_string(); if is_coding(record) { Half::BOTH.len() } else { 1 }];
    }
    if !is_coding(record) {
        let ratio = record.ratio.iter().find(|ratio| ratio.to == base);
        return vec![ratio.map(shown).unwrap_or_default()];
    }
    let is_same = |other: &&&Record| {
        other.peer == base && other.size_bytes == record.size_bytes && other.case == record.case
    };
    let other = records.iter().find(is_same);
    let of_half = |half: Half| other.and_then(|other| half.ratio(record, other));
    Half::BOTH.map(|half| of_half(half).map(|of| shown(&of.ratio)).unwrap_or_default()).to_vec()
}

fn shown(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.2} [{low:.2} {high:.2}]", ratio.p50),
        _ => format!("{:.2}", ratio.p50),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fields: serde_json::Value) -> Record {
        let mut all = serde_json::json!({
            "workload": "latency", "peer": "taut", "version": "1", "transport": "udp", "wait": "listener",
            "pin": "none", "size_bytes": 1024, "rate_hz": 0.0, "qos": "reliable keep-last:1 volatile",
            "case": "", "status": "ok", "rounds": 3, "samples": 900, "lost": 100, "out_of_order": 0,
            "duplicates": 0, "corrupt": 0, "round_values": [1.0], "cpu_ns_per_sample": 12_340.0,
            "rtt_ns": {"min": 1, "mean": 1, "p50": 1_234, "p90": 1, "p99": 56_789, "p999": 7_000_000,
                "p9999": 1, "p999999": 1, "max": 8_000_000_000u64, "max_at_ns": 1, "stddev": 1, "pdv": 1},
            "run": serde_json::to_value(crate::record::Run::default()).unwrap(),
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn a_row_has_its_figures_and_the_ratio_to_the_base() {
        let ratio = serde_json::json!({"ratio": [{"to": "floor", "p50": 1.5, "p99": 2.0, "max": 2.0, "low": 1.4, "high": 1.6}]});
        let floor = serde_json::json!({"peer": "floor", "lost": 0, "out_of_order": 2});
        let text = render_within(&[record(ratio), record(floor)], Some("floor"), 200);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2].join(" "), "peer p50 p99 p99.9 max lost CPU to floor");
        assert_eq!(
            rows[3].join(" "),
            "udp 1 KiB taut 1.23 us 56.8 us 7.00 ms 8.00 s 10.00% 12.3 us 1.50 [1.40 1.60]"
        );
        assert_eq!(rows[4].join(" "), "floor 1.23 us 56.8 us 7.00 ms 8.00 s 2 order 12.3 us 1");
    }

    #[test]
    fn coding_has_a_ratio_for_each_half() {
        let times = |p50: u64| {
            serde_json::json!({"min": 1, "mean": 1, "p50": p50, "p90": 1, "p99": p50, "p999": 1,
                "p9999": 1, "p999999": 1, "max": p50, "max_at_ns": 1, "stddev": 1, "pdv": 1})
        };
        let line = |peer: &str, encode: u64, decode: u64| {
            record(serde_json::json!({"workload": "cdr", "case": "plain", "peer": peer, "lost": 0,
                "encode_ns": times(encode), "encode_round_values": [encode, encode],
                "decode_ns": times(decode), "decode_round_values": [decode, decode]}))
        };
        let text = render_within(&[line("taut", 30, 50), line("floor", 10, 100)], Some("floor"), 200);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2].join(" "), "peer encode p99 decode p99 encode to floor decode to floor");
        assert_eq!(
            rows[3].join(" "),
            "1 KiB plain taut 30 ns 30 ns 50 ns 50 ns 3.00 [3.00 3.00] 0.50 [0.50 0.50]"
        );
        assert_eq!(rows[4].join(" "), "floor 10 ns 10 ns 100 ns 100 ns 1 1");
    }

    #[test]
    fn a_long_run_says_how_far_the_bound_is_from_the_mean() {
        let soak = serde_json::json!({"workload": "soak", "samples": 1_000_000, "lost": 0,
            "rtt_ns": {"min": 1, "mean": 20_000, "p50": 1, "p90": 1, "p99": 30_000, "p999": 40_000,
                "p9999": 50_000, "p999999": 1, "max": 52_000, "max_at_ns": 1, "stddev": 1, "pdv": 1}});
        let text = render_within(&[record(soak)], None, 200);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2].join(" "), "peer samples mean p99 p99.9 p99.99 max max/mean lost CPU growth");
        assert_eq!(
            rows[3].join(" "),
            "udp 1 KiB taut 1.00 M 20.0 us 30.0 us 40.0 us 50.0 us 52.0 us 2.60 0 12.3 us"
        );
    }

    #[test]
    fn what_a_figure_is_not_shown_without() {
        let lossy = serde_json::json!({"lost": 300, "samples": 100, "expected": 1_200, "late": 2, "rate_hz": 1_000.0,
            "rounds": 2, "failed_rounds": 1, "failure": "it broke", "round_values": [1.0, 0.0, 1.0],
            "case": "flood fifo inline", "flood_per_s": 99_870.0, "workload": "interference"});
        let text = render_within(&[record(lossy)], None, 60);
        assert!(text.contains("taut (1 of 3 rounds failed; no inline mode, listener)"), "{text}");
        assert!(text.contains("25.00% 2 late") && text.contains("99.9 k/s"), "{text}");
        assert!(
            text.contains("failed  taut udp 1 KiB flood fifo inline: 1 of 3 rounds: it broke\n"),
            "{text}"
        );
    }

    #[test]
    fn a_narrow_terminal_keeps_what_is_needed() {
        let text = render_within(&[record(serde_json::json!({}))], None, 50);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert!(text.contains("p99") && !text.contains("CPU"), "{text}");
    }

    #[test]
    fn every_burst_has_its_cell() {
        let pace = |demand: u64, interval_ms: u64, samples_per_s: f64, lost: u64| Pace {
            demand,
            interval_ms,
            samples_per_s,
            expected: 1_000,
            lost,
        };
        let paces = vec![
            pace(100, 0, 2e6, 0),
            pace(100, 10, 10_000.0, 0),
            pace(1_000, 0, 0.0, 0),
            pace(1_000, 10, 5e4, 25),
        ];
        let line =
            Record { paces, ..record(serde_json::json!({"workload": "throughput", "samples_per_s": 2e6})) };
        let text = render_within(&[line], None, 100);
        let rows: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            rows[5..],
            [
                "taut udp 1 KiB: samples/s, of those asked for, lost",
                "bursts of 100 1000",
                "each 0 ms 2.00 M failed",
                "each 10 ms 10.0 k 100% 50.0 k 50% lost 2.50%"
            ]
        );
    }

    #[test]
    fn failed_and_absent_lines_say_why() {
        let broken = serde_json::json!({"peer": "a", "status": "failed", "reason": "it broke", "rounds": 0, "rtt_ns": null});
        let half =
            serde_json::json!({"peer": "b", "status": "failed", "reason": "it broke later", "rounds": 2});
        let absent = serde_json::json!({"peer": "c", "status": "absent", "reason": "no way", "rounds": 0, "rtt_ns": null});
        let other = serde_json::json!({"peer": "d", "status": "absent", "reason": "no way", "rounds": 0, "rtt_ns": null});
        let lines = [broken, half, absent.clone(), other, absent].map(record);
        let text = render_within(&lines, None, 120);
        assert!(text.contains("failed  a udp 1 KiB: it broke\n"), "{text}");
        assert!(
            text.contains("b (failed)") && text.contains("failed  b udp 1 KiB: it broke later\n"),
            "{text}"
        );
        assert!(text.ends_with("absent  c, d: no way\n"), "{text}");
    }
}
