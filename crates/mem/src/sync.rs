//! The atomics of this crate, in one place so that loom can put its own there.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

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
