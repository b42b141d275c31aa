//! What reliability costs: datagrams are counted.

use taut_base::{Duration, SequenceNumber, SequenceNumberSet, Time};
use taut_mem::Bytes;
use taut_port::{Frame, Traffic};
use taut_qos::Qos;
use taut_rtps::limits::{ACK_EVERY_DATAGRAMS, HEARTBEAT_IN_STREAM};
use taut_sim::{
    Faults, Network, NodeOptions, Pair, SimReader, SimWriter, Taken, Tally, TopicSpec, user_locator,
};
use taut_wire::{AckNack, Endian, Header, Submessage, Submessages, write_message_header};

/// A writer on node 0 and a reader on each other node, all in one multicast group.
struct Group {
    network: Network,
    writer: SimWriter,
    readers: Vec<SimReader>,
}

impl Group {
    fn new(readers: usize, options: NodeOptions) -> Group {
        let mut network = Network::new(3);
        for _ in 0..=readers {
            let node = network.add(options);
            network.start(node);
        }
        let (topic, qos) = (TopicSpec::new("Square", true), Qos::default().reliable().keep_all());
        let writer = network.create_writer(0, 1, &topic, &qos);
        let readers = (1..=readers).map(|node| network.create_reader(node, &topic, &qos)).collect();
        let mut group = Group { network, writer, readers };
        for _ in 0..100 {
            group.network.run_for(Duration::from_millis(100));
        }
        let is_matched = |reader| group.network.is_matched(&group.writer, reader) == (true, true);
        assert!(group.readers.iter().all(is_matched));
        group.write(10);
        group.network.run_for(Duration::from_secs(1));
        assert!((0..group.readers.len()).all(|reader| group.numbers(reader) == [1]));
        group
    }

    fn write(&mut self, filler: u32) {
        self.network.write(&mut self.writer, 1, filler).unwrap();
    }

    /// Loses so many of a thousand on the way to these readers.
    fn lose(&mut self, readers: std::ops::Range<usize>, loss: u64) {
        for reader in readers {
            self.network.links.insert((0, reader + 1), Faults::loss(loss));
        }
    }

    fn numbers(&mut self, reader: usize) -> Vec<u64> {
        let reader = self.readers[reader];
        self.network.take(&reader, usize::MAX).iter().map(Taken::number).collect()
    }
}

#[test]
fn a_lost_datagram_is_sent_again_once() {
    for later in [0, 1, 5] {
        let mut group = Group::new(1, NodeOptions::default());
        group.lose(0..1, 1_000);
        let before = group.network.sent();
        group.write(100);
        group.lose(0..1, 0);
        (0..later).for_each(|_| group.write(100));
        group.network.run_for(Duration::from_secs(1));
        let sent = group.network.sent().since(&before);
        assert_eq!(sent.data, 1 + later + 1, "{sent:?}");
        assert_eq!(group.numbers(0), (2..=2 + later).collect::<Vec<_>>());
    }
}

/// Each datagram of a burst says what there is; in a long row of them one in a while does, and so what is lost in the midst
/// of it is still there soon.
#[test]
fn a_long_row_of_datagrams_needs_few_heartbeats() {
    const ROW: u64 = 1_000;
    const BETWEEN: Duration = Duration::from_micros(10);
    let mut group = Group::new(1, NodeOptions::default());
    let burst = |group: &mut Group, count: u64| {
        let before = group.network.sent();
        for _ in 0..count {
            group.write(100);
            group.network.run_for(BETWEEN);
        }
        group.network.sent().since(&before).heartbeat
    };
    assert_eq!(burst(&mut group, 10), 10);
    group.network.run_for(Duration::from_secs(1));
    let said = burst(&mut group, ROW);
    assert!((60..=70).contains(&said), "one for each of the first, then one in 200 us: {said}");

    group.lose(0..1, 1_000);
    group.write(100);
    group.lose(0..1, 0);
    let lost_at = group.network.now();
    group.numbers(0);
    while group.numbers(0).is_empty() {
        group.write(100);
        group.network.run_for(BETWEEN);
    }
    let took = group.network.now().since(lost_at);
    assert!(took <= Duration::from_micros(400), "a heartbeat within 200 us, and three ways of 50: {took:?}");
}

/// Whoever drives sleeps until a timer is due: that of a heartbeat is put off before, as long as a stream goes on.
#[test]
fn no_timer_comes_due_while_a_stream_goes_on() {
    let mut group = Group::new(1, NodeOptions::default());
    let mut soon = 0;
    for _ in 0..900 {
        group.write(100);
        group.network.run_for(Duration::from_micros(100));
        let due = group.network.participant(0).unwrap().next_timeout().unwrap();
        soon += u64::from(due < group.network.local_now(0) + Duration::from_micros(500));
    }
    // The first asks for acknowledgements, as none was asked for in a while. One each 12 ms would be some 35.
    assert!(soon <= 10, "{soon} times a timer was due within 500 us");
}

