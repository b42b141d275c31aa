//! One outgoing RTPS message: headers in a scratch buffer, payloads as views, gathered by the port.
//! RTPS 2.5 §8.3.3 (the message), §8.3.8 (submessages).
//!
//! Owns the order of submessages: INFO_DST before what is directed, INFO_TS before the change it
//! dates. Knows no writer and no reader.

use taut_base::{EntityId, FragmentNumber, GuidPrefix, Locator, Time, Timestamp};
use taut_mem::Bytes;
use taut_port::Port;
use taut_wire::{
    AckNack, DataFragHeader, DataHeader, Endian, Gap, HEADER_LEN, Header, Heartbeat, HeartbeatFrag,
    InlineQos, NackFrag, PayloadKind, Stamps, StatusInfo,
};

use crate::flow::Flow;
use crate::history_cache::{CacheChange, ChangeKind};
use crate::limits;
use crate::schedule::Work;
use crate::timers::{Timer, Timers};

/// Taut writes little-endian, whatever the machine: one order to test.
const ENDIAN: Endian = Endian::Little;
/// Bytes of INFO_TS and of DATA up to its inline QoS.
const INFO_TS: usize = 12;
const DATA: usize = 24;
/// Bytes of the end of a parameter list.
const SENTINEL: usize = 4;
/// More than the headers around a payload take: RTPS header 20, INFO_TS 12, DATA 24, inline QoS up to 60, padding 3,
/// or 17 behind a key, which is short.
const HEADROOM: usize = 128;
/// Bytes of INFO_DST, of a HEARTBEAT, and at most of a submessage with a set of numbers.
pub const DIRECTED: usize = 16;
pub const HEARTBEAT: usize = 32;
pub const NUMBERS: usize = 80;

/// Bytes that a serialized key takes at least. Fast DDS 2.x takes a shorter one, encapsulation header and
/// all, for the key hash, even behind PID_KEY_HASH, and then knows no such instance.
const KEY_PAYLOAD_MIN: usize = 17;

/// What a message with one change and a heartbeat has. Clearing room for the most parts would be a tenth of
/// the work on a small sample.
const FEW_PARTS: usize = 8;

/// Up to how many bytes a payload is copied behind its header. Lower lets a message of small changes run out of
/// parts before it is full, and pays the kernel and the counts of who holds it for each part; higher copies what
/// could be gathered. With 1,024 a stream of 1 KiB, which has 8 bytes more, was a fifth slower; samples of 2,000 bytes
/// gained nothing by it.
const COPIED: usize = 1_536;

/// As many as may stand behind a payload: behind a short key.
const PADDING: [u8; KEY_PAYLOAD_MIN + 3] = [0; KEY_PAYLOAD_MIN + 3];

/// A payload that is gathered from where it lies, and where it goes between the bytes of the scratch buffer.
struct Gathered {
    at: usize,
    payload: Bytes,
}

/// A message under construction, behind those that leave in the same row of datagrams.
/// *Cost*: no allocation once warm; only small payloads are copied.
pub struct Message {
    header: Header,
    scratch: Vec<u8>,
    gathered: Vec<Gathered>,
    /// Bytes of those.
    gathered_size: usize,
    inline: Vec<u8>,
    /// Bytes that a datagram may have.
    limit: usize,
    row: Row,
    /// Is there more than the INFO submessages that only say how to read the rest?
    substance: bool,
    destination: Option<GuidPrefix>,
    timestamp: Option<Timestamp>,
    /// What the next change says of its way.
    stamps: Option<Stamps>,
    /// Whom what is in it was left for, while [`Tx::is_left`] says that something may be.
    pub(crate) left_for: Vec<Locator>,
}

/// The messages before the one under construction: datagrams of one size.
#[derive(Default)]
struct Row {
    datagrams: usize,
    /// Bytes of each.
    each: usize,
    /// Bytes of all, and where they end in the scratch buffer and among the payloads that are gathered.
    size: usize,
    scratch: usize,
    gathered: usize,
}

