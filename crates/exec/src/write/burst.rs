//! When the samples of a burst share datagrams.
//!
//! A sample that is written alone is sent at once. Who writes one after the other without a pause keeps the
//! port busy: from some point on a sample waits for those behind it, until a datagram is full, and no longer
//! than half as long as the burst has lasted. After some bursts of as many samples the next one is expected to have as
//! many: its first sample is sent at once, and all others with the last. LATENCY_BUDGET allows every sample to wait for
//! half of it: the rest is for its way. A publisher that is suspended has all of them wait until it resumes. What waits
//! when the burst ends is sent by the driver. See docs/adr/0008-bursts.md.

use std::cell::Cell;
use std::sync::Arc;

use taut_base::{Duration, Time};

use crate::sync::{AtomicBool, Ordering};

/// A write that begins so soon after the last has ended belongs to its burst. Lower and a sample that takes some
/// time to encode is taken for one that is alone, higher and so is an answer to one that has been sent.
pub(crate) const AT_ONCE: Duration = Duration::from_micros(2);

/// So many samples of a burst are sent at once. Lower holds up bursts that are over soon, higher sends more
/// datagrams for a stream that stops now and then.
pub(crate) const FIRST: u32 = 16;

/// A pause that may not be the writer's own: the system took its processor away. The burst goes on after it, once
/// a few samples have come as quickly as before. Lower takes more bursts for ended, higher more answers for part
/// of a burst.
pub(crate) const INTERRUPTED: Duration = Duration::from_micros(50);
const FIRST_AGAIN: u32 = 2;

/// After so many bursts as long as the one before, and longer than what is sent at once, the next is expected to be as
/// long. Lower has samples wait in vain for more of one that is shorter, higher takes more bursts to learn.
const ALIKE: u32 = 2;

/// A pause between two bursts, as far as that is about: a thread that was woken by the first sample may have the writer's
/// processor for shorter. Lower takes parts for bursts, higher learns nothing of quicker loops.
const BETWEEN: Duration = Duration::from_micros(500);

/// No more pauses than one for so many samples. Lower expects bursts that are several, higher none of a machine that
/// interrupts them.
const SELDOM: u32 = 8;

/// The longest that a sample waits for the last of an expected burst. Lower divides bursts of samples that take long to
/// encode, higher keeps samples of a burst that is over sooner than the last ones.
const LONGEST_EXPECTED: Duration = Duration::from_micros(50);

/// The longest that a burst's sample waits. Lower wakes the driver more often, higher keeps the last sample of a
/// long burst longer.
pub(crate) const LONGEST: Duration = Duration::from_micros(200);

/// How much later than that the driver sends it. A writer that goes on does so itself: lower and the driver is in
/// its way, higher and the end of a burst waits longer.
const SLACK: Duration = Duration::from_micros(10);

/// The longest wait that LATENCY_BUDGET is used for: a budget is a permission, not a wish.
const LONGEST_BUDGET: Duration = Duration::from_millis(10);

/// What is written while its publisher is suspended waits no longer than this to be resumed. Lower wakes the driver more
/// often, as it is to look then, higher keeps what is never resumed for longer.
const LONGEST_SUSPENSION: Duration = Duration::from_secs(1);

/// The bytes that fill a datagram, and what a sample takes of them besides its payload.
pub(crate) const FULL: usize = 60_000;
const HEADERS: usize = 40;

thread_local! {
    /// How often the calling thread has waited for what was not there yet.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread waits for what others send. What it writes then is an answer, however soon it has come: on one core
/// who is written to may run, and answer, before the write returns.
#[inline]
pub(crate) fn note_wait() {
    WAITS.set(WAITS.get().wrapping_add(1));
}

/// How often a thread has waited, and which: a number that no other one has while both live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waits {
    thread: usize,
    count: u32,
}

impl Waits {
    /// Of the calling thread, by now.
    #[inline]
    pub fn now() -> Waits {
        WAITS.with(|waits| Waits { thread: std::ptr::from_ref(waits).addr(), count: waits.get() })
    }

    /// Has the calling thread waited since then? Of another one that is not known.
    #[inline]
    pub fn has_more(self) -> bool {
        let now = Waits::now();
        now.thread == self.thread && now.count != self.count
    }
}

/// What a publisher and its writers share: whether more writes are to follow at once. DCPS 1.4 §2.2.2.4.1.8.
#[derive(Default)]
pub struct Suspension(AtomicBool);

