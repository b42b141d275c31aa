//! DATA_FRAG: consecutive fragments of one change. RTPS 2.5 §8.3.8.3, §9.4.5.5.

use taut_base::{EntityId, FragmentNumber, SequenceNumber};

use crate::data::{may_be_followed, read_inline_qos};
use crate::submessage::write_submessage_header;
use crate::{Cursor, Endian, Out, ParameterList, SubmessageKind, WireError};

const FLAG_INLINE_QOS: u8 = 0x02;
const FLAG_KEY: u8 = 0x04;

/// readerId, writerId, writerSN and the four fields of the fragments.
const OCTETS_TO_INLINE_QOS: u16 = 28;

/// A DATA_FRAG submessage, read in place.
///
/// *Range*: once read, the fragments lie inside of the sample, and `payload` has exactly their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataFrag<'a> {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Who wrote it.
    pub writer_id: EntityId,
    /// The number of the change. *Range*: from 1.
    pub writer_sn: SequenceNumber,
    /// The first fragment here. *Range*: from 1.
    pub fragment_starting_num: FragmentNumber,
    /// How many fragments are here. *Range*: from 1.
    pub fragments_in_submessage: u16,
    /// The size of every fragment but the last. *Units*: bytes. *Range*: 1..=sample_size.
    pub fragment_size: u16,
    /// The size of the whole payload, encapsulation header included. *Units*: bytes.
    pub sample_size: u32,
    /// What is said about this change alone.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Is the sample a serialized key?
    pub key: bool,
    /// The bytes of the fragments here.
    pub payload: &'a [u8],
}

impl<'a> DataFrag<'a> {
    /// Where `payload` starts in the sample. *Units*: bytes.
    pub fn offset(&self) -> usize {
        let fragments_before = self.fragment_starting_num.saturating_sub(1) as usize;
        fragments_before.saturating_mul(usize::from(self.fragment_size))
    }

    /// How many fragments the sample has.
    pub fn fragment_count(&self) -> u32 {
        fragment_count(self.sample_size, self.fragment_size)
    }

    pub(crate) fn read(flags: u8, mut cursor: Cursor<'a>) -> Result<DataFrag<'a>, WireError> {
        let _extra_flags = cursor.u16()?;
        let to_inline_qos = cursor.u16()?;
        let at = cursor;
        let mut frag = DataFrag {
            reader_id: cursor.entity_id()?,
            writer_id: cursor.entity_id()?,
            writer_sn: cursor.valid_sequence_number()?,
            fragment_starting_num: cursor.u32()?,
            fragments_in_submessage: cursor.u16()?,
            fragment_size: cursor.u16()?,
            sample_size: cursor.u32()?,
            inline_qos: None,
            key: flags & FLAG_KEY != 0,
            payload: &[],
        };
        let length = frag.expected_length()?;
        let (inline_qos, cursor) =
            read_inline_qos(flags & FLAG_INLINE_QOS != 0, at, to_inline_qos, OCTETS_TO_INLINE_QOS)?;
        frag.inline_qos = inline_qos;
        let bytes = cursor.rest();
        // A submessage that is not the last is padded to 4 bytes; more than that is another size
        // than the one that the fields announce.
        if bytes.len().saturating_sub(length) > 3 {
            return Err(WireError::BadFragment);
        }
        frag.payload = bytes.get(..length).ok_or(WireError::BadFragment)?;
        Ok(frag)
    }

    /// How many bytes the announced fragments have, if they can exist. RTPS 2.5 §8.3.8.3.3.
    fn expected_length(&self) -> Result<usize, WireError> {
        let size = u64::from(self.fragment_size);
        let sample = u64::from(self.sample_size);
        let before = u64::from(self.fragment_starting_num).checked_sub(1).ok_or(WireError::BadFragment)?;
        let last = before.saturating_add(u64::from(self.fragments_in_submessage));
        let total = u64::from(self.fragment_count());
        if size == 0 || size > sample || self.fragments_in_submessage == 0 || last > total {
            return Err(WireError::BadFragment);
        }
        let end = last.saturating_mul(size).min(sample);
        let length = end.saturating_sub(before.saturating_mul(size));
        usize::try_from(length).map_err(|_| WireError::BadFragment)
    }
}

fn fragment_count(sample_size: u32, fragment_size: u16) -> u32 {
    if fragment_size == 0 { 0 } else { sample_size.div_ceil(u32::from(fragment_size)) }
}

/// Everything of a DATA_FRAG submessage up to its payload, which travels as a part of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataFragHeader {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Who wrote it.
    pub writer_id: EntityId,
    /// The number of the change. *Range*: from 1.
    pub writer_sn: SequenceNumber,
    /// The first fragment here. *Range*: from 1.
    pub fragment_starting_num: FragmentNumber,
    /// How many fragments are here. *Range*: from 1.
    pub fragments_in_submessage: u16,
    /// The size of every fragment but the last. *Units*: bytes.
    pub fragment_size: u16,
    /// The size of the whole payload, encapsulation header included. *Units*: bytes.
    pub sample_size: u32,
    /// Is the sample a serialized key?
    pub key: bool,
}

impl DataFragHeader {
    /// Appends everything up to the payload; the arguments and the result are those of
    /// [`DataHeader::write`](crate::DataHeader::write).
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian, inline_qos: &[u8], payload_len: usize) -> bool {
        let key_flag = if self.key { FLAG_KEY } else { 0 };
        let qos_flag = if inline_qos.is_empty() { 0 } else { FLAG_INLINE_QOS };
        let length = usize::from(OCTETS_TO_INLINE_QOS)
            .saturating_add(4)
            .saturating_add(inline_qos.len())
            .saturating_add(payload_len);
        write_submessage_header(out, endian, SubmessageKind::DATA_FRAG, key_flag | qos_flag, length);
        let mut body = Out::new(out, endian);
        body.put_u16(0);
        body.put_u16(OCTETS_TO_INLINE_QOS);
        body.put_entity_id(self.reader_id);
        body.put_entity_id(self.writer_id);
        body.put_sequence_number(self.writer_sn);
        body.put_u32(self.fragment_starting_num);
        body.put_u16(self.fragments_in_submessage);
        body.put_u16(self.fragment_size);
        body.put_u32(self.sample_size);
        body.put_bytes(inline_qos);
        may_be_followed(length)
    }
}
