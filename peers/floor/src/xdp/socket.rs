//! An AF_XDP socket on queue 0 of an interface: four rings that the kernel shares, and the memory of all
//! frames. Copy mode, with the kernel saying when it wants to be woken.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XdpOptionsFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, send, socket, sockopt};
use taut_perf_kit::Stop;
use taut_perf_kit::clock::{now_ns, wait_until};

use crate::memory::Region;

/// Frames on their way in each direction. With 2,048 half of the frames were lost after one pre-emption of
/// the receiver; more costs memory only, 32 MiB as it is.
const FRAMES: u32 = 8_192;

/// A page's half: holds a frame of the usual MTU and the kernel's headroom.
const CHUNK: usize = 2_048;

/// The queue of a socket that was closed is free after about 40 ms.
const QUEUE_FREE_NS: u64 = 1_000_000_000;
const QUEUE_AGAIN_NS: u64 = 5_000_000;

/// A frame that does not leave within this time never will.
const SEND_WITHIN_NS: u64 = 1_000_000_000;

// Where mmap finds each ring, from linux/if_xdp.h.
const RX: u64 = 0;
const TX: u64 = 0x8000_0000;
const FILL: u64 = 0x1_0000_0000;
const COMPLETION: u64 = 0x1_8000_0000;

/// One of the rings. Numbers of both ends run freely; the kernel moves the other end.
struct Ring {
    region: Region,
    producer: usize,
    consumer: usize,
    entries: usize,
    entry_len: usize,
}

impl Ring {
    fn map(socket: &OwnedFd, place: u64, offsets: &XdpRingOffset, entry_len: usize) -> std::io::Result<Ring> {
        let entries = offsets.desc as usize;
        let region = Region::map(socket, entries + FRAMES as usize * entry_len, place)?;
        let (producer, consumer) = (offsets.producer as usize, offsets.consumer as usize);
        Ok(Ring { region, producer, consumer, entries, entry_len })
    }

    fn entry(&self, number: u32) -> usize {
        self.entries + (number % FRAMES) as usize * self.entry_len
    }

    /// How many entries are between both ends.
    fn filled(&self) -> u32 {
        let producer = self.region.half(self.producer).load(Acquire);
        producer.wrapping_sub(self.region.half(self.consumer).load(Acquire))
    }

    /// Adds an entry: an address, and for frames to send a length.
    fn put(&self, address: u64, len: Option<usize>) {
        let number = self.region.half(self.producer).load(Relaxed);
        let at = self.entry(number);
        self.region.word(at).store(address, Relaxed);
        if let Some(len) = len {
            // The upper half of the word are options: none.
            self.region.word(at + 8).store(len as u64, Relaxed);
        }
        // Partner: the kernel's acquire of the producer.
        self.region.half(self.producer).store(number.wrapping_add(1), Release);
    }

    /// The oldest entry; it stays until `release`.
    fn first(&self) -> Option<(u64, usize)> {
        if self.filled() == 0 {
            return None;
        }
        let at = self.entry(self.region.half(self.consumer).load(Relaxed));
        let len = if self.entry_len > 8 { self.region.word(at + 8).load(Relaxed) as u32 } else { 0 };
        Some((self.region.word(at).load(Relaxed), len as usize))
    }

    fn release(&self) {
        let number = self.region.half(self.consumer).load(Relaxed);
        // Partner: the kernel's acquire of the consumer.
        self.region.half(self.consumer).store(number.wrapping_add(1), Release);
    }
}

/// The socket. The order of its fields is that of their end: rings before the socket, and that before the
/// memory of its frames, else the queue stays taken.
pub struct Socket {
    rx: Ring,
    tx: Ring,
    fill: Ring,
    completion: Ring,
    socket: OwnedFd,
    frames: Region,
    /// Frames to send that nobody uses.
    free: Vec<u64>,
}

