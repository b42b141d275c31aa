//! Three kinds of time that must not be mixed up: a point on the monotonic clock, a span, and
//! the wall clock as it travels. RTPS 2.5 §9.3.2.1, DCPS 1.4 Duration_t.

use std::ops::{Add, Sub};

const NS_PER_S: i64 = 1_000_000_000;

/// A point on the monotonic clock of whoever drives the core. *Units*: ns since an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub i64);

/// A span of time. *Units*: ns. *Range*: 0 to infinite; arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub i64);

/// A point of the wall clock as INFO_TS carries it. *Units*: seconds since 1970 and 2^-32 s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01 UTC.
    pub seconds: u32,
    /// 2^-32 s.
    pub fraction: u32,
}

impl Time {
    /// Later than every timer.
    pub const NEVER: Time = Time(i64::MAX);
    /// Earlier than every clock: what is wanted then is to be done at once, and has waited for no time yet.
    pub const AT_ONCE: Time = Time(i64::MIN);

    /// The span since `earlier`, 0 if it is later.
    pub fn since(self, earlier: Time) -> Duration {
        if self <= earlier {
            return Duration::ZERO;
        }
        Duration(i64::try_from(self.0.abs_diff(earlier.0)).unwrap_or(i64::MAX))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        if span == Duration::INFINITE { Time::NEVER } else { Time(self.0.saturating_add(span.0)) }
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// DURATION_ZERO.
    pub const ZERO: Duration = Duration(0);
    /// DURATION_INFINITE.
    pub const INFINITE: Duration = Duration(i64::MAX);

    /// Whole seconds.
    pub const fn from_secs(s: i64) -> Duration {
        Duration(s.saturating_mul(NS_PER_S))
    }

    /// Milliseconds.
    pub const fn from_millis(ms: i64) -> Duration {
        Duration(ms.saturating_mul(1_000_000))
    }

    /// Microseconds.
    pub const fn from_micros(us: i64) -> Duration {
        Duration(us.saturating_mul(1_000))
    }

    /// Nanoseconds.
    pub const fn from_nanos(ns: i64) -> Duration {
        Duration(ns)
    }

    /// Is it DURATION_INFINITE?
    pub fn is_infinite(self) -> bool {
        self == Duration::INFINITE
    }

    /// This span `n` times.
    #[must_use]
    pub fn times(self, n: i64) -> Duration {
        if self.is_infinite() { self } else { Duration(self.0.saturating_mul(n)) }
    }

    /// As who gets it reads it: what the wire has no seconds for is infinite.
    #[must_use]
    pub fn as_told(self) -> Duration {
        if self.to_wire().0 == i32::MAX { Duration::INFINITE } else { self }
    }

    /// As on the wire: seconds and 2^-32 s; infinite is 0x7fffffff, 0xffffffff.
    pub fn to_wire(self) -> (i32, u32) {
        let seconds = self.0 / NS_PER_S;
        match i32::try_from(seconds) {
            Ok(seconds) if !self.is_infinite() => (seconds, ns_to_fraction((self.0 % NS_PER_S).max(0))),
            _ => (i32::MAX, u32::MAX),
        }
    }

    /// From the wire. `None` if negative. Any span of 0x7fffffff s is infinite, as the several
    /// vendors write different fractions with it.
    pub fn from_wire(seconds: i32, fraction: u32) -> Option<Duration> {
        match seconds {
            i32::MIN..=-1 => None,
            i32::MAX => Some(Duration::INFINITE),
            _ => Some(Duration(i64::from(seconds) * NS_PER_S + fraction_to_ns(fraction))),
        }
    }
}

impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Duration {
        i64::try_from(span.as_nanos()).map_or(Duration::INFINITE, Duration)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(span: Duration) -> std::time::Duration {
        if span.is_infinite() {
            return std::time::Duration::MAX;
        }
        std::time::Duration::from_nanos(u64::try_from(span.0).unwrap_or(0))
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_infinite() {
            return f.write_str("infinite");
        }
        write!(f, "{:?}", std::time::Duration::from(*self))
    }
}

/// As [`std::time::Duration`] shows one.
impl std::fmt::Debug for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Timestamp {
    /// Both words in one, seconds first, so that the order of numbers is the order of times.
    pub const fn to_bits(self) -> u64 {
        (self.seconds as u64) << 32 | self.fraction as u64
    }

