//! The UDP port of one DomainParticipant: its sockets, its multicast groups, its interfaces.
//!
//! Owns the sockets and the buffers that are received into. Must never look into a datagram, wait
//! for one, or start a thread: a driver polls the descriptors of [`UdpPort::fds`] and then pulls.
//! RTPS 2.5 §9.6.1 (which ports a participant has) and §9.6.1.4 (the multicast group).
//! The executor opens it and drives it; the core sees it as [`taut_port::Port`].
//!
//! # Which addresses
//! Without a choice a participant uses every interface that is up and has an address, and the
//! loopback interface only if there is no other. IPv6 has sockets of its own beside those of IPv4, at the
//! same ports; they are opened only if IPv6 is used ([`Ipv6`]). Asked for loopback only, it cannot be reached
//! from outside of the host: its unicast sockets are then bound to 127.0.0.1 and ::1, or, where loopback has
//! other addresses, take only what comes by it. Otherwise they are
//! bound to every address, because peers on the same host may shorten the way to 127.0.0.1.
//!
//! # When interfaces change
//! A participant follows them: [`UdpPort::watch`] is readable when the kernel says that an interface or
//! an address came or went, and [`UdpPort::follow`] then finds the interfaces again, joins and leaves the
//! groups and changes the locators. Its sockets stay the same. If an MTU has changed, paths are asked for again as soon
//! as that is heard. One that was asked for loopback only does not follow: nothing changes there.
//!
//! # How many syscalls
//! One `sendmmsg` sends a datagram or a row to all its unicast addresses; one address costs one `sendto`, by a socket
//! that is connected to it if much goes there.
//! One `recvmmsg` takes a burst of one socket and tells by a short count that none is left; a
//! socket that has been quiet is read by one `recvfrom` for each time that it is readable. A driver that sleeps pays
//! `epoll_wait`, one receive and one send for each round of a ping-pong; one that looks receives by that ([`Direct`]).

mod bound;
mod config;
mod direct;
mod ends;
mod fan;
mod follow;
mod gather;
mod group;
mod group_sockets;
mod interface;
mod links;
mod mark;
mod netlink;
mod path_size;
mod port;
mod receive;
mod send;
mod send_v6;
mod socket;
mod stats;
mod sys;
mod warnings;
mod ways;

pub use config::{DEFAULT_GROUP, DEFAULT_GROUP_V6, Ipv6, Multicast, OTHER_GROUP_V6, PortMapping, UdpConfig};
pub use direct::Direct;
pub use interface::{Interface, MAX_INTERFACES, interfaces};
pub use mark::{MARKS, mark_of, queue_of};
pub use port::{Source, UdpPort};
pub use receive::weight;
pub use stats::{ErrnoCounts, Stats};
