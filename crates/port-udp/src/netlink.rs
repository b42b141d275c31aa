//! Hears from the kernel that interfaces or their addresses have changed.
//!
//! It says *that* something has changed; what there is now [`crate::interface`] finds out. Of the messages only
//! kind and interface are read: an interface that has lost an address may have lost its memberships of groups
//! with it, and whether it has got the address back at once cannot be seen afterwards. rtnetlink(7).

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// What is listened for: interfaces, and their addresses.
const GROUPS: i32 = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
/// Bytes of one read. The kernel sends messages of a few hundred bytes, some of them together.
const READ: usize = 8 << 10;
/// Reads in a row; what is left is reported by the next wait. Higher holds up what else there is to do while
/// something on the host changes without end.
const READS: usize = 16;
/// nlmsghdr: length and kind of a message. Behind it is what begins with the kind of address.
const HEADER: usize = 16;
/// Where the number of the interface is, with ifinfomsg as with ifaddrmsg.
const INDEX_AT: usize = HEADER + 4;

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

    /// Notes the messages of one read.
    fn note(&mut self, mut messages: &[u8]) {
        while let (Some(len), Some(kind)) = (word(messages, 0), half(messages, 4)) {
            let Some(message) = messages.get(..len as usize).filter(|message| message.len() >= HEADER) else {
                return;
            };
            if matches!(kind, libc::RTM_DELADDR | libc::RTM_DELLINK)
                && let (Some(family), Some(index)) = (message.get(HEADER), word(message, INDEX_AT))
                && !self.some.contains(&(index, i32::from(*family)))
            {
                self.some.push((index, i32::from(*family)));
            }
            messages = messages.get(message.len().next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// A socket that the kernel writes to when interfaces change.
pub(crate) struct Watch {
    socket: OwnedFd,
    lost: Lost,
}

impl Watch {
    pub(crate) fn open() -> nix::Result<Watch> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS.cast_unsigned()))?;
        Ok(Watch { socket, lost: Lost::default() })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what the kernel has said.
    pub(crate) fn hear(&mut self) {
        let mut buffer = [0; READ];
        for _ in 0..READS {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(len) => self.lost.note(buffer.get(..len).unwrap_or_default()),
                Err(Errno::ENOBUFS) => self.lost.all = true,
                Err(_) => return,
            }
        }
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

    fn message(len: u32, kind: u16, index: u32, padding: usize) -> Vec<u8> {
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.resize(INDEX_AT, libc::AF_INET as u8);
        bytes.extend(index.to_ne_bytes());
        bytes.resize(INDEX_AT + 4 + padding, 0);
        bytes
    }

    #[test]
    fn what_is_lost_is_noted_once() {
        let mut lost = Lost::default();
        let told = [
            message(24, libc::RTM_NEWADDR, 2, 0),
            message(27, libc::RTM_DELADDR, 3, 4),
            message(24, libc::RTM_DELLINK, 4, 0),
            message(24, libc::RTM_DELADDR, 3, 0),
        ];
        lost.note(&told.concat());
        assert_eq!(lost.some.len(), 2);
        let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        assert!(lost.has(4, v4) && lost.has(3, v4) && !lost.has(2, v4) && !lost.has(3, v6));
        lost.all = true;
        assert!(lost.has(2, v4) && lost.has(3, v6));
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let whole = message(24, libc::RTM_DELADDR, 3, 0);
        for len in 0..whole.len() {
            let mut lost = Lost::default();
            lost.note(&whole[..len]);
            assert_eq!(lost, Lost::default(), "{len} bytes");
        }
        for said in [0, 1, 15, 16, 25, u32::MAX] {
            let mut lost = Lost::default();
            lost.note(&message(said, libc::RTM_DELADDR, 3, 0));
            assert_eq!(lost, Lost::default(), "a length of {said}");
        }
    }
}
