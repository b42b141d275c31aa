//! The second process of the demo: subscribes, shows, and says in the end what has arrived.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use taut::{Config, DataReader, DomainParticipant, Error, Guid, GuidPrefix};
use taut_perf::terminal;
use taut_perf::words::counted;

use super::peers::{self, Running};
use super::table::{Screen, Shown};
use super::tally::{Origin, Tally};
use super::{Sent, TOPIC, named, qos};
use crate::failure::{End, Failure};
use crate::output;
use crate::types::Metric;

/// The time between two pictures: as fast as one reads.
const REFRESH: Duration = Duration::from_millis(200);
/// The time between two lines where no terminal is.
const PLAIN_REFRESH: Duration = Duration::from_secs(1);
/// How long the last samples may need after all was sent.
const DRAIN: Duration = Duration::from_secs(3);

/// Runs the process.
pub fn run(config: Config, seconds: u64, publisher: &str) -> Result<End, Failure> {
    let config = named(config, "taut demo subscriber");
    let participant = DomainParticipant::with_config(&config)?;
    let reader = participant.topic::<Metric>(TOPIC)?.reader(qos())?;
    let mut watched = start_subscribers(&config, seconds);
    let told = listen();
    let mut tally = Tally::default();
    let mut sources = Sources { participant: &participant, publisher, known: BTreeMap::new() };
    let mut screen = Screen::new(config.domain_id, seconds, terminal::draws(&std::io::stdout()));
    let refresh = if screen.is_live() { REFRESH } else { PLAIN_REFRESH };
    let mut next = Instant::now() + refresh;
    let sent = loop {
        take(&reader, next, &mut sources, &mut tally)?;
        if Instant::now() >= next {
            screen.show(&Shown { tally: &tally, watched: &watched })?;
            watched.iter_mut().for_each(Running::keep);
            next += refresh;
        }
        match told.try_recv() {
            Ok(sent) => break sent,
            Err(TryRecvError::Empty) => {}
            // The publisher is gone without a word.
            Err(TryRecvError::Disconnected) => {
                drop(screen);
                return Err(Failure::System("the publisher has ended before the demo did".to_owned()));
            }
        }
    };
    let end = Instant::now() + DRAIN;
    while !complete(&sent, &tally, &watched) && Instant::now() < end {
        take(&reader, Instant::now() + REFRESH, &mut sources, &mut tally)?;
    }
    if screen.is_live() {
        screen.show(&Shown { tally: &tally, watched: &watched })?;
        output::line("")?;
    }
    drop(screen);
    summary(&sent, &tally, &watched)
}

/// Starts the subscribers of the other vendors.
fn start_subscribers(config: &Config, seconds: u64) -> Vec<Running> {
    let start = |peer: peers::Peer| {
        let started = peer.subscriber(config, seconds);
        let told = |error| output::note(&format!("{}: its subscriber does not start: {error}", peer.vendor));
        started.map_err(told).ok()
    };
    peers::find().into_iter().filter_map(start).collect()
}

/// What the publisher says on stdin; disconnected when stdin ends.
fn listen() -> Receiver<Sent> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(sent) = serde_json::from_str(&line) else { continue };
            if tell.send(sent).is_err() {
                return;
            }
        }
    });
    told
}

/// Who wrote a sample.
struct Sources<'a> {
    participant: &'a DomainParticipant,
    publisher: &'a str,
    /// What discovery has told, so that it is asked once for each writer.
    known: BTreeMap<GuidPrefix, Origin>,
}

/// Sources that are remembered; more are looked up each time.
const MAX_KNOWN: usize = 1_024;

impl Sources<'_> {
    fn origin(&mut self, prefix: GuidPrefix) -> Origin {
        if let Some(origin) = self.known.get(&prefix) {
            return origin.clone();
        }
        let all = self.participant.discovered_participants();
        let writer = all.iter().find(|participant| participant.guid.prefix == prefix);
        let origin = match writer {
            _ if prefix.to_string() == self.publisher => Origin::Own,
            Some(writer) => Origin::Other(crate::list::vendor(writer)),
            None => return Origin::Other(prefix.to_string()),
        };
        if self.known.len() < MAX_KNOWN {
            self.known.insert(prefix, origin.clone());
        }
        origin
    }
}

