//! Which endpoints are matched, and what is said and waited for between those that are.

use taut_base::{Duration, EntityId, Guid, SequenceNumber, Time, VendorId};
use taut_port::Loopback;
use taut_qos::{
    DurabilityKind, EndpointQos, History, LivelinessKind, MAX_NAME, OwnershipKind, PolicyId, ReliabilityKind,
};
use taut_rtps::discovery::{EndpointData, ParticipantData, Refusal, builtin_endpoint};
use taut_rtps::{EndpointConfig, Event, Offer, Participant, ReaderIndex, Sink, TxClass, limits};
use taut_wire::{DataHeader, Endian, Header, Heartbeat, PayloadKind, Submessage, Submessages, pid};

use crate::common::{
    ADDRESS, Announcement, FOREIGN, Heard, Nowhere, OTHER, WRITER, announcement, change, endpoint_of, events,
    frame, message, participant, publication, reader_of,
};

/// Of what it delivered, the strengths.
struct Strengths(Vec<i32>);

impl Sink for Strengths {
    fn deliver(&mut self, _: ReaderIndex, strength: i32, offer: &mut Offer) {
        self.0.extend(offer.take().map(|_| strength));
    }
}

#[test]
fn a_writer_that_announces_another_strength_has_it() {
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(), &mut sink);
    for (number, strength) in [(1, 5), (2, 7)] {
        let said = publication(number, 1, "Topic", |qos| qos.ownership_strength = strength);
        participant.on_frame(Time(0), &said, &mut sink);
        participant.on_frame(Time(0), &change(WRITER, number, &[0, 1, 0, 0]), &mut sink);
    }
    assert_eq!(sink.0, [5, 7]);
}

