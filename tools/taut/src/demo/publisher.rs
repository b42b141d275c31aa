//! The first process of the demo: publishes, and owns the other processes.

use std::io::{ErrorKind, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use taut::{Config, DataWriter, DomainParticipant, Error};

use super::children::Owned;
use super::peers::{self, Peer, Running};
use super::telemetry::Telemetry;
use super::{RATE_HZ, Sent, TOPIC, UNREAD, named, qos};
use crate::args::Network;
use crate::failure::{End, Failure};
use crate::output;
use crate::stop::{self, Until};
use crate::types::Metric;

/// How long the others may need to join. Less starts without a slow one, and its samples are missing.
const JOIN_S: f64 = 10.0;
/// Ticks between two looks at the other processes.
const LOOK_TICKS: u64 = 10;
/// For so long a publisher that fails is started again: later it would still run when the demo ends.
const JOINING_S: u64 = 3;
/// How long the last samples may need to be acknowledged.
const ACKNOWLEDGE_S: f64 = 5.0;
/// How long a process may need to end.
const LEAVE: Duration = Duration::from_secs(10);

/// Runs the process.
pub fn run(network: &Network, config: Config, seconds: u64) -> Result<End, Failure> {
    let config = named(config, "taut demo publisher");
    let participant = DomainParticipant::with_config(&config)?;
    let writer = participant.topic::<Metric>(TOPIC)?.writer(qos())?;
    let peers = peers::find();
    introduce(&peers);
    let mut subscriber = start_subscriber(network, &config, seconds, &writer)?;
    let readers = 1 + peers.len();
    let mut others = start_publishers(&peers, &config, seconds, readers);
    wait_for_readers(&writer, readers, &mut subscriber, &mut others)?;
    crate::publish::settle();
    let taut = publish(&writer, seconds, &mut subscriber, &mut others)?;
    // Ours are told by their numbers in any case: what was not acknowledged shows up as lost.
    let told = Until::after(Some(ACKNOWLEDGE_S));
    let _ = stop::wait(told, |slice| writer.wait_for_acknowledgments(slice));
    let longest = if stop::requested() { Duration::ZERO } else { LEAVE };
    others.retain_mut(|other| other.finished(longest));
    let others = others.iter().map(|other| (other.vendor.to_owned(), seconds * RATE_HZ)).collect();
    finish(subscriber, &Sent { taut, others })
}

fn start_publishers(peers: &[Peer], config: &Config, seconds: u64, readers: usize) -> Vec<Running> {
    let start = |peer: &Peer| {
        let started = peer.publisher(config, seconds, readers);
        let told = |error| output::note(&format!("{}: its publisher does not start: {error}", peer.vendor));
        started.map_err(told).ok()
    };
    peers.iter().filter_map(start).collect()
}

fn introduce(peers: &[Peer]) {
    if peers.is_empty() {
        output::note("no programs of other vendors found (interop/build.sh builds them): Taut alone");
    } else {
        let vendors: Vec<&str> = peers.iter().map(|peer| peer.vendor).collect();
        output::note(&format!("joined by {}", vendors.join(" and ")));
    }
}

fn start_subscriber(
    network: &Network,
    config: &Config,
    seconds: u64,
    writer: &DataWriter<Metric>,
) -> Result<Owned, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::System(format!("the path of this program is not known: {error}")))?;
    let mut command = Command::new(program);
    command.args(["demo", "--role", "subscriber", "--seconds", &seconds.to_string()]);
    command.args(["--publisher", &writer.guid().prefix.to_string()]);
    command.args(["--domain", &config.domain_id.to_string()]);
    network.hand_on(&mut command);
    for interface in &config.interfaces {
        command.args(["--interface", interface]);
    }
    command.stdin(Stdio::piped());
    Owned::spawn(&mut command)
        .map_err(|error| Failure::System(format!("the subscriber does not start: {error}")))
}

