//! Whether a processor stands still: for a virtual machine's host, for interrupts, for what the firmware does. No priority
//! keeps that off, so no bound below the longest of these times holds here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::finding::{Finding, Lasts, Mend};
use super::measure::{cpus_from_last, fifo_here, idle_here, last_cpu, pauses, pin};
use super::system::System;

/// How long a thread looks. A loop under SCHED_FIFO is not stopped by the kernel within that: its throttle comes after 0.95 s.
/// Shorter sees less of what is rare, longer keeps the processor from others for longer.
const SPAN: Duration = Duration::from_millis(500);
/// A shorter time between two looks at the clock is an interrupt's, as of the kernel's timer. Lower counts those, higher misses
/// what a driver has to count on.
const SHORT: Duration = Duration::from_micros(20);
/// From so long on it is worth a word: as long as a sleeping thread takes to be woken. Lower and each machine has one, higher and
/// what doubles the way of a sample is called good.
const LONG: Duration = Duration::from_micros(100);

/// How a processor ran that had one thread.
#[derive(Debug)]
pub struct Still {
    cpu: usize,
    /// The longest time that it stood still, and all those together.
    longest: Duration,
    lost: Duration,
    /// Did the thread run under SCHED_FIFO? Otherwise the time of other programs is in it.
    alone: bool,
}

/// Looks on the first of these processors, or on the last one that may be used if there is none, while all others are busy: a host
/// gives a virtual machine that asks for one processor what it may not have for all.
///
/// *Cost*: nothing else runs there for [`SPAN`], if the system grants SCHED_FIFO. On the others whatever has something to do
/// goes before.
pub fn look(cpus: &[usize]) -> Result<Still, String> {
    let cpu = cpus.first().copied().map_or_else(last_cpu, Ok)?;
    let others: Vec<usize> = cpus_from_last()?.filter(|other| *other != cpu).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for other in others {
            let over = &over;
            scope.spawn(move || keep_busy(other, over));
        }
        let looked = scope.spawn(|| look_at(cpu)).join();
        over.store(true, Ordering::Relaxed);
        looked.unwrap_or_else(|_| Err("the thread that looks has ended".to_owned()))
    })
}

fn look_at(cpu: usize) -> Result<Still, String> {
    pin(cpu)?;
    let alone = fifo_here().is_ok();
    let begin = Instant::now();
    let seen = pauses(SPAN, SHORT, || begin.elapsed());
    Ok(Still { cpu, longest: seen.longest, lost: seen.all, alone })
}

/// What is refused leaves that processor as it is.
fn keep_busy(cpu: usize, over: &AtomicBool) {
    if pin(cpu).and_then(|()| idle_here()).is_ok() {
        while !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}

/// What was seen, if it was looked.
pub fn check(system: &System, looked: Option<Result<Still, String>>) -> Option<Finding> {
    let name = "standing still";
    let still = match looked? {
        Ok(still) => still,
        Err(why) => return Some(Finding::not_looked(name, why)),
    };
    let Still { cpu, longest, lost, alone } = still;
    let per_mille = lost.as_secs_f64() / SPAN.as_secs_f64() * 1e3;
    let beside = if alone { "" } else { ", other programs' time included, as SCHED_FIFO is not granted" };
    let seen = format!(
        "processor {cpu} for up to {} us, {per_mille:.1} ms of each second, while all are busy{beside}",
        longest.as_micros()
    );
    if longest < LONG {
        return Some(Finding::good(name, seen));
    }
    let cost = "whatever runs there waits for that long, and the sample with it: no bound below that holds, whatever the \
                settings";
    let command = match (alone, is_virtual(system)) {
        (false, _) => "sudo taut doctor --measure   # under SCHED_FIFO, to know what is other programs'",
        (true, true) => "on the host, give this machine processors of its own: no settings in here help",
        (true, false) => {
            "hwlatdetect --duration=60   # what the firmware does; what is left are interrupts: isolcpus, nohz_full, irqaffinity"
        }
    };
    Some(Finding::worth_changing(name, seen, cost).mend(Mend::by_hand(command, Lasts::ForGood, "")))
}

/// Does the machine say that it is a virtual one?
fn is_virtual(system: &System) -> bool {
    let cpus = system.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpus.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    fn found(longest_us: u64, alone: bool, flags: &str) -> Finding {
        let (_directory, system) =
            tree(&[("/proc/cpuinfo", &format!("processor\t: 0\nflags\t\t: fpu {flags} sse\n"))]);
        let (longest, lost) = (Duration::from_micros(longest_us), Duration::from_micros(longest_us + 150));
        check(&system, Some(Ok(Still { cpu: 1, longest, lost, alone }))).unwrap()
    }

    fn command(finding: &Finding) -> &str {
        &finding.mend.as_ref().unwrap().command
    }

    #[test]
    fn who_stands_still_is_told_for_how_long() {
        let good = found(99, true, "hypervisor");
        assert_eq!(
            (good.state, good.seen.as_str()),
            (State::Good, "processor 1 for up to 99 us, 0.5 ms of each second, while all are busy")
        );
        let host = found(4_100, true, "hypervisor");
        assert_eq!(host.state, State::WorthChanging);
        assert_eq!(host.seen, "processor 1 for up to 4100 us, 8.5 ms of each second, while all are busy");
        assert!(command(&host).starts_with("on the host"), "{host:?}");
        assert!(command(&found(100, true, "")).starts_with("hwlatdetect"));
    }

    #[test]
    fn without_the_privilege_others_may_have_been_it() {
        let found = found(4_100, false, "hypervisor");
        assert!(
            found.seen.ends_with("other programs' time included, as SCHED_FIFO is not granted"),
            "{found:?}"
        );
        assert!(command(&found).starts_with("sudo taut doctor --measure"), "{found:?}");
    }

    #[test]
    fn what_cannot_be_looked_at() {
        let why = look(&[100_000]).unwrap_err();
        assert!(why.starts_with("sched_setaffinity [100000]"), "{why}");
        let (_directory, system) = tree(&[]);
        assert_eq!(check(&system, Some(Err(why))).unwrap().state, State::NotLooked);
        assert_eq!(check(&system, None), None);
    }
}
