//! Which hosts are reached by our interface, and by which address of Ethernet.
//!
//! The kernel knows: it is asked for its routes and neighbours, and tells when they change (rtnetlink(7)). It asks
//! the network too, by ARP and neighbour discovery; here is only said whom it is to ask for. Nobody who sends waits
//! for an answer: until there is one the kernel's own sockets are the way.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use nix::sys::socket::SockProtocol;
use taut_base::{Duration, Time};
use taut_netlink::{Attributes, CREATE, Heard, Socket, Watch, attribute, half, word};

use crate::frame::{Mac, Way};

/// What is listened for.
const GROUPS: i32 = libc::RTMGRP_NEIGH | libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;

/// Hosts that are known. A hundred participants have as many; more, as peers may announce what they like, go by the
/// kernel.
const KNOWN: usize = 4_096;
/// Hosts that are asked for in one step, with three questions each: a write waits for the step. Higher holds it up for
/// longer.
const HOSTS: usize = 1;
/// The kernel takes an address that it has not heard from for half a minute or so for doubtful, and would ask before
/// it sends. So often it is told to, while somebody is sent to. Lower asks more, higher finds out later that an address
/// has moved.
const REFRESH: Duration = Duration::from_secs(20);
/// How long until it is asked again for an address that is not known yet. The kernel tells once it is; this is for
/// what it does not tell, or too late.
const AGAIN: Duration = Duration::from_secs(1);

// linux/rtnetlink.h and linux/neighbour.h
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
/// Before the attributes: `ndmsg` and `rtmsg` are of the same length.
const FIXED: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NTF_USE: u8 = 1;
/// An address is known: reachable, stale, delay, probe, permanent.
const KNOWN_STATES: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTN_UNICAST: u8 = 1;

/// What is known of a host.
struct Host {
    /// Who is next on the way to it, if our interface is the way.
    hop: Option<(IpAddr, IpAddr)>,
    /// The way, once the address of Ethernet is known.
    way: Option<Way>,
    /// When to ask again.
    ask_at: Time,
    /// Was it sent to since it was last asked?
    used: bool,
}

/// The hosts that are sent to.
pub(crate) struct Hosts {
    interface: u32,
    watch: Watch,
    socket: Socket,
    known: BTreeMap<IpAddr, Host>,
    /// When the first of them is to be asked for.
    ask_at: Time,
}

impl Hosts {
    /// Of the interface with this number.
    pub(crate) fn open(interface: u32) -> nix::Result<Hosts> {
        let (watch, socket) = (Watch::open(GROUPS)?, Socket::open(SockProtocol::NetlinkRoute)?);
        Ok(Hosts { interface, watch, socket, known: BTreeMap::new(), ask_at: Time::NEVER })
    }

    /// Readable when the kernel tells something: then call [`Hosts::hear`].
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// The way to a host, if it is known. Else the kernel is the way, and is asked soon.
    #[inline]
    pub(crate) fn way(&mut self, to: IpAddr) -> Option<Way> {
        match self.known.get_mut(&to) {
            Some(host) => {
                host.used = true;
                host.way
            }
            None => {
                self.want(to);
                None
            }
        }
    }

    #[cold]
    fn want(&mut self, to: IpAddr) {
        if self.known.len() < KNOWN {
            self.known.insert(to, Host { hop: None, way: None, ask_at: Time(0), used: true });
            self.ask_at = Time(0);
        }
    }

    /// When to call [`Hosts::ask`].
    pub(crate) fn next_timeout(&self) -> Time {
        self.ask_at
    }

    /// Asks the kernel for some of those whose time it is; forgets who is not sent to any more.
    ///
    /// *Cost*: two system calls for each question, three questions for each host at most, and one host. The kernel may have a
    /// question wait for other changes of networks.
    pub(crate) fn ask(&mut self, now: Time) {
        if now < self.ask_at {
            return;
        }
        self.known.retain(|_, host| host.ask_at > now || host.used);
        let due = self.known.iter().filter(|(_, host)| host.ask_at <= now).map(|(to, _)| *to);
        let due: Vec<IpAddr> = due.take(HOSTS).collect();
        for to in due {
            let found = self.find(to);
            if let Some(host) = self.known.get_mut(&to) {
                (host.hop, host.way) = found;
                let again = if host.hop.is_some() && host.way.is_none() { AGAIN } else { REFRESH };
                (host.ask_at, host.used) = (now + again, false);
            }
        }
        self.ask_at = self.known.values().map(|host| host.ask_at).min().unwrap_or(Time::NEVER);
    }

    /// Who is next on the way to a host, from which address of ours, and the way if it is known.
    fn find(&mut self, to: IpAddr) -> (Option<(IpAddr, IpAddr)>, Option<Way>) {
        let Some((hop, from)) = self.route(to) else { return (None, None) };
        // So that the kernel finds out, or finds out whether it is still so.
        let _ = self.neighbour(NEW_NEIGHBOUR, CREATE, NTF_USE, hop);
        let found = self.neighbour(GET_NEIGHBOUR, 0, 0, hop).unwrap_or_default();
        let mac = found.first().and_then(|body| Neighbour::read(body)).and_then(|neighbour| neighbour.mac);
        (Some((hop, from)), mac.map(|to| Way { to, from }))
    }

