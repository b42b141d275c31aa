//! The lock as `lock_api` wants it.

use lock_api::GuardNoSend;

use crate::sync::AtomicU32;
use crate::thread;
use crate::waits;
use crate::word::{FREE, Word};

/// The lock without its value.
pub struct RawMutex(Word);

// SAFETY: the word names one thread at a time: only a thread that finds 0 writes its own id, and only the thread it
// names, or the kernel on its behalf, writes anything else. The same thread unlocks, as a guard does not leave it.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex(Word(AtomicU32::new(FREE)));

    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        let me = thread::id();
        if !self.0.try_lock(me) {
            waits::note();
            self.0.lock(me);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock(thread::id())
    }

    #[inline]
    // SAFETY: who calls it has the lock, as the trait says.
    unsafe fn unlock(&self) {
        self.0.unlock(thread::id());
    }
}

// SAFETY: unlocking hands the lock to a waiter of the kernel's, if there is one, whoever else would take it.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    // SAFETY: who calls it has the lock, as the trait says.
    unsafe fn unlock_fair(&self) {
        self.0.unlock(thread::id());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::atomic::Ordering;

    use rustix::thread::futex::WAITERS;

    use crate::{Mutex, MutexGuard};

    /// Waits until a thread waits in the kernel.
    fn await_waiter<T>(mutex: &Mutex<T>) {
        // SAFETY: it is only looked at.
        let word = &unsafe { mutex.raw() }.0.0;
        while word.load(Ordering::SeqCst) & WAITERS == 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_has_it_at_a_time() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 20_000;
        let mutex = Mutex::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut both = mutex.lock();
                        both.0 += 1;
                        std::hint::black_box(&mut both);
                        both.1 += 1;
                    }
                });
            }
        });
        assert_eq!(mutex.into_inner(), (THREADS * ROUNDS, THREADS * ROUNDS));
    }

    #[test]
    fn who_waits_has_it_next() {
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let mut held = order.lock();
            let waits = crate::waits();
            scope.spawn(|| order.lock().push("who waits"));
            await_waiter(&order);
            assert!(order.try_lock().is_none());
            // Other tests of this process wait, too.
            assert!(crate::waits() > waits, "it is counted");
            MutexGuard::bump(&mut held);
            held.push("who gives way");
        });
        assert_eq!(order.into_inner(), ["who waits", "who gives way"]);
    }

    #[test]
    fn a_panic_leaves_it_free() {
        let mutex = Mutex::new(1);
        let panics = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let _held = mutex.lock();
            panic!("on purpose");
        }));
        assert!(panics.is_err());
        assert_eq!(*mutex.try_lock().unwrap(), 1);
    }

    #[test]
    #[should_panic(expected = "a lock that it has")]
    fn nobody_waits_for_himself() {
        let mutex = Mutex::new(());
        let _held = mutex.lock();
        drop(mutex.lock());
    }
}
