//! One queue of the interface: its socket, and the account of its frames.
//!
//! Owns which frame is whose. Some chunks are the queue's for ever, to copy datagrams into, and each is kept or on its way
//! out (TX and completion ring). Each of the others is either free, or on its way in (fill and RX ring), or taken out of the
//! RX ring and waits for its turn in the fill ring, or it has payloads that somebody looks at ([`Chunks`]). One of the last may
//! be on its way out at the same time: the queue is one of its holders then.
//!
//! **Around payloads** only this queue writes, in the hands of the token's holder ([`Outbound`]).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use taut_ethernet::{Carrier, LENT, Outgoing, Put};
use taut_mem::{Chunks, Outbound};
use taut_port::Frame;
use taut_xdp::{
    BindMode, ChunkSize, Descriptor, Error, GOES_ON, Interface, Link, MAX_PIECES, Rings, Socket, Statistics,
    Umem,
};

use crate::kept::Kept;
use crate::netd::Granted;
use crate::pieces::{Piece, Pieces};
use crate::supply::Supply;

/// Frames to send that wait for the kernel. It takes them within the call that wakes it where it copies them; more
/// costs memory, fewer make more calls of a burst.
const TX: u32 = 1_024;

/// How often the kernel is woken in a row where it copies: it takes 32 frames with each call. What it does not take then
/// it is woken for with the next frames, or a little later. Higher holds up what else there is to do, lower leaves frames of
/// a burst waiting.
const KICKS: u32 = 2 * TX / 32;

/// Is the kernel to be woken to send, after it was so many times in a row?
///
/// Where it copies it sends within the call, some frames with each, and always wants to be woken. Where the driver reads
/// the frames the call only has it begin, and another processor may go on: it tells by itself when it has come to an
/// end and wants the next call, which then is that of the next frames. More calls in a row would find it at work.
fn is_to_be_woken(bound: BindMode, needs_wakeup: bool, pending: u32, woken: u32) -> bool {
    let at_most = match bound {
        BindMode::ZeroCopy => 1,
        BindMode::Copy => KICKS,
    };
    needs_wakeup && pending > 0 && woken < at_most
}

/// Are frames left that the kernel takes with another call only, once it may?
///
/// A driver that reads the frames itself goes on with those of the last call without another. It does not with those of a
/// call that it, or the kernel before it, has refused: the interface is down, or others are at its queue.
fn is_left(bound: BindMode, waits: bool, refused: bool) -> bool {
    waits && (bound == BindMode::Copy || refused)
}

/// How a queue is laid out in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The entries of its rings.
    pub rings: Rings,
    /// How many frames it has.
    pub chunks: u32,
    /// How large each is.
    pub chunk_size: ChunkSize,
    /// How many the longest frame lies in: one, or up to [`taut_xdp::MAX_PIECES`].
    pub pieces: u32,
}

impl Layout {
    /// For an interface with this MTU.
    pub fn of(mtu: u32) -> Layout {
        let rings = Rings { tx: TX, completion: TX, ..Rings::default() };
        let smallest = ChunkSize::B2048;
        let chunk_size = if mtu <= smallest.largest_mtu() { smallest } else { ChunkSize::B4096 };
        let pieces = chunk_size.pieces(mtu).clamp(1, MAX_PIECES);
        Layout { rings, chunks: rings.fill + kept_to_send(&rings) + LENT, chunk_size, pieces }
    }
}

/// Frames to copy datagrams into. Those of TX that the kernel has taken out of the ring are not all back yet.
fn kept_to_send(rings: &Rings) -> u32 {
    2 * rings.tx
}

/// What a queue has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueCounts {
    /// Its number.
    pub queue: u32,
    /// Frames that it has received.
    pub frames_in: u64,
    /// Frames that were put into it to be sent.
    pub frames_out: u64,
}

pub(crate) struct Queue {
    socket: Socket,
    umem: Arc<Umem>,
    chunks: Arc<Chunks>,
    /// The payloads that are on their way out.
    outbound: Outbound,
    /// Chunks to copy datagrams into.
    kept: Kept,
    /// The frame that has come in part.
    pieces: Pieces,
    /// Chunks to receive into that the kernel does not have: the fill ring has no room for them, or they are left out. The
    /// one that came last is the first to go.
    idle: Vec<u32>,
    supply: Supply,
    /// Were frames put that the kernel was not woken for?
    waits: bool,
    /// Was the last call that woke it refused?
    refused: bool,
    /// Calls that woke the kernel.
    kicks: u64,
    counts: QueueCounts,
}

