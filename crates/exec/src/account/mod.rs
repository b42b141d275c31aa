//! The account of where time went: how long steps waited and ran, the last of them, and reports of it.

mod counts;
pub(crate) mod jobs;
pub(crate) mod latency;
mod prometheus;
pub(crate) mod recorder;
pub(crate) mod reports;
