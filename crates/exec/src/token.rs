//! The token: who has it runs the protocol. How it is taken, used and given back.

use std::sync::atomic::Ordering;

use taut_base::Time;
use taut_lock::MutexGuard;
use taut_rtps::TxClass;

use crate::account::jobs::{Done, JobClass};
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::executor::Inner;

impl Inner {
    /// The token, and since when it was waited for if it was not free.
    pub fn await_token(&self) -> (MutexGuard<'_, Core>, Option<Time>) {
        if let Some(core) = self.try_token() {
            return (core, None);
        }
        self.contended.fetch_add(1, Ordering::Relaxed);
        let since = monotonic_now();
        self.asking.fetch_add(1, Ordering::SeqCst);
        let core = self.core.lock();
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.count_token();
        (core, Some(since))
    }

    /// Runs one step, and counts how many of them nobody could come between.
    pub fn run<D: Into<Done>>(
        &self,
        core: &mut Core,
        class: JobClass,
        step: impl FnOnce(&mut Core, usize) -> D,
    ) {
        core.run(class, step);
        if class.gives_way() {
            let wanted = self.asking.load(Ordering::SeqCst) > 0;
            core.accounts.note_ahead(wanted, self.writes.is_any());
        }
    }

    /// The token, with the clock read.
    pub fn enter(&self) -> MutexGuard<'_, Core> {
        let (mut core, since) = self.await_token();
        core.enter(since);
        core
    }

    /// The same for one who has read the clock just before.
    pub fn enter_at(&self, just_now: Time) -> MutexGuard<'_, Core> {
        let (mut core, since) = self.await_token();
        match since {
            None => core.enter_at(Some(just_now)),
            since => core.enter(since),
        }
        core
    }

    pub fn try_token(&self) -> Option<MutexGuard<'_, Core>> {
        let token = self.core.try_lock()?;
        self.count_token();
        Some(token)
    }

    /// With the token, so that nobody else counts.
    #[inline]
    fn count_token(&self) {
        self.tokens.store(self.tokens.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Gives the token back and tells of the news; then looks once more for what others have left. Returns
    /// whether that took its time, as somebody was woken or told.
    pub fn give_back(&self, core: MutexGuard<'_, Core>) -> bool {
        if !core.participant.is_quiet() {
            // Who tells looks itself for what others have left.
            return self.finish(core);
        }
        let woke = self.let_go(core, false);
        self.help_on();
        woke
    }

    pub fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> bool {
        if core.participant.is_quiet() {
            return self.let_go(core, false);
        }
        // Not one within the other: there may be many.
        while self.tell(core) {
            core = self.await_token().0;
        }
        true
    }

    /// Unlocks, and wakes the driver if there is something for it. Returns whether it did. There is a fence between the two,
    /// in [`crate::driver::holding::Holding::oversleeps`].
    pub fn let_go(&self, core: MutexGuard<'_, Core>, news: bool) -> bool {
        let more_work = core.has_work(TxClass::Discovery) || core.port.has_aside();
        let (next, held_until) = (core.next_timeout(), core.held.until);
        self.holding.note_due(if news || more_work { Time(0) } else { next.min(held_until) });
        MutexGuard::unlock_fair(core);
        let kicked = self.holding.oversleeps(news || more_work, next, held_until) && self.kick();
        self.leave_broken();
        kicked
    }

    /// Wakes the driver if it sleeps. Returns whether it did.
    pub fn kick(&self) -> bool {
        let sleeps = self.holding.rouse();
        if sleeps && !self.polling.is_on() {
            self.kicks.fetch_add(1, Ordering::Relaxed);
            self.watch.wake();
        }
        sleeps
    }

    /// Somebody beside the token has something for whoever waits here.
    pub fn be_rung(&self) {
        self.kicks.fetch_add(1, Ordering::Relaxed);
        // The driver may be on its way to sleep: it finds the eventfd written.
        self.watch.wake();
        if self.role.has_followers() {
            self.role.tell_followers();
        }
    }
}
