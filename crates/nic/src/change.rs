//! One change of a NIC: whether it is in force, and what takes it back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config::Slot;
use crate::facts::{Channels, Coalescing, Facts, Frames, Qdiscs, counted, is_even};

/// Handles of our queueing disciplines are from here on, 256 of them. The kernel gives handles from 0x8000 on, people
/// low ones; so a discipline with such a handle is ours, and may be replaced and removed.
const HANDLES: u32 = 0x7a00;

/// The most that a driver makes of a ring that is too short for it: ena does, by ENA_MIN_RING_SIZE of its ena_netdev.h;
/// others take 64, or refuse. Too low, and undo does not know such a ring as ours; too high, and it takes one that
/// somebody has set since.
const LEAST_RING: u32 = 256;

/// What a [`crate::Machine`] can be asked to change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// So many queues.
    Channels {
        /// Those that receive and send.
        combined: u32,
        /// Those that receive only.
        rx: u32,
        /// Those that send only.
        tx: u32,
    },
    /// So many frames in the receive ring.
    Ring(u32),
    /// So much waiting before an interrupt.
    Coalescing(Coalescing),
    /// Whether the driver takes rules.
    Ntuple(bool),
    /// The rule at a place of the table; `None`: no rule.
    Rule {
        /// The place.
        location: u32,
        /// What is there.
        rule: Option<(Frames, u64)>,
    },
    /// The queue of each value of the hash; empty: all queues alike, as the kernel does it by itself.
    Spread(Vec<u32>),
    /// The queueing disciplines.
    Qdisc(Qdisc),
    /// The processors that send by a transmit queue.
    Xps {
        /// The queue.
        queue: u32,
        /// The processors; empty: the kernel chooses.
        cpus: Vec<u32>,
    },
    /// The processors that may handle an interrupt.
    Interrupt {
        /// Its number.
        number: u32,
        /// The processors.
        cpus: Vec<u32>,
    },
}

/// Queueing disciplines of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Qdisc {
    /// What the kernel makes by itself.
    Default,
    /// A pfifo for each of so many queues.
    Mq(u32),
    /// Queues by priority.
    Mqprio(Classes),
    /// Queues by priority, each with its time.
    Taprio {
        /// Which queues are whose.
        classes: Classes,
        /// The slots of one cycle.
        schedule: Vec<Gate>,
        /// Does the NIC itself keep the time?
        offload: bool,
    },
}

/// Two classes of traffic: 0 for all others, 1 for what is critical.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Classes {
    /// The priorities of the critical class.
    pub priorities: Vec<u8>,
    /// For each class its first queue and how many it has.
    pub queues: [(u16, u16); 2],
}

/// When which class may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gate {
    /// A bit for each class.
    pub classes: u32,
    /// How long.
    pub length_ns: u32,
}

impl From<&Slot> for Gate {
    fn from(slot: &Slot) -> Gate {
        Gate { classes: if slot.critical { 0b10 } else { 0b01 }, length_ns: slot.length_ns }
    }
}

impl Change {
    /// Are things as the change would make them?
    pub fn holds(&self, facts: &Facts) -> bool {
        match self {
            Change::Qdisc(Qdisc::Default) => facts.qdiscs.as_ref().is_ok_and(|found| found.handle == 0),
            Change::Qdisc(wanted) => facts.qdiscs.as_ref().is_ok_and(|found| wanted.is(found)),
            _ => self.inverse(facts).as_ref() == Ok(self),
        }
    }

    /// Has somebody who made the change, and was ended in the middle, left things so?
    pub(crate) fn is_begun(&self, facts: &Facts) -> bool {
        match (self, &facts.qdiscs) {
            // Those for each queue come after that at the root, by a call each.
            (Change::Qdisc(wanted), Ok(found)) => {
                found.root == wanted.kind() && found.handle == wanted.handle()
            }
            _ => false,
        }
    }

