//! Datagrams out: gathered from their parts by the kernel, one call for all the addresses of one kind; a row of
//! datagrams is one call as well, which the kernel or the network card cuts (UDP_SEGMENT).

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{MsgHdr, SockAddr, SockRef};
use taut_base::{Locator, Result};

use crate::gather::{MANY_PARTS, gather};
use crate::group_sockets::GroupSockets;
use crate::mark::Marked;
use crate::path_size::PathSizes;
use crate::send_v6::SenderV6;
use crate::socket::{Unicast, refused};
use crate::stats::Stats;
use crate::sys::SegmentSize;
use crate::ways::Ways;
use crate::{Interface, UdpConfig};

/// How long one send may wait for room in the send buffer, once. Longer holds up everything else
/// of the participant; shorter drops in bursts that a local queue would have taken.
const FULL_WAIT_MS: u16 = 2;
/// So often that wait begins, as a signal ends it. Lower loses datagrams of who is profiled, higher holds all up for longer.
const SIGNALS: usize = 4;

pub(crate) struct Sender {
    /// The user unicast socket: what we send comes from an address that we announce.
    pub(crate) unicast: Marked,
    /// Those of IPv4 that are sent to most, one by one: what goes there comes from another port.
    ways: Ways,
    multicast: GroupSockets,
    /// What is to be marked how.
    pub(crate) marks: Vec<(i32, u8)>,
    pub(crate) first_mark: u8,
    pub(crate) mark: u8,
    pub(crate) v6: Option<SenderV6>,
    pub(crate) paths: PathSizes,
    /// Does the kernel cut rows, and has no interface refused to yet?
    pub(crate) cuts_rows: bool,
    pub(crate) scratch: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(unicast: &Unicast, config: &UdpConfig) -> Result<Sender> {
        let copy = |socket: &UdpSocket| {
            let copy = socket.try_clone().map_err(|error| refused("dup".into(), error))?;
            Ok::<_, taut_base::Error>(Marked::new(copy, config.dscp))
        };
        let v6 = unicast.v6.as_ref().map(|pair| copy(&pair.user).map(SenderV6::new)).transpose()?;
        Ok(Sender {
            unicast: copy(&unicast.v4.user)?,
            ways: Ways::open(config, &unicast.v4.user)?,
            multicast: Vec::new(),
            marks: config.priority_marks.clone(),
            first_mark: config.dscp,
            mark: config.dscp,
            v6,
            paths: PathSizes::new(unicast.v6.is_some()),
            cuts_rows: false,
            scratch: Vec::new(),
        })
    }

    /// Sends to groups from now on by those of these sockets whose interfaces use multicast.
    pub(crate) fn follow(&mut self, mut sockets: GroupSockets, interfaces: &[Interface]) {
        sockets.retain(|(address, _)| interfaces.iter().any(|own| own.multicast && own.address == *address));
        let (v4, v6) = sockets.into_iter().partition(|(address, _)| address.is_ipv4());
        self.multicast = v4;
        if let Some(sender) = &mut self.v6 {
            sender.follow(v6, interfaces);
        }
        self.paths.follow(interfaces);
        self.ways.forget();
        // Kernels before 4.18 do not know it, and would send a row as one datagram.
        self.cuts_rows = getsockopt(&self.unicast.socket, sockopt::UdpGsoSegment).is_ok();
    }

    #[cfg(test)]
    pub(crate) fn has_way(&self) -> bool {
        self.ways.has_any()
    }

    /// The way to a destination may begin at another address by now.
    pub(crate) fn forget_ways(&mut self) {
        self.ways.forget();
    }

    pub(crate) fn send_buffer(&self) -> usize {
        SockRef::from(&self.unicast.socket).send_buffer_size().unwrap_or(0)
    }

    /// Sends what the kernel can gather, a row if `segment` says how long its datagrams are.
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: &[Locator],
        parts: &[IoSlice<'_>],
        segment: Option<&SegmentSize>,
        stats: &mut Stats,
    ) {
        // One wait for all destinations together: the bound is that of the whole call.
        let mut how = How { segment, cuts: self.cuts_rows, may_wait: true, mark: self.mark };
        match to {
            [only] => self.send_to(only, parts, &mut how, stats),
            _ => self.send_to_all(to, parts, &mut how, stats),
        }
    }

