//! The four rings that a socket shares with the kernel: two that it fills, two that it empties.
//!
//! Owns the layout of a ring in memory and the order of loads and stores (linux/if_xdp.h, and the kernel's
//! Documentation/networking/af_xdp.rst). Knows nothing of sockets and frames. Entries go in batches: what is
//! reserved and put is the kernel's with one store, and so is the room of what was peeked.
//!
//! Both ends of a ring are counters that run freely; an entry's place is its number modulo the size. Each end
//! has one owner: the methods take `&mut self`, and the kernel is the other end.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::net::xdp::XdpRingOffset;

use crate::mapping::Mapping;

/// XDP_RING_NEED_WAKEUP.
const NEED_WAKEUP: u32 = 1;

/// A frame on its way: what the rings of a socket carry. Those of a UMEM carry its address alone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Descriptor {
    /// Where its first byte is.
    pub address: u64,
    /// Its length in bytes.
    pub len: u32,
    /// Options of the kernel: [`GOES_ON`] or none.
    pub options: u32,
}

/// The option of a frame that goes on with the next descriptor (XDP_PKT_CONTD): those of one frame are in a ring one
/// behind the other.
pub const GOES_ON: u32 = 1;

impl Descriptor {
    /// Does the frame go on with the next descriptor?
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.options & GOES_ON != 0
    }
}

mod sealed {
    /// What a ring can carry, as words of 64 bits.
    pub trait Words: Copy {
        const WORDS: usize;
        fn word(self, at: usize) -> u64;
        fn of(words: impl Fn(usize) -> u64) -> Self;
    }
}

/// An entry of a ring: an address, or a [`Descriptor`].
pub trait Entry: sealed::Words {}

impl Entry for u64 {}
impl Entry for Descriptor {}

impl sealed::Words for u64 {
    const WORDS: usize = 1;

    fn word(self, _: usize) -> u64 {
        self
    }

    fn of(words: impl Fn(usize) -> u64) -> u64 {
        words(0)
    }
}

impl sealed::Words for Descriptor {
    const WORDS: usize = 2;

    fn word(self, at: usize) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.len.to_ne_bytes(), self.options.to_ne_bytes());
        if at == 0 { self.address } else { u64::from_ne_bytes([a, b, c, d, e, f, g, h]) }
    }

    fn of(words: impl Fn(usize) -> u64) -> Descriptor {
        let [a, b, c, d, e, f, g, h] = words(1).to_ne_bytes();
        let (len, options) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        Descriptor { address: words(0), len, options }
    }
}

/// The memory of a ring.
///
/// Invariant: both ends and the flags are words of 32 bits inside of the mapping, the entries `size` times
/// `words` words of 64 bits; `size` is a power of two. They are accessed as atomics only.
struct Area {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
    words: usize,
}

impl Area {
    fn map(
        fd: BorrowedFd<'_>,
        place: u64,
        at: &XdpRingOffset,
        size: u32,
        words: usize,
    ) -> Result<Area, Errno> {
        let flags = at.flags.ok_or(Errno::NOSYS)?;
        let (entries, inside) = (at.desc as usize, at.producer.max(at.consumer).max(flags) < at.desc);
        let aligned = (at.producer | at.consumer | flags).is_multiple_of(4) && at.desc.is_multiple_of(8);
        if !inside || !aligned || !size.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let mapping = Mapping::new(fd, entries + size as usize * words * 8, place)?;
        let (producer, consumer, flags) = (at.producer as usize, at.consumer as usize, flags as usize);
        Ok(Area { mapping, producer, consumer, flags, entries, size, words })
    }

    #[inline]
    fn half(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the type's invariant: `at` is one of the three places it names.
        unsafe { self.mapping.base().byte_add(at).cast().as_ref() }
    }

    #[inline]
    fn word(&self, number: u32, word: usize) -> &AtomicU64 {
        // SAFETY: the type's invariant: the number is taken modulo the size, and `word` is below `words`.
        unsafe { self.mapping.base().byte_add(self.place(number, word)).cast().as_ref() }
    }

