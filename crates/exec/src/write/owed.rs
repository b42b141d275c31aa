//! What threads that write without the token leave to whoever drives.

use taut_base::Time;
use taut_dcps::Missed;
use taut_rtps::WriterIndex;

use crate::write::outlet::Route;
use crate::write::promises::Promises;
use crate::write::wakes::Asleep;

/// What is looked at without the token, too, each behind a lock of its own.
#[derive(Default)]
pub(crate) struct Owed {
    /// Deadlines, of which to tell who has missed them.
    pub promises: Promises,
    /// Who is to be woken for samples of a burst.
    pub asleep: Asleep<Route>,
}

impl Owed {
    /// When to look at it; may be early. *Cost*: one load. Who is about to sleep until then looks once more after having said
    /// so.
    #[inline]
    pub fn next(&self) -> Time {
        self.promises.next()
    }

    /// Leaves those who sleep where a route leads asleep until then. Returns whether that is before all that the driver knows
    /// of.
    pub fn leave_asleep(&self, route: &Route, until: Time) -> bool {
        self.asleep.leave(route, until);
        self.promises.hasten(until)
    }

    /// Wakes whose time is over, and tells of the deadlines that were missed.
    pub fn look(&self, now: Time, tell: impl FnMut(WriterIndex, Missed)) {
        self.asleep.wake(now);
        if self.next() <= now {
            self.promises.look(now, tell);
            self.promises.rest(now);
            self.promises.hasten(self.asleep.next());
        }
    }
}
