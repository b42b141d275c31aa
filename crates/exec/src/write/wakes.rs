//! When the samples of a burst share a wake-up.
//!
//! Who sleeps is woken for a sample that is written alone at once. Who writes one after the other without a pause would have
//! them woken, take one and sleep again, for each: two changes of threads for a sample that takes less than either. So from
//! some point on they are left asleep for those behind it, for a few of them and no longer than half as long as the burst has
//! lasted. Whoever drives wakes them when the burst ends. It is the rule of samples that share datagrams, for those that go
//! through a lane. See docs/adr/0042-samples-of-a-burst-share-a-wake-up.md.

use std::sync::{Arc, Weak};

use taut_base::{Duration, SequenceNumber, Time};

use crate::clock::monotonic_now;
use crate::sync::{AtomicI64, Mutex, Ordering};
use crate::write::burst::{AT_ONCE, FIRST, INTERRUPTED, LONGEST, Waits};

/// So many samples share a wake-up, unless their time is over before. Lower wakes more often for what takes a reader less than
/// to be woken, higher and a quick writer overtakes who may lose samples before he looks: a lane has 512.
pub(crate) const TOGETHER: i64 = 64;

/// After so long the writer wakes them itself. Lower wakes more often, higher keeps samples that come one by one for longer.
const SOON: Duration = Duration::from_micros(50);

/// With so many samples a rest was of a burst that goes on, although the system may have given the writer's processor to those
/// who were woken before. Fewer, and so is one of samples that come one by one; more, and readers who share its processor end
/// a burst that they take part in.
const MANY: i64 = 8;

/// The wake-ups of one writer, in the hands of its owner. They have a rule of their own for what a burst is, not
/// [`Burst`](crate::write::burst::Burst)'s, as that looks at each write, and a lane's writer only at those that find somebody
/// asleep.
#[derive(Default)]
pub(crate) struct Wakes {
    /// When the burst began, and how many samples it has that came at once.
    began: Time,
    run: i64,
    /// The last sample for which it was looked who sleeps and somebody did, what time it was after that, and how often the
    /// owner had waited by then.
    looked: SequenceNumber,
    ended: Time,
    waits: Waits,
    /// Up to which sample, and until when, those who sleep are left asleep.
    rest: Option<(SequenceNumber, Time)>,
    /// The driver knows who they are.
    pub is_known: bool,
}

impl Wakes {
    /// Are they left asleep for this sample, too?
    pub fn goes_on(&self, sample: SequenceNumber, now: Time) -> bool {
        self.rest.is_some_and(|(last, until)| sample < last && now < until)
    }

    /// Are they left asleep, so that they are to be woken?
    #[inline]
    pub fn is_owed(&self) -> bool {
        self.rest.is_some()
    }

    /// They sleep, and this sample is there since `now`. Returns until when they may do so; `None` if not at all.
    pub fn allows(&mut self, sample: SequenceNumber, now: Time) -> Option<Time> {
        let count = sample.0.saturating_sub(self.looked.0);
        let goes_on = self.run > FIRST.into();
        let pause = Duration(now.since(self.ended).0 - AT_ONCE.times(count).0);
        if pause <= Duration::ZERO && (goes_on || !self.waits.has_more())
            || goes_on && count >= MANY && pause <= INTERRUPTED
        {
            self.run = self.run.saturating_add(count);
        } else {
            (self.began, self.run) = (now, 0);
        }
        let was_owed = self.rest.take().is_some();
        let earned = Duration(now.since(self.began).0 / 2);
        let may = !was_owed && self.run > FIRST.into();
        may.then(|| {
            self.rest = Some((SequenceNumber(sample.0.saturating_add(TOGETHER)), now + earned.min(SOON)));
            self.note(sample, now);
            now + earned.min(LONGEST)
        })
    }

    /// The sample that is about to be there has waited for room since then: that is no pause of its own.
    pub fn excuse(&mut self, since: Time) {
        self.ended = self.ended + monotonic_now().since(since);
    }

