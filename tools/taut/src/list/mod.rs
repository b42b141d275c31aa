//! `taut ls`: what there is in a domain, and who talks with whom.
//!
//! Looks at the domain for a while as a participant without endpoints, and leaves itself out. What
//! matches is worked out here with the rules that every participant uses, and on which path from what both
//! sides announce.

mod matching;
mod path;
mod qos;
mod text;

use std::time::Instant;

use serde_json::{Value, json};
use taut::{DomainParticipant, EndpointKind, EndpointSummary, Locator, ParticipantSummary};
use taut_perf::output::Grace;

use crate::args::Network;
use crate::failure::{End, Failure};
use crate::output;
use crate::stop::{self, Until};
use crate::subscribe::where_to_look;

pub use matching::Pair;
pub use text::title;

/// All that is known of a domain, in the order it is shown.
pub struct Domain {
    pub domain_id: u32,
    pub participants: Vec<ParticipantSummary>,
    /// By topic, writers first.
    pub endpoints: Vec<EndpointSummary>,
}

impl Domain {
    /// Every writer with every reader of its topic.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        matching::pairs(&self.participants, &self.endpoints)
    }
}

/// Runs the command.
pub fn run(network: &Network, seconds: f64, json: bool) -> Result<End, Failure> {
    let domain_id = network.config()?.domain_id;
    let participant = network.join("ls")?;
    let begin = Instant::now();
    stop::sleep(Until::after(Some(seconds)));
    // Ctrl-C ends it before its time.
    let looked = if stop::requested() { tenths(begin.elapsed().as_secs_f64()).min(seconds) } else { seconds };
    let domain = look(&participant, domain_id);
    if json {
        let mut grace = Grace::default();
        for line in lines(&domain) {
            if grace.is_over(stop::requested()) {
                output::note("the list is cut short: it was to end before it was whole");
                break;
            }
            output::json(&line)?;
        }
    } else {
        let page = text::page(&domain);
        let width = output::width().unwrap_or(usize::MAX);
        let lines: Vec<String> = page.lines().flat_map(|line| output::folded(line, width)).collect();
        output::line(&lines.join("\n"))?;
        if domain.participants.is_empty() {
            output::note(&format!("nobody was found in {looked} s; {}", where_to_look(&participant)));
        }
    }
    Ok(End::Done)
}

/// As precise as a person wants it.
fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn look(participant: &DomainParticipant, domain_id: u32) -> Domain {
    let mut participants = participant.discovered_participants();
    participants.retain(|participant| !participant.own);
    participants.sort_by_key(|participant| participant.guid);
    let mut endpoints = participant.discovered_endpoints();
    endpoints.retain(|endpoint| !endpoint.own && !endpoint.guid.entity.is_builtin());
    endpoints.sort_by_key(|endpoint| {
        let reader = endpoint.kind == EndpointKind::Reader;
        (endpoint.topic_name.clone(), endpoint.type_name.clone(), reader, endpoint.guid)
    });
    Domain { domain_id, participants, endpoints }
}

/// Who made a participant, for people.
pub fn vendor(participant: &ParticipantSummary) -> String {
    match property(participant, "taut.version") {
        Some(version) => format!("Taut {version}"),
        None if participant.vendor.name() == "unknown" => format!("vendor {}", participant.vendor),
        None => participant.vendor.name().to_owned(),
    }
}

/// The value of a property that a participant has.
fn property<'a>(participant: &'a ParticipantSummary, name: &str) -> Option<&'a str> {
    let found = participant.properties.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

/// Host, program and process id.
pub fn place(participant: &ParticipantSummary) -> (Option<&str>, Option<&str>, Option<&str>) {
    let [program, pid, host] = participant.process();
    (host, program, pid)
}

fn texts(locators: &[Locator]) -> Vec<String> {
    locators.iter().map(Locator::to_string).collect()
}

fn kind_name(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Writer => "writer",
        EndpointKind::Reader => "reader",
    }
}

/// One object for each participant, topic, endpoint and pair of a writer and a reader, each made when it is asked for.
fn lines(domain: &Domain) -> impl Iterator<Item = Value> {
    let participants = domain.participants.iter().map(|participant| {
        let (host, process, pid) = place(participant);
        json!({
            "kind": "participant",
            "domain": domain.domain_id,
            "guid": participant.guid.to_string(),
            "name": participant.name,
            "vendor": vendor(participant),
            "vendor_id": participant.vendor.to_string(),
            "host": host,
            "process": process,
            "pid": pid,
            "lease_duration": participant.lease_duration.to_string(),
            "unicast": texts(&participant.unicast),
            "multicast": texts(&participant.multicast),
            "metatraffic": texts(&participant.metatraffic),
        })
    });
    let topics = topics(domain).into_iter().map(|endpoints| {
        let count = |kind| endpoints.iter().filter(|endpoint| endpoint.kind == kind).count();
        json!({
            "kind": "topic",
            "name": endpoints[0].topic_name,
            "type": endpoints[0].type_name,
            "writers": count(EndpointKind::Writer),
            "readers": count(EndpointKind::Reader),
        })
    });
    let endpoints = domain.endpoints.iter().map(|endpoint| {
        json!({
            "kind": kind_name(endpoint.kind),
            "guid": endpoint.guid.to_string(),
            "topic": endpoint.topic_name,
            "type": endpoint.type_name,
            "qos": qos::shown(endpoint).into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "unicast": texts(&endpoint.unicast),
            "multicast": texts(&endpoint.multicast),
        })
    });
    let pairs = domain.pairs().map(|pair| {
        let path = pair.outcome.as_ref().ok();
        json!({
            "kind": "match",
            "topic": pair.writer.topic_name,
            "writer": pair.writer.guid.to_string(),
            "reader": pair.reader.guid.to_string(),
            "matched": path.is_some(),
            "why_not": pair.outcome.as_ref().err().map(ToString::to_string),
            "path": path.and_then(|(path, _)| *path).map(path::name),
            "path_why": path.and_then(|(_, why)| *why),
        })
    });
    participants.chain(topics).chain(endpoints).chain(pairs)
}

/// The endpoints of each topic and type.
pub fn topics(domain: &Domain) -> Vec<&[EndpointSummary]> {
    let same = |a: &EndpointSummary, b: &EndpointSummary| {
        (&a.topic_name, &a.type_name) == (&b.topic_name, &b.type_name)
    };
    domain.endpoints.chunk_by(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_pairs_are_made_one_by_one() {
        let endpoints = matching::tests::endpoints(8_192, 8_192);
        let domain = Domain { domain_id: 0, participants: vec![], endpoints };
        let mut lines = lines(&domain).skip_while(|line| line["kind"] != "match");
        let first = lines.next().unwrap();
        assert_eq!((&first["matched"], &first["topic"]), (&true.into(), &"Square".into()));
        assert_eq!(lines.size_hint().1, None, "nobody knows how many there are before they are made");
    }
}
