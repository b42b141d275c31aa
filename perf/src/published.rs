//! What others have published, beside what was measured here: the tables of five documents, row by row.
//!
//! A published figure is that of its authors on their machine; all others of a row are of one run, in the
//! same setting. A row that no run has is left out, and so is a table without rows.

mod bursts;
mod documents;
mod figure;
mod gains;
mod isolation;
mod table;

use crate::catalog::not_asked;
use crate::record::{Outcome, Record, Run};
use crate::report::current::most_of;
use crate::report::peers;
use crate::workload::is_as_named;
pub(crate) use documents::SIZES;
use figure::Figure;
pub(crate) use figure::{of_all, of_participant};
pub(crate) use table::Table;

/// Who has a column, if there is a figure for it.
const COLUMNS: [&str; 11] = [
    "taut",
    "floor",
    "cyclonedds",
    "cyclonedds11",
    "fastdds",
    "hdds",
    "zenoh",
    "zeromq",
    "mqtt",
    "grpc",
    "iceoryx2",
];

/// The ways over a link, and how they are called.
const WAYS: [(&str, &str); 4] =
    [("udp", "the kernel"), ("xdp", "XDP"), ("xdp-l2", "XDP without IP"), ("dpdk", "DPDK's memif")];

/// How who is measured waits: unless it polls as each does by default, which with Taut is to look for a while. Nothing tells
/// that a frame has come by DPDK: its driver polls, whatever the application does.
fn waits(transport: &str, spins: bool) -> &'static str {
    match (spins, transport) {
        (true, _) => "polling",
        (false, "dpdk") => "with a driver that polls",
        (false, _) => "as by default",
    }
}

/// A line of a table.
struct Row<'a> {
    what: String,
    published: &'static str,
    /// Is this its line, if it is what its name stands for? Of several of a peer the figure that is best counts.
    is: Box<dyn Fn(&Record) -> bool + 'a>,
    figure: Figure,
}

/// All tables that the lines which are shown have rows for; what compares two lines of Taut and others is of the newest run
/// that has both, of all that are stored.
pub(crate) fn tables(records: &[Record], stored: &[Record]) -> Vec<Table> {
    let mut plain = vec![
        ("User-space networking for DDS (PerCom 2024)".to_string(), documents::bound()),
        ("Past the kernel's stack and through it, over one link".into(), documents::bypass()),
        ("HDDS, what it says of itself".into(), documents::hdds()),
        ("Timing isolation for mixed-criticality traffic".into(), isolation::by_sockets()),
    ];
    plain.extend(WAYS.map(|(transport, way)| {
        (format!("Timing isolation over one link, by {way}"), isolation::over_link(transport))
    }));
    plain.extend([
        (
            "DDS for real-time information management (Vanderbilt): types and fan-out".into(),
            documents::vanderbilt(),
        ),
        ("eProsima's comparison of Fast DDS and Cyclone DDS".into(), documents::eprosima()),
    ]);
    let mut all: Vec<Table> =
        [gains::table(stored), isolation::beside_flood(stored)].into_iter().flatten().collect();
    let table = |title: &str, rows: &[Row]| table([records, stored], title, rows);
    all.extend(plain.iter().filter_map(|(title, rows)| table(title, rows)));
    all.extend(bursts::tables(records));
    all.extend(table("Starting, and what it takes", &documents::footprint()));
    all.into_iter().map(Table::labelled).collect()
}

/// What a reader must know of all of them.
pub(crate) fn explained(records: &[Record]) -> String {
    let mut text = "In the column *published* are its authors' figures, of their machine; all others of a row are of one run, in the same setting, and a row, or what stands above its table, says of which processor and build. A dash: no such line.".to_string();
    let few = not_asked();
    if records.iter().any(|record| matches!(&record.outcome, Outcome::Absent(why) if *why == few)) {
        text += &format!(" So it is, too, where {few}.");
    }
    text
}

/// The section of the documentation; empty without a table.
pub(crate) fn section(records: &[Record], tables: &[Table]) -> String {
    let all: String = tables.iter().map(|table| table.markdown("###")).collect();
    if all.is_empty() {
        return all;
    }
    format!("## Beside what others have published\n\n{}\n\n{all}", explained(records))
}

fn row<'a>(
    what: impl Into<String>,
    published: &'static str,
    figure: Figure,
    is: impl Fn(&Record) -> bool + 'a,
) -> Row<'a> {
    Row { what: what.into(), published, is: Box::new(is), figure }
}

/// Is it between two networks?
fn is_linked(record: &Record) -> bool {
    record.case.split(' ').any(|word| word == "link")
}

