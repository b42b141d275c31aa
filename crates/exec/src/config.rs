//! What an executor and its participant are told when they start.

use std::path::PathBuf;

use taut_base::{Duration, Error, GuidPrefix, Result};
use taut_ethernet::OwnAddress;
use taut_port_udp::UdpConfig;
use taut_port_xdp::XdpConfig;
use taut_rtps::{Anatomy, Config, MaxRate, MulticastChoice};

use crate::driver::waiting::DEFAULT_SPIN;
use crate::lanes::own::hex;
use crate::net::ports::Ports;
use crate::scheduling::Scheduling;

/// How long peers remember a silent participant. Lower forgets one that is only slow, higher keeps
/// the dead; Cyclone DDS has the same.
pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(10);
/// The time between announcements: three in a lease.
pub const DEFAULT_ANNOUNCEMENT_PERIOD: Duration = Duration::from_secs(3);

/// Who drives the participant when no thread of the user waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Driver {
    /// A background thread, which steps aside while a thread of the user waits.
    #[default]
    Threaded,
    /// Nobody: the user calls [`crate::Executor::run_once`] or [`crate::Executor::poll_while`]; no thread is created.
    Inline,
    /// A background thread that never sleeps, and steps aside for nobody: threads of the user that wait are told by
    /// it. It takes a processor: give it one (`cpus` of [`Scheduling`]).
    Polling,
}

/// What goes past the kernel's stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FramesChoice {
    /// By AF_XDP.
    Xdp(XdpChoice),
    /// By a driver of DPDK.
    Dpdk(DpdkChoice),
}

/// A device of DPDK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DpdkChoice {
    /// The device and the arguments of its driver, or its address on the PCI bus.
    pub device: String,
    /// Is DPDK's memory in huge pages?
    pub huge_pages: bool,
    /// Further arguments for DPDK.
    pub arguments: Vec<String>,
    /// The VLAN that its frames are of, and that they are to be of that are taken (IEEE 802.1Q); `None`: of none. *Range*:
    /// 1 to 4,094.
    pub vlan: Option<u16>,
    /// The priorities in tags (PCP): from which TRANSPORT_PRIORITY on which one, 0 below. Empty: no tag, or 0 in that of the
    /// VLAN. *Range*: 0 to 7.
    pub priorities: Vec<(i32, u8)>,
    /// Readers and writers that are critical have a queue of their own there, which is looked at first; needs a port for them
    /// ([`UdpConfig::critical_port`]).
    pub critical_queue: bool,
    /// Its address, for peers that speak UDP; `None`: frames without IP.
    pub own: Option<OwnAddress>,
}

/// An interface, by AF_XDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpChoice {
    /// The port.
    pub port: XdpConfig,
    /// What it speaks.
    pub layer: XdpLayer,
    /// Over IP: only what is critical goes there, and all else by sockets.
    pub only_critical: bool,
}

/// What a port past the kernel speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum XdpLayer {
    /// UDP over IP: samples, with peers that may use sockets.
    #[default]
    Ip,
    /// Frames of our own type: all, with peers that do the same.
    Bare,
}

/// What an executor is told when it starts.
#[derive(Clone, Debug)]
pub struct ExecutorConfig {
    /// Domain, interfaces, ports, buffers.
    pub udp: UdpConfig,
    /// What goes past the kernel's stack, if anything.
    pub frames: Option<FramesChoice>,
    /// Hosts to announce to besides multicast: `host`, `host:port`, `[address]:port`.
    pub initial_peers: Vec<String>,
    /// When writers use multicast.
    pub multicast: MulticastChoice,
    /// A name for people.
    pub entity_name: String,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// How long peers remember the participant without an announcement.
    pub lease_duration: Duration,
    /// The time between announcements.
    pub announcement_period: Duration,
    /// The most that goes to each destination, if there is a bound.
    pub max_rate: Option<MaxRate>,
    /// Who drives.
    pub driver: Driver,
    /// What the driver's thread asks of the scheduler.
    pub scheduling: Scheduling,
    /// Samples for readers of this machine go past the network.
    pub local: bool,
    /// Where participants of other containers are met: a directory that all of them mount. `None`: by
    /// names of the network namespace.
    pub local_directory: Option<PathBuf>,
    /// Groups whose processes may share memory with this one, beside those of the same user.
    pub local_groups: Vec<u32>,
    /// How long a wait looks before it sleeps.
    pub spin: Duration,
    /// How long before the time at which a sample is expected, where they come at a steady interval, and how long after it, who
    /// waits is awake and looks; zero: what comes seldom is slept for.
    pub wake_ahead: Duration,
    /// What is done for the lanes of its writers beforehand.
    pub lanes: LaneMemory,
    /// All memory of the process is kept from being swapped out, and what the participant works with is taken when it
    /// is made.
    pub lock_process: bool,
    /// A step that runs for longer makes a flight record.
    pub longest_step: Option<Duration>,
    /// Of how many samples each reader remembers where their latency went; 0: nobody wants to know.
    pub anatomy: usize,
}

