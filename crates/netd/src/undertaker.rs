//! Closes descriptors that nobody should have passed.
//!
//! The close of a file waits for its file system, which may be the sender's own and never answer; that of a socket of TCP
//! waits for as long as the sender has set. So threads do it. While too many of one user's are at it that user is not
//! served.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Closes of one user that may wait at once. Each is a thread and a few descriptors; lower and two programs that pass
/// what they should not lock out others of their user.
const AT_ONCE: u32 = 16;

#[derive(Default)]
pub(crate) struct Undertaker {
    /// How many closes of each user are under way.
    busy: BTreeMap<u32, Arc<AtomicU32>>,
}

impl Undertaker {
    /// Closes what a user has passed.
    pub fn close(&mut self, uid: u32, fds: Vec<OwnedFd>) {
        if fds.is_empty() {
            return;
        }
        self.busy.retain(|_, count| count.load(Ordering::Relaxed) > 0);
        let closing = Closing::new(fds, Arc::clone(self.busy.entry(uid).or_default()));
        // Without a thread they are closed here after all.
        let _ = std::thread::Builder::new().name("netd-close".into()).spawn(|| drop(closing));
    }

    /// Does this user keep too many waiting?
    pub fn is_busy(&self, uid: u32) -> bool {
        self.busy.get(&uid).is_some_and(|count| count.load(Ordering::Relaxed) >= AT_ONCE)
    }
}

/// What is to be closed, counted until it is, by whatever thread.
struct Closing {
    fds: Vec<OwnedFd>,
    count: Arc<AtomicU32>,
}

impl Closing {
    fn new(fds: Vec<OwnedFd>, count: Arc<AtomicU32>) -> Closing {
        count.fetch_add(1, Ordering::Relaxed);
        Closing { fds, count }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.fds.clear();
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_thread_does_not_count_for_ever() {
        let count = Arc::default();
        let closing = Closing::new(Vec::new(), Arc::clone(&count));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        // A thread that cannot be made drops what it was to run.
        let run = move || drop(closing);
        drop(run);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let mut undertaker = Undertaker::default();
        let (read, write) = std::io::pipe().unwrap();
        for _ in 0..AT_ONCE {
            undertaker.close(7, vec![write.try_clone().unwrap().into()]);
        }
        drop(write);
        assert!(!undertaker.is_busy(8));
        // The end of the pipe comes when the last of them is closed.
        assert_eq!(std::io::read_to_string(read).unwrap(), "");
        while undertaker.is_busy(7) {
            std::thread::yield_now();
        }
    }
}
