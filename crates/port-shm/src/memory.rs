//! Memory that this process writes and that others may read: a memfd under seals.
//!
//! A memfd is a file without a name in memory. Its size is only a promise: pages come by
//! [`Memory::commit`], so that a lane can reserve what it might ever need and take what it does need. The
//! seals are laid after the owner's own mapping is made and can never be taken off:
//!
//! | seal | without it |
//! |---|---|
//! | SHRINK | a peer could cut the file, and the next access of ours would end the process (SIGBUS) |
//! | GROW | a peer could have the kernel take any amount of memory for it |
//! | FUTURE_WRITE | a peer could map it writable, or write to it, or punch holes |
//! | SEAL | a peer could add a seal, and so stop what the owner still has to do |
//!
//! **Why commit asks first.** At the limit of a memory cgroup, and on a machine that is full, the kernel
//! does not refuse an allocation: it kills a process of the group, most likely this one. So the limits are
//! looked at before ([`crate::headroom`]), and the call itself comes after.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use taut_base::{Error, Result};
use taut_mem::Region;
use taut_mem::fail::{self, Point};

use crate::headroom::Headroom;
use crate::kernel_file;
use crate::mapping::Mapping;
use crate::refused::{not_locked, refused};

/// The seals that an owner lays and that a peer asks for ([`crate::map`] does not need SEAL).
const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// What one call commits at most. A signal makes the kernel give back all that the call had taken, so a
/// program with a fast timer never gets further than this between two of them: higher and a large slot is
/// never done, lower and it costs more calls. 2 MiB take well under a millisecond.
const CHUNK: usize = 2 * 1024 * 1024;
/// How often a chunk that a signal has interrupted is tried again. Lower and a burst of signals looks like
/// a full machine; higher and a storm of them holds up a write for longer.
const INTERRUPTIONS: usize = 100;
/// The kernel takes names of up to 249 bytes; they are for people who look at /proc/PID/maps.
const LONGEST_NAME: usize = 64;

/// Memory that this process alone writes. Clones share it; it is gone with the last one, the last region
/// and the last process that has mapped it. A region keeps the memory, but not the descriptor.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    fd: OwnedFd,
    mapping: Arc<Mapping>,
    headroom: Headroom,
}

impl Memory {
    /// Zeroed memory of `len` bytes, rounded up to whole pages, of which none is there yet: see
    /// [`Memory::commit`]. The name is for people only.
    ///
    /// *Errors*: no bytes; what the operating system refuses. *Cost*: some fifteen system calls.
    pub fn create(name: &str, len: usize) -> Result<Memory> {
        let name: String = format!("taut-{name}").chars().filter(|c| *c != '\0').take(LONGEST_NAME).collect();
        let len = len.checked_next_multiple_of(page_size()).filter(|len| *len > 0).ok_or_else(|| {
            Error::BadParameter(format!(
                "{name}: {len} bytes are no length of memory: choose one of its size"
            ))
        })?;
        let fd = sealable(&name).map_err(|errno| refused(format!("memfd_create {name}"), errno))?;
        check_file_limit(len)
            .and_then(|()| ftruncate(&fd, len as u64))
            .map_err(|errno| refused(format!("ftruncate {name} to {len} B"), errno))?;
        let mapping = Mapping::new(fd.as_fd(), len, true)
            .map_err(|errno| refused(format!("mmap {name}, {len} B"), errno))?;
        fcntl_add_seals(&fd, SEALS).map_err(|errno| refused(format!("seal {name}"), errno))?;
        let shared = Shared { name, fd, mapping: Arc::new(mapping), headroom: Headroom::of_this_process() };
        Ok(Memory { shared: Arc::new(shared) })
    }

    /// Takes the pages of a range from the machine, so that touching them never fails later. Again is
    /// harmless.
    ///
    /// *Errors*: `OUT_OF_RESOURCES` when the machine or the memory cgroup has no more, with the pages that
    /// did fit still taken; `BAD_PARAMETER` for a range outside. *Cost*: some 20 system calls, more for
    /// more than 2 MiB; the kernel clears the pages.
    pub fn commit(&self, at: usize, len: usize) -> Result<()> {
        let end = self.checked_end(at, len)?;
        self.check_headroom(len)?;
        self.take(at, end)
    }

