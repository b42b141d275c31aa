//! The transport `udp`: bare UDP sockets, connected, so that no send looks up a route.
//!
//! Owns the ports, who is connected to whom, and the waits. How a socket is made and greets is [`setup`],
//! what is sent and received many at once [`batch`].

pub mod batch;
pub mod setup;

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::sys::uio::{readv, writev};
use taut_perf_kit::clock::{left, now_ns};
use taut_perf_kit::{Options, Role, Stop};

use crate::wire::Wire;
use batch::{Incoming, Outgoing};
use setup::{bound, greet, group, group_reader};

/// The most that UDP over IPv4 carries.
pub const DATAGRAM: usize = 65_507;

/// A blocking receive comes back this often to look at its limit; a role waits for 100 ms and more.
const TICK: Duration = Duration::from_millis(50);

/// Greetings are repeated this often until they are answered.
pub const GREET_AGAIN: Duration = Duration::from_millis(10);

/// The driver gives up long before; without a driver nobody should wait for ever.
pub const MEET: Duration = Duration::from_secs(60);

/// A send that finds the buffer full tries for so long.
const SEND_WITHIN: Duration = Duration::from_secs(1);

/// Greeting and answer are datagrams of this length, which no sample has.
pub const GREETING: usize = 2;
/// The word of who greets.
pub const HELLO: u8 = 1;
/// The word of who answers.
pub const HERE: u8 = 2;

/// Who starts traffic has the first port of the domain.
pub const ACTIVE: u16 = 0;
/// Who answers it.
pub const PASSIVE: u16 = 1;
/// Multicast.
const GROUP: u16 = 2;
/// The first subscriber.
pub const SUBSCRIBER: u16 = 3;

/// The ports of a domain are 50, and the last is that of the sink.
const MOST_SUBSCRIBERS: usize = 46;

/// The first of this domain's ports.
pub fn first_port(domain: u32) -> u16 {
    20_000 + 50 * domain.min(800) as u16
}

/// Sockets to one or more others, and one to receive from.
pub struct Udp {
    sockets: Vec<UdpSocket>,
    /// Does the first greeting decide who the other side is?
    passive: bool,
    connected: bool,
    index: u8,
    spin: bool,
    outgoing: Outgoing,
    incoming: Incoming,
}

impl Udp {
    /// The sockets of this role, matched if it is one that starts traffic.
    pub fn open(options: &Options, out_len: usize, in_len: usize) -> Result<Udp, Stop> {
        let active = matches!(options.role, Role::Ping | Role::Pub);
        let many = matches!(options.role, Role::Pub | Role::Sub);
        if many && options.remotes.max(options.index + 1) > MOST_SUBSCRIBERS {
            return Err(Stop::Absent(format!("only {MOST_SUBSCRIBERS} ports for subscribers")));
        }
        let variant = if many { options.variant.as_str() } else { "" };
        let mut udp = Udp {
            sockets: Vec::new(),
            passive: !active,
            connected: false,
            index: options.index as u8,
            spin: options.spin(),
            outgoing: Outgoing::new(variant, out_len),
            incoming: Incoming::new(variant, in_len),
        };
        let own: Ipv4Addr = options.address.parse()?;
        let first = first_port(options.domain);
        match options.role {
            Role::Sub if options.multicast() => udp.sockets.push(group_reader(own, options)?),
            Role::Sub => udp.sockets.push(bound(own, first + SUBSCRIBER + options.index as u16)?),
            Role::Pong => udp.sockets.push(bound(own, first + PASSIVE)?),
            Role::Pub if options.multicast() => udp.meet_group(own, options)?,
            Role::Pub => {
                for index in 0..options.remotes as u16 {
                    udp.meet(own, first + SUBSCRIBER + index, options)?;
                }
            }
            _ => udp.meet(own, first + PASSIVE, options)?,
        }
        for socket in &udp.sockets {
            socket.set_nonblocking(options.spin() && !many)?;
            socket.set_read_timeout(Some(TICK))?;
            udp.incoming.prepare(socket)?;
            if active {
                udp.outgoing.prepare(socket)?;
            }
        }
        if options.spin() && options.role == Role::Sub {
            udp.sockets[0].set_nonblocking(true)?;
        }
        Ok(udp)
    }

    /// One more socket, connected to the other side's port once it has answered.
    fn meet(&mut self, own: Ipv4Addr, port: u16, options: &Options) -> Result<(), Stop> {
        let socket = bound(own, first_port(options.domain) + ACTIVE)?;
        socket.connect(SocketAddrV4::new(options.remote.parse()?, port))?;
        greet(&socket, 1, |socket, hello| socket.send(hello))?;
        self.sockets.push(socket);
        Ok(())
    }

