//! Datagrams that nobody should send, to a pair that is matched.

use taut_base::{Duration, EntityId, GuidPrefix, SequenceNumber, SequenceNumberSet};
use taut_mem::Bytes;
use taut_port::Traffic;
use taut_qos::{Qos, ResourceLimits};
use taut_rtps::discovery::ParticipantData;
use taut_rtps::limits;
use taut_sim::{Pair, Tally, USER_GROUP, meta_locator, user_locator};
use taut_wire::{
    AckNack, DataHeader, Endian, Gap, Heartbeat, PayloadKind, write_info_dst, write_message_header,
};

fn matched(loss: f64) -> Pair {
    let mut pair = Pair::new(1).with_loss(loss);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    for _ in 0..10 {
        pair.write(1, 10).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers().len(), 10);
    pair
}

/// Sends a message to one node under the name of the other.
fn forge(pair: &mut Pair, from: usize, body: impl FnOnce(&mut Vec<u8>)) {
    let mut out = Vec::new();
    let prefix = pair.network.prefix(from);
    write_message_header(&mut out, prefix);
    write_info_dst(&mut out, Endian::Big, GuidPrefix::UNKNOWN);
    body(&mut out);
    pair.network.inject(1 - from, Traffic::User, user_locator(from), Bytes::from(out));
}

fn sent_in(pair: &mut Pair, span: Duration) -> Tally {
    let before = pair.network.sent();
    pair.run_for(span);
    pair.network.sent().since(&before)
}

#[test]
fn a_reader_that_never_sets_the_final_flag_keeps_nobody_busy() {
    let mut pair = matched(0.0);
    let (reader_id, writer_id) = (pair.readers[0].guid.entity, pair.writers[0].guid.entity);
    let before = pair.network.sent();
    for n in 0..1_000 {
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber(11));
        let acknack = AckNack { reader_id, writer_id, reader_sn_state, count: 1_000 + n, final_flag: false };
        forge(&mut pair, Pair::READER, |out| acknack.write(out, Endian::Little));
        pair.run_for(Duration::from_millis(1));
    }
    let sent = pair.network.sent().since(&before);
    assert!(sent.heartbeat <= 12, "at most one in 100 ms: {sent:?}");
}

#[test]
fn a_heartbeat_of_numbers_that_do_not_exist_starts_no_echo() {
    let mut pair = matched(0.0);
    let writer_id = pair.writers[0].guid.entity;
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(1 << 40),
        count: 500,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    };
    forge(&mut pair, Pair::WRITER, |out| heartbeat.write(out, Endian::Little));
    let sent = sent_in(&mut pair, Duration::from_secs(10));
    assert!(sent.user_traffic() < 40, "{sent:?}");
    // Repeated counts make the honest heartbeats old for a while; data and what comes later do not mind.
    for _ in 0..600 {
        pair.write(1, 10).unwrap();
        pair.run_for(Duration::from_millis(2));
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.take_numbers(), (11..=610).collect::<Vec<_>>());
}

#[test]
fn acknowledgements_and_gaps_of_strangers_change_nothing() {
    let mut pair = matched(0.2);
    let (reader_id, writer_id) = (pair.readers[0].guid.entity, pair.writers[0].guid.entity);
    for n in 0..200 {
        pair.write(1, 10).unwrap();
        let gap = Gap {
            reader_id,
            writer_id,
            gap_start: SequenceNumber(1),
            gap_list: SequenceNumberSet::new(SequenceNumber(i64::MAX)),
            group_info: None,
            filtered_count: None,
        };
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber(10 + n));
        let acknack = AckNack { reader_id, writer_id, reader_sn_state, count: 9_999, final_flag: true };
        for to in [0, 1] {
            let mut out = Vec::new();
            write_message_header(&mut out, GuidPrefix([9; 12]));
            gap.write(&mut out, Endian::Little);
            acknack.write(&mut out, Endian::Big);
            pair.network.inject(to, Traffic::User, user_locator(7), Bytes::from(out));
        }
    }
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.take_numbers(), (11..=210).collect::<Vec<_>>());
}

