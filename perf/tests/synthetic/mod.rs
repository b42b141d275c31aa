//! A made-up run of all workloads, for tests of what is made from runs: no machine is as reliably odd.
//!
//! Its times have two modes, as processes have that the system moves between cores, and rare outliers;
//! some peers fail or lack a path, as real ones do. The same seed makes the same run.

use taut_perf::record::{Memory, Outcome, Record, Run};
use taut_perf::statistics::{Distribution, median, ratio};

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around 1, with this spread.
    fn around(&mut self, spread: f64) -> f64 {
        1.0 + spread * (self.next() + self.next() + self.next() - 1.5)
    }
}

/// Name, version, round trip in ns at 64 B on one core, ns for each further byte, samples/s at 32 B, and
/// how rarely it is slow.
type Peer = (&'static str, &'static str, f64, f64, f64, f64);

const PEERS: [Peer; 11] = [
    ("floor", "Linux 6.18", 5_400.0, 0.25, 610_000.0, 900.0),
    ("taut", "0.1.0", 11_200.0, 0.50, 690_000.0, 800.0),
    ("cyclonedds", "0.10.2", 16_600.0, 1.1, 187_000.0, 500.0),
    ("cyclonedds11", "11.0.1", 16_300.0, 0.8, 164_000.0, 500.0),
    ("fastdds", "2.9.1", 51_000.0, 1.6, 30_000.0, 200.0),
    ("fastdds:data-sharing", "2.9.1", 58_000.0, 0.001, 28_000.0, 200.0),
    ("hdds", "1.1.2", 44_000.0, 8.0, 49_000.0, 30.0),
    ("rustdds", "0.15.1", 87_000.0, 8.1, 9_000.0, 150.0),
    ("dust_dds", "0.16.0", 139_000.0, 14.0, 11_000.0, 60.0),
    ("iceoryx2", "0.10.0", 10_300.0, 0.0005, 900_000.0, 700.0),
    ("zenoh", "1.10.2", 43_000.0, 0.7, 1_574_000.0, 300.0),
];

const ROUNDS: usize = 5;
const SIZES: [u64; 8] = [64, 512, 1_024, 8_192, 65_536, 1_048_576, 4_194_304, 8_388_608];

/// What sets a line apart.
#[derive(Clone)]
struct Case {
    workload: &'static str,
    transport: &'static str,
    pin: &'static str,
    size: u64,
    rate_hz: f64,
    qos: &'static str,
    label: String,
    samples: usize,
}

fn case(workload: &'static str, transport: &'static str, size: u64) -> Case {
    let qos = "reliable keep-last:1 volatile";
    Case { workload, transport, pin: "none", size, rate_hz: 0.0, qos, label: String::new(), samples: 400 }
}

fn blank(peer: &Peer, case: &Case) -> Record {
    Record {
        workload: case.workload.into(),
        peer: peer.0.into(),
        version: peer.1.into(),
        transport: case.transport.into(),
        wait: if ["cyclonedds", "cyclonedds11", "fastdds", "taut"].contains(&peer.0) {
            "listener"
        } else {
            "waitset"
        }
        .into(),
        pin: case.pin.into(),
        size_bytes: case.size,
        rate_hz: case.rate_hz,
        qos: case.qos.into(),
        case: case.label.clone(),
        outcome: Outcome::Ok,
        rounds: ROUNDS as u32,
        failed_rounds: 0,
        failure: None,
        samples: 0,
        lost: 0,
        refused: 0,
        expected: None,
        late: 0,
        behind_ns: None,
        overslept_ns: None,
        flood_per_s: None,
        out_of_order: 0,
        duplicates: 0,
        corrupt: 0,
        rtt_ns: None,
        one_way_ns: None,
        burst_ns: None,
        write_ns: None,
        encode_ns: None,
        decode_ns: None,
        matched_ns: None,
        samples_per_s: None,
        bytes_per_s: None,
        cpu_ns_per_sample: None,
        context_switches: None,
        switches_per_sample: None,
        allocations_per_sample: None,
        network_bytes: None,
        network_packets: None,
        memory: Vec::new(),
        calls: Vec::new(),
        paces: Vec::new(),
        ratio: Vec::new(),
        round_values: Vec::new(),
        encode_round_values: Vec::new(),
        decode_round_values: Vec::new(),
        histogram: Vec::new(),
        series: Vec::new(),
        run: Run {
            id: "1795000000-4242".into(),
            started: "2026-11-21T09:00:00Z".into(),
            rules: taut_perf::rules::CURRENT,
            command: "taut perf all --peers all --save run.jsonl".into(),
            taut: "0.1.0 6dedfb54c0de".into(),
            cpu: "Intel(R) Xeon(R) Processor @ 2.80GHz".into(),
            cores: 2,
            kernel: "6.18.5".into(),
            governor: "none".into(),
            counts_ended_threads: true,
            notes: vec!["virtual machine".into()],
        },
    }
}

