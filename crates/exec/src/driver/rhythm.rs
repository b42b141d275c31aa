//! When the next sample is expected, where samples come at a steady interval: who sleeps for it is awake before it comes.
//!
//! A processor takes longer to wake than a sample takes to come, 20 to 90 us where it idles, and not always as long. Who
//! is awake already has the sample at once, and pays with the time that it looks for it. The interval is learnt from samples
//! that come, as are how early or late they are, and how late sleeps end. What comes between two that are expected changes
//! nothing; after some that do not come it sleeps as anybody does, until it has learnt anew.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use taut_base::{Duration, Time};

use crate::driver::alarm::replace;

/// How many intervals in a row are to be alike before the next sample is expected. Lower expects what is none; higher sleeps
/// for more samples first.
const TRUSTED: u32 = 4;
/// How much trust there is at most. Lower and one sample that is missing has it learn anew, higher and it looks more often in
/// vain once the stream has ended.
const MOST: u32 = 8;
/// How much is lost by one that does not come when it is expected: as much as two that do bring back.
const LOST: u32 = 2;

/// What follows sooner is a part of what came before, or comes too fast: who looks for each would look most of the time. Lower
/// and a thread takes the processor nearly whole, higher leaves fast streams to sleeps.
const SHORTEST: Duration = Duration::from_micros(400);
/// The same as a multiple of how long one looks ahead.
const TIMES_AHEAD: i64 = 4;

/// A sleep that ends later than this was not kept by its wake-up but by other threads. Lower and who wakes from a deep sleep
/// is late each time, higher and one such sleep makes the next looks longer.
const LATEST: Duration = Duration::from_micros(200);
/// The part of an interval that who wakes late is awake earlier for, at most. Lower is late where intervals are short, higher
/// looks for most of them.
const LATE_SHARE: i64 = 4;

/// The part of an error by which the next expectation is moved, and that by which the interval is: so that the jitter of one
/// sample moves little, and a clock that runs faster than another one is followed.
const BY_PHASE: i64 = 4;
const BY_PERIOD: i64 = 16;

/// What is known of samples to come. Who has the role changes it, and nobody else looks.
#[derive(Default)]
pub(crate) struct Rhythm {
    /// How much earlier than expected, and later, a sample is looked for. Zero: it is slept for.
    ahead: Duration,
    trust: AtomicU32,
    /// When the next one is expected; while there is no trust, when the last one came.
    at: AtomicI64,
    period: AtomicI64,
    /// When anything came last.
    last: AtomicI64,
    /// How late sleeps end.
    late: AtomicI64,
    /// Was there a sleep since the last one that was expected?
    has_slept: AtomicBool,
}

impl Rhythm {
    pub fn new(ahead: Duration) -> Rhythm {
        Rhythm { ahead, ..Rhythm::default() }
    }

