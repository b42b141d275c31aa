//! Buffers that are used again.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::{Bytes, Chunk, Chunks};

/// How many busy buffers one [`Pool::claim`] looks at before it allocates: a bound on its time.
const PROBES: usize = 4;

/// A buffer with room for more than this is too much for what takes less than a quarter of it, and is kept. Lower copies more,
/// higher has a history of short payloads take the memory of the long ones among them.
const AMPLE: usize = 4_096;

/// Buffers of one owner, used again once nobody holds a view of them.
///
/// *Cost*: a claim is one atomic load when the last buffer is free, at most [`PROBES`] when not,
/// then an allocation.
pub struct Pool {
    shared: VecDeque<Arc<Vec<u8>>>,
    /// One that was claimed and not shared.
    spare: Option<Slot>,
    capacity: usize,
    keep: usize,
    largest: usize,
    allocated: u64,
    chunks: Option<Arc<Chunks>>,
}

/// A buffer with one owner. Derefs to `Vec<u8>`: it may grow.
///
/// Invariant: it is made of an `Arc` that is unique, without weak pointers, which is cloned only as the slot ends.
pub struct Slot(Arc<Vec<u8>>);

impl Pool {
    /// Buffers start with room for `capacity` bytes; at most `keep` of them are remembered, what
    /// is claimed beyond that is freed when its last view goes.
    pub fn new(capacity: usize, keep: usize) -> Pool {
        Pool {
            shared: VecDeque::new(),
            spare: None,
            capacity,
            keep,
            largest: usize::MAX,
            allocated: 0,
            chunks: None,
        }
    }

    /// The same pool, which has chunks, too.
    #[must_use]
    pub fn over(mut self, chunks: Option<Arc<Chunks>>) -> Pool {
        self.chunks = chunks;
        self
    }

    /// A chunk for a payload of so many bytes, if the pool has one to spare. *Cost*: one atomic exchange.
    #[inline]
    pub fn chunk(&mut self, len: usize) -> Option<Chunk> {
        self.chunks.as_ref()?.claim(len).or_else(|| self.chunk_of_next(len))
    }

    /// The same of those chunks that have taken the place of the pool's.
    #[cold]
    fn chunk_of_next(&mut self, len: usize) -> Option<Chunk> {
        self.chunks = Some(self.chunks.as_ref()?.next()?);
        self.chunks.as_ref()?.claim(len)
    }

