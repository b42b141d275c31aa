//! What the kernel tells of changes without being asked.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use crate::message::messages;

/// Changes of interfaces.
pub const LINKS: i32 = libc::RTMGRP_LINK;
/// Changes of neighbours.
pub const NEIGHBOURS: i32 = libc::RTMGRP_NEIGH;
/// Changes of routes.
pub const ROUTES: i32 = libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;

/// Bytes of one read. The kernel sends messages of a few hundred bytes, some of them together.
const READ: usize = 8 << 10;
/// Reads in a row; what is left is reported by the next wait. Higher holds up what else there is to do while
/// something on the host changes without end.
const READS: usize = 16;

/// What was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard<'a> {
    /// A message of that kind, without its header.
    Message(u16, &'a [u8]),
    /// The kernel had more to say than the socket holds: what there is now has to be asked for. What the socket held is not
    /// told, as it is older than what the kernel answers then.
    TooMuch,
}

/// A socket that the kernel writes to when something changes.
pub struct Watch {
    socket: OwnedFd,
    /// The kernel had more to say, and what the socket holds is of before.
    is_behind: bool,
}

impl Watch {
    /// Hears of these groups of changes, `RTMGRP_*` of linux/rtnetlink.h.
    pub fn open(groups: i32) -> nix::Result<Watch> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups.cast_unsigned()))?;
        Ok(Watch { socket, is_behind: false })
    }

    /// Readable when there is something to hear.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what the kernel has said. *Cost*: one system call for each read, 17 at most.
    pub fn hear(&mut self, mut sink: impl FnMut(Heard<'_>)) {
        let mut buffer = [0; READ];
        for _ in 0..READS {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(_) if self.is_behind => {}
                Ok(len) => {
                    let heard = messages(buffer.get(..len).unwrap_or_default());
                    heard.for_each(|message| sink(Heard::Message(message.kind, message.body)));
                }
                Err(Errno::ENOBUFS) => self.is_behind = true,
                Err(_) => return self.catch_up(sink),
            }
        }
        // Nobody is woken for an end that the last read has just come to.
        let ended = |end| end != Errno::ENOBUFS;
        if self.is_behind && recv(self.socket.as_raw_fd(), &mut [], MsgFlags::MSG_PEEK).is_err_and(ended) {
            self.catch_up(sink);
        }
    }

    /// Nothing of before is left that could be taken for news.
    fn catch_up(&mut self, mut sink: impl FnMut(Heard<'_>)) {
        if std::mem::take(&mut self.is_behind) {
            sink(Heard::TooMuch);
        }
    }
}