/// What a reader must know of processor times that are too low.
const WITHOUT_ENDED: &str = "Where a run did not yet count threads that had ended, processor times are without them: HDDS begins one for each sample.";

/// A table, if there is a row in it. Each is of the first of these sets in which the subject has its figure: runs that are shown
/// for their sizes may be older than what a line of today tells.
fn table(sets: [&[Record]; 2], title: &str, rows: &[Row]) -> Option<Table> {
    let mut used: Vec<&Record> = Vec::new();
    let mut says = "";
    let mut lines: Vec<(&Row, &Run, Vec<Option<String>>)> = Vec::new();
    for row in rows {
        let Some(all) = sets.iter().find_map(|records| with_figure(records, row)) else { continue };
        let Some(run) = most_of(&all) else { continue };
        let of_run: Vec<&Record> = all.into_iter().filter(|record| record.run.id == run.id).collect();
        let mut cells = Vec::new();
        for peer in COLUMNS {
            let best = best(&of_run, row, peer);
            used.extend(best.iter().map(|(record, _)| *record));
            if matches!(row.figure, Figure::Cpu)
                && best.as_ref().is_some_and(|of| !of.0.run.counts_ended_threads)
            {
                says = WITHOUT_ENDED;
            }
            cells.push(best.map(|(_, text)| text).or_else(|| failed(&of_run, peer)));
        }
        lines.push((row, run, cells));
    }
    if lines.is_empty() {
        return None;
    }
    let kept: Vec<usize> =
        (0..COLUMNS.len()).filter(|at| lines.iter().any(|(.., cells)| cells[*at].is_some())).collect();
    let has_published = lines.iter().any(|(row, ..)| !row.published.is_empty());
    let words = ["measured", "published"].map(String::from).into_iter().take(1 + usize::from(has_published));
    let names = kept.iter().map(|at| peers::name(COLUMNS[*at]));
    let mut table = Table::new(title, &used, says).with_heads(words, names);
    for (row, run, cells) in lines {
        let mut line = vec![row.what.clone()];
        line.extend(has_published.then(|| row.published.to_string()));
        line.extend(kept.iter().map(|at| cells[*at].clone().unwrap_or_else(|| "–".into())));
        table.add(line, Some(run));
    }
    Some(table)
}

/// The lines of a row, of the runs in which the subject has its figure; `None` if there are none: what it was not asked is no
/// row, as there is nothing to compare.
fn with_figure<'a>(records: &'a [Record], row: &Row) -> Option<Vec<&'a Record>> {
    let of_row: Vec<&Record> =
        records.iter().filter(|record| is_as_named(record) && (row.is)(record)).collect();
    let has = |run: &Run| {
        let own: Vec<&Record> = of_row.iter().copied().filter(|line| line.run.id == run.id).collect();
        best(&own, row, COLUMNS[0]).is_some() || failed(&own, COLUMNS[0]).is_some()
    };
    let all: Vec<&Record> = of_row.iter().copied().filter(|line| has(&line.run)).collect();
    (!all.is_empty()).then_some(all)
}

/// The best line of a peer, and its figure: several settings may count as one row.
fn best<'a>(lines: &[&'a Record], row: &Row, peer: &str) -> Option<(&'a Record, String)> {
    let own = lines.iter().copied().filter(|r| r.outcome == Outcome::Ok && r.peer == peer);
    let shown = own.filter_map(|record| row.figure.of(record).map(|text| (record, text)));
    // The later of two equal ones, as on the rest of the page.
    shown.max_by(|a, b| merit(a.0).total_cmp(&merit(b.0)))
}

/// What is said of a peer that tried and failed.
fn failed(lines: &[&Record], peer: &str) -> Option<String> {
    let failed = |r: &&&Record| matches!(r.outcome, Outcome::Failed(_)) && r.peer == peer;
    lines.iter().find(failed).map(|_| "failed".to_string())
}

