//! What the system has refused without which the port goes on: what it costs is the user's to know, once.

use std::io;
use std::net::IpAddr;

use nix::errno::Errno;
use taut_port::PortError;

use crate::stats::{ErrnoCounts, KINDS};
use crate::{Interface, MAX_INTERFACES};

/// Warnings that wait to be taken: of each interface, of the watch, and of each kind of refused sends. Fewer leave one out,
/// more are kept for one who never asks.
const WAITING: usize = MAX_INTERFACES + 1 + KINDS;

#[derive(Default)]
pub(crate) struct Warnings {
    waiting: Vec<String>,
    /// The interfaces that were warned of.
    told: Vec<u32>,
    /// The refused sends that were warned of.
    unsent: ErrnoCounts,
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

    /// The kernel has not sent so many datagrams, in all.
    pub(crate) fn refused_sends(&mut self, errors: &ErrnoCounts) {
        let before = std::mem::replace(&mut self.unsent, *errors);
        for (number, count) in errors.iter() {
            let (fresh, errno) = (count - before.of(number), Errno::from_raw(number));
            let is_known = match errno {
                // A peer that has gone.
                Errno::ECONNREFUSED => true,
                // A peer may have addresses in networks that are none of this host's, for as long as it is there.
                Errno::ENETUNREACH => fresh < count,
                _ => false,
            };
            if fresh > 0 && !is_known {
                self.add(unsent(errno, fresh));
            }
        }
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

/// What datagrams are told of that have not left.
fn unsent(errno: Errno, count: u64) -> String {
    let remedy = match errno {
        Errno::EPERM | Errno::EACCES => {
            "a firewall drops what this process sends, or the policy of its sandbox, container or security module does: \
             allow UDP there (`taut doctor` names the firewall's rule, and the one that helps)"
        }
        Errno::EHOSTUNREACH => {
            "a firewall of a peer or on the way to it rejects what is sent, or no route leads there: allow UDP there, and see \
             `ip route get ADDRESS`"
        }
        Errno::ENETUNREACH => {
            "no route leads to an address of a peer, which does no harm if another of its addresses is reached: add one \
             (`ip route get ADDRESS` shows what there is)"
        }
        Errno::ENOBUFS | Errno::ENOMEM => {
            "the queue of the interface is full or memory is short: send no faster than it does (`max_rate`), or lengthen \
             the queue (`ip link set INTERFACE txqueuelen 10000`)"
        }
        _ => "check the interfaces (`ip addr`), the routes (`ip route`) and the host (`taut doctor`)",
    };
    let source = io::Error::from(errno);
    let effect = "samples in them come late, by repair, or never, and peers may not be found";
    let error = PortError { call: format!("sendto ({errno:?})"), source, remedy };
    format!("datagrams are not sent, {count} of late: {effect}: {error}")
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
    fn what_is_not_sent_is_warned_of_by_what_refused_it() {
        let (mut warnings, mut errors) = (Warnings::default(), ErrnoCounts::default());
        let mut refuse = |numbers: &[i32]| {
            numbers.iter().for_each(|errno| errors.count(*errno));
            warnings.refused_sends(&errors);
            warnings.take()
        };
        assert_eq!(refuse(&[]), [""; 0]);
        let [rule] = &refuse(&[libc::EPERM, libc::EPERM])[..] else { panic!("one warning") };
        assert!(rule.starts_with("datagrams are not sent, 2 of late: "), "{rule}");
        assert!(
            rule.contains("sendto (EPERM): Operation not permitted") && rule.contains("taut doctor"),
            "{rule}"
        );
        assert_eq!(refuse(&[]), [""; 0], "nothing has come to it");
        let two = refuse(&[libc::EPERM, libc::ENOBUFS]);
        assert!(
            two.len() == 2 && two[0].contains("sent, 1 of late") && two[1].contains("max_rate"),
            "{two:?}"
        );
        assert_eq!(refuse(&[libc::ECONNREFUSED]), [""; 0], "who has gone is no fault");
        let route = refuse(&[libc::ENETUNREACH]);
        assert!(route.len() == 1 && route[0].contains("ip route get"), "{route:?}");
        assert_eq!(refuse(&[libc::ENETUNREACH]), [""; 0], "such addresses stay");
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
