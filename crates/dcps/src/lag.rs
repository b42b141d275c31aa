//! LATENCY_BUDGET as readers see it: which samples took longer than their writer's budget. DCPS 1.4 §2.2.3.8.
//!
//! Compares the writer's clock at the write with this side's at the delivery, so it is right on one machine or between
//! synchronized clocks only. Looks at nothing while no matched writer of another participant offers a budget.

use std::collections::BTreeMap;

use taut_base::{Duration, Guid, Time, Timestamp};
use taut_rtps::history_cache::{CacheChange, ChangeKind};
use taut_rtps::{Offer, ReaderIndex};

/// The time from one sample that is told of to the next, at least. Lower and a budget that is never kept takes more
/// of the driver's time, higher and a second cause is missed for longer.
const EVERY: Duration = Duration::from_secs(1);

/// A sample that took longer than its writer's LATENCY_BUDGET.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Whose.
    pub reader: ReaderIndex,
    /// From the write to the delivery.
    pub took: Duration,
    /// LATENCY_BUDGET of its writer.
    pub budget: Duration,
}

/// What is known of a matched writer with a budget.
struct Watched {
    budget: Duration,
    /// What was written before is history, which comes when it comes.
    since: Option<i64>,
}

/// The budgets of the writers that readers are matched with.
#[derive(Default)]
pub(crate) struct Lags {
    /// By reader and writer: each sample of any of them looks for its own.
    watched: BTreeMap<(ReaderIndex, Guid), Watched>,
    /// From the monotonic clock to the wall clock, in ns.
    pub to_wall: Option<i64>,
    late: Option<Late>,
    not_before: Time,
}

impl Lags {
    #[inline]
    pub fn are_on(&self) -> bool {
        !self.watched.is_empty()
    }

    /// A reader has matched a writer with this budget.
    pub fn watch(&mut self, reader: ReaderIndex, writer: Guid, budget: Duration) {
        // No budget means as soon as possible, an infinite one that nobody cares.
        if budget > Duration::ZERO && !budget.is_infinite() {
            self.watched.insert((reader, writer), Watched { budget, since: None });
        }
    }

    pub fn forget(&mut self, reader: ReaderIndex, writer: Guid) {
        self.watched.remove(&(reader, writer));
    }

    /// The reader has gone.
    pub fn forget_reader(&mut self, reader: ReaderIndex) {
        self.watched.retain(|(of, _), _| *of != reader);
    }

    pub fn set_wall_clock(&mut self, now: Time, wall: Timestamp) {
        self.to_wall = Some(wall.to_unix_ns().saturating_sub(now.0));
    }

    /// A change is delivered now. Returns whether it is the first of a second that is late.
    #[cold]
    pub fn look(&mut self, now: Time, reader: ReaderIndex, offer: &Offer) -> bool {
        let found = offer.as_ref().and_then(|change| self.late(now, reader, change));
        if let Some(late) = found.filter(|_| now >= self.not_before) {
            self.late = Some(late);
            self.not_before = now + EVERY;
            return true;
        }
        false
    }

    fn late(&mut self, now: Time, reader: ReaderIndex, change: &CacheChange) -> Option<Late> {
        let watched = self.watched.get_mut(&(reader, change.writer_guid))?;
        let wall = now.0.saturating_add(self.to_wall?);
        let written = change.source_timestamp?.to_unix_ns();
        let since = *watched.since.get_or_insert(wall);
        let took = Duration(wall.saturating_sub(written));
        let is_late = change.kind == ChangeKind::Alive && written >= since && took > watched.budget;
        is_late.then_some(Late { reader, took, budget: watched.budget })
    }

    pub fn take(&mut self) -> Option<Late> {
        self.late.take()
    }
}

#[cfg(test)]
mod tests {
    use taut_qos::{DataReaderQos, EndpointQos, OwnershipKind};

    use super::*;
    use crate::participant_tests::{participant, publication_with, read_with};
    use crate::reader_cache_tests::{change, writer};

    const BUDGET: Duration = Duration::from_millis(2);
    const READER: ReaderIndex = ReaderIndex(3);
    const WALL: i64 = 1_700_000_000_000_000_000;

    /// A sample that is written and delivered at these milliseconds.
    fn deliver(lags: &mut Lags, written: i64, delivered: i64) -> Option<Late> {
        let ms = |ms: i64| ms * 1_000_000;
        let mut change = change(ChangeKind::Alive, 1, 0, 1);
        change.source_timestamp = Some(Timestamp::from_unix_ns(WALL + ms(written)));
        let now = Time(ms(delivered));
        lags.set_wall_clock(now, Timestamp::from_unix_ns(WALL + now.0));
        let is_late = lags.look(now, READER, &Some(change));
        assert_eq!(is_late, lags.late.is_some());
        lags.take()
    }

    #[test]
    fn only_a_budget_between_nothing_and_infinite_is_watched() {
        let mut lags = Lags::default();
        lags.watch(READER, writer(1), Duration::ZERO);
        lags.watch(READER, writer(1), Duration::INFINITE);
        assert!(!lags.are_on());
        lags.watch(READER, writer(1), BUDGET);
        assert!(lags.are_on());
        lags.forget(READER, writer(1));
        assert!(!lags.are_on());
        let other = ReaderIndex(4);
        [READER, other].into_iter().for_each(|reader| lags.watch(reader, writer(1), BUDGET));
        lags.forget_reader(READER);
        assert!(lags.watched.keys().all(|(of, _)| *of == other) && lags.are_on());
    }

    #[test]
    fn what_takes_longer_than_the_budget_is_told_once_a_second() {
        let mut lags = Lags::default();
        lags.watch(READER, writer(1), BUDGET);
        assert_eq!(deliver(&mut lags, -5_000, 10), None, "history");
        assert_eq!(deliver(&mut lags, 5, 20), None, "written before the first one came");
        assert_eq!(deliver(&mut lags, 30, 32), None);
        let late = Late { reader: READER, took: Duration::from_millis(3), budget: BUDGET };
        assert_eq!(deliver(&mut lags, 40, 43), Some(late));
        assert_eq!(deliver(&mut lags, 50, 53), None);
        assert_eq!(deliver(&mut lags, 1_040, 1_043), Some(late));
    }

    #[test]
    fn a_budget_that_is_announced_anew_counts() {
        let mut participant = participant();
        let latency_budget = Duration::from_secs(1);
        read_with(&mut participant, DataReaderQos { latency_budget, ..DataReaderQos::default() }.exclusive());
        for (number, ms) in [(1, 1), (2, 50)] {
            let mut qos = EndpointQos::default_writer();
            qos.ownership = OwnershipKind::Exclusive;
            qos.latency_budget = Duration::from_millis(ms);
            participant.on_frame(Time(0), &publication_with(number, 1, qos));
            let budgets: Vec<_> = participant.readers.lags.watched.values().map(|one| one.budget).collect();
            assert_eq!(budgets, [Duration::from_millis(ms)]);
        }
    }
}
