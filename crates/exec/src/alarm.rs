//! What wakes a driver that sleeps until some time: a timer that stays set from one sleep to the next.
//!
//! A limit of the wait itself is set and taken back with each sleep. While it is the next that the processor has to wake
//! for, both are told to the hardware, which in a virtual machine is an exit each: a round trip took 10 us longer
//! whenever a timer of Taut's was due before the system's next tick. This timer is set only for something earlier than
//! it is set for; it may ring when there is nothing to do, and then is set anew.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, Ordering};

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use taut_base::{Duration, Time};

use crate::clock::NS_PER_S;

/// What is due sooner is a limit of the wait: it is over before the alarm would be of use again. Lower sets the alarm
/// for each burst's end, higher has more sleeps with a limit.
const SOON: Duration = Duration::from_millis(1);

/// The alarm of a participant. Only who has the role sets it and hears it.
pub(crate) struct Alarm {
    timer: TimerFd,
    /// What it is set for; `NEVER` once it has rung.
    set: AtomicI64,
}

impl Alarm {
    pub fn new() -> Result<Alarm, Errno> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Alarm { timer, set: AtomicI64::new(Time::NEVER.0) })
    }

    /// It becomes readable once each time that it rings: nobody has to read it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// For how long one may wait who is to be awake then: `None` for as long as it takes, as the alarm wakes it.
    pub fn limit(&self, now: Time, until: Time) -> Option<Duration> {
        if until == Time::NEVER || self.set.load(Ordering::Relaxed) <= until.0 {
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

    #[test]
    fn it_stays_set_until_something_earlier_is_due() {
        let (alarm, now) = (Alarm::new().unwrap(), monotonic_now());
        let is_set = || alarm.timer.get().unwrap().is_some();
        assert_eq!((alarm.limit(now, Time::NEVER), is_set()), (None, false));
        let soon = Duration(SOON.0 - 1);
        assert_eq!((alarm.limit(now, now + soon), is_set()), (Some(soon), false), "not worth it");
        let later = |n| now + SOON.times(n);
        assert_eq!(
            (alarm.limit(now, later(60_000)), alarm.set.load(Ordering::Relaxed)),
            (None, later(60_000).0)
        );
        assert_eq!((alarm.limit(now, later(20)), alarm.set.load(Ordering::Relaxed)), (None, later(20).0));
        assert_eq!((alarm.limit(now, later(30)), alarm.set.load(Ordering::Relaxed)), (None, later(20).0));

        let mut fds = [PollFd::new(alarm.fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(5_000_u16)), Ok(1));
        assert!(monotonic_now() >= later(20), "not early");
        alarm.note_rung();
        assert_eq!(alarm.limit(later(20), later(30)), None);
        assert!(is_set(), "anew");
    }
}