impl Message {
    /// An empty message from a participant.
    pub fn new(header: Header) -> Message {
        Message {
            header,
            scratch: Vec::with_capacity(limits::MESSAGE_SIZE),
            gathered: Vec::with_capacity(limits::MESSAGE_PARTS / 2),
            gathered_size: 0,
            inline: Vec::with_capacity(64),
            limit: limits::MESSAGE_SIZE,
            row: Row::default(),
            substance: false,
            destination: None,
            timestamp: None,
            stamps: None,
            left_for: Vec::with_capacity(8),
        }
    }

    fn clear(&mut self) {
        self.scratch.clear();
        if !self.gathered.is_empty() {
            self.gathered.clear();
            self.gathered_size = 0;
        }
        if self.row.datagrams > 0 {
            self.row = Row::default();
        }
        self.begin();
    }

    /// What follows is a message of its own.
    fn begin(&mut self) {
        self.substance = false;
        self.destination = None;
        self.timestamp = None;
    }

    /// Bytes of all that is in it.
    #[inline]
    pub fn size(&self) -> usize {
        self.scratch.len().saturating_add(self.gathered_size)
    }

    /// In how many parts a port gets it at most.
    #[inline]
    fn parts(&self) -> usize {
        self.gathered.len().saturating_mul(2).saturating_add(1)
    }

