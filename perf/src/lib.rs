//! `taut perf`: measures any DDS against the physical limit of the machine, and shows it.
//!
//! Owns the workloads, the rounds, the statistics and the report. Uses no part of Taut: every peer,
//! Taut itself too, is a program that keeps the contract of `peers/README.md`. Called by the command
//! line program.
#![forbid(unsafe_code)]

pub mod record;
pub mod statistics;
