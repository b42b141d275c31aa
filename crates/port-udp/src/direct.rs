//! One socket read without the port, by a driver that looks.
//!
//! Owns one buffer, so that a look needs nothing that others use. A look that finds a datagram has it already: a wait
//! that tells of it first is a system call more on the way of each sample.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use taut_mem::{Pool, Slot};
use taut_port::Frame;

use crate::UdpPort;
use crate::sys::{Head, receive_one};

/// Looks at one socket; see [`UdpPort::direct`].
pub struct Direct {
    socket: Arc<UdpSocket>,
    slot: Slot,
    found: Option<Head>,
    /// The kernel joins datagrams, and only a burst tells where one ends.
    joined: Arc<AtomicBool>,
}

impl Direct {
    /// The index of its socket among [`UdpPort::fds`]: that of the samples that are sent to this participant alone, over
    /// IPv4: of critical ones where they have a port, and else of all, which are most of what there is.
    pub const SOURCE: usize = 0;

    /// May it look? No longer when the socket has had a stream of fragments.
    pub fn may_look(&self) -> bool {
        !self.joined.load(Ordering::Relaxed)
    }

    /// Is one in hand?
    pub fn has_found(&self) -> bool {
        self.found.is_some()
    }

    /// Is a datagram there? The first that is stays in hand until [`UdpPort::receive_direct`] takes it.
    ///
    /// *Cost*: a system call, which returns at once; none if one is in hand.
    #[inline]
    pub fn look(&mut self) -> bool {
        if self.found.is_none() {
            // What fails here fails for the port, too, which counts it.
            self.found = receive_one(self.socket.as_fd(), &mut self.slot).ok();
        }
        self.found.is_some()
    }
}

impl UdpPort {
    /// What looks at the socket with the index [`Direct::SOURCE`].
    ///
    /// *Cost*: from its first look on a buffer of 64 KiB. `None`: there is no such socket.
    pub fn direct(&mut self) -> Option<Direct> {
        let socket = Arc::clone(self.receiver.socket(Direct::SOURCE)?);
        let joined = Arc::clone(&self.receiver.joined);
        Some(Direct { socket, slot: Pool::new(0, 0).claim(), found: None, joined })
    }

    /// Takes what `direct` has in hand. Returns how many datagrams.
    ///
    /// *Cost*: no system call.
    pub fn receive_direct(&mut self, direct: &mut Direct, sink: &mut dyn FnMut(&Frame)) -> usize {
        let Some(head) = direct.found.take() else { return 0 };
        self.stats.receive_calls += 1;
        self.receiver.deliver_from(Direct::SOURCE, &mut direct.slot, head, &mut self.stats, sink);
        1
    }
}
