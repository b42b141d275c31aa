//! Round trips every 500 us beside a UDP flood in both directions, and what each mitigation is worth.
//!
//! The link's two networks are those of the study of timing isolation, without its hardware. Spinning is
//! no part of `flood all`: all of it runs on one CPU, where two processes that never sleep starve each
//! other. `quiet all` is the same without the flood: what isolation itself costs, and what of `flood all` is the
//! flood's.

use crate::args::{Options, Pin, Transport, Wait};
use crate::awake::Awake;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::{FLOOR, Peer};
use crate::network::{Network, Side};
use crate::session::{Session, Trouble};
use crate::workload::latency::PRIORITY;
use crate::workload::{Round, Work, networked, or, pick, round_trip, traffic};

/// The study's sizes and period.
const SIZES: [u64; 3] = [64, 512, 1_024];
const FEW_SIZES: [u64; 1] = [64];
pub(super) const PERIOD_NS: u64 = 500_000;

/// The study's flood: iperf3 with 50 connections.
const CONNECTIONS: u32 = 50;

/// Datagrams a second in each direction. The study's is the line's rate, which no two cores make of small datagrams:
/// then each peer would have what its own work leaves, and who takes less CPU time would get more flood. Two cores make
/// 175,000 of 64 B and 110,000 of 1 KiB in each direction, at 6 us for sending and taking one; so many are half a core.
/// Higher, a peer that is busy would have less beside it; lower, it is none. What arrived stands beside each line.
const PER_S: u64 = 50_000;

/// Which part of the flood the classes let pass: of the study's line, a fifth.
const PASSED: u64 = 5;

/// Headers of UDP, IP and Ethernet.
const HEADERS: u64 = 42;

/// What the generators are told, in bits of payload.
fn rate_mbit(size: u64) -> u64 {
    (PER_S * size * 8).div_ceil(1_000_000)
}

/// What the classes let pass on the link, in bits of frames.
fn passed_kbit(size: u64) -> u64 {
    PER_S * (size + HEADERS) * 8 / 1_000 / PASSED
}

/// Where a sink listens: the last of its domain's 50 ports, which no other role takes.
fn sink_port(domain: u32) -> u32 {
    20_000 + 50 * domain + 49
}

/// As many as there are processors in it: that of the middleware and that of the flood.
const QUEUES: u32 = 2;

/// What is done against the flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    /// DDS on CPU 0, the flood on CPU 1.
    Pin,
    /// SCHED_FIFO.
    Fifo,
    /// Classes at both ends: the flood is served last and held below the line's rate.
    Qdisc,
    /// No deep sleep of a core.
    DmaLatency,
    /// The processes never sleep.
    Spin,
    /// The middleware has no thread of its own, where it has such a mode.
    Inline,
    /// Each processor sends by a queue of its own: so the flood has one, if it is pinned.
    Queue,
}

/// All of them, but to spin.
const ALL: &[Against] =
    &[Against::Pin, Against::Fifo, Against::Qdisc, Against::DmaLatency, Against::Inline, Against::Queue];

/// All but the priority, with which DPDK's own threads would not run: in its place over DPDK.
const ALL_BUT_FIFO: &[Against] =
    &[Against::Pin, Against::Qdisc, Against::DmaLatency, Against::Inline, Against::Queue];

/// The cases of each size, in order.
const ROWS: [(&str, bool, &[Against]); 15] = [
    ("quiet", false, &[]),
    ("quiet fifo inline", false, &[Against::Fifo, Against::Inline]),
    ("quiet all", false, ALL),
    ("quiet all but fifo", false, ALL_BUT_FIFO),
    ("flood", true, &[]),
    ("flood pin", true, &[Against::Pin]),
    ("flood fifo", true, &[Against::Fifo]),
    ("flood inline", true, &[Against::Inline]),
    ("flood fifo inline", true, &[Against::Fifo, Against::Inline]),
    ("flood qdisc", true, &[Against::Qdisc]),
    ("flood pin queue", true, &[Against::Pin, Against::Queue]),
    ("flood dma_latency", true, &[Against::DmaLatency]),
    ("flood spin", true, &[Against::Spin]),
    ("flood all", true, ALL),
    ("flood all but fifo", true, ALL_BUT_FIFO),
];

