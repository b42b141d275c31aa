//! Memory in chunks of one size that a driver shares: the frames of a network interface's queue.
//!
//! A payload that is written into a chunk is sent from there, and one that was received stays where the driver has
//! put it, until the last view of it is dropped. Then the chunk can be used for either. Owns the account of who holds
//! which chunk. What a frame is, and when the driver has one, is the port's business.
//!
//! **The invariant F**, to which the code refers: each chunk has a count of its holders. With none it is free, and
//! its number is in the stack of free ones, once. A holder is a [`Chunk`], a view, or who was given its number by
//! [`Chunks::take`] or [`Chunks::hold`] and has not let go. A lone holder that is no view may
//! write all of the chunk. Where there is a view, what lies in the range of its payload is read only; what lies
//! around that range has one writer, the port, and no readers but the port and the driver.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Weak};

use crate::Bytes;
use crate::lane::LEAD;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Numbers, Ordering};

/// Bytes in front of a value that is written into a chunk, those of its encapsulation header included: a multiple of 64,
/// to which values are aligned, that the longest headers fit in. *Source*: Ethernet 14, tag 4, IPv6 40, UDP 8; RTPS
/// header 20, INFO_DST 16, INFO_TS 12, DATA 24 with inline QoS of up to 60. Less has payloads copied, more takes room
/// from them.
const HEADROOM: usize = if cfg!(loom) { LEAD } else { 256 };
/// Where a payload starts that is written into a chunk.
const START: usize = HEADROOM - LEAD;
/// Bytes that are left free behind a payload: padding, and a HEARTBEAT of 32.
const TAILROOM: usize = if cfg!(loom) { 0 } else { 64 };

/// Chunks of one piece of memory.
///
/// Invariant: from `base` on, a multiple of 64, `size` bytes for each of `cells` are readable and writable for as long
/// as `keep` lives, and are accessed by the rules of F only.
pub struct Chunks {
    base: NonNull<u8>,
    size: usize,
    cells: Box<[Cell]>,
    free: Numbers,
    /// One more than the bytes of the longest payload that is lent a chunk, or 0 if none is any more.
    limit: AtomicU32,
    /// Those that took their place: null, or a `Weak` that this owns, set once.
    next: AtomicPtr<Chunks>,
    copied: AtomicU64,
    _keep: Box<dyn Any + Send + Sync>,
    /// One word for the payload of each: loom fails when two threads access it at the same time and one of them writes.
    #[cfg(loom)]
    watched: Box<[loom::cell::UnsafeCell<u64>]>,
}

/// What is known of a chunk.
struct Cell {
    holders: AtomicU32,
    /// Bytes of the payload that was written into it, from [`START`] on; 0 if none was. Written by a lone holder.
    payload: AtomicU32,
}

// SAFETY: the type's invariant, and F: what is shared is read only.
unsafe impl Send for Chunks {}
// SAFETY: the same.
unsafe impl Sync for Chunks {}

