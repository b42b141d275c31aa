//! Many datagrams in one system call: sendmmsg and recvmmsg, or segmentation by the kernel.
//!
//! Only for samples that fit a datagram. All have the same length, so a large buffer of the kernel is cut
//! by that length and no control message is read.

use std::io::{Error, IoSlice, IoSliceMut, Result};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, MultiHeaders, getsockopt, recvmmsg, sendmmsg, setsockopt, sockopt};
use taut_perf_kit::Stop;

use super::{DATAGRAM, persist};

/// So many go at once: the kernel's limit of segments in one send before 6.x, and beyond it nothing is
/// gained. Fewer leave the cost of a call on each.
const BATCH: usize = 64;

/// Of IPv4 and UDP.
const HEADERS: usize = 28;

/// The largest buffer that the kernel hands over as one when it gathers datagrams.
const GATHERED: usize = 65_535;

/// How samples leave.
pub enum Outgoing {
    /// A call for each.
    Single,
    /// A call for many datagrams.
    Messages(Held, Box<MultiHeaders<()>>),
    /// A call for one buffer, which the kernel cuts.
    Segments(Held),
}

/// Samples that wait for more.
pub struct Held {
    bytes: Vec<u8>,
    one: usize,
    most: usize,
    held: usize,
}

impl Held {
    fn new(one: usize) -> Held {
        let most = (DATAGRAM / one.max(1)).clamp(1, BATCH);
        Held { bytes: vec![1; one * most], one, most, held: 0 }
    }

    /// True when it is full.
    fn add(&mut self, sample: &[u8]) -> bool {
        let at = self.held * self.one;
        self.bytes[at..at + self.one].copy_from_slice(sample);
        self.held += 1;
        self.held == self.most
    }

    fn all(&mut self) -> &[u8] {
        let len = std::mem::take(&mut self.held) * self.one;
        &self.bytes[..len]
    }
}

impl Outgoing {
    /// As the variant says, for samples of this length.
    pub fn new(variant: &str, len: usize) -> Outgoing {
        match variant {
            "sendmmsg" if len <= DATAGRAM => {
                Outgoing::Messages(Held::new(len), Box::new(MultiHeaders::preallocate(BATCH, None)))
            }
            "gso" if 2 * len <= DATAGRAM => Outgoing::Segments(Held::new(len)),
            _ => Outgoing::Single,
        }
    }

    /// Sets what the connected socket needs.
    pub fn prepare(&self, socket: &UdpSocket) -> std::result::Result<(), Stop> {
        if let Outgoing::Segments(held) = self {
            // The kernel cuts into packets, and fragments none of them.
            let mtu = getsockopt(socket, sockopt::IpMtu)? as usize;
            if held.one + HEADERS > mtu {
                return Err(Stop::Absent(format!("no segments of {} bytes with an MTU of {mtu}", held.one)));
            }
            setsockopt(socket, sockopt::UdpGsoSegment, &(held.one as i32))?;
        }
        Ok(())
    }

    /// Sends, or holds back, one sample to all.
    pub fn send(&mut self, sockets: &[UdpSocket], sample: &[u8]) -> Result<()> {
        let full = match self {
            Outgoing::Single => {
                return sockets.iter().try_for_each(|socket| persist(|| socket.send(sample)));
            }
            Outgoing::Messages(held, _) | Outgoing::Segments(held) => held.add(sample),
        };
        if full { self.push(sockets) } else { Ok(()) }
    }

    /// Sends what is held back.
    pub fn push(&mut self, sockets: &[UdpSocket]) -> Result<()> {
        match self {
            Outgoing::Single => Ok(()),
            Outgoing::Segments(held) => {
                let bytes = held.all();
                if bytes.is_empty() {
                    return Ok(());
                }
                sockets.iter().try_for_each(|socket| persist(|| socket.send(bytes)))
            }
            Outgoing::Messages(held, headers) => {
                let one = held.one;
                let bytes = held.all();
                sockets.iter().try_for_each(|socket| send_each(socket, bytes, one, headers))
            }
        }
    }
}