/// The same twice for as many samples as a rare percentile takes, what the flood adds to it: with the priority, and without.
const PAIRS: [(&str, bool, &[Against]); 4] = [
    (LONG[0][0], false, ALL),
    (LONG[0][1], true, ALL),
    (LONG[1][0], false, ALL_BUT_FIFO),
    (LONG[1][1], true, ALL_BUT_FIFO),
];

/// Without the flood and beside it.
pub const LONG: [[&str; 2]; 2] =
    [["quiet all long", "flood all long"], ["quiet all but fifo long", "flood all but fifo long"]];

/// Is this done against the flood over that way?
fn is_asked(transport: Transport, against: &[Against]) -> bool {
    match transport {
        Transport::Dpdk => !against.contains(&Against::Fifo),
        _ => against != ALL_BUT_FIFO,
    }
}

/// The cases' names, in their order.
pub fn labels() -> impl Iterator<Item = &'static str> {
    ROWS.iter().chain(&PAIRS).map(|(label, ..)| *label)
}

/// Each row at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in networked(options) {
        for size in pick(options, &options.sizes, &SIZES, &FEW_SIZES) {
            let rows = ROWS.into_iter().filter(|(.., against)| is_asked(transport, against));
            cases.extend(rows.map(|row| case(transport, size, row, options, scale)));
        }
    }
    cases
}

/// The long pair of each way.
pub fn pairs(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in networked(options) {
        for size in or(&options.sizes, &FEW_SIZES) {
            let pair = PAIRS.into_iter().filter(|(.., against)| is_asked(transport, against));
            cases.extend(pair.map(|row| case(transport, size, row, options, 1.0)));
        }
    }
    cases
}

fn case(
    transport: Transport,
    size: u64,
    (label, flood, against): (&'static str, bool, &'static [Against]),
    options: &Options,
    scale: f64,
) -> Case {
    let work = Box::new(Beside { flood, against });
    let mut case =
        Case::new("interference", Some(transport), size, work).label(label).amount(400, 4_000, 2_000);
    // KEEP_ALL, as in every open loop: a replaced sample would hide the stall it waited for.
    (case.link, case.period_ns, case.history) = (true, PERIOD_NS, "keep-all");
    let mut case = case.with(options, scale);
    if against.contains(&Against::Pin) {
        (case.pin, case.flood_cpu) = (Pin::Same, Some(1));
    }
    if against.contains(&Against::Fifo) {
        case.fifo = Some(PRIORITY);
    }
    if against.contains(&Against::Spin) {
        case.wait = Wait::Spin;
    }
    if against.contains(&Against::Inline) {
        case.wait = Wait::Inline;
    }
    if against.contains(&Against::Queue) {
        case.queues = QUEUES;
    }
    case
}

struct Beside {
    flood: bool,
    against: &'static [Against],
}

impl Work for Beside {
    fn roles(&self) -> &'static [&'static str] {
        &["ping", "pong"]
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        traffic::STARTING_S * if self.flood { 1.5 } else { 1.0 } + traffic::measuring_s(case)
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let network = &*bench.network(case)?;
        let _awake = self.against.contains(&Against::DmaLatency).then(Awake::keep).transpose()?;
        let mut session = Session::begin(bench, peer, case)?;
        let has_queue = self.against.contains(&Against::Queue);
        if has_queue {
            let absent = |reason| Trouble::Absent(format!("no queue for each processor: {reason}"));
            network.queue_for_each_cpu().map_err(absent)?;
        }
        let set_classes = || match has_queue {
            true => Classes::set(network, &queue_classes(case.size)),
            false => Classes::set(network, &port_classes(sink_port(session.domain()), case.size)),
        };
        let _classes = self.against.contains(&Against::Qdisc).then(set_classes).transpose()?;
        if self.flood {
            start_flood(bench, network, &mut session, case)?;
        }
        round_trip::run(session, case, false, &mut |_| {})
    }
}

