//! Memory that several threads or processes see: atomic words, and bytes that one of them lends.
//!
//! Owns nothing but the memory. Who writes which part of it is the lane's business ([`crate::Lane`]).

#[cfg(not(loom))]
use std::alloc::{Layout, alloc_zeroed};
#[cfg(not(loom))]
use std::ptr::NonNull;

use crate::Bytes;
#[cfg(loom)]
use crate::lane::UNIT;
use crate::sync::AtomicU64;
#[cfg(not(loom))]
use crate::sync::Ordering;

/// Bytes of a word.
pub(crate) const WORD: usize = size_of::<u64>();
/// Bytes of a page: what starts at a multiple of it can be committed alone.
pub(crate) const PAGE: usize = if cfg!(loom) { 256 } else { 4_096 };

/// A run of zeroed memory, on the heap or mapped.
///
/// Invariant: from `base`, which is a multiple of 8, `len` bytes are readable, and writable if `writable`,
/// for as long as `keep` lives. Words are only accessed as atomics. Bytes are only accessed by the rules
/// of [`Region::bytes`] and [`Region::bytes_mut`].
#[cfg(not(loom))]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
    _keep: Box<dyn std::any::Any + Send + Sync>,
}

// SAFETY: the type's invariant: words are atomics, bytes follow their rules, and `keep` is Send and Sync.
#[cfg(not(loom))]
unsafe impl Send for Region {}
// SAFETY: the same.
#[cfg(not(loom))]
unsafe impl Sync for Region {}

#[cfg(not(loom))]
impl Region {
    /// Zeroed memory of this process that starts at a page. *Cost*: pages come when they are touched.
    pub fn heap(len: usize) -> Region {
        // A Vec of zeros comes from the system untouched only with the alignment of its type: it is a page
        // longer, and the region starts where a page does.
        Region::of(Box::into_raw(vec![0_u64; Region::words_for(len)].into_boxed_slice()), len)
    }

    /// The same; `None` if the process may not have so much.
    pub fn try_heap(len: usize) -> Option<Region> {
        let count = Region::words_for(len);
        let layout = Layout::array::<u64>(count).ok()?;
        // SAFETY: it has more than no bytes.
        let words = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // So a box of them is allocated.
        Some(Region::of(std::ptr::slice_from_raw_parts_mut(words.cast().as_ptr(), count), len))
    }

    /// Words in which so many bytes lie from the start of a page on.
    fn words_for(len: usize) -> usize {
        len.saturating_add(PAGE).div_ceil(WORD)
    }

    /// `words` are those for `len`, as [`Heap`] wants them.
    fn of(words: *mut [u64], len: usize) -> Region {
        let base = words.cast::<u8>().map_addr(|address| address.next_multiple_of(PAGE));
        let base = NonNull::new(base).expect("invariant: a box is somewhere");
        Region { base, len, writable: true, _keep: Box::new(Heap(words)) }
    }

