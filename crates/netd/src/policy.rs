//! Who may have which queue for which ports, or without IP for all frames of our type: a file of TOML, and the answer to a
//! request.
//!
//! Owns the rules. Knows no socket: who asks, and which ports are proven, is told by the caller. All that no rule allows
//! is refused, with what a rule would have to say.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use nix::unistd::{Group, User};
use serde::Deserialize;
use taut_port_udp::PortMapping;
use taut_port_xdp::netd::Peer;
use taut_xdp::{MAX_QUEUES, Mode};
use toml::{Spanned, Value};

/// The last domain whose ports are below 65,536 (RTPS 2.5 §9.6.2.3).
const LAST_DOMAIN: u32 = 232;
/// Participants of a host and a domain whose ports are given by the standard.
const MAX_PARTICIPANTS: u32 = 120;
/// What the kernel shows for a user or group that a user namespace has no number for. *Source*: the default of
/// /proc/sys/kernel/overflowuid. A rule for it would be one for anybody.
const OVERFLOW: u32 = 65_534;
/// Rules of a policy. Each is looked at for each request; lower and a machine with many users is refused.
const MAX_RULES: usize = 1_024;

/// The rules.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it is called, for who is refused.
    name: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    who: Who,
    interface: String,
    queues: Vec<u32>,
    gives: Gives,
    participants: Option<u32>,
}

#[derive(Clone, Debug)]
enum Who {
    User(u32),
    Group(u32),
}

/// What comes by the queues.
#[derive(Clone, Debug)]
enum Gives {
    /// Over IP: messages to these ports, and to those of these domains.
    Ports { domains: Vec<u32>, ports: Vec<u16> },
    /// Without IP: all frames of our type, as nothing in them is anybody's.
    Frames,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    allow: Vec<Spanned<WrittenRule>>,
}

/// Its numbers are any: those that are none here are told what they may be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    user: Option<Spanned<Value>>,
    group: Option<Spanned<Value>>,
    interface: Spanned<String>,
    queues: Vec<Spanned<i128>>,
    layer: Option<Spanned<i128>>,
    domains: Option<Spanned<Vec<Spanned<i128>>>>,
    ports: Option<Spanned<Vec<Spanned<i128>>>>,
    participants: Option<Spanned<i128>>,
}

/// A request, as it is held against the rules.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The interface.
    pub interface: &'a str,
    /// All names of it, as far as they are known.
    pub names: &'a [String],
    /// Over IP or without.
    pub layer: Mode,
    /// Its queues.
    pub queues: &'a [u32],
    /// The UDP ports that were proven; none without IP.
    pub ports: &'a [u16],
}

impl Policy {
    /// Reads a file; `name` is what errors call it.
    ///
    /// *Errors*: one sentence with the line and the remedy.
    ///
    /// ```
    /// let error = taut_netd::Policy::parse("[[allow]]\nuser = 0\nqueue = 3", "netd.toml").unwrap_err();
    /// assert!(error.starts_with("netd.toml line 3: unknown field `queue`"), "{error}");
    /// ```
    pub fn parse(text: &str, name: &str) -> Result<Policy, String> {
        let place = Place { text, name };
        let written: Written = toml::from_str(text).map_err(|error| {
            let what = error.message().lines().collect::<Vec<_>>().join("; ");
            let what = what.replace("expected i128", "expected a whole number");
            let remedy = "rules begin with `[[allow]]` and have lines as `user = \"robot\"`, `interface = \"eth0\"`, \
                          `queues = [0]` and `domains = [0]`";
            place.wrong(error.span().map_or(0, |span| span.start), &format!("{what}; {remedy}"))
        })?;
        if let Some(rule) = written.allow.get(MAX_RULES) {
            let what = format!("more than {MAX_RULES} rules: use groups");
            return Err(place.wrong(rule.span().start, &what));
        }
        let rules = written.allow.into_iter().map(|rule| place.rule(&rule)).collect::<Result<_, _>>()?;
        Ok(Policy { name: name.to_owned(), rules })
    }

