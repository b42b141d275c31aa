//! What the account tells: how the times of each class are spread, and the bounds that follow.

use std::fmt;
use std::time::Duration;

use crate::account::jobs::JobClass;

/// How times are spread; all 0 if there were none. Each but the longest is at most a tenth too high.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Spread {
    /// Half of the times are below.
    pub p50: Duration,
    /// 99 of 100 are.
    pub p99: Duration,
    /// 999 of 1,000 are.
    pub p999: Duration,
    /// The longest of all.
    pub longest: Duration,
    /// How many were how long; `None` in the report of a peer that does not tell.
    pub histogram: Option<Histogram>,
}

/// Times by their length. Those of several participants may be added up, which quantiles may not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Histogram {
    /// So many were not above the bound of the same place. One that is less than a sixteenth below a bound may be counted
    /// at the next only; none is where it is too long for.
    pub up_to: [u64; Histogram::BOUNDS_NS.len()],
    /// So many there are.
    pub count: u64,
    /// All of them together.
    pub total: Duration,
}

impl Histogram {
    /// The bounds, three for each power of ten, from less than a short step takes to more than one ever should. The same
    /// for all participants, as only then their counts may be added up; more of them make reports longer, fewer tell
    /// less. *Units*: ns.
    pub const BOUNDS_NS: [u64; 16] = [
        1_000,
        2_000,
        5_000,
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
    ];
}

/// What is known of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobReport {
    /// Which.
    pub class: JobClass,
    /// Steps run.
    pub steps: u64,
    /// The most that one of them did. *Units*: those of the budget, which a message that was begun may exceed: it is
    /// finished, and goes to all of its destinations.
    pub most: usize,
    /// From when a step could have begun to when it did: who needed the token was kept waiting by another step,
    /// or a step of a higher class came first.
    pub waiting: Spread,
    /// From its begin to its end.
    pub running: Spread,
    /// The same of all steps together.
    pub busy: Duration,
    /// See [`LatencyReport::bound`].
    pub bound: Duration,
}

/// Where the time of a participant has gone, and the bounds that follow from it.
///
/// *Source*: worst-case response times of non-preemptive fixed-priority scheduling: a step waits for at most one
/// step that has begun, of whatever class, and for those that come before it in a round, of which a class may have several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatencyReport {
    /// The classes, highest first.
    pub classes: [JobReport; JobClass::ALL.len()],
    /// The longest that listeners, wakers and the logger of the program have run at a time, between two steps of the thread that
    /// called them.
    pub listeners: Duration,
    /// The most steps that ran, one after another and none of them of writes that others had left before, while a thread
    /// wanted the token or its critical write was left for the holder: 1 is the step that had begun by then.
    pub steps_ahead: u64,
}

impl LatencyReport {
    /// The class of the longest step so far, and that step's time.
    pub fn longest_step(&self) -> (JobClass, Duration) {
        let longest = self.classes.iter().max_by_key(|of| of.running.longest);
        longest.map_or((JobClass::Writes, Duration::ZERO), |of| (of.class, of.running.longest))
    }

    /// The same with listeners that have run for so long at a time.
    pub(crate) fn with_listeners(mut self, listeners: Duration) -> LatencyReport {
        self.listeners = listeners;
        let waits = |of: &&mut JobReport| !matches!(of.class, JobClass::Writes | JobClass::Calls);
        self.classes.iter_mut().filter(waits).for_each(|of| of.bound += listeners);
        self
    }

    /// The longest that a step of this class waits, going by the longest so far: for one of any class that has begun, and
    /// for what the steps before it take in a round, with those of its own class. It holds where a thread that wants to run
    /// does, and one thread at a time wants the token: who asks later waits for the others. It is never below what was
    /// seen, as when the system has given the processor to others.
    ///
    /// The thread that drives begins no step while it runs listeners or a logger, so their longest is in it, but for writes and calls, which
    /// run on threads of their own then. With `Driver::Inline` the time in which the program does not drive is not in it.
    pub fn bound(&self, class: JobClass) -> Duration {
        self.classes.iter().find(|of| of.class == class).map(|of| of.bound).unwrap_or_default()
    }
}

/// A table, in microseconds.
impl fmt::Display for LatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e6);
        writeln!(
            f,
            "{:<13}{:>9}  {:>8}{:>8}{:>9}  {:>8}{:>8}{:>9}  {:>9}",
            "us", "steps", "runs p50", "p99", "longest", "waits p50", "p99", "longest", "at most"
        )?;
        for of in &self.classes {
            let (runs, waits) = (of.running, of.waiting);
            writeln!(
                f,
                "{:<13}{:>9}  {:>8}{:>8}{:>9}  {:>9}{:>8}{:>9}  {:>9}",
                of.class.name(),
                of.steps,
                us(runs.p50),
                us(runs.p99),
                us(runs.longest),
                us(waits.p50),
                us(waits.p99),
                us(waits.longest),
                us(self.bound(of.class))
            )?;
        }
        let (class, longest) = self.longest_step();
        let (listeners, ahead) = (us(self.listeners), self.steps_ahead);
        write!(
            f,
            "longest step: {}, {} us; other steps before a critical write: {ahead} at most\nlisteners at a time: {listeners} us",
            class.name(),
            us(longest)
        )
    }
}
