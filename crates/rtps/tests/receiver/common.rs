//! A participant, the messages by which another one talks to it, and what becomes of what it delivers.

use std::net::Ipv4Addr;

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, ProtocolVersion, SequenceNumber, Time,
    VendorId,
};
use taut_mem::Bytes;
use taut_port::{Frame, Traffic};
use taut_qos::{EndpointQos, History, ReliabilityKind};
use taut_rtps::discovery::{EndpointData, ParticipantData, builtin_endpoint};
use taut_rtps::{
    CacheChange, ChangeKind, Config, EndpointConfig, Event, Offer, Participant, ReaderIndex, Sink,
};
use taut_wire::{
    DataFragHeader, DataHeader, Endian, Heartbeat, InfoSource, InlineQos, ParameterListWriter, PayloadKind,
    pid, write_info_dst, write_message_header,
};

pub const OWN: GuidPrefix = GuidPrefix([1; 12]);
pub const OTHER: GuidPrefix = GuidPrefix([2; 12]);
/// Whose writers send no greeting before all else.
pub const FOREIGN: VendorId = VendorId([1, 127]);
pub const ADDRESS: Locator = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);
/// The writer of the other participant whose changes come: [`EntityId::user`] of key 1, without instances.
pub const WRITER: EntityId = EntityId([0, 0, 1, 3]);

pub struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

/// Who was delivered which number.
pub struct Heard(pub Vec<(ReaderIndex, i64)>);

impl Sink for Heard {
    fn deliver(&mut self, reader: ReaderIndex, _: i32, offer: &mut Offer) {
        self.0.extend(offer.take().map(|change| (reader, change.sequence_number.0)));
    }
}

/// Keeps what is delivered.
pub struct Kept(pub Vec<CacheChange>);

impl Kept {
    /// Of each change its kind, its instance and how long its payload is.
    pub fn kinds(&self) -> Vec<(ChangeKind, Option<InstanceHandle>, usize)> {
        self.0.iter().map(|change| (change.kind, change.instance, change.payload.len())).collect()
    }
}

impl Sink for Kept {
    fn deliver(&mut self, _: ReaderIndex, _: i32, offer: &mut Offer) {
        self.0.extend(offer.take());
    }
}

pub fn participant() -> Participant {
    Participant::new(Config::at(OWN, ADDRESS))
}

/// What the participant has to tell until now.
pub fn events(participant: &mut Participant) -> impl Iterator<Item = Event> {
    std::iter::from_fn(|| participant.poll_event())
}

pub fn endpoint_of(topic: &str, mut qos: EndpointQos, kind: ReliabilityKind) -> EndpointConfig {
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

pub fn reader_of(participant: &mut Participant, topic: &str, kind: ReliabilityKind) -> ReaderIndex {
    let endpoint = endpoint_of(topic, EndpointQos::default_reader(), kind);
    participant.create_reader(Time(0), endpoint, &mut Nowhere)
}

/// A reader that is matched with a writer of the other participant.
pub fn matched_reader(
    participant: &mut Participant,
    kind: ReliabilityKind,
    sink: &mut dyn Sink,
) -> ReaderIndex {
    let reader = reader_of(participant, "Topic", kind);
    participant.on_frame(Time(0), &announcement(), sink);
    let said = publication(1, 1, "Topic", |qos| qos.reliability.kind = kind);
    participant.on_frame(Time(0), &said, sink);
    reader
}

/// What a participant announces of itself, and who sends it.
pub struct Announcement<'a> {
    /// Who the message is from by its header.
    pub header: GuidPrefix,
    /// Who it is from by INFO_SRC, and who it announces.
    pub source: GuidPrefix,
    pub addresses: &'a [Locator],
    pub tag: &'a str,
    pub vendor: VendorId,
    pub properties: &'a [(&'a str, String)],
    pub lease: Duration,
    pub builtin_endpoints: u32,
}

