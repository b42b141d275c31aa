//! How the owners of readers and writers wait at their ends: they look for a while, then sleep.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use taut_base::{Duration, Result, Time};
use taut_dcps::ReaderSide;
use taut_lock::{MutexGuard, thread_id};

use crate::access::{tell_wall_clock, tell_wall_clock_to, would_wait};
use crate::clock::monotonic_now;
use crate::driver::driving::Driving;
use crate::driver::news::Topics;
use crate::executor::Executor;
use crate::lanes::door::Door;
use crate::write::burst;
use crate::write::outlet::Outlet;

/// How long a wait looks before it sleeps, unless the user says otherwise. Lower and peers that answer at
/// once are slept for, which costs each side a system call and the machine a change of threads; higher and
/// a look in vain takes more of the processor.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(20);

/// How often a look looks before it reads the clock again, and pauses of the processor between two looks.
pub(crate) struct Pace {
    looks: u32,
    pauses: u32,
    /// Does it count for looks that the first one finds something?
    counts_at_once: bool,
    /// After a longer time from the begin of one look to the next the thread was stopped meanwhile, and what it then finds is
    /// nothing that it has seen coming: on one core who it waits for took its place, as if it had slept. Lower and a slow look
    /// counts as one in vain, higher has one core looked on. The look that finds may take its time: it may copy what it finds.
    stop: Duration,
}

/// At a lane the clock would take a tenth of the way of a sample.
const NEVER: Duration = Duration::INFINITE;
/// Who waits for a sample wants it at once.
const FOR_SAMPLE: Pace = Pace { looks: 8, pauses: 1, counts_at_once: true, stop: NEVER };
/// Who waits for room is served well with some more of it: each look takes the reader's cache line away.
const FOR_ROOM: Pace = Pace { looks: 1, pauses: 32, counts_at_once: true, stop: NEVER };

/// A look at the port is a system call, and what is there already a sleep finds by the same one: on one core, the answer
/// of who was woken and ran first.
pub(crate) const AT_PORT: Pace = Pace { looks: 2, pauses: 0, counts_at_once: false, stop: STOP };

/// A look takes up to 1 us, and who took the place of the thread has received, answered and gone to sleep.
const STOP: Duration = Duration::from_micros(4);

/// Waits without a look after looks in vain, at most. Lower and one who waits for what never comes at once,
/// as on a single core, looks in vain more often; higher and it takes longer to see that things have changed.
const LONGEST_PAUSE: u32 = 1_023;

/// How many times `spin` a look lasts at most, where waits come so close upon each other: two that wait for each other
/// asleep take a wake-up each for every exchange, 30 us between processors, and the first that looks must look for
/// longer than the other one's takes to see that it is worth it. Lower and they stay asleep, until both look at once by
/// chance; higher and a wait for what comes that often takes a processor.
const LONGER: i64 = 3;

/// How long a writer that waits for room leaves readers to those who take from them, before it has the readers'
/// drivers make room. Lower and a reader that falls behind for a moment has its samples moved to its cache, which
/// costs it more than to take them from the lane; higher and a writer of many samples to a reader that takes
/// none waits longer.
const GRACE: Duration = Duration::from_micros(200);

/// Whether to look before to sleep, by what came of it the last times: as long as looks find something each
/// wait looks; after each that does not twice as many waits go to sleep at once, and half as many for each that did.
#[derive(Default)]
pub(crate) struct Spin {
    pause: AtomicU32,
    left: AtomicU32,
    /// When the last wait began, of those that look and those before one that looks.
    begun: AtomicI64,
}

impl Spin {
    /// Looks with `ready` for `spin`, or longer if waits come close upon each other, at most until `until`, if that is
    /// likely to help. Returns whether it did.
    pub fn look(
        &self,
        spin: Duration,
        until: Option<Time>,
        pace: &Pace,
        ready: impl FnMut() -> bool,
    ) -> bool {
        !self.does_without() && self.look_now(spin, until, pace, ready)
    }

    /// Is this one of the waits that a look does not help?
    #[inline]
    pub fn does_without(&self) -> bool {
        self.does_without_by(monotonic_now)
    }