impl Suspension {
    /// The publisher is suspended from now on, or no longer. Returns whether it was.
    pub fn set(&self, suspended: bool) -> bool {
        self.0.swap(suspended, Ordering::Relaxed)
    }

    /// Is it suspended?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The writes of one writer, in the hands of its owner.
pub(crate) struct Burst {
    began: Time,
    ended: Time,
    /// How often its owner had waited by then.
    waits: Waits,
    run: u32,
    /// How many samples it has, whatever has interrupted it, and how often something has.
    count: u32,
    pauses: u32,
    /// How many the last one had.
    last: u32,
    /// How many before that one had as many.
    alike: u32,
    budget: Duration,
    suspension: Option<Arc<Suspension>>,
    /// When the present write began, if that is not long ago.
    begun: Option<Time>,
}

impl Burst {
    /// Of a writer with this LATENCY_BUDGET.
    pub fn new(budget: Duration) -> Burst {
        Burst {
            began: Time(0),
            ended: Time(i64::MIN),
            waits: Waits::default(),
            run: 0,
            count: 0,
            pauses: 0,
            last: 0,
            alike: 0,
            budget: Duration(budget.0 / 2).min(LONGEST_BUDGET),
            suspension: None,
            begun: None,
        }
    }

    /// Of a writer of this publisher.
    pub fn follow(&mut self, suspension: Arc<Suspension>) {
        self.suspension = Some(suspension);
    }

    /// Is its publisher suspended? What is written waits for the end of that, whoever drives.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.suspension.as_ref().is_some_and(|suspension| suspension.is_set())
    }

    /// The next write has begun then. What encoding it takes passes before [`Burst::begin`].
    pub fn announce(&mut self, begun: Option<Time>) {
        self.begun = begun;
    }

    /// When it began, told once: later that is long ago.
    pub fn take_begun(&mut self) -> Option<Time> {
        self.begun.take()
    }

    /// A write begins. Returns until when its sample may wait.
    pub fn begin(&mut self, now: Time) -> Time {
        // Who passes samples on waits for some of them, too: that ends no burst that goes on.
        let is_quick = now <= self.ended + AT_ONCE && (self.goes_on() || !self.waits.has_more());
        if !is_quick {
            self.pause(now);
        }
        self.run = self.run.saturating_add(1);
        self.count = self.count.saturating_add(1);
        let allowed = if self.is_suspended() { LONGEST_SUSPENSION } else { self.budget };
        let earned = if is_quick { self.earned(now) } else { Duration::ZERO };
        now + earned.max(allowed)
    }

    /// It was written after a pause, as most are.
    #[inline]
    fn pause(&mut self, now: Time) {
        if self.ended + INTERRUPTED < now {
            (self.began, self.run) = (now, 0);
        } else {
            self.run = self.run.min(FIRST - FIRST_AGAIN);
        }
        if self.ended + BETWEEN < now {
            self.learn();
        } else {
            self.pauses = self.pauses.saturating_add(1);
        }
    }

    /// The next burst begins. The system may interrupt one now and then; one that pauses by itself is never expected.
    fn learn(&mut self) {
        let more = u32::from(self.pauses <= self.count / SELDOM);
        self.alike = if self.count == self.last { self.alike.saturating_add(more) } else { 0 };
        (self.last, self.count, self.pauses) = (self.count, 0, 0);
    }

    /// How long a sample that has come at once may wait.
    #[inline]
    fn earned(&self, now: Time) -> Duration {
        if self.alike >= ALIKE && self.last > FIRST && self.count <= self.last {
            // The last one takes all with it.
            return if self.count < self.last { LONGEST_EXPECTED } else { Duration::ZERO };
        }
        let lasted = now.since(self.began);
        if self.goes_on() { Duration(lasted.0 / 2).min(LONGEST) } else { Duration::ZERO }
    }

    /// May each sample wait, whether or not others follow?
    pub fn has_budget(&self) -> bool {
        self.budget > Duration::ZERO
    }

    /// Is it one, by now?
    pub fn goes_on(&self) -> bool {
        self.run > FIRST
    }

    /// The next write has waited for so long before it could begin, whatever pause came before.
    pub fn excuse(&mut self, waited: Duration) {
        self.ended = self.ended + waited;
    }

    /// It ends.
    pub fn end(&mut self, now: Time) {
        (self.ended, self.waits) = (now, Waits::now());
    }
}

