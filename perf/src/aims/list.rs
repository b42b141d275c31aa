//! The list of what Taut aims at: of which line which figure, and what is wanted of it.

use crate::published::{SIZES, of_all, of_participant};
use crate::record::{Calls, LEAST_OF_P999, LEAST_OF_P9999, Record, Times};
use crate::report::units::{self, bytes, count, size, thousands, time};

use super::{Aim, Base, Figure, Line};

pub(super) const FLOOR: &[&str] = &["floor"];
pub(super) const TAUT: &[&str] = &["taut"];
const AHEAD: &[&str] = &["taut:ahead"];
const CYCLONE: &[&str] = &["cyclonedds", "cyclonedds11"];
const CYCLONE_11: &[&str] = &["cyclonedds11"];
const BOTH: &[&str] = &["cyclonedds", "cyclonedds11", "fastdds"];

/// All of them.
pub(super) fn all() -> Vec<Aim> {
    [by_udp(), footprint(), local(), bypass()].into_iter().flatten().collect()
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
    // What others gain by polling is theirs as well.
    aims.extend([64, 512, 1 << 10].map(|bytes| {
        let line = trip(bytes).case("link").spins();
        times_of(format!("round trip by UDP, {}, polling", size(bytes)), line, MEDIAN, 1.0, BOTH)
    }));
    let (paced, inline) = (trip(32).case("every 1 ms"), trip(32).case("every 1 ms fifo inline"));
    let base = Base { peers: CYCLONE, line: paced, figure: MAX, setting: " without SCHED_FIFO" };
    aims.push(times_of("32 B, 1,000/s by UDP", paced, MEAN, 0.6, CYCLONE));
    aims.push(times_of("32 B, 1,000/s by UDP", paced, PROCESSOR, 0.5, CYCLONE));
    let awake = trip(32).case("every 1 ms link").spins();
    aims.push(times_of("32 B, 1,000/s by UDP, polling", awake, MEAN, 0.6, CYCLONE));
    let what = "32 B, 1,000/s by UDP, SCHED_FIFO, inline";
    aims.push(beside(what, inline, MAX, 0.2, base));
    aims.push(beside(format!("{what}, awake ahead"), inline.peer(AHEAD[0]), MAX, 0.2, base));
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
    let (what, ahead) = (format!("{what}, awake ahead"), isolated.peer(AHEAD[0]));
    aims.push(beside(format!("{what}, to without"), ahead, P999, 1.5, Base { peers: AHEAD, ..quiet }));
    aims.push(beside(what, ahead, P999, 0.1, others));
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
    let lent = |size| Line::of("local", "shm", size).case("loan").pin("split").spins();
    vec![
        times_of("write and take in one thread, 16 B", within("thread", 16), MEDIAN, 1.0 / 3.0, &["hdds"]),
        times_of("between threads, 64 B, polling", rings("intra"), MEDIAN, 1.3, FLOOR),
        times_of("by shared memory, 64 B, polling", rings("shm"), MEDIAN, 1.3, FLOOR),
        times_of("a loan by shared memory, 64 B, polling", lent(64), MEDIAN, 1.0, &["iceoryx2"]),
        times_of("a loan by shared memory, 1 MiB, polling", lent(1 << 20), MEDIAN, 1.0, &["iceoryx2"]),
    ]
}

