//! What `all` runs: of every workload what tells peers apart, and the other sizes of the studies.

use crate::args::{Options, Transport};
use crate::case::Case;
use crate::workload;

/// Rounds of `all`, if they fit. What says more than another sample is another round: Student's t is 2.8 for
/// five, 4.3 for three and 12.7 for two, which is an interval in name only.
const ALL_ROUNDS: u32 = 5;

/// Sizes and transports of each workload in `all`: what tells peers apart, at three rounds of some twenty
/// peers in an hour. An empty list of sizes is the workload's own.
const ALL: [(&str, Option<Transport>, &[u64]); 20] = [
    ("latency", None, &[64, 1_024, 8_192, 65_536, 1_048_576]),
    ("latency", Some(Transport::Intra), &[64]),
    ("latency", Some(Transport::Shm), &[64, 65_536, 1_048_576]),
    ("latency", Some(Transport::Xdp), &[64, 1_024]),
    ("latency", Some(Transport::XdpL2), &[64, 1_024]),
    ("throughput", None, &[32, 1_024, 65_536, 1_048_576]),
    ("throughput", Some(Transport::Shm), &[64, 1_048_576]),
    ("bursts", None, &[64]),
    ("local", Some(Transport::Thread), &[16, 64, 1_024]),
    ("local", Some(Transport::Intra), &[64, 1_024]),
    ("local", Some(Transport::Shm), &[64, 1_048_576, 8_388_608]),
    ("write", None, &[64, 256, 1_024]),
    ("cdr", None, &[64, 256, 1_024, 4_096]),
    ("memory", None, &[]),
    ("calls", None, &[64]),
    ("discovery", None, &[]),
    ("types", None, &[64, 1_024, 16_384]),
    ("fanout", None, &[1_024]),
    ("interference", None, &[64]),
    ("soak", None, &[64]),
];

/// What the studies have besides: the sizes at which only [`crate::catalog::NEAR`] are asked, for all peers at all sizes take three
/// hours.
const ALL_NEAR: [(&str, Option<Transport>, &[u64]); 6] = [
    ("latency", None, &[512, 4_096, 16_384, 2_097_152, 4_194_304, 8_388_608]),
    (
        "latency",
        Some(Transport::Intra),
        &[512, 1_024, 4_096, 8_192, 16_384, 65_536, 1_048_576, 2_097_152, 4_194_304, 8_388_608],
    ),
    ("latency", Some(Transport::Shm), &[512, 1_024, 4_096, 8_192, 16_384, 2_097_152, 4_194_304, 8_388_608]),
    ("throughput", None, &[64, 512, 4_096, 8_192, 16_384, 2_097_152, 4_194_304, 8_388_608]),
    (
        "throughput",
        Some(Transport::Shm),
        &[512, 1_024, 4_096, 8_192, 16_384, 65_536, 2_097_152, 4_194_304, 8_388_608],
    ),
    ("types", None, &[4, 8, 16, 32, 128, 256, 512, 2_048, 4_096, 8_192]),
];

/// The numbers of subscribers at which `all` also asks for waitsets, by unicast, and the sizes at which it sends
/// bursts: one of each shows the difference.
const ALL_WAITSETS: &str = "subscribers=8 ";
const ALL_BURSTS: u64 = 1_024;

/// Every workload; round trips at the open loops' rates and on one core too; the other sizes of the studies last.
pub(super) fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, transport, sizes) in ALL {
        let Some(own) = of_all(options, name, transport, sizes) else { continue };
        let mut of_name = workload::cases(name, &own, scale);
        if name == "latency" && transport.is_none() {
            of_name.extend(workload::latency::open_loops(options, scale).into_iter().take(3));
            of_name.extend(workload::latency::pinned_cases(options, scale));
        }
        if name == "local"
            && let Some(transport) = transport
        {
            of_name.extend(workload::local::placed_cases(transport, options, scale));
        }
        of_name.retain(|case| match name {
            // To one subscriber multicast is what unicast is.
            "fanout" if case.multicast => !case.label.contains("=1 ") && !case.label.ends_with("waitset"),
            "fanout" => case.label.starts_with(ALL_WAITSETS) || !case.label.ends_with("waitset"),
            "throughput" => case.label.is_empty() || case.loan || case.size == ALL_BURSTS,
            _ => true,
        });
        cases.extend(of_name.into_iter().map(|case| Case { is_near: is_costly(&case), ..case }));
    }
    if options.sizes.is_empty() {
        cases.extend(all_near(options, scale));
    }
    // Whoever is named is asked for everything.
    let is_everyone = options.peers.is_empty() || options.peers.iter().any(|name| name == "all");
    cases.iter_mut().for_each(|case| case.is_near &= is_everyone);
    // What a process holds in memory does not change from round to round.
    for case in cases.iter_mut().filter(|case| options.rounds.is_none() && case.rounds > 1) {
        case.rounds = ALL_ROUNDS;
    }
    cases
}

/// Takes it so long that with all peers in it there would be no time for three rounds of all else? Of each kind a line
/// is left to everyone.
fn is_costly(case: &Case) -> bool {
    let label = case.label.as_str();
    match case.workload {
        "interference" => !["quiet", "flood", "flood all"].contains(&label),
        "discovery" => ["participants=10 ", "participants=20 "].iter().any(|begin| label.starts_with(begin)),
        "fanout" => label.starts_with("subscribers=32 "),
        "throughput" => label.starts_with("best of"),
        "bursts" => !label.starts_with("20 "),
        "soak" | "calls" => true,
        _ => false,
    }
}

/// The options of a workload of `all`; nothing if the user wants other transports.
fn of_all(options: &Options, name: &str, transport: Option<Transport>, sizes: &[u64]) -> Option<Options> {
    let mut own = options.clone();
    if own.transport.is_empty() {
        own.transport.extend(transport);
    } else if transport.is_some_and(|transport| !options.transport.contains(&transport)) {
        return None;
    }
    if own.sizes.is_empty() {
        own.sizes.extend(sizes);
    }
    if name == "soak" {
        own.duration = own.duration.or(Some(10.0));
    }
    Some(own)
}

/// The sizes of the studies at which few are asked.
fn all_near(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, transport, sizes) in ALL_NEAR {
        let Some(own) = of_all(options, name, transport, sizes) else { continue };
        let of_name = workload::cases(name, &own, scale).into_iter();
        // Bursts at each size are a run of their own.
        let kept = of_name.filter(|case| name != "throughput" || case.label.is_empty() || case.loan);
        cases.extend(kept.map(|case| Case { is_near: true, ..case }));
    }
    cases
}
