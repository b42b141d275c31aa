//! What is to be run, in which order, and for how long.
//!
//! Cases come one after the other; in a case the peers take turns, round by round, so that a machine that
//! drifts hits all alike.

use crate::args::{Options, Transport};
use crate::case::Case;
use crate::catalog::Entry;
use crate::workload;

/// `all` is through within an hour, its end and a slow start included.
const ALL_BUDGET_S: f64 = 3_300.0;

/// `smoke` is through within four minutes.
const SMOKE_BUDGET_S: f64 = 220.0;

/// Steps to a shorter run: the share of each round's amount, and the most rounds. Two rounds are the least
/// that has a confidence interval.
const STEPS: [(f64, u32); 7] = [(1.0, 1_000), (1.0, 3), (0.7, 3), (0.7, 2), (0.5, 2), (0.3, 2), (0.2, 1)];

/// What `--quick` leaves of an amount.
const QUICK: f64 = 0.2;

/// The cases of a run.
pub struct Plan {
    /// In their order.
    pub cases: Vec<Case>,
    /// The time that must suffice, if there is one.
    pub budget_s: Option<f64>,
}

/// The plan of a command, fitted into its budget.
pub fn make(command: &str, options: &Options, entries: &[Entry]) -> Plan {
    let budget_s = options.budget.or(match command {
        "all" => Some(ALL_BUDGET_S),
        "smoke" => Some(SMOKE_BUDGET_S),
        _ => None,
    });
    let full = if options.quick || command == "smoke" { QUICK } else { 1.0 };
    for (scale, rounds) in STEPS {
        let mut cases = cases(command, options, full * scale);
        for case in &mut cases {
            if options.rounds.is_none() {
                case.rounds = case.rounds.min(rounds);
            }
        }
        let time_s: f64 = cases.iter().map(|case| case_s(case, entries)).sum();
        if budget_s.is_none_or(|budget_s| time_s <= budget_s) || scale <= 0.2 {
            return Plan { cases, budget_s };
        }
    }
    Plan { cases: Vec::new(), budget_s }
}

/// The time that all rounds of a case take, roughly.
pub fn case_s(case: &Case, entries: &[Entry]) -> f64 {
    runnable(case, entries) as f64 * f64::from(case.rounds) * case.estimate_s()
}

/// How many peers have this case.
pub fn runnable(case: &Case, entries: &[Entry]) -> usize {
    entries
        .iter()
        .filter(|entry| matches!(entry, Entry::Found(peer) if case.obstacle(peer).is_none()))
        .count()
}

fn cases(command: &str, options: &Options, scale: f64) -> Vec<Case> {
    match command {
        "all" => all(options, scale),
        "smoke" => {
            let quick = Options { quick: true, ..options.clone() };
            workload::NAMES.iter().flat_map(|name| few(name, &quick, scale)).collect()
        }
        name => workload::cases(name, options, scale),
    }
}

/// Every workload over its own transport, and round trips over the others too.
fn all(options: &Options, scale: f64) -> Vec<Case> {
    let own = |transport: Option<Transport>, sizes: &[u64]| {
        let mut own = options.clone();
        if own.transport.is_empty() {
            own.transport.extend(transport);
        }
        if own.sizes.is_empty() {
            own.sizes.extend(sizes);
        }
        own
    };
    let mut cases = Vec::new();
    for name in workload::NAMES {
        let of = |options: Options| workload::cases(name, &options, scale);
        match name {
            "latency" => {
                cases.extend(of(own(None, &[])));
                cases.extend(workload::latency::pinned_cases(options, scale));
                cases.extend(of(own(Some(Transport::Shm), &[64, 65_536, 1_048_576])));
            }
            "throughput" => {
                cases.extend(of(own(None, &[32, 1_024, 65_536, 1_048_576])));
                cases.extend(of(own(Some(Transport::Shm), &[1_024, 1_048_576])));
            }
            "interference" => cases.extend(of(own(None, &[64]))),
            "soak" => {
                let mut short = options.clone();
                short.duration = short.duration.or(Some(10.0));
                cases.extend(of(short));
            }
            _ => cases.extend(of(options.clone())),
        }
    }
    cases
}

/// A little of a workload.
fn few(name: &'static str, options: &Options, scale: f64) -> Vec<Case> {
    let mut options = options.clone();
    let sizes: &[u64] = match name {
        "latency" | "types" | "write" | "interference" | "soak" => &[64],
        "throughput" | "cdr" => &[1_024],
        _ => &[],
    };
    if options.sizes.is_empty() {
        options.sizes.extend(sizes);
    }
    if name == "soak" {
        options.duration = options.duration.or(Some(3.0));
    }
    let mut cases = workload::cases(name, &options, scale);
    for case in &mut cases {
        case.rounds = options.rounds.unwrap_or(case.rounds.min(2));
    }
    match name {
        // Of each kind one: that it runs, not how it scales.
        "interference" => cases.retain(|case| ["quiet", "flood", "flood all"].contains(&case.label.as_str())),
        "fanout" => {
            cases.retain(|case| case.label.contains("subscribers=4") && case.label.contains("listener"))
        }
        "discovery" => cases.truncate(1),
        _ => {}
    }
    cases
}
