//! Who waits at the port: at most one thread has the driver's role. All others wait to be told.
//!
//! A thread of the user that waits takes the role from the background thread and keeps it from one
//! wait to the next without a system call: the background thread looks from time to time, [`GRACE`],
//! whether the role is still in use, and sleeps for good while a user's wait goes on.

use crate::driver::news::{News, Topics};
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// How often the background thread looks whether a user who has stopped waiting comes back: at first,
/// and, doubled with each look that finds the user active, at most; where somebody listens, always as at first. It takes over
/// after a look that finds nothing moved, so nobody drives for at most twice this and what both looks may be late, and past a
/// timer that is due for the first of the two.
/// Lower disturbs a busy user (each look costs a change of threads), higher lets arriving data wait longer.
pub(crate) const GRACE: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::from_millis(1), std::time::Duration::from_millis(8));

/// Who has the role, in the lowest bits of the state.
const WHO: u32 = 3;
const FREE: u32 = 0;
const USER: u32 = 1;
const BACKGROUND: u32 = 2;
/// No thread has this number.
const NOBODY: u32 = 0;
/// The others count how often users have come and whoever had it has gone.
const CHANGE: u32 = WHO + 1;

/// The role and those who wait for it or for news.
#[derive(Default)]
pub(crate) struct Role {
    /// Who has it, and the count of changes.
    state: AtomicU32,
    /// The thread that has it.
    driver: AtomicU32,
    /// The same, while it looks at nothing: it is in the hands of the user, or does what may take long.
    away: AtomicU32,
    /// The same, while it is at another participant and back soon.
    visits: AtomicU32,
    /// Threads of the user that want the role while the background thread has it.
    wanted: AtomicUsize,
    /// The background thread sleeps until it is woken.
    parked: AtomicBool,
    /// It is to take the role as soon as that is free.
    called: AtomicBool,
    /// There is something to tell that was left to whoever drives.
    untold: AtomicBool,
    /// What followers wait for.
    news: News,
    followers: AtomicUsize,
}

/// While it lives the thread that has the role looks at nothing.
pub(crate) struct Away<'a> {
    thread: &'a AtomicU32,
    /// What it was before: one within the other is no end of that.
    before: u32,
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        // Who finds it away yet sends what may wait.
        self.thread.store(self.before, Ordering::Release);
    }
}

/// What became of the wish for the role.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// The caller has it.
    Taken,
    /// The background thread has it and is to be asked.
    Background,
    /// Another thread of the user has it.
    User,
}

impl Role {
    /// A thread of the user wants the role.
    pub fn claim(&self) -> Claim {
        match self.take(CHANGE | USER) {
            Ok(_) => Claim::Taken,
            Err(state) if state & WHO == BACKGROUND => Claim::Background,
            Err(_) => Claim::User,
        }
    }

