//! The lock of the executor: as long as a thread waits for it, its holder runs at the priority of that thread.
//!
//! Without that a thread of high priority waits for as long as threads of medium priority keep the holder, of low
//! priority, from its processor. The kernel does the lending (`FUTEX_LOCK_PI`, futex(2)), for all policies; here is
//! the half of it that needs no system call. Who unlocks it hands it to the waiter of the highest priority, among
//! equals to the one that came first, so each unlocking is a fair one. A panic of its holder leaves it unlocked, not
//! poisoned. The executor calls it; it calls the kernel and nobody else.
//!
//! ```
//! let count = taut_lock::Mutex::new(1);
//! *count.lock() += 1;
//! assert_eq!(count.try_lock().map(|count| *count), Some(2));
//! ```

mod kernel;
mod raw;
mod sync;
mod thread;
mod waits;
mod word;

pub use raw::RawMutex;
pub use thread::{has_fixed_priority, id as thread_id, is_real_time};
pub use waits::waits;

/// A lock with priority inheritance around a value.
///
/// *Cost*: free, a compare-and-exchange to lock it and one to unlock it. Taken, a system call for each who waits for
/// longer than a few pauses of the processor, and one for each unlocking that ends such a wait.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// The right to use the value, until it is dropped; it stays with its thread.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
