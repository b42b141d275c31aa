//! What vendors say that no other one does: parameters, locators, submessages and lists of their own.

use taut_base::{EntityId, Guid, Locator, LocatorKind, SequenceNumber, Time, VendorId};
use taut_qos::{DataRepresentationId, EndpointQos, ReliabilityKind};
use taut_rtps::{Event, Participant, TxClass};
use taut_wire::{
    AckNack, DataHeader, Endian, Heartbeat, ParameterId, ParameterListWriter, PayloadKind, Submessage,
    Submessages, pid, write_info_dst, write_info_ts, write_message_header,
};

use crate::common::{ADDRESS, Heard, OTHER, OWN, WRITER, endpoint_of, events, frame, participant, reader_of};

/// A parameter list with its encapsulation header.
fn list(fill: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    let mut bytes = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut bytes, Endian::Little);
    fill(&mut list);
    list.finish();
    bytes
}

/// A message of the other participant, which is of that vendor.
struct FromVendor(Vec<u8>);

impl FromVendor {
    fn new(VendorId(vendor): VendorId) -> FromVendor {
        let mut message = Vec::new();
        write_message_header(&mut message, OTHER);
        message[6..8].copy_from_slice(&vendor);
        write_info_ts(&mut message, Endian::Little, None);
        FromVendor(message)
    }

    /// A submessage that only this vendor knows.
    fn own(mut self, kind: u8, body: &[u8]) -> FromVendor {
        self.0.extend([kind, 1, body.len() as u8, 0]);
        self.0.extend_from_slice(body);
        self
    }

    fn data(mut self, writer_id: EntityId, number: i64, kind: PayloadKind, payload: &[u8]) -> FromVendor {
        let header =
            DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
        header.write(&mut self.0, Endian::Little, &[], kind, payload.len());
        self.0.extend_from_slice(payload);
        self
    }

    fn hear(self, participant: &mut Participant, sink: &mut Heard) {
        participant.on_frame(Time(0), &frame(self.0), sink);
    }
}

const SHARED_MEMORY: Locator = Locator { kind: LocatorKind(0x0100_0000), port: 7411, address: [7; 16] };
const WIDE_AREA: Locator = Locator { kind: LocatorKind(0x0100_0001), port: 7411, address: [9; 16] };

