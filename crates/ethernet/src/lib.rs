//! Frames of Ethernet with messages of RTPS in them, for ports without the kernel's stack: how they are written, what
//! is made of those that come, and which station a host is.
//!
//! Three layers. [`Layer::Ip`] is UDP over IP as every implementation speaks it; the kernel is asked for the ways to
//! hosts. [`Layer::Own`] is the same at an address that the kernel does not have, discovery included. [`Layer::Bare`] has
//! no IP: an ethertype of our own, addresses of Ethernet for locators, discovery included.
//!
//! Owns the headers: IEEE 802.3 and 802.1Q, RFC 791, 8200, 768, and for addresses of our own RFC 826 and 2236, 4861 and
//! 2710. Knows nothing of rings and drivers. What comes is looked at as if nobody had looked at it before.
#![forbid(unsafe_code)]

mod arp;
mod bare;
mod carrier;
mod checksum;
mod fragments;
mod header;
mod hops;
mod hosts;
mod igmp;
mod ipv4;
mod ipv6;
mod layer;
mod mld;
mod ndp;
mod own;
mod short;
mod udp;

pub use bare::{ETHERTYPE, SHIFT as BARE_SHIFT};
pub use carrier::{Carrier, LENT, Outgoing, Put, Stats};
pub use header::{Header, Mac, Station, Tag, group, shift_with_tag};
pub use layer::{Datagram, FrameEnds, Layer, NoRoute, Reached, Refused, Route};
pub use own::{OwnAddress, OwnIp, SocketNetwork};
pub use udp::SHIFT as UDP_SHIFT;