/// Takes what comes until a time, however much that is: a publisher without a rate always has one more.
fn take(
    reader: &DataReader<Metric>,
    until: Instant,
    sources: &mut Sources<'_>,
    tally: &mut Tally,
) -> Result<(), Failure> {
    match reader.wait(until.saturating_duration_since(Instant::now())) {
        Ok(()) => {}
        Err(Error::Timeout(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    while let Some(sample) = reader.take_next()? {
        let writer = Guid::from_bytes(sample.info.publication_handle.0);
        let origin = sources.origin(writer.prefix);
        if let Some(metric) = sample.data {
            tally.add(&origin, writer, metric, taut::wall_clock_now().to_unix_ns());
        }
        if Instant::now() >= until {
            break;
        }
    }
    Ok(())
}

/// Samples of our publisher that another vendor's subscriber has seen.
fn seen_of_ours(tally: &Tally, watched: &Running) -> u64 {
    let seen = watched.seen();
    let ours = tally.rows.keys().filter(|key| key.origin == Origin::Own);
    ours.filter_map(|key| seen.received.get(&key.name)).sum()
}

fn complete(sent: &Sent, tally: &Tally, watched: &[Running]) -> bool {
    let of = |vendor: &str| tally.received(&Origin::Other(vendor.to_owned()));
    tally.received(&Origin::Own) >= sent.taut
        && sent.others.iter().all(|(vendor, sent)| of(vendor) >= *sent)
        && watched.iter().all(|watched| seen_of_ours(tally, watched) >= sent.taut)
}

fn summary(sent: &Sent, tally: &Tally, watched: &[Running]) -> Result<End, Failure> {
    let received = tally.received(&Origin::Own);
    let mut deliveries = vec![("Taut to Taut".to_owned(), sent.taut, received)];
    for watched in watched {
        deliveries.push((format!("Taut to {}", watched.vendor), sent.taut, seen_of_ours(tally, watched)));
        match sent.others.iter().find(|(vendor, _)| vendor == watched.vendor) {
            Some((vendor, count)) => {
                let came = tally.received(&Origin::Other(vendor.clone()));
                deliveries.push((format!("{vendor} to Taut"), *count, came));
            }
            None => output::note(&format!("the publisher of {} has not finished", watched.vendor)),
        }
    }
    output::line(&super::table::summary(&deliveries, tally))?;
    let lost = sent.taut.saturating_sub(received);
    output::line(&format!("demo: sent {}, received {received}, lost {lost}", sent.taut))?;
    if lost > 0 {
        return Err(Failure::System(format!(
            "lost {} of a reliable writer: please report it",
            counted(lost as usize, "sample")
        )));
    }
    Ok(End::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_over_however_much_is_there() {
        let config = Config { domain_id: 206, interfaces: vec!["lo".to_owned()], ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let topic = participant.topic::<Metric>(TOPIC).unwrap();
        let (writer, reader) = (topic.writer(qos()).unwrap(), topic.reader(qos()).unwrap());
        let long = Duration::from_secs(60);
        reader.wait_matched(long).unwrap();
        writer.wait_matched(long).unwrap();
        for seq in 0..3 {
            let (name, unit) = ("a".to_owned(), String::new());
            writer.write(&Metric { name, seq, sent_unix_ns: 0, value: 0.0, unit }).unwrap();
        }
        writer.wait_for_acknowledgments(long).unwrap();
        let mut sources = Sources { participant: &participant, publisher: "", known: BTreeMap::new() };
        let mut tally = Tally::default();
        let mut received = || {
            take(&reader, Instant::now(), &mut sources, &mut tally).unwrap();
            tally.sources.values().map(|source| source.received).sum::<u64>()
        };
        assert_eq!([received(), received(), received(), received()], [1, 2, 3, 3]);
    }
}
