//! The two clocks, read here and nowhere below.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use taut_base::{Time, Timestamp};

/// The monotonic clock. *Units*: ns since the first call in this process, from 1 s on, so that a span
/// before the start can still be told. *Cost*: one vDSO call.
pub fn monotonic_now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    Time(1_000_000_000 + i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX / 2))
}

/// The wall clock, for source timestamps only: no timer depends on it.
pub fn wall_clock_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ns(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
