//! A reader that has lost its writer by a lease and finds it again: what it gets, how often, and what it counts as lost.

use std::sync::Arc;

use taut_base::{Duration, SequenceNumber};
use taut_dcps::InstanceState;
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
use taut_qos::{History, Qos};
use taut_rtps::limits;
use taut_sim::{Content, NodeOptions, Pair};

fn second() -> Duration {
    Duration::from_secs(1)
}

/// The writer's node is lost after one time, the reader's after the other.
fn leases(seed: u64, writer: i64, reader: i64) -> Pair {
    let lease = |seconds| NodeOptions { lease: second().times(seconds), ..NodeOptions::default() };
    Pair::with_options(seed, lease(writer), lease(reader))
}

/// Three samples are written before the reader loses its writer, three while it has lost it, and two behind that.
fn loses(pair: &mut Pair, qos: &Qos) -> Vec<u64> {
    pair.reader(qos.clone());
    pair.writer(qos.clone());
    pair.run_until_matched();
    (0..3).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.run_for(second());
    let mut got = pair.take_numbers();
    pair.cut();
    pair.run_for(second().times(12));
    (0..3).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.mend();
    assert!(pair.run_until(second().times(20), |pair| pair.is_matched()));
    pair.run_for(second().times(3));
    (0..2).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.run_for(second().times(3));
    got.extend(pair.take_numbers());
    got
}

fn lost(pair: &mut Pair) -> u32 {
    let reader = pair.readers[0];
    let status = pair.network.on(reader.node, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
    status.flatten().unwrap().total_count
}

#[test]
fn a_writer_that_never_noticed_goes_on_where_it_was() {
    for (seed, qos) in [
        (1, Qos::default().reliable().keep_all()),
        (2, Qos::default().reliable().keep_all().transient_local()),
    ] {
        let mut pair = leases(seed, 10, 100);
        assert_eq!(loses(&mut pair, &qos), [1, 2, 3, 4, 5, 6, 7, 8], "{qos:?}");
        assert_eq!(lost(&mut pair), 0);
    }
}

#[test]
fn what_is_missed_of_a_volatile_writer_that_has_forgotten_the_reader_is_lost() {
    let mut pair = leases(3, 10, 10);
    assert_eq!(loses(&mut pair, &Qos::default().reliable().keep_all()), [1, 2, 3, 7, 8]);
    assert_eq!(lost(&mut pair), 3);
}

/// Its last heartbeat was of before its first sample.
#[test]
fn who_is_lost_with_its_lane_goes_on_behind_what_that_has_brought() {
    let mut pair = leases(8, 10, 10).without_key();
    let qos = Qos::default().reliable().keep_all();
    pair.reader(qos.clone());
    pair.writer(qos);
    pair.run_until_matched();
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(4, 0)), 4));
    let mut there = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    let here = LaneReader::attach(lane, feedback, false);
    let (writer, index, tag) = (pair.writers[0].guid, pair.writers[0].index, pair.writers[0].tag);
    let reader = pair.readers[0];
    pair.run_for(second());
    pair.network.on(1, |side, now| side.add_lane(now, reader.index, writer, here)).flatten();
    for number in 1..=3 {
        let content = Content { key: 1, tag, number, filler: 10 };
        there.push(&[number, u64::MAX, 0, 0, 0], &content.encode()).unwrap();
    }
    pair.network.on(1, |side, now| side.pull(now, reader.index, usize::MAX));
    assert_eq!(pair.take_numbers(), [1, 2, 3]);
    pair.network.participant(0).unwrap().core().writer(index).unwrap().link.set_last(SequenceNumber(3));
    pair.writers[0].written = 3;
    pair.cut();
    pair.run_for(second().times(12));
    (0..3).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.mend();
    assert!(pair.run_until(second().times(20), |pair| pair.is_matched()));
    pair.run_for(second().times(3));
    (0..2).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.run_for(second().times(3));
    assert_eq!(pair.take_numbers(), [7, 8]);
    assert_eq!(lost(&mut pair), 3);
}

#[test]
fn what_a_durable_writer_keeps_comes_once() {
    let mut pair = leases(4, 10, 10);
    let qos = Qos::default().reliable().keep_all().transient_local();
    assert_eq!(loses(&mut pair, &qos), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(lost(&mut pair), 0);
}

/// Its instances had no writers, and nothing else says that they have again.
#[test]
fn to_a_durable_keep_last_reader_the_last_values_come_again() {
    let qos = Qos::default().reliable().transient_local();
    assert_eq!(qos.reader.history, History::KeepLast(1));
    let mut pair = leases(5, 10, 10);
    pair.reader(qos.clone());
    pair.writer(qos);
    pair.run_until_matched();
    pair.write(1, 10).unwrap();
    pair.run_for(second());
    assert_eq!(pair.take_numbers(), [1]);
    pair.cut();
    pair.run_for(second().times(12));
    let ended = pair.take();
    assert_eq!(ended[0].info.instance_state, InstanceState::NotAliveNoWriters);
    pair.mend();
    assert!(pair.run_until(second().times(20), |pair| pair.is_matched()));
    pair.run_for(second().times(3));
    let again = pair.take();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].info.instance_state, InstanceState::Alive);
}

#[test]
fn who_takes_the_name_of_one_that_was_lost_begins_its_own_stream() {
    for qos in [Qos::default().reliable().keep_all(), Qos::default().reliable().keep_all().transient_local()]
    {
        let mut pair = leases(6, 10, 10);
        pair.reader(qos.clone());
        pair.writer(qos.clone());
        pair.run_until_matched();
        (0..5).for_each(|_| _ = pair.write(1, 10).unwrap());
        pair.run_for(second());
        assert_eq!(pair.take_numbers(), [1, 2, 3, 4, 5]);
        pair.network.crash(Pair::WRITER);
        pair.run_for(second().times(12));
        pair.network.start_again(Pair::WRITER);
        let new = pair.writer(qos);
        pair.run_for(second().times(5));
        (0..2).for_each(|_| _ = pair.write_by(new, 1, 10).unwrap());
        pair.run_for(second().times(3));
        assert_eq!(pair.take_numbers(), [1, 2]);
        assert_eq!(lost(&mut pair), 0);
    }
}

#[test]
fn who_comes_back_long_after_is_found_anew() {
    let mut pair = leases(7, 10, 10);
    let qos = Qos::default().reliable().keep_all().transient_local();
    pair.reader(qos.clone());
    pair.writer(qos);
    pair.run_until_matched();
    pair.write(1, 10).unwrap();
    pair.run_for(second());
    assert_eq!(pair.take_numbers(), [1]);
    pair.cut();
    pair.run_for(second().times(12));
    pair.run_for(limits::GONE_KEPT);
    pair.mend();
    assert!(pair.run_until(second().times(20), |pair| pair.is_matched()));
    pair.run_for(second().times(3));
    assert_eq!(pair.take_numbers(), [1]);
}
