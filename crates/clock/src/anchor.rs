//! What time it is by a counter, from two things that are known: what it showed when the kernel was asked, and its rate.
//!
//! Arithmetic only; `counter` reads the counter and the kernel's clock.

use std::ops::RangeInclusive;

/// The kernel is asked again after so much. Lower asks more often; higher and the kernel's clock, which is slewed by up to
/// 500 ns in each ms while the machine's is set right, is left further behind. *Units*: ns.
pub(crate) const LASTS: i64 = 1_000_000;

/// A rate is measured over this much, and then anew. Lower and what it takes to read both clocks counts for more, higher and
/// a rate that changes is followed later. *Units*: ns.
const MEASURED_OVER: RangeInclusive<i64> = 10_000_000..=1_000_000_000;

/// A rate that is another one by more than a thousandth is none: neither the machine's drift nor the kernel's slew is.
const DOUBTFUL: u64 = 1_000;

/// After so many of them the counter is not one to go by. Lower gives it up for pauses of a virtual machine, higher
/// believes for longer one that is not steady.
const DOUBTS: u32 = 8;

/// Nanoseconds for each tick, in parts of 2³².
const SHIFT: u32 = 32;

/// What the counter showed, and what time it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub ticks: u64,
    pub ns: i64,
}

/// From where, and how fast, time goes on by the counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    from: Reading,
    scale: u64,
    /// So many ticks further it is not asked any more.
    lasts: u64,
}

impl Anchor {
    /// It tells no time.
    pub const NONE: Anchor = Anchor { from: Reading { ticks: 0, ns: i64::MIN }, scale: 0, lasts: 0 };

    /// Does it tell the time at all?
    #[inline]
    pub fn is_any(&self) -> bool {
        self.scale != 0
    }

    /// What time it is; `None` if that is to be asked.
    #[inline]
    pub fn at(&self, ticks: u64) -> Option<i64> {
        // What was before its begin is as far away as can be.
        let since = ticks.wrapping_sub(self.from.ticks);
        (since < self.lasts).then(|| self.from.ns.wrapping_add(self.ns(since)))
    }

    #[inline]
    fn ns(&self, ticks: u64) -> i64 {
        ((ticks * self.scale) >> SHIFT).cast_signed()
    }

    /// The latest time that it may have told.
    pub fn latest(&self) -> i64 {
        self.from.ns.saturating_add(self.ns(self.lasts))
    }

    /// The next one, of a counter with this rate; with 0 it tells no time. If the last one was ahead of the kernel this one
    /// goes on from there, as much more slowly: no time is told after a later one.
    pub fn renewed(&self, now: Reading, rate: u64) -> Anchor {
        let latest = self.latest();
        let ahead = latest.saturating_sub(now.ns).clamp(0, LASTS / 2).unsigned_abs();
        let lasts = LASTS.unsigned_abs();
        let from = Reading { ns: now.ns.max(latest), ..now };
        let ticks = (lasts << SHIFT).checked_div(rate).unwrap_or(0);
        Anchor { from, scale: rate - rate / lasts * ahead, lasts: ticks }
    }

    /// The first time that it tells.
    pub fn begin(&self) -> i64 {
        self.from.ns
    }
}

/// What is known of the counter's rate.
#[derive(Debug)]
pub(crate) struct Rate {
    base: Option<Reading>,
    /// 0 if it is not known.
    scale: u64,
    doubts: u32,
}

impl Rate {
    pub const UNKNOWN: Rate = Rate { base: None, scale: 0, doubts: 0 };

    /// Learns from one more reading. Returns what the rate is then, 0 if it is not known.
    pub fn learn(&mut self, now: Reading) -> u64 {
        let Some(base) = self.base else {
            self.base = Some(now);
            return self.scale;
        };
        let (ns, ticks) = (now.ns.saturating_sub(base.ns), now.ticks.wrapping_sub(base.ticks));
        if ns > *MEASURED_OVER.end() || ns < 0 {
            self.base = Some(now);
        } else if MEASURED_OVER.contains(&ns) && !self.is_given_up() {
            self.measure(now, (u128::from(ns.unsigned_abs()) << SHIFT) / u128::from(ticks.max(1)));
        }
        self.scale
    }

    fn measure(&mut self, now: Reading, measured: u128) {
        // One tick in 16 ns is too coarse a clock, and 256 in one is none.
        let usual = 1 << (SHIFT - 8)..=1 << (SHIFT + 4);
        let measured = u64::try_from(measured).ok().filter(|scale| usual.contains(scale));
        let is_like = |scale: &u64| self.scale == 0 || scale.abs_diff(self.scale) <= self.scale / DOUBTFUL;
        match measured.filter(is_like) {
            Some(scale) => self.scale = scale,
            None => self.doubt(now),
        }
    }