    /// Sends to one destination.
    #[inline]
    pub(crate) fn send_to(
        &mut self,
        to: &Locator,
        parts: &[IoSlice<'_>],
        how: &mut How<'_>,
        stats: &mut Stats,
    ) {
        // Most datagrams go to one of these.
        let refused = match self.ways.find(to) {
            Some(way) => send_by_one(way, true, None, parts, how, stats).map(|refused| (refused, true)),
            None => self.send_elsewhere(to, parts, how, stats),
        };
        if let Some((refused, by_way)) = refused {
            self.on_refusal(to, &refused, by_way);
        }
    }

    /// Returns also whether what has failed was a socket that knows its way.
    #[inline(never)]
    fn send_elsewhere(
        &mut self,
        to: &Locator,
        parts: &[IoSlice<'_>],
        how: &mut How<'_>,
        stats: &mut Stats,
    ) -> Option<(Refused, bool)> {
        let refused = match to.socket_addr() {
            Some(address @ SocketAddr::V4(_)) if to.is_multicast() => {
                send_by(by_interface(&mut self.multicast, to), Some(address), parts, how, stats)
            }
            Some(address @ SocketAddr::V4(v4)) => match self.ways.note(&v4) {
                Some(way) => {
                    return send_by_one(way, true, None, parts, how, stats).map(|refused| (refused, true));
                }
                None => send_by([&mut self.unicast], Some(address), parts, how, stats),
            },
            _ => self.send_v6(to, parts, how, stats),
        };
        refused.map(|refused| (refused, false))
    }

    #[cold]
    fn on_refusal(&mut self, to: &Locator, refused: &Refused, by_way: bool) {
        match refused {
            Refused::Failed => {
                if let (true, Some(SocketAddr::V4(v4))) = (by_way, to.socket_addr()) {
                    self.ways.leave(&v4);
                }
            }
            Refused::Narrow => self.paths.forget(),
            Refused::Never => self.cuts_rows = false,
        }
    }
}

/// How a call of the port sends.
pub(crate) struct How<'a> {
    /// How long the datagrams of a row are.
    pub(crate) segment: Option<&'a SegmentSize>,
    /// Are rows cut by the kernel?
    pub(crate) cuts: bool,
    /// May it still wait for room?
    pub(crate) may_wait: bool,
    /// How it marks.
    pub(crate) mark: u8,
}

impl How<'_> {
    /// The datagrams in so many bytes.
    pub(crate) fn datagrams(&self, bytes: usize) -> u64 {
        self.segment.map_or(1, |segment| bytes.div_ceil(segment.bytes()) as u64)
    }
}

/// Why a row was not taken whole, or a datagram not at all.
pub(crate) enum Refused {
    /// Its datagrams do not fit the path any more.
    Narrow,
    /// What is on the path does not cut.
    Never,
    /// The system refuses it.
    Failed,
}

/// Sends by each of these sockets, to where they are connected or to `to`.
pub(crate) fn send_by<'a>(
    sockets: impl IntoIterator<Item = &'a mut Marked>,
    to: Option<SocketAddr>,
    parts: &[IoSlice<'_>],
    how: &mut How<'_>,
    stats: &mut Stats,
) -> Option<Refused> {
    let mut sockets = sockets.into_iter().peekable();
    if sockets.peek().is_none() {
        stats.dropped_unreachable += 1;
    }
    let (is_v4, to, mut refused) = (to.is_none_or(|to| to.is_ipv4()), to.map(SockAddr::from), None);
    for socket in sockets {
        refused = send_by_one(socket, is_v4, to.as_ref(), parts, how, stats).or(refused);
    }
    refused
}

/// Sends by one of them.
#[inline]
fn send_by_one(
    socket: &mut Marked,
    is_v4: bool,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    how: &mut How<'_>,
    stats: &mut Stats,
) -> Option<Refused> {
    let socket = socket.with(how.mark, is_v4);
    let row = how.segment.map(SegmentSize::bytes);
    if let Some(each) = row.filter(|_| !how.cuts) {
        return send_each(socket, to, parts, each, how, stats);
    }
    let errno = send_one(socket, to, parts, how, stats).err()?;
    Some(send_less(errno, socket, to, parts, how, stats))
}

/// What was refused, for this reason, as far as it goes otherwise.
#[cold]
fn send_less(
    errno: i32,
    socket: &UdpSocket,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    how: &mut How<'_>,
    stats: &mut Stats,
) -> Refused {
    let reason = match errno {
        libc::EINVAL | libc::EMSGSIZE => Some(Refused::Narrow),
        libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT => Some(Refused::Never),
        _ => None,
    };
    if let (Some(segment), Some(reason)) = (how.segment, reason) {
        stats.rows_refused += 1;
        send_each(socket, to, parts, segment.bytes(), how, stats);
        return reason;
    }
    let mut met = errno;
    // Of a socket that knows its way the kernel reports what an earlier datagram met, too, which a router could not pass
    // on, and has not sent this one. From now on it cuts them.
    if errno == libc::EMSGSIZE {
        match send_one(socket, to, parts, how, stats) {
            Ok(()) => return Refused::Narrow,
            Err(errno) => met = errno,
        }
    }
    stats.send_errors.count(met);
    Refused::Failed
}

/// The sockets that a group is sent to by: that of the interface which it names, if there is one, or all of them.
fn by_interface<'a>(all: &'a mut GroupSockets, group: &Locator) -> impl Iterator<Item = &'a mut Marked> {
    let only = group.interface().and_then(|by| all.iter().position(|(own, _)| *own == by));
    let by = only.map_or(0..all.len(), |only| only..only + 1);
    all[by].iter_mut().map(|(_, socket)| socket)
}

