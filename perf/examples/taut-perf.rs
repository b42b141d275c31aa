//! The benchmark with a command line of its own: how a program embeds it.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

static STOP: AtomicBool = AtomicBool::new(false);

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    arguments: taut_perf::Arguments,
}

fn main() -> ExitCode {
    let program = Program::parse();
    let request = || STOP.store(true, Ordering::SeqCst);
    ctrlc::set_handler(request).expect("nobody else has set a handler");
    let stop = taut_perf::Stop { requested: || STOP.load(Ordering::SeqCst), request };
    match taut_perf::run(&program.arguments, stop) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("taut-perf: {failure}");
            ExitCode::from(2)
        }
    }
}
