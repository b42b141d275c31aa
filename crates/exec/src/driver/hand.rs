//! What a driver looks at itself, without the token, and what it has in hand of it: a socket or queues, always while it
//! polls, and before it sleeps; or the queue of a device that nobody can sleep on.
//!
//! A look at a socket that is a receive call saves the call that tells of the datagram first. Other sockets are found by
//! the kernel, once in a while as long as nothing for samples comes there, and at each look if something does.

use taut_base::{Duration, Time};
use taut_port::{Frame, Traffic};
#[cfg(feature = "dpdk")]
use taut_port_dpdk::Incoming;
use taut_port_udp::Direct;
use taut_port_xdp::Glance;

use crate::driver::watch::Readable;
use crate::net::ports::{HAND, Ports, QUEUES};

/// For how long the kernel is asked at each look after samples have come by another socket. Lower has the first sample
/// after a pause there wait for up to 50 us more often, higher asks for longer when none comes any more.
const ASKS: Duration = Duration::from_millis(10);

/// What is looked at.
pub(crate) enum Hand {
    Socket(Socket),
    /// The queues of AF_XDP; none while its interface is lost.
    Queues(Vec<Glance>, Turns),
    #[cfg(feature = "dpdk")]
    Device(Box<Incoming>),
}

impl Hand {
    /// The device's or the queues', or a socket's where no frames come past the kernel.
    pub fn open(port: &mut Ports) -> Option<Hand> {
        #[cfg(feature = "dpdk")]
        if let Some(incoming) = port.frames.as_mut().and_then(|frames| frames.incoming()) {
            return Some(Hand::Device(Box::new(incoming)));
        }
        if let Some(frames) = &port.frames {
            return Some(Hand::Queues(frames.looks(), Turns::default()));
        }
        let users = port.udp.fds().filter(|of| of.traffic == Traffic::User).count() as u64;
        let direct = port.udp.direct()?;
        Some(Hand::Socket(Socket { direct, users, finds: 0, asks_until: Time(i64::MIN) }))
    }

    /// Can nobody sleep until something comes?
    pub fn is_sleepless(&self) -> bool {
        match self {
            Hand::Socket(_) | Hand::Queues(..) => false,
            #[cfg(feature = "dpdk")]
            Hand::Device(_) => true,
        }
    }

    /// Are queues of AF_XDP looked at? Their senders pay for each frame that the kernel notes; those of a socket's datagrams do
    /// for each row of them, and who looks there before it sleeps leaves the kernel to watch it.
    pub const fn has_queues(&self) -> bool {
        matches!(self, Hand::Queues(..))
    }

    /// How many looks who is about to sleep makes here from one question to the kernel to the next, some microsecond: a queue
    /// tells in tens of ns, a socket in a quarter of a microsecond. Lower makes more system calls, higher is late to what comes
    /// by other sockets, by timers and from other threads.
    pub const fn looks(&self) -> u32 {
        match self {
            Hand::Socket(_) => 4,
            Hand::Queues(..) => 16,
            #[cfg(feature = "dpdk")]
            Hand::Device(_) => 16,
        }
    }

    /// Looks at these queues from now on. The others are to be free: whoever looks at one keeps it.
    pub fn look_at(&mut self, queues: Vec<Glance>) {
        if let Hand::Queues(looks, _) = self {
            *looks = queues;
        }
    }

    /// Looks, and adds what is to be received then. `false` if the kernel is to be asked instead.
    ///
    /// *Cost*: a system call for a socket; two loads for each queue; for a device a look of its driver's.
    #[inline]
    pub fn look(&mut self, now: Time, ready: &mut Readable) -> bool {
        match self {
            Hand::Socket(socket) => socket.look(now, ready),
            Hand::Queues(looks, turns) => {
                let is_any = |at: usize| looks.get(at).is_some_and(Glance::is_any);
                turns.find(looks.len(), is_any, |at| ready.push((QUEUES + at) as u64));
                !looks.is_empty()
            }
            #[cfg(feature = "dpdk")]
            Hand::Device(incoming) => {
                if incoming.look() {
                    ready.push(HAND as u64);
                }
                true
            }
        }
    }