    /// A view of `len` bytes that `write` writes: in a chunk if there is one, else in a buffer, which is counted.
    #[inline]
    pub fn written(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> Bytes {
        if let Some(mut chunk) = self.chunk(len) {
            write(chunk.get_mut(..len).unwrap_or_default());
            return chunk.share(len);
        }
        self.note_copied();
        let mut slot = self.claim();
        slot.resize(len, 0);
        write(&mut slot);
        self.share(slot)
    }

    /// One more payload was not written where it can be sent from, if that could be: it is copied.
    #[inline]
    pub fn note_copied(&self) {
        if let Some(chunks) = &self.chunks {
            chunks.note_copied();
        }
    }

    /// The same pool that does not remember buffers which have grown beyond `largest` bytes.
    #[must_use]
    pub fn forgetting_above(mut self, largest: usize) -> Pool {
        self.largest = largest;
        self
    }

    /// A buffer to write. Its content is whatever its last use left.
    pub fn claim(&mut self) -> Slot {
        if let Some(slot) = self.spare.take().or_else(|| self.reclaim_newest()) {
            return slot;
        }
        for _ in 0..PROBES.min(self.shared.len()) {
            let Some(mut oldest) = self.shared.pop_front() else { break };
            if Arc::get_mut(&mut oldest).is_some() {
                return Slot(oldest);
            }
            self.shared.push_back(oldest);
        }
        self.allocated += 1;
        Slot(Arc::new(Vec::with_capacity(self.capacity)))
    }

    /// The newest first: its bytes are still in the cache.
    fn reclaim_newest(&mut self) -> Option<Slot> {
        let free = Arc::get_mut(self.shared.back_mut()?).is_some();
        if free { self.shared.pop_back().map(Slot) } else { None }
    }

    /// Gives a buffer back that was not shared. *Cost*: none; the next claim gets it.
    pub fn give_back(&mut self, slot: Slot) {
        if slot.capacity() > self.largest {
            return;
        }
        if let Some(other) = self.spare.replace(slot)
            && self.shared.len() < self.keep
        {
            self.shared.push_back(other.0);
        }
    }

    /// Ends the writing: a view of the whole content.
    pub fn share(&mut self, slot: Slot) -> Bytes {
        let len = slot.len();
        self.share_prefix(slot, len)
    }

    /// Ends the writing: a view of the first `len` bytes, the rest stays for the next use. What is short, or takes little of a
    /// large buffer, is copied, and the next claim gets the buffer.
    pub fn share_prefix(&mut self, slot: Slot, len: usize) -> Bytes {
        if let Some(short) = Bytes::short(slot.get(..len).unwrap_or(&slot)) {
            self.give_back(slot);
            return short;
        }
        let capacity = slot.capacity();
        if capacity > AMPLE && len < capacity / 4 {
            return self.copy_prefix(slot, len);
        }
        if self.shared.len() < self.keep && capacity <= self.largest {
            self.shared.push_back(Arc::clone(&slot.0));
        }
        Bytes::from_shared(slot.0, len)
    }

    #[cold]
    fn copy_prefix(&mut self, slot: Slot, len: usize) -> Bytes {
        let copy = Bytes::copy_from(slot.get(..len).unwrap_or(&slot));
        self.allocated += 1;
        self.give_back(slot);
        copy
    }

    /// What [`Slot::lend`] has lent comes back. If others keep views of it, it is used again when they have gone.
    #[inline]
    pub fn take_back(&mut self, lent: Bytes) {
        if let Some(slot) = self.reclaim(lent) {
            self.give_back(slot);
        }
    }

    /// The same for who is to write there again: the buffer, if nobody keeps a view of it.
    #[inline]
    pub fn reclaim(&mut self, lent: Bytes) -> Option<Slot> {
        let buffer = lent.into_shared()?;
        if Arc::strong_count(&buffer) == 1 {
            // After what the last of the others did, who let go by a Release: nobody is left who could make another. To ask
            // by `Arc::get_mut` takes a locked instruction.
            fence(Ordering::Acquire);
            return Some(Slot(buffer));
        }
        if self.shared.len() < self.keep && buffer.capacity() <= self.largest {
            self.shared.push_back(buffer);
        }
        None
    }

    /// Buffers allocated since the pool was made; constant once it is warm.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }
}

impl Slot {
    /// A view of the first `len` bytes, for as long as somebody looks at it: then [`Pool::take_back`] gets it.
    #[inline]
    #[must_use]
    pub fn lend(self, len: usize) -> Bytes {
        Bytes::from_shared(self.0, len)
    }
}

impl Deref for Slot {
    type Target = Vec<u8>;
    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        let buffer = Arc::as_ptr(&self.0).cast_mut();
        // SAFETY: the invariant of the type: this is the only owner. To ask for that again takes a locked instruction for each
        // access.
        unsafe { &mut *buffer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_forgotten() {
        let mut pool = Pool::new(16, 8).forgetting_above(100);
        let mut slot = pool.claim();
        slot.resize(101, 0);
        drop(pool.share(slot));
        assert_eq!((pool.claim().capacity(), pool.allocated()), (16, 2));
    }

    #[test]
    fn what_is_short_takes_no_buffer() {
        let mut pool = Pool::new(16, 8);
        let short: Vec<_> = (0..10u8)
            .map(|n| {
                let mut slot = pool.claim();
                slot.clear();
                slot.push(n);
                pool.share(slot)
            })
            .collect();
        assert_eq!((&*short[9], pool.allocated()), (&[9][..], 1));
        for _ in 0..3 {
            let slots: Vec<_> = (0..3).map(|_| pool.claim()).collect();
            slots.into_iter().for_each(|slot| drop(pool.share(slot)));
        }
        assert_eq!(pool.allocated(), 3);
    }

    #[test]
    fn what_takes_little_of_a_large_buffer_does_not_keep_it() {
        let mut pool = Pool::new(16, 8);
        let mut share = |len: usize, byte: u8| {
            let mut slot = pool.claim();
            if slot.len() < 4 * AMPLE {
                slot.resize(4 * AMPLE, 0);
            }
            slot[..len].fill(byte);
            (pool.share_prefix(slot, len), pool.allocated())
        };
        let (short, allocated) = share(AMPLE - 1, 1);
        assert_eq!(allocated, 2, "a buffer and a copy");
        let (long, allocated) = share(AMPLE, 2);
        assert_eq!(allocated, 2, "the same buffer again");
        assert_eq!(share(AMPLE, 3).1, 3, "that view has it");
        assert_eq!((&*short, &*long), (&[1; AMPLE - 1][..], &[2; AMPLE][..]));
    }

    #[test]
    fn what_was_lent_is_used_again_when_nobody_looks_at_it() {
        let mut pool = Pool::new(256, 8);
        let lend = |pool: &mut Pool, byte: u8| {
            let mut slot = pool.claim();
            slot.clear();
            slot.resize(200, byte);
            slot.lend(100)
        };
        let kept = {
            let lent = lend(&mut pool, 1);
            let kept = lent.slice(90..100);
            pool.take_back(lent);
            kept
        };
        for byte in 2..5 {
            let lent = lend(&mut pool, byte);
            assert_eq!((&*lent, pool.allocated()), (&[byte; 100][..], 2), "the second of them");
            pool.take_back(lent);
        }
        assert_eq!(&*kept, [1; 10]);
        drop(kept);
        let both = [lend(&mut pool, 5), lend(&mut pool, 6)];
        assert_eq!((both.map(|lent| lent[99]), pool.allocated()), ([5, 6], 2));
    }

    #[test]
    fn a_warm_pool_allocates_nothing() {
        let mut pool = Pool::new(256, 8);
        let mut history = VecDeque::new();
        for n in 0..1_000u32 {
            let mut slot = pool.claim();
            slot.clear();
            slot.extend_from_slice(&n.to_le_bytes().repeat(50));
            history.push_back(pool.share(slot));
            if history.len() > 3 {
                let oldest = history.pop_front().unwrap();
                assert_eq!(&*oldest, (n - 3).to_le_bytes().repeat(50), "a held view is never overwritten");
            }
        }
        assert_eq!(pool.allocated(), 4);
    }
}
