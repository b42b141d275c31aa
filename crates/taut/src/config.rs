//! What a participant is told when it is made, and where the values come from.

mod load;
mod own_address;
mod ranges;
mod settings;

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use taut_base::{Duration, Error, Result};
use taut_exec::{
    DeadlineScheduling, DpdkChoice, ExecutorConfig, FramesChoice, LaneMemory, Scheduling, XdpChoice, XdpLayer,
};
use taut_port_udp::{Interface, Multicast, UdpConfig};
use taut_port_xdp::{AttachMode, Netd, XdpConfig};
use taut_rtps::{MaxRate, MulticastChoice};

pub use taut_exec::Driver;
pub use taut_port_udp::Ipv6;

pub(crate) use settings::closest;

/// The most samples that a reader remembers. Lower forgets those of a long queue before they are taken, higher has a
/// take look at more of them for one that is forgotten.
const MAX_ANATOMY: usize = 4_096;

/// Where the kernel runs the program of XDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum XdpMode {
    /// In the driver if it can, else as `Generic`.
    #[default]
    Auto,
    /// In the driver of the interface, before the kernel has made anything of a frame.
    Native,
    /// At the beginning of the kernel's own path, with any driver.
    Generic,
}

/// One setting that a file and the environment can change, for people who ask what there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name in the file.
    pub name: &'static str,
    /// Its name in the environment.
    pub variable: String,
    /// Its value, as the file takes it.
    pub value: String,
    /// What it takes.
    pub allowed: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// The settings of a participant.
