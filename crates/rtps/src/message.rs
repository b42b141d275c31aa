//! One outgoing RTPS message: headers in a scratch buffer, payloads as views, gathered by the port.
//! RTPS 2.5 §8.3.3 (the message), §8.3.8 (submessages).
//!
//! Owns the order of submessages: INFO_DST before what is directed, INFO_TS before the change it
//! dates. Knows no writer and no reader.

use std::ops::Range;

use taut_base::{EntityId, FragmentNumber, GuidPrefix, Locator, Time, Timestamp};
use taut_mem::Bytes;
use taut_port::Port;
use taut_wire::{
    AckNack, DataFragHeader, DataHeader, Endian, Gap, Header, Heartbeat, InlineQos, NackFrag, PayloadKind,
    StatusInfo,
};

use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;

/// Taut writes little-endian, whatever the machine: one order to test.
const ENDIAN: Endian = Endian::Little;
/// Room that the headers around one payload can take: INFO_TS 12, DATA 24, inline QoS up to 32,
/// heartbeat 32, padding; a GAP with its set 64.
const HEADROOM: usize = 256;

/// Bytes that a serialized key takes at least. Fast DDS 2.x takes a shorter one, encapsulation header and
/// all, for the key hash, even behind PID_KEY_HASH, and then knows no such instance.
const KEY_PAYLOAD_MIN: usize = 17;

/// What a message with one change and a heartbeat has. Clearing room for the most parts would be a tenth of
/// the work on a small sample.
const FEW_PARTS: usize = 8;

/// Up to how many bytes a payload is copied behind its header. Lower lets a message of small changes run out of
/// parts before it is full, and pays the kernel and the counts of who holds it for each part; higher copies what
/// could be gathered. Other values were not measured.
const COPIED: usize = 1_024;

enum Part {
    Scratch(Range<usize>),
    Payload(Bytes),
}

/// A message under construction. *Cost*: no allocation once warm; only small payloads are copied.
pub struct Message {
    header: Header,
    scratch: Vec<u8>,
    parts: Vec<Part>,
    inline: Vec<u8>,
    size: usize,
    /// Is there more than the INFO submessages that only say how to read the rest?
    substance: bool,
    destination: Option<GuidPrefix>,
    timestamp: Option<Timestamp>,
}

impl Message {
    /// An empty message from a participant.
    pub fn new(header: Header) -> Message {
        Message {
            header,
            scratch: Vec::with_capacity(limits::MESSAGE_SIZE),
            parts: Vec::with_capacity(limits::MESSAGE_PARTS),
            inline: Vec::with_capacity(64),
            size: 0,
            substance: false,
            destination: None,
            timestamp: None,
        }
    }

    fn clear(&mut self) {
        self.scratch.clear();
        self.parts.clear();
        self.size = 0;
        self.substance = false;
        self.destination = None;
        self.timestamp = None;
    }

    /// Is there room for `payload` bytes more, with their headers?
    pub fn fits(&self, payload: usize) -> bool {
        let size = self.size.saturating_add(payload).saturating_add(HEADROOM);
        size <= limits::MESSAGE_SIZE && self.parts.len().saturating_add(3) <= limits::MESSAGE_PARTS
    }

    fn submessage(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.substance = true;
        self.append(write);
    }

