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
    use std::time::{Duration, Instant};

    use rustix::thread::futex::WAITERS;

    use crate::{Mutex, MutexGuard};

    /// Does a thread wait in the kernel?
    fn has_waiter<T>(mutex: &Mutex<T>) -> bool {
        // SAFETY: it is only looked at.
        let word = &unsafe { mutex.raw() }.0.0;
        word.load(Ordering::SeqCst) & WAITERS != 0
    }

    /// Waits until one does.
    fn await_waiter<T>(mutex: &Mutex<T>) {
        while !has_waiter(mutex) {
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

    /// Has the calling thread run under SCHED_DEADLINE. `false` without the privilege.
    fn run_in_each(period: Duration) -> bool {
        let period = period.as_nanos() as u64;
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: libc::SCHED_DEADLINE as u32,
            sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: period / 100,
            sched_deadline: period,
            sched_period: period,
        };
        // SAFETY: of the calling thread, without flags; the attributes outlive the call and say how long they are.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
    }

    /// It has none of the processor in the rest of a period in which it gives a turn away.
    #[test]
    fn who_has_a_deadline_waits_in_the_kernel_at_once() {
        const PERIOD: Duration = Duration::from_secs(2);
        let mutex = Mutex::new(());
        let waited = std::thread::scope(|scope| {
            let held = mutex.lock();
            let waiter = scope.spawn(|| {
                run_in_each(PERIOD).then(|| {
                    let begun = Instant::now();
                    drop(mutex.lock());
                    begun.elapsed()
                })
            });
            while !waiter.is_finished() && !has_waiter(&mutex) {
                std::thread::yield_now();
            }
            drop(held);
            waiter.join().unwrap()
        });
        match waited {
            None => println!("not tested: no privilege for SCHED_DEADLINE"),
            Some(waited) => assert!(waited < PERIOD, "{waited:?}"),
        }
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
