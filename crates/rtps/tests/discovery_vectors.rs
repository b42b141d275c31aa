//! Bytes that other vendors sent, read to the end. `vectors/README.md` says where they are from.

use taut_base::{Duration, EntityId, Guid, VendorId};
use taut_qos::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, LivelinessKind, OwnershipKind,
    PresentationAccessScopeKind, ReliabilityKind,
};
use taut_rtps::discovery::{EndpointData, ParticipantData};
use taut_wire::{
    Data, EncapsulationId, Header, HeaderExtension, InlineQos, Payload, StatusInfo, Submessage, Submessages,
};

macro_rules! vector {
    ($name:literal) => {
        unhex(include_str!(concat!("vectors/", $name, ".hex")))
    };
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn all() -> [Vec<u8>; 15] {
    [
        vector!("cyclone_participant"),
        vector!("cyclone_participant_gone"),
        vector!("cyclone_publication"),
        vector!("cyclone_publication_gone"),
        vector!("cyclone_subscription"),
        vector!("fastdds_data"),
        vector!("fastdds_dispose"),
        vector!("fastdds_gap"),
        vector!("fastdds_greeting"),
        vector!("fastdds_participant"),
        vector!("fastdds_participant_gone"),
        vector!("fastdds_publication"),
        vector!("fastdds_publication_gone"),
        vector!("fastdds_subscription"),
        vector!("fastdds_unregister"),
    ]
}

fn submessages(message: &[u8]) -> (Header, Vec<Submessage<'_>>) {
    let (header, rest) = Header::parse(message).unwrap();
    (header, Submessages::new(rest).collect::<Result<_, _>>().unwrap())
}

/// The DATA of a message that is from `writer`.
fn data_of(message: &[u8], writer: EntityId) -> (Header, Data<'_>) {
    let (header, list) = submessages(message);
    let found = list.iter().find_map(|submessage| match submessage {
        Submessage::Data(data) if data.writer_id == writer => Some(*data),
        _ => None,
    });
    (header, found.unwrap())
}

fn payload_of(message: &[u8], writer: EntityId) -> (Header, &[u8]) {
    match data_of(message, writer) {
        (header, Data { payload: Payload::Data(payload) | Payload::Key(payload), .. }) => (header, payload),
        (_, data) => panic!("{data:?}"),
    }
}

fn endpoint(message: &[u8], writer: bool) -> EndpointData {
    let by = if writer { EntityId::SEDP_PUBLICATIONS_WRITER } else { EntityId::SEDP_SUBSCRIPTIONS_WRITER };
    let (header, payload) = payload_of(message, by);
    let data = EndpointData::parse(payload, writer, header.vendor).unwrap();
    assert_eq!(data.guid.prefix, header.prefix);
    assert_eq!(data.topic_name, "VectorTopic");
    data
}

#[test]
fn every_message_reads_to_its_end() {
    for message in all() {
        let (_, list) = submessages(&message);
        assert!(list.len() >= 2);
        assert_eq!(HeaderExtension::verify(&message), Ok(None));
    }
}

#[test]
fn cyclone_participant() {
    let message = vector!("cyclone_participant");
    let (header, payload) = payload_of(&message, EntityId::SPDP_WRITER);
    let data = ParticipantData::parse(payload, header.vendor).unwrap();
    assert_eq!((data.guid_prefix, data.vendor_id), (header.prefix, VendorId([1, 16])));
    assert_eq!((data.protocol_version.major, data.protocol_version.minor), (2, 1));
    assert_eq!((data.domain_id, data.domain_tag.as_str()), (Some(5), ""));
    assert_eq!(data.builtin_endpoints, 0xfc3f);
    assert_eq!(data.lease_duration, Duration::from_secs(10));
    assert_eq!((data.entity_name.as_str(), &data.user_data[..]), ("writer side", &b"abc"[..]));
    let names: Vec<_> = data.properties.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["__ProcessName", "__Pid", "__Hostname"]);
    let text = |list: &[taut_base::Locator]| list.iter().map(|l| l.to_string()).collect::<Vec<_>>();
    assert_eq!(text(&data.metatraffic_unicast), ["udp/127.0.0.1:44497"]);
    assert_eq!(text(&data.metatraffic_multicast), ["udp/239.255.0.1:8650"]);
    assert_eq!(text(&data.default_multicast), ["udp/239.255.0.1:8651"]);
}

