//! Where the latency of samples went, as the protocol tells it: on the wire, to readers, from whom it is believed.

use taut_base::{Duration, EntityId, GuidPrefix, SequenceNumber, Time};
use taut_dcps::{SampleAnatomy, Stage};
use taut_mem::Bytes;
use taut_port::Traffic;
use taut_qos::Qos;
use taut_sim::{Content, NodeOptions, Pair, Tally, user_locator};
use taut_wire::{
    DataHeader, Endian, ParameterListWriter, PayloadKind, Stamps, pid, write_info_dst, write_message_header,
};

const CLOCK: Option<&str> = Some("one");

fn with_clock(anatomy: Option<&'static str>) -> NodeOptions {
    NodeOptions { anatomy, ..NodeOptions::default() }
}

/// A matched pair whose sides have clocks of these names, without a key.
fn matched(writer: NodeOptions, reader: NodeOptions, qos: &Qos) -> Pair {
    let mut pair = Pair::with_options(1, writer, reader).without_key();
    pair.reader(qos.clone());
    pair.writer(qos.clone());
    pair.run_until_matched();
    pair.run_for(Duration::from_secs(1));
    pair
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

fn anatomies(pair: &Pair) -> Vec<SampleAnatomy> {
    let reader = pair.readers[0];
    let participant = pair.network.participant(reader.node).unwrap();
    participant.side(reader.index, |side| side.anatomies().collect()).unwrap()
}

fn bad_ones(pair: &Pair) -> u64 {
    pair.network.participant(Pair::READER).unwrap().core().counters().bad_anatomy
}

/// What the writer's node sends for ten samples.
fn sent_for_ten(writer: Option<&'static str>, reader: Option<&'static str>) -> Tally {
    let mut pair = matched(with_clock(writer), with_clock(reader), &reliable());
    let before = pair.network.nodes[Pair::WRITER].sent;
    for _ in 0..10 {
        pair.write(1, 100).unwrap();
        pair.run_for(Duration::from_millis(20));
    }
    assert_eq!(pair.take_numbers(), (1..=10).collect::<Vec<_>>());
    pair.network.nodes[Pair::WRITER].sent.since(&before)
}

#[test]
fn off_it_takes_no_byte_of_the_wire() {
    let off = sent_for_ten(None, None);
    assert_eq!(sent_for_ten(None, CLOCK), off, "a reader that wants to know asks for nothing");
    let on = sent_for_ten(CLOCK, None);
    let more = 10 * (Stamps::LEN as u64 + 4);
    assert_eq!(on, Tally { bytes: off.bytes + more, ..off }, "28 bytes and the end of their list");
    // RTPS header 20, INFO_TS 12, DATA 24, payload; HEARTBEAT 32, which goes alone behind 20 and INFO_DST 16.
    let payload = Content { key: 1, tag: 1, number: 1, filler: 100 }.encode().len() as u64;
    let least = 10 * (20 + 12 + 24 + payload.next_multiple_of(4));
    assert_eq!(off.bytes, least + 32 * off.heartbeat + 36 * (off.datagrams - 10), "{off:?}");
}

#[test]
fn stages_are_in_order_and_add_up() {
    let mut pair = matched(with_clock(CLOCK), with_clock(CLOCK), &reliable());
    for size in [10, 1_000, 200_000] {
        pair.write(1, size).unwrap();
        pair.run_for(Duration::from_millis(200));
    }
    assert_eq!(pair.take_numbers(), [1, 2, 3]);
    let seen = anatomies(&pair);
    assert_eq!((seen.len(), bad_ones(&pair)), (3, 0));
    for one in seen {
        let points = [one.written, one.queued, one.sent, one.received, one.delivered, one.taken];
        let points = points.map(|point| point.expect("all stages are known"));
        assert!(points.is_sorted() && one.one_clock, "{one:?}");
        let stages: Vec<Stage> = one.stages().map(|(stage, _)| stage).collect();
        assert_eq!(stages, [Stage::Write, Stage::Queue, Stage::Wire, Stage::Deliver, Stage::Take]);
        let sum: i64 = one.stages().map(|(_, time)| time.unwrap().0).sum();
        assert_eq!(one.total(), Some(Duration(sum)), "{one}");
        assert_eq!(sum, points[5].since(points[0]).0);
        assert!(one.stage(Stage::Wire).unwrap() > Duration::ZERO, "{one}");
    }
}

#[test]
fn a_lost_sample_has_waited_until_it_was_sent_again() {
    let mut pair = matched(with_clock(CLOCK), with_clock(CLOCK), &reliable());
    pair.cut();
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.mend();
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [1, 2]);
    let seen = anatomies(&pair);
    let of = |number| *seen.iter().find(|one| one.sequence_number == SequenceNumber(number)).unwrap();
    assert!(of(1).stage(Stage::Queue).unwrap() >= Duration::from_millis(1), "{}", of(1));
    let (sent_again, waited) = (of(1).stage(Stage::Deliver).unwrap(), of(2).stage(Stage::Deliver).unwrap());
    assert!(waited > sent_again, "what came first waits for what is missing: {} / {}", of(1), of(2));
}

