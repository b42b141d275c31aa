//! When who wants to be called: a heap in which outdated entries stay until they come up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use taut_base::{GuidPrefix, Time};

use crate::{ReaderIndex, WriterIndex};

/// What a timer is for. The owner keeps the time it is set to; an entry that does not agree with
/// its owner is outdated and is passed over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// A writer's heartbeat.
    Heartbeat(WriterIndex),
    /// The next SPDP announcement.
    Announce,
    /// A peer's lease.
    Lease(GuidPrefix),
    /// Our own liveliness messages.
    AssertLiveliness,
    /// The liveliness of the writers that a reader is matched with.
    ReaderLiveliness(ReaderIndex),
    /// The liveliness a manual writer has promised.
    WriterLiveliness(WriterIndex),
}

/// Pending timers by time. *Cost*: O(log n); no allocation once warm.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
}

impl Timers {
    /// Wants `timer` at `at`. Setting it twice is harmless: see [`Timer`].
    pub fn set(&mut self, at: Time, timer: Timer) {
        if at != Time::NEVER {
            self.heap.push(Reverse((at, timer)));
        }
    }

    /// Takes the next timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// The time of the first entry, outdated or not.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}
