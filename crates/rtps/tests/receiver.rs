//! What the message receiver makes of who a message says it is from.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, ProtocolVersion, SequenceNumber, Time,
    VendorId,
};
use taut_mem::Bytes;
use taut_port::{Frame, Loopback, Traffic};
use taut_qos::{EndpointQos, History, PolicyId, ReliabilityKind};
use taut_rtps::discovery::{EndpointData, ParticipantData, builtin_endpoint};
use taut_rtps::{
    ChangeKind, Config, EndpointConfig, Event, Offer, Participant, ReaderIndex, Sink, TxClass, limits,
};
use taut_wire::{
    Checksum, DataFragHeader, DataHeader, Endian, HEADER_LEN, Header, HeaderExtension, Heartbeat, InfoSource,
    InlineQos, ParameterId, ParameterListWriter, PayloadKind, StatusInfo, Submessage, SubmessageKind,
    Submessages, WireError, pid, write_info_dst, write_message_header,
};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const OTHER: GuidPrefix = GuidPrefix([2; 12]);
/// Whose writers send no greeting before all else.
const FOREIGN: VendorId = VendorId([1, 127]);
const ADDRESS: Locator = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);

struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

fn participant() -> Participant {
    Participant::new(Config::at(OWN, ADDRESS))
}

/// An announcement of another participant, which names these addresses.
fn other_at(addresses: &[Locator]) -> Frame {
    announcement_at(OTHER, OTHER, addresses, "", FOREIGN)
}

/// A message from `header` in which, by INFO_SRC, `source` announces itself to this participant.
fn announcement(header: GuidPrefix, source: GuidPrefix) -> Frame {
    announcement_at(header, source, &[ADDRESS], "", FOREIGN)
}

fn announcement_at(
    header: GuidPrefix,
    source: GuidPrefix,
    addresses: &[Locator],
    tag: &str,
    vendor: VendorId,
) -> Frame {
    announcement_with(header, source, addresses, tag, vendor, &[])
}

/// The other participant announces itself and says by these which process it is of.
fn announcement_of(properties: &[(&str, String)]) -> Frame {
    announcement_with(OTHER, OTHER, &[ADDRESS], "", FOREIGN, properties)
}

fn announcement_with(
    header: GuidPrefix,
    source: GuidPrefix,
    addresses: &[Locator],
    tag: &str,
    vendor: VendorId,
    properties: &[(&str, String)],
) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, header);
    InfoSource { version: ProtocolVersion::RTPS_2_5, vendor, prefix: source }
        .write(&mut message, Endian::Little);
    write_info_dst(&mut message, Endian::Little, OWN);
    let mut payload = Vec::new();
    let data = ParticipantData {
        guid_prefix: source,
        vendor_id: vendor,
        metatraffic_unicast: addresses.to_vec(),
        default_unicast: addresses.to_vec(),
        builtin_endpoints: builtin_endpoint::PUBLICATIONS_ANNOUNCER
            | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER,
        domain_tag: tag.into(),
        properties: properties.iter().map(|(name, value)| ((*name).into(), value.clone())).collect(),
        ..ParticipantData::default()
    };
    data.write(&mut payload);
    put_data(&mut message, EntityId::SPDP_WRITER, 1, &payload);
    frame(message)
}

fn put_data(message: &mut Vec<u8>, writer_id: EntityId, number: i64, payload: &[u8]) {
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
    header.write(message, Endian::Little, &[], PayloadKind::Data, payload.len());
    message.extend_from_slice(payload);
}

fn frame(message: Vec<u8>) -> Frame {
    Frame { source: ADDRESS, traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

/// A change of a writer of the other participant.
fn change(writer: EntityId, number: i64, payload: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    put_data(&mut message, writer, number, payload);
    frame(message)
}

/// The other participant tells of one of its writers.
fn publication(number: i64, key: u32, topic: &str, change_qos: impl FnOnce(&mut EndpointQos)) -> Frame {
    let guid = Guid::new(OTHER, EntityId::user(key, true, false));
    let mut data = EndpointData::of(guid, topic, "Type", EndpointQos::default_writer());
    change_qos(&mut data.qos);
    let mut payload = Vec::new();
    data.write(&mut payload);
    change(EntityId::SEDP_PUBLICATIONS_WRITER, number, &payload)
}

#[test]
fn nobody_makes_a_participant_its_own_peer() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(OTHER, OWN), &mut Nowhere);
    participant.on_frame(Time(0), &announcement(OWN, OTHER), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 0);
    assert_eq!(participant.counters().reflected, 2);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 1);
}

