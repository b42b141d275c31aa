//! What Taut aims at, beside what a run has measured: the figures of its design, each with a verdict.
//!
//! A figure that relates to another one is of the same run, so that the machine drops out: of those by the newest rules the
//! one that has most rivals, and only then the newest. What was not measured has no row. Where the floor is nearer to what is wanted, and does not reach it either, the row says by how much.

mod list;

use std::collections::BTreeSet;

use crate::published::Table;
use crate::record::{Outcome, Record};
use crate::report::current::recency;
use crate::report::peers;
use crate::report::units::{percent, times};
use crate::rules;
use crate::workload::is_as_named;

use list::{FLOOR, TAUT};

/// The lines of one setting.
#[derive(Clone, Copy)]
struct Line {
    peer: &'static str,
    workload: &'static str,
    transport: &'static str,
    size: u64,
    case: &'static str,
    pin: &'static str,
    spins: bool,
}

impl Line {
    /// Between two cores, waiting as by default.
    const fn of(workload: &'static str, transport: &'static str, size: u64) -> Line {
        Line { peer: "taut", workload, transport, size, case: "", pin: "none", spins: false }
    }

    const fn case(self, case: &'static str) -> Line {
        Line { case, ..self }
    }

    const fn pin(self, pin: &'static str) -> Line {
        Line { pin, ..self }
    }

    const fn peer(self, peer: &'static str) -> Line {
        Line { peer, ..self }
    }

    const fn spins(self) -> Line {
        Line { spins: true, ..self }
    }

    /// Has it run, or failed?
    fn is_of(&self, record: &Record) -> bool {
        let is_stream = self.workload == "throughput";
        !matches!(record.outcome, Outcome::Absent(_))
            && is_as_named(record)
            && record.workload == self.workload
            && record.transport == self.transport
            && record.size_bytes == self.size
            && record.case == self.case
            && record.pin == self.pin
            && (record.wait == "spin") == self.spins
            && (!is_stream || record.qos.starts_with("reliable"))
    }
}

/// What of a line is to hold.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    of: fn(&Record) -> Option<f64>,
    shown: fn(f64) -> String,
    /// Is more of it better?
    rises: bool,
    /// It says nothing if a larger share of the samples got lost.
    spoilt_by: f64,
}

/// To what a figure relates: the same one of the best of these peers, in this setting. Of a rival each set-up counts that
/// was measured; the floor's are exchanges of another kind, and those of Taut have lines of their own.
#[derive(Clone, Copy)]
struct Base {
    peers: &'static [&'static str],
    line: Line,
    figure: Figure,
    /// What is otherwise with a rival than in the row's own setting; empty for nothing.
    setting: &'static str,
}

/// One figure that is to hold.
struct Aim {
    what: String,
    line: Line,
    figure: Figure,
    /// At most, or at least if more is better: so much, or so many times the base.
    wanted: f64,
    base: Option<Base>,
}

/// What was measured of an aim.
struct Held<'a> {
    aim: &'a Aim,
    own: &'a Record,
    base: Option<(&'a Record, f64)>,
    /// How many of the base's peers its run has.
    beside: usize,
    /// How many times as far as wanted it is: above 1 it does not hold. Without end if there is a flaw.
    off: f64,
    /// Why it does not hold, whatever the figure is.
    flaw: Option<&'static str>,
    /// The same of the floor, where that is nearer.
    floor_off: Option<f64>,
}

