//! GAP: changes that a reader must not wait for. RTPS 2.5 §8.3.8.4, §9.4.5.6.

use taut_base::{EntityId, SequenceNumber, SequenceNumberSet};

use crate::submessage::write_submessage;
use crate::{Cursor, Endian, SubmessageKind, WireError};

const FLAG_GROUP_INFO: u8 = 0x02;
const FLAG_FILTERED_COUNT: u8 = 0x04;

/// gap_start..gap_list.base() and the members of gap_list are irrelevant.
///
/// *Range*: `gap_start` may lie above the base, which the specification does not forbid; the range is
/// empty then. It may also span 2^62 numbers: it is an interval, never to be walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Whose changes.
    pub writer_id: EntityId,
    /// The first that is irrelevant. *Range*: from 1.
    pub gap_start: SequenceNumber,
    /// The end of the range, and more that are irrelevant from there on.
    pub gap_list: SequenceNumberSet,
    /// The same range in group sequence numbers.
    pub group_info: Option<GapGroupInfo>,
    /// How many of them a content filter of the writer held back.
    pub filtered_count: Option<i64>,
}

/// A range of group sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapGroupInfo {
    /// The first. *Range*: from 1.
    pub gap_start_gsn: SequenceNumber,
    /// The last. *Range*: from `gap_start_gsn - 1`.
    pub gap_end_gsn: SequenceNumber,
}

impl Gap {
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'_>) -> Result<Gap, WireError> {
        Ok(Gap {
            reader_id: cursor.entity_id()?,
            writer_id: cursor.entity_id()?,
            gap_start: cursor.valid_sequence_number()?,
            gap_list: cursor.sequence_number_set()?,
            group_info: match flags & FLAG_GROUP_INFO {
                0 => None,
                _ => Some(GapGroupInfo::read(&mut cursor)?),
            },
            filtered_count: match flags & FLAG_FILTERED_COUNT {
                0 => None,
                _ => Some(cursor.sequence_number()?.0),
            },
        })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let group = if self.group_info.is_some() { FLAG_GROUP_INFO } else { 0 };
        let filtered = if self.filtered_count.is_some() { FLAG_FILTERED_COUNT } else { 0 };
        write_submessage(out, endian, SubmessageKind::GAP, group | filtered, |body| {
            body.put_entity_id(self.reader_id);
            body.put_entity_id(self.writer_id);
            body.put_sequence_number(self.gap_start);
            body.put_sequence_number_set(&self.gap_list);
            if let Some(info) = &self.group_info {
                body.put_sequence_number(info.gap_start_gsn);
                body.put_sequence_number(info.gap_end_gsn);
            }
            if let Some(count) = self.filtered_count {
                body.put_sequence_number(SequenceNumber(count));
            }
        });
    }
}

impl GapGroupInfo {
    fn read(cursor: &mut Cursor<'_>) -> Result<GapGroupInfo, WireError> {
        let (start, end) = (cursor.valid_sequence_number()?, cursor.valid_sequence_number()?);
        // RTPS 2.5 §8.3.8.4.3.
        if end < start.prev() {
            return Err(WireError::BadSequenceNumber);
        }
        Ok(GapGroupInfo { gap_start_gsn: start, gap_end_gsn: end })
    }
}