/// Past the kernel's stack.
fn bypass() -> Vec<Aim> {
    let trip = |transport| Line::of("latency", transport, 64).case("link").spins();
    let kernel = Base { peers: TAUT, line: trip("udp"), figure: MEDIAN, setting: "" };
    let paced = |transport| Line::of("latency", transport, 32).case("every 1 ms link");
    let asleep = |figure| Base { peers: CYCLONE, line: paced("udp"), figure, setting: " asleep, by UDP" };
    let awake = |figure| Base { line: paced("udp").spins(), setting: " polling, by UDP", ..asleep(figure) };
    let soak = Line::of("soak", "xdp", 64).case("link").spins();
    let mut aims = vec![
        times_of("round trip by AF_XDP, 64 B, polling", trip("xdp"), MEDIAN, 1.2, FLOOR),
        times_of("round trip by AF_XDP's layer 2, 64 B, polling", trip("xdp-l2"), MEDIAN, 1.2, FLOOR),
        beside("round trip by AF_XDP, 64 B, polling, to UDP", trip("xdp"), MEDIAN, 1.0, kernel),
        times_of("round trip by DPDK's memif, 64 B, polling", trip("dpdk"), MEDIAN, 1.2, FLOOR),
        // Not maximum / mean, which who is slower by the mean has less of.
        times_of("64 B, 1,000/s by AF_XDP, polling", soak, MAX, 1.0, FLOOR),
    ];
    for (transport, way) in [("xdp", "AF_XDP"), ("xdp-l2", "AF_XDP's layer 2"), ("dpdk", "DPDK's memif")] {
        let what = format!("32 B, 1,000/s by {way}, polling");
        aims.push(beside(what.clone(), paced(transport).spins(), MEAN, 0.1, asleep(MEAN)));
        aims.push(beside(what.clone(), paced(transport).spins(), MAX, 0.05, asleep(MAX)));
        aims.push(beside(what.clone(), paced(transport).spins(), MEAN, 0.1, awake(MEAN)));
        aims.push(beside(what, paced(transport).spins(), MAX, 0.05, awake(MAX)));
    }
    let all = ["quiet all long link", "flood all long link"];
    // DPDK's own threads would not run beside the priority.
    let all_but_fifo = ["quiet all but fifo long link", "flood all but fifo long link"];
    for (transport, way, [quiet, flood]) in
        [("xdp", "AF_XDP", all), ("xdp-l2", "AF_XDP's layer 2", all), ("dpdk", "DPDK's memif", all_but_fifo)]
    {
        let isolated = |case| Line::of("interference", transport, 64).case(case).pin("same");
        let quiet = Base { peers: TAUT, line: isolated(quiet), figure: P9999, setting: "" };
        let what = format!("64 B by {way} beside a flood, isolated, to without");
        aims.push(beside(what, isolated(flood), P9999, 1.1, quiet));
    }
    for (transport, way) in [("xdp", "AF_XDP"), ("xdp-l2", "AF_XDP's layer 2")] {
        for (bytes, figure) in [(32, RATE), (1 << 10, BANDWIDTH)] {
            let stream = |transport| Line::of("throughput", transport, bytes).case("link");
            let base = Base { peers: TAUT, line: stream("udp"), figure, setting: "" };
            let what = format!("reliable by {way}, {}, to UDP", size(bytes));
            aims.push(beside(what, stream(transport), figure, 1.0, base));
        }
    }
    aims
}

const fn time_of(name: &'static str, of: fn(&Record) -> Option<f64>) -> Figure {
    Figure { name, of, shown: time, rises: false, spoilt_by: ALL }
}

/// Lost samples spoil it whatever their number, as those that nobody has taken have no time.
const ANY: f64 = 0.0;
/// They spoil nothing of it.
const ALL: f64 = 1.0;

fn of_times(record: &Record, pick: fn(&Times) -> u64) -> Option<f64> {
    let times = record.rtt_ns.as_ref().or(record.write_ns.as_ref()).or(record.matched_ns.as_ref());
    times.map(|times| pick(times) as f64)
}

const MEDIAN: Figure = time_of("median", |r| of_times(r, |t| t.p50));
const MEAN: Figure = Figure { spoilt_by: ANY, ..time_of("mean", |r| of_times(r, |t| t.mean)) };
const P999: Figure = Figure {
    spoilt_by: 1e-3,
    ..time_of("p99.9", |r| of_times(r, |t| t.p999).filter(|_| r.samples >= LEAST_OF_P999))
};
const P9999: Figure = Figure {
    spoilt_by: 1e-4,
    ..time_of("p99.99", |r| of_times(r, |t| t.p9999).filter(|_| r.samples >= LEAST_OF_P9999))
};
const MAX: Figure = Figure { spoilt_by: ANY, ..time_of("maximum", |r| of_times(r, |t| t.max)) };
const RATE: Figure =
    Figure { name: "rate", of: |r| r.samples_per_s, shown: units::rate, rises: true, spoilt_by: ANY };
const BANDWIDTH: Figure = Figure {
    name: "bandwidth",
    of: |r| r.bytes_per_s,
    shown: |per_s| bytes(per_s) + "/s",
    rises: true,
    spoilt_by: ANY,
};
const PROCESSOR: Figure = time_of("processor time of a sample", |r| r.cpu_ns_per_sample);
const SENDS: Figure = Figure {
    name: "system calls to send",
    of: |r| r.calls_per_burst("writer", |calls: &Calls| calls.send),
    shown: count,
    rises: false,
    spoilt_by: ALL,
};
const PARTICIPANT: Figure = Figure {
    name: "resident memory with a participant",
    of: of_participant,
    shown: bytes,
    rises: false,
    spoilt_by: ALL,
};
const ENDPOINTS: Figure = Figure {
    name: "resident memory with 100 writers and 100 readers",
    of: of_all,
    shown: bytes,
    rises: false,
    spoilt_by: ALL,
};
const DATAGRAMS: Figure = Figure {
    name: "datagrams",
    of: |r| r.network_packets.map(|count| count as f64),
    shown: |count| thousands(count as u64),
    rises: false,
    spoilt_by: ALL,
};

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