/// Sends a row, datagram by datagram. Returns why the last one was refused that was.
#[inline(never)]
fn send_each(
    socket: &UdpSocket,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    each: usize,
    how: &mut How<'_>,
    stats: &mut Stats,
) -> Option<Refused> {
    let mut alone = How { segment: None, cuts: false, may_wait: how.may_wait, mark: how.mark };
    let slices: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
    let mut refused = None;
    taut_port::split(&slices, each, |datagram| {
        gather::<MANY_PARTS>(datagram, |slices| {
            if let Err(errno) = send_one(socket, to, slices, &mut alone, stats) {
                refused = Some(send_less(errno, socket, to, slices, &mut alone, stats));
            }
        });
    });
    how.may_wait = alone.may_wait;
    refused
}

/// Sends one datagram or one row; at most one retry for each reason that can pass. Returns the number of an
/// error that does not.
#[inline]
fn send_one(
    socket: &UdpSocket,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    how: &mut How<'_>,
    stats: &mut Stats,
) -> std::result::Result<(), i32> {
    match call(socket, to, parts, how, stats) {
        Ok(()) => Ok(()),
        Err(error) => send_again(&error, socket, to, parts, how, stats),
    }
}

/// The one call.
#[inline]
fn call(
    socket: &UdpSocket,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    how: &How<'_>,
    stats: &mut Stats,
) -> std::io::Result<()> {
    stats.send_calls += 1;
    let socket = SockRef::from(socket);
    let bytes = match (parts, how.segment, to) {
        ([whole], None, None) => socket.send(whole),
        _ => call_with(&socket, to, parts, how.segment),
    }?;
    stats.datagrams_out += how.datagrams(bytes);
    stats.bytes_out += bytes as u64;
    Ok(())
}

#[inline(never)]
fn call_with(
    socket: &SockRef<'_>,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    segment: Option<&SegmentSize>,
) -> std::io::Result<usize> {
    match (parts, segment, to) {
        (_, Some(segment), to) => {
            let row = MsgHdr::new().with_buffers(parts).with_control(segment.control());
            socket.sendmsg(&to.into_iter().fold(row, MsgHdr::with_addr), 0)
        }
        ([whole], None, Some(to)) => socket.send_to(whole, to),
        (_, None, None) => socket.send_vectored(parts),
        (_, None, Some(to)) => socket.send_to_vectored(parts, to),
    }
}

/// The first call has met this error.
#[cold]
fn send_again(
    error: &std::io::Error,
    socket: &UdpSocket,
    to: Option<&SockAddr>,
    parts: &[IoSlice<'_>],
    how: &mut How<'_>,
    stats: &mut Stats,
) -> std::result::Result<(), i32> {
    let all = |how: &How<'_>| how.datagrams(parts.iter().map(|part| part.len()).sum());
    let (mut may_retry, mut met) = (true, error.raw_os_error());
    loop {
        match met {
            Some(libc::EAGAIN) if how.may_wait => {
                how.may_wait = false;
                stats.sends_waited += 1;
                if !wait_for_room(socket) {
                    stats.dropped_full += all(how);
                    return Ok(());
                }
            }
            Some(libc::EAGAIN) => {
                stats.dropped_full += all(how);
                return Ok(());
            }
            // The kernel reports what an earlier datagram met, and has not sent this one.
            Some(libc::ECONNREFUSED) if may_retry => {
                may_retry = false;
                stats.refused += 1;
            }
            errno => return Err(errno.unwrap_or(0)),
        }
        match call(socket, to, parts, how, stats) {
            Ok(()) => return Ok(()),
            Err(error) => met = error.raw_os_error(),
        }
    }
}

fn wait_for_room(socket: &UdpSocket) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    has_room(|| nix::poll::poll(&mut fds, PollTimeout::from(FULL_WAIT_MS)))
}

/// A signal ends a wait, which begins anew then: a few times only, as a timer's signals go on.
fn has_room(wait: impl FnMut() -> nix::Result<i32>) -> bool {
    let mut waits = std::iter::repeat_with(wait).take(SIGNALS);
    waits.find(|waited| *waited != Err(Errno::EINTR)) == Some(Ok(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_does_not_end_the_wait_for_room() {
        let after = |signals: usize, then| {
            let mut waits = std::iter::repeat_n(Err(Errno::EINTR), signals).chain([then]);
            has_room(|| waits.next().unwrap())
        };
        assert!(after(0, Ok(1)) && after(SIGNALS - 1, Ok(1)));
        assert!(!after(1, Ok(0)) && !after(1, Err(Errno::ENOMEM)), "there is none");
        assert!(!after(SIGNALS, Ok(1)), "it has an end");
    }
}