#[test]
fn a_domain_with_a_tag_is_another_one() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement_at(OTHER, OTHER, &[ADDRESS], "night", FOREIGN), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 0);
    assert_eq!(participant.counters().foreign_domain, 1);
}

#[test]
fn an_address_of_a_kind_that_is_not_used_is_skipped_and_counted() {
    let mut participant = participant();
    let v6 = Locator::from(SocketAddr::from((Ipv6Addr::LOCALHOST, 7410)));
    participant.on_frame(Time(0), &other_at(&[v6]), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 0, "it cannot be answered");
    assert_eq!(participant.counters().unusable_locators, 2);
    participant.on_frame(Time(0), &other_at(&[v6, ADDRESS]), &mut Nowhere);
    let peer = participant.database().peers().next().expect("known now");
    assert_eq!((&peer.metatraffic[..], &peer.unicast[..]), (&[ADDRESS][..], &[ADDRESS][..]));
    // An announcement that names nothing usable any more changes nothing.
    participant.on_frame(Time(0), &other_at(&[v6]), &mut Nowhere);
    assert_eq!(participant.database().peers().next().unwrap().metatraffic, [ADDRESS]);
    assert_eq!(participant.counters().unusable_locators, 6);
}

/// Of what it delivered, the strengths.
struct Strengths(Vec<i32>);

impl Sink for Strengths {
    fn deliver(&mut self, _: ReaderIndex, strength: i32, offer: &mut Offer) {
        self.0.extend(offer.take().map(|_| strength));
    }
}

fn reader_of(participant: &mut Participant, topic: &str, kind: ReliabilityKind) -> ReaderIndex {
    let endpoint = endpoint_of(topic, EndpointQos::default_reader(), kind);
    participant.create_reader(Time(0), endpoint, &mut Nowhere)
}

/// A reader that is matched with a writer of the other participant.
fn matched_reader(participant: &mut Participant, kind: ReliabilityKind, sink: &mut dyn Sink) -> ReaderIndex {
    let reader = reader_of(participant, "Topic", kind);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), sink);
    let said = publication(1, 1, "Topic", |qos| qos.reliability.kind = kind);
    participant.on_frame(Time(0), &said, sink);
    reader
}

fn endpoint_of(topic: &str, mut qos: EndpointQos, kind: ReliabilityKind) -> EndpointConfig {
    qos.reliability.kind = kind;
    EndpointConfig {
        topic_name: topic.to_owned(),
        type_name: "Type".to_owned(),
        keyed: false,
        qos,
        history: History::KeepAll,
        max_samples: None,
    }
}

#[test]
fn a_writer_that_announces_another_strength_has_it() {
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    for (number, strength) in [(1, 5), (2, 7)] {
        let said = publication(number, 1, "Topic", |qos| qos.ownership_strength = strength);
        participant.on_frame(Time(0), &said, &mut sink);
        let writer = EntityId::user(1, true, false);
        participant.on_frame(Time(0), &change(writer, number, &[0, 1, 0, 0]), &mut sink);
    }
    assert_eq!(sink.0, [5, 7]);
}

#[test]
fn who_announces_another_reliability_is_matched_anew() {
    let mut participant = participant();
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    for (number, kind) in [(1, ReliabilityKind::BestEffort), (2, ReliabilityKind::Reliable)] {
        let said = publication(number, 1, "Topic", |qos| qos.reliability.kind = kind);
        participant.on_frame(Time(0), &said, &mut Nowhere);
    }
    let events = std::iter::from_fn(|| participant.poll_event());
    let matched = events.filter_map(|event| match event {
        Event::SubscriptionMatched { matched, .. } => Some(matched),
        _ => None,
    });
    assert_eq!(matched.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn endpoints_that_change_their_topic_count_on() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    let most = u32::try_from(limits::ENDPOINTS_PER_PEER).unwrap();
    let all = (1..=most).map(|key| (key, "a")).chain((1..=most).map(|key| (key, "b")));
    for (number, (key, topic)) in (1..).zip(all.chain([(most + 1, "c")])) {
        participant.on_frame(Time(0), &publication(number, key, topic, |_| {}), &mut Nowhere);
    }
    assert_eq!(participant.database().endpoints().count(), limits::ENDPOINTS_PER_PEER);
    assert_eq!(participant.counters().too_many_endpoints, 1);
}

/// One fragment, of 48 bytes, of the first change of the other participant's writer.
fn fragment(fragment_starting_num: u32, sample_size: u32) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let header = DataFragHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::user(1, true, false),
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
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    for (number, sample_size) in [(1, 480), (1, 96), (2, 96)] {
        participant.on_frame(Time(0), &fragment(number, sample_size), &mut sink);
    }
    assert_eq!((sink.0.len(), participant.counters().bad_fragments), (1, 1));
}

