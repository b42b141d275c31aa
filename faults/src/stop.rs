//! Readers that are stopped and go on later: what their writer feels of it, and what they know then.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::actor::{Actor, Reply};
use crate::still::Still;

/// Long enough that nobody is forgotten while it is stopped.
const LEASE: &str = "--lease-ms 600000";
/// The time between two looks at how long writes took.
const WINDOW: Duration = Duration::from_millis(250);
const SOON: Duration = Duration::from_secs(20);
/// RESOURCE_LIMITS and max_blocking_time of the writer that has to wait.
const LIMIT: u64 = 100;
const BLOCKING_US: u64 = 200_000;
/// How much later than that a write may come back: another program may have the processor.
const LATE_US: u64 = 50_000;

/// What depends on the machine, too, is looked at so often until it is right: what is wrong with the middleware is so each
/// time.
const TRIES: usize = 3;

/// Stops readers for so many seconds, and a best-effort one `rounds` times. The writer's p99 may move by so
/// many percent.
pub fn run(seconds: u64, rounds: usize, percent: u64) -> Result<(), String> {
    another_drives(seconds)?;
    best_effort(seconds, rounds, percent)?;
    reliable(seconds)
}

/// A writer that has to wait for its reader again and again, while another thread of its process drives.
fn another_drives(seconds: u64) -> Result<(), String> {
    println!("stop: nobody, but a writer waits for room while another thread drives, for {seconds} s");
    let part = "--writer 1 --reliable --max-samples 16 --blocking-ms 5000 --period-us 0 --sizes 16 --drives";
    let mut writer = Actor::start(part);
    let mut reader = Actor::start("--reader --reliable");
    reader.await_report("samples arrive", SOON, |report| report.number("received") > 100)?;
    let still = Still::watch();
    let mut windows = windows(&mut writer, seconds)?;
    // The write that waits just now ends, too: who is told of no room is refused.
    let before = writer.ask("report")?.number("sent");
    let more = |report: &Reply| report.number("sent") > before || report.number("refused") > 0;
    let refused = writer.await_report("a write ends", SOON, more)?.number("refused");
    windows.push(writer.ask("times")?);
    let count: u64 = windows.iter().map(|times| times.number("count")).sum();
    let most_ms = windows.iter().map(|times| times.number("most")).max().unwrap_or(0) / 1_000_000;
    let still_ms = still.longest_us() / 1_000;
    println!(
        "  {count} writes, the longest took {most_ms} ms, {refused} were refused; the machine stood still for \
         {still_ms} ms at most"
    );
    // Nobody is stopped: only a writer that was not told waits for so long.
    if count == 0 || refused > 0 || most_ms.saturating_sub(still_ms) >= 500 {
        return Err("a writer was not told of room".to_owned());
    }
    writer.end()?;
    reader.end()
}

fn best_effort(seconds: u64, rounds: usize, percent: u64) -> Result<(), String> {
    println!("stop: a best-effort reader for {seconds} s, {rounds} times");
    let mut writer = Actor::start(&format!("--writer 1 --period-us 50 --sizes 64 {LEASE}"));
    let mut other = Actor::start(&format!("--reader {LEASE}"));
    let mut stopped = Actor::start(&format!("--reader {LEASE}"));
    for reader in [&mut other, &mut stopped] {
        reader.await_report("samples arrive", SOON, |report| report.number("received") > 100)?;
    }
    let mut moved = true;
    for _ in 0..TRIES {
        let (free, during) = free_and_during(&mut writer, &stopped, seconds, rounds)?;
        println!("  p99 of a write, median of windows: {free} ns free, {during} ns while it is stopped");
        moved = during == u64::MAX || during * 100 > free.saturating_mul(100 + percent);
        if !moved {
            break;
        }
    }
    writer.ask("rest")?;
    std::thread::sleep(WINDOW);
    let sent = writer.ask("report")?.number("sent");
    for (who, reader) in [("other", &mut other), ("stopped", &mut stopped)] {
        // The last may be lost as any other: what counts is that all are accounted for.
        // A reader notes what it has lost after what it has taken.
        let exact = |report: &Reply| {
            report.number("last") >= sent && report.number("received") + report.number("lost") == all(report)
        };
        let report = reader.await_report("all are accounted for", SOON, exact)?;
        let (received, lost) = (report.number("received"), report.number("lost"));
        println!("  the {who} one: {received} received + {lost} lost of {}", all(&report));
        if (who == "stopped" && lost == 0) || report.number("disorder") > 0 {
            return Err(format!("the {who} reader lost none, or took some out of order"));
        }
    }
    for actor in [writer, other, stopped] {
        actor.end()?;
    }
    if moved { Err(format!("the writer's p99 moved by more than {percent} %, each time")) } else { Ok(()) }
}