/// When the driver sends what may wait until then.
pub(crate) fn due(until: Time) -> Time {
    until + SLACK
}

/// The samples that wait.
pub(crate) struct Held {
    /// Until when; `NEVER` if none does.
    pub until: Time,
    /// Until when those that were left to the token's holder may wait for what it writes itself.
    pub left_until: Time,
    /// How many writers' they are.
    pub writers: usize,
    /// All of them may wait for the next call of whoever drives by calls.
    pub is_patient: bool,
    bytes: usize,
}

impl Held {
    pub const NOTHING: Held =
        Held { until: Time::NEVER, left_until: Time::NEVER, writers: 0, is_patient: false, bytes: 0 };

    /// One more, of which it is said whether it may wait for a call.
    pub fn note_patience(&mut self, is_patient: bool) {
        let others = self.until == Time::NEVER || self.is_patient;
        self.is_patient = is_patient && others && self.left_until == Time::NEVER;
    }

    /// One more, where so many bytes are sent together. Returns whether there is room for others beside it.
    pub fn add(&mut self, len: usize, full: usize) -> bool {
        self.bytes = self.bytes.saturating_add(len).saturating_add(HEADERS);
        self.bytes < full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how long the samples of writes at these times, in nanoseconds, may wait.
    fn waits(burst: &mut Burst, times: impl Iterator<Item = i64>) -> Vec<i64> {
        let one = |at: i64| {
            let until = burst.begin(Time(at));
            burst.end(Time(at));
            until.since(Time(at)).0
        };
        times.map(one).collect()
    }

    #[test]
    fn only_a_burst_waits_and_never_long() {
        let mut burst = Burst::new(Duration::ZERO);
        let alone = waits(&mut burst, (0..100).map(|n| n * 2_001));
        assert!(alone.iter().all(|wait| *wait == 0), "{alone:?}");
        let quick = waits(&mut burst, (0..1_000).map(|n| 1_000_000 + n * 1_000));
        assert!(quick[..16].iter().all(|wait| *wait == 0));
        assert_eq!((quick[16], quick[100], quick[999]), (8_000, 50_000, 200_000));
        let again = waits(&mut burst, (0..4).map(|n| 2_020_000 + n * 1_000));
        assert_eq!(again[..2], [0, 0], "after an interruption it looks as if it were over");
        assert_eq!(again[2..], [200_000, 200_000]);
        assert_eq!(waits(&mut burst, [3_000_000].into_iter()), [0], "a pause ends it");
    }

    #[test]
    fn an_answer_is_no_part_of_a_burst() {
        let mut burst = Burst::new(Duration::ZERO);
        let answers = (0..100).inspect(|_| note_wait()).map(|n| n * 1_000);
        assert_eq!(waits(&mut burst, answers), [0; 100]);
        let row = waits(&mut burst, (100..110).map(|n| n * 1_000));
        assert!(row[2..].iter().all(|wait| *wait > 0), "those behind it may be: {row:?}");
        note_wait();
        assert!(waits(&mut burst, [110_000].into_iter())[0] > 0, "who passes a stream on waits now and then");
    }

    #[test]
    fn a_writer_that_threads_take_turns_at_has_a_burst_of_all_of_them() {
        let (mut burst, mut row) = (Burst::new(Duration::ZERO), Vec::new());
        let (to, at_other) = std::sync::mpsc::channel::<(i64, Burst)>();
        let (back, from_other) = std::sync::mpsc::channel();
        note_wait();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for (at, mut burst) in at_other {
                    back.send((waits(&mut burst, [at].into_iter()), burst)).unwrap();
                }
            });
            for at in (0..40_000).step_by(2_000) {
                row.extend(waits(&mut burst, [at].into_iter()));
                to.send((at + 1_000, burst)).unwrap();
                let (waited, returned) = from_other.recv().unwrap();
                row.extend(waited);
                burst = returned;
            }
            drop(to);
        });
        assert!(row[16..].iter().all(|wait| *wait > 0), "{row:?}");
    }

    /// When the next burst begins, a millisecond later.
    fn after_a_pause(burst: &Burst) -> i64 {
        burst.ended.0.max(0) + 1_000_000
    }

    /// How many samples of bursts are sent at once whose samples are 300 ns apart.
    fn at_once(burst: &mut Burst, lens: &[i64]) -> Vec<usize> {
        let of = |len: &i64| {
            let begin = after_a_pause(burst);
            waits(burst, (0..*len).map(|n| begin + n * 300)).iter().filter(|wait| **wait == 0).count()
        };
        lens.iter().map(of).collect()
    }

    #[test]
    fn a_burst_as_the_last_ones_leaves_with_its_first_and_its_last_sample() {
        let mut burst = Burst::new(Duration::ZERO);
        assert_eq!(at_once(&mut burst, &[100; 5]), [16, 16, 16, 2, 2]);
        assert_eq!(
            at_once(&mut burst, &[90, 90, 90, 90]),
            [1, 16, 16, 2],
            "one that is over sooner is seen once"
        );
        assert_eq!(at_once(&mut burst, &[120, 90]), [2, 16], "what is beyond it waits as in any burst");
        assert_eq!(at_once(&mut burst, &[16; 5]), [16; 5], "so many are sent at once anyway");
        assert_eq!(at_once(&mut burst, &[1; 5]), [1; 5]);
    }

    #[test]
    fn a_wait_is_no_pause_and_takes_none_away() {
        let mut burst = Burst::new(Duration::ZERO);
        let waited = |burst: &mut Burst, pause: i64| {
            at_once(burst, &[100]);
            burst.excuse(Duration(40_000));
            let begin = burst.ended.0 + pause;
            waits(burst, [begin].into_iter())[0]
        };
        assert!(waited(&mut burst, 300) > 0, "it goes on");
        assert_eq!(waited(&mut burst, 1_000_000), 0, "another one begins");
    }

    #[test]
    fn a_burst_that_pauses_each_time_is_not_expected() {
        let mut burst = Burst::new(Duration::ZERO);
        for _ in 0..6 {
            let begin = after_a_pause(&burst);
            let pairs = (0..20).map(|n| begin + n / 2 * 40_000 + n % 2 * 300);
            assert_eq!(waits(&mut burst, pairs), [0; 20]);
        }
    }

    #[test]
    fn a_burst_that_the_system_interrupts_is_as_long_as_before() {
        let mut burst = Burst::new(Duration::ZERO);
        at_once(&mut burst, &[100; 2]);
        for _ in 0..3 {
            let begin = after_a_pause(&burst);
            waits(&mut burst, (0..100).map(|n| begin + n * 300 + if n > 0 { 200_000 } else { 0 }));
        }
        assert_eq!(at_once(&mut burst, &[100]), [2]);
    }

    #[test]
    fn a_sample_waits_no_longer_for_the_last_of_its_burst_than_is_said() {
        let mut burst = Burst::new(Duration::ZERO);
        at_once(&mut burst, &[17; 3]);
        let begin = after_a_pause(&burst);
        assert_eq!(waits(&mut burst, (0..3).map(|n| begin + n * 2_000)), [0, 50_000, 50_000]);
        let interrupted = waits(&mut burst, [begin + 20_000, begin + 20_300].into_iter());
        assert_eq!(interrupted, [0, 50_000], "what comes after a pause is sent at once, with what waits");
    }

    #[test]
    fn a_budget_is_a_permission() {
        let mut burst = Burst::new(Duration::from_micros(30));
        assert_eq!(waits(&mut burst, [0, 1_000_000].into_iter()), [15_000, 15_000]);
        let mut patient = Burst::new(Duration::INFINITE);
        assert_eq!(waits(&mut patient, [0].into_iter()), [10_000_000]);
    }

    // It is no model: loom's atomics are for those alone.
    #[cfg(not(loom))]
    #[test]
    fn a_suspension_is_a_permission_while_it_lasts() {
        let (mut burst, suspension) = (Burst::new(Duration::ZERO), Arc::new(Suspension::default()));
        burst.follow(Arc::clone(&suspension));
        assert_eq!(waits(&mut burst, [0].into_iter()), [0]);
        assert!(!suspension.set(true));
        assert_eq!(waits(&mut burst, [100_000, 100_001].into_iter()), [1_000_000_000; 2]);
        assert!(suspension.set(false));
        assert_eq!(waits(&mut burst, [200_000].into_iter()), [0]);
    }

    #[test]
    fn a_datagram_is_full_at_some_point() {
        let beside = |full| {
            let mut held = Held::NOTHING;
            std::iter::from_fn(|| held.add(36, full).then_some(())).count()
        };
        assert_eq!((beside(FULL), beside(15_140)), (789, 199));
    }
}
