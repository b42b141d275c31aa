//! The file that says what is wanted: TOML, as a participant's configuration.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Deserialize;
use toml::Spanned;

/// The last domain whose ports are below 65,536 (RTPS 2.5 §9.6.2.3).
const LAST_DOMAIN: u32 = 232;
/// Participants of a host and a domain whose ports are critical, if the file does not say. Higher takes more rules of
/// a table that may have room for sixteen; lower, and samples for the last participants wait with all others.
const PARTICIPANTS: u32 = 4;
/// Participants of a host and a domain whose ports are given by the standard.
const MAX_PARTICIPANTS: u32 = 120;
/// The SO_PRIORITY of datagrams with DSCP 46, which Taut's writers have from TRANSPORT_PRIORITY 100 on:
/// TC_PRIO_INTERACTIVE.
const PRIORITY: u8 = 6;
/// Queues that an interface has at most: those of virtual ones.
pub(crate) const MAX_QUEUES: u32 = 4_096;
/// The last processor that a kernel can be built for: NR_CPUS of arch/x86/Kconfig, less one.
const LAST_CPU: u32 = 8_191;
/// Bytes of the longest name of an interface: IFNAMSIZ of linux/if.h, without the zero at the end.
const LONGEST_NAME: usize = 15;
/// A schedule has at most so many slots: NICs have room for some dozens.
const MAX_SLOTS: usize = 64;

/// What is wanted of a NIC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NicConfig {
    /// The network interface, by name.
    pub interface: String,
    /// How many queues it is to have; `None`: one for each processor, up to the last critical one, 2, or as now: the most of these.
    pub queues: Option<u32>,
    /// The queues of critical traffic; empty: the last.
    pub critical_queues: Vec<u32>,
    /// The processors of the critical queues; empty: any.
    pub cpus: Vec<u32>,
    /// The domains whose samples are critical.
    pub domains: Vec<u32>,
    /// Participants of each domain on this host.
    pub participants: u32,
    /// Do these participants do without IP?
    pub without_ip: bool,
    /// Are ports steered over IPv6, too?
    pub ipv6: bool,
    /// UDP ports that are critical besides.
    pub ports: Vec<u16>,
    /// The VLAN that the critical frames are of; 0: none.
    pub vlan: u16,
    /// The priority in their VLAN tag; `None`: they have no tag, or that of the VLAN with the lowest one.
    pub pcp: Option<u8>,
    /// Values of SO_PRIORITY that are critical.
    pub priorities: Vec<u8>,
    /// Frames that the receive ring holds; `None`: as many as it can.
    pub ring: Option<u32>,
    /// When critical frames may leave, and when all others; empty: whenever they are there.
    pub schedule: Vec<Slot>,
}

/// A slot of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Is it that of the critical frames, or that of all others?
    pub critical: bool,
    /// How long.
    pub length_ns: u32,
}

/// The file as it is written. Its numbers are any: those that are none here are told what they may be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    interface: Spanned<String>,
    queues: Option<Spanned<i128>>,
    critical_queues: Option<Spanned<Vec<Spanned<i128>>>>,
    #[serde(default)]
    cpus: Vec<Spanned<i128>>,
    domains: Option<Vec<Spanned<i128>>>,
    participants: Option<Spanned<i128>>,
    layer: Option<Spanned<i128>>,
    #[serde(default)]
    ipv6: bool,
    #[serde(default)]
    ports: Vec<Spanned<i128>>,
    vlan: Option<Spanned<i128>>,
    pcp: Option<Spanned<i128>>,
    priorities: Option<Vec<Spanned<i128>>>,
    ring: Option<Spanned<i128>>,
    #[serde(default)]
    schedule: Vec<Spanned<String>>,
}

impl NicConfig {
    /// What is wanted where there is no file: the last queue and the last processor of `cpus` for the samples of one
    /// domain.
    ///
    /// ```
    /// let config = taut_nic::NicConfig::of_interface("eth0", 3, &[0, 1]);
    /// assert_eq!(config.cpus, [1]);
    /// ```
    pub fn of_interface(interface: &str, domain_id: u32, cpus: &[u32]) -> NicConfig {
        NicConfig {
            interface: interface.to_owned(),
            queues: None,
            critical_queues: Vec::new(),
            cpus: cpus.last().copied().into_iter().collect(),
            domains: vec![domain_id],
            participants: PARTICIPANTS,
            without_ip: false,
            ipv6: false,
            ports: Vec::new(),
            vlan: 0,
            pcp: None,
            priorities: vec![PRIORITY],
            ring: None,
            schedule: Vec::new(),
        }
    }

