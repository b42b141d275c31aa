//! The driver that never sleeps: it looks at the port, at lanes and at the clock, and runs what is due.
//!
//! While it looks it says that it sleeps, as any driver does, but is woken by that word alone: who has something
//! for it changes a word that it looks at, and makes no system call. Under a real-time policy it rests now and
//! then, in many short pauses, before the kernel makes it rest in a long one.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration as StdDuration;

use taut_base::{Duration, Error, Result, Time};
use taut_lock::{Mutex, has_fixed_priority, thread_id};

use crate::clock::monotonic_now;
use crate::driver::driving::Driving;
use crate::driver::hand::Hand;
use crate::driver::role::Claim;
use crate::driver::throttle::Throttle;
use crate::driver::watch::Readable;
use crate::executor::{Executor, Inner};
use crate::hooks::to_log;
use crate::write::burst;

/// Whoever polls by a call of the user's looks so often whether to go on. Lower takes the token more often, higher
/// ends later.
const LOOKS_WHETHER: Duration = Duration::from_micros(100);

/// The shortest rest. Lower makes more system calls, higher keeps a datagram that comes just then waiting for
/// longer if it does not end the rest.
const SHORTEST_REST: Duration = Duration::from_micros(60);

/// So much rest may be put off while there is always something to do. Lower has data wait while there is much of it,
/// higher and the kernel stops the thread: it counts over a second.
const PUT_OFF: Duration = Duration::from_millis(5);

/// Who looks at sources itself asks the kernel so often all the same: for discovery, for changes, for what sockets get. Lower
/// makes more system calls, higher has those wait.
const ASKS_KERNEL: Duration = Duration::from_micros(50);

/// After so long in vain one who polls on a processor that may be others', too, lets them have it. Lower makes more system
/// calls, higher has those wait who write, or read, what the looks are for.
const GIVES_WAY: Duration = Duration::from_micros(50);

/// Who gives way and is not back sooner than this has let somebody else run: it takes two changes of threads. Lower and a
/// call without any counts as one, higher and who only looks in vain, too, is overlooked.
const OTHERS_RAN: Duration = Duration::from_micros(1);

/// What is known of a thread that polls again and again is learnt anew after so long. Lower makes more system calls, higher
/// notices later that its policy has changed.
const LEARNS_AGAIN: Duration = Duration::from_millis(100);

/// What threads know of a driver that polls.
#[derive(Default)]
pub(crate) struct Polling {
    /// A thread of Taut's does, as long as the participant lives.
    has_thread: bool,
    /// Whoever drives does, as nobody can sleep until something comes.
    is_always: bool,
    /// Somebody does now, or would if there were something to do, and looks at the word by which a driver is woken.
    is_on: AtomicBool,
    /// Did somebody else want the processor when it was given way last?
    has_company: AtomicBool,
    /// When whoever looks at sources itself asks the kernel next.
    ask_kernel_at: AtomicI64,
    /// The thread that polled last, and until when what is known of it holds: whether it is to rest, and how much.
    poller: AtomicU32,
    known_until: AtomicI64,
    /// Had it a real-time policy then?
    is_fixed: AtomicBool,
    is_to_rest: AtomicBool,
    rest: Mutex<Option<Rest>>,
    /// It polls now, and rests.
    rests: AtomicBool,
}

impl Polling {
    pub fn new(has_thread: bool, hand: Option<&Hand>) -> Polling {
        let is_always = hand.is_some_and(Hand::is_sleepless);
        Polling { has_thread, is_always, is_on: AtomicBool::new(is_always), ..Polling::default() }
    }

    /// Is it a thread of Taut's that drives, which leaves this to nobody?
    pub fn has_thread(&self) -> bool {
        self.has_thread
    }

    /// Does whoever drives poll without being asked to, and so perhaps without a processor of its own?
    fn is_shared(&self) -> bool {
        self.is_always && !self.has_thread
    }

    /// When one who looks in vain gives way: at once on a processor that others want, where what the looks are for may be
    /// theirs to send.
    fn gives_way_at(&self, now: Time) -> Time {
        if self.has_company.load(Ordering::Relaxed) { now } else { now + GIVES_WAY }
    }

