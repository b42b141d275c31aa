//! ACKNACK and NACK_FRAG: what a reader has and misses. RTPS 2.5 §8.3.8.1, §8.3.8.10, §9.4.5.3, §9.4.5.14.

use taut_base::{EntityId, FragmentNumberSet, SequenceNumber, SequenceNumberSet};

use crate::short::Short;
use crate::submessage::write_submessage;
use crate::{Cursor, Endian, Out, SUBMESSAGE_HEADER_LEN, SubmessageKind, WireError};

const FLAG_FINAL: u8 = 0x02;

/// The bytes from readerId to the number of bits of the set.
const ACKNACK_FIXED: usize = 20;

/// Acknowledges everything below the base of the set, asks for its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckNack {
    /// Who has and misses.
    pub reader_id: EntityId,
    /// Whose changes.
    pub writer_id: EntityId,
    /// What is missing, from the first that is.
    pub reader_sn_state: SequenceNumberSet,
    /// Grows with each ACKNACK; a copy has the same.
    pub count: i32,
    /// Need the writer not answer with a HEARTBEAT?
    pub final_flag: bool,
}

impl AckNack {
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'_>) -> Result<AckNack, WireError> {
        Ok(AckNack {
            reader_id: cursor.entity_id()?,
            writer_id: cursor.entity_id()?,
            reader_sn_state: cursor.sequence_number_set()?,
            count: cursor.i32()?,
            final_flag: flags & FLAG_FINAL != 0,
        })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let flags = if self.final_flag { FLAG_FINAL } else { 0 };
        let (set, words) = (&self.reader_sn_state, self.reader_sn_state.words());
        let mut short = Short::<{ SUBMESSAGE_HEADER_LEN + ACKNACK_FIXED }>::new(endian);
        let behind = size_of_val(words).saturating_add(size_of_val(&self.count));
        short.put_header(SubmessageKind::ACKNACK, flags, ACKNACK_FIXED.saturating_add(behind));
        short.put(self.reader_id.0);
        short.put(self.writer_id.0);
        short.put_sequence_number(set.base());
        short.put_u32(set.num_bits());
        short.append_to(out);
        let mut rest = Out::new(out, endian);
        words.iter().for_each(|word| rest.put_u32(*word));
        rest.put_i32(self.count);
    }
}

/// Asks for fragments of one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackFrag {
    /// Who misses them.
    pub reader_id: EntityId,
    /// Who has them.
    pub writer_id: EntityId,
    /// The change. *Range*: from 1.
    pub writer_sn: SequenceNumber,
    /// The fragments that are missing.
    pub fragment_number_state: FragmentNumberSet,
    /// Grows with each NACK_FRAG.
    pub count: i32,
}

impl NackFrag {
    pub(crate) fn read(mut cursor: Cursor<'_>) -> Result<NackFrag, WireError> {
        Ok(NackFrag {
            reader_id: cursor.entity_id()?,
            writer_id: cursor.entity_id()?,
            writer_sn: cursor.valid_sequence_number()?,
            fragment_number_state: cursor.fragment_number_set()?,
            count: cursor.i32()?,
        })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        write_submessage(out, endian, SubmessageKind::NACK_FRAG, 0, |body| {
            body.put_entity_id(self.reader_id);
            body.put_entity_id(self.writer_id);
            body.put_sequence_number(self.writer_sn);
            body.put_fragment_number_set(&self.fragment_number_state);
            body.put_i32(self.count);
        });
    }
}
