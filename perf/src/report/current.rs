//! Which lines count where several runs have measured the same: those of one run, never some of each.
//!
//! Lines of different runs are of different moments of a machine, and often of different builds. Beside each other they
//! are no comparison, and a line that took another one's place would take the comparisons with it that it has not.

use std::collections::BTreeMap;

use crate::record::{Outcome, Record, Times};
use crate::report::model::{Key, same_line};
use crate::statistics::typical;

/// What a run has of a case.
#[derive(Default)]
struct Share {
    /// The places of its lines, one for each that is told apart.
    lines: Vec<usize>,
    /// Who ran.
    peers: usize,
    rounds: u32,
}

/// The lines that count, in their order: of the runs that measured a case that with the most peers, of those that with
/// the most rounds, of those the last. In one run the last line of a peer counts.
pub(crate) fn current(records: &[Record]) -> Vec<Record> {
    // By case, then by the place of the run's first line.
    let mut cases: BTreeMap<String, BTreeMap<usize, Share>> = BTreeMap::new();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let run = *runs.entry(record.run.id.as_str()).or_insert(at);
        let share = cases.entry(case_of(record)).or_default().entry(run).or_default();
        share.lines.retain(|other| !same_line(&records[*other], record));
        share.lines.push(at);
        share.rounds = share.rounds.max(record.rounds);
        share.peers =
            share.lines.iter().filter(|at| !matches!(records[**at].outcome, Outcome::Absent(_))).count();
    }
    let of_run = |shares: BTreeMap<usize, Share>| best(shares.into_values(), |of| (of.peers, of.rounds));
    let mut places: Vec<usize> = cases.into_values().filter_map(of_run).flat_map(|of| of.lines).collect();
    places.sort_unstable();
    places.into_iter().map(|at| settle(&records[at])).collect()
}

/// Of several, in the order of their runs, that with the most beside it, of those that with the most rounds, of those the
/// last.
fn best<T>(all: impl IntoIterator<Item = T>, rank: impl Fn(&T) -> (usize, u32)) -> Option<T> {
    all.into_iter().enumerate().max_by_key(|(at, one)| (rank(one), *at)).map(|(_, one)| one)
}

/// The best of what one run is to have all lines of: of what is shown no run may, while one of those that are `stored` does.
/// `all` finds those of these lines, `rank` says how much each has beside it, and its rounds.
pub(crate) fn best_of_one_run<'a, T>(
    shown: &'a [Record],
    stored: &'a [Record],
    all: impl Fn(&'a [Record]) -> Vec<T>,
    rank: impl Fn(&T) -> (usize, u32),
) -> Option<T> {
    [shown, stored].into_iter().find_map(|records| best(all(records), &rank))
}

/// All lines, each as it counts.
pub(crate) fn settled(records: &[Record]) -> Vec<Record> {
    records.iter().map(settle).collect()
}

/// What is measured beside each other, whoever the peer is.
fn case_of(record: &Record) -> String {
    let Record { size_bytes, pin, case, .. } = record;
    format!("{:?} {size_bytes} {pin} {case}", Key::of(record))
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
            "run": {"id": run, "started": "", "command": "", "taut": "", "cpu": "", "cores": 1, "kernel": "",
                "governor": "", "notes": []},
        });
        serde_json::from_value(all).unwrap()
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
        // Neither fewer peers nor fewer rounds take their place, however good they are.
        let alone = [&full[..], &[line("b", "taut", &[1.0; 9])]].concat();
        assert_eq!(shown(&alone), of(&[("taut", "a"), ("zenoh", "a")]));
        let brief = [&full[..], &[line("b", "taut", &[1.0]), line("b", "zenoh", &[1.0])]].concat();
        assert_eq!(shown(&brief), of(&[("taut", "a"), ("zenoh", "a")]));
        let later = [&full[..], &[line("b", "zenoh", &[1.0; 2]), line("b", "taut", &[1.0; 2])]].concat();
        assert_eq!(shown(&later), of(&[("zenoh", "b"), ("taut", "b")]));
        let twice = [&full[..], &[line("a", "taut", &[5.0])]].concat();
        assert_eq!(shown(&twice), of(&[("zenoh", "a"), ("taut", "a")]));
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
