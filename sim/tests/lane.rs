//! A lane beside the network: a sample comes by one of them.

use std::sync::Arc;

use taut_base::{Duration, SequenceNumber, Time};
use taut_dcps::{DomainParticipant, InstanceState};
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
use taut_mem::{Bytes, Region};
use taut_qos::{LivelinessKind, Qos, ResourceLimits};
use taut_rtps::NewChange;
use taut_rtps::history_cache::ChangeKind;
use taut_sim::{Content, Pair, instance};

const CELLS: usize = 4;

/// The two ends of one.
fn lane(cells: usize) -> (LaneWriter, LaneReader) {
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(cells, 0)), cells));
    let there = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    (there, LaneReader::attach(lane, feedback, false))
}

/// Lets the reader read a lane of the first writer, which knows it.
fn read_lane(pair: &mut Pair, here: LaneReader) {
    let (writer, index, reader) = (pair.writers[0].guid, pair.writers[0].index, pair.readers[0]);
    let from = pair.network.on(reader.node, |side, now| side.add_lane(now, reader.index, writer, here));
    pair.network.on(0, |side, now| side.set_reader_lane(now, index, reader.guid, from.flatten()));
}

/// What the protocol is given of a change that goes through the lane, with its payload if that is for others, too.
fn through_the_lane(payload: Bytes) -> NewChange {
    NewChange {
        kind: ChangeKind::Alive,
        instance: instance(1),
        source_timestamp: None,
        payload,
        number: None,
        in_lane: true,
        called: Time::default(),
        was_left: false,
    }
}

#[test]
fn what_a_lane_has_brought_is_not_taken_again_when_the_lane_is_left() {
    let mut pair = Pair::new(1).without_key();
    pair.writer(Qos::default().reliable().keep_all());
    pair.reader(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    let (mut there, here) = lane(CELLS);
    let (writer, reader) = (pair.writers[0].guid, pair.readers[0]);
    let from = pair
        .network
        .on(reader.node, |participant, now| participant.add_lane(now, reader.index, writer, here));
    assert_eq!(from.flatten().map(|from| from.0), Some(1));

    // The first comes by both ways, the network is late, and the writer's process parts meanwhile.
    let first = Content { key: 1, tag: pair.writers[0].tag, number: 1, filler: 8 };
    there.push(&[1, u64::MAX, 0, 0, 0], &first.encode()).unwrap();
    pair.write(1, 8).unwrap();
    pair.network.on(reader.node, |participant, now| {
        participant.pull(now, reader.index, usize::MAX);
        participant.remove_lane(now, reader.index, writer);
    });
    pair.write(1, 8).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [1, 2]);
}

/// What goes through the lane sends no datagram, and shows all the same that its writer is alive.
#[test]
fn a_writer_that_writes_into_its_lane_is_alive() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let mut pair = Pair::new(2).without_key();
        let qos = Qos::default().reliable().keep_all().liveliness(kind, Duration::from_secs(1));
        pair.writer(qos.clone());
        pair.reader(qos);
        pair.run_until_matched();
        let (mut there, here) = lane(CELLS);
        let (index, reader) = (pair.writers[0].index, pair.readers[0]);
        read_lane(&mut pair, here);
        for number in 1..=50 {
            let content = Content { key: 1, tag: pair.writers[0].tag, number, filler: 8 };
            there.push(&[number, u64::MAX, 0, 0, 0], &content.encode()).unwrap();
            let mut change = through_the_lane(Bytes::new());
            pair.network.on(0, |participant, now| participant.write(now, index, &mut change).unwrap());
            pair.run_for(Duration::from_millis(100));
            let pulled =
                pair.network.on(1, |participant, now| participant.pull(now, reader.index, usize::MAX));
            assert!(pulled.is_some_and(|pulled| !pulled.awaited));
            assert_eq!(pair.take_numbers(), [number], "{kind}");
        }
        let status = pair.network.on(1, |participant, _| {
            participant.reader(reader.index).map(|reader| reader.liveliness_changed.clone())
        });
        let status = status.flatten().unwrap();
        assert_eq!((status.alive_count, status.alive_count_change), (1, 1), "{kind}: {status:?}");
        pair.run_for(Duration::from_secs(2));
        let silent = pair.network.on(1, |participant, _| {
            participant.reader(reader.index).map(|reader| reader.liveliness_changed.not_alive_count)
        });
        assert_eq!(silent.flatten(), Some(1), "{kind}");
    }
}