    /// Is anything expected at all?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.ahead > Duration::ZERO
    }

    /// A sample has come.
    pub fn note_come(&self, now: Time) {
        self.pass_over(now);
        let since_last = now.since(Time(replace(&self.last, now.0)));
        if self.trust() < TRUSTED {
            if since_last >= self.shortest() {
                self.learn(now);
            }
            return;
        }
        let off = now.0 - self.at().0;
        if off < -self.ahead.0 {
            return;
        }
        let period = self.period.load(Ordering::Relaxed);
        if period < self.shortest().0 {
            // They have become faster little by little.
            self.trust.store(0, Ordering::Relaxed);
            return self.at.store(now.0, Ordering::Relaxed);
        }
        self.at.store(self.at().0 + period + off / BY_PHASE, Ordering::Relaxed);
        self.period.store(period + off / BY_PERIOD, Ordering::Relaxed);
        self.trust.store((self.trust() + 1).min(MOST), Ordering::Relaxed);
        self.has_slept.store(false, Ordering::Relaxed);
    }

    /// When to look for the next sample, from and until; `None` if it is not known when it comes.
    pub fn next(&self, now: Time) -> Option<(Time, Time)> {
        if !self.is_on() {
            return None;
        }
        self.pass_over(now);
        let most = self.period.load(Ordering::Relaxed) / LATE_SHARE;
        let late = Duration(self.late.load(Ordering::Relaxed).min(most));
        let at = (self.trust() >= TRUSTED).then(|| self.at())?;
        Some((at - self.ahead - late, at + self.ahead))
    }

    /// May it look? Not if it has had no sleep since the last sample: whoever is busy until the next one is expected would take
    /// the whole processor.
    pub fn may_look(&self) -> bool {
        self.has_slept.load(Ordering::Relaxed)
    }

    /// It sleeps.
    pub fn note_sleep(&self) {
        self.has_slept.store(true, Ordering::Relaxed);
    }

    /// A sleep that was to end then has just ended by itself.
    pub fn note_woken(&self, at: Time, now: Time) {
        let late = now.since(at).min(LATEST).0;
        let known = self.late.load(Ordering::Relaxed);
        // One that ends later counts at once, as the next may, too.
        let known = if late > known { late } else { known - (known - late) / BY_PERIOD };
        self.late.store(known, Ordering::Relaxed);
    }

    fn trust(&self) -> u32 {
        self.trust.load(Ordering::Relaxed)
    }

    fn at(&self) -> Time {
        Time(self.at.load(Ordering::Relaxed))
    }

    /// The shortest interval that is expected.
    fn shortest(&self) -> Duration {
        self.ahead.times(TIMES_AHEAD).max(SHORTEST)
    }

    /// What was expected and has not come will not.
    fn pass_over(&self, now: Time) {
        let mut trust = self.trust();
        while trust >= TRUSTED && self.at() + self.ahead < now {
            trust -= LOST;
            let period = Duration(self.period.load(Ordering::Relaxed));
            let next = self.at() + period;
            // What is learnt begins with the last that was expected.
            let at = if trust < TRUSTED { next - period } else { next };
            self.at.store(at.0, Ordering::Relaxed);
            self.trust.store(trust, Ordering::Relaxed);
        }
    }

    fn learn(&self, now: Time) {
        let span = now.since(self.at());
        let off = span.0.saturating_sub(self.period.load(Ordering::Relaxed));
        let is_alike = off.saturating_abs() <= self.ahead.0;
        let trust = if is_alike { self.trust().min(TRUSTED - 1) + 1 } else { 0 };
        let period = if is_alike { span.0 - off / 2 } else { span.0 };
        self.period.store(period, Ordering::Relaxed);
        self.trust.store(trust, Ordering::Relaxed);
        let next = if trust < TRUSTED { now } else { now + Duration(period) };
        self.at.store(next.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: Duration = Duration::from_micros(100);
    const BEGUN: Time = Time(7_000_000_000);

    fn at(us: i64) -> Time {
        BEGUN + Duration::from_micros(us)
    }

    /// One that has learnt from a sample each millisecond, so many.
    fn learnt(samples: i64) -> Rhythm {
        let rhythm = Rhythm::new(AHEAD);
        (0..samples).for_each(|n| rhythm.note_come(at(1_000 * n)));
        rhythm
    }

    /// How many of these were looked for when they came.
    fn seen(rhythm: &Rhythm, samples: impl IntoIterator<Item = Time>) -> usize {
        let is_seen = |now: Time| {
            // Who waits asks before and when its look has ended, not just when something comes.
            let (from, until) =
                rhythm.next(now - Duration::from_micros(666)).unwrap_or((Time::NEVER, Time::NEVER));
            let seen = (from..=until).contains(&now);
            rhythm.note_come(now);
            seen
        };
        samples.into_iter().filter(|now| is_seen(*now)).count()
    }

    #[test]
    fn what_comes_each_millisecond_is_expected_from_the_sixth_on() {
        assert_eq!(learnt(5).next(at(4_100)), None);
        assert_eq!(learnt(6).next(at(5_100)), Some((at(5_900), at(6_100))));
    }

    #[test]
    fn nothing_is_expected_unless_asked_for() {
        let rhythm = Rhythm::new(Duration::ZERO);
        (0..100).for_each(|n| rhythm.note_come(at(1_000 * n)));
        assert_eq!(rhythm.next(at(99_100)), None);
    }

    #[test]
    fn what_comes_at_any_time_is_not_expected() {
        let (rhythm, mut now) = (Rhythm::new(AHEAD), BEGUN);
        for n in 0..1_000_i64 {
            now = now + Duration::from_micros(500 + 700 * (n * n % 7));
            rhythm.note_come(now);
        }
        assert!(rhythm.trust() < TRUSTED);
    }

    #[test]
    fn samples_that_are_early_or_late_are_seen() {
        let jitter = |n: i64| 60 * (n * n % 5 - 2) / 2;
        assert_eq!(seen(&learnt(6), (6..1_006).map(|n| at(1_000 * n + jitter(n)))), 1_000);
    }

    #[test]
    fn a_clock_that_runs_faster_is_followed() {
        // By 200 parts of a million, more than any that is in order.
        let samples = (6..10_006).map(|n| at(1_000 * n) - Duration(200 * n));
        assert_eq!(seen(&learnt(6), samples), 10_000);
    }

    #[test]
    fn what_comes_between_changes_nothing() {
        let rhythm = learnt(10);
        let both = (10..1_010).flat_map(|n| [at(1_000 * n), at(1_000 * n + 30), at(1_000 * n + 450)]);
        assert_eq!(seen(&rhythm, both), 1_000);
    }

    #[test]
    fn one_that_is_missing_is_no_reason_to_sleep_for_the_next() {
        assert_eq!(seen(&learnt(10), (11..111).map(|n| at(1_000 * n))), 100);
    }

    #[test]
    fn once_none_comes_it_looks_in_vain_three_times_and_no_more() {
        let (rhythm, mut now, mut looks) = (learnt(20), at(19_001), 0);
        while let Some((from, until)) = rhythm.next(now) {
            assert!(from > now, "it looks all the time");
            looks += 1;
            now = until + Duration(1);
        }
        assert_eq!(looks, 3);
        assert_eq!(seen(&rhythm, (500..600).map(|n| at(1_000 * n + 333))), 94, "it learns anew");
    }

    #[test]
    fn another_interval_is_learnt() {
        assert_eq!(seen(&learnt(20), (0..100).map(|n| at(20_000 + 3_000 * n))), 94);
    }

    #[test]
    fn what_comes_too_fast_is_not_expected() {
        for span in [20, 150, 200, 250, 399] {
            let rhythm = Rhythm::new(AHEAD);
            let is_expected = |n: i64| {
                rhythm.note_come(at(span * n));
                rhythm.next(at(span * n + 10)).is_some()
            };
            assert!(!(0..1_000).any(is_expected), "{span} us");
        }
    }

    /// As images are, in fragments that take 3 ms.
    #[test]
    fn what_comes_in_many_parts_is_expected_once() {
        let rhythm = Rhythm::new(AHEAD);
        let looks_for = |image: i64| {
            let begun = 33_000 * image;
            let next = rhythm.next(at(begun - 3_000));
            (0..60).for_each(|part| rhythm.note_come(at(begun + 50 * part)));
            next.is_some_and(|(from, until)| (from..=until).contains(&at(begun)))
        };
        assert_eq!((0..60).filter(|image| looks_for(*image)).count(), 54);
    }

    #[test]
    fn who_has_had_no_sleep_does_not_look() {
        let rhythm = learnt(10);
        assert!(!rhythm.may_look());
        rhythm.note_sleep();
        assert!(rhythm.may_look());
        rhythm.note_come(at(10_020));
        assert!(!rhythm.may_look());
    }

    #[test]
    fn what_becomes_faster_little_by_little_is_expected_until_it_is_too_fast() {
        let (rhythm, mut now) = (learnt(20), at(19_000));
        let is_expected = |span: &i64| {
            now = now + Duration::from_micros(*span);
            let next = rhythm.next(now - Duration::from_micros(span / 2));
            rhythm.note_come(now);
            next.inspect(|(from, until)| assert!((*from..=*until).contains(&now), "{span} us")).is_some()
        };
        let last = (100..1_000).rev().take_while(is_expected).last().unwrap();
        assert!((390..=405).contains(&last), "{last} us");
    }

    #[test]
    fn who_wakes_late_sleeps_for_less() {
        let rhythm = learnt(6);
        rhythm.note_woken(at(5_900), at(5_960));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_840), at(6_100))));
        rhythm.note_woken(at(5_840), at(15_840));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_700), at(6_100))), "that was no wake-up");
        rhythm.note_woken(at(0), at(1_000));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_700), at(6_100))), "nor is that");
        (0..200).for_each(|_| rhythm.note_woken(at(0), at(10)));
        let (from, _) = rhythm.next(at(5_100)).unwrap();
        assert!((at(5_880)..=at(5_890)).contains(&from), "{from:?}");
    }
}
