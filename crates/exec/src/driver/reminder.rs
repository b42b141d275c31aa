//! What has a driver that sleeps awake when something is due that others have left it since: a timer that any thread sets.
//!
//! To wake it at once, so that it looks until when it may sleep, takes two changes of threads; and in a burst it then wants
//! the token, which the writer has. A timer costs who leaves something a system call, and the driver nothing before it rings.
//! It is set only for something earlier than it is set for, as the driver's own [`Alarm`] is, and it may ring in vain.
//!
//! [`Alarm`]: crate::driver::alarm::Alarm

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use taut_base::Time;
use taut_lock::Mutex;

use crate::driver::alarm::Timer;
use crate::lanes::neighbours::FIRST_SOURCE;

/// The number of the timer among the sources.
const SOURCE: u64 = FIRST_SOURCE - 5;

/// The reminder of a participant. Only who has the role hears it.
pub(crate) struct Reminder {
    timer: Timer,
    /// Held while what it is set for changes.
    setting: Mutex<()>,
}

impl Reminder {
    pub fn new() -> Result<Reminder, Errno> {
        Ok(Reminder { timer: Timer::new()?, setting: Mutex::default() })
    }

    /// The timer, and its number among the sources. It becomes readable once each time that it rings: nobody has to read it.
    pub fn fd(&self) -> (BorrowedFd<'_>, u64) {
        (self.timer.fd.as_fd(), SOURCE)
    }

    /// Rings then at the latest. `false` if the driver is to be woken instead: the system refuses, or it has rung and nobody has
    /// heard it yet, who might miss that if it were set anew. *Cost*: a lock; most often a system call.
    pub fn set(&self, now: Time, at: Time) -> bool {
        let _setting = self.setting.lock();
        let set_for = self.timer.at();
        set_for > now && (set_for <= at || self.timer.set(at))
    }

    /// Has this source rung? `false` if it is another one.
    #[inline]
    pub fn hear(&self, source: u64) -> bool {
        let has_rung = source == SOURCE;
        if has_rung {
            let _setting = self.setting.lock();
            self.timer.note_rung();
        }
        has_rung
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use taut_base::Duration;

    use super::*;
    use crate::clock::monotonic_now;

    #[test]
    fn it_rings_for_the_first_of_what_it_was_set_for() {
        let (reminder, now) = (Reminder::new().unwrap(), monotonic_now());
        let at = |ms| now + Duration::from_millis(ms);
        let set_for = |reminder: &Reminder| reminder.timer.at();
        for (wanted, ms) in [(300, 300), (20, 20), (100, 20)] {
            assert!(reminder.set(now, at(wanted)));
            assert_eq!(set_for(&reminder), at(ms), "an earlier one is enough");
        }
        let mut fds = [PollFd::new(reminder.fd().0, PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(5_000_u16)), Ok(1));
        assert!(monotonic_now() >= at(20), "not early");
        assert!(!reminder.set(at(20), at(400)), "nobody has heard it yet");
        assert!(reminder.hear(SOURCE) && !reminder.hear(SOURCE + 1));
        assert!(reminder.set(at(20), at(400)));
        assert_eq!(set_for(&reminder), at(400));
    }
}
