//! `taut perf compare`: what of a run is better, worse or noise beside an earlier one.
//!
//! A line is the same if all that names it is: peer, workload, transport, wait, pinning, size, rate, QoS
//! and case; of coding encode and decode are two, if both runs have their rounds. Its rounds have no partners in the
//! other run, so the interval is Welch's.

use std::fmt;

use crate::half::Half;
use crate::record::{Outcome, Record};
use crate::report::model::{failed_rounds, is_rate, same_line};
use crate::report::units;
use crate::rules;
use crate::statistics::unpaired_ratio;
use crate::words::counted;

/// A smaller change is of no interest even if it is no chance: 5 %. Lower, and every new kernel, compiler
/// or neighbour of the machine is a finding; higher, and a lost tenth is found only when it is two.
pub const LEAST_OF_INTEREST: f64 = 1.05;

/// A line that is so much worse is one too many, however many lines there are. Lower, a run of hundreds would not pass for
/// one that chance has worsened most; higher, one could take twice as long unseen.
const FAR: f64 = 1.5;

/// Share of lines without any change whose interval leaves out 1 all the same, by the meaning of 95 %.
const BY_CHANCE: f64 = 0.05;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Beyond chance and [`LEAST_OF_INTEREST`], to the worse.
    Worse,
    /// The same, to the better.
    Better,
    /// Within chance, or too small to matter.
    Noise,
    /// A side has one round only: there is no interval.
    Unknown,
}

/// A line that ran on both sides.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name.
    pub line: String,
    /// What became of it.
    pub verdict: Verdict,
    /// New against old: above 1 is better, for times as for rates.
    pub gain: f64,
    /// 95 % interval of the gain.
    pub interval: Option<(f64, f64)>,
    /// The figures, old and new.
    pub figures: (String, String),
}

/// All lines of both.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The worst first.
    pub changes: Vec<Change>,
    /// Lines that ran before and fail now, or mostly do, or are absent now, with the reason.
    pub failing: Vec<(String, String)>,
    /// Lines that failed or were absent before and run now.
    pub running: Vec<String>,
    /// Lines that ran on both sides but have no figure to compare, and where not.
    pub without_figure: Vec<(String, &'static str)>,
    /// Lines of the old run that the new one does not have.
    pub only_old: Vec<String>,
    /// Lines of the new run that the old one does not have.
    pub only_new: Vec<String>,
    /// Why the two may not be comparable.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// Is more worse than chance explains, a line by [`FAR`], or something no longer running: what a script wants to stop at.
    pub fn is_worse(&self) -> bool {
        let is_far = |change: &Change| change.interval.is_some_and(|(_, high)| high < 1.0 / FAR);
        !self.failing.is_empty()
            || self.changes.iter().any(is_far)
            || self.count(Verdict::Worse) as f64 > self.worse_by_chance_at_most()
    }

    /// Is there nothing that has a figure of both sides, or ran on one where it could have on both?
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.failing.is_empty() && self.running.is_empty()
    }

    /// Lines that chance alone may name as worse: half of [`BY_CHANCE`] of them, and three standard
    /// deviations more. Less, and two equal runs of hundreds of lines would rarely pass; more, and a real
    /// change of a few lines would. Of up to three lines a single one is above it.
    fn worse_by_chance_at_most(&self) -> f64 {
        let tested = self.changes.iter().filter(|change| change.verdict != Verdict::Unknown).count();
        let expected = tested as f64 * BY_CHANCE / 2.0;
        expected + 3.0 * expected.sqrt()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }
}

