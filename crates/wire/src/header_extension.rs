//! HEADER_EXTENSION: length, timestamp and checksum of a whole message. RTPS 2.5 §8.3.7, §9.4.5.2.
//!
//! Must never copy the message to check it: the checksum runs over the bytes as they lie, with
//! zeros in place of its own field.

use crc::{CRC_32_ISCSI, CRC_64_XZ, Crc};
use md5::{Digest, Md5};
use taut_base::Timestamp;

use crate::submessage::write_submessage;
use crate::{
    Cursor, Endian, HEADER_LEN, ParameterList, SUBMESSAGE_HEADER_LEN, Submessage, SubmessageKind,
    Submessages, WireError,
};

const FLAG_LENGTH: u8 = 0x02;
const FLAG_TIMESTAMP: u8 = 0x04;
const FLAG_UEXTENSION4: u8 = 0x08;
const FLAG_WEXTENSION8: u8 = 0x10;
const FLAG_CHECKSUM: u8 = 0x60;
const FLAG_PARAMETERS: u8 = 0x80;
const CHECKSUM_SHIFT: u32 = 5;

static CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
static CRC_64: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// Which checksum a message has. *Source*: RTPS 2.5 §9.4.5.2.1, the two C flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumKind {
    /// CRC-32C (Castagnoli), 4 bytes.
    Crc32c,
    /// CRC-64/XZ (ECMA-182), 8 bytes.
    Crc64,
    /// MD5, 16 bytes.
    Md5,
}

/// The checksum of a message. The numbers travel in big-endian order whatever the E flag says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// CRC-32C.
    Crc32c(u32),
    /// CRC-64/XZ.
    Crc64(u64),
    /// MD5.
    Md5([u8; 16]),
}

impl ChecksumKind {
    fn flags(self) -> u8 {
        (match self {
            ChecksumKind::Crc32c => 1,
            ChecksumKind::Crc64 => 2,
            ChecksumKind::Md5 => 3,
        }) << CHECKSUM_SHIFT
    }

    fn from_flags(flags: u8) -> Option<ChecksumKind> {
        match (flags & FLAG_CHECKSUM) >> CHECKSUM_SHIFT {
            1 => Some(ChecksumKind::Crc32c),
            2 => Some(ChecksumKind::Crc64),
            3 => Some(ChecksumKind::Md5),
            _ => None,
        }
    }

    /// The length of the field. *Units*: bytes.
    pub fn field_len(self) -> usize {
        match self {
            ChecksumKind::Crc32c => 4,
            ChecksumKind::Crc64 => 8,
            ChecksumKind::Md5 => 16,
        }
    }

    /// The checksum of the bytes of all parts together. *Cost*: reads each byte once.
    pub fn compute<'a>(self, parts: impl Iterator<Item = &'a [u8]>) -> Checksum {
        match self {
            ChecksumKind::Crc32c => {
                let mut digest = CRC_32C.digest();
                parts.for_each(|part| digest.update(part));
                Checksum::Crc32c(digest.finalize())
            }
            ChecksumKind::Crc64 => {
                let mut digest = CRC_64.digest();
                parts.for_each(|part| digest.update(part));
                Checksum::Crc64(digest.finalize())
            }
            ChecksumKind::Md5 => {
                let mut digest = Md5::new();
                parts.for_each(|part| digest.update(part));
                Checksum::Md5(digest.finalize().into())
            }
        }
    }

    fn zero(self) -> Checksum {
        match self {
            ChecksumKind::Crc32c => Checksum::Crc32c(0),
            ChecksumKind::Crc64 => Checksum::Crc64(0),
            ChecksumKind::Md5 => Checksum::Md5([0; 16]),
        }
    }

    fn read(self, cursor: &mut Cursor<'_>) -> Result<Checksum, WireError> {
        Ok(match self {
            ChecksumKind::Crc32c => Checksum::Crc32c(u32::from_be_bytes(cursor.array()?)),
            ChecksumKind::Crc64 => Checksum::Crc64(u64::from_be_bytes(cursor.array()?)),
            ChecksumKind::Md5 => Checksum::Md5(cursor.array()?),
        })
    }
}

