//! The walk over the submessages of a message. RTPS 2.5 §8.3.3.3, §8.3.4.1, §9.4.5.1.
//!
//! Owns framing: where a submessage starts and ends, and which kind it is. The bodies are in the
//! files named after them. The receiver of `rtps` calls it once for each datagram.

use taut_base::{EntityId, GuidPrefix, SequenceNumber, Timestamp};

use crate::{
    AckNack, Cursor, Data, DataFrag, Endian, Gap, HeaderExtension, Heartbeat, HeartbeatFrag, InfoReply,
    InfoReplyIp4, InfoSource, NackFrag, Out, WireError,
};

/// The length of a submessage header. *Units*: bytes.
pub const SUBMESSAGE_HEADER_LEN: usize = 4;

/// The id of a submessage. *Source*: RTPS 2.5 §9.4.5.1.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubmessageKind(pub u8);

impl SubmessageKind {
    /// RTPS_HE.
    pub const HEADER_EXTENSION: SubmessageKind = SubmessageKind(0x00);
    /// PAD.
    pub const PAD: SubmessageKind = SubmessageKind(0x01);
    /// ACKNACK.
    pub const ACKNACK: SubmessageKind = SubmessageKind(0x06);
    /// HEARTBEAT.
    pub const HEARTBEAT: SubmessageKind = SubmessageKind(0x07);
    /// GAP.
    pub const GAP: SubmessageKind = SubmessageKind(0x08);
    /// INFO_TS.
    pub const INFO_TS: SubmessageKind = SubmessageKind(0x09);
    /// INFO_SRC.
    pub const INFO_SRC: SubmessageKind = SubmessageKind(0x0c);
    /// INFO_REPLY_IP4.
    pub const INFO_REPLY_IP4: SubmessageKind = SubmessageKind(0x0d);
    /// INFO_DST.
    pub const INFO_DST: SubmessageKind = SubmessageKind(0x0e);
    /// INFO_REPLY.
    pub const INFO_REPLY: SubmessageKind = SubmessageKind(0x0f);
    /// NACK_FRAG.
    pub const NACK_FRAG: SubmessageKind = SubmessageKind(0x12);
    /// HEARTBEAT_FRAG.
    pub const HEARTBEAT_FRAG: SubmessageKind = SubmessageKind(0x13);
    /// DATA.
    pub const DATA: SubmessageKind = SubmessageKind(0x15);
    /// DATA_FRAG.
    pub const DATA_FRAG: SubmessageKind = SubmessageKind(0x16);
    /// SEC_BODY (DDS Security 1.1 §7.3.6.2).
    pub const SEC_BODY: SubmessageKind = SubmessageKind(0x30);
    /// SEC_PREFIX.
    pub const SEC_PREFIX: SubmessageKind = SubmessageKind(0x31);
    /// SEC_POSTFIX.
    pub const SEC_POSTFIX: SubmessageKind = SubmessageKind(0x32);
    /// SRTPS_PREFIX.
    pub const SRTPS_PREFIX: SubmessageKind = SubmessageKind(0x33);
    /// SRTPS_POSTFIX.
    pub const SRTPS_POSTFIX: SubmessageKind = SubmessageKind(0x34);
}