    /// Lets others have the processor. Returns what time it is then.
    fn give_way(&self, now: Time) -> Time {
        std::thread::yield_now();
        let then = monotonic_now();
        self.has_company.store(then.since(now) >= OTHERS_RAN, Ordering::Relaxed);
        then
    }

    /// Is it known of the calling thread whether it is to rest?
    fn knows(&self, now: Time) -> bool {
        self.poller.load(Ordering::Relaxed) == thread_id() && now.0 < self.known_until.load(Ordering::Relaxed)
    }

    /// Learns anew what was known for a while. The kernel's files are not read again for one that has the policy that it had:
    /// what it looks for would wait for that.
    #[cold]
    fn learn_again(&self, now: Time) {
        let is_same = self.poller.load(Ordering::Relaxed) == thread_id()
            && self.is_fixed.load(Ordering::Relaxed) == has_fixed_priority();
        if is_same {
            self.known_until.store((now + LEARNS_AGAIN).0, Ordering::Relaxed);
        } else {
            self.learn_poller(now);
            self.begin(now);
        }
    }

    /// The calling thread polls from now on, as far as it is known.
    fn begin(&self, now: Time) {
        let rests = self.is_to_rest.load(Ordering::Relaxed);
        self.rests.store(rests, Ordering::Relaxed);
        if rests && let Some(rest) = self.rest.lock().as_mut() {
            rest.resume(now);
        }
    }

    /// Learns whether the calling thread is to rest.
    #[cold]
    fn learn_poller(&self, now: Time) {
        self.is_fixed.store(has_fixed_priority(), Ordering::Relaxed);
        let throttle = Throttle::of_this_thread();
        if self.learn(thread_id(), throttle.as_ref(), now)
            && let Some(throttle) = throttle
        {
            to_log(|| log::warn!("{throttle}"));
        }
    }

    /// The same of what stops a thread. Returns whether that is news. Threads that take turns owe together: one that began
    /// each turn without a debt would never rest.
    fn learn(&self, thread: u32, throttle: Option<&Throttle>, now: Time) -> bool {
        self.poller.store(thread, Ordering::Relaxed);
        self.is_to_rest.store(throttle.is_some(), Ordering::Relaxed);
        self.known_until.store((now + LEARNS_AGAIN).0, Ordering::Relaxed);
        let Some(throttle) = throttle else { return false };
        let mut rest = self.rest.lock();
        let is_news = rest.as_ref().map(|rest| rest.share) != Some(Rest::share_of(throttle));
        if is_news {
            *rest = Some(Rest::new(throttle, now));
        }
        is_news
    }

    /// Is it time to ask the kernel, for who looks at sources itself?
    #[inline]
    pub fn is_to_ask(&self, now: Time) -> bool {
        now.0 >= self.ask_kernel_at.load(Ordering::Relaxed)
    }

    /// The kernel is asked for all sources just now.
    #[inline]
    pub fn note_asked(&self, now: Time) {
        self.ask_kernel_at.store((now + ASKS_KERNEL).0, Ordering::Relaxed);
    }

    /// Does whoever drives look whether it is woken? Then nobody has to make the eventfd readable for it.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }
}

/// While it lives the calling thread polls.
pub(crate) struct Polls<'a>(&'a Polling);

impl Drop for Polls<'_> {
    fn drop(&mut self) {
        self.0.rests.store(false, Ordering::Relaxed);
        // Before the role is given back, so that who finds another driver asleep finds this, too.
        self.0.is_on.store(self.0.is_always, Ordering::Release);
    }
}

/// How much of its time a thread rests, and how much of that it still owes.
struct Rest {
    /// Of a thousand parts.
    share: i64,
    owed: Duration,
    since: Time,
}

impl Rest {
    fn new(throttle: &Throttle, now: Time) -> Rest {
        Rest { share: Rest::share_of(throttle), owed: Duration::ZERO, since: now }
    }

    fn share_of(throttle: &Throttle) -> i64 {
        throttle.share().clamp(1, 999)
    }