#[test]
fn announcements_come_back_as_at_most_a_few() {
    // Somebody repeats an announcement of the writer's side to the reader's side a thousand times.
    let mut pair = Pair::new(3);
    pair.network.capturing = 1;
    pair.run_for(Duration::from_secs(2));
    let captured = pair.network.captured[0].clone();
    let before = pair.network.nodes[1 - captured.from].sent;
    for _ in 0..1_000 {
        let to = 1 - captured.from;
        pair.network.inject(to, Traffic::Meta, user_locator(captured.from), captured.bytes.clone());
    }
    pair.run_for(Duration::from_millis(100));
    let sent = pair.network.nodes[1 - captured.from].sent.since(&before);
    assert!(sent.datagrams < 5, "{sent:?}");
}

/// A writer that may have 20 samples that its reader has not acknowledged, which has acknowledged ten.
fn with_ten_written() -> Pair {
    let mut pair = Pair::new(1);
    let limits = ResourceLimits { max_samples: Some(20), ..ResourceLimits::default() };
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    (0..10).for_each(|_| _ = pair.write(1, 10).unwrap());
    pair.run_for(Duration::from_secs(1));
    pair
}

/// It writes on.
fn goes_on_to_write(pair: &mut Pair) {
    pair.run_for(Duration::from_millis(1));
    let goes_on = pair.run_until(Duration::from_secs(2), |pair| {
        while pair.writers[0].written < 1_000 && pair.write(1, 10).is_ok() {}
        pair.writers[0].written == 1_000
    });
    assert!(goes_on, "{} written", pair.writers[0].written);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.is_acknowledged(0));
    assert_eq!(pair.take_numbers(), Vec::from_iter(1..=1_000));
}

/// What it acknowledges may be true, or more than was written.
#[test]
fn a_count_far_ahead_silences_no_reader_for_good() {
    for base in [11, 12] {
        let mut pair = with_ten_written();
        let (reader_id, writer_id) = (pair.readers[0].guid.entity, pair.writers[0].guid.entity);
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber(base));
        let acknack = AckNack { reader_id, writer_id, reader_sn_state, count: 1 << 30, final_flag: true };
        forge(&mut pair, Pair::READER, |out| acknack.write(out, Endian::Little));
        goes_on_to_write(&mut pair);
    }
}

#[test]
fn a_count_far_ahead_silences_no_writer_for_good() {
    let mut pair = with_ten_written();
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id: pair.writers[0].guid.entity,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(10),
        count: 1 << 30,
        final_flag: true,
        liveliness_flag: false,
        group_info: None,
    };
    forge(&mut pair, Pair::WRITER, |out| heartbeat.write(out, Endian::Little));
    goes_on_to_write(&mut pair);
}

/// The reader's side seems to forget the writer's side: how much of what it is told of its endpoints it has, in turn.
fn forget_and_learn(pair: &mut Pair, times: i32) {
    for n in 0..2 * times {
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber(1 + i64::from(n % 2)));
        let (reader_id, writer_id) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        let acknack = AckNack { reader_id, writer_id, reader_sn_state, count: 1_000 + n, final_flag: true };
        forge(pair, Pair::READER, |out| acknack.write(out, Endian::Little));
    }
}

#[test]
fn who_forgets_again_and_again_is_greeted_now_and_then() {
    let mut pair = matched(0.0);
    let heartbeats = |pair: &Pair| pair.network.nodes[Pair::WRITER].sent.heartbeat;
    let before = heartbeats(&pair);
    forget_and_learn(&mut pair, 500);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(heartbeats(&pair) - before, 1, "at once, and once");
    pair.run_for(limits::LOOK_REPEAT);
    assert_eq!(heartbeats(&pair) - before, 2, "the last time is not forgotten");
    pair.run_for(limits::LOOK_REPEAT.times(10));
    assert_eq!(heartbeats(&pair) - before, 2);
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [11]);
}