    /// Appends to the scratch buffer, after the message's header if this is the first submessage.
    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.scratch.len();
        if self.size == 0 {
            self.header.write(&mut self.scratch);
        }
        write(&mut self.scratch);
        let end = self.scratch.len();
        self.size = self.size.saturating_add(end.saturating_sub(start));
        match self.parts.last_mut() {
            Some(Part::Scratch(last)) if last.end == start => last.end = end,
            _ => self.parts.push(Part::Scratch(start..end)),
        }
    }

    fn append_payload(&mut self, payload: &Bytes) {
        if payload.len() <= COPIED {
            self.append(|out| out.extend_from_slice(payload));
        } else {
            self.append_part(payload.clone());
        }
    }

    fn append_part(&mut self, payload: Bytes) {
        self.size = self.size.saturating_add(payload.len());
        self.parts.push(Part::Payload(payload));
    }

    /// What follows is for one participant.
    pub fn directed(&mut self, prefix: GuidPrefix) {
        if self.destination != Some(prefix) {
            self.destination = Some(prefix);
            self.append(|out| taut_wire::write_info_dst(out, ENDIAN, prefix));
        }
    }

    fn dated(&mut self, timestamp: Option<Timestamp>) {
        if self.timestamp != timestamp {
            self.timestamp = timestamp;
            self.append(|out| taut_wire::write_info_ts(out, ENDIAN, timestamp));
        }
    }

    /// Key hash and status of a change. RTPS 2.5 §9.6.4.8, §9.6.4.9.
    fn encode_inline_qos(&mut self, change: &CacheChange) {
        self.inline.clear();
        let key_hash = change.instance.filter(|_| change.writer_guid.entity.is_keyed());
        let status_info = StatusInfo(change.kind.status_info());
        InlineQos { key_hash, status_info, ..InlineQos::default() }.write(&mut self.inline, ENDIAN);
    }

    /// A DATA with its timestamp and, for a keyed topic, its key hash.
    pub fn data(&mut self, reader_id: EntityId, change: &CacheChange) {
        self.dated(change.source_timestamp);
        self.encode_inline_qos(change);
        let inline = std::mem::take(&mut self.inline);
        let padding = padding(change);
        let header =
            DataHeader { reader_id, writer_id: change.writer_guid.entity, writer_sn: change.sequence_number };
        let length = change.payload.len().saturating_add(padding);
        self.submessage(|out| {
            header.write(out, ENDIAN, &inline, payload_kind(change), length);
        });
        self.inline = inline;
        self.append_payload(&change.payload);
        if padding > 0 {
            self.append(|out| out.extend(std::iter::repeat_n(0, padding)));
        }
    }

    /// One fragment of a change, from 1. Returns whether something may follow it in the message.
    pub fn data_frag(&mut self, reader_id: EntityId, change: &CacheChange, number: FragmentNumber) -> bool {
        self.dated(change.source_timestamp);
        self.encode_inline_qos(change);
        let inline = std::mem::take(&mut self.inline);
        let start = (number.saturating_sub(1) as usize).saturating_mul(limits::FRAGMENT_SIZE);
        let part = change.payload.slice(start..start.saturating_add(limits::FRAGMENT_SIZE));
        let header = DataFragHeader {
            reader_id,
            writer_id: change.writer_guid.entity,
            writer_sn: change.sequence_number,
            fragment_starting_num: number,
            fragments_in_submessage: 1,
            fragment_size: u16::try_from(limits::FRAGMENT_SIZE).unwrap_or(u16::MAX),
            sample_size: u32::try_from(change.payload.len()).unwrap_or(u32::MAX),
            key: payload_kind(change) == PayloadKind::Key,
        };
        let mut may_be_followed = false;
        self.submessage(|out| may_be_followed = header.write(out, ENDIAN, &inline, part.len()));
        self.inline = inline;
        self.append_part(part);
        may_be_followed
    }

    /// A HEARTBEAT.
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) {
        self.submessage(|out| heartbeat.write(out, ENDIAN));
    }

    /// A GAP.
    pub fn gap(&mut self, gap: &Gap) {
        self.submessage(|out| gap.write(out, ENDIAN));
    }

    /// An ACKNACK.
    pub fn acknack(&mut self, acknack: &AckNack) {
        self.submessage(|out| acknack.write(out, ENDIAN));
    }

    /// A NACK_FRAG.
    pub fn nack_frag(&mut self, nack_frag: &NackFrag) {
        self.submessage(|out| nack_frag.write(out, ENDIAN));
    }

    fn send(&mut self, port: &mut dyn Port, to: &[Locator]) {
        if self.parts.len() <= FEW_PARTS {
            self.send_parts::<FEW_PARTS>(port, to);
        } else {
            self.send_parts::<{ limits::MESSAGE_PARTS }>(port, to);
        }
    }

    fn send_parts<const N: usize>(&self, port: &mut dyn Port, to: &[Locator]) {
        let mut parts: [&[u8]; N] = [&[]; N];
        for (to, part) in parts.iter_mut().zip(&self.parts) {
            *to = match part {
                Part::Scratch(range) => self.scratch.get(range.clone()).unwrap_or(&[]),
                Part::Payload(bytes) => bytes,
            };
        }
        port.send(to, parts.get(..self.parts.len()).unwrap_or(&[]));
    }
}

