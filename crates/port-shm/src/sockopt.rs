//! What the kernel knows about the other end of a socket, by the calls that no library offers soundly.
//!
//! `SO_PEERCRED` is here because a peer whose process id this namespace cannot name has the id 0, which
//! the type that `rustix` gives it cannot hold; `SO_PEERPIDFD` and `SO_PEERGROUPS` because nobody has them.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// Supplementary groups of a peer that are looked at. A process may have 65,536; one with more than this
/// is known by its primary group alone.
const GROUPS: usize = 256;

/// Process id (0: not to be named here), effective user and effective group.
pub(crate) fn credentials(socket: BorrowedFd<'_>) -> Result<(i32, u32, u32), Errno> {
    let none = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut found = [none];
    match get(socket, libc::SO_PEERCRED, &mut found)? {
        len if len == size_of::<libc::ucred>() => Ok((found[0].pid, found[0].uid, found[0].gid)),
        _ => Err(Errno::INVAL),
    }
}

/// The peer's supplementary groups; none if they are too many.
pub(crate) fn groups(socket: BorrowedFd<'_>) -> Vec<u32> {
    let mut found = [0_u32; GROUPS];
    let len = get(socket, libc::SO_PEERGROUPS, &mut found).unwrap_or_default();
    found.iter().take(len.checked_div(size_of::<u32>()).unwrap_or_default()).copied().collect()
}

/// A descriptor of the process that connected or listened, which cannot be that of a later process with
/// the same id. Linux 6.5.
pub(crate) fn pidfd(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut found: [RawFd; 1] = [-1];
    let len = get(socket, libc::SO_PEERPIDFD, &mut found).ok()?;
    let fd = found.first().copied().filter(|fd| len == size_of::<RawFd>() && *fd >= 0)?;
    // SAFETY: the kernel has just opened it for us, close-on-exec, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Plain data that any bytes are a value of.
trait Plain: Copy {}
impl Plain for libc::ucred {}
impl Plain for u32 {}
impl Plain for RawFd {}

/// One option of the socket level; returns the bytes that the kernel wrote.
fn get<T: Plain, const N: usize>(
    socket: BorrowedFd<'_>,
    option: i32,
    out: &mut [T; N],
) -> Result<usize, Errno> {
    let mut len = libc::socklen_t::try_from(size_of::<[T; N]>()).map_err(|_| Errno::INVAL)?;
    let mut written = MaybeUninit::new(*out);
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `written`, and the length it
    // wrote to `len`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, written.as_mut_ptr().cast(), &mut len)
    };
    if result != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    // SAFETY: it was initialised, and any bytes are a value of a plain type.
    *out = unsafe { written.assume_init() };
    Ok(len as usize)
}
