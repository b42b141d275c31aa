//! A packet as a condition of nftables sees it: does it match, does it not, or does that hang on what is not known?

use std::net::Ipv4Addr;

use serde_json::{Map, Value};

/// Where a packet is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    In,
    Out,
}

/// The first datagram of somebody to a port.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    pub direction: Direction,
    pub interface: &'a str,
    pub to: Ipv4Addr,
    pub port: u16,
}

/// The sets of a table, by their names.
pub type Sets = Map<String, Value>;

/// What a packet has at the place that a condition looks at.
enum Has<'a> {
    Number(u64),
    /// One of these words: the same said in several ways.
    Words(Vec<&'a str>),
    Address(Ipv4Addr),
    /// Nothing: the condition is about packets of another kind.
    Nothing,
}

impl Packet<'_> {
    /// Does a condition hold? `None`: it hangs on what is not known here.
    pub fn matches(&self, condition: &Value, sets: &Sets) -> Option<bool> {
        let has = self.at(condition.get("left")?)?;
        if matches!(has, Has::Nothing) {
            return Some(false);
        }
        let right = condition.get("right")?;
        match condition.get("op").and_then(Value::as_str)? {
            "==" | "in" => has.is_among(right, sets),
            "!=" => has.is_among(right, sets).map(|is| !is),
            ordered => has.compares(ordered, right),
        }
    }

    /// Is it this key of a verdict map?
    pub fn is_key(&self, key: &Value, element: &Value, sets: &Sets) -> Option<bool> {
        self.at(key)?.is_among(element, sets)
    }

    /// What it has there; `None` if that is not known.
    fn at(&self, left: &Value) -> Option<Has<'_>> {
        let word = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(payload) = left.get("payload") {
            return self.payload(&word(payload, "protocol")?, &word(payload, "field")?);
        }
        if let Some(meta) = left.get("meta") {
            return self.meta(&word(meta, "key")?);
        }
        if let Some(tracked) = left.get("ct") {
            return (word(tracked, "key")? == "state").then(|| Has::Words(vec!["new"]));
        }
        if let Some(route) = left.get("fib") {
            return (word(route, "result")? == "type").then(|| Has::Words(vec![self.kind("local")]));
        }
        None
    }

    fn payload(&self, protocol: &str, field: &str) -> Option<Has<'_>> {
        match (protocol, field) {
            ("udp" | "th", "dport") => Some(Has::Number(self.port.into())),
            ("ip", "protocol") => Some(Has::Words(vec!["udp", "17"])),
            ("ip", "daddr") => Some(Has::Address(self.to)),
            ("ip", "version") => Some(Has::Number(4)),
            ("udp" | "th" | "ip" | "ether", _) => None,
            // Of another protocol: IPv6, TCP, ICMP and the like.
            _ => Some(Has::Nothing),
        }
    }

    fn meta(&self, key: &str) -> Option<Has<'_>> {
        match (key, self.direction) {
            ("l4proto", _) => Some(Has::Words(vec!["udp", "17"])),
            ("nfproto", _) => Some(Has::Words(vec!["ipv4", "2"])),
            ("protocol", _) => Some(Has::Words(vec!["ip", "8"])),
            ("iif" | "iifname", Direction::In) | ("oif" | "oifname", Direction::Out) => {
                Some(Has::Words(vec![self.interface]))
            }
            ("pkttype", Direction::In) => Some(Has::Words(vec![self.kind("host")])),
            _ => None,
        }
    }

    fn kind(&self, own: &'static str) -> &'static str {
        if self.to.is_multicast() { "multicast" } else { own }
    }
}

impl Has<'_> {
    /// Is it the value, in the range, one of the list?
    fn is_among(&self, right: &Value, sets: &Sets) -> Option<bool> {
        if matches!(self, Has::Nothing) {
            return Some(false);
        }
        if let Some(list) = right.get("set").or(Some(right)).and_then(Value::as_array) {
            return any(list.iter().map(|element| self.is_among(element, sets)));
        }
        if let Some(name) = right.as_str().and_then(|text| text.strip_prefix('@')) {
            return self.is_among(sets.get(name)?, sets);
        }
        if let Some(element) = right.get("elem") {
            return self.is_among(element.get("val")?, sets);
        }
        if let Some(range) = right.get("range").and_then(Value::as_array) {
            let [first, last] = range.as_slice() else { return None };
            return Some(self.order()? >= number(first)? && self.order()? <= number(last)?);
        }
        if let (Some(prefix), Has::Address(own)) = (right.get("prefix"), self) {
            let address: Ipv4Addr = prefix.get("addr")?.as_str()?.parse().ok()?;
            let length = u32::try_from(prefix.get("len")?.as_u64()?).ok().filter(|length| *length <= 32)?;
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            return Some(own.to_bits() & mask == address.to_bits() & mask);
        }
        self.is(right)
    }

    /// Is it this single value?
    fn is(&self, right: &Value) -> Option<bool> {
        match self {
            Has::Nothing => Some(false),
            Has::Number(own) => Some(*own == number(right)?),
            Has::Address(own) => Some(*own == right.as_str()?.parse::<Ipv4Addr>().ok()?),
            Has::Words(words) => {
                let text = right.as_str().map_or_else(|| right.to_string(), str::to_owned);
                let is = |word: &&str| match text.strip_suffix('*') {
                    Some(beginning) => word.starts_with(beginning),
                    None => **word == text,
                };
                Some(words.iter().any(is))
            }
        }
    }

    fn compares(&self, operator: &str, right: &Value) -> Option<bool> {
        let (own, other) = (self.order()?, number(right)?);
        match operator {
            "<" => Some(own < other),
            "<=" => Some(own <= other),
            ">" => Some(own > other),
            ">=" => Some(own >= other),
            _ => None,
        }
    }

    /// As a number that can be compared.
    fn order(&self) -> Option<u64> {
        match self {
            Has::Number(own) => Some(*own),
            Has::Address(own) => Some(own.to_bits().into()),
            Has::Words(_) | Has::Nothing => None,
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    let address = |text: &str| text.parse::<Ipv4Addr>().ok().map(|address| address.to_bits().into());
    value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok().or_else(|| address(text))))
}

