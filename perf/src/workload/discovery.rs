//! The time and the bytes until all endpoints of all participants know each other.

use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::accounting::Sent;
use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::Event;
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::STARTING_S;
use crate::workload::{Figure, Round, Work, first_sample, or, transports};

/// Participants, and endpoints of each. Two small ones are the start of any program; the others are what a
/// vehicle has, and what one large process has; 50 are a robot's.
const SCALES: [(u32, u32); 5] = [(2, 1), (10, 1), (10, 10), (20, 10), (50, 1)];
const FEW_SCALES: [(u32, u32); 2] = [(2, 1), (5, 5)];

/// From so many participants on one round tells enough: it is the mean of many, and takes many seconds of some.
const LARGE: u32 = 50;

/// Until all are matched. The slowest of 50 participants took 6 s; who needs five times that is broken.
const MATCHED_LIMIT: Duration = Duration::from_secs(30);

/// Each number of participants and endpoints.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut scales: Vec<(u32, u32)> = if options.quick { FEW_SCALES.to_vec() } else { SCALES.to_vec() };
    if !options.nodes.is_empty() || !options.endpoints.is_empty() {
        let nodes = or(&options.nodes, &[2]);
        let endpoints = or(&options.endpoints, &[1]);
        scales = nodes.iter().flat_map(|n| endpoints.iter().map(|e| (*n, *e))).collect();
    }
    let mut cases = Vec::new();
    for transport in transports(options) {
        for (nodes, endpoints) in &scales {
            let work = Box::new(Nodes { nodes: *nodes, endpoints: *endpoints });
            let label = format!("participants={nodes} endpoints={endpoints}");
            let mut case = Case::new("discovery", Some(transport), 0, work).label(label).with(options, scale);
            (case.warmup, case.count, case.duration_ms, case.period_ns) = (0, 0, 0, 0);
            case.rounds = if *nodes >= LARGE { options.rounds.unwrap_or(1) } else { case.rounds };
            cases.push(case);
        }
        if options.nodes.is_empty() && options.endpoints.is_empty() {
            let mut case = first_sample::case(transport);
            case.rounds = options.rounds.unwrap_or(case.rounds);
            cases.push(case);
        }
    }
    cases
}

struct Nodes {
    nodes: u32,
    endpoints: u32,
}

impl Work for Nodes {
    fn roles(&self) -> &'static [&'static str] {
        &["node"]
    }

    fn has_type(&self) -> bool {
        false
    }

    /// All of them are at one.
    fn has_ends(&self) -> bool {
        false
    }

    fn estimate_s(&self, _: &Case) -> f64 {
        STARTING_S + 0.15 * f64::from(self.nodes) + 0.5
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let mut session = Session::begin(bench, peer, case)?;
        let mut ids = Vec::new();
        for index in 0..self.nodes {
            let mut start = Start::near("node").with("index", index);
            start.cpu = index as usize;
            start = start.with("nodes", self.nodes).with("endpoints", self.endpoints);
            ids.push(session.start(start.with("remotes", self.nodes - 1))?);
        }
        let mut wait = String::new();
        for id in &ids {
            wait = session.ready(*id)?;
        }
        let interface = bench.network(case)?.interface();
        let (before, sent_before, start_ns) = (session.accounts(), Sent::by(interface), now_ns());
        for id in &ids {
            session.say(*id, "go");
        }
        let mut last_ns = 0;
        let end = std::time::Instant::now() + MATCHED_LIMIT;
        for id in &ids {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if let Event::Matched(ns) = session.expect(*id, "matched", left)? {
                last_ns = last_ns.max(ns);
            }
        }
        let sent = Sent::by(interface).since(sent_before);
        let usage = session.accounts().since(&before);
        let Some(matched_ns) = last_ns.checked_sub(start_ns) else {
            return Err(Trouble::failed("matched before it began: ns is no time of CLOCK_MONOTONIC"));
        };
        for id in &ids {
            session.say(*id, "end");
        }
        for id in &ids {
            session.done(*id)?;
        }
        let flaw = session.finish()?;
        Ok(Round {
            times: vec![(Figure::Matched, vec![(start_ns, matched_ns)])],
            samples: 1,
            cpu_samples: 1,
            usage,
            wait,
            sent: Some(sent),
            flaw,
            ..Round::default()
        })
    }
}

/// CLOCK_MONOTONIC, as the adapters read it.
pub fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds() as u64)
}
