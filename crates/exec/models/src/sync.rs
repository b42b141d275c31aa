//! In place of crates/exec/src/sync.rs: the same with loom's atomics.
//!
//! To loom an access with SeqCst is one with AcqRel, and only fences are in one order with each other: so each
//! such access stands between two fences here.

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
counts!(AtomicU32: u32, AtomicUsize: usize);

pub(crate) fn sleep_at(_: &AtomicU32, _: u32, _: Option<Duration>) {
    unreachable!("no model waits");
}

pub(crate) fn wake_all(_: &AtomicU32) {}

/// The queue as crossbeam has it: who leaves something takes a place first and fills it then. Who takes out what lies
/// there waits for a place that is not filled yet, and the thread that is to fill it may be kept from the processor by
/// the one that waits: so here nobody is to.
pub(crate) struct ArrayQueue<W> {
    room: usize,
    head: loom::sync::atomic::AtomicUsize,
    tail: loom::sync::atomic::AtomicUsize,
    places: Vec<Place<W>>,
}

struct Place<W> {
    is_filled: loom::sync::atomic::AtomicBool,
    content: std::sync::Mutex<Option<W>>,
}

impl<W> ArrayQueue<W> {
    pub fn new(room: usize) -> ArrayQueue<W> {
        let end = || loom::sync::atomic::AtomicUsize::new(0);
        let place = || Place {
            is_filled: loom::sync::atomic::AtomicBool::new(false),
            content: std::sync::Mutex::default(),
        };
        let (head, tail) = (end(), end());
        ArrayQueue { room, head, tail, places: std::iter::repeat_with(place).take(room).collect() }
    }

    pub fn push(&self, write: W) -> Result<(), W> {
        let has_room = |tail: usize| {
            let head = self.head.load(Ordering::SeqCst);
            (tail.wrapping_sub(head) < self.room).then(|| tail + 1)
        };
        match self.tail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, has_room) {
            Err(_) => Err(write),
            Ok(tail) => {
                let place = &self.places[tail % self.room];
                *place.content.lock().unwrap() = Some(write);
                place.is_filled.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Only the token's holder does.
    pub fn pop(&self) -> Option<W> {
        if self.is_empty() {
            return None;
        }
        let head = self.head.load(Ordering::Relaxed);
        let place = &self.places[head % self.room];
        assert!(place.is_filled.load(Ordering::Acquire), "it waits for who is about to leave a write");
        let write = place.content.lock().unwrap().take();
        place.is_filled.store(false, Ordering::Relaxed);
        self.head.fetch_add(1, Ordering::SeqCst);
        write
    }

    pub fn len(&self) -> usize {
        let head = self.head.load(Ordering::SeqCst);
        self.tail.load(Ordering::SeqCst).saturating_sub(head)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
