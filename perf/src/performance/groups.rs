//! The tables of the page that have every line: one for each group, with the columns of its workload.

use std::fmt::Write;

use crate::half::Half;
use crate::record::{Calls, LEAST_OF_P999, LEAST_OF_P9999, Outcome, Record, Times};
use crate::report::gains::{Gain, gains};
use crate::report::model::{Group, Model, main_times, remark};
use crate::report::units::{bytes, count, percent, rate, size, thousands, time, times};
use crate::report::{model, peers, tables};

use super::{cell, with_interval};

/// The lines of a group, below how they were measured.
pub(super) fn table(page: &mut String, model: &Model, group: &Group) {
    let _ = write!(page, "### {}: {}\n\n", group.key.workload, cell(&group.conditions()));
    let mut commands: Vec<&str> = group.lines.iter().map(|line| line.run.command.as_str()).collect();
    commands.sort_unstable();
    commands.dedup();
    let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    let _ = write!(page, "{}\n\nMeasured on: {}.\n\n", commands.join(", "), group.label());
    match group.key.workload.as_str() {
        "memory" => memory_rows(page, group),
        "cdr" => coding_rows(page, model, group),
        "calls" => call_rows(page, group),
        _ => rows(page, model, group),
    }
    page.push('\n');
}

fn rows(page: &mut String, model: &Model, group: &Group) {
    let rates = group.lines.iter().any(|line| model::is_rate(line));
    // In an open loop the bound is the subject.
    let paced = group.key.rate_hz > 0.0 && group.lines.iter().any(|line| line.rtt_ns.is_some());
    let in_bursts = group.key.workload == "bursts";
    let (head, columns) = match () {
        () if in_bursts => ("n | sample p50 | p99 | max | burst p50 | p99 | max", 7),
        () if rates => ("samples | bytes | lost", 3),
        () if paced => ("n | p50 | mean | p99 | p99.9 | p99.99 | max | max/mean", 8),
        () => ("n | p50 | p99 | p99.99 | max", 5),
    };
    let gain = format!("{} gains", peers::name(&model.subject));
    let _ = write!(page, "| size | peer | {head} | {gain} |\n|--:|---|{}--:|\n", "--:|".repeat(columns));
    let mut lines: Vec<&&Record> = group.lines.iter().filter(|line| line.outcome == Outcome::Ok).collect();
    lines.sort_by_key(|line| (line.size_bytes, line.case.clone(), peers::order(&line.peer)));
    for line in lines {
        let figures = match main_times(line) {
            _ if rates => format!(
                "{} | {}/s | {}",
                line.samples_per_s.map(rate).unwrap_or_default(),
                line.bytes_per_s.map(bytes).unwrap_or_default(),
                lost(line)
            ),
            Some(burst) if in_bursts => {
                let sample = line.one_way_ns.as_ref().map_or(" | | ".to_string(), bounds);
                format!("{} | {sample} | {}", taken(line), bounds(burst))
            }
            Some(t) if paced => {
                let [p50, mean, p99, max] = [t.p50, t.mean, t.p99, t.max].map(|ns| time(ns as f64));
                let (p999, p9999) = (rare(line, t.p999, LEAST_OF_P999), rare(line, t.p9999, LEAST_OF_P9999));
                let spread = t.max_to_mean().map(times).unwrap_or_default();
                format!("{} | {p50} | {mean} | {p99} | {p999} | {p9999} | {max} | {spread}", taken(line))
            }
            Some(t) => {
                let [p50, p99, max] = [t.p50, t.p99, t.max].map(|ns| time(ns as f64));
                format!("{} | {p50} | {p99} | {} | {max}", taken(line), rare(line, t.p9999, LEAST_OF_P9999))
            }
            None => " | ".repeat(columns - 1),
        };
        let all = gains(model, group);
        let to_this = |gain: &&Gain| {
            gain.to == line.peer && gain.record.size_bytes == line.size_bytes && gain.record.case == line.case
        };
        let gain = all.iter().find(to_this).map(with_interval).unwrap_or_default();
        let extra = tables::extra(group, line);
        let _ = writeln!(
            page,
            "| {} {} | {}{} | {figures} | {gain} |",
            size(line.size_bytes),
            cell(&extra),
            peers::name(&line.peer),
            cell(&remark(line))
        );
    }
}

/// The median, the tail and the bound.
fn bounds(times: &Times) -> String {
    [times.p50, times.p99, times.max].map(|ns| time(ns as f64)).join(" | ")
}

