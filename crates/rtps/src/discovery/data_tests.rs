//! Announcements there and back, and hostile ones.

use taut_base::{Duration, EntityId, Guid, GuidPrefix, Locator, LocatorKind, ProtocolVersion, Rng, VendorId};
use taut_qos::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, EndpointQos, History, Liveliness,
    LivelinessKind, OwnershipKind, PresentationAccessScopeKind, Reliability, ReliabilityKind,
    TypeConsistencyKind, partitions_match,
};
use taut_wire::{Endian, Out, ParameterListWriter, WireError, pid};

use super::parameters::read_list;
use super::{EndpointData, ParticipantData};

const PREFIX: GuidPrefix = GuidPrefix([3; 12]);
const CYCLONE: VendorId = VendorId([1, 16]);

fn udp(last: u8, port: u16) -> Locator {
    Locator::udp_v4([10, 0, 0, last].into(), port)
}

fn group(last: u8) -> Locator {
    Locator::udp_v4([239, 255, 0, last].into(), 7400)
}

fn writer_guid() -> Guid {
    Guid::new(PREFIX, EntityId::user(1, true, true))
}

fn reader_guid() -> Guid {
    Guid::new(PREFIX, EntityId::user(2, false, true))
}

fn participant() -> ParticipantData {
    ParticipantData {
        guid_prefix: PREFIX,
        protocol_version: ProtocolVersion { major: 2, minor: 3 },
        vendor_id: VendorId::FAST_DDS,
        domain_id: Some(5),
        domain_tag: "tag".into(),
        expects_inline_qos: true,
        metatraffic_unicast: vec![udp(1, 7410), udp(2, 7410)],
        metatraffic_multicast: vec![group(1)],
        default_unicast: vec![udp(1, 7411)],
        default_multicast: vec![group(2)],
        builtin_endpoints: 0xc3f,
        builtin_endpoint_qos: 1,
        lease_duration: Duration::from_millis(12_500),
        manual_liveliness_count: 7,
        says_nanoseconds: false,
        user_data: vec![1, 2, 3],
        entity_name: "name".into(),
        properties: vec![("a".into(), "bcd".into()), ("ef".into(), String::new())],
        too_long: 0,
    }
}

