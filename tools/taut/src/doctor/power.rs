//! What processors do to save power: lower frequencies, deep sleep.

use std::collections::BTreeSet;
use std::time::Duration;

use super::finding::{Finding, Lasts, Mend, State, Write};
use super::system::{System, Unseen};

/// An idle state that takes longer than this to leave is in the way of a bound. Lower keeps processors from any
/// rest; higher lets one through that costs as much as a datagram's whole way.
const SLOW_STATE_US: u64 = 10;
/// A round of waking that takes longer than this one is worth a word, if idle states could be its cause.
const SLOW_WAKING: Duration = Duration::from_micros(100);

/// A thread that begins to run later than this was not woken, but found by a timer of its processor's.
pub const MISSED: Duration = Duration::from_micros(500);
/// So many of those are no accident: a virtual machine may stand still for longer now and then.
pub const MANY_MISSED: u64 = 10;

/// How long a sleeping thread takes to run once it is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waking {
    pub median: Duration,
    pub longest: Duration,
    /// How many times it was [`MISSED`] by a processor that was just falling asleep, up to [`MANY_MISSED`].
    pub missed: u64,
}

/// What was measured: as the machine is, and with all idle states held off.
pub struct Measured {
    pub waking: Waking,
    /// Whether somebody else held them off, as far as is known.
    pub is_held_off: bool,
    /// Why it could not be held off otherwise.
    pub without_idle: Result<Waking, String>,
}

/// All checks of this module.
pub fn check(system: &System, measured: &Measured) -> Vec<Finding> {
    vec![frequency(system), idle(system), waking(measured)]
}