#[test]
fn who_announces_another_reliability_is_matched_anew() {
    let mut participant = participant();
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    for (number, kind) in [(1, ReliabilityKind::BestEffort), (2, ReliabilityKind::Reliable)] {
        let said = publication(number, 1, "Topic", |qos| qos.reliability.kind = kind);
        participant.on_frame(Time(0), &said, &mut Nowhere);
    }
    let matched = events(&mut participant).filter_map(|event| match event {
        Event::SubscriptionMatched { matched, .. } => Some(matched),
        _ => None,
    });
    assert_eq!(matched.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn endpoints_that_change_their_topic_count_on() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    let most = u32::try_from(limits::ENDPOINTS_PER_PEER).unwrap();
    let all = (1..=most).map(|key| (key, "a")).chain((1..=most).map(|key| (key, "b")));
    for (number, (key, topic)) in (1..).zip(all.chain([(most + 1, "c")])) {
        participant.on_frame(Time(0), &publication(number, key, topic, |_| {}), &mut Nowhere);
    }
    assert_eq!(participant.database().endpoints().count(), limits::ENDPOINTS_PER_PEER);
    assert_eq!(participant.counters().too_many_endpoints, 1);
}

/// Fast DDS does not match such a reader with a writer that says nothing of it: who matched it would wait for ever.
#[test]
fn a_reader_that_does_not_acknowledge_is_not_waited_for_if_it_takes_nothing() {
    for (vendor, says, policies) in [
        (VendorId::FAST_DDS, 1, vec![PolicyId::DISABLE_POSITIVE_ACKS]),
        (VendorId::FAST_DDS, 0, vec![]),
        (VendorId([1, 1]), 1, vec![]),
    ] {
        let mut participant = participant();
        let endpoint = endpoint_of("Topic", EndpointQos::default_writer(), ReliabilityKind::Reliable);
        participant.create_writer(Time(0), endpoint, &mut Nowhere);
        let announced = Announcement { vendor, ..Announcement::of(OTHER) }.frame();
        participant.on_frame(Time(0), &announced, &mut Nowhere);
        let guid = Guid::new(OTHER, EntityId::user(1, false, false));
        let mut qos = EndpointQos::default_reader();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut payload = Vec::new();
        EndpointData::of(guid, "Topic", "Type", qos).write(&mut payload);
        let end = payload.len() - 4;
        let [low, high] = pid::vendor::DISABLE_POSITIVE_ACKS.0.to_le_bytes();
        payload.splice(end..end, [low, high, 4, 0, says, 0, 0, 0]);
        participant.on_frame(
            Time(0),
            &change(EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, &payload),
            &mut Nowhere,
        );
        let (mut refused, mut matched) = (Vec::new(), 0);
        while let Some(event) = participant.poll_event() {
            match event {
                Event::OfferedIncompatibleQos { why, .. } => refused.extend(why.iter().map(|w| w.policy)),
                Event::PublicationMatched { .. } => matched += 1,
                _ => {}
            }
        }
        assert_eq!(matched, usize::from(policies.is_empty()), "{vendor:?}");
        assert_eq!(refused, policies, "{vendor:?}");
    }
}

#[test]
fn a_greeting_that_never_comes_is_not_waited_for_for_ever() {
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    let index = reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    let taut = Announcement { vendor: VendorId::UNKNOWN, ..Announcement::of(OTHER) }.frame();
    participant.on_frame(Time(0), &taut, &mut sink);
    let said = publication(1, 1, "Topic", |qos| qos.reliability.kind = ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &said, &mut sink);
    let mut write = |participant: &mut Participant, number| {
        let change = change(WRITER, number, &[0, 1, 0, 0]);
        participant.on_frame(Time(1), &change, &mut sink);
        sink.0.len()
    };
    assert_eq!(
        [1, 2].map(|number| write(&mut participant, number)),
        [0, 0],
        "they may be from before the match"
    );
    let overdue = |participant: &mut Participant, now| {
        participant.on_timeout(now, usize::MAX);
        events(participant)
            .filter(|event| matches!(event, Event::GreetingOverdue { reader } if *reader == index))
            .count()
    };
    let limit = Time(0) + limits::GREETING_PATIENCE;
    assert_eq!(overdue(&mut participant, Time(limit.0 - 1)), 0);
    assert_eq!(overdue(&mut participant, limit), 1);
    participant.on_room(limit, index, &mut sink);
    assert_eq!(sink.0.len(), 2, "what was held");
    let next = change(WRITER, 3, &[0, 1, 0, 0]);
    participant.on_frame(limit, &next, &mut sink);
    assert_eq!(sink.0.len(), 3, "what follows is held no more");
}

/// It says so to each reader while it has one that it has not greeted.
#[test]
fn that_a_writer_is_alive_ends_no_history() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let mut qos = EndpointQos::default_reader();
    qos.durability = DurabilityKind::TransientLocal;
    let endpoint = endpoint_of("Topic", qos, ReliabilityKind::BestEffort);
    let index = participant.create_reader(Time(0), endpoint, &mut sink);
    let taut = Announcement { vendor: VendorId::UNKNOWN, ..Announcement::of(OTHER) }.frame();
    participant.on_frame(Time(0), &taut, &mut sink);
    let said = publication(1, 1, "Topic", |qos| qos.durability = DurabilityKind::TransientLocal);
    participant.on_frame(Time(0), &said, &mut sink);
    let reader_id = participant.reader(index).unwrap().guid.entity;
    let says = |count, liveliness_flag| {
        let heartbeat = Heartbeat {
            reader_id,
            writer_id: WRITER,
            first_sn: SequenceNumber(1),
            last_sn: SequenceNumber(3),
            count,
            final_flag: true,
            liveliness_flag,
            group_info: None,
        };
        let mut message = message();
        heartbeat.write(&mut message, Endian::Little);
        frame(message)
    };
    participant.on_frame(Time(0), &says(1, true), &mut sink);
    for number in 1..=3 {
        let header = DataHeader { reader_id, writer_id: WRITER, writer_sn: SequenceNumber(number) };
        let mut message = message();
        header.write(&mut message, Endian::Little, &[], PayloadKind::Data, 4);
        message.extend([0, 1, 0, 0]);
        participant.on_frame(Time(0), &frame(message), &mut sink);
    }
    assert_eq!(sink.0, [1, 2, 3].map(|number| (index, number)));
    for (count, is_alive_only) in [(2, true), (3, false)] {
        participant.on_frame(Time(0), &says(count, is_alive_only), &mut sink);
        let mut events = events(&mut participant);
        let has_ended = events.any(|event| matches!(event, Event::HistoryReceived { .. }));
        assert_eq!(has_ended, !is_alive_only);
    }
}

/// A participant with a writer that promises to say that it is alive, and another one of whose reader for that this is
/// said. Returns how many assertions and heartbeats of them it sends within a minute.
fn liveliness_sent_to(builtin_endpoint_qos: u32) -> (usize, usize) {
    let (mut participant, mut port) = (participant(), Loopback::new());
    let mut qos = EndpointQos::default_writer();
    qos.liveliness.lease_duration = Duration::from_secs(30);
    let endpoint = EndpointConfig {
        history: History::KeepLast(1),
        ..endpoint_of("Topic", qos, ReliabilityKind::Reliable)
    };
    participant.create_writer(Time(0), endpoint, &mut Nowhere);
    let data = ParticipantData {
        guid_prefix: OTHER,
        vendor_id: FOREIGN,
        metatraffic_unicast: vec![ADDRESS],
        builtin_endpoints: builtin_endpoint::PARTICIPANT_MESSAGE_READER,
        builtin_endpoint_qos,
        ..ParticipantData::default()
    };
    let mut payload = Vec::new();
    data.write(&mut payload);
    participant.on_frame(Time(0), &change(EntityId::SPDP_WRITER, 1, &payload), &mut Nowhere);
    let (mut assertions, mut heartbeats) = (0, 0);
    let end = Time(0) + Duration::from_secs(60);
    let mut now = Time(0);
    while now <= end {
        participant.on_timeout(now, usize::MAX);
        participant.poll_transmit(now, &mut port, TxClass::Discovery, usize::MAX);
        while let Some((_, datagram)) = port.take() {
            let (_, rest) = Header::parse(&datagram).unwrap();
            for submessage in Submessages::new(rest) {
                match submessage.unwrap() {
                    Submessage::Data(data) if data.writer_id == EntityId::PARTICIPANT_MESSAGE_WRITER => {
                        assertions += 1;
                    }
                    Submessage::Heartbeat(said) if said.writer_id == EntityId::PARTICIPANT_MESSAGE_WRITER => {
                        heartbeats += 1;
                    }
                    _ => {}
                }
            }
        }
        now = participant.next_timeout().unwrap_or(Time::NEVER).max(now);
    }
    (assertions, heartbeats)
}

