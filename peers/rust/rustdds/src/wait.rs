//! Waiting for a stream of RustDDS without a runtime: the thread parks until it is woken.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

use futures_core::Stream;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// What wakes the thread that made it.
pub struct Waiter(Waker);

impl Waiter {
    /// For the thread that calls it: only that one may wait.
    pub fn new() -> Waiter {
        Waiter(Waker::from(Arc::new(Unpark(std::thread::current()))))
    }

    /// The next item of a stream; `None` if there is none by then, or the stream is over.
    pub fn next<S: Stream + Unpin>(&self, stream: &mut S, until: Instant) -> Option<S::Item> {
        loop {
            if let Poll::Ready(item) = self.poll(stream) {
                return item;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // Woken too early or for nothing it only looks once more.
            std::thread::park_timeout(left);
        }
    }

    /// Looks once.
    pub fn poll<S: Stream + Unpin>(&self, stream: &mut S) -> Poll<Option<S::Item>> {
        Pin::new(stream).poll_next(&mut Context::from_waker(&self.0))
    }
}
