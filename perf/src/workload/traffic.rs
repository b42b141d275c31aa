//! One process that sends and others that serve it, from their start to their end.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::accounting::Usage;
use crate::case::Case;
use crate::contract::figure;
use crate::session::{Session, Start, Told, Trouble};
use crate::workload::Round;

/// Starting two processes, matching them and ending them: for the plan only. Some need 0.1 s, some 2 s.
pub const STARTING_S: f64 = 0.2;

/// A round trip or a write when nothing else is known: for the plan only.
const SAMPLE_S: f64 = 40e-6;

/// What is granted to a round beyond its own time: the warm-up, lost samples, a last acknowledgement (5 s by the
/// contract), a machine that is busy elsewhere. Lower, it fails peers that are slow and not broken; higher,
/// each stall costs so much of an hour.
const STOP_MARGIN: Duration = Duration::from_secs(15);

/// So many threads of a participant write at once: alone, as many as there are cores, and more.
const THREADS: [u32; 3] = [1, 2, 4];

/// How many threads write, in one case each: one of a workload's sizes has all of [`THREADS`].
pub fn threads(all: bool) -> Vec<u32> {
    THREADS.into_iter().filter(|threads| all || *threads == 1).collect()
}

/// The name of a case with several of them.
pub fn of_threads(threads: u32) -> String {
    format!("{threads} threads")
}

/// Is a case called so?
pub fn is_of_threads(label: &str) -> bool {
    label.ends_with(" threads")
}

/// The roles of who writes and who takes.
pub fn one_way(threads: u32) -> &'static [&'static str] {
    if threads == 1 { &["pub", "sub"] } else { &["crowd", "sub"] }
}

/// The figures of all processes.
pub struct Ran {
    /// The sender's.
    pub sender: Map<String, Value>,
    /// The others'.
    pub servers: Vec<Map<String, Value>>,
    /// Of those that ran beside it, by their role.
    pub beside: Vec<Told>,
    /// What all used between `go` and `stop`.
    pub usage: Usage,
    /// How the side that waits for samples really waited.
    pub wait: String,
    /// What went wrong after the figures were complete.
    pub flaw: Option<String>,
}

/// What became of the samples that one process has sent to another one, without their times.
pub fn delivered(sender: &Map<String, Value>, taken: &Map<String, Value>) -> Round {
    let (sent, received) = (figure(sender, "sent"), figure(taken, "received"));
    Round {
        samples: received,
        cpu_samples: sent,
        lost: sent.saturating_sub(received),
        expected: Some(sent),
        out_of_order: figure(taken, "out_of_order"),
        duplicates: figure(taken, "duplicates"),
        corrupt: figure(taken, "corrupt"),
        ..Round::default()
    }
}

/// The same where something is to arrive.
pub fn some_delivered(sender: &Map<String, Value>, taken: &Map<String, Value>) -> Result<Round, Trouble> {
    let of = delivered(sender, taken);
    if of.samples == 0 {
        return Err(Trouble::Failed(format!("nothing was received of {} samples", of.cpu_samples)));
    }
    Ok(of)
}

/// Until when the sender must have said `stop`.
pub fn stop_limit(case: &Case) -> Duration {
    let paced_ms = |samples: u64| samples.saturating_mul(case.period_ns) / 1_000_000;
    let measured_ms = if case.duration_ms > 0 { case.duration_ms } else { paced_ms(case.count) };
    STOP_MARGIN + Duration::from_millis(paced_ms(case.warmup) + measured_ms)
}

/// The time between `go` and `stop`, roughly.
pub fn measuring_s(case: &Case) -> f64 {
    let each_s = if case.period_ns > 0 { case.period_ns as f64 / 1e9 } else { SAMPLE_S };
    let counted_s = case.count as f64 * each_s;
    let timed_s = case.duration_ms as f64 / 1e3;
    // A closed loop that has a time goes on until it is over, however many samples that are.
    let measured_s = match case.duration_ms {
        0 => counted_s,
        _ if case.is_timed() => timed_s,
        _ => counted_s.min(timed_s),
    };
    case.warmup as f64 * each_s + measured_s
}

/// Runs a sender with its servers, and calls `look` often while it sends.
pub fn exchange(
    mut session: Session,
    case: &Case,
    sender: Start,
    servers: Vec<Start>,
    look: &mut dyn FnMut(&Session),
) -> Result<Ran, Trouble> {
    let remotes = servers.len().to_string();
    let mut ids = Vec::new();
    for server in servers {
        ids.push(session.start(server)?);
    }
    let mut server_wait = None;
    for id in &ids {
        server_wait = Some(session.ready(*id)?);
    }
    let sender = session.start(sender.with("remotes", remotes))?;
    let own_wait = session.ready(sender)?;
    let before = session.accounts();
    session.say(sender, "go");
    session.expect_with(sender, "stop", stop_limit(case), look)?;
    let mut usage = session.accounts().since(&before);
    session.say(sender, "go");
    let sent = session.done(sender)?;
    for id in &ids {
        session.say(*id, "end");
    }
    let mut figures = Vec::new();
    for id in &ids {
        figures.push(session.done(*id)?);
    }
    let beside = session.end_beside()?;
    let flaw = session.finish()?;
    usage.allocations = sent.get("allocations").and_then(Value::as_u64);
    Ok(Ran { sender: sent, servers: figures, beside, usage, wait: server_wait.unwrap_or(own_wait), flaw })
}
