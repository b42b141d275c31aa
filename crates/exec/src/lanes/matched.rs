//! What is left to be followed, and who does: one thread at a time, and no other waits for it.
//!
//! crates/exec/models tries it in every order that threads and the memory model allow.

use std::collections::VecDeque;

use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// What the protocol has matched, and nobody has followed yet.
pub(crate) struct Matched<M> {
    left: Mutex<VecDeque<M>>,
    count: AtomicUsize,
    /// A thread follows it: one at a time, as a match may be followed by its end. It looks after that whether there is more.
    is_followed: AtomicBool,
}

impl<M> Default for Matched<M> {
    fn default() -> Self {
        Matched {
            left: Mutex::new(VecDeque::new()),
            count: AtomicUsize::default(),
            is_followed: AtomicBool::default(),
        }
    }
}

/// While it lives the calling thread follows what has matched.
pub(crate) struct Following<'a>(&'a AtomicBool);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        // What another thread had left before it found the flag set is seen from here on: hence no mere store.
        self.0.swap(false, Ordering::SeqCst);
    }
}

impl<M> Matched<M> {
    /// Is there something to follow, and nobody who does? A thread of the user that follows may be kept from its processor by a
    /// driver that waits for it.
    #[inline]
    pub fn is_any_left(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && !self.is_followed.load(Ordering::SeqCst)
    }

    /// Not from within, and not beside another thread, which goes on.
    pub fn follow(&self) -> Option<Following<'_>> {
        (!self.is_followed.swap(true, Ordering::SeqCst)).then(|| Following(&self.is_followed))
    }

    pub fn leave(&self, matches: impl Iterator<Item = M>) {
        let mut left = self.left.lock();
        left.extend(matches);
        self.count.store(left.len(), Ordering::SeqCst);
    }

    pub fn next_left(&self) -> Option<M> {
        let mut left = self.left.lock();
        let next = left.pop_front();
        self.count.store(left.len(), Ordering::SeqCst);
        next
    }
}
