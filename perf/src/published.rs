//! What others have published, beside what was measured here: the tables of five documents, row by row.
//!
//! A published figure is that of its authors on their machine; all others of a row are of this run, in the
//! same setting. A row that the run does not have is left out, and so is a table without rows.

mod bursts;
mod figure;
mod gains;
mod isolation;
mod table;

use crate::catalog::not_asked;
use crate::record::{Outcome, Record};
use crate::report::peers;
use crate::report::units::size;
use crate::workload::calls;
use figure::Figure;
pub(crate) use figure::{mean_ns, of_all, of_participant};
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

/// eProsima's sizes.
pub(crate) const SIZES: [u64; 11] =
    [64, 512, 1_024, 4_096, 8_192, 16_384, 65_536, 1_048_576, 2_097_152, 4_194_304, 8_388_608];

/// The ways over a link, and how they are called.
const WAYS: [(&str, &str); 4] =
    [("udp", "the kernel"), ("xdp", "XDP"), ("xdp-l2", "XDP without IP"), ("dpdk", "DPDK's memif")];

/// A line of a table.
struct Row<'a> {
    what: String,
    published: &'static str,
    /// Is this its line? Of several of a peer the figure that is best counts.
    is: Box<dyn Fn(&Record) -> bool + 'a>,
    figure: Figure,
}

/// All tables that the lines which are shown have rows for; what compares two lines of Taut and others looks for a run that
/// has both in what is stored, too.
pub(crate) fn tables(records: &[Record], stored: &[Record]) -> Vec<Table> {
    let mut plain = vec![
        ("User-space networking for DDS (PerCom 2024)".to_string(), bound()),
        ("Past the kernel's stack and through it, over one link".into(), bypass()),
        ("HDDS, what it says of itself".into(), hdds()),
        ("Timing isolation for mixed-criticality traffic".into(), isolation::by_sockets()),
    ];
    plain.extend(WAYS.map(|(transport, way)| {
        (format!("Timing isolation over one link, by {way}"), isolation::over_link(transport))
    }));
    plain.extend([
        ("DDS for real-time information management (Vanderbilt): types and fan-out".into(), vanderbilt()),
        ("eProsima's comparison of Fast DDS and Cyclone DDS".into(), eprosima()),
    ]);
    let mut all: Vec<Table> = [gains::table(records, stored), isolation::beside_flood(records, stored)]
        .into_iter()
        .flatten()
        .collect();
    all.extend(plain.iter().filter_map(|(title, rows)| table(records, title, rows)));
    all.extend(bursts::tables(records));
    all.extend(table(records, "Starting, and what it takes", &footprint()));
    all
}

/// What a reader must know of all of them.
pub(crate) fn explained(records: &[Record]) -> String {
    let mut text = "In the column *published* are its authors' figures, of their machine; all others are of this run, in the same setting. A dash: no such line.".to_string();
    let few = not_asked();
    if records.iter().any(|record| matches!(&record.outcome, Outcome::Absent(why) if *why == few)) {
        text += &format!(" So it is, too, where {few}.");
    }
    text
}

