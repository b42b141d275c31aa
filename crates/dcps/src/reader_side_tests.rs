//! What the protocol does to a reader whose samples also come through lanes.

use std::cell::Cell;
use std::sync::Arc;

use taut_base::{Duration, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter, Meta};
use taut_mem::{Bytes, Region};
use taut_qos::{DataReaderQos, ReliabilityKind, ResourceLimits};
use taut_rtps::history_cache::{CacheChange, ChangeKind};
use taut_rtps::{IntervalSet, Offer};

use crate::between_lanes::PATIENCE;
use crate::reader_cache::ReaderCache;
use crate::reader_cache_tests::{change, handle, writer};
use crate::reader_side::{Passed, Pulled, ReaderSide};
use crate::{
    ContentFilter, InstanceState, PayloadKind, SampleInfo, SampleRejectedReason, StatusMask, TypeSupport,
    instance_handle,
};

pub(crate) const CELLS: usize = 4;

/// A reader's side that reads the lane of each of so many writers, all of them waiting for room.
fn side(writers: u8) -> (ReaderSide, Vec<LaneWriter>) {
    side_of(writers, ReliabilityKind::Reliable)
}

pub(crate) fn side_of(writers: u8, kind: ReliabilityKind) -> (ReaderSide, Vec<LaneWriter>) {
    side_with(writers, kind, CELLS)
}

fn side_with(writers: u8, kind: ReliabilityKind, cells: usize) -> (ReaderSide, Vec<LaneWriter>) {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let mut qos = DataReaderQos { history: taut_qos::History::KeepAll, ..DataReaderQos::default() };
    // Writers wait for reliable readers only.
    qos.reliability.kind = kind;
    let mut side = ReaderSide::new(&qos, &type_support);
    let lanes = (1..=writers).map(|n| {
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(cells, 0)), cells));
        let lane_writer = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
        let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
        let reader = LaneReader::attach(lane, feedback, false);
        side.add_lane(writer(n), 0, reader, true, SequenceNumber(1));
        lane_writer.await_readers(true);
        lane_writer
    });
    let lanes = lanes.collect();
    (side, lanes)
}

pub(crate) fn meta(number: u64) -> Meta {
    [number, u64::MAX, 0, 0, 0]
}

#[test]
fn when_a_lane_says_it_was_written_is_believed_of_this_clock_alone() {
    let (mut side, mut lanes) = side(2);
    side.remember(8);
    side.believe_lane(writer(1));
    // One is written while the lane is looked at, and one never can have been.
    let (begun, meanwhile, now, later) = (Time(50), 55, Time(60), 70);
    for (lane, number, called) in [(0, 1, 40), (0, 2, meanwhile), (0, 3, later), (0, 4, 0), (1, 1, 40)] {
        let mut meta = meta(number);
        meta[2] = called << 2;
        lanes[lane].push(&meta, b"sample").unwrap();
    }
    side.pull(begun);
    side.end_delivery(|| now);
    let seen: Vec<_> =
        side.anatomies().map(|one| (one.sequence_number.0, one.written, one.delivered)).collect();
    let expected = [(1, Some(40)), (2, Some(55)), (3, None), (4, None), (1, None)];
    assert_eq!(seen, expected.map(|(number, written)| (number, written.map(Time), Some(now))));
}

#[test]
fn what_is_noted_is_not_handed_on_by_a_lane() {
    for noted in [false, true] {
        let (mut side, mut lanes) = side(1);
        if noted {
            side.remember(8);
        }
        lanes[0].push(&meta(1), b"first").unwrap();
        side.pull(Time(1));
        side.end_delivery(|| Time(1));
        assert!(side.take_next(Time(2)).is_some());
        lanes[0].push(&meta(2), b"second").unwrap();
        let passed = side.pass_next(&mut Pulled::default(), |_| ());
        assert_eq!(matches!(passed, Passed::Not(_)), noted);
        let clock = Cell::new(2);
        side.refill(|| {
            clock.set(clock.get() + 1);
            Time(clock.get())
        });
        assert_eq!(side.take_next(Time(9)).is_some(), noted);
        let seen: Vec<_> = side.anatomies().map(|one| (one.delivered, one.taken)).collect();
        // It is there when the look has ended, not when it began.
        let expected = [(1, 2), (4, 9)].map(|(delivered, taken)| (Some(Time(delivered)), Some(Time(taken))));
        assert_eq!(seen, if noted { expected.to_vec() } else { vec![] });
    }
}

