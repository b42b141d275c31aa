//! What Taut aims at, beside what a run has measured: the figures of its design, each with a verdict.
//!
//! A figure that relates to another one is of the same run, so that the machine drops out. What was not measured has no
//! row. Where the floor is nearer to what is wanted, and does not reach it either, the row says by how much.

use crate::published::{SIZES, Table, mean_ns, of_all, of_participant};
use crate::record::{Calls, LEAST_OF_P999, LEAST_OF_P9999, Outcome, Record, Times};
use crate::report::current::best_of_one_run;
use crate::report::peers;
use crate::report::units::{self, bytes, count, size, thousands, time, times};

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
    /// Between two cores, asleep.
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

    fn is_of(&self, record: &Record) -> bool {
        let is_stream = self.workload == "throughput";
        record.outcome == Outcome::Ok
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
}

const fn time_of(name: &'static str, of: fn(&Record) -> Option<f64>) -> Figure {
    Figure { name, of, shown: time, rises: false }
}

fn of_times(record: &Record, pick: fn(&Times) -> u64) -> Option<f64> {
    let times = record.rtt_ns.as_ref().or(record.write_ns.as_ref()).or(record.matched_ns.as_ref());
    times.map(|times| pick(times) as f64)
}

const MEDIAN: Figure = time_of("median", |r| of_times(r, |t| t.p50));
const MEAN: Figure = time_of("mean", mean_ns);
const P999: Figure = time_of("p99.9", |r| of_times(r, |t| t.p999).filter(|_| r.samples >= LEAST_OF_P999));
const P9999: Figure = time_of("p99.99", |r| of_times(r, |t| t.p9999).filter(|_| r.samples >= LEAST_OF_P9999));
const MAX: Figure = time_of("maximum", |r| of_times(r, |t| t.max));
const SPREAD: Figure = Figure {
    name: "maximum / mean",
    of: |r| r.rtt_ns.as_ref().and_then(Times::max_to_mean),
    shown: times,
    rises: false,
};
const RATE: Figure = Figure { name: "rate", of: |r| r.samples_per_s, shown: units::rate, rises: true };
const BANDWIDTH: Figure =
    Figure { name: "bandwidth", of: |r| r.bytes_per_s, shown: |per_s| bytes(per_s) + "/s", rises: true };
const PROCESSOR: Figure = time_of("processor time of a sample", |r| r.cpu_ns_per_sample);
const SENDS: Figure = Figure {
    name: "system calls to send",
    of: |r| r.calls_per_burst("writer", |calls: &Calls| calls.send),
    shown: count,
    rises: false,
};
const PARTICIPANT: Figure =
    Figure { name: "resident memory with a participant", of: of_participant, shown: bytes, rises: false };
const ENDPOINTS: Figure = Figure {
    name: "resident memory with 100 writers and 100 readers",
    of: of_all,
    shown: bytes,
    rises: false,
};
const DATAGRAMS: Figure = Figure {
    name: "datagrams",
    of: |r| r.network_packets.map(|count| count as f64),
    shown: |count| thousands(count as u64),
    rises: false,
};

/// To what a figure relates: the same one of the best of these peers, in this setting. Of a rival each set-up counts that
/// was measured; the floor's are exchanges of another kind, and those of Taut have lines of their own.
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

const FLOOR: &[&str] = &["floor"];
const TAUT: &[&str] = &["taut"];
const CYCLONE: &[&str] = &["cyclonedds", "cyclonedds11"];
const CYCLONE_11: &[&str] = &["cyclonedds11"];
const BOTH: &[&str] = &["cyclonedds", "cyclonedds11", "fastdds"];

/// So many times what these have in the same setting.
fn times_of(
    what: impl Into<String>,
    line: Line,
    figure: Figure,
    wanted: f64,
    peers: &'static [&'static str],
) -> Aim {
    beside(what, line, figure, wanted, Base { peers, line, figure, setting: "" })
}

/// So many times what is at the base.
fn beside(what: impl Into<String>, line: Line, figure: Figure, wanted: f64, base: Base) -> Aim {
    Aim { what: what.into(), line, figure, wanted, base: Some(base) }
}

/// So much.
fn alone(what: impl Into<String>, line: Line, figure: Figure, wanted: f64) -> Aim {
    Aim { what: what.into(), line, figure, wanted, base: None }
}

