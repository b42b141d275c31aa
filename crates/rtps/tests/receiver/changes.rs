//! Which changes of a matched writer reach which readers, and that none holds up the others.

use std::ops::Range;

use taut_base::{EntityId, FragmentNumberSet, Guid, SequenceNumber, SequenceNumberSet, Time};
use taut_port::Frame;
use taut_qos::ReliabilityKind;
use taut_rtps::{CacheChange, ChangeKind, Event, Offer, Participant, ReaderIndex, Sink, limits};
use taut_wire::{
    DataFragHeader, Endian, Gap, InlineQos, NackFrag, ParameterId, ParameterListWriter, PayloadKind,
    WireError, pid,
};

use crate::common::{
    self, Heard, Kept, Nowhere, WRITER, announcement, data, events, frame, inline, matched_reader, message,
    part, participant, publication, reader_of,
};

#[test]
fn each_of_many_readers_of_a_writer_hears_it() {
    const READERS: usize = 1_100;
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    for _ in 0..READERS {
        reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    }
    participant.on_frame(Time(0), &announcement(), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    while participant.next_timeout().is_some_and(|next| next <= Time(0)) {
        participant.on_timeout(Time(0), usize::MAX);
    }
    let matched = |event: &Event| matches!(event, Event::SubscriptionMatched { matched: true, .. });
    assert_eq!(events(&mut participant).filter(matched).count(), READERS);
    participant.on_frame(Time(0), &data(1, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    assert_eq!(sink.0.len(), READERS);
}

#[test]
fn a_change_that_is_directed_goes_to_the_readers_that_it_names() {
    for kind in [ReliabilityKind::BestEffort, ReliabilityKind::Reliable] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        let readers = [(); 3].map(|()| reader_of(&mut participant, "Topic", kind));
        let [a, b, c] = readers.map(|index| participant.reader(index).unwrap().guid);
        participant.on_frame(Time(0), &announcement(), &mut sink);
        participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
        let sample = [0, 1, 0, 0, 1, 2, 3, 4];
        for (number, directed_to) in [(1, &[][..]), (2, &[a, c][..]), (3, &[b][..]), (5, &[a][..])] {
            let inline = inline(&InlineQos::default(), directed_to);
            participant.on_frame(Time(0), &data(number, &inline, PayloadKind::Data, &sample), &mut sink);
            if number == 3 {
                for fragment in [2, 1] {
                    let inline = common::inline(&InlineQos::default(), &[b, c]);
                    participant.on_frame(Time(0), &part(4, fragment, false, &inline, &sample), &mut sink);
                }
            }
        }
        let heard = |index| {
            let numbers = sink.0.iter().filter(|(reader, _)| *reader == index).map(|(_, number)| *number);
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(readers.map(heard), [vec![1, 2, 5], vec![1, 3, 4], vec![1, 2, 4]], "{kind:?}");
        let lost = |event: &Event| matches!(event, Event::SampleLost { .. });
        assert_eq!(events(&mut participant).filter(lost).count(), 0);
    }
}

#[test]
fn what_is_far_ahead_gives_way_to_what_comes_next() {
    let most = i64::try_from(limits::PENDING_CHANGES).unwrap();
    for far in [500, 1 << 40] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
        for number in (far..far + most).chain(2..100).chain([1]) {
            let change = data(number, &[], PayloadKind::Data, &[0, 1, 0, 0]);
            participant.on_frame(Time(0), &change, &mut sink);
        }
        let numbers = sink.0.iter().map(|(_, number)| *number);
        assert!(numbers.eq(1..100), "{} of 99 with {far} and more before them", sink.0.len());
    }
}

/// Payloads of this size, so that bytes are the bound and not their number.
const LARGE: usize = 60_000;

#[test]
fn what_waits_for_a_change_is_bounded_in_bytes_and_the_rest_is_asked_for_again() {
    let fit = i64::try_from(limits::PENDING_BYTES / LARGE).unwrap();
    let all = fit + 50;
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let large = |number| data(number, &[], PayloadKind::Data, &[0; LARGE]);
    // The last of them give way to what is before them.
    for number in (3..=all).chain([2, 1]) {
        participant.on_frame(Time(0), &large(number), &mut sink);
    }
    assert!(sink.0.iter().map(|(_, number)| *number).eq(1..=fit + 1), "{} of {all}", sink.0.len());
    for number in fit + 2..=all {
        participant.on_frame(Time(0), &large(number), &mut sink);
    }
    assert!(sink.0.iter().map(|(_, number)| *number).eq(1..=all), "{} of {all}", sink.0.len());
}

#[test]
fn one_change_may_wait_whatever_its_size() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let huge = vec![0; limits::PENDING_BYTES + 1];
    participant.on_frame(Time(0), &data(2, &[], PayloadKind::Data, &huge), &mut sink);
    participant.on_frame(Time(0), &data(1, &[], PayloadKind::Data, &[0; 4]), &mut sink);
    assert!(sink.0.iter().map(|(_, number)| *number).eq(1..=2));
}

/// A reader leaves the lane of [`WRITER`]: all below `next` has come through it, and so have these, which wait.
fn leave_lane(
    participant: &mut Participant,
    reader: ReaderIndex,
    next: i64,
    waiting: Range<i64>,
    sink: &mut Heard,
) {
    let writer = Guid::new(common::OTHER, WRITER);
    participant.begin_writer_lane(reader, writer).unwrap();
    let waiting = waiting.map(|number| CacheChange {
        kind: ChangeKind::Alive,
        writer_guid: writer,
        sequence_number: SequenceNumber(number),
        instance: None,
        source_timestamp: None,
        time: Time(0),
        payload: [0, 1, 0, 0].to_vec().into(),
    });
    participant.end_writer_lane(reader, writer, SequenceNumber(next), waiting.collect(), sink);
}

#[test]
fn what_a_lane_leaves_has_a_place_before_what_is_far_ahead() {
    let most = i64::try_from(limits::PENDING_CHANGES).unwrap();
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let hear = |participant: &mut Participant, sink: &mut Heard, number| {
        let change = data(number, &[], PayloadKind::Data, &[0, 1, 0, 0]);
        participant.on_frame(Time(0), &change, sink);
    };
    for number in 500..500 + most {
        hear(&mut participant, &mut sink, number);
    }
    leave_lane(&mut participant, reader, 1, 2..100, &mut sink);
    hear(&mut participant, &mut sink, 1);
    assert!(sink.0.iter().map(|(_, number)| *number).eq(1..100), "{} of 99", sink.0.len());
    assert!(!events(&mut participant).any(|event| matches!(event, Event::SampleLost { .. })));
}

#[test]
fn what_a_lane_leaves_and_has_no_place_is_lost_and_told() {
    let most = i64::try_from(limits::PENDING_CHANGES).unwrap();
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    leave_lane(&mut participant, reader, 1, 2..most + 7, &mut sink);
    for number in [1, most + 7] {
        participant.on_frame(Time(0), &data(number, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    }
    assert!(sink.0.iter().map(|(_, number)| *number).eq((1..most + 2).chain([most + 7])));
    let lost = events(&mut participant).filter_map(|event| match event {
        Event::SampleLost { count, .. } => Some(count),
        _ => None,
    });
    assert_eq!(lost.sum::<u64>(), 5);
}

#[test]
fn what_a_lane_leaves_gives_way_to_nothing_that_can_be_asked_for_again() {
    let most = i64::try_from(limits::PENDING_CHANGES).unwrap();
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    leave_lane(&mut participant, reader, 1, 3..most + 3, &mut sink);
    for number in [2, 1, 2] {
        participant.on_frame(Time(0), &data(number, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    }
    assert!(sink.0.iter().map(|(_, number)| *number).eq(1..most + 3), "{} of {}", sink.0.len(), most + 2);
    assert!(!events(&mut participant).any(|event| matches!(event, Event::SampleLost { .. })));
}

#[test]
fn what_waited_for_a_lane_is_delivered_when_the_lane_goes() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    participant.on_frame(Time(0), &data(3, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    leave_lane(&mut participant, reader, 3, 4..6, &mut sink);
    assert_eq!(sink.0, [3, 4, 5].map(|number| (reader, number)));
}

#[test]
fn a_change_that_is_not_understood_holds_up_no_others() {
    let mut unknown = Vec::new();
    let mut list = ParameterListWriter::new(&mut unknown, Endian::Little);
    list.put_u32(ParameterId(0x7ff0), 7);
    list.finish();
    let sample = [0, 1, 0, 0, 1, 2, 3, 4];
    for kind in [ReliabilityKind::BestEffort, ReliabilityKind::Reliable] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        let reader = matched_reader(&mut participant, kind, &mut sink);
        for (number, inline) in [(1, &[][..]), (2, &unknown[..]), (3, &[][..])] {
            participant.on_frame(Time(0), &data(number, inline, PayloadKind::Data, &sample), &mut sink);
        }
        for fragment in [1, 2] {
            participant.on_frame(Time(0), &part(4, fragment, false, &unknown, &sample), &mut sink);
        }
        participant.on_frame(Time(0), &data(5, &[], PayloadKind::Data, &sample), &mut sink);
        assert_eq!(sink.0, [1, 3, 5].map(|number| (reader, number)), "{kind:?}");
        assert_eq!(participant.counters().of(WireError::NotUnderstood), 3, "{kind:?}");
        let lost = events(&mut participant).filter_map(|event| match event {
            Event::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        assert_eq!(lost.sum::<u64>(), 2, "{kind:?}");
    }
}

/// What is wrong with each of them is so however often it is sent.
#[test]
fn a_change_that_is_not_valid_holds_up_no_others() {
    let inline_of = |pid, len: usize| {
        let mut bytes = Vec::new();
        let mut list = ParameterListWriter::new(&mut bytes, Endian::Little);
        list.put_bytes(pid, &[0; 16][..len]);
        list.finish();
        bytes
    };
    let (hash, status) = (inline_of(pid::KEY_HASH, 8), inline_of(pid::STATUS_INFO, 0));
    let mut odd = inline_of(pid::KEY_HASH, 16);
    odd[2] = 15;
    let sample = [0, 1, 0, 0, 1, 2, 3, 4];
    for kind in [ReliabilityKind::BestEffort, ReliabilityKind::Reliable] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        let reader = matched_reader(&mut participant, kind, &mut sink);
        let mut hear = |number, inline: &[u8], sample: &[u8]| {
            let change = data(number, inline, PayloadKind::Data, sample);
            participant.on_frame(Time(0), &change, &mut sink);
        };
        hear(1, &[], &sample);
        hear(2, &hash, &sample);
        hear(3, &status, &sample);
        hear(4, &odd, &sample);
        // No room for the header of its encapsulation.
        hear(5, &[], &[0; 3]);
        hear(6, &[], &sample);
        for fragment in [1, 2] {
            participant.on_frame(Time(0), &part(7, fragment, false, &hash, &sample), &mut sink);
            participant.on_frame(Time(0), &part(8, fragment, false, &odd, &sample), &mut sink);
        }
        participant.on_frame(Time(0), &data(9, &[], PayloadKind::Data, &sample), &mut sink);
        assert_eq!(sink.0, [1, 6, 9].map(|number| (reader, number)), "{kind:?}");
        let reasons = [WireError::BadParameter, WireError::BadParameterList, WireError::BadPayload];
        assert_eq!(reasons.map(|reason| participant.counters().of(reason)), [4, 3, 1], "{kind:?}");
        let lost = events(&mut participant).filter_map(|event| match event {
            Event::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        assert_eq!(lost.sum::<u64>(), 6, "{kind:?}");
    }
}

/// [`WRITER`] has nothing for its readers from `start` up to `base`, and under the numbers in `list`.
fn gap(start: i64, base: i64, list: &[i64]) -> Frame {
    let mut gap_list = SequenceNumberSet::new(SequenceNumber(base));
    list.iter().for_each(|number| assert!(gap_list.insert(SequenceNumber(*number))));
    let gap = Gap {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER,
        gap_start: SequenceNumber(start),
        gap_list,
        group_info: None,
        filtered_count: None,
    };
    let mut message = message();
    gap.write(&mut message, Endian::Little);
    frame(message)
}

#[test]
fn what_a_gap_names_is_not_lost() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = matched_reader(&mut participant, ReliabilityKind::BestEffort, &mut sink);
    let of = |number| data(number, &[], PayloadKind::Data, &[0, 1, 0, 0]);
    let mut lost_with = |frame: Frame| {
        participant.on_frame(Time(0), &frame, &mut sink);
        let lost = events(&mut participant).filter_map(|event| match event {
            Event::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        lost.sum::<u64>()
    };
    // Before the first sample a gap says nothing of what this reader misses.
    assert_eq!([lost_with(gap(1, 3, &[])), lost_with(of(10))], [0, 0]);
    assert_eq!([lost_with(gap(11, 13, &[15])), lost_with(of(14))], [0, 1], "13");
    assert_eq!([lost_with(of(16)), lost_with(of(18))], [0, 1], "17");
    assert_eq!([lost_with(gap(21, 30, &[])), lost_with(of(30)), lost_with(of(31))], [0, 2, 0], "19 and 20");
    assert_eq!(sink.0, [10, 14, 16, 18, 30, 31].map(|number| (reader, number)));
}

/// A datagram of 65 kB has room for a thousand sets; what is more than a step takes is repeated.
#[test]
fn a_message_names_no_more_numbers_than_a_step_takes() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let all = |base: i64| gap(base, base, &(base..base + 256).step_by(2).collect::<Vec<_>>());
    let mut bytes = message();
    let header = bytes.len();
    for base in (1..=100).rev() {
        bytes.extend_from_slice(&all(1_000 * base).bytes[header..]);
    }
    participant.on_frame(Time(0), &frame(bytes), &mut sink);
    let dropped = participant.counters().too_many_numbers;
    let taken = limits::MESSAGE_NUMBERS / 256;
    assert_eq!(dropped, 100 - u64::from(taken), "each with 255 bits, and itself");
    participant.on_frame(Time(0), &all(1_000), &mut sink);
    assert_eq!(participant.counters().too_many_numbers, dropped, "another message");
}

#[test]
fn a_message_asks_for_no_more_fragments_than_a_step_takes() {
    let mut participant = participant();
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut Nowhere);
    let mut bytes = message();
    for count in 1..=100 {
        let mut asked = FragmentNumberSet::new(1);
        assert!(asked.insert(256));
        let nack = NackFrag {
            reader_id: EntityId::user(1, false, false),
            writer_id: EntityId::user(1, true, false),
            writer_sn: SequenceNumber(1),
            fragment_number_state: asked,
            count,
        };
        nack.write(&mut bytes, Endian::Little);
    }
    participant.on_frame(Time(0), &frame(bytes), &mut Nowhere);
    let taken = u64::from(limits::MESSAGE_NUMBERS / 257);
    let counters = participant.counters();
    assert_eq!((counters.too_many_numbers, counters.unmatched_reader), (100 - taken, taken));
}

/// Of samples of two fragments, that a best-effort reader cannot ask for, the second never comes.
#[test]
fn what_has_begun_to_come_and_is_given_up_is_lost_once() {
    let lost_with = |participant: &mut Participant, frame: Frame| {
        participant.on_frame(Time(0), &frame, &mut Nowhere);
        let lost = events(participant).filter_map(|event| match event {
            Event::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        lost.sum::<u64>()
    };
    let sample = [0, 1, 0, 0, 1, 2, 3, 4];
    let begins = |number| part(number, 1, false, &[], &sample);
    let whole = |number| data(number, &[], PayloadKind::Data, &sample);

    let mut loses_all = participant();
    matched_reader(&mut loses_all, ReliabilityKind::BestEffort, &mut Nowhere);
    let most = limits::ASSEMBLIES as i64;
    let first: Vec<_> = (2..most + 2).map(|number| lost_with(&mut loses_all, begins(number))).collect();
    assert_eq!(first, vec![0; limits::ASSEMBLIES], "they may still become whole");
    assert_eq!(lost_with(&mut loses_all, begins(1)), 0, "older than all of them: not begun");
    assert_eq!(lost_with(&mut loses_all, begins(most + 2)), 1, "2");
    assert_eq!(lost_with(&mut loses_all, part(2, 2, false, &[], &sample)), 0, "too late");
    assert_eq!(lost_with(&mut loses_all, begins(most + 4)), 1, "3");
    assert_eq!(lost_with(&mut loses_all, whole(most + 5)), most as u64 + 1, "from 4 on");
    assert_eq!(
        [lost_with(&mut loses_all, whole(most + 6)), lost_with(&mut loses_all, whole(most + 8))],
        [0, 1]
    );

    let mut begins_with_loss = participant();
    matched_reader(&mut begins_with_loss, ReliabilityKind::BestEffort, &mut Nowhere);
    let lost = [begins(5), whole(7)].map(|frame| lost_with(&mut begins_with_loss, frame));
    assert_eq!(lost, [0, 1], "5: nothing says that this reader was to have 6");
}

#[test]
fn a_lane_hears_at_once_of_samples_that_are_given_up_beside_it() {
    struct Lane(Option<SequenceNumber>);

    impl Sink for Lane {
        fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}

        fn lane_next(&mut self, _: ReaderIndex, _: Guid, expected: SequenceNumber) -> SequenceNumber {
            *self.0.insert(expected)
        }
    }

    let (mut participant, mut lane) = (participant(), Lane(None));
    let reader = matched_reader(&mut participant, ReliabilityKind::BestEffort, &mut lane);
    participant.begin_writer_lane(reader, Guid::new(common::OTHER, WRITER)).unwrap();
    for number in 1..=limits::ASSEMBLIES as i64 + 1 {
        let begins = part(number, 1, false, &[], &[0, 1, 0, 0, 1, 2, 3, 4]);
        participant.on_frame(Time(0), &begins, &mut lane);
    }
    assert_eq!(lane.0, Some(SequenceNumber(2)), "behind the first, which is lost");
}

#[test]
fn a_change_without_anything_is_no_sample() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let of_set = InlineQos { coherent_set: Some(SequenceNumber::UNKNOWN), ..InlineQos::default() };
    let end_of_set = inline(&of_set, &[]);
    participant.on_frame(Time(0), &data(1, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    participant.on_frame(Time(0), &data(2, &end_of_set, PayloadKind::None, &[]), &mut sink);
    participant.on_frame(Time(0), &data(3, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    assert_eq!(sink.0.iter().map(|change| change.sequence_number.0).collect::<Vec<_>>(), [1, 3]);
}

/// One fragment, of 48 bytes, of the first change of [`WRITER`].
fn fragment(fragment_starting_num: u32, sample_size: u32) -> Frame {
    let mut message = message();
    let header = DataFragHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER,
        writer_sn: SequenceNumber::FIRST,
        fragment_starting_num,
        fragments_in_submessage: 1,
        fragment_size: 48,
        sample_size,
        key: false,
    };
    header.write(&mut message, Endian::Little, &[], 48);
    message.extend_from_slice(&[0; 48]);
    frame(message)
}

#[test]
fn a_fragment_of_a_sample_that_does_not_exist_keeps_no_sample_out() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    for (number, sample_size) in [(1, 480), (1, 96), (2, 96)] {
        participant.on_frame(Time(0), &fragment(number, sample_size), &mut sink);
    }
    assert_eq!((sink.0.len(), participant.counters().bad_fragments), (1, 1));
}

#[test]
fn a_sample_that_is_larger_than_any_that_is_taken_holds_up_no_others() {
    let sample = [0, 1, 0, 0];
    for kind in [ReliabilityKind::Reliable, ReliabilityKind::BestEffort] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        let reader = matched_reader(&mut participant, kind, &mut sink);
        for number in 1..=2 {
            participant.on_frame(Time(0), &fragment(number, limits::SAMPLE_SIZE + 1), &mut sink);
        }
        participant.on_frame(Time(0), &data(2, &[], PayloadKind::Data, &sample), &mut sink);
        assert_eq!(sink.0, [(reader, 2)], "{kind:?}");
        assert_eq!(participant.counters().of(WireError::LimitExceeded), 2, "{kind:?}");
        let lost = |event: &Event| matches!(event, Event::SampleLost { count: 1, .. });
        assert_eq!(events(&mut participant).filter(lost).count(), 1, "{kind:?}");
    }
}
