//! What is measured on this machine: a look at the clock, a thread that is woken, a thread under SCHED_FIFO.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use taut::DeadlineScheduling;
use thread_priority::{
    DeadlineFlags, NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority,
    ThreadPriorityValue, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

use super::power::{MANY_MISSED, MISSED, Measured, Waking};

/// How long processors may take to leave idle states, in us.
const IDLE_LIMIT: &str = "/dev/cpu_dma_latency";
/// Looks at the clock that are averaged: well above what one interrupt adds.
const LOOKS: u32 = 20_000;
/// Rounds of waking, and the rest between two of them, in which a processor falls asleep: 0.15 s in all.
const ROUNDS: usize = 100;
const REST: Duration = Duration::from_micros(1_500);
/// Rounds in which a thread is woken while its processor falls asleep: 0.02 s. Fewer and a machine that misses one in a
/// hundred looks like a good one.
const QUICK_ROUNDS: u64 = 1_000;
/// The rest between two of them is shorter than this. A processor takes some microseconds to fall asleep.
const QUICK_REST_NS: u64 = 20_000;
/// So much longer each time, until it begins anew.
const QUICK_STEP_NS: u64 = 100;
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
    let is_held_off = is_idle_held_off();
    let waking = wake_up();
    let without_idle = hold_off_idle().map(|_held| wake_up());
    Measured {
        waking,
        is_held_off,
        without_idle: without_idle
            .map_err(|error| format!("open {IDLE_LIMIT}: {error}; root may: `sudo taut doctor`")),
    }
}

/// Does somebody hold them off already? Root may ask.
fn is_idle_held_off() -> bool {
    let mut us = [0; 4];
    let read = File::open(IDLE_LIMIT).and_then(|mut file| file.read_exact(&mut us));
    read.is_ok() && i32::from_ne_bytes(us) == 0
}

/// As long as the file is open no processor enters a state that takes time to leave.
fn hold_off_idle() -> io::Result<File> {
    let mut file = File::options().write(true).open(IDLE_LIMIT)?;
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
    // Without a second processor nothing can be missed so.
    let missed = missed_wakes().unwrap_or(0);
    Waking { median: at(took.len() / 2), longest: at(took.len().saturating_sub(1)), missed }
}

/// How often a processor that another one wakes while it falls asleep notices that late, of [`QUICK_ROUNDS`] times; not
/// beyond [`MANY_MISSED`].
fn missed_wakes() -> Result<u64, String> {
    let [near, far] = last_cpus()?;
    // It is pinned, and the caller is not.
    let waker = std::thread::spawn(move || pin(near).and_then(|()| wake_early(far)));
    waker.join().unwrap_or_else(|_| Err("the thread that wakes has ended".to_owned()))
}

fn wake_early(far: usize) -> Result<u64, String> {
    let begin = Instant::now();
    let now_ns = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (called_at, round, answered) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            pin(far)?;
            let mut missed = 0;
            for number in 1..=QUICK_ROUNDS {
                while round.load(Ordering::Acquire) < number {
                    std::thread::park();
                }
                let took = now_ns().saturating_sub(called_at.load(Ordering::Relaxed));
                missed += u64::from(Duration::from_nanos(took) >= MISSED);
                if missed == MANY_MISSED {
                    break;
                }
                answered.store(number, Ordering::Release);
            }
            Ok(missed)
        });
        for number in 1..=QUICK_ROUNDS {
            let until = now_ns() + number * QUICK_STEP_NS % QUICK_REST_NS;
            while now_ns() < until {}
            called_at.store(now_ns(), Ordering::Relaxed);
            round.store(number, Ordering::Release);
            sleeper.thread().unpark();
            while answered.load(Ordering::Acquire) < number && !sleeper.is_finished() {
                std::hint::spin_loop();
            }
            if sleeper.is_finished() {
                break;
            }
        }
        sleeper.join().unwrap_or_else(|_| Err("the thread that sleeps has ended".to_owned()))
    })
}

/// Does the system give a thread SCHED_FIFO at this priority? Asked for by a thread that ends.
pub fn fifo(priority: u8) -> Result<(), String> {
    let asked = std::thread::spawn(move || set_fifo(priority));
    asked.join().unwrap_or_else(|_| Err("the thread that asked has ended".to_owned()))
}

fn set_fifo(priority: u8) -> Result<(), String> {
    let value = ThreadPriority::Crossplatform(ThreadPriorityValue::try_from(priority)?);
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_policy(value, policy, &format!("SCHED_FIFO {priority}"))
}

fn set_policy(value: ThreadPriority, policy: ThreadSchedulePolicy, named: &str) -> Result<(), String> {
    set_thread_priority_and_policy(thread_native_id(), value, policy).map_err(|error| {
        let why = match error {
            thread_priority::Error::OS(errno) => io::Error::from_raw_os_error(errno).to_string(),
            other => format!("{other:?}"),
        };
        format!("sched_setscheduler {named}: {why}")
    })
}

/// Does the system give a thread on these processors SCHED_DEADLINE with these times? Asked for by a thread that ends.
pub fn deadline(times: DeadlineScheduling) -> Result<(), Errno> {
    std::thread::spawn(move || set_deadline(times)).join().unwrap_or(Err(Errno::UnknownErrno))
}