impl Chunks {
    /// So many chunks of `size` bytes, all of them free.
    ///
    /// # Safety
    /// From `base`, a multiple of 64, `size * count` bytes must stay readable and writable until `keep` is dropped, be
    /// no more than 4 GiB, and be accessed by this value and by its caller as the holder of single chunks only (F).
    pub unsafe fn new(
        base: NonNull<u8>,
        size: usize,
        count: u32,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Chunks {
        let free = Numbers::of(count);
        let cell = |_| Cell { holders: AtomicU32::new(0), payload: AtomicU32::new(0) };
        let cells = (0..count).map(cell).collect();
        Chunks {
            base,
            size,
            cells,
            free,
            limit: AtomicU32::new(room_of(size).saturating_add(1) as u32),
            next: AtomicPtr::default(),
            copied: AtomicU64::new(0),
            _keep: keep,
            #[cfg(loom)]
            watched: (0..count).map(|_| loom::cell::UnsafeCell::new(0)).collect(),
        }
    }

    /// Bytes of the longest payload that can be written into one.
    pub fn room(&self) -> usize {
        room_of(self.size)
    }

    /// Nothing is sent from them any more: from now on none is lent to write into. Those that are held are held on.
    pub fn end(&self) {
        // Who looks before it has seen that writes into a chunk once more, which is copied then.
        self.limit.store(0, Ordering::Relaxed);
    }

    /// These have ended, and others have taken their place: who was lent chunks of these is lent those. The first ones
    /// that are named stay.
    pub fn go_on_with(&self, next: &Arc<Chunks>) {
        let next = Arc::downgrade(next).into_raw().cast_mut();
        // Partner: the load of who asks.
        if self.next.compare_exchange(null_mut(), next, Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: it was made a pointer just now, and nobody else has it.
            drop(unsafe { Weak::from_raw(next) });
        }
    }

    /// Those that are lent now, if these have ended and that was told. Who has not asked between two ends may find none.
    pub(crate) fn next(&self) -> Option<Arc<Chunks>> {
        let next = NonNull::new(self.next.load(Ordering::Acquire))?;
        // SAFETY: a pointer of a `Weak` that this owns and does not give up before it is dropped: so it is not dropped here.
        unsafe { ManuallyDrop::new(Weak::from_raw(next.as_ptr())) }.upgrade()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.cells.len()
    }

    /// How many are free. *Cost*: a look at each.
    pub fn free(&self) -> usize {
        self.cells.iter().filter(|cell| cell.holders.load(Ordering::Relaxed) == 0).count()
    }

    /// Payloads that were not written into one where they were made.
    pub fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    /// One more of them.
    pub(crate) fn note_copied(&self) {
        self.copied.fetch_add(1, Ordering::Relaxed);
    }

    /// A free chunk, by its number. *Cost*: one atomic exchange.
    #[inline]
    pub fn take(&self) -> Option<u32> {
        let number = self.free.pop()?;
        let cell = self.cells.get(number as usize)?;
        // Nobody else has the number (F): who let it go did so before it was in the queue.
        cell.holders.store(1, Ordering::Relaxed);
        cell.payload.store(0, Ordering::Relaxed);
        Some(number)
    }

    /// A chunk to write a payload of so many bytes into; `None` if none is free, or it is too long for one.
    #[inline]
    pub fn claim(self: &Arc<Chunks>, len: usize) -> Option<Chunk> {
        let is_lent = len < self.limit.load(Ordering::Relaxed) as usize;
        let number = if is_lent { self.take()? } else { return None };
        let (chunks, end) = (Arc::clone(self), (START + self.room()) as u32);
        Some(Chunk(Lent { chunks, number, start: START as u32, end }))
    }

    /// One holder less; the last one frees the chunk.
    ///
    /// # Safety
    /// The caller is a holder of this chunk (F), and none afterwards.
    #[inline]
    pub unsafe fn let_go(&self, number: u32) {
        let Some(cell) = self.cells.get(number as usize) else { return };
        // Partner: the same of the others. All that was done with the chunk comes before it is free.
        let holders = cell.holders.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(holders > 0, "who lets go was a holder");
        if holders == 1 {
            self.free.push(number);
        }
    }

    /// Does `part` lie in one of these?
    #[inline]
    pub fn has(&self, part: &[u8]) -> bool {
        let at = (part.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        at < self.size * self.cells.len()
    }

    /// The chunk whose payload `part` is, all of it, and where in the chunk it lies; `None` if it is not one that was
    /// written into a chunk of these, or a part of one.
    #[inline]
    pub fn payload(&self, part: &[u8]) -> Option<(u32, Range<usize>)> {
        let at = (part.as_ptr() as usize).checked_sub(self.base.as_ptr() as usize)?;
        let (number, start) = (at / self.size, at % self.size);
        let cell = self.cells.get(number)?;
        let is_whole = start == START && cell.payload.load(Ordering::Relaxed) as usize == part.len();
        (is_whole && !part.is_empty()).then_some((number as u32, start..start + part.len()))
    }

    /// One holder more.
    ///
    /// # Safety
    /// The chunk has a holder, which stays one while this is called (F).
    #[inline]
    pub unsafe fn hold(&self, number: u32) {
        if let Some(cell) = self.cells.get(number as usize) {
            cell.holders.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A view of `part`, which lies in one chunk: from now on it is the holder instead of the caller. An empty one if
    /// it lies in none.
    ///
    /// # Safety
    /// The caller is the lone holder of the chunk that `part` lies in, and none afterwards (F).
    #[inline]
    pub unsafe fn view(self: &Arc<Chunks>, part: &[u8]) -> Bytes {
        let at = (part.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        let (number, start) = (at / self.size, at % self.size);
        let end = start + part.len();
        if number >= self.cells.len() || end > self.size {
            return Bytes::new();
        }
        let chunks = Arc::clone(self);
        Bytes::lent(Lent { chunks, number: number as u32, start: start as u32, end: end as u32 })
    }

    /// Bytes of a chunk around its payload, to write; `None` if they are not all inside of the chunk and outside of
    /// the payload.
    ///
    /// # Safety
    /// The chunk has a holder while the result lives. The caller is the port, which writes and reads these bytes by
    /// nothing else meanwhile, and the driver does not have them (F).
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn around(&self, number: u32, range: Range<usize>) -> Option<&mut [u8]> {
        let cell = self.cells.get(number as usize)?;
        let end = START + cell.payload.load(Ordering::Relaxed) as usize;
        let is_outside = range.end <= START || range.start >= end;
        if !is_outside || range.start > range.end || range.end > self.size {
            return None;
        }
        let start = self.start_of(number) + range.start;
        // SAFETY: the type's invariant; the bytes are inside of a chunk; nobody else has them, as the caller promises,
        // and no view shows them.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(start), range.len()) })
    }

    /// Bytes of a chunk, to read; `None` if they are not all inside of it.
    ///
    /// # Safety
    /// The chunk has a holder while the result lives, and nobody writes these bytes meanwhile (F).
    pub(crate) unsafe fn bytes(&self, number: u32, range: Range<usize>) -> Option<&[u8]> {
        if number as usize >= self.cells.len() || range.start > range.end || range.end > self.size {
            return None;
        }
        let start = self.start_of(number) + range.start;
        // SAFETY: the type's invariant; the bytes are inside of a chunk, and are only read, as the caller promises.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(start), range.len()) })
    }

    fn start_of(&self, number: u32) -> usize {
        number as usize * self.size
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if let Some(next) = NonNull::new(*self.next.get_mut()) {
            // SAFETY: a pointer of a `Weak` that this owns.
            drop(unsafe { Weak::from_raw(next.as_ptr()) });
        }
    }
}

/// Bytes of the longest payload in a chunk of so many.
fn room_of(size: usize) -> usize {
    size.saturating_sub(START + TAILROOM)
}

/// A chunk to write one payload into. Derefs to the bytes that there is room for; what an earlier use left is in them.
/// Dropped, it is free again.
///
/// *Shape*: a value behind its encapsulation header of four bytes is aligned to 64.
pub struct Chunk(Lent);

impl Chunk {
    /// Ends the writing: a view of the first `len` bytes.
    pub fn share(mut self, len: usize) -> Bytes {
        self.0.cut(0..len);
        if let Some(cell) = self.0.chunks.cells.get(self.0.number as usize) {
            // Whoever asks has a view, which was handed to it after this.
            cell.payload.store(self.0.end - self.0.start, Ordering::Relaxed);
        }
        Bytes::lent(self.0)
    }
}

impl Deref for Chunk {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: F: this is the lone holder, which is borrowed alone; the bytes are inside of its chunk.
        unsafe { std::slice::from_raw_parts_mut(self.0.address(), self.0.len()) }
    }
}

/// A holder's part of a chunk, which is free after the last of them.
pub(crate) struct Lent {
    chunks: Arc<Chunks>,
    number: u32,
    /// Where in the chunk it starts and ends.
    start: u32,
    end: u32,
}

impl Lent {
    pub(crate) fn chunk_size(&self) -> usize {
        self.chunks.size
    }

    /// Narrows the view to a range of it, cut to what there is.
    pub(crate) fn cut(&mut self, range: Range<usize>) {
        let start = range.start.min(self.len());
        let end = range.end.clamp(start, self.len());
        (self.start, self.end) = (self.start + start as u32, self.start + end as u32);
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: F: this is a holder, and the bytes are inside of its chunk, which others only read.
        unsafe { std::slice::from_raw_parts(self.address(), self.len()) }
    }

    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn address(&self) -> *mut u8 {
        let at = self.chunks.start_of(self.number) + self.start as usize;
        self.chunks.base.as_ptr().wrapping_add(at)
    }
}

impl Clone for Lent {
    fn clone(&self) -> Lent {
        // SAFETY: this is a holder, and stays one meanwhile.
        unsafe { self.chunks.hold(self.number) }
        Lent { chunks: Arc::clone(&self.chunks), ..*self }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it is a holder, and gone after this.
        unsafe { self.chunks.let_go(self.number) }
    }
}

#[cfg(loom)]
impl Chunk {
    /// Writes the one word of its payload that loom watches.
    pub fn write(&mut self, value: u64) {
        let watched = &self.0.chunks.watched[self.0.number as usize];
        // SAFETY: loom fails if somebody reads or writes at the same time.
        watched.with_mut(|word| unsafe { *word = value });
    }
}

#[cfg(loom)]
impl Lent {
    /// The word of the payload that loom watches.
    pub(crate) fn watched(&self) -> u64 {
        // SAFETY: loom fails if somebody writes at the same time.
        self.chunks.watched[self.number as usize].with(|word| unsafe { *word })
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;
    use crate::lane::INLINE;

    const SIZE: usize = 1_024;

    /// Chunks on the heap.
    pub(crate) fn chunks(count: u32) -> Arc<Chunks> {
        let memory = vec![0_u64; (SIZE * count as usize + 64) / 8].into_boxed_slice();
        let start = memory.as_ptr().cast::<u8>().map_addr(|address| address.next_multiple_of(64));
        let base = NonNull::new(start.cast_mut()).unwrap();
        // SAFETY: the box has the bytes, and is not used but here.
        Arc::new(unsafe { Chunks::new(base, SIZE, count, Box::new(memory)) })
    }

    fn written(chunks: &Arc<Chunks>, byte: u8, len: usize) -> Bytes {
        let mut chunk = chunks.claim(len).unwrap();
        chunk[..len].fill(byte);
        chunk.share(len)
    }

    #[test]
    fn a_chunk_is_free_again_after_its_last_view() {
        let chunks = chunks(2);
        let view = written(&chunks, 7, 100);
        assert_eq!((view.len(), view.pinned(), chunks.free()), (100, SIZE, 1));
        assert_eq!((view.as_ptr() as usize + LEAD) % 64, 0, "a value behind its header is aligned");
        let part = view.slice(10..20);
        drop(view);
        let again = part.slice_of(&part[3..5]).unwrap();
        drop(part);
        assert_eq!((&*again, chunks.free()), (&[7, 7][..], 1));
        drop(again.slice(2..9));
        drop(again);
        assert_eq!(chunks.free(), 2);
        drop(chunks.claim(1));
        assert_eq!(chunks.free(), 2, "one that was not written");
    }

    #[test]
    fn views_keep_the_memory() {
        let chunks = chunks(1);
        let view = written(&chunks, 9, 500);
        let memory = Arc::downgrade(&chunks);
        drop(chunks);
        assert_eq!(*view, [9; 500]);
        drop(view);
        assert!(memory.upgrade().is_none());
    }

    #[test]
    fn what_has_ended_lends_none_and_names_those_that_follow() {
        let (first, second, third) = (chunks(4), chunks(4), chunks(4));
        let mut pool = crate::Pool::new(16, 4).over(Some(Arc::clone(&first)));
        let held = pool.written(100, |bytes| bytes.fill(1));
        assert!(first.has(&held));
        first.end();
        let view = pool.written(100, |bytes| bytes.fill(2));
        assert!(!first.has(&view), "it is a copy");
        first.go_on_with(&second);
        let view = pool.written(100, |bytes| bytes.fill(3));
        assert!(second.has(&view));
        assert_eq!((&held[..], first.free()), (&[1; 100][..], 3), "what is held is held on");
        assert!(pool.chunk(SIZE).is_none() && pool.chunk(1).is_some(), "too long for one");
        drop((held, view));
        let memory = Arc::downgrade(&first);
        drop(first);
        assert!(memory.upgrade().is_none(), "nobody has it");
        second.end();
        second.go_on_with(&third);
        drop(third);
        assert!(pool.chunk(1).is_none(), "those have gone, too");
    }

    #[test]
    fn who_has_a_number_has_it_alone() {
        let chunks = chunks(3);
        let one = chunks.claim(chunks.room()).unwrap();
        let (a, b) = (chunks.take().unwrap(), chunks.take().unwrap());
        assert!(a != b && chunks.take().is_none() && chunks.claim(1).is_none());
        // SAFETY: they were taken, and are not used any more.
        unsafe { [a, b].into_iter().for_each(|number| chunks.let_go(number)) }
        assert_eq!(chunks.take(), Some(b), "what was used last is used again first");
        // SAFETY: the same.
        unsafe { chunks.let_go(b) }
        drop(one);
        assert!(chunks.claim(chunks.room() + 1).is_none(), "too long");
        assert_eq!(chunks.free(), 3);
    }

    #[test]
    fn what_has_come_is_kept_where_it_is() {
        let chunks = chunks(1);
        let number = chunks.take().unwrap();
        // SAFETY: this is the lone holder, and becomes the view.
        let view = unsafe {
            let frame = chunks.around(number, 300..400).unwrap();
            frame.fill(5);
            chunks.view(&frame[10..])
        };
        assert_eq!((&*view, chunks.free()), (&[5; 90][..], 0));
        assert!(chunks.payload(&view).is_none(), "nothing is written around what was received");
        drop(view);
        assert_eq!(chunks.free(), 1);
        // SAFETY: it is in no chunk.
        assert!(unsafe { chunks.view(&[1, 2, 3]) }.is_empty());
    }

    #[test]
    fn only_what_lies_around_a_payload_is_written() {
        let chunks = chunks(2);
        let view = written(&chunks, 1, 200);
        let (number, range) = chunks.payload(&view).unwrap();
        assert_eq!(range, START..START + 200);
        for other in [&view[1..], &view[..199], &view[..0], &[1; 200]] {
            assert!(chunks.payload(other).is_none(), "not all of a payload");
        }
        assert!(chunks.has(&view[1..]) && !chunks.has(&[1; 200]));
        // SAFETY: this is the only one that writes around payloads.
        let is_outside = |range| unsafe { chunks.around(number, range) }.is_some();
        assert!(is_outside(0..START) && is_outside(range.end..SIZE));
        assert!(!is_outside(0..START + 1) && !is_outside(range.end - 1..SIZE) && !is_outside(0..SIZE));
        assert!(!is_outside(SIZE - 1..SIZE + 1), "the next chunk is another's");
        // SAFETY: the view is a holder.
        unsafe { chunks.hold(number) }
        drop(view);
        assert_eq!(chunks.free(), 1, "the driver has it");
        // SAFETY: the driver had it, and has not any more.
        unsafe { chunks.let_go(number) }
        assert_eq!(chunks.free(), 2);
    }

    #[test]
    fn a_pool_counts_what_it_does_not_put_into_chunks() {
        let chunks = chunks(1);
        let mut pool = crate::Pool::new(64, 8).over(Some(Arc::clone(&chunks)));
        let mut write = |len: usize| pool.written(len, |to| to.fill(len as u8));
        let first = write(INLINE + 1);
        assert_eq!((first.is_lent(), chunks.copied()), (true, 0));
        let [second, long] = [INLINE + 1, SIZE].map(&mut write);
        assert_eq!(
            (second == first, second.is_lent(), long.is_lent(), chunks.copied()),
            (true, false, false, 2)
        );
        drop(first);
        assert!(write(INLINE + 1).is_lent());
        assert!(crate::Pool::new(64, 8).chunk(100).is_none());
    }

    #[test]
    fn chunks_go_through_many_hands() {
        let chunks = chunks(8);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Bytes>(4);
        let last = std::thread::spawn(move || {
            for (n, view) in receiver.iter().enumerate() {
                assert!(view.iter().all(|byte| *byte == n as u8), "nobody writes what is looked at");
            }
        });
        for n in 0..20_000_u32 {
            let view = loop {
                match chunks.claim(100) {
                    Some(mut chunk) => {
                        chunk[..100].fill(n as u8);
                        break chunk.share(100);
                    }
                    None => std::thread::yield_now(),
                }
            };
            sender.send(view.clone()).unwrap();
        }
        drop(sender);
        last.join().unwrap();
        assert_eq!(chunks.free(), 8);
    }
}
