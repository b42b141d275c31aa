//! What wakes a driver that sleeps until some time: timers that stay set from one sleep to the next.
//!
//! A limit of the wait itself is set and taken back with each sleep. While it is the next that the processor has to wake
//! for, both are told to the hardware, which in a virtual machine is an exit each: a round trip took 10 us longer
//! whenever a timer of Taut's was due before the system's next tick. A timer is set only for something earlier than
//! it is set for; it may ring when there is nothing to do, and then is set anew.
//!
//! There are two. Who writes each millisecond and then waits for the answer until the next is due would set one between
//! the two, on the way of the answer. Once it is known to do so, what it will wait for next is set when it has the answer.
//!
//! To ring costs a busy driver as much as an exit or two, and it needs no waking. So it moves the alarm on if that is about
//! to ring for what is due later by now.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use taut_base::{Duration, Time};

use crate::clock::NS_PER_S;
use crate::lanes::neighbours::FIRST_SOURCE;

/// What is due sooner is a limit of the wait: it is over before the alarm would be of use again. Lower sets the alarm
/// for each burst's end; higher, and who waits for an answer until its next sample is due, each millisecond, has a limit
/// that the answer takes back.
const SOON: Duration = Duration::from_micros(100);

/// Who has slept for less than this before is busy. Lower and an alarm rings that a busy driver could have moved, higher and
/// it is moved by a system call where it could as well ring.
const BUSY: Duration = Duration::from_millis(1);

/// A busy driver moves an alarm on that is to ring within this. Lower than a tick, which has 4 ms as a rule, and the alarm is
/// the first of its processor's timers by then, so that it is told to the hardware; higher and it is moved more often.
const NEAR: Duration = Duration::from_millis(5);

/// A sleep may end so much later than it is to, and what is to be slept for next differs by so much from one time to the
/// next, as its caller says for how long and not until when. Lower and each of two sleeps until the same time sets a
/// timer, higher has what is due wait. A thread takes some microseconds to wake.
const LATE: Duration = Duration::from_micros(1);

/// The numbers of the timers among the sources.
const SOURCES: [u64; 2] = [FIRST_SOURCE - 2, FIRST_SOURCE - 4];

/// One timer.
pub(super) struct Timer {
    pub fd: TimerFd,
    /// What it is set for; `NEVER` once it has rung.
    at: AtomicI64,
}

impl Timer {
    pub fn new() -> Result<Timer, Errno> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Timer { fd, at: AtomicI64::new(Time::NEVER.0) })
    }

    pub fn at(&self) -> Time {
        Time(self.at.load(Ordering::Relaxed))
    }

    /// Rings then, and no longer when it was to. `false` if the system refuses.
    pub fn set(&self, at: Time) -> bool {
        let once = Expiration::OneShot(TimeSpec::new(at.0.div_euclid(NS_PER_S), at.0.rem_euclid(NS_PER_S)));
        let is_set = self.fd.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_ok();
        if is_set {
            self.at.store(at.0, Ordering::Relaxed);
        }
        is_set
    }

    /// It has rung: it is set for nothing.
    pub fn note_rung(&self) {
        self.at.store(Time::NEVER.0, Ordering::Relaxed);
    }
}

/// What is known of the sleeps so far. Only who has the role sleeps: nothing here orders anything.
struct Sleeps {
    /// When the last one began, and until when it was to be.
    begun: AtomicI64,
    until: AtomicI64,
    /// How much later that was than what the one before was until, if not the same.
    period: AtomicI64,
    /// So much later was that, too, and the alarm has rung for it.
    is_steady: AtomicBool,
    has_rung: AtomicBool,
}

impl Sleeps {
    fn new() -> Sleeps {
        let (begun, until, period) = (AtomicI64::new(0), AtomicI64::new(Time::NEVER.0), AtomicI64::new(0));
        Sleeps { begun, until, period, is_steady: AtomicBool::new(false), has_rung: AtomicBool::new(false) }
    }

    /// One begins until then. Is it until the same time as the last one?
    #[inline]
    fn note(&self, until: Time) -> bool {
        let is_same = is_about(until.0, self.until.load(Ordering::Relaxed));
        if !is_same {
            self.note_other(until);
        }
        is_same
    }

