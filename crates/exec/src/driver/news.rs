//! A count of news, which threads wait for to change. It has no lock: who tells waits for nobody.

use std::time::Instant;

use crate::sync::{AtomicU32, Ordering, sleep_at, wake_all};

/// See above.
#[derive(Default)]
pub(crate) struct News(AtomicU32);

impl News {
    /// How many there were.
    pub fn seen(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// There is one more. *Cost*: a system call.
    pub fn tell(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        wake_all(&self.0);
    }

    /// Sleeps if there are none after `seen`, until there are or for no reason; `false` if it is past `until`.
    pub fn wait(&self, seen: u32, until: Option<Instant>) -> bool {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        sleep_at(&self.0, seen, left);
        true
    }
}