/// A stream is acknowledged in batches: each half window, here of datagrams, and each 100 ms if it is slower than that.
/// A few more are for its end.
#[test]
fn a_stream_needs_few_acknowledgements() {
    const SAMPLES: usize = 10_000;
    for between in [Duration::from_micros(10), Duration::from_millis(1)] {
        let slices = between.times(SAMPLES as i64).0 / HEARTBEAT_IN_STREAM.0;
        let at_most = SAMPLES / ACK_EVERY_DATAGRAMS + slices as usize + 3;
        let mut group = Group::new(1, NodeOptions::default());
        let (before, mut taken) = (group.network.nodes[1].sent, 0);
        for _ in 0..SAMPLES {
            group.write(100);
            group.network.run_for(between);
            taken += group.numbers(0).len();
        }
        group.network.run_for(Duration::from_secs(1));
        let said = group.network.nodes[1].sent.since(&before).acknack;
        println!("{said} ACKNACKs for {SAMPLES} samples, one each {between}");
        assert!(said as usize <= at_most, "{said} ACKNACKs, {between} apart");
        assert_eq!(taken + group.numbers(0).len(), SAMPLES);
        assert!(group.network.participant(0).unwrap().is_acknowledged(group.writer.index));
    }
}

/// A control loop's writes are whole periods apart, and so would be what a timer of theirs sends: it would meet one of them
/// each time. So the question for acknowledgements rides, and the timer sends nothing.
#[test]
fn what_asks_for_acknowledgements_rides_behind_a_stream() {
    const SAMPLES: u64 = 2_000;
    let mut group = Group::new(1, NodeOptions::default());
    // Whatever was asked for at its beginning is over.
    for _ in 0..100 {
        group.write(100);
        group.network.run_for(Duration::from_micros(500));
    }
    let before = [group.network.nodes[0].sent, group.network.nodes[1].sent];
    for _ in 0..SAMPLES {
        group.write(100);
        group.network.run_for(Duration::from_micros(500));
        group.numbers(0);
    }
    let sent = [0, 1].map(|node: usize| group.network.nodes[node].sent.since(&before[node]));
    assert_eq!((sent[0].data, sent[0].heartbeat), (SAMPLES, SAMPLES), "none went alone");
    assert!((9..=10).contains(&sent[1].acknack), "each 100 ms of a second: {}", sent[1].acknack);
}

/// The alarm of a driver that sleeps is not moved for what is put off: it rings, and is set for what is due by then.
#[test]
fn an_alarm_rings_seldom_for_a_stream() {
    let mut group = Group::new(1, NodeOptions::default());
    let (mut alarm, mut rings) = (Time::NEVER, 0);
    for _ in 0..1_000 {
        group.write(100);
        group.network.run_for(Duration::from_micros(999));
        let (now, due) = (group.network.local_now(0), group.network.participant(0).unwrap().next_timeout());
        if alarm <= now {
            (alarm, rings) = (Time::NEVER, rings + 1);
        }
        alarm = alarm.min(due.unwrap());
    }
    // Each time after 11 ms to 12 of a second.
    assert!((83..=91).contains(&rings), "it rang {rings} times");
}

#[test]
fn who_has_nothing_to_say_is_silent() {
    let mut group = Group::new(8, NodeOptions::default());
    for _ in 0..100 {
        group.write(100);
    }
    group.network.run_for(Duration::from_millis(200));
    let before = group.network.sent();
    group.network.run_for(Duration::from_secs(600));
    assert_eq!(group.network.sent().since(&before).user_traffic(), 0);
}

#[test]
fn readers_of_a_group_that_miss_the_same_are_repaired_together() {
    for later in [0, 1, 3] {
        let mut group = Group::new(32, NodeOptions::default());
        group.lose(0..32, 1_000);
        let before = group.network.sent();
        group.write(100);
        group.lose(0..32, 0);
        (0..later).for_each(|_| group.write(100));
        group.network.run_for(Duration::from_secs(1));
        let sent = group.network.sent().since(&before);
        assert_eq!(sent.data, 1 + later + 2, "one alone, one for all others: {sent:?}");
        for reader in 0..32 {
            assert_eq!(group.numbers(reader), (2..=2 + later).collect::<Vec<_>>());
        }
    }
}

#[test]
fn readers_of_a_group_that_lose_at_random_get_all() {
    let mut group = Group::new(12, NodeOptions::default());
    group.lose(0..12, 200);
    for _ in 0..200 {
        group.write(100);
        group.network.run_for(Duration::from_micros(300));
    }
    group.network.run_for(Duration::from_secs(5));
    for reader in 0..12 {
        assert_eq!(group.numbers(reader), (2..=201).collect::<Vec<_>>());
    }
}

