//! What the kernel knows about the other end of a socket, by the calls that no library offers soundly, and what
//! may be sent from there.
//!
//! `SO_PEERCRED` is here because a peer whose process id this namespace cannot name has the id 0, which
//! the type that `rustix` gives it cannot hold; `SO_PEERPIDFD` and `SO_PEERGROUPS` because nobody has them.
//! All of them answer in words of 32 bits.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// asm-generic/socket.h.
const SO_PASSRIGHTS: i32 = 83;

/// Supplementary groups of a peer that are looked at. A process may have 65,536; one with more than this
/// is known by its primary group alone.
const GROUPS: usize = 256;

/// Process id (0: not to be named here), effective user and effective group: the members of `ucred`.
pub(crate) fn credentials(socket: BorrowedFd<'_>) -> Result<(u32, u32, u32), Errno> {
    let mut found = [0; 3];
    match get(socket, libc::SO_PEERCRED, &mut found)? {
        3 => Ok((found[0], found[1], found[2])),
        _ => Err(Errno::INVAL),
    }
}

/// The peer's supplementary groups; none if they are too many.
pub(crate) fn groups(socket: BorrowedFd<'_>) -> Vec<u32> {
    let mut found = [0; GROUPS];
    let count = get(socket, libc::SO_PEERGROUPS, &mut found).unwrap_or_default();
    found.iter().take(count).copied().collect()
}

/// A descriptor of the process that connected or listened, which cannot be that of a later process with
/// the same id. Linux 6.5.
pub(crate) fn pidfd(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut found = [0; 1];
    let count = get(socket, libc::SO_PEERPIDFD, &mut found).ok()?;
    let fd = i32::try_from(found[0]).ok().filter(|_| count == 1)?;
    // SAFETY: the kernel has just opened it for us, close-on-exec, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether descriptors may be sent to this end of a connection; who is accepted has what its listener has.
///
/// *Errors*: Linux before 6.16 has no such choice: they may.
pub(crate) fn pass_rights(socket: BorrowedFd<'_>, may: bool) -> Result<(), Errno> {
    let value = i32::from(may);
    let len = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel reads the bytes of `value`, whose size is given.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const value).cast(), len)
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// One option of the socket level; returns how many words the kernel wrote.
fn get<const N: usize>(socket: BorrowedFd<'_>, option: i32, out: &mut [u32; N]) -> Result<usize, Errno> {
    const WORD: usize = size_of::<u32>();
    let mut len = libc::socklen_t::try_from(size_of_val(out)).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of `out`, and the length it wrote
    // to `len`; any bytes are valid words.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, out.as_mut_ptr().cast(), &mut len)
    };
    match result {
        0 => Ok(len as usize / WORD),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