impl Aim {
    /// Of the newest rules, in the run that has most of the base's peers; of several in the newest.
    fn measured<'a>(&'a self, records: &'a [Record]) -> Option<Held<'a>> {
        let rank = |held: &Held<'a>| {
            let (has_rounds, started) = recency(held.own);
            // None of its rounds ran, and more of them would not have.
            (rules::of(held.own), held.beside, has_rounds || held.has_failed(), started)
        };
        self.all(records).into_iter().max_by_key(rank)
    }

    /// Of each line of ours.
    fn all<'a>(&'a self, records: &'a [Record]) -> Vec<Held<'a>> {
        let of = |own: &'a Record| {
            let beside = self.base.as_ref().map_or(0, |base| base.peers_of(records, own));
            if own.outcome != Outcome::Ok {
                let (off, flaw) = (f64::INFINITY, Some("failed"));
                return Some(Held { aim: self, own, base: None, beside, off, flaw, floor_off: None });
            }
            let figure = (self.figure.of)(own).filter(|figure| *figure > 0.0)?;
            let base = match &self.base {
                Some(base) => Some(base.best(records, own)?),
                None => None,
            };
            let limit = self.wanted * base.map_or(1.0, |(_, figure)| figure);
            let off = |figure: f64| if self.figure.rises { limit / figure } else { figure / limit };
            let floor =
                Base { peers: FLOOR, line: self.line, figure: self.figure, setting: "" }.best(records, own);
            let floor_off = floor.map(|(_, floor)| off(floor)).filter(|floor_off| *floor_off < off(figure));
            let lost = (own.loss() > self.figure.spoilt_by).then_some("missed: samples got lost");
            let flaw = lost.or_else(|| flaw_of(own));
            let off = if flaw.is_some() { f64::INFINITY } else { off(figure) };
            Some(Held { aim: self, own, base, beside, off, flaw, floor_off })
        };
        records.iter().filter(|r| r.peer == self.line.peer && self.line.is_of(r)).filter_map(of).collect()
    }

    /// The row of what the runs do not have.
    fn row_without(&self) -> Vec<String> {
        let [none, verdict] = ["–", "not measured"].map(String::from);
        vec![self.name(), self.wanted(), none, verdict]
    }

    fn name(&self) -> String {
        format!("{}: {}", self.what, self.figure.name)
    }

    /// What is wanted, in words.
    fn wanted(&self) -> String {
        let bound = if self.figure.rises { "at least" } else { "at most" };
        let Some(base) = &self.base else { return format!("{bound} {}", (self.figure.shown)(self.wanted)) };
        let of = match base.peers {
            ["taut"] => "its own".to_string(),
            [peer] => peers::name(peer),
            _ if base.peers.contains(&"fastdds") => "the best of Cyclone DDS and Fast DDS".into(),
            _ => "Cyclone DDS".into(),
        };
        let sleeps = if self.is_beside_a_sleeper() { ", which sleeps at once" } else { "" };
        format!("{bound} {} {of}{}{sleeps}", times(self.wanted), base.setting)
    }

    /// Does Taut look before it sleeps where the base does not? In one thread nobody waits, and streams and what is set up are
    /// not about it.
    fn is_beside_a_sleeper(&self) -> bool {
        let is_other = |base: &Base| !base.line.spins && peers::adapter(base.peers[0]) != "taut";
        let waits = ["latency", "local", "interference"].contains(&self.line.workload);
        waits
            && !self.line.spins
            && self.line.transport != "thread"
            && self.base.as_ref().is_some_and(is_other)
    }
}

/// What no figure makes up for.
fn flaw_of(own: &Record) -> Option<&'static str> {
    let is_wrong = own.corrupt + own.duplicates + own.out_of_order > 0;
    match own.failed_rounds {
        0 => is_wrong.then_some("missed: samples came twice, out of order or damaged"),
        _ => Some("missed: it failed in some rounds"),
    }
}

impl Base {
    fn is_of(&self, record: &Record) -> bool {
        let adapter = peers::adapter(&record.peer);
        let is_rival = ![FLOOR, TAUT].concat().contains(&adapter);
        let name = if is_rival { adapter } else { record.peer.as_str() };
        self.peers.contains(&name) && record.outcome == Outcome::Ok && self.line.is_of(record)
    }

    /// How many of its peers the same run has: of two rivals the one that is left out may be the better.
    fn peers_of(&self, records: &[Record], own: &Record) -> usize {
        let beside = records.iter().filter(|r| r.run.id == own.run.id && self.is_of(r));
        beside.map(|r| peers::adapter(&r.peer)).collect::<BTreeSet<_>>().len()
    }