    /// Is what there is, which must be a ring, the next length for a driver that cannot have the one asked for? The
    /// lengths of drivers are as far apart as powers of two, or closer; some take the longer one, some the shorter. One
    /// that is too short becomes the least of the driver, which the length that was `replaced` is not below.
    pub(crate) fn rounded(&self, facts: &Facts, replaced: &Change) -> Option<Change> {
        let (Change::Ring(asked), Ok(ring)) = (self, &facts.ring) else { return None };
        let least = asked.checked_ilog2().map_or(0, |bits| 1 << bits);
        let most = asked.checked_next_power_of_two().unwrap_or(u32::MAX);
        let was = if let Change::Ring(was) = replaced { *was } else { 0 };
        let is_next = (least..=most).contains(&ring.rx);
        let is_least = (*asked..=was.min(LEAST_RING)).contains(&ring.rx);
        (is_next || is_least).then_some(Change::Ring(ring.rx))
    }

    /// The change that leads back to what is now.
    ///
    /// *Errors*: why there is no way back; then the change must not be made.
    pub fn inverse(&self, facts: &Facts) -> Result<Change, String> {
        match self {
            Change::Channels { .. } => {
                let Channels { combined, rx, tx, .. } = *facts.channels.as_ref().map_err(String::clone)?;
                Ok(Change::Channels { combined, rx, tx })
            }
            Change::Ring(_) => Ok(Change::Ring(facts.ring.as_ref().map_err(String::clone)?.rx)),
            Change::Coalescing(_) => {
                Ok(Change::Coalescing(*facts.coalescing.as_ref().map_err(String::clone)?))
            }
            Change::Ntuple(_) => {
                let feature = facts.features.ntuple.ok_or("it has no such feature")?;
                Ok(Change::Ntuple(feature.on))
            }
            Change::Rule { location, .. } => {
                let table = facts.rules.as_ref().map_err(String::clone)?;
                let rule = table.rules.iter().find(|rule| rule.location == *location);
                if rule.is_some_and(|rule| rule.frames == Frames::Other) {
                    return Err(format!("rule {location} was made by somebody else"));
                }
                Ok(Change::Rule { location: *location, rule: rule.map(|rule| (rule.frames, rule.queue)) })
            }
            Change::Spread(_) => {
                let table = facts.spread.as_ref().map_err(String::clone)?;
                // Written back as it is it would be ours still, and the kernel would refuse fewer queues than it names.
                let even = facts.rx_queues().is_some_and(|queues| is_even(table, queues));
                Ok(Change::Spread(if even { Vec::new() } else { table.clone() }))
            }
            Change::Qdisc(_) => {
                let found = facts.qdiscs.as_ref().map_err(String::clone)?;
                if found.is_replaceable() {
                    return Ok(Change::Qdisc(Qdisc::Default));
                }
                Err(format!("{} was made by somebody else", shown_qdiscs(found)))
            }
            Change::Xps { queue, .. } => {
                let queues = facts.xps.as_ref().map_err(String::clone)?;
                let cpus = queues.get(*queue as usize).ok_or_else(|| format!("there is no queue {queue}"))?;
                Ok(Change::Xps { queue: *queue, cpus: cpus.clone() })
            }
            Change::Interrupt { number, .. } => {
                let found = facts.interrupts.iter().find(|interrupt| interrupt.number == *number);
                let found = found.ok_or_else(|| format!("there is no interrupt {number}"))?;
                Ok(Change::Interrupt { number: *number, cpus: found.cpus.clone() })
            }
        }
    }

    /// Why it is not known what there is now of what the change is about; `None`: it is, or that there is none.
    pub(crate) fn unseen(&self, facts: &Facts) -> Option<String> {
        match self {
            Change::Rule { .. } => facts.rules.as_ref().err().cloned(),
            Change::Qdisc(_) => facts.qdiscs.as_ref().err().cloned(),
            // Both are told by /sys; who cannot look there sees no interrupts.
            Change::Xps { .. } | Change::Interrupt { .. } => facts.xps.as_ref().err().cloned(),
            // Of these each NIC has one.
            _ => self.inverse(facts).err(),
        }
    }

    /// What of others it would take away; then it must not be made.
    pub(crate) fn takes_away(&self, facts: &Facts) -> Option<String> {
        let rules = facts.rules.as_ref().map_or(0, |table| table.rules.len());
        // Drivers forget all rules when they are to take no more.
        let all = *self == Change::Ntuple(false) && rules > 0;
        all.then(|| format!("{rules} rules of somebody else's would go with it"))
    }