    fn note_other(&self, until: Time) {
        let later = until.since(Time(replace(&self.until, until.0)));
        let period = replace(&self.period, later.0);
        let has_rung = self.has_rung.load(Ordering::Relaxed);
        self.has_rung.store(false, Ordering::Relaxed);
        let is_steady = has_rung && later > SOON && is_about(later.0, period);
        self.is_steady.store(is_steady, Ordering::Relaxed);
    }

    /// How long after the time of this sleep the next one is to end, if that is known.
    fn period(&self) -> Option<Duration> {
        let period = Duration(self.period.load(Ordering::Relaxed));
        self.is_steady.load(Ordering::Relaxed).then_some(period)
    }
}

/// What a word was before. Nobody else changes it: two plain accesses cost a tenth of one that locks it.
pub(super) fn replace(word: &AtomicI64, value: i64) -> i64 {
    let before = word.load(Ordering::Relaxed);
    word.store(value, Ordering::Relaxed);
    before
}

fn is_about(a: i64, b: i64) -> bool {
    a.abs_diff(b) <= LATE.0.unsigned_abs()
}

/// The alarm of a participant. Only who has the role sets it and hears it.
pub(crate) struct Alarm {
    timers: [Timer; 2],
    sleeps: Sleeps,
}

impl Alarm {
    pub fn new() -> Result<Alarm, Errno> {
        Ok(Alarm { timers: [Timer::new()?, Timer::new()?], sleeps: Sleeps::new() })
    }

