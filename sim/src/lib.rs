//! A seeded network with virtual time around Taut's core.
//!
//! Participants are the real ones of `taut_dcps`; the network, the clock and all that goes wrong are made
//! here, from one seed. [`Pair`] is for tests of the protocol, [`Network`] for more participants.
//! `sim/README.md` says how to write a scenario and how to repeat a seed.
#![forbid(unsafe_code)]

mod act;
mod check;
mod endpoint;
mod faults;
mod hostile;
mod network;
mod oracle;
mod pair;
mod payload;
mod plan;
mod scenario;
mod sometimes;
mod tally;
mod trace;

pub use endpoint::{SimReader, SimWriter, Taken, TopicSpec};
pub use faults::Faults;
pub use network::{
    Captured, META_GROUP, Network, Node, NodeOptions, USER_GROUP, meta_locator, seconds, user_locator,
};
pub use pair::Pair;
pub use payload::{Content, instance, key_hash, key_payload};
pub use scenario::{Outcome, run};
pub use sometimes::{EXPECTED, Sometimes};
pub use tally::Tally;