    /// Adds this to the state, if nobody has the role.
    fn take(&self, more: u32) -> Result<u32, u32> {
        let taken = |state: u32| (state & WHO == FREE).then(|| state.wrapping_add(more));
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken)
    }

    /// The background thread wants the role.
    pub fn claim_background(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) == 0 && self.take(BACKGROUND).is_ok()
    }

    /// Does anybody have it?
    pub fn is_taken(&self) -> bool {
        self.state.load(Ordering::SeqCst) & WHO != FREE
    }

    /// Does anybody have it who looks what there is to do?
    pub fn is_served(&self) -> bool {
        self.is_taken() && self.away.load(Ordering::SeqCst) == NOBODY
    }

    /// The calling thread, of this number, has the role and looks at nothing from now on. What is held it has to send after
    /// that: who holds a sample looks after that whether somebody is away.
    pub fn go_away(&self, thread: u32) -> Away<'_> {
        // Nobody else changes it meanwhile.
        let before = self.away.load(Ordering::Relaxed);
        self.away.store(thread, Ordering::SeqCst);
        Away { thread: &self.away, before }
    }

    /// The same of one who is at another participant, and back soon: to all others it goes on driving. But a listener of that
    /// participant, which it may run there, may wait for this one.
    pub fn go_visiting(&self, thread: u32) -> Away<'_> {
        let before = self.visits.load(Ordering::Relaxed);
        self.visits.store(thread, Ordering::Relaxed);
        Away { thread: &self.visits, before }
    }

    /// Is who has it at another participant, maybe in a listener of that one's?
    pub fn is_visiting(&self) -> bool {
        self.visits.load(Ordering::Relaxed) != NOBODY
    }

    /// Has the thread of this number the role, and looks at nothing? What it waits for then nobody else brings.
    pub fn is_away(&self, thread: u32) -> bool {
        self.away.load(Ordering::SeqCst) == thread
    }

    /// The calling thread, of this number, has the role: until it is released.
    #[inline]
    pub fn note_driver(&self, thread: u32) {
        self.driver.store(thread, Ordering::Relaxed);
    }

    /// Has the calling thread, whose number `thread` says, the role? It drives from where it is if it waits, be it away, visiting
    /// or in a logger, and none for another to bring what it waits for.
    #[inline]
    pub fn is_out(&self, thread: impl Fn() -> u32) -> bool {
        // No other thread puts this one's number there.
        let is = |word: &AtomicU32| {
            let number = word.load(Ordering::Relaxed);
            number != NOBODY && number == thread()
        };
        is(&self.driver) || is(&self.away) || is(&self.visits)
    }

    /// Has the background thread take the role if it is free. Returns whether to wake it for that.
    pub fn call_background(&self) -> bool {
        !self.is_taken() && !self.called.swap(true, Ordering::SeqCst)
    }

    /// Was the background thread called since the last time?
    pub fn is_called(&self) -> bool {
        self.called.swap(false, Ordering::SeqCst)
    }

    /// Is a thread of the user waiting for the background thread to step aside?
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// Is the background thread to step aside for one, as it has the role? Nobody else is, and from a visit it cannot.
    pub fn is_to_step_aside(&self) -> bool {
        self.is_wanted() && self.state.load(Ordering::SeqCst) & WHO == BACKGROUND && !self.is_visiting()
    }

    /// Gives the role back. A user who has not driven has not come: the background thread is not to leave the driving to
    /// one who only asks. Returns whether the background thread has to be woken for it.
    pub fn release(&self, has_driven: bool) -> bool {
        self.driver.store(NOBODY, Ordering::Relaxed);
        // Nobody else changes it meanwhile.
        let state = self.state.load(Ordering::Relaxed);
        let free = state & !WHO;
        let next = if has_driven { free.wrapping_add(CHANGE) } else { free.wrapping_sub(CHANGE) };
        self.state.store(next, Ordering::SeqCst);
        // Who takes it, for however short, gives it back, and so the next one is told.
        if self.has_followers() {
            self.news.tell_one(Topics::ROLE);
        }
        let is_parked = self.parked.load(Ordering::SeqCst) && self.parked.swap(false, Ordering::SeqCst);
        is_parked || self.untold.load(Ordering::SeqCst) && self.call_background()
    }

    /// With the token: whoever drives is to tell what there is to tell. The caller looks, once it has given the token back,
    /// whether anybody drives.
    pub fn leave_untold(&self) {
        self.untold.store(true, Ordering::SeqCst);
    }

    /// With the token: it is told now.
    #[inline]
    pub fn note_told(&self) {
        self.untold.store(false, Ordering::Relaxed);
    }

    /// Whether it is free, whether a user has it, and the count of changes, for the background thread to see whether
    /// anything moves.
    pub fn look(&self) -> (bool, bool, u32) {
        let state = self.state.load(Ordering::SeqCst);
        (state & WHO == FREE, state & WHO == USER, state / CHANGE)
    }

    /// The same, and whether the background thread was called since it looked last: a call that finds the role taken was
    /// for who has it by now, and is over.
    pub fn look_when_called(&self) -> (bool, (bool, bool, u32)) {
        // First: who calls after that has a look to come.
        let called = self.is_called();
        (called, self.look())
    }

    /// Sleeps if nothing has moved since that look. Who releases the role from here on wakes the caller.
    pub fn rest_while(&self, look: (bool, bool, u32), sleep: impl FnOnce()) {
        self.parked.store(true, Ordering::SeqCst);
        if self.look() == look {
            sleep();
        }
        self.parked.store(false, Ordering::SeqCst);
    }

    /// The count of news before a look at what is waited for. From here on the caller is told of what changes, until
    /// [`Role::stop_following`]: also of what does between its look and its sleep.
    pub fn start_following(&self) -> u32 {
        self.followers.fetch_add(1, Ordering::SeqCst);
        self.news.seen()
    }

    /// The inverse of [`Role::start_following`].
    pub fn stop_following(&self) {
        self.followers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits for news `of` these after `seen`, or for the role to become free, at most until `until`.
    /// `before_sleep` runs once the caller is sure to be told.
    pub fn follow(
        &self,
        seen: u32,
        of: Topics,
        until: Option<std::time::Instant>,
        before_sleep: impl FnOnce(),
    ) {
        before_sleep();
        // Who frees the role between the look at it and the sleep tells of it, and so there is no sleep.
        let is_kept = || self.news.seen() == seen && self.is_taken();
        while is_kept() && self.news.wait(seen, until, of.and(Topics::ROLE)) {}
    }

    /// Waits for news after `seen`, at most until `until`, and takes no role.
    pub fn follow_news(&self, seen: u32, until: Option<std::time::Instant>) {
        while self.news.seen() == seen && self.news.wait(seen, until, Topics::ANY_ENTITY) {}
    }

    /// The same for a thread that wants the role from the background thread.
    pub fn follow_wanting(
        &self,
        seen: u32,
        of: Topics,
        until: Option<std::time::Instant>,
        kick: impl FnOnce(),
    ) {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.follow(seen, of, until, kick);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
    }

    /// Does a thread wait that is to be told of news?
    pub fn has_followers(&self) -> bool {
        self.followers.load(Ordering::SeqCst) > 0
    }

    /// Tells those that wait for one of these that there are news.
    pub fn tell_followers(&self, of: Topics) {
        self.news.tell(of);
    }
}
