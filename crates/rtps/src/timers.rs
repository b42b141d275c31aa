//! When who wants to be called: a heap in which outdated entries stay until they come up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use taut_base::{GuidPrefix, Time};

use crate::{ReaderIndex, WriterIndex};

/// What a timer is for. Each is set at most once: setting it again moves it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// What a reader has asked for and not got.
    Repeat(ReaderIndex),
    /// A writer's heartbeat.
    Heartbeat(WriterIndex),
    /// The next SPDP announcement.
    Announce,
    /// A peer's lease.
    Lease(GuidPrefix),
    /// What a peer has said that takes a look at all matches with it.
    Peer(GuidPrefix),
    /// Our own liveliness messages.
    AssertLiveliness,
    /// The same for MANUAL_BY_PARTICIPANT, after a write.
    AssertManual,
    /// The liveliness of the writers that a reader is matched with.
    ReaderLiveliness(ReaderIndex),
    /// The liveliness a manual writer has promised.
    WriterLiveliness(WriterIndex),
    /// The end of the LIFESPAN of a writer's oldest change.
    Lifespan(WriterIndex),
    /// What waits for a destination's bucket.
    Flow,
}

/// Pending timers by time. *Cost*: O(log n); no allocation once warm.
#[derive(Default)]
pub struct Timers {
    /// When each wants to be called; what `heap` says besides is outdated.
    wanted: BTreeMap<Timer, Time>,
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
}

impl Timers {
    /// Wants `timer` at `at`, no longer when it was wanted before; never if `at` is `NEVER`.
    pub fn set(&mut self, at: Time, timer: Timer) {
        if at == Time::NEVER {
            self.wanted.remove(&timer);
        } else if self.wanted.insert(timer, at) != Some(at) {
            self.heap.push(Reverse((at, timer)));
        }
        // A driver is not to wake for what was put off.
        while self.heap.peek().is_some_and(|Reverse((at, timer))| self.wanted.get(timer) != Some(at)) {
            self.heap.pop();
        }
        // Rule R5: peers decide how often a timer is moved. Amortized: each sweep removes what it costs.
        if self.heap.len() > self.wanted.len().saturating_mul(2).saturating_add(64) {
            let wanted = &self.wanted;
            self.heap.retain(|Reverse((at, timer))| wanted.get(timer) == Some(at));
        }
    }

    /// Takes the next timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        while let Some(Reverse((at, timer))) = self.heap.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.heap.pop();
            if self.wanted.get(&timer) == Some(&at) {
                self.wanted.remove(&timer);
                return Some((at, timer));
            }
        }
        None
    }

    /// The time of the first entry, outdated or not.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_is_moved_fires_once_and_leaves_no_heap() {
        let mut timers = Timers::default();
        for at in (0..10_000).rev() {
            timers.set(Time(at), Timer::Announce);
        }
        timers.set(Time(500), Timer::AssertLiveliness);
        timers.set(Time(20_000), Timer::Announce);
        assert!(timers.heap.len() < 100, "{}", timers.heap.len());
        assert_eq!(timers.pop_due(Time(10_000)), Some((Time(500), Timer::AssertLiveliness)));
        assert_eq!(timers.pop_due(Time(10_000)), None);
        assert_eq!(timers.pop_due(Time(20_000)), Some((Time(20_000), Timer::Announce)));
        timers.set(Time(30_000), Timer::Announce);
        timers.set(Time(40_000), Timer::Announce);
        assert_eq!(timers.next(), Some(Time(40_000)), "nobody is to wake for what was put off");
        timers.set(Time(1), Timer::Announce);
        timers.set(Time::NEVER, Timer::Announce);
        assert_eq!(timers.pop_due(Time(20_000)), None);
    }
}