impl Queue {
    /// Takes the queue, with frames to receive into, each with `headroom` in front. For one that is taken it waits, if that
    /// is wanted.
    pub(crate) fn open(
        link: &Link,
        number: u32,
        bind: Option<BindMode>,
        headroom: u32,
        waits: bool,
    ) -> Result<Queue, Error> {
        let layout = Layout::of(link.interface().mtu);
        let Layout { rings, chunks, chunk_size, .. } = layout;
        let umem = Arc::new(Umem::create(chunks, chunk_size)?.with_headroom(headroom));
        let queue = Queue::with(Socket::open(link, number, umem, &rings, bind, waits)?, &layout);
        link.add(&queue.socket)?;
        Ok(queue)
    }

    /// Takes one over that `taut netd` has opened.
    pub(crate) fn adopt(
        granted: Granted,
        socket: OwnedFd,
        frames: OwnedFd,
        of: &Interface,
    ) -> Result<Queue, Error> {
        let Granted { queue, layout } = granted;
        let Layout { rings, chunks, chunk_size, .. } = layout;
        let umem = Arc::new(Umem::adopt(frames, chunks, chunk_size)?);
        Ok(Queue::with(Socket::adopt(socket, queue, of, umem, &rings)?, &layout))
    }

    /// With frames to receive into.
    fn with(socket: Socket, layout: &Layout) -> Queue {
        let umem = Arc::clone(socket.umem());
        let (size, count) = (umem.chunk_size().bytes() as usize, umem.chunks());
        // SAFETY: the memory is there for as long as the UMEM, which is kept. This queue accesses a chunk as its holder
        // only: one that is in a ring or was taken out of it and not let go.
        let chunks = unsafe { Chunks::new(umem.base(), size, count, Box::new(Arc::clone(&umem))) };
        let kept = Kept::new(&chunks, kept_to_send(&layout.rings), layout.pieces);
        let idle = (0..socket.fill.size()).filter_map(|_| chunks.take()).collect();
        let pieces = Pieces::new(size * layout.pieces as usize);
        let chunks = Arc::new(chunks);
        // SAFETY: it is the only one, and this queue writes around payloads by it alone.
        let outbound = unsafe { Outbound::new(Arc::clone(&chunks)) };
        let counts = QueueCounts { queue: socket.queue(), ..QueueCounts::default() };
        let supply = Supply::new(socket.bound(), socket.fill.size());
        let (waits, refused, kicks) = (false, false, 0);
        let mut queue = Queue {
            socket,
            umem,
            chunks,
            outbound,
            kept,
            pieces,
            idle,
            supply,
            waits,
            refused,
            kicks,
            counts,
        };
        queue.refill();
        queue
    }

