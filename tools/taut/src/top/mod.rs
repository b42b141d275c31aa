//! `taut top`: the response times of every Taut participant of a domain, second by second.
//!
//! Makes a reader of the reports' topic, which has the participants report; leaves itself out.

mod prometheus;
mod scrape;
mod table;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use taut::{
    ClassReport, DataReader, DomainParticipant, Guid, ParticipantReport, ParticipantSummary, Qos,
    REPORT_TOPIC,
};
use taut_perf::{terminal, values};

use crate::args::Network;
use crate::failure::{End, Failure};
use crate::list::{place, vendor};
use crate::output;
use crate::picture::Picture;
use crate::stop::{self, Until};

use scrape::Scrapes;

/// The time between two pictures, which is that between two reports of a participant. *Units*: s.
const PERIOD: f64 = 1.0;
/// Reports that may come in that time: two, and some that were held up.
const DEPTH: u32 = 8;
/// A participant that was not heard for so long is silent: its reports are lost, or nobody drives it. Lower and one
/// lost datagram looks like silence, higher and silence is seen later.
const SILENT: Duration = Duration::from_millis(2_500);
/// How long the first picture waits at most for two reports of everybody: there are no rates without. Lower and who was
/// found late has dashes, higher and one whose reports are lost holds up the picture.
const FIRST: Duration = Duration::from_secs(4);
/// The time between two looks meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// What `top` takes.
#[derive(Args)]
pub struct TopArguments {
    /// End after so many pictures, one a second [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    /// Show every class of the participants whose name, host, process id or GUID prefix begins with this
    #[arg(long, value_name = "PREFIX")]
    participant: Option<String>,
    /// Print a JSON object for each participant and second
    #[arg(long)]
    json: bool,
    /// Print once, after a second, what Prometheus reads of all participants
    #[arg(long, conflicts_with_all = ["json", "count"])]
    prometheus: bool,
    /// Answer HTTP requests for /metrics there instead of printing it; PORT alone is on this machine only
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::listen_address, requires = "prometheus")]
    listen: Option<SocketAddr>,
}

/// One participant.
pub struct Row {
    about: ParticipantSummary,
    /// When it was first seen, and heard last.
    found: Instant,
    heard: Option<Instant>,
    /// The last report, and the one that rates count from.
    newest: Option<ParticipantReport>,
    before: Option<ParticipantReport>,
    /// Its longest step of the reports between.
    longest: Option<(String, u64)>,
    /// Is all of this in a picture already? It stays until there is something newer.
    drawn: bool,
}

/// What has changed between two reports.
pub struct Rates {
    pub steps: f64,
    /// The share of a processor that steps took.
    pub busy: f64,
    pub datagrams_in: f64,
    pub datagrams_out: f64,
    pub refused: f64,
}

impl Row {
    fn new(about: ParticipantSummary) -> Row {
        let found = Instant::now();
        Row { about, found, heard: None, newest: None, before: None, longest: None, drawn: false }
    }

    /// Takes the next report.
    fn note(&mut self, report: ParticipantReport) {
        self.heard = Some(Instant::now());
        let drawn = std::mem::take(&mut self.drawn);
        if drawn || self.before.is_none() {
            self.before = self.newest.take();
        }
        self.longest.take_if(|_| drawn);
        let longest = report.classes.iter().max_by_key(|of| of.recent_longest_ns);
        let longest = longest.map(|of| (of.class.clone(), of.recent_longest_ns));
        if longest.as_ref().map(|(_, ns)| *ns) > self.longest.as_ref().map(|(_, ns)| *ns) {
            self.longest = longest;
        }
        self.newest = Some(report);
    }

    /// Per second, between the reports of the last picture and of this one.
    fn rates(&self) -> Option<Rates> {
        let (old, new) = (self.before.as_ref()?, self.newest.as_ref()?);
        let span = new.monotonic_ns.checked_sub(old.monotonic_ns).filter(|span| *span > 0)? as f64 / 1e9;
        let rate = |count: fn(&ParticipantReport) -> u64| count(new).saturating_sub(count(old)) as f64 / span;
        Some(Rates {
            steps: rate(|report| sum(report, |of| of.steps)),
            busy: rate(|report| sum(report, |of| of.busy_ns)) / 1e9,
            datagrams_in: rate(|report| report.datagrams_in),
            datagrams_out: rate(|report| report.datagrams_out),
            refused: rate(|report| report.refused),
        })
    }