#[test]
fn connext_is_heard() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let reader = reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    let announced = list(|list| {
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(OTHER, EntityId::PARTICIPANT));
        list.put_u32(pid::BUILTIN_ENDPOINT_SET, 0xc3f);
        list.put_bytes(pid::PROTOCOL_VERSION, &[2, 3, 0, 0]);
        list.put_bytes(pid::VENDOR_ID, &[1, 1, 0, 0]);
        for locator in [SHARED_MEMORY, WIDE_AREA, ADDRESS] {
            list.put_locator(pid::METATRAFFIC_UNICAST_LOCATOR, &locator);
            list.put_locator(pid::DEFAULT_UNICAST_LOCATOR, &locator);
        }
        for own in [0x8000, 0x8003, 0x800f, 0x8010, 0x8011, 0x8016, 0x8017, 0x8018] {
            list.put_bytes(ParameterId(own), &[1; 12]);
        }
    });
    FromVendor::new(VendorId::CONNEXT)
        .own(0x80, &[3; 8])
        .data(EntityId::SPDP_WRITER, 1, PayloadKind::Data, &announced)
        .hear(&mut participant, &mut sink);
    let peer = participant.database().peer(OTHER).unwrap();
    assert_eq!((peer.data.vendor_id, peer.data.domain_id), (VendorId::CONNEXT, None));
    assert_eq!((&peer.metatraffic, &peer.unicast), (&vec![ADDRESS], &vec![ADDRESS]));
    let publication = list(|list| {
        list.put_guid(pid::ENDPOINT_GUID, Guid::new(OTHER, WRITER));
        list.put_string(pid::TOPIC_NAME, "Topic");
        list.put_string(pid::TYPE_NAME, "Type");
        list.put_locator(pid::UNICAST_LOCATOR, &SHARED_MEMORY);
        // XCDR1, and behind it what is compressed how.
        list.put_bytes(pid::DATA_REPRESENTATION, &[1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
        list.put_bytes(pid::TYPE_OBJECT_V1, &[5; 64]);
        for own in [0x8002, 0x8009, 0x8013, 0x8015, 0x8021] {
            list.put_bytes(ParameterId(own), &[1; 16]);
        }
    });
    let sample = [0, 1, 0, 0, 1, 2, 3, 4];
    FromVendor::new(VendorId::CONNEXT)
        .data(EntityId::SEDP_PUBLICATIONS_WRITER, 1, PayloadKind::Data, &publication)
        .hear(&mut participant, &mut sink);
    FromVendor::new(VendorId::CONNEXT)
        // A heartbeat of its sessions, and one of its batches.
        .own(0x87, &[1; 28])
        .own(0x84, &[1; 32])
        .data(WRITER, 1, PayloadKind::Data, &sample)
        .hear(&mut participant, &mut sink);
    assert_eq!(sink.0, [(reader, 1)]);
    assert_eq!(participant.counters().unknown_submessages, 3);
    let lost = |event: &Event| matches!(event, Event::SampleLost { .. });
    assert!(!events(&mut participant).any(|event| lost(&event)));
}

/// What a reader of `WRITER` answers now.
fn answers(participant: &mut Participant) -> Vec<AckNack> {
    let mut port = taut_port::Loopback::new();
    for class in [TxClass::Repair, TxClass::Discovery] {
        participant.poll_transmit(Time(0), &mut port, class, usize::MAX);
    }
    let mut found = Vec::new();
    while let Some((_, datagram)) = port.take() {
        found.extend(Submessages::new(&datagram[20..]).filter_map(|submessage| match submessage {
            Ok(Submessage::AckNack(acknack)) if acknack.writer_id == WRITER => Some(acknack),
            _ => None,
        }));
    }
    found
}

/// OpenDDS names addresses that nobody uses, sends endpoints its own way, and nothing until its heartbeat for one reader is
/// acknowledged by an ACKNACK that is final.
#[test]
fn opendds_is_heard() {
    let (mut participant, mut sink) = (participant(), Heard(Vec::new()));
    let qos = EndpointQos {
        representation: vec![DataRepresentationId::XCDR1, DataRepresentationId::XCDR2],
        ..EndpointQos::default_reader()
    };
    let endpoint = endpoint_of("Topic", qos, ReliabilityKind::Reliable);
    let reader = participant.create_reader(Time(0), endpoint, &mut sink);
    let unused = Locator::udp_v4([127, 0, 0, 1].into(), 12_345);
    let announced = list(|list| {
        list.put_bytes(pid::USER_DATA, &[0; 4]);
        list.put_u32(pid::BUILTIN_ENDPOINT_QOS, 0);
        list.put_u32(pid::DOMAIN_ID, 0);
        list.put_bytes(pid::PROTOCOL_VERSION, &[2, 4, 0, 0]);
        list.put_guid(pid::PARTICIPANT_GUID, Guid::new(OTHER, EntityId::PARTICIPANT));
        list.put_bytes(pid::VENDOR_ID, &[1, 3, 0, 0]);
        list.put_u32(pid::PARTICIPANT_BUILTIN_ENDPOINTS, 0xfc3f);
        list.put_u32(pid::BUILTIN_ENDPOINT_SET, 0xfc3f);
        list.put_locator(pid::METATRAFFIC_UNICAST_LOCATOR, &ADDRESS);
        list.put_locator(pid::DEFAULT_UNICAST_LOCATOR, &unused);
        list.put_locator(pid::DEFAULT_MULTICAST_LOCATOR, &unused);
        list.put_i32(pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT, 0);
        list.put_u32(ParameterId(0xb005), 3);
        list.put_bytes(pid::PARTICIPANT_LEASE_DURATION, &[44, 1, 0, 0, 0, 0, 0, 0]);
    });
    FromVendor::new(VendorId::OPENDDS)
        .own(0xb1, &[1, 0, 0, 0])
        .data(EntityId::SPDP_WRITER, 1, PayloadKind::Data, &announced)
        .hear(&mut participant, &mut sink);
    assert_eq!(participant.database().peer(OTHER).unwrap().data.default_multicast, []);
    let publication = list(|list| {
        list.put_string(pid::TOPIC_NAME, "Topic");
        list.put_string(pid::TYPE_NAME, "Type");
        list.put_bytes(pid::TYPE_INFORMATION, &[4; 88]);
        list.put_bytes(pid::RELIABILITY, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 225, 245, 5]);
        // XCDR2 alone, its default.
        list.put_bytes(pid::DATA_REPRESENTATION, &[1, 0, 0, 0, 2, 0, 0, 0]);
        list.put_guid(pid::ENDPOINT_GUID, Guid::new(OTHER, WRITER));
        list.put_locator(pid::UNICAST_LOCATOR, &ADDRESS);
    });
    FromVendor::new(VendorId::OPENDDS)
        .data(EntityId::SEDP_PUBLICATIONS_WRITER, 1, PayloadKind::Data, &publication)
        .hear(&mut participant, &mut sink);
    answers(&mut participant);
    let mut message = FromVendor::new(VendorId::OPENDDS);
    write_info_dst(&mut message.0, Endian::Little, OWN);
    let heartbeat = Heartbeat {
        reader_id: participant.reader(reader).unwrap().guid.entity,
        writer_id: WRITER,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(0),
        count: 1,
        final_flag: false,
        liveliness_flag: false,
        group_info: None,
    };
    heartbeat.write(&mut message.0, Endian::Little);
    message.hear(&mut participant, &mut sink);
    let said: Vec<_> = answers(&mut participant)
        .iter()
        .map(|said| {
            (said.reader_sn_state.base(), said.reader_sn_state.is_empty(), said.final_flag, said.count > 0)
        })
        .collect();
    assert_eq!(said, [(SequenceNumber(1), true, true, true)]);
    let sample = [0, 7, 0, 0, 1, 2, 3, 4];
    FromVendor::new(VendorId::OPENDDS)
        .data(WRITER, 1, PayloadKind::Key, &sample)
        .data(WRITER, 2, PayloadKind::Data, &sample)
        .hear(&mut participant, &mut sink);
    assert_eq!(sink.0, [(reader, 2)]);
}