type Fill<'a> = &'a dyn Fn(&mut ParameterListWriter<'_>);

/// A payload of either byte order with what `fill` puts.
fn payload(endian: Endian, fill: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    let mut out = vec![0, if endian == Endian::Big { 2 } else { 3 }, 0, 0];
    let mut list = ParameterListWriter::new(&mut out, endian);
    fill(&mut list);
    list.finish();
    out
}

fn writer_payload(endian: Endian, fill: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    payload(endian, |list| {
        list.put_guid(pid::ENDPOINT_GUID, writer_guid());
        list.put_string(pid::TOPIC_NAME, "topic");
        list.put_string(pid::TYPE_NAME, "type");
        fill(list);
    })
}

fn reader_payload(fill: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    payload(Endian::Little, |list| {
        list.put_guid(pid::ENDPOINT_GUID, reader_guid());
        list.put_string(pid::TOPIC_NAME, "topic");
        list.put_string(pid::TYPE_NAME, "type");
        fill(list);
    })
}

#[test]
fn participant_round_trip() {
    for data in [participant(), ParticipantData { guid_prefix: PREFIX, ..ParticipantData::default() }] {
        let mut bytes = Vec::new();
        data.write(&mut bytes);
        assert_eq!(ParticipantData::parse(&bytes, CYCLONE), Ok(data));
    }
}

#[test]
fn big_endian_and_defaults() {
    let bytes = payload(Endian::Big, |list| {
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
        list.put_u32(pid::PARTICIPANT_BUILTIN_ENDPOINTS, 63);
    });
    let data = ParticipantData::parse(&bytes, CYCLONE).unwrap();
    assert_eq!((data.vendor_id, data.builtin_endpoints), (CYCLONE, 63));
    assert_eq!(data.lease_duration, Duration::from_secs(100));
    assert_eq!(data.domain_id, None);
    let bytes = writer_payload(Endian::Big, |list| {
        list.put_i32(pid::OWNERSHIP_STRENGTH.with_must_understand(), 9);
    });
    let data = EndpointData::parse(&bytes, true, CYCLONE).unwrap();
    assert_eq!(data.qos.ownership_strength, 9, "known with the must-understand bit, too");
    assert_eq!(data.qos.reliability.kind, ReliabilityKind::Reliable, "a writer's default");
    assert_eq!(data.topic_name, "topic");
    let bytes = reader_payload(|_| ());
    let data = EndpointData::parse(&bytes, false, CYCLONE).unwrap();
    assert_eq!(data.qos, EndpointQos::default_reader());
    assert_eq!(data.qos.reliability.kind, ReliabilityKind::BestEffort, "a reader's default");
}

/// dust_dds takes an infinite duration on the wire for another one than its own default, and matches nothing then.
#[test]
fn an_infinite_deadline_and_lease_do_not_travel() {
    let announced = |guid: Guid, qos: &EndpointQos| {
        let mut bytes = Vec::new();
        EndpointData::of(guid, "topic", "type", qos.clone()).write(&mut bytes);
        let named =
            |pid| read_list(&bytes).unwrap().into_iter().any(|parameter| parameter.unwrap().pid == pid);
        (named(pid::DEADLINE), named(pid::LIVELINESS))
    };
    for (guid, default) in
        [(writer_guid(), EndpointQos::default_writer()), (reader_guid(), EndpointQos::default_reader())]
    {
        assert_eq!(announced(guid, &default), (false, false));
        let mut qos = EndpointQos { deadline: Duration::from_secs(1), ..default.clone() };
        assert_eq!(announced(guid, &qos), (true, false));
        qos.liveliness.lease_duration = Duration::from_secs(1);
        assert_eq!(announced(guid, &qos), (true, true));
        qos.liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, ..default.liveliness };
        assert_eq!(announced(guid, &qos), (true, true));
    }
}

/// OpenDDS says of its endpoints seconds and nanoseconds, unless its participant says that it does not.
#[test]
fn durations_of_opendds_are_in_nanoseconds() {
    let bytes = writer_payload(Endian::Little, |list| {
        let mut put = |pid, before: &[i32], seconds, rest| {
            list.put(pid, |out| {
                before.iter().for_each(|number| out.put_i32(*number));
                out.put_i32(seconds);
                out.put_u32(rest);
            });
        };
        put(pid::LIFESPAN, &[], 0, 250_000_000);
        put(pid::DEADLINE, &[], i32::MAX, i32::MAX as u32);
        put(pid::LIVELINESS, &[0], 1, 999_999_999);
        put(pid::LATENCY_BUDGET, &[], 2, 0);
    });
    let read = |vendor_id, flags: u32| {
        let bytes_of_peer = payload(Endian::Little, |list| {
            list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
            list.put_u32(pid::vendor::OPENDDS_PARTICIPANT_FLAGS, flags);
        });
        let peer = ParticipantData::parse(&bytes_of_peer, vendor_id).unwrap();
        let qos = EndpointData::parse_of(&bytes, true, &peer).unwrap().qos;
        assert_eq!((qos.deadline, qos.latency_budget), (Duration::INFINITE, Duration::from_secs(2)));
        [qos.lifespan, qos.liveliness.lease_duration]
    };
    let in_nanoseconds = [Duration::from_millis(250), Duration(1_999_999_999)];
    let in_fractions = [Duration(58_207_661), Duration(1_232_830_643)];
    assert_eq!(read(VendorId::OPENDDS, 3), in_nanoseconds);
    assert_eq!(read(VendorId::OPENDDS, 11), in_fractions);
    assert_eq!(read(CYCLONE, 3), in_fractions, "it has no such flags");
}

