//! `taut perf`: measures any DDS against the physical limit of the machine, and shows it.
//!
//! Owns the workloads, the rounds, the statistics and the report. Uses no part of Taut: every peer,
//! Taut itself too, is a program that keeps the contract of `peers/README.md`. Called by the command
//! line program.
//!
//! From the top: [`run`] reads the plan, runs its [`case`]s in rounds and prints the lines; a
//! [`workload`] knows what a round is; a [`session`] has the processes of a round; [`gather`] and
//! [`statistics`] make a [`record`] of the rounds.
#![forbid(unsafe_code)]

mod accounting;
mod aims;
pub mod args;
mod awake;
mod bench;
mod case;
mod catalog;
pub mod compare;
mod contract;
mod counter;
mod gather;
mod half;
mod machine;
mod namespace;
mod network;
pub mod output;
pub mod performance;
mod plan;
mod process;
mod progress;
mod published;
pub mod record;
pub mod report;
mod results;
pub mod rules;
mod run;
pub mod run_file;
mod samples;
mod session;
pub mod statistics;
mod table;
pub mod terminal;
mod unused;
pub mod values;
mod why;
pub mod words;
mod workload;

pub use args::Arguments;

/// Does what the command line says; the exit code: 0 done, 1 a peer that counts has failed or
/// a comparison has found something worse, 2 nothing was measured, as all is absent, 3 ended before its time.
///
/// *Errors*: what the user has to change, or that nobody takes what it prints.
pub fn run(arguments: &Arguments, stop: Stop) -> Result<u8, Failure> {
    match &arguments.command {
        args::Command::Measure(workload) => run::run(workload, stop),
        args::Command::Report(options) => results::report(options, stop),
        args::Command::Compare(options) => results::compare(options, stop),
    }
}

/// How the program asks a run to end, and learns that it was asked to.
#[derive(Clone, Copy)]
pub struct Stop {
    /// Was it asked to end? Every wait looks at it.
    pub requested: fn() -> bool,
    /// Asks it to end.
    pub request: fn(),
}

/// Why it did not come to its end.
#[derive(Debug)]
pub enum Failure {
    /// The user has to change something.
    Wrong(Wrong),
    /// The output cannot be written.
    Output(std::io::Error),
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Failure {
        Failure::Wrong(wrong)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Wrong(wrong) => wrong.fmt(f),
            Failure::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// What the user has to change; the text has the remedy.
#[derive(Debug)]
pub struct Wrong(pub String);

impl Wrong {
    /// In these words.
    pub fn new(text: impl Into<String>) -> Wrong {
        Wrong(text.into())
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}