#[test]
fn who_waits_for_room_hears_of_what_the_protocol_has_emptied() {
    let (mut side, mut lanes) = side(2);
    lanes[0].push(&meta(1), b"first").unwrap();
    let mut second = Some(change(ChangeKind::Alive, 1, 0, 2));
    let news = side.deliver(Time(1), 0, &mut second);
    assert!(second.is_none() && news == StatusMask::DATA_AVAILABLE);
    assert!(side.take_awaited() && !side.take_awaited());

    lanes[0].push(&meta(3), b"third").unwrap();
    assert_eq!(side.lane_next(Time(2), writer(1), SequenceNumber(3)).0, SequenceNumber(4));
    assert!(side.take_awaited());

    // A writer that goes has the lanes of all others emptied too.
    lanes[1].push(&meta(1), b"other").unwrap();
    let pulled = side.pull(Time(3));
    side.note_awaited(pulled);
    side.remove_lane(writer(1));
    assert!(side.take_awaited());
}

/// Writes into the lane at this place, at this time of its writer's clock.
fn push_at(lanes: &mut [LaneWriter], at: usize, number: u64, seconds: u32) {
    let mut meta = meta(number);
    meta[1] = Timestamp { seconds, fraction: 0 }.to_bits();
    lanes[at].push(&meta, b"sample").unwrap();
}

/// The seconds at which that was written which is taken.
fn written(side: &mut ReaderSide) -> Vec<u32> {
    let next = || side.take_next(Time(9)).and_then(|sample| sample.info.source_timestamp);
    std::iter::from_fn(next).map(|at| at.seconds).collect()
}

#[test]
fn what_several_lanes_hold_comes_in_the_order_in_which_it_was_written() {
    let (mut side, mut lanes) = side(3);
    let all = [(1, 1, 10), (0, 1, 20), (0, 2, 30), (2, 1, 40), (1, 2, 50), (1, 3, 51), (0, 3, 60)];
    all.into_iter().for_each(|(at, number, seconds)| push_at(&mut lanes, at, number, seconds));
    assert_eq!(side.pull_at_most(Time(1), 3).read, 3);
    assert_eq!((side.pull(Time(1)).read, side.is_ready()), (4, false));
    assert_eq!(written(&mut side), [10, 20, 30, 40, 50, 51, 60]);
}

#[test]
fn the_last_that_is_kept_was_written_last() {
    let keeps_last = || {
        let (mut side, lanes) = side(2);
        side.cache = ReaderCache::new(&DataReaderQos::default(), false);
        (side, lanes)
    };
    let (mut side, mut lanes) = keeps_last();
    [(1, 1, 10), (0, 1, 20), (1, 2, 30)].into_iter().for_each(|(at, n, s)| push_at(&mut lanes, at, n, s));
    side.pull(Time(1));
    assert_eq!(written(&mut side), [30]);

    // Each lane has one: the second would come after the first has been handed on.
    push_at(&mut lanes, 1, 3, 40);
    push_at(&mut lanes, 0, 2, 50);
    assert!(matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::Not(_)));
    side.refill(|| Time(2));
    assert_eq!(written(&mut side), [50]);

    // And one of a third writer comes through the protocol.
    push_at(&mut lanes, 0, 3, 60);
    let source_timestamp = Some(Timestamp { seconds: 70, fraction: 0 });
    let mut later = Some(CacheChange { source_timestamp, ..change(ChangeKind::Alive, 3, 0, 1) });
    side.deliver(Time(3), 0, &mut later);
    side.pull(Time(4));
    assert_eq!(written(&mut side), [70]);
}

#[test]
fn an_instance_that_was_written_since_is_not_disposed_of() {
    let (mut side, mut lanes) = side(2);
    side.cache = ReaderCache::new(&DataReaderQos::default().keep_all(), true);
    side.key_hash = Some(|payload, _| payload.first().map(|byte| handle(*byte)));
    let states = |side: &mut ReaderSide| {
        let mut states = Vec::new();
        let mut told = |info: &SampleInfo| states.push((info.valid_data, info.instance_state));
        while let Passed::On(()) = side.pass_next(&mut Pulled::default(), |taken| told(taken.info)) {}
        side.refill(|| Time(9));
        while side.take_next_with(|| Time(9), |taken| told(taken.info)).is_some() {}
        states
    };
    push_at(&mut lanes, 1, 1, 10);
    assert_eq!(states(&mut side), [(true, InstanceState::Alive)]);
    push_at(&mut lanes, 0, 1, 30);
    let mut dispose = meta(2);
    (dispose[1], dispose[2]) = (Timestamp { seconds: 20, fraction: 0 }.to_bits(), 1);
    lanes[1].push(&dispose, b"sample").unwrap();
    assert_eq!(states(&mut side), [(false, InstanceState::Alive), (true, InstanceState::Alive)]);

    // And what was written since comes through the protocol.
    (dispose[0], dispose[1]) = (3, Timestamp { seconds: 60, fraction: 0 }.to_bits());
    lanes[1].push(&dispose, b"sample").unwrap();
    let payload = Bytes::copy_from(b"sample");
    let mut later = Some(CacheChange { payload, ..change(ChangeKind::Alive, 3, 0, 1) });
    side.deliver(Time(9), 0, &mut later);
    assert_eq!(states(&mut side), [(false, InstanceState::Alive), (true, InstanceState::Alive)]);
}

