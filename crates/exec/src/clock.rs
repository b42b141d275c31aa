//! The time of a write, by both clocks.

use std::sync::atomic::{AtomicI64, Ordering};

use taut_base::{Time, Timestamp};
pub(crate) use taut_clock::NS_PER_S;
pub use taut_clock::{monotonic_now, wall_clock_now};

/// How old the known difference of the two clocks may be. It changes only when somebody sets the time: lower reads
/// a second clock more often, higher and what is written just after that has the old time. *Units*: ns.
const KNOWN_FOR: i64 = 1_000_000;

/// A difference that is another one by less than so many ns is the same. Lower takes what passes between two readings
/// for a time that was set, higher overlooks one.
const TOGETHER: i64 = 1_000;

/// Of how many readings the first difference is the best. Lower and one during which the thread was stopped may count.
const FIRST_READINGS: usize = 4;

/// Wall clock less monotonic clock in ns, and until when that is known.
static DIFFERENCE: AtomicI64 = AtomicI64::new(0);
static KNOWN_UNTIL: AtomicI64 = AtomicI64::new(i64::MIN);

/// When a write begins.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Its source timestamp.
    pub timestamp: Timestamp,
    /// The same by the monotonic clock, if that was read.
    pub(crate) begun: Option<Time>,
}

impl Moment {
    /// Now, by both clocks. *Cost*: one reading of the monotonic clock; another one and one of the wall clock once in a millisecond.
    #[inline]
    pub fn now() -> Moment {
        let now = monotonic_now();
        if now.0 >= KNOWN_UNTIL.load(Ordering::Relaxed) {
            learn_difference(now);
        }
        let timestamp = Timestamp::from_unix_ns(now.0.saturating_add(DIFFERENCE.load(Ordering::Relaxed)));
        Moment { timestamp, begun: Some(now) }
    }

    /// The source timestamp for a writer whose timestamps may not fall below `last`. The clock, put back or behind a time of
    /// the caller's, stands there meanwhile; of the caller's own times one that falls, or TIME_INVALID, is `None`.
    pub(crate) fn not_before(self, last: Timestamp) -> Option<Timestamp> {
        let is_clock = self.begun.is_some();
        let timestamp = if is_clock { self.timestamp.max(last) } else { self.timestamp };
        (timestamp >= last && timestamp != Timestamp::INVALID).then_some(timestamp)
    }
}

impl From<Timestamp> for Moment {
    /// A time of the caller's own.
    fn from(timestamp: Timestamp) -> Moment {
        Moment { timestamp, begun: None }
    }
}

/// Both clocks run alike, as the kernel slews them together. So a difference that is a little another one is the
/// same, read less well: times do not go back and forth by it.
#[cold]
fn learn_difference(now: Time) {
    let known = DIFFERENCE.load(Ordering::Relaxed);
    // Later readings correct none that was a little wrong, so the first is taken again where it may be.
    let readings = if known == 0 { FIRST_READINGS } else { 1 };
    let mut before = now.0;
    let readings = (0..readings).map(|_| read_difference(&mut before));
    let (difference, error) = readings.min_by_key(|(_, error)| *error).unwrap_or_default();
    if difference.abs_diff(known) > error.max(TOGETHER).unsigned_abs() {
        DIFFERENCE.store(difference, Ordering::Relaxed);
    }
    KNOWN_UNTIL.store(now.0.saturating_add(KNOWN_FOR), Ordering::Relaxed);
}

/// The difference, and by how much it may be too large: what has passed since the monotonic clock was read `before`. That
/// is this reading then, for the next.
fn read_difference(before: &mut i64) -> (i64, i64) {
    let wall = wall_clock_now().to_unix_ns();
    let after = monotonic_now().0;
    let error = after.saturating_sub(*before);
    (wall.saturating_sub(std::mem::replace(before, after)), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_by_both_clocks() {
        let mut last = 0;
        for _ in 0..10_000 {
            let before = wall_clock_now().to_unix_ns();
            let (moment, after) = (Moment::now(), wall_clock_now().to_unix_ns());
            let ns = moment.timestamp.to_unix_ns();
            let slack = 50_000;
            assert!(ns + slack >= before && ns <= after + slack, "{before} {ns} {after}");
            assert!(ns >= last, "it goes back by {} ns", last - ns);
            last = ns;
        }
    }
}