#[test]
fn a_message_that_is_not_the_one_that_was_sent_is_dropped_and_counted() {
    let announcement = announcement(OTHER, OTHER).bytes;
    for checksum in [None, Some(Checksum::Crc32c(0)), Some(Checksum::Crc64(0)), Some(Checksum::Md5([0; 16]))]
    {
        let extension = HeaderExtension { message_length: Some(0), checksum, ..HeaderExtension::default() };
        let mut sealed = announcement[..HEADER_LEN].to_vec();
        extension.write(&mut sealed, Endian::Little);
        sealed.extend_from_slice(&announcement[HEADER_LEN..]);
        HeaderExtension::seal(&mut sealed, &[]).unwrap();
        let peers = |message: &[u8], refused: Option<WireError>| {
            let mut participant = participant();
            participant.on_frame(Time(0), &frame(message.to_vec()), &mut Nowhere);
            if let Some(reason) = refused {
                assert_eq!(participant.counters().of(reason), 1, "{checksum:?}");
            }
            participant.database().peers().count()
        };
        assert_eq!(peers(&sealed, None), 1, "{checksum:?}");
        // Four bytes more are no reason to doubt what is before them, but that nobody has sent them.
        let longer = [&sealed[..], &[1, 0, 0, 0]].concat();
        assert_eq!(peers(&longer, Some(WireError::BadLength)), 0, "{checksum:?}");
        if checksum.is_some() {
            *sealed.last_mut().unwrap() ^= 1;
            assert_eq!(peers(&sealed, Some(WireError::ChecksumMismatch)), 0, "{checksum:?}");
        }
    }
}

/// The other participant says how many writers it has told of.
fn heartbeat(count: i32, last: i64) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::SEDP_PUBLICATIONS_WRITER,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(last),
        count,
        final_flag: true,
        liveliness_flag: false,
        group_info: None,
    };
    heartbeat.write(&mut message, Endian::Little);
    frame(message)
}

/// Where the sets begin by which the built-in writers of the other participant are asked what they have.
fn asked_from(participant: &mut Participant, now: Time) -> Vec<u32> {
    const FINAL: u8 = 2;
    let mut port = Loopback::new();
    participant.poll_transmit(now, &mut port, TxClass::Discovery, usize::MAX);
    let mut asked = Vec::new();
    while let Some((_, datagram)) = port.take() {
        // As it stands there: who reads a set takes 0 for 1.
        let mut rest = &datagram[HEADER_LEN..];
        while let [id, flags, low, high, body @ ..] = rest {
            let (body, behind) = body.split_at(u16::from_le_bytes([*low, *high]).into());
            if SubmessageKind(*id) == SubmessageKind::ACKNACK && flags & FINAL == 0 {
                assert_eq!(body[8..12], [0; 4]);
                asked.push(u32::from_le_bytes(body[12..16].try_into().unwrap()));
            }
            rest = behind;
        }
    }
    asked
}

/// Fast DDS that has been cut off without noticing says what it has only if it is asked as its own readers ask.
#[test]
fn fast_dds_is_asked_for_its_first_heartbeat_from_0() {
    for (vendor, first) in [(FOREIGN, 1), (VendorId::FAST_DDS, 0)] {
        let mut participant = participant();
        let announced = announcement_at(OTHER, OTHER, &[ADDRESS], "", vendor);
        participant.on_frame(Time(0), &announced, &mut Nowhere);
        assert_eq!(asked_from(&mut participant, Time(0)), [first; 2]);
        participant.on_frame(Time(1), &heartbeat(1, 1), &mut Nowhere);
        participant.on_frame(Time(1), &announced, &mut Nowhere);
        assert_eq!(asked_from(&mut participant, Time(1)), [1, first], "publications have been heard of");
    }
}

fn times_lost(participant: &mut Participant) -> usize {
    let lost = |event: &Event| matches!(event, Event::ParticipantLost { .. });
    std::iter::from_fn(|| participant.poll_event()).filter(lost).count()
}