/// Compares each line of `new` with the same of `old`.
pub fn compare(old: &[Record], new: &[Record]) -> Comparison {
    let mut result = Comparison { warnings: warnings(old, new), ..Comparison::default() };
    for line in new {
        let name = name(line);
        let Some(before) = old.iter().rev().find(|before| same(before, line)) else {
            result.only_new.extend(is_there(line).then_some(name));
            continue;
        };
        if line.outcome == Outcome::Ok && line.failed_rounds > before.failed_rounds {
            let why = line.failure.as_deref().unwrap_or_default();
            let told = format!("{} failed: {why}", failed_rounds(line));
            if line.failed_rounds > line.rounds {
                result.failing.push((name.clone(), told));
            } else {
                result.warnings.push(format!("{name}: {told}"));
            }
        }
        match (&before.outcome, &line.outcome) {
            (Outcome::Ok, Outcome::Ok) => {
                for (name, rounds) in parts(&name, before, line) {
                    match change(&name, [before, line], rounds) {
                        Some(change) => result.changes.push(change),
                        None => result.without_figure.push((name, sides_without_figure(rounds))),
                    }
                }
            }
            (Outcome::Ok, Outcome::Failed(why)) => result.failing.push((name, format!("fails: {why}"))),
            (Outcome::Ok, Outcome::Absent(why)) => result.failing.push((name, format!("absent: {why}"))),
            (_, Outcome::Ok) => result.running.push(name),
            _ => {}
        }
    }
    let gone = old.iter().filter(|before| is_there(before) && !new.iter().any(|line| same(before, line)));
    result.only_old = gone.map(name).collect();
    result.changes.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(a.gain.total_cmp(&b.gain)));
    result
}

/// Who has no such path has nothing to compare, asked or not.
fn is_there(line: &Record) -> bool {
    !matches!(line.outcome, Outcome::Absent(_))
}

/// A line that did not run has the wait that was asked for, not the one that was used.
fn same(a: &Record, b: &Record) -> bool {
    if a.outcome == Outcome::Ok && b.outcome == Outcome::Ok {
        return same_line(a, b);
    }
    let with_wait = Record { wait: b.wait.clone(), ..Record::clone(a) };
    same_line(&with_wait, b)
}

/// The values of rounds that are compared of a line, the old ones and the new ones, with the name of each pair.
fn parts<'a>(name: &str, old: &'a Record, new: &'a Record) -> Vec<(String, Rounds<'a>)> {
    let of_half = |half: Half| {
        let rounds = [old, new].map(|side| half.rounds(side));
        let has_all = rounds.iter().all(|rounds| !rounds.is_empty());
        has_all.then(|| (format!("{name} {}", half.word()), rounds))
    };
    match Half::BOTH.map(of_half) {
        [Some(encode), Some(decode)] => vec![encode, decode],
        _ => vec![(name.to_string(), [&old.round_values, &new.round_values])],
    }
}

/// Of the old run and of the new one.
type Rounds<'a> = [&'a [f64]; 2];

fn change(name: &str, [old, new]: [&Record; 2], rounds: Rounds) -> Option<Change> {
    let estimate = unpaired_ratio(rounds[1], rounds[0])?;
    let rate = is_rate(new);
    let gain = if rate { estimate.ratio } else { 1.0 / estimate.ratio };
    let interval =
        estimate.interval.map(|(low, high)| if rate { (low, high) } else { (1.0 / high, 1.0 / low) });
    let verdict = match interval {
        None => Verdict::Unknown,
        Some((low, _)) if low > 1.0 && gain > LEAST_OF_INTEREST => Verdict::Better,
        Some((_, high)) if high < 1.0 && gain < 1.0 / LEAST_OF_INTEREST => Verdict::Worse,
        Some(_) => Verdict::Noise,
    };
    let figures = (figure(old, rounds[0]), figure(new, rounds[1]));
    Some(Change { line: name.to_string(), verdict, gain, interval, figures })
}

/// Which of two that cannot be compared have none.
fn sides_without_figure(rounds: Rounds) -> &'static str {
    match rounds.map(|side| side.iter().any(|value| *value > 0.0)) {
        [false, false] => "in both runs",
        [false, true] => "in the old run",
        _ => "in the new run",
    }
}

fn figure(record: &Record, rounds: &[f64]) -> String {
    let value = crate::statistics::median(rounds);
    match record.workload.as_str() {
        _ if is_rate(record) && record.lost > 0 => {
            format!("{} ({} lost)", units::rate(value), units::percent(record.loss()))
        }
        _ if is_rate(record) => units::rate(value),
        "memory" => units::bytes(value),
        _ => units::time(value),
    }
}