/// W1 says something by the protocol while its lane and that of another hold samples.
#[test]
fn what_one_writer_says_by_the_protocol_brings_nobodys_lane_forward() {
    let (mut side, mut lanes) = side(2);
    side.cache = ReaderCache::new(&DataReaderQos::default(), false);
    [(1, 1, 20), (0, 2, 30)].into_iter().for_each(|(at, n, s)| push_at(&mut lanes, at, n, s));
    // What comes before the second was not for this reader, which only the protocol knows.
    assert_eq!(side.lane_next(Time(1), writer(1), SequenceNumber(2)).0, SequenceNumber(3));
    side.pull(Time(2));
    assert_eq!(written(&mut side), [30]);
}

#[test]
fn who_writes_without_a_pause_holds_up_nobody_whose_clock_is_ahead() {
    let (mut side, mut lanes) = side(2);
    push_at(&mut lanes, 1, 1, 9_000_000);
    let (mut read, mut last) = (0, 0);
    while last != 9_000_000 {
        push_at(&mut lanes, 0, read + 1, 10);
        read += 1;
        side.pull_at_most(Time(1), 1);
        last = written(&mut side).pop().unwrap();
        assert!(read <= PATIENCE as u64 + 1, "it waits for ever");
    }
}

#[test]
fn a_backlog_of_several_lanes_is_not_taken_for_a_clock_that_is_ahead() {
    const EACH: u32 = 300;
    let (mut side, mut lanes) = side_with(3, ReliabilityKind::Reliable, 512);
    side.cache = ReaderCache::new(&DataReaderQos::default(), false);
    for n in 1..=EACH {
        push_at(&mut lanes, 0, n.into(), 2 * n);
        push_at(&mut lanes, 2, n.into(), 2 * n + 1);
    }
    push_at(&mut lanes, 1, 1, 9_000);
    side.pull(Time(1));
    assert_eq!(written(&mut side), [9_000]);
}

#[test]
fn what_was_found_in_a_lane_and_passed_on_since_is_not_waited_for() {
    let (mut side, mut lanes) = side(2);
    for (at, number, seconds) in [(0, 1, 10), (1, 1, 20), (0, 2, 40), (1, 2, 50)] {
        push_at(&mut lanes, at, number, seconds);
    }
    side.pull_at_most(Time(1), 1);
    assert_eq!(written(&mut side), [10]);
    let passed = side.pass_next(&mut Pulled::default(), |taken| taken.info.source_timestamp);
    assert!(matches!(passed, Passed::On(Some(Timestamp { seconds: 20, .. }))));
    side.pull(Time(2));
    assert_eq!((written(&mut side), side.is_ready()), (vec![40, 50], false));
}

#[test]
fn lanes_without_room_are_not_looked_at_for_ever() {
    const MOST: usize = 2;
    let (mut side, mut lanes) = side(6);
    let qos = DataReaderQos::default().keep_all();
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    side.cache = ReaderCache::new(&qos.resource_limits(limits), false);
    for at in 0..lanes.len() {
        push_at(&mut lanes, at, 1, 10);
        push_at(&mut lanes, at, 2, 20);
    }
    for taken in 0..2 * lanes.len() {
        let mut calls = 0;
        while side.is_ready() {
            side.pull_at_most(Time(1), MOST);
            calls += 1;
            assert!(calls <= lanes.len(), "it is looked at until somebody takes, of whom there are {taken}");
        }
        assert!(side.take_next(Time(1)).is_some(), "only {taken} are found");
        side.pull_at_most(Time(1), MOST);
    }
    assert!(!side.is_ready() && side.take_next(Time(1)).is_none());
}

#[test]
fn lanes_are_emptied_in_parts_and_by_turns() {
    let (mut side, mut lanes) = side(2);
    for number in 1..=CELLS as u64 {
        lanes.iter_mut().for_each(|lane| lane.push(&meta(number), b"sample").unwrap());
    }
    let mut parts = Vec::new();
    while side.is_ready() {
        let pulled = side.pull_at_most(Time(1), 3);
        assert!(pulled.awaited && pulled.news == StatusMask::DATA_AVAILABLE);
        parts.push(pulled.read);
    }
    assert_eq!(parts, [3, 3, 2]);
    let taken = std::iter::from_fn(|| side.take_next(Time(1)));
    let taken: Vec<_> = taken.map(|sample| sample.info.publication_handle).collect();
    let [first, second] = [1, 2].map(|n| writer(n).into());
    assert_eq!(taken[..6], [first, first, first, second, second, second], "the other lane comes first then");
    assert_eq!(taken.len(), 2 * CELLS);
}