#[test]
fn one_reader_of_a_group_is_repaired_alone() {
    let mut group = Group::new(32, NodeOptions::default());
    group.lose(7..8, 1_000);
    let before: Vec<Tally> = group.network.nodes.iter().map(|node| node.sent).collect();
    group.write(100);
    group.lose(7..8, 0);
    group.network.run_for(Duration::from_secs(1));
    let sent = group.network.nodes[0].sent.since(&before[0]);
    assert_eq!(sent.data, 2, "{sent:?}");
    assert_eq!(group.numbers(7), [2]);
    // Each has one question and one answer, the one that missed it one more of each.
    assert!(sent.heartbeat <= 1 + 32 + 1, "{sent:?}");
    assert_eq!(group.network.nodes[8].sent.since(&before[8]).acknack, 2);
}

#[test]
fn a_lost_datagram_is_sent_again_once_on_a_long_way() {
    let delay = Duration::from_millis(40);
    let mut group = Group::new(1, NodeOptions::default());
    let far = |loss| Faults { loss, delay, ..Faults::default() };
    group.network.links.insert((1, 0), far(0));
    let mut repairs = Vec::new();
    for _ in 0..6 {
        let before = group.network.sent();
        group.network.links.insert((0, 1), far(1_000));
        group.write(100);
        group.network.links.insert((0, 1), far(0));
        (0..10).for_each(|_| {
            group.write(100);
            group.network.run_for(Duration::from_millis(5));
        });
        group.network.run_for(Duration::from_secs(3));
        repairs.push(group.network.sent().since(&before).data - 11);
    }
    assert_eq!(repairs[4..], [1, 1], "once it knows how long answers take: {repairs:?}");
}

/// How many datagrams of samples leave before a fresh one, when a reader has just asked for `count` of `size` B.
fn before_a_fresh_one(count: u32, size: u32) -> usize {
    let mut group = Group::new(2, NodeOptions::default());
    group.lose(1..2, 1_000);
    (0..count).for_each(|_| group.write(size));
    group.network.run_for(Duration::from_millis(1));
    let (slow, writer) = (group.readers[1].guid, group.writer.guid);
    let mut asked = SequenceNumberSet::new(SequenceNumber(2));
    for number in 2..count + 2 {
        asked.insert(SequenceNumber(number.into()));
    }
    let mut bytes = Vec::new();
    write_message_header(&mut bytes, slow.prefix);
    let (reader_id, writer_id) = (slow.entity, writer.entity);
    AckNack { reader_id, writer_id, reader_sn_state: asked, count: 1_000, final_flag: false }
        .write(&mut bytes, Endian::Little);
    let frame = Frame { source: user_locator(2), traffic: Traffic::User, bytes: Bytes::from(bytes) };
    group.network.capturing = 10_000;
    let mut change = taut_dcps::Write {
        kind: taut_rtps::ChangeKind::Alive,
        instance: Default::default(),
        source_timestamp: None,
        payload: Bytes::copy_from(&[0; 100]),
        number: None,
        in_lane: false,
        called: taut_base::Time::default(),
        was_left: false,
    };
    let index = group.writer.index;
    let fresh = group
        .network
        .on(0, |participant, now| {
            participant.on_frame(now, &frame);
            participant.write(now, index, &mut change).unwrap()
        })
        .unwrap();
    let is_fresh = |bytes: &[u8]| {
        let (_, rest) = Header::parse(bytes).unwrap();
        Submessages::new(rest)
            .flatten()
            .any(|s| matches!(s, Submessage::Data(data) if data.writer_sn == fresh))
    };
    group.network.captured.iter().position(|sent| sent.from == 0 && is_fresh(&sent.bytes)).unwrap()
}

#[test]
fn repairs_leave_fresh_changes_their_turn() {
    for (count, size) in [(200, 60_000), (15, 1_000_000), (200, 100)] {
        let before = before_a_fresh_one(count, size);
        assert!(before <= 3, "{count} of {size} B: {before} datagrams come first");
    }
}

