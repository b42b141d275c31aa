//! Datagrams out: gathered from their parts by the kernel, one call for each destination.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::slice;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use socket2::{SockAddr, SockRef};
use taut_base::{Locator, Result};
use taut_port::Port;

use crate::stats::Stats;
use crate::{Interface, UdpConfig, UdpPort, socket};

/// Parts of most datagrams: header, destination, timestamp, data, payload.
const FEW_PARTS: usize = 8;

/// The most parts that one call gathers; more are copied together first and counted. The kernel
/// takes up to 1,024, but each costs 16 bytes of stack that are written on every send.
const MANY_PARTS: usize = 64;

/// Up to how many bytes the parts are joined here rather than by the kernel. A call with one part
/// costs the kernel 0.2 us less than one with a list of parts, as much as copying a few thousand
/// bytes; higher would touch more cache lines than it saves.
const SMALL: usize = 512;

/// How long one send may wait for room in the send buffer, once. Longer holds up everything else
/// of the participant; shorter drops in bursts that a local queue would have taken.
const FULL_WAIT_MS: u16 = 2;

pub(crate) struct Sender {
    /// The user unicast socket: what we send comes from an address that we announce.
    unicast: UdpSocket,
    /// One for each interface.
    multicast: Vec<UdpSocket>,
    scratch: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(config: &UdpConfig, unicast: UdpSocket, interfaces: &[Interface]) -> Result<Sender> {
        let mut by_index: Vec<u32> = Vec::new();
        let mut multicast = Vec::new();
        for interface in interfaces.iter().filter(|interface| interface.multicast) {
            if !by_index.contains(&interface.index) {
                by_index.push(interface.index);
                multicast.push(socket::open_multicast_sender(config, interface)?);
            }
        }
        Ok(Sender { unicast, multicast, scratch: Vec::new() })
    }

    pub(crate) fn send_buffer(&self) -> usize {
        SockRef::from(&self.unicast).send_buffer_size().unwrap_or(0)
    }

    /// Sends what the kernel can gather.
    fn send(&self, to: &[Locator], parts: &[IoSlice<'_>], stats: &mut Stats) {
        // One wait for all destinations together: the bound is that of the whole call.
        let mut may_wait = true;
        for locator in to {
            let Some(address @ SocketAddr::V4(_)) = locator.socket_addr() else {
                stats.dropped_unreachable += 1;
                continue;
            };
            let sockets =
                if locator.is_multicast() { &self.multicast } else { slice::from_ref(&self.unicast) };
            if sockets.is_empty() {
                stats.dropped_unreachable += 1;
            }
            let address = SockAddr::from(address);
            for socket in sockets {
                send_one(socket, &address, parts, &mut may_wait, stats);
            }
        }
    }
}

/// Sends one datagram; at most one retry for each reason that can pass.
fn send_one(
    socket: &UdpSocket,
    to: &SockAddr,
    parts: &[IoSlice<'_>],
    may_wait: &mut bool,
    stats: &mut Stats,
) {
    let mut may_retry = true;
    loop {
        stats.send_calls += 1;
        let socket_ref = SockRef::from(socket);
        let result = match parts {
            [whole] => socket_ref.send_to(whole, to),
            _ => socket_ref.send_to_vectored(parts, to),
        };
        let error = match result {
            Ok(bytes) => {
                stats.datagrams_out += 1;
                stats.bytes_out += bytes as u64;
                return;
            }
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EAGAIN) if *may_wait => {
                *may_wait = false;
                stats.sends_waited += 1;
                if wait_for_room(socket) {
                    continue;
                }
                stats.dropped_full += 1;
            }
            Some(libc::EAGAIN) => stats.dropped_full += 1,
            // The kernel reports what an earlier datagram met, and has not sent this one.
            Some(libc::ECONNREFUSED) if may_retry => {
                may_retry = false;
                stats.refused += 1;
                continue;
            }
            errno => stats.send_errors.count(errno.unwrap_or(0)),
        }
        return;
    }
}

fn wait_for_room(socket: &UdpSocket) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    nix::poll::poll(&mut fds, PollTimeout::from(FULL_WAIT_MS)) == Ok(1)
}

/// `N` slices over the parts, of which there are no more, and the call.
fn gather<const N: usize>(parts: &[&[u8]], call: impl FnOnce(&[IoSlice<'_>])) {
    let mut slices = [IoSlice::new(&[]); N];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    call(&slices[..parts.len().min(N)]);
}

/// `parts` one after the other in `joined`, which has room for them.
fn join<'a>(parts: &[&[u8]], joined: &'a mut [u8]) -> &'a [u8] {
    let mut end = 0;
    for part in parts {
        joined[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    &joined[..end]
}

/// *Cost*: one syscall for each destination, and for a group one for each interface. No
/// allocation; no copy above 512 bytes, unless there are more than 64 parts, which is counted.
impl Port for UdpPort {
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        let stats = &mut self.stats;
        let few = parts.len() <= FEW_PARTS;
        if few && parts.iter().map(|part| part.len()).sum::<usize>() <= SMALL {
            let mut joined = [0; SMALL];
            self.sender.send(to, &[IoSlice::new(join(parts, &mut joined))], stats);
        } else if few {
            gather::<FEW_PARTS>(parts, |slices| self.sender.send(to, slices, stats));
        } else if parts.len() <= MANY_PARTS {
            gather::<MANY_PARTS>(parts, |slices| self.sender.send(to, slices, stats));
        } else {
            stats.sends_copied += 1;
            let mut scratch = std::mem::take(&mut self.sender.scratch);
            scratch.clear();
            parts.iter().for_each(|part| scratch.extend_from_slice(part));
            self.sender.send(to, &[IoSlice::new(&scratch)], stats);
            self.sender.scratch = scratch;
        }
    }

    fn flush(&mut self) {}
}
