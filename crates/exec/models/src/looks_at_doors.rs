//! A reader's owner that waits for a sample: it says that it sleeps and looks once more, without the token and most often
//! without the door's lock; whoever brings a sample meanwhile wakes it, or is seen.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use taut_base::{Duration, Time};

use crate::driver::holding::Holding;
use crate::explore;
use crate::lanes::quiet::Quiet;
use crate::sync::{AtomicBool, Ordering};

const NOW: Time = Time(1_000_000);

struct Model {
    token: Mutex<()>,
    /// Samples behind the door.
    samples: Mutex<u32>,
    quiet: Quiet,
    holding: Holding,
    kicked: AtomicBool,
}

/// What has become of a wait.
#[derive(PartialEq, Debug)]
enum Wait {
    Found,
    Busy,
    Asleep,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            token: Mutex::new(()),
            samples: Mutex::new(0),
            quiet: Quiet::default(),
            holding: Holding::default(),
            kicked: AtomicBool::new(false),
        })
    }

    /// A sample of another thread comes to the reader. As `TableDoors::at_door` and `Inner::let_go` have it.
    fn bring(&self) {
        let token = self.token.lock().unwrap();
        let mut samples = self.samples.lock().unwrap();
        *samples += 1;
        self.quiet.end();
        drop(samples);
        self.let_go(token, true);
        // What was to be told is told, and the next holder leaves nothing.
        self.let_go(self.token.lock().unwrap(), false);
    }

    fn let_go(&self, token: loom::sync::MutexGuard<'_, ()>, urgent: bool) {
        self.holding.note_due(if urgent { Time(0) } else { Time::NEVER });
        drop(token);
        if self.holding.oversleeps(urgent, Time::NEVER, Time::NEVER) && self.holding.rouse() {
            self.kicked.store(true, Ordering::SeqCst);
        }
    }

    /// As `Executor::take_next` has it. Did it find one?
    fn take(&self) -> bool {
        if self.quiet.is_set() {
            return false;
        }
        let mut samples = self.samples.lock().unwrap();
        let any = *samples > 0;
        if any {
            *samples -= 1;
        } else {
            self.quiet.set();
        }
        any
    }

    /// As `Inner::drive_until_unread` has it.
    fn wait(&self) -> Wait {
        let Some((_, busy)) = self.holding.doze(NOW, NOW + Duration::from_micros(50)) else {
            return Wait::Busy;
        };
        if !self.quiet.is_set() && *self.samples.lock().unwrap() > 0 {
            self.holding.wake();
            return Wait::Found;
        }
        if busy { Wait::Busy } else { Wait::Asleep }
    }
}

/// A thread takes until there is nothing and waits, beside one that brings so many.
fn take_and_wait(brought: usize) {
    explore(move || {
        let model = Model::new();
        // Nothing is due, and that has been said.
        model.let_go(model.token.lock().unwrap(), false);
        let owner = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                while model.take() {}
                model.wait()
            })
        };
        (0..brought).for_each(|_| model.bring());
        let wait = owner.join().unwrap();
        let left = *model.samples.lock().unwrap();
        let woken = model.kicked.load(Ordering::SeqCst);
        assert!(wait != Wait::Asleep || left == 0 || woken, "it sleeps beside {left}");
        assert!(left == 0 || !model.quiet.is_set(), "the next look finds what is there");
    });
}

#[test]
fn who_waits_hears_of_a_sample() {
    take_and_wait(1);
}

#[test]
fn who_has_taken_one_hears_of_the_next() {
    take_and_wait(2);
}