#[test]
fn a_lost_fragment_is_sent_again_once_and_no_other_is() {
    const FRAGMENTS: u32 = 12;
    let options = NodeOptions { path_size: 1_472, ..NodeOptions::default() };
    for lost in 1..=FRAGMENTS {
        let mut pair = Pair::with_options(1, options, options);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        pair.run_for(Duration::from_secs(1));
        let before = pair.network.sent();
        // All that leaves at once comes, but for this one.
        pair.network.capturing = usize::MAX;
        pair.network.cut(Pair::WRITER, Pair::READER);
        pair.write(1, (FRAGMENTS - 1) * 1_352 + 1_000).unwrap();
        pair.network.mend(Pair::WRITER, Pair::READER);
        let left = pair.network.sent().since(&before);
        assert_eq!(left.data_frag, FRAGMENTS.into());
        let is_lost = |bytes: &[u8]| {
            let (_, rest) = Header::parse(bytes).unwrap();
            let is_it = |s| matches!(s, Submessage::DataFrag(of) if of.fragment_starting_num == lost);
            Submessages::new(rest).flatten().any(is_it)
        };
        let sent = std::mem::take(&mut pair.network.captured);
        let came: Vec<_> = sent.iter().filter(|sent| !is_lost(&sent.bytes)).collect();
        assert_eq!(came.len(), sent.len() - 1);
        for sent in came {
            pair.network.inject(Pair::READER, Traffic::User, user_locator(Pair::WRITER), sent.bytes.clone());
        }
        pair.run_for(Duration::from_secs(1));
        let sent = pair.network.sent().since(&before);
        assert_eq!(pair.take_numbers(), [1]);
        assert_eq!((sent.data_frag, sent.nack_frag), (u64::from(FRAGMENTS) + 1, 1), "{lost}: {sent:?}");
    }
}

/// Writes a change of `size` bytes, in fragments of 1,352, to a reader that needs 10 us for each datagram and has
/// room for some. Returns how long it takes and how many fragments.
fn to_a_narrow_reader(size: u32, receive_buffer: usize) -> (Duration, u64) {
    let options = NodeOptions { path_size: 1_472, ..NodeOptions::default() };
    let reader = NodeOptions { service: Duration::from_micros(10), receive_buffer, ..options };
    let mut pair = Pair::with_options(1, options, reader);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    pair.run_for(Duration::from_secs(1));
    let (before, start) = (pair.network.sent(), pair.network.now());
    pair.write(1, size).unwrap();
    assert!(pair.run_until(Duration::from_secs(100), |pair| !pair.take_numbers().is_empty()));
    (pair.network.now().since(start), pair.network.sent().since(&before).data_frag)
}

#[test]
fn a_large_change_does_not_overrun_its_reader() {
    let (took, sent) = to_a_narrow_reader(16 << 20, 1_100);
    assert_eq!(sent, (16_u64 << 20).div_ceil(1_352), "nothing is lost");
    assert!(took < Duration::from_millis(130), "{took}: the reader is busy all the time");
}

#[test]
fn a_small_buffer_is_found_out() {
    for (size, buffer) in [(16 << 20, 200), (4 << 20, 100)] {
        let (took, sent) = to_a_narrow_reader(size, buffer);
        let least = u64::from(size) / 1_352;
        assert!(sent < 2 * least && took.0 < 5 * 10_000 * least.cast_signed(), "{sent} of {least}, {took}");
    }
}

/// A reader that never answers what it is asked within a change.
#[test]
fn a_reader_that_does_not_say_how_far_it_is_gets_all() {
    let options = NodeOptions { path_size: 1_472, ..NodeOptions::default() };
    let mut pair = Pair::with_options(1, options, options);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    pair.run_for(Duration::from_secs(1));
    pair.network.cut(1, 0);
    pair.write(1, 16 << 20).unwrap();
    let start = pair.network.now();
    assert!(pair.run_until(Duration::from_secs(2), |pair| !pair.take_numbers().is_empty()));
    let took = pair.network.now().since(start);
    assert!(took < Duration::from_millis(100), "{took}: it is not asked for ever");
}

/// How long samples of a stream of one each 5 ms wait on the average where so many of a thousand datagrams get lost.
/// *Units*: ms.
fn mean_wait(seed: u64, loss: u64) -> i64 {
    const SAMPLES: usize = 4_000;
    let mut pair = Pair::new(seed);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    pair.network.faults = Faults::loss(loss);
    let (mut written, mut taken, mut sum) = (Vec::new(), 0, 0_i64);
    let end = pair.network.now() + Duration::from_secs(120);
    while taken < SAMPLES {
        assert!(pair.network.now() < end, "seed {seed}: {taken} of {SAMPLES} came, {loss} of 1000 got lost");
        if written.len() < SAMPLES {
            pair.write(1, 10).unwrap();
            written.push(pair.network.now());
        }
        for _ in 0..5 {
            pair.run_for(Duration::from_millis(1));
            for number in pair.take_numbers() {
                sum += pair.network.now().since(written[number as usize - 1]).0;
                taken += 1;
            }
        }
    }
    sum / 1_000_000 / SAMPLES as i64
}

/// An answer that is lost makes the wait for the next one longer, and those that come make it shorter again.
#[test]
fn what_is_lost_is_waited_for_no_longer_than_answers_take() {
    for (loss, most) in [(100, 4), (200, 18)] {
        let waits = [1, 2, 3, 4].map(|seed| mean_wait(seed, loss));
        assert!(waits.iter().sum::<i64>() < most * 4, "{loss}: {waits:?} ms");
    }
}