/// What is done for a lane in shared memory when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneMemory {
    /// Bytes of its arena to take and to enter into the page table.
    pub prefault: usize,
    /// Is it kept from being swapped out?
    pub lock: bool,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        ExecutorConfig {
            udp: UdpConfig::default(),
            frames: None,
            initial_peers: Vec::new(),
            multicast: MulticastChoice::Auto,
            entity_name: String::new(),
            user_data: Vec::new(),
            lease_duration: DEFAULT_LEASE_DURATION,
            announcement_period: DEFAULT_ANNOUNCEMENT_PERIOD,
            max_rate: None,
            driver: Driver::Threaded,
            scheduling: Scheduling::default(),
            local: true,
            local_directory: None,
            local_groups: Vec::new(),
            spin: DEFAULT_SPIN,
            wake_ahead: Duration::ZERO,
            lanes: LaneMemory::default(),
            lock_process: false,
            longest_step: None,
            anatomy: 0,
        }
    }
}

impl ExecutorConfig {
    /// The participant's configuration, once its port is open.
    pub(crate) fn participant(&self, ports: &mut Ports) -> Result<Config> {
        let properties = [
            ("taut.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("taut.host", host_name()),
            ("taut.process", process_name()),
            ("taut.pid", std::process::id().to_string()),
        ];
        Ok(Config {
            guid_prefix: random_prefix()?,
            domain_id: self.udp.domain_id,
            entity_name: self.entity_name.clone(),
            user_data: self.user_data.clone(),
            properties: properties.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            lease_duration: self.lease_duration,
            announcement_period: self.announcement_period,
            addresses: ports.addresses(),
            initial_peers: ports.resolve(&self.initial_peers, &self.udp)?,
            multicast: self.multicast,
            anatomy: (self.anatomy > 0).then(|| Anatomy { samples: self.anatomy, clock: clock_name() }),
            cuts_discovery: self.is_without_ip(),
        })
    }

    /// Do frames go without IP?
    fn is_without_ip(&self) -> bool {
        match &self.frames {
            None => false,
            Some(FramesChoice::Xdp(choice)) => choice.layer == XdpLayer::Bare,
            Some(FramesChoice::Dpdk(choice)) => choice.own.is_none(),
        }
    }
}

/// A prefix that no other participant has: 10 random bytes after the vendor's two (RTPS 2.5 §9.3.1.5).
fn random_prefix() -> Result<GuidPrefix> {
    let mut bytes = [0; 12];
    let (vendor, rest) = bytes.split_at_mut(2);
    vendor.copy_from_slice(&taut_base::VendorId::UNKNOWN.0);
    getrandom::fill(rest)
        .map_err(|error| Error::Error(format!("no random numbers from the operating system: {error}")))?;
    Ok(GuidPrefix(bytes))
}

/// What all whose monotonic clock is the same one have in common: the running kernel, and the time namespace, in which
/// that clock may start at another point. Empty if it is not known.
fn clock_name() -> String {
    let Ok(host) = taut_port_shm::host_id() else { return String::new() };
    // Kernels without time namespaces have one clock.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", hex(&host), namespace.display())
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn process_name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
