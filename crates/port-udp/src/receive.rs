//! Bursts out of the sockets, into buffers that are used again.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use taut_base::Locator;
use taut_mem::{Pool, Slot};
use taut_port::{Frame, Lane, Receive};

use crate::UdpPort;
use crate::stats::Stats;
use crate::sys::{self, BURST, Head};

/// Longer than any UDP payload over IPv4 (65,507 bytes), so that none is ever cut.
const SLOT: usize = 65_536;

/// How many buffers the pool remembers: those in views not yet dropped, at 64 KiB each. More
/// pins memory after a burst, fewer allocates when the core is slow to let go.
const KEEP: usize = 64;

/// What a first call asks for: two, since a short count is what tells that the queue is empty.
/// Full bursts double it, short ones bring it back: buffers stay few and warm.
const FIRST_BURST: usize = 2;

/// The sockets of one lane, those of unicast and of multicast.
struct LaneSockets {
    first: usize,
    last: usize,
    /// Which begins at the next call, so that neither starves the other.
    turn: usize,
}

pub(crate) struct Receiver {
    sockets: Vec<(UdpSocket, Lane)>,
    user: LaneSockets,
    metatraffic: LaneSockets,
    pool: Pool,
    /// Buffers for the next burst, the warmest last.
    ready: Vec<Slot>,
    burst: usize,
}

impl Receiver {
    pub(crate) fn new(user: [Option<UdpSocket>; 2], metatraffic: [Option<UdpSocket>; 2]) -> Receiver {
        let mut sockets = Vec::new();
        let mut add = |lane, of_lane: [Option<UdpSocket>; 2]| {
            let first = sockets.len();
            sockets.extend(of_lane.into_iter().flatten().map(|socket| (socket, lane)));
            LaneSockets { first, last: sockets.len(), turn: first }
        };
        let (user, metatraffic) = (add(Lane::User, user), add(Lane::Meta, metatraffic));
        let ready = Vec::with_capacity(BURST);
        Receiver { sockets, user, metatraffic, pool: Pool::new(SLOT, KEEP), ready, burst: FIRST_BURST }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = (usize, &UdpSocket, Lane)> {
        self.sockets.iter().enumerate().map(|(index, (socket, lane))| (index, socket, *lane))
    }

    pub(crate) fn buffers_allocated(&self) -> u64 {
        self.pool.allocated()
    }

    /// One burst of one socket, at most `limit`. Returns how many and whether more may wait.
    fn burst(
        &mut self,
        index: usize,
        limit: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(Frame),
    ) -> (usize, bool) {
        let Some((socket, lane)) = self.sockets.get(index) else { return (0, false) };
        let want = self.burst.min(limit);
        while self.ready.len() < want {
            let mut slot = self.pool.claim();
            if slot.len() < SLOT {
                *slot = vec![0; SLOT];
            }
            self.ready.push(slot);
        }
        let unused = self.ready.len() - want;
        let mut heads = [Head::NONE; BURST];
        let taken = match sys::receive_burst(socket.as_fd(), &mut self.ready[unused..], &mut heads) {
            Ok(taken) => taken,
            Err(error) => {
                // EAGAIN and EINTR: nothing was there; a level-triggered wait reports what comes.
                if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) {
                    stats.receive_errors.count(error.raw_os_error().unwrap_or(0));
                }
                0
            }
        };
        for head in heads.iter().take(taken) {
            let Some(slot) = self.ready.pop() else { break };
            stats.datagrams_in += 1;
            stats.bytes_in += head.len as u64;
            let source = Locator::udp_v4(*head.source.ip(), head.source.port());
            sink(Frame { source, lane: *lane, bytes: self.pool.share_prefix(slot, head.len) });
        }
        let full = taken == want;
        if full && want == self.burst {
            self.burst = (self.burst * 2).min(BURST);
        } else if taken < self.burst / 2 {
            self.burst = FIRST_BURST;
        }
        (taken, full)
    }

    /// Bursts of one socket until it is empty or the budget is used.
    fn drain(
        &mut self,
        index: usize,
        budget: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(Frame),
    ) -> usize {
        let mut total = 0;
        while total < budget {
            let (taken, more) = self.burst(index, budget - total, stats, sink);
            total += taken;
            if !more {
                break;
            }
        }
        total
    }

    /// Bursts of the sockets of a lane in turn until all are empty or the budget is used.
    fn drain_lane(
        &mut self,
        lane: Lane,
        budget: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(Frame),
    ) -> usize {
        let LaneSockets { first, last, mut turn } = *self.lane(lane);
        let (mut total, mut empty) = (0, 0);
        while total < budget && empty < last - first {
            let (taken, more) = self.burst(turn, budget - total, stats, sink);
            total += taken;
            empty = if more { 0 } else { empty + 1 };
            turn = if turn + 1 < last { turn + 1 } else { first };
        }
        self.lane(lane).turn = turn;
        total
    }

    fn lane(&mut self, lane: Lane) -> &mut LaneSockets {
        match lane {
            Lane::User => &mut self.user,
            Lane::Meta => &mut self.metatraffic,
        }
    }
}

impl UdpPort {
    /// As [`Receive::receive`], of the one socket that [`UdpPort::fds`] gave `index`: for a driver
    /// that knows which is readable.
    ///
    /// *Cost*: one syscall for a burst; none more to find that it was the last. No allocation once
    /// warm, if the frames are dropped before the port has been around its buffers.
    pub fn receive_from(&mut self, index: usize, budget: usize, sink: &mut dyn FnMut(Frame)) -> usize {
        self.receiver.drain(index, budget, &mut self.stats, sink)
    }
}

/// For a driver that polls without knowing what is readable: at least one syscall for each socket
/// of the lane.
impl Receive for UdpPort {
    fn receive(&mut self, lane: Lane, budget: usize, sink: &mut dyn FnMut(Frame)) -> usize {
        self.receiver.drain_lane(lane, budget, &mut self.stats, sink)
    }
}