    #[inline]
    fn does_without_by(&self, clock: impl Fn() -> Time) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            if left == 1 {
                self.begun.store(clock().0, Ordering::Relaxed);
            }
        }
        left > 0
    }

    /// The look of [`Spin::look`], after [`Spin::does_without`] has denied.
    pub fn look_now(
        &self,
        spin: Duration,
        until: Option<Time>,
        pace: &Pace,
        ready: impl FnMut() -> bool,
    ) -> bool {
        self.look_by(monotonic_now, spin, until, pace, ready)
    }

    #[inline]
    fn look_by(
        &self,
        clock: impl Fn() -> Time,
        spin: Duration,
        until: Option<Time>,
        pace: &Pace,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let mut now = clock();
        let latest = now + self.limit(spin, now);
        let end = until.map_or(latest, |until| until.min(latest));
        if end <= now {
            return false;
        }
        if !pace.counts_at_once && ready() {
            // The next wait is the one that looks: the rest of a long sample is most often there when its first part was found.
            return true;
        }
        let mut last = now;
        while now < end {
            for _ in 0..pace.looks {
                let begun = if pace.stop == NEVER { last } else { clock() };
                let stopped = begun.since(last) > pace.stop;
                last = begun;
                if ready() {
                    if stopped {
                        self.note_vain();
                    } else {
                        // Not at once 0: a stop may have been too short to be known as one.
                        self.pause.store(self.pause.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
                    }
                    return true;
                }
                (0..pace.pauses).for_each(|_| std::hint::spin_loop());
            }
            // Who looks when each look begins has just done so.
            now = if pace.stop == NEVER { clock() } else { last };
        }
        self.note_vain();
        false
    }

    /// How long a look that begins now is: what the last wait and what came after it took, if that is close to `spin`, and as
    /// much again as that, as the system may stop either side meanwhile.
    fn limit(&self, spin: Duration, now: Time) -> Duration {
        let last = now.since(Time(self.begun.swap(now.0, Ordering::Relaxed)));
        let most = spin.times(LONGER);
        if last > most.times(2) { spin } else { Duration(last.0.saturating_add(spin.0)).min(most) }
    }

    /// A sleep would have been as good.
    fn note_vain(&self) {
        let pause = (self.pause.load(Ordering::Relaxed) * 2 + 1).min(LONGEST_PAUSE);
        self.pause.store(pause, Ordering::Relaxed);
        self.left.store(pause, Ordering::Relaxed);
    }
}

/// Looks until then, however often in vain. Returns whether it has found something.
pub(crate) fn look_until(end: Time, mut ready: impl FnMut() -> bool) -> bool {
    loop {
        if ready() {
            return true;
        }
        if monotonic_now() >= end {
            return false;
        }
    }
}

/// When a wait that begins now ends; `None` for one without end.
pub fn ends(wait: Duration) -> Option<Time> {
    (!wait.is_infinite()).then(|| monotonic_now() + wait)
}

impl Executor {
    /// Waits until a reader has a sample that was not read. `false` when `until` has passed.
    pub fn wait_unread(&self, door: &Door, until: Option<Time>) -> bool {
        let (is_served, has_lanes) =
            (self.inner.polling.has_thread(), self.inner.doors.has_lanes() && door.has_lanes());
        if (is_served || has_lanes)
            && door.spin.look(self.inner.spin, until, &FOR_SAMPLE, || self.finds_unread(door))
        {
            return true;
        }
        if has_lanes
            && self.is_threaded()
            && !self.inner.role.is_out(thread_id)
            && let Some(found) = self.park(door, until)
        {
            return found;
        }
        // Where the background thread drives, and samples keep coming, nobody is asked for what is here.
        if !has_lanes && self.is_threaded() && self.has_unread(door) {
            return true;
        }
        self.watch(door);
        let inner = &self.inner;
        let alone =
            |role: &Driving| (!has_lanes && inner.drive_until_unread(role, door, until)).then_some(());
        let of = Topics::of_reader(door.index.0);
        let found = inner.wait_first(until, of, alone, |participant, now| {
            if door.side().shows_unread(monotonic_now) {
                return Some(());
            }
            tell_wall_clock_to(participant);
            if participant.pull(now, door.index, usize::MAX).awaited {
                door.ring_writers();
            }
            participant
                .side(door.index, |side| side.cache.unread_count() > 0)
                .filter(|unread| *unread)
                .map(drop)
        });
        self.unwatch(door);
        found.is_some()
    }

    /// Is there a sample to take by now? If not, it is waited for.
    fn finds_unread(&self, door: &Door) -> bool {
        let found = self.has_unread(door);
        if !found {
            burst::note_wait();
        }
        found
    }

    /// Is there a sample to take?
    fn has_unread(&self, door: &Door) -> bool {
        if door.is_quiet() {
            return false;
        }
        let mut side = door.side();
        if side.shows_unread(monotonic_now) {
            return true;
        }
        door.note_vain_look(&side);
        side.is_ready() && self.empty_ready(door, side)
    }

