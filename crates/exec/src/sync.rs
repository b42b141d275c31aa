//! What threads tell each other with, in one place: the models in crates/exec/models put loom's there.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};
pub(crate) use taut_lock::Mutex;

/// Sleeps for so long, for ever without a limit, while a word has this value; or not, for no reason.
pub(crate) fn sleep_at(word: &AtomicU32, value: u32, longest: Option<Duration>) {
    // What is too long for the kernel is for ever.
    let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
    // The caller looks why it has come back.
    let _ = futex::wait(word, Flags::PRIVATE, value, longest.as_ref());
}

/// Wakes all that sleep there.
pub(crate) fn wake_all(word: &AtomicU32) {
    // Nobody there to be woken is no error.
    let _ = futex::wake(word, Flags::PRIVATE, i32::MAX.cast_unsigned());
}