/// Bytes behind a payload: up to the next submessage's place (RTPS 2.5 §9.4.5.1.3), and behind a key up
/// to [`KEY_PAYLOAD_MIN`].
fn padding(change: &CacheChange) -> usize {
    let length = change.payload.len();
    let least = if payload_kind(change) == PayloadKind::Key { KEY_PAYLOAD_MIN } else { 0 };
    length.max(least).next_multiple_of(4).saturating_sub(length)
}

fn payload_kind(change: &CacheChange) -> PayloadKind {
    match (change.payload.is_empty(), change.kind) {
        (true, _) => PayloadKind::None,
        (false, ChangeKind::Alive) => PayloadKind::Data,
        (false, _) => PayloadKind::Key,
    }
}

/// One transmission: where bytes go and how many datagrams may still be sent.
pub struct Tx<'a> {
    /// The time of this step.
    pub now: Time,
    /// What sends.
    pub port: &'a mut dyn Port,
    /// The message under construction.
    pub message: &'a mut Message,
    /// Datagrams left.
    pub budget: usize,
    /// Datagrams sent.
    pub sent: usize,
}

impl Tx<'_> {
    /// Sends what the message holds, if anything.
    pub fn flush(&mut self, to: &[Locator]) {
        if self.message.substance && !to.is_empty() {
            self.message.send(self.port, to);
            self.sent = self.sent.saturating_add(to.len());
            self.budget = self.budget.saturating_sub(to.len());
        }
        self.message.clear();
    }

    /// Sends what the message holds and starts one for the same participant.
    pub fn next_message(&mut self, to: &[Locator]) {
        let destination = self.message.destination;
        self.flush(to);
        if let Some(prefix) = destination {
            self.message.directed(prefix);
        }
    }

    /// Makes room for `payload` bytes and their headers, by sending what is there.
    pub fn make_room(&mut self, payload: usize, to: &[Locator]) {
        if !self.message.fits(payload) {
            self.next_message(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use taut_base::{EntityId, Guid, InstanceHandle, ProtocolVersion, SequenceNumber, VendorId};
    use taut_port::Loopback;
    use taut_wire::{Payload, Submessage, Submessages};

    #[test]
    fn a_short_key_is_not_taken_for_a_hash() {
        let prefix = GuidPrefix([1; 12]);
        let header = Header { version: ProtocolVersion::RTPS_2_5, vendor: VendorId::UNKNOWN, prefix };
        let key = [0, 1, 0, 0, 7, 0, 0, 0];
        let change = CacheChange {
            kind: ChangeKind::NotAliveDisposed,
            writer_guid: Guid::new(prefix, EntityId::user(1, true, true)),
            sequence_number: SequenceNumber::FIRST,
            instance: Some(InstanceHandle([0; 16])),
            source_timestamp: None,
            time: Time(0),
            payload: Bytes::copy_from(&key),
        };
        let mut port = Loopback::new();
        let mut message = Message::new(header);
        message.data(EntityId::UNKNOWN, &change);
        message.send(&mut port, &[Locator::udp_v4(Ipv4Addr::LOCALHOST, 1)]);

        let (_, datagram) = port.take().unwrap();
        let (_, rest) = Header::parse(&datagram).unwrap();
        let data = Submessages::new(rest).find_map(|submessage| match submessage {
            Ok(Submessage::Data(data)) => Some(data),
            _ => None,
        });
        let Some(Payload::Key(sent)) = data.map(|data| data.payload) else { panic!("no key was sent") };
        assert!(sent.starts_with(&key) && sent.len() > 16, "{sent:?}");
    }
}