    /// They have been woken, or nobody sleeps any more.
    pub fn end(&mut self, sample: SequenceNumber, now: Time) {
        self.rest = None;
        self.note(sample, now);
    }

    fn note(&mut self, sample: SequenceNumber, now: Time) {
        (self.looked, self.ended, self.waits) = (sample, now, Waits::now());
    }
}

/// Those whom one writer leaves asleep.
pub(crate) trait Sleepers {
    /// Until when; `NEVER` if they are not.
    fn left_until(&self) -> &AtomicI64;

    /// Wakes them.
    fn wake(&self);
}

/// Whom the writers of a participant leave asleep, for whoever drives.
pub(crate) struct Asleep<S> {
    list: Mutex<Vec<Weak<S>>>,
    /// When the first of them is to be woken; may be early.
    next: AtomicI64,
}

impl<S> Default for Asleep<S> {
    fn default() -> Asleep<S> {
        Asleep { list: Mutex::new(Vec::new()), next: AtomicI64::new(Time::NEVER.0) }
    }
}

impl<S: Sleepers> Asleep<S> {
    /// When to look at them. *Cost*: one load. Who is about to sleep until then looks once more after having said so.
    #[inline]
    pub fn next(&self) -> Time {
        Time(self.next.load(Ordering::SeqCst))
    }

    /// From now on the driver knows them.
    pub fn know(&self, sleepers: &Arc<S>) {
        self.list.lock().push(Arc::downgrade(sleepers));
    }

    /// They are left asleep until then. Returns whether that is before all that the driver knows of.
    pub fn leave(&self, sleepers: &S, until: Time) -> bool {
        sleepers.left_until().store(until.0, Ordering::SeqCst);
        until.0 < self.next.fetch_min(until.0, Ordering::SeqCst)
    }

    /// Wakes those whose time is over.
    pub fn wake(&self, now: Time) {
        if self.next() > now {
            return;
        }
        // What is left from here on is not overwritten.
        self.next.store(Time::NEVER.0, Ordering::SeqCst);
        self.list.lock().retain(|sleepers| {
            let Some(sleepers) = sleepers.upgrade() else { return false };
            let left_until = sleepers.left_until();
            let until = left_until.load(Ordering::SeqCst);
            if until > now.0 {
                self.next.fetch_min(until, Ordering::SeqCst);
            } else if left_until.swap(Time::NEVER.0, Ordering::SeqCst) != Time::NEVER.0 {
                sleepers.wake();
            }
            true
        });
    }

    /// Wakes all of them: nobody will who drives.
    #[inline]
    pub fn wake_all(&self) {
        if self.next() != Time::NEVER {
            self.wake(LATEST);
        }
    }
}

