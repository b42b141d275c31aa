//! A connection between two participants: packets with descriptors, and a hang-up when the other ends.
//!
//! What comes in was sent by a process that may want to harm this one, even one of the same user that has
//! gone mad. A packet has at most [`MAX_LEN`] bytes and at most [`MAX_DESCRIPTORS`] descriptors, which are
//! closed if the packet is not what it should be. Nobody here waits, whatever the other side does.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, connect, recvmsg, sendmsg, shutdown,
};
use taut_base::{Error, GuidPrefix, Result};

use crate::message::MAX_LEN;
use crate::refused::refused;
use crate::rendezvous::{address, socket};
use crate::sockopt::pass_rights;
use crate::{Malformed, Message, Peer};

/// Room for descriptors in one packet: more than any message has, so that one with too many is seen as
/// such. The kernel closes what finds no room.
const MAX_DESCRIPTORS: usize = 4;

/// One end of a connection. Closed on drop; the other end sees it at once.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

/// Why nobody was connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// Nobody listens under that name: the participant has ended, is of another network namespace, or
    /// does not share the directory.
    Nobody,
    /// It has not yet accepted many others: try again later.
    Busy,
    /// The operating system refused.
    Os(Error),
}

/// Why a message was not sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The peer has not read many others: try again when the descriptor is writable.
    Full,
    /// More descriptors of this user are on their way than a process may have open, or the kernel has no memory for more:
    /// try again in a while. The descriptor is writable all the time.
    Crowded,
    /// There is no other end any more.
    Gone,
    /// The peer has not yet looked who this is, and takes no descriptors: try again when it has said something.
    NotWelcome,
    /// A message of this kind goes with another number of descriptors.
    Descriptors {
        /// As many as its kind has.
        expected: usize,
        /// As many as were given.
        found: usize,
    },
    /// The operating system refused.
    Os(Error),
}

/// What a look at a connection finds.
#[derive(Debug)]
pub enum Received {
    /// Nothing new.
    Empty,
    /// There is no other end any more.
    Gone,
    /// A message and as many descriptors as its kind has.
    Message(Message, Vec<OwnedFd>),
    /// A message whose descriptors found no room, as this process may have no more of them open (`ulimit -n`). Its sender has
    /// kept to the rules, as far as that can be told.
    Cut(Message),
    /// What no peer that keeps to the rules sends: close the connection.
    Hostile(Hostile),
}

/// How a packet was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hostile {
    /// It is no message.
    Malformed(Malformed),
    /// It is longer than any message.
    TooLong,
    /// It had more descriptors than any message has.
    DescriptorsCut,
    /// A message of its kind goes with another number of descriptors.
    Descriptors {
        /// As many as its kind has.
        expected: usize,
        /// As many as came.
        found: usize,
    },
}

impl Connection {
    /// Connects to a participant of this host.
    ///
    /// *Errors*: [`ConnectError`]; the peer that answers may be anybody: look at [`Connection::peer`].
    pub fn connect(
        prefix: GuidPrefix,
        directory: Option<&Path>,
    ) -> std::result::Result<Connection, ConnectError> {
        let address = address(prefix, directory).map_err(ConnectError::Os)?;
        let socket = socket().map_err(|errno| ConnectError::Os(refused("socket AF_UNIX", errno)))?;
        match connect(&socket, &address) {
            Ok(()) => Ok(Connection { socket }),
            Err(Errno::CONNREFUSED | Errno::NOENT) => Err(ConnectError::Nobody),
            Err(Errno::AGAIN | Errno::INTR) => Err(ConnectError::Busy),
            Err(errno) => Err(ConnectError::Os(refused("connect AF_UNIX", errno))),
        }
    }

    pub(crate) fn of(socket: OwnedFd) -> Connection {
        Connection { socket }
    }

    /// Who is at the other end.
    pub fn peer(&self) -> Result<Peer> {
        Peer::of(self.socket.as_fd())
    }

    /// Has the peer pass descriptors from now on. Before that its messages that have some are refused
    /// ([`SendError::NotWelcome`]), so that who is turned away leaves nothing behind whose close takes long. Both ends
    /// begin so. Before Linux 6.16 everybody can pass them at any time.
    pub fn welcome(&self) {
        let _ = pass_rights(self.socket.as_fd(), true);
    }

