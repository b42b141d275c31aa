//! One participant: who it is, what it has, and what is owed to it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use taut_port_xdp::netd::{Connection, Granted, Layout, Message, Peer, UdpSocket, pass_rights, udp_socket};
use taut_xdp::{Error, Handover, Interface, Link, Membership, Mode};

use crate::ends::{Change, redirect};
use crate::interfaces::Addresses;
use crate::sockets::{Sockets, UdpEnd, find_at};

/// How long who has connected may take to say what it wants: it says so at once. Longer and a program that does nothing
/// holds a place for longer.
pub(crate) const TO_ASK: Duration = Duration::from_secs(2);
/// How long a queue is tried for: the kernel frees one some 40 ms after its socket was closed. Shorter and a restart
/// fails, longer and a queue that stays taken is told later.
pub(crate) const TO_BIND: Duration = Duration::from_secs(1);

/// A participant that is connected.
pub(crate) struct Client {
    pub connection: Connection,
    pub peer: Peer,
    pub state: State,
}

pub(crate) enum State {
    /// It has not said what it wants, since then or since it is heard again.
    New(Instant),
    /// Its queues are on their way to be free; those before this one are bound.
    Waits { share: Share, layout: Layout, handovers: Vec<Handover>, bound: usize },
    /// It has its queues.
    Has(Share),
}

/// What a participant has.
pub(crate) struct Share {
    /// By which rule.
    pub rule: usize,
    /// When it asked for it.
    pub since: Instant,
    /// What the interface is known by.
    pub interface: u64,
    pub layer: Mode,
    pub queues: Vec<u32>,
    /// The MTU that its frames were made for, in bytes.
    pub mtu: u32,
    pub proofs: Vec<Proof>,
    /// Where it receives.
    pub ends: Vec<SocketAddr>,
    /// Where it wants to.
    pub wanted: Vec<SocketAddr>,
    /// Without IP the interface takes what is sent to the groups for as long as this is there; over IP its sockets see to
    /// that.
    pub _groups: Option<Membership>,
}

impl Share {
    /// The ports that it has shown to be its own.
    pub fn ports(&self) -> Vec<u16> {
        ports(&self.proofs)
    }

    /// Do all its sockets still show what they did?
    ///
    /// *Errors*: one sentence: one does not.
    pub fn holds(&self, sockets: &Sockets) -> Result<(), String> {
        self.proofs.iter().try_for_each(|proof| proof.holds(sockets))
    }

    /// Has it receive at those of the ends that it wants which it may have, and at no others. Returns why not at all of them.
    pub fn follow(&mut self, link: &Link, addresses: &Addresses) -> Option<String> {
        let Interface { name, index, .. } = link.interface();
        let mut refused = None;
        let may = |end: &&SocketAddr| {
            let why = if !addresses.has(*index, end.ip()) {
                format!("{name} has no address {}: give it the address first", end.ip())
            } else if !self.proofs.iter().any(|proof| proof.covers(end, *index)) {
                format!("{end} is not shown to be the participant's: pass the socket that is bound there")
            } else {
                return true;
            };
            refused.get_or_insert(why);
            false
        };
        let allowed: Vec<SocketAddr> = self.wanted.iter().filter(may).copied().collect();
        let program = link.program();
        let (ends, why) = redirect(&self.queues, &self.ends, &allowed, |change, end, queue| {
            let done = match change {
                Change::Add => program.add_up_to(end, queue, self.mtu),
                Change::Remove => program.remove(end, queue).map(drop),
            };
            done.map_err(|error| error.to_string())
        });
        self.ends = ends;
        why.or(refused)
    }
}

/// A socket of UDP that shows whose a port is. It is kept, so that the port stays taken.
pub(crate) struct Proof {
    cookie: u64,
    pub end: UdpEnd,
    _socket: OwnedFd,
}

/// The ports of these.
pub(crate) fn ports(proofs: &[Proof]) -> Vec<u16> {
    proofs.iter().map(|proof| proof.end.address.port()).collect()
}

/// A socket of UDP that was passed.
pub(crate) struct Passed {
    pub socket: OwnedFd,
    pub known: UdpSocket,
}

