//! A domain as a page for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use taut::{Guid, GuidPrefix, ParticipantSummary};
use taut_perf::output::Grace;
use taut_perf::words::counted;

use crate::output::escaped;
use crate::stop;

use super::matching::{Pair, Refusal};
use super::path::{self, Expected};
use super::{Domain, kind_name, place, qos, topics, vendor};

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
    write_matches(&mut page, domain);
    page
}

/// Pairs that do not match which are told of by themselves. Fewer hide the one that is looked for, more fill the memory
/// where thousands of endpoints are of one topic.
const MAX_REFUSED: usize = 200;

/// How many of the pairs match, how many of those go which way, the best first, and why others do not.
fn write_matches(page: &mut String, domain: &Domain) {
    let (mut matched, mut refused) = (0, 0);
    let mut paths = BTreeMap::new();
    let mut told = Vec::new();
    let mut grace = Grace::default();
    let mut is_cut = false;
    for pair in domain.pairs() {
        is_cut = grace.is_over(stop::requested());
        if is_cut {
            break;
        }
        match &pair.outcome {
            Ok(path) => {
                matched += 1;
                *paths.entry((path.0.is_none(), *path)).or_default() += 1;
            }
            Err(why) => {
                refused += 1;
                if refused <= MAX_REFUSED {
                    told.push(refusal(domain, &pair, why));
                }
            }
        }
    }
    if matched + refused == 0 {
        return;
    }
    let cut = if is_cut { ", and it was to end before all were looked at" } else { "" };
    let _ = writeln!(page, "\n{matched} of {} matched{cut}", counted(matched + refused, "pair"));
    write_paths(page, paths.into_iter().map(|((_, path), count)| (path, count)).collect());
    told.iter().for_each(|line| page.push_str(line));
    if let more @ 1.. = refused - told.len() {
        let _ = writeln!(page, "  … {more} more, of which --json tells");
    }
}

fn refusal(domain: &Domain, pair: &Pair<'_>, why: &Refusal<'_>) -> String {
    format!(
        "  not matched on {}: {} and {}: {}\n",
        escaped(&pair.writer.topic_name),
        name_of(domain, pair.writer.guid),
        name_of(domain, pair.reader.guid),
        escaped(&why.to_string())
    )
}

fn write_paths(page: &mut String, counts: Vec<(Expected, usize)>) {
    let width = counts.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    for (path, count) in counts {
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
    use super::super::{matching, path};
    use super::*;

    #[test]
    fn nothing_of_a_peer_reaches_the_terminal_as_it_is() {
        let evil = "\u{1b}[2J\u{202e}\u{2066}\u{200b}\u{2028}\u{e0001}";
        let named = ["taut.version", "taut.host", "taut.process", "taut.pid"].map(|name| (name, evil));
        let mut participant = path::tests::participant(1, &named);
        participant.name = evil.to_owned();
        let mut endpoints = matching::tests::endpoints(2, 2);
        for endpoint in &mut endpoints {
            evil.clone_into(&mut endpoint.topic_name);
            evil.clone_into(&mut endpoint.type_name);
            endpoint.qos.partition.iter_mut().for_each(|name| evil.clone_into(name));
            evil.as_bytes().clone_into(&mut endpoint.qos.user_data);
        }
        let page = page(&Domain { domain_id: 0, participants: vec![participant], endpoints });
        let shown = "\\u{1b}[2J\\u{202e}\\u{2066}\\u{200b}\\u{2028}\\u{e0001}";
        let of = |c: char| evil.contains(c) && !"[2J".contains(c);
        assert!(!page.contains(of), "{page:?}");
        for line in [
            format!("Taut {shown}, host {shown}, program {shown}"),
            format!("Topic {shown}  {shown}"),
            format!("not matched on {shown}: "),
            format!("USER_DATA {shown}"),
        ] {
            assert!(page.contains(&line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn paths_are_counted_best_first() {
        let participants = vec![
            path::tests::taut(1, "h", "7"),
            path::tests::taut(2, "h", "8"),
            path::tests::taut(3, "g", "7"),
            path::tests::participant(4, &[]),
        ];
        let mut endpoints = matching::tests::endpoints(1, 15);
        let of = [4, 2, 3, 1, 2, 9, 3];
        for (endpoint, number) in endpoints.iter_mut().skip(1).zip(of.into_iter().chain([2; 8])) {
            endpoint.qos.partition.clear();
            endpoint.guid.prefix = GuidPrefix([number; 12]);
        }
        let mut page = String::new();
        write_matches(&mut page, &Domain { domain_id: 0, participants, endpoints });
        assert_eq!(
            page,
            "\n15 of 15 pairs matched\n   1 within one process\n  10 by shared memory, if their users may\n   2 by UDP (another host)\n   \
             1 by UDP (another vendor)\n   1 by a way unknown (a participant has not announced itself)\n"
        );
    }

    #[test]
    fn a_page_grows_with_the_endpoints_and_not_with_the_pairs() {
        let page = |each: u32| {
            let endpoints = matching::tests::endpoints(each, each);
            page(&Domain { domain_id: 0, participants: vec![], endpoints })
        };
        let lines = page(400);
        let refused = lines.lines().filter(|line| line.starts_with("  not matched on ")).count();
        // Of those in a partition one matches.
        let more = 160_000 - 40_000 - 200 - MAX_REFUSED;
        assert_eq!(refused, MAX_REFUSED);
        assert!(lines.ends_with(&format!("\n  … {more} more, of which --json tells\n")), "{lines}");
        assert!(lines.contains("\n40200 of 160000 pairs matched\n"), "{lines}");
        assert!(!page(10).contains(" more"), "all 70 are told of");
    }
}