fn frequency(system: &System) -> Finding {
    let name = "processor frequency";
    let cpus = match system.cpus() {
        Ok(cpus) => cpus,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let file = |cpu: &str, name: &str| format!("/sys/devices/system/cpu/{cpu}/cpufreq/{name}");
    let governed: Vec<(String, String)> = cpus
        .iter()
        .map(|cpu| file(cpu, "scaling_governor"))
        .filter_map(|path| system.text(&path).ok().map(|governor| (path, governor)))
        .collect();
    if governed.is_empty() {
        return Finding::good(name, "not governed by this kernel");
    }
    let governors: BTreeSet<&str> = governed.iter().map(|(_, governor)| governor.as_str()).collect();
    let seen = format!("governor {}", governors.into_iter().collect::<Vec<_>>().join(", "));
    let slow: Vec<_> = governed.iter().filter(|(_, governor)| governor != "performance").collect();
    if slow.is_empty() {
        return Finding::good(name, seen);
    }
    let command = "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    let write =
        |path: &String| Write { path: path.clone(), value: "performance".to_owned(), of_namespace: false };
    let mend = Mend::writes(command, slow.iter().map(|(path, _)| write(path)).collect());
    let cost = "after a pause the first samples are handled at a low frequency, at a fraction of the speed";
    Finding::worth_changing(name, seen, cost).mend(mend)
}

/// The idle states that are slow to leave and not switched off: their switches, the slowest one's time.
fn slow_states(system: &System) -> Result<(Vec<String>, u64, BTreeSet<String>), Unseen> {
    let (mut switches, mut slowest, mut names) = (Vec::new(), 0, BTreeSet::new());
    for cpu in system.cpus()? {
        let directory = format!("/sys/devices/system/cpu/{cpu}/cpuidle");
        for state in system.names(&directory).unwrap_or_default() {
            let latency = system.number::<u64>(&format!("{directory}/{state}/latency")).unwrap_or(0);
            let switch = format!("{directory}/{state}/disable");
            if latency > SLOW_STATE_US && system.text(&switch).is_ok_and(|disabled| disabled == "0") {
                names.insert(system.text(&format!("{directory}/{state}/name")).unwrap_or(state));
                switches.push(switch);
                slowest = latency.max(slowest);
            }
        }
    }
    Ok((switches, slowest, names))
}

fn idle(system: &System) -> Finding {
    let name = "idle states";
    let (switches, slowest, names) = match slow_states(system) {
        Ok(found) => found,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    if switches.is_empty() {
        return Finding::good(name, format!("none that takes more than {SLOW_STATE_US} us to leave"));
    }
    let seen = format!("up to {slowest} us to leave ({})", names.into_iter().collect::<Vec<_>>().join(", "));
    let cost = format!("a thread that sleeps, or an interrupt, may wait {slowest} us before it runs");
    let command = format!("cpupower idle-set -D {SLOW_STATE_US}");
    let write = |path: String| Write { path, value: "1".to_owned(), of_namespace: false };
    let mend = Mend::writes(command, switches.into_iter().map(write).collect());
    Finding::worth_changing(name, seen, cost).mend(mend)
}

/// The latest counts as well, as a bound has to include it, once it was not woken but found ([`MISSED`]).
fn waking(measured: &Measured) -> Finding {
    let finding = idle_waking(measured);
    let longest = measured.waking.longest;
    if longest < MISSED || finding.state == State::WorthChanging {
        return finding;
    }
    let cost = format!(
        "a sample that a thread sleeps for may come {} us late: no bound below that holds while this is so",
        longest.as_micros()
    );
    let command = "taut doctor --measure   # while nothing else runs: what is late then is the machine's";
    Finding::worth_changing(&finding.name, finding.seen, cost).mend(Mend::by_hand(
        command,
        Lasts::ForGood,
        "",
    ))
}

/// What idle states add to it.
fn idle_waking(measured: &Measured) -> Finding {
    let name = "waking a thread";
    let shown = |waking: Waking| {
        format!("{} us, at most {} us", waking.median.as_micros(), waking.longest.as_micros())
    };
    let seen = shown(measured.waking);
    // Where nobody holds them off, it is others that have the processors.
    let misses = measured.waking.missed >= MANY_MISSED;
    if misses && measured.is_held_off {
        let cost = "a sample that comes while its processor falls asleep waits for the kernel's next tick, 1 to 4 ms";
        let seen = format!("{seen}; missed by processors that fall asleep");
        return Finding::worth_changing(name, seen, cost).mend(Mend::by_hand(
            "fuser -v /dev/cpu_dma_latency   # end who holds idle states off",
            Lasts::UntilReboot,
            "start it again",
        ));
    }
    let without = match &measured.without_idle {
        Err(why) => {
            return Finding::not_looked(name, format!("{seen}; what idle states add is not known: {why}"));
        }
        Ok(without) => *without,
    };
    let seen = format!("{seen}; without idle states {}", shown(without));
    if without.missed >= MANY_MISSED && !misses {
        let but = "but then missed by processors that fall asleep: leave idle states on";
        return Finding::good(name, format!("{seen}, {but}"));
    }
    let gained = measured.waking.median.saturating_sub(without.median);
    if measured.waking.median < SLOW_WAKING || gained < measured.waking.median / 2 {
        return Finding::good(name, seen);
    }
    let cost =
        format!("each sample that a thread sleeps for comes {} us later than it could", gained.as_micros());
    let command = "sh -c 'exec 3>/dev/cpu_dma_latency; printf \"\\0\\0\\0\\0\" >&3; exec sleep infinity'";
    Finding::worth_changing(name, seen, cost).mend(Mend::by_hand(
        command,
        Lasts::UntilReboot,
        "end that command",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::fix::tests::mends_and_takes_back;
    use super::super::system::tests::tree;
    use super::*;

    /// The file of a processor's governor.
    fn governor(cpu: u8) -> String {
        format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
    }

    #[test]
    fn each_processor_has_a_governor() {
        let of = |first: &str, second: &str| {
            let (_directory, system) = tree(&[(&governor(0), first), (&governor(1), second)]);
            frequency(&system)
        };
        assert_eq!(of("performance\n", "performance\n").state, State::Good);
        let found = of("performance\n", "powersave\n");
        assert_eq!(
            (found.state, found.seen.as_str()),
            (State::WorthChanging, "governor performance, powersave")
        );
        let writes = found.mend.unwrap().writes;
        assert_eq!((writes.len(), &writes[0].path), (1, &governor(1)), "the other one is well");
        let (_directory, bare) = tree(&[("/sys/devices/system/cpu/cpu0/topology/core_id", "0")]);
        assert_eq!(frequency(&bare).state, State::Good);
    }

    #[test]
    fn governors_that_were_set_come_back() {
        let files = [governor(0), governor(1), governor(2)];
        let before = ["powersave\n", "performance\n", "schedutil\n"];
        let files: Vec<(&str, &str)> = files.iter().map(String::as_str).zip(before).collect();
        mends_and_takes_back(&files, frequency);
    }

    /// Three idle states of a processor, of which the third is slow to leave, and whether that is switched off.
    fn with_idle_states<R>(disabled: &str, test: impl FnOnce(&[(&str, &str)]) -> R) -> R {
        let files = [
            ("state0/latency", "0"),
            ("state0/disable", "0"),
            ("state1/latency", "2"),
            ("state1/disable", "0"),
            ("state2/latency", "133"),
            ("state2/disable", disabled),
            ("state2/name", "C6"),
        ];
        let files = files.map(|(name, text)| (format!("/sys/devices/system/cpu/cpu0/cpuidle/{name}"), text));
        test(&files.each_ref().map(|(path, text)| (path.as_str(), *text)))
    }

    #[test]
    fn idle_states_that_were_switched_off_come_back() {
        with_idle_states("0\n", |files| mends_and_takes_back(files, idle));
    }

    #[test]
    fn deep_sleep() {
        let of = |disabled: &str| {
            with_idle_states(disabled, |files| {
                let (_directory, system) = tree(files);
                idle(&system)
            })
        };
        let found = of("0");
        assert_eq!(found.seen, "up to 133 us to leave (C6)");
        assert_eq!(found.mend.unwrap().writes.len(), 1);
        assert_eq!(of("1").state, State::Good);
    }

    #[test]
    fn waking_that_idle_states_delay() {
        let waking = |us| Waking {
            median: Duration::from_micros(us),
            longest: Duration::from_micros(2 * us),
            missed: 0,
        };
        let finds = |waking, without, is_held_off| {
            super::waking(&Measured { waking, is_held_off, without_idle: Ok(without) })
        };
        let of = |with, without| finds(waking(with), waking(without), false);
        assert_eq!(of(50, 5).state, State::Good, "50 us are what any machine takes");
        assert_eq!(of(180, 150).state, State::Good, "idle states are not why");
        let found = of(180, 20);
        assert!(found.state == State::WorthChanging && found.cost.contains("160 us later"), "{found:?}");
        let misses = |us| Waking { missed: MANY_MISSED, ..waking(us) };
        let holding_off = finds(waking(180), misses(3), false);
        assert!(holding_off.state == State::Good && holding_off.seen.ends_with("leave idle states on"));
        let held_off = finds(misses(3), misses(3), true);
        assert!(held_off.state == State::WorthChanging && held_off.seen.contains("missed by"));
        let busy = finds(misses(3), misses(3), false);
        assert!(busy.state == State::Good && !busy.seen.contains("missed"), "{busy:?}");
        let late = Waking { longest: Duration::from_micros(2_940), ..waking(11) };
        let found = finds(late, waking(5), false);
        assert!(found.state == State::WorthChanging && found.cost.contains("2940 us late"), "{found:?}");
        let refused =
            Measured { waking: waking(180), is_held_off: false, without_idle: Err("EACCES".to_owned()) };
        let found = super::waking(&refused);
        assert!(found.state == State::NotLooked && found.seen.ends_with("not known: EACCES"), "{found:?}");
    }
}
