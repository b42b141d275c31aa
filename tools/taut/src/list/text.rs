//! A domain as a page for people.

use std::fmt::Write;

use serde_json::Value;
use taut::{Guid, GuidPrefix, ParticipantSummary};
use taut_perf::words::counted;

use crate::output::escaped;

use super::path::{self, Expected};
use super::{Domain, Pair, kind_name, place, qos, topics, vendor};

/// The page.
pub fn page(domain: &Domain) -> String {
    let mut page = String::new();
    let topics = topics(domain);
    let _ = writeln!(
        page,
        "Domain {}: {}, {}, {}",
        domain.domain_id,
        counted(domain.participants.len(), "participant"),
        counted(topics.len(), "topic"),
        counted(domain.endpoints.len(), "endpoint"),
    );
    for participant in &domain.participants {
        write_participant(&mut page, participant);
    }
    for endpoints in topics {
        let _ = writeln!(
            page,
            "\nTopic {}  {}",
            escaped(&endpoints[0].topic_name),
            escaped(&endpoints[0].type_name)
        );
        let names: Vec<String> = endpoints.iter().map(|endpoint| name_of(domain, endpoint.guid)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (endpoint, name) in endpoints.iter().zip(&names) {
            let policies: Vec<String> =
                qos::shown(endpoint).into_iter().map(|(name, text)| policy(name, &text)).collect();
            let _ = writeln!(page, "  {}  {name:width$}  {}", kind_name(endpoint.kind), policies.join(", "));
        }
    }
    let refused: Vec<_> = domain.pairs.iter().filter(|pair| pair.refused.is_some()).collect();
    if !domain.pairs.is_empty() {
        let matched = domain.pairs.len() - refused.len();
        let _ = writeln!(page, "\n{} of {} matched", matched, counted(domain.pairs.len(), "pair"));
    }
    write_paths(&mut page, &domain.pairs);
    for pair in refused {
        let _ = writeln!(
            page,
            "  not matched on {}: {} and {}: {}",
            escaped(&pair.topic_name),
            name_of(domain, pair.writer),
            name_of(domain, pair.reader),
            escaped(pair.refused.as_deref().unwrap_or_default())
        );
    }
    page
}

/// How many of the matched pairs go which way, the best first.
fn write_paths(page: &mut String, pairs: &[Pair]) {
    let mut paths: Vec<Expected> = pairs.iter().filter_map(|pair| pair.path).collect();
    paths.sort_by_key(|(path, why)| (path.is_none(), *path, *why));
    let counts: Vec<_> = paths.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
    let width = counts.iter().map(|(count, _)| count.to_string().len()).max().unwrap_or(0);
    for (count, path) in counts {
        let _ = writeln!(page, "  {count:width$} {}", path::words(path));
    }
}

/// The two policies that are always shown speak for themselves. A comma within a list is told from those between policies.
fn policy(name: &str, value: &Value) -> String {
    let text = escaped(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    match name {
        "RELIABILITY" | "DURABILITY" => text,
        name => format!("{name} {text}"),
    }
}

fn write_participant(page: &mut String, participant: &ParticipantSummary) {
    let (host, process, _) = place(participant);
    let mut facts = vec![escaped(&vendor(participant))];
    facts.extend(host.map(|host| format!("host {}", escaped(host))));
    facts.extend(process.map(|process| format!("program {}", escaped(process))));
    let locators = participant.unicast.iter().chain(&participant.multicast);
    facts.extend(locators.map(ToString::to_string));
    let _ = writeln!(page, "\nParticipant {}", title(participant));
    let _ = writeln!(page, "  {}", participant.guid.prefix);
    let _ = writeln!(page, "  {}", facts.join(", "));
}

/// What a participant calls itself, else its program, and its process id, so that two of one program
/// can be told apart.
pub fn title(participant: &ParticipantSummary) -> String {
    let (_, process, pid) = place(participant);
    let name = Some(participant.name.as_str()).filter(|name| !name.is_empty()).or(process);
    match (name, pid) {
        (Some(name), Some(pid)) => format!("{} [{}]", escaped(name), escaped(pid)),
        (Some(name), None) => format!("{} [{}]", escaped(name), short(participant.guid.prefix)),
        (None, _) => short(participant.guid.prefix),
    }
}

fn short(prefix: GuidPrefix) -> String {
    let text = prefix.to_string();
    text.get(text.len().saturating_sub(8)..).unwrap_or(&text).to_owned()
}

/// An endpoint by its participant's name and its own number.
fn name_of(domain: &Domain, guid: Guid) -> String {
    let participant = domain.participants.iter().find(|participant| participant.guid.prefix == guid.prefix);
    let name = participant.map_or_else(|| short(guid.prefix), title);
    format!("{name} {}", guid.entity)
}

#[cfg(test)]
mod tests {
    use taut::SamplePath;

    use super::*;

    #[test]
    fn nothing_of_a_peer_reaches_the_terminal_as_it_is() {
        let evil = "\u{1b}[2J";
        let named = ["taut.version", "taut.host", "taut.process", "taut.pid"].map(|name| (name, evil));
        let mut participant = super::super::path::tests::participant(1, &named);
        participant.name = evil.to_owned();
        let domain =
            Domain { domain_id: 0, participants: vec![participant], endpoints: vec![], pairs: vec![] };
        let page = page(&domain);
        assert!(!page.contains('\u{1b}') && page.contains("Taut \\u{1b}[2J, host \\u{1b}[2J"), "{page}");
    }

    #[test]
    fn paths_are_counted_best_first() {
        let guid = Guid::new(GuidPrefix([1; 12]), taut::EntityId::PARTICIPANT);
        let pair =
            |path| Pair { topic_name: "Square".to_owned(), writer: guid, reader: guid, refused: None, path };
        let far = |why| Some((Some(SamplePath::Network), Some(why)));
        let near = Some((Some(SamplePath::SharedMemory), None));
        let mut pairs: Vec<_> = std::iter::repeat_with(|| pair(near)).take(12).collect();
        pairs.extend([far("another host"), None, far("local is off at the reader")].map(pair));
        pairs.insert(0, pair(Some((None, Some("neither side is Taut")))));
        pairs.insert(1, pair(far("another host")));
        pairs.push(pair(Some((Some(SamplePath::Process), None))));
        let mut page = String::new();
        write_paths(&mut page, &pairs);
        assert_eq!(
            page,
            "   1 within one process\n  12 by shared memory\n   2 by UDP (another host)\n   1 by UDP (local is off \
             at the reader)\n   1 by a way unknown (neither side is Taut)\n"
        );
    }
}
