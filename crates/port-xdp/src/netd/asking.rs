//! A request to netd for queues, as far as it has been answered.
//!
//! Waits for nothing: whoever may wait does so at the connection and asks again, who may not is told by it. Owns what has
//! been passed so far; netd has it all back when this is dropped.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use taut_xdp::{AttachMode, Interface, Mode};

use super::{
    CROWDED, Client, Connection, Granted, MAX_PROOFS, MAX_QUEUES, Message, Netd, Received, SOCKET,
    udp_address,
};
use crate::XdpConfig;
use crate::queue::Queue;

/// The request.
pub(crate) struct Asking {
    connection: Connection,
    interface: Interface,
    stage: Stage,
}

/// How far it has come.
enum Stage {
    /// Whether it is welcome is not known; then it says this.
    Connected { take: Message, proofs: Vec<OwnedFd>, queues: usize },
    /// It has said what it wants.
    Asked { queues: usize },
    /// It is allowed, and gets so many more queues.
    Taken { attached: AttachMode, why_not_native: String, more: usize, passed: Vec<(Granted, [OwnedFd; 2])> },
}

/// Where netd listens, if it may be asked at all.
fn place(choice: &Netd) -> Option<PathBuf> {
    match choice {
        Netd::Never => None,
        Netd::Auto => Some(SOCKET.into()),
        Netd::At(path) => Some(path.clone()),
    }
}

/// A connection to netd, if the interface is to be opened by it.
pub(crate) fn connect(choice: &Netd) -> Result<Option<Connection>, String> {
    connect_by(choice, Connection::connect)
}

/// The same without a wait for one that has no room.
pub(crate) fn connect_at_once(choice: &Netd) -> Result<Option<Connection>, String> {
    connect_by(choice, Connection::connect_at_once)
}

fn connect_by(
    choice: &Netd,
    connect: fn(&Path) -> Result<Connection, Errno>,
) -> Result<Option<Connection>, String> {
    let Some(path) = place(choice) else { return Ok(None) };
    match connect(&path) {
        // A name without an owner is left behind by one that was killed.
        Err(Errno::NOENT | Errno::CONNREFUSED) if *choice == Netd::Auto => Ok(None),
        found => found.map(Some).map_err(|errno| no_answer(&path, errno)),
    }
}

fn no_answer(path: &Path, errno: Errno) -> String {
    let path = path.display();
    format!(
        "`taut netd` does not answer at {path}: {errno}; start it there, or set xdp_netd to \"off\" and be root"
    )
}

