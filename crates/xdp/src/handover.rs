//! A socket that one process sets up and another one uses, so that only the first needs privileges.
//!
//! Owns the socket and the memfd of its frames until both are passed on. What is mapped to register the frames is
//! unmapped at once: the kernel holds their pages, and this process looks at none of them. Rings are sized and never
//! mapped here. Nothing waits: a queue whose last owner has just gone is tried again by the caller.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::socket::{Binding, bind_to, set_up};
use crate::{BindMode, Error, Interface, Link, Rings, Umem};

/// A socket for another process.
pub struct Handover {
    fd: OwnedFd,
    frames: OwnedFd,
    interface: Interface,
    queue: u32,
    binding: Binding,
}

impl Handover {
    /// A socket with these frames, for a queue of the link's interface as that is now: its MTU may have changed since
    /// the link was made.
    ///
    /// *Errors*: those of [`crate::Socket::open`] but for what the queue is asked for. *Cost*: some ten system calls;
    /// the kernel clears all frames.
    pub fn new(
        link: &Link,
        interface: &Interface,
        queue: u32,
        umem: Umem,
        rings: &Rings,
        wanted: Option<BindMode>,
    ) -> Result<Handover, Error> {
        let fd = set_up(interface, &umem, rings)?;
        let binding = Binding::new(link, interface, umem.chunk_size(), wanted);
        Ok(Handover { fd, frames: umem.into_fd(), interface: interface.clone(), queue, binding })
    }

    /// Binds it, and adds it to the link that it was made for.
    ///
    /// *Errors*: [`Error::QueueTaken`]: it may be free some 40 ms after its owner has gone, try again. Those of
    /// [`crate::Socket::open`]. *Cost*: up to five system calls.
    pub fn bind(&self, link: &Link) -> Result<(), Error> {
        bind_to(&self.fd, &self.interface, self.queue, &self.binding, 1)?;
        link.add_bound(self.fd.as_fd(), &self.interface, self.queue)
    }

    /// The number of its queue.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// The socket and the frames, to be passed in this order.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.fd.as_fd(), self.frames.as_fd()]
    }
}