/// Sinks and generators at both ends.
fn start_flood(bench: &Bench, network: &Network, session: &mut Session, case: &Case) -> Result<(), Trouble> {
    let Some(program) = bench.catalog.program(FLOOR) else {
        return Err(Trouble::Absent("the flood needs perf-peer-floor: `make peers` builds it".to_string()));
    };
    for role in ["sink", "flood"] {
        for side in [Side::Near, Side::Far] {
            let mut options = network.options(side);
            options.push(("size", case.size.to_string()));
            options.push(("connections", CONNECTIONS.to_string()));
            options.push(("rate-mbit", rate_mbit(case.size).to_string()));
            options.push(("domain", session.domain().to_string()));
            let id = session.spawn(program.clone().into_os_string(), role, 1, side, &options)?;
            session.ready(id)?;
            if role == "flood" {
                session.say(id, "go");
            }
            session.keep(id);
        }
    }
    Ok(())
}

/// HTB, which most kernels have: all but the flood first, and of the flood a fifth.
fn port_classes(port: u32, size: u64) -> Vec<String> {
    let passed = passed_kbit(size);
    let filter = format!("u32 match ip protocol 17 0xff match ip dport {port} 0xffff");
    vec![
        "tc qdisc replace dev DEV root handle 1: htb default 10".to_string(),
        "tc class add dev DEV parent 1: classid 1:1 htb rate 2500mbit".to_string(),
        "tc class add dev DEV parent 1:1 classid 1:10 htb rate 2000mbit ceil 2500mbit prio 0".to_string(),
        format!(
            "tc class add dev DEV parent 1:1 classid 1:20 htb rate {passed}kbit ceil {passed}kbit prio 7"
        ),
        format!("tc filter add dev DEV parent 1: protocol ip prio 1 {filter} flowid 1:20"),
    ]
}

/// The same where the flood has the second queue. Classes of the device would have one processor send what another
/// has left there, by whichever queue.
fn queue_classes(size: u64) -> Vec<String> {
    let passed = passed_kbit(size);
    vec![
        "tc qdisc replace dev DEV root handle 1: mq".to_string(),
        format!("tc qdisc replace dev DEV parent 1:2 tbf rate {passed}kbit burst 5000 limit 100000"),
    ]
}

/// Classes at both ends of the link while it lives.
struct Classes<'a>(&'a Network);

impl Classes<'_> {
    fn set<'a>(network: &'a Network, commands: &[String]) -> Result<Classes<'a>, Trouble> {
        let classes = Classes(network);
        for command in commands {
            let absent = |reason| Trouble::Absent(format!("no classes on the link: {reason}"));
            classes.0.at_both_ends(command).map_err(absent)?;
        }
        Ok(classes)
    }
}

impl Drop for Classes<'_> {
    fn drop(&mut self) {
        // The link goes with the run; what fails here would only fail the next `replace`.
        let _ = self.0.at_both_ends("tc qdisc del dev DEV root");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpdks_own_threads_are_never_kept_from_the_processor() {
        let cases = cases(&crate::args::options("--transport dpdk,udp --sizes 64"), 1.0);
        let of = |transport| cases.iter().filter(move |case| case.transport == Some(transport));
        assert!(of(Transport::Dpdk).all(|case| case.fifo.is_none()));
        let names = |transport| of(transport).map(|case| case.label.clone()).collect::<Vec<_>>();
        let (dpdk, udp) = (names(Transport::Dpdk), names(Transport::Udp));
        assert!(dpdk.contains(&"flood all but fifo".into()) && udp.contains(&"flood all".into()));
        assert!(!udp.contains(&"flood all but fifo".into()));
    }

    #[test]
    fn the_flood_is_as_many_datagrams_whatever_their_size() {
        for size in SIZES {
            let per_s = rate_mbit(size) * 1_000_000 / 8 / size;
            assert!((PER_S..PER_S * 102 / 100).contains(&per_s), "{size} B: {per_s}/s");
        }
        // 50,000 frames of 106 B a second are 42.4 Mbit/s.
        assert_eq!(passed_kbit(64), 42_400 / 5);
        for classes in [port_classes(9, 64), queue_classes(64)] {
            assert!(classes.iter().any(|command| command.contains(" rate 8480kbit")), "{classes:?}");
        }
    }
}
