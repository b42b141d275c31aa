//! What a reader asks for and acknowledges, and what it gives up, as its writers' heartbeats and changes come.

use std::cell::RefCell;

use super::*;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::message::Message;
use taut_base::{EntityId, GuidPrefix, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId};
use taut_mem::{Bytes, Pool};
use taut_port::Loopback;
use taut_wire::{Gap, Header, Heartbeat, InlineQos};

const WRITER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId([0, 0, 1, 3]));

/// A reader that has been told of changes 1 to 3.
fn reader() -> Reader {
    reader_of(false)
}

fn reader_of(durable_writer: bool) -> Reader {
    let mut reader = unheard(durable_writer);
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat(), &mut |_| {});
    reader
}

/// A volatile reader that has heard nothing of its writer.
fn unheard(durable_writer: bool) -> Reader {
    let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, false, false));
    let mut qos = EndpointQos::default_writer();
    qos.reliability.kind = ReliabilityKind::Reliable;
    let mut reader = Reader::new(guid, ReaderIndex(0), &qos, History::KeepLast(1));
    let mut writer = WriterProxy::new(WRITER, true, 0, vec![taut_base::Locator::INVALID]);
    writer.skips_history = durable_writer;
    reader.match_writer(writer, false);
    reader.greet(Time(0), WRITER);
    reader
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER.entity,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(3),
        count: 1,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    }
}

fn proxy(reader: &mut Reader) -> &mut WriterProxy {
    reader.proxies.get_mut(&WRITER).unwrap()
}

fn arrives(reader: &mut Reader, now: Time, number: i64) {
    proxy(reader).on_change(&mut Some(change(now, number)), |offer| *offer = None);
}

fn change(now: Time, number: i64) -> CacheChange {
    CacheChange {
        kind: ChangeKind::Alive,
        writer_guid: WRITER,
        sequence_number: SequenceNumber(number),
        instance: None,
        source_timestamp: None,
        time: now,
        payload: Bytes::new(),
    }
}

/// Sends what is due. Returns how many datagrams that took.
fn send(reader: &mut Reader, now: Time) -> usize {
    let header =
        Header { version: ProtocolVersion::RTPS_2_5, vendor: VendorId::UNKNOWN, prefix: reader.guid.prefix };
    let (mut port, mut message) = (Loopback::new(), Message::new(header));
    let mut tx = Tx::new(now, &mut port, &mut message, 9);
    assert!(reader.send_acks(&mut tx));
    tx.send_left();
    tx.sent
}

/// It costs no look at the turns of others, of which there may be thousands.
#[test]
fn a_writer_has_one_turn_until_it_is_told_and_another_one_afterwards() {
    let mut reader = reader();
    for _ in 0..3 {
        (0..3).for_each(|_| reader.queue_ack(WRITER));
        assert!(reader.acks.iter().eq([&WRITER]));
        send(&mut reader, Time(0));
        assert!(reader.acks.is_empty());
    }
    reader.queue_ack(WRITER);
    let proxy = reader.unmatch_writer(WRITER).unwrap();
    reader.match_writer(WriterProxy::new(WRITER, true, 0, proxy.locators), false);
    reader.greet(Time(0), WRITER);
    assert_eq!(send(&mut reader, Time(0)), 1, "it has come back, and has heard nothing yet");
    reader.queue_ack(WRITER);
    assert!(reader.acks.iter().eq([&WRITER]));
}

#[test]
fn what_does_not_come_is_asked_for_again_ever_more_rarely() {
    let mut reader = reader();
    let mut now = Time(0);
    assert_eq!(send(&mut reader, now), 1);
    let mut wait = limits::NACK_REPEAT;
    for _ in 0..10 {
        assert_eq!(reader.repeat_at, now + wait);
        now = reader.repeat_at;
        reader.on_repeat_timer(now);
        assert_eq!(send(&mut reader, now), 1);
        wait = wait.times(2).min(limits::NACK_REPEAT_MAX);
    }
}