#[test]
fn what_a_lane_overtakes_is_lost_to_who_is_not_reliable() {
    for passes in [false, true] {
        let (mut side, mut lanes) = side_of(1, ReliabilityKind::BestEffort);
        let take = |side: &mut ReaderSide| {
            if passes && matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::On(())) {
                return true;
            }
            side.pull(Time(1));
            side.take_next(Time(1)).is_some()
        };
        lanes[0].push(&meta(3), b"the first that it hears").unwrap();
        assert!(take(&mut side) && side.sample_lost.total_count == 0);
        lanes[0].push(&meta(6), b"overtakes two").unwrap();
        assert!(take(&mut side));
        assert_eq!((side.sample_lost.total_count, side.sample_lost.total_count_change), (2, 2));
        for late in [4, 5] {
            let mut late = Some(change(ChangeKind::Alive, 1, 0, late));
            assert_eq!((side.deliver(Time(1), 0, &mut late), late.is_none()), (StatusMask::NONE, true));
        }
        assert!(side.take_next(Time(1)).is_none() && side.sample_lost.total_count == 2);
    }
}

#[test]
fn a_lane_that_a_writer_leaves_behind_holds_no_more_than_its_cells() {
    let cells = CELLS as u32;
    for (last, is_broken, protocol, lost) in [
        (2, false, (1, 0), 2),
        (2, false, (1, 3), 3),
        (1 << 62, false, (1, 0), cells),
        (1 << 62, false, (1, 3), 3 + cells),
        (u64::MAX, false, (1, 3), 3),
        (1 << 62, true, (1, 0), 0),
        (1 << 62, true, (2, 3), 2),
    ] {
        let (mut side, mut lanes) = side(1);
        lanes[0].push(&meta(last), b"sample").unwrap();
        side.sources[0].broken = is_broken;
        let mut left = IntervalSet::new(2);
        left.insert(SequenceNumber(protocol.0), SequenceNumber(protocol.1).next());
        side.leave_writer(writer(1), Some(left));
        assert_eq!(side.sample_lost.total_count, lost, "{last} {is_broken} {protocol:?}");
    }
}

#[test]
fn what_a_lane_has_passed_over_is_not_lost_once_more_with_its_writer() {
    let (mut side, mut lanes) = side_of(1, ReliabilityKind::BestEffort);
    lanes[0].push(&meta(7), b"sample").unwrap();
    (side.sources[0].reliable, side.sources[0].next) = (false, SequenceNumber(5));
    let mut begun = IntervalSet::new(2);
    [4, 6]
        .into_iter()
        .for_each(|number| _ = begun.insert(SequenceNumber(number), SequenceNumber(number + 1)));
    side.leave_writer(writer(1), Some(begun));
    assert_eq!(side.sample_lost.total_count, 1, "6");
}

#[test]
fn lanes_have_their_turns() {
    let (mut side, mut lanes) = side(2);
    lanes.iter_mut().for_each(|lane| lane.push(&meta(1), b"text").unwrap());
    side.pull(Time(1));
    while side.take_next(Time(1)).is_some() {}
    for number in 2..=4 {
        lanes.iter_mut().for_each(|lane| lane.push(&meta(number), b"text").unwrap());
    }
    let mut pulled = Pulled::default();
    let next = || match side.pass_next(&mut pulled, |sample| sample.info.publication_handle) {
        Passed::On(writer) => Some(writer),
        _ => None,
    };
    let taken: Vec<_> = std::iter::from_fn(next).collect();
    let (one, other) = (writer(1).into(), writer(2).into());
    assert_eq!(taken, [one, other, one, other, one, other], "and not the first until it is empty");
}

/// A take that would hand its sample on leaves it to the next look, which tells of it.
#[test]
fn a_lane_that_a_take_finds_broken_is_told_of() {
    let (mut side, mut lanes) = side(1);
    lanes[0].push(&meta(1), b"text").unwrap();
    side.pull(Time(1));
    assert!(side.take_next(Time(1)).is_some());
    (2..=8).for_each(|number| lanes[0].push(&meta(number), b"text").unwrap());
    // Its head is behind what it has written.
    LaneWriter::new(Arc::clone(lanes[0].lane()), Box::new(|_, _| true)).push(&meta(1), b"text").unwrap();
    assert!(matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::Not(_)));
    side.refill(|| Time(1));
    assert_eq!(side.take_broken(), Some(writer(1)));
}

