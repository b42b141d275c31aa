//! Sets up a NIC so that critical traffic is served first, and takes that back.
//!
//! [`plan`] makes of a file and of what the NIC is like the steps from here to there, without any I/O; a
//! [`Machine`] tells the facts and makes the changes: [`Host`] is this one, [`Recorded`] one whose facts were written
//! down. [`apply`] does the steps that can be done and has each recorded first, [`undo`] takes them back. Must never
//! run another program, nor change what it could not put back. [`Device`] is what XDP asks of an interface. `taut nic` and
//! `taut doctor` call it.
//!
//! ```
//! let config = taut_nic::NicConfig::parse("interface = \"eth0\"\ncritical_queues = [3]", "eth0.toml").unwrap();
//! let facts = serde_json::from_str(include_str!("../facts/i226.json")).unwrap();
//! let plan = taut_nic::plan(&config, &facts).unwrap();
//! assert!(plan.page().contains("change    receive ring"));
//! ```
#![forbid(unsafe_code)]

mod apply;
mod change;
mod config;
mod facts;
mod host;
mod namespace;
mod plan;
mod recorded;
mod text;

pub use apply::{Identity, Machine, Outcome, Record, Taken, apply, left_elsewhere, undo};
pub use change::{Change, Qdisc};
pub use config::{NicConfig, Slot};
pub use facts::{
    Channels, Coalescing, Facts, Feature, Features, Frames, Interrupt, Qdiscs, Ring, Rule, Rules, Seen, list,
};
pub use host::{Device, Host};
pub use namespace::Namespace;
pub use plan::{Able, Plan, Step, plan};
pub use recorded::Recorded;
