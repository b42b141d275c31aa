//! The transports `xdp` and `xdp-l2`: bare AF_XDP on one interface, full frames with UDP or with a type of
//! our own. One pair of processes, each on its own interface: a socket owns its queue.

pub mod frame;
mod program;
mod socket;

use std::time::Duration;

use taut_perf_kit::clock::{left, now_ns};
use taut_perf_kit::{Options, Role, Stop};

use crate::udp::{ACTIVE, GREET_AGAIN, GREETING, HELLO, HERE, MEET, PASSIVE, SUBSCRIBER, first_port};
use crate::wire::Wire;
use frame::{BROADCAST, Ends, Framing, Mac};
use program::Program;
use socket::Socket;

/// So many frames go with one call of a publisher: the kernel takes 32 with each.
const BATCH: usize = 32;

/// No header is longer.
const HEADER: usize = 42;

/// A socket behind its program.
pub struct Xdp {
    /// Ends first: frames go to the kernel again before their socket is gone.
    _program: Program,
    socket: Socket,
    framing: Framing,
    ends: Ends,
    passive: bool,
    spin: bool,
    batch: usize,
    queued: usize,
}

impl Xdp {
    /// On the interface of this role, matched if it is one that starts traffic.
    pub fn open(options: &Options) -> Result<Xdp, Stop> {
        if options.remotes > 1 || options.index > 0 {
            return Err(Stop::Absent(
                "one socket owns the queue of its interface: one to one only".to_string(),
            ));
        }
        let framing = if options.transport == "xdp" { Framing::Udp } else { Framing::Own };
        let first = first_port(options.domain);
        let other = if matches!(options.role, Role::Pub | Role::Sub) { SUBSCRIBER } else { PASSIVE };
        let passive = matches!(options.role, Role::Pong | Role::Sub);
        let (own, other) = if passive { (other, ACTIVE) } else { (ACTIVE, other) };
        let interface = nix::net::if_::if_nametoindex(options.interface.as_str())?;
        let ends = Ends {
            to_mac: BROADCAST,
            from_mac: mac(&options.interface)?,
            to: (options.remote.parse()?, first + other),
            from: (options.address.parse()?, first + own),
        };
        let refused = |error| Stop::Absent(format!("no native AF_XDP on {}: {error}", options.interface));
        let mut program = Program::new(framing, ends.from.1).map_err(refused)?;
        let socket = Socket::open(interface)?;
        program.attach(socket.fd(), interface).map_err(refused)?;
        if socket.zero_copy() {
            eprintln!("floor: AF_XDP without copies");
        }
        let batch = if options.role == Role::Pub { BATCH } else { 1 };
        let spin = options.spin();
        let mut xdp = Xdp { _program: program, socket, framing, ends, passive, spin, batch, queued: 0 };
        if !passive {
            xdp.meet()?;
        }
        Ok(xdp)
    }

    /// Greets everybody until the other side answers.
    fn meet(&mut self) -> Result<(), Stop> {
        let end_ns = now_ns() + MEET.as_nanos() as u64;
        let mut last_ns = 0;
        while self.ends.to_mac == BROADCAST {
            let now = now_ns();
            if now > end_ns {
                return Err(Stop::Failed(format!("the other side did not answer within {MEET:?}")));
            }
            if now > last_ns + GREET_AGAIN.as_nanos() as u64 {
                last_ns = now;
                self.greet(HELLO)?;
            }
            self.socket.sleep(GREET_AGAIN)?;
            self.take(&mut [], &mut [0; GREETING])?;
        }
        Ok(())
    }

    fn greet(&mut self, word: u8) -> Result<(), Stop> {
        self.put(&[], &[word, 0])?;
        self.socket.kick()
    }

    fn put(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop> {
        let mut header = [0; HEADER];
        let header = &mut header[..self.framing.header()];
        self.framing.write(header, &self.ends, head.len() + body.len());
        self.socket.put([header, head, body])
    }

    /// The next piece that is not a greeting, if one is there.
    fn take(&mut self, head: &mut [u8], body: &mut [u8]) -> Result<Option<usize>, Stop> {
        let mut header = [0; HEADER];
        let header = &mut header[..self.framing.header()];
        let (head_len, room) = (head.len(), body.len());
        let Some(frame_len) = self.socket.take([header, head, body]) else { return Ok(None) };
        let (from, len) = self.framing.read(header);
        // A frame may be padded, but not be shorter than it says.
        let len = len.min(frame_len - header.len());
        if len != GREETING {
            return Ok(Some(len.min(head_len + room)));
        }
        let word = head.first().or(body.first()).copied();
        self.greeted(word, from)?;
        Ok(None)
    }

    fn greeted(&mut self, word: Option<u8>, from: Mac) -> Result<(), Stop> {
        if word == Some(if self.passive { HELLO } else { HERE }) {
            self.ends.to_mac = from;
            if self.passive {
                self.greet(HERE)?;
            }
        }
        Ok(())
    }
}

impl Wire for Xdp {
    fn room(&self) -> usize {
        self.framing.room()
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop> {
        self.put(head, body)?;
        self.queued += 1;
        if self.queued >= self.batch { self.push() } else { Ok(()) }
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.queued = 0;
        self.socket.kick()
    }

    fn receive(
        &mut self,
        head: &mut [u8],
        body: &mut [u8],
        at_most: Duration,
    ) -> Result<Option<usize>, Stop> {
        let taken = self.take(head, body)?;
        if taken.is_some() || self.spin || at_most.is_zero() {
            return Ok(taken);
        }
        let end_ns = now_ns() + at_most.as_nanos() as u64;
        loop {
            let remains = left(end_ns);
            self.socket.sleep(remains)?;
            let taken = self.take(head, body)?;
            if taken.is_some() || remains.is_zero() {
                return Ok(taken);
            }
        }
    }
}

impl Drop for Xdp {
    fn drop(&mut self) {
        if let Some(dropped) = self.socket.dropped() {
            eprintln!("floor: {dropped}");
        }
    }
}

fn mac(interface: &str) -> Result<Mac, Stop> {
    nix::ifaddrs::getifaddrs()?
        .filter(|address| address.interface_name == interface)
        .find_map(|address| address.address?.as_link_addr()?.addr())
        .ok_or_else(|| Stop::Absent(format!("{interface} has no address of Ethernet")))
}