#[test]
fn nothing_is_asked_for_again_while_it_comes_or_has_come() {
    let mut reader = reader();
    send(&mut reader, Time(0));
    let late = Time(0) + limits::NACK_REPEAT;
    arrives(&mut reader, late, 1);
    reader.on_repeat_timer(late);
    assert_eq!((send(&mut reader, late), reader.repeat_at), (0, late + limits::NACK_REPEAT));
    // A writer that answers in portions: the rest is asked for once no more of it comes.
    let quiet = reader.repeat_at;
    reader.on_repeat_timer(quiet);
    assert_eq!(send(&mut reader, quiet), 1);
    for number in [2, 3] {
        arrives(&mut reader, quiet, number);
    }
    let done = reader.repeat_at;
    reader.on_repeat_timer(done);
    assert_eq!((send(&mut reader, done), reader.repeat_at), (0, Time::NEVER));
}

fn gap(numbers: std::ops::Range<i64>) -> Gap {
    Gap {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER.entity,
        gap_start: SequenceNumber(numbers.start),
        gap_list: SequenceNumberSet::new(SequenceNumber(numbers.end)),
        group_info: None,
        filtered_count: None,
    }
}

/// The first question is answered at once or too late, as `gone`. Returns how many datagrams it takes to ask for `news`
/// then, after half of an answer's time, and after all of it.
fn asked_after(gone: bool, news: i64) -> [usize; 3] {
    let mut reader = reader();
    assert_eq!(send(&mut reader, Time(0)), 1);
    let took = Duration::from_millis(8);
    let now = Time(0) + took;
    if gone {
        proxy(&mut reader).on_gap(now, &gap(1..4), &mut |_| {});
    } else {
        [1, 2, 3].into_iter().for_each(|number| arrives(&mut reader, now, number));
    }
    assert_eq!(proxy(&mut reader).next_expected(), SequenceNumber(4));
    let mut count = 1;
    let mut ask = |reader: &mut Reader, now, last| {
        count += 1;
        let heartbeat = Heartbeat {
            reader_id: EntityId::UNKNOWN,
            writer_id: WRITER.entity,
            first_sn: SequenceNumber(1),
            last_sn: SequenceNumber(last),
            count,
            final_flag: true,
            liveliness_flag: false,
            group_info: None,
        };
        proxy(reader).on_heartbeat(now, &heartbeat, &mut |_| {});
        if proxy(reader).ack_due {
            reader.queue_ack(WRITER);
        }
        send(reader, now)
    };
    let late = [Duration::ZERO, Duration(took.0 / 2), took].map(|wait| now + wait);
    let asked = late.map(|at| ask(&mut reader, at, 3 + news));
    // What is new besides waits for the answer, if it is late, and for no longer than an answer may take.
    assert_eq!(ask(&mut reader, late[2], 4 + news), usize::from(!gone));
    assert!(reader.repeat_at <= late[2] + took.times(2).max(limits::NACK_REPEAT), "{:?}", reader.repeat_at);
    asked
}

#[test]
fn who_asks_too_late_asks_one_question_at_a_time() {
    assert_eq!(asked_after(false, 1), [1, 0, 0]);
    assert_eq!(asked_after(true, 1), [0, 0, 1]);
}

#[test]
fn what_is_not_asked_for_at_once_is_asked_for_when_nothing_comes() {
    let mut reader = reader();
    send(&mut reader, Time(0));
    let now = Time(0) + Duration::from_millis(30);
    proxy(&mut reader).on_gap(now, &gap(1..3), &mut |_| {});
    // The question behind the answer says what has come, and asks for nothing.
    proxy(&mut reader).ack_due = true;
    reader.queue_ack(WRITER);
    assert_eq!(send(&mut reader, now), 1);
    let asked = std::iter::from_fn(|| {
        let at = reader.repeat_at;
        reader.on_repeat_timer(at);
        Some((at, send(&mut reader, at)))
    });
    let asked = asked.take(4).find(|(_, sent)| *sent > 0);
    assert_eq!(asked, Some((now + Duration::from_millis(30), 1)));
}

#[test]
fn what_has_arrived_is_delivered_though_the_writer_has_it_no_longer() {
    let mut reader = reader();
    [2, 5, 6].into_iter().for_each(|number| arrives(&mut reader, Time(0), number));
    let mut delivered = Vec::new();
    let mut deliver = |offer: &mut Offer| delivered.extend(offer.take().map(|c| c.sequence_number.0));
    proxy(&mut reader).on_gap(Time(0), &gap(4..9), &mut deliver);
    proxy(&mut reader).on_gap(Time(0), &gap(1..4), &mut deliver);
    assert_eq!(delivered, [2, 5, 6]);
    assert_eq!(proxy(&mut reader).next_expected(), SequenceNumber(9));
}