    /// Where a word of an entry is.
    #[inline]
    fn place(&self, number: u32, word: usize) -> usize {
        self.entries + ((number & (self.size - 1)) as usize * self.words + word) * 8
    }

    fn needs_wakeup(&self) -> bool {
        self.half(self.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// The end of a ring that puts entries in: fill and TX.
pub struct Producer<E> {
    area: Area,
    /// The number of the next entry.
    next: u32,
    /// How far the other end was when it was last looked at.
    consumed: u32,
    _entry: PhantomData<E>,
}

impl<E: Entry> Producer<E> {
    pub(crate) fn map(fd: BorrowedFd<'_>, place: u64, at: &XdpRingOffset, size: u32) -> Result<Self, Errno> {
        let area = Area::map(fd, place, at, size, E::WORDS)?;
        let next = area.half(area.producer).load(Ordering::Relaxed);
        let consumed = area.half(area.consumer).load(Ordering::Acquire);
        Ok(Producer { area, next, consumed, _entry: PhantomData })
    }

    /// Room for `want` entries, or for as many as there is room for.
    #[inline]
    pub fn reserve(&mut self, want: u32) -> Reserved<'_, E> {
        if self.room() < want {
            // Partner: the kernel's release of its end, after it has read the entries.
            self.consumed = self.area.half(self.area.consumer).load(Ordering::Acquire);
        }
        let room = want.min(self.room());
        Reserved { ring: self, room, put: 0 }
    }

    /// How many entries the kernel has not taken yet.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.next.wrapping_sub(self.area.half(self.area.consumer).load(Ordering::Acquire))
    }

    /// Does the kernel want to be woken for what was submitted?
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.area.needs_wakeup()
    }

    /// How many entries it has.
    pub fn size(&self) -> u32 {
        self.area.size
    }

    fn room(&self) -> u32 {
        self.area.size.saturating_sub(self.next.wrapping_sub(self.consumed))
    }
}

/// Room in a ring. Without [`Reserved::submit`] nothing that was put in is seen.
#[must_use = "what is put is seen after `submit` only"]
pub struct Reserved<'a, E> {
    ring: &'a mut Producer<E>,
    room: u32,
    put: u32,
}

impl<E: Entry> Reserved<'_, E> {
    /// How many more entries there is room for.
    #[inline]
    pub fn room(&self) -> u32 {
        self.room - self.put
    }

    /// Puts an entry; `false` if there is no room for it.
    #[inline]
    pub fn put(&mut self, entry: E) -> bool {
        if self.room() == 0 {
            return false;
        }
        let number = self.ring.next.wrapping_add(self.put);
        for word in 0..E::WORDS {
            // Ordered by the release in `submit`.
            self.ring.area.word(number, word).store(entry.word(word), Ordering::Relaxed);
        }
        self.put += 1;
        true
    }

    /// Gives all that was put to the kernel; how many that are.
    #[inline]
    pub fn submit(self) -> u32 {
        self.ring.next = self.ring.next.wrapping_add(self.put);
        // Partner: the kernel's acquire of this end, before it reads the entries.
        self.ring.area.half(self.ring.area.producer).store(self.ring.next, Ordering::Release);
        self.put
    }
}

/// The end of a ring that takes entries out: completion and RX.
pub struct Consumer<E> {
    area: Arc<Area>,
    /// The number of the next entry.
    next: u32,
    /// How far the other end was when it was last looked at.
    produced: u32,
    _entry: PhantomData<E>,
}

impl<E: Entry> Consumer<E> {
    pub(crate) fn map(fd: BorrowedFd<'_>, place: u64, at: &XdpRingOffset, size: u32) -> Result<Self, Errno> {
        let area = Area::map(fd, place, at, size, E::WORDS)?;
        let next = area.half(area.consumer).load(Ordering::Relaxed);
        Ok(Consumer { area: Arc::new(area), next, produced: next, _entry: PhantomData })
    }