impl Announcement<'_> {
    /// One that `prefix` sends itself.
    pub fn of(prefix: GuidPrefix) -> Self {
        Announcement {
            header: prefix,
            source: prefix,
            addresses: &[ADDRESS],
            tag: "",
            vendor: FOREIGN,
            properties: &[],
            lease: ParticipantData::default().lease_duration,
            builtin_endpoints: builtin_endpoint::PUBLICATIONS_ANNOUNCER
                | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER,
        }
    }

    pub fn frame(&self) -> Frame {
        let mut message = Vec::new();
        write_message_header(&mut message, self.header);
        InfoSource { version: ProtocolVersion::RTPS_2_5, vendor: self.vendor, prefix: self.source }
            .write(&mut message, Endian::Little);
        write_info_dst(&mut message, Endian::Little, OWN);
        let mut payload = Vec::new();
        let properties = self.properties.iter().map(|(name, value)| ((*name).into(), value.clone()));
        let data = ParticipantData {
            guid_prefix: self.source,
            vendor_id: self.vendor,
            metatraffic_unicast: self.addresses.to_vec(),
            default_unicast: self.addresses.to_vec(),
            builtin_endpoints: self.builtin_endpoints,
            domain_tag: self.tag.into(),
            properties: properties.collect(),
            lease_duration: self.lease,
            ..ParticipantData::default()
        };
        data.write(&mut payload);
        put_data(&mut message, EntityId::SPDP_WRITER, 1, &[], PayloadKind::Data, &payload);
        frame(message)
    }
}

/// The other participant announces itself.
pub fn announcement() -> Frame {
    Announcement::of(OTHER).frame()
}

/// The other participant tells of one of its writers.
pub fn publication(number: i64, key: u32, topic: &str, change_qos: impl FnOnce(&mut EndpointQos)) -> Frame {
    let guid = Guid::new(OTHER, EntityId::user(key, true, false));
    let mut data = EndpointData::of(guid, topic, "Type", EndpointQos::default_writer());
    change_qos(&mut data.qos);
    let mut payload = Vec::new();
    data.write(&mut payload);
    change(EntityId::SEDP_PUBLICATIONS_WRITER, number, &payload)
}

/// The other participant says how many writers it has told of.
pub fn heartbeat(count: i32, last: i64) -> Frame {
    heartbeat_of(EntityId::SEDP_PUBLICATIONS_WRITER, count, last)
}

/// A writer of the other participant says what it has.
pub fn heartbeat_of(writer_id: EntityId, count: i32, last: i64) -> Frame {
    let mut message = message();
    let heartbeat = Heartbeat {
        reader_id: EntityId::UNKNOWN,
        writer_id,
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

/// A change of a writer of the other participant.
pub fn change(writer: EntityId, number: i64, payload: &[u8]) -> Frame {
    let mut message = message();
    put_data(&mut message, writer, number, &[], PayloadKind::Data, payload);
    frame(message)
}

/// A DATA of [`WRITER`], with an inline QoS of its own.
pub fn data(number: i64, inline: &[u8], kind: PayloadKind, payload: &[u8]) -> Frame {
    let mut message = message();
    put_data(&mut message, WRITER, number, inline, kind, payload);
    frame(message)
}

/// One fragment of 4 bytes of a change of [`WRITER`].
pub fn part(number: i64, fragment_starting_num: u32, key: bool, inline: &[u8], sample: &[u8]) -> Frame {
    let mut message = message();
    let header = DataFragHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: WRITER,
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

/// What is said about a change, and of which readers it is directed to.
pub fn inline(said: &InlineQos, directed_to: &[Guid]) -> Vec<u8> {
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

/// What every message of the other participant begins with.
pub fn message() -> Vec<u8> {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    message
}

pub fn frame(message: Vec<u8>) -> Frame {
    Frame { source: ADDRESS, traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

pub fn put_data(
    message: &mut Vec<u8>,
    writer_id: EntityId,
    number: i64,
    inline: &[u8],
    kind: PayloadKind,
    payload: &[u8],
) {
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
    header.write(message, Endian::Little, inline, kind, payload.len());
    message.extend_from_slice(payload);
}
