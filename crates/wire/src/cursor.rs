//! The one checked reader of bytes from outside. RTPS 2.5 §9.3.2, §9.4.2.
//!
//! Must never copy, allocate or step past the end; every method says so with a [`WireError`].
//! Every parser of this crate and of discovery calls it.

use taut_base::{
    Duration, EntityId, FragmentNumber, FragmentNumberSet, Guid, GuidPrefix, Locator, LocatorKind,
    ProtocolVersion, SequenceNumber, SequenceNumberSet, Timestamp, VendorId,
};

use crate::WireError;
use crate::fields::Fields;

/// A byte order. *Source*: RTPS 2.5 §9.4.5.1.2, the E flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Endian {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Endian {
    /// From the flags of a submessage: the lowest bit set means little.
    pub const fn from_flags(flags: u8) -> Endian {
        if flags & 1 == 1 { Endian::Little } else { Endian::Big }
    }

    /// The E flag.
    pub const fn flag(self) -> u8 {
        match self {
            Endian::Big => 0,
            Endian::Little => 1,
        }
    }
}

/// Reads values from the front of a slice.
///
/// *Cost*: no copies, no allocations. *Errors*: [`WireError::Truncated`] wherever bytes are missing.
///
/// ```
/// use taut_wire::{Cursor, Endian};
/// let mut cursor = Cursor::new(&[0, 0, 0, 5], Endian::Big);
/// assert_eq!(cursor.u32(), Ok(5));
/// assert!(cursor.u8().is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
    endian: Endian,
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $kind:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$kind, WireError> {
            let bytes = self.array()?;
            Ok(match self.endian {
                Endian::Big => <$kind>::from_be_bytes(bytes),
                Endian::Little => <$kind>::from_le_bytes(bytes),
            })
        }
    )*};
}

