//! The lines of a workload as a table that fits the terminal.
//!
//! What failed says why below it, line by line; what is absent says it once for each reason.

use std::fmt::Write;

use crate::record::{Calls, Outcome, Pace, Record, Times};
use crate::report::model::{failed_rounds, remark};
use crate::workload::soak::growth_per_s;

/// A terminal whose width is not known, as a file.
const WIDTH: usize = 120;

/// A column: its title, its text, and whether a narrow terminal keeps it.
struct Column {
    title: &'static str,
    needed: bool,
    text: fn(&Record) -> String,
}

/// The columns of times that round trips and writes have.
fn times_columns() -> Vec<Column> {
    vec![
        column("p50", true, |r| time(main_times(r), |t| t.p50)),
        column("p99", true, |r| time(main_times(r), |t| t.p99)),
        column("p99.9", false, |r| time(main_times(r), |t| t.p999)),
        column("max", true, |r| time(main_times(r), |t| t.max)),
        column("lost", false, errors),
        column("CPU", false, |r| r.cpu_ns_per_sample.map_or(String::new(), nanoseconds)),
    ]
}

/// Those of a long run: how far the bound is from the mean.
fn bound_columns() -> Vec<Column> {
    vec![
        column("samples", true, |r| scaled(r.samples as f64, "")),
        column("mean", true, |r| time(main_times(r), |t| t.mean)),
        column("p99", false, |r| time(main_times(r), |t| t.p99)),
        column("p99.9", false, |r| time(main_times(r), |t| t.p999)),
        column("p99.99", true, |r| time(main_times(r), |t| t.p9999)),
        column("max", true, |r| time(main_times(r), |t| t.max)),
        column("max/mean", true, |r| {
            main_times(r).and_then(Times::max_to_mean).map_or(String::new(), digits)
        }),
        column("lost", false, errors),
        column("CPU", false, |r| r.cpu_ns_per_sample.map_or(String::new(), nanoseconds)),
    ]
}

fn column(title: &'static str, needed: bool, text: fn(&Record) -> String) -> Column {
    Column { title, needed, text }
}

fn columns(workload: &str) -> Vec<Column> {
    match workload {
        "throughput" | "fanout" => vec![
            column("samples/s", true, |r| r.samples_per_s.map_or(String::new(), |n| scaled(n, ""))),
            column("bytes/s", true, |r| r.bytes_per_s.map_or(String::new(), |n| scaled(n, "B"))),
            column("lost", true, errors),
            column("CPU", false, |r| r.cpu_ns_per_sample.map_or(String::new(), nanoseconds)),
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
            column("sent", true, |r| r.network_bytes.map_or(String::new(), |n| scaled(n as f64, "B"))),
            column("datagrams", true, |r| r.network_packets.map_or(String::new(), |n| n.to_string())),
            column("CPU", false, |r| r.cpu_ns_per_sample.map_or(String::new(), nanoseconds)),
        ],
        "memory" => vec![
            column("process", false, |r| entity(r, "process")),
            column("participant", true, |r| entity(r, "participant")),
            column("topic", false, |r| entity(r, "topic")),
            column("writer", true, |r| entity(r, "writer")),
            column("reader", true, |r| entity(r, "reader")),
            column("threads", true, |r| r.memory.last().map_or(String::new(), |m| m.threads.to_string())),
            column("fds", false, |r| r.memory.last().map_or(String::new(), |m| m.descriptors.to_string())),
        ],
        "calls" => vec![
            column("writer", true, |r| per_burst(r, "writer", |calls| calls.all)),
            column("send", true, |r| per_burst(r, "writer", |calls| calls.send)),
            column("futex", false, |r| per_burst(r, "writer", |calls| calls.futex)),
            column("reader", true, |r| per_burst(r, "reader", |calls| calls.all)),
            column("receive", true, |r| per_burst(r, "reader", |calls| calls.receive)),
            column("wait", false, |r| per_burst(r, "reader", |calls| calls.wait)),
            column("futex", false, |r| per_burst(r, "reader", |calls| calls.futex)),
            column("lost", false, errors),
            column("CPU", false, |r| r.cpu_ns_per_sample.map_or(String::new(), nanoseconds)),
        ],
        "soak" => {
            let mut columns = bound_columns();
            columns.push(column("growth", true, |r| {
                growth_per_s(&r.memory).map_or(String::new(), |n| scaled(n, "B/s"))
            }));
            columns
        }
        "interference" => {
            let mut columns = times_columns();
            columns.push(column("flood", true, |r| r.flood_per_s.map_or(String::new(), |n| scaled(n, "/s"))));
            columns
        }
        _ => times_columns(),
    }
}

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
    header.extend(base.map(|base| format!("to {base}")));
    let mut rows = vec![header];
    let mut last_place = String::new();
    for record in records {
        let place = place(record);
        let shown = if place == last_place { String::new() } else { place.clone() };
        last_place = place;
        let mark =
            if matches!(record.outcome, Outcome::Failed(_)) { " (failed)".into() } else { remark(record) };
        let mut row = vec![shown, format!("{}{mark}", record.peer)];
        row.extend(columns.iter().map(|column| (column.text)(record)));
        row.extend(base.map(|base| ratio(record, base)));
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

fn main_times(record: &Record) -> Option<&Times> {
    record.rtt_ns.as_ref().or(record.write_ns.as_ref())
}

fn time(times: Option<&Times>, pick: fn(&Times) -> u64) -> String {
    times.map_or(String::new(), |times| nanoseconds(pick(times) as f64))
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

fn ratio(record: &Record, base: &str) -> String {
    if record.peer == base {
        return "1".to_string();
    }
    let Some(ratio) = record.ratio.iter().find(|ratio| ratio.to == base) else { return String::new() };
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.2} [{low:.2} {high:.2}]", ratio.p50),
        _ => format!("{:.2}", ratio.p50),
    }
}

/// Calls of a side for each burst.
fn per_burst(record: &Record, side: &str, pick: fn(&Calls) -> u64) -> String {
    record.calls_per_burst(side, pick).map_or(String::new(), digits)
}

fn entity(record: &Record, name: &str) -> String {
    let found = record.memory.iter().find(|memory| memory.entity == name);
    found.map_or(String::new(), |memory| scaled(memory.bytes_each as f64, "B"))
}

/// Three digits of a time.
fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// Three digits of a number with a unit of thousands.
fn scaled(number: f64, unit: &str) -> String {
    let (value, prefix) = match number.abs() {
        n if n < 1e3 => (number, ""),
        n if n < 1e6 => (number / 1e3, "k"),
        n if n < 1e9 => (number / 1e6, "M"),
        _ => (number / 1e9, "G"),
    };
    format!("{} {prefix}{unit}", digits(value)).trim_end().to_string()
}

fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn bytes(size: u64) -> String {
    match size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
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
