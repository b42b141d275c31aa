//! DEADLINE: which instances were not written in time, and how often. DCPS 1.4 §2.2.3.7, §2.2.3.9.2.
//!
//! Knows instances by small numbers, a time for each of them from which on its next sample is awaited, and no clock.
//! A sample moves no timer: what is due looks whether there was one meanwhile. Called by the reader cache, and
//! for a writer by [`OfferedDeadlines`].

use std::collections::BTreeMap;

use taut_base::{Duration, InstanceHandle, Time};
use taut_rtps::history_cache::ChangeKind;
use taut_rtps::{ReaderIndex, WriterIndex};

use crate::due::Due;
use crate::entities::Entity;
use crate::instance::DEFAULT_MAX_INSTANCES;
use crate::participant::DomainParticipant;
use crate::reader_side::ReaderSide;
use crate::status::{OfferedDeadlineMissedStatus, RequestedDeadlineMissedStatus, StatusMask};

/// Instances that one call looks at. Lower and the deadlines of many that end at once are told later, as other
/// steps come between; higher and those wait longer: each takes some 100 ns.
pub const DEADLINES_PER_STEP: usize = 256;

/// The shortest time from one look at an endpoint to the next that is only for what is not due yet: periods that end
/// meanwhile are counted together. Lower and a period that nobody can keep takes a processor, higher and what ends soon
/// after a look is told later.
pub const SHORTEST_PAUSE: Duration = Duration::from_micros(100);

/// The awaited samples of one endpoint. *Cost*: of a sample O(1), of an instance's first one and of each look
/// O(log instances).
#[derive(Debug)]
pub(crate) struct Deadlines {
    period: Duration,
    /// By instance: its last sample, or the end of the last period without one.
    since: Vec<Time>,
    due: Due,
}

impl Deadlines {
    /// Nothing is awaited with an infinite period.
    pub(crate) fn new(period: Duration) -> Deadlines {
        // The shortest that there is; the checks of QoS let no shorter one in.
        Deadlines { period: period.max(Duration(1)), since: Vec::new(), due: Due::default() }
    }

    #[inline]
    pub(crate) fn are_on(&self) -> bool {
        !self.period.is_infinite()
    }

    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// When to call [`Deadlines::pop`]; may be early.
    pub(crate) fn next(&self) -> Option<Time> {
        self.due.next()
    }

    /// Would a sample that came then be too late?
    #[inline]
    pub(crate) fn is_late(&self, instance: u32, came: Time) -> bool {
        let since = self.since.get(instance as usize).copied().unwrap_or(Time::NEVER);
        self.due.contains(instance) && came > since + self.period
    }

    /// Time has come to here without a sample. Returns how many periods have ended before, each of them once.
    pub(crate) fn lapse(&mut self, instance: u32, came: Time) -> u64 {
        if !self.is_late(instance, came) {
            return 0;
        }
        // A sample at the very end of a period is in it.
        self.end_periods(instance, Time(came.0.saturating_sub(1)))
    }

    /// A sample came then: the next is awaited from there on.
    #[inline]
    pub(crate) fn note(&mut self, instance: u32, came: Time) {
        if !self.due.contains(instance) {
            return self.begin(instance, came);
        }
        if let Some(since) = self.since.get_mut(instance as usize) {
            *since = came.max(*since);
        }
    }

    #[cold]
    fn begin(&mut self, instance: u32, came: Time) {
        if self.since.len() <= instance as usize {
            self.since.resize(instance as usize + 1, Time::NEVER);
        }
        self.since[instance as usize] = came;
        self.due.set(instance, came + self.period);
    }

    /// No further sample is awaited, until one comes.
    pub(crate) fn end(&mut self, instance: u32) {
        self.due.cancel(instance);
    }