/// By which of two lines of one peer the better is shown; times stand alone.
fn merit(record: &Record) -> f64 {
    record.samples_per_s.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::figure::held_up_ns;
    use super::*;

    fn page_of(records: &[Record]) -> String {
        section(records, &tables(records, records))
    }
    use crate::record::Times;

    fn record(fields: serde_json::Value) -> Record {
        let mut all = serde_json::json!({
            "workload": "latency", "peer": "taut", "version": "1", "transport": "udp", "wait": "waitset",
            "pin": "none", "size_bytes": 64, "rate_hz": 0.0, "qos": "reliable keep-last:1 volatile",
            "case": "", "status": "ok", "rounds": 3, "samples": 900, "lost": 0, "out_of_order": 0,
            "duplicates": 0, "corrupt": 0, "round_values": [1.0],
            "run": serde_json::to_value(crate::record::Run { command: "taut perf x".into(), ..Default::default() }).unwrap(),
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn trip(peer: &str, mean: u64) -> Record {
        record(
            serde_json::json!({"peer": peer, "rtt_ns": {"min": mean / 2, "mean": mean, "p50": mean, "p90": 1,
            "p99": 2 * mean, "p999": 1, "p9999": 1, "p999999": 1, "max": 1, "max_at_ns": 1, "stddev": 1, "pdv": 1}}),
        )
    }

    #[test]
    fn a_row_has_the_published_figure_and_those_of_the_run() {
        let page = page_of(&[trip("taut", 10_000), trip("hdds", 300_000)]);
        let hdds = "| round trip over UDP, 64 B: p50, p99 | 246 µs, p99 450 µs; Cyclone DDS 133 µs | 10 µs, 20 µs | 300 µs, 600 µs |";
        assert!(page.contains(hdds), "{page}");
        // Half of it, least and mean; no column for who was not there.
        let eprosima = "| measured | Taut | HDDS |\n|---|--:|--:|\n| half a round trip, UDP, 64 B: least, mean | 2.50 µs, 5 µs | 75 µs, 150 µs |";
        assert!(page.contains(eprosima), "{page}");
        assert!(page.contains("`taut perf x`") && !page.contains("encode"), "{page}");
    }

    #[test]
    fn what_a_mean_counts_before_the_write_is_what_held_its_sender_up() {
        let times = trip("taut", 30_000).rtt_ns;
        let line = |behind_ns, overslept_ns| Record { behind_ns, overslept_ns, ..trip("taut", 90_000) };
        assert_eq!(held_up_ns(&line(Some(31_000.0), times)), 1_000.0);
        assert_eq!(
            held_up_ns(&line(Some(31_000.0), None)),
            31_000.0,
            "all of it, in lines of the first rules"
        );
        assert_eq!(held_up_ns(&line(None, None)), 0.0);
    }

    #[test]
    fn what_is_at_another_rate_or_not_reliable_is_no_row() {
        let paced = |rate_hz: f64, qos: &str| {
            let (case, size_bytes, qos) = ("every 1 ms".into(), 32, qos.into());
            page_of(&[Record { case, size_bytes, rate_hz, qos, ..trip("taut", 10_000) }])
        };
        assert!(paced(1_000.0, "reliable keep-all volatile").contains("| mean of 32 B, 1,000/s | "));
        assert_eq!(paced(500.0, "reliable keep-all volatile"), "");
        assert_eq!(paced(1_000.0, "best-effort keep-all volatile"), "");
    }

    #[test]
    fn the_best_of_several_bursts_is_shown() {
        let burst = |case: &str, per_s: f64| {
            record(serde_json::json!({"workload": "throughput", "case": case, "samples_per_s": per_s,
                "bytes_per_s": per_s * 64.0, "qos": "reliable keep-all volatile"}))
        };
        let of_threads = burst("2 threads", 9e6);
        let bursts = [burst("best of all bursts", 2e6), burst("best of bursts", 5e5), of_threads];
        let page = page_of(&[&[burst("", 1e6)], &bursts[..]].concat());
        assert!(page.contains("| most of any burst, UDP, 64 B | 128 MB/s |"), "{page}");
    }

    #[test]
    fn what_is_made_after_the_endpoints_is_weighed_alone() {
        let step = |entity: &str, count: u64, bytes_each: i64, threads: u64| {
            serde_json::json!({"entity": entity,
            "count": count, "bytes_each": bytes_each, "threads": threads, "descriptors": 9})
        };
        let memory = [
            step("process", 1, 3_000_000, 1),
            step("writer", 100, 10_000, 5),
            step("reader", 100, 10_000, 6),
            step("publisher", 100, 64, 6),
            step("held sample", 1_000, 1_300, 7),
        ];
        let page = page_of(&[record(serde_json::json!({"workload": "memory", "memory": memory}))]);
        for row in [
            "| a publisher takes | 64 kB | 64 B |",
            "| a sample of 1 KiB that a writer holds takes | 1.28 kB | 1.30 kB |",
            "| a participant, 100 writers and 100 readers: memory, threads | 5 MB, 6 |",
        ] {
            assert!(page.contains(row), "{row}: {page}");
        }
    }

    /// The best of a peer is that of the run of its row, not that of an hour in which nobody else was measured.
    #[test]
    fn a_row_has_no_figures_of_two_runs() {
        let burst = |run: &str, peer: &str, case: &str, bytes_per_s: f64| {
            let mut line = record(serde_json::json!({"workload": "throughput", "peer": peer, "case": case,
                "samples_per_s": bytes_per_s / 64.0, "bytes_per_s": bytes_per_s, "qos": "reliable keep-all volatile"}));
            (line.run.id, line.run.cpu) = (run.into(), format!("processor {run}"));
            line
        };
        let both = [burst("a", "taut", "", 1e6), burst("a", "zenoh", "", 2e6)];
        let page = page_of(&[&both[..], &[burst("b", "taut", "best of all bursts", 9e6)]].concat());
        assert!(page.contains("| most of any burst, UDP, 64 B | 1 MB/s | 2 MB/s |"), "{page}");
        assert!(page.contains("\nMeasured on: processor a.\n"), "{page}");
    }

    #[test]
    fn what_a_flood_adds_is_of_the_newest_run_that_has_most_pairs() {
        let line = |run: &str, peer: &str, case: &str, us: u64| {
            let times = Times { p9999: 1_000 * us, max: 1_000 * us, ..Times::default() };
            let run =
                crate::record::Run { id: run.into(), command: "taut perf x".into(), ..Default::default() };
            let (peer, case, workload) = (peer.into(), case.into(), "interference".into());
            let (rate_hz, samples, rtt_ns) = (2_000.0, 100_000, Some(times));
            Record { peer, case, workload, rate_hz, samples, rtt_ns, run, ..trip("taut", 1) }
        };
        let pair = |run: &str, peer: &str, us: u64| {
            [line(run, peer, "quiet all long", 10), line(run, peer, "flood all long", us)]
        };
        let stored = [pair("a", "taut", 20), pair("b", "taut", 30)].concat();
        let ratios = |stored: &[Record]| -> Vec<String> {
            let table = isolation::beside_flood(stored).expect("the table");
            table.rows.into_iter().map(|row| row[4].clone()).collect()
        };
        let half = [&stored[..], &[line("c", "taut", "flood all long", 90)]].concat();
        assert_eq!(ratios(&half), ["3.00×"], "the newest that has both");
        let more = [&pair("a", "floor", 15)[..], &stored].concat();
        assert_eq!(ratios(&more), ["1.50×", "2.00×"], "that with more pairs");
        let by_dpdk = ["quiet", "flood"].map(|word| {
            let us = if word == "quiet" { 10 } else { 25 };
            let line = line("a", "taut", &format!("{word} all but fifo long link"), us);
            Record { transport: "dpdk".into(), ..line }
        });
        assert_eq!(ratios(&by_dpdk), ["2.50×"], "without the priority");
    }

    #[test]
    fn what_a_sample_costs_stands_with_those_that_got_lost() {
        let line = |peer: &str, lost: u64| {
            record(
                serde_json::json!({"workload": "throughput", "peer": peer, "size_bytes": 32, "samples": 75,
                "lost": lost, "cpu_ns_per_sample": 2_000.0, "context_switches": 600,
                "switches_per_sample": 5.0, "qos": "reliable keep-all volatile"}),
            )
        };
        let of_threads =
            Record { case: "2 threads".into(), switches_per_sample: Some(1.0), ..line("taut", 0) };
        let page = page_of(&[line("taut", 0), line("hdds", 25), of_threads]);
        let row = "| context switches of both sides for a thousand of 32 B, reliable, as fast as it goes | 5000 | 5000, 25.0 % lost |";
        assert!(page.contains(row), "{page}");
        let before = Record { switches_per_sample: None, ..line("hdds", 25) };
        let page = page_of(&[line("taut", 0), before]);
        assert!(page.contains("reliable, as fast as it goes | 5000 | – |"), "{page}");
        let row = "| processor time of both sides for a million of 32 B, reliable, as fast as it goes | 2 s | 2 s, 25.0 % lost |";
        assert!(page.contains(row), "{page}");
        // These are of before threads that have ended counted.
        assert!(page.contains(WITHOUT_ENDED), "{page}");
        let mut counted = [line("taut", 0), line("hdds", 25)];
        counted.iter_mut().for_each(|line| line.run.counts_ended_threads = true);
        assert!(!page_of(&counted).contains(WITHOUT_ENDED));
    }

    #[test]
    fn a_row_is_of_a_run_in_which_the_subject_has_its_figure() {
        let line = |run: &str, peer: &str, switches: Option<f64>| {
            let line = record(serde_json::json!({"workload": "throughput", "peer": peer, "size_bytes": 32,
                "samples": 75, "cpu_ns_per_sample": 2_000.0, "switches_per_sample": switches,
                "qos": "reliable keep-all volatile"}));
            let run =
                crate::record::Run { id: run.into(), command: "taut perf x".into(), ..Default::default() };
            Record { run, ..line }
        };
        let older = ["taut", "hdds"].map(|peer| line("older", peer, None));
        let newer = line("newer", "taut", Some(5.0));
        let rows = |shown: &[Record], stored: &[Record]| -> Vec<String> {
            let all = tables(shown, stored);
            let table = all.iter().find(|table| table.title.starts_with("Starting"));
            let switches = |row: &&Vec<String>| row[0].starts_with("context switches");
            table.expect("the table").rows.iter().filter(switches).map(|row| row[1..].join(" ")).collect()
        };
        assert!(rows(&older, &older).is_empty(), "nobody has it");
        let stored = [&older[..], std::slice::from_ref(&newer)].concat();
        assert_eq!(rows(&older, &stored), ["5000 –"], "a run that is not shown for its sizes");
        assert_eq!(rows(&stored, &stored), ["5000 –"], "one of two, and not that with more peers");
    }

    #[test]
    fn a_table_of_bursts_has_each_cell_of_each_peer() {
        let pace = |demand: u64, interval_ms: u64, per_s: f64, lost: u64| serde_json::json!({"demand": demand, "interval_ms": interval_ms, "samples_per_s": per_s, "expected": 1_000, "lost": lost});
        let line = |peer: &str, paces: &[serde_json::Value]| {
            record(serde_json::json!({"workload": "throughput", "peer": peer, "case": "best of all bursts",
                "samples_per_s": 2e6, "bytes_per_s": 128e6, "qos": "reliable keep-all volatile", "paces": paces}))
        };
        let own = line("taut", &[pace(1_000, 10, 1e5, 0), pace(100, 0, 2e6, 0), pace(1_000, 0, 1e6, 0)]);
        let other = line("hdds", &[pace(100, 0, 5e4, 25), pace(1_000, 0, 0.0, 0)]);
        let all = tables(&[own, other], &[]);
        let table = all.iter().find(|table| table.title.starts_with("Demand")).expect("the table");
        assert_eq!(table.title, "Demand and interval: 64 B by UDP, best of all bursts");
        assert_eq!(
            table.rows,
            [
                ["100", "0 ms", "no limit", "2 M/s", "50 k/s, 2.50 % lost"],
                ["1,000", "0 ms", "no limit", "1 M/s", "failed"],
                ["1,000", "10 ms", "100 k/s", "100 k/s", "–"],
            ]
        );
        assert!(
            table
                .markdown("###")
                .contains("| demand | interval | asked for | Taut | HDDS |\n|---|---|---|--:|--:|\n")
        );
    }

    #[test]
    fn the_bound_of_a_million_is_that_of_a_million() {
        let soak = |peer: &str, samples: u64, lost: u64, case: &str| Record {
            workload: "soak".into(),
            case: case.into(),
            size_bytes: 32,
            rate_hz: 1_000.0,
            samples,
            lost,
            ..trip(peer, 20_000)
        };
        let page =
            page_of(&[soak("taut", 999_990, 10, "fifo inline"), soak("floor", 999_990, 0, "fifo inline")]);
        let row = "| mean of a million of 32 B, 1,000/s, SCHED_FIFO, inline where there is such a mode | Cyclone DDS 107 µs, XDP 87 µs, DPDK 74 µs | 20 µs |\n";
        assert!(page.contains(row), "the floor has fewer: {page}");
        assert!(!page.contains("of a million of 32 B, 1,000/s |"), "{page}");
    }

    #[test]
    fn who_was_not_asked_is_told() {
        let absent = |why: String| Record { outcome: Outcome::Absent(why), ..trip("hdds", 1) };
        let page = page_of(&[trip("taut", 10_000), absent(not_asked())]);
        assert!(
            page.contains(
                "A dash: no such line. So it is, too, where `taut perf all` asks only Taut, floor, "
            ),
            "{page}"
        );
        assert!(!page_of(&[trip("taut", 10_000), absent("no role cdr".into())]).contains("So it is"));
    }

    #[test]
    fn a_run_without_these_lines_has_no_such_section() {
        assert_eq!(page_of(&[]), "");
        assert_eq!(page_of(&[trip("floor", 1_000)]), "", "nothing of the subject's");
    }
}
