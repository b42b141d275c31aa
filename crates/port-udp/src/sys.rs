//! The two calls that no library offers in the shape needed here: a burst received into buffers of
//! ours, and the kernel's count of datagrams it dropped. All unsafe lines of the crate are here.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

use taut_mem::Slot;

/// The most datagrams one call receives. Higher costs buffers that wait in readiness (64 KiB of
/// address space each), lower more calls in a burst; beyond 16 the call itself no longer counts.
pub(crate) const BURST: usize = 16;

/// Where what one buffer received came from and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) source: SocketAddrV4,
    pub(crate) len: usize,
    /// The length of each of the datagrams in it, of which the last may be shorter.
    pub(crate) each: usize,
}

impl Head {
    pub(crate) const NONE: Head =
        Head { source: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), len: 0, each: 0 };

    /// One datagram.
    pub(crate) fn one(source: SocketAddrV4, len: usize) -> Head {
        Head { source, len, each: len }
    }
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

/// Receives up to `slots.len()`, at most [`BURST`], datagrams without waiting: the first into the
/// last slot, and so on backwards. Fills as many of `heads`, in order of arrival. `joins`: the socket may
/// join equal datagrams of one source (UDP_GRO).
///
/// *Cost*: one syscall, no allocation.
pub(crate) fn receive_burst(
    fd: BorrowedFd<'_>,
    slots: &mut [Slot],
    heads: &mut [Head; BURST],
    joins: bool,
) -> io::Result<usize> {
    const NAME_LEN: libc::socklen_t = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: all four are plain C structs for which all zeros is a value.
    let (mut names, mut parts, mut messages, mut joined) = unsafe {
        (
            mem::zeroed::<[libc::sockaddr_in; BURST]>(),
            mem::zeroed::<[libc::iovec; BURST]>(),
            mem::zeroed::<[libc::mmsghdr; BURST]>(),
            mem::zeroed::<[Joined; BURST]>(),
        )
    };
    let count = slots.len().min(BURST);
    let buffers = slots.iter_mut().rev();
    for (((message, part), name), slot) in messages.iter_mut().zip(&mut parts).zip(&mut names).zip(buffers) {
        let buffer: &mut [u8] = slot.as_mut_slice();
        *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_name = (name as *mut libc::sockaddr_in).cast();
        message.msg_hdr.msg_namelen = NAME_LEN;
    }
    if joins {
        for (message, joined) in messages.iter_mut().zip(&mut joined) {
            message.msg_hdr.msg_control = (joined as *mut Joined).cast();
            message.msg_hdr.msg_controllen = mem::size_of::<Joined>();
        }
    }
    // SAFETY: the first `count` messages name one iovec, one sockaddr_in and perhaps one Joined each, in arrays
    // that live until the end of this function; each iovec spans the initialised bytes of its own
    // slot, which is borrowed exclusively for as long. The kernel writes nowhere else.
    let taken = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    let answers = messages.iter().zip(&names).zip(&joined);
    for (head, ((message, name), joined)) in heads.iter_mut().zip(answers).take(taken) {
        let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
        let source = SocketAddrV4::new(address, u16::from_be(name.sin_port));
        let len = message.msg_len as usize;
        let each = joined.each(message.msg_hdr.msg_controllen * usize::from(joins)).unwrap_or(len);
        *head = Head { source, len, each };
    }
    Ok(taken)
}

/// How long the datagrams of a row are, as the kernel wants to be told: one control message.
pub(crate) struct SegmentSize {
    bytes: u16,
    control: [u8; SegmentSize::SPACE],
}

impl SegmentSize {
    // SAFETY: both compute a size from their argument alone.
    const SPACE: usize = unsafe { libc::CMSG_SPACE(2) } as usize;
    // SAFETY: as above.
    const LEN: usize = unsafe { libc::CMSG_LEN(2) } as usize;

    /// `None` for a size that cannot be.
    pub(crate) fn new(bytes: usize) -> Option<SegmentSize> {
        let bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        let mut control = [0; Self::SPACE];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            control[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        // struct cmsghdr: length, level, type; behind it the value.
        put(&Self::LEN.to_ne_bytes());
        put(&libc::SOL_UDP.to_ne_bytes());
        put(&libc::UDP_SEGMENT.to_ne_bytes());
        put(&bytes.to_ne_bytes());
        Some(SegmentSize { bytes, control })
    }

    pub(crate) fn bytes(&self) -> usize {
        usize::from(self.bytes)
    }

    pub(crate) fn control(&self) -> &[u8] {
        &self.control
    }
}

/// Datagrams that the kernel dropped for this socket since it was opened.
pub(crate) fn kernel_drops(fd: BorrowedFd<'_>) -> u32 {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut words = [0u32; DROPS + 1];
    let mut len = mem::size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `words`, and the length
    // it wrote to `len`; any bytes are valid words.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &mut len,
        )
    };
    // Kernels before 4.12 do not know the option: none are reported then.
    if result == 0 { words[DROPS] } else { 0 }
}
