//! A connection between a participant and netd: packets with descriptors, and a hang-up when the other end has gone.
//!
//! What comes in may have been sent by anybody. A packet has at most as many bytes as the longest message and at most
//! [`MAX_DESCRIPTORS`] descriptors; with more it is hostile. Nobody waits here but for [`Connection::receive_within`]. But
//! to drop a connection closes what has not been received of it, and that may take long: see [`Connection::end`].

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, shutdown, socket_with,
};

use super::message::MAX_LEN;
use super::{MAX_PROOFS, Message};

/// Descriptors in one packet, or a few more: more than any message has, so that one with too many is seen as such.
pub const MAX_DESCRIPTORS: usize = MAX_PROOFS + 2;
/// Room for all that one packet can bring, SCM_MAX_FD of linux/include/net/scm.h: what has no room the kernel closes
/// before it returns, which may take for as long as the sender has set.
const ROOM: usize = 253;
/// How long who listens may take to have room for a connection: it accepts them all the time. Longer and a participant
/// waits for one that has stopped.
const CONNECT: Duration = Duration::from_secs(5);

/// One end of a connection. Closed on drop; the other end sees it at once.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

/// Why what was passed has not come.
pub const CROWDED: &str = "what was passed cannot be received: raise the limit of open files (`ulimit -n`)";

/// What a look at a connection finds.
#[derive(Debug)]
pub enum Received {
    /// Nothing new.
    Empty,
    /// There is no other end any more.
    Gone,
    /// A message and its descriptors, as many as its kind may have.
    Message(Message, Vec<OwnedFd>),
    /// A message whose descriptors have not all come: this side has no place for them, or a policy of the system does not let
    /// it have them. [`CROWDED`] says so.
    Crowded(Vec<OwnedFd>),
    /// What nobody sends who keeps to the rules, and descriptors of whatever kind: their close may wait.
    Hostile(String, Vec<OwnedFd>),
}

impl Connection {
    /// Connects to who listens there.
    ///
    /// *Errors*: `NOENT` and `CONNREFUSED` if nobody does.
    pub fn connect(path: &Path) -> Result<Connection, Errno> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(CONNECT))?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Connection { socket })
    }

    /// The same without a wait.
    ///
    /// *Errors*: `AGAIN` if who listens there has no room.
    pub fn connect_at_once(path: &Path) -> Result<Connection, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Connection { socket })
    }

    /// One that was accepted.
    pub fn of(socket: OwnedFd) -> Connection {
        Connection { socket }
    }

    /// Ends it, which the other end sees at once, whoever else has a descriptor of it: a child that was forked.
    pub fn hang_up(&self) {
        // It fails if the other end has gone already.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// The same for good. What is returned is to be closed by somebody who may wait: descriptors
    /// that have not been received are closed with it, of whatever kind.
    pub fn end(self) -> OwnedFd {
        self.hang_up();
        self.socket
    }

    /// Readable when something came in, hung up when the other end has gone.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message with its descriptors, whole or not at all, and does not wait for room.
    pub fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::INVAL);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(&message.encode())], &mut control, flags).map(drop)
    }

    /// Takes what came in.
    pub fn receive(&self) -> Received {
        // One more than there may be, so that what is too long is seen as such.
        let mut bytes = [0; MAX_LEN + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ROOM))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut iov = [IoSliceMut::new(&mut bytes)];
        let mut packet = recvmsg(&self.socket, &mut iov, &mut control, flags);
        if matches!(packet, Err(Errno::CONNRESET)) {
            // It has ended without reading all that it was sent; what it has said before comes behind that.
            packet = recvmsg(&self.socket, &mut iov, &mut control, flags);
        }
        let packet = match packet {
            Ok(packet) => packet,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Empty,
            // Whatever else it is, nothing will come any more.
            Err(_) => return Received::Gone,
        };
        let fds: Vec<OwnedFd> = control.drain().flat_map(descriptors).collect();
        if packet.bytes == 0 && fds.is_empty() {
            return Received::Gone;
        }
        if packet.bytes > MAX_LEN || packet.flags.contains(ReturnFlags::TRUNC) {
            return Received::Hostile(format!("a message of more than {MAX_LEN} B"), fds);
        }
        // There is room for as many as one message can have, so that it is not that which cuts it.
        if fds.len() <= MAX_DESCRIPTORS && packet.flags.contains(ReturnFlags::CTRUNC) {
            return Received::Crowded(fds);
        }
        if fds.len() > MAX_DESCRIPTORS {
            return Received::Hostile(format!("more than {MAX_DESCRIPTORS} descriptors with a message"), fds);
        }
        match Message::parse(bytes.get(..packet.bytes).unwrap_or_default()) {
            Ok(message) if message.goes_with(fds.len()) => Received::Message(message, fds),
            Ok(_) => Received::Hostile(format!("{} descriptors with a message of its kind", fds.len()), fds),
            Err(malformed) => Received::Hostile(malformed.to_string(), fds),
        }
    }

    /// The same, after a wait of at most so long for something to come.
    pub fn receive_within(&self, at_most: Duration) -> Received {
        // After a signal there may be nothing: the caller waits again or gives up.
        let _ = self.wait(at_most);
        self.receive()
    }

    /// Waits at most so long for something to come. `false` if nothing has; after a signal nothing may have, either.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let limit = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit)) != Ok(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::socketpair;

    fn pair() -> [Connection; 2] {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        [Connection::of(a), Connection::of(b)]
    }

    fn send_bytes(from: &Connection, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        sendmsg(&from.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    #[test]
    fn messages_arrive_with_their_descriptors() {
        let [a, b] = pair();
        assert!(matches!(b.receive(), Received::Empty));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (interface, layer) = ("lo".into(), taut_xdp::Mode::L3);
        let take = Message::Take { interface, layer, queues: vec![0], attach: None, bind: None };
        a.send(&take, &[socket.as_fd()]).unwrap();
        let Received::Message(found, fds) = b.receive() else { panic!("a message") };
        assert_eq!((found, fds.len()), (take, 1));
        assert_eq!(super::super::udp_address(fds[0].as_fd()), socket.local_addr().ok());
        drop(a);
        assert!(matches!(b.receive_within(Duration::from_secs(5)), Received::Gone));
    }

    #[test]
    fn what_breaks_the_rules_is_told() {
        let [a, b] = pair();
        let one = a.fd();
        let receiving = Message::Receiving.encode();
        let cases: [(&[u8], usize, &str); 5] = [
            (&[receiving[0], 9], 0, "unknown kind 9"),
            (&receiving, 1, "1 descriptors with a message of its kind"),
            (&receiving, 100, "more than 6 descriptors"),
            (&[1; MAX_LEN + 1], 0, "a message of more than"),
            (&[2; 9_000], 0, "a message of more than"),
        ];
        for (bytes, count, what) in cases {
            send_bytes(&a, bytes, &vec![one; count]);
            let Received::Hostile(told, fds) = b.receive() else { panic!("it is hostile: {what}") };
            assert!(told.contains(what), "{told}");
            assert_eq!(fds.len(), count, "who may wait closes them all");
        }
        a.send(&Message::Receiving, &[]).unwrap();
        assert!(matches!(b.receive(), Received::Message(Message::Receiving, _)));
    }
}
