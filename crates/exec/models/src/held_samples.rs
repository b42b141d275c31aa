//! Samples that wait for company: whoever drives sends them, no later than they are due, and has a reminder set for that if
//! it sleeps for longer, once.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use taut_base::{Duration, Time};

use crate::driver::holding::Holding;
use crate::driver::role::{Claim, Role};
use crate::explore;
use crate::write::burst::{Held, due};

const START: Time = Time(1_000_000);
/// The number of the thread that drives.
const DRIVER: u32 = 1;
/// How long samples may wait.
const WAIT: Duration = Duration::from_micros(50);

/// What the token protects: as much of a participant as there is to hold.
struct Core {
    held: Held,
    /// When a timer is due.
    timer: Time,
    /// When samples that are not sent were written.
    unsent: Vec<Time>,
}

/// The executor, as far as samples that wait go.
struct Model {
    core: Mutex<Core>,
    holding: Holding,
    role: Role,
    /// What the reminder is set for.
    reminder: Mutex<Time>,
    slept: AtomicUsize,
    reminded: AtomicUsize,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            core: Mutex::new(Core { held: Held::NOTHING, timer: Time::NEVER, unsent: Vec::new() }),
            holding: Holding::default(),
            role: Role::default(),
            reminder: Mutex::new(Time::NEVER),
            slept: AtomicUsize::new(0),
            reminded: AtomicUsize::new(0),
        })
    }

    fn send(&self, core: &mut Core) {
        self.holding.release(&mut core.held);
        core.unsent.clear();
    }

    /// Gives the token back. As `Inner::let_go` has it.
    fn let_go(&self, core: loom::sync::MutexGuard<'_, Core>) {
        let (next, held_until) = (core.timer, core.held.until);
        self.holding.note_due(next.min(held_until));
        drop(core);
        if self.holding.oversleeps(false, next, held_until) {
            self.holding.shorten(next, held_until);
            self.remind(next.min(due(held_until)));
        }
    }

    /// As `Reminder::set` has it, of a timer that has not rung.
    fn remind(&self, at: Time) {
        let mut reminder = self.reminder.lock().unwrap();
        if at < *reminder {
            *reminder = at;
            self.reminded.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As `Inner::write_now` has it, for a sample of a burst.
    fn write(&self, now: Time) {
        let mut core = self.core.lock().unwrap();
        core.unsent.push(now);
        let waits = !self.holding.is_telling() && self.holding.hold(&mut core.held, now + WAIT, &self.role);
        if !waits || core.held.until <= now {
            self.send(&mut core);
        }
        self.let_go(core);
    }

    /// A step of the driver, and the begin of its sleep. Returns until when it sleeps, `None` if not at all.
    fn step(&self, now: Time) -> Option<Time> {
        self.holding.wake();
        let mut core = self.core.lock().unwrap();
        if core.held.until <= now {
            self.send(&mut core);
        }
        self.holding.fall_asleep(Time::NEVER, core.held.until);
        self.slept.fetch_add(1, Ordering::Relaxed);
        self.let_go(core);
        self.holding.next_look(now)
    }

    /// The begin of a sleep without the token, of a driver that has let another do what there was. As `Inner::doze` has it.
    fn doze(&self, now: Time) -> Option<Time> {
        let Some((_, busy)) = self.holding.doze(now, Time::NEVER) else { return self.step(now) };
        self.slept.fetch_add(1, Ordering::Relaxed);
        let looks = || self.holding.next_look(now);
        (!busy).then(looks).flatten()
    }

    /// It wakes. As `Inner::look_and_wait` has it.
    fn wakes(&self, now: Time) -> Option<Time> {
        self.holding.next_look(now).or_else(|| self.step(now))
    }

    /// The driver is in the hands of the user. As `Inner::ask` has it.
    fn ask(&self, goes_on: impl FnOnce()) {
        let _away = self.role.go_away(DRIVER);
        if self.holding.until() != Time::NEVER {
            let mut core = self.core.lock().unwrap();
            self.send(&mut core);
            self.let_go(core);
        }
        goes_on();
    }

    /// It does what takes long, between two holds of the token. As `Inner::away_from` has it.
    fn away_from(&self, meanwhile: impl FnOnce()) {
        let mut core = self.core.lock().unwrap();
        let away = self.role.go_away(DRIVER);
        self.send(&mut core);
        drop(core);
        meanwhile();
        let core = self.core.lock().unwrap();
        drop(away);
        self.let_go(core);
    }

    /// Has the reminder rung? It may do so too early.
    fn hears(&self) -> bool {
        std::mem::replace(&mut *self.reminder.lock().unwrap(), Time::NEVER) != Time::NEVER
    }

    /// Drives on alone until the driver would sleep for ever, with a clock that goes where it sleeps to.
    fn finish(&self, mut now: Time, mut asleep: Option<Time>) {
        for _ in 0..10 {
            let reminder = *self.reminder.lock().unwrap();
            let until = asleep.map_or(now, |until| until.min(reminder));
            if until == Time::NEVER {
                break;
            }
            now = now.max(until);
            for written in &self.core.lock().unwrap().unsent {
                assert!(now <= due(*written + WAIT), "written {written:?}, not sent {now:?}");
            }
            if reminder <= now {
                self.hears();
            }
            asleep = if asleep.is_some() { self.wakes(now) } else { self.step(now) };
        }
        assert_eq!(asleep, Some(Time::NEVER), "the driver comes to rest");
        assert_eq!(self.core.lock().unwrap().unsent, [], "and sends all before");
        let (reminded, slept) = (self.reminded.load(Ordering::Relaxed), self.slept.load(Ordering::Relaxed));
        assert!(reminded <= slept, "reminded {reminded} times in {slept} sleeps");
    }
}

/// Writes at these times, after the start, while a driver makes so many steps, one after each sleep that ends.
fn writes_and_sleeps(writes: &'static [i64], steps: usize) {
    explore(move || {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        let driver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let mut asleep = model.step(START);
                for _ in 1..steps {
                    if asleep.is_none() {
                        asleep = model.step(START);
                    } else if model.hears() {
                        asleep = model.wakes(START);
                    }
                }
                asleep
            })
        };
        writes.iter().for_each(|us| model.write(START + Duration::from_micros(*us)));
        let asleep = driver.join().unwrap();
        model.finish(START, asleep);
    });
}

