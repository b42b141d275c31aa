//! What the message receiver makes of who a message says it is from.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use taut_base::{Duration, EntityId, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, Time, VendorId};
use taut_mem::Bytes;
use taut_port::{Frame, Traffic};
use taut_rtps::discovery::ParticipantData;
use taut_rtps::{Addresses, Config, MulticastChoice, Offer, Participant, ReaderIndex, Sink};
use taut_wire::{DataHeader, Endian, InfoSource, PayloadKind, write_info_dst, write_message_header};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const OTHER: GuidPrefix = GuidPrefix([2; 12]);
const ADDRESS: Locator = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);

struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

fn participant() -> Participant {
    Participant::new(Config {
        guid_prefix: OWN,
        domain_id: 0,
        entity_name: String::new(),
        user_data: Vec::new(),
        properties: Vec::new(),
        lease_duration: Duration::from_secs(10),
        announcement_period: Duration::from_secs(3),
        addresses: Addresses {
            metatraffic_unicast: vec![ADDRESS],
            default_unicast: vec![ADDRESS],
            ..Addresses::default()
        },
        initial_peers: Vec::new(),
        multicast: MulticastChoice::Never,
        anatomy: None,
    })
}

/// An announcement of another participant, which names these addresses.
fn other_at(addresses: &[Locator]) -> Frame {
    announcement_at(OTHER, OTHER, addresses)
}

/// A message from `header` in which, by INFO_SRC, `source` announces itself to this participant.
fn announcement(header: GuidPrefix, source: GuidPrefix) -> Frame {
    announcement_at(header, source, &[ADDRESS])
}

fn announcement_at(header: GuidPrefix, source: GuidPrefix, addresses: &[Locator]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, header);
    let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
    InfoSource { version, vendor, prefix: source }.write(&mut message, Endian::Little);
    write_info_dst(&mut message, Endian::Little, OWN);
    let mut payload = Vec::new();
    let data = ParticipantData {
        guid_prefix: source,
        metatraffic_unicast: addresses.to_vec(),
        default_unicast: addresses.to_vec(),
        ..ParticipantData::default()
    };
    data.write(&mut payload);
    let header = DataHeader {
        reader_id: EntityId::SPDP_READER,
        writer_id: EntityId::SPDP_WRITER,
        writer_sn: SequenceNumber::FIRST,
    };
    header.write(&mut message, Endian::Little, &[], PayloadKind::Data, payload.len());
    message.extend_from_slice(&payload);
    Frame { source: ADDRESS, traffic: Traffic::Meta, bytes: Bytes::from(message) }
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
