//! Plays seeds: `taut-sim --seeds 1000 [--from N] [--seconds 60]`, or one: `taut-sim --seed N [--trace]`.
//!
//! A seed that fails prints the line that repeats it, and the exit code is 1. So it is if a thousand pass, and there is a
//! branch that none has reached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use taut_sim::{Outcome, Sometimes, run};

const USAGE: &str = "usage: taut-sim [--seeds COUNT] [--from SEED] [--seconds LIMIT] | --seed SEED [--trace]";
/// Seeds that reach every branch that is expected: where so many have passed, one that is missing is a failure.
const ENOUGH: u64 = 1_000;
/// Failed seeds after which it stops: more say nothing new.
const FAILURES: u64 = 10;

struct Options {
    from: u64,
    seeds: u64,
    seconds: Option<u64>,
    trace: bool,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { from: 0, seeds: 1_000, seconds: None, trace: false };
    while let Some(name) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{name} needs a number, not {value}"))
        };
        match name.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seconds" => options.seconds = Some(number()?),
            "--seed" => (options.from, options.seeds) = (number()?, 1),
            "--trace" => options.trace = true,
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    Ok(options)
}

fn play(seed: u64, trace: bool) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed, trace))).unwrap_or_else(|_| Err("panic, see above".into()))
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("taut-sim: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let (mut passed, mut failed) = (0_u64, 0_u64);
    let (mut seconds, mut written, mut taken, mut events, mut datagrams) = (0.0, 0, 0, 0, 0);
    let mut sometimes = Sometimes::default();
    for seed in (options.from..).take(usize::try_from(options.seeds).unwrap_or(usize::MAX)) {
        let over = options.seconds.is_some_and(|limit| start.elapsed().as_secs() >= limit);
        if over || failed >= FAILURES {
            break;
        }
        match play(seed, options.trace) {
            Ok(outcome) => {
                passed += 1;
                seconds += outcome.virtual_time.0 as f64 / 1e9;
                written += outcome.written;
                taken += outcome.taken;
                events += outcome.events;
                datagrams += outcome.sent.datagrams;
                sometimes.add_seed(&outcome.sometimes);
            }
            Err(problem) => {
                failed += 1;
                println!("seed {seed}: {problem}");
                println!("  repeat: cargo run --release -p taut-sim -- --seed {seed} --trace");
            }
        }
    }
    report(&sometimes, passed);
    println!(
        "{:.1} h of virtual time, {written} samples written, {taken} taken, {datagrams} datagrams, {events} events, in {:.1} s",
        seconds / 3_600.0,
        start.elapsed().as_secs_f64()
    );
    println!("{passed} seeds passed, {failed} failed");
    let is_all = passed < ENOUGH || sometimes.missing().next().is_none();
    if failed == 0 && is_all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(sometimes: &Sometimes, seeds: u64) {
    if seeds < 100 {
        return;
    }
    println!("seeds that reached a rare branch:");
    for (branch, count) in sometimes.iter() {
        println!("  {count:>6}  {branch}");
    }
    for branch in sometimes.missing() {
        println!("no seed reached: {branch}");
    }
}