    /// Up to `want` of the oldest entries.
    #[inline]
    pub fn peek(&mut self, want: u32) -> Peeked<'_, E> {
        if self.available() < want {
            // Partner: the kernel's release of its end, after it has written the entries.
            self.produced = self.area.half(self.area.producer).load(Ordering::Acquire);
        }
        let available = want.min(self.available());
        Peeked { ring: self, available, taken: 0 }
    }

    /// How many entries it has.
    pub fn size(&self) -> u32 {
        self.area.size
    }

    /// For looking at the ring from elsewhere.
    pub(crate) fn window(&self) -> Window<E> {
        Window { area: Arc::clone(&self.area), _entry: PhantomData }
    }

    fn available(&self) -> u32 {
        self.produced.wrapping_sub(self.next).min(self.area.size)
    }
}

/// Shows the first entry of a ring, without its consumer. It keeps the ring's memory.
#[derive(Clone)]
pub(crate) struct Window<E> {
    area: Arc<Area>,
    _entry: PhantomData<E>,
}

impl<E: Entry> Window<E> {
    /// The oldest entry that was not released yet. Its consumer may take it meanwhile. *Cost*: two loads if there is none.
    #[inline]
    pub fn first(&self) -> Option<E> {
        let consumed = self.area.half(self.area.consumer).load(Ordering::Relaxed);
        // Partner: the kernel's release of its end, after it has written the entries.
        let produced = self.area.half(self.area.producer).load(Ordering::Acquire);
        let entry = || E::of(|word| self.area.word(consumed, word).load(Ordering::Relaxed));
        (produced != consumed).then(entry)
    }
}

/// Entries to look at, one after the other. Without [`Peeked::release`] they are seen again.
#[must_use = "what is peeked is seen again until `release`"]
pub struct Peeked<'a, E> {
    ring: &'a mut Consumer<E>,
    available: u32,
    taken: u32,
}

impl<E: Entry> Peeked<'_, E> {
    /// How many entries there were at the last look at the kernel's end, those that were not asked for among them.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.ring.available()
    }

    /// Gives the room of all entries that were taken back to the kernel; how many that are.
    #[inline]
    pub fn release(self) -> u32 {
        self.ring.next = self.ring.next.wrapping_add(self.taken);
        // Partner: the kernel's acquire of this end, before it writes there again.
        self.ring.area.half(self.ring.area.consumer).store(self.ring.next, Ordering::Release);
        self.taken
    }
}

impl<E: Entry> Iterator for Peeked<'_, E> {
    type Item = E;

    #[inline]
    fn next(&mut self) -> Option<E> {
        if self.taken == self.available {
            return None;
        }
        let number = self.ring.next.wrapping_add(self.taken);
        self.taken += 1;
        // Ordered by the acquire in `peek`.
        Some(E::of(|word| self.ring.area.word(number, word).load(Ordering::Relaxed)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.available - self.taken) as usize;
        (left, Some(left))
    }
}