/// One submessage, read in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::large_enum_variant)] // Short-lived and on the stack; a box would allocate.
pub enum Submessage<'a> {
    /// A change, or the key of one.
    Data(Data<'a>),
    /// Fragments of a change.
    DataFrag(DataFrag<'a>),
    /// What a writer has.
    Heartbeat(Heartbeat),
    /// Which fragments of a change a writer has.
    HeartbeatFrag(HeartbeatFrag),
    /// What a reader has and misses.
    AckNack(AckNack),
    /// Which fragments of a change a reader misses.
    NackFrag(NackFrag),
    /// What is irrelevant to a reader.
    Gap(Gap),
    /// The source timestamp of what follows; `None` takes it away.
    InfoTimestamp(Option<Timestamp>),
    /// Who what follows is for; GUIDPREFIX_UNKNOWN is everyone.
    InfoDestination(GuidPrefix),
    /// Who what follows is from.
    InfoSource(InfoSource),
    /// Where to reply to what follows.
    InfoReply(InfoReply<'a>),
    /// The same as INFO_REPLY for UDPv4 only.
    InfoReplyIp4(InfoReplyIp4),
    /// Nothing.
    Pad,
    /// More of the message header; only ever the first.
    HeaderExtension(HeaderExtension<'a>),
    /// A kind that this version does not know, to be passed over.
    Unknown {
        /// Its kind.
        id: SubmessageKind,
        /// Its flags.
        flags: u8,
        /// Its body.
        body: &'a [u8],
    },
}

/// Iterates over the submessages after a message header.
///
/// After an error it ends: RTPS 2.5 §8.3.4.1 says that a length that is not valid and a known
/// submessage that is not valid both invalidate the rest of the message. What came before stands.
/// Unknown kinds and flags and additional bytes in a known submessage are passed over.
///
/// *Cost*: no allocation; each step takes at least 4 bytes off, so it ends.
#[derive(Clone, Debug)]
pub struct Submessages<'a> {
    rest: &'a [u8],
    first: bool,
}

impl<'a> Submessages<'a> {
    /// Over what [`Header::parse`](crate::Header::parse) returned as the rest.
    pub fn new(rest: &'a [u8]) -> Submessages<'a> {
        Submessages { rest, first: true }
    }

    /// The next submessage with its body as it came. What the body is must be valid all the same: after an error
    /// in it the rest of the message is not to be read.
    #[inline]
    pub fn next_framed(&mut self) -> Option<Result<Framed<'a>, WireError>> {
        if self.rest.is_empty() {
            return None;
        }
        let result = self.step();
        if result.is_err() {
            self.rest = &[];
        }
        Some(result)
    }

    /// How much is behind the last submessage. *Units*: bytes.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn step(&mut self) -> Result<Framed<'a>, WireError> {
        let mut cursor = Cursor::new(self.rest, Endian::Big);
        let [id, flags, length @ ..]: [u8; SUBMESSAGE_HEADER_LEN] = cursor.array()?;
        let (id, endian) = (SubmessageKind(id), Endian::from_flags(flags));
        let length = usize::from(match endian {
            Endian::Big => u16::from_be_bytes(length),
            Endian::Little => u16::from_le_bytes(length),
        });
        // RTPS 2.5 §9.4.5.1.3: 0 means "to the end of the message", but for PAD and INFO_TS.
        let to_the_end = length == 0 && !matches!(id, SubmessageKind::PAD | SubmessageKind::INFO_TS);
        let length = if to_the_end { cursor.remaining() } else { length };
        let body = cursor.bytes(length).map_err(|_| WireError::BadLength)?;
        // RTPS 2.5 §9.4.1: submessages start on a 4-byte boundary of the message.
        if cursor.remaining() > 0 && !length.is_multiple_of(4) {
            return Err(WireError::BadLength);
        }
        let first = std::mem::replace(&mut self.first, false);
        self.rest = cursor.rest();
        if id == SubmessageKind::HEADER_EXTENSION && !first {
            return Err(WireError::MisplacedHeaderExtension);
        }
        Ok(Framed { id, flags, body: Cursor::new(body, endian) })
    }
}

/// A submessage of which only the header was read.
///
/// *Cost*: what a message most often has is read from it without the detour of a [`Submessage`], which is large.
#[derive(Clone, Copy, Debug)]
pub struct Framed<'a> {
    id: SubmessageKind,
    flags: u8,
    body: Cursor<'a>,
}

impl<'a> Framed<'a> {
    /// Its kind.
    #[inline]
    pub fn kind(&self) -> SubmessageKind {
        self.id
    }