/// Times of a line: around `typical`, half of them `second` times as much, with outliers.
fn times(random: &mut Random, case: &Case, typical: f64, second: f64, rare: f64) -> Distribution {
    let mut all = Distribution::default();
    for _ in 0..ROUNDS {
        let drift = random.around(0.05);
        let mut at = 0.0;
        let mut slow = false;
        let mut samples = Vec::new();
        for _ in 0..case.samples {
            // It stays where it is for a while.
            if random.next() < 0.02 {
                slow = random.next() < 0.5;
            }
            let mode = if slow { second } else { 1.0 };
            let mut ns = typical * drift * mode * random.around(0.12);
            if random.next() < 1.0 / rare {
                ns += 40_000.0 * (1.0 / random.next().max(1e-3)).powf(0.9);
            }
            samples.push((at as u64, ns as u64));
            at += if case.rate_hz > 0.0 { 1e9 / case.rate_hz } else { ns };
        }
        all.add_round(samples);
    }
    all
}

/// Why a peer has no result here, by the oddities of the real ones.
fn outcome(peer: &Peer, case: &Case) -> Outcome {
    let shm = ["floor", "taut", "fastdds", "fastdds:data-sharing", "iceoryx2", "zenoh", "cyclonedds11"];
    let absent = |reason: &str| Outcome::Absent(reason.into());
    match (peer.0, case.transport, case.workload) {
        ("rustdds", _, "cdr") => absent("no role cdr"),
        ("zenoh" | "iceoryx2" | "floor", _, "cdr" | "types") => absent("no type complex"),
        ("iceoryx2", "udp", _) => absent("no transport udp"),
        ("fastdds:data-sharing", "udp", _) => absent("no transport udp"),
        ("fastdds:data-sharing", "thread" | "intra", _) => absent("data-sharing is between processes"),
        (name, "shm", _) if !shm.contains(&name) => absent("no transport shm"),
        ("rustdds" | "dust_dds" | "zenoh" | "iceoryx2", "thread" | "intra", _) => {
            absent("no shortcut within a process")
        }
        ("taut", "shm", _) if case.size > 4_194_304 => {
            Outcome::Failed("a sample of 8 MiB does not fit the segment of 4 MiB".into())
        }
        ("hdds", "udp", _) if case.size >= 65_536 => {
            Outcome::Failed("ready, then nothing: no answer to 4 of 4 samples".into())
        }
        ("dust_dds", "udp", _) if case.size >= 65_536 => {
            Outcome::Failed("write: Timeout; exit status 1".into())
        }
        ("hdds", _, "soak") => Outcome::Failed("stopped after 526 samples".into()),
        _ => Outcome::Ok,
    }
}

fn timed(
    random: &mut Random,
    peer: &Peer,
    case: &Case,
    factor: f64,
    rare: f64,
) -> (Record, Option<Distribution>) {
    let mut record = blank(peer, case);
    record.outcome = outcome(peer, case);
    if record.outcome != Outcome::Ok {
        record.rounds = 0;
        record.wait = "block".into();
        return (record, None);
    }
    let second = if case.pin == "none" && case.transport != "thread" { 2.6 } else { 1.15 };
    let typical = (peer.2 + peer.3 * case.size as f64) * factor;
    let all = times(random, case, typical, second, rare);
    record.samples = all.samples();
    record.cpu_ns_per_sample = Some(typical * 0.8);
    (record.context_switches, record.switches_per_sample) = (Some(2 * all.samples()), Some(2.0));
    record.round_values = all.rounds_p50().to_vec();
    record.histogram = all.cells();
    record.series = all.series();
    if case.workload == "bursts" {
        record.one_way_ns = times(random, case, 0.7 * typical, second, rare).times();
    }
    let slot = match case.workload {
        "bursts" => &mut record.burst_ns,
        "write" => &mut record.write_ns,
        "discovery" => &mut record.matched_ns,
        _ => &mut record.rtt_ns,
    };
    *slot = all.times();
    (record, Some(all))
}

