//! A range of addresses that shows a file.
//!
//! Mapped once, unmapped when the last region of it is gone.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock_with, mmap, munmap};
use taut_mem::Region;

/// How many there are that cannot be written: of others' memory.
static OTHERS: AtomicUsize = AtomicUsize::new(0);

/// Invariant: from `base`, the start of a page, `len` bytes are mapped shared until drop, writable if
/// `writable`; they lie inside of a file that nobody can make shorter, which its seals see to. Only
/// [`Region`]s access them.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the type's invariant; regions access the bytes by rules that hold across threads.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Shows the first `len` bytes of a file. The caller sees to the seals before it hands out a region.
    pub fn new(fd: BorrowedFd<'_>, len: usize, writable: bool) -> Result<Mapping, Errno> {
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: the kernel chooses addresses that nothing else has.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::FAULT)?;
        OTHERS.fetch_add(usize::from(!writable), Ordering::Relaxed);
        Ok(Mapping { base, len, writable })
    }

    /// How many there are of others' memory.
    pub fn others() -> usize {
        OTHERS.load(Ordering::Relaxed)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// A region that keeps the mapping.
    pub fn region(self: &Arc<Mapping>) -> Region {
        // SAFETY: the type's invariant, for as long as the Arc lives that the region keeps.
        unsafe { Region::mapped(self.base, self.len, self.writable, Box::new(Arc::clone(self))) }
    }

    /// Asks for huge pages.
    pub fn advise_huge(&self) -> Result<(), Errno> {
        // SAFETY: the type's invariant; the advice changes how the bytes are stored, not what they are.
        unsafe { madvise(self.start(0), self.len, Advice::LinuxHugepage) }
    }

    /// Enters committed pages into the page table. The caller has checked that the range is inside.
    pub fn populate(&self, at: usize, len: usize) -> Result<(), Errno> {
        // SAFETY: the type's invariant; populating writes nothing that can be read.
        unsafe { madvise(self.start(at), len, Advice::LinuxPopulateWrite) }
    }

    /// Keeps pages in memory from when they are first there.
    pub fn lock(&self) -> Result<(), Errno> {
        // SAFETY: the type's invariant; locking changes no byte.
        unsafe { mlock_with(self.start(0), self.len, MlockFlags::ONFAULT) }
    }

    fn start(&self, at: usize) -> *mut c_void {
        self.base.as_ptr().wrapping_add(at).cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the type's invariant: mapped once, by us, and nobody looks any more. It cannot fail for
        // a range that is mapped.
        let _ = unsafe { munmap(self.start(0), self.len) };
        OTHERS.fetch_sub(usize::from(!self.writable), Ordering::Relaxed);
    }
}
