//! Bursts out of the sockets, into buffers that are used again.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::socket::{setsockopt, sockopt};
use taut_base::Locator;
use taut_mem::{Pool, Slot};
use taut_port::{Frame, Receive, Traffic};

use crate::UdpPort;
use crate::group::Group;
use crate::stats::Stats;
use crate::sys::{BURST, Burst, Head, receive_one};

/// Longer than any UDP payload (65,527 bytes over IPv6), so that none is ever cut.
pub(crate) const SLOT: usize = 65_536;

/// How many buffers the pool remembers: those in views not yet dropped, at 64 KiB each. More
/// pins memory after a burst, fewer allocates when the core is slow to let go.
const KEEP: usize = 64;

/// What a first call asks for: two, since a short count is what tells that the queue is empty.
/// Full bursts double it, short ones bring it back: buffers stay few and warm.
const FIRST_BURST: usize = 2;

/// After how many bursts of at most one datagram a socket counts as quiet: it is then read by
/// `recvfrom`, one datagram for each wake-up, which costs 0.4 us less than a burst of one. Lower
/// mistakes the gaps in a stream for quiet, higher is slow to gain.
const QUIET_AFTER: u8 = 8;

/// After how many reads of a quiet socket one burst looks whether it still is. Higher pays one
/// more wait for each datagram at the beginning of a stream, lower gives the gain away.
const QUIET_READS: u8 = 16;

/// So many bytes of a datagram count as one more of the budget: what is packed with samples takes longer than a
/// small one. Lower ends a burst of fragments sooner, at the price of a wait each time; higher has a step take
/// milliseconds.
const WEIGHED: usize = 8 << 10;

/// From how many bytes on the equal datagrams of a full burst count as a stream of fragments. The kernel is then
/// asked to hand over together what has come together (UDP_GRO), which takes a call a little longer. Lower pays
/// that for small samples, which share datagrams anyway; higher misses the fragments of narrow paths.
const FRAGMENTS: usize = 512;

/// What a datagram of so many bytes takes of the budget of [`UdpPort::receive_from`].
#[inline]
pub fn weight(len: usize) -> usize {
    1 + len / WEIGHED
}

/// A socket, and how it has been used of late.
pub(crate) struct Receiving {
    pub(crate) socket: Arc<UdpSocket>,
    pub(crate) traffic: Traffic,
    /// What its frames are: those of a group say so.
    frames: Traffic,
    /// What its last datagram took of the budget.
    weight: usize,
    /// What the next call asks for.
    burst: usize,
    /// Bursts in a row of at most one datagram, and reads since then.
    lone: u8,
    /// The kernel joins datagrams; `None`: it was not asked to.
    joins: Option<bool>,
}

/// The sockets of one kind of traffic, those of unicast and of multicast.
struct TrafficSockets {
    first: usize,
    last: usize,
    /// Which begins at the next call, so that neither starves the other.
    turn: usize,
}

pub(crate) struct Receiver {
    pub(crate) sockets: Vec<Receiving>,
    user: TrafficSockets,
    metatraffic: TrafficSockets,
    pool: Pool,
    /// Buffers for the next burst, the warmest last.
    ready: Vec<Slot>,
    /// One of the sockets joins datagrams.
    pub(crate) joined: Arc<AtomicBool>,
    /// Addresses of the link that have been heard of, and on which link.
    pub(crate) heard: Vec<(Ipv6Addr, u32)>,
}

