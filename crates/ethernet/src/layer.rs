//! The layer that messages are carried by: over IP, or bare.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use taut_base::{Error, Locator, LocatorKind, Result, Time};
use taut_port::Traffic;

use crate::header::{Header, Mac, Station, open};
use crate::hosts::Hosts;
use crate::own::{OwnAddress, OwnIp, SocketNetwork};
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

/// What a packet of IP carries, as far as its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// A datagram of UDP.
    Datagram,
    /// A part of one: there are more, or it is not the first.
    Part,
    /// Something else, or there is no whole header.
    Other,
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
    /// It was for the layer itself, as a question of ARP is, and holds no message.
    Control,
    /// It is a part of a datagram that is not whole yet.
    Part,
    /// Another station has our address.
    Conflict,
}

/// Why there is no way to a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRoute {
    /// It does not go by frames, or it is not known here whether it does.
    Elsewhere,
    /// It goes by frames and no other way, and the station is not known yet.
    Unknown,
}

/// Where a participant is reached by frames alone, discovery included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameEnds {
    /// By samples: our station or address and groups, each with a port.
    pub user: Vec<Locator>,
    /// By discovery.
    pub metatraffic: Vec<Locator>,
}

impl FrameEnds {
    pub(crate) fn traffic(&self, to: &Locator) -> Option<Traffic> {
        if self.user.contains(to) {
            return Some(Traffic::User);
        }
        let of = if to.is_multicast() { Traffic::MetaMulticast } else { Traffic::Meta };
        self.metatraffic.contains(to).then_some(of)
    }
}

/// Where a participant is reached by frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// By UDP: where the sockets receive the user's samples, all of them that the interface has. Discovery is the
    /// sockets'.
    Ip(Vec<SocketAddr>),
    /// Without IP, discovery included. A station of zeros is the interface's own; the first of `user` is.
    Bare(FrameEnds),
    /// By UDP at an address that the kernel does not have, discovery included.
    Own {
        /// The address.
        own: OwnAddress,
        /// Its ends, and groups.
        ends: FrameEnds,
        /// What is the sockets': addresses of the host, and networks of those interfaces that they use.
        sockets: Vec<SocketNetwork>,
    },
}

impl Reached {
    /// The bytes to leave free before a frame that is received without a tag, so that values of eight bytes in its first
    /// sample are where memory has them.
    pub fn shift(&self) -> u16 {
        match self {
            Reached::Bare(_) => bare::SHIFT,
            Reached::Own { own, .. } if own.address.is_ipv6() => udp::SHIFT_V6,
            Reached::Ip(_) | Reached::Own { .. } => udp::SHIFT,
        }
    }
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
    Bare(FrameEnds),
    /// UDP at an address of our own, over IPv4 or IPv6 as that is.
    Own(Box<OwnIp>),
}

/// The way of a datagram to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Who takes the frame: the destination, a group, or the router on the way.
    to: Mac,
    ends: Ends,
    /// The longest payload of Ethernet that the way takes, in bytes, where it takes less than the network.
    mtu: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Udp { from: SocketAddr, to: SocketAddr },
    Bare { from: u16, to: u16 },
}