fn rated(random: &mut Random, peer: &Peer, case: &Case, factor: f64) -> (Record, Option<Distribution>) {
    let mut record = blank(peer, case);
    record.outcome = outcome(peer, case);
    if record.outcome != Outcome::Ok {
        record.rounds = 0;
        return (record, None);
    }
    let peak = peer.4 / (1.0 + case.size as f64 * peer.4 / 1.8e9) * factor;
    record.round_values = (0..ROUNDS).map(|_| peak * random.around(0.06)).collect();
    let rate = median(&record.round_values);
    (record.samples_per_s, record.bytes_per_s) = (Some(rate), Some(rate * case.size as f64));
    record.samples = (rate * ROUNDS as f64) as u64;
    if ["hdds", "rustdds"].contains(&peer.0) {
        record.lost = record.samples / 3;
        record.out_of_order = record.samples / 900;
    }
    (record, None)
}

fn every_case() -> Vec<(Case, f64)> {
    let mut cases = Vec::new();
    for transport in ["udp", "shm"] {
        for size in SIZES {
            cases.push((case("latency", transport, size), 2.0));
        }
    }
    for size in [64, 1_024, 65_536] {
        cases.push((Case { pin: "same", ..case("latency", "udp", size) }, 1.0));
    }
    let periodic = Case {
        qos: "reliable keep-all volatile",
        label: "every 1 ms".into(),
        samples: 4_000,
        ..case("latency", "udp", 32)
    };
    cases.push((Case { rate_hz: 1_000.0, ..periodic }, 2.2));
    for size in [64, 512, 1_024] {
        cases.push((
            Case {
                rate_hz: 2_000.0,
                label: "every 500 us".into(),
                samples: 800,
                ..case("latency", "udp", size)
            },
            2.1,
        ));
    }
    for (label, sizes) in [("simple", [4, 64, 1_024, 16_384]), ("complex", [16, 64, 1_024, 16_384])] {
        cases.extend(sizes.map(|size| (Case { label: label.into(), ..case("types", "udp", size) }, 2.0)));
    }
    for (transport, factor) in [("thread", 0.03), ("intra", 0.6), ("shm", 0.9)] {
        for label in ["copy", "loan"] {
            cases.extend(
                [16, 1_024, 65_536]
                    .map(|size| (Case { label: label.into(), ..case("local", transport, size) }, factor)),
            );
        }
    }
    cases.extend(
        [64, 256, 1_024].map(|size| (Case { rate_hz: 10_000.0, ..case("write", "udp", size) }, 0.15)),
    );
    let mitigations = [
        "quiet",
        "flood",
        "flood pin",
        "flood fifo",
        "flood qdisc",
        "flood dma_latency",
        "flood spin",
        "flood all",
    ];
    for size in [64, 1_024] {
        cases.extend(mitigations.map(|label| {
            (Case { label: label.into(), rate_hz: 2_000.0, ..case("interference", "udp", size) }, 2.0)
        }));
    }
    for (nodes, endpoints) in [(2, 1), (10, 1), (10, 10), (20, 10)] {
        let label = format!("participants={nodes} endpoints={endpoints}");
        cases.push((Case { label, samples: 1, ..case("discovery", "udp", 0) }, 400.0 * f64::from(nodes)));
    }
    cases.push((Case { rate_hz: 1_000.0, samples: 4_000, ..case("soak", "udp", 64) }, 2.0));
    cases.extend([(1, 1.0), (20, 1.6), (100, 3.0)].map(|(demand, factor)| {
        let label = format!("{demand} each {} ms", if demand == 100 { 10 } else { 1 });
        (Case { label, qos: "reliable keep-all volatile", ..case("bursts", "udp", 64) }, factor)
    }));
    cases
}

fn set_ratios(lines: &mut [(Record, Option<Distribution>)]) {
    let others: Vec<_> = lines
        .iter()
        .map(|(record, times)| {
            (record.peer.clone(), record.round_values.clone(), times.as_ref().and_then(Distribution::times))
        })
        .collect();
    for (at, (record, _)) in lines.iter_mut().enumerate() {
        let own = &others[at];
        let rivals = others.iter().filter(|other| other.0 != own.0);
        let of = |other: &(String, Vec<f64>, Option<taut_perf::record::Times>)| {
            ratio(&other.0, (&own.1, own.2.as_ref()), (&other.1, other.2.as_ref()))
        };
        record.ratio = rivals.filter_map(of).collect();
    }
}

fn memory(random: &mut Random, peer: &Peer) -> Vec<Memory> {
    let steps = [
        ("process", 1, 3e6),
        ("participant", 1, 2e6),
        ("topic", 1, 16e3),
        ("writer", 100, 30e3),
        ("reader", 100, 30e3),
        ("publisher", 100, 500.0),
        ("subscriber", 100, 500.0),
        ("holding writer", 1, 60e3),
        ("held sample", 1_000, 1.3e3),
    ];
    let step = |(entity, count, bytes): (&str, u64, f64)| Memory {
        entity: entity.into(),
        count,
        bytes_each: (bytes * (peer.2 / 20_000.0).sqrt() * random.around(0.1)) as i64,
        threads: if peer.0 == "hdds" && entity == "reader" { 111 } else { 6 },
        descriptors: 12,
    };
    steps.map(step).into()
}

