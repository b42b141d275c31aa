//! The driver's role in the hands of a thread: given back whatever becomes of that thread.

use std::cell::Cell;

use taut_base::Time;
use taut_lock::{MutexGuard, thread_id};
use taut_rtps::TxClass;

use crate::core::Core;
use crate::executor::Inner;

/// While it lives the calling thread has the role, which it gives back also if it panics.
pub(crate) struct Driving<'a> {
    inner: &'a Inner,
    has_driven: Cell<bool>,
}

impl<'a> Driving<'a> {
    /// Of who has just claimed the role.
    pub fn new(inner: &'a Inner) -> Driving<'a> {
        inner.role.note_driver(thread_id());
        Driving { inner, has_driven: Cell::new(false) }
    }

    /// It has looked at the port.
    pub fn note_driven(&self) {
        self.has_driven.set(true);
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        // It looks for no samples any more, whatever it was about to do.
        if std::thread::panicking() {
            self.inner.peek(|core| core.accounts.end_round());
        }
        self.inner.release_role(self.has_driven.get());
    }
}

impl Inner {
    fn release_role(&self, has_driven: bool) {
        if self.role.release(has_driven) {
            self.unpark_background();
        }
        self.send_held();
    }

    /// Nobody may drive now who would send what waits, unless that is for the next call.
    #[inline]
    pub fn send_held(&self) {
        self.help_on();
        self.owed.asleep.wake_all();
        if self.holding.until() != Time::NEVER {
            self.send_what_is_held();
        }
    }

    #[inline(never)]
    fn send_what_is_held(&self) {
        let mut core = self.enter();
        self.send_waiting(&mut core);
        self.give_back(core);
    }

    fn send_waiting(&self, core: &mut MutexGuard<'_, Core>) {
        if !core.held.is_patient {
            self.release(core);
        }
        self.send(core, TxClass::Data);
    }

    /// Calls, with the role and without the token, what may take long: no sample waits for it, neither one that is held
    /// nor one that was left to the token's holder.
    pub fn away_from<R>(&self, core: &mut MutexGuard<'_, Core>, call: impl FnOnce() -> R) -> R {
        let _away = self.role.go_away(thread_id());
        self.owed.asleep.wake_all();
        self.send_waiting(core);
        // What others have to send meanwhile waits for no look of this thread.
        core.accounts.end_round();
        MutexGuard::unlocked_fair(core, || {
            self.help();
            call()
        })
    }
}
