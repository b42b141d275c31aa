//! The rules of nftables, walked as the kernel walks them (nft(8), libnftables-json(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::packet::{Direction, Packet, Sets};

/// Chains that lead into each other: the kernel's own bound of jumps.
const JUMPS: usize = 16;
/// Rules that one packet is held against. Above it the rest is taken for conditions that are not known: chains
/// that lead to each other many times over would take for ever.
const RULES: usize = 20_000;

/// What becomes of a packet that does not simply pass, with the place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    Dropped(Place),
    /// That hangs on what is not known: who sends it, how often.
    PerhapsDropped(Place),
}

/// Where a packet is dropped: a chain, and the rule in it; without one it is the policy of the chain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub chain: String,
    pub rule: Option<At>,
}

/// A rule of a chain: the first is 1. The kernel knows it by its handle.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At {
    pub number: usize,
    pub handle: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(at) => write!(f, "rule {} of {}", at.number, self.chain),
            None => write!(f, "the policy of {}", self.chain),
        }
    }
}

/// All chains, by family, table and name in one text, as a person writes them.
#[derive(Default)]
pub struct Ruleset {
    chains: BTreeMap<String, Chain>,
    /// Of each family and table.
    sets: BTreeMap<String, Sets>,
}

#[derive(Default)]
struct Chain {
    table: String,
    family: String,
    name: String,
    /// Where packets enter it, as nftables names that; empty: by jumps only.
    hook: String,
    drops: bool,
    rules: Vec<Rule>,
}

impl Chain {
    /// Which packets of a participant enter it, if any.
    fn direction(&self) -> Option<Direction> {
        match self.hook.as_str() {
            "prerouting" | "input" => Some(Direction::In),
            "output" | "postrouting" => Some(Direction::Out),
            _ => None,
        }
    }

    /// Is it entered by packets that are neither to this host nor from it?
    fn is_entered_by_forwarded(&self) -> bool {
        !matches!(self.hook.as_str(), "" | "input" | "output")
    }
}

/// A rule as it is in force.
struct Rule {
    handle: Option<u64>,
    expressions: Vec<Value>,
}

/// How a chain was left.
enum Way {
    Accepted,
    Dropped(Place),
    /// It had nothing to say.
    Through,
}