    /// The counter, or the kernel's clock, was set.
    fn doubt(&mut self, now: Reading) {
        self.base = Some(now);
        self.doubts += 1;
        if self.is_given_up() {
            self.scale = 0;
        }
    }

    fn is_given_up(&self) -> bool {
        self.doubts >= DOUBTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter beside a kernel's clock that is slewed, and the thread that reads them.
    struct Machine {
        ticks: u64,
        ns: f64,
        ns_per_tick: f64,
        rate: Rate,
        anchor: Anchor,
        told: i64,
    }

    impl Machine {
        fn new(ghz: f64) -> Machine {
            let (rate, anchor) = (Rate::UNKNOWN, Anchor::NONE);
            Machine { ticks: 1 << 40, ns: 1e12, ns_per_tick: 1.0 / ghz, rate, anchor, told: i64::MIN }
        }

        fn pass(&mut self, ns: i64) {
            self.ticks += (ns as f64 / self.ns_per_tick) as u64;
            self.ns += ns as f64;
        }

        fn reading(&self) -> Reading {
            Reading { ticks: self.ticks, ns: self.ns as i64 }
        }

        /// Reads what time it is. Returns by how much that is off.
        fn read(&mut self) -> i64 {
            let told = self.anchor.at(self.ticks).unwrap_or_else(|| {
                let scale = self.rate.learn(self.reading());
                self.anchor = self.anchor.renewed(self.reading(), scale);
                self.anchor.begin()
            });
            assert!(told >= self.told, "back by {} ns", self.told - told);
            self.told = told;
            told - self.ns as i64
        }

        /// The largest error of readings for so long.
        fn worst(&mut self, ms: i64) -> i64 {
            let steps = 0..ms * 1_000_000 / 2_777;
            let errors = steps.map(|_| {
                self.pass(2_777);
                self.read().abs()
            });
            errors.max().unwrap_or(0)
        }
    }

    #[test]
    fn it_tells_the_time_of_any_counter() {
        for ghz in [0.1, 0.9, 1.0, 2.2, 4.7, 10.0] {
            let mut machine = Machine::new(ghz);
            assert!(machine.worst(3_000) <= 10, "{ghz} GHz");
            assert!(machine.anchor.is_any(), "{ghz} GHz");
        }
    }

    #[test]
    fn it_follows_a_clock_that_is_slewed() {
        let mut machine = Machine::new(3.0);
        machine.worst(100);
        for parts in [1.0005, 1.0, 0.9995] {
            machine.ns_per_tick = parts / 3.0;
            assert!(machine.worst(3_000) <= 600, "until the rate is measured anew");
            assert!(machine.worst(1_000) <= 10, "from then on");
        }
    }

    #[test]
    fn a_thread_that_rests_is_right_at_once() {
        let mut machine = Machine::new(3.0);
        machine.worst(1_500);
        for pause in [999_999, 1_000_001, 2_000_000_001, 3_600_000_000_000] {
            machine.pass(pause);
            assert!(machine.read().abs() <= 10, "after {pause} ns");
            assert!(machine.worst(20) <= 10, "later");
        }
    }

    #[test]
    fn a_machine_that_sleeps_is_seen_through() {
        let mut machine = Machine::new(3.0);
        machine.worst(100);
        // The counter goes on and the clock does not, or the counter begins anew.
        for ticks in [machine.ticks + 100_000_000, 7] {
            machine.ticks = ticks;
            assert!(machine.worst(4) <= LASTS, "what the last anchor may have told is not taken back");
            assert!(machine.worst(1_500) <= 10, "later");
        }
        assert!(machine.anchor.is_any());
    }

    #[test]
    fn a_counter_that_is_not_steady_is_given_up() {
        let mut machine = Machine::new(3.0);
        machine.worst(100);
        for turn in 0..40 {
            machine.ns_per_tick = if turn % 2 == 0 { 0.5 } else { 0.3 };
            machine.worst(20);
        }
        assert!(!machine.anchor.is_any(), "the kernel is asked");
        assert_eq!(machine.worst(100), 0);
    }

    #[test]
    fn what_cannot_be_a_counter_of_cycles_is_none() {
        for ghz in [0.001, 1_000.0] {
            let mut machine = Machine::new(ghz);
            machine.worst(200);
            assert!(!machine.anchor.is_any(), "{ghz} GHz");
        }
    }
}