    /// It has been busy until now. Returns how long it is to rest, if at all.
    fn owes(&mut self, now: Time) -> Option<Duration> {
        let busy = now.since(self.since).0.max(0);
        self.since = now;
        self.owed = Duration(self.owed.0 + busy * self.share / (1_000 - self.share));
        (self.owed >= SHORTEST_REST).then_some(self.owed)
    }

    /// It polls again. What it did meanwhile has kept it busy, unless it may have slept.
    fn resume(&mut self, now: Time) {
        if now.since(self.since) > PUT_OFF {
            self.since = now;
        }
    }

    /// It has rested since then.
    fn rested(&mut self, now: Time) {
        let rested = now.since(self.since).0.max(0);
        self.since = now;
        // Too long a rest is no reason to do without the next ones for long.
        self.owed = Duration((self.owed.0 - rested).max(-SHORTEST_REST.0));
    }
}

impl Inner {
    /// The calling thread polls from now on. It has the role. *Cost*: a few stores for who polled last, too.
    pub fn begin_polling(&self) -> Polls<'_> {
        let (polling, now) = (&self.polling, monotonic_now());
        if !polling.knows(now) {
            polling.learn_poller(now);
        }
        polling.begin(now);
        // Who finds it asleep before that makes the eventfd readable in vain.
        polling.is_on.store(true, Ordering::Release);
        // It looks into lanes itself.
        self.bell.disarm();
        Polls(polling)
    }

    /// Looks until there is something to do, for as long as whoever drives has said that it sleeps. Returns what there is,
    /// and what time it is then if that is known.
    pub fn poll(&self, mut now: Time) -> (Readable, Option<Time>) {
        self.holding.look_always();
        if !self.polling.knows(now) {
            self.polling.learn_again(now);
        }
        let known_until = Time(self.polling.known_until.load(Ordering::Relaxed));
        let mut gives_way_at = self.polling.gives_way_at(now);
        // Locked once: a datagram is noticed half a turn late. Nobody else but whoever drives looks at either.
        let mut hand = self.hand.as_ref().map(Mutex::lock);
        let rests = self.polling.rests.load(Ordering::Relaxed);
        loop {
            let ready = self.glance_by(hand.as_deref_mut(), now);
            now = monotonic_now();
            let due = self.holding.sleeps_until().min(burst::due(self.holding.until())).min(known_until);
            let is_due = now >= due;
            if ready.is_any() || is_due || self.is_called() {
                let has_rested = rests && self.catch_up(now);
                return (ready, (!has_rested).then_some(now));
            }
            if self.polling.is_shared() && now >= gives_way_at {
                now = self.polling.give_way(now);
                gives_way_at = self.polling.gives_way_at(now);
            }
            let owes = if rests { self.owes(now) } else { None };
            if let Some(owed) = owes {
                let ready = self.rest(now, now + owed);
                self.holding.look_always();
                if ready.is_any() {
                    return (ready, None);
                }
            }
        }
    }

    /// How long it is to rest, if at all. What it is asked by is not locked any more while it does.
    fn owes(&self, now: Time) -> Option<Duration> {
        self.polling.rest.lock().as_mut().and_then(|rest| rest.owes(now))
    }

    /// Looks what has come: at what can be looked at itself, and now and then by the kernel at all there is.
    #[inline]
    pub fn glance(&self, now: Time) -> Readable {
        self.glance_by(self.hand.as_ref().map(Mutex::lock).as_deref_mut(), now)
    }

    /// The same of who may sleep otherwise: at all there is, so that nothing of the user's waits for a second look.
    pub fn glance_at_all(&self, now: Time) -> Readable {
        if self.polling.is_on() {
            return self.glance(now);
        }
        let mut ready = Readable::default();
        self.watch.attend(&mut ready);
        self.ask_kernel(self.hand.as_ref().map(Mutex::lock).as_deref_mut(), now, &mut ready);
        ready
    }

    #[inline]
    fn glance_by(&self, mut hand: Option<&mut Hand>, now: Time) -> Readable {
        let mut ready = Readable::default();
        let looks = self.look_at_sources(hand.as_deref_mut(), now, &mut ready);
        if !looks || self.polling.is_to_ask(now) {
            self.ask_kernel(hand, now, &mut ready);
        }
        ready
    }

    #[inline(never)]
    pub fn ask_kernel(&self, hand: Option<&mut Hand>, now: Time, ready: &mut Readable) {
        self.polling.note_asked(now);
        self.watch.find(ready);
        if let Some(hand) = hand {
            hand.note_found(|| now, ready);
        }
    }

    /// Looks where samples come. `false` if the kernel is to be asked for them.
    #[inline(never)]
    fn look_at_sources(&self, hand: Option<&mut Hand>, now: Time, ready: &mut Readable) -> bool {
        if !hand.is_some_and(|hand| hand.look(now, ready)) {
            self.watch.attend(ready);
            return false;
        }
        self.watch.note_look();
        true
    }

    /// Does the participant end, or is there something in a lane?
    fn is_called(&self) -> bool {
        self.closing.load(Ordering::SeqCst) || self.has_lane_to_empty()
    }

    fn has_lane_to_empty(&self) -> bool {
        self.doors.owes_look() || self.doors.is_watched() && self.doors.is_ready()
    }

    /// Sleeps as other drivers do, until then at most.
    fn rest(&self, now: Time, until: Time) -> Readable {
        // Who wakes it makes the eventfd readable from here on. Either that finds this, or this finds it woken.
        self.polling.is_on.store(false, Ordering::SeqCst);
        self.bell.arm();
        let ready = match self.holding.next_look(now) {
            Some(next) if !self.is_called() => self.watch.sleep(Some(next.min(until).since(now))),
            _ => Readable::default(),
        };
        self.bell.disarm();
        self.polling.is_on.store(true, Ordering::SeqCst);
        if let Some(rest) = self.polling.rest.lock().as_mut() {
            rest.rested(monotonic_now());
        }
        ready
    }

    /// Asks the user whether to go on polling. That may take as long as it likes: no sample waits for it.
    #[inline]
    fn ask(&self, goes_on: impl FnOnce() -> bool) -> bool {
        let _away = self.role.go_away(thread_id());
        self.send_held();
        goes_on()
    }

    /// Rests although there is something to do, if it has put off too much. Returns whether it has.
    fn catch_up(&self, now: Time) -> bool {
        let mut rest = self.polling.rest.lock();
        let Some(rest) = rest.as_mut() else { return false };
        let puts_off = rest.owes(now).is_some_and(|owed| owed >= PUT_OFF);
        if puts_off {
            std::thread::sleep(StdDuration::from(SHORTEST_REST.times(10)));
            rest.rested(monotonic_now());
        }
        puts_off
    }
}

