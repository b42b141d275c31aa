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

/// Where one received datagram came from and how long it is.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) source: SocketAddrV4,
    pub(crate) len: usize,
}

impl Head {
    pub(crate) const NONE: Head = Head { source: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), len: 0 };
}

/// Receives up to `slots.len()`, at most [`BURST`], datagrams without waiting: the first into the
/// last slot, and so on backwards. Fills as many of `heads`, in order of arrival.
///
/// *Cost*: one syscall, no allocation.
pub(crate) fn receive_burst(
    fd: BorrowedFd<'_>,
    slots: &mut [Slot],
    heads: &mut [Head; BURST],
) -> io::Result<usize> {
    const NAME_LEN: libc::socklen_t = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: sockaddr_in, iovec and mmsghdr are plain C structs for which all zeros is a value.
    let (mut names, mut parts, mut messages) = unsafe {
        (
            mem::zeroed::<[libc::sockaddr_in; BURST]>(),
            mem::zeroed::<[libc::iovec; BURST]>(),
            mem::zeroed::<[libc::mmsghdr; BURST]>(),
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
    // SAFETY: the first `count` messages name one iovec and one sockaddr_in each, both in arrays
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
    for ((head, message), name) in heads.iter_mut().zip(&messages).zip(&names).take(taken) {
        let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
        let source = SocketAddrV4::new(address, u16::from_be(name.sin_port));
        *head = Head { source, len: message.msg_len as usize };
    }
    Ok(taken)
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