fn full_qos(writer: bool) -> EndpointQos {
    let mut qos = if writer { EndpointQos::default_writer() } else { EndpointQos::default_reader() };
    qos.durability = DurabilityKind::TransientLocal;
    qos.deadline = Duration::from_millis(1_500);
    qos.latency_budget = Duration::from_micros(20);
    qos.liveliness =
        Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_secs(3) };
    qos.reliability = Reliability { max_blocking_time: Duration::from_millis(7), ..Reliability::BEST_EFFORT };
    qos.ownership = OwnershipKind::Exclusive;
    qos.destination_order = DestinationOrderKind::BySourceTimestamp;
    qos.representation = vec![DataRepresentationId::XCDR2, DataRepresentationId(-2)];
    qos.user_data = vec![1; 5];
    qos.presentation.access_scope = PresentationAccessScopeKind::Group;
    qos.presentation.ordered_access = true;
    qos.partition = vec!["a".into(), String::new(), "longer*".into()];
    qos.group_data = vec![2; 6];
    qos.topic_data = vec![3; 7];
    if writer {
        qos.durability_service.history = History::KeepLast(4);
        qos.durability_service.service_cleanup_delay = Duration::from_secs(1);
        qos.durability_service.resource_limits.max_instances = Some(9);
        qos.lifespan = Duration::from_secs(8);
        qos.ownership_strength = -3;
        qos.transport_priority = 11;
    } else {
        qos.time_based_filter = Duration::from_millis(2);
        qos.type_consistency.kind = TypeConsistencyKind::DisallowTypeCoercion;
        qos.type_consistency.ignore_member_names = true;
        qos.type_consistency.force_type_validation = true;
    }
    qos
}

#[test]
fn endpoint_round_trip() {
    for writer in [true, false] {
        let guid = if writer { writer_guid() } else { reader_guid() };
        let plain = EndpointQos {
            ..if writer { EndpointQos::default_writer() } else { EndpointQos::default_reader() }
        };
        let data = EndpointData {
            participant_guid: Some(Guid::new(PREFIX, EntityId::PARTICIPANT)),
            unicast_locators: vec![udp(1, 7411)],
            multicast_locators: vec![group(3)],
            expects_inline_qos: !writer,
            group_entity_id: Some(EntityId([0, 0, 1, 8])),
            type_max_size_serialized: Some(77),
            type_information: Some(vec![1, 2, 3, 4, 5, 6, 7, 8]),
            entity_name: "e".into(),
            ..EndpointData::of(guid, "topic", "module::type_", full_qos(writer))
        };
        for data in [data, EndpointData::of(guid, "t", "y", plain)] {
            let mut bytes = Vec::new();
            data.write(&mut bytes);
            assert_eq!(EndpointData::parse(&bytes, writer, CYCLONE).as_ref(), Ok(&data));
            assert_eq!(EndpointData::parse(&bytes, !writer, CYCLONE), Err(WireError::BadGuid));
        }
    }
}

#[test]
fn keys() {
    let participant = Guid::new(PREFIX, EntityId::PARTICIPANT);
    let mut bytes = Vec::new();
    ParticipantData::write_key(participant, &mut bytes);
    assert_eq!(ParticipantData::parse_key(&bytes), Ok(participant));
    assert_eq!(EndpointData::parse_key(&bytes), Err(WireError::MissingParameter));
    bytes.clear();
    EndpointData::write_key(reader_guid(), &mut bytes);
    assert_eq!(EndpointData::parse_key(&bytes), Ok(reader_guid()));
    let hash = payload(Endian::Big, |list| {
        list.put_guid(pid::KEY_HASH, participant);
    });
    assert_eq!(ParticipantData::parse_key(&hash), Ok(participant));
    assert_eq!(EndpointData::parse_key(&hash), Err(WireError::BadGuid));
    let plain = [&[0, 1, 0, 0][..], &writer_guid().to_bytes()].concat();
    assert_eq!(EndpointData::parse_key(&plain), Ok(writer_guid()));
    assert_eq!(EndpointData::parse_key(&[0, 7, 0, 0]), Err(WireError::BadEncapsulation));
    assert_eq!(EndpointData::parse_key(&[]), Err(WireError::Truncated));
}

