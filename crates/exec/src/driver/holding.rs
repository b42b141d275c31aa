//! What the threads of a participant tell each other of samples that wait for company, and of who will send them.
//!
//! A writer that holds a sample back relies on a driver, which is to look no later than the sample is due, asleep
//! or not. Each of the two first says what it is about to do and then looks at what the other has said: so either
//! the driver sleeps no longer than that, or the writer has it woken by then. crates/exec/models tries this in every order
//! that threads and the memory model allow.

use taut_base::Time;

use crate::driver::role::Role;
use crate::sync::{AtomicI64, AtomicUsize, Ordering, fence};
use crate::write::burst::{self, Held};

/// The driver does not sleep.
const AWAKE: i64 = i64::MIN;

/// What they tell each other.
pub(crate) struct Holding {
    /// Until when samples wait, as the token's holder has it; `NEVER` if none does.
    until: AtomicI64,
    /// When something is due for whoever drives, as the token's last holder has it; in the past if something is to be done
    /// already.
    due: AtomicI64,
    /// Until when the driver sleeps, as far as it or who has it reminded knows of timers; [`AWAKE`] while it does not sleep.
    sleeps_until: AtomicI64,
    /// When it looks next, asleep or not, whether samples have waited long enough.
    looks_at: AtomicI64,
    /// Threads that run listeners: as long as one does, the driver may be one that takes its time.
    telling: AtomicUsize,
}

impl Default for Holding {
    fn default() -> Holding {
        let at = |time: i64| AtomicI64::new(time);
        let (until, looks_at) = (at(Time::NEVER.0), at(Time::NEVER.0));
        let telling = AtomicUsize::new(0);
        Holding { until, due: at(0), sleeps_until: at(AWAKE), looks_at, telling }
    }
}

/// While it lives a thread runs listeners.
pub(crate) struct Telling<'a>(&'a Holding);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.telling.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The side of who has the token and something to send.
impl Holding {
    /// A sample waits until then, or as long as those before it if that is less. `false` if nobody drives who would send
    /// it: what waits is to be sent now, unless it is patient.
    pub fn hold(&self, held: &mut Held, until: Time, role: &Role) -> bool {
        let is_first = until < held.until;
        if is_first {
            self.until.store(until.0, Ordering::SeqCst);
        }
        // Who gives the role back, or goes away with it, looks after that for what is held. Those before it may have been
        // patient: that nobody drives is no news to them.
        if !held.is_patient && !role.is_served() {
            return false;
        }
        if is_first {
            held.until = until;
        }
        true
    }

    /// What waits is sent with the next that is.
    pub fn release(&self, held: &mut Held) {
        if self.until() != Time::NEVER {
            self.until.store(Time::NEVER.0, Ordering::SeqCst);
        }
        *held = Held::NOTHING;
    }

    /// Until when samples wait, if somebody does not just change it.
    pub fn until(&self) -> Time {
        Time(self.until.load(Ordering::SeqCst))
    }