    /// Its body as DATA.
    #[inline]
    pub fn data(&self) -> Result<Data<'a>, WireError> {
        Data::read(self.flags, self.body)
    }

    /// Of a DATA or DATA_FRAG whose body is not valid: which reader it is for, which writer's change it is of, and the number
    /// of that, if they can be read. Both have them in the same place.
    #[cold]
    pub fn named_change(&self) -> Option<(EntityId, EntityId, SequenceNumber)> {
        let mut cursor = self.body;
        // extraFlags and octetsToInlineQos.
        cursor.u32().ok()?;
        let (reader_id, writer_id) = (cursor.entity_id().ok()?, cursor.entity_id().ok()?);
        Some((reader_id, writer_id, cursor.valid_sequence_number().ok()?))
    }

    /// Its body as HEARTBEAT.
    #[inline]
    pub fn heartbeat(&self) -> Result<Heartbeat, WireError> {
        Heartbeat::read(self.flags, self.body)
    }

    /// Its body as INFO_TS.
    #[inline]
    pub fn info_timestamp(&self) -> Result<Option<Timestamp>, WireError> {
        crate::interpreter::read_info_ts(self.flags, self.body)
    }

    /// Its body as INFO_DST.
    #[inline]
    pub fn info_destination(&self) -> Result<GuidPrefix, WireError> {
        let mut body = self.body;
        body.guid_prefix()
    }

    /// Its body as ACKNACK.
    #[inline]
    pub fn acknack(&self) -> Result<AckNack, WireError> {
        AckNack::read(self.flags, self.body)
    }

    /// Its body as what its kind says.
    #[inline]
    pub fn read(self) -> Result<Submessage<'a>, WireError> {
        // What most messages consist of, without a way through memory.
        Ok(match self.id {
            SubmessageKind::DATA => Submessage::Data(self.data()?),
            SubmessageKind::INFO_TS => Submessage::InfoTimestamp(self.info_timestamp()?),
            SubmessageKind::HEARTBEAT => Submessage::Heartbeat(self.heartbeat()?),
            _ => return read_other(self.id, self.flags, self.body),
        })
    }
}

fn read_other(id: SubmessageKind, flags: u8, body: Cursor<'_>) -> Result<Submessage<'_>, WireError> {
    let mut cursor = body;
    Ok(match id {
        SubmessageKind::DATA_FRAG => Submessage::DataFrag(DataFrag::read(flags, cursor)?),
        SubmessageKind::HEARTBEAT_FRAG => Submessage::HeartbeatFrag(HeartbeatFrag::read(cursor)?),
        SubmessageKind::ACKNACK => Submessage::AckNack(AckNack::read(flags, cursor)?),
        SubmessageKind::NACK_FRAG => Submessage::NackFrag(NackFrag::read(cursor)?),
        SubmessageKind::GAP => Submessage::Gap(Gap::read(flags, cursor)?),
        SubmessageKind::INFO_DST => Submessage::InfoDestination(cursor.guid_prefix()?),
        SubmessageKind::INFO_SRC => Submessage::InfoSource(InfoSource::read(cursor)?),
        SubmessageKind::INFO_REPLY => Submessage::InfoReply(InfoReply::read(flags, cursor)?),
        SubmessageKind::INFO_REPLY_IP4 => Submessage::InfoReplyIp4(InfoReplyIp4::read(flags, cursor)?),
        SubmessageKind::PAD => Submessage::Pad,
        SubmessageKind::HEADER_EXTENSION => {
            Submessage::HeaderExtension(HeaderExtension::read(flags, cursor)?)
        }
        _ => Submessage::Unknown { id, flags, body: body.rest() },
    })
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let result = self.next_framed()?.and_then(Framed::read);
        if result.is_err() {
            self.rest = &[];
        }
        Some(result)
    }
}

/// Appends a whole submessage. The bodies written this way are far below 64 KiB, but for a list
/// of thousands of locators: then the length is 0, and the submessage must be the last.
pub(crate) fn write_submessage(
    out: &mut Vec<u8>,
    endian: Endian,
    kind: SubmessageKind,
    flags: u8,
    body: impl FnOnce(&mut Out<'_>),
) {
    let start = write_submessage_header(out, endian, kind, flags, 0);
    let mut content = Out::new(out, endian);
    body(&mut content);
    let length = content.position();
    set_length(out, endian, start, length);
}

/// Appends the 4 bytes of a submessage header and returns where they are.
pub(crate) fn write_submessage_header(
    out: &mut Vec<u8>,
    endian: Endian,
    kind: SubmessageKind,
    flags: u8,
    length: usize,
) -> usize {
    let start = out.len();
    out.extend_from_slice(&[kind.0, flags | endian.flag(), 0, 0]);
    set_length(out, endian, start, length);
    start
}

fn set_length(out: &mut [u8], endian: Endian, start: usize, length: usize) {
    let length = u16::try_from(length).unwrap_or(0);
    let bytes = match endian {
        Endian::Big => length.to_be_bytes(),
        Endian::Little => length.to_le_bytes(),
    };
    if let Some(place) = out.get_mut(start.saturating_add(2)..).and_then(|tail| tail.first_chunk_mut()) {
        *place = bytes;
    }
}
