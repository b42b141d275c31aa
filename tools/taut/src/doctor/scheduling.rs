//! Who may run before whom, where, and by which clock: real-time priority, the kernel's throttle, processors of
//! one's own.

use std::time::Duration;

use nix::errno::Errno;

use super::finding::{Finding, Lasts, Mend};
use super::system::{System, cpu_list};
use super::{groups, memory};

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
/// Where a user is given a priority.
const LIMITS: &str = "/etc/security/limits.d/taut.conf";
/// The priority to allow where none is asked for: in the middle, so that there is room for more and less urgent.
const USUAL_PRIORITY: u8 = 50;
/// What a group without any is to have of each second under SCHED_FIFO. Lower stops its threads sooner; higher leaves
/// less for other groups, whose shares add up to at most that of the group above.
const GROUP_RUNTIME_US: u32 = 50_000;
/// Above this time a look at the clock is a system call or a slow device's register.
const SLOW_CLOCK_NS: u64 = 200;

/// What was tried or measured besides.
pub struct Tried {
    /// The priority that was tried.
    pub priority: u8,
    /// Did the system give SCHED_FIFO at `priority`? Otherwise the call and why not.
    pub fifo: Result<(), String>,
    /// Did the system let a thread run on the processors that are asked for? Otherwise the call and why not.
    pub cpus: Result<(), String>,
    /// The longest pause of a thread that spun under SCHED_FIFO for a second; `None`: not measured.
    pub stall: Option<Result<Duration, String>>,
    /// Nanoseconds of one look at the clock.
    pub clock_ns: u64,
}

/// All checks of this module; `priority` and `cpus` are what the configuration asks for the driver's thread.
pub fn check(system: &System, priority: u8, cpus: &[usize], tried: &Tried) -> Vec<Finding> {
    vec![
        real_time(system, priority, tried),
        throttle(system, tried),
        isolation(system, cpus, tried),
        clock(system, tried.clock_ns),
    ]
}

fn real_time(system: &System, asked: u8, tried: &Tried) -> Finding {
    let name = "real-time priority";
    let why = match &tried.fifo {
        Ok(()) => return Finding::good(name, format!("SCHED_FIFO {} is granted", tried.priority)),
        Err(why) => why,
    };
    let mend = match groups::without_real_time(system) {
        Some(file) => {
            let command = format!("echo {GROUP_RUNTIME_US} > {file}");
            Mend::by_hand(command, Lasts::UntilReboot, format!("echo 0 > {file}"))
        }
        None => {
            let granted = if asked > 0 { asked } else { USUAL_PRIORITY };
            let command = format!("echo \"$USER - rtprio {granted}\" | sudo tee {LIMITS}");
            Mend::by_hand(command, Lasts::FromNextLogin, format!("sudo rm {LIMITS}"))
        }
    };
    if asked > 0 {
        let cost = format!("driver_priority = {asked} is refused: no participant can be made");
        return Finding::harmful(name, why, cost).mend(mend);
    }
    let cost = "the driver's thread waits for other threads of this machine, for milliseconds if they are busy; with \
                the privilege driver_priority runs it first";
    Finding::worth_changing(name, why, cost).mend(mend)
}

/// What SCHED_DEADLINE needs, if the configuration asks for it: it was `tried` then.
pub fn deadline(system: &System, tried: Option<Result<(), Errno>>) -> Option<Finding> {
    /// The bit of CAP_SYS_NICE in a set of capabilities (linux/capability.h).
    const CAP_SYS_NICE: u32 = 23;
    let name = "deadline of the driver";
    let errno = match tried? {
        Ok(()) => return Some(Finding::good(name, "SCHED_DEADLINE is granted")),
        Err(errno) => errno,
    };
    let cost = "driver_deadline is refused: no participant can be made";
    let mend = match errno {
        Errno::EPERM if !memory::has(system, CAP_SYS_NICE) => Mend::by_hand(
            "setcap cap_sys_nice=ep PROGRAM   # AmbientCapabilities=CAP_SYS_NICE for a service",
            Lasts::ForGood,
            "setcap -r PROGRAM",
        ),
        // Such a thread runs on all processors of its partition, so a program that may use only some has none.
        Errno::EPERM => Mend::by_hand(
            "taskset -p -a -c PROCESSORS PID   # all that the machine or the partition (cpuset) of the program has",
            Lasts::UntilReboot,
            "",
        ),
        Errno::EBUSY => Mend::by_hand(
            "driver_deadline with a lower runtime: there is no such share of the processors left",
            Lasts::ForGood,
            "",
        ),
        _ => Mend::by_hand(
            "sysctl kernel.sched_deadline_period_min_us kernel.sched_deadline_period_max_us   # the period is between them",
            Lasts::ForGood,
            "",
        ),
    };
    Some(Finding::harmful(name, format!("sched_setattr SCHED_DEADLINE: {errno}"), cost).mend(mend))
}

