//! Whether a look at a door finds nothing, known without its lock.
//!
//! Who takes what has come looks once more when it has all, and who waits looks before it sleeps: most looks find nothing.
//! Such a one says so with the door's lock, and it holds until somebody has that to bring something. crates/exec/models
//! tries this beside a driver that falls asleep.

use crate::sync::{AtomicBool, Ordering};

/// A look has found nothing, and nothing was brought since.
#[derive(Default)]
pub(crate) struct Quiet(AtomicBool);

impl Quiet {
    /// *Cost*: a load. A thread that has said before that it sleeps, in the one order of all such accesses, is woken by whoever
    /// brings what this does not see, as that one asks after a fence whether somebody sleeps.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// With the lock: a look has found nothing, and nothing comes by itself.
    #[inline]
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// With the lock: something was brought, or may be found by now. Who asks after that whether anybody wants to hear of it
    /// finds who does, or is seen.
    #[inline]
    pub fn end(&self) {
        if self.0.load(Ordering::Relaxed) {
            self.0.store(false, Ordering::SeqCst);
        }
    }
}
