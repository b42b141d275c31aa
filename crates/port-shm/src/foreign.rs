//! Memory of another process, to read: nothing about its descriptor is believed.
//!
//! The order of the checks matters. Asking for seals reaches no file system, so it comes first: a file of
//! a FUSE mount could hold up any call that does. What is sealed and lies in a tmpfs has no other owner
//! than the kernel; a huge page that was never taken could end this process when it is touched (SIGBUS),
//! so memory of hugetlbfs is refused.
//!
//! What remains: a page that the owner has not committed is taken when it is read, and counts as ours. A
//! hostile peer can so cost `max_len`, and no more; and all of them together [`MOST`] mappings.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat, fstatfs};
use rustix::io::Errno;
use rustix::param::page_size;
use taut_mem::Region;

use crate::mapping::Mapping;

/// Without these its owner, or anybody it has given it to, could end this process or write along.
const NEEDED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE);
/// *Source*: TMPFS_MAGIC of linux/magic.h; a memfd lies in a tmpfs that the kernel mounts for itself.
const TMPFS: u64 = 0x0102_1994;
/// Mappings of others' memory in this process: a quarter of the 65,530 that it has (vm.max_map_count). Lower and who has
/// many neighbours shares less with them, higher and they leave too few for its threads and its allocator.
const MOST: usize = 16_384;

/// Why a peer's memory is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is a pipe, a directory, a socket, a file of a disk.
    NotMemory,
    /// Its owner could still shrink, grow or share it writable.
    Unsealed,
    /// It is sealed, but not the kernel's own tmpfs: huge pages of hugetlbfs.
    ForeignFileSystem,
    /// It is not a regular file.
    NotRegular,
    /// It has no bytes.
    Empty,
    /// It is longer than agreed.
    TooLong {
        /// Its length.
        len: u64,
    },
    /// It ends inside of a page.
    TornPage {
        /// Its length.
        len: u64,
    },
    /// This process has mapped as much memory of others as it does.
    TooMany,
    /// The kernel does not map it: too many mappings, or no addresses left.
    NotMapped {
        /// The error number.
        errno: i32,
    },
}

/// Maps a peer's memory read-only and closes the descriptor. At most so many bytes, and what fills the last page of them.
///
/// *Errors*: the first reason that was found not to.
///
/// *Cost*: four system calls; a page fault for each page that is touched first.
pub fn map(fd: OwnedFd, max_len: u64) -> Result<Region, Refusal> {
    let seals = fcntl_get_seals(&fd).map_err(|_| Refusal::NotMemory)?;
    if !seals.contains(NEEDED) {
        return Err(Refusal::Unsealed);
    }
    let file_system = fstatfs(&fd).map_err(|_| Refusal::ForeignFileSystem)?;
    if file_system.f_type as u64 != TMPFS {
        return Err(Refusal::ForeignFileSystem);
    }
    let stat = fstat(&fd).map_err(|_| Refusal::NotRegular)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotRegular);
    }
    let len = checked_len(stat.st_size as u64, max_len, page_size())?;
    if Mapping::others() >= MOST {
        return Err(Refusal::TooMany);
    }
    let mapping = Mapping::new(fd.as_fd(), len, false).map_err(not_mapped)?;
    Ok(Arc::new(mapping).region())
}

fn checked_len(len: u64, max_len: u64, page: usize) -> Result<usize, Refusal> {
    match usize::try_from(len) {
        Ok(0) => Err(Refusal::Empty),
        Ok(bytes) if len <= max_len.checked_next_multiple_of(page as u64).unwrap_or(max_len) => {
            match bytes.is_multiple_of(page) {
                true => Ok(bytes),
                false => Err(Refusal::TornPage { len }),
            }
        }
        _ => Err(Refusal::TooLong { len }),
    }
}

fn not_mapped(errno: Errno) -> Refusal {
    Refusal::NotMapped { errno: errno.raw_os_error() }
}

impl Refusal {
    /// Is it this process that lacks something, while the peer has kept to the rules?
    pub fn is_own_want(&self) -> bool {
        matches!(self, Refusal::TooMany | Refusal::NotMapped { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotMemory => f.write_str("the descriptor is no memory that can be sealed"),
            Refusal::Unsealed => {
                f.write_str("the memory is not sealed: its owner could cut it while it is read")
            }
            Refusal::ForeignFileSystem => f.write_str("the memory is of a file system other than tmpfs"),
            Refusal::NotRegular => f.write_str("the descriptor is no regular file"),
            Refusal::Empty => f.write_str("the memory has no bytes"),
            Refusal::TooLong { len } => write!(f, "the memory has {len} B, more than was agreed"),
            Refusal::TornPage { len } => write!(f, "the memory has {len} B, which are no whole pages"),
            Refusal::TooMany => {
                write!(f, "this process has mapped memory of others {MOST} times, and does not more often")
            }
            Refusal::NotMapped { errno } => {
                write!(f, "the memory cannot be mapped: {}", Errno::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is agreed to have 4 KiB has a page of the machine that made it.
    #[test]
    fn memory_has_whole_pages_of_the_machine() {
        for (page, len) in [(4_096, 4_096), (16_384, 16_384), (65_536, 65_536)] {
            let checked = |len| checked_len(len as u64, 4_096, page);
            assert_eq!(checked(len), Ok(len));
            assert_eq!(checked(len + page), Err(Refusal::TooLong { len: (len + page) as u64 }));
            assert_eq!(checked(len - 1), Err(Refusal::TornPage { len: len as u64 - 1 }));
        }
    }
}