    /// What it is to become, in a few words.
    ///
    /// ```
    /// assert_eq!(taut_nic::Change::Ring(512).shown(), "512 frames");
    /// ```
    pub fn shown(&self) -> String {
        match self {
            Change::Channels { combined, rx, tx } => shown_channels(*combined, *rx, *tx),
            Change::Ring(frames) => format!("{frames} frames"),
            Change::Coalescing(coalescing) => shown_coalescing(coalescing),
            Change::Ntuple(on) => if *on { "on" } else { "off" }.to_owned(),
            Change::Rule { rule: Some((_, queue)), location } => format!("queue {queue} by rule {location}"),
            Change::Rule { rule: None, .. } => "any queue".to_owned(),
            Change::Spread(table) if table.is_empty() => "all queues".to_owned(),
            Change::Spread(table) => counted("queue", &distinct(table)),
            Change::Qdisc(qdisc) => qdisc.shown(),
            Change::Xps { cpus, .. } if cpus.is_empty() => "any processor".to_owned(),
            Change::Xps { cpus, .. } | Change::Interrupt { cpus, .. } => counted("processor", cpus),
        }
    }
}

/// Each number once.
fn distinct(numbers: &[u32]) -> Vec<u32> {
    numbers.iter().copied().collect::<BTreeSet<u32>>().into_iter().collect()
}

impl Qdisc {
    /// Its handle: what its settings are can be told from it, which the kernel's own list tells in part only.
    pub fn handle(&self) -> u32 {
        let (Qdisc::Mqprio(classes) | Qdisc::Taprio { classes, .. }) = self else { return HANDLES << 16 };
        let mut numbers: Vec<u32> = classes.priorities.iter().map(|priority| u32::from(*priority)).collect();
        numbers
            .extend(classes.queues.iter().flat_map(|(first, count)| [u32::from(*first), u32::from(*count)]));
        if let Qdisc::Taprio { schedule, .. } = self {
            numbers.extend(schedule.iter().flat_map(|gate| [gate.classes, gate.length_ns]));
        }
        let sum = numbers.iter().fold(0_u32, |sum, number| sum.wrapping_mul(31).wrapping_add(*number));
        (HANDLES | (sum % 251)) << 16
    }

    /// The kernel's name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Qdisc::Default => "",
            Qdisc::Mq(_) => "mq",
            Qdisc::Mqprio(_) => "mqprio",
            Qdisc::Taprio { .. } => "taprio",
        }
    }

    /// For how many queues it has a pfifo below it.
    pub fn leaves(&self) -> u32 {
        if let Qdisc::Mq(queues) = self { *queues } else { 0 }
    }

    fn is(&self, found: &Qdiscs) -> bool {
        let leaves = found.leaves.iter().filter(|(_, kind)| kind == "pfifo");
        found.root == self.kind() && found.handle == self.handle() && leaves.count() >= self.leaves() as usize
    }

    fn shown(&self) -> String {
        match self {
            Qdisc::Default => "the kernel's own".to_owned(),
            Qdisc::Mq(queues) => format!("mq with a pfifo for each of {queues} queues"),
            Qdisc::Mqprio(classes) => format!("mqprio, {}", classes.shown()),
            Qdisc::Taprio { classes, schedule, offload } => {
                let who = if *offload { "the NIC keeps the time" } else { "the kernel keeps the time" };
                format!("taprio of {} slots, {who}, {}", schedule.len(), classes.shown())
            }
        }
    }
}

impl Classes {
    fn shown(&self) -> String {
        let priorities: Vec<u32> = self.priorities.iter().map(|priority| u32::from(*priority)).collect();
        let queues = |(first, count): (u16, u16)| {
            counted("queue", &(first..first + count).map(u32::from).collect::<Vec<_>>())
        };
        let [others, critical] = self.queues.map(queues);
        format!("{} to {critical}, all others to {others}", counted("priority", &priorities))
    }
}

impl Qdiscs {
    /// Did the kernel make it by itself, or we?
    pub fn is_replaceable(&self) -> bool {
        self.handle == 0 || (self.handle >> 16) & 0xff00 == HANDLES
    }
}

