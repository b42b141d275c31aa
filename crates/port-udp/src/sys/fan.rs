//! One datagram or row to many addresses with one call.

use std::io::{self, IoSlice};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Name, SegmentSize};

/// The most addresses one call sends to. Higher takes more stack (92 bytes each), lower more calls where there
/// are many readers.
pub(crate) const FAN: usize = 32;

/// Sends what `parts` hold to each of `to`, at most [`FAN`], in order: a datagram, or the row that `segment` says.
/// Returns to how many: it stops at the first that fails and does not say why, unless that is the first of all.
///
/// *Cost*: one syscall, no allocation.
pub(crate) fn send_to_many(
    fd: BorrowedFd<'_>,
    to: &[Name],
    parts: &[IoSlice<'_>],
    segment: Option<&SegmentSize>,
) -> io::Result<usize> {
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; FAN];
    let mut count = 0;
    for (message, name) in messages.iter_mut().zip(to) {
        // SAFETY: a plain C struct for which all zeros is a value.
        let message = &mut message.write(unsafe { mem::zeroed::<libc::mmsghdr>() }).msg_hdr;
        message.msg_name = (&raw const *name).cast_mut().cast();
        message.msg_namelen = name.len();
        // An IoSlice is an iovec: the library promises the same layout.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len();
        if let Some(segment) = segment {
            message.msg_control = segment.control.as_ptr().cast_mut().cast();
            message.msg_controllen = segment.control.len();
        }
        count += 1;
    }
    // SAFETY: the first `count` messages are initialised. What they name, the address, the parts and their bytes, the
    // control message, is borrowed until the call is over, and the kernel only reads it: it writes nothing but the
    // lengths in `messages`.
    let sent =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr().cast(), count, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
