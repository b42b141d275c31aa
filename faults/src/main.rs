//! Does harm to processes that share memory and looks at those that are left.
//!
//! Each scenario is a command; `play` is what they start. All of it runs in a network namespace of its own:
//! `scripts/test-faults.sh` sees to that, and to the sizes of the runs. The pages of the manual that show the
//! figures are `docs/reliability.md`.
#![forbid(unsafe_code)]

mod actor;
mod churn;
mod containers;
mod ends;
mod kill;
mod limits;
mod play;
mod sample;
mod scramble;
mod seen;
mod sight;
mod still;
mod stop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Command {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    /// Plays a part until the standard input ends.
    Play(Box<play::Part>),
    /// Kills writers and readers at each point.
    Kill {
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Only at this point.
        #[arg(long)]
        point: Option<String>,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Stops readers for a while.
    Stop {
        #[arg(long, default_value_t = 3)]
        seconds: u64,
        #[arg(long, default_value_t = 2)]
        rounds: usize,
        /// How far the writer's p99 may move.
        #[arg(long, default_value_t = 5)]
        percent: u64,
    },
    /// Has processes scramble what they share beside a pair.
    Scramble {
        #[arg(long, default_value_t = 3)]
        seconds: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// A process of another user, and one of an allowed group.
    Users,
    /// A memory cgroup that is full.
    Memory,
    /// Two network namespaces, with and without a directory in common.
    Containers,
    /// Attaches and detaches readers, makes and drops participants.
    Attach {
        #[arg(long, default_value_t = 300)]
        cycles: u64,
        #[arg(long, default_value_t = 30)]
        participants: u64,
    },
}

fn main() -> ExitCode {
    let outcome = match Command::parse().scenario {
        Scenario::Play(part) => play::play(&part).map_err(|error| error.to_string()),
        Scenario::Kill { rounds, point, seed } => kill::run(rounds, point.as_deref(), seed),
        Scenario::Stop { seconds, rounds, percent } => stop::run(seconds, rounds, percent),
        Scenario::Scramble { seconds, seed } => scramble::run(seconds, seed),
        Scenario::Users => limits::users(),
        Scenario::Memory => limits::memory(),
        Scenario::Containers => containers::run(),
        Scenario::Attach { cycles, participants } => churn::run(cycles, participants),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("FAULT: {why}");
            ExitCode::FAILURE
        }
    }
}
