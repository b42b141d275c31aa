//! Who the calling thread is to the kernel.

use std::cell::Cell;
use std::sync::Once;

use rustix::thread::gettid;

/// Not asked for yet.
const UNKNOWN: u32 = 0;

thread_local! {
    static ID: Cell<u32> = const { Cell::new(UNKNOWN) };
}

/// The calling thread's id, never 0. *Cost*: a load; a system call for the first of a thread.
#[inline]
pub fn id() -> u32 {
    match ID.get() {
        UNKNOWN => learn(),
        id => id,
    }
}

#[cold]
fn learn() -> u32 {
    static AT_FORK: Once = Once::new();
    AT_FORK.call_once(|| {
        // SAFETY: `forget` is a function for as long as the process lives, and may run in a child after fork, where
        // little may: it writes a word of its own thread. Without memory for it a child that goes on with locks is
        // taken for its parent.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
    let id = gettid().as_raw_nonzero().get().cast_unsigned();
    ID.set(id);
    id
}

/// The one thread of a forked process has the memory of its parent's, but not its id.
extern "C" fn forget() {
    ID.set(UNKNOWN);
}

/// Does the calling thread run before all threads of normal policies: under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE?
///
/// *Cost*: a system call.
pub fn is_real_time() -> bool {
    matches!(policy(), libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

/// Is it under SCHED_FIFO or SCHED_RR? The kernel stops such a thread if it never sleeps.
///
/// *Cost*: a system call.
pub fn has_fixed_priority() -> bool {
    matches!(policy(), libc::SCHED_FIFO | libc::SCHED_RR)
}

/// The policy of the calling thread.
pub(crate) fn policy() -> libc::c_int {
    /// The thread that calls.
    const THIS_THREAD: libc::pid_t = 0;
    // By number: musl's function of the name refuses to answer for threads, and what glibc's for threads has learnt once it
    // believes whatever another program has changed since.
    // SAFETY: it takes a number and no memory.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, THIS_THREAD) };
    // A thread's children may be meant to have the normal policy: that is no part of its own.
    i32::try_from(policy).unwrap_or(libc::SCHED_OTHER) & !libc::SCHED_RESET_ON_FORK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_is_nobody_else() {
        assert_eq!(id(), gettid().as_raw_nonzero().get().cast_unsigned());
        // SAFETY: the child makes two system calls and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_itself = id() == gettid().as_raw_nonzero().get().cast_unsigned();
            // SAFETY: it ends the process.
            unsafe { libc::_exit(i32::from(!is_itself)) }
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: `status` is a number that outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "it took itself for its parent");
    }
}
