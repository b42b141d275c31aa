//! Driving: wait at the port, then run jobs, highest class first, each within its budget.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use log::Level;
use taut_base::{Duration, Time};
use taut_dcps::DomainParticipant;
use taut_lock::{Mutex, MutexGuard, thread_id};
use taut_port::{Frame, Traffic};
use taut_port_udp::weight;
use taut_rtps::TxClass;

use crate::access::tell_wall_clock_to;
use crate::account::jobs::{Done, JobClass};
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::driver::driving::Driving;
use crate::driver::hand::Hand;
use crate::driver::news::Topics;
use crate::driver::waiting::{AT_PORT, look_until};
use crate::driver::watch::Readable;
use crate::executor::Inner;
use crate::lanes::door::Door;
use crate::lanes::neighbours::FIRST_SOURCE;
use crate::net::network::{HOSTS, NETWORK};
use crate::net::ports::{ASIDE, HAND};
use crate::write::burst;

/// How often the token's holder looks whether a thread that does not sleep yet has taken it, in one pause of the
/// processor each. Lower than the time that a thread takes from one try to the next and it waits for one step more;
/// higher and a thread that the system has stopped just then holds up the driver.
const LOOKS: usize = 100;

/// Steps in a round for what was put aside of discovery; the next round goes on. What comes for the user meanwhile may put more
/// aside. Lower takes more rounds, higher has timers wait for longer.
const ASIDE_STEPS: usize = 8;

/// After so much of lower classes' steps the user's sources are looked at again. Lower makes more system calls, higher has
/// samples wait behind so much more than one step. *Range*: well above what the call takes.
pub(crate) const HEARS_AFTER: Duration = Duration::from_micros(20);

/// What is below the user's samples, in the order of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lower {
    Timers,
    Meta,
    Aside,
    Send,
    Follow,
}

impl Lower {
    fn next(self) -> Lower {
        match self {
            Lower::Timers => Lower::Meta,
            Lower::Meta => Lower::Aside,
            Lower::Aside => Lower::Send,
            Lower::Send => Lower::Follow,
            Lower::Follow => Lower::Timers,
        }
    }
}

/// What of it is to be received from: sockets, queues, a device.
#[inline]
fn ends(readable: &Readable) -> impl Iterator<Item = usize> {
    let sources = readable.sources().iter().filter(|source| **source < HOSTS);
    sources.filter_map(|source| usize::try_from(*source).ok())
}

/// For how long who is about to sleep looks.
enum Look {
    /// As long as that helps as a rule, and something is due then.
    BeforeSleep(Time),
    /// Until then, as something is expected.
    Until(Time),
}

impl Inner {
    /// Drives until `ready` gives a value. The caller has the role, and keeps it if it is not given here.
    pub fn drive_until<R>(
        &self,
        role: Option<&Driving>,
        until: Option<Time>,
        ready: &mut impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        let mut core = self.enter();
        loop {
            self.give_way(&mut core);
            let found = self.look_for(&mut core, ready);
            let now = core.now;
            if found.is_some() || until.is_some_and(|until| until <= now) {
                return self.stop_driving(core, found);
            }
            role.inspect(|role| role.note_driven());
            let mut readable = Readable::default();
            let mut just_now = self.sleep(core, until, &mut readable);
            if !readable.is_any() {
                just_now = None;
                // Rung, most likely by the writer whose sample is waited for: that comes before all else.
                core = self.enter();
                self.give_way(&mut core);
                if let Some(found) = self.look_for(&mut core, ready) {
                    return self.stop_driving(core, Some(found));
                }
                self.give_back(core);
            }
            core = self.step(&readable, just_now);
        }
    }