/// By the kernel's sockets.
fn by_udp() -> Vec<Aim> {
    let trip = |size| Line::of("latency", "udp", size);
    let one_core = trip(64).pin("same");
    let polling = trip(64).case("link").spins();
    let mut aims = vec![
        times_of("round trip by UDP, 64 B, both on one core", one_core, MEDIAN, 1.6, FLOOR),
        times_of("round trip by UDP, 64 B, both on one core", one_core, MEDIAN, 0.55, CYCLONE),
        times_of("round trip by UDP, 64 B, between cores", trip(64), MEDIAN, 1.15, FLOOR),
        times_of("round trip by UDP, 64 B, polling", polling, MEDIAN, 1.3, FLOOR),
    ];
    aims.extend(SIZES.map(|bytes| {
        let wanted = if bytes == 1 << 20 { 0.5 } else { 1.0 };
        times_of(format!("round trip by UDP, {}", size(bytes)), trip(bytes), MEDIAN, wanted, BOTH)
    }));
    let (paced, inline) = (trip(32).case("every 1 ms"), trip(32).case("every 1 ms fifo inline"));
    let base = Base { peers: CYCLONE, line: paced, figure: MAX, setting: " without SCHED_FIFO" };
    aims.push(times_of("32 B, 1,000/s by UDP", paced, MEAN, 0.6, CYCLONE));
    aims.push(beside("32 B, 1,000/s by UDP, SCHED_FIFO, inline", inline, MAX, 0.2, base));
    aims.push(times_of("write by UDP, 64 B", Line::of("write", "udp", 64), MEDIAN, 1.1, FLOOR));
    let stream = |size| Line::of("throughput", "udp", size);
    aims.push(alone("reliable by UDP, 32 B", stream(32), RATE, 3e6));
    aims.push(times_of("reliable by UDP, 32 B", stream(32), RATE, 3.0, CYCLONE));
    for (bytes, wanted) in [(1 << 10, 1.5e9), (1 << 16, 4e9), (1 << 20, 4e9)] {
        aims.push(alone(format!("reliable by UDP, {}", size(bytes)), stream(bytes), BANDWIDTH, wanted));
    }
    aims.push(times_of("reliable by UDP, 32 B", stream(32), PROCESSOR, 0.5, CYCLONE));
    let bursts = Line::of("calls", "udp", 64).case("bursts of 100 each 10 ms");
    aims.push(alone("a burst of 100 by UDP", bursts, SENDS, 1.0));
    let told = bursts.peer("taut:suspended");
    aims.push(alone("a burst of 100 by UDP within suspend_publications", told, SENDS, 1.0));
    let flood = |case| Line::of("interference", "udp", 64).case(case);
    let isolated = flood("flood fifo inline");
    let quiet = Base { peers: TAUT, line: flood("quiet fifo inline"), figure: P999, setting: "" };
    let others = Base { peers: CYCLONE, line: flood("flood"), figure: P999, setting: " without SCHED_FIFO" };
    let what = "64 B by UDP beside a flood, SCHED_FIFO, inline";
    aims.push(beside(format!("{what}, to without"), isolated, P999, 1.5, quiet));
    aims.push(beside(what, isolated, P999, 0.1, others));
    aims
}

/// Discovery and memory.
fn footprint() -> Vec<Aim> {
    let found = |case| Line::of("discovery", "udp", 0).case(case);
    let (many, late) = (found("participants=50 endpoints=1"), "first sample of a late reader");
    let memory = Line::of("memory", "udp", 0);
    let first = Line::of("discovery", "udp", 64).case(late);
    vec![
        alone(late, first, MEDIAN, 3e6),
        alone("50 participants are matched", many, MEDIAN, 0.7e9),
        alone("50 participants are matched", many, DATAGRAMS, 15e3),
        times_of("a process", memory, PARTICIPANT, 1.0, CYCLONE_11),
        times_of("a process", memory, ENDPOINTS, 1.0, CYCLONE_11),
    ]
}

/// Within a machine.
fn local() -> Vec<Aim> {
    let within = |transport, size| Line::of("local", transport, size).case("copy");
    let rings = |transport| within(transport, 64).pin("split").spins();
    let lent = Line::of("local", "shm", 1 << 20).case("loan");
    vec![
        times_of("write and take in one thread, 16 B", within("thread", 16), MEDIAN, 1.0 / 3.0, &["hdds"]),
        times_of("between threads, 64 B, polling", rings("intra"), MEDIAN, 1.3, FLOOR),
        times_of("by shared memory, 64 B, polling", rings("shm"), MEDIAN, 1.3, FLOOR),
        times_of("a loan by shared memory, 1 MiB", lent, MEDIAN, 1.0, &["iceoryx2"]),
    ]
}

