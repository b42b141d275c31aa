//! Sockets and the mark of what they send: the differentiated services code point of a TRANSPORT_PRIORITY.

use std::net::{IpAddr, UdpSocket};

use socket2::{SockRef, Socket};
use taut_base::{Error, Result};

/// Marks of the TRANSPORT_PRIORITYs above 0: from which value on, and the code point. The classes of RFC 4594 for
/// what should be quick, should not wait and must not wait: AF21, AF41, EF.
pub const MARKS: [(i32, u8); 3] = [(1, 18), (10, 34), (100, 46)];

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

    /// The socket, which marks with this from now on. *Cost*: a syscall if that is another than before.
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
}

/// The same for a socket that sends to addresses of the same kind as this.
pub(crate) fn set_first(socket: &Socket, address: IpAddr, dscp: u8) {
    set(socket, address.is_ipv4(), dscp);
}

/// The mark of a priority: `first` where the table says nothing.
pub(crate) fn mark_of(marks: &[(i32, u8)], first: u8, priority: i32) -> u8 {
    let below = |(from, _): &&(i32, u8)| *from <= priority;
    marks.iter().filter(below).max_by_key(|(from, _)| *from).map_or(first, |(_, mark)| *mark)
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
    fn what_is_no_table() {
        assert!(check(&MARKS).is_ok());
        assert!(check(&[(0, 1)]).is_err() && check(&[(1, 64)]).is_err());
    }
}