    /// Drives until a reader, to which no lane leads, has a sample, as long as there is nothing else to be done: a sleep needs
    /// no token then. Returns whether it has one; if not the usual way is to follow. The caller watches the door.
    pub fn drive_until_unread(&self, role: &Driving, door: &Door, until: Option<Time>) -> bool {
        let has_unread = || !door.is_quiet() && door.side().shows_unread(monotonic_now);
        loop {
            // What was told at the end of a step may have taken its time.
            let now = monotonic_now();
            if until.is_some_and(|until| until <= now) {
                return false;
            }
            let Some((wake_at, busy)) = self.doze(now, until) else { return false };
            // Whoever brings one from here on wakes this thread.
            if has_unread() {
                self.holding.wake();
                return true;
            }
            role.note_driven();
            let mut readable = Readable::default();
            let just_now = self.wait_at_port(now, wake_at, busy, &mut readable);
            if !readable.is_any() {
                // Who has rung may wait for room at another door, and what is due is a step, too.
                self.step_alone(&readable, None);
                return has_unread();
            }
            let (mut core, idle_until) = self.step_until(&readable, just_now);
            let found = has_unread();
            if found && idle_until.is_none() {
                self.stop_driving(core, Some(()));
                return true;
            }
            core.accounts.end_round();
            self.end_step(core, idle_until);
            if found {
                return true;
            }
        }
    }

    /// Looks for what is waited for, which may empty a lane: then it is a step. Otherwise it is as short as the reading
    /// of the clock that a step takes.
    fn look_for<R>(
        &self,
        core: &mut Core,
        ready: &mut impl FnMut(&mut DomainParticipant, Time) -> Option<R>,
    ) -> Option<R> {
        let mut look = |core: &mut Core| ready(&mut core.participant, core.now);
        if self.doors.has_lanes() { self.call(core, look) } else { look(core) }
    }

    fn stop_driving<R>(&self, mut core: MutexGuard<'_, Core>, found: Option<R>) -> Option<R> {
        core.accounts.end_round();
        self.send(&mut core, TxClass::Discovery);
        self.end_step(core, None);
        found
    }

    /// One wait and the jobs that follow from it, whoever has the role. Who has read the clock just before says so.
    pub fn drive_once(&self, until: Option<Time>, just_now: Option<Time>) {
        // That has passed, whatever time it is.
        if until.is_some_and(|until| until <= Time(0)) {
            return self.look_once(monotonic_now());
        }
        let now = just_now.unwrap_or_else(monotonic_now);
        let mut readable = Readable::default();
        let just_now = match self.doze(now, until) {
            Some((wake_at, busy)) => self.wait_at_port(now, wake_at, busy, &mut readable),
            None => {
                let mut core = self.enter_at(now);
                self.give_way(&mut core);
                self.sleep(core, until, &mut readable)
            }
        };
        self.step_alone(&readable, just_now);
    }

    /// Says that it sleeps without a look at what there is to do, as the token's last holder has left nothing, and has said
    /// when something is due. Returns until when, and whether it only looks; `None` if there may be something.
    fn doze(&self, now: Time, until: Option<Time>) -> Option<(Time, bool)> {
        if self.writes.is_any() || self.joins.matched.is_any_left() {
            return None;
        }
        let until = until.unwrap_or(Time::NEVER).min(self.neighbours.next_look());
        self.holding.doze(now, until)
    }

    /// The same without a wait. Most looks find nothing: those do without the token.
    fn look_once(&self, now: Time) {
        let mut readable = self.glance(now);
        self.sort(&mut readable);
        let due = self.holding.due().min(self.owed.next()).min(self.neighbours.next_look());
        let is_left = self.writes.is_any() || self.joins.matched.is_any_left();
        if readable.is_any() || due <= now || is_left || self.doors.has_lanes() {
            self.step_alone(&readable, Some(now));
        }
    }

    /// Gives the token back and waits for the port, a timer or a kick. Returns what time it is then, if that is known.
    fn sleep(
        &self,
        mut core: MutexGuard<'_, Core>,
        until: Option<Time>,
        ready: &mut Readable,
    ) -> Option<Time> {
        // What discovery has to send waits for a look for samples: a step of it may have been the last that ran.
        self.send(&mut core, TxClass::Data);
        core.accounts.end_round();
        let wake_at = core.next_timeout().min(until.unwrap_or(Time::NEVER)).min(self.neighbours.next_look());
        let busy = core.has_work(TxClass::Discovery) || core.participant.has_news() || core.port.has_aside();
        // Who only looks is not to be woken, least of all by what it tells itself.
        if !busy {
            self.holding.fall_asleep(wake_at, core.held.until);
        }
        let now = core.now;
        // What was told may have taken its time.
        let now = if self.give_back(core) { monotonic_now() } else { now };
        self.wait_at_port(now, wake_at, busy, ready)
    }