    /// How many rules it has.
    ///
    /// ```
    /// assert_eq!(taut_netd::Policy::parse("", "netd.toml").unwrap().rules(), 0);
    /// ```
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// What it allows nobody although it can be read: it has no rule, or rules for an interface that `is_there` denies. Each is
    /// a sentence with the remedy.
    ///
    /// ```
    /// let empty = taut_netd::Policy::parse("", "netd.toml").unwrap();
    /// assert!(empty.doubts(|_| true)[0].starts_with("netd.toml has no rule"));
    /// ```
    pub fn doubts(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let name = &self.name;
        if self.rules.is_empty() {
            return vec![format!("{name} has no rule, so that all are refused: add an `[[allow]]`")];
        }
        let missing: BTreeSet<&str> =
            self.rules.iter().map(|rule| rule.interface.as_str()).filter(|named| !is_there(named)).collect();
        let doubt = |named| {
            format!(
                "{name} has rules for interface {named}, which is not there: nobody can use it until it is; `ip link` lists \
                 those that are"
            )
        };
        missing.into_iter().map(doubt).collect()
    }

    /// Is there a rule for whoever this is?
    ///
    /// *Errors*: what a rule would have to say.
    pub fn knows(&self, peer: &Peer) -> Result<(), String> {
        if self.rules.iter().any(|rule| rule.is_for(peer)) {
            return Ok(());
        }
        let user = user(peer.uid);
        let name = &self.name;
        Err(format!("no rule of {name} is for {user}: add an `[[allow]]` with `user = {}`", peer.uid))
    }

    /// The place of the rule that allows a request; `has` says how many participants there are by the rule at a place.
    ///
    /// *Errors*: what is missing in the rules, those that come nearest to it.
    pub fn admit(
        &self,
        peer: &Peer,
        wanted: &Wanted<'_>,
        has: impl Fn(usize) -> u32,
    ) -> Result<usize, String> {
        let fitting = self.fitting(peer, wanted)?;
        let has_room = |at: &&usize| self.most(**at).is_none_or(|most| has(**at) < most);
        fitting.iter().find(has_room).copied().ok_or_else(|| self.full(peer, wanted))
    }

    /// How many participants there may be by the rule at this place; `None`: as many as there are.
    pub(crate) fn most(&self, at: usize) -> Option<u32> {
        self.rules.get(at).and_then(|rule| rule.participants)
    }

    /// Why a request is refused that only other participants are in the way of.
    pub(crate) fn full(&self, peer: &Peer, wanted: &Wanted<'_>) -> String {
        let (user, interface, name) = (user(peer.uid), wanted.interface, &self.name);
        format!(
            "{user} has as many participants on {interface} as the rules of {name} allow: end one, or raise \
             `participants`"
        )
    }

    /// The places of the rules that allow a request, whoever else has come by them: one at least.
    ///
    /// *Errors*: as [`Policy::admit`].
    pub(crate) fn fitting(&self, peer: &Peer, wanted: &Wanted<'_>) -> Result<Vec<usize>, String> {
        self.knows(peer)?;
        let (user, interface, name) = (user(peer.uid), wanted.interface, &self.name);
        let mut left: Vec<(usize, &Rule)> =
            self.rules.iter().enumerate().filter(|(_, rule)| rule.is_for(peer)).collect();
        let mut keep = |keeps: &dyn Fn(usize, &Rule) -> bool, missing: String| {
            left.retain(|(at, rule)| keeps(*at, rule));
            if left.is_empty() { Err(missing) } else { Ok(()) }
        };
        let missing = format!(
            "no rule of {name} for {user} has interface {interface}: add an `[[allow]]` with `interface = \"{interface}\"`"
        );
        let is_named = |rule: &Rule| rule.interface == interface || wanted.names.contains(&rule.interface);
        keep(&|_, rule| is_named(rule), missing)?;
        let missing = missing_layer(wanted.layer, &format!("no rule of {name} for {user} on {interface}"));
        keep(&|_, rule| rule.layer() == wanted.layer, missing)?;
        for queue in wanted.queues {
            let missing = format!(
                "no rule of {name} for {user} on {interface} has queue {queue} with what else is asked for: add it to \
                 `queues`, or choose others (xdp_queues)"
            );
            keep(&|_, rule| rule.queues.contains(queue), missing)?;
        }
        for port in wanted.ports {
            let missing = match domain_of(*port) {
                Some(domain) => format!(
                    "no rule of {name} for {user} on {interface} has domain {domain}, whose port {port} is asked for: \
                     add it to `domains`"
                ),
                None => format!(
                    "port {port} is that of no participant of any domain by the rules of RTPS, and no rule of {name} for \
                     {user} on {interface} has it: add it to `ports` if it is a critical port, or take one of the first \
                     {MAX_PARTICIPANTS} participants of this host"
                ),
            };
            keep(&|_, rule| rule.has(*port), missing)?;
        }
        Ok(left.into_iter().map(|(at, _)| at).collect())
    }
}