#[test]
fn no_sample_waits_for_a_driver_that_sleeps_on() {
    writes_and_sleeps(&[0], 2);
}

#[test]
fn none_of_a_stream_does() {
    // The first has waited long enough when the second comes, which sends it and goes on; then a third waits.
    writes_and_sleeps(&[0, 60, 61], 2);
}

/// Another thread does this while a driver falls asleep without the token. What is then until when it sleeps is checked.
fn beside_one_who_dozes(other: fn(&Model), check: fn(&Model, Option<Time>)) {
    explore(move || {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        // There is nothing to do, and that has been said.
        model.let_go(model.core.lock().unwrap());
        let driver = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.doze(START))
        };
        other(&model);
        let asleep = driver.join().unwrap();
        check(&model, asleep);
    });
}

#[test]
fn who_dozes_hears_of_a_timer() {
    const DUE: Time = Time(START.0 + 7);
    fn is_reminded(model: &Model) -> bool {
        *model.reminder.lock().unwrap() <= DUE
    }
    beside_one_who_dozes(
        |model| {
            let mut core = model.core.lock().unwrap();
            core.timer = DUE;
            model.let_go(core);
        },
        |model, asleep| assert!(asleep.is_none_or(|until| until <= DUE) || is_reminded(model), "{asleep:?}"),
    );
}

#[test]
fn no_sample_waits_for_one_who_dozes_on() {
    beside_one_who_dozes(|model| model.write(START), |model, asleep| model.finish(START, asleep));
}

#[test]
fn one_reminder_is_enough_for_two_samples() {
    explore(|| {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        let asleep = model.step(START);
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.write(START))
        };
        model.write(START);
        other.join().unwrap();
        assert_eq!(model.reminded.load(Ordering::Relaxed), 1);
        model.finish(START, asleep);
    });
}

#[test]
fn who_stops_driving_leaves_nothing() {
    explore(|| {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        let driver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                // As `Inner::release_role` has it.
                model.role.release(true);
                if model.holding.until() != Time::NEVER {
                    let mut core = model.core.lock().unwrap();
                    model.send(&mut core);
                    model.let_go(core);
                }
            })
        };
        model.write(START);
        model.write(START);
        driver.join().unwrap();
        assert_eq!(model.core.lock().unwrap().unsent, [], "nobody drives");
    });
}

#[test]
fn nothing_waits_for_a_driver_that_runs_a_listener() {
    explore(|| {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || (0..2).for_each(|_| model.write(START)))
        };
        let mut core = model.core.lock().unwrap();
        // As `Inner::tell` has it.
        let telling = model.holding.tell();
        model.send(&mut core);
        model.let_go(core);
        // The listener takes until the writer is done.
        writer.join().unwrap();
        assert_eq!(model.core.lock().unwrap().unsent, []);
        drop(telling);
    });
}

/// How a driver goes away, does this meanwhile, and comes back.
type Leave = fn(&Model, &mut dyn FnMut());
const LEAVES: [Leave; 2] =
    [|model, meanwhile| model.ask(meanwhile), |model, meanwhile| model.away_from(meanwhile)];

/// A driver goes away like that and does not come back before all is written.
fn writes_while_away(leave: Leave) {
    explore(move || {
        let model = Model::new();
        assert_eq!(model.role.claim(), Claim::Taken);
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || (0..2).for_each(|_| model.write(START)))
        };
        let mut writer = Some(writer);
        leave(&model, &mut || {
            writer.take().unwrap().join().unwrap();
            assert_eq!(model.core.lock().unwrap().unsent, [], "who is away sends none");
        });
    });
}

#[test]
fn nothing_waits_for_a_driver_that_is_away() {
    LEAVES.into_iter().for_each(writes_while_away);
}

/// What is written while it goes, is away and comes back is sent when it is due at the latest.
#[test]
fn nothing_is_left_by_a_driver_that_comes_back() {
    for leave in LEAVES {
        explore(move || {
            let model = Model::new();
            assert_eq!(model.role.claim(), Claim::Taken);
            let driver = {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    leave(&model, &mut || ());
                    model.step(START)
                })
            };
            (0..2).for_each(|_| model.write(START));
            let asleep = driver.join().unwrap();
            model.finish(START, asleep);
        });
    }
}