/// The whole run.
pub fn run(seed: u64) -> Vec<Record> {
    let mut random = Random(seed);
    let mut records = Vec::new();
    for (case, factor) in every_case() {
        let mut lines = Vec::new();
        for peer in &PEERS {
            let rare = match case.label.as_str() {
                "flood" | "flood dma_latency" => peer.5 / 25.0,
                "flood pin" | "flood fifo" | "flood qdisc" => peer.5 / 8.0,
                _ => peer.5,
            };
            let slower = if case.label == "flood" { factor * 1.6 } else { factor };
            let (mut record, times) = timed(&mut random, peer, &case, slower, rare);
            if case.workload == "discovery" && record.outcome == Outcome::Ok {
                record.network_bytes = Some((peer.2 * factor) as u64);
            }
            if case.workload == "soak" && record.outcome == Outcome::Ok {
                let leak = if peer.0 == "rustdds" { 90_000 } else { 0 };
                let held = |s: i64| 6_000_000 + (peer.2 * 60.0) as i64 + leak * s;
                record.memory = (0..60)
                    .map(|s| Memory {
                        entity: format!("t={s}"),
                        count: 1,
                        bytes_each: held(s),
                        threads: 8,
                        descriptors: 20,
                    })
                    .collect();
            }
            if case.label.contains("pin") || case.label.ends_with("all") {
                record.pin = "same".into();
            }
            lines.push((record, times));
        }
        set_ratios(&mut lines);
        records.extend(lines.into_iter().map(|line| line.0));
    }
    records.extend(rates(&mut random));
    records.extend(coding_and_memory(&mut random));
    records
}

fn rates(random: &mut Random) -> Vec<Record> {
    let mut cases = Vec::new();
    for size in [32, 1_024, 16_384, 65_536, 1_048_576, 8_388_608] {
        let all = Case { qos: "reliable keep-all volatile", ..case("throughput", "udp", size) };
        cases.push((all.clone(), 1.0));
        cases.push((Case { label: "best of bursts".into(), ..all.clone() }, 1.1));
        if size <= 1_024 {
            cases.push((Case { qos: "best-effort keep-all volatile", ..all }, 1.2));
        }
    }
    for way in ["unicast", "multicast"] {
        for wait in ["listener", "waitset"] {
            for count in [1, 4, 8, 12, 32] {
                let label = format!("subscribers={count} {way} {wait}");
                let share =
                    if way == "unicast" { 1.0 / f64::from(count) } else { 1.0 / f64::from(count).powf(0.3) };
                let listener = if wait == "listener" { 1.0 } else { 0.7 };
                cases.push((
                    Case { label, qos: "best-effort keep-all volatile", ..case("fanout", "udp", 1_024) },
                    share * listener,
                ));
            }
        }
    }
    let mut records = Vec::new();
    for (case, factor) in cases {
        let mut lines: Vec<_> = PEERS.iter().map(|peer| rated(random, peer, &case, factor)).collect();
        set_ratios(&mut lines);
        records.extend(lines.into_iter().map(|line| line.0));
    }
    records
}

fn coding_and_memory(random: &mut Random) -> Vec<Record> {
    let mut records = Vec::new();
    for label in ["plain", "complex"] {
        for size in [64, 256, 1_024, 4_096] {
            let case = Case { label: label.into(), qos: "", samples: 100, ..case("cdr", "thread", size) };
            let mut lines: Vec<_> =
                PEERS.iter().map(|peer| timed(random, peer, &case, 0.002, 500.0)).collect();
            set_ratios(&mut lines);
            for (mut record, _) in lines {
                record.encode_ns = record.rtt_ns.take();
                record.decode_ns = record.encode_ns;
                record.encode_round_values.clone_from(&record.round_values);
                record.decode_round_values.clone_from(&record.round_values);
                records.push(record);
            }
        }
    }
    for peer in &PEERS {
        let mut record = blank(peer, &case("memory", "udp", 0));
        record.outcome = outcome(peer, &case("memory", "udp", 0));
        if record.outcome == Outcome::Ok {
            record.memory = memory(random, peer);
            record.round_values =
                vec![record.memory.iter().map(|m| (m.bytes_each * m.count as i64) as f64).sum()];
        }
        records.push(record);
    }
    records
}