impl Asking {
    /// Over a connection that was just made, with those of these sockets that prove whose the ports of the ends are: none
    /// without IP, where there are no ends.
    pub(crate) fn new(
        connection: Connection,
        config: &XdpConfig,
        (interface, layer): (Interface, Mode),
        ends: &[SocketAddr],
        sockets: &[BorrowedFd<'_>],
    ) -> Result<Asking, String> {
        let wanted = config.numbers().to_vec();
        let queues = wanted.len();
        // A request has room for no more, and those beyond would be waited for in vain.
        if queues > MAX_QUEUES {
            return Err(format!(
                "xdp_queues names {queues} queues, and netd gives {MAX_QUEUES} to a participant: name fewer"
            ));
        }
        let take = Message::Take {
            interface: interface.name.clone(),
            layer,
            queues: wanted,
            attach: config.attach,
            bind: config.bind,
        };
        let proofs = proofs(ends, sockets);
        let proofs: Result<Vec<OwnedFd>, _> = proofs.iter().map(BorrowedFd::try_clone_to_owned).collect();
        let proofs =
            proofs.map_err(|error| format!("dup: {error}; raise the limit of open files (`ulimit -n`)"))?;
        Ok(Asking { connection, interface, stage: Stage::Connected { take, proofs, queues } })
    }

    /// Readable when netd has answered: then call [`Asking::hear`].
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes what netd has answered. Returns whether that is all. *Cost*: a system call for each answer.
    ///
    /// *Errors*: one sentence: it refuses, or has ended.
    pub(crate) fn hear(&mut self) -> Result<bool, String> {
        loop {
            match self.connection.receive() {
                Received::Empty => return Ok(self.is_answered()),
                Received::Message(Message::Refused { why }, _) => return Err(why),
                Received::Message(message, fds) => self.go_on(message, fds)?,
                Received::Gone => return Err("netd has ended meanwhile: start it again".into()),
                Received::Crowded(_) => return Err(CROWDED.into()),
                Received::Hostile(what, _) => {
                    return Err(format!("netd says {what}: use one version of Taut"));
                }
            }
            if self.is_answered() {
                return Ok(true);
            }
        }
    }

    /// Has netd answered all of it?
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Taken { more: 0, .. })
    }

    fn go_on(&mut self, message: Message, fds: Vec<OwnedFd>) -> Result<(), String> {
        let Asking { connection, interface, stage } = self;
        match (message, stage) {
            (Message::Welcome, Stage::Connected { take, proofs, queues }) => {
                let proofs: Vec<BorrowedFd<'_>> = proofs.iter().map(AsFd::as_fd).collect();
                match connection.send(take, &proofs) {
                    // It has refused already, and says why.
                    Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
                    Err(errno) => {
                        return Err(format!("netd cannot be asked: {errno}; use UDP as long as this lasts"));
                    }
                }
                self.stage = Stage::Asked { queues: *queues };
            }
            (Message::Taken { interface: index, attached, why_not_native }, Stage::Asked { queues }) => {
                if index != interface.index {
                    let text =
                        "netd is in another network namespace: start it where the participant is".to_owned();
                    return Err(text);
                }
                let (more, passed) = (*queues, Vec::new());
                self.stage = Stage::Taken { attached, why_not_native, more, passed };
            }
            (Message::Queue(granted), Stage::Taken { more, passed, .. }) if *more > 0 => {
                passed.push((granted, <[OwnedFd; 2]>::try_from(fds).map_err(|_| confused())?));
                *more -= 1;
            }
            _ => return Err(confused()),
        }
        Ok(())
    }

    /// What was asked for. *Cost*: it maps the frames, 28 MiB for each queue.
    ///
    /// *Errors*: one sentence: not all of it has been passed, or it is not what it should be.
    pub(crate) fn finish(self) -> Result<(Client, Vec<Queue>), String> {
        let Stage::Taken { attached, why_not_native, more: 0, passed } = self.stage else {
            return Err(confused());
        };
        let queues = passed.into_iter().map(|(granted, [socket, frames])| {
            Queue::adopt(granted, socket, frames, &self.interface).map_err(|error| error.to_string())
        });
        let queues = queues.collect::<Result<_, _>>()?;
        Ok((Client::new(self.connection, attached, why_not_native), queues))
    }
}

/// Those sockets that are bound to a port of the ends, of IPv4 and of IPv6.
fn proofs<'a>(ends: &[SocketAddr], sockets: &[BorrowedFd<'a>]) -> Vec<BorrowedFd<'a>> {
    let proves = |fd: &&BorrowedFd<'a>| {
        udp_address(**fd).is_some_and(|own| {
            ends.iter().any(|end| end.port() == own.port() && end.is_ipv4() == own.is_ipv4())
        })
    };
    sockets.iter().filter(proves).take(MAX_PROOFS).copied().collect()
}

pub(super) fn confused() -> String {
    "netd has answered something else than it was asked: use one version of Taut".into()
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    /// What does not go into a request, nobody answers.
    #[test]
    fn more_queues_than_netd_gives_are_refused_at_once() {
        let (own, _netd) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let ask = |count: u32| {
            let connection = Connection::of(own.try_clone().unwrap());
            let config = XdpConfig { queues: (0..count).collect(), ..XdpConfig::default() };
            let of = (Interface::named("lo").unwrap(), Mode::L3);
            Asking::new(connection, &config, of, &[], &[]).err()
        };
        assert_eq!(ask(MAX_QUEUES as u32), None);
        let told = ask(MAX_QUEUES as u32 + 1).unwrap();
        assert_eq!(told, "xdp_queues names 17 queues, and netd gives 16 to a participant: name fewer");
    }

    /// Whatever its messages have become since, or were before.
    #[test]
    fn a_netd_of_another_version() {
        let (own, netd) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let of = (Interface::named("lo").unwrap(), Mode::L2);
        let mut asking = Asking::new(Connection::of(own), &XdpConfig::default(), of, &[], &[]).unwrap();
        let welcome = [3, 7];
        rustix::net::send(&netd, &welcome, rustix::net::SendFlags::empty()).unwrap();
        let told = asking.hear().unwrap_err();
        assert!(told.starts_with("netd says version 3 of what netd and participants say"), "{told}");
        assert!(told.ends_with("use one version of Taut"), "{told}");
    }
}
