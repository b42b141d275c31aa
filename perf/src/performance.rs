//! `docs/performance.md` and its pictures, made from a stored run.
//!
//! Every number stands with the command that repeats it. Rows where the subject is behind come first.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::record::{Calls, LEAST_OF_P999, LEAST_OF_P9999, Outcome, Record};
use crate::report::current::{current, settled};
use crate::report::model::{
    Gain, Group, Model, Standing, failed_rounds, gains, gaps, main_times, remark, subject,
};
use crate::report::sections::rows_not_ahead;
use crate::report::svg::{Frame, standalone};
use crate::report::units::{bytes, count, percent, rate, size, thousands, time, times};
use crate::report::{headline, model, peers, rate_by_size, tables, time_by_size};
use crate::{aims, published, rules, run_file, why};

/// The picture of the README.
pub const ROUND_TRIPS: &str = "round_trips.svg";

/// Free around a picture, in pixels.
const MARGIN: f64 = 14.0;

/// The run that all this is made from.
pub const STORED: &str = "run.jsonl.gz";

/// A file for docs/results/.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// What it shows, for who does not see it.
    pub says: String,
    /// The SVG, with its own colours for light and dark.
    pub svg: String,
}

/// Writes `performance.md` into `docs`, the pictures and the run itself into `docs/results`; returns what it wrote.
///
/// *Errors*: those of the file system.
pub fn write(records: &[Record], docs: &Path) -> std::io::Result<Vec<PathBuf>> {
    let results = docs.join("results");
    std::fs::create_dir_all(&results)?;
    let subject = subject(records);
    let mut files = vec![
        (docs.join("performance.md"), markdown(records).into_bytes()),
        (results.join(STORED), run_file::packed(records, &subject)?),
    ];
    for picture in pictures(records) {
        files.push((results.join(picture.name), picture.svg.into_bytes()));
    }
    for (path, text) in &files {
        std::fs::write(path, text)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// The pictures of a run; what was not measured has none.
pub fn pictures(records: &[Record]) -> Vec<Picture> {
    let shown = current(records);
    let model = Model::new(&shown);
    let mut pictures = Vec::new();
    if let Some(picture) = round_trips(&model) {
        pictures.push(picture);
    }
    type Draw = fn(&Model, &Group, Frame) -> maud::Markup;
    let against_size: [(&str, &str, Draw); 2] = [
        ("latency", "Median round trip against size", time_by_size),
        ("throughput", "Throughput against size", rate_by_size),
    ];
    for (workload, says, draw) in against_size {
        let groups = model.of(workload);
        let Some(group) = groups.iter().filter(|group| ran(group)).max_by_key(|group| {
            (group.key.transport == "udp", group.key.case.is_empty(), group.sizes().len())
        }) else {
            continue;
        };
        let says = format!("{says}: {}", group.conditions());
        let svg = titled(&says, &draw(&model, group, Frame::Wide).into_string());
        pictures.push(Picture { name: format!("{workload}_by_size.svg"), says, svg });
    }
    pictures
}

fn ran(group: &Group) -> bool {
    group.lines.iter().any(|line| line.outcome == Outcome::Ok)
}

fn round_trips(model: &Model) -> Option<Picture> {
    let (title, mut chart) = headline(model)?;
    chart.title = format!("{title}: median (bar) and 99 % (line)");
    let drawn = chart.draw(Frame::Wide, MARGIN).into_string();
    let says = format!("{title}: median and 99th percentile of each peer");
    Some(Picture {
        name: ROUND_TRIPS.to_string(),
        says,
        svg: standalone(&drawn, chart.height() + MARGIN / 2.0),
    })
}

/// A chart of the page as a picture: moved down and in, below its title.
fn titled(title: &str, chart: &str) -> String {
    /// The title's height.
    const HEAD: f64 = 34.0;
    let open = chart.find('>').map_or(0, |at| at + 1);
    let close = chart.rfind("</svg>").unwrap_or(chart.len());
    let height = view_height(chart) + HEAD + MARGIN;
    let width = Frame::Wide.width();
    let scale = (width - 2.0 * MARGIN) / width;
    let text = maud::html! { text.title x=(MARGIN) y="24" { (title) } }.into_string();
    let moved = format!(
        r#"<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{text}<g transform="translate({MARGIN} {HEAD}) scale({scale:.4})">{}</g></svg>"#,
        &chart[open..close]
    );
    standalone(&moved, height)
}

fn view_height(chart: &str) -> f64 {
    let view = chart.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    view.split(' ').nth(3).and_then(|number| number.parse().ok()).unwrap_or(400.0)
}

/// The page.
pub fn markdown(records: &[Record]) -> String {
    let shown = current(records);
    let model = Model::new(&shown);
    let subject = peers::name(&model.subject);
    let mut page = format!(
        "# Performance\n\nWhere {subject} stands, from stored runs of `taut perf`. This page is generated.\n\n"
    );
    machine(&mut page, &shown);
    if let Some(warning) = rules::mixed(&shown) {
        let _ = write!(page, "Beware: {warning}.\n\n");
    }
    for picture in pictures(records) {
        let _ = write!(page, "![{}](results/{})\n\n", picture.says, picture.name);
    }
    let stored = settled(records);
    page += &aims::table(&shown, &stored).map_or_else(String::new, |table| table.markdown("##"));
    not_ahead(&mut page, &model);
    page += &published::section(&shown, &stored);
    page += "## Every line\n\n";
    page += "Gains are how many times as good: for times theirs over its own, for rates its own over theirs; above 1 is ahead. Brackets hold the 95 % interval of the rounds. ";
    page += "The floor is the same exchange without a middleware: of times a limit, not a rival. But it sleeps at once where it blocks: who looks for a while before it sleeps, as Taut does (`spin`, 20 µs unless set otherwise), is woken less often and can be faster than it. At rates it calls the kernel for each sample and can be passed; over UDP the limit is the floor that hands the kernel many datagrams at once (floor gso). Where samples got lost, their share stands beside the gain. ";
    page += &rules::explained(&shown);
    page += "\n\n";
    for group in model.groups.iter().filter(|group| ran(group)) {
        group_table(&mut page, &model, group);
    }
    failures(&mut page, &model);
    page
}

fn machine(page: &mut String, records: &[Record]) {
    let mut seen: Vec<&str> = Vec::new();
    for run in records.iter().map(|record| &record.run) {
        if seen.contains(&run.id.as_str()) {
            continue;
        }
        seen.push(&run.id);
        let _ = write!(
            page,
            "Run {}: {}, {} cores, Linux {}, governor {}, `taut perf` {}, {}:\n\n```sh norun: it measures for up to an hour\n{}\n```\n\n",
            run.id, run.cpu, run.cores, run.kernel, run.governor, run.taut, run.started, run.command
        );
    }
    let mut versions: Vec<String> = Vec::new();
    for record in records.iter().filter(|record| !record.version.is_empty()) {
        let version = format!("{} {}", peers::name(peers::adapter(&record.peer)), record.version);
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    let _ = write!(page, "Measured: {}.\n\n", versions.join(", "));
}

fn not_ahead(page: &mut String, model: &Model) {
    let subject = peers::name(&model.subject);
    let rows = rows_not_ahead(model);
    let _ = write!(page, "## Where {subject} is not ahead\n\n");
    let behind = rows.iter().filter(|row| row.1.standing() == Standing::Behind).count();
    let all: usize =
        model.groups.iter().map(|group| gains(model, group).iter().filter(|g| !g.is_floor()).count()).sum();
    let _ = write!(
        page,
        "{} of {all} comparisons, {behind} of them plainly behind. Worst first. One round alone cannot tell.\n\n",
        rows.len()
    );
    if !rows.is_empty() {
        page.push_str("| measured | against | gain | p99 | max | |\n|---|---|--:|--:|--:|---|\n");
    }
    for (what, gain) in &rows {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            cell(what),
            peers::name(gain.to),
            with_interval(gain),
            factor(gain.p99),
            factor(gain.max),
            gain.says()
        );
    }
    page.push('\n');
    explain(page, &rows);
    for gap in gaps(model) {
        let lines: Vec<String> = gap.lines.iter().map(|(group, line)| tables::what(group, line)).collect();
        let _ = writeln!(
            page,
            "- No result: {}: {}. Ran: {}.",
            cell(&gap.reason),
            lines.join("; "),
            gap.others.join(", ")
        );
    }
    page.push('\n');
}

/// Why it is plainly behind where it is, each reason once.
fn explain(page: &mut String, rows: &[(String, Gain)]) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (what, gain) in rows.iter().filter(|row| row.1.standing() == Standing::Behind) {
        let (workload, case) = (gain.record.workload.as_str(), gain.record.case.as_str());
        let why = why::of(workload, case, gain.to).unwrap_or("nobody has looked yet");
        let row = format!("{} ({})", cell(what), peers::name(gain.to));
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((why, vec![row])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.push_str("Why it is plainly behind:\n\n");
    for (why, rows) in reasons {
        let _ = writeln!(page, "- {}: {why}.", rows.join(", "));
    }
    page.push('\n');
}

fn with_interval(gain: &Gain) -> String {
    let interval =
        gain.interval.map_or(String::new(), |(low, high)| format!(" ({} to {})", times(low), times(high)));
    format!("{}{interval}", times(gain.median))
}

fn factor(value: Option<f64>) -> String {
    value.map(times).unwrap_or_default()
}

/// Text that does not end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn group_table(page: &mut String, model: &Model, group: &Group) {
    let _ = write!(page, "### {}: {}\n\n", group.key.workload, cell(&group.conditions()));
    let mut commands: Vec<&str> = group.lines.iter().map(|line| line.run.command.as_str()).collect();
    commands.sort_unstable();
    commands.dedup();
    let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    let _ = write!(page, "{}\n\n", commands.join(", "));
    match group.key.workload.as_str() {
        "memory" => memory_rows(page, group),
        "cdr" => coding_rows(page, group),
        "calls" => call_rows(page, group),
        _ => rows(page, model, group),
    }
    page.push('\n');
}

fn rows(page: &mut String, model: &Model, group: &Group) {
    let rates = group.lines.iter().any(|line| model::is_rate(line));
    // In an open loop the bound is the subject.
    let paced = group.key.rate_hz > 0.0 && group.lines.iter().any(|line| line.rtt_ns.is_some());
    let (head, columns) = match () {
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
        let all = model::gains(model, group);
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

fn coding_rows(page: &mut String, group: &Group) {
    page.push_str("| size | peer | encode p50 | p99 | decode p50 | p99 |\n|--:|---|--:|--:|--:|--:|\n");
    let mut lines: Vec<&&Record> = group.lines.iter().collect();
    lines.sort_by_key(|line| (line.size_bytes, peers::order(&line.peer)));
    for line in lines {
        if let Some((encode, decode)) = line.encode_ns.zip(line.decode_ns) {
            let figures =
                [encode.p50, encode.p99, decode.p50, decode.p99].map(|ns| time(ns as f64)).join(" | ");
            let _ = writeln!(page, "| {} | {} | {figures} |", size(line.size_bytes), peers::name(&line.peer));
        }
    }
}

fn failures(page: &mut String, model: &Model) {
    let lines = || model.groups.iter().flat_map(|group| group.lines.iter().map(move |line| (group, *line)));
    page.push_str("## Failed\n\n");
    let mut none = true;
    for (group, line) in lines() {
        if let Outcome::Failed(why) = &line.outcome {
            none = false;
            let _ = writeln!(
                page,
                "- {}, {}: {}",
                peers::name(&line.peer),
                tables::what(group, line),
                cell(run_file::without_tail(why))
            );
        } else if let Some(why) = line.failure.as_deref().filter(|_| line.outcome == Outcome::Ok) {
            none = false;
            let _ = writeln!(
                page,
                "- {}, {}: {}: {}",
                peers::name(&line.peer),
                tables::what(group, line),
                failed_rounds(line),
                cell(run_file::without_tail(why))
            );
        }
    }
    page.push_str(if none { "Nothing.\n" } else { "" });
    page.push_str("\n## Absent\n\n");
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for (_, line) in lines() {
        if let Outcome::Absent(why) = &line.outcome {
            let peer = peers::name(&line.peer);
            match reasons.iter_mut().find(|known| known.0 == peer && known.1 == *why) {
                Some(known) => known.2 += 1,
                None => reasons.push((peer, why.clone(), 1)),
            }
        }
    }
    for (peer, why, count) in &reasons {
        let _ = writeln!(page, "- {peer}: {} ({count} lines)", cell(why));
    }
    page.push_str(if reasons.is_empty() { "Nothing.\n" } else { "" });
}