/// Why a client is dropped.
pub(crate) enum End {
    /// It has ended.
    Gone,
    /// It was told why.
    Refused(String),
    /// It breaks the rules.
    Hostile(String),
    /// It is late, or does not read.
    Stalled(&'static str),
    /// What it had other rules do not allow; it was told why.
    Revoked(String),
    /// What it had of the interface is no more: it may ask for it again.
    Lost,
}

impl End {
    /// Why the client is dropped, if it does not know: else it would take netd for ended.
    pub fn untold(&self) -> Option<String> {
        match self {
            End::Gone | End::Refused(_) | End::Revoked(_) => None,
            End::Hostile(what) => Some(format!("dropped: {what}")),
            End::Stalled(what) => Some(format!("dropped: it {what}")),
            End::Lost => Some("the interface was removed, or the program detached from it: ask again".into()),
        }
    }
}

impl Client {
    /// What it has or is about to have.
    pub fn share(&self) -> Option<&Share> {
        match &self.state {
            State::New(_) => None,
            State::Waits { share, .. } | State::Has(share) => Some(share),
        }
    }

    /// The same, to be changed.
    pub fn share_mut(&mut self) -> Option<&mut Share> {
        match &mut self.state {
            State::New(_) => None,
            State::Waits { share, .. } | State::Has(share) => Some(share),
        }
    }

    /// Says something. Who does not read is dropped.
    pub fn tell(&self, message: &Message) -> Result<(), End> {
        sent(self.connection.send(message, &[]))
    }

    /// Has it say what it wants, with descriptors.
    pub fn welcome(&self) -> Result<(), End> {
        // Before Linux 6.16 it could pass them all along.
        let _ = pass_rights(self.connection.fd(), true);
        self.tell(&Message::Welcome)
    }

    /// Refuses what it wants, and with it all else.
    pub fn refuse(&self, why: String) -> End {
        // That it cannot be told changes nothing: it goes.
        let _ = self.connection.send(&Message::Refused { why: why.clone() }, &[]);
        End::Refused(why)
    }

    /// Takes back what it has, which other rules do not allow.
    pub fn revoke(&self, why: String) -> End {
        match self.refuse(why) {
            End::Refused(why) if matches!(self.state, State::Has(_)) => End::Revoked(why),
            end => end,
        }
    }

    /// Binds what is not bound yet, and passes it on once all is. Returns whether that was now.
    pub fn advance(&mut self, link: Option<&Link>, now: Instant) -> Result<bool, End> {
        let State::Waits { share, handovers, bound, .. } = &mut self.state else { return Ok(false) };
        let Some(link) = link else { return Err(End::Gone) };
        while let Some(next) = handovers.get(*bound) {
            match next.bind(link) {
                Ok(()) => *bound += 1,
                Err(Error::QueueTaken { .. }) if now < share.since + TO_BIND => return Ok(false),
                Err(error) => return Err(self.refuse(error.to_string())),
            }
        }
        self.pass_on(link)?;
        Ok(true)
    }

    /// Gives the sockets and their memory away.
    fn pass_on(&mut self, link: &Link) -> Result<(), End> {
        let State::Waits { share, layout, handovers, .. } =
            std::mem::replace(&mut self.state, State::New(Instant::now()))
        else {
            return Ok(());
        };
        let why = link.why_not_native().map(ToString::to_string).unwrap_or_default();
        let (interface, attached) = (link.interface().index, link.attached());
        self.state = State::Has(share);
        self.tell(&Message::Taken { interface, attached, why_not_native: why })?;
        for handover in &handovers {
            let granted = Granted { queue: handover.queue(), layout };
            sent(self.connection.send(&Message::Queue(granted), &handover.fds()))?;
        }
        Ok(())
    }
}

fn sent(result: Result<(), Errno>) -> Result<(), End> {
    match result {
        Ok(()) => Ok(()),
        Err(Errno::PIPE | Errno::CONNRESET) => Err(End::Gone),
        Err(_) => Err(End::Stalled("does not read what it is told")),
    }
}

impl Passed {
    /// Looks what a descriptor is.
    ///
    /// *Errors*: the descriptor again, if it is no socket of UDP.
    pub fn of(socket: OwnedFd) -> Result<Passed, OwnedFd> {
        match udp_socket(socket.as_fd()) {
            Some(known) => Ok(Passed { socket, known }),
            None => Err(socket),
        }
    }
}

impl Proof {
    /// Looks what a socket shows.
    ///
    /// *Errors*: one sentence: it shows nothing.
    pub fn of(passed: Passed, sockets: &Sockets) -> Result<Proof, String> {
        let Passed { socket, known } = passed;
        let end = sockets.find(known.cookie).ok_or("the socket is bound to no port: bind it first")?;
        let proof = Proof { cookie: known.cookie, end, _socket: socket };
        proof.holds(sockets).map(|()| proof)
    }

