//! Memory that two threads or two processes share: a memfd, which has no name and goes with the last who
//! holds it, however they end.
//!
//! The only place of this adapter that touches such memory. Nobody ever holds a Rust reference to its
//! bytes except to atomics; all else is copied in and out.

pub mod handover;
pub mod lent;
pub mod link;
pub mod ring;

use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping. Invariant: `at` is the beginning of `len` bytes, aligned to a page, readable and writable
/// until it is dropped.
pub struct Region {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is unmapped once, in `drop`.
unsafe impl Send for Region {}
// SAFETY: all access is by atomics, or by copies whose order the ring's atomics decide (see `copy_in`).
unsafe impl Sync for Region {}

impl Region {
    /// New memory of zeros.
    pub fn create(len: usize) -> std::io::Result<(Region, OwnedFd)> {
        let fd = memfd_create("taut-perf-floor", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, len as u64)?;
        Ok((Region::map(&fd, len, 0)?, fd))
    }

    /// The memory that somebody else made.
    pub fn open(fd: &OwnedFd) -> std::io::Result<Region> {
        Region::map(fd, fstat(fd)?.st_size as usize, 0)
    }

    /// A part of what a descriptor offers.
    pub fn map(fd: &OwnedFd, len: usize, offset: u64) -> std::io::Result<Region> {
        // All pages at once: else the first lap around a ring would pay for faults.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no existing memory.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, flags, fd.as_fd(), offset)? };
        let at = NonNull::new(at.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Region { at, len })
    }

    /// Where it begins, for a kernel that is told of it.
    pub fn address(&self) -> u64 {
        self.at.as_ptr() as u64
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of `len` bytes at this place, a multiple of `align`.
    fn place(&self, at: usize, len: usize, align: usize) -> NonNull<u8> {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside && at.is_multiple_of(align), "{len} bytes at {at} of {}", self.len);
        // SAFETY: `at` is within the mapping, as was just looked.
        unsafe { self.at.add(at) }
    }

    /// A word of 64 bits.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        let place = self.place(at, 8, 8);
        // SAFETY: aligned and within the mapping, which lives as long as `self`; all bits are valid.
        unsafe { AtomicU64::from_ptr(place.as_ptr().cast()) }
    }

    /// A word of 32 bits, of the size that a futex has.
    pub fn half(&self, at: usize) -> &AtomicU32 {
        let place = self.place(at, 4, 4);
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(place.as_ptr().cast()) }
    }

    /// Copies into the memory. Who calls it owns these bytes by the ring's order: a slot belongs to the
    /// writer until its turn is stored, and again when all readers have taken it.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) {
        let place = self.place(at, bytes.len(), 1);
        // SAFETY: both ends are valid for the length; a slice of this process cannot overlap the mapping,
        // of which there are no slices.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.as_ptr(), bytes.len()) }
    }

    /// Copies out of the memory, from bytes that belong to the caller as for `copy_in`.
    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) {
        let place = self.place(at, bytes.len(), 1);
        // SAFETY: as for `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(place.as_ptr(), bytes.as_mut_ptr(), bytes.len()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nothing borrows from it any more. An error would
        // leave it mapped until the process ends.
        let _ = unsafe { munmap(self.at.as_ptr().cast::<c_void>(), self.len) };
    }
}
