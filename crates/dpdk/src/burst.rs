//! Frames that came together, or that are to go together.
//!
//! Owns up to [`BURST`] frames in their order, without an allocation; those that are still in it go back to their
//! pools with the value.

use std::ptr::{self, NonNull};

use crate::Mbuf;
use crate::ffi::{self, RawMbuf};
use crate::mbuf::bytes_of;

/// Frames of a burst at most. DPDK's drivers are made for 32: fewer cost more calls for each frame, more fill caches.
pub const BURST: usize = 32;

/// Frames in a row.
///
/// Invariant: `start <= end <= BURST`, and what is between them are mbufs as those of a [`Mbuf`].
pub struct Burst {
    frames: [*mut RawMbuf; BURST],
    start: usize,
    end: usize,
}

// SAFETY: the type's invariant: frames, which are so.
unsafe impl Send for Burst {}
// SAFETY: the same.
unsafe impl Sync for Burst {}

impl Default for Burst {
    fn default() -> Burst {
        Burst { frames: [ptr::null_mut(); BURST], start: 0, end: 0 }
    }
}

impl Burst {
    /// None yet.
    pub fn new() -> Burst {
        Burst::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many more it takes.
    pub fn room(&self) -> usize {
        BURST - self.len()
    }

    /// Adds a frame behind the others; gives it back if there is no room.
    pub fn push(&mut self, frame: Mbuf) -> Result<(), Mbuf> {
        if self.room() == 0 {
            return Err(frame);
        }
        self.close_up();
        self.frames[self.end] = frame.into_raw().as_ptr();
        self.end += 1;
        Ok(())
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Mbuf> {
        let first = *self.frames.get(self.start).filter(|_| self.start < self.end)?;
        self.start += 1;
        // SAFETY: the type's invariant; it is not among them any more.
        NonNull::new(first).map(|mbuf| unsafe { Mbuf::own(mbuf) })
    }

    /// The bytes of each, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let frames = &self.frames[self.start..self.end];
        // SAFETY: the type's invariant; the result borrows the burst.
        frames.iter().map(|mbuf| unsafe { bytes_of(NonNull::new_unchecked(*mbuf)) })
    }

    /// Has each, in their order, be replaced by what `other` makes of it, an mbuf as that of a [`Mbuf`].
    pub(crate) fn exchange(&mut self, mut other: impl FnMut(NonNull<RawMbuf>) -> NonNull<RawMbuf>) {
        for frame in &mut self.frames[self.start..self.end] {
            if let Some(mbuf) = NonNull::new(*frame) {
                *frame = other(mbuf).as_ptr();
            }
        }
    }

    /// Gives all back to their pools.
    pub fn clear(&mut self) {
        let (start, len) = (self.start, self.len());
        (self.start, self.end) = (0, 0);
        if len > 0 {
            // SAFETY: the type's invariant; nobody has them after this.
            unsafe { ffi::taut_dpdk_free(self.frames[start..].as_mut_ptr(), len as u32) }
        }
    }

    /// Has `come` write mbufs to where there is room for so many, and say how many it wrote.
    ///
    /// # Safety
    /// What it writes are mbufs as those of a [`Mbuf`].
    pub(crate) unsafe fn receive(&mut self, come: impl FnOnce(*mut *mut RawMbuf, u16) -> u16) -> usize {
        self.close_up();
        let free = &mut self.frames[self.end..];
        let came = usize::from(come(free.as_mut_ptr(), free.len() as u16)).min(free.len());
        self.end += came;
        came
    }

    /// Has `go` take mbufs from the first on, and say how many it took.
    pub(crate) fn send(&mut self, go: impl FnOnce(*mut *mut RawMbuf, u16) -> u16) -> usize {
        let frames = &mut self.frames[self.start..self.end];
        let went = usize::from(go(frames.as_mut_ptr(), frames.len() as u16)).min(frames.len());
        self.start += went;
        went
    }

    /// Has all free room be behind.
    fn close_up(&mut self) {
        if self.start > 0 {
            self.frames.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        self.clear();
    }
}