    /// Does it still show what it did? A socket that the kernel chose a port for can give it up, and who has it can let
    /// others share the port.
    ///
    /// *Errors*: one sentence: it does not.
    pub fn holds(&self, sockets: &Sockets) -> Result<(), String> {
        // That it is not listed shows nothing: others can have the kernel leave it out. Nor does it if the kernel cannot
        // tell, as it may when next it is looked.
        let asked = || find_at(self.cookie, &self.end).unwrap_or(Some(self.end));
        if sockets.find(self.cookie).or_else(asked) != Some(self.end) {
            return Err("it has given up the port that it had shown".into());
        }
        match sockets.shared_with(&self.end) {
            Some(uid) => Err(format!(
                "port {} is shared with user {uid}: bind it without SO_REUSEADDR and SO_REUSEPORT",
                self.end.address.port()
            )),
            None => Ok(()),
        }
    }

    /// Does it show that what comes there by an interface is its owner's?
    pub fn covers(&self, end: &SocketAddr, interface: u32) -> bool {
        let own = self.end.address;
        let is_everywhere = match own.ip() {
            IpAddr::V4(v4) => v4.is_unspecified() && end.is_ipv4(),
            IpAddr::V6(v6) => v6.is_unspecified() && end.is_ipv6(),
        };
        own.port() == end.port()
            && (is_everywhere || own.ip() == end.ip())
            && [0, interface].contains(&self.end.interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(address: &str) -> (Proof, u16) {
        let socket = std::net::UdpSocket::bind(address).unwrap();
        let port = socket.local_addr().unwrap().port();
        let passed = Passed::of(socket.into()).ok().unwrap();
        (Proof::of(passed, &Sockets::read().unwrap()).unwrap(), port)
    }

    /// The list of all leaves out a socket that is there when others are closed while it is read.
    #[test]
    fn who_is_not_listed_has_not_given_up_its_port() {
        let unbound: OwnedFd =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .unwrap();
        let socket = std::net::UdpSocket::from(unbound);
        socket.connect("127.0.0.1:9").unwrap();
        let passed = Passed::of(socket.try_clone().unwrap().into()).ok().unwrap();
        let proof = Proof::of(passed, &Sockets::read().unwrap()).unwrap();
        assert_eq!(proof.holds(&Sockets::default()), Ok(()));
        rustix::net::connect_unspec(&socket).unwrap();
        let told = proof.holds(&Sockets::default()).unwrap_err();
        assert!(told.contains("given up the port"), "{told}");
    }

    #[test]
    fn what_a_socket_shows() {
        let covers = |proof: &Proof, address: &str, port| {
            proof.covers(&SocketAddr::new(address.parse().unwrap(), port), 3)
        };
        let (everywhere, port) = proof("0.0.0.0:0");
        assert_eq!(everywhere.holds(&Sockets::read().unwrap()), Ok(()));
        assert!(covers(&everywhere, "10.0.0.1", port));
        assert!(!covers(&everywhere, "10.0.0.1", port ^ 1), "another port");
        assert!(!covers(&everywhere, "fd00::1", port), "another network");
        let (there, port) = proof("127.0.0.1:0");
        assert!(covers(&there, "127.0.0.1", port) && !covers(&there, "10.0.0.1", port));
        let mut bound = everywhere;
        for (interface, is_covered) in [(3, true), (4, false)] {
            bound.end.interface = interface;
            assert_eq!(covers(&bound, "10.0.0.1", bound.end.address.port()), is_covered);
        }
        let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(Passed::of(stream.into()).is_err());
    }
}