    /// The chunks of its frames.
    pub(crate) fn chunks(&self) -> &Arc<Chunks> {
        &self.chunks
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    pub(crate) fn bound(&self) -> BindMode {
        self.socket.bound()
    }

    pub(crate) fn number(&self) -> u32 {
        self.socket.queue()
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        self.counts
    }

    /// Frames that were dropped before they could be taken. *Cost*: one system call.
    pub(crate) fn overflow(&self) -> u64 {
        let Statistics { rx_dropped, rx_ring_full, fill_ring_empty, .. } =
            self.socket.statistics().unwrap_or_default();
        let without_frame = match self.bound() {
            BindMode::Copy => rx_dropped,
            // What the device drops then it does not tell: this is how often it wanted a frame.
            BindMode::ZeroCopy => fill_ring_empty,
        };
        rx_ring_full + without_frame
    }

    /// How long a frame may be.
    pub(crate) fn room(&self) -> usize {
        self.umem.chunk_size().bytes() as usize * self.kept.pieces() as usize
    }

    /// Puts a datagram: around its payload, if that lies in a chunk, else as a copy.
    pub(crate) fn put(&mut self, datagram: &Outgoing<'_>) -> Result<Put, Error> {
        let pieces = self.kept.pieces();
        if self.socket.tx.reserve(pieces).room() < pieces || self.kept.is_empty() {
            self.kick()?;
        }
        if self.socket.tx.reserve(pieces).room() < pieces {
            return Ok(Put::Full);
        }
        let lent = datagram.wrap(&self.chunks);
        let is_lent = lent.is_some();
        let header = |whole: &[u8], place: &mut [u8]| datagram.write_header(whole, place);
        let around = lent.and_then(|lent| self.outbound.wrap(lent, header)).map(|(number, range)| {
            let address = u64::from(number) * u64::from(self.umem.chunk_size().bytes());
            Descriptor { address: address + range.start as u64, len: range.len() as u32, options: 0 }
        });
        let Some(mut rest) = around.or_else(|| self.copy(datagram)) else { return Ok(Put::Full) };
        let size = self.umem.chunk_size().bytes();
        let mut tx = self.socket.tx.reserve(pieces);
        while rest.len > size {
            tx.put(Descriptor { len: size, options: GOES_ON, ..rest });
            rest = Descriptor { address: rest.address + u64::from(size), len: rest.len - size, ..rest };
        }
        let put = tx.put(rest);
        debug_assert!(put, "there is room");
        tx.submit();
        self.waits = true;
        self.counts.frames_out += 1;
        Ok(Put::sent(is_lent, around.is_some()))
    }

    /// Copies a datagram into a chunk, or into several that lie one behind the other.
    fn copy(&mut self, datagram: &Outgoing<'_>) -> Option<Descriptor> {
        let (umem, pieces, size) = (&self.umem, self.kept.pieces(), self.umem.chunk_size().bytes());
        self.kept.write(|number| {
            let address = u64::from(number) * u64::from(size);
            // SAFETY: the queue is the lone holder of each of the chunks, and none is on its way out.
            let frame = unsafe { umem.chunks_mut(address, pieces) }?;
            let len = u32::try_from(datagram.write(frame)?).ok()?;
            Some((Descriptor { address, len, options: 0 }, len.div_ceil(size)))
        })
    }

    /// Has the kernel send what was put, and takes back what it has sent.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.waits { self.kick() } else { Ok(()) }
    }

    /// Are there frames that the kernel takes with another call only, once it may?
    pub(crate) fn is_left(&self) -> bool {
        is_left(self.bound(), self.waits, self.refused)
    }

    /// How often the kernel was woken: each is a system call.
    pub(crate) fn kicks(&self) -> u64 {
        self.kicks
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.reclaim();
        let bound = self.bound();
        let mut woken = 0;
        let mut pending = self.socket.tx.pending();
        while is_to_be_woken(bound, self.socket.tx.needs_wakeup(), pending, woken) {
            self.kicks += 1;
            let kicked = self.socket.kick();
            self.refused = !matches!(kicked, Ok(true));
            kicked?;
            woken += 1;
            self.reclaim();
            let before = std::mem::replace(&mut pending, self.socket.tx.pending());
            if pending == before {
                // What it has sent is still on its way, and it takes no more before that is through.
                break;
            }
        }
        // A driver at work takes them without a call; should it have come to its end just before, the next flush sees.
        self.waits = self.socket.tx.pending() > 0;
        Ok(())
    }

    fn reclaim(&mut self) {
        let size = u64::from(self.umem.chunk_size().bytes());
        let mut sent = self.socket.completion.peek(u32::MAX);
        for address in sent.by_ref() {
            let number = (address / size) as u32;
            // SAFETY: the kernel gives each back once.
            if !unsafe { self.outbound.is_back(number) } {
                // It was copied into.
                self.kept.is_back(number);
            }
        }
        sent.release();
    }

