//! From what is wanted and what is there to the steps between, without any I/O.

mod queues;
mod settings;
mod steering;

use serde::Serialize;

use crate::change::{Change, shown_channels, shown_coalescing};
use crate::config::{MAX_QUEUES, NicConfig};
use crate::facts::{Coalescing, Facts, counted, list};

/// The steps for one NIC.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// What the NIC is and what it is to be for.
    pub title: String,
    /// The steps, in the order in which they are done.
    pub steps: Vec<Step>,
}

/// One thing that is as planned, could be, or cannot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    /// What it is about.
    pub item: String,
    /// What it is now; empty where that is not known.
    pub now: String,
    /// What it is to be.
    pub then: String,
    /// What that gains.
    pub gains: String,
    /// Can it be done?
    pub able: Able,
    /// What is lost all the same; empty for nothing.
    pub lost: String,
}

/// Can a step be done?
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Able {
    /// By this change.
    Change(Change),
    /// It is as planned.
    AsPlanned,
    /// Once steps before it are done, which this names.
    After(String),
    /// Not here, and why.
    Cannot(String),
    /// It is not the NIC that is changed.
    Told,
}

/// What the planner goes by.
struct Wanted<'a> {
    config: &'a NicConfig,
    facts: &'a Facts,
    /// How many queues there will be.
    queues: u32,
    /// Those of critical traffic.
    critical: Vec<u32>,
    /// The processors of all other queues.
    others: Vec<u32>,
}

/// The steps from what is to what is wanted.
///
/// *Errors*: a sentence where the file asks for a queue or a processor that there is not, or the facts are of no NIC.
///
/// ```
/// let config = taut_nic::NicConfig::of_interface("enp3s0", 0, &[0, 1, 2, 3]);
/// let facts = serde_json::from_str(include_str!("../facts/i210.json")).unwrap();
/// assert_eq!(taut_nic::plan(&config, &facts).unwrap().steps[0].item, "channels");
/// ```
pub fn plan(config: &NicConfig, facts: &Facts) -> Result<Plan, String> {
    let wanted = wanted(config, facts)?;
    let mut steps = vec![wanted.channels(), wanted.ring(), wanted.coalescing()];
    let steering = wanted.steering()?;
    let spread = wanted.spread(&steering);
    steps.extend(wanted.ntuple(&steering));
    steps.extend(steering);
    steps.push(spread);
    steps.extend(wanted.qdiscs());
    if !config.cpus.is_empty() {
        steps.extend(wanted.xps());
        steps.extend(wanted.interrupts());
    }
    steps.extend(wanted.tag());
    steps.extend(wanted.vlan());
    steps.extend(wanted.settings());
    steps.push(wanted.time_stamps());
    let driver = if facts.driver.is_empty() { "no device" } else { &facts.driver };
    let critical = counted("queue", &wanted.critical);
    let mut title = format!("{} ({driver}): critical {critical} of {}", facts.interface, wanted.queues);
    if !config.cpus.is_empty() {
        title += &format!(", on {}", counted("processor", &config.cpus));
    }
    Ok(Plan { title, steps })
}

fn wanted<'a>(config: &'a NicConfig, facts: &'a Facts) -> Result<Wanted<'a>, String> {
    let online = &facts.cpus;
    let has = facts.rx_queues().map_or(facts.tx_queues(), |rx| rx.max(facts.tx_queues()));
    if has > MAX_QUEUES {
        let name = &facts.interface;
        return Err(format!(
            "the facts say that {name} has {has} queues, and none has more than {MAX_QUEUES}: take them again \
             (`taut nic facts {name}`)"
        ));
    }
    let (now, most) = match &facts.channels {
        Ok(channels) if channels.combined_max > 0 => (channels.combined, channels.combined_max),
        Ok(channels) => (channels.tx.min(channels.rx), channels.tx_max.min(channels.rx_max)),
        Err(_) => (facts.tx_queues(), facts.tx_queues()),
    };
    if let Some(asked) = config.queues.filter(|asked| *asked > most) {
        return Err(format!("queues = {asked}, and {} has {most} at most: ask for fewer", facts.interface));
    }
    let last = config.critical_queues.iter().max().map_or(0, |last| last + 1);
    let processors = u32::try_from(online.len()).unwrap_or(1);
    let queues = config.queues.unwrap_or(processors.max(last).max(2).min(most).max(now.min(most))).max(1);
    if last > queues {
        return Err(format!(
            "critical_queues names queue {}, and {} has queues 0 to {}: name one of these",
            last - 1,
            facts.interface,
            queues - 1
        ));
    }
    if let Some(absent) = config.cpus.iter().find(|cpu| !online.contains(cpu)) {
        return Err(format!(
            "cpus names processor {absent}, and {} are online: name some of these",
            list(online)
        ));
    }
    let critical =
        if config.critical_queues.is_empty() { vec![queues - 1] } else { config.critical_queues.clone() };
    let others: Vec<u32> = online.iter().copied().filter(|cpu| !config.cpus.contains(cpu)).collect();
    let others = if others.is_empty() { online.clone() } else { others };
    Ok(Wanted { config, facts, queues, critical, others })
}

impl Step {
    /// A step to this change, or none if things are so already.
    fn to(
        item: impl Into<String>,
        now: impl Into<String>,
        change: Change,
        facts: &Facts,
        gains: &str,
    ) -> Step {
        let then = change.shown();
        let able = if change.holds(facts) {
            Able::AsPlanned
        } else {
            match change.inverse(facts) {
                Ok(_) => Able::Change(change),
                Err(why) => {
                    Able::Cannot(format!("{why}, and could not be put back as it was: remove it first"))
                }
            }
        };
        let (item, now) = (item.into(), now.into());
        Step { item, now, then, gains: gains.to_owned(), able, lost: String::new() }
    }