    /// Reads a file; `name` is what errors call it.
    ///
    /// *Errors*: one sentence with the line and the remedy.
    ///
    /// ```
    /// let error = taut_nic::NicConfig::parse("interface = \"eth0\"\npcp = 8", "eth0.toml").unwrap_err();
    /// assert_eq!(error, "eth0.toml line 2: pcp = 8 is no priority of a VLAN tag: use 0 to 7");
    /// ```
    pub fn parse(text: &str, name: &str) -> Result<NicConfig, String> {
        let place = Place { text, name };
        let written: Written = toml::from_str(text).map_err(|error| {
            let what = error.message().lines().collect::<Vec<_>>().join("; ");
            let what = what.replace("expected i128", "expected a whole number");
            let remedy = "write lines as `interface = \"eth0\"` and `critical_queues = [3]`";
            place.wrong(error.span().map_or(0, |span| span.start), &format!("{what}; {remedy}"))
        })?;
        let interface = place.interface(&written.interface)?;
        if let Some(slot) = written.schedule.get(MAX_SLOTS) {
            let what = format!("schedule has more than {MAX_SLOTS} slots: leave some out");
            return Err(place.wrong(slot.span().start, &what));
        }
        let schedule = written.schedule.iter().map(|slot| place.slot(slot)).collect::<Result<_, _>>()?;
        let vlan = place.one("vlan", &written.vlan, 0..=4_094, "VLAN")?;
        let pcp = place.one("pcp", &written.pcp, 0..=7, "priority of a VLAN tag")?;
        let layer = place.one("layer", &written.layer, 2..=3, "layer of Taut's")?;
        let participants = place.one(
            "participants",
            &written.participants,
            1..=MAX_PARTICIPANTS,
            "number of participants",
        )?;
        let cpus = place.all("cpus", &written.cpus, 0..=LAST_CPU, "processor")?;
        let priorities = written.priorities.as_deref();
        let priorities = priorities
            .map(|list| place.all("priorities", list, 0..=15, "priority that a qdisc tells apart"))
            .transpose()?;
        Ok(NicConfig {
            interface,
            queues: place.one("queues", &written.queues, 1..=MAX_QUEUES, "number of queues")?,
            critical_queues: place.critical_queues(&written.critical_queues)?,
            // As the kernel tells them: what was set is known by that.
            cpus: BTreeSet::from_iter(cpus).into_iter().collect(),
            domains: once(place.all(
                "domains",
                written.domains.as_deref().unwrap_or_default(),
                0..=LAST_DOMAIN,
                "domain",
            )?),
            participants: participants.unwrap_or(PARTICIPANTS),
            without_ip: layer == Some(2),
            ipv6: written.ipv6,
            ports: once(place.all("ports", &written.ports, 1..=65_535, "UDP port")?),
            vlan: vlan.unwrap_or(0),
            // A tag has both; one of VLAN 0 alone has the lowest priority. All frames of another VLAN have a tag, so the
            // lowest one tells none of them apart.
            pcp: pcp.or((vlan == Some(0)).then_some(0)),
            priorities: priorities.map_or_else(|| vec![PRIORITY], once),
            ring: place.one("ring", &written.ring, 1..=65_536, "number of frames")?,
            schedule,
        })
    }

    /// The bytes of the VLAN tag behind its EtherType, TCI.
    pub fn tag(&self) -> Option<u16> {
        let has_tag = self.vlan > 0 || self.pcp.is_some();
        has_tag.then(|| u16::from(self.pcp.unwrap_or(0)) << 13 | self.vlan)
    }

    /// The interface that participants use; that of a VLAN by the name that it is usually given, or by a shorter one where
    /// that is too long for the kernel.
    pub fn used_interface(&self) -> String {
        if self.vlan == 0 {
            return self.interface.clone();
        }
        let usual = format!("{}.{}", self.interface, self.vlan);
        if usual.len() <= LONGEST_NAME { usual } else { format!("vlan{}", self.vlan) }
    }
}