    /// Takes at most `budget` chunks that frames have come in. What `carrier` makes of them goes to `sink`: views of them, as
    /// long as there is another chunk to receive into for each, and copies of those that lie in several.
    pub(crate) fn receive(
        &mut self,
        budget: usize,
        carrier: &mut Carrier,
        sink: &mut dyn FnMut(&Frame),
    ) -> usize {
        let size = u64::from(self.umem.chunk_size().bytes());
        let mut received = self.socket.rx.peek(u32::try_from(budget).unwrap_or(u32::MAX));
        let waited = received.waiting();
        let mut next = received.next();
        next.inspect(|first| self.umem.prefetch(first.address, first.len));
        let mut continued = 0;
        while let Some(piece @ Descriptor { address, len, .. }) = next {
            next = received.next();
            next.inspect(|after| self.umem.prefetch(after.address, after.len));
            // SAFETY: a frame that was received is ours until it is in the fill ring. No other process has a descriptor
            // of the memory: `taut netd`, which may have made it, closes its own.
            let Some(frame) = (unsafe { self.umem.bytes(address, len) }) else { continue };
            let mut instead = (address / size) as u32;
            if piece.goes_on() || self.pieces.is_begun() {
                continued += u64::from(piece.goes_on());
                self.idle.push(instead);
                match self.pieces.add(frame, piece.goes_on()) {
                    Piece::Kept => {}
                    Piece::Last(frame) => carrier.take_copy(&frame).iter().for_each(&mut *sink),
                    Piece::TooLong => carrier.stats.malformed += 1,
                }
                continue;
            }
            let taken = carrier.take(frame, |payload| {
                instead = if self.chunks.has(payload) { self.chunks.take()? } else { return None };
                // SAFETY: the queue is the lone holder of the frame's chunk, which the payload lies in, and the view is
                // from now on: another chunk is received into.
                Some(unsafe { self.chunks.view(payload) })
            });
            self.idle.push(instead);
            taken.iter().for_each(&mut *sink);
        }
        let taken = received.release();
        if taken > 0 {
            self.counts.frames_in += u64::from(taken) - continued;
            self.supply.note(taken, waited);
            self.refill();
        }
        taken as usize
    }

    fn refill(&mut self) {
        let size = u64::from(self.umem.chunk_size().bytes());
        let want = self.idle.len().saturating_sub(self.supply.left_out());
        let mut fill = self.socket.fill.reserve(u32::try_from(want).unwrap_or(u32::MAX));
        while fill.room() > 0
            && let Some(number) = self.idle.pop()
        {
            fill.put(u64::from(number) * size);
        }
        fill.submit();
        if self.socket.fill.needs_wakeup() {
            self.kicks += 1;
            // It is looked for what has come all the same, so the answer is of no use here.
            let _ = self.socket.wait(std::time::Duration::ZERO);
        }
    }

    /// Looks whether something has come, from wherever: see [`taut_xdp::Glance`].
    pub(crate) fn glance(&self) -> taut_xdp::Glance {
        self.socket.glance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls are made for frames of which each call takes so many, if the kernel always wants to be woken.
    fn calls(bound: BindMode, frames: u32, taken: u32) -> u32 {
        let (mut pending, mut woken) = (frames, 0);
        while is_to_be_woken(bound, true, pending, woken) {
            pending = pending.saturating_sub(taken);
            woken += 1;
        }
        woken
    }

    #[test]
    fn a_kernel_that_copies_is_woken_until_it_has_taken_all() {
        for (frames, wanted) in [(0, 0), (1, 1), (32, 1), (33, 2), (TX, TX / 32)] {
            assert_eq!(calls(BindMode::Copy, frames, 32), wanted, "{frames} frames");
        }
        assert_eq!(calls(BindMode::Copy, 1, 0), KICKS, "nothing is taken: the queue of the device is full");
    }

    #[test]
    fn a_driver_that_does_not_copy_is_woken_once() {
        for taken in [0, 32, TX] {
            assert_eq!(calls(BindMode::ZeroCopy, TX, taken), 1, "it takes {taken} before the call returns");
        }
        assert_eq!(calls(BindMode::ZeroCopy, 0, 0), 0, "there is nothing to send");
    }

    #[test]
    fn frames_of_a_refused_call_are_left() {
        for (bound, refused, wanted) in [
            (BindMode::Copy, false, true),
            (BindMode::Copy, true, true),
            (BindMode::ZeroCopy, false, false),
            (BindMode::ZeroCopy, true, true),
        ] {
            assert_eq!(is_left(bound, true, refused), wanted, "{bound:?}, refused: {refused}");
            assert!(!is_left(bound, false, refused), "the kernel has taken them");
        }
    }

    #[test]
    fn who_does_not_ask_is_not_woken() {
        for bound in [BindMode::ZeroCopy, BindMode::Copy] {
            assert!(!is_to_be_woken(bound, false, 1, 0), "{bound:?}");
        }
    }
}
