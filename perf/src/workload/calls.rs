//! What a burst asks of the kernel: the system calls of each side, by their kind.
//!
//! The writer's own pause between two bursts is a call, too, of each peer.

use std::time::Duration;

use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::counter::Counter;
use crate::record::Pace;
use crate::session::{Session, Start, Trouble};
use crate::workload::throughput::{finish, timed};
use crate::workload::traffic::{STARTING_S, some_delivered, stop_limit};
use crate::workload::{Round, Work, or, transports};

/// What a control loop sends.
const SIZES: [u64; 1] = [64];

/// A sample alone at a control loop's rate, and a burst that a queue holds, with time for all of it to be acknowledged.
pub const BURSTS: [(u64, u64); 2] = [(1, 1), (100, 10)];

/// A hundred bursts: what is called once for all of them is a hundredth of a call.
const DURATION_MS: u64 = 1_000;

/// Nothing is counted for so long after both sides have found each other: what a peer announces at its start is no call of
/// a burst. Shorter, it is counted with them; longer, it is a round's time.
const SETTLES: Duration = Duration::from_secs(1);

/// The names of the two sides.
pub const SIDES: [&str; 2] = ["writer", "reader"];

/// Each burst at each size.
pub fn cases(options: &Options, scale: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in transports(options) {
        for size in or(&options.sizes, &SIZES) {
            for (demand, interval_ms) in BURSTS {
                let work = Box::new(Bursts { demand, interval_ms });
                let mut case =
                    Case::new("calls", Some(transport), size, work).label(label(demand, interval_ms));
                (case.history, case.least_ms) = ("keep-all", DURATION_MS);
                cases.push(finish(timed(case, 0, DURATION_MS), options, scale));
            }
        }
    }
    cases
}

/// The name of a case.
pub fn label(demand: u64, interval_ms: u64) -> String {
    format!("bursts of {demand} each {interval_ms} ms")
}

struct Bursts {
    demand: u64,
    interval_ms: u64,
}

impl Work for Bursts {
    fn roles(&self) -> &'static [&'static str] {
        &["pub", "sub"]
    }

    /// Two counters beside two processes.
    fn estimate_s(&self, case: &Case) -> f64 {
        2.0 * STARTING_S + SETTLES.as_secs_f64() + case.duration_ms as f64 / 1e3
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let mut session = Session::begin(bench, peer, case)?;
        let reader =
            session.start(Start::far("sub").with("index", 0).with("nodes", 1).with("samples", ""))?;
        let wait = session.ready(reader)?;
        let interval_ns = Duration::from_millis(self.interval_ms).as_nanos();
        let writer = Start::near("pub").with("burst", self.demand).with("interval-ns", interval_ns);
        let writer = session.start(writer.with("samples", "").with("remotes", 1))?;
        session.ready(writer)?;
        session.let_run(SETTLES)?;
        let [of_writer, of_reader] = SIDES;
        let counters = [
            Counter::attach(bench, of_writer, session.pid(writer))?,
            Counter::attach(bench, of_reader, session.pid(reader))?,
        ];
        let before = session.accounts();
        session.say(writer, "go");
        session.expect(writer, "stop", stop_limit(case))?;
        let usage = session.accounts().since(&before);
        let mut calls = Vec::new();
        for counter in counters {
            calls.push(counter.end()?);
        }
        session.say(writer, "go");
        let sent = session.done(writer)?;
        session.say(reader, "end");
        let taken = session.done(reader)?;
        let flaw = session.finish()?;
        let of = some_delivered(&sent, &taken)?;
        let pace = Pace {
            demand: self.demand,
            interval_ms: self.interval_ms,
            samples_per_s: 0.0,
            expected: of.cpu_samples,
            lost: of.lost,
        };
        Ok(Round { usage, paces: vec![pace], calls, wait, flaw, ..of })
    }
}