fn throttle(system: &System, tried: &Tried) -> Finding {
    let name = "real-time throttle";
    let (runtime, period) = match (system.number::<i64>(RUNTIME), system.number::<i64>(PERIOD)) {
        (Ok(runtime), Ok(period)) => (runtime, period),
        (Err(unseen), _) | (_, Err(unseen)) => return Finding::not_looked(name, unseen),
    };
    let measured = match &tried.stall {
        None => "; --measure tells how long here".to_owned(),
        Some(Ok(stall)) => format!("; measured here: {:.1} ms", stall.as_secs_f64() * 1e3),
        Some(Err(why)) => format!("; not measured: {why}"),
    };
    let limited = runtime >= 0 && runtime < period;
    let server = fair_server(system).filter(|ns| *ns > 0).map(|ns| Stopping {
        what: format!("the fair server takes {} ms of each second for threads that wait", ns / 1_000_000),
        off: format!("echo 0 | tee {FAIR_SERVER}/cpu*/runtime"),
        on: format!("echo {ns} | tee {FAIR_SERVER}/cpu*/runtime"),
    });
    let limit = limited.then(|| Stopping {
        what: format!("{} ms of each {} ms are kept for others", (period - runtime) / 1_000, period / 1_000),
        off: "sysctl -w kernel.sched_rt_runtime_us=-1".to_owned(),
        on: format!("sysctl -w kernel.sched_rt_runtime_us={runtime}"),
    });
    // Either is enough, and whether the limit still counts beside the server depends on how the kernel was built.
    let stopping: Vec<Stopping> = server.into_iter().chain(limit).collect();
    if stopping.is_empty() {
        return Finding::good(name, format!("none{measured}"));
    }
    let whats: Vec<&str> = stopping.iter().map(|of| of.what.as_str()).collect();
    let offs: Vec<&str> = stopping.iter().map(|of| of.off.as_str()).collect();
    // What was switched off last is switched on first.
    let ons: Vec<&str> = stopping.iter().rev().map(|of| of.on.as_str()).collect();
    let cost = "a thread of yours that polls under SCHED_FIFO without sleep is stopped for that long; Taut's own \
                driver sleeps and is not. Without the throttle such a thread can take its processor for ever: \
                give it one of its own first (isolcpus)";
    let mend = Mend::by_hand(offs.join("\n"), Lasts::UntilReboot, ons.join("\n"));
    Finding::worth_changing(name, format!("{}{measured}", whats.join("; ")), cost).mend(mend)
}

/// Something of the kernel's that stops a thread under SCHED_FIFO.
struct Stopping {
    what: String,
    /// The commands that switch it off and on again.
    off: String,
    on: String,
}

/// Nanoseconds of each second that the fair server takes; `None` on a kernel without one. Where its file cannot be
/// read, as without debugfs, it is what the kernel gives it at first.
fn fair_server(system: &System) -> Option<u64> {
    const AT_FIRST_NS: u64 = 50_000_000;
    let told = system.number(&format!("{FAIR_SERVER}/cpu0/runtime")).ok();
    told.or_else(|| has_fair_server(&system.text("/proc/sys/kernel/osrelease").ok()?).then_some(AT_FIRST_NS))
}

/// Linux 6.12 brought it.
fn has_fair_server(release: &str) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (6, 12)
}

