//! The rows of each document: what it measured, what it published of that, and which line of a run is the same setting.

use crate::record::Record;
use crate::report::units::size;
use crate::workload::{calls, traffic};

use super::{Figure, Row, WAYS, is_linked, row, waits};

/// eProsima's sizes.
pub(crate) const SIZES: [u64; 11] =
    [64, 512, 1_024, 4_096, 8_192, 16_384, 65_536, 1_048_576, 2_097_152, 4_194_304, 8_388_608];

/// As many samples as the study has, sent.
const MILLION: u64 = 1_000_000;

/// A: the bound at 1,000 samples a second.
pub(super) fn bound() -> Vec<Row<'static>> {
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
    let rate = |r: &Record| stream(r, "udp", 32) && r.case.is_empty();
    rows.push(row("rate of 32 B", "Cyclone DDS 167 k/s, DPDK 250 k/s", Figure::Samples, rate));
    let wide = |r: &Record| stream(r, "udp", 1_024) && r.case.is_empty();
    rows.push(row("bandwidth of 1 KiB", "Cyclone DDS 170 MB/s, DPDK 250 MB/s", Figure::Bytes, wide));
    rows
}

/// Of fewer samples a bound is not shown beside those of the study, which has a million.
const SOAKED: u64 = 100_000;

/// A once more, over a link: by the kernel's sockets, and past its stack.
pub(super) fn bypass() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for (transport, way) in WAYS {
        let linked = move |r: &Record| r.transport == transport && is_linked(r) && !has_other_mtu(r);
        for spins in [true, false] {
            let wait = waits(transport, spins);
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
pub(super) fn hdds() -> Vec<Row<'static>> {
    let within = |r: &Record| closed(r, "local", "thread", 16) && r.case == "copy";
    let mut rows = vec![row("write and take in one thread, 16 B", "247 ns", Figure::P50, within)];
    for (bytes, published) in [(64, "2.49 µs"), (256, "2.54 µs"), (1_024, "2.70 µs")] {
        let is = move |r: &Record| {
            r.workload == "write" && r.transport == "udp" && r.size_bytes == bytes && r.case.is_empty()
        };
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
    let entities = |r: &Record| r.workload == "memory";
    for (entity, published) in [
        ("participant", "2 MB"),
        ("topic", "16 kB"),
        ("publisher", "64 kB"),
        ("subscriber", "64 kB"),
        ("writer", "128 kB"),
        ("reader", "128 kB"),
    ] {
        rows.push(row(format!("a {entity} takes"), published, Figure::Entity(entity), entities));
    }
    let held = "a sample of 1 KiB that a writer holds takes";
    rows.push(row(held, "1.28 kB", Figure::Entity("held sample"), entities));
    rows
}

/// D.
pub(super) fn vanderbilt() -> Vec<Row<'static>> {
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
            let published = if way == "multicast" { "scales with the subscribers" } else { "does not scale" };
            for (bytes, wait) in
                [(1_024, "listener"), (1_024, "waitset"), (64, "listener"), (16_384, "listener")]
            {
                let label = format!("subscribers={count} {way} {wait}");
                let is = move |r: &Record| r.workload == "fanout" && r.size_bytes == bytes && r.case == label;
                let what = format!("{} to {count} subscribers, {way}, {wait}", size(bytes));
                rows.push(row(what, published, Figure::Samples, is));
            }
        }
    }
    rows
}

/// E.
pub(super) fn eprosima() -> Vec<Row<'static>> {
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
            let is = move |r: &Record| stream(r, transport, bytes) && r.case != "loan";
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
pub(super) fn footprint() -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    for label in
        ["first sample of a late reader", "participants=2 endpoints=1", "participants=50 endpoints=1"]
    {
        let is = move |r: &Record| r.workload == "discovery" && r.case == label;
        rows.push(row(label.replace('=', " "), "", Figure::Matched, is));
    }
    for bytes in [32, 1_024, 65_536, 1_048_576] {
        let is = move |r: &Record| stream(r, "udp", bytes);
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

/// A closed loop with the defaults of the workload.
fn closed(record: &Record, workload: &str, transport: &str, bytes: u64) -> bool {
    let plain = record.rate_hz == 0.0 && record.pin == "none" && record.wait != "spin";
    plain
        && !is_linked(record)
        && record.workload == workload
        && record.transport == transport
        && record.size_bytes == bytes
}

/// A reliable stream of one thread.
fn stream(record: &Record, transport: &str, bytes: u64) -> bool {
    closed(record, "throughput", transport, bytes)
        && record.qos.starts_with("reliable")
        && !traffic::is_of_threads(&record.case)
}

/// Over a link with another MTU than Ethernet's?
fn has_other_mtu(record: &Record) -> bool {
    record.case.split(' ').any(|word| word == "mtu")
}
