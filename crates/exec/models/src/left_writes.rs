//! Writes that are left to the token's holder: each is run, once, before those that its writer makes later, and
//! none lies there while the token is free and nobody is on the way to it. One writer is critical.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

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
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            taken: AtomicBool::new(false),
            left: Left::new(ROOM),
            run: std::sync::Mutex::default(),
            is_driven: sync::AtomicBool::new(true),
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
        self.left.help(|| self.try_token(), |()| self.serve());
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
        self.left.help_on(|| self.try_token(), |()| self.serve());
    }

    /// A step of the driver.
    fn step(&self) {
        self.token();
        self.run_left();
        self.give_back();
    }

    fn finish(&self, writers: usize, writes: usize) {
        let run = self.run.lock().unwrap();
        for writer in 0..writers {
            let numbers: Vec<usize> = run.iter().filter(|(of, _)| *of == writer).map(|(_, n)| *n).collect();
            assert_eq!(numbers, Vec::from_iter(0..writes), "all, each once, in order");
        }
    }
}

#[test]
fn a_write_that_is_left_is_run() {
    explore(|| {
        let model = Model::new();
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let model = Arc::clone(&model);
                thread::spawn(move || (0..WRITES).for_each(|n| model.write((writer, n))))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        model.finish(2, WRITES);
    });
}

#[test]
fn a_writer_overtakes_nothing_that_it_has_left() {
    // One more than there is room for, while the driver holds the token or does not.
    const MANY: usize = ROOM + 1;
    explore(|| {
        let model = Model::new();
        let driver = {
            let model = Arc::clone(&model);
            thread::spawn(move || (0..2).for_each(|_| model.step()))
        };
        (0..MANY).for_each(|n| model.write((0, n)));
        driver.join().unwrap();
        model.finish(1, MANY);
    });
}

/// One who is critical leaves what others have left to whoever drives, who is about to do so no more.
#[test]
fn what_is_left_once_more_is_run() {
    explore(|| {
        let model = Model::new();
        model.token();
        let [driver, writer] = [Model::end_driving, |model: &Model| model.write((0, 0))].map(|does| {
            let model = Arc::clone(&model);
            thread::spawn(move || does(&model))
        });
        model.write_alone((1, 0));
        [driver, writer].map(|thread| thread.join().unwrap());
        model.finish(2, 1);
    });
}