#[test]
fn fastdds_participant() {
    let message = vector!("fastdds_participant");
    let (header, payload) = payload_of(&message, EntityId::SPDP_WRITER);
    let data = ParticipantData::parse(payload, header.vendor).unwrap();
    assert_eq!((data.guid_prefix, data.vendor_id), (header.prefix, VendorId([1, 15])));
    assert_eq!(data.lease_duration, Duration::from_secs(20));
    assert_eq!(data.user_data, [1, 2, 3]);
    assert!(data.properties.contains(&("vector.key".into(), "value".into())));
    assert!(!data.metatraffic_unicast.is_empty() && !data.default_unicast.is_empty());
    assert_eq!(data.builtin_endpoints & 0xc3f, 0xc3f);
}

#[test]
fn cyclone_publication() {
    let data = endpoint(&vector!("cyclone_publication"), true);
    let qos = &data.qos;
    assert_eq!(data.type_name, "Vec");
    assert!(data.guid.entity.is_keyed() && data.type_information.is_some());
    assert_eq!(qos.durability, DurabilityKind::TransientLocal);
    assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(qos.reliability.max_blocking_time, Duration::from_millis(250));
    assert_eq!(qos.deadline, Duration::from_millis(2_500));
    assert_eq!(qos.latency_budget, Duration::from_millis(1));
    assert_eq!(qos.lifespan, Duration::from_secs(7));
    assert_eq!(qos.liveliness.kind, LivelinessKind::ManualByTopic);
    assert_eq!(qos.liveliness.lease_duration, Duration::from_secs(3));
    assert_eq!((qos.ownership, qos.ownership_strength), (OwnershipKind::Exclusive, 42));
    assert_eq!(qos.destination_order, DestinationOrderKind::BySourceTimestamp);
    assert_eq!(qos.transport_priority, 7);
    assert_eq!(qos.presentation.access_scope, PresentationAccessScopeKind::Topic);
    assert!(qos.presentation.ordered_access && !qos.presentation.coherent_access);
    assert_eq!(qos.partition, ["one", "two*"]);
    assert_eq!((&qos.user_data[..], &qos.group_data[..]), (&[4, 5, 6, 7, 8][..], &[9, 8][..]));
    assert_eq!(qos.representation, [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2]);
}