impl<E: Entry> ExactSizeIterator for Peeked<'_, E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    const AT: XdpRingOffset = XdpRingOffset { producer: 0, consumer: 64, desc: 320, flags: Some(128) };

    /// Both ends of one ring, whose counters begin shortly before they wrap.
    fn both<E: Entry>(size: u32) -> (Producer<E>, Consumer<E>) {
        let fd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 4_096).unwrap();
        let area = Area::map(fd.as_fd(), 0, &AT, size, E::WORDS).unwrap();
        area.half(area.producer).store(u32::MAX - 1, Ordering::Relaxed);
        area.half(area.consumer).store(u32::MAX - 1, Ordering::Relaxed);
        (Producer::map(fd.as_fd(), 0, &AT, size).unwrap(), Consumer::map(fd.as_fd(), 0, &AT, size).unwrap())
    }

    fn put(ring: &mut Producer<u64>, entries: std::ops::Range<u64>) -> u32 {
        let mut reserved = ring.reserve(entries.clone().count() as u32);
        for entry in entries {
            reserved.put(entry);
        }
        reserved.submit()
    }

    fn take(ring: &mut Consumer<u64>, want: u32) -> Vec<u64> {
        let mut peeked = ring.peek(want);
        let entries: Vec<u64> = peeked.by_ref().collect();
        peeked.release();
        entries
    }

    #[test]
    fn batches_go_through_in_order_beyond_the_wrap() {
        let (mut producer, mut consumer) = both(4);
        let (mut first, mut seen) = (0, Vec::new());
        for round in 0..40_u64 {
            first += u64::from(put(&mut producer, first..first + round % 6));
            seen.extend(take(&mut consumer, (round % 5) as u32));
        }
        seen.extend(take(&mut consumer, 4));
        assert_eq!(seen, (0..first).collect::<Vec<_>>());
        assert!(first > 40, "{first}");
    }

    #[test]
    fn a_full_ring_takes_no_more_until_the_other_end_has_moved() {
        let (mut producer, mut consumer) = both(4);
        assert_eq!(put(&mut producer, 0..6), 4);
        assert_eq!((producer.pending(), put(&mut producer, 6..7)), (4, 0));
        assert_eq!(take(&mut consumer, 1), [0]);
        assert_eq!((producer.pending(), put(&mut producer, 7..9)), (3, 1));
        assert_eq!(take(&mut consumer, 9), [1, 2, 3, 7]);
    }

    #[test]
    fn only_what_is_submitted_and_released_counts() {
        let (mut producer, mut consumer) = both(4);
        let mut reserved = producer.reserve(2);
        assert!(reserved.put(1) && reserved.put(2) && !reserved.put(3));
        drop(reserved);
        assert_eq!(consumer.peek(4).len(), 0);
        put(&mut producer, 5..8);
        let peeked = consumer.peek(2);
        assert_eq!((peeked.len(), peeked.waiting()), (2, 3));
        let mut peeked = consumer.peek(4);
        assert_eq!((peeked.len(), peeked.next(), peeked.next()), (3, Some(5), Some(6)));
        drop(peeked);
        let mut peeked = consumer.peek(4);
        assert_eq!(peeked.next(), Some(5));
        assert_eq!(peeked.release(), 1, "what was not looked at stays");
        let window = consumer.window();
        assert_eq!(window.first(), Some(6));
        assert_eq!(take(&mut consumer, 4), [6, 7]);
        assert_eq!(window.first(), None);
    }

    #[test]
    fn descriptors_lie_as_the_kernel_has_them() {
        let (mut producer, mut consumer) = both::<Descriptor>(4);
        let sent = Descriptor { address: 0x1122_3344_5566_7788, len: 0x99aa_bbcc, options: 0xddee_ff00 };
        let mut reserved = producer.reserve(1);
        assert!(reserved.put(sent));
        reserved.submit();
        let len_at = AT.desc as usize + 2 * 16 + 8;
        assert_eq!(consumer.area.half(len_at).load(Ordering::Relaxed), sent.len, "entry MAX - 1 modulo 4");
        assert_eq!(consumer.peek(1).next(), Some(sent));
    }

    #[test]
    fn the_flag_asks_for_a_wakeup() {
        let (producer, consumer) = both::<u64>(4);
        assert!(!producer.needs_wakeup());
        consumer.area.half(consumer.area.flags).store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }

    #[test]
    fn a_layout_that_cannot_be_is_refused() {
        let fd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        let map = |at: XdpRingOffset, size| Area::map(fd.as_fd(), 0, &at, size, 1).err();
        assert_eq!(map(XdpRingOffset { flags: None, ..AT }, 4), Some(Errno::NOSYS));
        assert_eq!(map(XdpRingOffset { producer: 2, ..AT }, 4), Some(Errno::INVAL));
        assert_eq!(map(XdpRingOffset { consumer: 320, ..AT }, 4), Some(Errno::INVAL));
        assert_eq!(map(AT, 3), Some(Errno::INVAL));
    }
}
