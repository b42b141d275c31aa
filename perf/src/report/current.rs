//! Which lines count where several runs have measured the same: those of one run for all that is shown together.
//!
//! Lines of different runs are of different moments of a machine, and often of different machines and builds. Beside each
//! other they are no comparison, and a line that took another one's place would take the comparisons with it that it has
//! not.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Outcome, Record, Run, Times};
use crate::report::model::{Key, same_line};
use crate::rules;
use crate::statistics::typical;

/// Fewer say nothing of how much is chance. With more of them an older run is no better: it is of an older build.
const ROUNDS: u32 = 2;

/// The lines that count, in their order: of what is shown together those of the run that has most of it, then, of the cases
/// that it has not, those of the next one. In one run the last line of a peer counts.
pub(crate) fn current(records: &[Record]) -> Vec<Record> {
    let mut groups: BTreeMap<String, BTreeMap<&str, Vec<&Record>>> = BTreeMap::new();
    for record in records {
        let runs = groups.entry(format!("{:?}", Key::of(record))).or_default();
        let lines = runs.entry(&record.run.id).or_default();
        lines.retain(|other| !same_line(other, record));
        lines.push(record);
    }
    let mut chosen: Vec<&Record> = groups.into_values().flat_map(of_runs).collect();
    chosen.sort_unstable_by_key(|record| std::ptr::from_ref(*record));
    chosen.into_iter().map(settle).collect()
}

/// Of each case the lines of one run, and of as few runs as there may be.
fn of_runs<'a>(runs: BTreeMap<&str, Vec<&'a Record>>) -> Vec<&'a Record> {
    let mut left: Vec<&Record> = runs.into_values().flatten().collect();
    let mut chosen = Vec::new();
    while let Some(run) = most_of(&left) {
        let own = || left.iter().filter(|line| line.run.id == run.id);
        let has_run = own().any(|line| ran(line));
        let cases: BTreeSet<_> =
            own().filter(|line| ran(line) || !has_run).map(|line| case_of(line)).collect();
        let (done, others): (Vec<&Record>, _) =
            left.into_iter().partition(|line| cases.contains(&case_of(line)));
        chosen.extend(done.into_iter().filter(|line| line.run.id == run.id));
        left = others;
    }
    chosen
}

/// The run that has most of these lines: peers that ran, then cases; of several the newest. Before all, one of the newest rules
/// that compares anybody: what older ones have measured has a fault, of the rules or of an adapter.
pub(crate) fn most_of<'a>(lines: &[&'a Record]) -> Option<&'a Run> {
    let mut runs: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    lines.iter().for_each(|line| runs.entry(&line.run.id).or_default().push(line));
    let rank = |of: &Vec<&'a Record>| {
        let has_run = || of.iter().filter(|line| ran(line));
        let peers: BTreeSet<&str> = has_run().map(|line| line.peer.as_str()).collect();
        let cases: BTreeSet<_> = has_run().map(|line| case_of(line)).collect();
        let rules = has_run().filter_map(|line| rules::of(line)).max().filter(|_| peers.len() > 1);
        (rules, peers.len(), cases.len(), of.iter().map(|line| recency(line)).max())
    };
    runs.into_values().max_by_key(rank).map(|of| &of[0].run)
}

/// The newer of two runs is the greater one, once both have enough rounds.
pub(crate) fn recency(record: &Record) -> (bool, &str) {
    (record.rounds >= ROUNDS, &record.run.started)
}

fn ran(record: &Record) -> bool {
    !matches!(record.outcome, Outcome::Absent(_))
}

/// What is measured beside each other within what is shown together, whoever the peer is.
fn case_of(record: &Record) -> (u64, &str, &str) {
    (record.size_bytes, &record.pin, &record.case)
}

/// All lines, each as it counts.
pub(crate) fn settled(records: &[Record]) -> Vec<Record> {
    records.iter().map(settle).collect()
}

/// The line with the median that its gains are of: runs of before had that of all samples of all rounds.
fn settle(record: &Record) -> Record {
    let mut record = record.clone();
    if let Some((median, times)) = typical(&record.round_values).zip(compared_mut(&mut record)) {
        times.p50 = median.round() as u64;
    }
    record
}

