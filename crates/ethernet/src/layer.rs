//! The layer that messages are carried by: over IP, or bare.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use taut_base::{Error, Locator, Result, Time};
use taut_port::Traffic;

use crate::header::{Header, Mac, Station, open};
use crate::hosts::Hosts;
use crate::{bare, udp};

/// A datagram that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub from: Locator,
    /// What it was sent to.
    pub traffic: Traffic,
    /// What is in it.
    pub payload: &'a [u8],
}

/// Why a frame is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It ends too early, or says another length than it has.
    Malformed,
    /// It is for somebody else: another station, address, port or virtual network.
    NotOurs,
    /// A checksum is wrong.
    Damaged,
}

/// Where a participant is reached without IP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BareEnds {
    /// By samples: our station and groups, each with a port.
    pub user: Vec<Locator>,
    /// By discovery.
    pub metatraffic: Vec<Locator>,
}

impl BareEnds {
    pub(crate) fn traffic(&self, to: Mac, port: u16) -> Option<Traffic> {
        let to = Locator::ethernet(to, port);
        if self.user.contains(&to) {
            return Some(Traffic::User);
        }
        self.metatraffic.contains(&to).then_some(Traffic::Meta)
    }
}

/// Where a participant is reached by frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// By UDP: where the sockets receive the user's samples, all of them that the interface has. Discovery is the
    /// sockets'.
    Ip(Vec<SocketAddr>),
    /// Without IP, discovery included. A station of zeros is the interface's own; the first of `user` is.
    Bare(BareEnds),
}

/// The layer of a port: how to whom.
pub enum Layer {
    /// UDP over IPv4 and IPv6. What is received here is samples for these ends; all else is the kernel's.
    Ip {
        /// Where samples are received, one for each address of the interface.
        ends: Vec<SocketAddr>,
        /// The ways to hosts.
        hosts: Hosts,
    },
    /// Frames of our own type.
    Bare(BareEnds),
}

/// The way of a datagram to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Who takes the frame: the destination, a group, or the router on the way.
    to: Mac,
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Udp { from: SocketAddr, to: SocketAddr },
    Bare { from: u16, to: u16 },
}

impl Route {
    /// Bytes of headers before the payload.
    #[inline]
    pub fn header_len(&self, own: &Station) -> usize {
        match self.ends {
            Ends::Udp { to, .. } => udp::header_len(own, to.ip()),
            Ends::Bare { .. } => bare::header_len(own),
        }
    }

    /// The headers to stand in front of a datagram that is in one piece, with the differentiated services code point
    /// `dscp` where there is one. `None` if it is too long. A frame of less than 60 bytes is to be filled up behind it.
    ///
    /// *Cost*: a sum of the datagram over IP.
    #[inline]
    pub fn header(&self, own: &Station, dscp: u8, datagram: &[u8]) -> Option<Header> {
        match self.ends {
            Ends::Udp { from, to } => udp::header(own, self.to, (from, to), dscp, datagram),
            Ends::Bare { from, to } => bare::header(own, self.to, (from, to), datagram.len()),
        }
    }

    /// Writes a datagram made of `parts` into a frame, with the differentiated services code point `dscp` where there
    /// is one. Returns the length of the frame; `None` if it has no room.
    ///
    /// *Cost*: a copy of the parts, and a sum of them over IP.
    #[inline]
    pub fn write(&self, frame: &mut [u8], own: &Station, dscp: u8, parts: &[&[u8]]) -> Option<usize> {
        match self.ends {
            Ends::Udp { from, to } => udp::write(frame, own, self.to, (from, to), dscp, parts),
            Ends::Bare { from, to } => bare::write(frame, own, self.to, (from, to), parts),
        }
    }
}