    /// The wait of who has said that it sleeps, unless it is `busy`: there is something to do, and it only looks.
    pub fn wait_at_port(
        &self,
        now: Time,
        wake_at: Time,
        mut busy: bool,
        ready: &mut Readable,
    ) -> Option<Time> {
        let polls = self.polling.is_on();
        // Who polls looks at lanes itself.
        let watched = !polls && self.doors.is_watched();
        // So does who is about to sleep, as far as that is quick: nobody needs to ring before it sleeps.
        let looks_in = watched && self.doors.are_few();
        if watched {
            busy |= if looks_in { self.doors.is_ready() } else { self.is_ready_once_armed() };
        }
        // Who wanted the role before it was said that the driver sleeps has kicked nobody.
        busy |= self.role.is_to_step_aside();
        // Nor has who ended the participant before that, or left matches.
        busy |= self.closing.load(Ordering::SeqCst) || self.joins.matched.is_any_left();
        // Nor has who left a write to whoever drives.
        busy |= self.writes.is_any();
        // And who has rung may wait for room, which is no sample.
        busy |= self.doors.owes_look();
        // Neither has who promised to write again, left somebody asleep, or is to connect again, before it was said until when
        // the driver sleeps.
        busy |= self.owed.next().min(self.neighbours.next_look()) < wake_at;
        // A kick between the store and here has set it to AWAKE and made the eventfd readable.
        let mut just_now = None;
        burst::note_wait();
        match busy {
            true => *ready = self.glance_at_all(now),
            false if polls => (*ready, just_now) = self.poll(now),
            false => self.look_and_wait(now, looks_in, ready),
        }
        self.holding.wake();
        if watched && looks_in {
            self.bell.disarm();
            if self.rhythm.is_on() && self.doors.is_ready() {
                self.rhythm.note_come(monotonic_now());
            }
        }
        self.sort(ready);
        just_now
    }

    /// Has writers of lanes ring, and looks into their lanes if that was not so before, or one has rung. Where lanes are many
    /// the bell stays armed: a look at each of them for what comes another way takes longer than that does.
    fn is_ready_once_armed(&self) -> bool {
        self.bell.arm();
        let armed = self.bell.armed();
        !self.doors.is_quiet_since(armed) && self.doors.is_ready_since(armed.unwrap_or_default())
    }

    /// Leaves of what a wait has found what was not meant for the driver itself. Returns whether somebody has rung.
    #[inline]
    fn sort(&self, ready: &mut Readable) -> bool {
        let is_rung = ready.take_rung();
        if is_rung {
            self.note_rung();
        }
        is_rung
    }

    /// Somebody has rung whoever drives, in whichever way.
    #[inline]
    pub fn note_rung(&self) {
        // Whoever writes from here on rings again.
        self.bell.disarm();
        self.doors.note_rung();
        // A neighbour may have rung for what a thread waits for that does not drive; of what is in a reader's lanes it hears
        // once that is taken from there.
        if self.role.has_followers() {
            self.role.tell_followers(Topics::OTHERS);
        }
    }

