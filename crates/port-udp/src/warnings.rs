//! What the system has refused without which the port goes on: what it costs is the user's to know, once.

use std::io;
use std::net::IpAddr;

use nix::errno::Errno;
use taut_port::PortError;

use crate::{Interface, MAX_INTERFACES};

/// Warnings that wait to be taken: of each interface, and of the watch. Fewer leave one out, more are kept for one who
/// never asks.
const WAITING: usize = MAX_INTERFACES + 1;

#[derive(Default)]
pub(crate) struct Warnings {
    waiting: Vec<String>,
    /// The interfaces that were warned of.
    told: Vec<u32>,
}

impl Warnings {
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting)
    }

    /// The kernel does not tell of changes.
    pub(crate) fn refused_watch(&mut self, errno: Errno) {
        let source = io::Error::from(errno);
        let remedy = match errno {
            Errno::EMFILE | Errno::ENFILE => "raise the limit of open files (`ulimit -n`)",
            _ => {
                "allow netlink sockets in the policy of the sandbox, container or security module, and start again after each change until then"
            }
        };
        self.add(format!(
            "the network is not followed: interfaces, addresses and MTUs count as they are now, and after a change samples \
             and peers may be lost: {}",
            PortError { call: "rtnetlink socket for changes of interfaces".into(), source, remedy }
        ));
    }

    /// An interface that has gone and comes back is warned of anew.
    pub(crate) fn follow(&mut self, interfaces: &[Interface]) {
        self.told.retain(|index| interfaces.iter().any(|own| own.index == *index));
    }

    /// The interface does not take the membership of a group.
    pub(crate) fn refused_group(&mut self, interface: &Interface, group: IpAddr, source: io::Error) {
        let option = if group.is_ipv4() { "IP_ADD_MEMBERSHIP" } else { "IPV6_JOIN_GROUP" };
        let call = format!("setsockopt {option} {group} on {}", interface.name);
        let remedy = remedy(group, &source);
        self.refused_multicast(interface, PortError { call, source, remedy });
    }

    /// The interface does not take a socket for what goes to groups.
    pub(crate) fn refused_sender(&mut self, interface: &Interface, source: io::Error) {
        let call = format!("socket to send to groups from {} on {}", interface.address, interface.name);
        let remedy = match source.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => {
                "the address has just gone, or the interface is in a VRF: start the program there then, `ip vrf exec VRF \
                 PROGRAM`"
            }
            _ => remedy(interface.address, &source),
        };
        self.refused_multicast(interface, PortError { call, source, remedy });
    }

    fn refused_multicast(&mut self, interface: &Interface, error: PortError) {
        // One that has gone since it was found; the kernel tells of that, too.
        if error.source.raw_os_error() == Some(libc::ENODEV) || self.told.contains(&interface.index) {
            return;
        }
        self.told.push(interface.index);
        let name = &interface.name;
        self.add(format!(
            "no multicast on {name}, where samples come and go by unicast only, and hosts are found only if a `peer` names \
             them: {error}"
        ));
    }

    fn add(&mut self, line: String) {
        if self.waiting.len() < WAITING {
            self.waiting.push(line);
        }
    }
}

/// What to do about it; both numbers are defaults of the kernel's, the second one of newer kernels.
fn remedy(group: IpAddr, source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        // More than a participant has interfaces.
        Some(libc::ENOBUFS | libc::ENOMEM) if group.is_ipv4() => {
            "`sysctl -w net.ipv4.igmp_max_memberships=20` as root, which counts from the next start or change of \
             interfaces on"
        }
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "`sysctl -w net.core.optmem_max=131072` as root, which counts from the next start or change of interfaces on"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "this process may not: allow it in the policy of its sandbox, container or security module"
        }
        _ => "check the interface (`ip addr`), or do without multicast (`multicast = false`)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn interface(index: u32) -> Interface {
        Interface {
            name: format!("eth{index}"),
            index,
            address: Ipv4Addr::LOCALHOST.into(),
            prefix_len: 24,
            loopback: false,
            multicast: true,
        }
    }

    fn refuse(warnings: &mut Warnings, index: u32, group: IpAddr, errno: i32) -> Vec<String> {
        warnings.refused_group(&interface(index), group, io::Error::from_raw_os_error(errno));
        warnings.take()
    }

    #[test]
    fn an_interface_is_warned_of_once() {
        let mut warnings = Warnings::default();
        let group = crate::DEFAULT_GROUP.into();
        let [text] = &refuse(&mut warnings, 2, group, libc::ENOBUFS)[..] else { panic!("one warning") };
        assert!(text.starts_with("no multicast on eth2"), "{text}");
        assert!(text.contains("IP_ADD_MEMBERSHIP 239.255.0.1 on eth2: No buffer space"), "{text}");
        assert!(text.contains("`sysctl -w net.ipv4.igmp_max_memberships=20`"), "{text}");
        let mut count = |index, errno| refuse(&mut warnings, index, group, errno).len();
        assert_eq!((count(2, libc::ENOBUFS), count(3, libc::EPERM), count(4, libc::ENODEV)), (0, 1, 0));
        warnings.follow(&[interface(3)]);
        assert_eq!(refuse(&mut warnings, 3, group, libc::EPERM).len(), 0, "it has stayed");
        let v6 = refuse(&mut warnings, 2, Ipv6Addr::LOCALHOST.into(), libc::ENOMEM).concat();
        assert!(v6.contains("IPV6_JOIN_GROUP") && v6.contains("optmem_max"), "{v6}");
    }

    #[test]
    fn who_never_asks_has_a_few() {
        let mut warnings = Warnings::default();
        for index in 0..1_000 {
            warnings.follow(&[]);
            let refused = io::Error::from_raw_os_error(libc::EPERM);
            warnings.refused_group(&interface(index), crate::DEFAULT_GROUP.into(), refused);
        }
        assert_eq!(warnings.take().len(), WAITING);
    }
}