    /// For how long nothing was heard of it, if that is too long.
    fn silence(&self) -> Option<Duration> {
        Some(self.heard.unwrap_or(self.found).elapsed()).filter(|silence| *silence >= SILENT)
    }

    /// Are there rates to come?
    fn is_awaited(&self) -> bool {
        self.rates().is_none() && self.silence().is_none()
    }

    /// Is it meant by what the user has typed?
    fn is_meant(&self, wanted: &str) -> bool {
        let (host, process, pid) = place(&self.about);
        let prefix = self.about.guid.prefix.to_string();
        let names = [Some(self.about.name.as_str()), host, process, pid, Some(prefix.as_str())];
        names.into_iter().flatten().any(|name| name.starts_with(wanted))
    }
}

/// Of all classes; a peer may say what it likes.
fn sum(report: &ParticipantReport, of: fn(&ClassReport) -> u64) -> u64 {
    report.classes.iter().map(of).fold(0, u64::saturating_add)
}

/// All that was heard so far.
#[derive(Default)]
pub struct Domain {
    pub domain_id: u32,
    /// How many participants of other vendors there are.
    pub others: usize,
    /// By GUID.
    rows: BTreeMap<[u8; 16], Row>,
}

impl Domain {
    /// Learns who is there and what they have reported since the last time.
    fn look(
        &mut self,
        participant: &DomainParticipant,
        reader: &DataReader<ParticipantReport>,
    ) -> taut::Result<()> {
        let mut there = participant.discovered_participants();
        there.retain(|about| !about.own);
        let is_of_taut = |about: &ParticipantSummary| vendor(about).starts_with("Taut ");
        self.others = there.iter().filter(|about| !is_of_taut(about)).count();
        there.retain(is_of_taut);
        let there: BTreeMap<_, _> = there.into_iter().map(|about| (about.guid.to_bytes(), about)).collect();
        self.rows.retain(|guid, _| there.contains_key(guid));
        for (guid, about) in there {
            let row = self.rows.entry(guid).or_insert_with(|| Row::new(about.clone()));
            row.about = about;
        }
        for sample in reader.take()? {
            let writer = Guid::from_bytes(sample.info.publication_handle.0);
            sample.data.into_iter().for_each(|report| self.hear(writer, report));
        }
        Ok(())
    }

    /// Takes a report of the participant whose writer this is; of another one nobody can tell.
    fn hear(&mut self, writer: Guid, report: ParticipantReport) {
        if Guid::from_bytes(report.participant).prefix != writer.prefix {
            return;
        }
        if let Some(row) = self.rows.get_mut(&report.participant) {
            row.note(report);
        }
    }

    /// A picture was drawn: what comes is for the next.
    fn start_anew(&mut self) {
        self.rows.values_mut().for_each(|row| row.drawn = true);
    }
}

/// Runs the command.
pub fn run(network: &Network, arguments: &TopArguments) -> Result<End, Failure> {
    let mut config = network.config_as("top")?;
    // It would only tell of itself.
    config.report = false;
    let participant = DomainParticipant::with_config(&config)?;
    let topic = participant.topic::<ParticipantReport>(REPORT_TOPIC)?;
    let reader = topic.reader(Qos::default().best_effort().keep_last(DEPTH))?;
    let mut domain = Domain { domain_id: config.domain_id, ..Domain::default() };
    let mut look = |domain: &mut Domain| domain.look(&participant, &reader);
    match arguments.listen {
        Some(at) => answer_scrapes(&mut Scrapes::new(at)?, &mut domain, arguments, &mut look)?,
        None if arguments.prometheus => {
            stop::sleep(Until::after(Some(PERIOD)));
            look(&mut domain)?;
            let text = prometheus::text(&domain, arguments.participant.as_deref());
            output::line(text.trim_end())?;
        }
        None => draw_pictures(&mut domain, arguments, &mut look)?,
    }
    Ok(End::Done)
}

