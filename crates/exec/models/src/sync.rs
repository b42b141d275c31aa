//! In place of crates/exec/src/sync.rs: the same with loom's atomics.
//!
//! To loom an access with SeqCst is one with AcqRel, and only fences are in one order with each other: so each
//! such access stands between two fences here.

use std::num::NonZeroU32;
use std::time::Duration;

pub(crate) use loom::sync::atomic::{Ordering, fence};

fn in_order<R>(ordering: Ordering, access: impl FnOnce() -> R) -> R {
    let fenced = ordering == Ordering::SeqCst;
    let fence_if = || fenced.then(|| fence(Ordering::SeqCst));
    fence_if();
    let result = access();
    fence_if();
    result
}

macro_rules! atomics {
    ($($name:ident: $value:ty),*) => {$(
        #[derive(Default)]
        pub(crate) struct $name(loom::sync::atomic::$name);

        impl $name {
            pub fn new(value: $value) -> $name {
                $name(loom::sync::atomic::$name::new(value))
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                in_order(ordering, || self.0.load(ordering))
            }

            pub fn store(&self, value: $value, ordering: Ordering) {
                in_order(ordering, || self.0.store(value, ordering));
            }

            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                in_order(ordering, || self.0.swap(value, ordering))
            }

            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                ordering: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                in_order(ordering, || self.0.compare_exchange(from, to, ordering, failed))
            }
        }
    )*};
}

macro_rules! counts {
    ($($name:ident: $value:ty),*) => {$(
        impl $name {
            pub fn fetch_add(&self, more: $value, ordering: Ordering) -> $value {
                in_order(ordering, || self.0.fetch_add(more, ordering))
            }

            pub fn fetch_sub(&self, less: $value, ordering: Ordering) -> $value {
                in_order(ordering, || self.0.fetch_sub(less, ordering))
            }

            pub fn fetch_update(
                &self,
                ordering: Ordering,
                failed: Ordering,
                to: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                in_order(ordering, || self.0.fetch_update(ordering, failed, to))
            }
        }
    )*};
}

atomics!(AtomicBool: bool, AtomicI64: i64, AtomicU32: u32, AtomicUsize: usize);
counts!(AtomicI64: i64, AtomicU32: u32, AtomicUsize: usize);

pub(crate) fn sleep_at(_: &AtomicU32, _: u32, _: Option<Duration>, _: NonZeroU32) {
    unreachable!("no model waits");
}

pub(crate) fn wake(_: &AtomicU32, _: u32, _: NonZeroU32) {}

/// The lock of crates/lock, whose guard needs no look for poison.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
