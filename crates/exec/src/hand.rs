//! The socket that a driver looks at itself while it polls, and what it has in hand of it.
//!
//! A look that is a receive call saves the call that tells of the datagram first. Other sockets are found by the kernel,
//! once in a while as long as nothing for samples comes there, and at each look if something does.

use taut_base::{Duration, Time};
use taut_port::{Frame, Traffic};
use taut_port_udp::{Direct, UdpPort};

use crate::config::Driver;
use crate::ports::{HAND, Ports};
use crate::watch::Readable;

/// For how long the kernel is asked at each look after samples have come by another socket. Lower has the first sample
/// after a pause there wait for up to 50 us more often, higher asks for longer when none comes any more.
const ASKS: Duration = Duration::from_millis(10);

/// The socket, and how it goes with it.
pub(crate) struct Hand {
    direct: Direct,
    /// The sockets of samples have smaller numbers than this.
    users: u64,
    /// Looks in a row that have found something.
    finds: u32,
    /// Until then the kernel is asked.
    asks_until: Time,
}

impl Hand {
    /// For drivers that poll where no frames come past the kernel.
    pub fn open(driver: Driver, port: &mut Ports) -> Option<Hand> {
        if driver == Driver::Threaded || port.frames.is_some() {
            return None;
        }
        let users = port.udp.fds().filter(|of| of.traffic == Traffic::User).count() as u64;
        let direct = port.udp.direct()?;
        Some(Hand { direct, users, finds: 0, asks_until: Time(i64::MIN) })
    }

    /// Looks, and adds what is to be received then. `false` if the kernel is to be asked instead.
    ///
    /// *Cost*: a system call.
    #[inline]
    pub fn look(&mut self, now: Time, ready: &mut Readable) -> bool {
        if now < self.asks_until || !self.direct.may_look() {
            return false;
        }
        if !self.direct.look() {
            self.finds = 0;
            return true;
        }
        ready.push(HAND as u64);
        self.finds += 1;
        if self.finds > 1 {
            // They come faster than they are looked for: what is behind the one in hand is taken with it.
            ready.push(Direct::SOURCE as u64);
        }
        true
    }

    /// The kernel has found these.
    pub fn note_found(&mut self, now: Time, ready: &Readable) {
        let is_other = |source: u64| source < self.users && source != Direct::SOURCE as u64;
        if ready.iter().any(is_other) {
            self.asks_until = now + ASKS;
        }
    }

    /// Hands over what it has. Returns how many datagrams.
    pub fn give(&mut self, port: &mut UdpPort, sink: &mut dyn FnMut(Frame)) -> usize {
        port.receive_direct(&mut self.direct, sink)
    }
}