/// The median of the writer's p99 while a reader runs, and while it is stopped.
fn free_and_during(
    writer: &mut Actor,
    stopped: &Actor,
    seconds: u64,
    rounds: usize,
) -> Result<(u64, u64), String> {
    let (mut free, mut during) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        free.extend(windows(writer, seconds)?.iter().map(p99));
        stopped.stop()?;
        during.extend(windows(writer, seconds)?.iter().map(p99));
        stopped.signal(Signal::SIGCONT);
    }
    Ok((median(free), median(during)))
}

/// The samples from the first to the last that a reader has seen.
fn all(report: &Reply) -> u64 {
    report.number("last") - report.number("first") + 1
}

/// What is worse than any if no write ended.
fn p99(times: &Reply) -> u64 {
    if times.number("count") == 0 { u64::MAX } else { times.number("p99") }
}

/// How long writes took in each window of some seconds.
fn windows(writer: &mut Actor, seconds: u64) -> Result<Vec<Reply>, String> {
    writer.ask("times")?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut found = Vec::new();
    while Instant::now() < until {
        std::thread::sleep(WINDOW);
        found.push(writer.ask("times")?);
    }
    Ok(found)
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn reliable(seconds: u64) -> Result<(), String> {
    println!("stop: a reliable reader for {seconds} s");
    let blocking_ms = BLOCKING_US / 1_000;
    let part = format!("--writer 1 --reliable --max-samples {LIMIT} --blocking-ms {blocking_ms} {LEASE}");
    let mut writer = Actor::start(&part);
    let mut reader = Actor::start(&format!("--reader --reliable {LEASE}"));
    reader.await_report("samples arrive", SOON, |report| report.number("received") > 100)?;
    for _ in 0..TRIES {
        if hold_back(&mut writer, &mut reader, seconds)? < BLOCKING_US + LATE_US {
            writer.end()?;
            return reader.end();
        }
    }
    Err("a write gives up too late, each time".to_owned())
}

/// Stops the reader and fills its writer. Returns how long the write that was refused took, in us.
fn hold_back(writer: &mut Actor, reader: &mut Actor, seconds: u64) -> Result<u64, String> {
    writer.ask("rest")?;
    std::thread::sleep(WINDOW);
    let before = writer.ask("report")?.number("sent");
    reader.await_report("all have arrived", SOON, |report| report.number("last") == before)?;
    reader.stop()?;
    let stopped = Instant::now();
    writer.ask("fill")?;
    let report = writer.await_report("a write is refused", SOON, |report| report.number("writing") == 1)?;
    let (filled, blocked_us, sent) =
        (report.number("filled"), report.number("blocked_us"), report.number("sent"));
    println!("  {filled} writes accepted of {LIMIT}, the next refused after {blocked_us} us");
    std::thread::sleep(Duration::from_secs(seconds).saturating_sub(stopped.elapsed()));
    reader.signal(Signal::SIGCONT);
    let report = reader.await_report("all have arrived", SOON, |report| report.number("last") == sent)?;
    let all = all(&report);
    println!("  {} of {all} arrived, {} out of order", report.number("received"), report.number("disorder"));
    if report.number("received") != all || report.number("disorder") > 0 {
        return Err("what was accepted did not arrive once and in order".to_owned());
    }
    if filled != LIMIT || blocked_us < BLOCKING_US {
        return Err("back-pressure is not exact".to_owned());
    }
    Ok(blocked_us)
}