/// What may have happened on the way.
#[derive(Default)]
struct Doubt {
    accepted: bool,
    dropped: Option<Place>,
    rules: usize,
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Ruleset {
    /// What `nft -j list ruleset` prints; what is not known is left out.
    pub fn parse(listed: &Value) -> Ruleset {
        let mut ruleset = Ruleset::default();
        for object in listed.get("nftables").and_then(Value::as_array).into_iter().flatten() {
            if let Some(chain) = object.get("chain") {
                ruleset.add_chain(chain);
            } else if let Some(rule) = object.get("rule") {
                let expressions = rule.get("expr").and_then(Value::as_array).cloned().unwrap_or_default();
                let handle = rule.get("handle").and_then(Value::as_u64);
                let chain = format!("{} {}", table(rule), word(rule, "chain"));
                ruleset.chains.entry(chain).or_default().rules.push(Rule { handle, expressions });
            } else if let Some(set) = object.get("set").or_else(|| object.get("map")) {
                let elements = set.get("elem").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
                ruleset.sets.entry(table(set)).or_default().insert(word(set, "name").to_owned(), elements);
            }
        }
        ruleset
    }

    fn add_chain(&mut self, chain: &Value) {
        // Of other families no packet of IP goes through.
        let family = word(chain, "family");
        if !matches!(family, "ip" | "ip6" | "inet") {
            return;
        }
        let table = table(chain);
        let entry = self.chains.entry(format!("{table} {}", word(chain, "name"))).or_default();
        *entry = Chain {
            table,
            family: family.to_owned(),
            name: word(chain, "name").to_owned(),
            hook: word(chain, "hook").to_owned(),
            drops: word(chain, "policy") == "drop",
            rules: std::mem::take(&mut entry.rules),
        };
    }

    /// The expressions of all rules of a chain's table.
    fn beside<'a>(&'a self, chain: &str) -> impl Iterator<Item = &'a Value> {
        let table = self.chains.get(chain).map(|chain| &chain.table);
        let chains = self.chains.values().filter(move |other| Some(&other.table) == table);
        chains.flat_map(|chain| &chain.rules).flat_map(|rule| &rule.expressions)
    }

    /// Does a rule beside it depend on the interface, other than whether that is loopback?
    pub fn tells_interfaces_apart(&self, chain: &str) -> bool {
        const KEYS: [&str; 6] = ["iif", "iifname", "iifgroup", "oif", "oifname", "oifgroup"];
        let is_by_interface = |expression: &Value| {
            let text = expression.to_string();
            let is_loopback = expression.pointer("/match/right").and_then(Value::as_str) == Some("lo");
            !is_loopback && KEYS.iter().any(|key| text.contains(&format!("\"{key}\"")))
        };
        self.beside(chain).any(is_by_interface)
    }

    /// Does the rule there depend on who sends, or on a route?
    pub fn tells_hosts_apart(&self, place: &Place) -> bool {
        let number = place.rule.as_ref().map_or(0, |at| at.number);
        let rules = self.chains.get(&place.chain).map(|chain| &chain.rules);
        let rule = rules.zip(number.checked_sub(1)).and_then(|(rules, at)| rules.get(at));
        let is_by_host = |expression: &Value| {
            let text = expression.to_string();
            ["\"fib\"", "\"saddr\""].iter().any(|word| text.contains(word))
        };
        rule.is_some_and(|rule| rule.expressions.iter().any(is_by_host))
    }

    /// May a packet leave the chain before its end, and not be judged?
    pub fn is_left_early(&self, chain: &str) -> bool {
        let rules = self.chains.get(chain).into_iter().flat_map(|chain| &chain.rules);
        let leads_away =
            |expression: &Value| ["goto", "return", "vmap"].iter().any(|word| expression.get(word).is_some());
        rules.flat_map(|rule| &rule.expressions).any(leads_away)
    }

    /// Do forwarded packets come to the chain, by its own hook or by what leads to it from another one?
    pub fn is_passed_by_forwarded(&self, chain: &str) -> bool {
        let entered = self.chains.iter().filter(|(_, chain)| chain.is_entered_by_forwarded());
        let mut ahead: Vec<String> = entered.map(|(name, _)| name.clone()).collect();
        let mut passed = BTreeSet::new();
        while let Some(name) = ahead.pop() {
            if !passed.contains(&name) {
                ahead.extend(self.leads_to(&name));
                passed.insert(name);
            }
        }
        passed.contains(chain)
    }

    /// The chains that the rules of a chain may lead to, whatever their conditions.
    fn leads_to(&self, name: &str) -> Vec<String> {
        let Some(chain) = self.chains.get(name) else { return Vec::new() };
        let expressions = || chain.rules.iter().flat_map(|rule| &rule.expressions);
        // What nft has no JSON for, as a jump to rules in braces, it tells as text: that may lead to any.
        if expressions().any(Value::is_string) {
            let beside = self.chains.iter().filter(|(_, other)| other.table == chain.table);
            return beside.map(|(name, _)| name.clone()).collect();
        }
        let sets = self.sets.get(&chain.table);
        let map_of = |expression: &Value| {
            let name = expression.pointer("/vmap/data")?.as_str()?.strip_prefix('@')?;
            sets?.get(name)
        };
        let maps = expressions().filter_map(map_of);
        let targets = expressions().chain(maps).flat_map(targets);
        targets.map(|target| format!("{} {target}", chain.table)).collect()
    }

    /// The parts of a chain's name: family, table and its own; and where packets enter it.
    pub fn parts(&self, chain: &str) -> Option<([&str; 3], Option<Direction>)> {
        let chain = self.chains.get(chain)?;
        let table = chain.table.strip_prefix(chain.family.as_str())?.trim_start();
        Some(([&chain.family, table, &chain.name], chain.direction()))
    }

    /// Has its table a chain whose name begins so?
    pub fn has_beside(&self, chain: &str, beginning: &str) -> bool {
        let of = self.chains.get(chain).map(|chain| &chain.table);
        self.chains.values().any(|other| Some(&other.table) == of && other.name.starts_with(beginning))
    }

    /// The chains in which a packet is lost, or may be.
    pub fn fates(&self, packet: &Packet<'_>) -> Vec<(&str, Fate)> {
        let is_entered =
            |chain: &Chain| chain.direction() == Some(packet.direction) && packet.is_of(&chain.family);
        let entered = self.chains.iter().filter(|(_, chain)| is_entered(chain));
        entered.filter_map(|(name, chain)| Some((name.as_str(), self.fate(name, chain, packet)?))).collect()
    }

    fn fate(&self, name: &str, chain: &Chain, packet: &Packet<'_>) -> Option<Fate> {
        let mut doubt = Doubt::default();
        let lost = match self.walk(name, packet, true, 0, &mut doubt) {
            Way::Accepted => None,
            Way::Dropped(place) => Some(place),
            Way::Through => chain.drops.then(|| Place { chain: name.to_owned(), rule: None }),
        };
        match lost {
            Some(place) if doubt.accepted => Some(Fate::PerhapsDropped(place)),
            Some(place) => Some(Fate::Dropped(place)),
            None => doubt.dropped.map(Fate::PerhapsDropped),
        }
    }

    /// `sure`: the packet is certainly here.
    fn walk(&self, name: &str, packet: &Packet<'_>, sure: bool, depth: usize, doubt: &mut Doubt) -> Way {
        let Some(chain) = self.chains.get(name).filter(|_| depth < JUMPS) else { return Way::Through };
        let none = Sets::new();
        let sets = self.sets.get(&chain.table).unwrap_or(&none);
        for (at, rule) in chain.rules.iter().enumerate() {
            doubt.rules += 1;
            let here = At { number: at + 1, handle: rule.handle };
            let place = Place { chain: name.to_owned(), rule: Some(here) };
            let verdicts = verdicts(&rule.expressions, packet, sets);
            for (verdict, certain) in verdicts {
                let sure = sure && certain && doubt.rules < RULES;
                let target = |value: &Value| format!("{} {}", chain.table, word(value, "target"));
                let way = match verdict.iter().next() {
                    Some((kind, _)) if kind == "accept" => Way::Accepted,
                    Some((kind, _)) if kind == "drop" || kind == "reject" => Way::Dropped(place.clone()),
                    Some((kind, to)) if (kind == "jump" || kind == "goto") && doubt.rules < RULES => {
                        let way = self.walk(&target(to), packet, sure, depth + 1, doubt);
                        if kind == "goto" && sure && matches!(way, Way::Through) {
                            return Way::Through;
                        }
                        way
                    }
                    // Another program judges; what it accepts is not seen by the rules behind.
                    Some((kind, _)) if kind == "queue" => {
                        doubt.dropped.get_or_insert_with(|| place.clone());
                        Way::Accepted
                    }
                    Some((kind, _)) if kind == "return" && sure => return Way::Through,
                    _ => Way::Through,
                };
                match way {
                    Way::Through => {}
                    way if sure => return way,
                    Way::Accepted => doubt.accepted = true,
                    Way::Dropped(place) => {
                        doubt.dropped.get_or_insert(place);
                    }
                }
            }
        }
        Way::Through
    }
}

