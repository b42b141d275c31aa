//! An allocator that counts, for tests that hold the data path to no allocation. Feature `counting`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static OF_PROCESS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a count. Install it with `#[global_allocator]` in a test.
///
/// Invariant: each call goes on to [`System`] with unchanged arguments, and counting allocates nothing;
/// so it keeps the contract of [`GlobalAlloc`] because `System` does.
pub struct CountingAllocator;

impl CountingAllocator {
    /// Allocations of the whole process so far.
    pub fn of_process() -> u64 {
        OF_PROCESS.load(Ordering::SeqCst)
    }

    /// Allocations of the calling thread so far.
    pub fn of_thread() -> u64 {
        OF_THREAD.get()
    }

    fn count() {
        OF_THREAD.set(OF_THREAD.get() + 1);
        OF_PROCESS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: the type's invariant.
unsafe impl GlobalAlloc for CountingAllocator {
    // SAFETY: the type's invariant; the caller keeps the contract of `GlobalAlloc::alloc`.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CountingAllocator::count();
        // SAFETY: the type's invariant.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the type's invariant; the caller keeps the contract of `GlobalAlloc::dealloc`.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the type's invariant.
        unsafe { System.dealloc(pointer, layout) }
    }

    // SAFETY: the type's invariant; the caller keeps the contract of `GlobalAlloc::realloc`.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CountingAllocator::count();
        // SAFETY: the type's invariant.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