/// Past the kernel's stack.
fn bypass() -> Vec<Aim> {
    let trip = |transport| Line::of("latency", transport, 64).case("link").spins();
    let kernel = Base { peers: TAUT, line: trip("udp"), figure: MEDIAN, setting: "" };
    let paced = |transport| Line::of("latency", transport, 32).case("every 1 ms link");
    let asleep = |figure| Base { peers: CYCLONE, line: paced("udp"), figure, setting: " asleep, by UDP" };
    let soak = Line::of("soak", "xdp", 64).case("link").spins();
    let isolated = |case| Line::of("interference", "xdp", 64).case(case).pin("same");
    let quiet = Base { peers: TAUT, line: isolated("quiet all long link"), figure: P9999, setting: "" };
    let mut aims = vec![
        times_of("round trip by AF_XDP, 64 B, polling", trip("xdp"), MEDIAN, 1.2, FLOOR),
        beside("round trip by AF_XDP, 64 B, polling, to UDP", trip("xdp"), MEDIAN, 1.0, kernel),
        times_of("round trip by DPDK's memif, 64 B, polling", trip("dpdk"), MEDIAN, 1.2, FLOOR),
        times_of("64 B, 1,000/s by AF_XDP, polling", soak, SPREAD, 1.0, FLOOR),
        beside("32 B, 1,000/s by AF_XDP, polling", paced("xdp").spins(), MEAN, 0.1, asleep(MEAN)),
        beside("32 B, 1,000/s by AF_XDP, polling", paced("xdp").spins(), MAX, 0.05, asleep(MAX)),
        beside(
            "64 B by AF_XDP beside a flood, isolated, to without",
            isolated("flood all long link"),
            P9999,
            1.1,
            quiet,
        ),
    ];
    for (bytes, figure) in [(32, RATE), (1 << 10, BANDWIDTH)] {
        let stream = |transport| Line::of("throughput", transport, bytes).case("link");
        let base = Base { peers: TAUT, line: stream("udp"), figure, setting: "" };
        let what = format!("reliable by AF_XDP, {}, to UDP", size(bytes));
        aims.push(beside(what, stream("xdp"), figure, 1.0, base));
    }
    aims
}

/// What was measured of an aim.
struct Held<'a> {
    aim: &'a Aim,
    own: &'a Record,
    base: Option<(&'a Record, f64)>,
    /// How many lines of the setting its run has.
    beside: usize,
    /// How many times as far as wanted it is: above 1 it does not hold.
    off: f64,
    /// The same of the floor, where that is nearer.
    floor_off: Option<f64>,
}

impl Aim {
    /// As on the rest of the page, but a run with a base.
    fn measured<'a>(&'a self, shown: &'a [Record], stored: &'a [Record]) -> Option<Held<'a>> {
        best_of_one_run(shown, stored, |records| self.all(records), |held| (held.beside, held.own.rounds))
    }

    /// Of each line of ours.
    fn all<'a>(&'a self, records: &'a [Record]) -> Vec<Held<'a>> {
        let of = |own: &'a Record| {
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
            let is_beside = |r: &&Record| r.run.id == own.run.id && self.line.is_of(r);
            let beside = records.iter().filter(is_beside).count();
            Some(Held { aim: self, own, base, beside, off: off(figure), floor_off })
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
        format!("{bound} {} {of}{}", times(self.wanted), base.setting)
    }
}

impl Base {
    fn is_of(&self, record: &Record) -> bool {
        let adapter = peers::adapter(&record.peer);
        let is_rival = ![FLOOR, TAUT].concat().contains(&adapter);
        let name = if is_rival { adapter } else { record.peer.as_str() };
        self.peers.contains(&name) && self.line.is_of(record)
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
        let measured = match self.base {
            Some((base, other)) => {
                let whose = if base.peer == "taut" {
                    String::new()
                } else {
                    format!(" of {}", peers::name(&base.peer))
                };
                format!("{}, {} to {}{whose}", times(own / other), (figure.shown)(own), (figure.shown)(other))
            }
            None => (figure.shown)(own),
        };
        let verdict = match self.floor_off {
            _ if self.holds() => "holds".to_string(),
            Some(floor_off) if floor_off > 1.0 => {
                format!("missed by {}, by the floor by {}", times(self.off), times(floor_off))
            }
            _ => format!("missed by {}", times(self.off)),
        };
        vec![self.aim.name(), self.aim.wanted(), measured, verdict]
    }

    fn holds(&self) -> bool {
        self.off <= 1.0
    }
}

/// So many that are not measured have a row each. Fewer hides what is missing from a whole run, more fills the page of a
/// short one with what it was not for.
const FEW: usize = 8;

