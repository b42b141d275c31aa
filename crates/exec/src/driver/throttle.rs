//! What the kernel does to a thread under a real-time policy that never sleeps: it stops it.
//!
//! Two mechanisms, of which either is enough: the throttle (`kernel.sched_rt_runtime_us`) and, from Linux 6.12 on,
//! the fair server, which takes its share while another thread waits for the processor.

use std::fmt;
use std::fs::File;
use std::io::Read;

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const SERVER_RUNTIME: &str = "/sys/kernel/debug/sched/fair_server/cpu0/runtime";
const SERVER_PERIOD: &str = "/sys/kernel/debug/sched/fair_server/cpu0/period";

/// How much more than the kernel wants a thread rests: some of each rest goes into falling asleep and waking up. With 9
/// it was stopped for 50 ms all the same, higher and it rests more often. *Units*: thousandths.
const MORE: i64 = 30;

/// What stops the calling thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Throttle {
    /// Time that is kept for others, of each period. *Units*: us.
    kept: i64,
    period: i64,
    /// How to switch it off.
    remedy: &'static str,
}

/// What a file of the kernel begins with: more than a number, or what counts of a release. On the stack, as a thread that
/// polls asks again and again.
pub(super) struct Text {
    bytes: [u8; 64],
    len: usize,
}

impl Text {
    /// `None` if the file cannot be read.
    fn read(file: &str) -> Option<Text> {
        let mut bytes = [0; 64];
        let len = File::open(file).ok()?.read(&mut bytes).ok()?;
        Some(Text { bytes, len })
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default().trim()
    }
}

impl Throttle {
    /// `None` if nothing does.
    pub fn of_this_thread() -> Option<Throttle> {
        taut_lock::has_fixed_priority().then(|| Throttle::of(Text::read))?
    }

    /// By what the kernel's files say.
    pub(super) fn of(text: impl Fn(&str) -> Option<Text>) -> Option<Throttle> {
        let number = |file: &str| text(file)?.as_str().parse::<i64>().ok();
        let (runtime, period) = (number(RUNTIME).unwrap_or(950_000), number(PERIOD).unwrap_or(1_000_000));
        let limit = (0..period).contains(&runtime).then_some(Throttle {
            kept: period - runtime,
            period,
            remedy: "`sysctl -w kernel.sched_rt_runtime_us=-1`",
        });
        let release = text("/proc/sys/kernel/osrelease");
        let has_server = release.is_some_and(|release| is_at_least_6_12(release.as_str()));
        let us = |file, at_first_ns| number(file).unwrap_or(at_first_ns) / 1_000;
        // Without debugfs it is what the kernel gives it at first.
        let (kept, every) = (us(SERVER_RUNTIME, 50_000_000), us(SERVER_PERIOD, 1_000_000_000));
        let server = (has_server && kept > 0 && every > 0).then_some(Throttle {
            kept,
            period: every,
            remedy: "`echo 0 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime` and \
                     `sysctl -w kernel.sched_rt_runtime_us=-1`",
        });
        server.into_iter().chain(limit).max_by_key(Throttle::share)
    }

    /// How much of its time a thread is to rest, so that it is not stopped. *Units*: thousandths.
    pub fn share(&self) -> i64 {
        self.kept * 1_000 / self.period.max(1) + MORE
    }
}

fn is_at_least_6_12(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next()) >= (6, 12)
}

/// For the log.
impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the polling driver runs under a real-time policy, and the kernel keeps {} ms of each {} ms for other \
             threads: it rests for 60 us at a time, {} % of the time, so as not to be stopped for that long, \
             which helps while no other real-time thread runs on its processor. On \
             processors that nothing else needs (isolcpus, driver_cpus) {} as root lets it poll without a rest",
            self.kept / 1_000,
            self.period / 1_000,
            (self.share() + 5) / 10,
            self.remedy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Option<Throttle> {
        Throttle::of(|name| {
            let (_, said) = files.iter().find(|(file, _)| *file == name)?;
            let mut text = Text { bytes: [b'\n'; 64], len: said.len() + 1 };
            text.bytes[..said.len()].copy_from_slice(said.as_bytes());
            Some(text)
        })
    }

    const OLD: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.8.0-45-generic");
    const NEW: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.12.1");

    /// Has `chrt` change the calling thread's policy, as another program does. Returns whether it may.
    fn change_policy(arguments: &[&str]) -> bool {
        let thread = nix::unistd::gettid().to_string();
        let status = std::process::Command::new("chrt").args(arguments).args(["-p", "1", &thread]).status();
        status.expect("util-linux").success()
    }

    /// Needs root, and a kernel that stops such threads.
    #[test]
    fn a_thread_is_stopped_however_it_has_got_its_policy() {
        let stops_any = Throttle::of(Text::read).is_some();
        for arguments in [["--rr", "--reset-on-fork"].as_slice(), &["--fifo"]] {
            let told = std::thread::spawn(move || {
                let stops = || Throttle::of_this_thread().is_some();
                (stops(), change_policy(arguments), stops())
            });
            let (before, may, after) = told.join().unwrap();
            assert_eq!((before, after), (false, may && stops_any), "{arguments:?}");
        }
    }

    #[test]
    fn the_kernel_stops_whom_it_says() {
        let share = |files: &[(&str, &str)]| of(files).map(|throttle| throttle.share());
        assert_eq!(share(&[OLD, (RUNTIME, "950000"), (PERIOD, "1000000")]), Some(80));
        assert_eq!(share(&[OLD, (RUNTIME, "500000"), (PERIOD, "1000000")]), Some(530));
        assert_eq!(share(&[OLD, (RUNTIME, "-1"), (PERIOD, "1000000")]), None);
        assert_eq!(share(&[OLD, (RUNTIME, "1000000"), (PERIOD, "1000000")]), None);
        assert_eq!(share(&[OLD]), Some(80), "what cannot be read is as at first");
        assert_eq!(share(&[NEW, (RUNTIME, "-1")]), Some(80), "the fair server");
        assert_eq!(share(&[NEW, (RUNTIME, "-1"), (SERVER_RUNTIME, "0")]), None);
        assert_eq!(share(&[NEW, (RUNTIME, "950000"), (SERVER_RUNTIME, "0")]), Some(80));
        assert_eq!(share(&[NEW, (RUNTIME, "950000"), (SERVER_RUNTIME, "100000000")]), Some(130));
    }

    #[test]
    fn it_is_said_how_to_switch_it_off() {
        let text = |files: &[(&str, &str)]| of(files).unwrap().to_string();
        let old = text(&[OLD, (RUNTIME, "950000"), (PERIOD, "1000000")]);
        assert!(old.contains("50 ms of each 1000 ms") && old.contains("rt_runtime_us=-1"), "{old}");
        let new = text(&[NEW, (RUNTIME, "-1")]);
        assert!(new.contains("fair_server") && new.contains(" 8 % "), "{new}");
    }
}
