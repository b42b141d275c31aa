//! The shared-memory port: the memory of lanes, how it gets to another process, and when that process ends.
//!
//! Owns the system calls of the local path, one small file for each concept of the kernel. Knows nothing
//! of samples: what lies in the memory is [`taut_mem::lane`]'s business, and who asks whom for what is the
//! executor's, who waits at the descriptors given here. Nothing here waits, starts a thread or looks at a
//! clock.
//!
//! # The rules
//! * **Each byte has one writing process.** Its owner makes a [`Memory`], seals it and maps it writable;
//!   everybody else gets the descriptor and can only map it read-only ([`map`]). So a process that dies
//!   leaves nothing to repair, and one that lies can scramble nothing but its own words.
//! * **Nothing has a name** but the socket of the [`Listener`], and that only where containers need one:
//!   the memory goes with the last process that has it mapped, however that process ends.
//! * **The socket is the life line.** The kernel hangs up at the moment a process dies, across process-id
//!   namespaces; a pidfd is the second source ([`Peer::pidfd`]), for a child that was forked keeps the
//!   socket open.
//! * **Both ends look who the other is** ([`Policy`]) before they look at anything it sends: an abstract
//!   socket name can be taken by any user of the host. Before that nobody can pass a descriptor
//!   ([`Connection::welcome`]; Linux 6.16).
//!   Whether it listens under the name that it greets by is for the caller to ask ([`Peer::is`]).
//! * **Any doubt is a reason, never an error up the stack**: [`Refusal`], [`Hostile`], [`NotAdmitted`]. The
//!   caller counts it and goes on by UDP.
//!
//! ```
//! # fn main() -> taut_base::Result<()> {
//! use taut_base::GuidPrefix;
//! use taut_port_shm::{Connection, Listener, Memory, Message, Waker, host_id, map};
//!
//! let prefix = GuidPrefix([7; 12]);
//! let bell = Memory::create("bell", 4096)?;
//! bell.commit(0, bell.len())?;
//! let waker = Waker::new()?;
//! let mut listener = Listener::bind(prefix, None)?;
//! let near = Connection::connect(prefix, None).expect("somebody listens");
//! let far = listener.accept()?.expect("somebody connects");
//! assert_eq!(far.peer()?.pid, Some(std::process::id()));
//! far.welcome();
//! near.send(&Message::Hello { host_id: host_id()?, prefix, hears_end: true }, &[bell.fd(), waker.fd()]).expect("it is sent");
//! if let taut_port_shm::Received::Message(Message::Hello { .. }, fds) = far.receive() {
//!     let region = map(fds.into_iter().next().expect("the bell"), 4096).expect("it is sealed");
//!     assert!(!region.is_writable());
//! }
//! # Ok(())
//! # }
//! ```

mod connection;
mod foreign;
mod headroom;
mod host;
mod kernel_file;
mod mapping;
mod memory;
mod message;
mod peer;
mod process;
mod refused;
mod rendezvous;
mod sockopt;
mod wake;

pub use connection::{ConnectError, Connection, Hostile, Received, SendError};
pub use foreign::{Refusal, map};
pub use host::host_id;
pub use memory::Memory;
pub use message::{Malformed, Message};
pub use peer::{Admitted, NotAdmitted, Peer, Policy};
pub use process::{fork_word, lock_process, prefault_code};
pub use rendezvous::Listener;
pub use wake::{NotAWaker, Waker};
