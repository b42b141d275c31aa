//! What a lane has left out and nobody brings any more. DCPS 1.4 §2.2.3.16, §2.2.3.18.
//!
//! What found no room in a lane comes through the protocol, and what follows it in the lane waits for it. But a reader that
//! was full may ask too late: its writer keeps it no longer, for its HISTORY KEEP_LAST or its LIFESPAN. Each such hole in a
//! lane is passed over as soon as the protocol shows that there is nothing left to fill it.

use taut_base::{SequenceNumber, Time};

use crate::reader_side::{Pulled, ReaderSide, Source};

impl Source {
    /// Its next sample has to wait.
    pub(crate) fn stall(&mut self) {
        self.stalled = true;
        self.lane.step_back();
    }

    /// The protocol has nothing left below `expected`: what is not in the lane either is not waited for. Did its next sample
    /// wait for that?
    fn passes_over(&mut self, expected: SequenceNumber) -> bool {
        self.settled = self.settled.max(expected);
        let first = self.first();
        let known = first.map_or(expected, |first| first.min(expected));
        if !self.reliable || known <= self.next {
            return false;
        }
        self.next = known;
        first == Some(known)
    }

    /// How many are lost before its sample of this number, if that is to be told by the numbers: who is not reliable also
    /// does without what comes through the protocol later than what followed it here. Else the lane says how many.
    #[inline]
    pub(crate) fn skipped(&self, number: SequenceNumber) -> Option<u64> {
        if self.reliable {
            // What it has left out here comes through the protocol, or that tells of it.
            return Some(0);
        }
        // What was written before this side listened is not lost.
        let tells = self.next > SequenceNumber::FIRST;
        tells.then(|| u64::try_from(number.0.saturating_sub(self.next.0)).unwrap_or(0))
    }
}

/// How often what a lane holds is taken at most while something waits for that. What was written before is there the first
/// time, so lower loses the order of what is read meanwhile; higher and a writer that lies holds up its readers for longer.
const ROUNDS: usize = 2;

impl ReaderSide {
    /// Takes what is in a lane; the protocol has nothing left of its writer below `expected`.
    pub(crate) fn pull_before(
        &mut self,
        now: Time,
        source: &mut Source,
        pulled: &mut Pulled,
        expected: SequenceNumber,
    ) {
        let most = pulled.read.saturating_add(ROUNDS.saturating_mul(source.cells()));
        self.pull_source(now, source, pulled, usize::MAX, u64::MAX);
        while source.passes_over(expected) && pulled.read < most {
            self.pull_source(now, source, pulled, usize::MAX, u64::MAX);
        }
    }

    /// The same for the lane at this place, after what is in others and was written before.
    pub(crate) fn pull_for(&mut self, now: Time, at: usize, expected: SequenceNumber) -> Pulled {
        let mut pulled = Pulled::default();
        let most = self.sources.iter().map(Source::cells).sum::<usize>().saturating_mul(ROUNDS);
        loop {
            pulled.add(if self.is_one_of_several(at) { self.pull(now) } else { self.pull_alone(now, at) });
            let passes = self.sources.get_mut(at).is_some_and(|source| source.passes_over(expected));
            if !passes || pulled.read >= most {
                return pulled;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use taut_mem::Region;
    use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
    use taut_qos::{DataReaderQos, ReliabilityKind, ResourceLimits};
    use taut_rtps::history_cache::ChangeKind;

    use super::*;
    use crate::TypeSupport;
    use crate::reader_cache_tests::{change, writer};
    use crate::reader_side::{Passed, Pulled};
    use crate::reader_side_tests::{CELLS, meta, side_of};

    fn reliable(mut qos: DataReaderQos) -> ReaderSide {
        qos.reliability.kind = ReliabilityKind::Reliable;
        let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
        ReaderSide::new(&qos, &type_support)
    }

    /// A reader that has room for so many, and a lane that holds these.
    fn side(room: u32, in_lane: &[u64]) -> ReaderSide {
        let limits = ResourceLimits { max_samples: Some(room), ..ResourceLimits::default() };
        let mut side = reliable(DataReaderQos::default().keep_all().resource_limits(limits));
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(8, 0)), 8));
        let mut writes = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        side.add_lane(writer(1), 0, LaneReader::attach(lane, feedback, false), true, SequenceNumber(1));
        for number in in_lane {
            writes.push(&[*number, u64::MAX, 0, 0, 0], b"sample").unwrap();
        }
        side
    }

