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
    /// The rest of a peer that is being forgotten.
    Forget(GuidPrefix),
    /// The rest of the matches with a peer that are gone through.
    Look(GuidPrefix),
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
    wanted: Wanted,
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
}

/// The time of each timer, `NEVER` of those that are not set.
#[derive(Default)]
struct Wanted {
    /// Those that samples move, by the index of their writer and reader: found without a search.
    heartbeats: Vec<Time>,
    repeats: Vec<Time>,
    /// All others.
    others: BTreeMap<Timer, Time>,
    /// How many are set.
    count: usize,
}

impl Wanted {
    fn get(&self, timer: &Timer) -> Time {
        let at = match timer {
            Timer::Heartbeat(index) => self.heartbeats.get(index.0 as usize),
            Timer::Repeat(index) => self.repeats.get(index.0 as usize),
            other => self.others.get(other),
        };
        at.copied().unwrap_or(Time::NEVER)
    }

    /// Returns what it was before.
    fn replace(&mut self, timer: Timer, at: Time) -> Time {
        let before = match timer {
            Timer::Heartbeat(index) => replace_in(&mut self.heartbeats, index.0, at),
            Timer::Repeat(index) => replace_in(&mut self.repeats, index.0, at),
            other if at == Time::NEVER => self.others.remove(&other).unwrap_or(Time::NEVER),
            other => self.others.insert(other, at).unwrap_or(Time::NEVER),
        };
        self.count = match (before == Time::NEVER, at == Time::NEVER) {
            (true, false) => self.count.saturating_add(1),
            (false, true) => self.count.saturating_sub(1),
            _ => self.count,
        };
        before
    }
}

/// The indices are those of the tables of entities, so there are no more places than there have been of those at a time.
fn replace_in(times: &mut Vec<Time>, index: u32, at: Time) -> Time {
    let index = index as usize;
    if times.len() <= index {
        times.resize(index.saturating_add(1), Time::NEVER);
    }
    times.get_mut(index).map_or(Time::NEVER, |place| std::mem::replace(place, at))
}

impl Timers {
    /// Wants `timer` at `at`, no longer when it was wanted before; never if `at` is `NEVER`.
    pub fn set(&mut self, at: Time, timer: Timer) {
        if self.wanted.replace(timer, at) != at && at != Time::NEVER {
            self.heap.push(Reverse((at, timer)));
        }
        // A driver is not to wake for what was put off.
        while self.heap.peek().is_some_and(|Reverse((at, timer))| self.wanted.get(timer) != *at) {
            self.heap.pop();
        }
        // Rule R5: peers decide how often a timer is moved. Amortized: each sweep removes what it costs.
        if self.heap.len() > self.wanted.count.saturating_mul(2).saturating_add(64) {
            let wanted = &self.wanted;
            self.heap.retain(|Reverse((at, timer))| wanted.get(timer) == *at);
        }
    }

    /// Takes the next timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        while let Some(Reverse((at, timer))) = self.heap.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.heap.pop();
            if self.wanted.get(&timer) == at {
                self.wanted.replace(timer, Time::NEVER);
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

    #[test]
    fn writers_and_readers_have_timers_of_their_own() {
        let mut timers = Timers::default();
        let (heartbeat, repeat) = (Timer::Heartbeat(WriterIndex(7)), Timer::Repeat(ReaderIndex(7)));
        for (at, timer) in
            [(9, heartbeat), (5, repeat), (3, heartbeat), (4, Timer::Heartbeat(WriterIndex(2)))]
        {
            timers.set(Time(at), timer);
        }
        timers.set(Time(6), Timer::Heartbeat(WriterIndex(2)));
        assert_eq!(timers.wanted.count, 3);
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(Time(10))).collect();
        let second = Timer::Heartbeat(WriterIndex(2));
        assert_eq!(fired, [(Time(3), heartbeat), (Time(5), repeat), (Time(6), second)]);
        assert_eq!((timers.wanted.count, timers.next()), (0, None));
    }
}