fn table(object: &Value) -> String {
    format!("{} {}", word(object, "family"), word(object, "table"))
}

/// The chains that the verdicts within name.
fn targets(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(all) => all.iter().flat_map(targets).collect(),
        Value::Object(all) => {
            let of = |(kind, inner)| match String::as_str(kind) {
                "jump" | "goto" => vec![word(inner, "target")],
                _ => targets(inner),
            };
            all.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// What a rule does with a packet, and whether it certainly does.
fn verdicts(rule: &[Value], packet: &Packet<'_>, sets: &Sets) -> Vec<(Map<String, Value>, bool)> {
    let mut sure = true;
    for expression in rule.iter().filter_map(Value::as_object) {
        let Some((kind, inner)) = expression.iter().next() else { continue };
        match kind.as_str() {
            "match" => match packet.matches(inner, sets) {
                Some(true) => {}
                Some(false) => return Vec::new(),
                None => sure = false,
            },
            // Not so often, not so many, of each sender too, and only while a set has room; a condition that only
            // iptables knows.
            "limit" | "ct count" | "quota" | "meter" | "set" | "map" | "xt" => sure = false,
            "accept" | "drop" | "reject" | "queue" | "return" | "jump" | "goto" => {
                return vec![(expression.clone(), sure)];
            }
            "vmap" => return mapped(inner, packet, sets, sure),
            _ => {}
        }
    }
    Vec::new()
}

/// The verdicts of a map that a packet has, or may have.
fn mapped(vmap: &Value, packet: &Packet<'_>, sets: &Sets, sure: bool) -> Vec<(Map<String, Value>, bool)> {
    let Some(key) = vmap.get("key") else { return Vec::new() };
    let named = vmap.get("data").and_then(Value::as_str).and_then(|name| sets.get(name.strip_prefix('@')?));
    let data = named.or_else(|| vmap.get("data").map(|data| data.get("set").unwrap_or(data)));
    let mut found = Vec::new();
    for pair in data.and_then(Value::as_array).into_iter().flatten() {
        let Some([element, verdict]) = pair.as_array().map(Vec::as_slice) else { continue };
        let Some(verdict) = verdict.as_object() else { continue };
        match packet.is_key(key, element, sets) {
            Some(true) => {
                found.push((verdict.clone(), sure));
                break;
            }
            Some(false) => {}
            None => found.push((verdict.clone(), false)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::*;

    fn port(right: Value) -> Value {
        json!({"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": right}})
    }

    fn source() -> Value {
        json!({"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "192.0.2.1"}})
    }

    /// What becomes of a datagram to port 7400 in a chain with these rules, and in another one that it may lead to.
    fn fate(policy: &str, rules: &[Value], other: &[Value]) -> Option<(Certainty, String)> {
        let chain = |name: &str| json!({"family": "ip", "table": "t", "name": name});
        let mut base = chain("in");
        base["hook"] = "input".into();
        base["policy"] = policy.into();
        let mut all = vec![json!({"chain": base}), json!({"chain": chain("other")})];
        for (name, rules) in [("in", rules), ("other", other)] {
            let rule =
                |expr: &Value| json!({"rule": {"family": "ip", "table": "t", "chain": name, "expr": expr}});
            all.extend(rules.iter().map(rule));
        }
        let ruleset = Ruleset::parse(&json!({"nftables": all}));
        let to = Ipv4Addr::new(239, 255, 0, 1).into();
        let packet = Packet { direction: Direction::In, interface: "eth0", to, port: 7_400 };
        let mut fates = ruleset.fates(&packet);
        assert!(fates.len() <= 1);
        fates.pop().map(|(_, fate)| match fate {
            Fate::Dropped(place) => (Dropped, place.to_string()),
            Fate::PerhapsDropped(place) => (PerhapsDropped, place.to_string()),
        })
    }

    /// What is known of a fate.
    #[derive(PartialEq, Debug)]
    enum Certainty {
        Dropped,
        PerhapsDropped,
    }
    use Certainty::{Dropped, PerhapsDropped};

    fn dropped(place: &str) -> Option<(Certainty, String)> {
        Some((Dropped, format!("{place} of ip t in")))
    }

    fn perhaps(place: &str) -> Option<(Certainty, String)> {
        Some((PerhapsDropped, format!("{place} of ip t in")))
    }

    #[test]
    fn the_first_verdict_counts() {
        let (drop, accept) =
            (json!([port(json!(7_400)), {"drop": null}]), json!([port(json!(7_400)), {"accept": null}]));
        assert_eq!(fate("accept", std::slice::from_ref(&drop), &[]), dropped("rule 1"));
        assert_eq!(fate("accept", &[accept.clone(), drop.clone()], &[]), None);
        assert_eq!(fate("drop", &[json!([{"counter": null}]), accept], &[]), None);
        assert_eq!(fate("drop", &[], &[]), dropped("the policy"));
        assert_eq!(fate("accept", &[json!([port(json!(53)), {"drop": null}])], &[]), None);
        assert_eq!(fate("accept", &[json!([{"reject": {"type": "icmp"}}])], &[]), dropped("rule 1"));
    }

    #[test]
    fn what_hangs_on_the_sender() {
        let (drop, accept) = (json!([source(), {"drop": null}]), json!([source(), {"accept": null}]));
        assert_eq!(fate("accept", std::slice::from_ref(&drop), &[]), perhaps("rule 1"));
        assert_eq!(fate("drop", std::slice::from_ref(&accept), &[]), perhaps("the policy"));
        assert_eq!(
            fate("accept", &[json!([{"limit": {"rate": 1}}, {"drop": null}])], &[]),
            perhaps("rule 1")
        );
        assert_eq!(fate("accept", &[json!([{"accept": null}]), drop], &[]), None);
    }

    #[test]
    fn what_hangs_on_how_often_a_sender_sends() {
        let rate = json!({"limit": {"rate": 10, "burst": 5, "per": "second"}});
        let sender = json!({"payload": {"protocol": "ip", "field": "saddr"}});
        for limit in [
            json!({"meter": {"key": sender, "stmt": rate, "size": 65_535, "name": "m"}}),
            json!({"set": {"op": "add", "elem": sender, "set": "@lim", "stmt": [rate]}}),
            json!({"map": {"op": "add", "elem": sender, "data": 1, "map": "@lim", "stmt": [rate]}}),
        ] {
            assert_eq!(
                fate("drop", &[json!([limit, {"accept": null}])], &[]),
                perhaps("the policy"),
                "{limit}"
            );
            assert_eq!(fate("accept", &[json!([limit, {"drop": null}])], &[]), perhaps("rule 1"), "{limit}");
        }
    }

    #[test]
    fn what_another_program_judges() {
        let (drop, accept) = (json!([{"drop": null}]), json!([{"accept": null}]));
        let queue = json!([{"queue": {"num": 1, "flags": "bypass"}}]);
        assert_eq!(fate("accept", std::slice::from_ref(&queue), &[]), perhaps("rule 1"));
        assert_eq!(
            fate("drop", &[queue.clone(), drop.clone()], &[]),
            perhaps("rule 1"),
            "nothing comes further"
        );
        assert_eq!(fate("drop", &[queue.clone(), accept.clone()], &[]), perhaps("rule 1"));
        assert_eq!(fate("accept", &[accept, queue], &[]), None);
        let of_some = json!([source(), {"queue": {"num": 1}}]);
        assert_eq!(fate("accept", &[of_some.clone(), drop], &[]), perhaps("rule 2"), "others are dropped");
        assert_eq!(fate("accept", &[of_some], &[]), perhaps("rule 1"));
    }

    #[test]
    fn other_chains() {
        let (jump, go) = (json!([{"jump": {"target": "other"}}]), json!([{"goto": {"target": "other"}}]));
        let (drop, accept, back) =
            (json!([{"drop": null}]), json!([{"accept": null}]), json!([{"return": null}]));
        let lost = Some((Dropped, "rule 1 of ip t other".to_owned()));
        assert_eq!(fate("accept", std::slice::from_ref(&jump), std::slice::from_ref(&drop)), lost);
        assert_eq!(fate("drop", std::slice::from_ref(&jump), std::slice::from_ref(&accept)), None);
        assert_eq!(fate("accept", &[jump.clone(), drop.clone()], &[back.clone(), accept]), dropped("rule 2"));
        assert_eq!(fate("accept", &[go, drop.clone()], &[back]), None, "goto does not come back");
        let perhaps = Some((PerhapsDropped, "rule 1 of ip t other".to_owned()));
        assert_eq!(fate("accept", &[json!([source(), {"jump": {"target": "other"}}])], &[drop]), perhaps);
        let circle = vec![jump.clone(); 3];
        assert_eq!(fate("accept", &circle, &circle), None, "it ends");
    }

    #[test]
    fn maps_of_verdicts() {
        let state = |verdict: &str| {
            let pairs = json!([["established", {"accept": null}], ["new", {verdict: null}], ["invalid", {"drop": null}]]);
            json!([{"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": pairs}}}])
        };
        assert_eq!(fate("accept", &[state("drop")], &[]), dropped("rule 1"));
        assert_eq!(fate("drop", &[state("accept")], &[]), None);
        let sender = json!([{"vmap": {"key": {"payload": {"protocol": "ip", "field": "saddr"}},
                                      "data": {"set": [["192.0.2.1", {"drop": null}]]}}}]);
        assert_eq!(fate("accept", &[sender], &[]), perhaps("rule 1"));
    }
}
