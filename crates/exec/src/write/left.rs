//! Writes that are left to the holder of the token.
//!
//! Who finds the token taken leaves its write here and goes on; the holder runs it before it lets go, or looks
//! once more when it has. crates/exec/models tries this in every order that threads and the memory model allow.

use std::collections::VecDeque;
use std::mem::{MaybeUninit, take};

use crate::sync::{AtomicUsize, Mutex, Ordering, fence};

/// So often one who helps runs what is left before whoever drives is woken to go on. Lower and two threads that write at once
/// wake it for each other (at 1 they write 27 % less, at 16 as much as without an end), higher keeps one of them for longer. The
/// models try each order of what one does, for which once is as good.
pub(crate) const HELPS: usize = if cfg!(loom) { 1 } else { 16 };

/// Which of them come first. A writer's are all of one kind, so that none overtakes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// Those of writers with a TRANSPORT_PRIORITY above 0.
    Critical,
    Others,
}

impl Line {
    const ALL: [Line; 2] = [Line::Critical, Line::Others];

    /// That of a writer with this TRANSPORT_PRIORITY.
    pub fn of(priority: i32) -> Line {
        if priority > 0 { Line::Critical } else { Line::Others }
    }
}

/// The lines of them, each in the order in which they were left.
///
/// Behind a lock with priority inheritance, held for one write at a time: a holder of high priority that finds somebody in
/// the middle of it lends him its priority. To wait for a word that he has to change would be to wait for ever.
pub(crate) struct Left<W> {
    lines: Mutex<[VecDeque<W>; Line::ALL.len()]>,
    /// How many there are, and how many of them are critical.
    count: AtomicUsize,
    critical: AtomicUsize,
    room: usize,
}

impl<W> Left<W> {
    /// With room for so many in each line.
    pub fn new(room: usize) -> Left<W> {
        let lines = Line::ALL.map(|_| VecDeque::with_capacity(room));
        Left { lines: Mutex::new(lines), count: AtomicUsize::new(0), critical: AtomicUsize::new(0), room }
    }

    /// Takes the memory of the lines, rather than page by page as writes are left: who finds the token taken does not wait.
    pub fn prefault(&self) {
        for line in self.lines.lock().iter_mut() {
            let mut room = Vec::from(take(line));
            room.spare_capacity_mut().fill_with(MaybeUninit::zeroed);
            *line = room.into();
        }
    }

    /// Leaves a write. The caller then calls [`Left::help`].
    ///
    /// *Errors*: the write, if there is no room.
    pub fn leave(&self, write: W, line: Line) -> Result<(), W> {
        let mut lines = self.lines.lock();
        let queue = &mut lines[line as usize];
        if queue.len() == self.room {
            return Err(write);
        }
        queue.push_back(write);
        self.note(&lines);
        Ok(())
    }

    fn pop(&self, line: Line) -> Option<W> {
        let mut lines = self.lines.lock();
        let write = lines[line as usize].pop_front();
        self.note(&lines);
        write
    }

    fn note(&self, lines: &[VecDeque<W>; Line::ALL.len()]) {
        self.critical.store(lines[Line::Critical as usize].len(), Ordering::Relaxed);
        self.count.store(lines.iter().map(VecDeque::len).sum(), Ordering::SeqCst);
    }

    /// Is one left?
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Is a critical one, as far as this thread knows?
    pub fn has_critical(&self) -> bool {
        self.critical.load(Ordering::Relaxed) > 0
    }

    /// After a write was left, and after the token was given back: whoever has the token runs what is left, or
    /// this thread does, by `serve`, with what `take` gets. What comes meanwhile it runs, too, up to [`HELPS`] times, and then
    /// unless somebody `goes_on`, who was told to: it may come as fast as one runs it.
    pub fn help<T>(&self, take: impl Fn() -> Option<T>, serve: impl Fn(T), goes_on: impl Fn() -> bool) {
        // Pairs with itself: of one who leaves a write and one who lets go, be it of what it took here, either
        // the first gets the token or the second sees the write.
        fence(Ordering::SeqCst);
        self.help_on(take, serve, goes_on);
    }

    /// The same for one who has made that fence after it gave the token back.
    #[inline]
    pub fn help_on<T>(&self, take: impl Fn() -> Option<T>, serve: impl Fn(T), goes_on: impl Fn() -> bool) {
        if self.is_any() {
            self.serve_all(take, serve, goes_on);
        }
    }

    #[cold]
    fn serve_all<T>(&self, take: impl Fn() -> Option<T>, serve: impl Fn(T), goes_on: impl Fn() -> bool) {
        let mut served = 0;
        loop {
            let Some(token) = take() else { return };
            serve(token);
            fence(Ordering::SeqCst);
            served += 1;
            if !self.is_any() || served >= HELPS && goes_on() {
                return;
            }
        }
    }

    /// With the token: all that was left before in lines up to this one, the critical first, in shares of at most `budget`, each
    /// to be run in a step. So what the holder itself does comes after what its thread has left here.
    pub fn run(&self, last: Line, budget: usize, mut step: impl FnMut(Line, &mut dyn Iterator<Item = W>)) {
        let lens = self.lines.lock().each_ref().map(VecDeque::len);
        for (line, mut left) in Line::ALL.into_iter().zip(lens).take(last as usize + 1) {
            while left > 0 {
                let share = left.min(budget);
                step(line, &mut std::iter::from_fn(|| self.pop(line)).take(share));
                left -= share;
            }
        }
    }
}