#[test]
fn what_a_lane_brings_expires() {
    let (mut side, mut lanes) = side(1);
    side.pull(Time(1));
    let stamp = |ns: i64| Timestamp::from_unix_ns(1_700_000_000_000_000_000 + ns);
    let mut put = |number: u64, written: i64| {
        let mut meta = meta(number);
        meta[1] = stamp(written).to_bits();
        lanes[0].push(&meta, b"text").unwrap();
    };
    put(1, 0);
    side.pull(Time(1));
    assert!(side.take_next(Time(1)).is_some(), "the instance is known from here on");
    side.set_lifespan(writer(1), Duration(1_000));
    side.set_wall_clock(Time(0), stamp(0));
    put(2, 100);
    put(3, 900);
    assert!(matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::Not(_)));
    assert!(!side.shows_unread(|| Time(950)), "it is looked at first");
    side.pull(Time(950));
    assert!(side.shows_unread(|| Time(950)) && side.cache.unread_count() == 2);
    assert!(side.take_alarm().is_some_and(|at| (at.0 - 1_100).abs() <= 1));
    assert!(side.shows_unread(|| Time(1_200)) && side.cache.unread_count() == 1);
    // What was too old in the lane is not seen at all.
    put(4, 950);
    put(5, 2_500);
    assert_eq!(side.pull(Time(2_500)).news, StatusMask::DATA_AVAILABLE);
    let taken: Vec<_> = std::iter::from_fn(|| side.take_next(Time(2_600))).collect();
    assert_eq!(taken.iter().map(|sample| sample.info.sequence_number.0).collect::<Vec<_>>(), [5]);
    assert_eq!(side.sample_lost.total_count, 0);
}

/// A reliable reader with room for so many instances, each a byte of the payload.
/// A reader of two samples at most, each for 1,000 ns, that has both and one that waits in its lane.
fn full_side_of_short_lives() -> (ReaderSide, Vec<LaneWriter>) {
    let (mut side, mut lanes) = side(1);
    let limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    side.cache = ReaderCache::new(&DataReaderQos::default().keep_all().resource_limits(limits), false);
    side.set_lifespan(writer(1), Duration(1_000));
    side.set_wall_clock(Time(0), Timestamp::from_unix_ns(WALL));
    put(&mut lanes, 1, 0);
    put(&mut lanes, 2, 0);
    put(&mut lanes, 3, 900);
    side.pull(Time(900));
    assert!(side.is_stalled() && !side.is_ready());
    (side, lanes)
}

const WALL: i64 = 1_700_000_000_000_000_000;

/// Writes into the first lane, so long after the clocks began.
fn put(lanes: &mut [LaneWriter], number: u64, ns: i64) {
    let mut meta = meta(number);
    meta[1] = Timestamp::from_unix_ns(WALL + ns).to_bits();
    lanes[0].push(&meta, b"text").unwrap();
}

#[test]
fn what_expires_makes_room_for_what_waits_in_a_lane() {
    let (mut side, _lanes) = full_side_of_short_lives();
    assert!(!side.shows_unread(|| Time(1_200)), "two are too old, and the third has not been looked at");
    assert!(side.is_ready(), "there is room");
    side.pull(Time(1_200));
    assert_eq!(
        side.take_next(Time(1_200)).map(|sample| sample.info.sequence_number),
        Some(SequenceNumber(3))
    );
}

#[test]
fn who_drives_is_told_once_when_there_will_be_room() {
    let (mut side, mut lanes) = full_side_of_short_lives();
    assert!(side.take_untold(), "its owner has found it");
    assert_eq!(side.take_alarm().map(|at| (at.0 - 1_000).abs() <= 1), Some(true));
    side.pull(Time(950));
    assert!(side.is_stalled() && !side.take_untold() && side.take_alarm().is_none(), "it knows");
    let ((_, next), _) = side.look_at_deadlines(Time(1_100), &mut 1);
    assert!((next.0 - 1_900).abs() <= 1 && !side.is_stalled());
    put(&mut lanes, 4, 1_200);
    put(&mut lanes, 5, 1_200);
    side.pull(Time(1_200));
    assert!(side.is_stalled() && !side.take_untold(), "it looks before that");
}

#[test]
fn what_is_too_old_does_not_hide_what_is_in_a_lane() {
    let (mut side, mut lanes) = full_side_of_short_lives();
    put(&mut lanes, 4, 1_850);
    side.refill(|| Time(1_950));
    let taken = side.take_next_with(|| Time(1_950), |taken| taken.info.sequence_number);
    assert_eq!(taken, Some(SequenceNumber(4)));
}

fn side_with_instances(limit: Option<u32>) -> ReaderSide {
    let key_hash = |payload: &[u8], _: bool| payload.first().map(|byte| handle(*byte));
    let type_support =
        TypeSupport { type_name: "Keyed".into(), key_hash: Some(key_hash), ..TypeSupport::default() };
    let limits = ResourceLimits { max_instances: limit, ..ResourceLimits::default() };
    let mut qos = DataReaderQos::default().keep_all().resource_limits(limits);
    qos.reliability.kind = ReliabilityKind::Reliable;
    ReaderSide::new(&qos, &type_support)
}