#[test]
fn what_the_network_holds_back_or_repeats_is_not_of_one_that_has_started_again() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    (1..=5).for_each(|n| {
        participant.on_frame(Time(0), &publication(n, n as u32, "Square", |_| {}), &mut Nowhere);
        participant.on_frame(Time(0), &heartbeat(n as i32, n), &mut Nowhere);
    });
    for n in 0..100 {
        let now = Time(0) + Duration(n * limits::RESTART_AFTER.0 / 4);
        // What is old comes again and again, and now and then what is new.
        participant.on_frame(now, &heartbeat(1 + n as i32 % 4, 1 + n % 4), &mut Nowhere);
        if n % 4 == 3 {
            participant.on_frame(now, &heartbeat(6 + n as i32, 5), &mut Nowhere);
        }
    }
    // Later a heartbeat comes behind a change that was sent after it.
    let late = Time(0) + limits::RESTART_AFTER.times(200);
    participant.on_frame(late, &heartbeat(1, 1), &mut Nowhere);
    participant.on_frame(late + limits::RESTART_AFTER, &publication(6, 6, "Square", |_| {}), &mut Nowhere);
    participant.on_frame(late + limits::RESTART_AFTER, &heartbeat(500, 4), &mut Nowhere);
    assert_eq!(times_lost(&mut participant), 0);
    assert_eq!(participant.database().endpoints().count(), 6);
}

#[test]
fn who_pretends_to_start_again_and_again_is_believed_now_and_then() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    let publication = publication(1, 1, "Square", |_| {});
    for millis in 0..10_000 {
        let now = Time(0) + Duration::from_millis(millis);
        participant.on_frame(now, &publication, &mut Nowhere);
        participant.on_frame(now, &heartbeat(0, 0), &mut Nowhere);
    }
    let lost = times_lost(&mut participant);
    assert!((5..=10).contains(&lost), "{lost}");
    assert_eq!(participant.database().peers().count(), 1);
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
        participant.on_frame(Time(0), &announcement_at(OTHER, OTHER, &[ADDRESS], "", vendor), &mut Nowhere);
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

/// The properties by which a participant says which process it is of.
const OF_PROCESS: [&str; 2] = ["PID_PERSISTENCE_GUID", "fastdds.physical_data.process"];

#[test]
fn who_says_that_it_is_another_process_has_started_again() {
    for name in OF_PROCESS {
        let mut participant = participant();
        let of = |process: u8| announcement_of(&[(name, process.to_string()), ("a", "b".into())]);
        participant.on_frame(Time(0), &of(1), &mut Nowhere);
        participant.on_frame(Time(0), &publication(1, 1, "Square", |_| {}), &mut Nowhere);
        participant.on_frame(Time(0), &heartbeat(1, 1), &mut Nowhere);
        let late = Time(1) + limits::RESTART_AFTER;
        // What the earlier one has said comes behind it, and says nothing.
        for (now, processes, lost) in [(Time(1), &[2, 1][..], 1), (late, &[2], 0)] {
            processes.iter().for_each(|process| participant.on_frame(now, &of(*process), &mut Nowhere));
            // It has as many writers as the earlier one, and has sent no more.
            participant.on_frame(now, &publication(1, 2, "Circle", |_| {}), &mut Nowhere);
            participant.on_frame(now, &heartbeat(1, 1), &mut Nowhere);
            assert_eq!(times_lost(&mut participant), lost, "{name}");
            let topics: Vec<_> = participant.database().endpoints().map(|e| e.topic_name.clone()).collect();
            assert_eq!(topics, ["Circle"], "{name}");
        }
    }
}

#[test]
fn who_says_again_and_again_that_it_is_another_process_is_believed_now_and_then() {
    let mut participant = participant();
    for millis in 0..10_000 {
        let announced = announcement_of(&[(OF_PROCESS[1], (millis % 2).to_string())]);
        participant.on_frame(Time(0) + Duration::from_millis(millis), &announced, &mut Nowhere);
    }
    let lost = times_lost(&mut participant);
    assert!((5..=10).contains(&lost), "{lost}");
    // Who says nothing of it may well be the same.
    let now = Time(0) + Duration::from_secs(20);
    [other_at(&[ADDRESS]), announcement_of(&[(OF_PROCESS[0], "1".into())])]
        .iter()
        .for_each(|frame| participant.on_frame(now, frame, &mut Nowhere));
    assert_eq!(times_lost(&mut participant), 0);
}

