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

/// What of a domain comes to a host.
pub struct Ports {
    /// The first one of the domain.
    pub first: u16,
    /// A port besides; 0: none.
    pub critical: u16,
    /// Is multicast used, where an interface carries it?
    pub multicast: bool,
}

/// All checks of this module.
pub fn check(system: &System, rules: Result<&Value, &str>, links: &[Link], ports: &Ports) -> Vec<Finding> {
    let Ports { first, critical, multicast } = *ports;
    let domain = (first, first.saturating_add(LAST_PORT));
    let is_apart = critical > 0 && !(domain.0..=domain.1).contains(&critical);
    let mut findings = match rules {
        Ok(rules) => {
            let ruleset = Ruleset::parse(rules);
            let alone = is_apart.then(|| nftables(&ruleset, links, (critical, critical), critical, false));
            let mut findings =
                nftables(&ruleset, links, domain, if is_apart { 0 } else { critical }, multicast);
            findings.extend(alone.into_iter().flatten());
            findings
        }
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

/// The packets that a participant on this interface sends and gets at these ports of its domain, those to groups if it uses
/// `multicast`, and at a critical one.
fn packets(link: &Link, (first_port, last): (u16, u16), critical: u16, multicast: bool) -> Vec<Packet<'_>> {
    let groups = [0, 1].map(|offset| (link.group(), first_port.saturating_add(offset)));
    let unicast = (10..10 + 2 * PARTICIPANTS).map(|offset| (link.address, first_port.saturating_add(offset)));
    let is_multicast = multicast && link.carries_multicast();
    let of_domain = groups.into_iter().filter(|_| is_multicast).chain(unicast);
    let of_domain = of_domain.filter(|_| last > first_port);
    let ports = of_domain.chain((critical > 0).then_some((link.address, critical)));
    let of = |(to, port): (IpAddr, u16)| {
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

fn nftables(
    ruleset: &Ruleset,
    links: &[Link],
    ports: (u16, u16),
    critical: u16,
    multicast: bool,
) -> Vec<Finding> {
    let mut fates: BTreeMap<(Fate, String), Same> = BTreeMap::new();
    let mut looked = BTreeSet::new();
    for link in links {
        for packet in packets(link, ports, critical, multicast) {
            looked.insert(packet.port);
            for (chain, fate) in ruleset.fates(&packet) {
                let same = fates.entry((fate, chain.to_owned())).or_default();
                same.ports.insert(packet.port);
                same.interfaces.insert(link.name.clone());
            }
        }
    }
    if fates.is_empty() {
        return vec![none_drops(&looked, ports)];
    }
    fates.into_iter().map(|((fate, chain), same)| found(ruleset, &fate, &chain, &same, ports)).collect()
}

/// Nothing is dropped of what comes to the ports that were looked at, and of no other is anything known.
fn none_drops(looked: &BTreeSet<u16>, (first_port, last): (u16, u16)) -> Finding {
    if looked.is_empty() {
        return Finding::not_looked(NAME, "no interface is in use, so nothing comes by one");
    }
    let groups = [first_port, first_port.saturating_add(1)];
    let is_left_out = last > first_port && groups.iter().all(|port| !looked.contains(port));
    let left_out = if is_left_out {
        format!("; not looked at {}, without multicast", spans(&groups.into()))
    } else {
        String::new()
    };
    Finding::good(NAME, format!("no rule of nftables drops UDP {}{left_out}", spans(looked)))
}

fn found(ruleset: &Ruleset, fate: &Fate, chain: &str, same: &Same, ports: (u16, u16)) -> Finding {
    let interfaces = same.interfaces.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let what = format!("UDP {} on {interfaces}", spans(&same.ports));
    let discovery = ports.1 > ports.0 && same.ports.contains(&ports.0);
    let cost = if discovery {
        "participants are not found by multicast"
    } else {
        "participants that were found hear no samples or no acknowledgements"
    };
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

/// A rule in front of the one that drops, so that those before it hold as they did; behind all where the policy does. None where
/// somebody has decided by interfaces, as it would be for all of them, or by the sender or the routes, as it would let in what is
/// forged; where forwarded packets come, too, as it would open the hosts behind this one; and where a rule may lead past the end.
fn by_fix(ruleset: &Ruleset, place: &Place, ports: (u16, u16)) -> Option<Mend> {
    if ruleset.tells_interfaces_apart(&place.chain)
        || ruleset.tells_hosts_apart(place)
        || ruleset.is_passed_by_forwarded(&place.chain)
        || place.rule.is_none() && ruleset.is_left_early(&place.chain)
    {
        return None;
    }
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

fn range((first, last): (u16, u16)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
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

    const DOMAIN_0: Ports = Ports { first: 7_400, critical: 0, multicast: true };

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
        let of_link = |first, multicast, link: Link| {
            check(&system, Ok(&rules), &[link], &Ports { first, critical: 0, multicast }).remove(0)
        };
        let of = |first_port| of_link(first_port, true, link("eth0"));
        let found = of(7_400);
        assert_eq!(found.state, State::Harmful);
        assert_eq!(found.seen, "rule 1 of inet t in drops UDP 7400 on eth0");
        assert_eq!(found.mend.unwrap().command, "nft insert rule inet t in udp dport 7400-7649 accept");
        assert_eq!(of(7_650).state, State::Good, "another domain");
        assert_eq!(of(7_650).seen, "no rule of nftables drops UDP 7650-7651, 7660-7679");
        // Nobody is found by multicast there anyway, and whether that port is open is not said.
        let without = "no rule of nftables drops UDP 7410-7429; not looked at 7400-7401, without multicast";
        for found in [
            of_link(7_400, false, link("eth0")),
            of_link(7_400, true, Link { flagged: false, ..link("eth0") }),
        ] {
            assert_eq!((found.state, found.seen.as_str()), (State::Good, without));
        }
        let found =
            check(&system, Ok(&rules), &[], &Ports { first: 7_400, critical: 0, multicast: true }).remove(0);
        assert_eq!(found.state, State::NotLooked);
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
            check(&system, Ok(&rules), &[link], &DOMAIN_0).remove(0)
        };
        let v6 = || Link { address: "fd00::1".parse().unwrap(), ..link("eth0") };
        assert_eq!((of("ip6", v6()).state, of("ip6", link("eth0")).state), (State::Harmful, State::Good));
        assert_eq!((of("ip", v6()).state, of("ip", link("eth0")).state), (State::Good, State::Harmful));
        assert_eq!(of("inet", v6()).state, State::Harmful);
    }

    /// What is found in a chain of input with these rules and a policy to drop.
    fn where_the_policy_drops(rules: &[Value], critical: u16) -> Vec<Finding> {
        let chain = json!({"chain": {"family": "inet", "table": "t", "name": "in", "type": "filter", "hook": "input",
                                     "prio": 0, "policy": "drop"}});
        let (at, mut listed) =
            (json!({"family": "inet", "table": "t", "chain": "in", "handle": 9}), vec![chain]);
        for expressions in rules {
            let mut rule = at.clone();
            rule["expr"] = expressions.clone();
            listed.push(json!({"rule": rule}));
        }
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "")]);
        check(&system, Ok(&json!({"nftables": listed})), &[link("eth0")], &Ports { critical, ..DOMAIN_0 })
    }

    fn of_meta(key: &str, name: &str) -> Value {
        json!({"match": {"op": "==", "left": {"meta": {"key": key}}, "right": name}})
    }

    /// A rule for all interfaces would open one that is closed.
    #[test]
    fn what_is_decided_by_interface_is_left_to_who_has() {
        let is_by_fix =
            |rules: &[Value]| where_the_policy_drops(rules, 0)[0].mend.as_ref().unwrap().is_by_fix();
        assert!(is_by_fix(&[]));
        assert!(is_by_fix(&[json!([of_meta("iifname", "lo"), {"accept": null}])]), "nobody else's");
        assert!(!is_by_fix(&[json!([of_meta("iifname", "lan0"), {"accept": null}])]));
        // What leads elsewhere may never come to the end, where the rule would be.
        assert!(!is_by_fix(&[json!([{"goto": {"target": "other"}}])]));
        assert!(!is_by_fix(&[json!([{"return": null}])]));
    }

    /// An accept in front of what drops forged packets would let them in.
    #[test]
    fn what_is_decided_by_routes_is_left_to_who_has() {
        let fib = |op: &str, flag: &str, kind: &str| {
            let left = json!({"fib": {"result": "type", "flags": [flag]}});
            json!({"match": {"op": op, "left": left, "right": kind}})
        };
        let is_by_fix = |finding: &Finding| finding.mend.as_ref().unwrap().is_by_fix();
        let other_than_lo =
            json!({"match": {"op": "!=", "left": {"meta": {"key": "iifname"}}, "right": "lo"}});
        let forged = json!([other_than_lo, fib("==", "saddr", "local"), {"drop": null}]);
        let accept = json!([{"accept": null}]);
        let found = &where_the_policy_drops(&[forged, accept], 0)[0];
        assert_eq!((found.state, is_by_fix(found)), (State::WorthChanging, false), "{found:?}");
        let for_others = json!([fib("!=", "daddr", "broadcast"), {"drop": null}]);
        let found = &where_the_policy_drops(&[for_others], 0)[0];
        assert_eq!((found.state, is_by_fix(found)), (State::Harmful, false), "{found:?}");
        // What other rules ask for is no matter.
        let others = json!([fib("==", "daddr", "broadcast"), {"drop": null}]);
        let found = &where_the_policy_drops(&[others, json!([{"drop": null}])], 0)[0];
        assert_eq!((found.state, is_by_fix(found)), (State::Harmful, true), "{found:?}");
    }

    fn chain(name: &str, hook: &str, policy: &str) -> Value {
        let mut chain = json!({"family": "inet", "table": "filter", "name": name});
        if !hook.is_empty() {
            chain["hook"] = hook.into();
            chain["policy"] = policy.into();
        }
        json!({"chain": chain})
    }

    fn rule(chain: &str, expressions: &Value) -> Value {
        json!({"rule": {"family": "inet", "table": "filter", "chain": chain, "handle": 9, "expr": expressions}})
    }

    /// What mends the one harmful thing that is found in these rules.
    fn mend_of(listed: &[Value]) -> Mend {
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "")]);
        let found = check(&system, Ok(&json!({"nftables": listed})), &[link("eth0")], &DOMAIN_0).remove(0);
        assert_eq!(found.state, State::Harmful, "{found:?}");
        found.mend.unwrap()
    }

    /// An accept in a chain that forwarded packets come to would open the hosts behind this one.
    #[test]
    fn where_forwarded_packets_come_is_left_to_who_has() {
        let known = json!([{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established"]}},
                           {"accept": null}]);
        let jump = |to: &str| json!([{"jump": {"target": to}}]);
        let with = |more: &[Value]| {
            let map = json!({"family": "inet", "table": "filter", "name": "m", "type": "inet_service",
                             "map": "verdict", "elem": [[5, {"accept": null}], [7, {"goto": {"target": "rest"}}]]});
            let mut listed = vec![
                json!({"map": map}),
                chain("rest", "", ""),
                chain("more", "", ""),
                chain("in", "input", "accept"),
                chain("through", "forward", "accept"),
                rule("rest", &json!([{"counter": null}, {"drop": null}])),
                rule("in", &known),
                rule("in", &json!([of_meta("iif", "lo"), {"accept": null}])),
                rule("in", &jump("rest")),
                rule("through", &known),
            ];
            listed.extend_from_slice(more);
            mend_of(&listed)
        };
        let ours = "nft insert rule inet filter rest udp dport 7400-7649 accept";
        for more in [&[][..], &[rule("more", &jump("rest"))], &[rule("through", &jump("more"))]] {
            let mend = with(more);
            assert_eq!((mend.is_by_fix(), mend.command.as_str()), (true, ours), "{more:?}");
        }
        let vmap = |data: Value| {
            let left = json!({"payload": {"protocol": "tcp", "field": "dport"}});
            json!([{"vmap": {"key": left, "data": data}}])
        };
        let by_hand = "nft insert rule inet filter in udp dport 7400-7649 accept";
        for more in [
            &[rule("through", &jump("rest"))][..],
            &[rule("through", &json!([{"goto": {"target": "rest"}}]))],
            &[rule("through", &vmap(json!({"set": [[7, {"jump": {"target": "rest"}}]]})))],
            &[rule("through", &vmap(json!("@m")))],
            &[rule("through", &json!(["jump {\n\t\t\tgoto rest\n\t\t}"]))],
            &[rule("through", &jump("more")), rule("more", &jump("rest"))],
        ] {
            let mend = with(more);
            assert_eq!((mend.is_by_fix(), mend.command.as_str()), (false, by_hand), "{more:?}");
        }
    }

    /// Before it is known where a packet goes, and after, what is forwarded is there as well.
    #[test]
    fn hooks_that_forwarded_packets_pass_are_left_to_who_has() {
        let is_by_fix = |hook| mend_of(&[chain("all", hook, "drop")]).is_by_fix();
        assert_eq!(["input", "output"].map(is_by_fix), [true; 2]);
        assert_eq!(["prerouting", "postrouting"].map(is_by_fix), [false; 2]);
    }

    #[test]
    fn a_critical_port_is_walked_too() {
        let commands = |critical| -> Vec<String> {
            let found = where_the_policy_drops(&[], critical).into_iter();
            found.map(|finding| finding.mend.map(|mend| mend.command).unwrap_or_default()).collect()
        };
        let add = |ports| format!("nft add rule inet t in udp dport {ports} accept");
        assert_eq!(commands(0), [add("7400-7649")]);
        assert_eq!(commands(7_402), [add("7400-7649")]);
        assert_eq!(commands(9_000), [add("7400-7649"), add("9000")]);
        let dport = json!({"payload": {"protocol": "udp", "field": "dport"}});
        let ports = json!({"range": [7_400, 7_649]});
        let accept = json!([{"match": {"op": "==", "left": dport, "right": ports}}, {"accept": null}]);
        let found = where_the_policy_drops(&[accept], 9_000);
        assert_eq!((found[0].state, found[1].state), (State::Good, State::Harmful), "{found:?}");
        assert_eq!(found[1].seen, "the policy of inet t in drops UDP 9000 on eth0");
    }

    #[test]
    fn what_could_not_be_asked() {
        let (_directory, system) = tree(&[("/proc/net/ip_tables_names", "filter\nnat\n")]);
        let findings = check(&system, Err("there is no program nft"), &[], &DOMAIN_0);
        assert!(findings.iter().all(|finding| finding.state == State::NotLooked), "{findings:?}");
        assert!(findings[1].seen.contains("filter, nat"));
    }

    #[test]
    fn ports_as_spans() {
        assert_eq!(spans(&BTreeSet::from([7_400, 7_410, 7_411, 7_412])), "7400, 7410-7412");
    }
}
