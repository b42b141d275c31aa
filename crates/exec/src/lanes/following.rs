//! What the protocol has matched is followed: lanes are offered, begun and left, by whoever drives or by who has made an end.

use taut_base::{Duration, Time};
use taut_dcps::Match;
use taut_lock::{MutexGuard, thread_id};

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
        let visiting = self.role.go_visiting(thread_id());
        MutexGuard::unlocked_fair(core, || {
            self.help();
            self.follow_matches(until);
        });
        drop(visiting);
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
    use std::sync::Arc;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Instant;

    use taut_base::Guid;
    use taut_dcps::{Endpoint, Entity, StatusMask};
    use taut_qos::{DataReaderQos, DataWriterQos};

    use super::*;
    use crate::driver::news::Topics;
    use crate::driver::role::Role;
    use crate::executor_tests::{config, endpoint, inline, own_domain, soon, with_both_ends, write};
    use crate::{Door, Driver, Executor, ExecutorConfig, listener};

    const LIMIT: Duration = Duration::from_secs(20);

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

    /// It cannot from within, and would look for what to do without a pause.
    #[test]
    fn who_visits_steps_aside_when_it_is_back() {
        let role = Role::default();
        assert!(role.claim_background());
        let steps_aside = || {
            let mut steps = false;
            let seen = role.start_following();
            role.follow_wanting(seen, Topics::ALL, Some(Instant::now()), || steps = role.is_to_step_aside());
            role.stop_following();
            steps
        };
        let visiting = role.go_visiting(1);
        assert!(!steps_aside());
        drop(visiting);
        assert!(steps_aside());
    }

    /// Its driver follows a match with another one, and so runs a listener of that one's which waits for it.
    fn waits_for_its_own_driver(driver: Driver, topic_name: &str, wait: fn(&Executor, &Door, Time) -> bool) {
        let domain_id = own_domain();
        let start =
            |driver, local| Executor::start(&ExecutorConfig { driver, ..config(domain_id, local) }).unwrap();
        let (one, writer, numbers) = with_both_ends(start(driver, true));
        let [far, two] = [false, true].map(|local| start(Driver::Inline, local));
        let elsewhere = Endpoint { topic_name: "Others".into(), ..endpoint(DataReaderQos::default()) };
        let (others, _) = one.create_reader(elsewhere).unwrap();
        let door = one.door(if topic_name == "Numbers" { numbers } else { others }).unwrap();
        let qos = DataWriterQos::default();
        let same = Endpoint { topic_name: topic_name.into(), ..endpoint(qos.clone()) };
        let mut outlet = far.outlet(far.create_writer(same).unwrap().0, &qos).unwrap();
        let writer = one.inner.peek(|core| core.participant.core().writer(writer).map(|of| of.guid)).unwrap();
        let reader = Guid { prefix: two.inner.prefix, ..Guid::UNKNOWN };
        let one = Arc::new(one);
        let (waiting, (tells, told)) = (Arc::clone(&one), channel());
        let listens = move |_| {
            tells.send((thread::current().id(), wait(&waiting, &door, monotonic_now() + LIMIT))).unwrap()
        };
        two.set_listener(Entity::Participant, Some(listener(listens))).unwrap();
        two.inner.token().participant.tell(Entity::Participant, StatusMask::INCONSISTENT_TOPIC);
        one.inner.leave_matches(vec![Match { writer, reader, offered: true, matched: true }]);
        thread::scope(|scope| {
            if driver == Driver::Inline {
                scope.spawn(|| {
                    while one.inner.joins.matched.is_any_left() {
                        one.run_once(soon()).unwrap();
                    }
                });
            }
            let (by, found) = loop {
                write(&far, &mut outlet, 1);
                far.run_once(soon()).unwrap();
                match told.recv_timeout(std::time::Duration::ZERO) {
                    Err(RecvTimeoutError::Timeout) => {}
                    outcome => break outcome.unwrap(),
                }
            };
            assert_ne!(by, thread::current().id());
            assert!(found, "{driver:?}, {topic_name}: nobody drives");
        });
    }

    #[test]
    fn a_listener_may_wait_for_the_driver_that_runs_it_for_another_participant() {
        let at_door = |one: &Executor, door: &Door, until| one.wait_unread(door, Some(until));
        // As a writer does that wants room.
        let behind = |one: &Executor, door: &Door, until| {
            let has_unread = |_: &mut _, _| (door.side().cache.unread_count() > 0).then_some(());
            one.inner.wait_behind(Some(until), has_unread).is_some()
        };
        for driver in [Driver::Inline, Driver::Threaded] {
            waits_for_its_own_driver(driver, "Others", at_door);
            waits_for_its_own_driver(driver, "Others", behind);
            // By lanes from within until then.
            waits_for_its_own_driver(driver, "Numbers", at_door);
        }
    }
}