/// What is matched with it is forgotten in several steps, and meanwhile others go on talking.
#[test]
fn who_says_that_it_is_another_process_is_believed_no_more_often_if_it_is_matched() {
    let mut participant = participant();
    let reader = reader_of(&mut participant, "Square", ReliabilityKind::Reliable);
    let of = |process: i64| announcement_of(&[(OF_PROCESS[1], process.to_string())]);
    let mut lives = Vec::new();
    for millis in 0..10_000 {
        let now = Time(0) + Duration::from_millis(millis);
        // Each 1.1 s another process takes the name, and for a while what the one before has said still comes.
        let (life, since) = (millis / 1_100, millis % 1_100);
        let late = if since < 500 { life.min(1) } else { 0 };
        for process in (life - late..=life).rev() {
            participant.on_frame(now, &of(process), &mut Nowhere);
            participant.on_frame(now, &publication(1, 1, "Square", |_| {}), &mut Nowhere);
        }
        participant.on_timeout(now, usize::MAX);
        let said = participant.database().peers().map(|peer| peer.data.properties[0].1.clone());
        lives.extend(said.filter(|said| lives.last() != Some(said)).collect::<Vec<_>>());
    }
    assert_eq!(participant.reader(reader).unwrap().proxies.len(), 1, "it is matched");
    let lost = times_lost(&mut participant);
    assert!((5..=9).contains(&lost), "{lost}: {lives:?}");
    assert!(lives.is_sorted(), "{lives:?}");
}

#[test]
fn participants_that_answer_nothing_give_way_to_newcomers() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut Nowhere);
    participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    let prefix =
        |n: usize| GuidPrefix(std::array::from_fn(|at| if at < 8 { 9 } else { n.to_be_bytes()[at - 4] }));
    let mut comes =
        |n| participant.on_frame(Time(n as i64), &announcement(prefix(n), prefix(n)), &mut Nowhere);
    (1..limits::PEERS + 10).for_each(&mut comes);
    let knows = |prefix| participant.database().peer(prefix).is_some();
    assert_eq!(participant.database().peers().count(), limits::PEERS);
    assert!(knows(OTHER), "it has answered");
    assert!(!knows(prefix(1)) && !knows(prefix(10)) && knows(prefix(11)), "the oldest have gone");
    assert!(knows(prefix(limits::PEERS + 9)));
    assert_eq!(participant.counters().too_many_participants, 10);
}

/// A participant says that it never ends.
fn announcement_for_ever(prefix: GuidPrefix) -> Frame {
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    write_message_header(&mut message, prefix);
    let data = ParticipantData {
        guid_prefix: prefix,
        metatraffic_unicast: vec![ADDRESS],
        default_unicast: vec![ADDRESS],
        builtin_endpoints: builtin_endpoint::PUBLICATIONS_ANNOUNCER,
        lease_duration: Duration::INFINITE,
        ..ParticipantData::default()
    };
    data.write(&mut payload);
    put_data(&mut message, EntityId::SPDP_WRITER, 1, &payload);
    frame(message)
}

/// Else somebody who makes up participants fills the table for good, and has all of them asked for ever.
#[test]
fn who_has_answered_nothing_is_forgotten_however_long_its_lease_is() {
    let (mut participant, silent) = (participant(), GuidPrefix([9; 12]));
    let lease = limits::SILENT_LEASE;
    let known_at = |participant: &mut Participant, now| {
        participant.on_timeout(now, usize::MAX);
        [OTHER, silent].map(|prefix| participant.database().peer(prefix).is_some())
    };
    for prefix in [OTHER, silent] {
        participant.on_frame(Time(0), &announcement_for_ever(prefix), &mut Nowhere);
    }
    participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    let almost = Time(lease.0 - 1);
    assert_eq!(known_at(&mut participant, almost), [true, true]);
    participant.on_frame(almost, &announcement_for_ever(silent), &mut Nowhere);
    assert_eq!(
        known_at(&mut participant, Time(2 * lease.0 - 2)),
        [true, true],
        "it has announced itself again"
    );
    assert_eq!(known_at(&mut participant, Time(2 * lease.0 - 1)), [true, false]);
    assert_eq!(known_at(&mut participant, Time(1_000 * lease.0)), [true, false], "who answers has its lease");
}

/// Keeps what is delivered.
struct Kept(Vec<taut_rtps::CacheChange>);

impl Sink for Kept {
    fn deliver(&mut self, _: ReaderIndex, _: i32, offer: &mut Offer) {
        self.0.extend(offer.take());
    }
}

