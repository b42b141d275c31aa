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

/// Descriptors of one user that may wait to be closed; a message can bring 253. All the connections that a user can have at
/// a time may end at once, and as many again before the thread has come to them; lower refuses such a user, higher lets
/// one hold more of the process's descriptors.
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
    for fd in passed.iter().flatten() {
        drop(fd);
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
        user.waiting.fetch_add(fds.len(), Ordering::Relaxed);
        if user.queue.send(fds).is_err() {
            self.of_users.remove(&uid);
        }
    }

    /// May this user pass more?
    ///
    /// *Errors*: one sentence: too much of it waits.
    pub fn is_free(&self, uid: u32) -> Result<(), String> {
        let waiting = self.of_users.get(&uid).map_or(0, |user| user.waiting.load(Ordering::Relaxed));
        if waiting < MOST {
            return Ok(());
        }
        Err("descriptors that were passed are still being closed: pass none but sockets".into())
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
        assert!(undertaker.is_free(8).is_ok());
        // The end of the pipe comes when the last of them is closed.
        assert_eq!(std::io::read_to_string(read).unwrap(), "");
        while undertaker.is_free(7).is_err() {
            std::thread::yield_now();
        }
    }

    /// One message can bring more of them than all connections of a user are.
    #[test]
    fn descriptors_are_counted_and_not_messages() {
        let mut undertaker = Undertaker::default();
        let (queue, passed) = channel();
        undertaker.of_users.insert(7, User { queue, waiting: Arc::default() });
        let one = std::io::pipe().unwrap().1;
        let many = |count| (0..count).map(|_| one.try_clone().unwrap().into()).collect();
        undertaker.close(7, many(MOST - 1));
        assert!(undertaker.is_free(7).is_ok());
        undertaker.close(7, many(1));
        assert!(undertaker.is_free(7).is_err());
        let waiting = Arc::clone(&undertaker.of_users[&7].waiting);
        drop(undertaker);
        close_all(&passed, &waiting);
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
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
