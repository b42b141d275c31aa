//! A lane beside the network: a sample comes by one of them.

use std::sync::Arc;

use taut_base::Duration;
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
use taut_qos::Qos;
use taut_sim::{Content, Pair};

const CELLS: usize = 4;

#[test]
fn what_a_lane_has_brought_is_not_taken_again_when_the_lane_is_left() {
    let mut pair = Pair::new(1).without_key();
    pair.writer(Qos::default().reliable().keep_all());
    pair.reader(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(CELLS, 0)), CELLS));
    let mut there = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    let here = LaneReader::attach(lane, feedback, false);
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
        participant.pull(now, reader.index);
        participant.remove_lane(now, reader.index, writer);
    });
    pair.write(1, 8).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [1, 2]);
}