impl Receiver {
    /// The sockets get the numbers from 0 on, in this order; `groups` are those of `metatraffic`.
    pub(crate) fn new(user: Vec<UdpSocket>, metatraffic: Vec<UdpSocket>, groups: &[Group]) -> Receiver {
        let mut sockets = Vec::new();
        let mut add = |traffic, of_traffic: Vec<UdpSocket>| {
            let first = sockets.len();
            let is_of_group = |index| groups.iter().any(|group| group.socket == index);
            sockets.extend(of_traffic.into_iter().zip(first..).map(|(socket, index)| Receiving {
                frames: if is_of_group(index) { Traffic::MetaMulticast } else { traffic },
                socket: Arc::new(socket),
                traffic,
                weight: 1,
                burst: FIRST_BURST,
                lone: 0,
                joins: None,
            }));
            TrafficSockets { first, last: sockets.len(), turn: first }
        };
        let (user, metatraffic) = (add(Traffic::User, user), add(Traffic::Meta, metatraffic));
        let ready = Vec::with_capacity(BURST);
        let pool = Pool::new(SLOT, KEEP);
        Receiver { sockets, user, metatraffic, pool, ready, joined: Arc::default(), heard: Vec::new() }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = (usize, &UdpSocket, Traffic)> {
        self.sockets.iter().enumerate().map(|(index, of)| (index, &*of.socket, of.traffic))
    }

    /// The socket with this index.
    pub(crate) fn socket(&self, index: usize) -> Option<&Arc<UdpSocket>> {
        self.sockets.get(index).map(|of| &of.socket)
    }

    /// What comes there.
    #[inline]
    pub(crate) fn traffic_of(&self, index: usize) -> Option<Traffic> {
        self.sockets.get(index).map(|of| of.traffic)
    }

    pub(crate) fn buffers_allocated(&self) -> u64 {
        self.pool.allocated()
    }

    /// Buffers for `want` datagrams, the last ones of those ready.
    fn make_ready(&mut self, want: usize) {
        while self.ready.len() < want {
            let slot = self.pool.claim();
            self.ready.push(slot);
        }
    }

    /// Takes the buffers of the largest burst, and their memory.
    pub(crate) fn prefault(&mut self) {
        self.make_ready(BURST);
        // What nobody has written yet is memory that is not there yet.
        self.ready.iter_mut().for_each(|slot| slot.resize(SLOT, u8::MAX));
    }

    /// One burst of one socket, as many as are likely to take no more than `left` of the budget, but one at least.
    /// Returns how many, what is left then, and whether more may wait.
    fn burst(
        &mut self,
        index: usize,
        left: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(&Frame),
    ) -> (usize, usize, bool) {
        let Some(from) = self.sockets.get(index) else { return (0, left, false) };
        let want = from.burst.min((left / from.weight).max(1));
        self.make_ready(want);
        let Some(from) = self.sockets.get_mut(index) else { return (0, left, false) };
        let first = self.ready.len() - want;
        let mut burst = Burst::new();
        let result = burst.receive(from.socket.as_fd(), &mut self.ready[first..], from.joins == Some(true));
        let taken = counted(result, stats).unwrap_or(0);
        from.lone = if taken > 1 { 0 } else { from.lone.saturating_add(1) };
        from.weight = burst.heads().next_back().map_or(1, |head| weight(head.len));
        if taken == BURST && from.joins.is_none() && are_fragments(burst.heads()) {
            // A kernel before 5.0 cannot, and is not asked again.
            let joins = setsockopt(&from.socket, sockopt::UdpGroSegment, &true).is_ok();
            from.joins = Some(joins);
            self.joined.fetch_or(joins, Ordering::Relaxed);
        }
        let full = taken == want;
        if full && want == from.burst {
            from.burst = (from.burst * 2).min(BURST);
        } else if taken < from.burst / 2 {
            from.burst = FIRST_BURST;
        }
        let traffic = from.frames;
        let mut left = left;
        for head in burst.heads() {
            left = left.saturating_sub(weight(head.len));
            if let Some(slot) = self.deliver(traffic, head, stats, sink) {
                self.pool.give_back(slot);
            }
        }
        (taken, left, full)
    }

    /// The datagrams in the last buffer of those ready. Returns it, if nobody keeps some of it.
    #[inline]
    fn deliver(
        &mut self,
        traffic: Traffic,
        head: Head,
        stats: &mut Stats,
        sink: &mut dyn FnMut(&Frame),
    ) -> Option<Slot> {
        let slot = self.ready.pop()?;
        let Head { source, len, each } = head;
        if let SocketAddr::V6(v6) = &source {
            self.note_link(v6);
        }
        stats.bytes_in += len as u64;
        let frame = Frame { source: locator_of(&source), traffic, bytes: slot.lend(len) };
        if len <= each {
            stats.datagrams_in += 1;
            sink(&frame);
        } else {
            deliver_each(&frame, each, stats, sink);
        }
        self.pool.reclaim(frame.bytes)
    }

    /// The only datagram, whose buffer is the next one's, too.
    fn deliver_one(&mut self, traffic: Traffic, head: Head, stats: &mut Stats, sink: &mut dyn FnMut(&Frame)) {
        if let Some(slot) = self.deliver(traffic, head, stats, sink) {
            self.ready.push(slot);
        }
    }

    /// The datagram in a buffer, which another one takes the place of.
    pub(crate) fn deliver_from(
        &mut self,
        index: usize,
        slot: &mut Slot,
        head: Head,
        stats: &mut Stats,
        sink: &mut dyn FnMut(&Frame),
    ) {
        self.make_ready(1);
        let (Some(of), Some(ready)) = (self.sockets.get(index), self.ready.last_mut()) else { return };
        std::mem::swap(slot, ready);
        self.deliver_one(of.frames, head, stats, sink);
    }

    /// One datagram of a quiet socket, or `None` if the socket is not quiet.
    fn read_quiet(&mut self, index: usize, stats: &mut Stats, sink: &mut dyn FnMut(&Frame)) -> Option<usize> {
        let from = self
            .sockets
            .get_mut(index)
            .filter(|from| from.lone >= QUIET_AFTER && from.joins != Some(true))?;
        if from.lone >= QUIET_AFTER + QUIET_READS {
            // The next burst decides: of one datagram, it makes the socket quiet again.
            from.lone = QUIET_AFTER - 1;
            return None;
        }
        from.lone += 1;
        self.make_ready(1);
        let (from, slot) = (self.sockets.get(index)?, self.ready.last_mut()?);
        let traffic = from.frames;
        match counted(receive_one(from.socket.as_fd(), slot), stats) {
            Some(head) => {
                self.deliver_one(traffic, head, stats, sink);
                Some(1)
            }
            None => Some(0),
        }
    }

    /// One datagram of a quiet socket; else bursts until it is empty or the budget is used.
    #[inline(never)]
    fn drain(
        &mut self,
        index: usize,
        budget: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(&Frame),
    ) -> usize {
        if budget > 0
            && let Some(taken) = self.read_quiet(index, stats, sink)
        {
            return taken;
        }
        let (mut total, mut left) = (0, budget);
        while left > 0 {
            let (taken, rest, more) = self.burst(index, left, stats, sink);
            (total, left) = (total + taken, rest);
            if !more {
                break;
            }
        }
        total
    }

    /// Bursts of the sockets of one kind of traffic in turn until all are empty or the budget is used.
    fn drain_traffic(
        &mut self,
        traffic: Traffic,
        budget: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(&Frame),
    ) -> usize {
        let TrafficSockets { first, last, mut turn } = *self.traffic(traffic);
        let (mut total, mut left, mut empty) = (0, budget, 0);
        while left > 0 && empty < last - first {
            let (taken, rest, more) = self.burst(turn, left, stats, sink);
            (total, left) = (total + taken, rest);
            empty = if more { 0 } else { empty + 1 };
            turn = if turn + 1 < last { turn + 1 } else { first };
        }
        self.traffic(traffic).turn = turn;
        total
    }

    fn traffic(&mut self, traffic: Traffic) -> &mut TrafficSockets {
        match traffic {
            Traffic::User => &mut self.user,
            Traffic::Meta | Traffic::MetaMulticast => &mut self.metatraffic,
        }
    }
}

/// Out of line: put together from registers it takes three times as long.
#[inline(never)]
fn locator_of(source: &SocketAddr) -> Locator {
    match source {
        SocketAddr::V4(v4) => Locator::udp_v4(*v4.ip(), v4.port()),
        SocketAddr::V6(_) => (*source).into(),
    }
}

/// The datagrams that the kernel has joined to one.
#[cold]
fn deliver_each(all: &Frame, each: usize, stats: &mut Stats, sink: &mut dyn FnMut(&Frame)) {
    for at in (0..all.bytes.len()).step_by(each) {
        stats.datagrams_in += 1;
        sink(&Frame { bytes: all.bytes.slice(at..at.saturating_add(each)), ..*all });
    }
}

/// Are these datagrams, of a full burst, fragments of large samples that the kernel can join? Of those of more than half a
/// buffer, as loopback has them, no two fit into one; to ask for it would only end the reads of single datagrams, and
/// [`crate::Direct`]'s looks, for good.
#[inline(never)]
fn are_fragments(mut heads: impl Iterator<Item = Head>) -> bool {
    let Some(first) = heads.next().filter(|first| (FRAGMENTS..SLOT / 2).contains(&first.len)) else {
        return false;
    };
    heads.filter(|head| head.len == first.len && head.source == first.source).count() >= BURST - 2
}

/// What a call received. EAGAIN and EINTR are no errors: nothing was there, and a level-triggered
/// wait reports what comes.
fn counted<T>(result: io::Result<T>, stats: &mut Stats) -> Option<T> {
    stats.receive_calls += 1;
    let error = match result {
        Ok(received) => return Some(received),
        Err(error) => error.raw_os_error().unwrap_or(0),
    };
    if !matches!(error, libc::EAGAIN | libc::EINTR) {
        stats.receive_errors.count(error);
    }
    None
}

impl UdpPort {
    /// Takes about `budget` datagrams at most, of which a large one counts as several and what the kernel has joined
    /// by its bytes, of the one socket that [`UdpPort::fds`] gave `index`, for a driver that knows by a
    /// level-triggered wait which is readable. Returns how many. Unlike
    /// with [`Receive::receive`] some may be left: the next wait reports them at once.
    ///
    /// *Cost*: one syscall for a burst; none more to find that it was the last. No allocation once
    /// warm, if the frames are dropped before the port has been around its buffers.
    pub fn receive_from(&mut self, index: usize, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        let taken = self.receiver.drain(index, budget, &mut self.stats, sink);
        self.learn_links();
        taken
    }
}

/// For a driver that polls without knowing what is readable: at least one syscall for each socket
/// of that traffic.
impl Receive for UdpPort {
    fn receive(&mut self, traffic: Traffic, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        let taken = self.receiver.drain_traffic(traffic, budget, &mut self.stats, sink);
        self.learn_links();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_is_asked_to_join() {
        let from = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        let full = |len| vec![Head::one(from(7_411), len); BURST];
        let are_fragments = |heads: Vec<Head>| are_fragments(heads.into_iter());
        assert!(!are_fragments(full(FRAGMENTS - 1)), "small samples");
        assert!(are_fragments(full(FRAGMENTS)) && are_fragments(full(1_472)) && are_fragments(full(8_972)));
        assert!(are_fragments(full(SLOT / 2 - 1)));
        // Over loopback: of the longest datagrams no two fit into one.
        assert!(!are_fragments(full(SLOT / 2)) && !are_fragments(full(65_507)));
        let end = Head::one(from(7_411), 100);
        assert!(
            are_fragments(full(1_472).into_iter().skip(1).chain([end]).collect()),
            "with the end of a sample"
        );
        let mixed = (0..BURST).map(|at| Head::one(from(7_411 + (at % 2) as u16), 1_472)).collect();
        assert!(!are_fragments(mixed), "of several sources");
    }
}