    /// One socket connected to the group, once all subscribers have answered.
    fn meet_group(&mut self, own: Ipv4Addr, options: &Options) -> Result<(), Stop> {
        let socket = bound(own, first_port(options.domain) + ACTIVE)?;
        let all = group(options);
        socket2::SockRef::from(&socket).set_multicast_if_v4(&own)?;
        greet(&socket, options.remotes, |socket, hello| socket.send_to(hello, all))?;
        socket.connect(all)?;
        self.sockets.push(socket);
        Ok(())
    }

    /// Answers a greeting; the first decides who answers to samples go to.
    fn greeted(&mut self, greeting: &[u8]) -> std::io::Result<()> {
        if greeting.first() == Some(&HELLO) && self.passive && self.connected {
            self.sockets[0].send(&[HERE, self.index])?;
        }
        Ok(())
    }

    /// Waits for the first greeting, whose sender must be known.
    fn wait_first(&mut self, at_most: Duration) -> Result<bool, Stop> {
        let mut greeting = [0; GREETING];
        // A look into a blocking socket must not block.
        if !self.spin && !readable(&self.sockets[0], at_most)? {
            return Ok(false);
        }
        let from = match self.sockets[0].recv_from(&mut greeting) {
            Ok((GREETING, from)) if greeting[0] == HELLO => from,
            Ok(_) => return Ok(false),
            Err(error) if nothing_came(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let socket = &self.sockets[0];
        socket.send_to(&[HERE, self.index], from)?;
        socket.connect(from)?;
        self.connected = true;
        Ok(true)
    }

    /// One receive call; `None` when nothing is there or the tick is over.
    fn receive_once(&mut self, head: &mut [u8], body: &mut [u8]) -> Result<Option<usize>, Stop> {
        let socket = &self.sockets[0];
        let got = if head.is_empty() {
            self.incoming.receive(socket, body)
        } else {
            readv(socket, &mut [IoSliceMut::new(head), IoSliceMut::new(body)]).map_err(std::io::Error::from)
        };
        match got {
            Ok(GREETING) => {
                let greeting = if head.is_empty() { &body[..] } else { &head[..] };
                let greeting = [greeting[0], greeting[1]];
                self.greeted(&greeting)?;
                Ok(None)
            }
            Ok(len) => Ok(Some(len)),
            Err(error) if nothing_came(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Wire for Udp {
    fn room(&self) -> usize {
        DATAGRAM
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop> {
        if head.is_empty() {
            return Ok(self.outgoing.send(&self.sockets, body)?);
        }
        for socket in &self.sockets {
            persist(|| Ok(writev(socket, &[IoSlice::new(head), IoSlice::new(body)])?))?;
        }
        Ok(())
    }

    fn push(&mut self) -> Result<(), Stop> {
        Ok(self.outgoing.push(&self.sockets)?)
    }

    fn receive(
        &mut self,
        head: &mut [u8],
        body: &mut [u8],
        at_most: Duration,
    ) -> Result<Option<usize>, Stop> {
        if self.incoming.has_more() {
            return self.receive_once(head, body);
        }
        if self.passive && !self.connected && !self.wait_first(at_most)? {
            return Ok(None);
        }
        if self.spin {
            return self.receive_once(head, body);
        }
        let end_ns = now_ns() + at_most.as_nanos() as u64;
        loop {
            let remains = left(end_ns);
            // The kernel's limit of a receive is as coarse as its tick: short waits poll first.
            if remains < TICK && !readable(&self.sockets[0], remains)? {
                return Ok(None);
            }
            if let Some(len) = self.receive_once(head, body)? {
                return Ok(Some(len));
            }
            if now_ns() >= end_ns {
                return Ok(None);
            }
        }
    }
}

/// Nothing is there yet, the time is over, a signal came, or the other side was not there a moment ago.
fn nothing_came(error: &std::io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

/// Repeats a send that finds no room.
pub fn persist(mut send: impl FnMut() -> std::io::Result<usize>) -> std::io::Result<()> {
    let mut end_ns = 0;
    loop {
        match send() {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                let now = now_ns();
                if end_ns == 0 {
                    end_ns = now + SEND_WITHIN.as_nanos() as u64;
                }
                if now > end_ns {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn readable(socket: &UdpSocket, at_most: Duration) -> Result<bool, Stop> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut fds, Some(TimeSpec::from_duration(at_most)), None) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