/// Each number where it is first named.
fn once<N: Ord + Copy>(numbers: Vec<N>) -> Vec<N> {
    let mut named = BTreeSet::new();
    numbers.into_iter().filter(|number| named.insert(*number)).collect()
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

    fn interface(&self, written: &Spanned<String>) -> Result<String, String> {
        let name = written.get_ref();
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains(['/', ' ']) || name.starts_with('.')
        {
            let what =
                format!("interface = {name:?} is no name of a network interface: `ip link` lists them");
            return Err(self.wrong(written.span().start, &what));
        }
        Ok(name.clone())
    }

    /// What is not named is empty here, and an empty list names nothing.
    fn critical_queues(&self, written: &Option<Spanned<Vec<Spanned<i128>>>>) -> Result<Vec<u32>, String> {
        let Some(list) = written else { return Ok(Vec::new()) };
        if list.get_ref().is_empty() {
            let what = "critical_queues is empty: name one, or leave the line out for the last one";
            return Err(self.wrong(list.span().start, what));
        }
        self.all("critical_queues", list.get_ref(), 0..=MAX_QUEUES - 1, "queue").map(once)
    }

    /// A number that means something.
    fn number<N: TryFrom<i128> + PartialOrd + Display>(
        &self,
        key: &str,
        written: &Spanned<i128>,
        range: &RangeInclusive<N>,
        what: &str,
    ) -> Result<N, String> {
        let number = N::try_from(*written.get_ref()).ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (value, from, to) = (written.get_ref(), range.start(), range.end());
            self.wrong(written.span().start, &format!("{key} = {value} is no {what}: use {from} to {to}"))
        })
    }

    fn one<N: TryFrom<i128> + PartialOrd + Display>(
        &self,
        key: &str,
        written: &Option<Spanned<i128>>,
        range: RangeInclusive<N>,
        what: &str,
    ) -> Result<Option<N>, String> {
        written.as_ref().map(|number| self.number(key, number, &range, what)).transpose()
    }

    fn all<N: TryFrom<i128> + PartialOrd + Display>(
        &self,
        key: &str,
        written: &[Spanned<i128>],
        range: RangeInclusive<N>,
        what: &str,
    ) -> Result<Vec<N>, String> {
        written.iter().map(|number| self.number(key, number, &range, what)).collect()
    }

    /// `critical 300us`, `others 700us`.
    fn slot(&self, written: &Spanned<String>) -> Result<Slot, String> {
        let wrong = || {
            let what = format!(
                "schedule has {:?}, which is no slot: write `critical 300us` or `others 700us`, up to 1s",
                written.get_ref()
            );
            self.wrong(written.span().start, &what)
        };
        let (who, length) = written.get_ref().split_once(' ').ok_or_else(wrong)?;
        let critical = match who {
            "critical" => true,
            "others" => false,
            _ => return Err(wrong()),
        };
        let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let length_ns = units.iter().find_map(|(unit, ns)| {
            let number: u64 = length.strip_suffix(unit)?.trim().parse().ok()?;
            number.checked_mul(*ns)
        });
        let fits = |ns: &u64| (1..=1_000_000_000).contains(ns);
        let length_ns = length_ns.filter(fits).and_then(|ns| u32::try_from(ns).ok()).ok_or_else(wrong)?;
        Ok(Slot { critical, length_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_file_may_say() {
        let text = "interface = \"eth0\"\nqueues = 4\ncritical_queues = [2, 3]\ncpus = [1]\ndomains = [0, 7]\n\
                    participants = 2\nlayer = 2\nipv6 = true\nports = [9000]\nvlan = 0\npcp = 6\npriorities = [6, 7]\nring = 512\n\
                    schedule = [\"critical 300us\", \"others 2ms\"]\n";
        let config = NicConfig::parse(text, "a.toml").unwrap();
        assert_eq!((config.queues, config.critical_queues.as_slice()), (Some(4), [2, 3].as_slice()));
        assert_eq!((config.tag(), config.ring), (Some(0xc000), Some(512)));
        assert!(config.without_ip && config.ipv6);
        assert_eq!(config.schedule[1], Slot { critical: false, length_ns: 2_000_000 });
        let tag = |line: &str| NicConfig::parse(&format!("interface = \"a\"\n{line}"), "a").unwrap().tag();
        assert_eq!([tag("pcp = 7"), tag("vlan = 0"), tag("")], [Some(0xe000), Some(0), None]);
        assert_eq!([tag("vlan = 5"), tag("vlan = 4094\npcp = 6")], [Some(0x0005), Some(0xcffe)]);
    }

    #[test]
    fn the_interface_of_a_vlan_has_a_name_that_can_be() {
        let used = |interface: &str, vlan: u16| {
            let config = format!("interface = {interface:?}\nvlan = {vlan}");
            NicConfig::parse(&config, "a").unwrap().used_interface()
        };
        assert_eq!([used("eth0", 0), used("eth0", 5)], ["eth0", "eth0.5"]);
        assert_eq!([used("enp2s0f0np", 4094), used("enp2s0f0np0", 4094)], ["enp2s0f0np.4094", "vlan4094"]);
    }

    /// A queue, a processor or a domain that is named twice is one; the kernel tells processors in their order.
    #[test]
    fn what_is_named_twice_is_there_once() {
        let text = "interface = \"eth0\"\ncritical_queues = [3, 2, 3]\ncpus = [3, 1, 3]\ndomains = [7, 0, 7]\n\
             ports = [9001, 9000, 9001]\npriorities = [7, 6, 7]\n";
        let config = NicConfig::parse(text, "a.toml").unwrap();
        assert_eq!((config.critical_queues, config.cpus), (vec![3, 2], vec![1, 3]));
        assert_eq!(config.domains, [7, 0]);
        assert_eq!((config.ports, config.priorities), (vec![9_001, 9_000], vec![7, 6]));
    }

    #[test]
    fn the_priority_of_the_highest_mark() {
        let (_, mark) = taut_port_udp::MARKS[2];
        assert_eq!(taut_port_udp::queue_of(mark), i32::from(PRIORITY));
    }

    #[test]
    fn one_sentence_with_the_line_and_the_remedy() {
        let told =
            |lines: &str| NicConfig::parse(&format!("interface = \"eth0\"\n{lines}"), "a.toml").unwrap_err();
        for (lines, wanted) in [
            ("pcp = 6\nvlan = 4095", "a.toml line 3: vlan = 4095 is no VLAN: use 0 to 4094"),
            ("\ndomains = [0, 233]", "a.toml line 3: domains = 233 is no domain: use 0 to 232"),
            ("layer = 4", "a.toml line 2: layer = 4 is no layer of Taut's: use 2 to 3"),
            (
                "critical_queues = [1,\n4294967295]",
                "a.toml line 3: critical_queues = 4294967295 is no queue: use 0 to 4095",
            ),
            (
                "ring = 64\ncritical_queues = []",
                "a.toml line 3: critical_queues is empty: name one, or leave the line out for the last one",
            ),
            ("ports = [0]", "a.toml line 2: ports = 0 is no UDP port: use 1 to 65535"),
            ("ports = [65536]", "a.toml line 2: ports = 65536 is no UDP port: use 1 to 65535"),
            ("domains = [-1]", "a.toml line 2: domains = -1 is no domain: use 0 to 232"),
            (
                "queues = 99999999999999999999",
                "a.toml line 2: queues = 99999999999999999999 is no number of queues: use 1 to 4096",
            ),
            ("pcp = 256", "a.toml line 2: pcp = 256 is no priority of a VLAN tag: use 0 to 7"),
            ("cpus = [0,\n99999999999]", "a.toml line 3: cpus = 99999999999 is no processor: use 0 to 8191"),
            (
                "participants = 121",
                "a.toml line 2: participants = 121 is no number of participants: use 1 to 120",
            ),
        ] {
            assert_eq!(told(lines), wanted);
        }
        for (lines, part) in [
            ("queue = [3]", "a.toml line 2: unknown field `queue`, expected one of `interface`"),
            ("ring = \"big\"", "a.toml line 2: invalid type: string \"big\", expected a whole number; write"),
            ("cpus = [", "a.toml line 2: "),
            (
                "schedule = [\"critical soon\"]",
                "a.toml line 2: schedule has \"critical soon\", which is no slot: write",
            ),
            ("schedule = [\"critical 2000ms\"]", "up to 1s"),
        ] {
            let told = told(lines);
            assert!(told.contains(part) && told.lines().count() == 1, "{told}");
        }
        let missing = NicConfig::parse("queues = 2", "a.toml").unwrap_err();
        assert!(missing.contains("a.toml line 1: missing field `interface`; write lines as"), "{missing}");
        let name = NicConfig::parse("interface = \"../etc\"", "a.toml").unwrap_err();
        assert!(name.contains("is no name of a network interface"), "{name}");
    }
}
