//! What threads tell each other with, in one place: the models in crates/exec/models put loom's there.

use std::num::NonZeroU32;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};
use rustix::time::{ClockId, clock_gettime};
pub(crate) use taut_lock::Mutex;

/// Sleeps for so long, for ever without a limit, while a word has this value; or not, for no reason. Who wakes for one of these
/// bits wakes it.
pub(crate) fn sleep_at(word: &AtomicU32, value: u32, longest: Option<Duration>, bits: NonZeroU32) {
    // What is too long for the kernel is for ever.
    let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
    let end = longest.and_then(|longest| clock_gettime(ClockId::Monotonic).checked_add(longest));
    // The caller looks why it has come back.
    let _ = futex::wait_bitset(word, Flags::PRIVATE, value, end.as_ref(), bits);
}

/// Wakes so many of those that sleep there for one of these bits.
pub(crate) fn wake(word: &AtomicU32, most: u32, bits: NonZeroU32) {
    // Nobody there to be woken is no error.
    let _ = futex::wake_bitset(word, Flags::PRIVATE, most, bits);
}
