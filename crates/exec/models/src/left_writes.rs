//! Writes that are left to the token's holder: each is run, once, before those that its writer makes later, and
//! none lies there while the token is free and nobody is on the way to it. One writer is critical.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use taut_base::Time;

use crate::driver::holding::Holding;
use crate::write::left::{Left, Line};
use crate::{explore, sync};

/// Of each of the two; the second of one finds no room.
const WRITES: usize = 2;
const ROOM: usize = 1;
/// So that what is left takes more than one share.
const BUDGET: usize = 1;

/// A writer and the number of its write.
type Write = (usize, usize);

/// The executor, as far as writes go: a word for the token, taken and given back with no more than a lock has.
struct Model {
    taken: AtomicBool,
    left: Left<Write>,
    run: std::sync::Mutex<Vec<Write>>,
    /// Somebody drives.
    is_driven: sync::AtomicBool,
    holding: Holding,
}

impl Model {
    fn new(is_driven: bool) -> Arc<Model> {
        Arc::new(Model {
            taken: AtomicBool::new(false),
            left: Left::new(ROOM),
            run: std::sync::Mutex::default(),
            is_driven: sync::AtomicBool::new(is_driven),
            holding: Holding::default(),
        })
    }

    fn try_token(&self) -> Option<()> {
        // A lock looks first.
        if self.taken.load(Ordering::Relaxed) {
            return None;
        }
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok().map(drop)
    }

    fn token(&self) {
        while self.try_token().is_none() {
            thread::yield_now();
        }
    }

    /// With the token, which others get between two shares.
    fn run_left(&self) {
        let mut begun = false;
        self.left.run(Line::Others, BUDGET, |_, writes| {
            if std::mem::replace(&mut begun, true) {
                self.taken.store(false, Ordering::Release);
                self.token();
            }
            self.run.lock().unwrap().extend(writes);
        });
    }

    fn help(&self) {
        self.left.help(|| self.try_token(), |()| self.serve(), || self.has_driver_go_on());
    }

    /// As `Inner` has it.
    fn has_driver_go_on(&self) -> bool {
        let goes_on = self.is_driven.load(Ordering::SeqCst);
        if goes_on {
            self.holding.rouse();
        }
        goes_on
    }

    fn serve(&self) {
        self.run_left();
        self.taken.store(false, Ordering::Release);
    }

    fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
        self.help();
    }

    /// As `Inner::write` has it.
    fn write(&self, write: Write) {
        if self.try_token().is_none() {
            if self.left.leave(write, Line::of(write.0 as i32)).is_ok() {
                return self.help();
            }
            self.token();
        }
        self.run_left();
        self.run.lock().unwrap().push(write);
        self.give_back();
    }

    /// As `Inner::write` has it for one who is critical, and has the token.
    fn write_alone(&self, write: Write) {
        self.left.run(Line::Critical, BUDGET, |_, writes| self.run.lock().unwrap().extend(writes));
        self.run.lock().unwrap().push(write);
        self.taken.store(false, Ordering::Release);
        if !self.is_driven.load(Ordering::SeqCst) {
            self.help();
        }
    }

    fn end_driving(&self) {
        self.is_driven.store(false, Ordering::SeqCst);
        self.left.help_on(|| self.try_token(), |()| self.serve(), || self.has_driver_go_on());
    }

    /// The driver has found nothing to do, says that it sleeps, and looks, as `Inner::wait_at_port` has it. Does it sleep?
    fn doze(&self) -> bool {
        self.holding.fall_asleep(Time::NEVER, Time::NEVER);
        !self.left.is_any()
    }

    /// A step of the driver.
    fn step(&self) {
        self.token();
        self.run_left();
        self.give_back();
    }

    /// So many writes of each writer.
    fn finish(&self, writes: &[usize]) {
        let run = self.run.lock().unwrap();
        for (writer, writes) in writes.iter().copied().enumerate() {
            let numbers: Vec<usize> = run.iter().filter(|(of, _)| *of == writer).map(|(_, n)| *n).collect();
            assert_eq!(numbers, Vec::from_iter(0..writes), "all, each once, in order");
        }
    }
}

#[test]
fn a_write_that_is_left_is_run() {
    explore(|| {
        let model = Model::new(false);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let model = Arc::clone(&model);
                thread::spawn(move || (0..WRITES).for_each(|n| model.write((writer, n))))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        model.finish(&[WRITES; 2]);
    });
}

#[test]
fn a_writer_overtakes_nothing_that_it_has_left() {
    // One more than there is room for, while the driver holds the token or does not.
    const MANY: usize = ROOM + 1;
    explore(|| {
        let model = Model::new(false);
        let driver = {
            let model = Arc::clone(&model);
            thread::spawn(move || (0..2).for_each(|_| model.step()))
        };
        (0..MANY).for_each(|n| model.write((0, n)));
        driver.join().unwrap();
        model.finish(&[MANY]);
    });
}

/// One who is critical leaves what others have left to whoever drives, who is about to do so no more.
#[test]
fn what_is_left_once_more_is_run() {
    explore(|| {
        let model = Model::new(true);
        model.token();
        let [driver, writer] = [Model::end_driving, |model: &Model| model.write((0, 0))].map(|does| {
            let model = Arc::clone(&model);
            thread::spawn(move || does(&model))
        });
        model.write_alone((1, 0));
        [driver, writer].map(|thread| thread.join().unwrap());
        model.finish(&[1; 2]);
    });
}

/// Two write, and what one of them leaves while the other helps is left to whoever drives. Returns what that one did.
fn write_beside<R: 'static>(model: &Arc<Model>, drives: fn(&Model) -> R) -> R {
    let driver = {
        let model = Arc::clone(model);
        thread::spawn(move || drives(&model))
    };
    let writer = {
        let model = Arc::clone(model);
        thread::spawn(move || (0..WRITES).for_each(|n| model.write((1, n))))
    };
    model.write((0, 0));
    writer.join().unwrap();
    driver.join().unwrap()
}

#[test]
fn who_goes_to_sleep_is_woken_for_what_was_left_while_one_helped() {
    explore(|| {
        let model = Model::new(true);
        let sleeps = write_beside(&model, Model::doze);
        if !sleeps || !model.holding.is_asleep() {
            model.step();
        }
        model.finish(&[1, WRITES]);
    });
}

#[test]
fn who_drives_no_more_runs_what_was_left_while_one_helped() {
    explore(|| {
        let model = Model::new(true);
        write_beside(&model, Model::end_driving);
        model.finish(&[1, WRITES]);
    });
}
