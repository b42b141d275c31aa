//! DATA: one change, or the key of one. RTPS 2.5 §8.3.8.2, §9.4.5.4.

use taut_base::{EntityId, SequenceNumber, Timestamp};

use crate::interpreter::{INFO_TS_LEN, put_info_ts};
use crate::short::Short;
use crate::{
    Cursor, ENCAPSULATION_HEADER_LEN, Endian, HEADER_LEN, Header, ParameterList, SUBMESSAGE_HEADER_LEN,
    SubmessageKind, WireError,
};

const FLAG_INLINE_QOS: u8 = 0x02;
const FLAG_DATA: u8 = 0x04;
const FLAG_KEY: u8 = 0x08;
const FLAG_NON_STANDARD: u8 = 0x10;

/// readerId, writerId, writerSN: what stands between octetsToInlineQos and the inline QoS.
const OCTETS_TO_INLINE_QOS: u16 = 16;
/// extraFlags, octetsToInlineQos, and these.
const DATA_FIXED: usize = 20;

/// What a DATA carries, encapsulation header included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// Nothing: the inline QoS says it all.
    None,
    /// The serialized data.
    Data(&'a [u8]),
    /// The serialized key.
    Key(&'a [u8]),
}

/// Which payload a [`DataHeader`] announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadKind {
    /// Nothing.
    None,
    /// Serialized data.
    Data,
    /// A serialized key.
    Key,
}

/// A DATA submessage, read in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Who wrote it.
    pub writer_id: EntityId,
    /// Its number. *Range*: from 1.
    pub writer_sn: SequenceNumber,
    /// What is said about this change alone.
    pub inline_qos: Option<ParameterList<'a>>,
    /// What it carries.
    pub payload: Payload<'a>,
}

impl<'a> Data<'a> {
    #[inline]
    pub(crate) fn read(flags: u8, cursor: Cursor<'a>) -> Result<Data<'a>, WireError> {
        let mut rest = cursor;
        // Behind two bytes of extraFlags.
        let fixed = rest.fixed::<DATA_FIXED>()?;
        let to_inline_qos = fixed.u16::<2>();
        let (reader_id, writer_id) = (fixed.entity_id::<4>(), fixed.entity_id::<8>());
        let writer_sn = fixed.sequence_number::<12>();
        if writer_sn < SequenceNumber::FIRST {
            return Err(WireError::BadSequenceNumber);
        }
        let (inline_qos, cursor) = if flags & FLAG_INLINE_QOS == 0 && to_inline_qos == OCTETS_TO_INLINE_QOS {
            (None, rest)
        } else {
            let mut at = cursor;
            at.bytes(4)?;
            read_inline_qos(flags & FLAG_INLINE_QOS != 0, at, to_inline_qos, OCTETS_TO_INLINE_QOS)?
        };
        let bytes = cursor.rest();
        let payload = match (flags & FLAG_DATA != 0, flags & FLAG_KEY != 0) {
            (false, false) => Payload::None,
            (true, false) => Payload::Data(bytes),
            (false, true) => Payload::Key(bytes),
            // RTPS 2.5 §9.4.5.4.1: a combination that is not valid.
            (true, true) => return Err(WireError::BadFlags),
        };
        let encapsulated = payload != Payload::None && flags & FLAG_NON_STANDARD == 0;
        if encapsulated && bytes.len() < ENCAPSULATION_HEADER_LEN {
            return Err(WireError::BadPayload);
        }
        Ok(Data { reader_id, writer_id, writer_sn, inline_qos, payload })
    }
}

/// Steps from `at`, the byte after octetsToInlineQos, to the inline QoS and past it. `least` is
/// what the fields in between take in this version: later ones may have more (RTPS 2.5 §9.4.5.4.4).
pub(crate) fn read_inline_qos(
    present: bool,
    at: Cursor<'_>,
    to_inline_qos: u16,
    least: u16,
) -> Result<(Option<ParameterList<'_>>, Cursor<'_>), WireError> {
    let mut cursor = at;
    if to_inline_qos < least || !to_inline_qos.is_multiple_of(4) {
        return Err(WireError::BadInlineQosOffset);
    }
    cursor.bytes(usize::from(to_inline_qos)).map_err(|_| WireError::BadInlineQosOffset)?;
    if !present {
        return Ok((None, cursor));
    }
    let list = ParameterList::read(&mut cursor)?;
    Ok((Some(list), cursor))
}

/// Everything of a DATA submessage up to its payload, which travels as a part of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataHeader {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Who wrote it.
    pub writer_id: EntityId,
    /// Its number. *Range*: from 1.
    pub writer_sn: SequenceNumber,
}