    /// The calling thread is about to run listeners. It has the token: from here on no sample is left to who may
    /// be busy with them; what waits is the caller's to send.
    pub fn tell(&self) -> Telling<'_> {
        self.telling.fetch_add(1, Ordering::SeqCst);
        Telling(self)
    }

    /// Does a thread run listeners?
    pub fn is_telling(&self) -> bool {
        self.telling.load(Ordering::SeqCst) > 0
    }

    /// With the token, before it is given back: when something is due for whoever drives.
    #[inline]
    pub fn note_due(&self, at: Time) {
        self.due.store(at.0, Ordering::Relaxed);
    }

    /// After the token was given back: does the driver sleep, and for too long for a timer that is due `next` or
    /// for what is held until then? With `urgent` any sleep is.
    pub fn oversleeps(&self, urgent: bool, next: Time, held_until: Time) -> bool {
        // Pairs with the driver's store: it looks for what is due after it has said that it sleeps.
        fence(Ordering::SeqCst);
        let sleeps_until = self.sleeps_until.load(Ordering::SeqCst);
        let looks_at = || self.looks_at.load(Ordering::SeqCst);
        sleeps_until != AWAKE && (urgent || next.0 < sleeps_until || burst::due(held_until).0 < looks_at())
    }

    /// The driver is to be awake when a timer is due `next`, and to look in time for what is held until then. Its caller has
    /// it woken for the first of the two.
    pub fn shorten(&self, next: Time, held_until: Time) {
        let lower = |word: &AtomicI64, to: Time| {
            // Nobody sleeps, or not for so long: that is as well.
            let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |at| (to.0 < at).then_some(to.0));
        };
        lower(&self.sleeps_until, next);
        lower(&self.looks_at, burst::due(held_until));
    }

    /// Does the driver sleep? Who asks has said before what it is to look at: either this sees it asleep, or it looks after that.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.sleeps_until.load(Ordering::SeqCst) != AWAKE
    }

    /// The driver is to be woken. Returns whether the caller is to do it: it sleeps, and nobody else does.
    pub fn rouse(&self) -> bool {
        self.sleeps_until.swap(AWAKE, Ordering::SeqCst) != AWAKE
    }
}

/// The driver's side.
impl Holding {
    /// When something is due, or in the past if something is to be done already.
    pub fn due(&self) -> Time {
        Time(self.due.load(Ordering::SeqCst))
    }

    /// Without the token: it sleeps from now on until then, or until something is due. Returns until when, and whether it
    /// only looks, as something has become due meanwhile; `None` if there is something to do.
    pub fn doze(&self, now: Time, until: Time) -> Option<(Time, bool)> {
        let due = self.due();
        if due <= now || self.until() != Time::NEVER {
            return None;
        }
        let wake_at = due.min(until);
        self.fall_asleep(wake_at, Time::NEVER);
        // Who gave the token back before that has woken nobody, and has said what is due.
        Some((wake_at, self.due() < wake_at))
    }

    /// With the token: it sleeps from now on, and knows of nothing to do until then, and of what is held until then: that it
    /// looks at in time.
    pub fn fall_asleep(&self, until: Time, held_until: Time) {
        if held_until != Time::NEVER {
            self.looks_at.store(burst::due(held_until).0, Ordering::SeqCst);
        }
        self.sleeps_until.store(until.0, Ordering::SeqCst);
    }

    /// It is awake. Who does not see that yet wakes it in vain.
    pub fn wake(&self) {
        self.sleeps_until.store(AWAKE, Ordering::Release);
    }

    /// It looks from now on without a pause whether samples have waited long enough: nobody is to wake it for that.
    pub fn look_always(&self) {
        // Most often it did before, and nobody has it look later.
        if self.looks_at.load(Ordering::Relaxed) != Time::AT_ONCE.0 {
            self.looks_at.store(Time::AT_ONCE.0, Ordering::SeqCst);
        }
    }

    /// Until when it sleeps that has said so, for all that others have said since: in the past if one has woken it.
    pub fn sleeps_until(&self) -> Time {
        Time(self.sleeps_until.load(Ordering::SeqCst))
    }

    /// Until when it may sleep, to look again then; `None` if not at all.
    pub fn next_look(&self, now: Time) -> Option<Time> {
        loop {
            let (wake_at, due) = (self.sleeps_until(), burst::due(self.until()));
            if now >= wake_at || now >= due {
                return None;
            }
            let next = wake_at.min(due);
            // It says so already where it slept until then before; who has it look sooner meanwhile does no harm.
            if self.looks_at.load(Ordering::Relaxed) != next.0 {
                self.looks_at.store(next.0, Ordering::SeqCst);
            }
            // Who began to hold something before the store has had nobody wake it.
            if burst::due(self.until()) >= next {
                return Some(next);
            }
        }
    }
}
