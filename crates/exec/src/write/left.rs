//! Writes that are left to the holder of the token.
//!
//! Who finds the token taken leaves its write here and goes on; the holder runs it before it lets go, or looks
//! once more when it has. crates/exec/models tries this in every order that threads and the memory model allow.

use std::collections::VecDeque;

use crate::sync::{AtomicUsize, Mutex, Ordering, fence};

/// The queue of them, in the order in which they were left.
///
/// Behind a lock with priority inheritance, held for one write at a time: a holder of high priority that finds somebody in
/// the middle of it lends him its priority. To wait for a word that he has to change would be to wait for ever.
pub(crate) struct Left<W> {
    queue: Mutex<VecDeque<W>>,
    /// Its length.
    count: AtomicUsize,
    room: usize,
}

impl<W> Left<W> {
    /// With room for so many.
    pub fn new(room: usize) -> Left<W> {
        Left { queue: Mutex::new(VecDeque::with_capacity(room)), count: AtomicUsize::new(0), room }
    }

    /// Leaves a write. The caller then calls [`Left::help`].
    ///
    /// *Errors*: the write, if there is no room.
    pub fn leave(&self, write: W) -> Result<(), W> {
        let mut queue = self.queue.lock();
        if queue.len() == self.room {
            return Err(write);
        }
        queue.push_back(write);
        self.count.store(queue.len(), Ordering::SeqCst);
        Ok(())
    }

    fn pop(&self) -> Option<W> {
        let mut queue = self.queue.lock();
        let write = queue.pop_front();
        self.count.store(queue.len(), Ordering::SeqCst);
        write
    }

    /// Is one left?
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// After a write was left, and after the token was given back: whoever has the token runs what is left, or
    /// this thread does, by `serve`, with what `take` gets.
    pub fn help<T>(&self, take: impl Fn() -> Option<T>, serve: impl Fn(T)) {
        // Pairs with itself: of one who leaves a write and one who lets go, be it of what it took here, either
        // the first gets the token or the second sees the write.
        fence(Ordering::SeqCst);
        self.help_on(take, serve);
    }

    /// The same for one who has made that fence after it gave the token back.
    #[inline]
    pub fn help_on<T>(&self, take: impl Fn() -> Option<T>, serve: impl Fn(T)) {
        while self.is_any() {
            let Some(token) = take() else { return };
            serve(token);
            fence(Ordering::SeqCst);
        }
    }

    /// With the token: all that was left before, in shares of at most `budget`, each to be run in a step. So what
    /// the holder itself does comes after what its thread has left here.
    pub fn run(&self, budget: usize, mut step: impl FnMut(&mut dyn Iterator<Item = W>)) {
        let mut left = self.count.load(Ordering::SeqCst);
        while left > 0 {
            let share = left.min(budget);
            step(&mut std::iter::from_fn(|| self.pop()).take(share));
            left -= share;
        }
    }
}
