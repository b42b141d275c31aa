//! A participant and what another one says to it, byte by byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, SequenceNumber, SequenceNumberSet, Time,
};
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter};
use taut_mem::{Bytes, Region};
use taut_port::{Frame, Loopback, Traffic};
use taut_qos::{
    DataReaderQos, DataWriterQos, EndpointQos, LivelinessKind, PublisherQos, ReliabilityKind, ResourceLimits,
    SubscriberQos, TopicQos,
};
use taut_rtps::discovery::{EndpointData, ParticipantData, builtin_endpoint};
use taut_rtps::{ChangeKind, Config, NewChange, ReaderIndex, TxClass, WriterIndex, limits};
use taut_wire::{
    DataHeader, Endian, Gap, HEADER_LEN, Heartbeat, InlineQos, PayloadKind, StatusInfo, write_message_header,
};

use crate::blocked::LATEST;
use crate::cell;
use crate::reader_cache_tests::handle;
use crate::{DiscoveryChanges, DomainParticipant, Endpoint, Entity, Selection, StatusMask, TypeSupport};

const OTHER: GuidPrefix = GuidPrefix([2; 12]);
/// Of the writers that promise to say that they are alive.
const LEASE: Duration = Duration::from_secs(1);

fn frame(writer_id: EntityId, number: i64, payload: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
    header.write(&mut message, Endian::Little, &[], PayloadKind::Data, payload.len());
    message.extend_from_slice(payload);
    Frame { source: address(), traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

fn address() -> Locator {
    Locator::udp_v4(std::net::Ipv4Addr::LOCALHOST, 7410)
}

pub(crate) fn participant() -> DomainParticipant {
    DomainParticipant::new(Config::at(GuidPrefix([1; 12]), address()))
}

fn writer_id(n: u32) -> EntityId {
    EntityId::user(n, true, true)
}

/// The other participant tells of a writer of this strength.
fn publication(number: i64, of: u32, strength: i32) -> Frame {
    publication_with(number, of, exclusive(strength))
}

fn exclusive(ownership_strength: i32) -> EndpointQos {
    let ownership = taut_qos::OwnershipKind::Exclusive;
    EndpointQos { ownership, ownership_strength, ..EndpointQos::default_writer() }
}

pub(crate) fn publication_with(number: i64, of: u32, qos: EndpointQos) -> Frame {
    let mut payload = Vec::new();
    EndpointData::of(Guid::new(OTHER, writer_id(of)), "Topic", "Type", qos).write(&mut payload);
    frame(EntityId::SEDP_PUBLICATIONS_WRITER, number, &payload)
}

/// The same, with a promise to say that it is alive, each second.
fn promised(number: i64, of: u32, strength: i32, kind: LivelinessKind) -> Frame {
    let liveliness = taut_qos::Liveliness { kind, lease_duration: LEASE };
    publication_with(number, of, EndpointQos { liveliness, ..exclusive(strength) })
}

/// The other participant announces itself, with this USER_DATA.
fn announcement(number: i64, user_data: &[u8]) -> Frame {
    let data = ParticipantData {
        guid_prefix: OTHER,
        metatraffic_unicast: vec![address()],
        default_unicast: vec![address()],
        builtin_endpoints: builtin_endpoint::PUBLICATIONS_ANNOUNCER
            | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER,
        user_data: user_data.to_vec(),
        ..ParticipantData::default()
    };
    let mut payload = Vec::new();
    data.write(&mut payload);
    frame(EntityId::SPDP_WRITER, number, &payload)
}

/// A participant that knows the other one, with a reader.
fn reading() -> (DomainParticipant, ReaderIndex) {
    let mut participant = participant();
    let reader = read_with(&mut participant, DataReaderQos::default().keep_all().exclusive());
    (participant, reader)
}

/// Makes a reader and knows the other one.
pub(crate) fn read_with(participant: &mut DomainParticipant, qos: DataReaderQos) -> ReaderIndex {
    let endpoint = Endpoint {
        topic_name: "Topic".into(),
        topic_qos: TopicQos::default(),
        type_support: type_support(),
        qos,
        group: SubscriberQos::default(),
    };
    let reader = participant.create_reader(Time(0), endpoint);
    participant.on_frame(Time(0), &announcement(1, &[]));
    reader
}

/// All samples are of one instance.
fn type_support() -> TypeSupport {
    TypeSupport { type_name: "Type".into(), key_hash: Some(|_, _| Some(handle(1))), ..TypeSupport::default() }
}

fn write_with(participant: &mut DomainParticipant, qos: DataWriterQos) -> WriterIndex {
    let endpoint = Endpoint {
        topic_name: "Topic".into(),
        topic_qos: TopicQos::default(),
        type_support: type_support(),
        qos,
        group: PublisherQos::default(),
    };
    participant.create_writer(Time(0), endpoint)
}

/// Who has created it may be kept from running, and discovery says nothing meanwhile.
#[test]
fn whoever_drives_goes_on_with_an_endpoint_that_is_half_matched() {
    const STEP: u32 = limits::LOCAL_STEP as u32;
    let (mut participant, _) = reading();
    for number in 1..=3 * STEP {
        participant.on_frame(Time(0), &publication(number.into(), number, 0));
        while participant.on_timeout(Time(0), 100) > 0 {}
    }
    let reader = read_with(&mut participant, DataReaderQos::default().keep_all().exclusive());
    for step in 1..=3 {
        let matched = participant.reader(reader).unwrap().subscription_matched.current_count;
        assert_eq!((matched, participant.is_matching()), (step * STEP, step < 3));
        assert_eq!(participant.on_timeout(Time(0), 100) == 100, step == 1, "there is more");
    }
}

/// It may be the last thing that a thread has waited for: what is left in the lane counts as acknowledged.
#[test]
fn a_lane_that_begins_is_news_of_its_writer() {
    let (mut participant, reader) = reading();
    let writer = write_with(&mut participant, DataWriterQos::default());
    while participant.poll_news().is_some() {}
    let reader = participant.core().reader(reader).unwrap().guid;
    participant.set_reader_lane(Time(0), writer, reader, Some(SequenceNumber(1)));
    assert_eq!(participant.poll_news(), Some((Entity::Writer(writer), StatusMask::NONE)));
}

#[test]
fn an_announcement_of_another_strength_counts_at_once_and_in_a_lane() {
    let (mut participant, reader) = reading();
    participant.on_frame(Time(0), &publication(1, 1, 9));
    participant.on_frame(Time(0), &publication(2, 2, 5));
    let mut lane_writer = join(&mut participant, reader, 1);
    let mut heard = |participant: &mut DomainParticipant, by_lane: bool, number: u64| {
        if by_lane {
            lane_writer.push(&[number, u64::MAX, 0, 0, 0], &[0, 1, 0, 0]).unwrap();
            participant.pull(Time(0), reader, usize::MAX);
        } else {
            participant.on_frame(Time(0), &frame(writer_id(2), number as i64, &[0, 1, 0, 0]));
        }
        participant.take(Time(0), reader, &Selection::ANY, |_| ()) > 0
    };
    assert!(heard(&mut participant, true, 1) && !heard(&mut participant, false, 1));
    participant.on_frame(Time(0), &publication(3, 1, 3));
    assert!(!heard(&mut participant, true, 2) && heard(&mut participant, false, 2));
}

/// The other participant says that a writer has gone.
fn gone(number: i64, of: u32) -> Frame {
    let (guid, mut inline, mut message) = (Guid::new(OTHER, writer_id(of)), Vec::new(), Vec::new());
    let (key_hash, status_info) = (Some(guid.into()), StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED));
    InlineQos { key_hash, status_info, ..InlineQos::default() }.write(&mut inline, Endian::Little);
    write_message_header(&mut message, OTHER);
    let (writer_id, writer_sn) = (EntityId::SEDP_PUBLICATIONS_WRITER, SequenceNumber(number));
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn };
    header.write(&mut message, Endian::Little, &inline, PayloadKind::None, 0);
    Frame { source: address(), traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

/// The other participant says which changes its writer has.
fn heartbeat(of: u32, reader_id: EntityId, last: i64, count: i32) -> Frame {
    heartbeat_with(of, reader_id, last, count, false)
}

fn heartbeat_with(of: u32, reader_id: EntityId, last: i64, count: i32, liveliness_flag: bool) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let heartbeat = Heartbeat {
        reader_id,
        writer_id: writer_id(of),
        first_sn: SequenceNumber::FIRST,
        last_sn: SequenceNumber(last),
        count,
        final_flag: true,
        liveliness_flag,
        group_info: None,
    };
    heartbeat.write(&mut message, Endian::Little);
    Frame { source: address(), traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

#[test]
fn what_has_not_been_delivered_when_its_writer_goes_is_lost() {
    for (reliable, lost) in [(true, 3), (false, 0)] {
        let mut participant = participant();
        let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
        let mut qos = DataReaderQos { resource_limits, ..DataReaderQos::default() }.keep_all().exclusive();
        if reliable {
            qos.reliability.kind = ReliabilityKind::Reliable;
        }
        let reader = read_with(&mut participant, qos);
        participant.on_frame(Time(0), &publication(1, 1, 1));
        let greeted = participant.core().reader(reader).unwrap().guid.entity;
        participant.on_frame(Time(0), &heartbeat(1, greeted, 0, 1));
        // There is room for two, the fourth does not come, and the fifth is only heard of.
        for number in 1..=3 {
            participant.on_frame(Time(0), &frame(writer_id(1), number, &[0, 1, 0, 0]));
        }
        participant.on_frame(Time(0), &heartbeat(1, EntityId::UNKNOWN, 5, 2));
        while participant.poll_news().is_some() {}
        participant.on_frame(Time(0), &gone(2, 1));
        let news: Vec<_> = std::iter::from_fn(|| participant.poll_news()).collect();
        let is_told = |(_, kinds): &(Entity, StatusMask)| kinds.intersects(StatusMask::SAMPLE_LOST);
        assert_eq!(news.iter().any(is_told), lost > 0, "{news:?}");
        assert_eq!(participant.side(reader, |side| side.sample_lost.total_count), Some(lost));
        let mut taken = 0;
        participant
            .take(Time(0), reader, &Selection::ANY, |sample| taken += u32::from(sample.info.valid_data));
        assert_eq!(taken, 2);
    }
}

/// Who takes one sample, and no other for a while, has kept nobody waiting for longer than that.
#[test]
fn what_waits_gets_little_room_after_a_while_and_much_at_once() {
    let mut participant = participant();
    let resource_limits = ResourceLimits { max_samples: Some(8), ..ResourceLimits::default() };
    let mut qos = DataReaderQos { resource_limits, ..DataReaderQos::default() }.keep_all();
    qos.reliability.kind = ReliabilityKind::Reliable;
    let reader = read_with(&mut participant, qos);
    participant.on_frame(Time(0), &publication_with(1, 1, EndpointQos::default_writer()));
    let greeted = participant.core().reader(reader).unwrap().guid.entity;
    participant.on_frame(Time(0), &heartbeat(1, greeted, 0, 1));
    (1..=20).for_each(|number| participant.on_frame(Time(0), &frame(writer_id(1), number, &[0, 1, 0, 0])));
    let held = |participant: &DomainParticipant| participant.side(reader, |side| side.cache.len());
    let takes = |participant: &mut DomainParticipant| {
        assert!(participant.take_next(Time(0), reader).is_some());
        held(participant)
    };
    assert_eq!([(); 4].map(|()| takes(&mut participant)), [Some(7), Some(8), Some(7), Some(8)]);
    takes(&mut participant);
    for (late, is_there) in [(Time(0) + LATEST - Duration(1), Some(7)), (Time(0) + LATEST, Some(8))] {
        participant.on_timeout(late, 100);
        assert_eq!(held(&participant), is_there);
    }
}

/// Was the reader told of data since the last call?
fn told_of_data(participant: &mut DomainParticipant, reader: ReaderIndex) -> bool {
    let news = std::iter::from_fn(|| participant.poll_news());
    let kinds = news.filter(|(entity, _)| *entity == Entity::Reader(reader)).map(|(_, kinds)| kinds);
    kinds.fold(StatusMask::NONE, |all, kinds| all | kinds).intersects(StatusMask::DATA_AVAILABLE)
}

#[test]
fn a_writer_that_goes_is_data_only_if_it_leaves_an_instance_without_writers() {
    let (mut participant, reader) = reading();
    for (number, writer) in [(1, 1), (2, 2), (3, 3)] {
        participant.on_frame(Time(0), &publication(number, writer, 4 - number as i32));
    }
    for writer in [1, 2] {
        participant.on_frame(Time(0), &frame(writer_id(writer), 1, &[0, 1, 0, 0]));
    }
    assert_eq!(participant.take(Time(0), reader, &Selection::ANY, |_| ()), 1);
    assert!(told_of_data(&mut participant, reader));
    for (number, writer, is_last) in [(4, 3, false), (5, 1, false), (6, 2, true)] {
        participant.on_frame(Time(0), &gone(number, writer));
        assert_eq!(told_of_data(&mut participant, reader), is_last, "{writer}");
        assert_eq!(participant.take(Time(0), reader, &Selection::ANY, |_| ()) > 0, is_last, "{writer}");
    }
}

#[test]
fn a_participant_that_says_something_new_of_itself_is_a_change() {
    let (mut participant, _) = reading();
    let mut says = |number, user_data: &[u8]| {
        let before = participant.discovery_changes();
        while participant.poll_news().is_some() {}
        participant.on_frame(Time(0), &announcement(number, user_data));
        let is_told = participant.poll_news() == Some((Entity::Participant, StatusMask::DATA_AVAILABLE));
        let participants = before.participants + u64::from(is_told);
        assert_eq!(participant.discovery_changes(), DiscoveryChanges { participants, ..before });
        is_told
    };
    assert!(!says(2, b""), "it is still there");
    assert!(says(3, b"on") && !says(4, b"on") && says(5, b""));
}

#[test]
fn a_change_is_one_of_its_own_built_in_topic() {
    let (mut participant, _) = reading();
    let mut after = |frame: Frame| {
        participant.on_frame(Time(0), &frame);
        let DiscoveryChanges { participants, publications, subscriptions } = participant.discovery_changes();
        [participants, publications, subscriptions]
    };
    assert_eq!(after(publication(1, 1, 1)), [1, 1, 0]);
    assert_eq!(after(publication(2, 1, 2)), [1, 2, 0], "another strength");
    assert_eq!(after(gone(3, 1)), [1, 3, 0]);
    let guid = Guid::new(OTHER, EntityId::user(1, false, true));
    let mut payload = Vec::new();
    EndpointData::of(guid, "Topic", "Type", EndpointQos::default_reader()).write(&mut payload);
    assert_eq!(after(frame(EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, &payload)), [1, 3, 1]);
}

/// By the protocol, and through a lane.
#[test]
fn what_waited_for_room_gives_no_instance_to_a_writer_that_is_silent_by_now() {
    for by_lane in [false, true] {
        let resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let mut qos = DataReaderQos { resource_limits, ..DataReaderQos::default() }.keep_all().exclusive();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut participant = participant();
        let reader = read_with(&mut participant, qos);
        participant.on_frame(Time(0), &promised(1, 1, 9, LivelinessKind::ManualByTopic));
        participant.on_frame(Time(0), &publication(2, 2, 5));
        let greeted = participant.core().reader(reader).unwrap().guid.entity;
        for writer in [1, 2] {
            participant.on_frame(Time(0), &heartbeat(writer, greeted, 0, 1));
        }
        let mut lane_writer = by_lane.then(|| join(&mut participant, reader, 1));
        for number in 1..=2 {
            match &mut lane_writer {
                Some(lane) => lane.push(&[number, u64::MAX, 0, 0, 0], &[0, 1, 0, 0]).unwrap(),
                None => participant.on_frame(Time(0), &frame(writer_id(1), number as i64, &[0, 1, 0, 0])),
            }
        }
        let late = Time(0) + LEASE;
        participant.on_timeout(late, 100);
        assert_eq!(alive(&participant, reader), 1, "the stronger one is silent");
        let heard = |participant: &mut DomainParticipant| {
            participant.pull(late, reader, usize::MAX);
            let mut taken = Vec::new();
            let keep = |sample: crate::Sample| {
                taken.push((sample.info.publication_handle, sample.info.valid_data));
            };
            participant.take(late, reader, &Selection::ANY, keep);
            taken
        };
        let of = |n| taut_base::InstanceHandle::from(Guid::new(OTHER, writer_id(n)));
        assert_eq!(heard(&mut participant), [(of(1), true), (of(1), false)]);
        let waited = heard(&mut participant);
        assert_eq!(waited, [(of(1), true), (of(1), false)], "what has waited, and that nobody writes it");
        participant.on_frame(late, &frame(writer_id(2), 1, &[0, 1, 0, 0]));
        assert_eq!(heard(&mut participant), [(of(2), true)], "by lane: {by_lane}");
    }
}

/// A silent writer says that 2 does not come, which 3 has waited for; what else it says shows whether it is alive.
#[test]
fn what_a_hole_held_back_gives_no_instance_to_a_writer_that_says_no_more() {
    for writes in [false, true] {
        let mut participant = participant();
        let mut qos = DataReaderQos::default().keep_all().exclusive();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let reader = read_with(&mut participant, qos);
        participant.on_frame(Time(0), &promised(1, 1, 9, LivelinessKind::ManualByTopic));
        let greeted = participant.core().reader(reader).unwrap().guid.entity;
        participant.on_frame(Time(0), &heartbeat(1, greeted, 0, 1));
        for number in [1, 3] {
            participant.on_frame(Time(0), &frame(writer_id(1), number, &[0, 1, 0, 0]));
        }
        let late = Time(0) + LEASE;
        participant.on_timeout(late, 100);
        participant.take(late, reader, &Selection::ANY, |_| ());
        let mut message = Vec::new();
        write_message_header(&mut message, OTHER);
        let gap = Gap {
            reader_id: EntityId::UNKNOWN,
            writer_id: writer_id(1),
            gap_start: SequenceNumber(2),
            gap_list: SequenceNumberSet::new(SequenceNumber(3)),
            group_info: None,
            filtered_count: None,
        };
        gap.write(&mut message, Endian::Little);
        if writes {
            let frame = frame(writer_id(1), 4, &[0, 1, 0, 0]);
            message.extend_from_slice(&frame.bytes[HEADER_LEN..]);
        }
        participant
            .on_frame(late, &Frame { source: address(), traffic: Traffic::Meta, bytes: message.into() });
        assert_eq!(alive(&participant, reader), i64::from(writes));
        let mut valid = Vec::new();
        participant.take(late, reader, &Selection::ANY, |sample| valid.push(sample.info.valid_data));
        assert_eq!(valid, [true, writes], "3, and 4 or that nobody writes it");
    }
}

/// A lane of the other participant's writer, which the reader reads.
fn join(participant: &mut DomainParticipant, reader: ReaderIndex, of: u32) -> LaneWriter {
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(8, 0)), 8));
    let lane_writer = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    let lane = LaneReader::attach(lane, feedback, false);
    participant.add_lane(Time(0), reader, Guid::new(OTHER, writer_id(of)), lane).unwrap();
    lane_writer
}