    /// From now on, whoever sends, a datagram gets no larger than this, unless one submessage is.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes.min(limits::MESSAGE_SIZE);
    }

    /// Is there plenty of room for a payload and its headers? Most often; then its size need not be counted.
    #[inline]
    fn is_roomy(&self, payload: usize) -> bool {
        let size = self.size().saturating_add(payload).saturating_add(HEADROOM);
        self.row.datagrams == 0
            && size <= self.limit
            && self.parts().saturating_add(2) <= limits::MESSAGE_PARTS
    }

    /// Is there room for `bytes` more?
    fn fits(&self, bytes: usize) -> bool {
        let limit = if self.row.datagrams > 0 { self.row.each } else { self.limit };
        let before = self.size().saturating_sub(self.row.size);
        let header = if before == 0 { HEADER_LEN } else { 0 };
        let size = before.saturating_add(header).saturating_add(bytes);
        size <= limit && self.parts().saturating_add(2) <= limits::MESSAGE_PARTS
    }

    /// Bytes that a DATA takes in this place.
    fn data_size(&self, change: &CacheChange) -> usize {
        let info = if self.timestamp == change.source_timestamp { 0 } else { INFO_TS };
        let len = change.payload.len();
        let payload = len.saturating_add(padding(payload_kind(change.kind, len), len));
        let stamps = if self.stamps.is_some() { Stamps::LEN.saturating_add(SENTINEL) } else { 0 };
        let inline = inline_qos_size(change).saturating_add(stamps);
        info.saturating_add(DATA).saturating_add(inline).saturating_add(payload)
    }

    /// Ends the message as a datagram of a row, in which the next one follows. `false` if it cannot.
    fn end_in_row(&mut self) -> bool {
        let bytes = self.size().saturating_sub(self.row.size);
        let each = if self.row.datagrams > 0 { self.row.each } else { bytes };
        // What is much shorter than those before it is not worth its padding.
        let fits = |missing: &usize| missing.is_multiple_of(4) && *missing <= each / 4;
        let Some(missing) = each.checked_sub(bytes).filter(fits) else { return false };
        let has_room = self.size().saturating_add(missing).saturating_add(each) <= limits::MESSAGE_SIZE
            && self.parts().saturating_add(2) <= limits::MESSAGE_PARTS
            && self.row.datagrams.saturating_add(1) < limits::ROW;
        if !has_room || !self.substance || !bytes.is_multiple_of(4) || bytes > self.limit {
            return false;
        }
        if let Some(words) = (missing / 4).checked_sub(1) {
            self.append(|out| taut_wire::write_pad(out, ENDIAN, u16::try_from(words).unwrap_or(u16::MAX)));
        }
        let datagrams = self.row.datagrams.saturating_add(1);
        let (scratch, gathered) = (self.scratch.len(), self.gathered.len());
        self.row = Row { datagrams, each, size: self.size(), scratch, gathered };
        self.begin();
        true
    }

    /// Takes back what only says how to read what has not followed.
    fn drop_introduction(&mut self) {
        self.scratch.truncate(self.row.scratch);
    }

    fn submessage(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.substance = true;
        self.append(write);
    }

    /// Appends to the scratch buffer, after the message's header if this is the first submessage.
    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin_submessage();
        write(&mut self.scratch);
    }

    /// The message's header, if what follows is the first submessage.
    #[inline]
    fn begin_submessage(&mut self) {
        if self.is_first() {
            self.header.write(&mut self.scratch);
        }
    }

    /// Does what follows begin a message?
    #[inline]
    fn is_first(&self) -> bool {
        self.size() == self.row.size
    }

    /// May a port send a datagram from where this payload lies? It has its headers in front of it then, and no other
    /// payload that is gathered.
    #[inline]
    fn goes_from_its_place(&self, payload: &Bytes) -> bool {
        payload.is_lent() && self.gathered.len() == self.row.gathered
    }

    fn gather(&mut self, payload: Bytes) {
        self.gathered_size = self.gathered_size.saturating_add(payload.len());
        self.gathered.push(Gathered { at: self.scratch.len(), payload });
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

    /// The next change, which follows at once, says this of its way.
    #[inline]
    pub fn stamp(&mut self, stamps: Option<Stamps>) {
        self.stamps = stamps;
    }

    /// Key hash and status of a change. RTPS 2.5 §9.6.4.8, §9.6.4.9.
    #[inline]
    fn encode_inline_qos(&mut self, change: &CacheChange) {
        self.inline.clear();
        if inline_qos_size(change) != 0 {
            self.encode_standard_qos(change);
        }
        if self.stamps.is_some() {
            self.encode_stamps();
        }
    }

    #[inline(never)]
    fn encode_stamps(&mut self) {
        if let Some(stamps) = self.stamps.take() {
            stamps.append(&mut self.inline, ENDIAN);
        }
    }

    #[inline(never)]
    fn encode_standard_qos(&mut self, change: &CacheChange) {
        let key_hash = change.instance.filter(|_| change.writer_guid.entity.is_keyed());
        let status_info = StatusInfo(change.kind.status_info());
        InlineQos { key_hash, status_info, ..InlineQos::default() }.write(&mut self.inline, ENDIAN);
    }

    /// A DATA with its timestamp and, for a keyed topic, its key hash. The payload is the change's.
    pub fn data(&mut self, reader_id: EntityId, change: &CacheChange, payload: &[u8]) {
        let timestamp = change.source_timestamp;
        let is_dated = std::mem::replace(&mut self.timestamp, timestamp) == timestamp;
        self.encode_inline_qos(change);
        let kind = payload_kind(change.kind, payload.len());
        let padding = padding(kind, payload.len());
        let is_copied = payload.len() <= COPIED && !self.goes_from_its_place(&change.payload);
        let header =
            DataHeader { reader_id, writer_id: change.writer_guid.entity, writer_sn: change.sequence_number };
        let length = payload.len().saturating_add(padding);
        self.substance = true;
        match timestamp {
            Some(time) if self.is_first() && self.inline.is_empty() => {
                header.write_first(&mut self.scratch, ENDIAN, (&self.header, time), kind, length);
            }
            _ => {
                self.begin_submessage();
                if !is_dated {
                    taut_wire::write_info_ts(&mut self.scratch, ENDIAN, timestamp);
                }
                header.write(&mut self.scratch, ENDIAN, &self.inline, kind, length);
            }
        }
        if is_copied {
            self.scratch.extend_from_slice(payload);
        } else {
            self.gather(change.payload.clone());
        }
        if padding > 0 {
            self.scratch.extend_from_slice(PADDING.get(..padding).unwrap_or(&[]));
        }
    }

    /// One fragment of a change, from 1. Returns whether something may follow it in the message.
    pub fn data_frag(
        &mut self,
        reader_id: EntityId,
        change: &CacheChange,
        number: FragmentNumber,
        fragment_size: usize,
    ) -> bool {
        self.dated(change.source_timestamp);
        self.encode_inline_qos(change);
        let inline = std::mem::take(&mut self.inline);
        let start = (number.saturating_sub(1) as usize).saturating_mul(fragment_size);
        let part = change.payload.slice(start..start.saturating_add(fragment_size));
        let header = DataFragHeader {
            reader_id,
            writer_id: change.writer_guid.entity,
            writer_sn: change.sequence_number,
            fragment_starting_num: number,
            fragments_in_submessage: 1,
            fragment_size: u16::try_from(fragment_size).unwrap_or(u16::MAX),
            sample_size: u32::try_from(change.payload.len()).unwrap_or(u32::MAX),
            key: payload_kind(change.kind, change.payload.len()) == PayloadKind::Key,
        };
        let mut may_be_followed = false;
        self.submessage(|out| may_be_followed = header.write(out, ENDIAN, &inline, part.len()));
        self.inline = inline;
        self.gather(part);
        may_be_followed
    }

    /// A HEARTBEAT.
    #[inline(always)]
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) {
        self.substance = true;
        self.begin_submessage();
        heartbeat.write(&mut self.scratch, ENDIAN);
    }

    /// A HEARTBEAT_FRAG.
    pub fn heartbeat_frag(&mut self, heartbeat: &HeartbeatFrag) {
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

    #[inline]
    fn send(&self, port: &mut dyn Port, to: &[Locator]) {
        match self.parts() {
            1 => self.send_in(port, to, &[&self.scratch]),
            2..=FEW_PARTS => self.send_parts::<FEW_PARTS>(port, to),
            _ => self.send_parts::<{ limits::MESSAGE_PARTS }>(port, to),
        }
    }

    #[inline(never)]
    fn send_parts<const N: usize>(&self, port: &mut dyn Port, to: &[Locator]) {
        let mut parts: [&[u8]; N] = [&[]; N];
        let (mut count, mut begin) = (0_usize, 0);
        let mut add = |part| {
            if let Some(place) = parts.get_mut(count).filter(|_| !<[u8]>::is_empty(part)) {
                *place = part;
                count = count.saturating_add(1);
            }
        };
        for Gathered { at, payload } in &self.gathered {
            add(self.scratch.get(begin..*at).unwrap_or(&[]));
            add(payload);
            begin = *at;
        }
        add(self.scratch.get(begin..).unwrap_or(&[]));
        self.send_in(port, to, parts.get(..count).unwrap_or(&[]));
    }

    #[inline]
    fn send_in(&self, port: &mut dyn Port, to: &[Locator], parts: &[&[u8]]) {
        match self.row.datagrams {
            0 => port.send(to, parts),
            _ => port.send_row(to, parts, self.row.each),
        }
    }
}

