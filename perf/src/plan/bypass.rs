//! What `bypass` runs: what goes past the kernel's stack, beside what does not.

use crate::args::{Options, Reliability, Transport, Wait};
use crate::case::{Case, Need};
use crate::catalog::Entry;
use crate::contract::Info;
use crate::workload;

/// What the study of timing isolation has at each of its sizes; what each mitigation does alone is told by the first of
/// them, if there is no time for more.
const ISOLATED: [&str; 6] =
    ["quiet", "quiet all", "quiet all but fifo", "flood", "flood all", "flood all but fifo"];

/// The ways that `bypass` compares: by the kernel, and past it; DPDK beside them where a peer was built with it.
const BYPASS: [Transport; 3] = [Transport::Udp, Transport::Xdp, Transport::XdpL2];

/// Has one of the peers the transport that it must be built for?
fn has_dpdk(entries: &[Entry]) -> bool {
    let has = |info: &Info| info.transports.iter().any(|transport| transport == "dpdk");
    entries.iter().any(|entry| matches!(entry, Entry::Found(peer) if has(&peer.info)))
}

/// What goes past the kernel's stack beside what does not, over one link: asleep and awake, as fast as it goes and
/// beside a flood.
pub(super) fn cases(options: &Options, scale: f64, entries: &[Entry]) -> Vec<Case> {
    let mut own = options.clone();
    own.link = true;
    if own.transport.is_empty() {
        own.transport.extend(BYPASS);
        own.transport.extend(has_dpdk(entries).then_some(Transport::Dpdk));
    }
    let sized = |sizes: &[u64], wait: Option<Wait>| {
        let mut own = own.clone();
        own.wait = options.wait.or(wait);
        if own.sizes.is_empty() {
            own.sizes.extend(sizes);
        }
        own
    };
    let waits = if options.wait.is_some() { &[Wait::Spin][..] } else { &[Wait::Spin, Wait::Block] };
    let mut cases = Vec::new();
    for wait in waits {
        let closed = sized(&[64, 512, 1_024], Some(*wait));
        cases.extend(workload::latency::cases(&closed, scale));
        let open = workload::latency::open_loops(&Options { wait: closed.wait, ..own.clone() }, scale);
        // One of them says by its name how it waits; asleep, a control loop is what is quiet of the interference.
        let is_twice = |case: &Case| *wait == Wait::Block && case.label.starts_with("every 500 us");
        cases.extend(open.into_iter().filter(|case| !case.label.contains("inline") && !is_twice(case)));
    }
    let inline = workload::latency::open_loops(&own, scale);
    cases.extend(inline.into_iter().filter(|case| case.label.contains("inline")));
    // The bursts are of another study.
    let rates = Options { quick: true, ..sized(&[32, 1_024], None) };
    cases.extend(workload::throughput::cases(&rates, scale));
    cases.extend(jumbo(rates, scale));
    let mut beside = workload::interference::cases(&sized(&[64, 512, 1_024], None), scale);
    for case in beside.iter_mut().filter(|case| options.sizes.is_empty() && case.size != 64) {
        let is_isolated = ISOLATED.iter().any(|line| case.is_called(line));
        case.need = if is_isolated { Need::Brief } else { Need::Spare };
    }
    cases.extend(beside);
    // Who polls for ever at such a priority keeps DPDK's own threads, which join the two ends, from the processor.
    cases.retain(|case| case.transport != Some(Transport::Dpdk) || case.fifo.is_none());
    let soaks = workload::soak::cases(&sized(&[64], Some(Wait::Spin)), 1.0);
    cases.extend(in_pieces(soaks, options));
    cases.extend(in_pieces(workload::interference::pairs(&sized(&[64], None)), options));
    cases
}

/// The rates with frames of six times the length: what goes past the kernel pays for each frame, what goes through it for
/// each 64 kB. DPDK's frames are as long as its memory has them.
const JUMBO_MTU: u32 = 9_000;

fn jumbo(mut rates: Options, scale: f64) -> Vec<Case> {
    rates.transport.retain(|transport| *transport != Transport::Dpdk);
    if rates.mtu.is_some() || rates.loss.is_some() || rates.transport.is_empty() {
        return Vec::new();
    }
    (rates.mtu, rates.reliability) = (Some(JUMBO_MTU), rates.reliability.or(Some(Reliability::Reliable)));
    workload::throughput::cases(&rates, scale)
}

/// A hundred thousand samples of each case have ten beyond the percentile 99.99, and show its bound. They are
/// measured in pieces by turns: in one piece, each case would have another moment of the machine. One piece more than
/// that takes makes good a round that failed.
const PIECES: u32 = 11;
const PIECE: u64 = 10_000;

fn in_pieces(mut cases: Vec<Case>, options: &Options) -> Vec<Case> {
    for (at, case) in cases.iter_mut().enumerate() {
        (case.in_turns, case.need) = (at > 0, Need::Whole);
        case.rounds = options.rounds.unwrap_or(PIECES);
        if options.count.is_none() && options.duration.is_none() {
            (case.count, case.duration_ms) = (PIECE, PIECE * case.period_ns / 1_000_000);
        }
    }
    cases
}