#[test]
fn a_new_instance_beyond_the_limit_is_rejected_and_holds_nothing_back() {
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered, NotAliveUnregistered};
    let mut side = side_with_instances(Some(2));
    let (mut number, mut kinds) = (0, StatusMask::NONE);
    let mut deliver = |side: &mut ReaderSide, kind, instance| {
        number += 1;
        let mut offer = Some(change(kind, 1, instance, number));
        kinds = side.deliver(Time(number), 0, &mut offer);
        offer.is_none()
    };
    for instance in [1, 2, 3, 1] {
        assert!(deliver(&mut side, Alive, instance), "{instance} is held back");
    }
    let rejected = side.sample_rejected.take();
    assert_eq!((rejected.total_count, rejected.last_instance_handle), (1, handle(3)));
    assert_eq!(rejected.last_reason, SampleRejectedReason::RejectedByInstancesLimit);
    assert!(deliver(&mut side, NotAliveUnregistered, 3), "it is not known, and nothing is rejected");
    assert!(deliver(&mut side, NotAliveDisposed, 3));
    assert_eq!((side.sample_rejected.take().total_count, side.cache.len()), (2, 3));

    // An instance that has ended makes room when its samples are taken: until then a new one waits.
    assert!(deliver(&mut side, NotAliveDisposedUnregistered, 1));
    assert!(!deliver(&mut side, Alive, 3), "it is lost, though there will be room for it");
    assert!(side.is_blocked() && side.sample_rejected.total_count == 2);
    while side.take_next(Time(99)).is_some() {}
    assert!(deliver(&mut side, Alive, 3));
    assert_eq!((side.cache.len(), side.cache.instance_count()), (1, 2));
    assert!(deliver(&mut side, Alive, 4) && side.sample_rejected.take().total_count == 3);
    assert_eq!(kinds, StatusMask::SAMPLE_REJECTED);
}

/// A side whose instance n is named n by one version of XCDR, and n + 100 by the other.
fn of_two_versions() -> ReaderSide {
    let key_hash = |payload: &[u8], _: bool| payload.first().map(|byte| handle(*byte));
    let other = |payload: &[u8], _: bool| payload.first().map(|byte| handle(byte + 100));
    let type_support = TypeSupport {
        type_name: "Keyed".into(),
        key_hash: Some(key_hash),
        other_key_hash: Some(other),
        ..TypeSupport::default()
    };
    ReaderSide::new(&DataReaderQos::default().keep_all(), &type_support)
}

#[test]
fn a_hash_of_zeros_names_an_instance_whose_handle_is_not_nil() {
    let mut side = side_with_instances(None);
    side.key_hash = Some(|payload, _| payload.first().map(|byte| instance_handle(handle(*byte))));
    for (number, kind) in [(1, ChangeKind::Alive), (2, ChangeKind::NotAliveDisposed)] {
        side.deliver(Time(number), 0, &mut Some(change(kind, 1, 0, number)));
        let SampleInfo { instance_handle: found, valid_data, .. } =
            side.take_next(Time(number)).unwrap().info;
        assert_eq!((found == InstanceHandle::NIL, valid_data), (false, number == 1));
    }
    assert_eq!(side.cache.instance_count(), 1);
}

#[test]
fn a_hash_names_an_instance_in_either_version() {
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered};
    let mut side = of_two_versions();
    let mut number = 0;
    let mut ends = |side: &mut ReaderSide, kind, instance| {
        number += 1;
        side.deliver(Time(number), 0, &mut Some(change(kind, 1, instance, number)));
        side.take_next(Time(number)).map(|sample| (sample.info.instance_handle, sample.info.valid_data))
    };
    for instance in [1, 2] {
        assert_eq!(ends(&mut side, Alive, instance), Some((handle(instance), true)));
    }
    assert_eq!(ends(&mut side, NotAliveDisposed, 101), Some((handle(1), false)));
    assert_eq!(ends(&mut side, NotAliveDisposedUnregistered, 2), Some((handle(2), false)));
    // One that comes after the first such name, and one that has gone.
    assert_eq!(ends(&mut side, Alive, 3), Some((handle(3), true)));
    assert_eq!(ends(&mut side, NotAliveDisposed, 103), Some((handle(3), false)));
    assert_eq!(side.cache.instance_count(), 2);
    assert_eq!(
        ends(&mut side, NotAliveDisposed, 102),
        Some((handle(102), false)),
        "nobody knows it any more"
    );
}

/// What came before its key was known is of the same instance, whichever hash it was named by.
#[test]
fn an_instance_that_ended_before_its_data_came_is_one() {
    use ChangeKind::{Alive, NotAliveDisposed};
    for (name, is_taken) in [(1, false), (1, true), (101, false), (101, true)] {
        let mut side = of_two_versions();
        let mut number = 0;
        let mut deliver = |side: &mut ReaderSide, kind, instance| {
            number += 1;
            side.deliver(Time(number), 0, &mut Some(change(kind, 1, instance, number)));
        };
        let take = |side: &mut ReaderSide| side.take_next(Time(99)).unwrap();
        deliver(&mut side, NotAliveDisposed, name);
        let before = is_taken.then(|| take(&mut side));
        deliver(&mut side, Alive, 1);
        if let Some(end) = before {
            assert_eq!((end.info.instance_handle, end.payload_kind), (handle(name), PayloadKind::Empty));
        } else {
            assert_eq!(take(&mut side).info.instance_handle, handle(1), "{name}");
        }
        let data = take(&mut side).info;
        assert_eq!((data.instance_handle, data.disposed_generation_count), (handle(1), 1), "{name}");
        for again in [101, 1] {
            deliver(&mut side, Alive, 1);
            deliver(&mut side, NotAliveDisposed, again);
            assert!(take(&mut side).info.valid_data);
            let end = take(&mut side);
            assert_eq!(
                (end.info.instance_handle, end.payload_kind),
                (handle(1), PayloadKind::Data),
                "{name}"
            );
        }
        assert_eq!(side.cache.instance_count(), 1, "{name}");
    }
}

