//! A round of round trips: between two processes, or inside of one.

use crate::args::Transport;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::figure;
use crate::samples;
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::{self, exchange};
use crate::workload::{Figure, Round, Work};

/// There and back.
pub struct RoundTrip {
    within_one_process: bool,
}

impl RoundTrip {
    /// As the transport wants it: `thread` and `intra` are within one process.
    pub fn over(transport: Transport) -> Box<RoundTrip> {
        Box::new(RoundTrip { within_one_process: matches!(transport, Transport::Thread | Transport::Intra) })
    }
}

impl Work for RoundTrip {
    fn roles(&self) -> &'static [&'static str] {
        if self.within_one_process { &["local"] } else { &["ping", "pong"] }
    }

    fn estimate_s(&self, case: &Case) -> f64 {
        let starting_s = if self.within_one_process { 0.5 } else { 1.0 } * traffic::STARTING_S;
        starting_s + traffic::measuring_s(case)
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let session = Session::begin(bench, peer, case)?;
        run(session, case, self.within_one_process, &mut |_| {})
    }
}

/// Runs it in a session.
pub fn run(
    session: Session,
    case: &Case,
    within_one_process: bool,
    look: &mut dyn FnMut(&Session),
) -> Result<Round, Trouble> {
    let file = session.samples_file(0);
    let samples = file.display().to_string();
    let (sender, servers) = if within_one_process {
        (Start::near("local").with("samples", samples), Vec::new())
    } else {
        (Start::near("ping").with("samples", samples), vec![Start::far("pong")])
    };
    let ran = exchange(session, case, sender, servers, look)?;
    let records = samples::read(&file).map_err(Trouble::Failed)?;
    let _ = std::fs::remove_file(&file);
    let sent = records.len() as u64;
    let trips = samples::round_trips(&records, case.warmup).map_err(Trouble::Failed)?;
    if trips.rtt.is_empty() {
        return Err(Trouble::Failed(format!("no sample was answered: {sent} sent, {} lost", trips.lost)));
    }
    let other = if case.transport == Some(Transport::Thread) { Figure::Write } else { Figure::OneWay };
    Ok(Round {
        samples: trips.rtt.len() as u64,
        cpu_samples: sent,
        lost: trips.lost,
        out_of_order: trips.out_of_order,
        duplicates: figure(&ran.sender, "duplicates"),
        corrupt: figure(&ran.sender, "corrupt")
            + ran.servers.first().map_or(0, |pong| figure(pong, "corrupt")),
        times: vec![(Figure::RoundTrip, trips.rtt), (other, trips.one_way)],
        usage: ran.usage,
        wait: ran.wait,
        flaw: ran.flaw,
        ..Round::default()
    })
}
