//! The lines of left writes against plain queues: everything at random from a seed, then by threads.
//!
//! What is left must be run in its order, the critical first, once, in shares of at most the budget, and a write must be
//! refused exactly when its plain queue is full. `LEFT_SEED=n` repeats one seed. crates/exec/models tries short programs in every order.

#[path = "../src/write/left.rs"]
mod left;

/// What that file takes from the executor.
mod sync {
    pub use std::sync::atomic::{AtomicUsize, Ordering, fence};

    pub use taut_lock::Mutex;
}

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Mutex, TryLockError};

use left::{Left, Line};
use taut_base::Rng;

const SEEDS: u64 = 300;
const STEPS: usize = 2_000;

struct Model {
    left: Left<u64>,
    room: usize,
    /// The critical, and the others.
    plain: [RefCell<VecDeque<u64>>; 2],
    next: Cell<u64>,
    random: RefCell<Rng>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut random = Rng::new(seed);
        let room = random.below(40) as usize;
        let (plain, next) = (Default::default(), Cell::default());
        Model { left: Left::new(room), room, plain, next, random: random.into() }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.borrow_mut().below(bound as u64) as usize
    }

    fn leave(&self) {
        if self.below(50) == 0 {
            self.left.prefault();
        }
        let write = self.next.replace(self.next.get() + 1);
        let line = Line::of(self.below(2) as i32);
        let plain = &self.plain[line as usize];
        let expected = if plain.borrow().len() < self.room { Ok(()) } else { Err(write) };
        assert_eq!(self.left.leave(write, line), expected, "with room for {}", self.room);
        if expected.is_ok() {
            plain.borrow_mut().push_back(write);
        }
    }

    fn is_any(&self) -> bool {
        self.plain.iter().any(|plain| !plain.borrow().is_empty())
    }

    /// Who runs what is left may leave writes itself, and may stop in the middle of a share.
    fn run(&self) {
        let budget = 1 + self.below(12);
        let before = self.plain.each_ref().map(|plain| plain.borrow().len());
        let (mut steps, mut given) = ([0, 0], [0, 0]);
        self.left.run(Line::Others, budget, |line, share| {
            let at = line as usize;
            assert!(steps[1] == 0 || line == Line::Others, "the critical come first");
            steps[at] += 1;
            let wanted = if self.below(5) == 0 { self.below(budget) } else { usize::MAX };
            let mut got = 0;
            while got < wanted {
                if self.below(4) == 0 {
                    self.leave();
                }
                let Some(write) = share.next() else { break };
                assert_eq!(Some(write), self.plain[at].borrow_mut().pop_front());
                got += 1;
            }
            given[at] += got;
            assert!(got <= budget, "{got} in a step of {budget}");
            let is_last = steps[at] == before[at].div_ceil(budget);
            assert!(
                wanted != usize::MAX || is_last || got == budget,
                "{got} of {before:?} in a step of {budget}"
            );
        });
        assert_eq!(steps, before.map(|before| before.div_ceil(budget)), "{before:?} in steps of {budget}");
        let is_more = given.iter().zip(before).any(|(given, before)| *given > before);
        assert!(!is_more, "what was left meanwhile is for the next one");
    }

    /// Others may have the token now and then, and leave writes while this one runs some.
    fn help(&self) {
        let had = Cell::new(true);
        let take = || {
            had.set(self.below(4) > 0);
            had.get().then_some(())
        };
        // Somebody drives who was told to go on.
        let goes_on = Cell::new(false);
        let tell = || {
            assert!(!goes_on.get() && self.is_any(), "it is told once, of what there is");
            goes_on.set(self.below(2) == 0);
            goes_on.get()
        };
        let serve = |()| {
            assert!(!goes_on.get(), "another one does");
            self.run();
            if self.below(3) == 0 {
                self.leave();
            }
        };
        self.left.help(take, serve, tell);
        let is_left = had.get() && !goes_on.get() && self.is_any();
        assert!(!is_left, "it went with the token free and a write left");
    }

    fn step(&self) {
        match self.below(10) {
            0..6 => self.leave(),
            6..8 => self.run(),
            _ => self.help(),
        }
        assert_eq!(self.left.has_critical(), !self.plain[Line::Critical as usize].borrow().is_empty());
        assert_eq!(self.left.is_any(), self.is_any());
    }
}

#[test]
fn what_is_left_does_what_a_queue_does() {
    let one: Option<u64> = std::env::var("LEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in one.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let failed = std::panic::catch_unwind(|| {
            let model = Model::new(seed);
            (0..STEPS).for_each(|_| model.step());
        });
        assert!(failed.is_ok(), "repeat with LEFT_SEED={seed}");
    }
}

#[test]
fn threads_run_each_write_once_and_in_its_order() {
    const THREADS: usize = 4;
    const WRITES: usize = 20_000;
    const BUDGET: usize = 7;
    // The token, with what was run: how many of each thread.
    let (left, token) = (Left::new(64), Mutex::new([0; THREADS]));
    let help = || {
        left.help(
            || match token.try_lock() {
                Err(TryLockError::WouldBlock) => None,
                // One that has failed with it fails the others, which would wait for room for ever.
                taken => Some(taken.unwrap()),
            },
            |mut ran| {
                left.run(Line::Others, BUDGET, |_, share| {
                    for (thread, number) in share {
                        assert_eq!(ran[thread], number, "of thread {thread}");
                        ran[thread] += 1;
                    }
                });
            },
            || false,
        );
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (left, help) = (&left, &help);
            scope.spawn(move || {
                for number in 0..WRITES {
                    let mut write = (thread, number);
                    while let Err(back) = left.leave(write, Line::of(thread as i32)) {
                        write = back;
                        help();
                    }
                    help();
                }
            });
        }
    });
    assert_eq!(*token.lock().unwrap(), [WRITES; THREADS], "none is left");
}