#[test]
fn of_an_instance_of_which_nothing_passed_the_filter_no_end_is_told() {
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered};
    let key_hash = |payload: &[u8], _: bool| payload.first().map(|byte| handle(*byte));
    for filter in [None, Some(ContentFilter::new(|payload| payload.first() != Some(&2)))] {
        let filtered = filter.is_some();
        let type_support = TypeSupport {
            type_name: "Keyed".into(),
            key_hash: Some(key_hash),
            filter,
            ..TypeSupport::default()
        };
        let mut side = ReaderSide::new(&DataReaderQos::default().keep_all(), &type_support);
        let mut number = 0;
        let mut told = |kind, instance| {
            number += 1;
            side.deliver(Time(number), 0, &mut Some(change(kind, 1, instance, number)));
            side.take_next(Time(number)).is_some()
        };
        assert!(told(Alive, 1) && told(NotAliveDisposed, 1));
        for end in [NotAliveDisposed, NotAliveDisposedUnregistered] {
            assert_eq!((told(Alive, 2), told(end, 2)), (!filtered, !filtered));
        }
        // One of which nothing at all has come.
        assert_eq!(told(NotAliveDisposed, 3), !filtered);
    }
}

/// Its key is not what its data begin with.
fn key_hash_behind(payload: &[u8], is_key: bool) -> Option<InstanceHandle> {
    payload.get(if is_key { 0 } else { 1 }).map(|byte| handle(*byte))
}

pub(crate) fn data_of(kind: ChangeKind, instance: u8, number: i64) -> Offer {
    let payload = Bytes::copy_from(&[9, instance, 9]);
    Some(CacheChange { instance: None, payload, ..change(kind, 1, 0, number) })
}

#[test]
fn data_and_the_end_that_comes_with_them_are_both_told() {
    use ChangeKind::{AliveThenDisposed, AliveThenDisposedUnregistered, AliveThenUnregistered};
    let type_support = TypeSupport {
        type_name: "Keyed".into(),
        key_hash: Some(key_hash_behind),
        filter: Some(ContentFilter::new(|payload| payload.get(1) != Some(&2))),
        ..TypeSupport::default()
    };
    for (end, state) in [
        (AliveThenDisposed, InstanceState::NotAliveDisposed),
        (AliveThenUnregistered, InstanceState::NotAliveNoWriters),
        (AliveThenDisposedUnregistered, InstanceState::NotAliveDisposed),
    ] {
        for qos in [DataReaderQos::default(), DataReaderQos::default().keep_all()] {
            let mut side = ReaderSide::new(&qos, &type_support);
            let taken = |side: &mut ReaderSide| {
                let next = || side.take_next(Time(9)).map(|sample| (sample.info, sample.payload));
                let told = |(info, payload): (SampleInfo, Bytes)| {
                    (info.instance_handle, info.instance_state, info.valid_data.then_some(payload[1]))
                };
                std::iter::from_fn(next).map(told).collect::<Vec<_>>()
            };
            // Of one that nothing was known of, and of one that lives.
            side.deliver(Time(1), 0, &mut data_of(end, 1, 1));
            assert_eq!(taken(&mut side), [(handle(1), state, Some(1)), (handle(1), state, None)]);
            side.deliver(Time(2), 0, &mut data_of(ChangeKind::Alive, 3, 2));
            assert_eq!(taken(&mut side), [(handle(3), InstanceState::Alive, Some(3))]);
            side.deliver(Time(3), 0, &mut data_of(end, 3, 3));
            assert_eq!(taken(&mut side), [(handle(3), state, Some(3)), (handle(3), state, None)]);
            // Nothing of it passes the filter.
            side.deliver(Time(4), 0, &mut data_of(end, 2, 4));
            assert_eq!(taken(&mut side), []);
            assert_eq!(side.sample_lost.total_count, 0);
        }
    }
}

