//! Rules that drop what participants send each other: each chain of nftables is walked as a packet would.
//!
//! What helps is a rule in front of what drops. `--fix` adds it where that is certain and the rules are nobody's else:
//! a program that keeps rules of its own is told by its own command, and what only may be dropped, as by who sends it, is
//! somebody's decision.

mod owner;
mod packet;
mod rule;
mod ruleset;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::addition::Addition;
use super::finding::{Finding, Mend};
use super::multicast::Link;
use super::system::System;
use packet::{Direction, Packet};
use ruleset::{Fate, Place, Ruleset};

pub use rule::Rule;

/// Participants of one host whose unicast ports are looked at: more than most machines have. Each costs two walks
/// through the rules for each interface and direction.
const PARTICIPANTS: u16 = 10;
/// Ports of a domain (DG of RTPS 2.5 §9.6.1.1), less one.
const LAST_PORT: u16 = 249;

const NAME: &str = "firewall";

/// The rules in force, as nft tells them; otherwise why not.
pub fn rules() -> Result<Value, String> {
    let output = Command::new("nft").args(["-j", "list", "ruleset"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no program nft to ask: install nftables".to_owned(),
        _ => format!("nft: {error}"),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let said = said.lines().next().unwrap_or("ended without a word");
        return Err(format!("nft list ruleset: {}; root may: `sudo taut doctor`", said.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("nft list ruleset: {error}"))
}

/// All checks of this module; `first_port` is the first one of the domain.
pub fn check(system: &System, rules: Result<&Value, &str>, links: &[Link], first_port: u16) -> Vec<Finding> {
    let mut findings = match rules {
        Ok(rules) => nftables(&Ruleset::parse(rules), links, first_port),
        Err(why) => vec![Finding::not_looked(NAME, why)],
    };
    // Rules of the older kind are not among those that nft tells.
    let v6 = links.iter().any(|link| link.address.is_ipv6());
    for (program, is_used) in [("ip", true), ("ip6", v6)] {
        let tables = system.text(&format!("/proc/net/{program}_tables_names")).unwrap_or_default();
        if is_used && !tables.is_empty() {
            let why = format!(
                "tables of the older {program}tables ({}): see `{program}tables-legacy-save`",
                tables.replace('\n', ", ")
            );
            findings.push(Finding::not_looked("older firewall", why));
        }
    }
    findings
}

/// The packets that a participant on this interface sends and gets.
fn packets(link: &Link, first_port: u16) -> Vec<Packet<'_>> {
    let multicast = [0, 1].map(|offset| (link.group(), offset));
    let unicast = (0..2 * PARTICIPANTS).map(|offset| (link.address, 10 + offset));
    let ports = multicast.into_iter().filter(|_| link.carries_multicast()).chain(unicast);
    let of = |(to, offset): (IpAddr, u16)| {
        let port = first_port.saturating_add(offset);
        [Direction::In, Direction::Out].map(|direction| Packet { direction, interface: &link.name, to, port })
    };
    ports.flat_map(of).collect()
}

/// The packets that have one fate at one place.
#[derive(Default)]
struct Same {
    ports: BTreeSet<u16>,
    interfaces: BTreeSet<String>,
}

fn nftables(ruleset: &Ruleset, links: &[Link], first_port: u16) -> Vec<Finding> {
    let mut fates: BTreeMap<(Fate, String), Same> = BTreeMap::new();
    for link in links {
        for packet in packets(link, first_port) {
            for (chain, fate) in ruleset.fates(&packet) {
                let same = fates.entry((fate, chain.to_owned())).or_default();
                same.ports.insert(packet.port);
                same.interfaces.insert(link.name.clone());
            }
        }
    }
    if fates.is_empty() {
        return vec![Finding::good(NAME, format!("no rule of nftables drops UDP {}", range(first_port)))];
    }
    fates.into_iter().map(|((fate, chain), same)| found(ruleset, &fate, &chain, &same, first_port)).collect()
}

fn found(ruleset: &Ruleset, fate: &Fate, chain: &str, same: &Same, first_port: u16) -> Finding {
    let interfaces = same.interfaces.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let what = format!("UDP {} on {interfaces}", spans(&same.ports));
    let discovery = same.ports.contains(&first_port);
    let cost = if discovery {
        "participants are not found by multicast"
    } else {
        "participants that were found hear no samples or no acknowledgements"
    };
    let ports = (first_port, first_port.saturating_add(LAST_PORT));
    let by_owner = owner::mend(ruleset, chain, ports);
    match fate {
        Fate::Dropped(place) => {
            let mend = by_owner.or_else(|| by_fix(ruleset, place, ports));
            let mend = mend.unwrap_or_else(|| owner::by_hand(chain, ports));
            Finding::harmful(NAME, format!("{place} drops {what}"), cost).mend(mend)
        }
        Fate::PerhapsDropped(place) => {
            let cost = format!("where its other conditions hold, {cost}");
            let mend = by_owner.unwrap_or_else(|| owner::by_hand(chain, ports));
            Finding::worth_changing(NAME, format!("{place} may drop {what}"), cost).mend(mend)
        }
    }
}

/// A rule in front of the one that drops, so that those before it hold as they did; behind all where the policy does.
fn by_fix(ruleset: &Ruleset, place: &Place, ports: (u16, u16)) -> Option<Mend> {
    let (parts, _) = ruleset.parts(&place.chain)?;
    let [family, table, chain] = parts.map(str::to_owned);
    let before = match &place.rule {
        Some(at) => Some(at.handle?),
        None => None,
    };
    let rule = Rule { family, table, chain, ports, before };
    let is_first = place.rule.as_ref().is_some_and(|at| at.number == 1);
    Some(Mend::adds(rule.command(is_first), Addition::Rule(rule)))
}

fn range(first_port: u16) -> String {
    format!("{first_port}-{}", first_port.saturating_add(LAST_PORT))
}

/// Ports as people write them: 7400, 7410-7413.
fn spans(ports: &BTreeSet<u16>) -> String {
    let mut spans: Vec<(u16, u16)> = Vec::new();
    for port in ports {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *port => *last = *port,
            _ => spans.push((*port, *port)),
        }
    }
    let shown =
        |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    spans.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::State;
    use super::super::multicast::tests::link;
    use super::super::system::tests::tree;
    use super::*;

    #[test]
    fn what_a_rule_drops() {
        let rules = json!({"nftables": [
            {"chain": {"family": "inet", "table": "t", "name": "in", "type": "filter", "hook": "input", "prio": 0,
                       "policy": "accept"}},
            {"rule": {"family": "inet", "table": "t", "chain": "in", "handle": 2, "expr": [
                {"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 7400}},
                {"drop": null}]}},
        ]});
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "")]);
        let of = |first_port| check(&system, Ok(&rules), &[link("eth0")], first_port).remove(0);
        let found = of(7_400);
        assert_eq!(found.state, State::Harmful);
        assert_eq!(found.seen, "rule 1 of inet t in drops UDP 7400 on eth0");
        assert_eq!(found.mend.unwrap().command, "nft insert rule inet t in udp dport 7400-7649 accept");
        assert_eq!(of(7_650).state, State::Good, "another domain");
    }

    #[test]
    fn what_a_rule_drops_of_ipv6() {
        let chain = |family: &str| {
            json!({"chain": {"family": family, "table": "t", "name": "in", "type": "filter", "hook": "input",
                             "prio": 0, "policy": "drop"}})
        };
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "")]);
        let of = |family: &str, link: Link| {
            let rules = json!({"nftables": [chain(family)]});
            check(&system, Ok(&rules), &[link], 7_400).remove(0)
        };
        let v6 = || Link { address: "fd00::1".parse().unwrap(), ..link("eth0") };
        assert_eq!((of("ip6", v6()).state, of("ip6", link("eth0")).state), (State::Harmful, State::Good));
        assert_eq!((of("ip", v6()).state, of("ip", link("eth0")).state), (State::Good, State::Harmful));
        assert_eq!(of("inet", v6()).state, State::Harmful);
    }

    #[test]
    fn what_could_not_be_asked() {
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "filter\nnat\n")]);
        let findings = check(&system, Err("there is no program nft"), &[], 7_400);
        assert!(findings.iter().all(|finding| finding.state == State::NotLooked), "{findings:?}");
        assert!(findings[1].seen.contains("filter, nat"));
    }

    #[test]
    fn ports_as_spans() {
        assert_eq!(spans(&BTreeSet::from([7_400, 7_410, 7_411, 7_412])), "7400, 7410-7412");
    }
}
