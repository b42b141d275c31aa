//! The executor: the only threads and the only lock of Taut.
//!
//! One [`Executor`] drives one participant. Whoever has work to do runs it: a caller of `write` sends
//! from its own stack, a thread that waits for data drives the port, and a background thread drives
//! only while no thread of the user does. The participant is behind one lock, the *token*; a step holds
//! it for a bounded amount of work. Jobs run highest class first, to completion.
//! The public API calls it; it calls the participant and the port.
#![forbid(unsafe_code)]

mod access;
mod account;
mod calls;
mod clock;
mod config;
mod core;
mod driver;
mod executor;
#[cfg(test)]
mod executor_tests;
mod hooks;
#[cfg(test)]
mod inheritance_tests;
mod lanes;
mod net;
mod process;
mod scheduling;
mod sync;
mod telling;
mod token;
mod write;

pub use access::{Call, Patience, check_size};
pub use account::jobs::JobClass;
pub use account::latency::{Histogram, JobReport, LatencyReport, Spread};
pub use account::recorder::{Activity, FlightRecord, RecordCause, RecordedStep};
pub use account::reports::{MakeReporter, Reporter};
pub use clock::{Moment, monotonic_now, wall_clock_now};
pub use config::{
    DEFAULT_ANNOUNCEMENT_PERIOD, DEFAULT_LEASE_DURATION, DpdkChoice, Driver, ExecutorConfig, FramesChoice,
    LaneMemory, XdpChoice, XdpLayer,
};
pub use driver::rhythm::{Steady, longest_look};
pub use driver::waiting::{DEFAULT_SPIN, ends};
pub use executor::{Executor, Stats};
pub use hooks::{Listener, Waits, listener, to_log};
pub use lanes::door::Door;
pub use lanes::path::SamplePath;
pub use lanes::peers::check_peers;
pub use scheduling::{DeadlineScheduling, Scheduling};
pub use write::burst::Suspension;
pub use write::memory::Memory;
pub use write::outlet::Outlet;
pub use write::payload::Payload;
pub use write::slow::SlowReader;