/// The section of the documentation; empty without a table.
pub fn section(records: &[Record], stored: &[Record]) -> String {
    let all: String = tables(records, stored).iter().map(|table| table.markdown("###")).collect();
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

/// A closed loop with the defaults of the workload.
fn closed(record: &Record, workload: &str, transport: &str, bytes: u64) -> bool {
    let plain = record.rate_hz == 0.0 && record.pin == "none" && record.wait != "spin";
    plain
        && !is_linked(record)
        && record.workload == workload
        && record.transport == transport
        && record.size_bytes == bytes
}

/// Is it between two networks?
fn is_linked(record: &Record) -> bool {
    record.case.split(' ').any(|word| word == "link")
}

/// Over a link with another MTU than Ethernet's?
fn has_other_mtu(record: &Record) -> bool {
    record.case.split(' ').any(|word| word == "mtu")
}

/// As many samples as the study has, sent.
const MILLION: u64 = 1_000_000;

/// A: the bound at 1,000 samples a second.
fn bound() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (label, says) in [
        ("every 1 ms", ""),
        ("every 1 ms fifo inline", ", SCHED_FIFO, no thread but the caller's where there is such a mode"),
    ] {
        let is = move |r: &Record| r.workload == "latency" && r.transport == "udp" && r.case == label;
        let of = |figure: &str| format!("{figure} of 32 B, 1,000/s{says}");
        rows.push(row(of("mean"), "Cyclone DDS 107 µs, XDP 87 µs, DPDK 74 µs", Figure::Mean, is));
        rows.push(row(of("maximum"), "XDP 211 µs, DPDK 194 µs", Figure::Max, is));
        rows.push(row(of("maximum / mean"), "35× without, 2.6× with them", Figure::MaxToMean, is));
    }
    for (label, says) in [("", ""), ("fifo inline", ", SCHED_FIFO, inline where there is such a mode")] {
        let is = move |r: &Record| {
            let is_long = r.samples + r.lost >= MILLION;
            r.workload == "soak" && is_long && r.transport == "udp" && r.size_bytes == 32 && r.case == label
        };
        let of = |figure: &str| format!("{figure} of a million of 32 B, 1,000/s{says}");
        rows.push(row(of("mean"), "Cyclone DDS 107 µs, XDP 87 µs, DPDK 74 µs", Figure::Mean, is));
        rows.push(row(of("p99.99"), "", Figure::Rare, is));
        rows.push(row(of("all but one"), "", Figure::OneInMillion, is));
        rows.push(row(of("maximum"), "XDP 211 µs, DPDK 194 µs", Figure::Max, is));
        rows.push(row(of("maximum / mean"), "35× without, 2.6× with them", Figure::MaxToMean, is));
    }
    let rate =
        |r: &Record| closed(r, "throughput", "udp", 32) && r.qos.starts_with("reliable") && r.case.is_empty();
    rows.push(row("rate of 32 B", "Cyclone DDS 167 k/s, DPDK 250 k/s", Figure::Samples, rate));
    let wide = |r: &Record| {
        closed(r, "throughput", "udp", 1_024) && r.qos.starts_with("reliable") && r.case.is_empty()
    };
    rows.push(row("bandwidth of 1 KiB", "Cyclone DDS 170 MB/s, DPDK 250 MB/s", Figure::Bytes, wide));
    rows
}

/// Of fewer samples a bound is not shown beside those of the study, which has a million.
const SOAKED: u64 = 100_000;

/// A once more, over a link: by the kernel's sockets, and past its stack.
fn bypass() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (transport, way) in WAYS {
        let linked = move |r: &Record| r.transport == transport && is_linked(r) && !has_other_mtu(r);
        for (spins, wait) in [(true, "polling"), (false, "asleep")] {
            let over = move |r: &Record| linked(r) && r.workload == "latency" && (r.wait == "spin") == spins;
            for bytes in [64, 512, 1_024] {
                let is = move |r: &Record| over(r) && r.rate_hz == 0.0 && r.size_bytes == bytes;
                let what = format!("round trip of {} by {way}, {wait}: p50, p99", size(bytes));
                rows.push(row(what, "", Figure::P50P99, is));
            }
            let is = move |r: &Record| over(r) && r.case == "every 1 ms link";
            let of = |figure: &str| format!("{figure} of 32 B, 1,000/s by {way}, {wait}");
            rows.push(row(of("mean"), "Cyclone DDS 107 µs, XDP 87 µs, DPDK 74 µs", Figure::Mean, is));
            rows.push(row(of("maximum"), "XDP 211 µs, DPDK 194 µs", Figure::Max, is));
            rows.push(row(of("maximum / mean"), "35× without, 2.6× with them", Figure::MaxToMean, is));
            rows.push(row(of("delay variation (p99.9 - least)"), "", Figure::Variation, is));
        }
        let soak =
            move |r: &Record| linked(r) && r.workload == "soak" && r.wait == "spin" && r.samples >= SOAKED;
        let of = |figure: &str| format!("{figure} of a hundred thousand of 64 B, 1,000/s by {way}, polling");
        rows.push(row(of("maximum"), "XDP 211 µs, DPDK 194 µs", Figure::Max, soak));
        rows.push(row(of("maximum / mean"), "35× without, 2.6× with them", Figure::MaxToMean, soak));
        let stream = move |bytes: u64| {
            move |r: &Record| {
                linked(r)
                    && r.workload == "throughput"
                    && r.size_bytes == bytes
                    && r.qos.starts_with("reliable")
            }
        };
        let says = "Cyclone DDS 167 k/s, DPDK 250 k/s";
        rows.push(row(format!("rate of 32 B by {way}"), says, Figure::Samples, stream(32)));
        let says = "Cyclone DDS 170 MB/s, DPDK 250 MB/s";
        rows.push(row(format!("bandwidth of 1 KiB by {way}"), says, Figure::Bytes, stream(1_024)));
    }
    rows
}

