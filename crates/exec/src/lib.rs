//! The executor: the only clock, the only threads and the only lock of Taut.
//!
//! One [`Executor`] drives one participant. Whoever has work to do runs it: a caller of `write` sends
//! from its own stack, a thread that waits for data drives the port, and a background thread drives
//! only while no thread of the user does. The participant is behind one lock, the *token*; a step holds
//! it for a bounded amount of work. Jobs run highest class first, to completion.
//! The public API calls it; it calls the participant and the port.
#![forbid(unsafe_code)]

mod access;
mod alarm;
mod background;
mod burst;
mod calls;
mod clock;
mod comeback;
mod config;
mod core;
mod door;
mod drive;
mod driving;
mod executor;
#[cfg(test)]
mod executor_tests;
mod frames;
mod greeting;
mod hand;
mod holding;
mod hooks;
#[cfg(test)]
mod inheritance_tests;
mod jobs;
mod left;
mod local;
mod memory;
mod neighbours;
#[cfg(test)]
mod neighbours_tests;
mod network;
mod news;
mod outlet;
mod pairs;
mod path;
mod payload;
mod peers;
mod polling;
mod ports;
mod promises;
mod recorder;
mod reports;
mod ringer;
mod role;
mod scheduling;
mod slow;
mod sync;
mod telling;
mod throttle;
mod token;
mod waiting;
mod watch;
mod writes;

pub use access::{Call, Patience};
pub use clock::{Moment, monotonic_now, wall_clock_now};
pub use config::{
    DEFAULT_ANNOUNCEMENT_PERIOD, DEFAULT_LEASE_DURATION, DpdkChoice, Driver, ExecutorConfig, FramesChoice,
    LaneMemory, XdpChoice, XdpLayer,
};
pub use door::Door;
pub use executor::{Executor, Stats};
pub use hooks::{Listener, Waits};
pub use jobs::{JobClass, JobReport, LatencyReport, Spread};
pub use memory::Memory;
pub use outlet::Outlet;
pub use path::SamplePath;
pub use payload::Payload;
pub use recorder::{Activity, FlightRecord, RecordCause, RecordedStep};
pub use reports::{MakeReporter, Reporter};
pub use scheduling::{DeadlineScheduling, Scheduling};
pub use slow::SlowReader;
pub use waiting::{DEFAULT_SPIN, ends};
