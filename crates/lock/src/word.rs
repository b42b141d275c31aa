//! The word that a lock is: 0 when it is free, otherwise the id of the thread that has it, and the bit FUTEX_WAITERS.
//!
//! The kernel reads and writes it too (futex(2), "Priority-inheritance futexes"): it sets the bit before it has a
//! thread wait, gives the lock to a waiter by writing that thread's id with the bit, and writes 0 only if nobody waits.
//! Here nobody changes a word that has the bit. crates/exec/models tries this in every order that threads and the
//! memory model allow, with a model of the kernel.

use crate::kernel::{self, Patience};
use crate::sync::{AtomicU32, Ordering, fence};

/// The word of a lock that nobody has.
pub(crate) const FREE: u32 = 0;

/// See above.
#[derive(Default)]
pub(crate) struct Word(pub AtomicU32);

impl Word {
    /// Takes the lock for the calling thread, whose id is `me`, if it is free.
    #[inline]
    pub fn try_lock(&self, me: u32) -> bool {
        // Acquire: after what the last holder did before its Release.
        self.0.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for it.
    #[inline]
    pub fn lock(&self, me: u32) {
        if !self.try_lock(me) {
            self.wait(me);
        }
    }

    #[cold]
    fn wait(&self, me: u32) {
        let mut patience = Patience::default();
        loop {
            let word = self.0.load(Ordering::Relaxed);
            if word == FREE {
                if self.try_lock(me) {
                    return;
                }
            } else if patience.pause() {
                // It may come free before anybody sleeps for it.
            } else if kernel::lock(&self.0, me) {
                // As the last holder gave it to the kernel.
                fence(Ordering::Acquire);
                return;
            }
        }
    }

    /// Gives it back: to a waiter, if there is one. The caller has it.
    #[inline]
    pub fn unlock(&self, me: u32) {
        if self.0.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.hand_over(me);
        }
    }

    #[cold]
    fn hand_over(&self, me: u32) {
        fence(Ordering::Release);
        kernel::unlock(&self.0, me);
    }
}
