//! When who wants to be called: a heap and a row in which outdated entries stay until they are the first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

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
    /// The rest of those who are to be told of it directly.
    Others,
    /// A peer's lease.
    Lease(GuidPrefix),
    /// The rest of a peer that is being forgotten.
    Forget(GuidPrefix),
    /// The rest of the matches with a peer that are gone through.
    Look(GuidPrefix),
    /// What a peer has said that takes a look at all matches with it.
    Peer(GuidPrefix),
    /// The rest of what has come for the built-in readers.
    Inbox,
    /// Writers of a peer that have said nothing are to be asked again.
    Ask(GuidPrefix),
    /// Our own liveliness messages.
    AssertLiveliness,
    /// The same for MANUAL_BY_PARTICIPANT, after a write.
    AssertManual,
    /// The same for a manual writer whose readers take what it writes from its lane.
    AssertByTopic(WriterIndex),
    /// The liveliness of the writers that a reader is matched with.
    ReaderLiveliness(ReaderIndex),
    /// The liveliness a manual writer has promised.
    WriterLiveliness(WriterIndex),
    /// The end of the LIFESPAN of a writer's oldest change.
    Lifespan(WriterIndex),
    /// What waits for a destination's bucket.
    Flow,
    /// The rest of what writers have for readers of this participant.
    Beside,
}

/// Places that timers keep for each that is set. A known peer has four, of which that of its lease is set all the time. Lower
/// and those of peers that are there go, and are allocated again with the next time that they are set; higher keeps more
/// memory for peers that are gone.
const PLACES: usize = 4;

/// Pending timers by time. *Cost*: O(log n); no allocation once warm.
#[derive(Default)]
pub struct Timers {
    /// When each wants to be called; what `heap` and `row` say besides is outdated.
    wanted: Wanted,
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
    /// First heartbeats, which all are due the same time after they are wanted: in order without a heap.
    row: VecDeque<(Time, WriterIndex)>,
}

/// The time of each timer, `NEVER` of those that are not set.
#[derive(Default)]
struct Wanted {
    /// Those that samples move, by the index of their writer and reader: found without a search.
    heartbeats: Vec<Time>,
    repeats: Vec<Time>,
    /// All others. One that was set keeps its place, so that to set it again allocates nothing.
    others: BTreeMap<Timer, Time>,
    /// How many are set.
    count: usize,
}

impl Wanted {
    #[inline]
    fn get(&self, timer: &Timer) -> Time {
        let at = match timer {
            Timer::Heartbeat(index) => self.heartbeats.get(index.0 as usize),
            Timer::Repeat(index) => self.repeats.get(index.0 as usize),
            other => self.others.get(other),
        };
        at.copied().unwrap_or(Time::NEVER)
    }

    /// Returns what it was before.
    #[inline(always)]
    fn replace(&mut self, timer: Timer, at: Time) -> Time {
        let before = match timer {
            Timer::Heartbeat(index) => replace_in(&mut self.heartbeats, index.0, at),
            Timer::Repeat(index) => replace_in(&mut self.repeats, index.0, at),
            other if at == Time::NEVER => self.unset(&other),
            other => self.others.insert(other, at).unwrap_or(Time::NEVER),
        };
        let less = usize::from(before != Time::NEVER);
        self.count = self.count.saturating_add(usize::from(at != Time::NEVER)).saturating_sub(less);
        before
    }

    /// The same of one of the others that is wanted no more.
    #[inline(never)]
    fn unset(&mut self, timer: &Timer) -> Time {
        let before = self.others.get_mut(timer).map(|place| std::mem::replace(place, Time::NEVER));
        // Peers that are gone leave theirs, and peers decide how many there are. Amortized: each sweep removes what it costs.
        if self.others.len() > self.count.saturating_mul(PLACES).saturating_add(64) {
            self.others.retain(|_, at| *at != Time::NEVER);
        }
        before.unwrap_or(Time::NEVER)
    }
}

/// The indices are those of the tables of entities, so there are no more places than there have been of those at a time.
#[inline]
fn replace_in(times: &mut Vec<Time>, index: u32, at: Time) -> Time {
    match times.get_mut(index as usize) {
        Some(place) => std::mem::replace(place, at),
        None => put_behind(times, index as usize, at),
    }
}

#[cold]
fn put_behind(times: &mut Vec<Time>, index: usize, at: Time) -> Time {
    times.resize(index, Time::NEVER);
    times.push(at);
    Time::NEVER
}

impl Timers {
    /// Wants `timer` at `at`, no longer when it was wanted before; never if `at` is `NEVER`.
    pub fn set(&mut self, at: Time, timer: Timer) {
        let before = self.wanted.replace(timer, at);
        if before == at {
            return;
        }
        if at != Time::NEVER {
            self.heap.push(Reverse((at, timer)));
        }
        if before != Time::NEVER {
            self.drop_outdated();
        }
    }