/// It would look there only once it has taken all else, which never is while others keep its cache full.
#[test]
fn who_takes_one_by_one_takes_from_lanes_and_from_elsewhere_in_turn() {
    let write = |in_lane| NewChange {
        kind: ChangeKind::Alive,
        instance: InstanceHandle::NIL,
        source_timestamp: None,
        payload: Bytes::copy_from(&[0, 1, 0, 0]),
        number: None,
        in_lane,
        called: Time(0),
        was_left: false,
    };
    for is_local_there in [false, true] {
        let mut participant = participant();
        let mut qos = DataReaderQos::default().keep_all();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.resource_limits.max_samples = Some(4);
        let reader = read_with(&mut participant, qos);
        let greeted = participant.core().reader(reader).unwrap().guid.entity;
        for of in [1, 2] {
            participant.on_frame(Time(0), &publication_with(of.into(), of, EndpointQos::default_writer()));
            participant.on_frame(Time(0), &heartbeat(of, greeted, 0, 1));
        }
        let mut lane = join(&mut participant, reader, 2);
        for number in 1..=60 {
            participant.on_frame(Time(0), &frame(writer_id(1), number, &[0, 1, 0, 0]));
        }
        if is_local_there {
            let local = write_with(&mut participant, DataWriterQos::default().keep_all());
            (0..20).for_each(|_| _ = participant.write(Time(0), local, &mut write(false)).unwrap());
        }
        let lane_of = InstanceHandle::from(Guid::new(OTHER, writer_id(2)));
        let (mut last, mut taken) = (0, BTreeMap::new());
        for _ in 0..44 {
            while last < taken.get(&lane_of).unwrap_or(&0) + 8 {
                last += 1;
                lane.push(&cell::meta(SequenceNumber(last), &write(true)), &[0, 1, 0, 0]).unwrap();
            }
            let sample = participant.take_next(Time(0), reader).unwrap();
            *taken.entry(sample.info.publication_handle).or_insert(0) += 1;
        }
        // The first four are of the network, and the first one that the lane has was written before what waits there.
        let expected = if is_local_there { [14, 21] } else { [23, 21] };
        let network = taken[&InstanceHandle::from(Guid::new(OTHER, writer_id(1)))];
        assert_eq!([network, taken[&lane_of]], expected, "in a lane is what the second writes");
    }
}

