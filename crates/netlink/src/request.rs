//! One request at a time, over one socket.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;

use crate::message::{HEADER, messages};
use crate::word;

const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
/// All there is of a kind.
pub const DUMP: u16 = 0x300;
/// In place of what there is.
pub const REPLACE: u16 = 0x100;
/// If there is none.
pub const CREATE: u16 = 0x400;
/// With [`CREATE`]: what there is already is an error.
pub const EXCLUSIVE: u16 = 0x200;

const ERROR: u16 = 0x2;
const DONE: u16 = 0x3;
/// Bytes of one read; the kernel writes at most 32 KiB at once.
const READ: usize = 64 << 10;
/// Reads for one request. A dump of the disciplines of a thousand interfaces takes some dozens; higher, and a kernel
/// that answers without end holds us.
const READS: usize = 4_096;

/// Seconds until an answer is given up. The kernel answers within the call; lower, and one that waits for other changes
/// of networks is taken for lost.
const ANSWER_S: i64 = 5;

/// A socket for requests.
pub struct Socket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// A socket to the part of the kernel that knows interfaces, addresses, routes and neighbours.
    pub fn of_routes() -> nix::Result<Socket> {
        Socket::open(SockProtocol::NetlinkRoute)
    }

    /// A socket to the part of the kernel that knows all sockets. sock_diag(7).
    pub fn of_sockets() -> nix::Result<Socket> {
        Socket::open(SockProtocol::NetlinkSockDiag)
    }

    /// A socket to this part of the kernel.
    pub fn open(protocol: SockProtocol) -> nix::Result<Socket> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(ANSWER_S, 0))?;
        Ok(Socket { socket, sequence: 0, buffer: vec![0; READ] })
    }

    /// Sends a request and returns the answers, without their headers.
    ///
    /// *Errors*: what the kernel refuses. *Cost*: two system calls, and one more for each 32 KiB; the kernel may have
    /// it wait for other changes of networks.
    pub fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> nix::Result<Vec<Vec<u8>>> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = REQUEST | flags | if flags & DUMP == DUMP { 0 } else { ACK };
        let mut message =
            u32::try_from(HEADER + body.len()).map_err(|_| Errno::EMSGSIZE)?.to_ne_bytes().to_vec();
        message.extend([kind, flags].iter().flat_map(|half| half.to_ne_bytes()));
        message.extend([self.sequence, 0].iter().flat_map(|word| word.to_ne_bytes()));
        message.extend(body);
        sendto(self.socket.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answers = Vec::new();
        for _ in 0..READS {
            let len = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            if take(self.buffer.get(..len).unwrap_or_default(), self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
        Err(Errno::ETIMEDOUT)
    }
}

/// Takes the messages of one read that answer this request; true once the last was there.
fn take(bytes: &[u8], sequence: u32, answers: &mut Vec<Vec<u8>>) -> nix::Result<bool> {
    for message in messages(bytes).filter(|message| message.sequence == sequence) {
        match message.kind {
            // A list that the kernel cannot make, or not to its end, ends with the reason.
            ERROR | DONE => match word(message.body, 0).unwrap_or(0).cast_signed() {
                error @ ..0 => return Err(Errno::from_raw(error.saturating_neg())),
                0.. => return Ok(true),
            },
            _ => answers.push(message.body.to_vec()),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_an_error() {
        let mut socket = Socket::open(SockProtocol::NetlinkRoute).unwrap();
        assert!(socket.request(0xffff, 0, &[0; 4]).is_err());
    }

    /// The sockets of a protocol whose part of the kernel is not there, as UDP's is not without CONFIG_INET_UDP_DIAG.
    #[test]
    fn a_list_that_the_kernel_cannot_make_is_an_error() {
        let mut socket = Socket::of_sockets().unwrap();
        // SOCK_DIAG_BY_FAMILY with an inet_diag_req_v2: of IPv4, of a protocol that is none, in all states.
        let mut request = [0; 56];
        request[..8].copy_from_slice(&[2, 200, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(socket.request(20, DUMP, &request), Err(Errno::ENOENT));
    }

    #[test]
    fn links_are_answered() {
        let mut socket = Socket::open(SockProtocol::NetlinkRoute).unwrap();
        // RTM_GETLINK with an empty ifinfomsg.
        assert!(!socket.request(18, DUMP, &[0; 16]).unwrap().is_empty(), "there is loopback at least");
    }
}