    fn taken(side: &mut ReaderSide) -> Vec<i64> {
        let next = || side.take_next(Time(9)).map(|sample| sample.info.sequence_number.0);
        std::iter::from_fn(next).collect()
    }

    /// The protocol offers a change. Does it find room?
    fn offer(side: &mut ReaderSide, number: i64) -> bool {
        let mut offer = Some(change(ChangeKind::Alive, 1, 0, number));
        side.deliver(Time(1), 0, &mut offer);
        offer.is_none()
    }

    #[test]
    fn a_lane_does_not_wait_for_what_its_writer_has_replaced_meanwhile() {
        // 3, 5 and 7 have found no room in the lane, nor here.
        let mut side = side(2, &[1, 2, 4, 6, 8]);
        assert!(!offer(&mut side, 3));
        // KEEP_LAST has 9 left of them.
        assert_eq!((taken(&mut side), offer(&mut side, 9)), (vec![1, 2], false));
        assert_eq!((taken(&mut side), offer(&mut side, 9)), (vec![4, 6], true));
        assert_eq!(taken(&mut side), [8, 9]);
    }

    #[test]
    fn a_lane_does_not_wait_for_what_is_too_old_and_not_followed() {
        let mut large = side(2, &[1, 3, 5]);
        assert_eq!(large.lane_next(Time(1), writer(1), SequenceNumber(7)).0, SequenceNumber(5));
        assert_eq!(taken(&mut large), [1, 3]);
        assert_eq!(large.lane_next(Time(2), writer(1), SequenceNumber(7)).0, SequenceNumber(7));
        assert_eq!(taken(&mut large), [5]);
        // There is room for what comes before the hole, and it is said once only.
        let mut small = side(1, &[1, 4]);
        assert_eq!(small.lane_next(Time(1), writer(1), SequenceNumber(4)).0, SequenceNumber(4));
        assert_eq!(taken(&mut small), [1]);
        small.pull(Time(2));
        assert_eq!(taken(&mut small), [4]);
    }

    #[test]
    fn what_is_gone_is_known_when_there_is_room() {
        let mut side = side(1, &[1, 4]);
        side.deliver(Time(1), 0, &mut Some(change(ChangeKind::Alive, 2, 0, 9)));
        assert_eq!(side.lane_next(Time(1), writer(1), SequenceNumber(4)).0, SequenceNumber(1));
        for expected in [9, 1, 4] {
            assert_eq!(taken(&mut side), [expected]);
            side.pull(Time(2));
        }
    }

    /// As after a pause that was longer than the lease: the writer waits no more, and the protocol brings what is missing.
    #[test]
    fn what_a_lane_overtakes_is_not_lost_to_who_gets_it_through_the_protocol() {
        const LAST: i64 = 3 * CELLS as i64;
        for passes in [false, true] {
            let (mut side, mut lanes) = side_of(1, ReliabilityKind::BestEffort);
            side.sources[0].reliable = true;
            (1..=LAST as u64).for_each(|number| lanes[0].push(&meta(number), b"sample").unwrap());
            if passes {
                assert!(matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::Not(_)));
            }
            side.pull(Time(1));
            assert_eq!(taken(&mut side), []);
            (1..=LAST).for_each(|number| assert!(offer(&mut side, number)));
            assert_eq!(taken(&mut side), (1..=LAST).collect::<Vec<_>>());
            assert_eq!(side.sample_lost.total_count, 0, "{passes}");
        }
    }
}