#[derive(Clone, Debug)]
pub struct Config {
    /// The domain. *Range*: 0 to 232.
    pub domain_id: u32,
    /// Interfaces by name or address; empty: all that are up.
    pub interfaces: Vec<String>,
    /// Whether IPv6 is used: where there is no IPv4, everywhere, never.
    pub ipv6: Ipv6,
    /// Hosts to announce to besides multicast, as `host`, `host:port` or `[address]:port`.
    pub initial_peers: Vec<String>,
    /// Use multicast at all.
    pub multicast: bool,
    /// Send a sample that several participants read as one multicast datagram, where there is multicast.
    pub data_multicast: bool,
    /// A name for people, announced to the peers. *Range*: up to 256 bytes, without NUL.
    pub name: String,
    /// Bytes for the peers (USER_DATA). *Range*: up to 60,000.
    pub user_data: Vec<u8>,
    /// How long peers remember the participant without a sign of life. *Range*: from 30 ms on, and above
    /// `announcement_period`.
    pub lease_duration: Duration,
    /// The time between announcements; a third of the lease where that is shorter. *Range*: from 10 ms on.
    pub announcement_period: Duration,
    /// Bytes of the sockets' receive buffers to ask for. *Range*: 4,096 to 1 GiB.
    pub receive_buffer: usize,
    /// The differentiated services code point of what is sent, for switches and routers that treat some
    /// traffic first. *Range*: 0 (none) to 63.
    pub dscp: u8,
    /// The code points of writers with a TRANSPORT_PRIORITY above 0, instead: from which value on, and which. Empty:
    /// `dscp` for all.
    pub priority_dscp: Vec<(i32, u8)>,
    /// A UDP port of its own for readers and writers that are critical: those with a TRANSPORT_PRIORITY of 100 and above, or
    /// from the first one on that `priority_dscp` gives 46 or more. A network card can then steer what they receive to a
    /// queue of its own, and `taut netd` can allow it by itself. 0: they are reached where all are. One participant of a
    /// host can have a port.
    pub critical_port: u16,
    /// The most that goes to one destination in a second, of what writers send it, once and again; 0: no bound. *Units*:
    /// bytes, with the headers of Ethernet, IP and UDP. *Range*: from 1,000 on.
    pub max_rate: u64,
    /// How much of that may go at once, after a pause. *Units*: bytes. *Range*: from 1 to 1 GiB; twice the largest datagram, 64 kB
    /// on this host and 1.5 kB in most networks, leaves room for writers with a TRANSPORT_PRIORITY.
    pub max_burst: u64,
    /// The network interface whose samples go past the kernel's stack by XDP, both ways; empty: none. Discovery,
    /// multicast and what it does not reach go by sockets, so that peers need not do the same. Needs CAP_NET_ADMIN,
    /// CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK (or root), or `taut netd`, which has them; what is refused is said when the
    /// participant is made. A queue of the interface has one participant, and so has an interface without `taut netd` or
    /// without IP. One of a VLAN is used by the driver of its parent, with tags, if that can be.
    pub xdp_interface: String,
    /// What is spoken on that interface: UDP over IP, with peers that may use sockets, or frames without IP, with peers
    /// that do the same.
    pub xdp_layer: XdpLayer,
    /// The queues of that interface to use; none named: the first. What comes by others comes by sockets. Writers send by
    /// the first one, from TRANSPORT_PRIORITY 100 on by the last, so that these wait behind nothing else's frames.
    pub xdp_queues: Vec<u32>,
    /// Over IP: only what comes to `critical_port`, and what critical writers send, goes past the kernel; all else by sockets.
    pub xdp_only_critical: bool,
    /// Where the kernel runs the program that tells what is Taut's.
    pub xdp_mode: XdpMode,
    /// Who opens that interface: `taut netd`, where it listens, or the participant itself.
    pub xdp_netd: Netd,
    /// The priority that frames past the kernel carry in a VLAN tag (IEEE 802.1Q, PCP), in that of the interface's VLAN, else
    /// in one of no network; `None`: they carry none of no network, and the lowest one in a VLAN. *Range*: 0 to 7.
    pub xdp_pcp: Option<u8>,
    /// The device of DPDK by which this participant is reached past the kernel, with the arguments of its driver, as
    /// `net_memif0,role=server,socket=/run/a.sock`, or its address on the PCI bus; empty: none. Needs a program that is
    /// built with the feature `dpdk`. Such a participant never sleeps: give it a processor.
    pub dpdk_device: String,
    /// The address that the participant has on that device, and the length of its network's prefix, as `10.0.0.2/24` or
    /// `fd00::2/64`, for peers that speak UDP over the same kind of IP; empty: none, and only peers without IP are met
    /// there. The kernel must not have the same.
    pub dpdk_address: String,
    /// The router of that network, as `10.0.0.1` or by its address of the link `fe80::1`, for peers beyond it; empty: none.
    pub dpdk_gateway: String,
    /// The VLAN on that device (IEEE 802.1Q): frames carry its tag, and of what comes only frames with it are taken; `None`:
    /// none. *Range*: 1 to 4,094.
    pub dpdk_vlan: Option<u16>,
    /// The priorities in the tags of frames on that device (PCP), for switches and network cards that let some go first: from
    /// which TRANSPORT_PRIORITY of the writer on, and which; all else has 0. They stand in the tag of `dpdk_vlan`, else in
    /// one of no network. Empty: 0 in that of `dpdk_vlan`, else no tag. *Range*: 0 to 7.
    pub dpdk_priority_pcp: Vec<(i32, u8)>,
    /// Readers and writers that are critical, which `critical_port` is for, have a queue of their own on that device, both ways:
    /// it is looked at first, and what they send waits behind nothing else. A card tells what comes by the port, or by the
    /// priority in the tag; over memif the peer needs the same.
    pub dpdk_critical_queue: bool,
    /// DPDK has its memory in huge pages, which cards need mostly.
    pub dpdk_huge_pages: bool,
    /// Further arguments for DPDK. It starts once in a process: all participants have the same.
    pub dpdk_arguments: Vec<String>,
    /// Hand samples to readers on this machine past the network.
    pub local: bool,
    /// Where participants of other containers are met: a directory that all of them mount; `None`: only
    /// those of the same network namespace are.
    pub local_directory: Option<PathBuf>,
    /// Groups whose processes may share memory with this one, beside those of the same user. What they
    /// write is copied before it is looked at.
    pub local_groups: Vec<u32>,
    /// How long a wait for samples, or for room for them, looks before it sleeps. It looks as long as that
    /// finds something: what comes at long intervals, or needs this thread's processor to be
    /// written, is slept for. *Range*: up to 1 s.
    pub spin: Duration,
    /// Where samples come at a steady interval, whoever waits for them is awake so long before the next one is expected, and
    /// looks for it until so long after that. What it takes a processor to wake comes on top, as it is known from the sleeps
    /// before. Zero: it sleeps until they come. *Range*: up to 10 ms. *Cost*: so much of a processor for each sample, of a
    /// thread that drives: at intervals below four times this, or 400 us, nothing is expected.
    pub wake_ahead: Duration,
    /// Bytes for large samples that each writer with a reader on this machine takes at once. From 2 MiB on it
    /// asks for huge pages. What cannot be had is told in the log. *Range*: up to 1 GiB.
    pub prefault: usize,
    /// Keep what is shared with readers on this machine from being swapped out. If that is not allowed it is
    /// told in the log.
    pub lock_memory: bool,
    /// Keep all memory of the process from being swapped out (mlockall), and take what the participant works with when
    /// it is made: buffers, code, the stack of the driver's thread, the first samples' room in shared memory. What is
    /// refused is said when the participant is made.
    pub lock_process: bool,
    /// SCHED_FIFO priority of the driver's thread, 1 to 99; 0: the policy and priority of the thread that makes the
    /// participant. What is refused is said when the participant is made.
    pub driver_priority: u8,
    /// SCHED_DEADLINE for the driver's thread, instead of a priority. What is refused is said when the participant is
    /// made.
    pub driver_deadline: Option<DeadlineScheduling>,
    /// The processors that the driver's thread runs on; none named: those of the thread that makes the participant.
    pub driver_cpus: Vec<usize>,
    /// A step that runs for longer, or a listener, makes a flight record; 0: none does. *Units*: any; steps take
    /// some microseconds.
    pub flight_recorder_step: Duration,
    /// Each reader remembers of so many samples where their latency went ([`crate::DataReader::anatomy`]), and writers
    /// tell it what they know of it; 0: nobody wants to know. *Range*: up to 4,096.
    pub anatomy: usize,
    /// Report response times to whoever asks for them: see [`crate::REPORT_TOPIC`].
    pub report: bool,
    /// Who drives the participant while nobody waits.
    pub driver: Driver,
}

