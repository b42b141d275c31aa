//! A frame in DPDK's memory, in one piece, with room in front of its bytes and behind them.
//!
//! Owns one mbuf of DPDK's, which goes back to its pool with the value. Reads and writes nothing of the bytes. Sees to
//! it that a frame is no longer than drivers expect of its pool.

use std::ptr::NonNull;
use std::slice;

use crate::ffi::{self, RawMbuf};

/// A frame that is ours.
///
/// Invariant: the mbuf is of one piece, and the pool that it came from is alive for as long. It has no other owner; or one
/// more, [`crate::lend`], and then nobody writes its bytes, nor adds to them.
#[derive(Debug)]
pub struct Mbuf(NonNull<RawMbuf>);

// SAFETY: the type's invariant: it is memory with one owner, and goes back to a pool that is for any thread.
unsafe impl Send for Mbuf {}
// SAFETY: a shared frame is only read.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// # Safety
    /// The type's invariant.
    pub(crate) unsafe fn own(mbuf: NonNull<RawMbuf>) -> Mbuf {
        Mbuf(mbuf)
    }

    /// Gives the mbuf away.
    pub(crate) fn into_raw(self) -> NonNull<RawMbuf> {
        let mbuf = self.0;
        std::mem::forget(self);
        mbuf
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the type's invariant; the result borrows the frame.
        unsafe { bytes_of(self.0) }
    }

    /// Its bytes, to change them; none of one whose payload is lent.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let mut len = 0;
        // SAFETY: the type's invariant.
        let start = unsafe { ffi::taut_dpdk_bytes(self.0.as_ptr(), &mut len) };
        // SAFETY: the type's invariant.
        let is_shared = unsafe { ffi::taut_dpdk_is_shared(self.0.as_ptr()) } != 0;
        let len = if is_shared { 0 } else { len.into() };
        // SAFETY: the bytes of a frame, which has no other owner and which the result borrows for itself.
        unsafe { slice::from_raw_parts_mut(start, len) }
    }

    /// How many bytes can be added behind.
    pub fn room(&self) -> usize {
        // SAFETY: the type's invariant.
        unsafe { ffi::taut_dpdk_back(self.0.as_ptr()) }.into()
    }

    /// How many bytes can be added in front, which takes from the room behind if there is little.
    pub fn front_room(&self) -> usize {
        // SAFETY: the type's invariant.
        unsafe { ffi::taut_dpdk_front(self.0.as_ptr()) }.into()
    }

    /// Adds bytes behind and gives them to be written; they are what they were. `None` if there is not as much room.
    pub fn append(&mut self, len: usize) -> Option<&mut [u8]> {
        let added = u16::try_from(len).ok().filter(|_| len <= self.room())?;
        // SAFETY: the type's invariant; there is room.
        let start = NonNull::new(unsafe { ffi::taut_dpdk_append(self.0.as_ptr(), added) })?;
        // SAFETY: bytes of the frame now, which has no other owner and which the result borrows for itself.
        Some(unsafe { slice::from_raw_parts_mut(start.as_ptr(), len) })
    }

    /// Adds bytes in front and gives them to be written; they are what they were. `None` if there is not as much room.
    pub fn prepend(&mut self, len: usize) -> Option<&mut [u8]> {
        let added = u16::try_from(len).ok().filter(|_| len <= self.front_room())?;
        // SAFETY: the type's invariant; there is room.
        let start = NonNull::new(unsafe { ffi::taut_dpdk_prepend(self.0.as_ptr(), added) })?;
        // SAFETY: bytes of the frame now, which has no other owner and which the result borrows for itself.
        Some(unsafe { slice::from_raw_parts_mut(start.as_ptr(), len) })
    }

    /// Keeps so many of its bytes, from the first.
    pub fn truncate(&mut self, len: usize) {
        if let Ok(cut) = u16::try_from(self.bytes().len().saturating_sub(len)) {
            // SAFETY: the type's invariant; no more than there are.
            unsafe { ffi::taut_dpdk_cut(self.0.as_ptr(), cut) }
        }
    }
}

impl Drop for Mbuf {
    fn drop(&mut self) {
        let mut mbuf = self.0.as_ptr();
        // SAFETY: the type's invariant; nobody has it after this.
        unsafe { ffi::taut_dpdk_free(&mut mbuf, 1) }
    }
}

/// The bytes of a frame.
///
/// # Safety
/// As [`Mbuf`]; nobody writes or frees it while the result lives.
pub(crate) unsafe fn bytes_of<'a>(mbuf: NonNull<RawMbuf>) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    let start = unsafe { ffi::taut_dpdk_bytes(mbuf.as_ptr(), &mut len) };
    // SAFETY: the caller's promise; all bytes of DPDK's memory were written once, if only with zeros.
    unsafe { slice::from_raw_parts(start, len.into()) }
}