    /// Is there a sample to take once what is in the lanes has been taken from there?
    #[inline(always)]
    fn empty_ready(&self, door: &Door, mut side: MutexGuard<'_, ReaderSide>) -> bool {
        tell_wall_clock(&mut side);
        let pulled = side.pull(monotonic_now());
        side.end_delivery(monotonic_now);
        let unread = side.cache.unread_count() > 0;
        self.leave(door, side, pulled, (false, 0));
        unread
    }

    /// Takes from a reader's lanes what there is room for, so that what has become of the rest is known.
    ///
    /// *Errors*: those of [`Executor::may_use`].
    pub fn empty_lanes(&self, door: &Door) -> Result<()> {
        self.may_use()?;
        let side = door.side();
        if side.is_ready() {
            self.empty_ready(door, side);
        }
        Ok(())
    }

    /// Waits at the door while all samples come from writers of this process, who wake this thread and no
    /// other. `None` if that is not, or no longer, so: the port is the place to wait then.
    fn park(&self, door: &Door, until: Option<Time>) -> Option<bool> {
        if !self.inner.doors.begin_parking(door) {
            return None;
        }
        let found = loop {
            // Another value each time: a writer rings once for each.
            door.bell.disarm();
            door.bell.arm();
            if self.has_unread(door) {
                break Some(true);
            }
            let (matched, due) = {
                let side = door.side();
                (side.matched, side.cache.next_timeout())
            };
            if !door.is_fed_here(matched) {
                break None;
            }
            if until.is_some_and(|until| until <= monotonic_now()) {
                break Some(false);
            }
            burst::note_wait();
            match until.into_iter().chain(due).min() {
                Some(end) => std::thread::park_timeout(end.since(monotonic_now()).into()),
                None => std::thread::park(),
            }
        };
        door.bell.disarm();
        self.inner.doors.end_parking(door);
        found
    }

    /// Waits until a KEEP_ALL writer may go on, for so long or not at all. Returns what is left of that time.
    ///
    /// *Errors*: [`Error::Timeout`].
    pub(crate) fn wait_for_room(&self, outlet: &mut Outlet, wait: Option<Duration>) -> Result<Duration> {
        let Some(until) = wait.map(ends) else { return Err(would_wait()) };
        self.wait_for_readers(outlet, until, Outlet::may_write)?.ok_or_else(|| self.time_out(outlet))?;
        Ok(until.map_or(Duration::INFINITE, |until| until.since(monotonic_now())))
    }

    /// Waits until all reliable readers have all that was written.
    ///
    /// *Errors*: [`taut_base::Error::Timeout`].
    pub fn wait_for_acknowledgments(&self, outlet: &mut Outlet, wait: Duration) -> Result<()> {
        self.may_wait()?;
        let index = outlet.index;
        let until = ends(wait);
        self.inner.with(|participant, now| participant.ask_for_acknowledgements(now, index));
        let acknowledged =
            self.inner.wait(until, |participant, _| participant.is_acknowledged(index).then_some(()));
        acknowledged.ok_or_else(|| self.name_slow_reader(outlet))?;
        self.wait_for_readers(outlet, until, Outlet::is_read)?.ok_or_else(|| self.name_slow_reader(outlet))
    }

    /// `None` when the time is over.
    pub(crate) fn wait_for_readers(
        &self,
        outlet: &mut Outlet,
        until: Option<Time>,
        ready: fn(&mut Outlet) -> bool,
    ) -> Result<Option<()>> {
        if ready(outlet) {
            return Ok(Some(()));
        }
        self.may_wait()?;
        let spin = std::mem::take(&mut outlet.spin);
        let found = spin.look(self.inner.spin, until, &FOR_ROOM, || ready(outlet));
        outlet.spin = spin;
        if found {
            return Ok(Some(()));
        }
        outlet.end_rest();
        Ok(self.await_readers(outlet, until, |outlet, until| {
            self.inner.wait(until, |_, _| ready(outlet).then_some(()))
        }))
    }

