//! How often a lock was found taken.

use std::sync::atomic::{AtomicU64, Ordering};

/// Of all locks of the process: beside each it would be a word more in each, and nobody wants it there.
static WAITS: AtomicU64 = AtomicU64::new(0);

/// How often a thread of this process had to wait for a lock of this crate since the process began.
pub fn waits() -> u64 {
    WAITS.load(Ordering::Relaxed)
}

#[cold]
pub(crate) fn note() {
    WAITS.fetch_add(1, Ordering::Relaxed);
}