impl Layer {
    /// The layer of the interface with this name, number and station, on which a participant is reached so.
    ///
    /// *Errors*: no address that could be received at; what the operating system refuses. *Cost*: some ten system calls
    /// over IP.
    pub fn open(name: &str, interface: u32, mac: Mac, reached: Reached) -> Result<Layer> {
        match reached {
            Reached::Ip(ends) => {
                let ends = taken(&ends);
                if ends.is_empty() {
                    return Err(Error::BadParameter(format!(
                        "{name} has no address that the participant uses: give it one (`ip address add`), name it among \
                         the interfaces, or do without IP (xdp_layer = 2)"
                    )));
                }
                let hosts = Hosts::open(interface).map_err(|errno| {
                    Error::Error(format!("netlink: {errno}; use UDP where that is not allowed"))
                })?;
                Ok(Layer::Ip { ends, hosts })
            }
            Reached::Bare(BareEnds { mut user, mut metatraffic }) => {
                for end in user.iter_mut().chain(&mut metatraffic).filter(|end| end.mac() == Some([0; 6])) {
                    *end = Locator { port: end.port, ..Locator::ethernet(mac, 0) };
                }
                Ok(Layer::Bare(BareEnds { user, metatraffic }))
            }
        }
    }

    /// The way to a destination; `None` if there is none past the kernel, or it is not known yet: it is asked for soon
    /// then.
    #[inline]
    pub fn route(&mut self, to: &Locator) -> Option<Route> {
        match self {
            Layer::Ip { ends, hosts } => {
                let to = to.socket_addr().filter(|to| !is_of_group_or_link(to.ip()))?;
                let way = hosts.way(to.ip())?;
                let from = *ends.iter().find(|end| end.ip() == way.from)?;
                // Ends of one kind: a way is from an address of the destination's kind.
                (from.is_ipv4() == to.is_ipv4()).then_some(Route { to: way.to, ends: Ends::Udp { from, to } })
            }
            Layer::Bare(ends) => {
                let (mac, port) = (to.mac()?, u16::try_from(to.port).ok()?);
                let from = ends.user.first().and_then(|own| u16::try_from(own.port).ok())?;
                Some(Route { to: mac, ends: Ends::Bare { from, to: port } })
            }
        }
    }

    /// Reads a frame that has come to this station.
    ///
    /// *Errors*: why it is dropped. *Cost*: a sum of the payload over IP; nothing is copied.
    #[inline]
    pub fn read<'a>(&self, frame: &'a [u8], own: &Station) -> std::result::Result<Datagram<'a>, Refused> {
        let opened = open(frame)?;
        match self {
            Layer::Ip { ends, .. } if opened.to == own.mac => udp::read(&opened, ends),
            Layer::Bare(ends) if opened.kind == bare::ETHERTYPE.to_be_bytes() => bare::read(&opened, ends),
            _ => Err(Refused::NotOurs),
        }
    }

    /// Where samples are received over IP.
    pub fn ends(&self) -> &[SocketAddr] {
        match self {
            Layer::Ip { ends, .. } => ends,
            Layer::Bare(_) => &[],
        }
    }

    /// Where the participant is reached without IP.
    pub fn bare_ends(&self) -> Option<&BareEnds> {
        match self {
            Layer::Ip { .. } => None,
            Layer::Bare(ends) => Some(ends),
        }
    }

    /// Receives at these of the participant's ends from now on.
    pub fn follow(&mut self, new: &[SocketAddr]) {
        if let Layer::Ip { ends, .. } = self {
            *ends = taken(new);
        }
    }

    /// Readable when the kernel has something to tell of hosts: then call [`Layer::hear`].
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.hosts().map(Hosts::fd)
    }

    /// Takes what the kernel tells. *Cost*: one system call for each read.
    pub fn hear(&mut self) {
        if let Layer::Ip { hosts, .. } = self {
            hosts.hear();
        }
    }

    /// When to call [`Layer::on_timeout`].
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.hosts().map_or(Time::NEVER, Hosts::next_timeout)
    }

    /// Asks the kernel for the way to a host, if it is time. *Cost*: two system calls.
    pub fn on_timeout(&mut self, now: Time) {
        if let Layer::Ip { hosts, .. } = self {
            hosts.ask(now);
        }
    }

    fn hosts(&self) -> Option<&Hosts> {
        match self {
            Layer::Ip { hosts, .. } => Some(hosts),
            Layer::Bare(_) => None,
        }
    }
}

/// Those that are received at. An address of the link means something with its interface only, which a frame does not
/// say: the kernel has it.
pub(crate) fn taken(ends: &[SocketAddr]) -> Vec<SocketAddr> {
    ends.iter().filter(|end| end.port() != 0 && !is_of_group_or_link(end.ip())).copied().collect()
}

fn is_of_group_or_link(ip: IpAddr) -> bool {
    ip.is_multicast() || matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}