impl Rule {
    fn is_for(&self, peer: &Peer) -> bool {
        match self.who {
            Who::User(uid) => peer.uid == uid,
            Who::Group(gid) => peer.gids.contains(&gid),
        }
    }

    fn layer(&self) -> Mode {
        match self.gives {
            Gives::Ports { .. } => Mode::L3,
            Gives::Frames => Mode::L2,
        }
    }

    fn has(&self, port: u16) -> bool {
        match &self.gives {
            Gives::Ports { domains, ports } => {
                ports.contains(&port) || domain_of(port).is_some_and(|domain| domains.contains(&domain))
            }
            Gives::Frames => false,
        }
    }
}

/// A user, for people. By number: whoever knows its name may be a network away, and others wait for the answer.
fn user(uid: u32) -> String {
    format!("user {uid}")
}

/// What a rule would have to say that is for a layer, where there is none.
fn missing_layer(layer: Mode, no_rule: &str) -> String {
    match layer {
        Mode::L2 => format!(
            "{no_rule} is for frames without IP: add an `[[allow]]` with `layer = 2` in the place of `domains`"
        ),
        Mode::L3 => format!(
            "{no_rule} is for UDP over IP: add an `[[allow]]` with `domains` in the place of `layer = 2`, or set xdp_layer \
             to 2"
        ),
    }
}

/// The domain in which a participant receives samples at this port. RTPS 2.5 §9.6.2.3.
fn domain_of(port: u16) -> Option<u32> {
    let ports = PortMapping::default();
    let is_of = |domain: &u32| {
        let mut users = (0..MAX_PARTICIPANTS).filter_map(|index| ports.unicast(*domain, index));
        users.any(|(_, user)| user == port)
    };
    (0..=LAST_DOMAIN).find(is_of)
}

/// Where something stands, for errors.
struct Place<'a> {
    text: &'a str,
    name: &'a str,
}