    /// Readable when something came in, hung up when the peer has ended.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Ends it for both sides, though this end is kept: the other end sees it at once.
    ///
    /// *Cost*: one system call.
    pub fn end(&self) {
        // It fails only if the other end has gone.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Sends a message with its descriptors, whole or not at all.
    ///
    /// *Cost*: one system call, no allocation.
    pub fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> std::result::Result<(), SendError> {
        let (expected, found) = (message.descriptors(), fds.len());
        if expected != found {
            return Err(SendError::Descriptors { expected, found });
        }
        let encoded = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(SendError::Descriptors { expected, found });
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&self.socket, &[IoSlice::new(encoded.bytes())], &mut control, flags) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => Err(SendError::Full),
            Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => Err(SendError::Crowded),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(SendError::Gone),
            Err(Errno::PERM) if !fds.is_empty() => Err(SendError::NotWelcome),
            Err(errno) => Err(SendError::Os(refused("sendmsg AF_UNIX", errno))),
        }
    }

    /// Takes what came in.
    ///
    /// Descriptors are of whatever kind the sender likes, and closing one of a hostile file system can
    /// take as long as that likes: deal only with peers that [`crate::Policy`] admits.
    ///
    /// *Cost*: one system call, one for each descriptor to close.
    pub fn receive(&self) -> Received {
        let mut bytes = [0; MAX_LEN];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let packet = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(packet) => packet,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Empty,
            // Whatever else it is, nothing will come any more.
            Err(_) => return Received::Gone,
        };
        let fds: Vec<OwnedFd> = control.drain().flat_map(descriptors).collect();
        if packet.bytes == 0 {
            return Received::Gone;
        }
        if packet.flags.contains(ReturnFlags::TRUNC) {
            return Received::Hostile(Hostile::TooLong);
        }
        let parsed = Message::parse(bytes.get(..packet.bytes).unwrap_or_default());
        if packet.flags.contains(ReturnFlags::CTRUNC) {
            // The kernel passes as many as find room, and there was room for those of any message.
            return match parsed {
                Ok(message) if fds.len() < message.descriptors() => Received::Cut(message),
                _ => Received::Hostile(Hostile::DescriptorsCut),
            };
        }
        let (expected, message) = match parsed {
            Ok(message) => (message.descriptors(), message),
            Err(malformed) => return Received::Hostile(Hostile::Malformed(malformed)),
        };
        match fds.len() {
            found if found == expected => Received::Message(message, fds),
            found => Received::Hostile(Hostile::Descriptors { expected, found }),
        }
    }
}

/// Credentials and the like are never asked for, so that nothing else can come.
fn descriptors(message: RecvAncillaryMessage<'_>) -> impl Iterator<Item = OwnedFd> {
    let rights = match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    };
    rights.into_iter().flatten()
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Nobody => f.write_str(
                "nobody listens there: the participant has ended or is in another network namespace; \
                 containers need a directory that both mount",
            ),
            ConnectError::Busy => f.write_str("the participant has many to accept before: try again later"),
            ConnectError::Os(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full => f.write_str("the peer has not read what it was sent before: try again later"),
            SendError::Crowded => f.write_str(
                "as many descriptors of this user as may be are sent and not received yet: try again later, or raise \
                 the limit of open files (`ulimit -n`)",
            ),
            SendError::Gone => f.write_str("the peer has gone"),
            SendError::NotWelcome => f.write_str(
                "the peer takes no descriptors before it has looked who this is: try again when it has said something",
            ),
            SendError::Descriptors { expected, found } => {
                write!(f, "the message goes with {expected} descriptors, not with {found}")
            }
            SendError::Os(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hostile::Malformed(malformed) => malformed.fmt(f),
            Hostile::TooLong => write!(f, "a message of more than {MAX_LEN} B"),
            Hostile::DescriptorsCut => f.write_str("more descriptors than any message has"),
            Hostile::Descriptors { expected, found } => {
                write!(f, "{found} descriptors with a message that has {expected}")
            }
        }
    }
}

impl std::error::Error for ConnectError {}
impl std::error::Error for SendError {}
