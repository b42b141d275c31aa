//! Closes what clients have passed that may take long to close, and their connections.
//!
//! The close of a file waits for its file system, which may be the sender's own and never answer; that of a socket of TCP
//! waits for as long as the sender has set; and to close a connection closes what was not received of it. So a thread of
//! each user's does it, one after the other. A user of whom too much waits is not served.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::server::MAX_OF_USER;

/// Closes of one user that may wait. All that a user can have at a time may end at once, and as much again before the
/// thread has come to it; lower refuses such a user, higher lets one hold more of the process's descriptors.
const MOST: usize = 2 * MAX_OF_USER;

#[derive(Default)]
pub(crate) struct Undertaker {
    of_users: BTreeMap<u32, User>,
}

/// One user's thread: it ends with the sender.
struct User {
    queue: Sender<Vec<OwnedFd>>,
    waiting: Arc<AtomicUsize>,
}

impl User {
    fn new() -> User {
        let (queue, passed) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waiting);
        // Without a thread the sender finds nobody, and closes itself after all.
        let _ =
            std::thread::Builder::new().name("netd-close".into()).spawn(move || close_all(&passed, &count));
        User { queue, waiting }
    }
}

fn close_all(passed: &Receiver<Vec<OwnedFd>>, waiting: &AtomicUsize) {
    for fds in passed {
        drop(fds);
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Undertaker {
    /// Closes what a user has passed.
    pub fn close(&mut self, uid: u32, fds: Vec<OwnedFd>) {
        if fds.is_empty() {
            return;
        }
        self.of_users.retain(|of, user| *of == uid || user.waiting.load(Ordering::Relaxed) > 0);
        let user = self.of_users.entry(uid).or_insert_with(User::new);
        user.waiting.fetch_add(1, Ordering::Relaxed);
        if user.queue.send(fds).is_err() {
            self.of_users.remove(&uid);
        }
    }

    /// Does too much of this user wait?
    pub fn is_busy(&self, uid: u32) -> bool {
        self.of_users.get(&uid).is_some_and(|user| user.waiting.load(Ordering::Relaxed) >= MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_forgotten() {
        let mut undertaker = Undertaker::default();
        let (read, write) = std::io::pipe().unwrap();
        for _ in 0..MOST {
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

    #[test]
    fn what_finds_no_thread_is_closed_all_the_same() {
        let mut undertaker = Undertaker::default();
        let (queue, waiting) = (channel().0, Arc::default());
        undertaker.of_users.insert(7, User { queue, waiting });
        let (read, write) = std::io::pipe().unwrap();
        undertaker.close(7, vec![write.into()]);
        assert_eq!(std::io::read_to_string(read).unwrap(), "");
        assert!(undertaker.of_users.is_empty(), "the next finds another thread");
    }
}
