//! HEARTBEAT and HEARTBEAT_FRAG: what a writer has. RTPS 2.5 §8.3.8.6-7, §9.4.5.7-8.

use taut_base::{EntityId, FragmentNumber, SequenceNumber};

use crate::short::Short;
use crate::submessage::write_submessage;
use crate::{Cursor, Endian, Out, SUBMESSAGE_HEADER_LEN, SubmessageKind, WireError};

const FLAG_FINAL: u8 = 0x02;
const FLAG_LIVELINESS: u8 = 0x04;
const FLAG_GROUP_INFO: u8 = 0x08;

/// The bytes from readerId to count, and those of the group information behind it.
const HEARTBEAT_FIXED: usize = 28;
const HEARTBEAT_GROUP: usize = 32;

/// A digest of a set of entities of one participant. *Source*: RTPS 2.5 §9.3.2.
pub type GroupDigest = [u8; 4];

/// The range of changes that a writer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Whose range it is.
    pub writer_id: EntityId,
    /// The first change that is available. *Range*: from 1.
    pub first_sn: SequenceNumber,
    /// The last change. *Range*: from `first_sn - 1`, which means that there is none.
    pub last_sn: SequenceNumber,
    /// Grows with each HEARTBEAT; a copy has the same.
    pub count: i32,
    /// Need no reader answer?
    pub final_flag: bool,
    /// Does it assert the writer's liveliness?
    pub liveliness_flag: bool,
    /// The state of the writer's group, for ordered access of GROUP scope.
    pub group_info: Option<HeartbeatGroupInfo>,
}

/// What a HEARTBEAT says of the publisher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatGroupInfo {
    /// The last group sequence number that was given out.
    pub current_gsn: SequenceNumber,
    /// The group sequence number of the writer's first change.
    pub first_gsn: SequenceNumber,
    /// The group sequence number of the writer's last change.
    pub last_gsn: SequenceNumber,
    /// The writers of the group.
    pub writer_set: GroupDigest,
    /// The secure writers of the group.
    pub secure_writer_set: GroupDigest,
}

/// first >= 1 and last >= first - 1: RTPS 2.5 §8.3.8.6.3.
fn check_range(first: SequenceNumber, last: SequenceNumber) -> Result<(), WireError> {
    if first < SequenceNumber::FIRST || last < first.prev() {
        return Err(WireError::BadSequenceNumber);
    }
    Ok(())
}

impl Heartbeat {
    #[inline]
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'_>) -> Result<Heartbeat, WireError> {
        let fixed = cursor.fixed::<HEARTBEAT_FIXED>()?;
        let heartbeat = Heartbeat {
            reader_id: fixed.entity_id::<0>(),
            writer_id: fixed.entity_id::<4>(),
            first_sn: fixed.sequence_number::<8>(),
            last_sn: fixed.sequence_number::<16>(),
            count: fixed.u32::<24>().cast_signed(),
            final_flag: flags & FLAG_FINAL != 0,
            liveliness_flag: flags & FLAG_LIVELINESS != 0,
            group_info: match flags & FLAG_GROUP_INFO {
                0 => None,
                _ => Some(HeartbeatGroupInfo::read(&mut cursor)?),
            },
        };
        check_range(heartbeat.first_sn, heartbeat.last_sn)?;
        Ok(heartbeat)
    }

    /// Appends the whole submessage.
    #[inline(always)]
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.final_flag, FLAG_FINAL)
            | flag(self.liveliness_flag, FLAG_LIVELINESS)
            | flag(self.group_info.is_some(), FLAG_GROUP_INFO);
        let group = if self.group_info.is_some() { HEARTBEAT_GROUP } else { 0 };
        let mut short = Short::<{ SUBMESSAGE_HEADER_LEN + HEARTBEAT_FIXED }>::new(endian);
        short.put_header(SubmessageKind::HEARTBEAT, flags, HEARTBEAT_FIXED.saturating_add(group));
        short.put(self.reader_id.0);
        short.put(self.writer_id.0);
        short.put_sequence_number(self.first_sn);
        short.put_sequence_number(self.last_sn);
        short.put_u32(self.count.cast_unsigned());
        short.append_to(out);
        if let Some(info) = &self.group_info {
            info.write(out, endian);
        }
    }
}

impl HeartbeatGroupInfo {
    fn read(cursor: &mut Cursor<'_>) -> Result<HeartbeatGroupInfo, WireError> {
        let info = HeartbeatGroupInfo {
            current_gsn: cursor.valid_sequence_number()?,
            first_gsn: cursor.sequence_number()?,
            last_gsn: cursor.sequence_number()?,
            writer_set: cursor.array()?,
            secure_writer_set: cursor.array()?,
        };
        check_range(info.first_gsn, info.last_gsn)?;
        if info.current_gsn < info.last_gsn {
            return Err(WireError::BadSequenceNumber);
        }
        Ok(info)
    }

    #[inline(never)]
    fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let mut body = Out::new(out, endian);
        body.put_sequence_number(self.current_gsn);
        body.put_sequence_number(self.first_gsn);
        body.put_sequence_number(self.last_gsn);
        body.put_bytes(&self.writer_set);
        body.put_bytes(&self.secure_writer_set);
    }
}

/// The fragments of a change that a writer has, while it does not have all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatFrag {
    /// Who it is for; ENTITYID_UNKNOWN is every reader that matches.
    pub reader_id: EntityId,
    /// Whose fragments they are.
    pub writer_id: EntityId,
    /// The change. *Range*: from 1.
    pub writer_sn: SequenceNumber,
    /// Every fragment up to this one is available. *Range*: from 1.
    pub last_fragment_num: FragmentNumber,
    /// Grows with each HEARTBEAT_FRAG.
    pub count: i32,
}

impl HeartbeatFrag {
    pub(crate) fn read(mut cursor: Cursor<'_>) -> Result<HeartbeatFrag, WireError> {
        let heartbeat = HeartbeatFrag {
            reader_id: cursor.entity_id()?,
            writer_id: cursor.entity_id()?,
            writer_sn: cursor.valid_sequence_number()?,
            last_fragment_num: cursor.u32()?,
            count: cursor.i32()?,
        };
        if heartbeat.last_fragment_num == 0 {
            return Err(WireError::BadFragment);
        }
        Ok(heartbeat)
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        write_submessage(out, endian, SubmessageKind::HEARTBEAT_FRAG, 0, |body| {
            body.put_entity_id(self.reader_id);
            body.put_entity_id(self.writer_id);
            body.put_sequence_number(self.writer_sn);
            body.put_u32(self.last_fragment_num);
            body.put_i32(self.count);
        });
    }
}
