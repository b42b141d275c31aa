//! The lock of crates/lock: one thread has it at a time, sees what the one before did, and nobody waits for ever. What
//! it guards is a count that loom may show as it was before to who has not been told of the last change.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::explore;
use crate::word::Word;

#[derive(Default)]
struct Model {
    word: Word,
    count: AtomicUsize,
}

impl Model {
    fn count_up(&self) {
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    fn lock_and_count(&self, me: u32) {
        self.word.lock(me);
        self.count_up();
        self.word.unlock(me);
    }
}

/// Runs a program in so many threads, and tells it the id of each. It says how often it has counted.
fn counted(threads: u32, program: impl Fn(&Model, u32) -> usize + Copy + Send + Sync + 'static) {
    explore(move || {
        let model = Arc::new(Model::default());
        let others: Vec<_> = (2..=threads)
            .map(|me| {
                let model = Arc::clone(&model);
                thread::spawn(move || program(&model, me))
            })
            .collect();
        let own = program(&model, 1);
        let all = own + others.into_iter().map(|other| other.join().unwrap()).sum::<usize>();
        assert!(model.word.try_lock(1), "it is free in the end");
        assert_eq!(model.count.load(Ordering::Relaxed), all);
    });
}

#[test]
fn two_take_turns() {
    counted(2, |model, me| {
        (0..2).for_each(|_| model.lock_and_count(me));
        2
    });
}

#[test]
fn three_have_it_one_after_the_other() {
    counted(3, |model, me| {
        model.lock_and_count(me);
        1
    });
}

#[test]
fn who_only_tries_never_waits() {
    counted(3, |model, me| {
        if me < 3 {
            model.lock_and_count(me);
            return 1;
        }
        if !model.word.try_lock(me) {
            return 0;
        }
        model.count_up();
        model.word.unlock(me);
        1
    });
}