    /// Of the same run.
    fn best<'a>(&self, records: &'a [Record], own: &Record) -> Option<(&'a Record, f64)> {
        let is = |r: &&Record| r.run.id == own.run.id && self.is_of(r);
        let figure =
            |r: &'a Record| (self.figure.of)(r).filter(|figure| *figure > 0.0).map(|figure| (r, figure));
        let better = |a: &(&Record, f64), b: &(&Record, f64)| match self.figure.rises {
            true => a.1.total_cmp(&b.1),
            false => b.1.total_cmp(&a.1),
        };
        records.iter().filter(is).filter_map(figure).max_by(better)
    }
}

impl Held<'_> {
    fn row(&self) -> Vec<String> {
        let figure = &self.aim.figure;
        let own = (figure.of)(self.own).unwrap_or_default();
        let shown = |record: &Record, value: f64| match record.lost {
            0 => (figure.shown)(value),
            _ => format!("{} ({} lost)", (figure.shown)(value), percent(record.loss())),
        };
        let measured = match self.base {
            _ if self.has_failed() => "–".to_string(),
            Some((base, other)) => {
                let whose = if base.peer == "taut" {
                    String::new()
                } else {
                    format!(" of {}", peers::name(&base.peer))
                };
                format!("{}, {} to {}{whose}", times(own / other), shown(self.own, own), shown(base, other))
            }
            None => shown(self.own, own),
        };
        let verdict = match self.floor_off {
            _ if self.flaw.is_some() => self.flaw.unwrap_or_default().to_string(),
            _ if self.holds() => "holds".to_string(),
            Some(floor_off) if floor_off > 1.0 => {
                format!("missed by {}, by the floor by {}", times(self.off), times(floor_off))
            }
            _ => format!("missed by {}", times(self.off)),
        };
        vec![self.aim.name(), self.aim.wanted(), measured, verdict]
    }

    fn has_failed(&self) -> bool {
        self.own.outcome != Outcome::Ok
    }

    fn holds(&self) -> bool {
        self.off <= 1.0
    }
}

/// So many that are not measured have a row each. Fewer hides what is missing from a whole run, more fills the page of a
/// short one with what it was not for.
const FEW: usize = 8;

/// Those that were measured, worst first, and the others.
fn split<'a>(aims: &'a [Aim], records: &'a [Record]) -> (Vec<Held<'a>>, Vec<&'a Aim>) {
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for aim in aims {
        match aim.measured(records) {
            Some(held) => all.push(held),
            None => missing.push(aim),
        }
    }
    all.sort_by(|a, b| b.off.total_cmp(&a.off));
    (all, missing)
}

/// The names of all, for tests.
#[cfg(test)]
pub(crate) fn names() -> Vec<String> {
    list::all().iter().map(Aim::name).collect()
}