impl Default for Config {
    fn default() -> Self {
        let udp = UdpConfig::default();
        Config {
            domain_id: 0,
            interfaces: Vec::new(),
            ipv6: Ipv6::Auto,
            initial_peers: Vec::new(),
            multicast: true,
            data_multicast: true,
            name: String::new(),
            user_data: Vec::new(),
            lease_duration: taut_exec::DEFAULT_LEASE_DURATION,
            announcement_period: taut_exec::DEFAULT_ANNOUNCEMENT_PERIOD,
            receive_buffer: udp.receive_buffer,
            dscp: udp.dscp,
            priority_dscp: udp.priority_marks,
            critical_port: 0,
            max_rate: 0,
            max_burst: 131_072,
            xdp_interface: String::new(),
            xdp_layer: XdpLayer::Ip,
            xdp_queues: Vec::new(),
            xdp_only_critical: false,
            xdp_mode: XdpMode::Auto,
            xdp_netd: Netd::Auto,
            xdp_pcp: None,
            dpdk_device: String::new(),
            dpdk_address: String::new(),
            dpdk_gateway: String::new(),
            dpdk_vlan: None,
            dpdk_priority_pcp: Vec::new(),
            dpdk_critical_queue: false,
            dpdk_huge_pages: false,
            dpdk_arguments: Vec::new(),
            local: true,
            local_directory: None,
            local_groups: Vec::new(),
            spin: taut_exec::DEFAULT_SPIN,
            wake_ahead: Duration::ZERO,
            prefault: 0,
            lock_memory: false,
            lock_process: false,
            driver_priority: 0,
            driver_deadline: None,
            driver_cpus: Vec::new(),
            flight_recorder_step: Duration::ZERO,
            anatomy: 0,
            report: true,
            driver: Driver::Threaded,
        }
    }
}

impl Config {
    /// The defaults, changed by the configuration file, changed by the `TAUT_*` environment.
    ///
    /// The file is the one that `TAUT_CONFIG` names, else `taut.toml` in the working directory, else
    /// `taut/taut.toml` in the user's configuration directory; none is fine. The manual's
    /// `docs/configuration.md` has the table of settings.
    ///
    /// *Errors*: [`taut_base::Error::BadParameter`] for a setting that there is not or a value that it
    /// does not take; the text has the remedy.
    pub fn load() -> Result<Config> {
        load::load(None, &std::env::vars_os().collect::<Vec<_>>())
    }

    /// As [`Config::load`], with this file and no other.
    pub fn load_from(file: impl AsRef<Path>) -> Result<Config> {
        load::load(Some(file.as_ref()), &std::env::vars_os().collect::<Vec<_>>())
    }

    /// Are these settings in their ranges, and do they go together? Those that are loaded are; a participant asks this of
    /// what it is made with, and then the machine.
    ///
    /// *Errors*: [`taut_base::Error::BadParameter`]; the text has the remedy.
    ///
    /// ```
    /// let config = taut::Config { initial_peers: vec!["robot.local:99999".into()], ..taut::Config::default() };
    /// assert!(config.check().unwrap_err().to_string().contains("no port from 1 to 65535"));
    /// ```
    pub fn check(&self) -> Result<()> {
        load::check(self)
    }

    /// All that a file and the environment can set, with the values that are in force here.
    pub fn settings(&self) -> Vec<Setting> {
        let row = |row: &settings::Row| Setting {
            name: row.name,
            variable: load::variable(row.name),
            value: (row.get)(self),
            allowed: row.allowed,
            meaning: row.meaning,
        };
        settings::TABLE.iter().map(row).collect()
    }