#[test]
fn the_data_of_a_sample_that_disposes_of_its_instance_are_no_key() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    let (instance, payload) = (InstanceHandle([7; 16]), [0, 1, 0, 0, 1, 2, 3, 4]);
    for (number, kind) in [(1, PayloadKind::Data), (2, PayloadKind::Key)] {
        let said =
            InlineQos { key_hash: Some(instance), status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
        let (mut inline, mut message) = (Vec::new(), Vec::new());
        said.write(&mut inline, Endian::Little);
        write_message_header(&mut message, OTHER);
        let (writer_id, writer_sn) = (EntityId::user(1, true, false), SequenceNumber(number));
        let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn };
        header.write(&mut message, Endian::Little, &inline, kind, payload.len());
        message.extend_from_slice(&payload);
        participant.on_frame(Time(0), &frame(message), &mut sink);
    }
    let kept = |change: &taut_rtps::CacheChange| (change.kind, change.instance, change.payload.len());
    let (with_data, with_key) = (ChangeKind::AliveThenDisposed, ChangeKind::NotAliveDisposed);
    let got: Vec<_> = sink.0.iter().map(kept).collect();
    assert_eq!(got, [with_data, with_key].map(|kind| (kind, Some(instance), payload.len())));
    assert_eq!([with_data.has_data(), with_key.has_data()], [true, false]);
}

/// What is said about a change, and of which readers it is directed to.
fn inline(said: &InlineQos, directed_to: &[Guid]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterListWriter::new(&mut bytes, Endian::Little);
    for guid in directed_to {
        list.put_guid(pid::DIRECTED_WRITE, *guid);
    }
    list.finish();
    if *said != InlineQos::default() {
        // Without the sentinel: this list goes on.
        bytes.truncate(bytes.len() - 4);
        said.write(&mut bytes, Endian::Little);
    }
    bytes
}

/// One fragment of 4 bytes of a change of the other participant's writer.
fn part(number: i64, fragment_starting_num: u32, key: bool, inline: &[u8], sample: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let header = DataFragHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::user(1, true, false),
        writer_sn: SequenceNumber(number),
        fragment_starting_num,
        fragments_in_submessage: 1,
        fragment_size: 4,
        sample_size: sample.len() as u32,
        key,
    };
    let bytes = sample.chunks(4).nth(fragment_starting_num as usize - 1).unwrap();
    header.write(&mut message, Endian::Little, inline, bytes.len());
    message.extend_from_slice(bytes);
    frame(message)
}

#[test]
fn a_change_that_is_directed_goes_to_the_readers_that_it_names() {
    for kind in [ReliabilityKind::BestEffort, ReliabilityKind::Reliable] {
        let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
        let readers = [(); 3].map(|()| reader_of(&mut participant, "Topic", kind));
        let [a, b, c] = readers.map(|index| participant.reader(index).unwrap().guid);
        participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
        participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
        let sample = [0, 1, 0, 0, 1, 2, 3, 4];
        for (number, directed_to) in [(1, &[][..]), (2, &[a, c][..]), (3, &[b][..]), (5, &[a][..])] {
            let inline = inline(&InlineQos::default(), directed_to);
            let mut message = Vec::new();
            write_message_header(&mut message, OTHER);
            let (writer_id, writer_sn) = (EntityId::user(1, true, false), SequenceNumber(number));
            let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn };
            header.write(&mut message, Endian::Little, &inline, PayloadKind::Data, sample.len());
            message.extend_from_slice(&sample);
            participant.on_frame(Time(0), &frame(message), &mut sink);
            if number == 3 {
                for fragment in [2, 1] {
                    let inline = self::inline(&InlineQos::default(), &[b, c]);
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
        assert_eq!(std::iter::from_fn(|| participant.poll_event()).filter(lost).count(), 0);
    }
}

/// Who was delivered which number.
struct Heard(Vec<(ReaderIndex, i64)>);

impl Sink for Heard {
    fn deliver(&mut self, reader: ReaderIndex, _: i32, offer: &mut Offer) {
        self.0.extend(offer.take().map(|change| (reader, change.sequence_number.0)));
    }
}

#[test]
fn a_key_in_fragments_ends_its_instance() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    let sample: Vec<u8> = (0..10).collect();
    let hash = Some(InstanceHandle([7; 16]));
    let ends = |status_info| InlineQos { key_hash: hash, status_info, ..InlineQos::default() };
    let nothing = InlineQos::default();
    let all = StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED);
    for (number, key, said) in [
        (1, true, ends(StatusInfo::UNREGISTERED)),
        (2, true, ends(all)),
        (3, true, nothing),
        (4, false, ends(StatusInfo::DISPOSED)),
        (5, false, nothing),
    ] {
        for fragment in [3, 1, 2] {
            let inline = inline(&said, &[]);
            participant.on_frame(Time(0), &part(number, fragment, key, &inline, &sample), &mut sink);
        }
    }
    let kept = |change: &taut_rtps::CacheChange| (change.kind, change.instance, change.payload.len());
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveDisposedUnregistered, NotAliveUnregistered};
    let expected = [
        (NotAliveUnregistered, hash, 10),
        (NotAliveDisposedUnregistered, hash, 10),
        (NotAliveDisposed, None, 10),
        // The data of a sample that ends its instance are no key, in fragments as in one piece.
        (ChangeKind::AliveThenDisposed, hash, 10),
        (Alive, None, 10),
    ];
    assert_eq!(sink.0.iter().map(kept).collect::<Vec<_>>(), expected);
}

