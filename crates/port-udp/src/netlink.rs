//! Hears from the kernel that interfaces or their addresses have changed.
//!
//! It says *that* something has changed; what there is now [`crate::interface`] finds out. Of the messages only
//! kind and interface are read: an interface that has lost an address may have lost its memberships of groups
//! with it, and whether it has got the address back at once cannot be seen afterwards. rtnetlink(7).

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use taut_netlink::{Heard, word};

/// What is listened for: interfaces, and their addresses.
const GROUPS: i32 = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
/// Where the number of the interface is, with ifinfomsg as with ifaddrmsg.
const INDEX_AT: usize = 4;

/// Which interfaces have lost something since it was last asked.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Interfaces, and of which kind their address was; 0 with the interface itself.
    some: Vec<(u32, i32)>,
    /// The kernel had more to say than the socket holds.
    all: bool,
}

impl Lost {
    /// Has the interface lost an address of the same kind as this?
    pub(crate) fn has(&self, index: u32, ip: IpAddr) -> bool {
        let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        self.all || [family, libc::AF_UNSPEC].iter().any(|of| self.some.contains(&(index, *of)))
    }

    fn note(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::TooMuch => self.all = true,
            Heard::Message(libc::RTM_DELADDR | libc::RTM_DELLINK, body) => {
                if let (Some(family), Some(index)) = (body.first(), word(body, INDEX_AT))
                    && !self.some.contains(&(index, i32::from(*family)))
                {
                    self.some.push((index, i32::from(*family)));
                }
            }
            Heard::Message(..) => {}
        }
    }
}

/// What the kernel tells of interfaces.
pub(crate) struct Watch {
    watch: taut_netlink::Watch,
    lost: Lost,
}

impl Watch {
    pub(crate) fn open() -> nix::Result<Watch> {
        Ok(Watch { watch: taut_netlink::Watch::open(GROUPS)?, lost: Lost::default() })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Reads what the kernel has said.
    pub(crate) fn hear(&mut self) {
        self.watch.hear(|heard| self.lost.note(heard));
    }

    /// What has been lost since the last call.
    pub(crate) fn take_lost(&mut self) -> Lost {
        self.hear();
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn what_is_lost_is_noted_once() {
        let mut lost = Lost::default();
        let mut note = |kind: u16, index: u32| {
            let body = [&[libc::AF_INET as u8, 0, 0, 0][..], &index.to_ne_bytes()].concat();
            lost.note(Heard::Message(kind, &body));
            // Cut, it says nothing.
            lost.note(Heard::Message(kind, &body[..7]));
        };
        note(libc::RTM_NEWADDR, 2);
        note(libc::RTM_DELADDR, 3);
        note(libc::RTM_DELLINK, 4);
        note(libc::RTM_DELADDR, 3);
        assert_eq!(lost.some.len(), 2);
        let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        assert!(lost.has(4, v4) && lost.has(3, v4) && !lost.has(2, v4) && !lost.has(3, v6));
        lost.note(Heard::TooMuch);
        assert!(lost.has(2, v4) && lost.has(3, v6));
    }
}