/// B.
fn hdds() -> Vec<Row<'static>> {
    let within = |r: &Record| closed(r, "local", "thread", 16) && r.case == "copy";
    let mut rows = vec![row("write and take in one thread, 16 B", "247 ns", Figure::P50, within)];
    for (bytes, published) in [(64, "2.49 µs"), (256, "2.54 µs"), (1_024, "2.70 µs")] {
        let is = move |r: &Record| r.workload == "write" && r.transport == "udp" && r.size_bytes == bytes;
        rows.push(row(format!("`write`, {}", size(bytes)), published, Figure::P50, is));
    }
    for (bytes, published) in [
        (64, "246 µs, p99 450 µs; Cyclone DDS 133 µs"),
        (1_024, "Cyclone DDS 120 µs"),
        (8_192, "Cyclone DDS 150 µs"),
    ] {
        let is = move |r: &Record| closed(r, "latency", "udp", bytes) && r.case.is_empty();
        rows.push(row(
            format!("round trip over UDP, {}: p50, p99", size(bytes)),
            published,
            Figure::P50P99,
            is,
        ));
    }
    for (bytes, published) in [
        (64, "50 ns, 40 ns"),
        (256, "120 ns, 100 ns"),
        (1_024, "400 ns, 350 ns"),
        (4_096, "1.50 µs, 1.30 µs"),
    ] {
        for kind in ["plain", "complex"] {
            let is = move |r: &Record| r.workload == "cdr" && r.size_bytes == bytes && r.case == kind;
            rows.push(row(format!("encode, decode {}, {kind}", size(bytes)), published, Figure::Coding, is));
        }
    }
    for (entity, published) in
        [("participant", "2 MB"), ("topic", "16 kB"), ("writer", "128 kB"), ("reader", "128 kB")]
    {
        let is = |r: &Record| r.workload == "memory";
        rows.push(row(format!("a {entity} takes"), published, Figure::Entity(entity), is));
    }
    rows
}

/// D.
fn vanderbilt() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for kind in ["simple", "complex"] {
        for power in 2..=14 {
            let is = move |r: &Record| {
                closed(r, "types", "udp", 1 << power) && r.case == kind && r.qos.starts_with("reliable")
            };
            let what = format!("{kind}, {}: mean, jitter", size(1 << power));
            rows.push(row(what, "", Figure::MeanJitter, is));
        }
    }
    for count in [4, 8, 12] {
        for way in ["unicast", "multicast"] {
            let label = format!("subscribers={count} {way} listener");
            let is = move |r: &Record| r.workload == "fanout" && r.case == label;
            let published = if way == "multicast" { "scales with the subscribers" } else { "does not scale" };
            rows.push(row(format!("1 KiB to {count} subscribers, {way}"), published, Figure::Samples, is));
        }
    }
    rows
}

/// E.
fn eprosima() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (transport, place) in [("intra", "within a process"), ("udp", "UDP"), ("shm", "shared memory")] {
        for bytes in SIZES {
            let is = move |r: &Record| closed(r, "latency", transport, bytes) && r.case.is_empty();
            rows.push(row(
                format!("half a round trip, {place}, {}: least, mean", size(bytes)),
                "",
                Figure::HalfMinMean,
                is,
            ));
        }
    }
    for (transport, place) in [("udp", "UDP"), ("shm", "shared memory")] {
        for bytes in SIZES {
            let is = move |r: &Record| {
                closed(r, "throughput", transport, bytes) && r.qos.starts_with("reliable") && r.case != "loan"
            };
            rows.push(row(format!("most of any burst, {place}, {}", size(bytes)), "", Figure::Bytes, is));
        }
    }
    for bytes in SIZES {
        let is = move |r: &Record| closed(r, "throughput", "shm", bytes) && r.case == "loan";
        rows.push(row(format!("with loans, shared memory, {}", size(bytes)), "", Figure::Bytes, is));
    }
    rows
}

