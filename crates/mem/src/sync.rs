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

/// The same for loom, which does not look into the queue.
#[cfg(loom)]
pub(crate) struct Numbers(loom::sync::Mutex<Vec<u32>>);

#[cfg(loom)]
impl Numbers {
    pub fn of(count: u32) -> Numbers {
        Numbers(loom::sync::Mutex::new((0..count).collect()))
    }

    pub fn pop(&self) -> Option<u32> {
        self.0.lock().unwrap().pop()
    }

    pub fn push(&self, number: u32) {
        self.0.lock().unwrap().push(number);
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
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