    /// Looks for a while, if that has helped of late: who is not asleep need not be woken, which takes the
    /// machine longer than a datagram takes to come. Then sleeps. With `looks_in` it looks at lanes, too, and has their writers
    /// ring once it sleeps.
    fn look_and_wait(&self, now: Time, looks_in: bool, ready: &mut Readable) {
        // Who holds a sample from here on knows until when this looks. What is held already is not looked at meanwhile.
        let Some(next) = self.holding.next_look(now) else { return *ready = self.glance_at_all(now) };
        let looks = self.holding.until() == Time::NEVER && !self.port_spin.does_without();
        if looks && self.look_by(now, Look::BeforeSleep(next), looks_in, ready) {
            return;
        }
        // A look in vain has taken some of the time.
        let mut just_now = (!looks).then_some(now);
        while let Some((now, until)) = self.sleep_until_expected(just_now.take(), looks_in, ready) {
            if looks_in {
                self.bell.disarm();
            }
            if self.look_by(now, Look::Until(until), looks_in, ready) {
                return self.rhythm.note_find();
            }
        }
    }

    /// Sleeps until something comes, or is due. Returns what time it is, and until when to look, if that is when a sample is
    /// expected.
    fn sleep_until_expected(
        &self,
        mut just_now: Option<Time>,
        looks_in: bool,
        ready: &mut Readable,
    ) -> Option<(Time, Time)> {
        self.watch.attend(ready);
        if ready.is_any() {
            // One that the kernel does not watch: what else there is it is asked at once.
            self.watch.find(ready);
            return None;
        }
        if looks_in {
            self.bell.arm();
            if self.doors.is_ready() {
                return None;
            }
        }
        while !ready.is_any() {
            // A sleep that ends without a reason has taken some of the time, too.
            let now = just_now.take().unwrap_or_else(monotonic_now);
            let Some(next) = self.holding.next_look(now) else {
                self.watch.find(ready);
                return None;
            };
            let mut awaited = None;
            match self.rhythm.next(now) {
                Some((from, until)) if from <= now && self.rhythm.may_look(thread_id()) => {
                    return Some((now, until.min(next)));
                }
                Some((from, _)) if now < from && from < next => {
                    self.watch.sleep_once_until(now, from, ready);
                    awaited = Some(from);
                }
                _ => self.watch.sleep_until(now, next, ready),
            }
            if self.rhythm.is_on() {
                let woken = monotonic_now();
                self.rhythm.note_sleep(thread_id(), woken.since(now));
                awaited.into_iter().for_each(|from| self.rhythm.note_woken(from, woken));
                just_now = Some(woken);
            }
        }
        if let Some(hand) = &self.hand {
            hand.lock().note_found(monotonic_now, ready);
        }
        None
    }

    /// Looks as who polls does: where samples come, and now and then by the kernel at all there is. Returns whether it has found
    /// something. If not, a sleep may have to end sooner.
    fn look_by(&self, now: Time, how: Look, looks_in: bool, ready: &mut Readable) -> bool {
        // Nobody else but whoever drives looks there.
        let mut hand = self.hand.as_ref().map(Mutex::lock);
        let most = hand.as_deref().map_or(0, Hand::looks);
        // Where samples come one behind the other each look begins anew, and finds one at once.
        let mut left = if self.polling.is_to_ask(now) { 0 } else { most };
        let mut is_in_lane = false;
        let look = || {
            let now = if let Look::Until(_) = how { monotonic_now() } else { now };
            is_in_lane = looks_in && self.doors.is_ready();
            if is_in_lane {
                return true;
            }
            if let Some(hand) = hand.as_deref_mut().filter(|_| left > 0) {
                if hand.look(now, ready) {
                    left -= 1;
                    if !ready.is_any() {
                        std::hint::spin_loop();
                    } else if hand.has_queues() {
                        self.watch.note_find();
                    }
                    return ready.is_any();
                }
                self.watch.attend(ready);
            }
            left = most;
            self.ask_kernel(hand.as_deref_mut(), now, ready);
            ready.is_any() || ready.take_reminded()
        };
        let found = match how {
            Look::BeforeSleep(next) => self.port_spin.look_now(self.spin, Some(next), &AT_PORT, look),
            Look::Until(end) => look_until(end, look),
        };
        found && (ready.is_any() || is_in_lane)
    }

