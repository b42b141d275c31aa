//! `docs/performance.md`, the page of all lines beside it, and their pictures, made from a stored run.
//!
//! Every number stands with the command that repeats it. Rows where the subject is behind come first.

mod groups;
mod picture;
mod waiting;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::record::{Outcome, Record, Run};
use crate::report::current::{current, settled};
use crate::report::gains::{Gain, Standing, gains, gaps, marked};
use crate::report::model::{Group, Model, failed_rounds, subject};
use crate::report::sections::rows_not_ahead;
use crate::report::units::times;
use crate::report::{peers, tables};
use crate::{aims, published, rules, run_file, why};

pub use picture::{Picture, ROUND_TRIPS, pictures};

/// The run that all this is made from.
pub const STORED: &str = "run.jsonl.gz";

/// The page that says how it stands, and that of all that was measured.
const PAGE: &str = "performance.md";
const LINES: &str = "performance-lines.md";

/// What stands before tables of gains.
const GAINS: &str = "Gains are how many times as good: for times theirs over its own, for rates its own over theirs; above 1 is ahead. Brackets hold the 95 % interval of the rounds. ";

/// Writes the pages into `docs`, the pictures and the run itself into `docs/results`; returns what it wrote.
///
/// *Errors*: those of the file system.
pub fn write(records: &[Record], docs: &Path) -> std::io::Result<Vec<PathBuf>> {
    let results = docs.join("results");
    std::fs::create_dir_all(&results)?;
    let subject = subject(records);
    let mut files = vec![(results.join(STORED), run_file::packed(records, &subject)?)];
    for (name, text) in pages(records) {
        files.push((docs.join(name), text.into_bytes()));
    }
    for picture in pictures(records) {
        files.push((results.join(picture.name), picture.svg.into_bytes()));
    }
    for (path, text) in &files {
        std::fs::write(path, text)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// The pages, by their names in `docs`.
pub fn pages(records: &[Record]) -> [(&'static str, String); 2] {
    let shown = current(records);
    let model = Model::new(&shown);
    let stored = settled(records);
    let aims = aims::table(&stored);
    let beside = published::tables(&shown, &stored);
    let compared = aims.iter().chain(&beside).flat_map(|table| &table.runs);
    let runs: BTreeSet<&String> = shown.iter().map(|record| &record.run.id).chain(compared).collect();
    let named: Vec<&Record> = stored.iter().filter(|record| runs.contains(&record.run.id)).collect();

    let subject = peers::name(&model.subject);
    let mut page = format!(
        "# Performance\n\nWhere {subject} stands, from stored runs of `taut perf`. This page is generated; \
         [{LINES}]({LINES}) has every line, what failed, and the runs.\n\n"
    );
    measured(&mut page, &named);
    if model.subject == "taut" {
        waiting::explain(&mut page, &shown);
    }
    if let Some(warning) = rules::mixed(&shown) {
        let _ = write!(page, "Beware: {warning}.\n\n");
    }
    for picture in pictures(records) {
        let _ = write!(page, "![{}](results/{})\n\n", picture.says, picture.name);
    }
    if let Some(table) = aims {
        page += &table.markdown("##");
        let missed = aims::missed(&stored).into_iter();
        explain(&mut page, "Why what is missed is", missed.map(|name| (why::of_missed(&name), name)));
    }
    not_ahead(&mut page, &model);
    page += &published::section(&shown, &beside);
    [(PAGE, page), (LINES, lines(&shown, &model, &named))]
}

/// The page of all lines.
fn lines(shown: &[Record], model: &Model, named: &[&Record]) -> String {
    let mut page = format!(
        "# Every line\n\nWhat `taut perf` has measured, of which [{PAGE}]({PAGE}) is the summary. This page is generated.\n\n"
    );
    page += GAINS;
    page += marked(model);
    page += "The floor is the same exchange without a middleware: of times a limit, not a rival. But it sleeps at once where it blocks: who looks for a while before it sleeps, as Taut does (`spin`, 20 to 60 µs unless set otherwise), is woken less often and can be faster than it. At rates and in bursts it calls the kernel for each sample and can be passed; over UDP the limit is the floor that hands the kernel many datagrams at once (floor gso). Where samples got lost, their share stands beside the gain. ";
    page += &rules::explained(shown);
    page += "\n\n";
    for group in model.groups.iter().filter(|group| ran(group)) {
        groups::table(&mut page, model, group);
    }
    failures(&mut page, model);
    list_runs(&mut page, named);
    page
}

/// On what machines, and who.
fn measured(page: &mut String, named: &[&Record]) {
    let (mut machines, mut versions): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let note = |known: &mut Vec<String>, new: String| {
        if !known.contains(&new) {
            known.push(new);
        }
    };
    for record in named {
        let run = &record.run;
        note(
            &mut machines,
            format!("{}, {} cores, Linux {}, governor {}", run.cpu, run.cores, run.kernel, run.governor),
        );
        if !record.version.is_empty() {
            note(&mut versions, format!("{} {}", peers::name(peers::adapter(&record.peer)), record.version));
        }
    }
    let _ = write!(page, "Measured on: {}.\n\nMeasured: {}.\n\n", machines.join("; "), versions.join(", "));
    if Run::labels(named.iter().copied()).len() > 1 {
        page.push_str(
            "What stands beside each other is of one run: the one with the most peers, then sizes, of several the newest. \
             What that one has not is a table or a row of its own. Each says of which processor and build it is: those of \
             two are no comparison.\n\n",
        );
    }
}

/// The runs that the pages are made from: when, on what and by which build; and how peers were set up in them.
fn list_runs(page: &mut String, named: &[&Record]) {
    page.push_str("\n## Runs\n\n");
    let mut runs: Vec<Vec<&Record>> = Vec::new();
    for record in named {
        match runs.iter_mut().find(|run| run[0].run.id == record.run.id) {
            Some(run) => run.push(record),
            None => runs.push(vec![record]),
        }
    }
    let of_peers: BTreeSet<(String, &str)> = runs.iter().flat_map(|run| notes_of_peers(run)).collect();
    for run in runs.iter().map(|run| &run[0].run) {
        let is_own = |note: &&String| !of_peers.iter().any(|(_, of_peer)| of_peer == note);
        let notes: String = run.notes.iter().filter(is_own).map(|note| format!(", {note}")).collect();
        let _ = write!(
            page,
            "Run {}: {}, {} cores, Linux {}, governor {}{notes}, `taut perf` {}, {}:\n\n```sh norun: it measures for up to an hour\n{}\n```\n\n",
            run.id, run.cpu, run.cores, run.kernel, run.governor, run.taut, run.started, run.command
        );
    }
    if !of_peers.is_empty() {
        page.push_str("## How they were set up\n\n");
    }
    for (peer, note) in of_peers {
        let _ = writeln!(page, "- {peer}: {note}");
    }
}

/// What an adapter says of itself: the notes that not all lines of a run have.
fn notes_of_peers<'a>(run: &[&'a Record]) -> BTreeSet<(String, &'a str)> {
    let notes = |record: &&'a Record| {
        let peer = peers::name(peers::adapter(&record.peer));
        record.run.notes.iter().map(move |note| (peer.clone(), note.as_str())).collect::<Vec<_>>()
    };
    let mut all: BTreeSet<_> = run.iter().flat_map(notes).collect();
    all.retain(|(_, note)| !run.iter().all(|record| record.run.notes.iter().any(|other| other == note)));
    all
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
        "{GAINS}{}{} of {all} comparisons, {behind} of them plainly behind. Worst first. One round alone cannot tell.\n\n",
        marked(model),
        rows.len()
    );
    let labels = Run::labels(rows.iter().map(|row| row.1.record));
    let of_several = labels.len() > 1;
    if !rows.is_empty() {
        let (head, rule) = if of_several { (" measured on |", "---|") } else { ("", "") };
        let _ = writeln!(
            page,
            "| measured | against | gain | p99 | max | |{head}\n|---|---|--:|--:|--:|---|{rule}"
        );
    }
    for (what, gain) in &rows {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |{}",
            cell(what),
            peers::name(gain.to),
            with_interval(gain),
            factor(gain.p99),
            factor(gain.max),
            gain.says(),
            if of_several { format!(" {} |", gain.record.run.label()) } else { String::new() }
        );
    }
    page.push('\n');
    let behind = rows.iter().filter(|row| row.1.standing() == Standing::Behind);
    explain(page, "Why it is plainly behind", behind.map(|(what, gain)| why_behind(what, gain)));
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