    /// Memory that somebody has mapped.
    ///
    /// # Safety
    /// From `base`, a multiple of 8, `len` bytes must stay readable until `keep` is dropped, and writable
    /// if `writable`; nothing but regions may access them.
    pub unsafe fn mapped(
        base: NonNull<u8>,
        len: usize,
        writable: bool,
        keep: Box<dyn std::any::Any + Send + Sync>,
    ) -> Region {
        Region { base, len, writable, _keep: keep }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no bytes?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// May this process write it?
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// `count` words from the word number `at` on; `None` if they are not all inside.
    #[inline]
    pub(crate) fn words(&self, at: usize, count: usize) -> Option<&[AtomicU64]> {
        if at.checked_add(count)? > self.len / WORD {
            return None;
        }
        // SAFETY: the type's invariant; the words lie inside of it.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast::<AtomicU64>().add(at), count) })
    }

    /// A row of words from the word number `at` on; `None` if they are not all inside.
    #[inline]
    pub(crate) fn row<const N: usize>(&self, at: usize) -> Option<&[AtomicU64; N]> {
        self.words(at, N)?.first_chunk()
    }

    /// Copies bytes word by word, as somebody may write them at the same time. `None` if the words that they
    /// lie in are not all inside.
    pub(crate) fn copy_bytes(&self, at: usize, len: usize) -> Option<Bytes> {
        let before = at % WORD;
        let words = self.words(at / WORD, before.checked_add(len)?.div_ceil(WORD))?;
        let mut bytes = vec![0; words.len() * WORD];
        for (to, word) in bytes.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Some(Bytes::from(bytes).slice(before..before + len))
    }

    /// Bytes to read; `None` if they are not all inside.
    ///
    /// # Safety
    /// Nobody of this process may write them while the result lives. Another process may, if it does not
    /// keep its word: the result is then for readers to whom all bytes are valid, and who look once.
    pub(crate) unsafe fn bytes(&self, at: usize, len: usize) -> Option<&[u8]> {
        if at.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the type's invariant; the bytes lie inside of it; the caller sees to their peace.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), len) })
    }

    /// Bytes to write; `None` if they are not all inside or the memory is not ours to write.
    ///
    /// # Safety
    /// The caller must be the only one to access them while the result lives.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn bytes_mut(&self, at: usize, len: usize) -> Option<&mut [u8]> {
        if !self.writable || at.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the type's invariant; the bytes lie inside of it and are the caller's alone.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), len) })
    }
}

/// The heap's memory of a region. Invariant: made by `Box::into_raw`, or allocated as if it were, freed once.
#[cfg(not(loom))]
struct Heap(*mut [u64]);

// SAFETY: it only frees.
#[cfg(not(loom))]
unsafe impl Send for Heap {}
// SAFETY: it only frees.
#[cfg(not(loom))]
unsafe impl Sync for Heap {}

#[cfg(not(loom))]
impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the type's invariant.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// What loom explores: atomic words, and for the bytes of each [`UNIT`] one word that loom watches: it
/// fails when two threads access that at the same time and one of them writes.
#[cfg(loom)]
pub struct Region {
    words: Vec<AtomicU64>,
    bytes: Vec<loom::cell::UnsafeCell<u64>>,
}

// SAFETY: loom sees to it that accesses of `bytes` are not at the same time.
#[cfg(loom)]
unsafe impl Sync for Region {}

#[cfg(loom)]
#[allow(missing_docs)]
impl Region {
    pub fn heap(len: usize) -> Region {
        let words = (0..len.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
        let bytes = (0..len.div_ceil(UNIT)).map(|_| loom::cell::UnsafeCell::new(0)).collect();
        Region { words, bytes }
    }

    pub fn len(&self) -> usize {
        self.words.len() * WORD
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn words(&self, at: usize, count: usize) -> Option<&[AtomicU64]> {
        self.words.get(at..at.checked_add(count)?)
    }

    pub(crate) fn row<const N: usize>(&self, at: usize) -> Option<&[AtomicU64; N]> {
        self.words(at, N)?.first_chunk()
    }

    pub(crate) fn copy_bytes(&self, at: usize, _len: usize) -> Option<Bytes> {
        Some(Bytes::from(self.read_bytes(at).to_le_bytes().to_vec()))
    }

    pub(crate) fn read_bytes(&self, at: usize) -> u64 {
        // SAFETY: loom fails if somebody writes at the same time.
        self.bytes[at / UNIT].with(|word| unsafe { *word })
    }

    pub(crate) fn write_bytes(&self, at: usize, value: u64) {
        // SAFETY: loom fails if somebody reads or writes at the same time.
        self.bytes[at / UNIT].with_mut(|word| unsafe { *word = value });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_lie_inside() {
        let region = Region::heap(64);
        region.words(7, 1).unwrap()[0].store(0x0102, Ordering::Relaxed);
        assert!(region.words(8, 1).is_none() && region.words(usize::MAX, 2).is_none());
        // SAFETY: nobody writes.
        assert_eq!(unsafe { region.bytes(56, 2) }.unwrap(), [2, 1]);
        // SAFETY: nobody else accesses them.
        assert!(unsafe { region.bytes(64, 1) }.is_none() && unsafe { region.bytes_mut(60, 5) }.is_none());
    }
}
