//! Sockets and the mark of what they send: the differentiated services code point of a TRANSPORT_PRIORITY, for the
//! network, and the queue's priority that goes with it, for this host.

use std::net::{IpAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{SockRef, Socket};
use taut_base::{Error, Result};

/// Marks of the TRANSPORT_PRIORITYs above 0: from which value on, and the code point. The classes of RFC 4594 for
/// what should be quick, should not wait and must not wait: AF21, AF41, EF.
pub const MARKS: [(i32, u8); 3] = [(1, 18), (10, 34), (100, 46)];

/// EF (RFC 3246): this and what is above it, which is for the network's own control, waits behind nothing else.
const EXPEDITED: u8 = 46;

/// The largest code point.
pub(crate) const LARGEST: u8 = 63;

/// A socket that sends.
pub(crate) struct Marked {
    pub(crate) socket: UdpSocket,
    /// What it was told last.
    mark: u8,
}

impl Marked {
    /// A socket that was told to mark with this code point.
    pub(crate) fn new(socket: UdpSocket, mark: u8) -> Marked {
        Marked { socket, mark }
    }

    /// The socket, which marks with this from now on. *Cost*: two syscalls if that is another than before.
    #[inline]
    pub(crate) fn with(&mut self, mark: u8, is_v4: bool) -> &UdpSocket {
        if self.mark != mark {
            self.change(mark, is_v4);
        }
        &self.socket
    }

    #[cold]
    fn change(&mut self, mark: u8, is_v4: bool) {
        set(&SockRef::from(&self.socket), is_v4, mark);
        self.mark = mark;
    }
}

/// A mark that a host does not allow is no reason not to talk.
fn set(socket: &Socket, is_v4: bool, dscp: u8) {
    let tos = u32::from(dscp) << 2;
    let _ = if is_v4 { socket.set_tos_v4(tos) } else { socket.set_tclass_v6(tos) };
    let _ = setsockopt(socket, sockopt::Priority, &queue_of(dscp));
}

/// The priority of a datagram among those that wait for the same interface (SO_PRIORITY), by its code point. What the kernel
/// derives itself has marked datagrams wait longer than others: AF21 and AF41 get the last band of `pfifo_fast` and `prio`,
/// EF that of all others, and over IPv6 all get the same.
///
/// *Source*: `TC_PRIO_*` of linux/pkt_sched.h; more than 6 takes CAP_NET_ADMIN.
pub const fn queue_of(dscp: u8) -> i32 {
    match dscp {
        0 => 0,
        // LE (RFC 8622) and CS1 (RFC 3662) are for what gives way to all else: TC_PRIO_BULK.
        1..=9 => 2,
        // TC_PRIO_INTERACTIVE_BULK, which queues of real time tell apart, and others send with the rest.
        10..EXPEDITED => 4,
        // TC_PRIO_INTERACTIVE: the first band.
        _ => 6,
    }
}

/// The same for a socket that sends to addresses of the same kind as this.
pub(crate) fn set_first(socket: &Socket, address: IpAddr, dscp: u8) {
    set(socket, address.is_ipv4(), dscp);
}

/// The mark of a TRANSPORT_PRIORITY by a table of the least that have each: `first` where that says nothing.
///
/// ```
/// use taut_port_udp::{MARKS, mark_of};
/// assert_eq!([0, 9, 100].map(|priority| mark_of(&MARKS, 0, priority)), [0, 18, 46]);
/// ```
pub fn mark_of(marks: &[(i32, u8)], first: u8, priority: i32) -> u8 {
    let below = |(from, _): &&(i32, u8)| *from <= priority;
    marks.iter().filter(below).max_by_key(|(from, _)| *from).map_or(first, |(_, mark)| *mark)
}

/// The priority that critical is from on where no mark says so: that of EF in [`MARKS`].
const CRITICAL: i32 = 100;

/// From which priority on what is sent waits behind nothing else: it is critical.
pub(crate) fn critical_from(marks: &[(i32, u8)]) -> i32 {
    let expedited = marks.iter().filter(|(_, mark)| *mark >= EXPEDITED);
    expedited.map(|(from, _)| *from).min().unwrap_or(CRITICAL)
}

/// *Errors*: `BadParameter` for what is no table.
pub(crate) fn check(marks: &[(i32, u8)]) -> Result<()> {
    match marks.iter().find(|(from, mark)| *from < 1 || *mark > LARGEST) {
        None => Ok(()),
        Some((from, mark)) => Err(Error::BadParameter(format!(
            "DSCP {mark} from priority {from} on: priorities are from 1 on here, and DSCP up to {LARGEST}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_that_is_not_above() {
        let of = |priority| mark_of(&MARKS, 7, priority);
        assert_eq!([i32::MIN, -1, 0].map(of), [7; 3]);
        assert_eq!([1, 9, 10, 99, 100, i32::MAX].map(of), [18, 18, 34, 34, 46, 46]);
        assert_eq!(mark_of(&[], 7, 100), 7);
        assert_eq!(mark_of(&[(50, 1), (5, 2)], 7, 50), 1, "in any order");
    }

    #[test]
    fn critical_is_what_is_expedited() {
        assert_eq!([&MARKS[..], &[], &[(5, 48), (7, 46), (1, 18)]].map(critical_from), [100, 100, 5]);
    }

    #[test]
    fn what_is_marked_waits_in_a_queue_of_its_priority() {
        for (address, is_v4) in [("127.0.0.1:0", true), ("[::1]:0", false)] {
            let Ok(socket) = UdpSocket::bind(address) else { continue };
            let mut socket = Marked::new(socket, 0);
            for (mark, queue) in [(8, 2), (18, 4), (34, 4), (46, 6), (48, 6), (0, 0), (46, 6)] {
                let found = nix::sys::socket::getsockopt(socket.with(mark, is_v4), sockopt::Priority);
                assert_eq!(found, Ok(queue), "{address}, DSCP {mark}");
            }
        }
    }

    #[test]
    fn what_is_no_table() {
        assert!(check(&MARKS).is_ok());
        assert!(check(&[(0, 1)]).is_err() && check(&[(1, 64)]).is_err());
    }
}
