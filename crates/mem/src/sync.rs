//! The atomics of this crate, in one place so that loom can put its own there.

/// No model of loom has it change.
pub(crate) use std::sync::atomic::AtomicPtr;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Numbers that any thread puts and takes, without a lock: a stack, so that memory that was used last is used again first.
pub(crate) struct Numbers {
    /// In its lower half one more than the number on top, or 0 if there is none. The upper half counts those that were
    /// taken: who looked at the one on top, and finds it there again with another below, sees that it was away
    /// meanwhile, unless 2^32 were taken in between.
    top: AtomicU64,
    /// What lies below each, written in the same way.
    below: Box<[AtomicU32]>,
}

impl Numbers {
    /// Those below `count`, the first on top.
    pub fn of(count: u32) -> Numbers {
        let below = (0..count).map(|number| AtomicU32::new(if number + 1 < count { number + 2 } else { 0 }));
        Numbers { top: AtomicU64::new(u64::from(count > 0)), below: below.collect() }
    }

    /// What others have put before comes before what is done with it.
    #[inline]
    pub fn pop(&self) -> Option<u32> {
        // Partner: push. Each change of the word is an exchange, so all that were put come before, and not the last alone.
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let number = (top as u32).checked_sub(1)?;
            let below = self.below.get(number as usize)?.load(Ordering::Relaxed);
            let next = ((top >> 32) + 1) << 32 | u64::from(below);
            match self.top.compare_exchange_weak(top, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(changed) => top = changed,
            }
        }
    }

    /// Puts one that is not in here.
    #[inline]
    pub fn push(&self, number: u32) {
        let Some(below) = self.below.get(number as usize) else { return };
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            below.store(top as u32, Ordering::Relaxed);
            let next = top >> 32 << 32 | u64::from(number + 1);
            // Partner: pop.
            match self.top.compare_exchange_weak(top, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => top = changed,
            }
        }
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
