//! When the next sample is expected, where samples come at a steady interval: who sleeps for it is awake before it comes.
//!
//! A processor takes longer to wake than a sample takes to come, 20 to 90 us where it idles, and not always as long. Who
//! is awake already has the sample at once, and pays with the time that it looks for it. The interval is learnt from samples
//! that come, as are how early or late they are, and how late sleeps end. What comes between two that are expected changes
//! nothing; after some that do not come it sleeps as anybody does, until it has learnt anew.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

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
/// Who looks has slept for this part of the interval in it. Lower and who is busy besides takes nearly all of the processor, of
/// which the kernel leaves 95 % to a thread under SCHED_FIFO; higher and it does not look though it could.
const REST_SHARE: i64 = 10;
/// So many gaps in a row that are alike, the last of them before anything is expected, are another interval. Lower takes jitter
/// for one, higher and a stream that has become faster is slept for longer.
const FASTER: u32 = 2 * TRUSTED;

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
    /// When anything came last, how long after what came before, and how many such gaps in a row were alike.
    last: AtomicI64,
    gap: AtomicI64,
    gaps: AtomicU32,
    /// How late sleeps end.
    late: AtomicI64,
    /// Who slept last, and for how long since a sample was expected.
    sleeper: AtomicU32,
    slept: AtomicI64,
    /// Has a look just found something, which may be one that is expected?
    has_found: AtomicBool,
    awake: AtomicU64,
    asleep: AtomicU64,
    missed: AtomicU64,
}

/// What has become of samples that were expected, as `wake_ahead` has it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Steady {
    /// The interval at which they come; `None` while none is expected.
    pub interval: Option<Duration>,
    /// How many came when they were expected, and were looked for.
    pub awake: u64,
    /// How many came when they were expected, and were not looked for: whoever drives was busy, or its sleep had not
    /// ended. Many, and a longer `wake_ahead` or a processor of its own helps.
    pub asleep: u64,
    /// How many did not come when they were expected. Many, and the sender's jitter is above `wake_ahead`.
    pub missed: u64,
    /// How much earlier than `wake_ahead` it is awake now, as its sleeps end so late.
    pub late: Duration,
}