#[test]
fn what_all_wait_for_finds_room_though_much_behind_it_will_not_come() {
    let after = |passed: &dyn Fn(&mut Reader, i64)| {
        let mut reader = reader();
        for number in 1..=limits::GAP_INTERVALS as i64 + 40 {
            arrives(&mut reader, Time(0), 2 * number + 1);
            passed(&mut reader, 2 * number + 2);
        }
        arrives(&mut reader, Time(0), 1);
        passed(&mut reader, 2);
        proxy(&mut reader).next_expected()
    };
    let by_gap = after(&|reader, number| {
        proxy(reader).on_gap(Time(0), &gap(number..number + 1), &mut |offer| *offer = None);
    });
    let by_data = after(&|reader, number| {
        proxy(reader).pass_over(Time(0), SequenceNumber(number), &mut |offer| *offer = None);
    });
    // Of those behind, as many as there is room for are known; the next one is asked for.
    let known = 2 * limits::GAP_INTERVALS as i64 + 1;
    assert!(by_gap >= SequenceNumber(known) && by_data == by_gap, "{by_gap:?}, {by_data:?}");
}

#[test]
fn what_will_not_come_is_not_left_undelivered() {
    let mut reader = reader();
    let left = |reader: &mut Reader| proxy(reader).undelivered().map(|left| left.count());
    // There is room for two.
    [1, 2].into_iter().for_each(|number| arrives(&mut reader, Time(0), number));
    proxy(&mut reader).on_change(&mut Some(change(Time(0), 3)), |_| {});
    assert_eq!(left(&mut reader), Some(1));
    let mut full = |_: &mut Offer| {};
    proxy(&mut reader).on_gap(Time(0), &gap(4..1_001), &mut full);
    assert_eq!(left(&mut reader), Some(1));
    proxy(&mut reader).on_change(&mut Some(change(Time(0), 1_001)), &mut full);
    proxy(&mut reader).pass_over(Time(0), SequenceNumber(1_002), &mut full);
    let heartbeat = Heartbeat { last_sn: SequenceNumber(1_005), count: 2, ..heartbeat() };
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat, &mut full);
    assert_eq!(left(&mut reader), Some(5), "3, 1,001 and 1,003 to 1,005");
    // What has come and what its writer has no longer: the first of them is there.
    proxy(&mut reader).on_gap(Time(0), &gap(3..1_006), &mut full);
    assert_eq!(left(&mut reader), Some(2));
}

#[test]
fn a_heartbeat_that_tells_nothing_is_known_as_such() {
    let mut reader = reader();
    send(&mut reader, Time(0));
    [1, 2, 3].into_iter().for_each(|number| arrives(&mut reader, Time(0), number));
    let is_abreast = |reader: &mut Reader, last, count, final_flag| {
        let heartbeat = Heartbeat {
            reader_id: EntityId::UNKNOWN,
            writer_id: WRITER.entity,
            first_sn: SequenceNumber(1),
            last_sn: SequenceNumber(last),
            count,
            final_flag,
            liveliness_flag: false,
            group_info: None,
        };
        let is_abreast = proxy(reader).is_abreast(&heartbeat);
        let mut nothing = |_: &mut Offer| panic!("there is nothing to deliver");
        // What it says of one that it knows is all that there was to do.
        let lost = proxy(reader).on_heartbeat(Time(0), &heartbeat, &mut nothing);
        let due = proxy(reader).ack_due;
        assert!(!is_abreast || (lost == 0 && !due));
        if due {
            reader.queue_ack(WRITER);
        }
        is_abreast
    };
    assert!(is_abreast(&mut reader, 3, 2, true) && is_abreast(&mut reader, 2, 3, true));
    assert!(!is_abreast(&mut reader, 3, 3, true), "it has come before");
    assert!(!is_abreast(&mut reader, 4, 4, true), "4 is missing");
    assert!(!is_abreast(&mut reader, 3, 5, true), "an answer is due");
    assert_eq!(send(&mut reader, Time(0)), 1);
    assert!(is_abreast(&mut reader, 3, 6, true));
    assert!(!is_abreast(&mut reader, 3, 7, false), "it wants an answer");
    assert_eq!(send(&mut reader, Time(0)), 1);
    arrives(&mut reader, Time(0), 5);
    assert!(!is_abreast(&mut reader, 3, 8, true), "5 waits for 4");
}