    /// Waits for readers with `wait`: those of the lane tell of room meanwhile.
    pub(crate) fn await_readers<R>(
        &self,
        outlet: &mut Outlet,
        until: Option<Time>,
        mut wait: impl FnMut(&mut Outlet, Option<Time>) -> Option<R>,
    ) -> Option<R> {
        if !outlet.has_readers() {
            return wait(outlet, until);
        }
        outlet.end_rest();
        outlet.set_waiting(true);
        let grace = monotonic_now() + GRACE;
        let mut found = wait(outlet, Some(until.map_or(grace, |until| until.min(grace))));
        if found.is_none() {
            outlet.ring_readers();
            found = wait(outlet, until);
        }
        outlet.set_waiting(false);
        found
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::executor_tests::{
        config, executor, executor_with_lanes, new_write, own_domain, with_both_ends, write,
    };
    use crate::write::burst::Waits;
    use crate::{Executor, ExecutorConfig};

    const BRIEF: Duration = Duration::from_micros(1);

    /// A spin by a clock that each reading moves on, and nothing else does but the tests: no thread is stopped meanwhile.
    #[derive(Default)]
    struct Timed {
        spin: Spin,
        now: Cell<Time>,
    }

    impl Timed {
        fn clock(&self) -> Time {
            self.pass(Duration(100));
            self.now.get()
        }

        fn pass(&self, span: Duration) {
            self.now.set(self.now.get() + span);
        }

        fn look(&self, spin: Duration, pace: &Pace, ready: impl FnMut() -> bool) -> bool {
            let clock = || self.clock();
            !self.spin.does_without_by(clock) && self.spin.look_by(clock, spin, None, pace, ready)
        }

        /// How many waits sleep at once until one looks again.
        fn waits_without_a_look(&self, finds: bool) -> usize {
            let looks = || {
                let mut looked = false;
                let found = self.look(BRIEF, &FOR_SAMPLE, || {
                    looked = true;
                    finds
                });
                assert_eq!(found, looked && finds);
                looked
            };
            std::iter::repeat_with(looks).take_while(|looked| !looked).count()
        }

        /// One after looks in vain.
        fn in_vain() -> Timed {
            let timed = Timed::default();
            (0..13).for_each(|_| _ = timed.waits_without_a_look(false));
            timed
        }

        /// Waits for what comes `after` a wait begins, and sleeps if it is not to be seen before. Whether a look saw it.
        fn sees(&self, after: Duration) -> bool {
            let comes = self.clock() + after;
            let found = self.look(DEFAULT_SPIN, &AT_PORT, || self.clock() >= comes);
            self.now.set(self.now.get().max(comes));
            found
        }
    }

    #[test]
    fn what_a_thread_finds_that_was_stopped_is_no_reason_to_look() {
        let (timed, pace) = (Timed::default(), Pace { counts_at_once: true, ..AT_PORT });
        let (mut looks, mut waits) = (0, 0);
        while looks < 13 {
            waits += 1;
            let mut stopped = false;
            timed.look(BRIEF, &pace, || {
                looks += u32::from(stopped);
                timed.pass(STOP);
                std::mem::replace(&mut stopped, true)
            });
        }
        assert_eq!(
            waits,
            13 + (1 + 3 + 7 + 15 + 31 + 63 + 127 + 255 + 511 + 1_023 * 3),
            "as if none had found anything"
        );
    }

    #[test]
    fn a_look_that_takes_long_finds_what_is_long() {
        let (timed, mut found) = (Timed::default(), 0);
        (0..100).for_each(|_| {
            let mut looks = 0;
            found += u32::from(timed.look(BRIEF.times(2), &AT_PORT, || {
                looks += 1;
                timed.pass(STOP.times((looks > 1).into()));
                looks > 1
            }));
        });
        assert_eq!((found, timed.spin.pause.load(Ordering::Relaxed)), (100, 0));
    }

    #[test]
    fn looks_in_vain_grow_rare_and_one_that_finds_brings_them_back() {
        let timed = Timed::default();
        let pauses: Vec<usize> = (0..13).map(|_| timed.waits_without_a_look(false)).collect();
        assert_eq!(pauses, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 1_023, 1_023]);
        assert_eq!(timed.waits_without_a_look(true), 1_023);
        assert!(
            (0..10).all(|_| timed.waits_without_a_look(true) == 0),
            "as long as it finds something it looks"
        );
        assert_eq!([false, false].map(|finds| timed.waits_without_a_look(finds)), [0, 1]);
    }

    #[test]
    fn who_waits_for_one_that_is_woken_each_time_looks_long_enough_to_see_it() {
        let timed = Timed::in_vain();
        // The first that looks has slept before: the others make up for it, half as seldom each.
        (0..1_023).for_each(|_| assert!(!timed.sees(DEFAULT_SPIN.times(2))));
        assert!((0..1_000).all(|_| timed.sees(DEFAULT_SPIN.times(2))), "it sleeps");
    }

