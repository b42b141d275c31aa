//! A burst received with one call.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use taut_mem::Slot;

use super::Name;
use crate::receive::SLOT;

/// The most datagrams one call receives. Higher costs buffers that wait in readiness (64 KiB of
/// address space each), lower more calls in a burst; beyond 16 the call itself no longer counts.
pub(crate) const BURST: usize = 16;

/// Where what one buffer received came from and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) source: SocketAddr,
    pub(crate) len: usize,
    /// The length of each of the datagrams in it, of which the last may be shorter.
    pub(crate) each: usize,
}

impl Head {
    /// One datagram.
    pub(crate) fn one(source: SocketAddr, len: usize) -> Head {
        Head { source, len, each: len }
    }
}

/// What may be written to: all of a buffer, that has room for any datagram. Nothing of it is cleared before, which would take
/// time and memory that no datagram needs.
fn room(slot: &mut Slot) -> &mut [MaybeUninit<u8>] {
    slot.clear();
    slot.reserve(SLOT);
    slot.spare_capacity_mut()
}

/// Receives one datagram without waiting.
///
/// *Cost*: one syscall; an allocation for a buffer that has no room yet.
#[inline]
pub(crate) fn receive_one(fd: BorrowedFd<'_>, slot: &mut Slot) -> io::Result<Head> {
    let (mut name, mut name_len) = (Name::NONE, mem::size_of::<Name>() as libc::socklen_t);
    let room = room(slot);
    // SAFETY: the kernel writes to the room and to the name, at most as many bytes as it is told that each has, all of
    // them borrowed until the call is over, and to `name_len` how long the name is.
    let received = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            room.as_mut_ptr().cast(),
            room.len(),
            libc::MSG_DONTWAIT,
            (&raw mut name).cast(),
            &mut name_len,
        )
    };
    let len = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: so many bytes, of those that there is room for, the kernel has written.
    unsafe { slot.set_len(len) };
    Ok(Head::one(name.socket_addr(), len))
}

/// Room for what the kernel says of datagrams that it has joined.
#[repr(C)]
#[derive(Clone, Copy)]
struct Joined {
    head: libc::cmsghdr,
    each: libc::c_int,
}

impl Joined {
    /// The length of each datagram, if it has said so: it has written `written` bytes.
    fn each(&self, written: usize) -> Option<usize> {
        let said = written >= mem::offset_of!(Joined, each) + mem::size_of::<libc::c_int>()
            && (self.head.cmsg_level, self.head.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        usize::try_from(self.each).ok().filter(|each| said && *each > 0)
    }
}

/// What the kernel is told and tells of each buffer of a burst. Whole only as far as it is used: clearing all of it
/// would be two kilobytes for each call.
///
/// Invariant: the first `asked` of each array are initialised, of `joined` only if `joins`; `taken <= asked`.
pub(crate) struct Burst {
    names: [MaybeUninit<Name>; BURST],
    parts: [MaybeUninit<libc::iovec>; BURST],
    joined: [MaybeUninit<Joined>; BURST],
    messages: [MaybeUninit<libc::mmsghdr>; BURST],
    asked: usize,
    taken: usize,
    joins: bool,
}

impl Burst {
    pub(crate) fn new() -> Burst {
        Burst {
            names: [const { MaybeUninit::uninit() }; BURST],
            parts: [const { MaybeUninit::uninit() }; BURST],
            joined: [const { MaybeUninit::uninit() }; BURST],
            messages: [const { MaybeUninit::uninit() }; BURST],
            asked: 0,
            taken: 0,
            joins: false,
        }
    }

    /// Receives up to `slots.len()`, at most [`BURST`], datagrams without waiting: the first into the
    /// last slot, and so on backwards. Returns how many; [`Burst::heads`] has them in order of arrival. `joins`:
    /// the socket may join equal datagrams of one source (UDP_GRO).
    ///
    /// *Cost*: one syscall, no allocation.
    pub(crate) fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        slots: &mut [Slot],
        joins: bool,
    ) -> io::Result<usize> {
        (self.asked, self.taken, self.joins) = (0, 0, joins);
        let Burst { names, parts, joined, messages, asked, .. } = self;
        let rooms = names.iter_mut().zip(parts).zip(joined).zip(messages.iter_mut());
        for ((((name, part), joined), message), slot) in rooms.zip(slots.iter_mut().rev()) {
            let room = room(slot);
            let part = part.write(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() });
            // SAFETY: a plain C struct for which all zeros is a value.
            let message = message.write(unsafe { mem::zeroed::<libc::mmsghdr>() });
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = (name.write(Name::NONE) as *mut Name).cast();
            message.msg_hdr.msg_namelen = mem::size_of::<Name>() as libc::socklen_t;
            if joins {
                // SAFETY: as above.
                let joined = joined.write(unsafe { mem::zeroed::<Joined>() });
                message.msg_hdr.msg_control = (joined as *mut Joined).cast();
                message.msg_hdr.msg_controllen = mem::size_of::<Joined>();
            }
            *asked += 1;
        }
        // SAFETY: the first `asked` messages are initialised; each names one iovec, one Name and perhaps one Joined, in
        // arrays that are borrowed until the call is over; each iovec spans the room of its own slot, which is borrowed
        // exclusively for as long. The kernel writes nowhere else.
        let taken = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                *asked as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        self.taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?.min(self.asked);
        for (message, slot) in self.messages[..self.taken].iter().zip(slots.iter_mut().rev()) {
            // SAFETY: the message is initialised, and so many bytes, of those that its slot has room for, the kernel has written.
            unsafe { slot.set_len(message.assume_init_ref().msg_len as usize) };
        }
        Ok(self.taken)
    }

    /// What the last call has received.
    pub(crate) fn heads(&self) -> impl ExactSizeIterator<Item = Head> + DoubleEndedIterator + '_ {
        (0..self.taken).map(|at| {
            // SAFETY: `at < taken <= asked`, and so far they are initialised.
            let (message, name) =
                unsafe { (self.messages[at].assume_init_ref(), self.names[at].assume_init_ref()) };
            let len = message.msg_len as usize;
            let each = self.joins.then(|| {
                // SAFETY: as above, and it joins.
                let joined = unsafe { self.joined[at].assume_init_ref() };
                joined.each(message.msg_hdr.msg_controllen)
            });
            Head { source: name.socket_addr(), len, each: each.flatten().unwrap_or(len) }
        })
    }
}