/// The data are left out, the end is not.
#[test]
fn the_end_that_comes_with_data_outlives_them() {
    let filter = ContentFilter::new(|payload| payload.first() != Some(&8));
    let type_support = TypeSupport {
        type_name: "Keyed".into(),
        key_hash: Some(key_hash_behind),
        filter: Some(filter),
        ..TypeSupport::default()
    };
    for expires in [false, true] {
        let mut side = ReaderSide::new(&DataReaderQos::default().keep_all(), &type_support);
        side.deliver(Time(1), 0, &mut data_of(ChangeKind::Alive, 1, 1));
        assert!(side.take_next(Time(1)).is_some());
        let mut last = data_of(ChangeKind::AliveThenDisposed, 1, 2);
        let change = last.as_mut().unwrap();
        if expires {
            side.lifespans.set(change.writer_guid, Duration(10));
        } else {
            change.payload = Bytes::copy_from(&[8, 1, 9]);
        }
        side.deliver(Time(50), 0, &mut last);
        let end = side.take_next(Time(50)).unwrap().info;
        assert_eq!((end.valid_data, end.instance_state), (false, InstanceState::NotAliveDisposed));
        assert!(side.take_next(Time(50)).is_none());
    }
}

pub(crate) fn keyed_with_room_for_one(qos: impl FnOnce(&mut DataReaderQos)) -> ReaderSide {
    let type_support =
        TypeSupport { type_name: "Keyed".into(), key_hash: Some(key_hash_behind), ..TypeSupport::default() };
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let mut of = DataReaderQos::default().keep_all().resource_limits(limits);
    of.reliability.kind = ReliabilityKind::Reliable;
    qos(&mut of);
    ReaderSide::new(&of, &type_support)
}

#[test]
fn data_with_an_end_wait_for_room() {
    let mut side = keyed_with_room_for_one(|_| ());
    side.deliver(Time(1), 0, &mut data_of(ChangeKind::Alive, 1, 1));
    let mut last = data_of(ChangeKind::AliveThenDisposed, 1, 2);
    side.deliver(Time(2), 0, &mut last);
    assert!(last.is_some() && side.is_blocked());
    assert!(side.take_next(Time(3)).is_some() && side.take_next(Time(3)).is_none());
    side.deliver(Time(3), 0, &mut last);
    assert!(last.is_none());
    let told = std::iter::from_fn(|| side.take_next(Time(4))).map(|sample| sample.info);
    let told: Vec<_> = told.map(|info| (info.valid_data, info.instance_state)).collect();
    assert_eq!(told, [true, false].map(|valid| (valid, InstanceState::NotAliveDisposed)));
}

#[test]
fn data_without_bytes_are_no_sample_of_a_type_with_a_key() {
    let mut side = side_with_instances(None);
    for number in [1, 2] {
        let mut empty =
            Some(CacheChange { payload: Bytes::new(), ..change(ChangeKind::Alive, 1, 1, number) });
        assert_eq!(side.deliver(Time(1), 0, &mut empty), StatusMask::SAMPLE_LOST);
    }
    assert_eq!((side.sample_lost.total_count, side.cache.instance_count()), (2, 0));
}

/// Its sample has a place beside those that HISTORY keeps.
#[test]
fn the_end_of_an_instance_waits_for_no_room() {
    let mut side = keyed_with_room_for_one(|qos| {
        qos.reader_data_lifecycle.autopurge_disposed_samples_delay = Duration(10);
    });
    side.deliver(Time(1), 0, &mut data_of(ChangeKind::Alive, 1, 1));
    let mut waits = data_of(ChangeKind::Alive, 2, 1);
    let waiting = waits.as_mut().unwrap();
    waiting.writer_guid = writer(2);
    side.deliver(Time(1), 0, &mut waits);
    assert!(waits.is_some() && side.take_alarm().is_none(), "nothing makes room by itself");
    let mut end = data_of(ChangeKind::NotAliveDisposed, 1, 2);
    let change = end.as_mut().unwrap();
    (change.payload, change.instance) = (Bytes::new(), Some(handle(1)));
    let news = side.deliver(Time(2), 0, &mut end);
    assert!(end.is_none() && news == StatusMask::DATA_AVAILABLE);
    assert_eq!(side.take_alarm(), Some(Time(12)), "then there will be room");
    side.on_timeout(Time(12), usize::MAX);
    side.deliver(Time(12), 0, &mut waits);
    assert!(waits.is_none());
    assert_eq!(side.take_next(Time(12)).map(|sample| sample.info.instance_handle), Some(handle(2)));
}

#[test]
fn a_rejected_sample_names_its_instance_also_where_there_is_one_only() {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let qos = DataReaderQos::default().keep_all().resource_limits(limits);
    let mut side = ReaderSide::new(&qos, &type_support);
    for number in [1, 2] {
        side.deliver(Time(1), 0, &mut Some(change(ChangeKind::Alive, 1, 0, number)));
    }
    assert_eq!(side.sample_rejected.total_count, 1);
    let taken = side.take_next(Time(1)).unwrap().info;
    assert_eq!(side.sample_rejected.last_instance_handle, taken.instance_handle);
}
