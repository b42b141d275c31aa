//! A socket behind its program, with the account of its frames.

use std::sync::Arc;
use std::time::Duration;

use super::interface;
use taut_testbed::frame::Udp;
use taut_testbed::{End, LIMIT, Pair, await_that};
use taut_xdp::{
    AttachMode, ChunkSize, Descriptor, FreeFrames, GOES_ON, Link, Mode, Program, Rings, Socket, Umem,
};

/// The port of all stations.
pub const PORT: u16 = 7_411;

pub const RINGS: Rings = Rings { fill: 1_024, completion: 1_024, rx: 1_024, tx: 1_024 };

pub struct Station {
    pub socket: Socket,
    pub free: FreeFrames,
}

/// Has a program take what is for [`PORT`] of this end and comes by the first queue, and of frames made by hand.
pub fn add_port(program: &Program, end: End) {
    let ours = Udp { to: end.ipv4(), ..Udp::to_port(PORT) };
    for to in [ours.destinations(), Udp::to_port(PORT).destinations()].concat() {
        program.add(to, 0).expect("there is room");
    }
}

/// Our program at this end, for [`PORT`].
pub fn link(pair: &Pair, end: End, mode: Mode, wanted: Option<AttachMode>) -> Link {
    link_of(0, pair, end, mode, wanted)
}

/// The same for frames of a network.
pub fn link_of(network: u16, pair: &Pair, end: End, mode: Mode, wanted: Option<AttachMode>) -> Link {
    let interface = interface(pair, end);
    let program = Program::load_for(mode, network, interface.mtu).expect("it loads");
    add_port(&program, end);
    Link::attach(program, &interface, wanted).expect("it is attached")
}

pub fn umem() -> Arc<Umem> {
    Arc::new(Umem::create(2_048, ChunkSize::B2048).expect("memory"))
}

impl Station {
    /// On a queue of the link's interface, where the thread is.
    pub fn open(link: &Link, queue: u32) -> Station {
        let socket = Socket::open(link, queue, umem(), &RINGS, None, true).expect("it opens");
        let free = FreeFrames::of(socket.umem());
        let mut station = Station { socket, free };
        station.refill();
        link.add(&station.socket).expect("it is added");
        station
    }

    pub fn umem(&self) -> Arc<Umem> {
        Arc::clone(self.socket.umem())
    }

    /// Fills the ring as far as there is room. A frame is there before the room of its entry is.
    pub fn refill(&mut self) {
        let mut fill = self.socket.fill.reserve(u32::MAX);
        while fill.room() > 0
            && let Some(address) = self.free.take()
        {
            fill.put(address);
        }
        fill.submit();
    }

    /// Are all frames either free or in the fill ring?
    pub fn has_all(&mut self) -> bool {
        self.reclaim();
        self.free.len() + self.socket.fill.pending() as usize == self.socket.umem().chunks() as usize
    }

    /// Sends frames with as few calls as the kernel lets it.
    pub fn send(&mut self, frames: &[Vec<u8>]) {
        self.reclaim();
        let umem = self.umem();
        let chunk = umem.chunk_size().bytes() as usize;
        let count: usize = frames.iter().map(|frame| frame.len().div_ceil(chunk)).sum();
        let mut tx = self.socket.tx.reserve(count as u32);
        assert_eq!(tx.room() as usize, count, "there is room");
        for frame in frames {
            let mut pieces = frame.chunks(chunk).peekable();
            while let Some(piece) = pieces.next() {
                let (address, len) = (self.free.take().expect("a frame"), piece.len() as u32);
                // SAFETY: a free frame is this station's alone.
                let bytes = unsafe { umem.bytes_mut(address, len) };
                bytes.expect("it fits").copy_from_slice(piece);
                let options = if pieces.peek().is_some() { GOES_ON } else { 0 };
                assert!(tx.put(Descriptor { address, len, options }));
            }
        }
        tx.submit();
        await_that("the kernel takes all frames", || {
            self.socket.kick().expect("it is up");
            self.socket.tx.pending() == 0
        });
    }

    /// Takes back what was sent.
    pub fn reclaim(&mut self) {
        let mut sent = self.socket.completion.peek(u32::MAX);
        sent.by_ref().for_each(|address| self.free.put(address));
        sent.release();
    }

    /// All frames that are there.
    pub fn receive(&mut self) -> Vec<Vec<u8>> {
        let umem = self.umem();
        let mut received = self.socket.rx.peek(u32::MAX);
        let (mut frames, mut pieces) = (Vec::new(), Vec::new());
        for piece in received.by_ref() {
            // SAFETY: a received frame is this station's until it is put into the fill ring.
            pieces.extend(unsafe { umem.bytes(piece.address, piece.len) }.expect("it is inside"));
            self.free.put(piece.address);
            if !piece.goes_on() {
                frames.push(std::mem::take(&mut pieces));
            }
        }
        assert!(pieces.is_empty(), "all of a frame is there at once");
        received.release();
        self.refill();
        frames
    }

    /// Waits for so many frames, and that no other comes with them.
    pub fn await_frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = self.receive();
        while frames.len() < count {
            let readable = self.socket.wait(LIMIT).expect("poll");
            let statistics = self.socket.statistics();
            assert!(readable, "{} of {count} frames came, {statistics:?}", frames.len());
            frames.extend(self.receive());
        }
        assert_eq!(frames.len(), count);
        frames
    }

    /// Nothing is there, and nothing comes for a while.
    pub fn assert_silent(&mut self) {
        assert!(!self.socket.wait(Duration::from_millis(50)).expect("poll"), "{:?}", self.receive());
    }
}