impl Route {
    /// Bytes of the longest frame that the way takes, as far as is known.
    #[inline]
    pub fn longest(&self, own: &Station) -> usize {
        self.mtu.map_or(usize::MAX, |mtu| own.header_len() + mtu as usize)
    }

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
                    Error::Error(format!("netlink: {errno}; {}", taut_netlink::remedy(errno)))
                })?;
                Ok(Layer::Ip { ends, hosts })
            }
            Reached::Bare(FrameEnds { mut user, mut metatraffic }) => {
                for end in user.iter_mut().chain(&mut metatraffic).filter(|end| end.mac() == Some([0; 6])) {
                    *end = Locator { port: end.port, ..Locator::ethernet(mac, 0) };
                }
                Ok(Layer::Bare(FrameEnds { user, metatraffic }))
            }
            Reached::Own { own, ends, sockets } => {
                Ok(Layer::Own(Box::new(OwnIp::new(mac, own, ends, sockets))))
            }
        }
    }

    /// The way to a destination.
    ///
    /// *Errors*: there is none past the kernel, or it is not known yet: it is asked for soon then.
    #[inline]
    pub fn route(&mut self, to: &Locator) -> std::result::Result<Route, NoRoute> {
        match self {
            Layer::Ip { ends, hosts } => by_hosts(ends, hosts, to).ok_or(NoRoute::Elsewhere),
            Layer::Bare(ends) => by_stations(ends, to).ok_or(NoRoute::Elsewhere),
            Layer::Own(own) => {
                let (from, station, to) = own.route(to)?;
                Ok(Route { to: station, ends: Ends::Udp { from, to }, mtu: None })
            }
        }
    }

    /// Are there others, of this host, whom the sockets reach by the same destination? Groups are both's where both
    /// have UDP.
    #[inline]
    pub fn is_shared(&self, to: &Locator) -> bool {
        matches!(self, Layer::Own(own) if own.is_of_kind(to)) && to.is_multicast()
    }

    /// The payload of the largest datagram to a destination that goes by frames alone, of `longest` bytes each.
    pub fn path_size(&self, to: &Locator, own: &Station, longest: usize) -> Option<usize> {
        let headers = match self {
            Layer::Bare(_) if to.kind == LocatorKind::ETHERNET => bare::header_len(own),
            Layer::Own(layer) if layer.is_for_device(to) => udp::header_len(own, to.ip()?),
            _ => return None,
        };
        Some(longest.saturating_sub(headers))
    }

    /// Reads a frame that has come to this station.
    ///
    /// *Errors*: why it is dropped. *Cost*: a sum of the payload over IP; nothing is copied.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        frame: &'a [u8],
        own: &Station,
    ) -> std::result::Result<Datagram<'a>, Refused> {
        let opened = open(frame, own)?;
        match self {
            Layer::Ip { ends, .. } if opened.to == own.mac => {
                udp::read(&opened, |to| ends.contains(&to).then_some(Traffic::User))
            }
            Layer::Bare(ends) if opened.kind == bare::ETHERTYPE.to_be_bytes() => bare::read(&opened, ends),
            Layer::Own(own) => own.read(&opened),
            _ => Err(Refused::NotOurs),
        }
    }

    /// Where samples are received over IP.
    pub fn ends(&self) -> &[SocketAddr] {
        match self {
            Layer::Ip { ends, .. } => ends,
            Layer::Bare(_) | Layer::Own(_) => &[],
        }
    }

    /// Where the participant is reached without IP.
    pub fn bare_ends(&self) -> Option<&FrameEnds> {
        match self {
            Layer::Bare(ends) => Some(ends),
            Layer::Ip { .. } | Layer::Own(_) => None,
        }
    }

    /// Where it is reached by frames alone, discovery included.
    pub fn frame_ends(&self) -> Option<&FrameEnds> {
        self.own().map(OwnIp::ends).or_else(|| self.bare_ends())
    }

    /// The layer of an address of our own, if it is one.
    pub fn own(&self) -> Option<&OwnIp> {
        match self {
            Layer::Own(own) => Some(own),
            Layer::Ip { .. } | Layer::Bare(_) => None,
        }
    }

    /// The same, to be told the time and asked for what it has to say.
    pub fn own_mut(&mut self) -> Option<&mut OwnIp> {
        match self {
            Layer::Own(own) => Some(own),
            Layer::Ip { .. } | Layer::Bare(_) => None,
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
        match self {
            Layer::Ip { hosts, .. } => hosts.next_timeout(),
            Layer::Bare(_) => Time::NEVER,
            Layer::Own(own) => own.next_timeout(),
        }
    }

    /// Asks for the way to a host, if it is time: the kernel, or the network. Returns whether that takes frames of another
    /// length than it did. *Cost*: two system calls, or none.
    pub fn on_timeout(&mut self, now: Time) -> bool {
        match self {
            Layer::Ip { hosts, .. } => return hosts.ask(now),
            Layer::Bare(_) => {}
            Layer::Own(own) => own.on_timeout(now),
        }
        false
    }

    fn hosts(&self) -> Option<&Hosts> {
        match self {
            Layer::Ip { hosts, .. } => Some(hosts),
            Layer::Bare(_) | Layer::Own(_) => None,
        }
    }
}

#[inline]
fn by_hosts(ends: &[SocketAddr], hosts: &mut Hosts, to: &Locator) -> Option<Route> {
    let to = to.socket_addr().filter(|to| !is_of_group_or_link(to.ip()))?;
    let way = hosts.way(to.ip()).filter(|way| !is_of_group_or_link(way.from))?;
    // From where the kernel would send for our socket, which is that of all ends of a kind: it need not be one of those that
    // the participant is reached at.
    let own = ends.iter().find(|end| end.is_ipv4() == to.is_ipv4())?;
    let from = SocketAddr::new(way.from, own.port());
    // Ends of one kind: a way is from an address of the destination's kind.
    let is_one_kind = from.is_ipv4() == to.is_ipv4();
    is_one_kind.then_some(Route { to: way.to, ends: Ends::Udp { from, to }, mtu: way.mtu })
}

#[inline]
fn by_stations(ends: &FrameEnds, to: &Locator) -> Option<Route> {
    let (mac, port) = (to.mac()?, u16::try_from(to.port).ok()?);
    let from = ends.user.first().and_then(|own| u16::try_from(own.port).ok())?;
    Some(Route { to: mac, ends: Ends::Bare { from, to: port }, mtu: None })
}

/// Those that are received at. An address of the link means something with its interface only, which a frame does not
/// say: the kernel has it.
pub(crate) fn taken(ends: &[SocketAddr]) -> Vec<SocketAddr> {
    ends.iter().filter(|end| end.port() != 0 && !is_of_group_or_link(end.ip())).copied().collect()
}

fn is_of_group_or_link(ip: IpAddr) -> bool {
    ip.is_multicast() || matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}