impl Socket {
    /// Bound to queue 0 of this interface.
    pub fn open(interface: u32) -> Result<Socket, Stop> {
        let socket = socket(AddressFamily::XDP, SocketType::RAW, None)?;
        let (frames, _) = Region::create(2 * FRAMES as usize * CHUNK)?;
        let memory = XdpUmemReg {
            addr: frames.address(),
            len: frames.len() as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, memory)?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, FRAMES)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, FRAMES)?;
        sockopt::set_xdp_rx_ring_size(&socket, FRAMES)?;
        sockopt::set_xdp_tx_ring_size(&socket, FRAMES)?;
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let opened = Socket {
            rx: Ring::map(&socket, RX, &offsets.rx, 16)?,
            tx: Ring::map(&socket, TX, &offsets.tx, 16)?,
            fill: Ring::map(&socket, FILL, &offsets.fr, 8)?,
            completion: Ring::map(&socket, COMPLETION, &offsets.cr, 8)?,
            socket,
            frames,
            free: (u64::from(FRAMES)..2 * u64::from(FRAMES)).map(|frame| frame * CHUNK as u64).collect(),
        };
        for frame in 0..u64::from(FRAMES) {
            opened.fill.put(frame * CHUNK as u64, None);
        }
        let flags = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        let end_ns = now_ns() + QUEUE_FREE_NS;
        loop {
            match bind(&opened.socket, &SocketAddrXdp::new(flags, interface, 0)) {
                Ok(()) => return Ok(opened),
                Err(Errno::BUSY) if now_ns() < end_ns => {
                    wait_until(now_ns() + QUEUE_AGAIN_NS, false);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Its descriptor, for the map of the program.
    pub fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    /// Is it in zero-copy mode, against what was asked for?
    pub fn zero_copy(&self) -> bool {
        sockopt::xdp_options(&self.socket)
            .is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Queues a frame of these parts, one behind the other. It leaves with `kick`.
    pub fn put(&mut self, parts: [&[u8]; 3]) -> Result<(), Stop> {
        let end_ns = now_ns() + SEND_WITHIN_NS;
        let frame = loop {
            while let Some((frame, _)) = self.completion.first() {
                self.completion.release();
                self.free.push(frame);
            }
            match self.free.pop() {
                Some(frame) => break frame,
                None if now_ns() > end_ns => return Err(Stop::Failed("no frame comes back".to_string())),
                None => self.kick()?,
            }
        };
        let mut len = 0;
        for part in parts {
            self.frames.copy_in(frame as usize + len, part);
            len += part.len();
        }
        self.tx.put(frame, Some(len));
        Ok(())
    }

    /// Has the kernel send all that is queued: it takes a limited number with each call.
    pub fn kick(&self) -> Result<(), Stop> {
        let end_ns = now_ns() + SEND_WITHIN_NS;
        while self.tx.filled() > 0 {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if now_ns() > end_ns {
                return Err(Stop::Failed("the kernel takes no frame".to_string()));
            }
        }
        Ok(())
    }

    /// The next frame, copied to these parts as far as it reaches; all of its bytes.
    pub fn take(&self, parts: [&mut [u8]; 3]) -> Option<usize> {
        let (address, len) = self.rx.first()?;
        let mut at = 0;
        for part in parts {
            let fits = part.len().min(len - at);
            self.frames.copy_out(address as usize + at, &mut part[..fits]);
            at += fits;
        }
        self.rx.release();
        // Anywhere within its chunk is good enough for the kernel.
        self.fill.put(address, None);
        Some(len)
    }

    /// Sleeps until a frame is there.
    pub fn sleep(&self, at_most: Duration) -> Result<(), Stop> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut polled, Some(TimeSpec::from_duration(at_most)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the kernel dropped, as a line of text; nothing if it dropped nothing.
    pub fn dropped(&self) -> Option<String> {
        let counts = sockopt::xdp_statistics(&self.socket).ok()?;
        let (dropped, full) = (counts.rx_dropped, counts.rx_ring_full.unwrap_or_default());
        let empty = counts.rx_fill_ring_empty_descs.unwrap_or_default();
        (dropped + full + empty > 0)
            .then(|| format!("AF_XDP dropped {dropped}, ring full {full}, no frame to fill {empty}"))
    }
}
