//! The one clock of all processes of a machine, and the pace of an open loop.

use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// A wait may look for data so long before it sleeps. Longer than any here does, that CPU time could hide work; shorter, a
/// look before a sleep would count as one after it.
const LOOK_NS: u64 = 60_000;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// How long this thread has run.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).expect("Linux has this clock").num_nanoseconds() as u64
}

/// The last wait of a sender, or all of its looks if it spins.
pub struct Waited {
    since_ns: u64,
    cpu_ns: u64,
    look_ns: u64,
}

impl Waited {
    /// Begins; who spins never sleeps, however long it looks.
    pub fn begin(spin: bool) -> Waited {
        let look_ns = if spin { u64::MAX } else { LOOK_NS };
        Waited { since_ns: now_ns(), cpu_ns: thread_cpu_ns(), look_ns }
    }

    /// The CPU time of this thread since then: what is more than it can have had before, or than a look takes.
    pub fn cpu_since_ns(&self, due_ns: u64) -> u64 {
        let used_ns = thread_cpu_ns() - self.cpu_ns;
        used_ns.saturating_sub(due_ns.saturating_sub(self.since_ns).min(self.look_ns))
    }
}

/// Sleeps until then, or looks at the clock until then; 0 is at once. True if there was something to wait for.
pub fn wait_until(then_ns: u64, spin: bool) -> bool {
    if then_ns == 0 || now_ns() >= then_ns {
        return false;
    }
    if spin {
        while now_ns() < then_ns {
            std::hint::spin_loop();
        }
        return true;
    }
    let then = nix::sys::time::TimeSpec::nanoseconds(then_ns as i64);
    // A signal ends the sleep early: sleep again. The time is absolute, so nothing adds up.
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &then).is_err() {}
    true
}

/// What is left until then.
pub fn left(then_ns: u64) -> Duration {
    Duration::from_nanos(then_ns.saturating_sub(now_ns()))
}