    /// A step that cannot be done here.
    fn cannot(item: impl Into<String>, then: impl Into<String>, gains: &str, why: &str, lost: &str) -> Step {
        Step {
            item: item.into(),
            now: String::new(),
            then: then.into(),
            gains: gains.to_owned(),
            able: Able::Cannot(why.to_owned()),
            lost: lost.to_owned(),
        }
    }
}

impl Wanted<'_> {
    fn channels(&self) -> Step {
        let gains = "critical frames have a queue of their own, and wait behind no others";
        let lost = "critical frames share their queue with all others";
        match &self.facts.channels {
            Ok(channels) => {
                let change = if channels.combined_max > 0 {
                    Change::Channels { combined: self.queues, rx: channels.rx, tx: channels.tx }
                } else {
                    Change::Channels { combined: 0, rx: self.queues, tx: self.queues }
                };
                let now = shown_channels(channels.combined, channels.rx, channels.tx);
                let mut step = Step::to("channels", now, change, self.facts, gains);
                if self.queues == 1 {
                    lost.clone_into(&mut step.lost);
                } else if matches!(step.able, Able::Change(_)) && !self.facts.driver.is_empty() {
                    step.lost = "most drivers take the link down for a moment".to_owned();
                }
                step
            }
            Err(why) => {
                let lost = if self.queues == 1 { lost } else { "" };
                Step::cannot("channels", "a queue of its own", gains, why, lost)
            }
        }
    }

    fn ring(&self) -> Step {
        let gains = "a burst waits there until the driver comes for it, instead of being dropped";
        let lost = "a burst above what the driver holds by itself is dropped";
        match &self.facts.ring {
            Ok(ring) => {
                let frames = self.config.ring.unwrap_or(ring.rx_max);
                let now = format!("{} frames", ring.rx);
                let step = Step::to("receive ring", now, Change::Ring(frames), self.facts, gains);
                if frames > ring.rx_max {
                    let why = format!("it holds {} at most: ask for fewer", ring.rx_max);
                    return Step { able: Able::Cannot(why), lost: lost.to_owned(), ..step };
                }
                step
            }
            Err(why) => Step::cannot("receive ring", "as large as can be", gains, why, lost),
        }
    }

    fn coalescing(&self) -> Step {
        let gains = "each frame interrupts at once, instead of when the timer has run off";
        match &self.facts.coalescing {
            Ok(coalescing) => {
                let wanted = Coalescing {
                    rx_usecs: coalescing.rx_usecs.map(|_| 0),
                    adaptive_rx: coalescing.adaptive_rx.map(|_| false),
                };
                let now = shown_coalescing(coalescing);
                let step = Step::to("coalescing", now, Change::Coalescing(wanted), self.facts, gains);
                let lost = "it counts for all queues: others cost more interrupts too";
                Step { lost: lost.to_owned(), ..step }
            }
            Err(why) => {
                let lost = "a timer of the NIC, if it has one, is in each frame's latency";
                Step::cannot("coalescing", "rx-usecs 0", gains, why, lost)
            }
        }
    }

    fn tag(&self) -> Option<Step> {
        let tag = self.config.tag()?;
        let (pcp, vlan) = (tag >> 13, self.config.vlan);
        let lost = match vlan {
            _ if vlan > 0 && pcp == 0 => "",
            0 => "what leaves by a UDP socket has none, but for a VLAN interface with an egress-qos-map",
            _ => "what leaves by a UDP socket has PCP 0, but for an egress-qos-map of the VLAN interface",
        };
        Some(Step {
            item: "VLAN tag".to_owned(),
            now: String::new(),
            then: format!("TCI {tag:#06x}: VLAN {vlan}, PCP {pcp}, in frames that Taut builds itself"),
            gains: settings::gain_of(pcp).to_owned(),
            able: Able::Told,
            lost: lost.to_owned(),
        })
    }

    /// What a person has to do so that a program in the driver sees the frames of a VLAN.
    fn vlan(&self) -> Option<Step> {
        let (parent, vlan) = (&self.facts.interface, Some(self.config.vlan).filter(|vlan| *vlan > 0)?);
        let name = self.config.used_interface();
        Some(Step {
            item: format!("VLAN {vlan}"),
            now: String::new(),
            then: format!(
                "ip link add link {parent} name {name} type vlan id {vlan}; ethtool -K {parent} rxvlan off"
            ),
            gains: "its frames come to the critical queue with their tags, and past the kernel's stack"
                .to_owned(),
            able: Able::Told,
            lost: "the kernel takes the tags of all other frames off by itself".to_owned(),
        })
    }

    fn time_stamps(&self) -> Step {
        let gains = "latencies can be told as they are on the wire";
        match self.facts.clock {
            Some(clock) => Step {
                item: "time stamps".to_owned(),
                now: format!("hardware clock {clock}"),
                then: format!("hardware clock {clock}"),
                gains: gains.to_owned(),
                able: Able::AsPlanned,
                lost: String::new(),
            },
            None => {
                let lost = "latencies are told as the kernel sees them";
                Step::cannot("time stamps", "a hardware clock", gains, "it has no hardware clock", lost)
            }
        }
    }
}
