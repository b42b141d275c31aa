//! What the protocol does to a reader whose samples also come through lanes.

use std::sync::Arc;

use taut_base::{SequenceNumber, Time};
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter, Meta};
use taut_qos::DataReaderQos;
use taut_rtps::history_cache::ChangeKind;

use crate::reader_cache_tests::{change, writer};
use crate::reader_side::{Passed, Pulled, ReaderSide};
use crate::{StatusMask, TypeSupport};

const CELLS: usize = 4;

/// A reader's side that reads the lane of each of so many writers, all of them waiting for room.
fn side(writers: u8) -> (ReaderSide, Vec<LaneWriter>) {
    let type_support = TypeSupport { type_name: "Number".into(), key_hash: None, filter: None };
    let mut qos = DataReaderQos { history: taut_qos::History::KeepAll, ..DataReaderQos::default() };
    // Writers wait for reliable readers only.
    qos.reliability.kind = taut_qos::ReliabilityKind::Reliable;
    let mut side = ReaderSide::new(&qos, &type_support);
    let lanes = (1..=writers).map(|n| {
        let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
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

fn meta(number: u64) -> Meta {
    [number, u64::MAX, 0, 0, 0]
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