/// Its reader looks once all is there, as if each had come when it was written.
#[test]
fn what_is_separated_in_time_is_so_in_the_lane() {
    let separation = Duration::from_millis(3);
    for (gap_us, come) in [(6_000, [10, 10]), (3_000, [10, 10]), (1_000, [4, 5])] {
        for is_reliable in [false, true] {
            let mut pair = Pair::new(7).without_key();
            let qos = Qos::default().keep_all();
            let qos = if is_reliable { qos.reliable() } else { qos };
            pair.writer(qos.clone());
            pair.reader(qos.time_based_filter(separation));
            pair.run_until_matched();
            let (mut there, here) = lane(16);
            let (writer, reader) = (pair.writers[0].guid, pair.readers[0]);
            pair.network.on(1, |side, now| side.add_lane(now, reader.index, writer, here)).flatten();
            let tag = pair.writers[0].tag;
            for number in 1..=10 {
                let called = pair.network.on(1, |_, now| now).unwrap().0.cast_unsigned();
                let content = Content { key: 1, tag, number, filler: 8 };
                there.push(&[number, u64::MAX, called << 2, 0, 0], &content.encode()).unwrap();
                pair.run_for(Duration::from_micros(gap_us));
            }
            pair.run_for(Duration::from_secs(1));
            pair.network.on(1, |side, now| side.pull(now, reader.index, usize::MAX));
            pair.run_for(Duration::from_secs(1));
            let taken = pair.take_numbers();
            assert_eq!(
                taken.len(),
                come[usize::from(is_reliable)],
                "{gap_us} us, reliable {is_reliable}: {taken:?}"
            );
        }
    }
}

/// A change is given to the protocol, and then to the lane: whose readers may be told that its writer is alive before they
/// find it there.
#[test]
fn what_is_on_its_way_into_the_lane_is_not_lost_when_its_writer_says_that_it_is_alive() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let mut pair = Pair::new(7).without_key();
        let qos = Qos::default().reliable().keep_all().liveliness(kind, Duration::from_secs(1));
        pair.writer(qos.clone());
        pair.reader(qos);
        pair.run_until_matched();
        let (mut there, here) = lane(CELLS);
        let (index, reader) = (pair.writers[0].index, pair.readers[0]);
        read_lane(&mut pair, here);
        for number in 1..=20 {
            let content = Content { key: 1, tag: pair.writers[0].tag, number, filler: 8 };
            let mut change = through_the_lane(Bytes::new());
            // A third of the lease: a write says so that often.
            pair.run_for(Duration::from_millis(340));
            let before = pair.network.sent().alive;
            pair.network.on(0, |side, now| side.write(now, index, &mut change).unwrap());
            pair.run_for(Duration::from_millis(10));
            assert!(pair.network.sent().alive > before, "{kind}: it says so");
            there.push(&[number, u64::MAX, 0, 0, 0], &content.encode()).unwrap();
            pair.network.on(1, |side, now| side.pull(now, reader.index, usize::MAX));
            assert_eq!(pair.take_numbers(), [number], "{kind}");
        }
        let lost = pair.network.on(1, |side, _| side.side(reader.index, |side| side.sample_lost.total_count));
        assert_eq!(lost.flatten(), Some(0), "{kind}");
    }
}

/// What lies in the lane was written before its writer fell silent, and does not bring the instance back.
#[test]
fn a_writer_that_fell_silent_leaves_what_is_in_its_lane_without_writers() {
    let mut pair = Pair::new(3);
    let qos = Qos::default().reliable().keep_all();
    let qos = qos.liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(1));
    pair.writer(qos.clone());
    pair.reader(qos);
    pair.run_until_matched();
    let (mut there, here) = lane(CELLS);
    let (writer, reader) = (pair.writers[0].guid, pair.readers[0]);
    pair.network.on(1, |participant, now| participant.add_lane(now, reader.index, writer, here));
    // A message of the writer would bring what the lane holds before it.
    pair.cut();
    let content = Content { key: 1, tag: pair.writers[0].tag, number: 1, filler: 8 };
    there.push(&[1, u64::MAX, 0, 0, 0], &content.encode()).unwrap();
    pair.run_for(Duration::from_secs(2));
    pair.network.on(1, |participant, now| participant.pull(now, reader.index, usize::MAX));
    let taken: Vec<_> = pair.take().iter().map(|one| (one.info.valid_data, one.state())).collect();
    let silent = InstanceState::NotAliveNoWriters;
    assert_eq!(taken, [(true, silent), (false, silent)]);
}

/// What was written before it read the lane waited for room elsewhere, and is too old by now.
#[test]
fn a_reader_that_was_full_as_it_joined_a_lane_does_not_wait_for_what_is_too_old() {
    let mut pair = Pair::new(4).without_key();
    pair.writer(Qos::default().reliable().keep_all().lifespan(Duration::from_millis(100)));
    pair.writer(Qos::default().reliable().keep_all());
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.reader_on(Pair::WRITER, Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    pair.write_by(1, 1, 8).unwrap();
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
    let mut there = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let (writer, tag, reader) = (pair.writers[0].guid, pair.writers[0].tag, pair.readers[0]);
    let mut write = |pair: &mut Pair, number| {
        let payload = Content { key: 1, tag, number, filler: 8 }.encode();
        let mut change = through_the_lane(payload.clone());
        let index = pair.writers[0].index;
        pair.network.on(Pair::WRITER, |participant, now| participant.write(now, index, &mut change).unwrap());
        there.push(&[number, u64::MAX, 0, 0, 0], &payload).unwrap();
    };
    write(&mut pair, 1);
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    let here = LaneReader::attach(lane, feedback, false);
    let from = pair
        .network
        .on(reader.node, |participant, now| participant.add_lane(now, reader.index, writer, here));
    assert_eq!(from.flatten().map(|from| from.0), Some(2));
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.take().len(), 1);
    write(&mut pair, 2);
    pair.network.on(reader.node, |participant, now| participant.pull(now, reader.index, usize::MAX));
    assert_eq!(pair.take_numbers(), [2]);
}