    /// The kernel has found these.
    pub fn note_found(&mut self, clock: impl FnOnce() -> Time, ready: &Readable) {
        match self {
            Hand::Socket(socket) => socket.note_found(clock, ready),
            Hand::Queues(..) => {}
            #[cfg(feature = "dpdk")]
            Hand::Device(_) => {}
        }
    }

    /// Hands over what it has, of a device and more within the budget. Returns how many datagrams.
    #[cfg_attr(not(feature = "dpdk"), expect(unused_variables, reason = "a socket has one in hand"))]
    pub fn give(&mut self, port: &mut Ports, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        match self {
            Hand::Socket(socket) => port.udp.receive_direct(&mut socket.direct, sink),
            // Nothing is in hand: they are sources of the port.
            Hand::Queues(..) => 0,
            #[cfg(feature = "dpdk")]
            Hand::Device(incoming) => {
                port.frames.as_mut().map_or(0, |frames| frames.receive(incoming, budget, sink))
            }
        }
    }
}

/// Queues that one look finds beside the last one, which is for what must not wait. Lower takes more rounds where many are busy,
/// higher leaves too few of the places of a look for sockets.
const AT_ONCE: usize = 4;

/// Whose turn it is among queues, so that no number of busy ones keeps out another.
#[derive(Default)]
pub(crate) struct Turns {
    next: usize,
}

impl Turns {
    /// Finds those of so many queues that have something: the last one first, then some of the others by turns.
    #[inline]
    fn find(&mut self, count: usize, is_any: impl Fn(usize) -> bool, mut found: impl FnMut(usize)) {
        let Some(last) = count.checked_sub(1) else { return };
        if is_any(last) {
            found(last);
        }
        let mut left = AT_ONCE;
        let first = if self.next < last { self.next } else { 0 };
        for at in (first..last).chain(0..first).filter(|at| is_any(*at)) {
            if left == 0 {
                self.next = at;
                return;
            }
            found(at);
            left -= 1;
        }
    }
}

/// The socket, and how it goes with it.
pub(crate) struct Socket {
    direct: Direct,
    /// The sockets of samples have smaller numbers than this.
    users: u64,
    /// Looks in a row that have found something.
    finds: u32,
    /// Until then the kernel is asked.
    asks_until: Time,
}

impl Socket {
    fn look(&mut self, now: Time, ready: &mut Readable) -> bool {
        let is_in_hand = self.direct.has_found();
        if !is_in_hand && (now < self.asks_until || !self.direct.may_look()) {
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

    fn note_found(&mut self, clock: impl FnOnce() -> Time, ready: &Readable) {
        let is_other = |source: u64| source < self.users && source != Direct::SOURCE as u64;
        if ready.iter().any(is_other) {
            self.asks_until = clock() + ASKS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_busy_queues_keeps_out_another() {
        for (count, busy) in [(1, 1), (5, 5), (10, 10), (16, 9), (16, 16)] {
            let (mut turns, mut had) = (Turns::default(), vec![0; count]);
            const LOOKS: usize = 60;
            for _ in 0..LOOKS {
                let mut ready = Readable::default();
                turns.find(count, |at| at >= count - busy, |at| ready.push((QUEUES + at) as u64));
                assert_eq!(ready.sources()[0], (QUEUES + count - 1) as u64, "the last one first");
                assert!(ready.sources().len() <= AT_ONCE + 1);
                ready.iter().for_each(|source| had[source as usize - QUEUES] += 1);
            }
            let turns = LOOKS * AT_ONCE.min(busy - 1) / (busy - 1).max(1);
            let (last, others) = had.split_last().unwrap();
            assert_eq!(*last, LOOKS);
            let others = &others[count - busy..];
            assert!(others.iter().all(|had| had.abs_diff(turns) <= 1), "{count}, {busy}: {others:?}");
        }
    }
}
