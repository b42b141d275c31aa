//! The two clocks, read here and nowhere below.

use std::sync::OnceLock;

use nix::time::{ClockId, clock_gettime};
use taut_base::{Time, Timestamp};

const NS_PER_S: i64 = 1_000_000_000;

/// The monotonic clock. *Units*: ns since the first call in this process, from 1 s on, so that a span
/// before the start can still be told. *Cost*: one vDSO call.
#[inline]
pub fn monotonic_now() -> Time {
    static START_NS: OnceLock<i64> = OnceLock::new();
    let (seconds, ns) = read(ClockId::CLOCK_MONOTONIC);
    let now = seconds.saturating_mul(NS_PER_S).saturating_add(ns);
    Time(now - *START_NS.get_or_init(|| now - NS_PER_S))
}

/// The wall clock, for source timestamps only: no timer depends on it. *Cost*: one vDSO call.
#[inline]
pub fn wall_clock_now() -> Timestamp {
    let (seconds, ns) = read(ClockId::CLOCK_REALTIME);
    Timestamp::from_unix(seconds, ns)
}

/// Whole seconds, and ns. Neither clock can be missing.
#[inline]
fn read(clock: ClockId) -> (i64, i64) {
    let time = clock_gettime(clock).expect("invariant: Linux has both clocks");
    (time.tv_sec(), time.tv_nsec())
}
