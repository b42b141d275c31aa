//! A range of addresses that shows a descriptor: a memfd, or a ring of a socket.
//!
//! Mapped once, unmapped on drop. What lies in it and who may touch it is said by its owners.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes that processors fetch at once.
const LINE: usize = 64;

/// Invariant: from `base`, the start of a page, `len` bytes are mapped shared, readable and writable until
/// drop.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the type's invariant; it is an address, whose users say what may be done with it across threads.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Shows `len` bytes from a place of the descriptor on, with all of their pages there.
    pub fn new(fd: BorrowedFd<'_>, len: usize, place: u64) -> Result<Mapping, Errno> {
        Mapping::with(fd, len, place, MapFlags::POPULATE)
    }

    /// Shows all of an empty memfd, in large pages where the kernel gives those to who asks
    /// (`/sys/kernel/mm/transparent_hugepage/shmem_enabled`). The pages come with the first access, the kernel's or ours.
    pub fn in_large_pages(fd: BorrowedFd<'_>, len: usize) -> Result<Mapping, Errno> {
        let mapping = Mapping::with(fd, len, 0, MapFlags::empty())?;
        // SAFETY: the range is the mapping, and what lies in it stays. Small pages do, too.
        let _ = unsafe { madvise(mapping.base.as_ptr().cast(), len, Advice::LinuxHugepage) };
        Ok(mapping)
    }

    fn with(fd: BorrowedFd<'_>, len: usize, place: u64, flags: MapFlags) -> Result<Mapping, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses addresses that nothing else has.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, flags | MapFlags::SHARED, fd, place) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::FAULT)?;
        Ok(Mapping { base, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Has the processor fetch memory that another one has written, without waiting for it: `len` bytes from a place on.
    /// *Cost*: one instruction for each line of 64 bytes.
    #[inline]
    pub fn prefetch(&self, place: usize, len: usize) {
        for line in (place..place + len).step_by(LINE) {
            let address = self.base.as_ptr().wrapping_add(line);
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a hint, which reads nothing that the program sees, at any address.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(address.cast())
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = address;
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the type's invariant: mapped once, by us, and its owner has gone. It cannot fail for a range
        // that is mapped.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