pub(crate) fn shown_qdiscs(found: &Qdiscs) -> String {
    if found.handle == 0 { found.root.clone() } else { format!("{} {:x}:", found.root, found.handle >> 16) }
}

pub(crate) fn shown_channels(combined: u32, rx: u32, tx: u32) -> String {
    let kinds = [(combined, "combined"), (rx, "rx"), (tx, "tx")];
    let shown = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    shown.collect::<Vec<_>>().join(", ")
}

pub(crate) fn shown_coalescing(coalescing: &Coalescing) -> String {
    let usecs = coalescing.rx_usecs.map(|usecs| format!("rx-usecs {usecs}"));
    let adaptive = coalescing.adaptive_rx.map(|on| format!("adaptive-rx {}", if on { "on" } else { "off" }));
    usecs.into_iter().chain(adaptive).collect::<Vec<_>>().join(", ")
}

/// The step that is about the processors of a transmit queue.
pub(crate) fn xps_item(queue: u32) -> String {
    format!("XPS of queue {queue}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        serde_json::from_str(include_str!("../facts/i226.json")).unwrap()
    }

    #[test]
    fn what_is_leads_back_to_itself() {
        let facts = facts();
        for change in [
            Change::Channels { combined: 1, rx: 0, tx: 0 },
            Change::Ring(64),
            Change::Coalescing(Coalescing { rx_usecs: Some(7), adaptive_rx: None }),
            Change::Ntuple(true),
            Change::Rule { location: 3, rule: Some((Frames::Pcp(1), 2)) },
            Change::Spread(vec![0; 128]),
            Change::Xps { queue: 1, cpus: vec![0] },
            Change::Interrupt { number: 128, cpus: vec![2] },
        ] {
            let back = change.inverse(&facts).unwrap();
            assert!(!change.holds(&facts) && back.holds(&facts), "{change:?} {back:?}");
        }
    }

    /// An even spread is the kernel's own again, whatever its order; one that somebody has made comes back as it was.
    #[test]
    fn the_spread_that_was_before() {
        let mut facts = facts();
        let wanted = Change::Spread([0, 1, 2].into_iter().cycle().take(128).collect());
        assert_eq!(wanted.inverse(&facts), Ok(Change::Spread(Vec::new())));
        let uneven: Vec<u32> = (0..128).map(|at| if at < 100 { 0 } else { 3 }).collect();
        for table in [uneven, [1, 2].repeat(64)] {
            facts.spread = Ok(table.clone());
            assert_eq!(wanted.inverse(&facts), Ok(Change::Spread(table)));
        }
        assert!(is_even(&[0, 1, 2, 0], 3) && !is_even(&[0, 1, 0, 0], 2) && !is_even(&[0, 4], 1));
    }

    #[test]
    fn what_others_have_made_is_not_replaced() {
        let mut facts = facts();
        let wanted = Change::Qdisc(Qdisc::Mq(4));
        assert_eq!(wanted.inverse(&facts), Ok(Change::Qdisc(Qdisc::Default)));
        facts.qdiscs = Ok(Qdiscs { root: "htb".to_owned(), handle: 1 << 16, leaves: Vec::new() });
        assert_eq!(wanted.inverse(&facts), Err("htb 1: was made by somebody else".to_owned()));
        facts.rules.as_mut().unwrap().rules.push(crate::Rule {
            location: 3,
            queue: 0,
            frames: Frames::Other,
        });
        assert!(Change::Rule { location: 3, rule: None }.inverse(&facts).is_err());
    }

    #[test]
    fn other_settings_have_another_handle() {
        let of = |priority, queue| {
            Qdisc::Mqprio(Classes { priorities: vec![priority], queues: [(0, 3), (queue, 1)] })
        };
        assert_ne!(of(6, 3).handle(), of(7, 3).handle());
        assert_ne!(of(6, 3).handle(), of(6, 2).handle());
        let found = Qdiscs { root: "mqprio".to_owned(), handle: of(6, 3).handle(), leaves: Vec::new() };
        assert!(found.is_replaceable() && of(6, 3).is(&found) && !of(7, 3).is(&found));
    }
}
