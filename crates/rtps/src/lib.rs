//! The RTPS protocol. No I/O, no clock.
#![forbid(unsafe_code)]

pub mod history_cache;
