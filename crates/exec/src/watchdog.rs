//! When the thread that stands by looks whether somebody still drives.
//!
//! A thread of the user that waits again and again drives, and the background thread looks now and then whether it still
//! does. Such a look takes the user's processor away for tens of microseconds, a timer's interrupt and two changes of
//! threads. So a user who is busy moves the look on, for the price of a system call each few milliseconds, and there is
//! none until it stops.

use std::sync::atomic::{AtomicI64, Ordering};

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use taut_base::{Duration, Time};

use crate::clock::{NS_PER_S, monotonic_now};

/// How long after the last move the look comes; it is moved when half of that is over. Lower has users move it more
/// often, and as the system's next timer, which costs more; higher has nobody drive for longer.
pub(crate) const SPAN: Duration = Duration::from_millis(8);

/// How long after a look the next one comes that tells whether a user who has stopped waiting comes back. Lower takes
/// the role from one who does, higher has nobody drive for longer.
pub(crate) const GRACE: Duration = Duration::from_millis(1);

/// The next look of a thread that stands by.
pub(crate) struct Watchdog {
    timer: TimerFd,
    /// When the look is; `NEVER` while nobody waits for it.
    at: AtomicI64,
}

impl Watchdog {
    pub fn new() -> Result<Watchdog, Errno> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
        Ok(Watchdog { timer, at: AtomicI64::new(Time::NEVER.0) })
    }

    /// Sleeps for so long, for longer if it is moved on, and not at all if `is_called`, which is asked once who calls is
    /// sure to be heard. Returns whether it was moved on.
    pub fn sleep(&self, span: Duration, is_called: impl FnOnce() -> bool) -> bool {
        let at = monotonic_now() + span;
        self.at.store(at.0, Ordering::SeqCst);
        // The system refuses no time; if it did, the look would be at once.
        if self.set(at).is_ok() && !is_called() {
            let _ = self.timer.wait();
        }
        let last = self.at.swap(Time::NEVER.0, Ordering::SeqCst);
        last != at.0 && last != Time::NEVER.0
    }

    /// Somebody drives. *Cost*: a look at the clock while a thread stands by; once in [`SPAN`] a system call.
    #[inline]
    pub fn move_on(&self) {
        if self.sleeps_until() != Time::NEVER {
            self.move_on_from(monotonic_now());
        }
    }

    /// When the look is; `NEVER` while nobody waits for it.
    pub fn sleeps_until(&self) -> Time {
        Time(self.at.load(Ordering::SeqCst))
    }

    /// Somebody drives at that time.
    pub fn move_on_from(&self, now: Time) {
        let (at, next) = (self.at.load(Ordering::SeqCst), now + SPAN);
        let is_near = at != Time::NEVER.0 && now + Duration(SPAN.0 / 2) > Time(at);
        if is_near && self.at.compare_exchange(at, next.0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            // Refused, it rings as it would have.
            let _ = self.set(next);
        }
    }

    /// The look is to be now. A move at the same moment delays it by [`SPAN`].
    pub fn ring(&self) {
        if self.at.swap(Time::NEVER.0, Ordering::SeqCst) != Time::NEVER.0 {
            let _ = self.set(Time(1));
        }
    }

    fn set(&self, at: Time) -> nix::Result<()> {
        let spec = TimeSpec::new(at.0.div_euclid(NS_PER_S), at.0.rem_euclid(NS_PER_S));
        self.timer.set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_look_comes_in_time_or_is_moved_on_or_called() {
        let dog = &Watchdog::new().unwrap();
        let begun = monotonic_now();
        assert!(!dog.sleep(Duration::from_millis(2), || false));
        assert!(monotonic_now() >= begun + Duration::from_millis(2));

        dog.move_on();
        assert_eq!(dog.sleeps_until(), Time::NEVER, "nobody waits for it");
        assert!(!dog.sleep(LONG, || true));

        thread::scope(|scope| {
            let moved = || {
                let at = dog.sleeps_until();
                dog.move_on_from(at - Duration(SPAN.0 / 2));
                assert_eq!(dog.sleeps_until(), at, "it is far enough");
                dog.move_on_from(at + LONG);
                false
            };
            let sleeper = scope.spawn(move || dog.sleep(Duration::from_millis(1), moved));
            let is_moved = || (begun + LONG..Time::NEVER).contains(&dog.sleeps_until());
            while !is_moved() {
                assert!(monotonic_now() < begun + Duration::from_secs(30), "it was not moved on");
                thread::yield_now();
            }
            dog.ring();
            assert!(!sleeper.join().unwrap(), "who was called is not to sleep again");
        });
        let moved = || {
            dog.move_on_from(dog.sleeps_until());
            false
        };
        assert!(dog.sleep(Duration::from_millis(1), moved));
    }
}
