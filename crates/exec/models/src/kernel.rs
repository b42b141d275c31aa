//! What the kernel does with the word of a lock with priority inheritance, futex(2): who waits there is handed the
//! lock. All have the same priority, and there is one lock.
//!
//! Its accesses order nothing: the lock has to do that itself.

use std::collections::VecDeque;

use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, Ordering};
use crate::word::FREE;

/// The bit of the word that says that threads wait here, or did until just now.
const WAITERS: u32 = 1 << 31;

/// To look at the word again before asking the kernel tells loom nothing new.
#[derive(Default)]
pub(crate) struct Patience;

impl Patience {
    pub fn pause(&mut self) -> bool {
        false
    }
}

/// The threads that wait, first come first served.
#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<u32>>,
    woken: Condvar,
}

loom::lazy_static! {
    static ref QUEUE: Queue = Queue::default();
}

fn change(word: &AtomicU32, from: u32, to: u32) -> bool {
    word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// FUTEX_LOCK_PI. It may also say that the caller is to look again.
pub(crate) fn lock(word: &AtomicU32, me: u32) -> bool {
    let mut waiting = QUEUE.waiting.lock().unwrap();
    let now = word.load(Ordering::Relaxed);
    let owner = now & !WAITERS;
    assert_ne!(owner, me, "no thread waits for what it has");
    if owner == FREE {
        return change(word, now, me | (now & WAITERS));
    }
    if !change(word, now, now | WAITERS) {
        return false;
    }
    waiting.push_back(me);
    while waiting.contains(&me) {
        waiting = QUEUE.woken.wait(waiting).unwrap();
    }
    true
}

/// FUTEX_UNLOCK_PI.
pub(crate) fn unlock(word: &AtomicU32, me: u32) {
    let mut waiting = QUEUE.waiting.lock().unwrap();
    let now = word.load(Ordering::Relaxed);
    assert_eq!(now & !WAITERS, me, "who unlocks has it");
    // The kernel sets the bit for whom it hands the lock to, whether or not others wait.
    let next = waiting.pop_front().map_or(FREE, |next| next | WAITERS);
    assert!(change(word, now, next), "nobody changes a word that has the bit");
    QUEUE.woken.notify_all();
}