    /// The next instance that is to be looked at, and how many of its periods have ended without a sample; often none.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(u32, u64)> {
        let instance = self.due.pop(now)?;
        let since = &mut self.since[instance as usize];
        // A writer of another process says when it wrote: nothing is written later than now.
        *since = now.min(*since);
        let missed = self.end_periods(instance, now);
        self.due.set(instance, self.since[instance as usize] + self.period);
        Some((instance, missed))
    }

    /// Counts the periods that have ended until then, and goes to the end of the last of them.
    fn end_periods(&mut self, instance: u32, now: Time) -> u64 {
        let since = &mut self.since[instance as usize];
        let ended = now.since(*since).0 / self.period.0;
        *since = *since + self.period.times(ended);
        ended.cast_unsigned()
    }
}

/// What a writer has promised, for the instances that it has written and neither disposed of nor unregistered.
///
/// Its owner tells of writes, the driver looks at what is due. *Cost*: O(log instances), O(1) for the instance that
/// was written last; some 100 B for each instance.
#[derive(Debug)]
pub struct OfferedDeadlines {
    deadlines: Deadlines,
    numbers: BTreeMap<InstanceHandle, u32>,
    handles: Vec<InstanceHandle>,
    free: Vec<u32>,
    recent: Option<(InstanceHandle, u32)>,
    max_instances: usize,
    missed: Missed,
}

impl OfferedDeadlines {
    /// For this DEADLINE, and so many instances at most: those beyond are not watched.
    pub fn new(period: Duration, max_instances: Option<u32>) -> OfferedDeadlines {
        OfferedDeadlines {
            deadlines: Deadlines::new(period),
            numbers: BTreeMap::new(),
            handles: Vec::new(),
            free: Vec::new(),
            recent: None,
            max_instances: max_instances.map_or(DEFAULT_MAX_INSTANCES, |max| max as usize),
            missed: Missed::default(),
        }
    }

    /// The instance was written, disposed of or unregistered.
    pub fn note(&mut self, at: Time, instance: InstanceHandle, kind: ChangeKind) {
        if kind != ChangeKind::Alive {
            return self.end(at, instance);
        }
        let Some(number) = self.number(instance) else { return };
        let missed = self.deadlines.lapse(number, at);
        self.missed.count(missed, instance);
        self.deadlines.note(number, at);
    }

    fn number(&mut self, instance: InstanceHandle) -> Option<u32> {
        if let Some((_, number)) = self.recent.filter(|(recent, _)| *recent == instance) {
            return Some(number);
        }
        let number = match self.numbers.get(&instance) {
            Some(number) => *number,
            None => self.add(instance)?,
        };
        self.recent = Some((instance, number));
        Some(number)
    }

    fn add(&mut self, instance: InstanceHandle) -> Option<u32> {
        if self.numbers.len() >= self.max_instances {
            return None;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.handles[number as usize] = instance;
                number
            }
            None => {
                self.handles.push(instance);
                u32::try_from(self.handles.len() - 1).ok()?
            }
        };
        self.numbers.insert(instance, number);
        Some(number)
    }

    fn end(&mut self, at: Time, instance: InstanceHandle) {
        self.recent = None;
        let Some(number) = self.numbers.remove(&instance) else { return };
        let missed = self.deadlines.lapse(number, at);
        self.missed.count(missed, instance);
        self.deadlines.end(number);
        self.free.push(number);
    }

    /// When to call [`OfferedDeadlines::look`]; ask again after any call.
    pub fn next(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// Looks which deadlines have been missed, at `budget` instances at most, which it takes from there.
    pub fn look(&mut self, now: Time, budget: &mut usize) -> Missed {
        while *budget > 0
            && let Some((number, missed)) = self.deadlines.pop(now)
        {
            *budget -= 1;
            self.missed.count(missed, self.handles[number as usize]);
        }
        std::mem::take(&mut self.missed)
    }
}