    /// The same once it is known to be there.
    fn take(&self, at: usize, end: usize) -> Result<()> {
        let Shared { name, fd, .. } = &*self.shared;
        for start in (at..end).step_by(CHUNK) {
            allocate(fd.as_fd(), start, CHUNK.min(end.saturating_sub(start))).map_err(|errno| {
                refused(format!("fallocate {name}, {} B at {at}", end.saturating_sub(at)), errno)
            })?;
        }
        fail::point(Point::MemoryCommitted);
        Ok(())
    }

    /// Commits a range and enters its pages into the page table, so that the first write to each costs no
    /// page fault.
    ///
    /// *Errors*: as [`Memory::commit`]; Linux before 5.14 cannot enter them.
    pub fn prefault(&self, at: usize, len: usize) -> Result<()> {
        let end = self.checked_end(at, len)?;
        self.check_headroom(len)?;
        let start = at.checked_div(page_size()).unwrap_or_default().saturating_mul(page_size());
        // Before it is committed: advice counts for pages that come through the mapping only.
        let populated = self.shared.mapping.populate(start, end.saturating_sub(start));
        // What was populated is taken: to ask again would count it twice.
        self.take(at, end)?;
        populated.map_err(|errno| match errno {
            Errno::INVAL => Error::Unsupported("prefault: Linux 5.14 or later is needed".into()),
            _ => refused(format!("prefault {}", self.shared.name), errno),
        })
    }

    fn check_headroom(&self, len: usize) -> Result<()> {
        let Shared { name, headroom, .. } = &*self.shared;
        headroom.check(len as u64).map_err(|shortage| {
            Error::OutOfResources(format!("{name}: {len} B more cannot be had: {shortage}"))
        })
    }

    /// Asks for huge pages, which save misses of the TLB in large samples: for what is prefaulted after. Where
    /// the machine gives them to all, all of it has them.
    ///
    /// *Errors*: `UNSUPPORTED` where the machine gives none to shared memory, with what to set.
    pub fn advise_huge(&self) -> Result<()> {
        const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
        let state = kernel_file::text(SWITCH).unwrap_or_default();
        if !["[advise]", "[always]", "[within_size]", "[force]"].iter().any(|on| state.contains(on)) {
            let remedy = format!("`echo advise > {SWITCH}` as root allows it");
            return Err(Error::Unsupported(format!("shared memory gets no huge pages here: {remedy}")));
        }
        let advised = self.shared.mapping.advise_huge();
        advised.map_err(|errno| refused(format!("madvise {}", self.shared.name), errno))
    }

    /// Keeps its pages from being swapped out, from when they are first touched.
    ///
    /// *Errors*: `OUT_OF_RESOURCES` beyond the limit of locked memory, with how to raise it.
    pub fn lock(&self) -> Result<()> {
        self.shared.mapping.lock().map_err(|errno| {
            let call = format!("mlock {}, {} B", self.shared.name, self.len());
            not_locked(call, "the samples in it", errno)
        })
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.shared.mapping.len()
    }

    /// Has it no bytes? Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it, to write; several regions show the same memory.
    pub fn region(&self) -> Region {
        self.shared.mapping.region()
    }

    /// What to give to a peer, who can map it read-only.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }

    fn checked_end(&self, at: usize, len: usize) -> Result<usize> {
        at.checked_add(len).filter(|end| *end <= self.len()).ok_or_else(|| {
            let (name, all) = (&self.shared.name, self.len());
            Error::BadParameter(format!("{name}: {len} B at {at} are not inside of {all} B"))
        })
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({}, {} B)", self.shared.name, self.len())
    }
}

/// A memfd to be sealed, and never executed where the kernel knows how (Linux 6.3).
fn sealable(name: &str) -> std::result::Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    }
}

/// Beyond the limit of file sizes the kernel does not only refuse to lengthen a file: it ends the process (SIGXFSZ).
fn check_file_limit(len: usize) -> std::result::Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if len as u64 > limit => Err(Errno::FBIG),
        _ => Ok(()),
    }
}

fn allocate(fd: BorrowedFd<'_>, at: usize, len: usize) -> std::result::Result<(), Errno> {
    for _ in 0..INTERRUPTIONS {
        match fallocate(fd, FallocateFlags::empty(), at as u64, len as u64) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
    Err(Errno::INTR)
}