impl Executor {
    /// Drives without a sleep as long as `goes_on` says so, which is asked at least each 100 us while there is little
    /// to do. For the inline driver; threads that wait are served. What `goes_on` itself waits for is driven meanwhile.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] while another thread drives, within itself, or from a listener or a waker.
    pub fn poll_while(&self, mut goes_on: impl FnMut() -> bool) -> Result<()> {
        self.may_wait()?;
        if self.is_threaded() {
            let text = "a background thread drives: poll_while is for Driver::Inline";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        if self.inner.role.claim() != Claim::Taken {
            let text = if self.inner.role.is_away(thread_id()) {
                "this thread is in poll_while already, and goes on with that when what it asks returns: \
                 to drive meanwhile, call run_once or wait"
            } else {
                "another thread drives: it is in poll_while or run_once, or waits for samples"
            };
            return Err(Error::PreconditionNotMet(text.into()));
        }
        // Given back in this order, whatever `goes_on` does.
        let role = Driving::new(&self.inner);
        role.note_driven();
        let _polls = self.inner.begin_polling();
        while self.inner.ask(&mut goes_on) {
            let now = monotonic_now();
            self.inner.drive_once(Some(now + LOOKS_WHETHER), Some(now));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    use super::*;
    use crate::executor_tests::executor;
    use crate::inheritance_tests::run_at;

    const MS: i64 = 1_000_000;

    /// Nanoseconds that a thread rests of a second in which it finds nothing to do, or always something.
    fn rests(share: i64, is_busy: bool) -> i64 {
        let mut rest = Rest { share, owed: Duration::ZERO, since: Time(0) };
        let (mut now, mut rested) = (0, 0);
        while now < 1_000 * MS {
            now += 1_000;
            let least = if is_busy { PUT_OFF } else { SHORTEST_REST };
            if let Some(owed) = rest.owes(Time(now)).filter(|owed| *owed >= least) {
                let sleep = if is_busy { SHORTEST_REST.times(10) } else { owed };
                now += sleep.0;
                rested += sleep.0;
                rest.rested(Time(now));
            }
        }
        rested
    }

    #[test]
    fn who_shares_a_processor_gives_way_at_each_look() {
        let mut only = CpuSet::new();
        only.set(0).unwrap();
        let pin = || sched_setaffinity(Pid::from_raw(0), &only).unwrap();
        let polling = Polling::default();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin();
                while !over.load(Ordering::Relaxed) {
                    let until = monotonic_now() + OTHERS_RAN.times(5);
                    while monotonic_now() < until {}
                    std::thread::yield_now();
                }
            });
            let looker = scope.spawn(|| {
                pin();
                let now = monotonic_now();
                assert_eq!(polling.gives_way_at(now), now + GIVES_WAY, "nobody else was seen");
                let end = now + Duration::from_secs(5);
                while polling.gives_way_at(now) != now && polling.give_way(monotonic_now()) < end {}
                polling.gives_way_at(now) == now
            });
            let looks_always = looker.join();
            over.store(true, Ordering::Relaxed);
            assert!(looks_always.unwrap(), "the other one was never seen");
        });
    }

    #[test]
    fn threads_that_take_turns_rest_as_one_does() {
        const EACH: Duration = Duration::from_micros(200);
        let throttle = Throttle::of(|_| None).unwrap();
        let (polling, mut now, mut told, mut rested) = (Polling::default(), Time(0), 0, 0);
        for turn in 0..5_000 {
            // One of three runs under a normal policy.
            let (thread, stops) = (1 + turn % 3, Some(&throttle).filter(|_| turn % 3 > 0));
            told += u32::from(polling.learn(thread, stops, now));
            let begun = now;
            now = now + EACH;
            if stops.is_none() {
                continue;
            }
            let mut rest = polling.rest.lock();
            let rest = rest.as_mut().unwrap();
            rest.resume(begun);
            if let Some(owed) = rest.owes(now) {
                now = now + owed;
                rested += owed.0;
                rest.rested(now);
            }
        }
        assert_eq!(told, 1);
        let wanted = now.0 * 2 / 3 * 50 / 1_000;
        assert!(rested >= wanted, "{rested} ns, {wanted} wanted");
    }

    /// As by chrt.
    #[test]
    fn who_gets_a_real_time_policy_while_it_polls_rests() {
        let (executor, ..) = executor();
        let polling = &executor.inner.polling;
        let (mut is_asked, mut rests) = (false, false);
        let end = monotonic_now() + Duration::from_secs(5);
        let goes_on = || {
            let may = is_asked || run_at(1);
            is_asked = true;
            rests = polling.rests.load(Ordering::Relaxed) || !may || Throttle::of_this_thread().is_none();
            !rests && monotonic_now() < end
        };
        std::thread::scope(|scope| {
            scope.spawn(|| executor.poll_while(goes_on)).join().unwrap().unwrap();
        });
        assert!(rests, "it was not seen");
    }

    #[test]
    fn a_thread_rests_for_longer_than_the_kernel_wants() {
        for (share, wanted) in [(80, 50), (530, 500)] {
            for is_busy in [false, true] {
                let rested = rests(share, is_busy);
                assert!(rested >= wanted * MS, "{rested} ns of a second, busy: {is_busy}");
                assert!(rested <= (wanted + 32) * MS, "{rested} ns of a second, busy: {is_busy}");
            }
        }
    }
}
