//! The token: who has it runs the protocol. How it is taken, used and given back.

use std::sync::atomic::Ordering;

use taut_base::Time;
use taut_lock::MutexGuard;
use taut_rtps::TxClass;

use crate::account::jobs::{Done, JobClass};
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::driver::news::Topics;
use crate::executor::Inner;
use crate::telling::Leftover;
use crate::write::burst;

impl Inner {
    /// The token, however long it takes.
    pub fn token(&self) -> MutexGuard<'_, Core> {
        self.try_token().unwrap_or_else(|| self.await_token().0)
    }

    /// The token, which was not free, and since when it was waited for.
    #[cold]
    fn await_token(&self) -> (MutexGuard<'_, Core>, Time) {
        self.contended.fetch_add(1, Ordering::Relaxed);
        let since = monotonic_now();
        self.asking.fetch_add(1, Ordering::SeqCst);
        let core = self.core.lock();
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.count_token();
        (core, since)
    }

    /// Runs one step, and counts how many of them nobody could come between.
    #[inline(always)]
    pub fn run<D: Into<Done>>(
        &self,
        core: &mut Core,
        class: JobClass,
        step: impl FnOnce(&mut Core, usize) -> D,
    ) {
        core.run(class, step);
        if class.gives_way() {
            let wanted = self.asking.load(Ordering::SeqCst) > 0;
            core.accounts.note_ahead(wanted, self.writes.has_critical());
        }
    }

    /// The token, with the clock read.
    #[inline]
    pub fn enter(&self) -> MutexGuard<'_, Core> {
        let Some(mut core) = self.try_token() else { return self.enter_late() };
        core.enter(None);
        core
    }

    /// The same for one who has read the clock just before.
    #[inline]
    pub fn enter_at(&self, just_now: Time) -> MutexGuard<'_, Core> {
        let Some(mut core) = self.try_token() else { return self.enter_late() };
        core.enter_at(Some(just_now));
        core
    }

    #[cold]
    fn enter_late(&self) -> MutexGuard<'_, Core> {
        let (mut core, since) = self.await_token();
        core.enter(Some(since));
        core
    }

    #[inline]
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

    /// The same of a caller that is to be back soon: what goes on coming is told by whoever drives. A real-time thread tells
    /// nothing where somebody else can: listeners may take as long as they like, and who tells in a storm of discovery finds more
    /// each time, for a step of the driver's each.
    pub fn give_back_soon<'a>(&'a self, core: MutexGuard<'a, Core>) -> bool {
        let woke = self.finish_soon(core);
        self.help_on();
        woke
    }

    /// The same without a look at what others have left.
    #[inline]
    pub fn finish_soon<'a>(&'a self, core: MutexGuard<'a, Core>) -> bool {
        if core.participant.is_quiet() { self.let_go(core, false) } else { self.tell_soon(core) }
    }

    #[cold]
    fn tell_soon<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> bool {
        if self.is_inline && !self.role.is_served() {
            return self.finish(core);
        }
        if !taut_lock::is_real_time() {
            let mut left = Leftover::default();
            let more = self.tell(core, &mut left);
            self.leave_for_later(left);
            if !more {
                return true;
            }
            core = self.token();
        }
        if core.participant.is_quiet() { self.let_go(core, false) } else { self.leave_news(core) }
    }

    /// Gives the token back and leaves what there is to tell to whoever drives, who is woken for it.
    fn leave_news(&self, core: MutexGuard<'_, Core>) -> bool {
        let woke = self.leave_to_driver(core);
        if self.is_inline && !self.role.is_served() {
            return self.finish(self.token());
        }
        woke
    }

    /// The same where the caller is not to tell it, whoever drives: with the inline driver that may be whoever calls next.
    pub fn leave_to_driver(&self, core: MutexGuard<'_, Core>) -> bool {
        self.role.leave_untold();
        let woke = self.let_go(core, true);
        // Who has given the role back before has not seen that.
        if !self.role.is_served() {
            self.call_background();
        }
        woke
    }

    /// The same at the end of a step of whoever drives, or of its last one, after which there is nothing to be done until
    /// then, if that is known. What a reader has got is most often for that thread alone, which takes it then.
    #[inline]
    pub fn end_step(&self, mut core: MutexGuard<'_, Core>, idle_until: Option<Time>) {
        // Whoever began to listen has looked with the token since then, or looks when it is given back.
        let tells = !core.participant.is_quiet();
        if tells && (self.is_listened_to() || !core.participant.forget_samples()) {
            self.finish(core);
            return;
        }
        match idle_until {
            Some(next) => self.let_go_until(core, false, next),
            None => self.let_go(core, false),
        };
        self.help_on();
    }

    /// Does anybody want to be told of news?
    #[inline]
    fn is_listened_to(&self) -> bool {
        self.hooks.is_any() || self.role.has_followers() || self.doors.has_parked()
    }

    #[inline(never)]
    pub fn finish<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> bool {
        if core.participant.is_quiet() {
            return self.let_go(core, false);
        }
        // Not one within the other: there may be many.
        let mut left = Leftover::default();
        while self.tell(core, &mut left) {
            core = self.token();
        }
        self.leave_for_later(left);
        true
    }

    /// Unlocks, and wakes the driver if there is something for it, at once or in time. Returns whether that took its time.
    /// There is a fence between the two, in [`crate::driver::holding::Holding::oversleeps`].
    pub fn let_go(&self, core: MutexGuard<'_, Core>, news: bool) -> bool {
        let more_work = core.has_work(TxClass::Discovery) || core.port.has_aside();
        let next = core.next_timeout();
        self.let_go_until(core, news || more_work, next)
    }

    /// The same of who knows when the next timer is due, and whether there is something to be done at once.
    #[inline]
    fn let_go_until(&self, core: MutexGuard<'_, Core>, urgent: bool, next: Time) -> bool {
        let (now, held_until) = (core.now, core.held.until);
        self.holding.note_due(if urgent { Time(0) } else { next.min(held_until) });
        MutexGuard::unlock_fair(core);
        let oversleeps = self.holding.oversleeps(urgent, next, held_until);
        let called = oversleeps && if urgent { self.kick() } else { self.remind(now, next, held_until) };
        self.leave_broken();
        called
    }

    /// Has a driver that would oversleep a timer, or what is held until then, wake in time. Returns whether that took its time.
    #[cold]
    pub fn remind(&self, now: Time, next: Time, held_until: Time) -> bool {
        let at = next.min(burst::due(held_until));
        // Who polls looks at what is said to it, and needs no timer.
        if at <= now || self.polling.is_on() {
            return self.kick();
        }
        self.reminders.fetch_add(1, Ordering::Relaxed);
        self.holding.shorten(next, held_until);
        self.watch.remind(now, at) || self.kick()
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
            self.role.tell_followers(Topics::OTHERS);
        }
    }
}