/// The table, worst first; nothing if the runs have none of these lines.
pub(crate) fn table(shown: &[Record], stored: &[Record]) -> Option<Table> {
    let aims: Vec<Aim> = [by_udp(), footprint(), local(), bypass()].into_iter().flatten().collect();
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for aim in &aims {
        match aim.measured(shown, stored) {
            Some(held) => all.push(held),
            None => missing.push(aim),
        }
    }
    all.sort_by(|a, b| b.off.total_cmp(&a.off));
    let used: Vec<&Record> =
        all.iter().flat_map(|held| [Some(held.own), held.base.map(|base| base.0)]).flatten().collect();
    let kept = all.iter().filter(|held| held.holds()).count();
    let says = format!(
        "{kept} of {} that were measured hold; there are {}. Worst first. Both figures of a line are of one run. Where the floor, \
         a bare program in the same setting, misses a figure as well, the row says by how much.",
        all.len(),
        aims.len()
    );
    let heads = ["figure", "wanted", "measured", ""];
    let mut table = Table::new("What Taut is built for", &used, says).with_heads(heads, []);
    table.rows = all.iter().map(Held::row).collect();
    if missing.len() <= FEW {
        table.rows.extend(missing.into_iter().map(Aim::row_without));
    }
    (!all.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: &str, run: &str, fields: serde_json::Value) -> Record {
        let run = crate::record::Run { id: run.into(), command: "taut perf x".into(), ..Default::default() };
        let mut all = serde_json::json!({
            "workload": "latency", "peer": peer, "version": "1", "transport": "udp", "wait": "waitset",
            "pin": "same", "size_bytes": 64, "rate_hz": 0.0, "qos": "reliable keep-last:1 volatile",
            "case": "", "status": "ok", "rounds": 3, "samples": 900, "lost": 0, "out_of_order": 0,
            "duplicates": 0, "corrupt": 0, "round_values": [1.0], "run": serde_json::to_value(run).unwrap(),
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
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
        let table = table(&records, &[]).unwrap();
        let what = "round trip by UDP, 64 B, both on one core: median";
        assert_eq!(
            table.rows,
            [
                [
                    what,
                    "at most 0.55× Cyclone DDS",
                    "0.86×, 12 µs to 14 µs of Cyclone DDS",
                    "missed by 1.56×, by the floor by 1.04×"
                ],
                ["reliable by UDP, 32 B: rate", "at least 3 M/s", "2 M/s", "missed by 1.50×"],
                [what, "at most 1.60× floor", "1.50×, 12 µs to 8 µs of floor", "holds"],
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
        assert!(table(&[trip("taut", "a", 12), trip("floor", "b", 8)], &[]).is_none());
        let both = [trip("taut", "a", 12), trip("floor", "a", 8), trip("taut", "b", 1)];
        assert_eq!(table(&both, &[]).unwrap().rows[0][2], "1.50×, 12 µs to 8 µs of floor");
        let shown = [trip("taut", "b", 1), trip("floor", "a", 8)];
        assert_eq!(table(&shown, &both).unwrap().rows[0][2], "1.50×, 12 µs to 8 µs of floor");
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
        let rows = table(&records, &[]).unwrap().rows;
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
        assert!(table(&few, &[]).is_none());
        let many = [flooded(flood, "a", 10_000, 140), flooded(quiet, "a", 10_000, 100)];
        assert_eq!(table(&few, &many).unwrap().rows[0][2], "1.40×, 140 µs to 100 µs");
    }

    #[test]
    fn of_stored_runs_that_have_both_the_one_with_most_peers_then_rounds_counts() {
        let in_rounds =
            |peer: &str, run: &str, p50_us: u64, rounds: u32| Record { rounds, ..trip(peer, run, p50_us) };
        let measured = |stored: &[Record]| table(&[], stored).unwrap().rows[0][2].clone();
        let most = [in_rounds("taut", "a", 20, 3), in_rounds("floor", "a", 10, 3)];
        let brief = [in_rounds("taut", "b", 10, 1), in_rounds("floor", "b", 10, 1)];
        assert_eq!(measured(&[&most[..], &brief].concat()), "2.00×, 20 µs to 10 µs of floor");
        let later = [in_rounds("taut", "c", 11, 3), in_rounds("floor", "c", 10, 3)];
        assert_eq!(measured(&[&most[..], &later].concat()), "1.10×, 11 µs to 10 µs of floor");
        let more = [&brief[..], &[in_rounds("zenoh", "b", 90, 1)]].concat();
        assert_eq!(measured(&[&more[..], &later].concat()), "1.00×, 10 µs to 10 µs of floor");
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
        let rows = table(&records, &[]).unwrap().rows;
        assert_eq!(rows[0][1], "at most 0.20× Cyclone DDS without SCHED_FIFO");
    }

    #[test]
    fn a_run_of_others_has_no_such_table() {
        assert!(table(&[trip("floor", "a", 8), trip("cyclonedds", "a", 14)], &[]).is_none());
    }
}