    /// The timers, and their numbers among the sources. One becomes readable once each time that it rings: nobody has to
    /// read it.
    pub fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, u64)> {
        self.timers.iter().map(|timer| timer.fd.as_fd()).zip(SOURCES)
    }

    /// Has this source rung? `false` if it is not of the alarm.
    #[inline]
    pub fn hear(&self, source: u64) -> bool {
        let rung = self.timers.iter().zip(SOURCES).find(|(_, number)| *number == source);
        if let Some((timer, _)) = rung {
            timer.note_rung();
            self.sleeps.has_rung.store(true, Ordering::Relaxed);
        }
        rung.is_some()
    }

    /// For how long one may wait who is to be awake then: `None` for as long as it takes, as the alarm wakes it.
    pub fn limit(&self, now: Time, until: Time) -> Option<Duration> {
        let is_busy = now < Time(replace(&self.sleeps.begun, now.0)) + BUSY;
        if until == Time::NEVER {
            return None;
        }
        let is_same = self.sleeps.note(until);
        let [one, other] = &self.timers;
        let (first, second) = if one.at() <= other.at() { (one, other) } else { (other, one) };
        let is_moved = is_busy && first.at() + LATE < until && first.at() < now + NEAR;
        if first.at() <= until + LATE && !is_moved {
            if is_same
                && second.at() == Time::NEVER
                && let Some(period) = self.sleeps.period()
            {
                // Rather late than early: who wakes too early has to sleep again.
                second.set(until + period + Duration(LATE.0 / 2));
            }
            return None;
        }
        let left = until.since(now).max(Duration::ZERO);
        let timer = if is_moved { first } else { second };
        (left < SOON || !timer.set(until)).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;
    use crate::clock::monotonic_now;

    fn set_for(alarm: &Alarm) -> Time {
        alarm.timers.iter().map(Timer::at).min().unwrap()
    }

    /// What has been set until then rings. Returns how many did.
    fn ring(alarm: &Alarm, now: Time) -> usize {
        let due = alarm.timers.iter().zip(SOURCES).filter(|(timer, _)| timer.at() <= now);
        due.filter(|(_, source)| alarm.hear(*source)).count()
    }

    #[test]
    fn it_stays_set_until_something_earlier_is_due() {
        let (alarm, now) = (Alarm::new().unwrap(), monotonic_now());
        let is_set = || alarm.timers.iter().any(|timer| timer.fd.get().unwrap().is_some());
        let later = |n| now + SOON.times(n);
        assert_eq!((alarm.limit(now, Time::NEVER), is_set()), (None, false));
        let soon = later(2) + Duration(SOON.0 - 1);
        assert_eq!(
            (alarm.limit(later(2), soon), is_set()),
            (Some(Duration(SOON.0 - 1)), false),
            "not worth it"
        );
        assert_eq!((alarm.limit(later(4), later(60_000)), set_for(&alarm)), (None, later(60_000)));
        assert_eq!((alarm.limit(later(6), later(200)), set_for(&alarm)), (None, later(200)));
        assert_eq!((alarm.limit(later(8), later(300)), set_for(&alarm)), (None, later(200)));

        let fds = alarm.fds().map(|(fd, _)| PollFd::new(fd, PollFlags::POLLIN));
        assert_eq!(poll(&mut fds.collect::<Vec<_>>(), PollTimeout::from(5_000_u16)), Ok(1));
        assert!(monotonic_now() >= later(200), "not early");
        assert_eq!((ring(&alarm, later(200)), set_for(&alarm)), (1, later(60_000)), "the other stays");
        assert_eq!((alarm.limit(later(200), later(300)), set_for(&alarm)), (None, later(300)), "anew");
        assert!(is_set() && !alarm.hear(FIRST_SOURCE - 1) && !alarm.hear(FIRST_SOURCE - 3));
    }

    /// Who begins something each `period` and waits for an answer until the next is due. Returns how often a timer was
    /// set before the answer, after it, and how often one rang when nothing was due, of 100 times.
    fn waits(period: impl Fn(i64) -> i64, has_answer: bool) -> (u64, u64, u64) {
        let (alarm, start) = (Alarm::new().unwrap(), monotonic_now());
        let (mut before, mut after, mut in_vain) = (0, 0, 0);
        let mut begun = start;
        for n in 0..100_i64 {
            let due = begun + Duration::from_micros(period(n));
            let times = || alarm.timers.iter().map(Timer::at).collect::<Vec<_>>();
            let count = |at: Duration, until: Time| {
                let old = times();
                assert_eq!(alarm.limit(begun + at, until), None);
                old.iter().zip(times()).filter(|(old, new)| *old != new).count() as u64
            };
            before += count(Duration::from_micros(10), due);
            if has_answer {
                // It reads the clock anew, and says for how long.
                after += count(Duration::from_micros(40), due + Duration(n % 200 - 100));
            }
            in_vain += ring(&alarm, due - Duration(1_000)) as u64;
            ring(&alarm, due + LATE);
            assert!(times().iter().all(|at| *at > due), "{n}: what is over is set no longer");
            begun = due;
        }
        (before, after, in_vain)
    }

    #[test]
    fn who_waits_for_answers_until_the_next_is_due_sets_it_when_it_has_them() {
        assert_eq!(waits(|_| 1_000, true), (3, 98, 0));
        assert_eq!(waits(|_| 250, true), (3, 98, 0));
        assert_eq!(waits(|_| 1_000, false), (100, 0, 0), "nobody waits for it");
        assert_eq!(waits(|n| 1_000 + n % 3 * 10, true), (100, 0, 0), "nobody knows the next");
        let (before, after, in_vain) = waits(|n| if n % 10 == 9 { 1_500 } else { 1_000 }, true);
        assert!(before <= 40 && after >= 60 && in_vain <= 10, "{before} {after} {in_vain}");
    }

    #[test]
    fn who_sleeps_often_moves_it_on_before_it_rings() {
        let (alarm, now) = (Alarm::new().unwrap(), monotonic_now());
        let at = |us| now + Duration::from_micros(us);
        // Each 100 us, for a second that does not pass, until something that is due within 10 ms and is put off 0.5 ms before.
        let mut times_set = 0;
        for us in (0..1_000_000).step_by(100) {
            let due = at((us + 500) / 10_000 * 10_000 + 10_000);
            let before = set_for(&alarm);
            assert_eq!(alarm.limit(at(us), due), None);
            assert!(set_for(&alarm) > at(us), "{us}: it has rung");
            assert!(set_for(&alarm) <= due, "{us}: it rings too late");
            times_set += u64::from(set_for(&alarm) != before);
        }
        assert_eq!(times_set, 101, "once for each");
    }
}
