//! What wakes a driver that sleeps until some time: a timer that stays set from one sleep to the next.
//!
//! A limit of the wait itself is set and taken back with each sleep. While it is the next that the processor has to wake
//! for, both are told to the hardware, which in a virtual machine is an exit each: a round trip took 10 us longer
//! whenever a timer of Taut's was due before the system's next tick. This timer is set only for something earlier than
//! it is set for; it may ring when there is nothing to do, and then is set anew.
//!
//! To ring costs a busy driver as much as an exit or two, and it needs no waking. So it moves the alarm on if that is about
//! to ring for what is due later by now.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, Ordering};

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use taut_base::{Duration, Time};

use crate::clock::NS_PER_S;

/// What is due sooner is a limit of the wait: it is over before the alarm would be of use again. Lower sets the alarm
/// for each burst's end; higher, and who waits for an answer until its next sample is due, each millisecond, has a limit
/// that the answer takes back.
const SOON: Duration = Duration::from_micros(100);

/// Who has slept for less than this before is busy, and moves an alarm on that is to ring within it. Lower and it has rung
/// before such a driver comes by, higher and it is moved more often.
const NEAR: Duration = Duration::from_millis(1);

/// The alarm of a participant. Only who has the role sets it and hears it.
pub(crate) struct Alarm {
    timer: TimerFd,
    /// What it is set for; `NEVER` once it has rung.
    set: AtomicI64,
    /// When the last sleep began.
    slept: AtomicI64,
}

impl Alarm {
    pub fn new() -> Result<Alarm, Errno> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let (set, slept) = (AtomicI64::new(Time::NEVER.0), AtomicI64::new(0));
        Ok(Alarm { timer, set, slept })
    }

    /// It becomes readable once each time that it rings: nobody has to read it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// For how long one may wait who is to be awake then: `None` for as long as it takes, as the alarm wakes it.
    pub fn limit(&self, now: Time, until: Time) -> Option<Duration> {
        let is_busy = now < Time(self.slept.swap(now.0, Ordering::Relaxed)) + NEAR;
        if until == Time::NEVER {
            return None;
        }
        let set = Time(self.set.load(Ordering::Relaxed));
        let is_moved = is_busy && set < until && set < now + NEAR;
        if set <= until && !is_moved {
            return None;
        }
        let left = until.since(now).max(Duration::ZERO);
        let at = TimeSpec::new(until.0.div_euclid(NS_PER_S), until.0.rem_euclid(NS_PER_S));
        let once = Expiration::OneShot(at);
        if left < SOON || self.timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
            return Some(left);
        }
        self.set.store(until.0, Ordering::Relaxed);
        None
    }

    /// It has rung.
    pub fn note_rung(&self) {
        self.set.store(Time::NEVER.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;
    use crate::clock::monotonic_now;

    fn set_for(alarm: &Alarm) -> Time {
        Time(alarm.set.load(Ordering::Relaxed))
    }

    #[test]
    fn it_stays_set_until_something_earlier_is_due() {
        let (alarm, now) = (Alarm::new().unwrap(), monotonic_now());
        let is_set = || alarm.timer.get().unwrap().is_some();
        let later = |n| now + SOON.times(n);
        assert_eq!((alarm.limit(now, Time::NEVER), is_set()), (None, false));
        let soon = later(2) + Duration(SOON.0 - 1);
        assert_eq!(
            (alarm.limit(later(2), soon), is_set()),
            (Some(Duration(SOON.0 - 1)), false),
            "not worth it"
        );
        assert_eq!((alarm.limit(later(4), later(60_000)), set_for(&alarm)), (None, later(60_000)));
        assert_eq!((alarm.limit(later(6), later(20)), set_for(&alarm)), (None, later(20)));
        assert_eq!((alarm.limit(later(8), later(30)), set_for(&alarm)), (None, later(20)));

        let mut fds = [PollFd::new(alarm.fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(5_000_u16)), Ok(1));
        assert!(monotonic_now() >= later(20), "not early");
        alarm.note_rung();
        assert_eq!(alarm.limit(later(20), later(30)), None);
        assert!(is_set(), "anew");
    }

    #[test]
    fn who_waits_until_the_next_is_due_sets_it_once_for_each() {
        let (alarm, now) = (Alarm::new().unwrap(), monotonic_now());
        for ms in 0..100_i64 {
            let at = |us| now + Duration::from_micros(ms * 1_000 + us);
            // It waits for the answer, and then until the next is due.
            assert_eq!((alarm.limit(at(10), at(1_000)), set_for(&alarm)), (None, at(1_000)));
            assert_eq!((alarm.limit(at(40), at(1_000)), set_for(&alarm)), (None, at(1_000)));
            alarm.note_rung();
        }
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
        assert_eq!((alarm.limit(at(2_000_000), at(2_010_000)), set_for(&alarm)), (None, at(1_010_000)));
    }
}