/// How many samples a line is of, how many of them were lost, and of an open loop how punctual it was and beside what.
fn taken(line: &Record) -> String {
    let mut text = thousands(line.samples);
    if line.lost > 0 {
        let _ = write!(text, ", {} lost", lost(line));
    }
    if let Some(behind_ns) = line.behind_ns {
        let _ = write!(text, ", {} behind", time(behind_ns));
    }
    if let Some(late) = line.overslept_ns {
        let _ = write!(text, ", woken {} late (p99 {})", time(late.p50 as f64), time(late.p99 as f64));
    }
    if line.late > 0 {
        let _ = write!(text, ", {} late", thousands(line.late));
    }
    if let Some(flood) = line.flood_per_s {
        let _ = write!(text, ", flood of {}", rate(flood));
    }
    text
}

/// What got lost, and which share of all that is.
fn lost(line: &Record) -> String {
    match line.lost {
        0 => "0".to_string(),
        lost => format!("{} ({})", thousands(lost), percent(line.loss())),
    }
}

/// A percentile that takes so many samples.
fn rare(line: &Record, ns: u64, least: u64) -> String {
    if line.samples < least { "–".to_string() } else { time(ns as f64) }
}

fn memory_rows(page: &mut String, group: &Group) {
    page.push_str("| peer | each adds | threads | descriptors |\n|---|---|--:|--:|\n");
    for line in group.lines.iter().filter(|line| !line.memory.is_empty()) {
        let each: Vec<String> = line
            .memory
            .iter()
            .map(|step| format!("{} {}", step.entity, bytes(step.bytes_each as f64)))
            .collect();
        let last = line.memory.last().map_or((0, 0), |step| (step.threads, step.descriptors));
        let _ =
            writeln!(page, "| {} | {} | {} | {} |", peers::name(&line.peer), each.join(", "), last.0, last.1);
    }
}

fn call_rows(page: &mut String, group: &Group) {
    page.push_str("For each burst; the writer's own pause is a call, too.\n\n");
    page.push_str(
        "| size | peer | writer: calls | send | futex | reader: calls | receive | wait | futex |\n|--:|---|",
    );
    page.push_str(&"--:|".repeat(7));
    page.push('\n');
    for line in group.lines.iter().filter(|line| line.outcome == Outcome::Ok) {
        type Pick = fn(&Calls) -> u64;
        let picks: [(&str, Pick); 7] = [
            ("writer", |calls| calls.all),
            ("writer", |calls| calls.send),
            ("writer", |calls| calls.futex),
            ("reader", |calls| calls.all),
            ("reader", |calls| calls.receive),
            ("reader", |calls| calls.wait),
            ("reader", |calls| calls.futex),
        ];
        let figures =
            picks.map(|(side, pick)| line.calls_per_burst(side, pick).map(count).unwrap_or_default());
        let _ = writeln!(
            page,
            "| {} | {}{} | {} |",
            size(line.size_bytes),
            peers::name(&line.peer),
            cell(&remark(line)),
            figures.join(" | ")
        );
    }
}

fn coding_rows(page: &mut String, model: &Model, group: &Group) {
    let gain = format!("{} gains", peers::name(&model.subject));
    let of = |half: Half| format!(" {} p50 | p99 | {gain} |", half.word());
    let _ = write!(page, "| size | peer |{}\n|--:|---|{}\n", Half::BOTH.map(of).concat(), "--:|".repeat(6));
    let all = gains(model, group);
    let mut lines: Vec<&&Record> = group.lines.iter().collect();
    lines.sort_by_key(|line| (line.size_bytes, peers::order(&line.peer)));
    for line in lines {
        let shown = |half: Half| {
            let of_half = half.times(line)?;
            let is = |gain: &&Gain| {
                gain.half == Some(half) && gain.to == line.peer && gain.record.size_bytes == line.size_bytes
            };
            let gain = all.iter().find(is).map(with_interval).unwrap_or_default();
            let [p50, p99] = [of_half.p50, of_half.p99].map(|ns| time(ns as f64));
            Some(format!("{p50} | {p99} | {gain}"))
        };
        if let [Some(encode), Some(decode)] = Half::BOTH.map(shown) {
            let (size, peer) = (size(line.size_bytes), peers::name(&line.peer));
            let _ = writeln!(page, "| {size} | {peer} | {encode} | {decode} |");
        }
    }
}