fn alive(participant: &DomainParticipant, reader: ReaderIndex) -> i64 {
    participant.reader(reader).unwrap().liveliness_changed.alive_count.into()
}

/// Cyclone DDS says it by what the one writes alone.
#[test]
fn one_of_those_that_promise_by_participant_speaks_for_all() {
    for writes in [true, false] {
        let mut participant = participant();
        let mut qos = DataReaderQos::default().keep_all().exclusive();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let reader = read_with(&mut participant, qos);
        let by_participant = LivelinessKind::ManualByParticipant;
        for of in [1, 2] {
            participant.on_frame(Time(0), &promised(of.into(), of, 1, by_participant));
        }
        let greeted = participant.core().reader(reader).unwrap().guid.entity;
        participant.on_frame(Time(0), &heartbeat(1, greeted, 0, 1));
        participant.on_frame(Time(0), &frame(writer_id(1), 1, &[0, 1, 0, 0]));
        let mut now = Time(0);
        for number in 2..=30 {
            now = now + Duration::from_millis(100);
            let said = match writes {
                true => frame(writer_id(1), number, &[0, 1, 0, 0]),
                false => heartbeat_with(1, EntityId::UNKNOWN, 1, number as i32, true),
            };
            participant.on_frame(now, &said);
            participant.on_timeout(now, 100);
            // What it has to acknowledge leaves.
            while participant.poll_transmit(now, &mut Loopback::new(), TxClass::Discovery, 8).more {}
            assert_eq!(alive(&participant, reader), 2, "writes: {writes}, {number}");
        }
        now = now + LEASE;
        participant.on_timeout(now, 100);
        assert_eq!(alive(&participant, reader), 0);
        participant.on_frame(now, &frame(writer_id(2), 1, &[0, 1, 0, 0]));
        assert_eq!(alive(&participant, reader), 2, "both are back");
    }
}

