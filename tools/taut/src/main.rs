//! The `taut` command: publish, subscribe, look at a domain and at the machine, show a demo.
//!
//! Uses the public API of `taut` only, and the benchmark, which uses no part of Taut. Data goes to stdout, everything else to stderr. Ends with 0 when
//! it has done what it was asked, 1 when the system failed it, 2 when what it was asked is wrong, 3 when
//! the time was up first.
#![forbid(unsafe_code)]

mod args;
mod columns;
mod config;
mod demo;
mod doctor;
mod failure;
mod file;
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

use args::{Arguments, Command};
use failure::{End, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::of_process() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    if let Err(failure) = start_log() {
        output::note(&failure.to_string());
        return failure.exit_code();
    }
    let ended = match &arguments.command {
        // It gives up privileges before there is a thread that waits for signals.
        command @ Command::Netd(options) => {
            arguments.network.is_used(command).and_then(|()| netd::run(options))
        }
        _ => stop::install().and_then(|()| run(&arguments)),
    };
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::TimedOut) => ExitCode::from(3),
        Ok(End::Code(code)) => ExitCode::from(code),
        Err(failure) if failure.is_unread() => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(failure) => {
            output::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn run(arguments: &Arguments) -> Result<End, Failure> {
    arguments.network.is_used(&arguments.command)?;
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
///
/// *Errors*: [`Failure::Wrong`] for what is no level: taken for the name of a module it would silence all others.
fn start_log() -> Result<(), Failure> {
    let wanted = std::env::var_os("TAUT_LOG").filter(|wanted| !wanted.is_empty());
    let wanted = wanted.as_ref().map_or("warn".into(), |wanted| wanted.to_string_lossy());
    let is_level = |part: &str| {
        let (module, level) = part.split_once('=').unwrap_or(("taut", part));
        !module.is_empty() && level.trim().parse::<log::LevelFilter>().is_ok()
    };
    // Behind a `/` may be a text that all lines are to have.
    let (levels, text) = wanted.split_once('/').unwrap_or((&wanted, ""));
    let parts: Vec<&str> = levels.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || text.contains('/') || !parts.into_iter().all(is_level) {
        return Err(Failure::Wrong(format!(
            "TAUT_LOG={wanted} in the environment is no level: use off, error, warn, info, debug or trace, or one for \
             a crate, as warn,taut_rtps=debug"
        )));
    }
    let mut builder = env_logger::Builder::new();
    builder.parse_filters(&wanted);
    builder.target(env_logger::Target::Pipe(Box::new(output::Log)));
    builder.format(|out, record| {
        let level = record.level().as_str().to_lowercase();
        writeln!(out, "taut: {level}: {}", record.args())
    });
    builder.init();
    Ok(())
}