#[test]
fn who_takes_liveliness_without_acknowledging_is_not_asked_for_it() {
    let (assertions, heartbeats) = liveliness_sent_to(1);
    assert!((6..=8).contains(&assertions), "three in each lease: {assertions}");
    assert_eq!(heartbeats, 0, "nobody answers them");
    assert!(liveliness_sent_to(0).1 > 10, "one that is to acknowledge is asked for it");
}

#[test]
fn where_there_is_no_room_for_reasons_a_pair_has_its_last_one() {
    let mut participant = participant();
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    let why = |participant: &Participant, key| {
        let guid = Guid::new(OTHER, EntityId::user(key, true, false));
        participant.database().refusals().find(|(_, remote, _)| *remote == guid).map(|(.., why)| why.clone())
    };
    let most = u32::try_from(limits::REFUSALS).unwrap();
    for (number, key) in (1..).zip(1..=most) {
        let said = publication(number, key, "Topic", |qos| qos.partition = vec!["office".into()]);
        participant.on_frame(Time(0), &said, &mut Nowhere);
    }
    assert!(matches!(why(&participant, most), Some(Refusal::Partition { .. })));
    let said = publication(i64::from(most) + 1, 7, "Topic", |qos| qos.ownership = OwnershipKind::Exclusive);
    participant.on_frame(Time(0), &said, &mut Nowhere);
    assert!(matches!(why(&participant, 7), Some(Refusal::Qos(_))));
    assert_eq!(participant.database().refusals().count(), limits::REFUSALS);
}

#[test]
fn a_step_compares_so_much_of_partitions_and_the_next_ones_the_rest() {
    const WRITERS: usize = 20;
    let mut participant = participant();
    let mut endpoint = endpoint_of("Topic", EndpointQos::default_reader(), ReliabilityKind::BestEffort);
    endpoint.qos.partition = vec!["a".repeat(MAX_NAME)];
    participant.create_reader(Time(0), endpoint.clone(), &mut Nowhere);
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    let refused = |participant: &Participant| {
        let reasons = participant.database().refusals();
        reasons.inspect(|(.., why)| assert_eq!(**why, Refusal::PartitionTooLong)).count()
    };
    let hostile = vec![format!("*[{}]", "b".repeat(MAX_NAME - 3)); 2];
    for (number, key) in (1..).zip(1..=WRITERS as u32) {
        let said = publication(number, key, "Topic", |qos| qos.partition = hostile.clone());
        participant.on_frame(Time(0), &said, &mut Nowhere);
    }
    assert_eq!(refused(&participant), 1, "however many datagrams come with one step");
    for compared in 2..=WRITERS {
        participant.on_timeout(Time(0), usize::MAX);
        assert_eq!(refused(&participant), compared);
    }
    participant.create_reader(Time(0), endpoint, &mut Nowhere);
    for compared in 1..WRITERS {
        assert_eq!(refused(&participant), WRITERS + compared);
        assert!(participant.match_more(Time(0), &mut Nowhere) || compared == WRITERS - 1);
    }
}

/// RTPS 2.5 §8.3.8.6 says so of heartbeats.
#[test]
fn what_comes_once_more_shows_no_life_of_a_writer_that_its_application_asserts() {
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &announcement(), &mut sink);
    let lease = Duration::from_millis(100);
    let said = publication(1, 1, "Topic", |qos| {
        qos.reliability.kind = ReliabilityKind::Reliable;
        (qos.liveliness.kind, qos.liveliness.lease_duration) = (LivelinessKind::ManualByTopic, lease);
    });
    participant.on_frame(Time(0), &said, &mut sink);
    let mut alive = |now, number: Option<i64>| {
        let come = number.map(|number| change(WRITER, number, &[0, 1, 0, 0]));
        come.iter().for_each(|change| participant.on_frame(now, change, &mut sink));
        participant.on_timeout(now, usize::MAX);
        let changes = events(&mut participant).filter_map(|event| match event {
            Event::LivelinessChanged { alive, .. } => Some(alive),
            _ => None,
        });
        changes.collect::<Vec<_>>()
    };
    assert_eq!((alive(Time(1), Some(1)), alive(Time(2), Some(3))), (vec![], vec![]));
    let late = Time(2) + lease;
    assert_eq!(alive(late, None), [false]);
    assert_eq!([3, 2, 1].map(|number| alive(late, Some(number))), [vec![], vec![], vec![]], "as repairs do");
    assert_eq!(alive(late, Some(4)), [true]);
}