fn isolation(system: &System, asked: &[usize], tried: &Tried) -> Finding {
    let name = "processors of its own";
    if let Err(why) = &tried.cpus {
        let cost = format!("driver_cpus = {asked:?} is refused: no participant can be made");
        let command = "grep Cpus_allowed_list /proc/self/status   # name some of these in driver_cpus";
        return Finding::harmful(name, why, cost).mend(Mend::by_hand(command, Lasts::ForGood, ""));
    }
    let isolated = match system.text("/sys/devices/system/cpu/isolated") {
        Ok(text) => text,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let ticks_off = system.text("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    let listed = |text: &str| if cpu_list(text).is_empty() { "none".to_owned() } else { text.to_owned() };
    let seen = format!("isolated: {}, without ticks: {}", listed(&isolated), listed(&ticks_off));
    if asked.is_empty() {
        return Finding::good(name, format!("driver_cpus asks for none; {seen}"));
    }
    let isolated = cpu_list(&isolated);
    let shared: Vec<String> =
        asked.iter().filter(|cpu| !isolated.contains(cpu)).map(usize::to_string).collect();
    if shared.is_empty() {
        return Finding::good(name, seen);
    }
    let shared = shared.join(",");
    let cost =
        format!("other threads and the kernel's own work run on {shared}, where driver_cpus puts the driver");
    let command =
        format!("add isolcpus={shared} nohz_full={shared} to the kernel's command line, and reboot");
    let mend = Mend::by_hand(command, Lasts::ForGood, "take it out again, and reboot");
    Finding::worth_changing(name, seen, cost).mend(mend)
}

fn clock(system: &System, read_ns: u64) -> Finding {
    let name = "clock";
    let source = match system.text(&format!("{CLOCK}/current_clocksource")) {
        Ok(source) => source,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let seen = format!("{source}, {read_ns} ns a look");
    if read_ns < SLOW_CLOCK_NS {
        return Finding::good(name, seen);
    }
    let cost = "each step looks at the clock several times, and waits that long each time";
    let found = Finding::worth_changing(name, seen, cost);
    let available = system.text(&format!("{CLOCK}/available_clocksource")).unwrap_or_default();
    if source == "tsc" || !available.split_whitespace().any(|word| word == "tsc") {
        return found;
    }
    found.mend(Mend::by_hand(
        format!("echo tsc > {CLOCK}/current_clocksource"),
        Lasts::UntilReboot,
        format!("echo {source} > {CLOCK}/current_clocksource"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    fn tried() -> Tried {
        Tried { priority: 1, fifo: Ok(()), cpus: Ok(()), stall: None, clock_ns: 25 }
    }

    #[test]
    fn a_priority_that_is_refused() {
        let (_directory, system) = tree(&[]);
        let refused = Tried { fifo: Err("sched_setscheduler SCHED_FIFO 50: EPERM".to_owned()), ..tried() };
        assert_eq!(real_time(&system, 0, &tried()).state, State::Good);
        assert_eq!(real_time(&system, 0, &refused).state, State::WorthChanging);
        let found = real_time(&system, 50, &Tried { priority: 50, ..refused });
        assert!(found.state == State::Harmful && found.seen.contains("SCHED_FIFO 50: EPERM"), "{found:?}");
    }

    #[test]
    fn a_deadline_that_is_refused() {
        let of = |capabilities: &str, tried| {
            let (_directory, system) = tree(&[("/proc/self/status", &format!("CapEff:\t{capabilities}\n"))]);
            deadline(&system, tried)
        };
        let (nice, other) = ("0000000000800000", "0000000000004000");
        assert_eq!(of("0", None), None);
        assert_eq!(of(nice, Some(Ok(()))).unwrap().state, State::Good);
        for (capabilities, errno, mend) in [
            (other, Errno::EPERM, "setcap cap_sys_nice=ep "),
            (nice, Errno::EPERM, "taskset -p -a -c "),
            (nice, Errno::EBUSY, "driver_deadline with a lower runtime"),
            (nice, Errno::EINVAL, "sysctl kernel.sched_deadline_period_min_us "),
        ] {
            let found = of(capabilities, Some(Err(errno))).unwrap();
            assert!(found.state == State::Harmful && found.seen.contains(&errno.to_string()), "{found:?}");
            assert!(found.mend.as_ref().unwrap().command.starts_with(mend), "{found:?}");
        }
    }

    #[test]
    fn a_group_without_real_time() {
        let file = "/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us";
        let mount = "30 28 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let of = |runtime: &str| {
            let files = [
                ("/proc/self/cgroup", "2:cpu,cpuacct:/a\n"),
                ("/proc/self/mountinfo", mount),
                (file, runtime),
            ];
            let (_directory, system) = tree(&files);
            real_time(&system, 0, &Tried { fifo: Err("EPERM".to_owned()), ..tried() }).mend.unwrap().command
        };
        assert_eq!(of("0\n"), format!("echo 50000 > {file}"));
        assert!(of("950000\n").contains("rtprio"), "the privilege is what is missing");
    }

    #[test]
    fn the_throttle_of_older_kernels() {
        let of = |runtime: &str, stall| {
            let (_directory, system) = tree(&[(RUNTIME, runtime), (PERIOD, "1000000")]);
            throttle(&system, &Tried { stall, ..tried() })
        };
        let found = of("950000", Some(Ok(Duration::from_micros(49_900))));
        assert_eq!(found.seen, "50 ms of each 1000 ms are kept for others; measured here: 49.9 ms");
        let mend = found.mend.unwrap();
        assert_eq!(mend.undo, "sysctl -w kernel.sched_rt_runtime_us=950000");
        assert!(mend.writes.is_empty(), "a loop without sleep could hold the machine for ever");
        assert_eq!(of("-1", None).state, State::Good);
        assert_eq!(of("1000000", None).state, State::Good);
    }

    #[test]
    fn the_fair_server_of_newer_ones() {
        let server = format!("{FAIR_SERVER}/cpu0/runtime");
        let of = |files: &[(&str, &str)]| {
            let all = [&[(RUNTIME, "-1"), (PERIOD, "1000000")], files].concat();
            let (_directory, system) = tree(&all);
            throttle(&system, &tried())
        };
        let found = of(&[(&server, "30000000")]);
        assert!(found.seen.starts_with("the fair server takes 30 ms of each second"), "{found:?}");
        assert!(found.mend.unwrap().undo.starts_with("echo 30000000 | tee "));
        assert_eq!(of(&[(&server, "0")]).state, State::Good);
        let release = "/proc/sys/kernel/osrelease";
        assert!(of(&[(release, "6.12.0-rt\n")]).seen.starts_with("the fair server takes 50 ms"));
        assert_eq!(of(&[(release, "6.8.0-45-generic\n")]).state, State::Good);
        assert_eq!(of(&[(release, "5.15.0\n")]).state, State::Good);
        assert_eq!(of(&[(release, "7.0.0\n")]).state, State::WorthChanging);
    }

    #[test]
    fn both_are_switched_off_where_both_may_stop_a_thread() {
        let server = format!("{FAIR_SERVER}/cpu0/runtime");
        let of = |runtime: &str| {
            let files = [(RUNTIME, runtime), (PERIOD, "1000000"), (server.as_str(), "50000000")];
            let (_directory, system) = tree(&files);
            throttle(&system, &tried())
        };
        let found = of("950000");
        let both = "the fair server takes 50 ms of each second for threads that wait; \
                    50 ms of each 1000 ms are kept for others; --measure";
        assert!(found.seen.starts_with(both), "{found:?}");
        let mend = found.mend.unwrap();
        let server = |ns: u64| format!("echo {ns} | tee {FAIR_SERVER}/cpu*/runtime");
        let limit = |us: i64| format!("sysctl -w kernel.sched_rt_runtime_us={us}");
        assert_eq!(mend.command, format!("{}\n{}", server(0), limit(-1)));
        assert_eq!(mend.undo, format!("{}\n{}", limit(950_000), server(50_000_000)));
        assert!(mend.writes.is_empty(), "a loop without sleep could hold the machine for ever");
        let alone = of("-1").mend.unwrap();
        assert!(!alone.command.contains("sysctl") && !alone.undo.contains("sysctl"), "{alone:?}");
    }

    #[test]
    fn processors_that_others_use_too() {
        let (_directory, system) = tree(&[("/sys/devices/system/cpu/isolated", "2-3\n")]);
        assert_eq!(isolation(&system, &[], &tried()).state, State::Good);
        assert_eq!(isolation(&system, &[2, 3], &tried()).state, State::Good);
        let found = isolation(&system, &[1, 2], &tried());
        assert!(found.mend.unwrap().command.contains("isolcpus=1 "), "{}", found.cost);
    }

    #[test]
    fn a_slow_clock() {
        let of = |source: &str| {
            let (current, available) =
                (format!("{CLOCK}/current_clocksource"), format!("{CLOCK}/available_clocksource"));
            let (_directory, system) = tree(&[(&current, source), (&available, "tsc hpet ")]);
            (clock(&system, 25), clock(&system, 900))
        };
        assert_eq!(of("hpet").0.state, State::Good);
        assert!(of("hpet").1.mend.unwrap().command.starts_with("echo tsc > "));
        assert!(of("tsc").1.mend.is_none() && of("tsc").1.state == State::WorthChanging);
    }
}
