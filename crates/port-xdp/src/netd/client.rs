//! The participant's side: has netd open an interface, and tells it where it receives.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use taut_xdp::{AttachMode, Interface};

use super::{Connection, MAX_PROOFS, Message, Netd, Received, SOCKET, udp_address};
use crate::XdpConfig;
use crate::queue::Queue;

/// How long netd may take to answer. It tries for a queue for a second, and a driver may set its queues up anew before,
/// which takes seconds. Longer holds up who makes a participant when netd has stopped.
const ANSWER: Duration = Duration::from_secs(15);
/// Signals that may come in one wait, each of which begins it anew.
const SIGNALS: u32 = 100;

/// What a participant has by netd.
pub(crate) struct Client {
    connection: Connection,
    interface: Interface,
    attached: AttachMode,
    why_not_native: String,
}

/// What has been heard of netd.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Heard {
    /// So many requests were refused.
    pub refused: u64,
    /// It has ended, and its program with it.
    pub is_gone: bool,
}

/// A connection to netd, if the interface is to be opened by it.
pub(crate) fn connect(choice: &Netd) -> Result<Option<Connection>, String> {
    match choice {
        Netd::Never => Ok(None),
        // A name without an owner is left behind by one that was killed.
        Netd::Auto => match Connection::connect(Path::new(SOCKET)) {
            Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(None),
            found => found.map(Some).map_err(|errno| no_answer(Path::new(SOCKET), errno)),
        },
        Netd::At(path) => Connection::connect(path).map(Some).map_err(|errno| no_answer(path, errno)),
    }
}

fn no_answer(path: &Path, errno: Errno) -> String {
    let path = path.display();
    format!(
        "`taut netd` does not answer at {path}: {errno}; start it there, or set xdp_netd to \"off\" and be root"
    )
}

impl Client {
    /// Has netd open the queues, and fills them with frames to receive into. They receive after
    /// [`Client::receive_first`].
    pub(crate) fn take(
        connection: Connection,
        config: &XdpConfig,
        interface: Interface,
        ends: &[SocketAddr],
        sockets: &[BorrowedFd<'_>],
    ) -> Result<(Client, Vec<Queue>), String> {
        let wanted = if config.queues.is_empty() { vec![0] } else { config.queues.clone() };
        let take = Message::Take {
            interface: interface.name.clone(),
            queues: wanted.clone(),
            attach: config.attach,
            bind: config.bind,
        };
        let Message::Welcome = answer(&connection)?.0 else { return Err(confused()) };
        match connection.send(&take, &proofs(ends, sockets)) {
            // It has refused already, and says why.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(errno) => {
                return Err(format!("netd cannot be asked: {errno}; use UDP as long as this lasts"));
            }
        }
        let Message::Taken { interface: index, attached, why_not_native } = answer(&connection)?.0 else {
            return Err(confused());
        };
        if index != interface.index {
            return Err("netd is in another network namespace: start it where the participant is".into());
        }
        let queues = wanted.iter().map(|_| queue(&connection, &interface)).collect::<Result<_, _>>()?;
        Ok((Client { connection, interface, attached, why_not_native }, queues))
    }

    /// Receives at these addresses and ports from now on, and waits until it is so.
    pub(crate) fn receive_first(&self, ends: &[SocketAddr]) -> Result<(), String> {
        if !self.receive(ends) {
            return Err("netd does not read what it is told: start it again".into());
        }
        match answer(&self.connection)?.0 {
            Message::Receiving => Ok(()),
            _ => Err(confused()),
        }
    }

    /// The same without a wait: the answer is heard later. Whether netd was told.
    pub(crate) fn receive(&self, ends: &[SocketAddr]) -> bool {
        self.connection.send(&Message::Receive { ends: ends.to_vec() }, &[]).is_ok()
    }

    /// Takes what netd has said.
    pub(crate) fn hear(&self) -> Heard {
        let mut heard = Heard::default();
        loop {
            match self.connection.receive() {
                Received::Empty => return heard,
                Received::Message(Message::Receiving, _) => {}
                Received::Message(Message::Refused { .. }, _) => heard.refused += 1,
                Received::Gone | Received::Message(..) | Received::Hostile(..) => {
                    heard.is_gone = true;
                    return heard;
                }
            }
        }
    }

    /// Readable when there is something to hear.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(crate) fn attached(&self) -> AttachMode {
        self.attached
    }

    pub(crate) fn why_not_native(&self) -> Option<String> {
        (!self.why_not_native.is_empty()).then(|| self.why_not_native.clone())
    }
}

/// Those sockets that are bound to a port of the ends: one of IPv4 and one of IPv6.
fn proofs<'a>(ends: &[SocketAddr], sockets: &[BorrowedFd<'a>]) -> Vec<BorrowedFd<'a>> {
    let proves = |fd: &&BorrowedFd<'a>| {
        udp_address(**fd).is_some_and(|own| {
            ends.iter().any(|end| end.port() == own.port() && end.is_ipv4() == own.is_ipv4())
        })
    };
    sockets.iter().filter(proves).take(MAX_PROOFS).copied().collect()
}

/// The next thing that netd says, if it is no refusal.
fn answer(connection: &Connection) -> Result<(Message, Vec<OwnedFd>), String> {
    answer_within(connection, ANSWER)
}

fn answer_within(connection: &Connection, at_most: Duration) -> Result<(Message, Vec<OwnedFd>), String> {
    for _ in 0..SIGNALS {
        let in_time = connection.wait(at_most);
        match connection.receive() {
            Received::Empty if in_time => {}
            Received::Empty => break,
            Received::Message(Message::Refused { why }, _) => return Err(why),
            Received::Message(message, fds) => return Ok((message, fds)),
            Received::Gone => return Err("netd has ended meanwhile: start it again".into()),
            Received::Hostile(what, _) => return Err(format!("netd says {what}: use one version of Taut")),
        }
    }
    Err(format!("netd has not answered within {at_most:?}: look at its log"))
}

fn queue(connection: &Connection, interface: &Interface) -> Result<Queue, String> {
    let (Message::Queue(granted), fds) = answer(connection)? else { return Err(confused()) };
    let [socket, frames] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| confused())?;
    Queue::adopt(granted, socket, frames, interface).map_err(|error| error.to_string())
}

fn confused() -> String {
    "netd has answered something else than it was asked: use one version of Taut".into()
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_netd_that_hangs_is_waited_for_once() {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (connection, at_most) = (Connection::of(own), Duration::from_millis(50));
        let begun = std::time::Instant::now();
        let text = answer_within(&connection, at_most).unwrap_err();
        assert!(text.contains("not answered within 50ms"), "{text}");
        assert!((1..100).contains(&(begun.elapsed().as_millis() / 50)), "{:?}", begun.elapsed());
        drop(other);
        assert!(answer_within(&connection, at_most).unwrap_err().contains("has ended"));
    }
}
