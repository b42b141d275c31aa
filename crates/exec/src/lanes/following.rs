//! What the protocol has matched is followed: lanes are offered, begun and left, by whoever drives or by who has made an end.

use taut_base::{Duration, Time};
use taut_dcps::Match;
use taut_lock::MutexGuard;

use crate::clock::monotonic_now;
use crate::core::Core;
use crate::driver::drive::HEARS_AFTER;
use crate::executor::Inner;

/// How long one who makes an end follows what has matched. Lower and the first samples between two ends of a participant that
/// has many go through the protocol, higher and who makes an end does for longer what whoever drives could do.
const OWN: Duration = Duration::from_millis(2);

impl Inner {
    /// Leaves what the protocol has matched to whoever drives: whoever has found it may be about to write, and what follows
    /// from one match may bring another one. Called without the token.
    pub fn leave_matches(&self, matches: Vec<Match>) {
        if matches.is_empty() {
            return;
        }
        self.joins.matched.leave(matches.into_iter());
        self.call_to_follow();
    }

    fn call_to_follow(&self) {
        if !self.kick() && !self.role.is_served() {
            self.call_background();
        }
    }

    /// Has something matched that nobody has followed?
    #[inline]
    pub fn has_to_follow(&self, core: &Core) -> bool {
        core.participant.has_matches() || self.joins.matched.is_any_left()
    }

    /// Whoever drives follows some of what has matched before it is told: who waits for a match finds the two joined, as far as
    /// they are here. The next round goes on. Others may have the token meanwhile.
    pub fn follow_some(&self, core: &mut MutexGuard<'_, Core>) {
        if !self.has_to_follow(core) {
            return;
        }
        self.joins.matched.leave(std::iter::from_fn(|| core.participant.poll_match()));
        let until = core.now + HEARS_AFTER;
        core.accounts.end_round();
        MutexGuard::unlocked_fair(core, || {
            self.help();
            self.follow_matches(until);
        });
        core.enter(None);
    }

    /// Follows what was left until then, one match at least; not from within, and not beside another thread, which goes on.
    /// Called without the token.
    pub fn follow_matches(&self, until: Time) {
        let Some(following) = self.joins.matched.follow() else { return };
        while let Some(next) = self.joins.matched.next_left() {
            self.follow(next);
            if until <= monotonic_now() {
                break;
            }
        }
        drop(following);
        // Whoever drives has taken no notice of it meanwhile.
        if self.joins.matched.is_any_left() {
            self.call_to_follow();
        }
    }

    /// The same for who has made an end: where both ends are here it finds them joined.
    pub fn follow_own_matches(&self) {
        if self.joins.matched.is_any_left() {
            self.follow_matches(monotonic_now() + OWN);
        }
    }

    /// The same of the last ones, when the participant ends: nobody is joined any more.
    pub fn follow_ends(&self) {
        let Some(_following) = self.joins.matched.follow() else { return };
        while let Some(next) = self.joins.matched.next_left() {
            if !next.matched {
                self.follow(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::Guid;

    use super::*;
    use crate::executor_tests::inline;

    /// It may wait for the processor of a driver that would wait for it.
    #[test]
    fn who_follows_leaves_nothing_to_the_driver_meanwhile_and_calls_it_then() {
        let executor = inline();
        let inner = &executor.inner;
        let none = Match { writer: Guid::UNKNOWN, reader: Guid::UNKNOWN, offered: true, matched: false };
        inner.leave_matches(vec![none; 3]);
        assert!(inner.joins.matched.is_any_left());
        let following = inner.joins.matched.follow().unwrap();
        assert!(!inner.joins.matched.is_any_left());
        inner.follow_matches(Time::NEVER);
        drop(following);
        assert!(inner.joins.matched.is_any_left(), "another thread has done it");
        let sleeps = |is_left| {
            inner.holding.fall_asleep(Time::NEVER, Time::NEVER);
            inner.follow_matches(Time(0));
            assert_eq!(inner.joins.matched.is_any_left(), is_left);
            inner.holding.sleeps_until() == Time::NEVER
        };
        assert_eq!([true, true, false].map(sleeps), [false, false, true], "called as long as there is more");
        inner.holding.wake();
    }
}
