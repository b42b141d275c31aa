//! What the options of a role ask of Taut: a participant with its settings, and the QoS of its writers and readers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use taut::{Config, DomainParticipant, Driver, Qos, XdpLayer};
use taut_perf_kit::{Options, Role, Stop};

/// How long discovery may take: a hundred times what it takes on a loaded machine.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);
/// What a reliable writer may wait for its readers: the contract's limit after the last sample, and longer
/// than any machine stalls before it.
pub const BLOCK_AT_MOST: Duration = Duration::from_secs(5);
/// The variant whose writer says where a burst begins and ends.
pub const SUSPENDED: &str = "suspended";
/// The variant that is awake before a sample is expected.
pub const AHEAD: &str = "ahead";
/// So long before, and after. Lower than the jitter of a thread that writes each millisecond and more samples are slept for,
/// higher takes more of the processor for the same.
const WAKES_AHEAD: taut::Duration = taut::Duration::from_micros(100);
/// How long the other side of the transport dpdk may take to be there.
const MEET: Duration = Duration::from_secs(20);
/// How often it is looked for.
const MEET_AGAIN: Duration = Duration::from_millis(50);

/// A participant.
pub struct Domain(pub DomainParticipant);

impl Domain {
    /// Failing to make an entity is a failure of the trial.
    pub fn open(options: &Options) -> Result<Domain, Stop> {
        let config = config(options);
        if makes_place(options) {
            // One that was killed may have left it.
            let _ = std::fs::remove_file(meeting_place(options));
        }
        let end = Instant::now() + MEET;
        loop {
            match DomainParticipant::with_config(&config) {
                // The other side has not made the place yet.
                Err(taut::Error::Error(_)) if options.transport == "dpdk" && Instant::now() < end => {
                    std::thread::sleep(MEET_AGAIN);
                }
                found => return Ok(Domain(found?)),
            }
        }
    }
}

/// Does the thread that waits do all the work, asleep at the sockets meanwhile?
fn inline(options: &Options) -> bool {
    options.wait == "inline"
}

/// How a line waits, for `ready`.
pub fn wait(options: &Options) -> &'static str {
    match () {
        () if inline(options) => "inline",
        () if options.spin() => "spin",
        () => "waitset",
    }
}

/// Are the paths of one machine turned off?
pub fn is_network(options: &Options) -> bool {
    matches!(options.transport.as_str(), "udp" | "xdp" | "xdp-l2" | "dpdk")
}

/// The settings that the options ask for.
pub fn config(options: &Options) -> Config {
    let is_dpdk = options.transport == "dpdk";
    let is_bare = is_dpdk || options.transport == "xdp-l2";
    let is_xdp = matches!(options.transport.as_str(), "xdp" | "xdp-l2");
    Config {
        domain_id: options.domain,
        // Without IP the sockets are for peers on this host.
        interfaces: if is_bare { Vec::new() } else { vec![options.interface.clone()] },
        data_multicast: options.multicast(),
        // Who spins on shared memory leaves discovery to the background thread.
        driver: if inline(options) || options.spin() && is_network(options) {
            Driver::Inline
        } else {
            Driver::Threaded
        },
        local: !is_network(options),
        wake_ahead: if options.variant == AHEAD { WAKES_AHEAD } else { taut::Duration::ZERO },
        xdp_interface: if is_xdp { options.interface.clone() } else { String::new() },
        xdp_layer: if is_xdp && is_bare { XdpLayer::Bare } else { XdpLayer::Ip },
        dpdk_device: if is_dpdk { memif(options) } else { String::new() },
        ..Config::default()
    }
}

/// Where two processes meet for the transport dpdk. A file, as each is in a network of its own.
fn meeting_place(options: &Options) -> PathBuf {
    std::env::temp_dir().join(format!("taut-perf-{}.memif", options.domain))
}

/// Does this one make the place, and the other one come to it?
fn makes_place(options: &Options) -> bool {
    options.transport == "dpdk" && matches!(options.role, Role::Pong | Role::Sub)
}

/// Memory that two processes share, as a device of DPDK.
fn memif(options: &Options) -> String {
    let role = if makes_place(options) { "server" } else { "client" };
    format!("net_memif0,role={role},socket={},socket-abstract=no", meeting_place(options).display())
}

/// The QoS that the options ask for.
pub fn qos(options: &Options) -> Qos {
    let qos = Qos::default().volatile();
    let qos =
        if options.reliable() { qos.reliable().max_blocking_time(BLOCK_AT_MOST) } else { qos.best_effort() };
    match options.depth() {
        Some(depth) => qos.keep_last(depth as u32),
        None => qos.keep_all(),
    }
}
