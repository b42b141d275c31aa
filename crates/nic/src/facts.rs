//! What a NIC and its kernel are like at one moment.

use serde::{Deserialize, Serialize};

/// What was read, or why it could not be.
pub type Seen<T> = Result<T, String>;

/// A NIC and its kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// The network interface, by name.
    pub interface: String,
    /// The driver; empty for an interface without a device, as veth.
    pub driver: String,
    /// Its MTU in bytes; facts that were written down without it have none.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Processors that are online.
    pub cpus: Vec<u32>,
    /// How many queues it has.
    pub channels: Seen<Channels>,
    /// The receive ring of each queue.
    pub ring: Seen<Ring>,
    /// How long it collects frames before it interrupts.
    pub coalescing: Seen<Coalescing>,
    /// What can be switched on and off; facts that were written down without it have none.
    #[serde(default)]
    pub features: Features,
    /// Which frames go to which queue.
    pub rules: Seen<Rules>,
    /// The queue of each value of the hash, which spreads what no rule steers (RSS).
    pub spread: Seen<Vec<u32>>,
    /// Its interrupts.
    pub interrupts: Vec<Interrupt>,
    /// For each transmit queue the processors that send by it; empty lists: the kernel chooses by a hash.
    pub xps: Seen<Vec<Vec<u32>>>,
    /// The queueing disciplines.
    pub qdiscs: Seen<Qdiscs>,
    /// The kinds of queueing disciplines that the kernel has.
    pub kinds: Vec<String>,
    /// The number of its hardware clock.
    pub clock: Option<u32>,
}

/// Numbers of queues; those of a kind that the NIC has not are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// Queues that receive and send.
    pub combined: u32,
    /// Queues that receive only.
    pub rx: u32,
    /// Queues that send only.
    pub tx: u32,
    /// The most queues that receive and send.
    pub combined_max: u32,
    /// The most queues that receive only.
    pub rx_max: u32,
    /// The most queues that send only.
    pub tx_max: u32,
}

/// A receive ring, in frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ring {
    /// What it holds.
    pub rx: u32,
    /// What it could hold.
    pub rx_max: u32,
}

/// Interrupt coalescing; `None` where the driver has no such setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Coalescing {
    /// Microseconds from a frame to its interrupt, at most.
    pub rx_usecs: Option<u32>,
    /// Does the driver change that by itself?
    pub adaptive_rx: Option<bool>,
}

/// What a driver switches on and off; `None` where there is no such switch, or nobody looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Rules that choose a receive queue: `ntuple`, as ethtool calls it.
    pub ntuple: Option<Feature>,
}

/// A switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Feature {
    /// Is it on?
    pub on: bool,
    /// Is it so for ever?
    pub fixed: bool,
}

/// The rules that choose a receive queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rules {
    /// How many it has room for.
    pub size: u32,
    /// Those that it has.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Its place in the table.
    pub location: u32,
    /// The receive queue.
    pub queue: u64,
    /// The frames that go there.
    pub frames: Frames,
}

/// Which frames a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frames {
    /// UDP over IPv4 to this port.
    UdpPort(u16),
    /// UDP over IPv6 to this port.
    Udp6Port(u16),
    /// Frames with a VLAN tag of this priority.
    Pcp(u8),
    /// Frames of this type.
    EtherType(u16),
    /// Anything else.
    Other,
}

/// An interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// The queue that it is of; `None` for what is not about frames.
    pub queue: Option<u32>,
    /// The processors that may handle it.
    pub cpus: Vec<u32>,
}

/// The queueing disciplines of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Qdiscs {
    /// The kind of that at the root, as `mq`.
    pub root: String,
    /// Its handle; 0: the kernel made it by itself.
    pub handle: u32,
    /// The kinds of those below it, by the number of the transmit queue.
    pub leaves: Vec<(u32, String)>,
}

impl Facts {
    /// How many receive queues it has, where it says so.
    pub fn rx_queues(&self) -> Option<u32> {
        self.channels.as_ref().ok().map(|channels| channels.combined.saturating_add(channels.rx))
    }

    /// How many transmit queues it has.
    pub fn tx_queues(&self) -> u32 {
        match &self.channels {
            Ok(channels) => channels.combined.saturating_add(channels.tx),
            Err(_) => self.xps.as_ref().map_or(1, |queues| u32::try_from(queues.len()).unwrap_or(1)),
        }
    }
}

/// Does the table give each of so many queues as much as any other?
pub(crate) fn is_even(table: &[u32], queues: u32) -> bool {
    let count = |queue| table.iter().filter(|entry| **entry == queue).count();
    let counts: Vec<usize> = (0..queues).map(count).collect();
    let all: usize = counts.iter().sum();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    all == table.len() && least.zip(most).is_some_and(|(least, most)| most - least <= 1)
}

/// Numbers as the kernel lists them: `0-2,5`.
///
/// ```
/// assert_eq!(taut_nic::list(&[5, 0, 1, 2]), "0-2,5");
/// ```
pub fn list(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let rows = sorted.chunk_by(|a, b| b - a == 1);
    let shown = rows.map(|row| match row {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    shown.collect::<Vec<_>>().join(",")
}

/// The same behind its noun: `queue 3`, `queues 0-2`.
pub(crate) fn counted(noun: &str, numbers: &[u32]) -> String {
    let (stem, plural) = noun.strip_suffix('y').map_or((noun, "s"), |stem| (stem, "ies"));
    match numbers {
        [one] => format!("{noun} {one}"),
        more => format!("{stem}{plural} {}", list(more)),
    }
}
