//! This machine: facts and changes by netlink, by files of the kernel, and by one ioctl for rules.

mod device;
mod ethtool;
mod files;
mod qdisc;

use std::fmt::Display;
use std::io;

use nix::errno::Errno;
use nix::net::if_::{if_indextoname, if_nametoindex};
use taut_xdp::{
    FlowFrames, FlowRule, Interface, driver, flow_rules, insert_flow_rule, remove_flow_rule, set_spread,
    spread,
};

use crate::apply::Machine;
use crate::change::Change;
use crate::facts::{Facts, Features, Frames, Rule, Rules, Seen};
pub use device::Device;
use ethtool::Ethtool;

/// The kernel's name of the feature that ethtool calls `ntuple`.
const NTUPLE: &str = "rx-ntuple-filter";

/// A network interface of this machine.
#[derive(Clone, Debug)]
pub struct Host {
    interface: String,
    index: u32,
    /// What the kernel has of queueing disciplines: it takes long to read, and stays as it is.
    kinds: Vec<String>,
}

impl Host {
    /// *Errors*: a sentence, where there is no such interface.
    ///
    /// ```
    /// assert!(taut_nic::Host::open("lo").is_ok());
    /// let error = taut_nic::Host::open("none").unwrap_err();
    /// assert_eq!(error, "there is no network interface none: `ip link` lists them");
    /// ```
    pub fn open(interface: &str) -> Result<Host, String> {
        let absent = |_| format!("there is no network interface {interface}: `ip link` lists them");
        let index = if_nametoindex(interface).map_err(absent)?;
        Ok(Host { interface: interface.to_owned(), index, kinds: files::kinds() })
    }

    /// The interface that has this index, whatever it is called now; `None` if it is gone.
    ///
    /// ```
    /// let lo = taut_nic::Host::open("lo").unwrap();
    /// assert_eq!(taut_nic::Host::at(lo.index()).unwrap().interface(), "lo");
    /// assert!(taut_nic::Host::at(0).is_none());
    /// ```
    pub fn at(index: u32) -> Option<Host> {
        // An index that nobody has comes back as an empty name, too.
        let interface = if_indextoname(index).ok()?.into_string().ok().filter(|name| !name.is_empty())?;
        Some(Host { interface, index, kinds: files::kinds() })
    }

    /// Its name, as it was when it was opened.
    ///
    /// ```
    /// assert_eq!(taut_nic::Host::open("lo").unwrap().interface(), "lo");
    /// ```
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Its index, which it keeps when it is renamed.
    ///
    /// ```
    /// assert_ne!(taut_nic::Host::open("lo").unwrap().index(), 0);
    /// ```
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The cookie of this network namespace, as [`crate::Namespace`] has it.
    ///
    /// ```
    /// assert_eq!(taut_nic::Host::cookie(), taut_nic::Host::cookie());
    /// ```
    pub fn cookie() -> Option<u64> {
        taut_xdp::network_cookie()
    }

    /// Are the interfaces in /sys those of this process? Those of another network namespace may have the same names.
    ///
    /// *Errors*: a sentence with the remedy, if they are not.
    ///
    /// ```
    /// if let Err(why) = taut_nic::Host::shows_interfaces() {
    ///     println!("{why}");
    /// }
    /// ```
    pub fn shows_interfaces() -> Result<(), String> {
        files::is_ours()
    }

    /// The processors that are online.
    ///
    /// ```
    /// assert!(!taut_nic::Host::cpus().is_empty());
    /// ```
    pub fn cpus() -> Vec<u32> {
        files::cpus()
    }

    fn rules(&self) -> Seen<Rules> {
        let (size, rules) =
            flow_rules(&self.interface).map_err(|error| ioctl_refused("ETHTOOL_GRXCLSRLALL", &error))?;
        let rule = |rule: FlowRule| {
            let frames = match rule.frames {
                FlowFrames::UdpPort(port) => Frames::UdpPort(port),
                FlowFrames::Udp6Port(port) => Frames::Udp6Port(port),
                FlowFrames::Pcp(pcp) => Frames::Pcp(pcp),
                FlowFrames::EtherType(kind) => Frames::EtherType(kind),
                FlowFrames::Other => Frames::Other,
            };
            Rule { location: rule.location, queue: rule.queue, frames }
        };
        Ok(Rules { size: u32::try_from(size).unwrap_or(0), rules: rules.into_iter().map(rule).collect() })
    }

    /// Makes a change by which the kernel forgets XPS, and writes it again: other classes of traffic, other queues. Not where
    /// XPS cannot be looked at.
    fn keeping_xps(&self, change: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        files::is_ours()?;
        let read = || files::xps(&self.interface);
        let before = read().unwrap_or_default();
        let changed = change();
        let after = read().unwrap_or_default();
        let others = (0..).zip(before.iter().zip(&after)).filter(|(_, (before, after))| before != after);
        let restored = others.map(|(queue, (before, _))| files::restore_xps(&self.interface, queue, before));
        // Each of them is tried, whatever becomes of another.
        restored.fold(changed, Result::and)
    }