    /// The inverse of [`Timestamp::to_bits`].
    pub const fn from_bits(bits: u64) -> Timestamp {
        Timestamp { seconds: (bits >> 32) as u32, fraction: bits as u32 }
    }

    /// TIME_INVALID.
    pub const INVALID: Timestamp = Timestamp { seconds: u32::MAX, fraction: u32::MAX };

    /// From ns since 1970; saturates at both ends of the 32-bit seconds.
    pub fn from_unix_ns(ns: i64) -> Timestamp {
        Timestamp::from_unix(ns.max(0) / NS_PER_S, ns.max(0) % NS_PER_S)
    }

    /// From whole seconds since 1970 and the ns below one; saturates as [`Timestamp::from_unix_ns`] does.
    #[inline]
    pub fn from_unix(seconds: i64, ns: i64) -> Timestamp {
        let seconds = u32::try_from(seconds.max(0)).unwrap_or(u32::MAX - 1);
        Timestamp { seconds, fraction: ns_to_fraction(ns) }
    }

    /// ns since 1970.
    pub fn to_unix_ns(self) -> i64 {
        i64::from(self.seconds) * NS_PER_S + fraction_to_ns(self.fraction)
    }
}

/// Rounds up, so that a value that came from whole ns comes back as the same.
fn ns_to_fraction(ns: i64) -> u32 {
    let scaled = ((ns as u64) << 32).div_ceil(NS_PER_S as u64);
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

/// To the nearest, as there are vendors that round fractions down: what they call 100 ms is no less than that.
fn fraction_to_ns(fraction: u32) -> i64 {
    let nearest = (u64::from(fraction) * NS_PER_S as u64 + (1 << 31)) >> 32;
    (nearest as i64).min(NS_PER_S - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_survive_the_wire() {
        for ns in [0, 1, 999_999_999, 500_000_000, 123_456_789, 20_000_000_001] {
            let (s, f) = Duration(ns).to_wire();
            assert_eq!(Duration::from_wire(s, f), Some(Duration(ns)));
            assert_eq!(Timestamp::from_unix_ns(ns).to_unix_ns(), ns);
        }
    }

    #[test]
    fn fractions_are_read_to_the_nearest_nanosecond() {
        for (ms, down) in [(100, 0x1999_9999), (200, 858_993_459), (1, 4_294_967), (999, 4_290_672_328)] {
            for fraction in [down, down + 1] {
                assert_eq!(
                    Duration::from_wire(3, fraction),
                    Some(Duration::from_millis(3_000 + ms)),
                    "{fraction}"
                );
            }
        }
        assert_eq!(Duration::from_wire(0, u32::MAX), Some(Duration(999_999_999)), "less than a second");
    }

    #[test]
    fn a_span_is_shown_as_that_of_the_standard_library() {
        assert_eq!(format!("{:?}", Duration::from_nanos(26_364_799)), "26.364799ms");
        assert_eq!(format!("{:?}", [Duration::from_secs(2), Duration::INFINITE]), "[2s, infinite]");
        assert_eq!(Duration::from_nanos(1_000), Duration::from_micros(1));
    }

    #[test]
    fn infinite_and_negative() {
        assert_eq!(Duration::INFINITE.to_wire(), (i32::MAX, u32::MAX));
        assert_eq!(Duration::from_wire(i32::MAX, 0), Some(Duration::INFINITE));
        assert_eq!(Duration::from_wire(-1, 0), None);
        assert_eq!(Time(5) + Duration::INFINITE, Time::NEVER);
    }
}