#[test]
fn implausible_or_too_many_locators() {
    let bad = [
        Locator { kind: LocatorKind(-1), ..udp(1, 1) },
        Locator { kind: LocatorKind(16), ..udp(1, 1) },
        udp(1, 0),
        Locator::udp_v4([0, 0, 0, 0].into(), 1),
        Locator::udp_v4([255, 255, 255, 255].into(), 1),
        group(1),
    ];
    let bytes = writer_payload(Endian::Little, |list| {
        bad.iter().for_each(|locator| {
            list.put_locator(pid::UNICAST_LOCATOR, locator);
        });
        list.put_locator(pid::MULTICAST_LOCATOR, &udp(1, 1));
        (0..2_000).for_each(|n| {
            list.put_locator(pid::UNICAST_LOCATOR, &udp((n % 200) as u8, 9));
        });
    });
    let data = EndpointData::parse(&bytes, true, CYCLONE).unwrap();
    assert_eq!(data.unicast_locators, (0..16).map(|n| udp(n, 9)).collect::<Vec<_>>());
    assert!(data.multicast_locators.is_empty());
}

#[test]
fn a_reader_that_asks_for_the_highest_scope_that_is_offered_is_content_with_any() {
    let bytes = reader_payload(|list| {
        list.put(pid::PRESENTATION, |out| out.put_bytes(&[3, 0, 0, 0, 0, 1, 0, 0]));
    });
    let data = EndpointData::parse(&bytes, false, VendorId([1, 1])).unwrap();
    assert_eq!(data.qos.presentation.access_scope, PresentationAccessScopeKind::Instance);
    assert!(data.qos.presentation.ordered_access);
}

/// Its kinds are counted from 1 on.
#[test]
fn a_reader_of_opendds_with_a_type_consistency_of_its_own_is_known() {
    let bytes = reader_payload(|list| {
        list.put(pid::TYPE_CONSISTENCY_ENFORCEMENT, |out| out.put_bytes(&[2, 0, 1, 1, 1, 0, 0, 0]));
    });
    let rule = EndpointData::parse(&bytes, false, VendorId::OPENDDS).unwrap().qos.type_consistency;
    assert_eq!(rule.kind, TypeConsistencyKind::AllowTypeCoercion);
    assert!(rule.ignore_member_names);
}

#[test]
fn values_that_cannot_be() {
    let long = "x".repeat(257);
    let refused: [(WireError, Fill<'_>); 13] = [
        (WireError::BadDuration, &|l| {
            l.put(pid::DEADLINE, |o| o.put_u64(u64::MAX));
        }),
        (WireError::BadParameter, &|l| {
            l.put_i32(pid::DURABILITY, 4);
        }),
        (WireError::BadParameter, &|l| {
            l.put_i32(pid::OWNERSHIP, -1);
        }),
        (WireError::BadParameter, &|l| {
            l.put(pid::RELIABILITY, |o| o.put_bytes(&[0; 12]));
        }),
        (WireError::Truncated, &|l| {
            l.put_i32(pid::RELIABILITY, 1);
        }),
        (WireError::LimitExceeded, &|l| {
            l.put_string(pid::TOPIC_NAME, &long);
        }),
        (WireError::BadString, &|l| {
            l.put(pid::TYPE_NAME, |o| o.put_octets(&[b'a', 0, b'b', 0]));
        }),
        (WireError::BadString, &|l| {
            l.put(pid::TYPE_NAME, |o| o.put_octets(&[0xff, 0]));
        }),
        (WireError::BadString, &|l| {
            l.put(pid::TYPE_NAME, |o| o.put_octets(b"ab"));
        }),
        (WireError::Truncated, &|l| {
            l.put_u32(pid::TOPIC_NAME, 1 << 31);
        }),
        (WireError::BadCount, &|l| {
            l.put_u32(pid::PARTITION, u32::MAX);
        }),
        (WireError::BadCount, &|l| {
            l.put_u32(pid::DATA_REPRESENTATION, u32::MAX);
        }),
        (WireError::Truncated, &|l| {
            l.put_u32(pid::USER_DATA, u32::MAX);
        }),
    ];
    for (n, (error, fill)) in refused.iter().enumerate() {
        for endian in [Endian::Big, Endian::Little] {
            let bytes = writer_payload(endian, |list| fill(list));
            assert_eq!(EndpointData::parse(&bytes, true, CYCLONE), Err(*error), "line {n}");
        }
    }
    let participant = |fill: Fill<'_>| {
        let bytes = payload(Endian::Little, |list| {
            list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
            fill(list);
        });
        ParticipantData::parse(&bytes, CYCLONE)
    };
    let lease = |seconds: i32| {
        participant(&|list| {
            list.put(pid::PARTICIPANT_LEASE_DURATION, |out| {
                out.put_i32(seconds);
                out.put_u32(u32::MAX);
            });
        })
        .map(|data| data.lease_duration)
    };
    assert_eq!(lease(-1), Err(WireError::BadDuration));
    assert_eq!(lease(0), Ok(Duration(999_999_999)));
    assert_eq!(lease(i32::MAX), Ok(Duration::INFINITE));
    let properties = participant(&|list| {
        list.put_u32(pid::PROPERTY_LIST, u32::MAX);
    });
    assert_eq!(properties, Err(WireError::BadCount));
    let many = participant(&|list| {
        list.put(pid::PROPERTY_LIST, |out| {
            out.put_count(1_000);
            (0..2_000).for_each(|_| out.put_u32(0));
        });
    });
    assert_eq!(many.map(|data| data.properties.len()), Ok(64));
}

