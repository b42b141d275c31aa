//! The `taut` command: publish, subscribe, look at a domain and at the machine, show a demo.
//!
//! Uses the public API of `taut` only, and the benchmark, which uses no part of Taut. Data goes to stdout, everything else to stderr. Ends with 0 when
//! it has done what it was asked, 1 when the system failed it, 2 when what it was asked is wrong, 3 when
//! the time was up first.
#![forbid(unsafe_code)]

mod args;
mod config;
mod demo;
mod doctor;
mod failure;
mod list;
mod netd;
mod nic;
mod output;
mod picture;
mod publish;
mod stop;
mod store;
mod subscribe;
mod top;
mod types;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use failure::{End, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    start_log();
    let ended = match &arguments.command {
        // It gives up privileges before there is a thread that waits for signals.
        Command::Netd(options) => netd::run(options),
        _ => stop::install().and_then(|()| run(&arguments)),
    };
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::TimedOut) => ExitCode::from(3),
        Ok(End::Code(code)) => ExitCode::from(code),
        // Whoever read our output has seen enough of it.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(failure) => {
            output::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn run(arguments: &Arguments) -> Result<End, Failure> {
    match &arguments.command {
        Command::Pub(options) => publish::run(&arguments.network, options),
        Command::Sub(options) => subscribe::run(&arguments.network, options),
        Command::Ls { seconds, json } => list::run(&arguments.network, *seconds, *json),
        Command::Top(options) => top::run(&arguments.network, options),
        Command::Demo(options) => demo::run(&arguments.network, options),
        Command::Perf(options) => perf(options),
        Command::Doctor(options) => doctor::run(&arguments.network, options),
        Command::Nic(options) => nic::run(&arguments.network, options),
        Command::Netd(options) => netd::run(options),
        Command::Config { json } => config::run(&arguments.network, *json),
    }
}

/// The benchmark has its own exit codes, which are those of the command.
fn perf(options: &taut_perf::Arguments) -> Result<End, Failure> {
    let stop = taut_perf::Stop { requested: stop::requested, request: stop::request };
    taut_perf::run(options, stop).map(End::Code).map_err(|failure| match failure {
        taut_perf::Failure::Wrong(wrong) => Failure::Wrong(wrong.to_string()),
        taut_perf::Failure::Output(error) => Failure::Output(error),
    })
}

/// The library's log goes to stderr: warnings, unless `TAUT_LOG` wants more or less.
fn start_log() {
    let environment = env_logger::Env::new().filter_or("TAUT_LOG", "warn");
    let mut builder = env_logger::Builder::from_env(environment);
    builder.format(|out, record| {
        let level = record.level().as_str().to_lowercase();
        writeln!(out, "taut: {level}: {}", record.args())
    });
    builder.init();
}