#[test]
fn a_count_far_ahead_is_forgotten_but_for_who_has_started_again() {
    for entity in [WRITER.entity, EntityId::SEDP_PUBLICATIONS_WRITER] {
        let mut reader = reader();
        [1, 2, 3].into_iter().for_each(|number| arrives(&mut reader, Time(0), number));
        let proxy = proxy(&mut reader);
        proxy.guid.entity = entity;
        let mut is_heard = |n, count, last| {
            let heartbeat =
                Heartbeat { writer_id: entity, last_sn: SequenceNumber(last), count, ..heartbeat() };
            proxy.ack_due = false;
            proxy.on_heartbeat(Time(0) + limits::RESTART_AFTER.times(n), &heartbeat, &mut |_| {});
            proxy.ack_due
        };
        assert!(is_heard(0, 1 << 30, 3) && !is_heard(0, 2, 3));
        // Another life of a built-in writer is found elsewhere.
        assert_eq!(is_heard(1, 3, 2), !entity.is_builtin());
        assert!(is_heard(1, 4, 3) && is_heard(1, 5, 3));
    }
}

#[test]
fn what_has_not_come_whole_when_history_ends_is_lost() {
    let mut reader = reader();
    let proxy = proxy(&mut reader);
    proxy.reliable = false;
    for number in [2, 6] {
        proxy.assemblies.insert(SequenceNumber(number), assembly(1, 2));
    }
    assert_eq!(proxy.end_history(SequenceNumber(5)), 1);
    assert!(proxy.assemblies.keys().eq(&[SequenceNumber(6)]));
}

#[test]
fn a_count_of_fragments_far_ahead_is_forgotten_too() {
    let mut reader = reader();
    let mut offers = |now, count| {
        let proxy = proxy(&mut reader);
        proxy.assemblies.insert(SequenceNumber(4), assembly(1, 2));
        proxy.on_heartbeat_frag(now, (SequenceNumber(4), 2), count)
    };
    assert!(offers(Time(0), 1) && offers(Time(0), 1 << 30) && !offers(Time(0), 2));
    let later = Time(0) + limits::RESTART_AFTER;
    assert!(offers(later, 3) && offers(later, 4));
}

/// Before anything has arrived, too: what the writer has dropped since it said that it had nothing is lost.
#[test]
fn what_is_gone_since_the_first_heartbeat_is_lost() {
    for (first_last, awaits_greeting, lost) in [(0, false, 2), (2, false, 0), (0, true, 0)] {
        let mut reader = unheard(false);
        proxy(&mut reader).awaits_greeting = awaits_greeting;
        let mut hear = |first: i64, last, count| {
            let (first_sn, last_sn) = (SequenceNumber(first), SequenceNumber(last));
            let reader_id = if count == 2 { reader.guid.entity } else { EntityId::UNKNOWN };
            let heartbeat = Heartbeat { reader_id, first_sn, last_sn, count, ..heartbeat() };
            proxy(&mut reader).on_heartbeat(Time(0), &heartbeat, &mut |_| {})
        };
        assert_eq!(hear(first_last + 1, first_last, 1), 0);
        assert_eq!(hear(3, 5, 2), lost, "{first_last} {awaits_greeting}");
    }
}

#[test]
fn a_volatile_reader_wants_no_history() {
    assert_eq!(proxy(&mut reader_of(false)).next_expected(), SequenceNumber(1));
    assert_eq!(proxy(&mut reader_of(true)).next_expected(), SequenceNumber(4));
}

