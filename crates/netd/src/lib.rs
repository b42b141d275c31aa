//! Opens queues of network interfaces for participants without privileges.
//!
//! The only process of Taut with privileges, `taut netd`. It loads the program of XDP and attaches it, makes the socket of
//! a queue with its memory, and passes both to a participant that [`Policy`] allows it; the participant then sends and
//! receives without it. Must never map what a participant sends or receives, wait for a participant, run another
//! program, nor do for a participant what no rule allows.
//!
//! # What it relies on
//! * **Who asks** is what the kernel noted when it connected (SO_PEERCRED), never what it says.
//! * **Whose a port is**, over IP, is shown by the UDP socket that is bound to it, which the participant passes and netd keeps: as
//!   long as it is open nobody else can have the port, unless its owner lets others share it. Where it is bound, and
//!   whether another user's is there, too, the kernel's tables say (sock_diag), again whenever it counts: the socket
//!   itself may be held by its owner for ever.
//! * **What is received** is decided by the maps of the program, which netd alone changes: an address that the interface
//!   has, a port that was shown, a queue that is the participant's. All else stays with the kernel. Ports and addresses are
//!   looked at each second: what has gone is taken back.
//! * **Without IP** there is nothing to show: a rule that is for that gives all frames of our type which come by the queues,
//!   to one participant of an interface, which is in the network namespace of netd, as its connection is.
//! * **Other rules** hold at once ([`Server::set_policy`]): whom they do not allow any more loses its queues, and who keeps
//!   them notices nothing.
//! * **The end of a participant**, however it comes, is the end of its connection. Its destinations leave the map then;
//!   its queue is free once the kernel has closed its socket. The end of netd ends the programs, as they are attached
//!   by descriptors; participants go on by their sockets.
//!
//! # What is left to who takes it over
//! Four capabilities ([`keep_least_privileges`]): the network of the host, but no file of another user's, no process, and
//! no program that has more.
//!
//! # What a participant can do to others
//! One thread serves all, a message of each in turn. A participant that breaks the rules, does not say what it wants or
//! does not read what it is told is dropped, and counted ([`Counts`]); connections are bounded, for each user too, and so is
//! how often a user's participants may say what they want and where they receive, as the host's sockets are listed for that:
//! what they say beyond it stays in their connections.
//! Descriptors that are no sockets of UDP, and connections with what was not received of them, are closed by a thread
//! of each user's that may wait in it: a file system can make it, and a socket of TCP.
#![forbid(unsafe_code)]

mod client;
mod ends;
mod interfaces;
mod listener;
mod pace;
mod places;
mod policy;
mod privileges;
mod server;
mod sockets;
mod tally;
mod undertaker;

use std::io;
use std::path::Path;

use rustix::io::Errno;
use taut_port_xdp::netd::Connection;

pub use policy::{Policy, Wanted};
pub use privileges::keep_least_privileges;
pub use server::Server;
pub use tally::Counts;
pub use taut_port_xdp::netd::SOCKET;

/// Looks whether a netd listens there, as a participant does that is about to ask it. Never waits.
///
/// *Errors*: it does not; `NotFound` and `ConnectionRefused`, as of a name that one has left behind, if nobody does.
/// *Cost*: three system calls.
///
/// ```
/// let error = taut_netd::look_for("/nonexistent/netd.sock".as_ref()).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// ```
pub fn look_for(path: &Path) -> io::Result<()> {
    match Connection::connect_at_once(path) {
        // It has no room just now.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