/// The times that the values of the rounds are medians of. Of coding those are of encode and decode together, which no line
/// has; of streams they are rates.
fn compared_mut(record: &mut Record) -> Option<&mut Times> {
    match record.workload.as_str() {
        "cdr" | "throughput" | "fanout" => None,
        "write" => record.write_ns.as_mut(),
        "discovery" => record.matched_ns.as_mut(),
        "bursts" => record.burst_ns.as_mut(),
        _ => record.rtt_ns.as_mut().or(record.one_way_ns.as_mut()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(run: &str, peer: &str, rounds: &[f64]) -> Record {
        let times = serde_json::json!({"min": 1, "mean": 1, "p50": 1, "p90": 1, "p99": 1, "p999": 1, "p9999": 1,
            "p999999": 1, "max": 1, "max_at_ns": 1, "stddev": 1, "pdv": 1});
        let all = serde_json::json!({
            "workload": "latency", "peer": peer, "version": "1", "transport": "udp", "wait": "waitset",
            "pin": "none", "size_bytes": 64, "rate_hz": 0.0, "qos": "", "case": "", "status": "ok",
            "rounds": rounds.len(), "samples": 9, "lost": 0, "out_of_order": 0, "duplicates": 0, "corrupt": 0,
            "round_values": rounds, "rtt_ns": times,
            "run": {"id": run, "started": "", "command": "", "taut": "0.1.0 abc", "cpu": "Intel(R) Xeon(R) Processor", "cores": 1, "kernel": "",
                "governor": "", "notes": []},
        });
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn a_run_is_called_by_its_processor_and_build() {
        assert_eq!(line("a", "taut", &[1.0]).run.label(), "Intel Xeon, abc");
    }

    /// Peer and run of the lines that count.
    fn shown(records: &[Record]) -> Vec<(String, String)> {
        current(records).into_iter().map(|record| (record.peer, record.run.id)).collect()
    }

    fn of(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(peer, run)| (peer.to_string(), run.to_string())).collect()
    }

    #[test]
    fn lines_of_a_case_are_of_one_run() {
        let full = [line("a", "taut", &[1.0, 2.0]), line("a", "zenoh", &[1.0, 2.0])];
        // Neither fewer peers nor a single round take their place, however good they are.
        let alone = [&full[..], &[line("b", "taut", &[1.0; 9])]].concat();
        assert_eq!(shown(&alone), of(&[("taut", "a"), ("zenoh", "a")]));
        let brief = [&full[..], &[line("b", "taut", &[1.0]), line("b", "zenoh", &[1.0])]].concat();
        assert_eq!(shown(&brief), of(&[("taut", "a"), ("zenoh", "a")]));
        let later = [&full[..], &[line("b", "zenoh", &[1.0; 2]), line("b", "taut", &[1.0; 2])]].concat();
        assert_eq!(shown(&later), of(&[("zenoh", "b"), ("taut", "b")]));
        let twice = [&full[..], &[line("a", "taut", &[5.0])]].concat();
        assert_eq!(shown(&twice), of(&[("zenoh", "a"), ("taut", "a")]));
    }

    /// A line that began so.
    fn sized(run: &str, started: &str, bytes: u64, rounds: usize) -> Record {
        let mut line = line(run, "taut", &vec![1.0; rounds]);
        (line.size_bytes, line.run.started) = (bytes, started.into());
        line
    }

    /// Sizes and runs of the lines that count.
    fn sizes(records: &[Record]) -> Vec<(u64, String)> {
        current(records).into_iter().map(|record| (record.size_bytes, record.run.id)).collect()
    }

    #[test]
    fn all_sizes_are_of_the_run_that_has_most_of_them() {
        let old = [sized("a", "1", 64, 3), sized("a", "1", 1_024, 3), sized("a", "1", 4_096, 3)];
        let new = [sized("b", "2", 1_024, 3), sized("b", "2", 8_192, 3)];
        let all = [&old[..], &new].concat();
        // Of what it lacks another one has a table of its own.
        let shown = current(&all);
        assert_eq!(
            sizes(&all),
            [(64, "a"), (1_024, "a"), (4_096, "a"), (8_192, "b")].map(|(size, run)| (size, run.to_string()))
        );
        let model = crate::report::model::Model::new(&shown);
        assert_eq!(model.groups.iter().map(|group| group.lines.len()).collect::<Vec<_>>(), [3, 1]);
        assert!(
            model.groups[1].title.ends_with(&format!("({})", shown[3].run.label())),
            "{}",
            model.groups[1].title
        );
    }

    #[test]
    fn of_two_runs_that_have_as_much_the_newer_one_counts_whatever_its_place_and_rounds() {
        let (old, new) =
            (sized("z", "2026-11-25T16:13:41Z", 64, 11), sized("a", "2026-11-28T20:15:34Z", 64, 10));
        for all in [[old.clone(), new.clone()], [new, old]] {
            assert_eq!(sizes(&all), [(64, "a".to_string())]);
        }
    }

    #[test]
    fn what_older_rules_have_measured_counts_where_there_is_nothing_newer() {
        let by = |rules: u32, run: &str, peer: &str| {
            let mut line = Record { workload: "discovery".into(), ..line(run, peer, &[1.0; 2]) };
            line.run.rules = rules;
            line
        };
        let old = ["taut", "hdds", "zenoh"].map(|peer| by(2, "a", peer));
        let new = ["taut", "zenoh"].map(|peer| by(3, "b", peer));
        assert_eq!(shown(&[&old[..], &new[..]].concat()), of(&[("taut", "b"), ("zenoh", "b")]));
        // One alone compares nothing.
        let of_old = of(&[("taut", "a"), ("hdds", "a"), ("zenoh", "a")]);
        assert_eq!(shown(&[&old[..], &new[..1]].concat()), of_old);
    }

    #[test]
    fn the_median_is_that_of_the_gains() {
        let shown = current(&[line("a", "taut", &[10.0, 0.0, 1_000.0])]);
        assert_eq!(shown[0].rtt_ns.unwrap().p50, 100, "a round that did not run does not count");
    }

    #[test]
    fn encode_keeps_its_median_though_gains_are_of_both_ways() {
        let trip = line("a", "taut", &[13.0, 15.0]);
        let coding = Record { workload: "cdr".into(), encode_ns: trip.rtt_ns, rtt_ns: None, ..trip };
        assert_eq!(current(&[coding])[0].encode_ns.unwrap().p50, 1);
    }
}