    /// Runs the jobs that are due, highest class first. Between two of them others come first. The caller has the
    /// token in the end and gives it back, which tells the news. Who has read the clock just before says so.
    pub fn step(&self, readable: &Readable, just_now: Option<Time>) -> MutexGuard<'_, Core> {
        self.step_until(readable, just_now).0
    }

    /// The same, and gives the token back. Next it sleeps, or looks, or somebody else drives.
    fn step_alone(&self, readable: &Readable, just_now: Option<Time>) {
        let (mut core, idle_until) = self.step_until(readable, just_now);
        core.accounts.end_round();
        self.end_step(core, idle_until);
    }

    /// The same, and says until when there is nothing to be done then, if that is known.
    #[inline]
    fn step_until(
        &self,
        readable: &Readable,
        just_now: Option<Time>,
    ) -> (MutexGuard<'_, Core>, Option<Time>) {
        let mut core = match just_now {
            _ if readable.has_others() => self.hear_others(readable),
            Some(just_now) => self.enter_at(just_now),
            None => self.enter(),
        };
        if self.neighbours.next_look() <= core.now {
            core = self.look_at_neighbours(core);
        }
        core.hear();
        core.have_come = false;
        self.pull_lanes(&mut core);
        self.run_writes(&mut core);
        let has_meta = self.receive(&mut core, readable);
        self.send(&mut core, TxClass::Data);
        self.give_way(&mut core);
        // Most often a sample was all that there was.
        let idle_until = core.idle_until().filter(|_| !has_meta && !self.has_to_follow(&core));
        if idle_until.is_none() {
            self.run_lower_jobs(&mut core, has_meta.then_some(readable));
        }
        (core, idle_until)
    }

    /// What is below the user's samples, one kind of it after the other. When samples have come meanwhile the round is over:
    /// whoever waits for them looks, or is told. The next one goes on with the next kind, so that each has its step however
    /// many samples come; timers that are due have theirs first, but not in two rounds one after the other.
    #[inline(never)]
    pub fn run_lower_jobs(&self, core: &mut MutexGuard<'_, Core>, meta: Option<&Readable>) {
        let (first, mut kind) = (core.next_lower, core.next_lower);
        let had_timers = std::mem::take(&mut core.had_timers);
        if first != Lower::Timers && !had_timers && core.next_timeout() <= core.now && self.run_timers(core) {
            core.had_timers = true;
            return self.follow_found(core);
        }
        loop {
            let have_come = match kind {
                Lower::Timers if kind != first && self.come_round(core) => return core.next_lower = kind,
                Lower::Timers => self.run_timers(core),
                Lower::Meta => meta.is_some_and(|readable| self.receive_meta(core, readable)),
                Lower::Aside => core.port.has_aside() && self.take_aside(core),
                Lower::Send => {
                    self.send(core, TxClass::Discovery);
                    false
                }
                Lower::Follow => {
                    self.follow_some(core);
                    false
                }
            };
            kind = kind.next();
            if have_come {
                core.next_lower = kind;
                return self.follow_found(core);
            }
            if kind == first {
                return core.next_lower = Lower::Timers;
            }
        }
    }

    /// The round ends: who is told of a match then finds the two joined.
    #[cold]
    fn follow_found(&self, core: &mut MutexGuard<'_, Core>) {
        if core.participant.has_matches() {
            self.follow_some(core);
        }
    }

    /// What is below others in a round comes before them in one that was ended early: others come between, and samples.
    #[cold]
    fn come_round(&self, core: &mut MutexGuard<'_, Core>) -> bool {
        self.give_way(core);
        self.hear_users(core)
    }

    /// What was put aside of discovery. Returns whether samples have come meanwhile; so do the next ones.
    #[cold]
    fn take_aside(&self, core: &mut MutexGuard<'_, Core>) -> bool {
        for _ in 0..ASIDE_STEPS {
            if !core.port.has_aside() {
                break;
            }
            if self.take_meta_from(core, ASIDE) {
                return true;
            }
        }
        false
    }

    /// Runs the timers that are due. They are many when a peer with a thousand endpoints falls silent: others come between
    /// two steps of them.
    fn run_timers(&self, core: &mut MutexGuard<'_, Core>) -> bool {
        let mut more = true;
        while more {
            let due = core.next_timeout();
            if due > core.now {
                return false;
            }
            // What is to be done at once waits from now on.
            let since = if due == Time::AT_ONCE { core.now } else { due };
            let ready = std::mem::replace(&mut core.ready, since);
            self.run(core, JobClass::Timers, |core, budget| {
                core.follow_network();
                core.time_ports();
                core.tell_of_unsent();
                self.watch.take_warning().into_iter().for_each(|line| core.log(Level::Warn, line));
                let handled = core.participant.on_timeout(core.now, budget);
                core.look_at_owed();
                core.look_at_reports();
                more = handled == budget;
                handled.max(1)
            });
            core.ready = ready;
            self.come_back(core);
            self.send(core, TxClass::Data);
            self.give_way(core);
            if self.hear_users(core) {
                return true;
            }
        }
        false
    }

    /// Between two steps of lower classes: what has come for the user meanwhile goes first, so that it waits for one of
    /// them and no more. Returns whether samples have come in this round, or somebody has rung, who may have written, if so much
    /// time has gone that it was looked. *Cost*: a system call for what has taken as long as [`HEARS_AFTER`].
    fn hear_users(&self, core: &mut MutexGuard<'_, Core>) -> bool {
        if !core.is_unheard() {
            return false;
        }
        let mut readable = self.glance_at_all(core.now);
        let is_rung = self.sort(&mut readable);
        // It came since the last look, nobody knows when.
        let (ready, last) = (core.ready, core.heard_at);
        core.ready = last;
        core.hear();
        self.pull_lanes(core);
        self.receive(core, &readable);
        core.ready = ready;
        self.send(core, TxClass::Data);
        self.give_way(core);
        is_rung || core.have_come
    }

    /// The same between two steps of what is not the port's, of which the caller does one without the token.
    pub fn hear_users_between(&self) {
        let mut core = self.enter();
        self.hear_users(&mut core);
        core.accounts.end_round();
        self.give_back(core);
    }

    /// Handles what is not the port's. Returns the token.
    #[cold]
    fn hear_others(&self, readable: &Readable) -> MutexGuard<'_, Core> {
        readable.iter().filter(|source| *source >= FIRST_SOURCE).for_each(|source| self.hear(source));
        let mut core = self.enter();
        if readable.has(NETWORK) {
            core.hear_network();
        }
        if readable.has(HOSTS) {
            core.hear_hosts();
            self.leave_refused(&mut core);
        }
        core
    }

    /// Ends connections, and connects, as far as that is due.
    #[cold]
    fn look_at_neighbours<'a>(&'a self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let now = core.now;
        self.give_back(core);
        self.end_overdue(now);
        self.enter()
    }

    /// Between two steps: whoever waits for the token gets it, and what was left for its holder is run and sent.
    /// So a write waits for one step that has begun and for no other, but those of writes.
    #[inline]
    pub fn give_way(&self, core: &mut MutexGuard<'_, Core>) {
        self.let_others(core);
        if self.writes.is_any() {
            self.send_left(core);
        }
    }

    #[cold]
    fn send_left(&self, core: &mut MutexGuard<'_, Core>) {
        self.run_writes(core);
        self.send_for_others(core, TxClass::Data);
    }

    /// Whoever waits for the token gets it; what others did meanwhile is no part of our next step.
    #[inline]
    pub fn let_others(&self, core: &mut MutexGuard<'_, Core>) {
        let asking = self.asking.load(Ordering::SeqCst);
        if asking > 0 {
            self.hand_on(core, asking);
        }
        core.accounts.note_offered();
    }

    #[cold]
    fn hand_on(&self, core: &mut MutexGuard<'_, Core>, asking: usize) {
        // Who sleeps for it is handed it. Who does not yet, or is about to try, finds it free.
        let took_it = || self.asking.load(Ordering::SeqCst) < asking;
        let wait = || (0..LOOKS).take_while(|_| !took_it()).for_each(|_| std::hint::spin_loop());
        let (ready, round, tokens) =
            (core.ready, core.accounts.interrupt(), self.tokens.load(Ordering::Relaxed));
        MutexGuard::unlocked_fair(core, wait);
        core.read_clock();
        let turns = self.tokens.load(Ordering::Relaxed).wrapping_sub(tokens);
        core.accounts.resume(&round, turns <= asking as u64);
        core.ready = ready;
    }

    /// Receives samples. Each source is a step, and others come first between two of them; critical ones do. Returns whether
    /// there are sources of discovery.
    #[inline]
    fn receive(&self, core: &mut MutexGuard<'_, Core>, readable: &Readable) -> bool {
        let mut has_meta = false;
        let has_critical = core.port.has_critical();
        if has_critical {
            self.receive_critical(core, readable);
        }
        for index in ends(readable) {
            match core.port.traffic(index) {
                Some(Traffic::User) if has_critical && core.port.is_critical(index) => {}
                Some(Traffic::User) => self.take_user_from(core, index),
                Some(Traffic::Meta | Traffic::MetaMulticast) => has_meta = true,
                None => {}
            }
        }
        has_meta
    }

    /// Receives discovery, a step of each source, those behind the last one first: where rounds end early each has its turn.
    /// Returns whether samples have come meanwhile.
    fn receive_meta(&self, core: &mut MutexGuard<'_, Core>, readable: &Readable) -> bool {
        let last = core.last_meta;
        for is_behind in [true, false] {
            for index in ends(readable).filter(|index| (*index > last) == is_behind) {
                if core.port.traffic(index).is_none_or(|traffic| traffic == Traffic::User) {
                    continue;
                }
                core.last_meta = index;
                if self.take_meta_from(core, index) {
                    return true;
                }
            }
        }
        false
    }

    #[inline(never)]
    fn receive_critical(&self, core: &mut MutexGuard<'_, Core>, readable: &Readable) {
        for index in readable.sources().iter().filter_map(|source| usize::try_from(*source).ok()) {
            if core.port.is_critical(index) {
                self.take_user_from(core, index);
            }
        }
    }

    /// Takes samples that have come at a source.
    #[inline(never)]
    fn take_user_from(&self, core: &mut MutexGuard<'_, Core>, source: usize) {
        let changes = |core: &Core| core.participant.core().counters().changes;
        let (now, before) = (core.now, changes(core));
        self.take_from(core, JobClass::ReceiveUser, source);
        // Others than samples come there, too: acknowledgements, and whatever anybody sends.
        if changes(core) != before {
            core.have_come = true;
            if self.rhythm.is_on() {
                self.rhythm.note_come(now);
            }
        }
    }

    /// The same of discovery. What has come for the user meanwhile goes first then, and timers that have become due.
    #[inline(never)]
    fn take_meta_from(&self, core: &mut MutexGuard<'_, Core>, source: usize) -> bool {
        self.take_from(core, JobClass::ReceiveMeta, source);
        self.hear_users(core) || self.run_timers(core)
    }

    /// Takes what has come at a source, then lets others come. Compiled for each class by itself.
    #[inline(always)]
    fn take_from(&self, core: &mut MutexGuard<'_, Core>, class: JobClass, source: usize) {
        tell_wall_clock_to(&mut core.participant);
        self.run(core, class, |core, budget| {
            let Core { participant, port, panics, now, is_exact, .. } = core;
            let mut cost = 0;
            let mut handle = |frame: &Frame| {
                cost += weight(frame.bytes.len());
                let now = if *is_exact { monotonic_now() } else { *now };
                // Nothing that arrives may end the process. The core must not panic whatever the network sends, so
                // there is nothing to catch, and the count is 0: this is for what neither lints nor tests have found.
                let handled = catch_unwind(AssertUnwindSafe(|| participant.on_frame(now, frame)));
                *panics += u64::from(handled.is_err());
            };
            let count = match &self.hand {
                Some(hand) if source == HAND => hand.lock().give(port, budget, &mut handle),
                _ => port.receive_from(source, budget, &mut handle),
            };
            Done { count, cost }
        });
        self.give_way(core);
    }
}
