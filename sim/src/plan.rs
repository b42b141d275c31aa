//! What a seed draws before it runs: who is there, with which QoS, on which network.

use taut_base::{Duration, Rng};
use taut_qos::{DestinationOrderKind, History, LivelinessKind, Qos, ReaderDataLifecycle, ResourceLimits};
use taut_rtps::{MaxRate, MulticastChoice};

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
    /// Do endpoints have policies that leave samples out?
    pub policies: bool,
    /// By topic: OWNERSHIP EXCLUSIVE?
    pub exclusive: [bool; 2],
    /// Have the writers of a topic instances in common?
    pub shared_keys: bool,
    /// Endpoints of a node when it starts, at most.
    pub endpoints: u64,
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
        // Wall clocks agree, or are as far apart as without a good time server, or as without any.
        let apart_ms = [0, 0, 20, 5_000][rng.below(4) as usize];
        let nodes = (0..count).map(|_| {
            let own = if class == Class::Wild { span(rng, 2_000, 6_000) } else { Duration::from_secs(100) };
            lease = lease.max(own);
            NodeOptions {
                lease: own,
                announcement_period: span(rng, 500, 2_000),
                clock_offset: span(rng, 0, 4_000_000_000),
                wall_offset: Duration::from_millis(
                    rng.below(2 * apart_ms + 1).cast_signed() - apart_ms.cast_signed(),
                ),
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
                max_rate: rng.chance(150).then(|| MaxRate {
                    bytes_per_second: between(rng, 300_000, 10_000_000),
                    burst: between(rng, 1_000, 100_000),
                }),
                service: if rng.chance(100) {
                    Duration::from_micros(between(rng, 1, 100) as i64)
                } else {
                    Duration::ZERO
                },
                receive_buffer: if rng.chance(500) { between(rng, 20, 300) as usize } else { usize::MAX },
                step: rng.chance(500).then(|| between(rng, 1, 8) as usize),
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
            policies: rng.chance(600),
            exclusive: [rng.chance(300), rng.chance(300)],
            shared_keys: rng.chance(300),
            // Sometimes so many that a new one is not matched with all in one step.
            endpoints: if rng.chance(100) { 12 } else { 3 },
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

/// Draws policies of a writer that leave samples out, and some that do not.
pub fn writer_policies(rng: &mut Rng, mut qos: Qos, exclusive: bool) -> Qos {
    if exclusive {
        qos = qos.exclusive().ownership_strength(rng.below(4) as i32);
    }
    if rng.chance(150) {
        qos = qos.lifespan(span(rng, 5, 2_000));
    }
    if rng.chance(500) {
        qos = qos.destination_order(DestinationOrderKind::BySourceTimestamp);
    }
    if rng.chance(300) {
        qos = qos.deadline(span(rng, 500, 2_000));
    }
    if rng.chance(250) {
        let kind =
            if rng.chance(500) { LivelinessKind::ManualByParticipant } else { LivelinessKind::ManualByTopic };
        qos = qos.liveliness(kind, span(rng, 500, 3_000));
    }
    if rng.chance(200) {
        let of_one = match qos.writer.history {
            History::KeepAll => Some(between(rng, 1, 10) as u32),
            History::KeepLast(depth) => Some(depth),
        };
        let max_samples = qos
            .writer
            .resource_limits
            .max_samples
            .or(of_one.filter(|_| rng.chance(500)).map(|most| most.max(1) * 3));
        qos = qos.resource_limits(ResourceLimits {
            max_samples_per_instance: of_one.map(|o| o.min(max_samples.unwrap_or(u32::MAX))),
            max_samples,
            max_instances: None,
        });
    }
    qos
}

/// The same of a reader.
pub fn reader_policies(rng: &mut Rng, mut qos: Qos, exclusive: bool) -> Qos {
    if exclusive {
        qos = qos.exclusive();
    }
    if rng.chance(200) {
        qos = qos.destination_order(DestinationOrderKind::BySourceTimestamp);
    }
    if rng.chance(200) {
        qos = qos.deadline(span(rng, 1_000, 3_000));
    }
    if rng.chance(150) {
        qos = qos.time_based_filter(span(rng, 1, 500));
    }
    if rng.chance(150) {
        let kind =
            [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
        qos = qos.liveliness(kind[rng.below(3) as usize], span(rng, 1_000, 4_000));
    }
    if rng.chance(250) {
        let of_one = match qos.reader.history {
            History::KeepAll => Some(between(rng, 1, 10) as u32),
            History::KeepLast(depth) => Some(depth),
        };
        let max_samples = qos
            .reader
            .resource_limits
            .max_samples
            .or(of_one.filter(|_| rng.chance(500)).map(|most| most * 2));
        let max_instances = rng.chance(400).then(|| between(rng, 1, 6) as u32);
        qos = qos.resource_limits(ResourceLimits {
            max_samples_per_instance: of_one.map(|o| o.min(max_samples.unwrap_or(u32::MAX))),
            max_samples,
            max_instances,
        });
    }
    if rng.chance(250) {
        qos = qos.reader_data_lifecycle(ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: span(rng, 1, 3_000),
            autopurge_disposed_samples_delay: span(rng, 1, 3_000),
        });
    }
    qos
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
    let far = chance(100, 700) as i64;
    let (loss, duplicate, reorder) = (chance(700, 400), chance(300, 300), chance(300, 300));
    Faults {
        loss,
        duplicate,
        reorder,
        detour: span(rng, 1, 100),
        delay: Duration::from_micros(between(rng, 10, 3_000).cast_signed() + far * 1_000),
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
