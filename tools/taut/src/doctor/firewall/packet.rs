//! A packet as a condition of nftables sees it: does it match, does it not, or does that hang on what is not known?

use std::net::IpAddr;

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
    pub to: IpAddr,
    pub port: u16,
}

/// The sets of a table, by their names.
pub type Sets = Map<String, Value>;

/// What a packet has at the place that a condition looks at.
enum Has<'a> {
    Number(u64),
    /// One of these words: the same said in several ways.
    Words(Vec<&'a str>),
    Address(IpAddr),
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
            return (word(route, "result")? == "type" && is_of_destination(route)).then(|| self.route());
        }
        None
    }

    /// The type of the route to where it goes: what goes out is for another host.
    fn route(&self) -> Has<'_> {
        let own = match self.direction {
            Direction::In => "local",
            Direction::Out => "unicast",
        };
        Has::Words(vec![self.kind(own)])
    }

    /// What conditions call the kind of its addresses: of headers, of the firewall, of Ethernet.
    fn kinds(&self) -> (&'static str, [&'static str; 2], [&'static str; 2]) {
        match self.to {
            IpAddr::V4(_) => ("ip", ["ipv4", "2"], ["ip", "8"]),
            IpAddr::V6(_) => ("ip6", ["ipv6", "10"], ["ip6", "56710"]),
        }
    }

    /// Does it go through chains of this family?
    pub fn is_of(&self, family: &str) -> bool {
        family == "inet" || family == self.kinds().0
    }

    fn payload(&self, protocol: &str, field: &str) -> Option<Has<'_>> {
        let protocol = if protocol == self.kinds().0 { "own" } else { protocol };
        match (protocol, field) {
            ("udp" | "th", "dport") => Some(Has::Number(self.port.into())),
            ("own", "protocol" | "nexthdr") => Some(Has::Words(vec!["udp", "17"])),
            ("own", "daddr") => Some(Has::Address(self.to)),
            ("own", "version") => Some(Has::Number(if self.to.is_ipv4() { 4 } else { 6 })),
            ("udp" | "th" | "own" | "ether", _) => None,
            // Of another protocol: the other IP, TCP, ICMP and the like.
            _ => Some(Has::Nothing),
        }
    }

    fn meta(&self, key: &str) -> Option<Has<'_>> {
        let (_, family, ether) = self.kinds();
        match (key, self.direction) {
            ("l4proto", _) => Some(Has::Words(vec!["udp", "17"])),
            ("nfproto", _) => Some(Has::Words(family.to_vec())),
            ("protocol", _) => Some(Has::Words(ether.to_vec())),
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

/// Is a route asked for by the destination alone? By the source, by a mark or an interface as well it is another one.
fn is_of_destination(route: &Value) -> bool {
    let flags = route.get("flags");
    let alone =
        flags.and_then(Value::as_array).map_or(flags, |flags| flags.first().filter(|_| flags.len() == 1));
    alone.and_then(Value::as_str) == Some("daddr")
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
            let address: IpAddr = prefix.get("addr")?.as_str()?.parse().ok()?;
            let bits = if own.is_ipv4() { 32 } else { 128 };
            let length = u32::try_from(prefix.get("len")?.as_u64()?).ok().filter(|length| *length <= bits)?;
            let network = |address: &IpAddr| order(address).checked_shr(bits - length).unwrap_or(0);
            return Some(own.is_ipv4() == address.is_ipv4() && network(own) == network(&address));
        }
        self.is(right)
    }

    /// Is it this single value?
    fn is(&self, right: &Value) -> Option<bool> {
        match self {
            Has::Nothing => Some(false),
            Has::Number(own) => Some(u128::from(*own) == number(right)?),
            Has::Address(own) => Some(*own == right.as_str()?.parse::<IpAddr>().ok()?),
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
    fn order(&self) -> Option<u128> {
        match self {
            Has::Number(own) => Some((*own).into()),
            Has::Address(own) => Some(order(own)),
            Has::Words(_) | Has::Nothing => None,
        }
    }
}

fn number(value: &Value) -> Option<u128> {
    let address = |text: &str| text.parse().ok().map(|address| order(&address));
    let of_text = |text: &str| text.parse().ok().or_else(|| address(text));
    value.as_u64().map(u128::from).or_else(|| value.as_str().and_then(of_text))
}

/// Addresses of one kind in their order.
fn order(address: &IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
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
        Packet { direction, interface: "eth0", to: [239, 255, 0, 1].into(), port: 7_400 }
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
    fn over_ipv6() {
        let to = "ff02::ffff:efff:1".parse().unwrap();
        let packet = Packet { to, ..packet(Direction::In) };
        let holds = |left: &Value, right: Value| {
            packet.matches(&json!({"op": "==", "left": left, "right": right}), &Sets::new())
        };
        let to = json!({"payload": {"protocol": "ip6", "field": "daddr"}});
        assert_eq!(holds(&to, json!("ff02::ffff:239.255.0.1")), Some(true));
        assert_eq!(holds(&to, json!({"prefix": {"addr": "ff00::", "len": 8}})), Some(true));
        assert_eq!(holds(&to, json!({"prefix": {"addr": "fe80::", "len": 10}})), Some(false));
        assert_eq!(holds(&to, json!({"prefix": {"addr": "::", "len": 0}})), Some(true));
        assert_eq!(holds(&to, json!({"range": ["ff02::1", "ff02::1:0:0:0"]})), Some(true));
        let header = |field: &str| json!({"payload": {"protocol": "ip6", "field": field}});
        assert_eq!(holds(&header("nexthdr"), json!("udp")), Some(true));
        assert_eq!(holds(&header("version"), json!(6)), Some(true));
        assert_eq!(holds(&header("saddr"), json!("fd00::1")), None);
        let v4 = json!({"payload": {"protocol": "ip", "field": "daddr"}});
        assert_eq!(holds(&v4, json!("239.255.0.1")), Some(false));
        assert_eq!(holds(&json!({"meta": {"key": "nfproto"}}), json!("ipv6")), Some(true));
        assert_eq!(holds(&json!({"meta": {"key": "protocol"}}), json!("ip")), Some(false));
        assert!(packet.is_of("inet") && packet.is_of("ip6") && !packet.is_of("ip") && !packet.is_of("arp"));
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
        let out = json!({"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "eth0"});
        assert_eq!(packet(Direction::Out).matches(&out, &Sets::new()), Some(true));
    }

    /// nftables asks the routes for the source as well, and whose that is, is not known.
    #[test]
    fn routes() {
        let group = packet(Direction::In);
        let unicast = |direction| Packet { to: [10, 0, 0, 1].into(), ..packet(direction) };
        let is = |packet: &Packet<'_>, flags: Value, kind: &str| {
            let fib = json!({"fib": {"result": "type", "flags": flags}});
            packet.matches(&json!({"op": "==", "left": fib, "right": kind}), &Sets::new())
        };
        for flags in [json!(["daddr"]), json!("daddr")] {
            assert_eq!(is(&group, flags.clone(), "multicast"), Some(true));
            assert_eq!(is(&unicast(Direction::In), flags.clone(), "local"), Some(true));
            assert_eq!(is(&unicast(Direction::Out), flags.clone(), "local"), Some(false), "it is a peer's");
            assert_eq!(is(&unicast(Direction::Out), flags, "unicast"), Some(true));
        }
        for flags in
            [json!(["saddr"]), json!("saddr"), json!(["daddr", "iif"]), json!(["mark", "daddr"]), json!([])]
        {
            assert_eq!(is(&unicast(Direction::In), flags.clone(), "local"), None, "{flags}");
            assert_eq!(is(&group, flags.clone(), "multicast"), None, "{flags}");
        }
    }
}
