//! The kernel's half of the lock, and what comes before it is asked.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::thread::sched_yield;

use crate::sync::AtomicU32;
use crate::thread::policy;

/// Pauses, each twice as long as the one before, and then turns given to others. Fewer and a lock that is held for a
/// microsecond costs two system calls and a change of threads; more and a waiter takes the processor from the holder,
/// on one core, for longer.
const PAUSES: u32 = 3;
const TURNS: u32 = PAUSES + 7;

/// Turns of a thread that is not real-time, some 15 us: for so long a step that sends 64 KiB has the lock. Fewer and a
/// writer and the thread that hears its readers hand it to each other through the kernel, 18,000 times a second; more and
/// a waiter is busy for longer where the holder is kept from its processor. A real-time thread lends its priority at once.
const MORE_TURNS: u32 = TURNS + 30;

/// How often a thread of this policy looks before it waits in the kernel.
fn looks_of(policy: libc::c_int) -> u32 {
    match policy {
        // Such a thread gives with a turn all that is left to it of its period (sched(7), "SCHED_DEADLINE").
        libc::SCHED_DEADLINE => PAUSES,
        libc::SCHED_FIFO | libc::SCHED_RR => TURNS,
        _ => MORE_TURNS,
    }
}

/// Where the kernel cannot have a thread wait for the lock (it is built without, or has no memory), how long until the
/// next try. Lower and it takes more of the processor from the holder; higher and the lock is free for longer.
const RETRY: Duration = Duration::from_micros(50);

/// How long to look before a thread waits in the kernel.
#[derive(Default)]
pub(crate) struct Patience {
    looks: u32,
    /// How often in all. Asked for once, before the first turn: each answer is a system call.
    most: Option<u32>,
}

impl Patience {
    /// Lets some time pass; `false` when that is enough.
    pub fn pause(&mut self) -> bool {
        self.looks += 1;
        if self.looks <= PAUSES {
            (0..1 << self.looks).for_each(|_| std::hint::spin_loop());
            return true;
        }
        let goes_on = self.looks <= *self.most.get_or_insert_with(|| looks_of(policy()));
        if goes_on {
            sched_yield();
        }
        goes_on
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_deadline_gives_no_turns_away() {
        let turns = |policy| {
            let mut patience = Patience { most: Some(looks_of(policy)), ..Patience::default() };
            std::iter::repeat_with(|| patience.pause()).take_while(|goes_on| *goes_on).count() as u32 - PAUSES
        };
        let policies = [libc::SCHED_DEADLINE, libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_OTHER];
        assert_eq!(policies.map(turns), [0, 7, 7, 37]);
    }
}
