//! The hot paths whose instructions `cargo xtask bench-gate` counts, one of them a run.
//!
//! Owns what a path does and the proof that it was done: every path asserts it. Counts nothing itself;
//! the runner counts what happens below [`rounds::counted_rounds`]. Must give the same count each time:
//! no thread, no random number of its own, and a clock only where the public interface reads one.
//!
//! ```text
//! taut-gate list              a path a line, with two counts of rounds
//! taut-gate PATH ROUNDS       runs it, prints how many operations that were
//! ```
#![forbid(unsafe_code)]

mod cdr;
mod core;
mod pair;
mod public;
mod rounds;
mod samples;
mod wire;

use std::process::ExitCode;

/// One hot path.
pub struct Path {
    /// Its name, the layer first.
    name: String,
    /// Rounds of a short and of a long run. Their difference is what counts: more of it takes longer,
    /// less gives a single odd event more weight.
    rounds: [u64; 2],
    /// Sets up, counts so many rounds, asserts. Returns the operations.
    run: fn(u64) -> u64,
}

impl Path {
    fn new(name: impl Into<String>, run: fn(u64) -> u64) -> Path {
        Path { name: name.into(), rounds: [1_000, 3_000], run }
    }
}

fn paths() -> Vec<Path> {
    let mut paths = cdr::paths();
    paths.extend(wire::paths());
    paths.extend(core::paths());
    paths.extend(public::paths());
    paths
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let paths = paths();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["list"] => {
            for Path { name, rounds: [short, long], .. } in &paths {
                println!("{name} {short} {long}");
            }
        }
        [name, rounds] => {
            let path = paths.iter().find(|path| path.name == *name);
            let (Some(path), Ok(rounds)) = (path, rounds.parse()) else {
                eprintln!(
                    "taut-gate: no path {name}, or {rounds} is no number; `taut-gate list` has the names"
                );
                return ExitCode::from(2);
            };
            println!("operations {}", (path.run)(rounds));
        }
        _ => {
            eprintln!("usage: taut-gate list | PATH ROUNDS");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
