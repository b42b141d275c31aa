//! Hears from the kernel that interfaces or their addresses have changed.
//!
//! It says *that* something has changed; what there is now [`crate::interface`] finds out. Of the messages only
//! kind, interface and MTU are read: an interface that has lost an address may have lost its memberships of groups
//! with it, and whether it has got the address back at once cannot be seen afterwards; nor can an MTU that was another
//! one for a moment, in which a path was asked for. rtnetlink(7).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use taut_netlink::{Heard, attribute, link, word};

/// What is listened for: interfaces, and their addresses.
const GROUPS: i32 = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
/// Where the number of the interface is, with ifinfomsg as with ifaddrmsg.
const INDEX_AT: usize = 4;

/// Interfaces that are remembered: their MTUs, and what they have lost. Lower takes an MTU for another one more often,
/// so that paths are asked for in vain, and all for lost; higher holds more of a host with thousands of containers.
const LINKS: usize = 1_024;

/// Which interfaces have lost something since it was last asked.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Interfaces, and of which kind their address was; 0 with the interface itself.
    some: Vec<(u32, i32)>,
    /// The kernel had more to say than the socket holds, or than is remembered.
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
                    && !self.all
                    && !self.some.contains(&(index, i32::from(*family)))
                {
                    self.some.push((index, i32::from(*family)));
                    self.all |= self.some.len() >= LINKS;
                }
            }
            Heard::Message(..) => {}
        }
    }
}

/// The MTUs of interfaces, as far as the kernel has told them. All of them, as routes may lead by an interface whose
/// addresses are not used.
#[derive(Default)]
struct Mtus {
    known: BTreeMap<u32, u32>,
    /// One may be another than when paths were last asked for.
    have_changed: bool,
}

impl Mtus {
    fn note(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::TooMuch => {
                self.known.clear();
                self.have_changed = true;
            }
            Heard::Message(libc::RTM_NEWLINK, body) => {
                if let Some((index, said)) = link(body)
                    && let Some(mtu) = attribute(said, libc::IFLA_MTU).and_then(|value| word(value, 0))
                {
                    self.learn(index, mtu);
                }
            }
            Heard::Message(..) => {}
        }
    }

    fn learn(&mut self, index: u32, mtu: u32) {
        if self.known.len() >= LINKS && !self.known.contains_key(&index) {
            self.known.clear();
        }
        // What it was before the first message nobody has said.
        self.have_changed |= self.known.insert(index, mtu) != Some(mtu);
    }
}

/// What the kernel tells of interfaces.
pub(crate) struct Watch {
    watch: taut_netlink::Watch,
    lost: Lost,
    mtus: Mtus,
}

impl Watch {
    pub(crate) fn open() -> nix::Result<Watch> {
        let watch = taut_netlink::Watch::open(GROUPS)?;
        Ok(Watch { watch, lost: Lost::default(), mtus: Mtus::default() })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Reads what the kernel has said. Returns whether an interface may have another MTU than when this was last said.
    #[must_use]
    pub(crate) fn hear(&mut self) -> bool {
        self.watch.hear(|heard| {
            self.lost.note(heard);
            self.mtus.note(heard);
        });
        std::mem::take(&mut self.mtus.have_changed)
    }

    /// What has been lost, of all that was heard since the last call.
    pub(crate) fn take_lost(&mut self) -> Lost {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use taut_netlink::Attributes;

    use super::*;

    /// Bytes of ifinfomsg.
    const LINK: usize = 16;

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
        let mut most = std::mem::take(&mut lost);
        lost.note(Heard::TooMuch);
        assert!(lost.has(2, v4) && lost.has(3, v6));
        for index in 0..2 * LINKS as u32 {
            most.note(Heard::Message(libc::RTM_DELLINK, &[[0; 4], index.to_ne_bytes()].concat()));
        }
        assert!(most.some.len() == LINKS && most.has(7_777, v4));
    }
    #[test]
    fn an_mtu_is_another_one_once() {
        let mut mtus = Mtus::default();
        let mut note = |heard: Heard<'_>| {
            mtus.note(heard);
            (std::mem::take(&mut mtus.have_changed), mtus.known.len())
        };
        let link = |index: u32, mtu: u32| {
            let attributes =
                Attributes::default().with_text(libc::IFLA_IFNAME, "a").with_word(libc::IFLA_MTU, mtu);
            [&[0; INDEX_AT][..], &index.to_ne_bytes(), &[0; LINK - INDEX_AT - 4], &attributes.0].concat()
        };
        let told = [(2, 1_500), (3, 1_500), (2, 1_500), (2, 1_000), (3, 1_500), (2, 1_500)];
        let others = told.map(|(index, mtu)| note(Heard::Message(libc::RTM_NEWLINK, &link(index, mtu))).0);
        assert_eq!(others, [true, true, false, true, false, true]);
        for (kind, body) in [
            (libc::RTM_NEWADDR, &link(2, 1_000)[..]),
            (libc::RTM_DELLINK, &link(2, 1_000)),
            (libc::RTM_NEWLINK, &link(2, 1_000)[..LINK + 8]),
            (libc::RTM_NEWLINK, &[]),
        ] {
            assert_eq!(note(Heard::Message(kind, body)), (false, 2), "{kind}");
        }
        assert_eq!(note(Heard::TooMuch), (true, 0));
        for index in 0..3 * LINKS as u32 {
            let (is_other, known) = note(Heard::Message(libc::RTM_NEWLINK, &link(index, 1_500)));
            assert!(is_other && known <= LINKS);
        }
    }
}