impl DataHeader {
    /// Appends everything up to the payload.
    ///
    /// `inline_qos` is an encoded parameter list in the same byte order, sentinel included, or
    /// empty. `payload_len` counts the bytes that the caller sends right after, with any padding.
    ///
    /// Returns whether another submessage may follow. It may not if `payload_len` is not a multiple
    /// of 4, or if the submessage exceeds 65,535 bytes: its octetsToNextHeader is then 0, "to the end
    /// of the message".
    ///
    /// ```
    /// use taut_base::{EntityId, SequenceNumber};
    /// use taut_wire::{DataHeader, Endian, Payload, PayloadKind, Submessage, Submessages};
    /// let header = DataHeader {
    ///     reader_id: EntityId::UNKNOWN,
    ///     writer_id: EntityId::user(1, true, false),
    ///     writer_sn: SequenceNumber(1),
    /// };
    /// let payload = [0, 1, 0, 0, 42, 0, 0, 0];
    /// let mut message = Vec::new();
    /// assert!(header.write(&mut message, Endian::Little, &[], PayloadKind::Data, payload.len()));
    /// message.extend_from_slice(&payload);
    /// let Some(Ok(Submessage::Data(data))) = Submessages::new(&message).next() else { panic!() };
    /// assert_eq!(data.payload, Payload::Data(&payload));
    /// ```
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        endian: Endian,
        inline_qos: &[u8],
        payload_kind: PayloadKind,
        payload_len: usize,
    ) -> bool {
        let qos_flag = if inline_qos.is_empty() { 0 } else { FLAG_INLINE_QOS };
        let length = DATA_FIXED.saturating_add(inline_qos.len()).saturating_add(payload_len);
        let mut short = Short::<{ SUBMESSAGE_HEADER_LEN + DATA_FIXED }>::new(endian);
        self.put(&mut short, payload_flag(payload_kind) | qos_flag, length);
        short.append_to(out);
        out.extend_from_slice(inline_qos);
        may_be_followed(length)
    }

    /// Appends the header of a message, INFO_TS, and the same without inline QoS: what most messages begin with. The same
    /// bytes as one after the other, in one piece.
    #[inline]
    pub fn write_first(
        &self,
        out: &mut Vec<u8>,
        endian: Endian,
        (header, time): (&Header, Timestamp),
        payload_kind: PayloadKind,
        payload_len: usize,
    ) {
        let length = DATA_FIXED.saturating_add(payload_len);
        let mut short =
            Short::<{ HEADER_LEN + INFO_TS_LEN + SUBMESSAGE_HEADER_LEN + DATA_FIXED }>::new(endian);
        header.put(&mut short);
        put_info_ts(&mut short, time);
        self.put(&mut short, payload_flag(payload_kind), length);
        short.append_to(out);
    }

    #[inline]
    fn put<const N: usize>(&self, short: &mut Short<N>, flags: u8, length: usize) {
        short.put_header(SubmessageKind::DATA, flags, length);
        short.put_u16(0);
        short.put_u16(OCTETS_TO_INLINE_QOS);
        short.put(self.reader_id.0);
        short.put(self.writer_id.0);
        short.put_sequence_number(self.writer_sn);
    }
}

#[inline]
fn payload_flag(kind: PayloadKind) -> u8 {
    match kind {
        PayloadKind::None => 0,
        PayloadKind::Data => FLAG_DATA,
        PayloadKind::Key => FLAG_KEY,
    }
}

pub(crate) fn may_be_followed(length: usize) -> bool {
    length.is_multiple_of(4) && u16::try_from(length).is_ok()
}