#[test]
fn data_that_end_their_instance_are_kept_and_are_no_key() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    let sample: Vec<u8> = (0..8).collect();
    let all = StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED);
    let mut number = 0;
    let mut expected = Vec::new();
    for (status_info, with_data, with_key) in [
        (StatusInfo::DISPOSED, ChangeKind::AliveThenDisposed, ChangeKind::NotAliveDisposed),
        (StatusInfo::UNREGISTERED, ChangeKind::AliveThenUnregistered, ChangeKind::NotAliveUnregistered),
        (all, ChangeKind::AliveThenDisposedUnregistered, ChangeKind::NotAliveDisposedUnregistered),
    ] {
        for (payload, kind) in [(PayloadKind::Data, with_data), (PayloadKind::Key, with_key)] {
            for key_hash in [None, Some(InstanceHandle([7; 16]))] {
                number += 1;
                let said = inline(&InlineQos { key_hash, status_info, ..InlineQos::default() }, &[]);
                let mut message = Vec::new();
                write_message_header(&mut message, OTHER);
                let writer_id = EntityId::user(1, true, false);
                let header =
                    DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
                header.write(&mut message, Endian::Little, &said, payload, sample.len());
                message.extend_from_slice(&sample);
                participant.on_frame(Time(0), &frame(message), &mut sink);
                assert_eq!(kind.has_data(), payload == PayloadKind::Data);
                assert_eq!((kind.end(), kind.status_info()), (with_key, status_info.0));
                expected.push((kind, key_hash, 8));
            }
        }
    }
    let kept = |change: &taut_rtps::CacheChange| (change.kind, change.instance, change.payload.len());
    assert_eq!(sink.0.iter().map(kept).collect::<Vec<_>>(), expected);
}

#[test]
fn a_greeting_that_never_comes_is_not_waited_for_for_ever() {
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    let index = reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    let taut = announcement_at(OTHER, OTHER, &[ADDRESS], "", VendorId::UNKNOWN);
    participant.on_frame(Time(0), &taut, &mut sink);
    let said = publication(1, 1, "Topic", |qos| qos.reliability.kind = ReliabilityKind::Reliable);
    participant.on_frame(Time(0), &said, &mut sink);
    let mut write = |participant: &mut Participant, number| {
        let change = change(EntityId::user(1, true, false), number, &[0, 1, 0, 0]);
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
        std::iter::from_fn(|| participant.poll_event())
            .filter(|event| matches!(event, Event::GreetingOverdue { reader } if *reader == index))
            .count()
    };
    let limit = Time(0) + limits::GREETING_PATIENCE;
    assert_eq!(overdue(&mut participant, Time(limit.0 - 1)), 0);
    assert_eq!(overdue(&mut participant, limit), 1);
    participant.on_room(limit, index, &mut sink);
    assert_eq!(sink.0.len(), 2, "what was held");
    let next = change(EntityId::user(1, true, false), 3, &[0, 1, 0, 0]);
    participant.on_frame(limit, &next, &mut sink);
    assert_eq!(sink.0.len(), 3, "what follows is held no more");
}