/// The names of those that do not hold, worst first.
pub(crate) fn missed(records: &[Record]) -> Vec<String> {
    let aims = list::all();
    let (all, _) = split(&aims, records);
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().filter(|held| !held.holds()).map(|held| held.aim.name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The table, worst first; nothing if the runs have none of these lines.
pub(crate) fn table(records: &[Record]) -> Option<Table> {
    let aims = list::all();
    let (all, missing) = split(&aims, records);
    let used: Vec<&Record> =
        all.iter().flat_map(|held| [Some(held.own), held.base.map(|base| base.0)]).flatten().collect();
    let kept = all.iter().filter(|held| held.holds()).count();
    let says = format!(
        "{kept} of {} that were measured hold; there are {}. Worst first. Both figures of a row are of one run: of those by \
         the newest rules of timing that with the most of the rivals, of several the newest. Who failed there, or lost more samples \
         than leave the figure its meaning, does not hold. Where the floor, a bare program in the same setting, misses a figure as well, the row says by how much. Where \
         a row says that another one sleeps at once, Taut looks for samples before it does, and is not woken for those it finds.",
        all.len(),
        aims.len()
    );
    let heads = ["figure", "wanted", "measured", ""];
    let mut table = Table::new("What Taut is built for", &used, says).with_heads(heads, []);
    all.iter().for_each(|held| table.add(held.row(), Some(&held.own.run)));
    if missing.len() <= FEW {
        missing.into_iter().for_each(|aim| table.add(aim.row_without(), None));
    }
    (!all.is_empty()).then(|| table.labelled())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Times;

    fn line(peer: &str, run: &str, fields: serde_json::Value) -> Record {
        let run = crate::record::Run { id: run.into(), command: "taut perf x".into(), ..Default::default() };
        let mut all = serde_json::json!({
            "workload": "latency", "peer": peer, "version": "1", "transport": "udp", "wait": "waitset",
            "pin": "same", "size_bytes": 64, "rate_hz": 0.0, "qos": "reliable keep-last:1 volatile",
            "case": "", "status": "ok", "rounds": 3, "samples": 900, "lost": 0, "out_of_order": 0,
            "duplicates": 0, "corrupt": 0, "round_values": [1.0], "run": serde_json::to_value(run).unwrap(),
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut line: Record = serde_json::from_value(all).unwrap();
        let is_named = |rate_hz: &f64| is_as_named(&Record { rate_hz: *rate_hz, ..line.clone() });
        line.rate_hz = [0.0, 1_000.0, 2_000.0].into_iter().find(is_named).unwrap();
        line
    }

    fn trip(peer: &str, run: &str, p50_us: u64) -> Record {
        let times = Times { p50: 1_000 * p50_us, ..Times::default() };
        line(peer, run, serde_json::json!({"rtt_ns": serde_json::to_value(times).unwrap()}))
    }

    fn stream(peer: &str, per_s: f64) -> Record {
        let fields = serde_json::json!({"workload": "throughput", "pin": "none", "size_bytes": 32,
            "qos": "reliable keep-all volatile", "samples_per_s": per_s});
        line(peer, "a", fields)
    }

    #[test]
    fn each_figure_stands_beside_what_was_wanted_and_the_worst_is_first() {
        let records = [
            trip("taut", "a", 12),
            trip("floor", "a", 8),
            trip("cyclonedds", "a", 14),
            trip("cyclonedds11", "a", 16),
            stream("taut", 2e6),
            stream("cyclonedds", 2e5),
        ];
        let table = table(&records).unwrap();
        let what = "round trip by UDP, 64 B, both on one core: median";
        assert_eq!(
            table.rows,
            [
                [
                    what,
                    "at most 0.55× Cyclone DDS, which sleeps at once",
                    "0.86×, 12 µs to 14 µs of Cyclone DDS",
                    "missed by 1.56×, by the floor by 1.04×"
                ],
                ["reliable by UDP, 32 B: rate", "at least 3 M/s", "2 M/s", "missed by 1.50×"],
                [what, "at most 1.60× floor, which sleeps at once", "1.50×, 12 µs to 8 µs of floor", "holds"],
                [
                    "reliable by UDP, 32 B: rate",
                    "at least 3.00× Cyclone DDS",
                    "10×, 2 M/s to 200 k/s of Cyclone DDS",
                    "holds"
                ],
            ]
        );
        assert!(table.says.starts_with("2 of 4 that were measured hold; there are "), "{}", table.says);
        assert_eq!(table.commands, ["taut perf x"]);
    }

    #[test]
    fn figures_of_two_runs_are_no_comparison() {
        assert!(table(&[trip("taut", "a", 12), trip("floor", "b", 8)]).is_none());
        let both = [trip("taut", "a", 12), trip("floor", "a", 8), trip("taut", "b", 1)];
        assert_eq!(table(&both).unwrap().rows[0][2], "1.50×, 12 µs to 8 µs of floor");
    }

    #[test]
    fn a_rival_is_held_to_the_best_of_its_set_ups() {
        let records = [
            stream("taut", 2e6),
            stream("taut:suspended", 9e6),
            stream("floor:gso", 9e6),
            stream("cyclonedds", 2e5),
            stream("cyclonedds:batching", 1e6),
        ];
        let rows = table(&records).unwrap().rows;
        let measured = "2.00×, 2 M/s to 1 M/s of Cyclone DDS batching";
        assert_eq!(
            rows,
            [
                ["reliable by UDP, 32 B: rate", "at least 3 M/s", "2 M/s", "missed by 1.50×"],
                ["reliable by UDP, 32 B: rate", "at least 3.00× Cyclone DDS", measured, "missed by 1.50×"],
            ]
        );
    }

    #[test]
    fn a_rare_time_is_of_ten_samples_beyond_it() {
        let flooded = |case: &str, run: &str, samples: u64, p999_us: u64| {
            let times = Times { p999: 1_000 * p999_us, ..Times::default() };
            let fields = serde_json::json!({"workload": "interference", "case": case, "pin": "none",
                "samples": samples, "rtt_ns": serde_json::to_value(times).unwrap()});
            line("taut", run, fields)
        };
        let [flood, quiet] = ["flood fifo inline", "quiet fifo inline"];
        let few = [flooded(flood, "b", 9_999, 1), flooded(quiet, "b", 12_000, 100)];
        assert!(table(&few).is_none());
        let many = [flooded(flood, "a", 10_000, 140), flooded(quiet, "a", 10_000, 100)];
        assert_eq!(table(&[few, many].concat()).unwrap().rows[0][2], "1.40×, 140 µs to 100 µs");
    }

    #[test]
    fn of_runs_that_have_both_the_newest_counts_once_it_has_two_rounds() {
        let in_rounds = |peer: &str, run: &str, p50_us: u64, rounds: u32| {
            let mut line = Record { rounds, ..trip(peer, run, p50_us) };
            line.run.started = run.into();
            line
        };
        let measured = |stored: &[Record]| table(stored).unwrap().rows[0][2].clone();
        let old = [in_rounds("taut", "a", 10, 11), in_rounds("floor", "a", 10, 11)];
        let brief = [in_rounds("taut", "c", 30, 1), in_rounds("floor", "c", 10, 1)];
        assert_eq!(measured(&[&old[..], &brief].concat()), "1.00×, 10 µs to 10 µs of floor");
        let newer = [in_rounds("taut", "b", 20, 10), in_rounds("floor", "b", 10, 10)];
        assert_eq!(measured(&[&newer[..], &old, &brief].concat()), "2.00×, 20 µs to 10 µs of floor");
    }

    #[test]
    fn a_run_without_one_of_two_rivals_is_not_the_one_to_be_compared_in() {
        let of = |peer: &str, run: &str, p50_us: u64| {
            let mut line = trip(peer, run, p50_us);
            (line.pin, line.run.started) = ("none".into(), run.into());
            line
        };
        let both = [of("taut", "a", 12), of("cyclonedds", "a", 14), of("fastdds", "a", 10)];
        let one = [of("taut", "b", 12), of("cyclonedds", "b", 14)];
        let rows = table(&[&both[..], &one].concat()).unwrap().rows;
        assert_eq!(rows[0][2], "1.20×, 12 µs to 10 µs of Fast DDS");
    }

    #[test]
    fn each_row_says_of_which_processor_and_build_it_is_where_they_differ() {
        let of = |peer: &str, run: &str, pin: &str| {
            let mut line = Record { pin: pin.into(), ..trip(peer, run, 9) };
            (line.run.cpu, line.run.taut) = ("AMD EPYC".into(), format!("0.1.0 {run}"));
            line
        };
        let one = [of("taut", "a", "same"), of("floor", "a", "same")];
        let page = table(&one).unwrap();
        assert!(page.says.ends_with(" Measured on: AMD EPYC, a."), "{}", page.says);
        let two = [&one[..], &[of("taut", "b", "none"), of("floor", "b", "none")]].concat();
        let rows = table(&two).unwrap().rows;
        let labels: Vec<&str> = rows.iter().filter_map(|row| row.get(4)).map(String::as_str).collect();
        assert_eq!(labels, ["AMD EPYC, b", "AMD EPYC, a"]);
    }

    #[test]
    fn who_is_slower_on_average_does_not_keep_the_bound_by_that() {
        let soaked = |peer: &str, mean: u64, max: u64| {
            let times = Times { mean: 1_000 * mean, max: 1_000 * max, ..Times::default() };
            let fields = serde_json::json!({"workload": "soak", "transport": "xdp", "wait": "spin", "case": "link",
                "pin": "none", "rtt_ns": serde_json::to_value(times).unwrap()});
            line(peer, "a", fields)
        };
        let row = table(&[soaked("taut", 9, 40), soaked("floor", 8, 36)]).unwrap().rows.remove(0);
        assert_eq!(row[3], "missed by 1.11×");
        let row = table(&[soaked("taut", 9, 36), soaked("floor", 8, 36)]).unwrap().rows.remove(0);
        assert_eq!(row[3], "holds");
    }

    #[test]
    fn a_loan_is_beside_one_that_waits_in_the_same_way() {
        let lent = |peer: &str, wait: &str, pin: &str, p50: u64| {
            let fields = serde_json::json!({"workload": "local", "transport": "shm", "wait": wait, "case": "loan",
                "pin": pin, "size_bytes": 1 << 20, "rtt_ns": Times { p50, ..Times::default() }});
            line(peer, "a", fields)
        };
        let asleep = [lent("taut", "waitset", "none", 800), lent("iceoryx2", "waitset", "none", 58_000)];
        assert!(table(&asleep).is_none());
        let polling = [lent("taut", "spin", "split", 800), lent("iceoryx2", "spin", "split", 900)];
        assert_eq!(
            table(&[asleep, polling].concat()).unwrap().rows[0][2],
            "0.89×, 800 ns to 900 ns of iceoryx2"
        );
    }

    #[test]
    fn a_row_says_in_which_setting_another_one_is() {
        let paced = |peer: &str, case: &str, wait: &str| {
            let times = Times { max: 1_000, ..Times::default() };
            let fields = serde_json::json!({"case": case, "pin": "none", "size_bytes": 32, "wait": wait,
                "rtt_ns": serde_json::to_value(times).unwrap()});
            line(peer, "a", fields)
        };
        let records = [
            paced("taut", "every 1 ms fifo inline", "inline"),
            paced("cyclonedds", "every 1 ms", "listener"),
        ];
        let rows = table(&records).unwrap().rows;
        assert_eq!(rows[0][1], "at most 0.20× Cyclone DDS without SCHED_FIFO, which sleeps at once");
    }

    /// The verdicts of a maximum and of the two rare times, of as many samples of which so many got lost.
    fn verdicts(case: &str, samples: u64, lost: u64) -> Vec<String> {
        let transport = if case.contains("all but fifo") { "dpdk" } else { "xdp" };
        let times = Times { p999: 10, p9999: 10, max: 10, ..Times::default() };
        let of = |peer: &str, case: &str, lost: u64| {
            let fields = serde_json::json!({"workload": "interference", "transport": transport, "case": case,
                "samples": samples - lost, "lost": lost, "rtt_ns": serde_json::to_value(times).unwrap()});
            line(peer, "a", fields)
        };
        let quiet = case.replace("flood", "quiet");
        table(&[of("taut", case, lost), of("taut", &quiet, 0)])
            .unwrap()
            .rows
            .into_iter()
            .map(|mut row| row.remove(3))
            .collect()
    }

    #[test]
    fn a_rare_time_does_not_hold_where_more_got_lost_than_it_leaves_out() {
        let lost = "missed: samples got lost";
        for case in ["flood all long link", "flood all but fifo long link"] {
            assert_eq!(verdicts(case, 200_000, 20), ["holds"]);
            assert_eq!(verdicts(case, 200_000, 21), [lost]);
        }
    }

    #[test]
    fn a_bound_and_a_rate_do_not_hold_where_samples_got_lost() {
        let lossy = |line: Record, lost: u64| Record { lost, ..line };
        let rows = |lost: u64| {
            table(&[lossy(stream("taut", 6e6), lost), lossy(stream("cyclonedds", 2e5), 100)]).unwrap().rows
        };
        assert_eq!(rows(0)[1][2..], ["30×, 6 M/s to 200 k/s (10.0 % lost) of Cyclone DDS", "holds"]);
        assert_eq!(rows(9)[0][2..], ["6 M/s (0.99 % lost)", "missed: samples got lost"]);
        let times = Times { max: 10, ..Times::default() };
        let soaked = |peer: &str, lost: u64| {
            let fields = serde_json::json!({"workload": "soak", "transport": "xdp", "wait": "spin", "case": "link",
                "pin": "none", "lost": lost, "rtt_ns": serde_json::to_value(times).unwrap()});
            line(peer, "a", fields)
        };
        let verdict = |lost| table(&[soaked("taut", lost), soaked("floor", 0)]).unwrap().rows[0][3].clone();
        assert_eq!([verdict(0), verdict(1)], ["holds", "missed: samples got lost"]);
    }

    #[test]
    fn a_round_that_failed_and_samples_that_came_twice_are_flaws() {
        let good = trip("taut", "a", 12);
        let verdict = |own: Record| table(&[own, trip("floor", "a", 8)]).unwrap().rows[0][3].clone();
        assert_eq!(verdict(good.clone()), "holds");
        assert_eq!(verdict(Record { failed_rounds: 1, ..good.clone() }), "missed: it failed in some rounds");
        let twice = verdict(Record { duplicates: 1, ..good });
        assert_eq!(twice, "missed: samples came twice, out of order or damaged");
    }

    #[test]
    fn who_fails_in_the_newest_run_has_failed() {
        let of = |peer: &str, run: &str, outcome: Outcome| {
            let mut line = Record { outcome, ..trip(peer, run, 10) };
            line.run.started = run.into();
            line
        };
        let failed = || {
            let line = of("taut", "b", Outcome::Failed("it broke".into()));
            Record { rounds: 0, rtt_ns: None, wait: "block".into(), ..line }
        };
        let old = [of("taut", "a", Outcome::Ok), of("floor", "a", Outcome::Ok)];
        let row = |stored: &[Record]| {
            let rows = table(stored).unwrap().rows;
            rows.into_iter().find(|row| row[1].contains("floor")).expect("it is there")[2..].to_vec()
        };
        assert_eq!(row(&[&old[..], &[failed(), of("floor", "b", Outcome::Ok)]].concat()), ["–", "failed"]);
        // The number of rivals comes before newness.
        assert_eq!(row(&[&old[..], &[failed()]].concat())[1], "holds");
        let newer = [of("taut", "c", Outcome::Ok), of("floor", "c", Outcome::Ok)];
        assert_eq!(row(&[&newer[..], &[failed(), of("floor", "b", Outcome::Ok)]].concat())[1], "holds");
    }

    #[test]
    fn newer_rules_come_before_more_rivals() {
        let of = |peer: &str, run: &str, rules: u32, mean: u64| {
            let times = Times { mean: 1_000 * mean, ..Times::default() };
            let fields = serde_json::json!({"case": "every 1 ms", "size_bytes": 32, "pin": "none",
                "rtt_ns": serde_json::to_value(times).unwrap()});
            let mut line = line(peer, run, fields);
            line.run.rules = rules;
            line
        };
        let old = ["taut", "cyclonedds", "cyclonedds11"].map(|peer| of(peer, "a", 2, 10));
        let new = [of("taut", "b", 3, 30), of("cyclonedds", "b", 3, 10)];
        assert_eq!(
            table(&[&old[..], &new].concat()).unwrap().rows[0][2],
            "3.00×, 30 µs to 10 µs of Cyclone DDS"
        );
    }

    #[test]
    fn what_is_at_another_rate_is_another_line() {
        let slow = Record { rate_hz: 1_000.0, ..stream("taut", 1e3) };
        assert!(table(std::slice::from_ref(&slow)).is_none());
        assert_eq!(table(&[stream("taut", 4e6), slow]).unwrap().rows[0][2], "4 M/s");
        let careless = Record { qos: "best-effort keep-last:1 volatile".into(), ..trip("taut", "a", 1) };
        assert!(table(&[careless, trip("floor", "a", 10)]).is_none());
    }

    #[test]
    fn a_run_of_others_has_no_such_table() {
        assert!(table(&[trip("floor", "a", 8), trip("cyclonedds", "a", 14)]).is_none());
    }
}
