//! The settings that a file and the environment can change: one table for both, and for the manual.
//!
//! Owns names, texts and parsers. Reads no file and no environment; `load` does and calls it.

use std::net::IpAddr;
use std::str::FromStr;

use taut_base::Duration;

use super::ranges::{
    LARGEST_DSCP, LARGEST_PCP, is_anatomy, is_burst, is_by_priority, is_name, is_pcp, is_period, is_prefault,
    is_rate, is_receive_buffer, is_spin, is_user_data, is_vlan, is_wake_ahead,
};
use super::{Config, DeadlineScheduling, Driver, Ipv6, Netd, XdpLayer, XdpMode, own_address};

/// One setting: `name` in the file, `TAUT_NAME` in the environment.
pub(super) struct Row {
    pub name: &'static str,
    /// What is allowed, for the manual and for the text of a refusal.
    pub allowed: &'static str,
    /// What it does, for the manual.
    pub meaning: &'static str,
    pub set: Set,
    /// The value that a configuration has, in the form that the file takes.
    pub get: fn(&Config) -> String,
}

/// How a setting takes its value; `None` is a value that is not allowed.
pub(super) enum Set {
    /// One value.
    One(fn(&mut Config, &str) -> Option<()>),
    /// A list: an array or a text with commas.
    List(fn(&mut Config, Vec<String>) -> Option<()>),
    /// A list of numbers: an array of numbers or of texts, or a text with commas.
    Numbers(fn(&mut Config, Vec<String>) -> Option<()>),
}

/// The highest domain whose ports are below 65,536 (RTPS 2.5 §9.6.2.3).
const MAX_DOMAIN_ID: u32 = 232;

const IPV6: [(&str, Ipv6); 3] = [("auto", Ipv6::Auto), ("on", Ipv6::On), ("off", Ipv6::Off)];

const XDP_LAYERS: [(&str, XdpLayer); 2] = [("3", XdpLayer::Ip), ("2", XdpLayer::Bare)];

const XDP_MODES: [(&str, XdpMode); 3] =
    [("auto", XdpMode::Auto), ("native", XdpMode::Native), ("generic", XdpMode::Generic)];

const DRIVERS: [(&str, Driver); 2] = [("threaded", Driver::Threaded), ("polling", Driver::Polling)];

