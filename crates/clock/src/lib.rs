//! The clocks, read here and nowhere else.
//!
//! Where the kernel's monotonic clock is a counter of the processor's, each thread reads that counter itself, and asks the
//! kernel once in a millisecond what time it is (`docs/adr/0035-the-processors-counter.md`). Elsewhere it asks each time.

mod anchor;
mod counter;

use nix::time::{ClockId, clock_gettime};
use taut_base::{Time, Timestamp};

/// Nanoseconds of a second.
pub const NS_PER_S: i64 = 1_000_000_000;

/// The monotonic clock, the same for all processes of a machine: lanes carry it. No thread's goes back; those of two
/// threads are together to some ten ns.
///
/// *Units*: ns. *Cost*: the processor's counter, 11 ns where the kernel's own reading takes 22; once in a millisecond and
/// where there is no such counter, that.
#[inline]
pub fn monotonic_now() -> Time {
    Time(counter::now_ns())
}

/// The wall clock, for source timestamps only: no timer depends on it. *Cost*: one vDSO call.
#[inline]
pub fn wall_clock_now() -> Timestamp {
    let (seconds, ns) = read(ClockId::CLOCK_REALTIME);
    Timestamp::from_unix(seconds, ns)
}

/// The kernel's monotonic clock. It counts from the start of the machine: 292 years from there the two would not do.
#[inline]
fn kernel_ns() -> i64 {
    let (seconds, ns) = read(ClockId::CLOCK_MONOTONIC);
    seconds.wrapping_mul(NS_PER_S).wrapping_add(ns)
}

/// Whole seconds, and ns. Neither clock can be missing.
#[inline]
fn read(clock: ClockId) -> (i64, i64) {
    let time = clock_gettime(clock).expect("invariant: Linux has both clocks");
    (time.tv_sec(), time.tv_nsec())
}
