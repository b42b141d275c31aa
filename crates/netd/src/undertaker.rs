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
        let count = Arc::clone(self.busy.entry(uid).or_default());
        count.fetch_add(1, Ordering::Relaxed);
        let run = move || {
            drop(fds);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        // Without a thread they are closed here after all; the count stays, and the user is served less.
        let _ = std::thread::Builder::new().name("netd-close".into()).spawn(run);
    }

    /// Does this user keep too many waiting?
    pub fn is_busy(&self, uid: u32) -> bool {
        self.busy.get(&uid).is_some_and(|count| count.load(Ordering::Relaxed) >= AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