/// All are to be woken by then.
const LATEST: Time = Time(Time::NEVER.0 - 1);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Until when those who sleep at each of these samples may go on, as far as they are left asleep there. Whoever is woken
    /// sleeps again at once.
    fn rests(wakes: &mut Wakes, times: impl Iterator<Item = i64>) -> Vec<Option<i64>> {
        let mut sample = wakes.looked;
        let one = |at: i64| {
            sample = sample.next();
            if wakes.goes_on(sample, Time(at)) {
                return Some(0);
            }
            let until = wakes.allows(sample, Time(at)).map(|until| until.since(Time(at)).0);
            if until.is_none() {
                wakes.end(sample, Time(at));
            }
            until
        };
        times.map(one).collect()
    }

    #[test]
    fn samples_of_a_burst_share_a_wake_up_and_no_others_do() {
        let mut wakes = Wakes::default();
        let alone = rests(&mut wakes, (0..100).map(|n| n * 2_001));
        assert_eq!(alone, [None; 100]);
        let begin = 1_000_000;
        let row = rests(&mut wakes, (0..200).map(|n| begin + n * 1_000));
        let woken: Vec<usize> = (0..200).filter(|n| row[*n].is_none()).collect();
        let first = FIRST as usize + 1;
        assert_eq!(woken[..first], Vec::from_iter(0..first));
        assert_eq!(row[first], Some(8_500), "half as long as the burst has lasted");
        assert!(woken[first..].iter().all(|n| row[n + 1].is_some()), "{woken:?}");
        assert!(woken.len() < first + 12, "{woken:?}");
        let last = rests(&mut wakes, [begin + 1_000_000].into_iter());
        assert_eq!(last, [None], "a pause ends it");
    }

    #[test]
    fn no_rest_is_longer_than_so_many_samples_or_so_much_time() {
        let mut wakes = Wakes::default();
        rests(&mut wakes, (0..10_000).map(|n| n * 100));
        let (sample, now) = (wakes.looked, wakes.ended);
        wakes.end(sample, now);
        assert_eq!(wakes.allows(sample.next(), now), Some(now + LONGEST));
        assert!(wakes.goes_on(SequenceNumber(sample.0 + TOGETHER), now));
        assert!(!wakes.goes_on(SequenceNumber(sample.0 + TOGETHER + 1), now));
        assert!(!wakes.goes_on(sample.next(), now + SOON));
    }

    #[test]
    fn an_answer_wakes_at_once() {
        let answers = (0..100).inspect(|_| crate::write::burst::note_wait()).map(|n| n * 1_000);
        assert_eq!(rests(&mut Wakes::default(), answers), [None; 100]);
    }

    #[test]
    fn a_burst_goes_on_although_others_had_its_processor() {
        let after = |wakes: &mut Wakes, count: i64, pause: i64| {
            rests(wakes, (0..10_000).map(|n| n * 100));
            let (sample, now) = (wakes.looked, wakes.ended);
            wakes.end(sample, now);
            let at = now + Duration(pause) + AT_ONCE.times(count);
            wakes.allows(SequenceNumber(sample.0 + count), at).is_some()
        };
        assert!(after(&mut Wakes::default(), MANY, INTERRUPTED.0));
        assert!(!after(&mut Wakes::default(), MANY, INTERRUPTED.0 + 1));
        assert!(!after(&mut Wakes::default(), MANY - 1, 1), "samples that come one by one");
        let mut waited = Wakes::default();
        rests(&mut waited, (0..10_000).map(|n| n * 100));
        let since = monotonic_now();
        waited.ended = since + Duration(-10_000_000);
        waited.excuse(since + Duration(-10_000_000));
        assert!(monotonic_now().since(waited.ended) < Duration(5_000_000), "a wait for room is no pause");
    }

    struct Sleeper {
        until: AtomicI64,
        woken: AtomicUsize,
    }

    impl Sleepers for Sleeper {
        fn left_until(&self) -> &AtomicI64 {
            &self.until
        }

        fn wake(&self) {
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_is_left_asleep_is_woken_when_his_time_is_over_or_nobody_will() {
        let asleep = Asleep::<Sleeper>::default();
        let one = || {
            let one = Sleeper { until: AtomicI64::new(Time::NEVER.0), woken: AtomicUsize::new(0) };
            let one = Arc::new(one);
            asleep.know(&one);
            one
        };
        let (first, second) = (one(), one());
        let woken = || (first.woken.load(Ordering::Relaxed), second.woken.load(Ordering::Relaxed));
        assert!(asleep.leave(&first, Time(20)));
        assert!(asleep.leave(&second, Time(10)) && !asleep.leave(&second, Time(15)));
        asleep.wake(Time(9));
        assert_eq!((woken(), asleep.next()), ((0, 0), Time(10)));
        asleep.wake(Time(12));
        assert_eq!(
            (woken(), asleep.next()),
            ((0, 0), Time(15)),
            "it was woken meanwhile, and left asleep anew"
        );
        asleep.wake(Time(15));
        assert_eq!((woken(), asleep.next()), ((0, 1), Time(20)));
        asleep.wake_all();
        assert_eq!((woken(), asleep.next()), ((1, 1), Time::NEVER));
        asleep.wake_all();
        assert_eq!(woken(), (1, 1), "once");
        drop(second);
        asleep.leave(&first, Time(0));
        asleep.wake(Time(0));
        assert_eq!(asleep.list.lock().len(), 1);
    }
}

#[cfg(all(test, not(loom)))]
mod executor_tests {
    use taut_qos::DataWriterQos;

    use super::*;
    use crate::driver::driving::Driving;
    use crate::executor_tests::{executor_with_lanes, write};
    use crate::{Executor, Outlet};

    /// Writes without a pause, to a participant that sleeps before each sample, until it is left asleep.
    fn until_left_asleep(executor: &Executor, outlet: &mut Outlet) -> u64 {
        let bell = &executor.inner.bell;
        for n in 0..100_000 {
            bell.disarm();
            bell.arm();
            let before = executor.stats().kicks;
            // What the test does in between is no pause, however long it takes.
            outlet.wakes.ended = monotonic_now();
            write(executor, outlet, n);
            if outlet.wakes.is_owed() {
                assert_eq!(executor.stats().kicks, before);
                return before;
            }
        }
        panic!("each sample wakes");
    }

    #[test]
    fn whoever_drives_wakes_who_is_left_asleep() {
        let (executor, writer, _) = executor_with_lanes();
        let inner = &executor.inner;
        let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
        inner.role.claim();
        let driving = Driving::new(inner);
        inner.holding.fall_asleep(Time::NEVER, Time::NEVER);
        let before = until_left_asleep(&executor, &mut outlet);
        let until = inner.owed.next();
        assert!(until <= monotonic_now() + LONGEST);
        assert!(inner.holding.sleeps_until() <= until, "it is reminded");
        inner.holding.wake();
        while monotonic_now() < until {
            std::hint::spin_loop();
        }
        inner.peek(|core| {
            core.read_clock();
            core.look_at_owed();
        });
        assert_eq!((executor.stats().kicks, inner.owed.next()), (before + 1, Time::NEVER));
        let before = until_left_asleep(&executor, &mut outlet);
        drop(driving);
        assert_eq!(executor.stats().kicks, before + 1, "who drives no longer wakes all");
        outlet.end_rest();
        let before = executor.stats().kicks;
        (0..1_000).for_each(|n| write(&executor, &mut outlet, n));
        assert!(!outlet.wakes.is_owed(), "nobody drives");
        assert!(executor.stats().kicks >= before);
    }

    #[test]
    fn who_was_woken_meanwhile_and_sleeps_again_is_woken() {
        let (executor, writer, _) = executor_with_lanes();
        let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
        executor.inner.role.claim();
        let driving = Driving::new(&executor.inner);
        let before = until_left_asleep(&executor, &mut outlet);
        // However slow this machine is, the writer would leave asleep for longer.
        outlet.wakes.rest = Some((SequenceNumber(i64::MAX), Time::NEVER));
        drop(driving);
        assert_eq!(executor.stats().kicks, before + 1, "who drives no longer has woken him");
        executor.inner.bell.disarm();
        executor.inner.bell.arm();
        write(&executor, &mut outlet, 0);
        assert_eq!(executor.stats().kicks, before + 2, "nobody else would");
        assert!(!outlet.wakes.is_owed());
    }

    #[test]
    fn a_writer_that_waits_or_goes_wakes_who_is_left_asleep() {
        let (executor, writer, _) = executor_with_lanes();
        let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
        executor.inner.role.claim();
        let driving = Driving::new(&executor.inner);
        let before = until_left_asleep(&executor, &mut outlet);
        outlet.is_read();
        assert_eq!((executor.stats().kicks, outlet.wakes.is_owed()), (before + 1, false));
        let before = until_left_asleep(&executor, &mut outlet);
        drop(outlet);
        assert_eq!(executor.stats().kicks, before + 1);
        drop(driving);
    }
}
