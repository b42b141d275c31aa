//! Waking a process that sleeps: an eventfd, which its owner polls and whoever has something for it rings.
//!
//! Its counter rises by 1 each time; nobody counts on the value, so that it does not matter who reads or
//! how often. A ring does not wait while the descriptor is non-blocking, and every process that shares the
//! descriptor can change that: so only peers that are trusted are rung by it, see [`crate::Message::Ring`].

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::OFlags;
use rustix::io::{Errno, read, write};
use taut_base::Result;

use crate::kernel_file;
use crate::refused::refused;

/// An eventfd, ours or that of a peer.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

/// Why a peer's descriptor is not rung.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAWaker {
    /// It is something else, or there is no /proc to tell.
    NotAnEventfd,
    /// A ring could wait.
    Blocking,
}

impl Waker {
    /// One of our own.
    pub fn new() -> Result<Waker> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Waker { fd: made.map_err(|errno| refused("eventfd", errno))? })
    }

    /// A peer's. *Errors*: writing to it might do anything else than wake.
    pub fn from_fd(fd: OwnedFd) -> std::result::Result<Waker, NotAWaker> {
        let path = format!("/proc/thread-self/fdinfo/{}", fd.as_raw_fd());
        let info = kernel_file::text(&path).unwrap_or_default();
        if !info.lines().any(|line| line.starts_with("eventfd-count:")) {
            return Err(NotAWaker::NotAnEventfd);
        }
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or_default();
        if !OFlags::from_bits_retain(flags).contains(OFlags::NONBLOCK) {
            return Err(NotAWaker::Blocking);
        }
        Ok(Waker { fd })
    }

    /// Wakes whoever polls it, also one that waits for the edge of each ring and never ends the ringing.
    ///
    /// *Cost*: one system call.
    pub fn ring(&self) {
        let ring = || write(&self.fd, &1_u64.to_ne_bytes());
        if ring() == Err(Errno::AGAIN) {
            // The counter is full, which is no edge. Nobody rings so often: a peer has added a number to it.
            self.clear();
            let _ = ring();
        }
    }

    /// Ends the ringing: for its owner, after it woke. Returns whether it rang.
    ///
    /// *Cost*: one system call.
    pub fn clear(&self) -> bool {
        let mut count = [0; 8];
        read(&self.fd, &mut count[..]) != Err(Errno::AGAIN)
    }

    /// Readable while it rings.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Display for NotAWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAWaker::NotAnEventfd => f.write_str("the descriptor is no eventfd"),
            NotAWaker::Blocking => f.write_str("the eventfd is not set to be non-blocking"),
        }
    }
}

impl std::error::Error for NotAWaker {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fcntl_setfl;
    use rustix::io::dup;

    #[test]
    fn it_rings_until_it_is_cleared() {
        let own = Waker::new().unwrap();
        let peers = Waker::from_fd(dup(own.fd()).unwrap()).unwrap();
        assert!(!own.clear());
        peers.ring();
        peers.ring();
        assert!(own.clear() && !own.clear());
    }

    #[test]
    fn a_full_counter_does_not_hold_up() {
        let own = Waker::new().unwrap();
        write(&own.fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        assert_eq!(write(&own.fd, &1_u64.to_ne_bytes()), Err(Errno::AGAIN));
        own.ring();
        let mut count = [0; 8];
        read(&own.fd, &mut count[..]).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1, "it was written, which is an edge for who waits for one");
    }

    #[test]
    fn anything_else_is_refused() {
        let (reading, writing) = std::io::pipe().unwrap();
        drop(reading);
        assert_eq!(Waker::from_fd(writing.into()).err(), Some(NotAWaker::NotAnEventfd));
        let own = Waker::new().unwrap();
        fcntl_setfl(&own.fd, OFlags::empty()).unwrap();
        assert_eq!(Waker::from_fd(own.fd).err(), Some(NotAWaker::Blocking));
    }
}
