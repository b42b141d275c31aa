//! What a seed draws before it runs: who is there, with which QoS, on which network.

use taut_base::{Duration, Rng};
use taut_qos::{LivelinessKind, Qos, ResourceLimits};
use taut_rtps::MulticastChoice;

use crate::endpoint::TopicSpec;
use crate::faults::Faults;
use crate::network::NodeOptions;

/// The kind of a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Faults of links, but nobody comes, goes or is cut off: every sample exactly once.
    Calm,
    /// Everything.
    Wild,
    /// Calm, and somebody sends mutated datagrams under a name of its own: nothing may come of it.
    ForeignPrefix,
    /// Calm, and somebody sends them under the name of node 0: the others must not notice.
    StolenPrefix,
}

/// The frame of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its kind.
    pub class: Class,
    /// The participants.
    pub nodes: Vec<NodeOptions>,
    /// The topics.
    pub topics: Vec<TopicSpec>,
    /// Have the writers of a topic instances in common?
    pub shared_keys: bool,
    /// How long it is wild.
    pub wild: Duration,
    /// The longest lease.
    pub lease: Duration,
}

/// A number from `low` to `high`, both included.
pub fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high - low + 1)
}

fn span(rng: &mut Rng, low_ms: u64, high_ms: u64) -> Duration {
    Duration::from_millis(between(rng, low_ms, high_ms).cast_signed())
}

impl Plan {
    /// Draws a run.
    pub fn draw(rng: &mut Rng) -> Plan {
        let class = match rng.below(10) {
            0..=1 => Class::Calm,
            2 => Class::ForeignPrefix,
            3 => Class::StolenPrefix,
            _ => Class::Wild,
        };
        let least = if class == Class::StolenPrefix { 3 } else { 2 };
        let count = if rng.chance(50) { between(rng, 5, 8) } else { between(rng, least, 4) };
        let multicast_discovery = !rng.chance(100);
        let mut lease = Duration::ZERO;
        let nodes = (0..count).map(|_| {
            let own = if class == Class::Wild { span(rng, 2_000, 6_000) } else { Duration::from_secs(100) };
            lease = lease.max(own);
            NodeOptions {
                lease: own,
                announcement_period: span(rng, 500, 2_000),
                clock_offset: span(rng, 0, 4_000_000_000),
                multicast: match rng.below(4) {
                    0 => MulticastChoice::Never,
                    1 => MulticastChoice::Always,
                    _ => MulticastChoice::Auto,
                },
                multicast_discovery,
                path_size: match rng.below(4) {
                    0 => 1_472,
                    1 => between(rng, 640, 9_000) as usize,
                    _ => usize::MAX,
                },
                ..NodeOptions::default()
            }
        });
        let nodes: Vec<NodeOptions> = nodes.collect();
        let topics = (0..between(rng, 1, 2))
            .map(|n| TopicSpec::new(["Square", "Circle"][n as usize], rng.chance(600)));
        Plan {
            class,
            nodes,
            topics: topics.collect(),
            shared_keys: rng.chance(300),
            wild: if rng.chance(300) { span(rng, 8_000, 20_000) } else { span(rng, 1_000, 6_000) },
            lease,
        }
    }
}

/// Draws the QoS of a writer.
pub fn writer_qos(rng: &mut Rng) -> Qos {
    let qos = either_qos(rng);
    if rng.chance(150) { qos.liveliness(LivelinessKind::Automatic, span(rng, 500, 3_000)) } else { qos }
}

/// Draws the QoS of a reader.
pub fn reader_qos(rng: &mut Rng) -> Qos {
    either_qos(rng)
}

fn either_qos(rng: &mut Rng) -> Qos {
    let mut qos = Qos::default();
    qos = if rng.chance(750) { qos.reliable() } else { qos.best_effort() };
    let durable = rng.chance(400);
    if durable {
        qos = qos.transient_local();
    }
    if rng.chance(600) {
        qos = qos.keep_all();
        if !durable && rng.chance(300) {
            let max_samples = Some(between(rng, 2, 40) as u32);
            qos = qos.resource_limits(ResourceLimits { max_samples, ..ResourceLimits::default() });
        }
    } else {
        qos = qos.keep_last(between(rng, 1, 5) as u32);
    }
    match rng.below(12) {
        0 => qos.partition(["left"]),
        1 => qos.partition(["right"]),
        2 => qos.partition(["l*", "r*", ""]),
        _ => qos,
    }
}

/// Draws the faults of the network.
pub fn faults(rng: &mut Rng) -> Faults {
    let mut chance = |of_1000: u64, most: u64| if rng.chance(of_1000) { rng.below(most + 1) } else { 0 };
    let (loss, duplicate, reorder) = (chance(700, 400), chance(300, 300), chance(300, 300));
    Faults {
        loss,
        duplicate,
        reorder,
        detour: span(rng, 1, 100),
        delay: Duration::from_micros(between(rng, 10, 3_000).cast_signed()),
        jitter: Duration::from_micros(rng.below(2_000).cast_signed()),
        corrupt: 0,
    }
}

/// The bytes of a sample behind its header; few are large, more where fragments are to be mutated.
pub fn filler(rng: &mut Rng, hostile: bool) -> u32 {
    if rng.chance(if hostile { 60 } else { 15 }) {
        between(rng, 30_000, 300_000) as u32
    } else {
        rng.below(300) as u32
    }
}
