//! A round of round trips: between two processes, or inside of one.

use crate::args::Transport;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::figure;
use crate::samples;
use crate::session::{Session, Start, Told, Trouble};
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
    let mut times = vec![(Figure::RoundTrip, trips.rtt)];
    let other = if case.transport == Some(Transport::Thread) { Figure::Write } else { Figure::OneWay };
    times.push((other, trips.one_way));
    if case.period_ns > 0 {
        times.push((Figure::Overslept, overslept(&records, case, figure(&ran.sender, "start_ns"))?));
    }
    Ok(Round {
        samples: times[0].1.len() as u64,
        cpu_samples: sent,
        lost: trips.lost,
        late: figure(&ran.sender, "late"),
        behind_ns: (case.period_ns > 0).then(|| figure(&ran.sender, "behind_ns") as f64),
        out_of_order: trips.out_of_order,
        duplicates: figure(&ran.sender, "duplicates"),
        corrupt: figure(&ran.sender, "corrupt")
            + ran.servers.first().map_or(0, |pong| figure(pong, "corrupt")),
        flood_per_s: flood_per_s(&ran.beside),
        times,
        usage: ran.usage,
        wait: ran.wait,
        flaw: ran.flaw,
        ..Round::default()
    })
}

/// What the machine kept from each sample of an open loop. An adapter that does not say when its first one was due counts
/// by older rules: its line would have the number of those of today.
fn overslept(records: &[[u64; 3]], case: &Case, start_ns: u64) -> Result<Vec<(u64, u64)>, Trouble> {
    if start_ns == 0 {
        return Err(Trouble::failed(
            "the adapter times open loops by older rules: `make peers` builds it anew",
        ));
    }
    samples::overslept(records, case.warmup, start_ns, case.period_ns).map_err(Trouble::Failed)
}

/// What the sinks of a flood took a second, all together; nothing without a flood.
fn flood_per_s(beside: &[Told]) -> Option<f64> {
    let sinks = beside.iter().filter(|(role, _)| role == "sink").map(|(_, figures)| {
        let span_ns = figure(figures, "last_ns").saturating_sub(figure(figures, "first_ns"));
        if span_ns == 0 { 0.0 } else { figure(figures, "received") as f64 * 1e9 / span_ns as f64 }
    });
    beside.iter().any(|(role, _)| role == "sink").then(|| sinks.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flood_is_what_all_sinks_took() {
        let of =
            |role: &str, figures: serde_json::Value| (role.to_string(), figures.as_object().unwrap().clone());
        let sink = |received: u64| {
            of("sink", serde_json::json!({"received": received, "first_ns": 1_000, "last_ns": 500_001_000}))
        };
        assert_eq!(
            flood_per_s(&[sink(10_000), of("flood", serde_json::json!({})), sink(5_000)]),
            Some(30_000.0)
        );
        assert_eq!(flood_per_s(&[of("daemon", serde_json::json!({}))]), None);
        assert_eq!(flood_per_s(&[of("sink", serde_json::json!({"received": 0}))]), Some(0.0));
    }
}