    fn set_rule(&self, location: u32, rule: Option<(Frames, u64)>) -> Result<(), String> {
        let Some((frames, queue)) = rule else {
            return remove_flow_rule(&self.interface, location)
                .map_err(|error| ioctl_refused("ETHTOOL_SRXCLSRLDEL", &error));
        };
        let frames = match frames {
            Frames::UdpPort(port) => FlowFrames::UdpPort(port),
            Frames::Udp6Port(port) => FlowFrames::Udp6Port(port),
            Frames::Pcp(pcp) => FlowFrames::Pcp(pcp),
            Frames::EtherType(kind) => FlowFrames::EtherType(kind),
            Frames::Other => FlowFrames::Other,
        };
        insert_flow_rule(&self.interface, &FlowRule { location, queue, frames })
            .map_err(|error| ioctl_refused("ETHTOOL_SRXCLSRLINS", &error))
    }
}

impl Machine for Host {
    fn facts(&mut self) -> Result<Facts, String> {
        let ours = files::is_ours();
        let mut ethtool = Ethtool::open(self.index);
        let mut asked = ethtool.as_mut().map_err(|why| why.clone());
        let (ntuple, clock) = match &mut asked {
            Ok(ethtool) => (ethtool.feature(NTUPLE), ethtool.clock()),
            Err(_) => (None, None),
        };
        let (channels, ring, coalescing) = match asked {
            Ok(ethtool) => (ethtool.channels(), ethtool.ring(), ethtool.coalescing()),
            Err(why) => (Err(why.clone()), Err(why.clone()), Err(why)),
        };
        Ok(Facts {
            interface: self.interface.clone(),
            driver: driver(&self.interface),
            mtu: Interface::named(&self.interface).ok().map(|interface| interface.mtu),
            cpus: files::cpus(),
            channels,
            ring,
            coalescing,
            features: Features { ntuple },
            rules: self.rules(),
            spread: spread(&self.interface).map_err(|error| ioctl_refused("ETHTOOL_GRXFHINDIR", &error)),
            interrupts: if ours.is_ok() { files::interrupts(&self.interface) } else { Vec::new() },
            xps: ours.and_then(|()| files::xps(&self.interface)),
            qdiscs: qdisc::qdiscs(self.index),
            kinds: self.kinds.clone(),
            clock,
        })
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Channels { combined, rx, tx } => {
                self.keeping_xps(|| Ethtool::open(self.index)?.set_channels(*combined, *rx, *tx))
            }
            Change::Ring(frames) => Ethtool::open(self.index)?.set_ring(*frames),
            Change::Coalescing(wanted) => Ethtool::open(self.index)?.set_coalescing(wanted),
            Change::Ntuple(on) => Ethtool::open(self.index)?.set_feature(NTUPLE, *on),
            Change::Rule { location, rule } => self.set_rule(*location, *rule),
            Change::Spread(table) => set_spread(&self.interface, table)
                .map_err(|error| ioctl_refused("ETHTOOL_SRXFHINDIR", &error)),
            Change::Qdisc(wanted) => self.keeping_xps(|| qdisc::set(self.index, wanted)),
            Change::Xps { queue, cpus } => {
                files::is_ours()?;
                files::set_xps(&self.interface, *queue, cpus)
            }
            Change::Interrupt { number, cpus } => files::set_interrupt(*number, cpus),
        }
    }
}

fn ioctl_refused(command: &str, error: &io::Error) -> String {
    refused(&format!("ioctl {command}"), Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// The call, why it was refused, and what to do about it.
fn refused(call: &str, errno: Errno) -> String {
    let remedy = match errno {
        Errno::EOPNOTSUPP => return format!("{call}: the driver has no such setting"),
        Errno::EPERM | Errno::EACCES => "root may: use sudo",
        Errno::EROFS => "a container may not: do it on the host",
        Errno::EBUSY => "something uses it: end what has an XDP socket there, and try again",
        Errno::ENOENT => "this kernel has no such thing: load its module, or do without",
        Errno::ENODEV => "the interface is gone: `ip link` lists those that there are",
        Errno::EINVAL | Errno::ERANGE => "the driver takes no such value: ask for another",
        _ => "the kernel's log may say why: `dmesg | tail`",
    };
    format!("{call}: {}; {remedy}", errno.desc())
}

/// The same for a file.
fn wrong(call: &str, path: impl Display, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("there is no {path}: the driver has no such setting");
    }
    refused(&format!("{call} {path}"), Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}