/// What a volatile reader is given, and asks for then, to which these have come before the first heartbeat, which says
/// that the writer has those from `first` to 6.
fn begins_with(arrived: &[i64], durable_writer: bool, first: i64) -> (Vec<i64>, SequenceNumber) {
    let mut reader = unheard(durable_writer);
    let delivered = RefCell::new(Vec::new());
    let deliver =
        |offer: &mut Offer| delivered.borrow_mut().extend(offer.take().map(|c| c.sequence_number.0));
    for number in arrived {
        proxy(&mut reader).on_change(&mut Some(change(Time(0), *number)), deliver);
    }
    let heartbeat = Heartbeat {
        reader_id: reader.guid.entity,
        first_sn: SequenceNumber(first),
        last_sn: SequenceNumber(6),
        ..heartbeat()
    };
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat, &mut { deliver });
    let next = proxy(&mut reader).next_expected();
    (delivered.into_inner(), next)
}

#[test]
fn what_comes_before_the_first_heartbeat_is_of_the_stream_and_so_is_what_follows() {
    assert_eq!(begins_with(&[], true, 1), (vec![], SequenceNumber(7)), "all of it is history");
    assert_eq!(begins_with(&[1, 2, 4], true, 1), (vec![1, 2], SequenceNumber(3)));
    assert_eq!(begins_with(&[3, 4, 6], true, 1), (vec![3, 4], SequenceNumber(5)), "1 and 2 are history");
    // The writer has kept the last one.
    assert_eq!(begins_with(&[2, 3, 5], false, 6), (vec![2, 3, 5], SequenceNumber(6)));
}

/// The reader learns that there is a change more, and asks for it.
fn asks_for(reader: &mut Reader, now: Time, number: i32) {
    let heartbeat = Heartbeat { last_sn: SequenceNumber(number.into()), count: number, ..heartbeat() };
    proxy(reader).on_heartbeat(now, &heartbeat, &mut |_| {});
    reader.queue_ack(WRITER);
    assert_eq!(send(reader, now), 1);
}

/// A change of so many fragments, of which this one has come first.
fn assembly(starting_num: u32, count: u32) -> Assembly {
    let mut assembly = Assembly::new(&mut Pool::new(0, 1), part(starting_num, count), said()).unwrap();
    assembly.add(part(starting_num, count), &said(), &[0; 4], &mut |part| Bytes::copy_from(part));
    assembly
}

/// A sample of 30 MiB, of which the first 25 have come.
#[test]
fn samples_that_are_not_whole_take_so_much_memory_together() {
    for reliable in [true, false] {
        let mut reader = reader();
        let proxy = proxy(&mut reader);
        proxy.reliable = reliable;
        let mut lost = 0;
        for number in 1..=4 {
            let info = FragmentInfo { starting_num: 1, fragment_size: 1 << 15, sample_size: 30 << 20 };
            let mut assembly = Assembly::new(&mut Pool::new(0, 1), info, said()).unwrap();
            assembly.add(info, &said(), &vec![0; 25 << 20], &mut |part| Bytes::copy_from(part));
            assert_eq!(assembly.bytes(), 25 << 20);
            assert_eq!(proxy.admit_assembly(Time(0), SequenceNumber(number), assembly), Some(0));
            lost += proxy.bound_assemblies();
        }
        let left: Vec<i64> = proxy.assemblies.keys().map(|number| number.0).collect();
        assert_eq!((left, lost), if reliable { (vec![1, 2], 0) } else { (vec![3, 4], 2) });
        let undelivered = proxy.undelivered().map(|left| left.count());
        assert!(reliable || undelivered == Some(2), "when the writer goes: {undelivered:?}");
    }
}

fn part(starting_num: u32, count: u32) -> FragmentInfo {
    FragmentInfo { starting_num, fragment_size: 4, sample_size: 4 * count }
}

fn said() -> Said {
    Said { kind: ChangeKind::Alive, inline: InlineQos::default(), source_timestamp: None }
}

#[test]
fn how_long_a_sample_takes_to_be_whole_is_not_how_long_answers_take() {
    let mut reader = unheard(false);
    let mut now = Time(0);
    for number in 1..=6 {
        asks_for(&mut reader, now, number);
        assert_eq!(proxy(&mut reader).repeat_at, now + limits::NACK_REPEAT);
        now = now + Duration::from_millis(1);
        assert!(
            proxy(&mut reader).admit_assembly(now, SequenceNumber(number.into()), assembly(1, 2)).is_some()
        );
        now = now + Duration::from_millis(400);
        arrives(&mut reader, now, number.into());
    }
}