fn set_deadline(times: DeadlineScheduling) -> Result<(), Errno> {
    let wanted = ThreadPriority::Deadline {
        runtime: times.runtime.into(),
        deadline: times.deadline.into(),
        period: times.period.into(),
        flags: DeadlineFlags::RESET_ON_FORK,
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    /// The kernel's name for the thread that calls.
    const THIS_THREAD: thread_priority::ThreadId = 0;
    set_thread_priority_and_policy(THIS_THREAD, wanted, policy).map_err(|_| Errno::last())
}

/// Does the system let a thread run on these processors, if any are named? Asked for by a thread that ends.
pub fn cpus(cpus: &[usize]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| pin_to(cpus));
        asked.join().unwrap_or_else(|_| Err("the thread that asked has ended".to_owned()))
    })
}

/// The longest pause of a thread that spins under SCHED_FIFO beside one that would like its processor.
pub fn stall() -> Result<Duration, String> {
    let cpu = last_cpu()?;
    let (over, both_there) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            let pinned = pin(cpu);
            both_there.wait();
            pinned?;
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        });
        let spinner = scope.spawn(|| {
            let first = pin(cpu).and_then(|()| fifo_here());
            both_there.wait();
            let longest = first.map(|()| {
                let begin = Instant::now();
                pauses(SPIN, Duration::ZERO, || begin.elapsed()).longest
            });
            over.store(true, Ordering::Relaxed);
            longest
        });
        let longest = spinner.join().unwrap_or_else(|_| Err("the thread that spins has ended".to_owned()))?;
        rival.join().unwrap_or_else(|_| Err("its rival has ended".to_owned())).map(|()| longest)
    })
}

/// What a thread that looks at the clock has missed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The longest time between two looks.
    pub longest: Duration,
    /// All those together that are not too short to count.
    pub all: Duration,
}

/// Looks at a clock that begins at 0 for this `span`; what is shorter than `least` counts for the longest time only.
pub fn pauses(span: Duration, least: Duration, mut clock: impl FnMut() -> Duration) -> Pauses {
    let (mut before, mut seen) = (Duration::ZERO, Pauses::default());
    while before < span {
        let now = clock();
        let pause = now.saturating_sub(before);
        seen.longest = seen.longest.max(pause);
        if pause >= least {
            seen.all += pause;
        }
        before = now;
    }
    seen
}

/// Has the calling thread run before all that is not real-time. The call and why not, if it is refused.
pub fn fifo_here() -> Result<(), String> {
    set_fifo(1)
}

/// Has the calling thread run when nobody else does. The call and why not, if it is refused.
pub fn idle_here() -> Result<(), String> {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_policy(ThreadPriority::Min, policy, "SCHED_IDLE")
}

/// The processors that this process may use, the last one first: the first ones have the machine's own work.
pub fn cpus_from_last() -> Result<impl Iterator<Item = usize>, String> {
    let allowed =
        sched_getaffinity(Pid::from_raw(0)).map_err(|errno| format!("sched_getaffinity: {errno}"))?;
    Ok((0..CpuSet::count()).rev().filter(move |cpu| allowed.is_set(*cpu) == Ok(true)))
}

/// The last processor that this process may use.
pub fn last_cpu() -> Result<usize, String> {
    cpus_from_last()?.next().ok_or_else(|| "no processor may be used".to_owned())
}

fn last_cpus() -> Result<[usize; 2], String> {
    let mut cpus = cpus_from_last()?;
    cpus.next().zip(cpus.next()).map(Into::into).ok_or_else(|| "there is one processor".to_owned())
}

/// Has the calling thread run there only.
pub fn pin(cpu: usize) -> Result<(), String> {
    pin_to(&[cpu])
}

fn pin_to(cpus: &[usize]) -> Result<(), String> {
    let refused = |why: String| format!("sched_setaffinity {cpus:?}: {why}");
    let mut only = CpuSet::new();
    let set = cpus.iter().try_for_each(|cpu| only.set(*cpu));
    let set = set.and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    set.map_err(|errno| refused(errno.to_string()))?;
    // What the kernel does not let it run on it leaves out without a word, as long as there is another one.
    let Ok(given) = sched_getaffinity(Pid::from_raw(0)) else { return Ok(()) };
    let left_out: Vec<_> = cpus.iter().filter(|cpu| given.is_set(**cpu) != Ok(true)).collect();
    if left_out.is_empty() { Ok(()) } else { Err(refused(format!("the kernel leaves out {left_out:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_a_machine() {
        assert!((1..1_000_000).contains(&clock_ns()));
        let waking = wake_up();
        assert!(waking.median > Duration::ZERO && waking.median <= waking.longest, "{waking:?}");
        assert!(waking.missed <= MANY_MISSED, "{waking:?}");
    }

    #[test]
    fn the_longest_pause_is_told_and_those_that_count() {
        let pause = |stopped_us: &[(usize, u64)]| {
            let (mut looks, mut now_us) = (0, 0);
            pauses(SPIN, Duration::from_millis(35), || {
                let stopped = stopped_us.iter().find(|(look, _)| *look == looks);
                looks += 1;
                now_us += stopped.map_or(100, |(_, us)| *us);
                Duration::from_micros(now_us)
            })
        };
        let seen = |longest, all| Pauses {
            longest: Duration::from_micros(longest),
            all: Duration::from_micros(all),
        };
        assert_eq!(pause(&[]), seen(100, 0));
        assert_eq!(pause(&[(7, 30_000), (9, 49_900), (11, 40_000)]), seen(49_900, 89_900));
        assert_eq!(pause(&[(10_999, 50_000)]), seen(50_000, 50_000), "it begins within the time");
        assert_eq!(pause(&[(11_000, 50_000)]), seen(100, 0), "it begins behind it");
    }

    #[test]
    fn a_priority_that_no_system_has() {
        assert!(fifo(100).is_err());
    }
}