#[test]
fn guids_vendors_and_unknown_parameters() {
    let wrong = payload(Endian::Little, |list| {
        list.put_guid(pid::PARTICIPANT_GUID, writer_guid());
    });
    assert_eq!(ParticipantData::parse(&wrong, CYCLONE), Err(WireError::BadGuid));
    assert_eq!(
        ParticipantData::parse(&payload(Endian::Big, |_| ()), CYCLONE),
        Err(WireError::MissingParameter)
    );
    let vendor = writer_payload(Endian::Little, |list| {
        list.put_boolean(pid::vendor::DISABLE_POSITIVE_ACKS, true);
        list.put_u32(taut_wire::ParameterId(0x2abc), 1);
    });
    let heard = |from| EndpointData::parse(&vendor, true, from).map(|data| data.disable_positive_acks);
    assert_eq!((heard(VendorId::FAST_DDS), heard(CYCLONE)), (Ok(true), Ok(false)));
    for unknown in [0x4abc, 0xcabc] {
        let bytes = writer_payload(Endian::Little, |list| {
            list.put_u32(taut_wire::ParameterId(unknown), 1);
        });
        assert_eq!(EndpointData::parse(&bytes, true, VendorId::FAST_DDS), Err(WireError::NotUnderstood));
    }
}

#[test]
fn large_user_data_travels_whole() {
    let mut data = participant();
    data.user_data = vec![9; taut_qos::MAX_OPAQUE_DATA];
    let mut bytes = Vec::new();
    data.write(&mut bytes);
    assert_eq!(ParticipantData::parse(&bytes, CYCLONE), Ok(data));
}

/// The most that a publisher may have: see `taut_qos`.
#[test]
fn many_partitions_travel_whole() {
    let mut qos = full_qos(true);
    let check = |count: usize| {
        let partition: Vec<String> = (0..count).map(|n| format!("{n:0256}")).collect();
        taut_qos::PublisherQos { partition: partition.clone(), ..Default::default() }
            .check()
            .map(|()| partition)
    };
    qos.partition = check(227).unwrap();
    let data = EndpointData::of(writer_guid(), "t", "y", qos);
    let mut bytes = Vec::new();
    data.write(&mut bytes);
    assert_eq!(EndpointData::parse(&bytes, true, CYCLONE).unwrap().qos.partition, data.qos.partition);
    assert!(bytes.len() <= crate::limits::FRAGMENT_SIZE, "in one piece: {}", bytes.len());
    assert!(check(228).is_err(), "more do not");
}