/// The network asserts that no datagram of samples is larger than the path.
#[test]
fn fragments_leave_room_for_it() {
    for (path_size, keyed) in [(1_472, false), (8_972, true), (640, true)] {
        let narrow = NodeOptions { path_size, ..with_clock(CLOCK) };
        let mut pair = Pair::with_options(2, narrow, with_clock(CLOCK)).with_loss(0.05);
        pair.topic.keyed = keyed;
        pair.reader(reliable());
        pair.writer(reliable());
        pair.run_until_matched();
        let sizes = [40, path_size - 200, path_size - 160, path_size - 120, path_size, 300_000];
        for size in sizes {
            pair.write(1, size as u32).unwrap();
        }
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.take_numbers(), (1..=6).collect::<Vec<_>>(), "path of {path_size}");
        assert!(anatomies(&pair).iter().all(|one| one.total().is_some()), "path of {path_size}");
    }
}

#[test]
fn between_two_clocks_the_wire_stays_open() {
    let offset = NodeOptions { clock_offset: Duration::from_secs(100), ..with_clock(Some("another")) };
    let mut pair = matched(offset, with_clock(CLOCK), &reliable());
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [1]);
    let [one] = anatomies(&pair)[..] else { panic!("one sample") };
    assert!(one.written > one.taken, "by clocks that differ: {one:?}");
    assert_eq!((one.total(), one.stage(Stage::Wire), bad_ones(&pair)), (None, None, 0));
    assert!(one.to_string().contains("wire ? "), "{one}");
}

/// Sends the reader a first sample under the name of the writer, with this inline QoS, and takes it.
fn forge(pair: &mut Pair, inline: &[u8]) -> SampleAnatomy {
    let mut out = Vec::new();
    let prefix = pair.network.prefix(Pair::WRITER);
    write_message_header(&mut out, prefix);
    write_info_dst(&mut out, Endian::Little, GuidPrefix::UNKNOWN);
    let header = DataHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: pair.writers[0].guid.entity,
        writer_sn: SequenceNumber::FIRST,
    };
    let payload = Content { key: 1, tag: pair.writers[0].tag, number: 1, filler: 8 }.encode();
    header.write(&mut out, Endian::Little, inline, PayloadKind::Data, payload.len());
    out.extend_from_slice(&payload);
    pair.network.inject(Pair::READER, Traffic::User, user_locator(Pair::WRITER), Bytes::from(out));
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.take_numbers(), [1], "the sample itself is good");
    let [one] = anatomies(pair)[..] else { panic!("one sample") };
    one
}

fn stamps(written: i64, queued: i64, sent: i64) -> Vec<u8> {
    let mut inline = Vec::new();
    let [written, queued, sent] = [written, queued, sent].map(Time);
    Stamps { written, queued, sent }.append(&mut inline, Endian::Little);
    inline
}

#[test]
fn only_who_announces_it_is_believed() {
    let best_effort = Qos::default().best_effort();
    let mut known = matched(with_clock(CLOCK), with_clock(CLOCK), &best_effort);
    assert_eq!(forge(&mut known, &stamps(1, 2, 3)).written, Some(Time(1)));
    // One that announces nothing may mean something else by the same number.
    let mut stranger = matched(with_clock(None), with_clock(CLOCK), &best_effort);
    let one = forge(&mut stranger, &stamps(1, 2, 3));
    assert_eq!((one.written, one.queued, one.sent, bad_ones(&stranger)), (None, None, None, 0));
    assert!(one.received.is_some() && one.taken.is_some(), "what the reader sees itself it knows: {one:?}");
    let one = forge(
        &mut matched(with_clock(None), with_clock(CLOCK), &best_effort),
        &[1, 0xa7, 4, 0, 9, 9, 9, 9, 1, 0, 0, 0],
    );
    assert_eq!(one.written, None);
}

#[test]
fn what_cannot_be_is_dropped_and_counted() {
    let mut short = Vec::new();
    let mut list = ParameterListWriter::new(&mut short, Endian::Little);
    list.put_bytes(pid::vendor::TAUT_ANATOMY, &[0; 20]);
    list.finish();
    let ahead = i64::MAX - 1;
    for inline in [short, stamps(3, 2, 1), stamps(i64::MIN, 0, i64::MAX), stamps(1, 2, ahead)] {
        let mut pair = matched(with_clock(CLOCK), with_clock(CLOCK), &Qos::default().best_effort());
        let one = forge(&mut pair, &inline);
        assert_eq!((one.written, one.sent, bad_ones(&pair)), (None, None, 1), "{inline:?}");
    }
    // Of another clock a time ahead says nothing.
    let mut pair = matched(with_clock(Some("another")), with_clock(CLOCK), &Qos::default().best_effort());
    assert_eq!((forge(&mut pair, &stamps(1, 2, ahead)).sent, bad_ones(&pair)), (Some(Time(ahead)), 0));
}

#[test]
fn who_does_not_want_to_know_reads_nothing() {
    let mut pair = matched(with_clock(CLOCK), with_clock(None), &reliable());
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!((pair.take_numbers(), anatomies(&pair)), (vec![1], vec![]));
}

#[test]
fn a_reader_of_the_same_participant_needs_no_datagram() {
    let mut pair = Pair::with_options(1, with_clock(CLOCK), with_clock(CLOCK)).without_key();
    pair.reader_on(Pair::WRITER, reliable());
    pair.writer(reliable());
    pair.run_for(Duration::from_secs(1));
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_millis(3));
    assert_eq!(pair.take_numbers(), [1]);
    let [one] = anatomies(&pair)[..] else { panic!("one sample") };
    assert_eq!((one.sent, one.received, one.total()), (None, None, Some(Duration::from_millis(3))));
}