/// Discovery, memory and the first sample, as peers were seen to do them.
fn footprint() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for label in
        ["first sample of a late reader", "participants=2 endpoints=1", "participants=50 endpoints=1"]
    {
        let is = move |r: &Record| r.workload == "discovery" && r.case == label;
        rows.push(row(label.replace('=', " "), "", Figure::Matched, is));
    }
    for bytes in [32, 1_024, 65_536, 1_048_576] {
        let is = move |r: &Record| closed(r, "throughput", "udp", bytes) && r.qos.starts_with("reliable");
        let of = |what: &str| format!("{what} of {}, reliable, as fast as it goes", size(bytes));
        rows.push(row(of("processor time of both sides for a million"), "", Figure::Cpu, is));
        rows.push(row(of("heap allocations of the writer's side for each"), "", Figure::Allocations, is));
        rows.push(row(of("context switches of both sides for a thousand"), "", Figure::Switches, is));
    }
    let paced = |r: &Record| r.workload == "latency" && r.transport == "udp" && r.case == "every 1 ms";
    let of = |what: &str| format!("{what} round trips of 32 B, 1,000/s");
    rows.push(row(of("processor time of both sides for a million"), "", Figure::Cpu, paced));
    rows.push(row(of("heap allocations of one side for each of the"), "", Figure::Allocations, paced));
    for (demand, interval_ms) in calls::BURSTS {
        for side in calls::SIDES {
            let label = calls::label(demand, interval_ms);
            let what = format!(
                "system calls of the {side}'s side, {label}, for each burst: all, to send, to receive, futex"
            );
            let is = move |r: &Record| {
                r.workload == "calls" && r.transport == "udp" && r.size_bytes == 64 && r.case == label
            };
            rows.push(row(what, "", Figure::Calls(side), is));
        }
    }
    let is = |r: &Record| r.workload == "memory";
    rows.push(row("a process with a participant: memory", "", Figure::One, is));
    rows.push(row("a participant, 100 writers and 100 readers: memory, threads", "", Figure::Whole, is));
    rows
}

/// What a reader must know of processor times that are too low.
const WITHOUT_ENDED: &str = "Where a run did not yet count threads that had ended, processor times are without them: HDDS begins one for each sample.";