impl Place<'_> {
    fn wrong(&self, at: usize, what: &str) -> String {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        format!("{} line {line}: {what}", self.name)
    }

    fn rule(&self, written: &Spanned<WrittenRule>) -> Result<Rule, String> {
        let (at, rule) = (written.span().start, written.get_ref());
        let name = rule.interface.get_ref();
        if name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) || name.starts_with('.') {
            let what =
                format!("interface = {name:?} is no name of a network interface: `ip link` lists them");
            return Err(self.wrong(rule.interface.span().start, &what));
        }
        let participants = match &rule.participants {
            Some(most) => {
                Some(self.number("participants", most, 1..=MAX_PARTICIPANTS, "number of participants")?)
            }
            None => None,
        };
        Ok(Rule {
            who: self.who(at, rule)?,
            interface: name.clone(),
            queues: self.list(at, "queues", &rule.queues, MAX_QUEUES - 1, "queue")?,
            gives: self.gives(at, rule)?,
            participants,
        })
    }

    fn gives(&self, at: usize, rule: &WrittenRule) -> Result<Gives, String> {
        if self.layer(rule)? == Mode::L2 {
            for (key, list) in [("domains", &rule.domains), ("ports", &rule.ports)] {
                if let Some(list) = list {
                    let what = format!(
                        "a rule with layer = 2 gives all frames without IP, of every domain: remove `{key}`, or \
                         `layer = 2`"
                    );
                    return Err(self.wrong(list.span().start, &what));
                }
            }
            return Ok(Gives::Frames);
        }
        let written = |list: &Option<Spanned<Vec<Spanned<i128>>>>| {
            list.as_ref().map(|list| list.get_ref().clone()).unwrap_or_default()
        };
        let (domains, ports) = (written(&rule.domains), written(&rule.ports));
        let ports = ports.iter().map(|port| self.number("ports", port, 1..=65_535, "UDP port"));
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        // One that names ports may do without domains.
        let domains = match domains.is_empty() && !ports.is_empty() {
            true => Vec::new(),
            false => self.list(at, "domains", &domains, LAST_DOMAIN, "domain")?,
        };
        Ok(Gives::Ports { domains, ports })
    }

    fn layer(&self, rule: &WrittenRule) -> Result<Mode, String> {
        match rule.layer.as_ref().map(|layer| (layer.span().start, *layer.get_ref())) {
            None | Some((_, 3)) => Ok(Mode::L3),
            Some((_, 2)) => Ok(Mode::L2),
            Some((at, other)) => {
                let what = format!(
                    "layer = {other} is none: use 2 for frames without IP, or 3 for UDP over IP, as without it"
                );
                Err(self.wrong(at, &what))
            }
        }
    }

    /// Numbers from 0 to `last`, one at least.
    fn list(
        &self,
        at: usize,
        key: &str,
        list: &[Spanned<i128>],
        last: u32,
        what: &str,
    ) -> Result<Vec<u32>, String> {
        if list.is_empty() {
            let what = format!("{key} is empty, so the rule allows nothing: name one {what}");
            return Err(self.wrong(at, &what));
        }
        list.iter().map(|number| self.number(key, number, 0..=last, what)).collect()
    }

    fn number<N: TryFrom<i128> + PartialOrd + Display>(
        &self,
        key: &str,
        number: &Spanned<i128>,
        range: RangeInclusive<N>,
        what: &str,
    ) -> Result<N, String> {
        let value = *number.get_ref();
        let fitting = N::try_from(value).ok().filter(|number| range.contains(number));
        fitting.ok_or_else(|| {
            let (from, to) = (range.start(), range.end());
            self.wrong(number.span().start, &format!("{key} = {value} is no {what}: use {from} to {to}"))
        })
    }

    fn who(&self, at: usize, rule: &WrittenRule) -> Result<Who, String> {
        match (&rule.user, &rule.group) {
            (Some(user), None) => {
                let named = |name: &str| User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
                self.id("user", user, named).map(Who::User)
            }
            (None, Some(group)) => {
                let named =
                    |name: &str| Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
                self.id("group", group, named).map(Who::Group)
            }
            (Some(_), Some(_)) => Err(self.wrong(at, "a rule is for a user or for a group: make two of it")),
            (None, None) => {
                Err(self.wrong(at, "a rule for nobody: add `user = \"robot\"` or `group = \"dds\"`"))
            }
        }
    }

    fn id(
        &self,
        key: &str,
        value: &Spanned<Value>,
        named: impl Fn(&str) -> Option<u32>,
    ) -> Result<u32, String> {
        let wrong = |what: String| self.wrong(value.span().start, &what);
        let id = match value.get_ref() {
            Value::String(name) => named(name).ok_or_else(|| {
                wrong(format!("{key} = {name:?} is not known here: `getent` lists them, or use a number"))
            })?,
            Value::Integer(number) => u32::try_from(*number)
                .ok()
                .filter(|id| *id != u32::MAX)
                .ok_or_else(|| wrong(format!("{key} = {number} is no number of a {key}: `id` shows it")))?,
            other => return Err(wrong(format!("{key} = {other} is no {key}: use a name or a number"))),
        };
        if id == OVERFLOW {
            let what = format!("{key} = {OVERFLOW} may be anybody's: give the program a {key} of its own");
            return Err(wrong(what));
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_allows_nobody_is_told() {
        let policy = Policy::parse(FILE, "a.toml").unwrap();
        assert_eq!(policy.doubts(|_| true), [""; 0]);
        let told = policy.doubts(|named| named == "eth0");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("a.toml has rules for interface eth1, which is not there"), "{told:?}");
        let twice = Policy::parse(&FILE.replace("eth1", "eth0"), "a.toml").unwrap();
        assert_eq!(twice.doubts(|_| false).len(), 1, "each interface once");
    }

    const FILE: &str = "[[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [0, 1]\ndomains = [0, 7]\n\
                        participants = 2\n\n\
                        [[allow]]\ngroup = 50\ninterface = \"eth1\"\nqueues = [0]\ndomains = [3]\n";

    fn peer(uid: u32, gids: &[u32]) -> Peer {
        Peer { pid: 1, uid, gids: gids.to_vec() }
    }

    #[test]
    fn what_a_rule_allows() {
        let policy = Policy::parse(FILE, "netd.toml").unwrap();
        assert_eq!(policy.rules(), 2);
        let asks = |peer: &Peer, interface, queues: &[u32], ports: &[u16], has: u32| {
            policy.admit(peer, &Wanted { interface, names: &[], layer: Mode::L3, queues, ports }, |_| has)
        };
        let (user, member) = (peer(1_000, &[1_000]), peer(2_000, &[7, 50]));
        assert_eq!(asks(&user, "eth0", &[0, 1], &[7_411, 7_411], 1), Ok(0));
        assert_eq!(asks(&user, "eth0", &[1], &[9_161 + 2 * 119], 0), Ok(0), "the last of domain 7");
        assert_eq!(asks(&member, "eth1", &[0], &[8_161], 100), Ok(1));
        let refused = |peer: &Peer, interface, queues: &[u32], ports: &[u16], has, part: &str| {
            let told = asks(peer, interface, queues, ports, has).unwrap_err();
            assert!(told.contains(part) && !told.contains('\n'), "{told}");
        };
        refused(&peer(1_001, &[1_000]), "eth0", &[0], &[7_411], 0, "is for user 1001: add an `[[allow]]`");
        refused(&user, "eth1", &[0], &[8_161], 0, "has interface eth1");
        refused(&user, "eth0", &[0, 2], &[7_411], 0, "has queue 2");
        refused(&user, "eth0", &[0], &[7_661], 0, "has domain 1, whose port 7661");
        refused(&user, "eth0", &[0], &[7_411, 8_161], 0, "has domain 3");
        for port in [7_410, 7_400, 7_401, 53, 7_411 + 2 * 120] {
            refused(&user, "eth0", &[0], &[port], 0, &format!("port {port} is that of no participant"));
        }
        refused(&user, "eth0", &[0], &[7_411], 2, "as many participants on eth0");
        refused(&member, "eth0", &[0], &[7_411], 0, "has interface eth0");
    }

    #[test]
    fn a_rule_for_critical_ports_is_for_nothing_else() {
        let text = "[[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [3]\nports = [7402, 9000]\n";
        let policy = Policy::parse(text, "netd.toml").unwrap();
        let asks = |ports: &[u16]| {
            let wanted = Wanted { interface: "eth0", names: &[], layer: Mode::L3, queues: &[3], ports };
            policy.admit(&peer(1_000, &[]), &wanted, |_| 0)
        };
        assert_eq!((asks(&[7_402]), asks(&[9_000, 7_402])), (Ok(0), Ok(0)));
        let told = asks(&[7_402, 7_411]).unwrap_err();
        assert!(told.contains("has domain 0, whose port 7411 is asked for"), "{told}");
        assert!(asks(&[7_403]).unwrap_err().contains("add it to `ports` if it is a critical port"));
        let told = Policy::parse(&text.replace("7402", "0"), "a.toml").unwrap_err();
        assert_eq!(told, "a.toml line 5: ports = 0 is no UDP port: use 1 to 65535");
        let told = Policy::parse(&text.replace("7402, 9000", ""), "a.toml").unwrap_err();
        assert!(told.contains("domains is empty"), "{told}");
    }

    /// Each gives nothing of the other layer, whatever else it has.
    #[test]
    fn a_rule_is_for_one_layer() {
        let of_frames = "[[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [0, 1]\nlayer = 2\n";
        let of_ports = of_frames.replace("layer = 2", "domains = [0]");
        let asks = |text: &str, layer, queues: &[u32]| {
            let ports: &[u16] = if layer == Mode::L3 { &[7_411] } else { &[] };
            let wanted = Wanted { interface: "eth0", names: &[], layer, queues, ports };
            let policy = Policy::parse(text, "netd.toml").unwrap();
            policy.admit(&peer(1_000, &[]), &wanted, |_| 0)
        };
        assert_eq!((asks(of_frames, Mode::L2, &[1, 0]), asks(&of_ports, Mode::L3, &[1])), (Ok(0), Ok(0)));
        let of_both = format!("{of_ports}{of_frames}");
        assert_eq!((asks(&of_both, Mode::L2, &[0]), asks(&of_both, Mode::L3, &[0])), (Ok(1), Ok(0)));
        let with_three = of_ports.replace("domains", "layer = 3\ndomains");
        assert_eq!(asks(&with_three, Mode::L3, &[0]), Ok(0));
        for text in [&of_ports, &with_three] {
            let told = asks(text, Mode::L2, &[0]).unwrap_err();
            let wanted = "no rule of netd.toml for user 1000 on eth0 is for frames without IP: add an `[[allow]]` with \
                          `layer = 2` in the place of `domains`";
            assert_eq!(told, wanted);
        }
        let told = asks(of_frames, Mode::L3, &[0]).unwrap_err();
        assert!(told.contains("on eth0 is for UDP over IP: add an `[[allow]]` with `domains`"), "{told}");
        let told = asks(of_frames, Mode::L2, &[2]).unwrap_err();
        assert!(told.contains("on eth0 has queue 2"), "{told}");
        let told = asks(&of_frames.replace("eth0", "eth1"), Mode::L2, &[0]).unwrap_err();
        assert!(told.contains("has interface eth0"), "{told}");
    }

    /// What one rule lacks another one does not lend it.
    #[test]
    fn rules_do_not_add_up() {
        let file = "[[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [0]\ndomains = [0]\n\
                    [[allow]]\nuser = 1000\ninterface = \"eth0\"\nqueues = [1]\ndomains = [1]\n";
        let policy = Policy::parse(file, "netd.toml").unwrap();
        let asks = |queues: &[u32], ports: &[u16]| {
            let wanted = Wanted { interface: "eth0", names: &[], layer: Mode::L3, queues, ports };
            policy.admit(&peer(1_000, &[]), &wanted, |_| 0)
        };
        assert_eq!((asks(&[0], &[7_411]), asks(&[1], &[7_661])), (Ok(0), Ok(1)));
        for (queues, ports) in [(&[0, 1][..], &[7_411][..]), (&[0], &[7_661]), (&[1], &[7_661, 7_411])] {
            assert!(asks(queues, ports).is_err(), "{queues:?} {ports:?}");
        }
    }

    #[test]
    fn names_of_users_and_groups() {
        let file = |who: &str| {
            let text = format!("[[allow]]\n{who}\ninterface = \"a\"\nqueues = [0]\ndomains = [0]\n");
            Policy::parse(&text, "a.toml")
        };
        assert!(file("user = \"root\"").unwrap().knows(&peer(0, &[])).is_ok());
        assert!(file("group = \"root\"").unwrap().knows(&peer(5, &[1, 0])).is_ok());
        for (who, part) in [
            (
                "user = \"nobody-is-called-so\"",
                "a.toml line 2: user = \"nobody-is-called-so\" is not known here",
            ),
            ("user = -1", "a.toml line 2: user = -1 is no number of a user"),
            ("user = 4294967295", "is no number of a user"),
            ("group = 65534", "may be anybody's"),
            ("group = true", "a.toml line 2: group = true is no group"),
            ("user = 1\ngroup = 2", "make two of it"),
            ("participants = 1", "a rule for nobody"),
        ] {
            let told = file(who).unwrap_err();
            assert!(told.contains(part) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn one_sentence_with_the_line() {
        for (from, to, part) in [
            (
                "queues = [0, 1]",
                "queues = [0, 4096]",
                "a.toml line 4: queues = 4096 is no queue: use 0 to 4095",
            ),
            ("queues = [0, 1]", "queues = []", "queues is empty"),
            ("queues = [0, 1]", "queue = [0]", "a.toml line 4: unknown field `queue`"),
            ("queues = [0, 1]", "", "a.toml line 1: missing field `queues`"),
            ("domains = [0, 7]", "domains = [0,\n233]", "a.toml line 6: domains = 233 is no domain"),
            ("domains = [0, 7]", "domains = [-1]", "a.toml line 5: domains = -1 is no domain: use 0 to 232"),
            (
                "domains = [0, 7]",
                "ports = [70000]",
                "a.toml line 5: ports = 70000 is no UDP port: use 1 to 65535",
            ),
            ("participants = 2", "participants = 0", "a.toml line 6: participants = 0 is no number"),
            (
                "participants = 2",
                "layer = 4",
                "a.toml line 6: layer = 4 is none: use 2 for frames without IP, or 3",
            ),
            (
                "participants = 2",
                "layer = 2",
                "a.toml line 5: a rule with layer = 2 gives all frames without IP",
            ),
            (
                "domains = [0, 7]",
                "layer = 2\nports = []",
                "a.toml line 6: a rule with layer = 2 gives all frames",
            ),
            ("domains = [0, 7]", "layer = 3", "a.toml line 1: domains is empty"),
            ("domains = [0, 7]", "layer = \"2\"", "a.toml line 5: invalid type"),
            ("\"eth0\"", "\"../x\"", "a.toml line 3: interface = \"../x\" is no name"),
            ("[[allow]]\ngroup", "[[deny]]\ngroup", "a.toml line 8: unknown field `deny`"),
            ("user = 1000", "user =", "a.toml line 2: "),
        ] {
            let told = Policy::parse(&FILE.replacen(from, to, 1), "a.toml").unwrap_err();
            assert!(
                told.starts_with("a.toml line ") && told.contains(part) && !told.contains('\n'),
                "{told}"
            );
        }
    }
}