/// Waits for all readers; without all of them it begins when the time is up, without ours not at all.
fn wait_for_readers(
    writer: &DataWriter<Metric>,
    readers: usize,
    subscriber: &mut Owned,
    others: &mut [Running],
) -> Result<(), Failure> {
    let until = Until::after(Some(JOIN_S));
    let all = stop::wait(until, |slice| {
        if subscriber.ended().is_some() {
            return Err(Error::PreconditionNotMet("the subscriber has ended".to_owned()));
        }
        others.iter_mut().for_each(Running::keep);
        writer.wait_matched_count(readers, slice)
    });
    match all {
        Err(Error::Timeout(_)) if stop::requested() => Ok(()),
        Err(Error::Timeout(_)) if writer.publication_matched_status().current_count > 0 => {
            output::note("not everybody has joined: starting without them");
            Ok(())
        }
        Err(Error::Timeout(_)) => Err(Failure::System(format!(
            "the subscriber was not found in {JOIN_S} s: does the interface carry multicast? `--interface` chooses another"
        ))),
        Err(Error::PreconditionNotMet(_)) => Err(gone(subscriber)),
        other => Ok(other?),
    }
}

/// Why there is no subscriber any more: nobody reads what it shows, or it has said what is wrong, if it could.
fn gone(subscriber: &mut Owned) -> Failure {
    let status = subscriber.wait(LEAVE);
    if status.is_some_and(is_unread) {
        return Failure::Output(ErrorKind::BrokenPipe.into());
    }
    let how = status.map_or("it is about to end".to_owned(), |status| status.to_string());
    Failure::System(format!(
        "the subscriber has ended before the demo did ({how}); what it says above is the reason, if it says anything"
    ))
}

fn is_unread(status: ExitStatus) -> bool {
    status.code() == Some(UNREAD.into())
}

/// Publishes at the rate; gives the number of samples.
fn publish(
    writer: &DataWriter<Metric>,
    seconds: u64,
    subscriber: &mut Owned,
    others: &mut [Running],
) -> Result<u64, Failure> {
    let mut telemetry = Telemetry::new()?;
    let period = Duration::from_secs(1) / RATE_HZ as u32;
    let begin = Instant::now();
    let mut sent = 0;
    for tick in 0..seconds * RATE_HZ {
        stop::sleep(Until::at(begin + period * u32::try_from(tick).unwrap_or(u32::MAX)));
        if stop::requested() {
            break;
        }
        if tick % LOOK_TICKS == 0 && subscriber.ended().is_some() {
            return Err(gone(subscriber));
        }
        if tick % LOOK_TICKS == 0 && tick < JOINING_S * RATE_HZ {
            others.iter_mut().for_each(Running::keep);
        }
        for mut metric in telemetry.next()? {
            metric.sent_unix_ns = taut::wall_clock_now().to_unix_ns();
            if !crate::publish::write(writer, &metric)? {
                return Ok(sent);
            }
            sent += 1;
        }
    }
    Ok(sent)
}

/// Tells the subscriber what was sent, so that it can say what has arrived.
fn finish(mut subscriber: Owned, sent: &Sent) -> Result<End, Failure> {
    let line = serde_json::to_string(sent).map_err(std::io::Error::other)?;
    if let Some(mut stdin) = subscriber.0.stdin.take()
        && writeln!(stdin, "{line}").is_err()
    {
        return Err(gone(&mut subscriber));
    }
    match subscriber.wait(LEAVE) {
        Some(status) if status.success() => Ok(End::Done),
        Some(status) if is_unread(status) => Err(Failure::Output(ErrorKind::BrokenPipe.into())),
        Some(_) => Err(Failure::Told),
        None => Err(Failure::System("the subscriber does not end: it was killed".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_subscriber_that_nobody_reads_ends_the_demo_without_a_word() {
        let ends_with = |code: u8| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exit {code}")]).stdin(Stdio::piped());
            Owned::spawn(&mut command).unwrap()
        };
        let is_silent = |failure: &Failure| matches!(failure, Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe);
        assert!(is_silent(&gone(&mut ends_with(UNREAD))));
        assert!(is_silent(&finish(ends_with(UNREAD), &Sent { taut: 1, others: Vec::new() }).unwrap_err()));
        for code in [0, 1, 2] {
            let failure = gone(&mut ends_with(code));
            assert!(
                !is_silent(&failure) && failure.to_string().contains(&format!("exit status: {code}")),
                "{failure}"
            );
        }
    }
}