impl Checksum {
    /// Which one it is.
    pub fn kind(&self) -> ChecksumKind {
        match self {
            Checksum::Crc32c(_) => ChecksumKind::Crc32c,
            Checksum::Crc64(_) => ChecksumKind::Crc64,
            Checksum::Md5(_) => ChecksumKind::Md5,
        }
    }

    fn with_bytes(&self, use_bytes: impl FnOnce(&[u8])) {
        match self {
            Checksum::Crc32c(value) => use_bytes(&value.to_be_bytes()),
            Checksum::Crc64(value) => use_bytes(&value.to_be_bytes()),
            Checksum::Md5(value) => use_bytes(value),
        }
    }
}

/// More of the message header. Every part is optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderExtension<'a> {
    /// The length of the message from the first byte of its header. *Units*: bytes.
    pub message_length: Option<u32>,
    /// When the message was sent.
    pub timestamp: Option<Timestamp>,
    /// For later versions of the specification.
    pub uextension4: Option<[u8; 4]>,
    /// For later versions of the specification.
    pub wextension8: Option<[u8; 8]>,
    /// The checksum of the message with zeros in this field.
    pub checksum: Option<Checksum>,
    /// Whatever else.
    pub parameters: Option<ParameterList<'a>>,
}

impl<'a> HeaderExtension<'a> {
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'a>) -> Result<HeaderExtension<'a>, WireError> {
        let has = |flag: u8| flags & flag != 0;
        let mut extension = HeaderExtension::default();
        if has(FLAG_LENGTH) {
            extension.message_length = Some(cursor.u32()?);
        }
        if has(FLAG_TIMESTAMP) {
            extension.timestamp = Some(cursor.timestamp()?);
        }
        if has(FLAG_UEXTENSION4) {
            extension.uextension4 = Some(cursor.array()?);
        }
        if has(FLAG_WEXTENSION8) {
            extension.wextension8 = Some(cursor.array()?);
        }
        if let Some(kind) = ChecksumKind::from_flags(flags) {
            extension.checksum = Some(kind.read(&mut cursor)?);
        }
        if has(FLAG_PARAMETERS) {
            let list = ParameterList::read(&mut cursor)?;
            // RTPS 2.5 §9.4.2.11.2: none is defined here, so none can be understood.
            for parameter in list {
                if parameter?.pid.must_understand() {
                    return Err(WireError::NotUnderstood);
                }
            }
            extension.parameters = Some(list);
        }
        Ok(extension)
    }

    fn flags(&self) -> u8 {
        let mut flags = self.checksum.map_or(0, |checksum| checksum.kind().flags());
        for (present, flag) in [
            (self.message_length.is_some(), FLAG_LENGTH),
            (self.timestamp.is_some(), FLAG_TIMESTAMP),
            (self.uextension4.is_some(), FLAG_UEXTENSION4),
            (self.wextension8.is_some(), FLAG_WEXTENSION8),
            (self.parameters.is_some(), FLAG_PARAMETERS),
        ] {
            flags |= if present { flag } else { 0 };
        }
        flags
    }

