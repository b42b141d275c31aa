//! One queue of the interface: its socket, and the account of its frames.
//!
//! Owns which frame is whose. Each is either free, or on its way out (TX and completion ring), or on its way in (fill
//! and RX ring), or taken out of the RX ring and waits for room in the fill ring.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use taut_xdp::{
    BindMode, ChunkSize, Descriptor, Error, FreeFrames, Interface, Link, Rings, Socket, Statistics, Umem,
};

use crate::netd::Granted;

/// Frames to send that wait for the kernel. It takes them within the call that wakes it where it copies them; more
/// costs memory, fewer make more calls of a burst.
const TX: u32 = 1_024;

/// How often the kernel is woken in a row: it takes 32 frames with each call where it copies. What it does not take
/// then it is woken for with the next frames. Higher holds up what else there is to do.
const KICKS: u32 = 2 * TX / 32;

/// How a queue is laid out in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The entries of its rings.
    pub rings: Rings,
    /// How many frames it has.
    pub chunks: u32,
    /// How large each is.
    pub chunk_size: ChunkSize,
}

impl Layout {
    /// For an interface with this MTU.
    pub fn of(mtu: u32) -> Layout {
        let rings = Rings { tx: TX, completion: TX, ..Rings::default() };
        let smallest = ChunkSize::B2048;
        let chunk_size = if mtu <= smallest.largest_mtu() { smallest } else { ChunkSize::B4096 };
        // Those of TX that the kernel has taken out of the ring are not all back yet.
        Layout { rings, chunks: rings.fill + 2 * rings.tx, chunk_size }
    }
}

pub(crate) struct Queue {
    socket: Socket,
    umem: Arc<Umem>,
    free: FreeFrames,
    /// Received frames that the fill ring has no room for yet.
    idle: Vec<u64>,
    /// Were frames put that the kernel was not woken for?
    waits: bool,
}

impl Queue {
    /// Takes the queue, with frames to receive into.
    pub(crate) fn open(link: &Link, number: u32, bind: Option<BindMode>) -> Result<Queue, Error> {
        let Layout { rings, chunks, chunk_size } = Layout::of(link.interface().mtu);
        let umem = Arc::new(Umem::create(chunks, chunk_size)?);
        let queue = Queue::with(Socket::open(link, number, umem, &rings, bind)?);
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
        let Granted { queue, layout: Layout { rings, chunks, chunk_size } } = granted;
        let umem = Arc::new(Umem::adopt(frames, chunks, chunk_size)?);
        Ok(Queue::with(Socket::adopt(socket, queue, of, umem, &rings)?))
    }

    /// With frames to receive into.
    fn with(socket: Socket) -> Queue {
        let umem = Arc::clone(socket.umem());
        let mut free = FreeFrames::of(&umem);
        let idle = (0..socket.fill.size()).filter_map(|_| free.take()).collect();
        let mut queue = Queue { socket, umem, free, idle, waits: false };
        queue.refill();
        queue
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

    pub(crate) fn statistics(&self) -> Statistics {
        self.socket.statistics().unwrap_or_default()
    }

    /// How long a frame may be.
    pub(crate) fn room(&self) -> usize {
        self.umem.chunk_size().bytes() as usize
    }

    /// Puts a frame, which `write` writes and says the length of. `false` if it does not want to, or if the kernel
    /// takes none now.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Result<bool, Error> {
        if self.socket.tx.reserve(1).room() == 0 || self.free.is_empty() {
            self.kick()?;
        }
        let Some(address) = self.free.take() else { return Ok(false) };
        // SAFETY: a free frame is in no ring, and nobody else has its address.
        let frame = unsafe { self.umem.bytes_mut(address, self.umem.chunk_size().bytes()) };
        let written = frame.and_then(write).and_then(|len| u32::try_from(len).ok());
        let mut tx = self.socket.tx.reserve(1);
        if let Some(len) = written
            && tx.put(Descriptor { address, len, options: 0 })
        {
            tx.submit();
            self.waits = true;
            return Ok(true);
        }
        self.free.put(address);
        Ok(false)
    }

    /// Has the kernel send what was put, and takes back what it has sent. Returns whether it had to be told.
    pub(crate) fn flush(&mut self) -> Result<bool, Error> {
        if !self.waits {
            return Ok(false);
        }
        self.kick()?;
        Ok(true)
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.reclaim();
        if self.socket.tx.needs_wakeup() {
            let mut taken = false;
            for _ in 0..KICKS {
                taken = self.socket.kick()?;
                self.reclaim();
                if taken {
                    break;
                }
            }
            self.waits = !taken;
        } else {
            self.waits = false;
        }
        Ok(())
    }

    fn reclaim(&mut self) {
        let mut sent = self.socket.completion.peek(u32::MAX);
        sent.by_ref().for_each(|address| self.free.put(address));
        sent.release();
    }

    /// Takes at most `budget` frames that have come.
    pub(crate) fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(&[u8])) -> usize {
        let mut received = self.socket.rx.peek(u32::try_from(budget).unwrap_or(u32::MAX));
        for Descriptor { address, len, .. } in received.by_ref() {
            // SAFETY: a frame that was received is ours until it is in the fill ring. No other process has a descriptor
            // of the memory: `taut netd`, which may have made it, closes its own.
            if let Some(frame) = unsafe { self.umem.bytes(address, len) } {
                sink(frame);
            }
            self.idle.extend(self.umem.chunk_of(address));
        }
        let taken = received.release() as usize;
        if taken > 0 {
            self.refill();
        }
        taken
    }

    fn refill(&mut self) {
        let mut fill = self.socket.fill.reserve(u32::try_from(self.idle.len()).unwrap_or(u32::MAX));
        while fill.room() > 0
            && let Some(address) = self.idle.pop()
        {
            fill.put(address);
        }
        fill.submit();
        if self.socket.fill.needs_wakeup() {
            // It is looked for what has come all the same, so the answer is of no use here.
            let _ = self.socket.wait(std::time::Duration::ZERO);
        }
    }

    /// Looks whether something has come, from wherever: see [`taut_xdp::Glance`].
    pub(crate) fn glance(&self) -> taut_xdp::Glance {
        self.socket.rx.glance()
    }
}