pub(super) const TABLE: &[Row] = &[
    Row {
        name: "domain",
        allowed: "a number from 0 to 232",
        meaning: "The domain. A program that names one, as `DomainParticipant::new(3)` does, is in that one.",
        set: Set::One(|config, text| {
            config.domain_id = text.parse().ok().filter(|id| *id <= MAX_DOMAIN_ID)?;
            Some(())
        }),
        get: |config| config.domain_id.to_string(),
    },
    Row {
        name: "interface",
        allowed: "names or addresses of network interfaces",
        meaning: "The network interfaces to use; none named: all that are up.",
        set: Set::List(|config, list| {
            config.interfaces = list;
            Some(())
        }),
        get: |config| shown(&config.interfaces),
    },
    Row {
        name: "ipv6",
        allowed: "`auto`, `on` or `off`",
        meaning: "Use IPv6: `auto` where there is no IPv4, `on` beside it.",
        set: Set::One(|config, text| {
            config.ipv6 = IPV6.iter().find(|(name, _)| *name == text)?.1;
            Some(())
        }),
        get: |config| {
            let name = IPV6.iter().find(|(_, ipv6)| *ipv6 == config.ipv6).map(|(name, _)| *name);
            format!("{:?}", name.unwrap_or_default())
        },
    },
    Row {
        name: "peer",
        allowed: "hosts, as `192.168.1.7`, `robot.local`, `192.168.1.7:7410` or `[fd00::7]:7410`",
        meaning: "Hosts to announce to besides multicast. A name is looked up once, when the participant is made, which fails if nobody knows it: give an address where it may start before the name can be looked up. Without a port the first ten participants of a host are asked, and whoever listens at the port of the domain's group, as Cyclone DDS does, whose own ports are its system's choice; two of which neither is one of those find each other by multicast or by their ports.",
        set: Set::List(|config, list| {
            config.initial_peers = list;
            Some(())
        }),
        get: |config| shown(&config.initial_peers),
    },
    Row {
        name: "multicast",
        allowed: "`true` or `false`",
        meaning: "Use multicast at all. Without it others are found by `peer` only.",
        set: Set::One(|config, text| {
            config.multicast = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.multicast.to_string(),
    },
    Row {
        name: "data_multicast",
        allowed: "`true` or `false`",
        meaning: "Send what several participants read as one multicast datagram. Without it only discovery uses multicast.",
        set: Set::One(|config, text| {
            config.data_multicast = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.data_multicast.to_string(),
    },
    Row {
        name: "xdp_interface",
        allowed: "the name of a network interface; empty for none",
        meaning: "Send and receive samples past the kernel's stack on this interface, by XDP. Discovery, multicast and hosts that it does not reach go by sockets as always, and so may the peers. One of a VLAN (`eth0.5`) is used by the driver of its parent, with tags, if that leaves them (`ethtool -K eth0 rxvlan off`). Firewall and captures of the kernel do not see what goes past it. A queue has one participant. Empty after one of an earlier place, it takes what that says in the other settings of `xdp_` with it. Needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK, or `taut netd` over IP.",
        set: Set::One(|config, text| {
            text.clone_into(&mut config.xdp_interface);
            if text.is_empty() {
                // What an earlier place says of its frames goes with it.
                (config.xdp_queues, config.xdp_pcp, config.xdp_only_critical) = (Vec::new(), None, false);
                (config.xdp_layer, config.xdp_mode, config.xdp_netd) = Default::default();
            }
            Some(())
        }),
        get: |config| quoted(&config.xdp_interface),
    },
    Row {
        name: "xdp_layer",
        allowed: "`3` or `2`",
        meaning: "What is spoken on `xdp_interface`. 3: UDP over IP, with peers that may use sockets. 2: frames of Ethernet without IP, discovery included, with peers that do the same; sockets are for peers on this host then, unless `interface` names others.",
        set: Set::One(|config, text| {
            config.xdp_layer = XDP_LAYERS.iter().find(|(name, _)| *name == text)?.1;
            Some(())
        }),
        get: |config| {
            let name = XDP_LAYERS.iter().find(|(_, layer)| *layer == config.xdp_layer).map(|(name, _)| *name);
            name.unwrap_or_default().into()
        },
    },
    Row {
        name: "xdp_queues",
        allowed: "numbers of receive queues, as `0, 1`",
        meaning: "The queues of `xdp_interface`, or of the parent of a VLAN, to use, 28 MiB each; none named: the first. Writers send by the first one, from TRANSPORT_PRIORITY 100 on by the last. What the network card puts into others comes by sockets.",
        set: Set::Numbers(|config, list| {
            config.xdp_queues = numbers(&list)?;
            Some(())
        }),
        get: |config| shown(&config.xdp_queues),
    },
    Row {
        name: "xdp_only_critical",
        allowed: "`true` or `false`",
        meaning: "Only what comes to `critical_port`, and what critical writers send, goes past the kernel over IP; all else goes by sockets.",
        set: Set::One(|config, text| {
            config.xdp_only_critical = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.xdp_only_critical.to_string(),
    },
    Row {
        name: "xdp_mode",
        allowed: "`auto`, `native` or `generic`",
        meaning: "Where the kernel looks what is Taut's: in the driver of `xdp_interface`, or behind it with any driver; `auto` is in the driver if that can.",
        set: Set::One(|config, text| {
            config.xdp_mode = XDP_MODES.iter().find(|(name, _)| *name == text)?.1;
            Some(())
        }),
        get: |config| {
            let name = XDP_MODES.iter().find(|(_, mode)| *mode == config.xdp_mode).map(|(name, _)| *name);
            format!("{:?}", name.unwrap_or_default())
        },
    },
    Row {
        name: "xdp_netd",
        allowed: "a path; `off` for none; `auto` for `/run/taut/netd.sock` if `taut netd` listens there",
        meaning: "Where `taut netd` listens, which opens `xdp_interface` for participants without privileges, as its policy allows. Without one the participant opens it itself.",
        set: Set::One(|config, text| {
            config.xdp_netd = match text {
                // A file of that name is at `./auto`.
                "" | "auto" => Netd::Auto,
                "off" => Netd::Never,
                path => Netd::At(path.into()),
            };
            Some(())
        }),
        get: |config| match &config.xdp_netd {
            Netd::Auto => "\"auto\"".into(),
            Netd::Never => "\"off\"".into(),
            Netd::At(path) => quoted(&path.to_string_lossy()),
        },
    },
    Row {
        name: "xdp_pcp",
        allowed: "a number from 0 to 7; empty for no tag",
        meaning: "The priority that frames on `xdp_interface` carry in a VLAN tag (IEEE 802.1Q), for switches and network cards that let some go first: in that of its VLAN, else in one of no network. Behind the driver of an interface of a VLAN there is none.",
        set: Set::One(|config, text| {
            config.xdp_pcp = match text {
                "" => None,
                number => Some(number.parse().ok().filter(is_pcp)?),
            };
            Some(())
        }),
        get: |config| config.xdp_pcp.map_or_else(|| "\"\"".into(), |priority| priority.to_string()),
    },
    Row {
        name: "dpdk_device",
        allowed: "a device and its driver's arguments, as `net_memif0,role=server`, or an address on the PCI bus; empty for none",
        meaning: "Be reached past the kernel by frames that this device of DPDK moves: by UDP with `dpdk_address`, else without IP by peers that do the same. Sockets are for peers on this host then, unless `interface` names others. The program must be built with the feature `dpdk`. Such a participant never sleeps.",
        set: Set::One(|config, text| {
            text.clone_into(&mut config.dpdk_device);
            Some(())
        }),
        get: |config| quoted(&config.dpdk_device),
    },
    Row {
        name: "dpdk_address",
        allowed: "an address that the kernel does not have and the length of its network's prefix, as `10.0.0.2/24` or `fd00::2/64`; empty for none",
        meaning: "The address of `dpdk_device`, for peers that speak UDP: their sockets need nothing else. None: without IP.",
        set: Set::One(|config, text| {
            (text.is_empty() || own_address::parse(text).is_some()).then_some(())?;
            text.clone_into(&mut config.dpdk_address);
            Some(())
        }),
        get: |config| quoted(&config.dpdk_address),
    },
    Row {
        name: "dpdk_gateway",
        allowed: "an address, as `10.0.0.1` or `fe80::1`; empty for none",
        meaning: "The router by which peers beyond the network of `dpdk_address` are reached.",
        set: Set::One(|config, text| {
            (text.is_empty() || text.parse::<IpAddr>().is_ok()).then_some(())?;
            text.clone_into(&mut config.dpdk_gateway);
            Some(())
        }),
        get: |config| quoted(&config.dpdk_gateway),
    },
    Row {
        name: "dpdk_vlan",
        allowed: "a number from 1 to 4094; empty for none",
        meaning: "The VLAN on `dpdk_device` (IEEE 802.1Q): frames carry its tag, and of what comes only frames with it are taken.",
        set: Set::One(|config, text| {
            config.dpdk_vlan = match text {
                "" => None,
                number => Some(number.parse().ok().filter(is_vlan)?),
            };
            Some(())
        }),
        get: |config| config.dpdk_vlan.map_or_else(|| "\"\"".into(), |vlan| vlan.to_string()),
    },
    Row {
        name: "dpdk_priority_pcp",
        allowed: "a priority from 1 on and a number from 0 to 7 each, as `1:3, 100:6`",
        meaning: "The priorities that frames on `dpdk_device` carry in a VLAN tag (PCP), for switches and network cards that let some go first: from which TRANSPORT_PRIORITY of the writer on which one, and 0 for all else. They stand in the tag of `dpdk_vlan`, else in one of no network. None named: 0 in that of `dpdk_vlan`, else no tag.",
        set: Set::List(|config, list| {
            config.dpdk_priority_pcp =
                list.iter().map(|text| by_priority(text, LARGEST_PCP)).collect::<Option<_>>()?;
            Some(())
        }),
        get: |config| shown_by_priority(&config.dpdk_priority_pcp),
    },
    Row {
        name: "dpdk_critical_queue",
        allowed: "`true` or `false`",
        meaning: "Readers and writers that are critical, which `critical_port` is for, have a queue of their own on `dpdk_device`, both ways: it is looked at first, and what they send waits behind nothing else. A card tells what comes by the port, or by the priority in the tag, if its driver has rules for that; over memif the peer needs the same.",
        set: Set::One(|config, text| {
            config.dpdk_critical_queue = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.dpdk_critical_queue.to_string(),
    },
    Row {
        name: "dpdk_huge_pages",
        allowed: "`true` or `false`",
        meaning: "DPDK has its memory in huge pages, which network cards need mostly.",
        set: Set::One(|config, text| {
            config.dpdk_huge_pages = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.dpdk_huge_pages.to_string(),
    },
    Row {
        name: "dpdk_arguments",
        allowed: "arguments, as DPDK documents them",
        meaning: "Further arguments for DPDK; one that has commas itself, as of `--vdev`, stands in an array of the file. It starts once in a process: all participants have the same.",
        set: Set::List(|config, list| {
            config.dpdk_arguments = list;
            Some(())
        }),
        get: |config| shown(&config.dpdk_arguments),
    },
    Row {
        name: "local",
        allowed: "`true` or `false`",
        meaning: "Hand samples to readers on this machine past the network. Without it they take the same way as all others.",
        set: Set::One(|config, text| {
            config.local = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.local.to_string(),
    },
    Row {
        name: "local_directory",
        allowed: "a path; empty for none",
        meaning: "A directory that containers mount, to share memory although their networks differ. Without one only participants of one network namespace do.",
        set: Set::One(|config, text| {
            config.local_directory = Some(text).filter(|text| !text.is_empty()).map(Into::into);
            Some(())
        }),
        get: |config| {
            quoted(&config.local_directory.as_deref().map(|path| path.to_string_lossy()).unwrap_or_default())
        },
    },
    Row {
        name: "local_groups",
        allowed: "numbers of groups, as `20, 1000`",
        meaning: "Groups whose processes may share memory with this one, beside those of the same user. What they write is copied before it is looked at.",
        set: Set::Numbers(|config, list| {
            config.local_groups = numbers(&list)?;
            Some(())
        }),
        get: |config| shown(&config.local_groups),
    },
    Row {
        name: "spin",
        allowed: "a time up to `1s`, as `20us`; `0us` for never",
        meaning: "How long a wait for samples, or for room for them, looks before it sleeps, as long as looks find something; up to three times that where waits follow close upon each other. It saves the wake-up if what is waited for comes within it from a thread that has a processor of its own: what a thread finds that was stopped while it looked does not count, so two that share one sleep at once.",
        set: Set::One(|config, text| {
            config.spin = span(text).filter(is_spin)?;
            Some(())
        }),
        get: |config| written(config.spin),
    },
    Row {
        name: "wake_ahead",
        allowed: "a time up to `10ms`, as `100us`; `0us` for never",
        meaning: "Where samples come at a steady interval, of four times this and 400 us or more: whoever waits for them is awake so long before the next one is expected, and looks for it until so long after that. So nobody is woken for it, which takes an idle processor longer than the network takes, and not always as long. It costs as much of the processor, which the sender must not need.",
        set: Set::One(|config, text| {
            config.wake_ahead = span(text).filter(is_wake_ahead)?;
            Some(())
        }),
        get: |config| written(config.wake_ahead),
    },
    Row {
        name: "driver",
        allowed: "`threaded` or `polling`",
        meaning: "The thread that drives the participant while no thread of the program does: one that sleeps while there is nothing to do, or one that polls and never sleeps, which takes a processor. A program that drives the participant itself has neither.",
        set: Set::One(|config, text| {
            config.driver = DRIVERS.iter().find(|(name, _)| *name == text)?.1;
            Some(())
        }),
        get: |config| {
            let name = DRIVERS.iter().find(|(_, driver)| *driver == config.driver).map(|(name, _)| *name);
            format!("{:?}", name.unwrap_or("inline"))
        },
    },
    Row {
        name: "driver_priority",
        allowed: "a number from 1 to 99; `0` for none",
        meaning: "Run the driver's thread under SCHED_FIFO at this priority, before all threads without one; with none it has the policy and priority of the thread that makes the participant. Needs `ulimit -r` of at least that, or CAP_SYS_NICE.",
        set: Set::One(|config, text| {
            config.driver_priority = text.parse().ok().filter(|priority| *priority <= 99)?;
            Some(())
        }),
        get: |config| config.driver_priority.to_string(),
    },
    Row {
        name: "driver_deadline",
        allowed: "three times of `2us` or more, as `200us/1ms/1ms`, no part above the next; empty for none",
        meaning: "SCHED_DEADLINE for the driver's thread, as runtime/deadline/period: whatever else runs, it gets so much time within the deadline, once in each period. Not with `driver_priority`, `driver_cpus` or a driver that polls, as one with `dpdk_device` does. Needs CAP_SYS_NICE.",
        set: Set::One(|config, text| {
            config.driver_deadline = if text.is_empty() { None } else { Some(times(text)?) };
            Some(())
        }),
        get: |config| {
            let shown =
                |of: DeadlineScheduling| [of.runtime, of.deadline, of.period].map(in_a_unit).join("/");
            quoted(&config.driver_deadline.map(shown).unwrap_or_default())
        },
    },
    Row {
        name: "driver_cpus",
        allowed: "numbers of processors, as `2, 3`",
        meaning: "The processors that the driver's thread runs on; none named: those of the thread that makes the participant.",
        set: Set::Numbers(|config, list| {
            config.driver_cpus = numbers(&list)?;
            Some(())
        }),
        get: |config| shown(&config.driver_cpus),
    },
    Row {
        name: "prefault",
        allowed: "a number of bytes up to 1073741824; `0` for none",
        meaning: "Memory for large samples that each writer with a reader on this machine takes at once, so that none is waited for later. From 2097152 on it asks for huge pages.",
        set: Set::One(|config, text| {
            config.prefault = text.parse().ok().filter(is_prefault)?;
            Some(())
        }),
        get: |config| config.prefault.to_string(),
    },
    Row {
        name: "lock_memory",
        allowed: "`true` or `false`",
        meaning: "Keep the memory that is shared with readers on this machine from being swapped out. Needs a limit of locked memory (`ulimit -l`) above 1 GiB for each writer, or CAP_IPC_LOCK.",
        set: Set::One(|config, text| {
            config.lock_memory = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.lock_memory.to_string(),
    },
    Row {
        name: "lock_process",
        allowed: "`true` or `false`",
        meaning: "Keep all memory of the process from being swapped out (mlockall), and take what the participant works with when it is made: its buffers, the program's code, the stack of the driver's thread. Needs an unlimited `ulimit -l`, or CAP_IPC_LOCK.",
        set: Set::One(|config, text| {
            config.lock_process = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.lock_process.to_string(),
    },
    Row {
        name: "flight_recorder_step",
        allowed: "a time, as `500us`; `0us` for none",
        meaning: "A step or a listener that runs for longer has the steps before it kept for `flight_record()`, once a second at most, and told in the log if there was none in the minute before.",
        set: Set::One(|config, text| {
            config.flight_recorder_step = span(text)?;
            Some(())
        }),
        get: |config| written(config.flight_recorder_step),
    },
    Row {
        name: "anatomy",
        allowed: "a number up to 4096; `0` for none",
        meaning: "Of how many samples each reader remembers where their latency went, for `reader.anatomy()` and `taut sub --anatomy`. Samples that are written carry 28 to 32 bytes more over the network.",
        set: Set::One(|config, text| {
            config.anatomy = text.parse().ok().filter(is_anatomy)?;
            Some(())
        }),
        get: |config| config.anatomy.to_string(),
    },
    Row {
        name: "report",
        allowed: "`true` or `false`",
        meaning: "Report response times once a second while somebody in the domain asks for them, as `taut top` does.",
        set: Set::One(|config, text| {
            config.report = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.report.to_string(),
    },
    Row {
        name: "name",
        allowed: "a text of at most 256 bytes without NUL",
        meaning: "A name for people, which the others see.",
        set: Set::One(|config, text| is_name(text).then(|| text.clone_into(&mut config.name))),
        get: |config| quoted(&config.name),
    },
    Row {
        name: "user_data",
        allowed: "a text of at most 60000 bytes",
        meaning: "USER_DATA of the participant.",
        set: Set::One(|config, text| {
            config.user_data = Some(text.as_bytes()).filter(|bytes| is_user_data(bytes))?.to_vec();
            Some(())
        }),
        get: |config| quoted(&String::from_utf8_lossy(&config.user_data)),
    },
    Row {
        name: "lease_duration",
        allowed: "a time of `30ms` or more and above `announcement_period`, as `10s` or `500ms`",
        meaning: "How long the others remember the participant without a sign of life.",
        set: Set::One(|config, text| {
            config.lease_duration = duration(text)?;
            Some(())
        }),
        get: |config| written(config.lease_duration),
    },
    Row {
        name: "announcement_period",
        allowed: "a time of `10ms` or more and below `lease_duration`, as `3s` or `500ms`",
        meaning: "The time between two signs of life. Where a third of `lease_duration` is shorter, it is that.",
        set: Set::One(|config, text| {
            config.announcement_period = span(text).filter(is_period)?;
            Some(())
        }),
        get: |config| written(config.announcement_period),
    },
    Row {
        name: "receive_buffer",
        allowed: "a number of bytes from 4096 to 1073741824",
        meaning: "Bytes to ask of the kernel for what has arrived and is not read yet.",
        set: Set::One(|config, text| {
            config.receive_buffer = text.parse().ok().filter(is_receive_buffer)?;
            Some(())
        }),
        get: |config| config.receive_buffer.to_string(),
    },
    Row {
        name: "dscp",
        allowed: "a number from 0 to 63",
        meaning: "The differentiated services code point of all that is sent, for switches and routers that let some traffic go first, as `46` for expedited forwarding.",
        set: Set::One(|config, text| {
            config.dscp = text.parse().ok().filter(|dscp| *dscp <= 63)?;
            Some(())
        }),
        get: |config| config.dscp.to_string(),
    },
    Row {
        name: "priority_dscp",
        allowed: "a priority from 1 on and a number from 0 to 63 each, as `1:18, 100:46`",
        meaning: "The code points of writers with a TRANSPORT_PRIORITY above 0: from which priority on which one. None named: `dscp` for all.",
        set: Set::List(|config, list| {
            config.priority_dscp =
                list.iter().map(|text| by_priority(text, LARGEST_DSCP)).collect::<Option<_>>()?;
            Some(())
        }),
        get: |config| shown_by_priority(&config.priority_dscp),
    },
    Row {
        name: "critical_port",
        allowed: "a port number from 1 to 65535; `0` for none",
        meaning: "A UDP port of its own for readers and writers with a TRANSPORT_PRIORITY of 100 and above (from the first one on that `priority_dscp` gives 46 or more), so that a network card and `taut netd` can tell what is critical. One participant of a host can have it.",
        set: Set::One(|config, text| {
            config.critical_port = text.parse().ok()?;
            Some(())
        }),
        get: |config| config.critical_port.to_string(),
    },
    Row {
        name: "max_rate",
        allowed: "a number of bytes from 1000 on; `0` for no bound",
        meaning: "The most that goes to one destination in a second of what writers send it, repairs included, with the headers of Ethernet, IP and UDP. What is more waits.",
        set: Set::One(|config, text| {
            config.max_rate = text.parse().ok().filter(is_rate)?;
            Some(())
        }),
        get: |config| config.max_rate.to_string(),
    },
    Row {
        name: "max_burst",
        allowed: "a number of bytes from 1 to 1073741824",
        meaning: "How much of `max_rate` may go at once, after a pause. A quarter is for writers with a TRANSPORT_PRIORITY above 0.",
        set: Set::One(|config, text| {
            config.max_burst = text.parse().ok().filter(is_burst)?;
            Some(())
        }),
        get: |config| config.max_burst.to_string(),
    },
];

/// A list of numbers.
fn numbers<N: FromStr>(list: &[String]) -> Option<Vec<N>> {
    list.iter().map(|number| number.parse().ok()).collect()
}

/// The same as the file takes it.
fn shown<N: ToString>(list: &[N]) -> String {
    let texts: Vec<String> = list.iter().map(|one| quoted(&one.to_string())).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as TOML has it, in one line: control characters by their numbers.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        _ if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        _ => c.into(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// From a TRANSPORT_PRIORITY on a number up to this one.
fn by_priority(text: &str, largest: u8) -> Option<(i32, u8)> {
    let (from, number) = text.split_once(':')?;
    let of = (from.trim().parse().ok()?, number.trim().parse().ok()?);
    is_by_priority(&of, largest).then_some(of)
}

/// The same as the file takes it.
fn shown_by_priority(list: &[(i32, u8)]) -> String {
    let texts = list.iter().map(|(from, number)| format!("{from}:{number}"));
    shown(&texts.collect::<Vec<_>>())
}

/// The times of SCHED_DEADLINE.
fn times(text: &str) -> Option<DeadlineScheduling> {
    let mut times = text.split('/').map(duration);
    let (runtime, deadline, period) = (times.next()??, times.next()??, times.next()??);
    let of = DeadlineScheduling { runtime, deadline, period };
    (times.next().is_none() && of.is_possible()).then_some(of)
}

/// A number with its unit; at most a year, which is more than any timer of the protocol wants.
fn duration(text: &str) -> Option<Duration> {
    span(text).filter(|span| *span > Duration::ZERO)
}

/// The same, or nothing of a unit.
fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "us" | "µs" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "min" => Duration::from_secs(60),
        _ => return None,
    };
    let span = unit.times(number.parse().ok()?);
    (span <= Duration::from_secs(365 * 86_400)).then_some(span)
}

/// The same as the file takes it.
fn written(span: Duration) -> String {
    quoted(&in_a_unit(span))
}

/// A whole number of the largest unit that gives one. What is below a microsecond no file takes: only a program sets it.
fn in_a_unit(span: Duration) -> String {
    let units =
        [(Duration::from_secs(1), "s"), (Duration::from_millis(1), "ms"), (Duration::from_micros(1), "µs")];
    let whole = units.into_iter().find(|(unit, _)| span.0 % unit.0 == 0);
    match whole {
        _ if span == Duration::ZERO => "0us".into(),
        Some((unit, name)) if !span.is_infinite() => format!("{}{name}", span.0 / unit.0),
        _ => span.to_string(),
    }
}

/// The name that is meant by one that is not known: like it, or with a word of it too many or missing.
pub(crate) fn closest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// Below this two names have little in common.
    const ALIKE: f64 = 0.7;
    let rated = names.map(|name| {
        let part = name.contains(wanted) || wanted.contains(name);
        let rate = strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase());
        (name, if part { rate.max(ALIKE) } else { rate })
    });
    rated.filter(|(_, rate)| *rate >= ALIKE).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for bad in
            ["", "10", "s", "-1s", "0s", "1h", "1.5s", "99999999999999999999s", "9223372036854775807min"]
        {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn marks() {
        assert_eq!(by_priority("100:46", LARGEST_DSCP), Some((100, 46)));
        assert_eq!(["100:7", "100:8"].map(|text| by_priority(text, LARGEST_PCP)), [Some((100, 7)), None]);
        for bad in ["", "1", "0:18", "-1:18", "1:64", "1:18:2", ":", "1:"] {
            assert_eq!(by_priority(bad, LARGEST_DSCP), None, "{bad}");
        }
    }

    #[test]
    fn deadlines() {
        let [runtime, deadline, period] = [200, 800, 1_000].map(Duration::from_micros);
        assert_eq!(times("200us/800us/1ms"), Some(DeadlineScheduling { runtime, deadline, period }));
        for bad in
            ["200us", "200us/1ms", "2ms/1ms/1ms", "1ms/3ms/2ms", "1us/1ms/1ms", "1ms/1ms/1ms/1ms", "/1ms/1ms"]
        {
            assert_eq!(times(bad), None, "{bad}");
        }
        let mut config = Config::default();
        let row = TABLE.iter().find(|row| row.name == "driver_deadline").unwrap();
        let Set::One(set) = row.set else { panic!("one value") };
        set(&mut config, "200us/800us/1ms").unwrap();
        assert_eq!((row.get)(&config), "\"200µs/800µs/1ms\"");
    }

    #[test]
    fn what_is_meant() {
        let names = || TABLE.iter().map(|setting| setting.name);
        for (wanted, name) in [
            ("domian", Some("domain")),
            ("peers", Some("peer")),
            ("lease", Some("lease_duration")),
            ("INTERFACES", Some("interface")),
            ("zzz", None),
        ] {
            assert_eq!(closest(wanted, names()), name, "{wanted}");
        }
    }

    /// The defaults as the manual shows them are values that the settings take.
    #[test]
    fn defaults_can_be_written() {
        for setting in TABLE {
            let mut config = Config::default();
            let shown = (setting.get)(&config);
            if let Set::One(set) = setting.set {
                assert!(set(&mut config, shown.trim_matches('"')).is_some(), "{}", setting.name);
            }
            assert_eq!((setting.get)(&config), shown);
        }
    }

    #[test]
    fn what_is_said_of_netd() {
        let setting = TABLE.iter().find(|setting| setting.name == "xdp_netd").unwrap();
        let Set::One(set) = setting.set else { panic!() };
        let mut config = Config::default();
        for (text, netd) in [
            ("off", Netd::Never),
            ("auto", Netd::default()),
            ("./auto", Netd::At("./auto".into())),
            ("", Netd::default()),
        ] {
            set(&mut config, text).unwrap();
            assert_eq!(config.xdp_netd, netd, "{text}");
        }
    }

    /// What is called otherwise in a program is not called so where settings are written.
    #[test]
    fn settings_are_called_by_their_names() {
        for setting in TABLE {
            for field in ["domain_id", "interfaces", "initial_peers"] {
                assert!(!setting.meaning.contains(&format!("`{field}`")), "{}: {field}", setting.name);
            }
        }
    }

    /// The manual's table is this one.
    #[test]
    fn the_manual_has_every_setting() {
        let page = include_str!("../../../../docs/configuration.md");
        let shown: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let row =
            |s: crate::Setting| format!("| `{}` | `{}` | {} | {} |", s.name, s.value, s.allowed, s.meaning);
        let known: Vec<String> = Config::default().settings().into_iter().map(row).collect();
        assert_eq!(shown, known, "docs/configuration.md; it should be\n{}", known.join("\n"));
    }
}
