//! Checks of Taut's own style, run as `cargo xtask tidy`, the gate of instruction counts, and the order of functions.
//!
//! Owns the rules of `layers.toml` and of the style: which crate may use which, what the pure floors
//! must not touch, how long files and functions may be, where `unsafe` may stand. Reads sources as
//! tokens, changes nothing; only `bench-gate --write` and `layout` store something. Called by people and by
//! `make test`.
#![forbid(unsafe_code)]

mod bench_gate;
mod dependencies;
mod layers;
mod layout;
mod lexer;
mod lines;
mod markers;
mod programs;
mod purity;
mod report;
mod sizes;
mod source;
mod steps;
mod tidy;
mod unsafe_code;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "usage: cargo xtask tidy     check floors, purity, sizes, unsafe, markers, dependencies
       cargo xtask lines    count the lines of every crate
       cargo xtask bench-gate [--write]
                            count the instructions of the hot paths and compare them with
                            docs/results/instructions.json, or store them there
       cargo xtask layout [--check]
                            find the functions that run, for layout/functions.ld, or
                            whether it names them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["bench-gate"] => bench_gate::run(&root()),
        ["bench-gate", "--write"] => bench_gate::write(&root()),
        ["layout"] => layout::write(&root()),
        ["layout", "--check"] => layout::check(&root()),
        ["lines"] => tidy::print_lines(&root()).map(|()| true),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => Err(HELP.to_string()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The workspace: the directory above this crate.
fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}