/// What its writer has no longer is known of what waits for room, and behind that, before there is room.
#[test]
fn a_reader_that_has_room_again_does_not_wait_for_what_is_gone_behind_what_it_gets() {
    let mut pair = Pair::new(5);
    pair.writer(Qos::default().reliable().keep_all().lifespan(Duration::from_millis(100)));
    pair.writer(Qos::default().reliable().keep_all());
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.reader(Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    pair.write_by(1, 2, 8).unwrap();
    pair.run_for(Duration::from_millis(100));
    let (mut there, here) = lane(CELLS);
    let (writer, index, reader) = (pair.writers[0].guid, pair.writers[0].index, pair.readers[0]);
    read_lane(&mut pair, here);
    // Neither finds room in the lane, nor comes in time by the network: the end of the instance is all that is left.
    pair.cut();
    pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
    pair.write(1, 8).unwrap();
    let third = Content { key: 1, tag: pair.writers[0].tag, number: 3, filler: 8 }.encode();
    let mut change = through_the_lane(third.clone());
    pair.network.on(0, |participant, now| participant.write(now, index, &mut change).unwrap());
    there.push(&[3, u64::MAX, 0, 0, 0], &third).unwrap();
    pair.run_for(Duration::from_millis(200));
    pair.mend();
    pair.run_for(Duration::from_secs(1));
    assert!(!pair.is_acknowledged(0));
    let mut taken = Vec::new();
    for _ in 0..3 {
        pair.network.on(1, |participant, now| participant.pull(now, reader.index, usize::MAX));
        taken.extend(pair.take().iter().map(|one| (one.info.publication_handle, one.info.sequence_number.0)));
        pair.run_for(Duration::from_millis(50));
    }
    assert_eq!(taken, [(pair.writers[1].guid.into(), 1), (writer.into(), 1), (writer.into(), 3)]);
    assert!(pair.is_acknowledged(0));
}

/// The process of its writer parts, and is met no more.
#[test]
fn what_had_no_room_as_a_lane_was_left_is_not_lost() {
    let mut pair = Pair::new(6).without_key();
    pair.writer(Qos::default().reliable().keep_all());
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.reader(Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    let (mut there, here) = lane(CELLS);
    let (writer, index, reader) = (pair.writers[0].guid, pair.writers[0].index, pair.readers[0]);
    read_lane(&mut pair, here);
    for number in 1..=3 {
        let payload = Content { key: 1, tag: pair.writers[0].tag, number, filler: 8 }.encode();
        there.push(&[number, u64::MAX, 0, 0, 0], &payload).unwrap();
    }
    pair.network.participant(0).unwrap().core().writer(index).unwrap().link.set_last(SequenceNumber(3));
    pair.network.on(1, |participant, now| participant.remove_lane(now, reader.index, writer));
    pair.network.on(0, |participant, now| participant.set_reader_lane(now, index, reader.guid, None));
    pair.writers[0].written = 3;
    pair.write(1, 8).unwrap();
    let mut taken = Vec::new();
    for _ in 0..5 {
        pair.run_for(Duration::from_millis(200));
        taken.extend(pair.take_numbers());
    }
    assert_eq!(taken, [1, 2, 3, 4]);
    assert!(pair.is_acknowledged(0));
}

/// The lane of a full reader holds them, and its writer says that it is alive and has nothing left.
#[test]
fn what_waits_in_a_lane_is_not_lost_where_its_writer_has_it_no_longer() {
    let mut pair = Pair::new(8).without_key();
    let manual = (LivelinessKind::ManualByTopic, Duration::from_secs(9));
    pair.writer(Qos::default().reliable().keep_last(1).liveliness(manual.0, manual.1));
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.reader(Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    let (mut there, here) = lane(CELLS);
    let (index, reader) = (pair.writers[0].index, pair.readers[0]);
    read_lane(&mut pair, here);
    for number in 1..=4 {
        let content = Content { key: 1, tag: pair.writers[0].tag, number, filler: 8 };
        there.push(&[number, u64::MAX, 0, 0, 0], &content.encode()).unwrap();
        let mut change = through_the_lane(Bytes::new());
        pair.network.on(0, |participant, now| participant.write(now, index, &mut change).unwrap());
    }
    let mut taken = Vec::new();
    for _ in 0..5 {
        pair.network.on(0, |participant, now| participant.assert_liveliness(now, index));
        pair.run_for(Duration::from_millis(200));
        pair.network.on(1, |participant, now| participant.pull(now, reader.index, usize::MAX));
        taken.extend(pair.take_numbers());
    }
    assert_eq!(taken, [1, 2, 3, 4]);
    let total = |participant: &mut DomainParticipant, _| {
        participant.side(reader.index, |side| side.sample_lost.total_count)
    };
    assert_eq!(pair.network.on(1, total).flatten(), Some(0));
}