impl DomainParticipant {
    /// Looks which of its readers' deadlines have been missed, as far as one step may.
    pub(crate) fn look_at_deadlines(&mut self, now: Time) {
        let mut budget = DEADLINES_PER_STEP;
        while budget > 0
            && let Some(index) = self.readers.alarms.pop(now)
        {
            // A reader takes its part of the budget even if all its samples came in time.
            budget -= 1;
            let index = ReaderIndex(index);
            let looked = self.readers.change_side(index, |side| side.look_at_deadlines(now, &mut budget));
            let Some((missed, next)) = looked else { continue };
            // What the budget has left comes in the next step.
            let again = if next <= now { next } else { next.max(now + SHORTEST_PAUSE) };
            self.readers.alarms.set(index.0, again);
            if self.readers.at_side(index, ReaderSide::take_freed).unwrap_or(false) {
                self.on_room(now, index);
            }
            if let Some(reader) = self.readers.get_mut(index).filter(|_| missed.is_any()) {
                reader.requested_deadline_missed.count(missed);
                self.tell(Entity::Reader(index), StatusMask::REQUESTED_DEADLINE_MISSED);
            }
        }
    }

    /// A writer has missed deadlines: see [`OfferedDeadlines`].
    pub fn note_offered_deadlines(&mut self, index: WriterIndex, missed: Missed) {
        if let Some(writer) = self.writers.get_mut(&index).filter(|_| missed.is_any()) {
            writer.offered_deadline_missed.count(missed);
            self.tell(Entity::Writer(index), StatusMask::OFFERED_DEADLINE_MISSED);
        }
    }
}

/// Deadlines that were missed and are yet to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Missed {
    /// Periods without a sample.
    pub count: u64,
    /// The instance of the last of them.
    pub last: InstanceHandle,
}

impl Missed {
    pub(crate) fn count(&mut self, missed: u64, instance: InstanceHandle) {
        if missed > 0 {
            self.count = self.count.saturating_add(missed);
            self.last = instance;
        }
    }

    /// Was any?
    pub fn is_any(&self) -> bool {
        self.count > 0
    }
}

/// Writes `count` for the two statuses that are mirror images.
macro_rules! missed_deadlines {
    ($($name:ident),*) => {$(
        impl $name {
            /// Counts missed deadlines.
            pub fn count(&mut self, missed: Missed) {
                if !missed.is_any() {
                    return;
                }
                let count = i32::try_from(missed.count).unwrap_or(i32::MAX);
                self.total_count = self.total_count.saturating_add(count.unsigned_abs());
                self.total_count_change = self.total_count_change.saturating_add(count);
                self.last_instance_handle = missed.last;
            }
        }
    )*};
}
missed_deadlines!(OfferedDeadlineMissedStatus, RequestedDeadlineMissedStatus);

#[cfg(test)]
mod tests {
    use taut_base::Rng;

    use super::*;

    const PERIOD: Duration = Duration(100);

    fn instance(n: u8) -> InstanceHandle {
        InstanceHandle([n; 16])
    }

    fn look(offered: &mut OfferedDeadlines, now: i64) -> (u64, InstanceHandle) {
        let Missed { count, last } = offered.look(Time(now), &mut DEADLINES_PER_STEP.clone());
        (count, last)
    }

    #[test]
    fn every_period_without_a_write_counts_once() {
        let mut offered = OfferedDeadlines::new(PERIOD, None);
        assert_eq!(offered.next(), None, "nothing is promised before the first write");
        offered.note(Time(10), instance(1), ChangeKind::Alive);
        assert_eq!((offered.next(), look(&mut offered, 109).0), (Some(Time(110)), 0));
        assert_eq!(look(&mut offered, 110), (1, instance(1)));
        assert_eq!(look(&mut offered, 555), (4, instance(1)), "as many as have ended since");
        assert_eq!(offered.next(), Some(Time(610)));
        offered.note(Time(560), instance(1), ChangeKind::Alive);
        assert_eq!((look(&mut offered, 659).0, look(&mut offered, 660).0), (0, 1));
    }