/// Why it is behind there, and where that is.
fn why_behind(what: &str, gain: &Gain) -> (Option<&'static str>, String) {
    let case = format!("{} · {}", gain.record.transport, gain.case());
    let why = why::of(&gain.record.workload, &case, gain.to);
    (why, format!("{} ({})", cell(what), peers::name(gain.to)))
}

/// Each reason once, with all that it is for.
fn explain(page: &mut String, head: &str, rows: impl Iterator<Item = (Option<&'static str>, String)>) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (why, row) in rows {
        let why = why.unwrap_or("nobody has looked yet");
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((why, vec![row])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    let _ = write!(page, "{head}:\n\n");
    for (why, rows) in reasons {
        let _ = writeln!(page, "- {}: {why}.", rows.join("; "));
    }
    page.push('\n');
}

fn with_interval(gain: &Gain) -> String {
    let shown = |(low, high)| format!(" ({}{} to {})", gain.mark(), times(low), times(high));
    let interval = gain.interval.map_or(String::new(), shown);
    format!("{}{interval}", times(gain.median))
}

fn factor(value: Option<f64>) -> String {
    value.map(times).unwrap_or_default()
}

/// Text that does not end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
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

fn ran(group: &Group) -> bool {
    group.lines.iter().any(|line| line.outcome == Outcome::Ok)
}