/// Fast DDS says nothing to a NACK_FRAG about a sample that its history has dropped, and a GAP to an ACKNACK.
#[test]
fn a_sample_whose_rest_never_comes_is_asked_for_whole() {
    let mut reader = reader();
    let (first, mut now) = (SequenceNumber(1), Time(0));
    assert!(proxy(&mut reader).admit_assembly(now, first, assembly(1, 2)).is_some());
    [2, 3].into_iter().for_each(|number| arrives(&mut reader, now, number));
    let mut questions = Vec::new();
    for _ in 0..limits::VAIN_QUESTIONS + 2 {
        now = now + limits::NACK_REPEAT_MAX.times(2);
        reader.on_repeat_timer(now);
        let proxy = proxy(&mut reader);
        let fragments = proxy.ask_fragments(now).len();
        let whole = if proxy.ack_due { proxy.acknack(now).iter().count() } else { 0 };
        questions.push((fragments, whole));
    }
    let mut expected = vec![(1, 0); limits::VAIN_QUESTIONS as usize + 1];
    expected.push((1, 1));
    assert_eq!(questions, expected);
    let mut delivered = Vec::new();
    let mut deliver = |offer: &mut Offer| delivered.extend(offer.take().map(|c| c.sequence_number.0));
    proxy(&mut reader).on_gap(now, &gap(1..2), &mut deliver);
    assert_eq!(delivered, [2, 3]);
}

/// The end of a sample in fragments is no answer to what was asked for meanwhile.
#[test]
fn how_long_an_answer_takes_is_not_known_from_the_end_of_another_one() {
    let mut reader = unheard(false);
    let mut now = Time(0);
    let took = Duration::from_millis(80);
    for number in 1..=40 {
        asks_for(&mut reader, now, number);
        now = now + took;
        arrives(&mut reader, now, number.into());
    }
    let patience = |reader: &mut Reader, now, number| {
        asks_for(reader, now, number);
        proxy(reader).repeat_at.since(now)
    };
    let before = patience(&mut reader, now, 41);
    assert!(before >= took, "{before}");
    let number = SequenceNumber(41);
    assert!(proxy(&mut reader).admit_assembly(now + took, number, assembly(1, 2)).is_some());
    let asked = now + took + Duration::from_millis(400);
    asks_for(&mut reader, asked, 42);
    arrives(&mut reader, asked + Duration::from_millis(2), 41);
    now = asked + took;
    arrives(&mut reader, now, 42);
    let after = patience(&mut reader, now, 43);
    assert!(after >= took.times(2), "{after}, and {before} before");
}

/// What goes to others is not of the stream of a reader that wants no history.
#[test]
fn what_is_not_for_this_reader_does_not_begin_its_stream() {
    for by_gap in [false, true] {
        let mut reader = unheard(true);
        let mut delivered = Vec::new();
        let mut deliver = |offer: &mut Offer| delivered.extend(offer.take().map(|c| c.sequence_number.0));
        if by_gap {
            proxy(&mut reader).on_gap(Time(0), &gap(1..4), &mut deliver);
        } else {
            (1..4).for_each(|number| {
                proxy(&mut reader).pass_over(Time(0), SequenceNumber(number), &mut deliver);
            });
        }
        let heartbeat = Heartbeat { last_sn: SequenceNumber(100), ..heartbeat() };
        let lost = proxy(&mut reader).on_heartbeat(Time(0), &heartbeat, &mut deliver);
        assert_eq!((proxy(&mut reader).next_expected(), lost), (SequenceNumber(101), 0));
        let last = &mut Some(change(Time(0), 101));
        proxy(&mut reader).on_change(last, &mut deliver);
        assert_eq!(delivered, [101]);
    }
}

