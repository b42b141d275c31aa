//! How long a program that has just started waits for its first sample from one that has been writing for a
//! while.

use std::time::Duration;

use crate::args::Transport;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::figure;
use crate::session::{Session, Start, Trouble};
use crate::workload::discovery::now_ns;
use crate::workload::traffic::{STARTING_S, stop_limit};
use crate::workload::{Figure, Round, Work};

/// Between two writes: what the wait for the next sample adds at most. Lower, the publisher takes the core that
/// the program needs to start; higher, the pace is seen in the result.
pub(super) const PERIOD_NS: u64 = 200_000;

/// The publisher writes for so long. The slowest middleware needs 200 ms; each peer takes the whole time.
const DURATION_MS: u64 = 1_000;

/// The publisher has written for so long when the reader starts.
const SETTLE: Duration = Duration::from_millis(DURATION_MS / 4);

/// What a control loop sends.
const SIZE: u64 = 64;

/// A reader that starts beside a writer.
pub fn case(transport: Transport) -> Case {
    let mut case = Case::new("discovery", Some(transport), SIZE, Box::new(FirstSample))
        .label("first sample of a late reader")
        .amount(0, DURATION_MS * 1_000_000 / PERIOD_NS, DURATION_MS);
    (case.period_ns, case.history) = (PERIOD_NS, "keep-all");
    case
}

struct FirstSample;

impl Work for FirstSample {
    /// `node` says that there is discovery at all.
    fn roles(&self) -> &'static [&'static str] {
        &["pub", "sub", "node"]
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        STARTING_S + case.duration_ms as f64 / 1e3
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let mut session = Session::begin(bench, peer, case)?;
        let publisher = session.start(Start::near("pub").with("remotes", 0).with("samples", ""))?;
        session.ready(publisher)?;
        session.say(publisher, "go");
        // It is to be found by one that has settled: its announcements in quick succession are over.
        session.let_run(SETTLE)?;
        let spawned_ns = now_ns();
        let reader = session.start(Start::far("sub").with("samples", ""))?;
        let wait = session.ready(reader)?;
        session.expect(publisher, "stop", stop_limit(case))?;
        session.say(publisher, "go");
        session.done(publisher)?;
        session.say(reader, "end");
        let taken = session.done(reader)?;
        let flaw = session.finish()?;
        let first_ns = figure(&taken, "first_ns");
        if figure(&taken, "received") == 0 || first_ns == 0 {
            return Err(Trouble::Failed(format!(
                "a reader that started beside a writer had no sample within {DURATION_MS} ms"
            )));
        }
        // Who does not say when its main began is counted from its start by the driver.
        let begun_ns = Some(figure(&taken, "begin_ns")).filter(|ns| *ns > 0).unwrap_or(spawned_ns);
        let Some(waited_ns) = first_ns.checked_sub(begun_ns) else {
            return Err(Trouble::failed("a sample before the start: first_ns is no time of CLOCK_MONOTONIC"));
        };
        Ok(Round {
            times: vec![(Figure::Matched, vec![(begun_ns, waited_ns)])],
            samples: 1,
            cpu_samples: 1,
            wait,
            flaw,
            ..Round::default()
        })
    }
}