    /// The same for the heartbeat that follows what a writer has sent. *Cost*: O(1) if it is due behind those before it.
    #[inline]
    pub fn set_heartbeat(&mut self, at: Time, writer: WriterIndex) {
        if self.row.back().is_some_and(|(last, _)| *last > at) {
            return self.set(at, Timer::Heartbeat(writer));
        }
        let before = self.wanted.replace(Timer::Heartbeat(writer), at);
        if before != at {
            self.row.push_back((at, writer));
            if before != Time::NEVER {
                self.drop_outdated();
            }
        }
    }

    /// After a timer was moved or has come up: the first entries are of those that are wanted.
    #[inline(never)]
    fn drop_outdated(&mut self) {
        // A driver is not to wake for what was put off.
        let Timers { wanted, heap, row } = self;
        while heap.peek().is_some_and(|Reverse((at, timer))| wanted.get(timer) != *at) {
            heap.pop();
        }
        let is_outdated = |(at, writer): &(Time, WriterIndex)| wanted.get(&Timer::Heartbeat(*writer)) != *at;
        while row.front().is_some_and(is_outdated) {
            row.pop_front();
        }
        // Peers decide how often a timer is moved, and must not decide how much memory that takes. Amortized: each sweep removes what it costs.
        if heap.len().saturating_add(row.len()) > wanted.count.saturating_mul(2).saturating_add(64) {
            heap.retain(|Reverse((at, timer))| wanted.get(timer) == *at);
            row.retain(|entry| !is_outdated(entry));
        }
    }

    /// Takes the next timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        let in_heap = self.heap.peek().map(|Reverse(first)| *first);
        let in_row = self.row.front().map(|(at, writer)| (*at, Timer::Heartbeat(*writer)));
        let (at, timer) = in_heap.into_iter().chain(in_row).min().filter(|(at, _)| *at <= now)?;
        // Were the entry in both, the other one would be outdated.
        if in_row == Some((at, timer)) {
            self.row.pop_front();
        } else {
            self.heap.pop();
        }
        self.wanted.replace(timer, Time::NEVER);
        self.drop_outdated();
        Some((at, timer))
    }

    /// When the first of all is wanted.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        let in_heap = self.heap.peek().map(|Reverse((at, _))| *at);
        match self.row.front() {
            None => in_heap,
            Some((at, _)) => Some(in_heap.map_or(*at, |first| first.min(*at))),
        }
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

    #[test]
    fn timers_keep_their_places_but_for_those_of_peers_that_are_gone() {
        let mut timers = Timers::default();
        let of_peer = |number: u16| {
            let mut prefix = [0; 12];
            prefix[..2].copy_from_slice(&number.to_le_bytes());
            [Timer::Lease, Timer::Look, Timer::Peer, Timer::Ask].map(|of| of(GuidPrefix(prefix)))
        };
        for number in 0..100 {
            of_peer(number).into_iter().for_each(|timer| timers.set(Time(1), timer));
            of_peer(number).into_iter().skip(1).for_each(|timer| timers.set(Time::NEVER, timer));
        }
        assert_eq!((timers.wanted.others.len(), timers.wanted.count), (400, 100));
        for number in 0..10_000 {
            of_peer(number).into_iter().for_each(|timer| timers.set(Time(2), timer));
            of_peer(number).into_iter().for_each(|timer| timers.set(Time::NEVER, timer));
        }
        assert!(timers.wanted.others.len() < 100, "{}", timers.wanted.others.len());
        assert_eq!((timers.wanted.count, timers.next()), (0, None));
    }

    #[test]
    fn first_heartbeats_come_up_among_the_others() {
        let mut timers = Timers::default();
        let heartbeat = |index| Timer::Heartbeat(WriterIndex(index));
        timers.set(Time(12), Timer::Announce);
        for (at, index) in [(10, 1), (11, 2), (13, 3), (14, 1), (9, 4), (20, 2)] {
            timers.set_heartbeat(Time(at), WriterIndex(index));
        }
        assert_eq!(
            timers.next(),
            Some(Time(9)),
            "what is due before those in the row is not lost behind them"
        );
        timers.set(Time::NEVER, heartbeat(4));
        assert_eq!(timers.next(), Some(Time(12)), "nobody is to wake for what was put off");
        timers.set(Time(30), heartbeat(2));
        assert_eq!(timers.pop_due(Time(11)), None);
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(Time(40))).collect();
        let expected = [(12, Timer::Announce), (13, heartbeat(3)), (14, heartbeat(1)), (30, heartbeat(2))];
        assert_eq!(fired, expected.map(|(at, timer)| (Time(at), timer)));
        assert_eq!((timers.wanted.count, timers.next()), (0, None));
        for at in 0..10_000 {
            timers.set_heartbeat(Time(at), WriterIndex(0));
            timers.set_heartbeat(Time(at), WriterIndex((at % 7) as u32));
        }
        assert!(timers.row.len() < 100, "{}", timers.row.len());
    }
}
