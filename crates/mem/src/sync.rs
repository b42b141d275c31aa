//! The atomics of this crate, in one place so that loom can put its own there.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Numbers that any thread puts and takes, without a lock.
#[cfg(not(loom))]
pub(crate) struct Numbers(crossbeam_queue::ArrayQueue<u32>);

#[cfg(not(loom))]
impl Numbers {
    /// Those below `count`, and room for no more.
    pub fn of(count: u32) -> Numbers {
        let numbers = Numbers(crossbeam_queue::ArrayQueue::new((count as usize).max(1)));
        (0..count).for_each(|number| numbers.push(number));
        numbers
    }

    /// What another has put before comes before what is done with it.
    #[inline]
    pub fn pop(&self) -> Option<u32> {
        self.0.pop()
    }

    #[inline]
    pub fn push(&self, number: u32) {
        let pushed = self.0.push(number);
        debug_assert!(pushed.is_ok(), "each is there once");
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The same for loom, which does not look into that queue: a bit for each, of few.
#[cfg(loom)]
pub(crate) struct Numbers(AtomicU64);

#[cfg(loom)]
impl Numbers {
    pub fn of(count: u32) -> Numbers {
        Numbers(AtomicU64::new((1 << count) - 1))
    }

    pub fn pop(&self) -> Option<u32> {
        let bits = self.0.load(Ordering::Relaxed);
        let number = (bits != 0).then(|| bits.trailing_zeros())?;
        let others = bits & !(1 << number);
        // In the models one thread takes numbers: a set that has changed has more of them, and the next try may find it.
        self.0.compare_exchange(bits, others, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(number)
    }

    pub fn push(&self, number: u32) {
        self.0.fetch_or(1 << number, Ordering::Release);
    }

    pub fn len(&self) -> usize {
        self.0.load(Ordering::Relaxed).count_ones() as usize
    }
}

/// A store with Release, and a SeqCst fence after it.
///
/// On x86-64 one exchange does both at less than the price of the fence alone: no load passes it, neither
/// in the processor nor in the compiler, which moves no load before an acquiring one. Other processors and
/// the models of loom and Miri let a relaxed load pass an exchange.
#[inline]
pub fn store_and_fence(word: &AtomicU64, value: u64) {
    if cfg!(all(target_arch = "x86_64", not(loom), not(miri))) {
        word.swap(value, Ordering::SeqCst);
    } else {
        word.store(value, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}