#[test]
fn no_more_timers_are_handled_than_the_budget_has() {
    const PEERS: u8 = 12;
    const BUDGET: usize = 5;
    let (mut participant, mut sink) = (participant(), Strengths(Vec::new()));
    for number in 0..PEERS {
        let peer = GuidPrefix([10 + number; 12]);
        let frame = announcement_at(peer, peer, &[ADDRESS], "", VendorId::UNKNOWN);
        participant.on_frame(Time(0), &frame, &mut sink);
    }
    assert_eq!(participant.database().peers().count(), usize::from(PEERS));
    // All leases end at the same time.
    let after = Time(0) + ParticipantData::default().lease_duration;
    let mut last = usize::from(PEERS);
    while last > 0 {
        let handled = participant.on_timeout(after, BUDGET);
        let left = participant.database().peers().count();
        assert!(handled <= BUDGET && last - left <= BUDGET, "{handled} timers: {last} peers, then {left}");
        assert!(handled == BUDGET || left == 0, "{left} peers are left");
        last = left;
    }
}

/// A DATA of the other participant's writer, with an inline QoS of its own.
fn data(number: i64, inline: &[u8], kind: PayloadKind, payload: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let (writer_id, writer_sn) = (EntityId::user(1, true, false), SequenceNumber(number));
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn };
    header.write(&mut message, Endian::Little, inline, kind, payload.len());
    message.extend_from_slice(payload);
    frame(message)
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
        let lost = std::iter::from_fn(|| participant.poll_event()).filter_map(|event| match event {
            Event::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        assert_eq!(lost.sum::<u64>(), 2, "{kind:?}");
    }
}

#[test]
fn a_change_that_does_not_pass_a_filter_is_neither_data_nor_an_end() {
    let (mut participant, mut sink) = (participant(), Kept(Vec::new()));
    matched_reader(&mut participant, ReliabilityKind::Reliable, &mut sink);
    let key_hash = Some(InstanceHandle([7; 16]));
    let with = |status_info| inline(&InlineQos { key_hash, status_info, ..InlineQos::default() }, &[]);
    let sample: Vec<u8> = (0..8).collect();
    let filtered = with(StatusInfo::FILTERED);
    for (number, kind) in [(1, PayloadKind::Key), (2, PayloadKind::None), (3, PayloadKind::Data)] {
        let payload = if kind == PayloadKind::None { &[][..] } else { &sample[..] };
        participant.on_frame(Time(0), &data(number, &filtered, kind, payload), &mut sink);
    }
    for fragment in [2, 1] {
        participant.on_frame(Time(0), &part(4, fragment, true, &filtered, &sample), &mut sink);
    }
    let ends = with(StatusInfo::FILTERED.with(StatusInfo::DISPOSED));
    participant.on_frame(Time(0), &data(5, &ends, PayloadKind::Key, &sample), &mut sink);
    let got: Vec<_> = sink.0.iter().map(|change| (change.sequence_number.0, change.kind)).collect();
    assert_eq!(got, [(5, ChangeKind::NotAliveDisposed)]);
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

/// A participant with a writer that promises to say that it is alive, and another one of whose reader for that this is
/// said. Returns how many assertions and heartbeats of them it sends within a minute.
fn liveliness_sent_to(builtin_endpoint_qos: u32) -> (usize, usize) {
    let (mut participant, mut port) = (participant(), Loopback::new());
    let mut qos = EndpointQos::default_writer();
    qos.liveliness.lease_duration = Duration::from_secs(30);
    let endpoint = EndpointConfig {
        topic_name: "Topic".to_owned(),
        type_name: "Type".to_owned(),
        keyed: false,
        qos,
        history: History::KeepLast(1),
        max_samples: None,
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
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    data.write(&mut payload);
    write_message_header(&mut message, OTHER);
    put_data(&mut message, EntityId::SPDP_WRITER, 1, &payload);
    participant.on_frame(Time(0), &frame(message), &mut Nowhere);
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
        assert_eq!(std::iter::from_fn(|| participant.poll_event()).filter(lost).count(), 1, "{kind:?}");
    }
}

#[test]
fn each_of_many_readers_of_a_writer_hears_it() {
    const READERS: usize = 1_100;
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    for _ in 0..READERS {
        reader_of(&mut participant, "Topic", ReliabilityKind::BestEffort);
    }
    participant.on_frame(Time(0), &announcement(OTHER, OTHER), &mut sink);
    participant.on_frame(Time(0), &publication(1, 1, "Topic", |_| {}), &mut sink);
    let matched = |event: &Event| matches!(event, Event::SubscriptionMatched { matched: true, .. });
    assert_eq!(std::iter::from_fn(|| participant.poll_event()).filter(matched).count(), READERS);
    participant.on_frame(Time(0), &data(1, &[], PayloadKind::Data, &[0, 1, 0, 0]), &mut sink);
    assert_eq!(sink.0.len(), READERS);
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