/// Bytes behind a payload: up to the next submessage's place (RTPS 2.5 §9.4.5.1.3), and behind a key up
/// to [`KEY_PAYLOAD_MIN`].
#[inline]
fn padding(kind: PayloadKind, length: usize) -> usize {
    if kind == PayloadKind::Key { padding_of_key(length) } else { length.wrapping_neg() % 4 }
}

#[cold]
fn padding_of_key(length: usize) -> usize {
    length.max(KEY_PAYLOAD_MIN).next_multiple_of(4).saturating_sub(length)
}

/// Bytes of [`Message::encode_inline_qos`]'s work.
fn inline_qos_size(change: &CacheChange) -> usize {
    let has_key_hash = change.instance.is_some() && change.writer_guid.entity.is_keyed();
    // PID_KEY_HASH takes 20, PID_STATUS_INFO 8, the sentinel behind them 4.
    match (has_key_hash, change.kind == ChangeKind::Alive) {
        (false, true) => 0,
        (true, true) => 24,
        (false, false) => 12,
        (true, false) => 32,
    }
}

#[inline]
fn payload_kind(kind: ChangeKind, length: usize) -> PayloadKind {
    match (length, kind) {
        (0, _) => PayloadKind::None,
        (_, ChangeKind::Alive) => PayloadKind::Data,
        _ => PayloadKind::Key,
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
    /// Calls of the port left, one for each destination.
    pub budget: usize,
    /// Datagrams sent.
    pub sent: usize,
    /// Calls of the port, one for each destination.
    pub calls: usize,
    /// Another writer's changes for the same destinations follow in the same message, or what other endpoints owe single ones may.
    pub is_followed: bool,
    /// The message may hold what was [left](Tx::leave) for more.
    pub(crate) is_left: bool,
    /// How much may go to each destination in a second, if that is bounded.
    pub flow: Option<&'a mut Flow>,
    /// What is sent now counts there.
    pub pays: bool,
    /// What was to be sent waits for that, and is called.
    pub waits: bool,
    /// How much more may leave of what is paced. *Units*: bytes; below 0 nothing more does.
    pub room: i64,
}

impl<'a> Tx<'a> {
    /// A step that may make so many calls.
    pub fn new(now: Time, port: &'a mut dyn Port, message: &'a mut Message, budget: usize) -> Tx<'a> {
        Tx {
            now,
            port,
            message,
            budget,
            sent: 0,
            calls: 0,
            is_followed: false,
            is_left: false,
            flow: None,
            pays: false,
            waits: false,
            room: i64::MAX,
        }
    }

    /// A piece of work that is paced has had its turn. Returns whether what it has left waits for another, and is called.
    #[cold]
    pub(crate) fn end_turn(&mut self, work: Work) -> bool {
        let waits = std::mem::take(&mut self.waits);
        if let Some(flow) = self.flow.as_mut().filter(|_| !waits) {
            flow.leave(self.now, work);
        }
        waits
    }

    /// Who waits is called when it is time.
    #[cold]
    pub(crate) fn arm(&self, timers: &mut Timers) {
        if let Some(flow) = &self.flow {
            timers.set(flow.next(), Timer::Flow);
        }
    }

    /// May one more of so many bytes leave, as far as pacing goes? It counts then.
    pub fn spend(&mut self, bytes: usize) -> bool {
        let may = self.room >= 0;
        if may {
            self.room = self.room.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        may
    }

    /// Charges what is about to leave.
    #[cold]
    fn pay(&mut self, to: &[Locator], datagrams: usize) {
        let (now, bytes) = (self.now, self.message.size());
        if let Some(flow) = &mut self.flow {
            to.iter().for_each(|to| flow.charge(now, to, datagrams, bytes));
        }
    }

    /// Datagrams that have left or stand whole in the message, for so many destinations.
    pub fn ended(&self, destinations: usize) -> usize {
        self.sent.saturating_add(self.message.row.datagrams.saturating_mul(destinations))
    }

    /// Sends what the message holds, if anything.
    pub fn flush(&mut self, to: &[Locator]) {
        self.flush_here(to);
    }

    /// The same, for who sends most.
    #[inline(always)]
    pub fn flush_here(&mut self, to: &[Locator]) {
        let mut datagrams = self.message.row.datagrams;
        if self.message.substance {
            datagrams = datagrams.saturating_add(1);
        } else if datagrams > 0 {
            self.message.drop_introduction();
        }
        if datagrams > 0 && !to.is_empty() {
            if self.pays {
                self.pay(to, datagrams);
            }
            self.message.send(self.port, to);
            self.sent = self.sent.saturating_add(to.len().saturating_mul(datagrams));
            self.calls = self.calls.saturating_add(to.len());
            self.budget = self.budget.saturating_sub(to.len());
        } else if datagrams > 0 {
            // To put it together took its time, though nobody gets it.
            self.budget = self.budget.saturating_sub(1);
        }
        self.message.clear();
    }

    /// Ends the message and starts one for the same participant; what has ended leaves now or together with
    /// those that follow.
    pub fn next_message(&mut self, to: &[Locator]) {
        let destination = self.message.destination;
        if !self.message.end_in_row() {
            self.flush(to);
        }
        if let Some(prefix) = destination {
            self.message.directed(prefix);
        }
    }

    /// Sends what the message holds and starts one for the same participant.
    pub fn send_all(&mut self, to: &[Locator]) {
        let destination = self.message.destination;
        self.flush(to);
        if let Some(prefix) = destination {
            self.message.directed(prefix);
        }
    }

    /// Makes room for `bytes` of a submessage.
    #[inline]
    pub fn make_room(&mut self, bytes: usize, to: &[Locator]) {
        if !self.message.is_roomy(bytes) {
            self.make_room_for(|_| bytes, to);
        }
    }

    /// Makes room for a submessage whose size depends on what is before it.
    fn make_room_for(&mut self, size: impl Fn(&Message) -> usize, to: &[Locator]) {
        if !self.message.fits(size(self.message)) {
            self.next_message(to);
            // What is larger than the datagrams of a row does not go with them.
            if !self.message.fits(size(self.message)) {
                self.send_all(to);
            }
        }
    }

    /// A DATA, behind what is in the message if there is room.
    #[inline(always)]
    pub fn data(&mut self, reader_id: EntityId, change: &CacheChange, to: &[Locator]) {
        let payload: &[u8] = &change.payload;
        if !self.message.is_roomy(payload.len()) {
            self.make_room_for_data(change, to);
        }
        self.message.data(reader_id, change, payload);
    }

    #[inline(never)]
    fn make_room_for_data(&mut self, change: &CacheChange, to: &[Locator]) {
        self.make_room_for(|message| message.data_size(change), to);
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
        message.data(EntityId::UNKNOWN, &change, &change.payload);
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

    /// Notes what it is given as rows.
    #[derive(Default)]
    struct Rows {
        /// The size of each of the datagrams of a row, and of all of it; alone 0.
        rows: Vec<(usize, usize)>,
        split: Loopback,
    }

    impl Port for Rows {
        fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
            self.rows.push((0, parts.iter().map(|part| part.len()).sum()));
            self.split.send(to, parts);
        }

        fn send_row(&mut self, to: &[Locator], parts: &[&[u8]], each: usize) {
            self.rows.push((each, parts.iter().map(|part| part.len()).sum()));
            self.split.send_row(to, parts, each);
        }

        fn flush(&mut self) {}
    }

    fn change(number: i64, len: usize) -> CacheChange {
        CacheChange {
            kind: ChangeKind::Alive,
            writer_guid: Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, false)),
            sequence_number: SequenceNumber(number),
            instance: None,
            source_timestamp: Some(Timestamp::from_unix_ns(7)),
            time: Time(0),
            payload: Bytes::from(vec![number as u8; len]),
        }
    }

    /// Sends changes of these sizes with datagrams of at most 1,472 B. Returns the rows, and the sizes of the
    /// changes that are in each datagram.
    fn rows_of(sizes: &[usize]) -> (Vec<(usize, usize)>, Vec<Vec<usize>>) {
        let prefix = GuidPrefix([1; 12]);
        let header = Header { version: ProtocolVersion::RTPS_2_5, vendor: VendorId::UNKNOWN, prefix };
        let (mut port, mut message) = (Rows::default(), Message::new(header));
        let to = [Locator::udp_v4(Ipv4Addr::LOCALHOST, 1)];
        message.set_limit(1_472);
        let mut tx = Tx::new(Time(0), &mut port, &mut message, 99);
        tx.message.directed(prefix);
        for (number, size) in (1..).zip(sizes) {
            tx.data(EntityId::UNKNOWN, &change(number, *size), &to);
        }
        tx.flush(&to);
        let sent = tx.sent;
        let datagrams: Vec<_> = std::iter::from_fn(|| port.split.take())
            .map(|(_, datagram)| {
                let (_, rest) = Header::parse(&datagram).unwrap();
                let mut directed = 0;
                let changes = Submessages::new(rest).filter_map(|submessage| match submessage.unwrap() {
                    Submessage::Data(taut_wire::Data { payload: Payload::Data(bytes), .. }) => {
                        assert_eq!(directed, 1, "each datagram says for whom it is");
                        Some(bytes.len())
                    }
                    Submessage::InfoDestination(_) => {
                        directed += 1;
                        None
                    }
                    _ => None,
                });
                changes.collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(sent, datagrams.len());
        (port.rows, datagrams)
    }

    #[test]
    fn the_size_of_a_change_is_known_before() {
        for (keyed, kind, len) in [
            (false, ChangeKind::Alive, 100),
            (false, ChangeKind::Alive, 3_001),
            (true, ChangeKind::Alive, 17),
            (true, ChangeKind::NotAliveDisposed, 8),
            (true, ChangeKind::NotAliveUnregistered, 0),
            (false, ChangeKind::NotAliveUnregistered, 0),
        ] {
            let mut change = change(1, len);
            change.kind = kind;
            change.instance = keyed.then_some(InstanceHandle([0; 16]));
            change.writer_guid.entity = EntityId::user(1, true, keyed);
            let prefix = change.writer_guid.prefix;
            let mut message = Message::new(Header {
                version: ProtocolVersion::RTPS_2_5,
                vendor: VendorId::UNKNOWN,
                prefix,
            });
            let mut before = HEADER_LEN;
            for _ in 0..2 {
                let expected = before + message.data_size(&change);
                message.data(EntityId::UNKNOWN, &change, &change.payload);
                assert_eq!(message.size(), expected, "keyed {keyed}, {kind:?}, {len} B");
                before = expected;
            }
        }
    }

    #[test]
    fn small_changes_leave_in_rows_of_equal_datagrams() {
        let (rows, datagrams) = rows_of(&[100; 30]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].0 <= 1_472 && rows[0].0 > 1_200, "{rows:?}");
        assert_eq!(datagrams.concat(), [100; 30]);
        let (rows, datagrams) = rows_of(&[600, 80, 600, 600, 40, 600, 600]);
        assert_eq!((rows.len(), datagrams.concat().len()), (1, 7), "padded: {rows:?}, {datagrams:?}");
        let (rows, datagrams) = rows_of(&[1_000; 100]);
        assert!(rows.len() < 5 && rows.iter().all(|(_, all)| *all <= limits::MESSAGE_SIZE), "{rows:?}");
        assert_eq!(datagrams.len(), 100);
    }

    #[test]
    fn what_is_larger_than_a_row_s_datagrams_goes_alone() {
        let (rows, datagrams) = rows_of(&[1_000, 1_000, 3_000, 1_000, 200]);
        assert_eq!(datagrams.concat(), [1_000, 1_000, 3_000, 1_000, 200]);
        let alone = rows.iter().find(|(_, all)| *all > 3_000);
        assert!(alone.is_some_and(|(each, all)| *each == 0 && *all < 3_100), "{rows:?}");
        // The first datagram of a row decides: the second is larger than it, and within the limit.
        let (rows, datagrams) = rows_of(&[300, 1_300, 1_300]);
        assert_eq!(datagrams.concat(), [300, 1_300, 1_300], "{rows:?}");
    }
}