fn send_each(socket: &UdpSocket, bytes: &[u8], one: usize, headers: &mut MultiHeaders<()>) -> Result<()> {
    let mut sent = 0;
    let all = bytes.len() / one;
    while sent < all {
        let mut slices = [[IoSlice::new(&[])]; BATCH];
        for (slice, sample) in slices.iter_mut().zip(bytes[sent * one..].chunks(one)) {
            *slice = [IoSlice::new(sample)];
        }
        let rest = &slices[..all - sent];
        let addresses = [None; BATCH];
        persist(|| {
            let fd = socket.as_raw_fd();
            sent += sendmmsg(fd, headers, rest, &addresses[..rest.len()], [], MsgFlags::empty())?.count();
            Ok(sent)
        })?;
    }
    Ok(())
}

/// How samples come.
pub enum Incoming {
    /// A call for each.
    Single,
    /// A call for many datagrams.
    Messages(Taken, Box<MultiHeaders<()>>),
    /// A call for one buffer that the kernel gathered.
    Gathered(Taken),
}

/// What one call brought and nobody has had yet.
pub struct Taken {
    bytes: Vec<u8>,
    one: usize,
    next: usize,
    end: usize,
}

impl Incoming {
    /// As the variant says, for samples of this length.
    pub fn new(variant: &str, one: usize) -> Incoming {
        let taken = |len: usize| Taken { bytes: vec![1; len], one, next: 0, end: 0 };
        match variant {
            "sendmmsg" if one <= DATAGRAM => {
                Incoming::Messages(taken(one * BATCH), Box::new(MultiHeaders::preallocate(BATCH, None)))
            }
            "gso" if 2 * one <= DATAGRAM => Incoming::Gathered(taken(GATHERED)),
            _ => Incoming::Single,
        }
    }

    /// Sets what the socket needs.
    pub fn prepare(&self, socket: &UdpSocket) -> Result<()> {
        if let Incoming::Gathered(_) = self {
            setsockopt(socket, sockopt::UdpGroSegment, &true)?;
        }
        Ok(())
    }

    /// Is there a sample for which no call is needed?
    pub fn has_more(&self) -> bool {
        match self {
            Incoming::Single => false,
            Incoming::Messages(taken, _) | Incoming::Gathered(taken) => taken.next < taken.end,
        }
    }

    /// The next datagram; its length.
    pub fn receive(&mut self, socket: &UdpSocket, body: &mut [u8]) -> Result<usize> {
        match self {
            Incoming::Single => socket.recv(body),
            Incoming::Gathered(taken) => {
                if taken.next >= taken.end {
                    (taken.next, taken.end) = (0, socket.recv(&mut taken.bytes)?);
                }
                Ok(taken.take(body))
            }
            Incoming::Messages(taken, headers) => {
                if taken.next >= taken.end {
                    taken.fetch(socket, headers)?;
                }
                Ok(taken.take(body))
            }
        }
    }
}

impl Taken {
    fn take(&mut self, body: &mut [u8]) -> usize {
        let len = self.one.min(self.end - self.next).min(body.len());
        body[..len].copy_from_slice(&self.bytes[self.next..self.next + len]);
        self.next += self.one;
        len
    }

    /// Gets what is there, and waits only if that is nothing.
    fn fetch(&mut self, socket: &UdpSocket, headers: &mut MultiHeaders<()>) -> Result<()> {
        let one = self.one;
        let mut lengths = [0usize; BATCH];
        let mut got = 0;
        {
            let mut rest = self.bytes.chunks_mut(one);
            let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
                std::array::from_fn(|_| [IoSliceMut::new(rest.next().unwrap_or_default())]);
            let flags = MsgFlags::MSG_WAITFORONE;
            let came = recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), flags, None);
            for (message, length) in came.map_err(Error::from)?.zip(&mut lengths) {
                *length = message.bytes;
                got += 1;
            }
        }
        // A shorter one is a greeting, which comes before all samples: alone, or not of interest.
        (self.next, self.end) = if got == 1 { (0, lengths[0]) } else { (0, got * one) };
        Ok(())
    }
}
