//! What is measured on this machine: a look at the clock, a thread that is woken, a thread under SCHED_FIFO.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use super::power::{Measured, Waking};

/// Looks at the clock that are averaged: well above what one interrupt adds.
const LOOKS: u32 = 20_000;
/// Rounds of waking, and the rest between two of them, in which a processor falls asleep: 0.15 s in all.
const ROUNDS: usize = 100;
const REST: Duration = Duration::from_micros(1_500);
/// How long a thread spins under SCHED_FIFO: a period of the throttle, and a little.
const SPIN: Duration = Duration::from_millis(1_100);

/// Nanoseconds of one look at the clock.
pub fn clock_ns() -> u64 {
    let begin = Instant::now();
    for _ in 0..LOOKS {
        black_box(Instant::now());
    }
    u64::try_from(begin.elapsed().as_nanos() / u128::from(LOOKS)).unwrap_or(u64::MAX)
}

/// How long a sleeping thread takes to run, as the machine is and while idle states are held off.
pub fn waking() -> Measured {
    let waking = wake_up();
    let without_idle = hold_off_idle().map(|_held| wake_up());
    Measured {
        waking,
        without_idle: without_idle
            .map_err(|error| format!("open /dev/cpu_dma_latency: {error}; root may: `sudo taut doctor`")),
    }
}

/// As long as the file is open no processor enters a state that takes time to leave.
fn hold_off_idle() -> io::Result<File> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

fn wake_up() -> Waking {
    let (sender, receiver) = mpsc::channel::<Instant>();
    let (answer, answers) = mpsc::channel::<Duration>();
    let sleeper = std::thread::spawn(move || {
        for woken in receiver {
            if answer.send(woken.elapsed()).is_err() {
                return;
            }
        }
    });
    let mut took: Vec<Duration> = (0..ROUNDS)
        .filter_map(|_| {
            std::thread::sleep(REST);
            sender.send(Instant::now()).ok()?;
            answers.recv().ok()
        })
        .collect();
    drop(sender);
    let _ = sleeper.join();
    took.sort_unstable();
    let at = |index: usize| took.get(index).copied().unwrap_or_default();
    Waking { median: at(took.len() / 2), longest: at(took.len().saturating_sub(1)) }
}

/// Does the system give a thread SCHED_FIFO at this priority? Asked for by a thread that ends.
pub fn fifo(priority: u8) -> Result<(), String> {
    let asked = std::thread::spawn(move || set_fifo(priority));
    asked.join().unwrap_or_else(|_| Err("the thread that asked has ended".to_owned()))
}

fn set_fifo(priority: u8) -> Result<(), String> {
    let value = ThreadPriorityValue::try_from(priority)?;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let set =
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), policy);
    set.map_err(|error| {
        let why = match error {
            thread_priority::Error::OS(errno) => io::Error::from_raw_os_error(errno).to_string(),
            other => format!("{other:?}"),
        };
        format!("sched_setscheduler SCHED_FIFO {priority}: {why}")
    })
}

/// The longest pause of a thread that spins under SCHED_FIFO beside one that would like its processor.
pub fn stall() -> Result<Duration, String> {
    let cpu = last_cpu()?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            pin(cpu)?;
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        });
        let spinner = scope.spawn(|| {
            let longest = pin(cpu).and_then(|()| set_fifo(1)).map(|()| longest_pause());
            over.store(true, Ordering::Relaxed);
            longest
        });
        let longest = spinner.join().unwrap_or_else(|_| Err("the thread that spins has ended".to_owned()))?;
        rival.join().unwrap_or_else(|_| Err("its rival has ended".to_owned())).map(|()| longest)
    })
}

fn longest_pause() -> Duration {
    let begin = Instant::now();
    let (mut before, mut longest) = (begin, Duration::ZERO);
    while before.duration_since(begin) < SPIN {
        let now = Instant::now();
        longest = longest.max(now.duration_since(before));
        before = now;
    }
    longest
}

/// The last processor that this process may use: the first ones have the machine's own work.
fn last_cpu() -> Result<usize, String> {
    let allowed =
        sched_getaffinity(Pid::from_raw(0)).map_err(|errno| format!("sched_getaffinity: {errno}"))?;
    let last = (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu) == Ok(true));
    last.ok_or_else(|| "no processor may be used".to_owned())
}

fn pin(cpu: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    let set = only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    set.map_err(|errno| format!("sched_setaffinity {cpu}: {errno}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_a_machine() {
        assert!((1..1_000_000).contains(&clock_ns()));
        let waking = wake_up();
        assert!(waking.median > Duration::ZERO && waking.median <= waking.longest, "{waking:?}");
    }

    #[test]
    fn a_priority_that_no_system_has() {
        assert!(fifo(100).is_err());
    }
}
