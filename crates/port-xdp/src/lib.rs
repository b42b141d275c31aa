//! Datagrams past the kernel's stack: in frames of AF_XDP, to and from the hosts that one network interface reaches, as
//! UDP over IP or without IP.
//!
//! A port beside the sockets, not in their place. Over IP a program in the kernel hands over what is for our addresses and
//! ports, is UDP and begins as a message of RTPS does; all else, groups and discovery among it, stays with the
//! kernel. So peers need not know of it: they send to the same addresses as always, from ordinary sockets or past
//! their own kernels. What is sent goes past the kernel where the kernel knows the host's address of Ethernet and our
//! interface is the way to it; where not, [`XdpPort::send`] says so and a socket sends it.
//!
//! An interface, a program or a netd that goes is found again when it comes back: what goes by frames goes by sockets
//! meanwhile.
//!
//! Who may not load programs has `taut netd` do it: [`netd`] has what the two say to each other.
//!
//! Without IP all is ours that has our type: samples, groups and discovery, between participants that all do the same.
//!
//! Frames that come and go past the kernel pass no firewall, no traffic shaping and no packet capture of it.
//!
//! *Source*: linux/if_xdp.h; [`taut_xdp`] has the rings.

mod attachment;
mod comeback;
mod kept;
mod link;
pub mod netd;
mod pieces;
mod port;
mod queue;
mod supply;
mod vlan;

pub use comeback::{Left, Refused, Resumed, Tried, Try};
pub use netd::Netd;
pub use port::{Probed, XdpConfig, XdpPort};
pub use queue::QueueCounts;
pub use taut_xdp::{AttachMode, BindMode, Glance, is_up};