    #[test]
    fn what_comes_seldom_is_looked_for_no_longer() {
        let (timed, seldom) = (Timed::default(), DEFAULT_SPIN.times(2 * LONGER + 1));
        assert!((0..2_000).all(|_| !timed.sees(seldom)));
        while timed.spin.left.load(Ordering::Relaxed) > 0 {
            timed.sees(seldom);
        }
        timed.pass(seldom);
        let begun = timed.clock();
        timed.look(DEFAULT_SPIN, &AT_PORT, || false);
        let looked = timed.clock().since(begun);
        assert!((DEFAULT_SPIN..DEFAULT_SPIN.times(2)).contains(&looked), "{looked}");
    }

    #[test]
    fn one_find_by_chance_costs_one_look_in_vain() {
        let timed = Timed::in_vain();
        assert_eq!([true, false, false].map(|finds| timed.waits_without_a_look(finds)), [1_023, 0, 1_023]);
    }

    #[test]
    fn what_was_there_already_is_no_reason_to_look_at_the_port() {
        let pause_after = |pace: &Pace| {
            let timed = Timed::in_vain();
            (0..10_000).for_each(|_| _ = timed.look(BRIEF, pace, || true));
            timed.spin.pause.load(Ordering::Relaxed)
        };
        assert_eq!([&AT_PORT, &FOR_SAMPLE].map(pause_after), [LONGEST_PAUSE, 0]);
    }

    /// As fragments are: who looks for the first has the others at once.
    #[test]
    fn what_comes_in_two_parts_is_looked_for_as_what_comes_in_one() {
        let (timed, mut part) = (Timed::default(), true);
        timed.waits_without_a_look(false);
        let mut wait = || {
            part = !part;
            let mut looks = 0;
            timed.look(DEFAULT_SPIN, &AT_PORT, || {
                looks += 1;
                part || looks > 3
            })
        };
        (0..10).for_each(|_| _ = wait());
        assert!((0..10).all(|_| wait()));
    }

    #[test]
    fn who_is_not_to_look_does_not() {
        let Timed { spin, .. } = &Timed::default();
        assert!(!spin.look(Duration::ZERO, None, &FOR_SAMPLE, || unreachable!("it is to sleep at once")));
        let past = Some(monotonic_now());
        assert!(!spin.look(BRIEF, past, &FOR_SAMPLE, || unreachable!("its time is over")));
        assert!(!spin.does_without(), "neither was a look in vain");
        assert!(spin.look(Duration::INFINITE, None, &AT_PORT, || true), "who is to look without end does");
    }

    #[test]
    fn who_finds_nothing_at_first_has_waited_and_who_finds_a_sample_has_not() {
        let executors = [(executor(), false), (executor_with_lanes(), true)];
        for ((executor, writer, reader), has_lanes) in executors {
            let door = executor.door(reader).unwrap();
            let has_waited = |found: bool| {
                let before = Waits::now();
                assert_eq!(executor.wait_unread(&door, ends(Duration::from_millis(20))), found);
                Waits::now() != before
            };
            // A thread that is stopped for as long as it would wait has not begun to.
            assert!((0..10).any(|_| has_waited(false)));
            if has_lanes {
                let mut outlet = executor.outlet(writer, &Default::default()).unwrap();
                write(&executor, &mut outlet, 1);
            } else {
                let written =
                    executor.with(|participant, now| participant.write(now, writer, &mut new_write()));
                written.unwrap().unwrap();
            }
            assert!(!has_waited(true));
        }
    }

    /// Who listens has its samples brought by who drives.
    #[test]
    fn who_looks_before_it_sleeps_finds_what_is_in_a_lane_and_nobody_rings() {
        const LONG: Duration = Duration::from_secs(20);
        let config = ExecutorConfig { spin: LONG, ..config(own_domain(), true) };
        let (executor, writer, reader) = with_both_ends(Executor::start(&config).unwrap());
        let mut outlet = executor.outlet(writer, &Default::default()).unwrap();
        let door = executor.door(reader).unwrap();
        // What the two ends owe each other is done with the first.
        write(&executor, &mut outlet, 1);
        while door.side().cache.unread_count() < 1 {
            executor.run_once(Some(monotonic_now() + BRIEF)).unwrap();
        }
        let before = executor.stats().kicks;
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                while door.side().cache.unread_count() < 2 {
                    executor.run_once(Some(monotonic_now() + LONG)).unwrap();
                }
            });
            while executor.inner.holding.sleeps_until() == Time(i64::MIN) {
                std::thread::yield_now();
            }
            write(&executor, &mut outlet, 2);
            driver.join().unwrap();
        });
        assert_eq!(executor.stats().kicks, before);
    }
}
