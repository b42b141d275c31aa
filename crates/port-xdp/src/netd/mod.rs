//! What a participant without privileges and `taut netd` say to each other, and the participant's side of it.
//!
//! Owns the packets ([`Message`]), the connection that carries them and descriptors ([`Connection`]), and what the kernel
//! says of who is at its other end and of a socket that was passed. Decides nothing: what is allowed is the business of
//! the process at the other end, in the crate `taut-netd`.
//!
//! Who has connected is told Welcome, or Refused: before that it cannot pass descriptors. A participant then sends Take with
//! its own UDP sockets, which prove that their ports are its own; it is answered by Taken and a Queue for each queue, or by
//! Refused. Once its fill rings have frames it sends Receive, which is answered by Receiving or Refused, and again whenever
//! its addresses change. Without IP there are no ports to prove: Take goes without sockets, the queues get all frames of
//! our type from Taken on, and there is no Receive. The end of the connection, however it comes, ends it all: for netd what
//! the participant had, for the participant what goes past the kernel.

mod asking;
mod client;
mod connection;
mod kernel;
mod message;

use std::path::PathBuf;

pub use crate::queue::Layout;
pub(crate) use asking::{Asking, connect, connect_at_once};
pub(crate) use client::{Client, Heard};
pub use connection::{CROWDED, Connection, MAX_DESCRIPTORS, Received};
pub(crate) use kernel::udp_address;
pub use kernel::{Peer, UdpSocket, namespace, namespace_of, pass_rights, peer, udp_socket};
pub use message::{Granted, MAX_ENDS, MAX_QUEUES, Malformed, Message};

/// Where `taut netd` listens if nobody says where.
pub const SOCKET: &str = "/run/taut/netd.sock";
/// How many sockets prove ports: of samples and of critical ones, each of IPv4 and of IPv6.
pub const MAX_PROOFS: usize = 4;

/// Who opens the interface.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Netd {
    /// `taut netd` if it listens at [`SOCKET`], else the participant itself.
    #[default]
    Auto,
    /// `taut netd`, which listens there.
    At(PathBuf),
    /// The participant itself.
    Never,
}