#[test]
fn what_many_readers_lose_by_one_datagram_hides_nothing_else() {
    const READERS: usize = 40;
    const SAMPLES: i64 = 2_000;
    let mut participant = participant();
    let qos = || DataReaderQos::default().keep_all().exclusive();
    let readers: Vec<_> = (0..READERS).map(|_| read_with(&mut participant, qos())).collect();
    participant.on_frame(Time(0), &promised(1, 1, 1, LivelinessKind::ManualByTopic));
    while participant.on_timeout(Time(0), 1_000) > 0 {}
    participant.on_frame(Time(0), &frame(writer_id(1), 1, &[0, 1, 0, 0]));
    let late = Time(0) + LEASE;
    while participant.on_timeout(late, 1_000) > 0 {}
    assert_eq!(readers.iter().map(|reader| alive(&participant, *reader)).sum::<i64>(), 0);
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    for number in (1..=SAMPLES).map(|n| 1 + 2 * n) {
        let (reader_id, writer_id) = (EntityId::UNKNOWN, writer_id(1));
        let header = DataHeader { reader_id, writer_id, writer_sn: SequenceNumber(number) };
        header.write(&mut message, Endian::Little, &[], PayloadKind::Data, 4);
        message.extend_from_slice(&[0, 1, 0, 0]);
    }
    participant.on_frame(late, &Frame { source: address(), traffic: Traffic::Meta, bytes: message.into() });
    for reader in readers {
        assert_eq!(participant.side(reader, |side| side.sample_lost.total_count), Some(SAMPLES as u32));
        assert_eq!(alive(&participant, reader), 1);
    }
}