#[test]
fn who_moves_again_and_again_is_followed_now_and_then() {
    let mut pair = matched(0.0);
    let sent = |pair: &Pair| pair.network.nodes[Pair::WRITER].sent.heartbeat;
    let before = sent(&pair);
    for n in 0..1_000 {
        let mut payload = Vec::new();
        let data = ParticipantData {
            guid_prefix: pair.network.prefix(Pair::READER),
            metatraffic_unicast: vec![meta_locator(Pair::READER)],
            default_unicast: vec![user_locator(Pair::READER)],
            default_multicast: vec![USER_GROUP; n % 2],
            ..ParticipantData::default()
        };
        data.write(&mut payload);
        let (reader_id, writer_id) = (EntityId::SPDP_READER, EntityId::SPDP_WRITER);
        let header = DataHeader { reader_id, writer_id, writer_sn: SequenceNumber::FIRST };
        forge(&mut pair, Pair::READER, |out| {
            header.write(out, Endian::Little, &[], PayloadKind::Data, payload.len());
            out.extend_from_slice(&payload);
        });
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(sent(&pair) - before, 1, "a heartbeat to where it is");
    pair.run_for(Duration::from_secs(10));
    pair.write(1, 10).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), [11]);
}

/// What it asks for was written before by the peer that is asked, and nothing since.
#[test]
fn who_asks_for_what_an_earlier_life_wrote_is_told_that_there_is_none() {
    let mut pair = Pair::new(1);
    pair.network.run_for(Duration::from_secs(1));
    pair.writer(Qos::default().reliable());
    pair.run_for(Duration::from_secs(2));
    let endpoints = |pair: &Pair| {
        let participant = pair.network.participant(Pair::READER).unwrap();
        participant.core().database().endpoints().count()
    };
    assert_eq!(endpoints(&pair), 1);
    // Another writer was announced, which has not come when the process ends.
    pair.cut();
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::SEDP_PUBLICATIONS_WRITER,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(2),
        count: 500,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    };
    forge(&mut pair, Pair::WRITER, |out| heartbeat.write(out, Endian::Little));
    pair.run_for(Duration::from_millis(100));
    pair.network.crash(Pair::WRITER);
    pair.mend();
    pair.network.start_again(Pair::WRITER);
    let found = pair.run_until(limits::RESTART_AFTER.times(10), |pair| endpoints(pair) == 0);
    assert!(found, "what the earlier life has said is taken for that of the new one");
    pair.run_for(Duration::from_secs(5));
    let sent = sent_in(&mut pair, Duration::from_secs(10));
    assert_eq!(sent.sedp, 0, "somebody still asks: {sent:?}");
}

#[test]
fn who_has_more_than_was_written_is_answered_now_and_then() {
    for (is_final, most) in [(false, 12), (true, 0)] {
        let mut pair = matched(0.0);
        let (reader_id, writer_id) = (pair.readers[0].guid.entity, pair.writers[0].guid.entity);
        let before = pair.network.nodes[Pair::WRITER].sent.heartbeat;
        for n in 0..1_000 {
            let reader_sn_state = SequenceNumberSet::new(SequenceNumber(1 << 40));
            let acknack =
                AckNack { reader_id, writer_id, reader_sn_state, count: 1_000 + n, final_flag: is_final };
            forge(&mut pair, Pair::READER, |out| acknack.write(out, Endian::Little));
            pair.run_for(Duration::from_millis(1));
        }
        let heartbeats = pair.network.nodes[Pair::WRITER].sent.heartbeat - before;
        assert!(heartbeats <= most, "at most one in 100 ms: {heartbeats}");
        assert!(is_final || heartbeats > 0);
        assert_eq!(pair.network.sent().data, 10, "a lie acknowledges nothing and has nothing sent");
    }
}