    #[test]
    fn a_write_that_comes_too_late_is_noticed_though_nobody_looked_before() {
        let mut offered = OfferedDeadlines::new(PERIOD, None);
        offered.note(Time(0), instance(1), ChangeKind::Alive);
        offered.note(Time(100), instance(1), ChangeKind::Alive);
        assert_eq!(look(&mut offered, 150).0, 0, "at the end of the period is in time");
        offered.note(Time(401), instance(1), ChangeKind::Alive);
        assert_eq!(look(&mut offered, 402), (3, instance(1)));
        assert_eq!((look(&mut offered, 500).0, look(&mut offered, 501).0), (0, 1));
    }

    #[test]
    fn what_is_disposed_of_or_unregistered_is_awaited_no_more() {
        let mut offered = OfferedDeadlines::new(PERIOD, Some(2));
        for (n, kind) in [(1, ChangeKind::NotAliveDisposed), (2, ChangeKind::NotAliveUnregistered)] {
            offered.note(Time(0), instance(n), ChangeKind::Alive);
            offered.note(Time(50), instance(n), kind);
        }
        assert_eq!((offered.next(), look(&mut offered, 1_000).0), (None, 0));
        offered.note(Time(1_000), instance(1), ChangeKind::Alive);
        offered.note(Time(1_010), instance(3), ChangeKind::Alive);
        offered.note(Time(1_020), instance(4), ChangeKind::Alive);
        assert_eq!(look(&mut offered, 1_105), (1, instance(1)));
        assert_eq!(look(&mut offered, 1_150), (1, instance(3)), "the third is one too many");
    }

    #[test]
    fn many_that_are_due_at_once_take_several_steps() {
        let mut offered = OfferedDeadlines::new(PERIOD, None);
        let handle = |n: usize| InstanceHandle((n as u128).to_be_bytes());
        (0..1_000).for_each(|n| offered.note(Time(0), handle(n), ChangeKind::Alive));
        let steps: Vec<u64> = (0..5).map(|_| look(&mut offered, 100).0).collect();
        let full = DEADLINES_PER_STEP as u64;
        assert_eq!(steps, [full, full, full, 1_000 - 3 * full, 0]);
        assert_eq!(offered.next(), Some(Time(200)));
    }

    #[test]
    fn who_claims_to_write_later_than_now_is_not_believed_for_long() {
        let mut deadlines = Deadlines::new(PERIOD);
        (0..10).for_each(|n| deadlines.note(0, Time(90 * n)));
        assert_eq!((deadlines.pop(Time(100)), deadlines.next()), (Some((0, 0)), Some(Time(200))));
    }

    /// Against a list of all writes: a period that has ended without one counts.
    #[test]
    fn agrees_with_what_was_written() {
        let mut rng = Rng::new(5);
        let (mut now, mut told, mut expected) = (0, 0, 0);
        let mut offered = OfferedDeadlines::new(PERIOD, None);
        let mut since = [None::<i64>; 8];
        for _ in 0..50_000 {
            now += rng.below(60) as i64;
            let n = rng.below(8) as usize;
            // Written or looked at: at the end of a period a write is still in time.
            let writes = rng.below(2) == 0;
            if !writes {
                told += look(&mut offered, now).0;
            }
            for (at, since) in since.iter_mut().enumerate() {
                let Some(since) = since.as_mut().filter(|_| !writes || at == n) else { continue };
                let until = if writes { now - 1 } else { now };
                let ended = (until - *since).max(0) / PERIOD.0;
                expected += ended as u64;
                *since += ended * PERIOD.0;
            }
            if writes {
                let kind = if rng.below(8) == 0 { ChangeKind::NotAliveDisposed } else { ChangeKind::Alive };
                offered.note(Time(now), instance(n as u8), kind);
                since[n] = (kind == ChangeKind::Alive).then_some(now);
            }
        }
        told += look(&mut offered, now).0;
        for since in since.into_iter().flatten() {
            expected += ((now - since) / PERIOD.0) as u64;
        }
        assert_eq!(told, expected);
        assert!(told > 10_000, "{told}");
    }
}