/// A table, if there is a row in it.
fn table(records: &[Record], title: &str, rows: &[Row]) -> Option<Table> {
    let mut used: Vec<&Record> = Vec::new();
    let mut says = "";
    let mut lines: Vec<(&Row, Vec<Option<String>>)> = Vec::new();
    for row in rows {
        let mut cells = Vec::new();
        for peer in COLUMNS {
            let best = best(records, row, peer);
            used.extend(best.iter().map(|(record, _)| *record));
            if matches!(row.figure, Figure::Cpu)
                && best.as_ref().is_some_and(|of| !of.0.run.counts_ended_threads)
            {
                says = WITHOUT_ENDED;
            }
            cells.push(best.map(|(_, text)| text).or_else(|| failed(records, row, peer)));
        }
        // What the subject was not asked is no row: there is nothing to compare.
        if cells.first().is_some_and(Option::is_some) {
            lines.push((row, cells));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let kept: Vec<usize> =
        (0..COLUMNS.len()).filter(|at| lines.iter().any(|(_, cells)| cells[*at].is_some())).collect();
    let has_published = lines.iter().any(|(row, _)| !row.published.is_empty());
    let words = ["measured", "published"].map(String::from).into_iter().take(1 + usize::from(has_published));
    let names = kept.iter().map(|at| peers::name(COLUMNS[*at]));
    let mut table = Table::new(title, &used, says).with_heads(words, names);
    for (row, cells) in lines {
        let mut line = vec![row.what.clone()];
        line.extend(has_published.then(|| row.published.to_string()));
        line.extend(kept.iter().map(|at| cells[*at].clone().unwrap_or_else(|| "–".into())));
        table.rows.push(line);
    }
    Some(table)
}

/// The best line of a peer, and its figure: several settings may count as one row.
fn best<'a>(records: &'a [Record], row: &Row, peer: &str) -> Option<(&'a Record, String)> {
    let own = records.iter().filter(|r| r.outcome == Outcome::Ok && r.peer == peer && (row.is)(r));
    let shown = own.filter_map(|record| row.figure.of(record).map(|text| (record, text)));
    // The later of two equal ones, as on the rest of the page.
    shown.max_by(|a, b| merit(a.0).total_cmp(&merit(b.0)))
}

/// What is said of a peer that tried and failed.
fn failed(records: &[Record], row: &Row, peer: &str) -> Option<String> {
    let failed = |r: &&Record| matches!(r.outcome, Outcome::Failed(_)) && r.peer == peer && (row.is)(r);
    records.iter().find(failed).map(|_| "failed".to_string())
}

/// By which of two lines of one peer the better is shown; times stand alone.
fn merit(record: &Record) -> f64 {
    record.samples_per_s.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::figure::held_up_ns;
    use super::*;
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
        let page = section(&[trip("taut", 10_000), trip("hdds", 300_000)], &[]);
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
    fn the_best_of_several_bursts_is_shown() {
        let burst = |case: &str, per_s: f64| {
            record(serde_json::json!({"workload": "throughput", "case": case, "samples_per_s": per_s,
                "bytes_per_s": per_s * 64.0, "qos": "reliable keep-all volatile"}))
        };
        let page =
            section(&[burst("", 1e6), burst("best of all bursts", 2e6), burst("best of bursts", 5e5)], &[]);
        assert!(page.contains("| most of any burst, UDP, 64 B | 128 MB/s |"), "{page}");
    }

    #[test]
    fn what_a_flood_adds_is_of_the_best_run_that_has_both() {
        let line = |run: &str, peer: &str, case: &str, us: u64| {
            let times = Times { p9999: 1_000 * us, max: 1_000 * us, ..Times::default() };
            let run =
                crate::record::Run { id: run.into(), command: "taut perf x".into(), ..Default::default() };
            let (peer, case, workload) = (peer.into(), case.into(), "interference".into());
            Record { peer, case, workload, samples: 100_000, rtt_ns: Some(times), run, ..trip("taut", 1) }
        };
        let pair = |run: &str, peer: &str, us: u64| {
            [line(run, peer, "quiet all long", 10), line(run, peer, "flood all long", us)]
        };
        let stored = [pair("a", "taut", 20), pair("b", "taut", 30)].concat();
        let ratios = |shown: &[Record], stored: &[Record]| -> Vec<String> {
            let table = isolation::beside_flood(shown, stored).expect("the table");
            table.rows.into_iter().map(|row| row[4].clone()).collect()
        };
        // No run of what is shown has both.
        let shown = [stored[0].clone(), line("c", "taut", "flood all long", 90)];
        assert_eq!(ratios(&shown, &stored), ["3.00×"], "the later");
        let more = [&pair("a", "floor", 15)[..], &stored].concat();
        assert_eq!(ratios(&shown, &more), ["1.50×", "2.00×"], "that with more pairs");
        assert_eq!(ratios(&stored[..2], &more), ["2.00×"], "that which is shown");
    }

    #[test]
    fn what_a_sample_costs_stands_with_those_that_got_lost() {
        let line = |peer: &str, lost: u64| {
            record(
                serde_json::json!({"workload": "throughput", "peer": peer, "size_bytes": 32, "samples": 75,
                "lost": lost, "cpu_ns_per_sample": 2_000.0, "qos": "reliable keep-all volatile"}),
            )
        };
        let page = section(&[line("taut", 0), line("hdds", 25)], &[]);
        let row = "| processor time of both sides for a million of 32 B, reliable, as fast as it goes | 2 s | 2 s, 25.0 % lost |";
        assert!(page.contains(row), "{page}");
        // These are of before threads that have ended counted.
        assert!(page.contains(WITHOUT_ENDED), "{page}");
        let mut counted = [line("taut", 0), line("hdds", 25)];
        counted.iter_mut().for_each(|line| line.run.counts_ended_threads = true);
        assert!(!section(&counted, &[]).contains(WITHOUT_ENDED));
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
        let page = section(
            &[soak("taut", 999_990, 10, "fifo inline"), soak("floor", 999_990, 0, "fifo inline")],
            &[],
        );
        let row = "| mean of a million of 32 B, 1,000/s, SCHED_FIFO, inline where there is such a mode | Cyclone DDS 107 µs, XDP 87 µs, DPDK 74 µs | 20 µs |\n";
        assert!(page.contains(row), "the floor has fewer: {page}");
        assert!(!page.contains("of a million of 32 B, 1,000/s |"), "{page}");
    }

    #[test]
    fn who_was_not_asked_is_told() {
        let absent = |why: String| Record { outcome: Outcome::Absent(why), ..trip("hdds", 1) };
        let page = section(&[trip("taut", 10_000), absent(not_asked())], &[]);
        assert!(
            page.contains(
                "A dash: no such line. So it is, too, where `taut perf all` asks only Taut, floor, "
            ),
            "{page}"
        );
        assert!(!section(&[trip("taut", 10_000), absent("no role cdr".into())], &[]).contains("So it is"));
    }

    #[test]
    fn a_run_without_these_lines_has_no_such_section() {
        assert_eq!(section(&[], &[]), "");
        assert_eq!(section(&[trip("floor", 1_000)], &[]), "", "nothing of the subject's");
    }
}