    /// The next hop of a route by our interface, and our address on it.
    fn route(&mut self, to: IpAddr) -> Option<(IpAddr, IpAddr)> {
        let (family, bytes) = of(to);
        let mut body = vec![0; FIXED];
        if let [first, len, ..] = &mut body[..] {
            (*first, *len) = (family, 8 * bytes.len() as u8);
        }
        body.extend(Attributes::default().with(RTA_DST, &bytes).0);
        let answers = self.socket.request(GET_ROUTE, 0, &body).ok()?;
        let answer = answers.first()?;
        let attributes = answer.get(FIXED..)?;
        let by = attribute(attributes, RTA_OIF).and_then(|value| word(value, 0))?;
        if answer.get(7) != Some(&RTN_UNICAST) || by != self.interface {
            return None;
        }
        let hop = attribute(attributes, RTA_GATEWAY).map_or(Some(to), address)?;
        // Without a preferred address of ours it is not known here which one the other side would answer to.
        Some((hop, attribute(attributes, RTA_PREFSRC).and_then(address)?))
    }

    /// A request about a neighbour.
    fn neighbour(&mut self, kind: u16, how: u16, flags: u8, hop: IpAddr) -> nix::Result<Vec<Vec<u8>>> {
        let (family, bytes) = of(hop);
        let mut body = vec![family, 0, 0, 0];
        body.extend(self.interface.to_ne_bytes());
        body.extend([0, 0, flags, 0]);
        body.extend(Attributes::default().with(NDA_DST, &bytes).0);
        self.socket.request(kind, how, &body)
    }

    /// Takes what the kernel has told.
    pub(crate) fn hear(&mut self) {
        let Hosts { interface, watch, known, ask_at, .. } = self;
        let mut ask_all = |known: &mut BTreeMap<IpAddr, Host>| {
            known.values_mut().for_each(|host| host.ask_at = Time(0));
            *ask_at = if known.is_empty() { *ask_at } else { Time(0) };
        };
        watch.hear(|heard| match heard {
            Heard::TooMuch | Heard::Message(NEW_ROUTE | DELETE_ROUTE, _) => ask_all(known),
            Heard::Message(kind @ (NEW_NEIGHBOUR | DELETE_NEIGHBOUR), body) => {
                let Some(told) = Neighbour::read(body).filter(|told| told.interface == *interface) else {
                    return;
                };
                let mac = told.mac.filter(|_| kind == NEW_NEIGHBOUR);
                for host in known.values_mut() {
                    if let Some((_, from)) = host.hop.filter(|(hop, _)| *hop == told.hop) {
                        host.way = mac.map(|to| Way { to, from });
                    }
                }
            }
            Heard::Message(..) => {}
        });
    }
}

/// What the kernel says of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Neighbour {
    interface: u32,
    hop: IpAddr,
    /// Its address of Ethernet, if it is known.
    mac: Option<Mac>,
}

impl Neighbour {
    fn read(body: &[u8]) -> Option<Neighbour> {
        let (interface, state, attributes) = (word(body, 4)?, half(body, 8)?, body.get(FIXED..)?);
        let hop = attribute(attributes, NDA_DST).and_then(address)?;
        let mac = attribute(attributes, NDA_LLADDR).and_then(|value| value.try_into().ok());
        Some(Neighbour { interface, hop, mac: mac.filter(|_| state & KNOWN_STATES != 0) })
    }
}

/// The kernel's number of the kind of an address, and its bytes.
fn of(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read() {
        let body = |state: u16, mac: &[u8]| {
            let mut body = vec![libc::AF_INET as u8, 0, 0, 0, 7, 0, 0, 0];
            body.extend(state.to_ne_bytes());
            body.extend([0, 1]);
            body.extend(Attributes::default().with(NDA_DST, &[10, 0, 0, 2]).with(NDA_LLADDR, mac).0);
            body
        };
        let (hop, mac) = ("10.0.0.2".parse().unwrap(), [2, 0, 0, 0, 0, 1]);
        let interface = u32::from_ne_bytes([7, 0, 0, 0]);
        let told = |mac| Some(Neighbour { interface, hop, mac });
        for (state, known) in [(0x02, true), (0x04, true), (0x80, true), (0x01, false), (0x20, false)] {
            assert_eq!(Neighbour::read(&body(state, &mac)), told(known.then_some(mac)), "state {state}");
        }
        assert_eq!(
            Neighbour::read(&body(0x02, &[1; 20])),
            told(None),
            "an address of another kind of network"
        );
        let whole = body(0x02, &mac);
        (0..20).for_each(|len| assert_eq!(Neighbour::read(&whole[..len]), None, "{len} bytes"));
    }
}