/// How long a look for a sample that is expected lasts at most, of who is awake so much ahead; zero if none is looked for.
pub fn longest_look(ahead: Duration) -> Duration {
    if ahead > Duration::ZERO { Duration(ahead.times(2).0.saturating_add(LATEST.0)) } else { Duration::ZERO }
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
        let gap = now.since(Time(replace(&self.last, now.0)));
        let is_part = gap < self.shortest();
        let gaps = if is_part { 0 } else { self.note_gap(gap) };
        if self.trust() < TRUSTED {
            if !is_part {
                self.learn(now);
            }
            return;
        }
        let off = now.0 - self.at().0;
        if off < -self.ahead.0 {
            if gaps >= FASTER {
                self.begin_anew(now);
            }
            return;
        }
        let period = self.period.load(Ordering::Relaxed);
        if period < self.shortest().0 {
            // They have become faster little by little.
            return self.begin_anew(now);
        }
        self.at.store(self.at().0 + period + off / BY_PHASE, Ordering::Relaxed);
        self.trust.store((self.trust() + 1).min(MOST), Ordering::Relaxed);
        self.slept.store(0, Ordering::Relaxed);
        if self.has_found.load(Ordering::Relaxed) {
            // Of one that was slept for this is when its sleeper was awake, which says less of the interval.
            self.period.store(period + off / BY_PERIOD, Ordering::Relaxed);
            self.has_found.store(false, Ordering::Relaxed);
            self.awake.fetch_add(1, Ordering::Relaxed);
        } else {
            self.asleep.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A look for a sample that is expected has found something.
    pub fn note_find(&self) {
        self.has_found.store(true, Ordering::Relaxed);
    }

    /// When to look for the next sample, from and until; `None` if it is not known when it comes.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, Time)> {
        if self.is_on() { self.next_expected(now) } else { None }
    }

    #[inline(never)]
    fn next_expected(&self, now: Time) -> Option<(Time, Time)> {
        self.pass_over(now);
        let at = (self.trust() >= TRUSTED).then(|| self.at())?;
        Some((at - self.ahead - self.late(), at + self.ahead))
    }

    /// May this thread look? Not if it has hardly slept since a sample was expected last: whoever is busy until the next one is
    /// would take the whole processor.
    pub fn may_look(&self, thread: u32) -> bool {
        let slept = self.slept.load(Ordering::Relaxed).saturating_mul(REST_SHARE);
        self.sleeper.load(Ordering::Relaxed) == thread && slept >= self.period.load(Ordering::Relaxed)
    }

    /// This thread has slept for so long.
    pub fn note_sleep(&self, thread: u32, span: Duration) {
        let before = if self.sleeper.load(Ordering::Relaxed) == thread {
            self.slept.load(Ordering::Relaxed)
        } else {
            0
        };
        self.sleeper.store(thread, Ordering::Relaxed);
        self.slept.store(before.saturating_add(span.0), Ordering::Relaxed);
        self.has_found.store(false, Ordering::Relaxed);
    }

    /// What has become of samples that were expected; `None` if none ever is.
    pub fn steady(&self) -> Option<Steady> {
        let is_expected = self.trust() >= TRUSTED;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        self.is_on().then(|| Steady {
            interval: is_expected.then(|| Duration(self.period.load(Ordering::Relaxed))),
            awake: count(&self.awake),
            asleep: count(&self.asleep),
            missed: count(&self.missed),
            late: self.late(),
        })
    }

    /// A sleep that was to end then has just ended, by itself or by what has come meanwhile.
    pub fn note_woken(&self, at: Time, now: Time) {
        if now < at {
            return;
        }
        let late = now.since(at).min(LATEST).0;
        let known = self.late.load(Ordering::Relaxed);
        // One that ends later counts at once, as the next may, too.
        let known = if late > known { late } else { known - (known - late) / BY_PERIOD };
        self.late.store(known, Ordering::Relaxed);
    }

    /// How much earlier it is to be awake as its sleeps end late.
    fn late(&self) -> Duration {
        let most = self.period.load(Ordering::Relaxed) / LATE_SHARE;
        Duration(self.late.load(Ordering::Relaxed).min(most))
    }

    /// Has any sample come?
    #[cfg(test)]
    pub fn has_any_come(&self) -> bool {
        self.last.load(Ordering::Relaxed) != 0
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
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.slept.store(0, Ordering::Relaxed);
            let period = Duration(self.period.load(Ordering::Relaxed));
            let next = self.at() + period;
            // What is learnt begins with the last that was expected.
            let at = if trust < TRUSTED { next - period } else { next };
            self.at.store(at.0, Ordering::Relaxed);
            self.trust.store(trust, Ordering::Relaxed);
        }
    }

    /// How many gaps in a row are alike, with this one.
    fn note_gap(&self, gap: Duration) -> u32 {
        let before = replace(&self.gap, gap.0);
        let is_alike = gap.0.saturating_sub(before).saturating_abs() <= self.ahead.0;
        let gaps = if is_alike { self.gaps.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.gaps.store(gaps, Ordering::Relaxed);
        gaps
    }

    /// What has come is the first of which something is known.
    fn begin_anew(&self, now: Time) {
        self.trust.store(0, Ordering::Relaxed);
        self.at.store(now.0, Ordering::Relaxed);
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
            if seen {
                rhythm.note_find();
            }
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

    /// Of what comes between two that are expected nothing is counted.
    #[test]
    fn what_became_of_each_that_was_expected_is_counted() {
        let rhythm = learnt(6);
        assert_eq!(Rhythm::default().steady(), None);
        let counts = || rhythm.steady().map(|of| (of.interval, of.awake, of.asleep, of.missed));
        let interval = Some(Duration::from_millis(1));
        assert_eq!(counts(), Some((interval, 0, 0, 0)));
        rhythm.note_sleep(1, Duration::ZERO);
        rhythm.note_find();
        rhythm.note_come(at(5_500));
        rhythm.note_come(at(6_000));
        assert_eq!(counts(), Some((interval, 1, 0, 0)));
        rhythm.note_find();
        // What was found was another thing, and then it slept.
        rhythm.note_sleep(1, Duration::ZERO);
        rhythm.note_come(at(7_000));
        assert_eq!(counts(), Some((interval, 1, 1, 0)));
        rhythm.note_come(at(9_000));
        assert_eq!(counts(), Some((interval, 1, 2, 1)));
        let none_comes = at(50_000);
        assert_eq!(rhythm.next(none_comes), None);
        assert_eq!(rhythm.steady().and_then(|of| of.interval), None);
        rhythm.note_woken(none_comes, none_comes + Duration::from_micros(60));
        assert_eq!(rhythm.steady().map(|of| of.late), Some(Duration::from_micros(60)));
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
    fn who_has_hardly_slept_does_not_look() {
        let us = Duration::from_micros;
        let rhythm = learnt(10);
        assert!(!rhythm.may_look(1));
        rhythm.note_sleep(1, us(60));
        assert!(!rhythm.may_look(1), "a wait that has ended at once is no rest");
        rhythm.note_sleep(1, us(40));
        assert_eq!((rhythm.may_look(1), rhythm.may_look(2)), (true, false));
        rhythm.note_sleep(2, us(99));
        assert_eq!(
            (rhythm.may_look(1), rhythm.may_look(2)),
            (false, false),
            "another one's is none of its own"
        );
        rhythm.note_sleep(2, us(1));
        assert!(rhythm.may_look(2));
        rhythm.note_come(at(10_020));
        assert!(!rhythm.may_look(2));
        rhythm.note_sleep(2, us(500));
        assert!(rhythm.next(at(11_500)).is_some());
        assert!(!rhythm.may_look(2), "it was for one that did not come");
    }

    /// Also where the wake-up takes longer than it is ahead: then what comes ends the sleep first, which tells of it, too.
    #[test]
    fn who_wakes_slowly_is_awake_in_time() {
        let us = Duration::from_micros;
        for (ahead, to_wake) in [(50, 60), (70, 60), (100, 110), (30, 200), (200, 20)] {
            let rhythm = Rhythm::new(us(ahead));
            let mut now = BEGUN;
            let mut is_awake_for = |sample: Time| {
                let is_awake = loop {
                    match rhythm.next(now) {
                        Some((from, _)) if from <= now => break true,
                        Some((from, _)) => {
                            now = from.min(sample) + us(to_wake);
                            rhythm.note_woken(from, now);
                        }
                        None => now = sample + us(to_wake),
                    }
                    if now >= sample {
                        break false;
                    }
                };
                if is_awake {
                    rhythm.note_find();
                } else {
                    rhythm.note_sleep(1, Duration::ZERO);
                }
                now = now.max(sample);
                rhythm.note_come(now);
                now = now + us(20);
                is_awake
            };
            let mut awake = |from: i64, to| (from..to).filter(|n| is_awake_for(at(2_000 * n))).count();
            let first = awake(1, 61);
            assert_eq!(awake(61, 301), 240, "{ahead} us ahead of {to_wake} us, {first} of 60 before");
        }
    }

    /// Each of those before is one of these.
    #[test]
    fn a_stream_that_becomes_faster_by_a_whole_factor_is_learnt() {
        let rhythm = Rhythm::new(AHEAD);
        (0..20).for_each(|n| rhythm.note_come(at(10_000 * n)));
        assert_eq!(rhythm.steady().and_then(|of| of.interval), Some(Duration::from_millis(10)));
        assert_eq!(seen(&rhythm, (191..291).map(|n| at(1_000 * n))), 86);
    }

    #[test]
    fn what_becomes_faster_little_by_little_is_expected_until_it_is_too_fast() {
        let (rhythm, mut now) = (learnt(20), at(19_000));
        let is_expected = |span: &i64| {
            now = now + Duration::from_micros(*span);
            let next = rhythm.next(now - Duration::from_micros(span / 2));
            rhythm.note_find();
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
        rhythm.note_woken(at(5_840), at(5_839));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_840), at(6_100))), "what ends it early tells nothing");
        rhythm.note_woken(at(5_840), at(15_840));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_700), at(6_100))), "that was no wake-up");
        rhythm.note_woken(at(0), at(1_000));
        assert_eq!(rhythm.next(at(5_100)), Some((at(5_700), at(6_100))), "nor is that");
        (0..200).for_each(|_| rhythm.note_woken(at(0), at(10)));
        let (from, _) = rhythm.next(at(5_100)).unwrap();
        assert!((at(5_880)..=at(5_890)).contains(&from), "{from:?}");
    }
}
