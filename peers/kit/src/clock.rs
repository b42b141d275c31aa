//! The one clock of all processes of a machine, and the pace of an open loop.

use std::time::Duration;

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has CLOCK_MONOTONIC");
    time.num_nanoseconds() as u64
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