/// All that names a line, in a fixed order.
fn name(record: &Record) -> String {
    let mut words = vec![record.workload.clone(), record.peer.clone(), record.transport.clone()];
    if record.size_bytes > 0 {
        words.push(units::size(record.size_bytes).replace(' ', ""));
    }
    words.extend([record.qos.clone(), record.case.clone(), record.wait.clone()]);
    if record.pin != "none" {
        words.push(format!("pin={}", record.pin));
    }
    if record.rate_hz > 0.0 {
        words.push(format!("{}/s", record.rate_hz));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn warnings(old: &[Record], new: &[Record]) -> Vec<String> {
    let mut warnings = Vec::new();
    type Fact = (&'static str, fn(&Record) -> String);
    let facts: [Fact; 5] = [
        ("CPU", |record| record.run.cpu.clone()),
        ("number of cores", |record| record.run.cores.to_string()),
        ("kernel", |record| record.run.kernel.clone()),
        ("governor", |record| record.run.governor.clone()),
        ("version of taut perf", |record| record.run.taut.clone()),
    ];
    for (what, fact) in facts {
        let (before, after) = (distinct(old.iter().map(fact)), distinct(new.iter().map(fact)));
        if before != after {
            warnings.push(format!("another {what}: {}, was {}", after.join(" and "), before.join(" and ")));
        }
    }
    warnings.extend(rules::mixed(old.iter().chain(new)));
    for peer in distinct(new.iter().map(|record| record.peer.clone())) {
        let of = |records: &[Record]| {
            let own = records.iter().filter(|record| record.peer == peer && !record.version.is_empty());
            distinct(own.map(|record| record.version.clone()))
        };
        let (before, after) = (of(old), of(new));
        if before != after && !before.is_empty() && !after.is_empty() {
            warnings.push(format!(
                "another version of {peer}: {}, was {}",
                after.join(" and "),
                before.join(" and ")
            ));
        }
    }
    warnings
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut values: Vec<String> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

impl fmt::Display for Comparison {
    /// The table for a terminal: what changed line by line, noise only as a count.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        for (title, verdict) in [("worse", Verdict::Worse), ("better", Verdict::Better)] {
            self.table(out, title, verdict)?;
        }
        for (line, why) in &self.failing {
            writeln!(out, "no longer runs: {line}: {why}")?;
        }
        for (line, side) in &self.without_figure {
            writeln!(out, "no figure {side}: {line}")?;
        }
        for (title, lines) in [
            ("runs now", &self.running),
            ("only in the old run", &self.only_old),
            ("only in the new run", &self.only_new),
        ] {
            for line in lines {
                writeln!(out, "{title}: {line}")?;
            }
        }
        self.counts(out)
    }
}

impl Comparison {
    fn table(&self, out: &mut fmt::Formatter<'_>, title: &str, verdict: Verdict) -> fmt::Result {
        let rows: Vec<&Change> = self.changes.iter().filter(|change| change.verdict == verdict).collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out, "{title}:")?;
        let widest = rows.iter().map(|change| change.line.chars().count()).max().unwrap_or(0);
        for change in rows {
            let interval = change.interval.map_or(String::new(), |(low, high)| {
                format!("{} to {}", units::times(low), units::times(high))
            });
            writeln!(
                out,
                "  {:widest$}  {:>9} -> {:>9}  {:>7}  ({interval})",
                change.line,
                change.figures.0,
                change.figures.1,
                units::times(change.gain)
            )?;
        }
        writeln!(out)
    }

    fn counts(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [worse, better, noise, unknown] =
            [Verdict::Worse, Verdict::Better, Verdict::Noise, Verdict::Unknown]
                .map(|verdict| self.count(verdict));
        let tested = worse + better + noise;
        let lines = counted(tested, "line");
        writeln!(out, "{lines} compared: {worse} worse, {better} better, {noise} noise.")?;
        if unknown > 0 {
            let lines = counted(unknown, "line");
            writeln!(out, "{lines} with one round on a side, which tells nothing: --rounds 3 or more.")?;
        }
        if tested > 0 {
            let expected = tested as f64 * BY_CHANCE;
            let percent = 100.0 * (LEAST_OF_INTEREST - 1.0);
            writeln!(
                out,
                "If nothing had changed, up to {expected:.1} of these {tested} would be named by chance, half of \
                 them as worse (95 % intervals; changes under {percent:.0} % are never named)."
            )?;
        }
        Ok(())
    }
}
