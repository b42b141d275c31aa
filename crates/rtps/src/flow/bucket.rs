//! A token bucket without a clock: what one destination may be sent, and when.
//!
//! *Source*: the generic cell rate algorithm (ITU-T I.371, annex A): one time says how full the bucket is, that at which
//! it is full again. Owns nothing else; must never round in favour of who sends.

use taut_base::Time;

/// How much may be sent to each destination.
///
/// *Units*: bytes of frames of Ethernet, with the headers of IP and UDP. Within any span of time no more goes to one
/// destination than `bytes_per_second` times the span, plus `burst`; more only where one datagram is larger than `burst`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxRate {
    /// So much in each second. *Range*: from 1,000 on; less counts as that.
    pub bytes_per_second: u64,
    /// So much at once, after a pause. *Range*: at least 1; twice the largest datagram leaves a quarter for writers with a
    /// TRANSPORT_PRIORITY above 0.
    pub burst: u64,
}

const SECOND_NS: i128 = 1_000_000_000;
/// A rate below makes times that no clock shows.
const LEAST: u64 = 1_000;

impl MaxRate {
    /// How long it takes to send so much. Never too short.
    fn span(&self, bytes: i64) -> i128 {
        let rate = i128::from(self.bytes_per_second.max(LEAST));
        let product = i128::from(bytes).saturating_mul(SECOND_NS);
        product.saturating_add(rate.saturating_sub(1)).div_euclid(rate)
    }

    pub(crate) fn burst(&self) -> i64 {
        i64::try_from(self.burst).unwrap_or(i64::MAX).max(1)
    }

    /// What is sent in a time of so many nanoseconds.
    pub(crate) fn within(&self, ns: i64) -> i64 {
        let rate = i128::from(self.bytes_per_second.max(LEAST));
        i64::try_from(rate.saturating_mul(i128::from(ns)).div_euclid(SECOND_NS)).unwrap_or(i64::MAX)
    }
}

/// What one destination may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    /// When it is full again, in nanoseconds.
    full_at: i128,
}

impl Bucket {
    /// A full one.
    pub const FULL: Bucket = Bucket { full_at: i128::MIN };

    /// How much may be sent now; below 0 it has been more than it held.
    pub fn level(&self, now: Time, max: &MaxRate) -> i64 {
        let missing = self.full_at.saturating_sub(i128::from(now.0)).max(0);
        let rate = i128::from(max.bytes_per_second.max(LEAST));
        let missing = missing.saturating_mul(rate).saturating_add(SECOND_NS - 1).div_euclid(SECOND_NS);
        max.burst().saturating_sub(i64::try_from(missing).unwrap_or(i64::MAX))
    }

    /// Is it full?
    pub fn is_full(&self, now: Time) -> bool {
        self.full_at <= i128::from(now.0)
    }

    /// So much is sent now.
    pub fn take(&mut self, now: Time, bytes: i64, max: &MaxRate) {
        self.full_at = self.full_at.max(i128::from(now.0)).saturating_add(max.span(bytes));
    }

    /// From when on so much may be sent; what is more than the burst never could be.
    pub fn ready_at(&self, bytes: i64, max: &MaxRate) -> Time {
        let spare = i128::from(max.burst().saturating_sub(bytes).max(0));
        let rate = i128::from(max.bytes_per_second.max(LEAST));
        let spare = spare.saturating_mul(SECOND_NS).div_euclid(rate);
        let at = self.full_at.saturating_sub(spare);
        Time(i64::try_from(at.max(i128::from(i64::MIN))).unwrap_or(i64::MAX - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::Rng;

    /// Whatever is asked for whenever: within any span no more than the rate and the burst, and what may be sent may be at
    /// the time that was told, and not a nanosecond before.
    #[test]
    fn no_window_holds_more_than_the_rate_and_the_burst() {
        for seed in 1..=300 {
            let mut rng = Rng::new(seed);
            let max = MaxRate { bytes_per_second: 1_000 << rng.below(24), burst: 1_500 + rng.below(200_000) };
            let (mut bucket, mut now) = (Bucket::FULL, Time(i64::try_from(rng.below(1 << 40)).unwrap()));
            let mut sent: Vec<(Time, i64)> = Vec::new();
            for _ in 0..60 {
                let bytes = 1 + i64::try_from(rng.below(max.burst)).unwrap();
                let idle = rng.below(3) == 0;
                now = Time(now.0 + if idle { i64::try_from(rng.below(1 << 30)).unwrap() } else { 0 });
                let ready = bucket.ready_at(bytes, &max);
                if ready > now {
                    assert!(bucket.level(Time(ready.0 - 1), &max) < bytes, "seed {seed}: it could be sooner");
                    now = ready;
                }
                assert!(bucket.level(now, &max) >= bytes, "seed {seed}: {bytes} B at {now:?}");
                bucket.take(now, bytes, &max);
                sent.push((now, bytes));
            }
            for from in 0..sent.len() {
                let mut sum = 0;
                for (at, bytes) in &sent[from..] {
                    sum += bytes;
                    let most = max.within(at.0 - sent[from].0.0) + max.burst();
                    assert!(sum <= most, "seed {seed}: {sum} B within {:?}", at.since(sent[from].0));
                }
            }
            // A pause fills it, and no more than that.
            let later = Time(i64::try_from(bucket.full_at).unwrap());
            assert!(!bucket.is_full(Time(later.0 - 1)) && bucket.is_full(later));
            assert_eq!(bucket.level(Time(later.0 + (1 << 40)), &max), max.burst());
        }
    }

    #[test]
    fn numbers_at_their_ends_do_no_harm() {
        let max = MaxRate { bytes_per_second: 0, burst: u64::MAX };
        let mut bucket = Bucket::FULL;
        for _ in 0..10 {
            bucket.take(Time(i64::MAX), i64::MAX, &max);
        }
        assert!(bucket.level(Time(0), &max) <= 0);
        assert!(bucket.ready_at(i64::MAX, &max) < Time::NEVER);
        let huge = MaxRate { bytes_per_second: u64::MAX, burst: 0 };
        assert_eq!(Bucket::FULL.level(Time(0), &huge), 1);
        assert!(huge.within(i64::MAX) > 0);
    }
}