    /// Appends the whole submessage. Length and checksum are right only after
    /// [`HeaderExtension::seal`]. Parameters are in the byte order that they have: it must be `endian`.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        write_submessage(out, endian, SubmessageKind::HEADER_EXTENSION, self.flags(), |body| {
            if let Some(length) = self.message_length {
                body.put_u32(length);
            }
            if let Some(time) = self.timestamp {
                body.put_timestamp(time);
            }
            body.put_bytes(self.uextension4.as_ref().map_or(&[], |bytes| bytes));
            body.put_bytes(self.wextension8.as_ref().map_or(&[], |bytes| bytes));
            if let Some(checksum) = self.checksum {
                checksum.with_bytes(|bytes| body.put_bytes(bytes));
            }
            if let Some(list) = &self.parameters {
                body.put_bytes(list.bytes());
            }
        });
    }

    /// Where the checksum is in the message. *Units*: bytes from the header's first.
    fn checksum_offset(&self) -> usize {
        [
            self.message_length.map_or(0, |_| 4),
            self.timestamp.map_or(0, |_| 8),
            self.uextension4.map_or(0, |_| 4),
            self.wextension8.map_or(0, |_| 8),
        ]
        .into_iter()
        .fold(HEADER_LEN.saturating_add(SUBMESSAGE_HEADER_LEN), usize::saturating_add)
    }

    /// The HEADER_EXTENSION of a message, checked: `None` if the message has none.
    ///
    /// *Errors*: [`WireError::BadLength`] and [`WireError::ChecksumMismatch`] if the message is not
    /// the one that was sent; else what reading the submessage gives.
    pub fn verify(message: &'a [u8]) -> Result<Option<HeaderExtension<'a>>, WireError> {
        let Some((_, rest)) = message.split_at_checked(HEADER_LEN) else { return Err(WireError::Truncated) };
        if rest.first() != Some(&SubmessageKind::HEADER_EXTENSION.0) {
            return Ok(None);
        }
        let Some(Submessage::HeaderExtension(extension)) = Submessages::new(rest).next().transpose()? else {
            return Ok(None);
        };
        if extension.message_length.is_some_and(|length| u64::from(length) != message.len() as u64) {
            return Err(WireError::BadLength);
        }
        let Some(sent) = extension.checksum else { return Ok(Some(extension)) };
        let (kind, zeros) = (sent.kind(), [0; 16]);
        let (before, tail) =
            message.split_at_checked(extension.checksum_offset()).ok_or(WireError::Truncated)?;
        let after = tail.get(kind.field_len()..).ok_or(WireError::Truncated)?;
        let blank = zeros.get(..kind.field_len()).unwrap_or_default();
        let computed = kind.compute([before, blank, after].into_iter());
        if computed == sent { Ok(Some(extension)) } else { Err(WireError::ChecksumMismatch) }
    }

    /// Sets length and checksum of a message whose header and HEADER_EXTENSION are at the start of
    /// `head` and which goes on in `rest`, part by part. Does nothing if there is no extension.
    ///
    /// *Errors*: what reading `head` back gives; none for what [`HeaderExtension::write`] wrote.
    pub fn seal(head: &mut [u8], rest: &[&[u8]]) -> Result<(), WireError> {
        let (_, body) = head.split_at_checked(HEADER_LEN).ok_or(WireError::Truncated)?;
        let flags = match body {
            [id, flags, ..] if *id == SubmessageKind::HEADER_EXTENSION.0 => *flags,
            _ => return Ok(()),
        };
        let Some(Submessage::HeaderExtension(extension)) = Submessages::new(body).next().transpose()? else {
            return Ok(());
        };
        let (has_length, kind) = (extension.message_length.is_some(), extension.checksum.map(|c| c.kind()));
        let offset = extension.checksum_offset();
        if has_length {
            let length = rest.iter().fold(head.len(), |sum, part| sum.saturating_add(part.len()));
            let length = u32::try_from(length).map_err(|_| WireError::BadLength)?;
            let bytes = match Endian::from_flags(flags) {
                Endian::Big => length.to_be_bytes(),
                Endian::Little => length.to_le_bytes(),
            };
            replace(head, HEADER_LEN.saturating_add(SUBMESSAGE_HEADER_LEN), &bytes);
        }
        if let Some(kind) = kind {
            kind.zero().with_bytes(|bytes| replace(head, offset, bytes));
            let parts = std::iter::once(&*head).chain(rest.iter().copied());
            let checksum = kind.compute(parts);
            checksum.with_bytes(|bytes| replace(head, offset, bytes));
        }
        Ok(())
    }
}

fn replace(bytes: &mut [u8], offset: usize, value: &[u8]) {
    let end = offset.saturating_add(value.len());
    if let Some(place) = bytes.get_mut(offset..end) {
        place.copy_from_slice(value);
    }
}
