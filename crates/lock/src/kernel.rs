//! The kernel's half of the lock, and what comes before it is asked.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::thread::sched_yield;

use crate::sync::AtomicU32;

/// Pauses, each twice as long as the one before, and then turns given to others. Fewer and a lock that is held for a
/// microsecond costs two system calls and a change of threads; more and a waiter takes the processor from the holder,
/// on one core, for longer, and lends its priority later.
const PAUSES: u32 = 3;
const TURNS: u32 = 7;

/// Where the kernel cannot have a thread wait for the lock (it is built without, or has no memory), how long until the
/// next try. Lower and it takes more of the processor from the holder; higher and the lock is free for longer.
const RETRY: Duration = Duration::from_micros(50);

/// How long to look before a thread waits in the kernel.
#[derive(Default)]
pub(crate) struct Patience(u32);

impl Patience {
    /// Lets some time pass; `false` when that is enough.
    pub fn pause(&mut self) -> bool {
        self.0 += 1;
        match self.0 {
            ..=PAUSES => (0..1 << self.0).for_each(|_| std::hint::spin_loop()),
            _ if self.0 <= PAUSES + TURNS => sched_yield(),
            _ => return false,
        }
        true
    }
}

/// Waits for the lock, whose holder runs at least at this thread's priority meanwhile. Whether the thread has it then;
/// otherwise it is to look again.
pub(crate) fn lock(word: &AtomicU32, _me: u32) -> bool {
    match futex::lock_pi(word, Flags::PRIVATE, None) {
        Ok(()) => return true,
        Err(Errno::DEADLK) => panic!("invariant: no thread waits for a lock that it has"),
        // It was about to be given back.
        Err(Errno::AGAIN | Errno::INTR) => {}
        Err(_) => std::thread::sleep(RETRY),
    }
    false
}

/// Gives it to the waiter of the highest priority, or to nobody.
pub(crate) fn unlock(word: &AtomicU32, _me: u32) {
    while let Err(errno) = futex::unlock_pi(word, Flags::PRIVATE) {
        // Somebody is about to wait.
        let again = matches!(errno, Errno::AGAIN | Errno::INTR);
        assert!(again, "invariant: who unlocks has the lock: {errno}");
    }
}
