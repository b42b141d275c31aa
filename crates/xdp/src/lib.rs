//! Bare AF_XDP: what the kernel has of it, one small file for each concept.
//!
//! Owns the program in front of the kernel's stack and its maps ([`Program`]), its attachment ([`Link`]), the
//! memory of frames ([`Umem`]), the rings ([`Producer`], [`Consumer`]) and the socket ([`Socket`]); the rules by which a
//! NIC chooses the queue ([`FlowRule`]); and by which interface the frames of a VLAN come ([`Vlan`]). Knows nothing of RTPS
//! but the four bytes a message begins with, writes no header, has no thread and looks at no clock; which frame is used
//! for what is the caller's business. The port above it is the only caller.
//!
//! # The rules
//! * **The kernel keeps all that is not ours.** The program redirects what it knows to the letter and passes
//!   everything else, and so does a queue without a socket.
//! * **Nothing outlives its owner.** The program is attached by a link, which is a descriptor: it is gone when
//!   the process is, however that ends.
//! * **The queue has one owner.** A second socket on it is refused; after the first is gone it is free some
//!   40 ms later, and [`Socket::open`] waits for that.
//! * **What was probed is told**: [`Link::attached`], [`Link::why_not_native`], [`Socket::bound`].
//!
//! ```no_run
//! # fn main() -> Result<(), taut_xdp::Error> {
//! use std::sync::Arc;
//! use taut_xdp::{ChunkSize, FreeFrames, Interface, Link, Mode, Program, Rings, Socket, Umem};
//!
//! let interface = Interface::named("eth0")?;
//! let program = Program::load(Mode::L3, interface.mtu)?;
//! program.add("192.0.2.1:7411".parse().expect("an address"), 0)?;
//! let link = Link::attach(program, &interface, None)?;
//! let umem = Arc::new(Umem::create(4_096, ChunkSize::B2048)?);
//! let mut free = FreeFrames::of(&umem);
//! let mut socket = Socket::open(&link, 0, umem, &Rings::default(), None, true)?;
//! let mut fill = socket.fill.reserve(2_048);
//! while fill.room() > 0 && let Some(frame) = free.take() {
//!     fill.put(frame);
//! }
//! fill.submit();
//! link.add(&socket)?;
//! # Ok(())
//! # }
//! ```

mod assembler;
mod bpf;
mod error;
mod filter;
mod flow;
mod glance;
mod group;
mod handover;
mod interface;
mod link;
mod mapping;
mod privileges;
mod program;
mod ring;
mod socket;
mod spread;
mod umem;
mod vlan;

pub use error::Error;
pub use filter::{ETHERTYPE, Mode};
pub use flow::{FlowFrames, FlowRule, driver, flow_rules, insert_flow_rule, remove_flow_rule};
pub use glance::Glance;
pub use group::Membership;
pub use handover::Handover;
pub use interface::{Interface, is_up, network_cookie, program_of, takes_tags_off};
pub use link::{AttachMode, Link};
pub use program::{MAX_DESTINATIONS, MAX_QUEUES, Program, Run, Verdict};
pub use ring::{Consumer, Descriptor, Entry, GOES_ON, Peeked, Producer, Reserved};
pub use socket::{BindMode, Rings, Socket, Statistics};
pub use spread::{set_spread, spread};
pub use umem::{ChunkSize, FreeFrames, MAX_PIECES, Umem};
pub use vlan::{ParentLook, Vlan};