/// Fewer bytes than the field has.
#[cold]
fn truncated<T>() -> Result<T, WireError> {
    Err(WireError::Truncated)
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte, which is also the origin of [`Cursor::align`].
    pub const fn new(bytes: &'a [u8], endian: Endian) -> Cursor<'a> {
        Cursor { rest: bytes, length: bytes.len(), endian }
    }

    /// The byte order of the numbers.
    pub const fn endian(&self) -> Endian {
        self.endian
    }

    /// How many bytes are left.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that are left; the cursor stays where it is.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes were read.
    pub const fn position(&self) -> usize {
        self.length.saturating_sub(self.rest.len())
    }

    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else { return truncated() };
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else { return truncated() };
        self.rest = rest;
        Ok(*head)
    }

    /// The next `N` bytes, whose fields are then read without a check of each.
    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<Fields<'a, N>, WireError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else { return truncated() };
        self.rest = rest;
        Ok(Fields::new(head, self.endian))
    }

    /// Steps to the next multiple of `n` bytes from the start. *Range*: a power of two.
    pub fn align(&mut self, n: usize) -> Result<(), WireError> {
        let position = self.position();
        let padding = position.checked_next_multiple_of(n).unwrap_or(position).saturating_sub(position);
        self.bytes(padding).map(|_| ())
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    numbers! {
        /// Two bytes.
        u16: u16;
        /// Four bytes.
        u32: u32;
        /// Four bytes with a sign.
        i32: i32;
        /// Eight bytes.
        u64: u64;
        /// Eight bytes with a sign.
        i64: i64;
    }

    /// A boolean. *Errors*: [`WireError::BadParameter`] for anything but 0 and 1.
    pub fn boolean(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::BadParameter),
        }
    }

    /// 12 bytes; the byte order does not matter.
    #[inline]
    pub fn guid_prefix(&mut self) -> Result<GuidPrefix, WireError> {
        self.array().map(GuidPrefix)
    }

    /// 4 bytes; the byte order does not matter.
    #[inline]
    pub fn entity_id(&mut self) -> Result<EntityId, WireError> {
        self.array().map(EntityId)
    }

    /// 16 bytes; the byte order does not matter.
    pub fn guid(&mut self) -> Result<Guid, WireError> {
        self.array().map(Guid::from_bytes)
    }

    /// 2 bytes.
    pub fn vendor_id(&mut self) -> Result<VendorId, WireError> {
        self.array().map(VendorId)
    }

    /// 2 bytes.
    pub fn protocol_version(&mut self) -> Result<ProtocolVersion, WireError> {
        let [major, minor] = self.array()?;
        Ok(ProtocolVersion { major, minor })
    }

    /// 24 bytes: kind, port, address. What the kind means is not checked here.
    pub fn locator(&mut self) -> Result<Locator, WireError> {
        Ok(Locator { kind: LocatorKind(self.i32()?), port: self.u32()?, address: self.array()? })
    }

    /// 8 bytes: high word, low word. Any value; see [`Cursor::valid_sequence_number`].
    #[inline]
    pub fn sequence_number(&mut self) -> Result<SequenceNumber, WireError> {
        let (high, low) = (self.i32()?, self.u32()?);
        Ok(SequenceNumber((i64::from(high) << 32) | i64::from(low)))
    }

    /// The number of a change. *Range*: 1..=2^63-1, else [`WireError::BadSequenceNumber`].
    #[inline]
    pub fn valid_sequence_number(&mut self) -> Result<SequenceNumber, WireError> {
        self.sequence_number().and_then(|sn| {
            if sn >= SequenceNumber::FIRST { Ok(sn) } else { Err(WireError::BadSequenceNumber) }
        })
    }

    fn set_words(&mut self) -> Result<(u32, [u32; 8]), WireError> {
        let num_bits = self.u32()?;
        if num_bits > 256 {
            return Err(WireError::BadSet);
        }
        let mut words = [0; 8];
        for word in words.iter_mut().take(num_bits.div_ceil(32) as usize) {
            *word = self.u32()?;
        }
        Ok((num_bits, words))
    }

    /// A SequenceNumberSet. *Errors*: [`WireError::BadSet`] over 256 bits or for a base below 1.
    ///
    /// An empty set of base 0 reads as an empty set of base 1, which says the same: Fast DDS writes
    /// it in the ACKNACK with which it greets a writer.
    pub fn sequence_number_set(&mut self) -> Result<SequenceNumberSet, WireError> {
        let base = self.sequence_number()?;
        let (num_bits, words) = self.set_words()?;
        if base == SequenceNumber::ZERO && num_bits == 0 {
            return Ok(SequenceNumberSet::new(SequenceNumber::FIRST));
        }
        let bits = i64::from(num_bits);
        // RTPS 2.5 §9.4.2.6: every member is a sequence number, so the last one must exist.
        if base.0.checked_add(bits).is_none() {
            return Err(WireError::BadSet);
        }
        SequenceNumberSet::from_parts(base, num_bits, &words).ok_or(WireError::BadSet)
    }

    /// A FragmentNumberSet. *Errors*: [`WireError::BadSet`] over 256 bits or for base 0.
    pub fn fragment_number_set(&mut self) -> Result<FragmentNumberSet, WireError> {
        let base: FragmentNumber = self.u32()?;
        let (num_bits, words) = self.set_words()?;
        if base.checked_add(num_bits).is_none() {
            return Err(WireError::BadSet);
        }
        FragmentNumberSet::from_parts(base, num_bits, &words).ok_or(WireError::BadSet)
    }

    /// Seconds and 2^-32 s since 1970.
    pub fn timestamp(&mut self) -> Result<Timestamp, WireError> {
        Ok(Timestamp { seconds: self.u32()?, fraction: self.u32()? })
    }

    /// Seconds and 2^-32 s. *Errors*: [`WireError::BadDuration`] if negative.
    pub fn duration(&mut self) -> Result<Duration, WireError> {
        let (seconds, fraction) = (self.i32()?, self.u32()?);
        Duration::from_wire(seconds, fraction).ok_or(WireError::BadDuration)
    }

    /// A CDR string: length with the NUL, then the bytes. Does not align.
    ///
    /// *Errors*: [`WireError::BadString`] without the NUL, with one inside, or if it is not UTF-8.
    /// A length of 0 reads as the empty string, which some writers mean by it.
    pub fn string(&mut self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.characters()?).map_err(|_| WireError::BadString)
    }

    /// The same without its NUL, in whatever character set its writer has.
    pub fn characters(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.u32()?).map_err(|_| WireError::Truncated)?;
        if length == 0 {
            return Ok(&[]);
        }
        let Some((0, text)) = self.bytes(length)?.split_last() else { return Err(WireError::BadString) };
        if text.contains(&0) { Err(WireError::BadString) } else { Ok(text) }
    }

    /// A sequence of octets: length, then the bytes. Does not align.
    pub fn octets(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.u32()?).map_err(|_| WireError::Truncated)?;
        self.bytes(length)
    }

    /// The count of a sequence whose elements take at least `min_size` bytes each: memory may be taken for it.
    ///
    /// *Errors*: [`WireError::BadCount`] if the bytes that are left cannot hold so many.
    pub fn count(&mut self, min_size: usize) -> Result<usize, WireError> {
        let count = usize::try_from(self.u32()?).map_err(|_| WireError::BadCount)?;
        let most = self.remaining().checked_div(min_size).unwrap_or(0);
        if count <= most { Ok(count) } else { Err(WireError::BadCount) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(Cursor::new(&bytes, Endian::Big).u64(), Ok(0x0102_0304_0506_0708));
        assert_eq!(Cursor::new(&bytes, Endian::Little).u16(), Ok(0x0201));
        let sn = Cursor::new(&bytes, Endian::Little).sequence_number();
        assert_eq!(sn, Ok(SequenceNumber(0x0403_0201_0807_0605)));
    }

    #[test]
    fn aligns_from_the_start() {
        let mut cursor = Cursor::new(&[9, 0, 0, 0, 7], Endian::Big);
        assert_eq!((cursor.u8(), cursor.align(4), cursor.u8()), (Ok(9), Ok(()), Ok(7)));
        assert_eq!(cursor.align(4), Err(WireError::Truncated));
    }

    #[test]
    fn strings() {
        let read = |bytes: &[u8]| Cursor::new(bytes, Endian::Big).string().map(str::to_owned);
        assert_eq!(read(&[0, 0, 0, 3, b'a', b'b', 0]), Ok("ab".into()));
        assert_eq!(read(&[0, 0, 0, 0]), Ok("".into()));
        assert_eq!(read(&[0, 0, 0, 2, b'a', b'b']), Err(WireError::BadString));
        assert_eq!(read(&[0, 0, 0, 3, b'a', 0, 0]), Err(WireError::BadString));
        assert_eq!(read(&[0, 0, 0, 2, 0xff, 0]), Err(WireError::BadString));
        assert_eq!(read(&[0x80, 0, 0, 0, b'a']), Err(WireError::Truncated));
    }

    #[test]
    fn counts_are_bounded_by_the_bytes() {
        assert_eq!(Cursor::new(&[0, 0, 0, 2, 1, 2], Endian::Big).count(1), Ok(2));
        assert_eq!(Cursor::new(&[0, 0, 0, 2, 1, 2], Endian::Big).count(2), Err(WireError::BadCount));
        assert_eq!(Cursor::new(&[0, 0, 0, 1, 1], Endian::Big).count(0), Err(WireError::BadCount));
    }

    #[test]
    fn sets() {
        let base_zero = [0; 12];
        let set = Cursor::new(&base_zero, Endian::Big).sequence_number_set();
        assert_eq!(set, Ok(SequenceNumberSet::new(SequenceNumber::FIRST)));
        let mut top = [0xff; 16];
        top[0] = 0x7f;
        top[8..12].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(Cursor::new(&top, Endian::Big).sequence_number_set(), Err(WireError::BadSet));
    }
}