/// Learns what is new.
type Look<'l> = &'l mut dyn FnMut(&mut Domain) -> taut::Result<()>;

fn draw_pictures(domain: &mut Domain, arguments: &TopArguments, look: Look<'_>) -> Result<(), Failure> {
    let is_live = !arguments.json && terminal::draws(&std::io::stdout());
    let mut picture = is_live.then(|| Picture::new(table::HEADING));
    // Who sees one picture is to see rates. Where it is drawn again each second, the next one has them.
    let mut has_rates = is_live && arguments.count.is_none();
    let wanted = arguments.participant.as_deref();
    let (mut drawn, mut is_told) = (0, false);
    while !stop::requested() && arguments.count.is_none_or(|count| drawn < count) {
        stop::sleep(Until::after(Some(PERIOD)));
        if stop::requested() {
            break;
        }
        look(domain)?;
        if !std::mem::replace(&mut has_rates, true) {
            await_rates(domain, look)?;
        }
        if arguments.json {
            let lines = table::objects(domain, wanted);
            if lines.is_empty() && !std::mem::replace(&mut is_told, true) {
                output::note(&table::nobody(domain, wanted));
            }
            lines.iter().try_for_each(output::json)?;
        } else {
            show(domain, wanted, &mut picture)?;
        }
        domain.start_anew();
        drawn += 1;
    }
    Ok(())
}

/// Looks until everybody who reports has done so twice.
fn await_rates(domain: &mut Domain, look: Look<'_>) -> Result<(), Failure> {
    let end = Instant::now() + FIRST;
    while domain.rows.values().any(Row::is_awaited) && Instant::now() < end && !stop::requested() {
        stop::sleep(Until::at(Instant::now() + LOOK));
        look(domain)?;
    }
    Ok(())
}

fn answer_scrapes(
    scrapes: &mut Scrapes,
    domain: &mut Domain,
    arguments: &TopArguments,
    look: Look<'_>,
) -> Result<(), Failure> {
    output::line(&scrapes.url)?;
    let mut looked = Instant::now();
    while !stop::requested() {
        scrapes.serve(&mut || {
            look(domain)?;
            Ok(prometheus::text(domain, arguments.participant.as_deref()))
        })?;
        // When a report was heard tells who is silent, also if nobody asks for long.
        if looked.elapsed().as_secs_f64() >= PERIOD {
            look(domain)?;
            looked = Instant::now();
        }
    }
    Ok(())
}

fn show(domain: &Domain, wanted: Option<&str>, picture: &mut Option<Picture>) -> Result<(), Failure> {
    let size @ (width, height) = Picture::size();
    let room = picture.is_some().then_some(width);
    let mut lines = match wanted {
        Some(wanted) => table::details(domain, wanted, room),
        None => table::lines(domain, room),
    };
    let Some(picture) = picture else {
        lines.push(String::new());
        return Ok(output::line(lines.join("\n").trim_end_matches('\n'))?);
    };
    // The last line of the terminal is where the cursor stays.
    let room = height.saturating_sub(1).max(1);
    if lines.len() > room {
        let hidden = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("… {hidden} more"));
    }
    Ok(picture.draw(&lines, size)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::prometheus::tests::{domain, report, row};

    #[test]
    fn nobody_reports_of_another_participant() {
        let mut domain = domain(vec![row(1, "pump", None), row(2, "liar", None)]);
        let [pump, liar] = [1, 2].map(|number| Guid::from_bytes([number; 16]));
        let about_pump =
            |datagrams_in| ParticipantReport { participant: pump.to_bytes(), datagrams_in, ..report() };
        for (writer, datagrams_in) in [(pump, 7), (liar, 8)] {
            domain.hear(writer, about_pump(datagrams_in));
            let told = domain.rows[&pump.to_bytes()].newest.as_ref().map(|report| report.datagrams_in);
            assert_eq!(told, Some(7));
        }
        assert!(domain.rows[&liar.to_bytes()].newest.is_none());
    }
}