#[test]
fn cyclone_subscription() {
    let data = endpoint(&vector!("cyclone_subscription"), false);
    assert_eq!(data.qos.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(data.qos.durability, DurabilityKind::Volatile);
    assert_eq!(data.qos.time_based_filter, Duration::from_millis(10));
    assert_eq!(data.qos.partition, ["one"]);
    assert_eq!(data.qos.deadline, Duration::INFINITE);
}

#[test]
fn fastdds_publication() {
    let data = endpoint(&vector!("fastdds_publication"), true);
    let qos = &data.qos;
    assert_eq!((data.type_name.as_str(), data.unicast_locators.len()), ("Vector", 1));
    assert_eq!(qos.durability, DurabilityKind::TransientLocal);
    assert_eq!(qos.deadline, Duration::from_millis(2_500));
    assert_eq!(qos.lifespan, Duration::from_secs(7));
    assert_eq!(qos.liveliness.kind, LivelinessKind::ManualByTopic);
    assert_eq!((qos.ownership, qos.ownership_strength), (OwnershipKind::Exclusive, 42));
    assert_eq!(qos.partition, ["one", "two*"]);
    assert_eq!((&qos.user_data[..], &qos.group_data[..]), (&[4, 5, 6, 7, 8][..], &[9, 8][..]));
    assert!(!data.disable_positive_acks);
}

#[test]
fn fastdds_subscription() {
    let data = endpoint(&vector!("fastdds_subscription"), false);
    assert_eq!(data.qos.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(data.qos.partition, ["one"]);
    assert_eq!(data.qos.type_consistency, taut_qos::TypeConsistencyEnforcement::default());
    assert!(!data.expects_inline_qos);
}

#[test]
fn disposals() {
    let gone = StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED);
    for (message, writer) in [
        (vector!("cyclone_participant_gone"), EntityId::SPDP_WRITER),
        (vector!("cyclone_publication_gone"), EntityId::SEDP_PUBLICATIONS_WRITER),
    ] {
        let (header, data) = data_of(&message, writer);
        let qos = InlineQos::parse(data.inline_qos.unwrap()).unwrap();
        assert_eq!(qos.status_info, gone);
        let Payload::Key(key) = data.payload else { panic!("{data:?}") };
        let guid = if writer == EntityId::SPDP_WRITER {
            ParticipantData::parse_key(key)
        } else {
            EndpointData::parse_key(key)
        };
        assert_eq!(guid.unwrap().prefix, header.prefix);
    }
    for (message, writer, kind) in [
        (vector!("fastdds_participant_gone"), EntityId::SPDP_WRITER, 0xc1),
        (vector!("fastdds_publication_gone"), EntityId::SEDP_PUBLICATIONS_WRITER, 0x02),
    ] {
        let (header, data) = data_of(&message, writer);
        let qos = InlineQos::parse(data.inline_qos.unwrap()).unwrap();
        assert_eq!(qos.status_info, gone);
        let guid = Guid::from_bytes(qos.key_hash.unwrap().0);
        assert_eq!((guid.prefix, guid.entity.kind()), (header.prefix, kind));
    }
}

#[test]
fn fastdds_user_data_and_repair() {
    let writer = EntityId([0, 0, 1, 2]);
    let message = vector!("fastdds_data");
    let (_, payload) = payload_of(&message, writer);
    assert_eq!(EncapsulationId::parse(payload), Ok((EncapsulationId::CDR_LE, &[0; 4][..])));
    for (message, status) in [
        (vector!("fastdds_dispose"), StatusInfo::DISPOSED),
        (vector!("fastdds_unregister"), StatusInfo::DISPOSED.with(StatusInfo::UNREGISTERED)),
    ] {
        let (_, data) = data_of(&message, writer);
        let qos = InlineQos::parse(data.inline_qos.unwrap()).unwrap();
        assert_eq!((data.payload, qos.status_info), (Payload::None, status));
    }
    let message = vector!("fastdds_gap");
    let (_, list) = submessages(&message);
    assert!(list.iter().any(|submessage| matches!(submessage, Submessage::Gap(_))));
    // The greeting has a base of 0.
    let message = vector!("fastdds_greeting");
    let (_, list) = submessages(&message);
    let Some(Submessage::AckNack(greeting)) = list.get(1) else { panic!("{list:?}") };
    assert!(greeting.reader_sn_state.is_empty() && greeting.reader_sn_state.base().0 == 1);
}

#[test]
fn single_bits_and_cuts_of_every_message() {
    let read = |message: &[u8]| {
        let Ok((header, rest)) = Header::parse(message) else { return };
        for submessage in Submessages::new(rest).map_while(Result::ok) {
            let Submessage::Data(data) = submessage else { continue };
            let _ = data.inline_qos.map(InlineQos::parse);
            if let Payload::Data(payload) | Payload::Key(payload) = data.payload {
                let _ = ParticipantData::parse(payload, header.vendor);
                let _ = EndpointData::parse(payload, true, header.vendor);
                let _ = EndpointData::parse(payload, false, header.vendor);
            }
        }
    };
    for mut message in all() {
        for bit in 0..message.len() * 8 {
            message[bit / 8] ^= 1 << (bit % 8);
            read(&message);
            message[bit / 8] ^= 1 << (bit % 8);
        }
        (0..message.len()).for_each(|length| read(&message[..length]));
    }
}