#[test]
fn a_greeting_says_where_the_stream_begins() {
    let mut reader = reader();
    arrives(&mut reader, Time(0), 2);
    let mut greeting = Heartbeat {
        reader_id: reader.guid.entity,
        writer_id: WRITER.entity,
        first_sn: SequenceNumber(3),
        last_sn: SequenceNumber(2),
        count: 2,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    };
    let mut delivered = Vec::new();
    let mut deliver = |offer: &mut Offer| delivered.extend(offer.take().map(|c| c.sequence_number.0));
    proxy(&mut reader).on_heartbeat(Time(0), &greeting, &mut deliver);
    // 2 was for a reader that had matched before.
    assert_eq!(proxy(&mut reader).next_expected(), SequenceNumber(3));
    arrives(&mut reader, Time(0), 4);
    (greeting.first_sn, greeting.last_sn, greeting.count) = (SequenceNumber(5), SequenceNumber(5), 3);
    proxy(&mut reader).on_heartbeat(Time(0), &greeting, &mut deliver);
    assert_eq!(delivered, [4], "what came after the greeting is of the stream");
}

/// What was written for others before the match is not delivered because a fragment of it was lost.
#[test]
fn fragments_that_are_missing_do_not_end_the_wait_for_a_greeting() {
    let mut reader = reader_of(false);
    reader.match_writer(WriterProxy::new(WRITER, true, 0, vec![taut_base::Locator::INVALID]), true);
    arrives(&mut reader, Time(0), 1);
    let info = FragmentInfo { starting_num: 2, fragment_size: 4, sample_size: 8 };
    let said = Said { kind: ChangeKind::Alive, inline: InlineQos::default(), source_timestamp: None };
    let mut assembly = Assembly::new(&mut Pool::new(0, 1), info, said).unwrap();
    assembly.add(info, &said, &[0; 4], &mut |part| Bytes::copy_from(part));
    assembly.offer(2);
    assert!(proxy(&mut reader).admit_assembly(Time(0), SequenceNumber(2), assembly).is_some());
    reader.queue_ack(WRITER);
    send(&mut reader, Time(0));
    assert!(!reader.on_repeat_timer(Time(0) + limits::NACK_REPEAT.times(9)), "still held");
    let overdue = proxy(&mut reader).await_greeting(Time(0));
    assert!(reader.on_repeat_timer(overdue), "what is there begins the stream");
    arrives(&mut reader, overdue, 3);
    assert_eq!(proxy(&mut reader).ask_fragments(overdue).len(), 1, "it is asked for from now on");
}

#[test]
fn what_is_more_than_can_be_held_for_a_greeting_is_asked_for_behind_it() {
    let mut reader = reader_of(false);
    reader.match_writer(WriterProxy::new(WRITER, true, 0, vec![taut_base::Locator::INVALID]), true);
    let most = i64::try_from(limits::PENDING_CHANGES).unwrap();
    (1..=most + 2).for_each(|number| arrives(&mut reader, Time(0), number));
    let mut delivered = 0;
    let mut deliver = |offer: &mut Offer| delivered += i64::from(offer.take().is_some());
    let heartbeat = |reader_id, last: i64, count| Heartbeat {
        reader_id,
        writer_id: WRITER.entity,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(last),
        count,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    };
    let own = reader.guid.entity;
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat(EntityId::UNKNOWN, most + 2, 2), &mut deliver);
    assert_eq!(proxy(&mut reader).next_expected(), SequenceNumber(1), "it is about others");
    // The greeting, though what was said to others has overtaken it.
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat(own, 0, 1), &mut deliver);
    proxy(&mut reader).on_heartbeat(Time(0), &heartbeat(own, most + 2, 3), &mut deliver);
    assert_eq!(delivered, most);
    let asked: Vec<_> = proxy(&mut reader).acknack(Time(0)).iter().map(|number| number.0).collect();
    assert_eq!(asked, [most + 1, most + 2]);
}

#[test]
fn history_is_awaited_as_long_as_it_comes() {
    let mut writer = WriterProxy::new(WRITER, false, 0, Vec::new());
    let at = |ns| Time(ns) + limits::HISTORY_PATIENCE;
    writer.await_history(at(0));
    let (all, this) = (EntityId::UNKNOWN, EntityId::user(1, false, false));
    let mut takes = |now, number, to| {
        let number = SequenceNumber(number);
        !writer.is_known(number) || writer.is_of_history(now, number, to)
    };
    assert!(!takes(Time(1), 5, all) && takes(Time(2), 3, this), "5 comes once more, for this one");
    assert!(!takes(at(1), 6, all), "history still comes");
    assert!(takes(at(2), 6, all) && takes(Time(3), 7, all), "nobody says that it is over");
}