    /// The addresses that a participant with these settings uses, with their network interfaces.
    ///
    /// *Errors*: [`taut_base::Error::BadParameter`] for an interface that there is not or that cannot be used,
    /// [`taut_base::Error::Error`] where none can; the text has the remedy.
    ///
    /// ```
    /// let config = taut::Config { interfaces: vec!["lo".into()], ..taut::Config::default() };
    /// assert_eq!(config.network_interfaces()?[0].name, "lo");
    /// # Ok::<(), taut::Error>(())
    /// ```
    pub fn network_interfaces(&self) -> Result<Vec<Interface>> {
        taut_port_udp::interfaces(&self.interfaces, &self.xdp_interface, self.ipv6)
    }

    /// Where discovery goes by frames sockets are for peers on this host, if nobody says otherwise.
    fn socket_interfaces(&self) -> Vec<String> {
        let by_frames = !self.dpdk_device.is_empty()
            || !self.xdp_interface.is_empty() && self.xdp_layer == XdpLayer::Bare;
        if by_frames && self.interfaces.is_empty() { vec!["lo".into()] } else { self.interfaces.clone() }
    }

    /// What goes past the kernel's stack, if anything.
    fn frames(&self) -> Result<Option<FramesChoice>> {
        let own = own_address::read(&self.dpdk_device, &self.dpdk_address, &self.dpdk_gateway)?;
        match (self.xdp_interface.is_empty(), self.dpdk_device.is_empty()) {
            (true, true) => Ok(None),
            (false, true) => Ok(Some(FramesChoice::Xdp(self.xdp()))),
            (true, false) => Ok(Some(FramesChoice::Dpdk(DpdkChoice {
                device: self.dpdk_device.clone(),
                huge_pages: self.dpdk_huge_pages,
                arguments: self.dpdk_arguments.clone(),
                vlan: self.dpdk_vlan,
                priorities: self.dpdk_priority_pcp.clone(),
                critical_queue: self.dpdk_critical_queue,
                own,
            }))),
            (false, false) => Err(Error::BadParameter(
                "xdp_interface and dpdk_device: frames go by one of them; leave the other empty".into(),
            )),
        }
    }

    fn xdp(&self) -> XdpChoice {
        XdpChoice {
            port: XdpConfig {
                interface: self.xdp_interface.clone(),
                queues: self.xdp_queues.clone(),
                priority: self.xdp_pcp,
                attach: match self.xdp_mode {
                    XdpMode::Auto => None,
                    XdpMode::Native => Some(AttachMode::Native),
                    XdpMode::Generic => Some(AttachMode::Generic),
                },
                bind: None,
                netd: self.xdp_netd.clone(),
            },
            layer: self.xdp_layer,
            only_critical: self.xdp_only_critical,
        }
    }

    /// What goes by sockets.
    fn udp(&self) -> UdpConfig {
        UdpConfig {
            domain_id: self.domain_id,
            critical_port: NonZeroU16::new(self.critical_port),
            interfaces: self.socket_interfaces(),
            preferred_interface: self.xdp_interface.clone(),
            ipv6: self.ipv6,
            multicast: if self.multicast { Multicast::Auto } else { Multicast::Never },
            receive_buffer: self.receive_buffer,
            dscp: self.dscp,
            priority_marks: self.priority_dscp.clone(),
            ..UdpConfig::default()
        }
    }

    pub(crate) fn executor(&self) -> Result<ExecutorConfig> {
        self.check()?;
        Ok(ExecutorConfig {
            udp: self.udp(),
            frames: self.frames()?,
            initial_peers: self.initial_peers.clone(),
            multicast: if self.multicast && self.data_multicast {
                MulticastChoice::Auto
            } else {
                MulticastChoice::Never
            },
            entity_name: self.name.clone(),
            user_data: self.user_data.clone(),
            lease_duration: self.lease_duration,
            announcement_period: self.announcement_period,
            max_rate: (self.max_rate > 0)
                .then_some(MaxRate { bytes_per_second: self.max_rate, burst: self.max_burst }),
            driver: self.driver,
            local: self.local,
            local_directory: self.local_directory.clone(),
            local_groups: self.local_groups.clone(),
            spin: self.spin,
            wake_ahead: self.wake_ahead,
            scheduling: Scheduling {
                priority: (self.driver_priority > 0).then_some(self.driver_priority),
                deadline: self.driver_deadline,
                cpus: self.driver_cpus.clone(),
            },
            // A byte of the arena is enough to take the cells before it.
            lanes: LaneMemory {
                prefault: self.prefault.max(usize::from(self.lock_process)),
                lock: self.lock_memory,
            },
            lock_process: self.lock_process,
            anatomy: self.anatomy,
            longest_step: Some(self.flight_recorder_step).filter(|longest| *longest > Duration::ZERO),
        })
    }
}