#[test]
fn damage_does_not_panic() {
    let mut announcements = [Vec::new(), Vec::new(), Vec::new()];
    participant().write(&mut announcements[0]);
    EndpointData::of(writer_guid(), "t", "y", full_qos(true)).write(&mut announcements[1]);
    EndpointData::of(reader_guid(), "t", "y", full_qos(false)).write(&mut announcements[2]);
    let read = |bytes: &[u8]| {
        let _ = ParticipantData::parse(bytes, VendorId::FAST_DDS);
        let _ = EndpointData::parse(bytes, true, VendorId::FAST_DDS);
        let _ = EndpointData::parse(bytes, false, VendorId::FAST_DDS);
        let _ = ParticipantData::parse_key(bytes);
    };
    for bytes in &mut announcements {
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            read(bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        (0..bytes.len()).for_each(|length| read(&bytes[..length]));
    }
    for seed in 0..5_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = announcements[rng.below(3) as usize].clone();
        for _ in 0..1 + rng.below(6) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, rng.next_u64() as u8][rng.below(6) as usize];
        }
        read(&bytes);
    }
}

/// Other vendors announce the bytes that the application has given them, in whatever character set that writes.
#[test]
fn names_for_people_may_be_in_any_character_set() {
    let latin = |out: &mut Out<'_>| out.put_octets(b"Pr\xfcfstand\0");
    let participant = payload(Endian::Little, |list| {
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
        list.put(pid::ENTITY_NAME, latin);
        list.put(pid::PROPERTY_LIST, |out| {
            out.put_u32(1);
            out.put_string("place");
            out.align(4);
            latin(out);
        });
    });
    let data = ParticipantData::parse(&participant, CYCLONE).expect("it is found");
    assert_eq!(data.entity_name, "Pr\u{fffd}fstand");
    assert_eq!(data.properties, [("place".to_owned(), "Pr\u{fffd}fstand".to_owned())]);
    let writer = writer_payload(Endian::Little, |list| {
        list.put(pid::ENTITY_NAME, latin);
    });
    let data = EndpointData::parse(&writer, true, CYCLONE).expect("it is found");
    assert_eq!(data.entity_name, "Pr\u{fffd}fstand");
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let name = format!("{}\u{20ac}\u{20ac}", "n".repeat(254));
    let participant = payload(Endian::Little, |list| {
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
        list.put_string(pid::ENTITY_NAME, &name);
    });
    let data = ParticipantData::parse(&participant, CYCLONE).expect("it is found");
    assert_eq!(data.entity_name, "n".repeat(254));
}

/// What nothing is matched by may be as long as a peer likes.
#[test]
fn what_is_too_long_keeps_nobody_out() {
    let (name, value) = ("x".repeat(257), "y".repeat(4_097));
    let participant = payload(Endian::Little, |list| {
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(PREFIX, EntityId::PARTICIPANT));
        list.put_string(pid::ENTITY_NAME, &name);
        list.put(pid::PROPERTY_LIST, |out| {
            out.put_count(3);
            for text in [&name, "b", "c", &value, "e", "f"] {
                out.align(4);
                out.put_string(text);
            }
        });
    });
    let data = ParticipantData::parse(&participant, CYCLONE).expect("it is found");
    assert_eq!((&data.entity_name[..], data.too_long), (&name[..256], 3));
    assert_eq!(data.properties, [("e".to_owned(), "f".to_owned())]);
    let writer = writer_payload(Endian::Little, |list| {
        list.put_string(pid::ENTITY_NAME, &name);
        list.put(pid::PARTITION, |out| {
            out.put_count(1);
            out.put_string(&name);
        });
    });
    let data = EndpointData::parse(&writer, true, CYCLONE).expect("it is found");
    assert_eq!((&data.entity_name[..], data.too_long), (&name[..256], 1));
    assert!(!partitions_match(&data.qos.partition, &[]), "it is in a partition");
}