/// True if one is, unknown if one may be.
fn any(mut all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut doubt = false;
    let found = all.any(|one| {
        doubt |= one.is_none();
        one == Some(true)
    });
    if found || !doubt { Some(found) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packet(direction: Direction) -> Packet<'static> {
        Packet { direction, interface: "eth0", to: Ipv4Addr::new(239, 255, 0, 1), port: 7_400 }
    }

    fn holds(left: Value, op: &str, right: Value) -> Option<bool> {
        let sets = json!({"ports": [7_400, {"range": [8_000, 9_000]}], "hosts": ["192.0.2.1"]});
        let condition = json!({"op": op, "left": left, "right": right});
        packet(Direction::In).matches(&condition, sets.as_object().unwrap())
    }

    #[test]
    fn ports() {
        let port = || json!({"payload": {"protocol": "udp", "field": "dport"}});
        assert_eq!(holds(port(), "==", json!(7_400)), Some(true));
        assert_eq!(holds(port(), "==", json!({"range": [7_000, 7_399]})), Some(false));
        assert_eq!(holds(port(), "!=", json!(53)), Some(true));
        assert_eq!(holds(port(), "==", json!({"set": [1, {"range": [7_400, 7_500]}]})), Some(true));
        assert_eq!(holds(port(), "==", json!("@ports")), Some(true));
        assert_eq!(holds(port(), "==", json!("@unknown")), None);
        assert_eq!(holds(port(), "<", json!(1_024)), Some(false));
        assert_eq!(holds(json!({"payload": {"protocol": "udp", "field": "sport"}}), "==", json!(7)), None);
        assert_eq!(
            holds(json!({"payload": {"protocol": "tcp", "field": "dport"}}), "==", json!(7_400)),
            Some(false)
        );
        assert_eq!(
            holds(json!({"payload": {"protocol": "tcp", "field": "dport"}}), "!=", json!(22)),
            Some(false),
            "a condition on TCP holds for no datagram"
        );
    }

    #[test]
    fn addresses() {
        let to = || json!({"payload": {"protocol": "ip", "field": "daddr"}});
        assert_eq!(holds(to(), "==", json!("239.255.0.1")), Some(true));
        assert_eq!(holds(to(), "==", json!({"prefix": {"addr": "224.0.0.0", "len": 4}})), Some(true));
        assert_eq!(holds(to(), "==", json!({"range": ["10.0.0.0", "10.0.0.9"]})), Some(false));
        assert_eq!(
            holds(json!({"payload": {"protocol": "ip", "field": "saddr"}}), "==", json!("@hosts")),
            None
        );
        assert_eq!(
            holds(json!({"payload": {"protocol": "ip6", "field": "daddr"}}), "==", json!("::1")),
            Some(false)
        );
    }

    #[test]
    fn where_it_is_and_what_it_is() {
        assert_eq!(holds(json!({"meta": {"key": "iifname"}}), "==", json!("eth*")), Some(true));
        assert_eq!(holds(json!({"meta": {"key": "iif"}}), "==", json!("lo")), Some(false));
        assert_eq!(holds(json!({"meta": {"key": "oifname"}}), "==", json!("eth0")), None);
        assert_eq!(holds(json!({"meta": {"key": "pkttype"}}), "==", json!("multicast")), Some(true));
        assert_eq!(
            holds(json!({"meta": {"key": "l4proto"}}), "==", json!({"set": ["tcp", "udp"]})),
            Some(true)
        );
        assert_eq!(
            holds(json!({"ct": {"key": "state"}}), "in", json!(["established", "related"])),
            Some(false)
        );
        assert_eq!(holds(json!({"ct": {"key": "state"}}), "in", json!("new")), Some(true));
        let kind = json!({"fib": {"result": "type", "flags": ["daddr"]}});
        assert_eq!(holds(kind, "==", json!("multicast")), Some(true));
        let out = json!({"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "eth0"});
        assert_eq!(packet(Direction::Out).matches(&out, &Sets::new()), Some(true));
    }
}
