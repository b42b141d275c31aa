//! Fields at places that the code knows, behind one check for all of them. RTPS 2.5 §9.3.2, §9.4.2.
//!
//! Must never copy more than a field. A field that lies outside does not compile. Called for what every sample brings:
//! header, INFO_TS, DATA up to its payload, HEARTBEAT.

use taut_base::{EntityId, GuidPrefix, SequenceNumber};

use crate::Endian;

/// The first `N` bytes of a submessage, or of a message; [`Cursor::fixed`](crate::Cursor::fixed) makes it.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a, const N: usize> {
    bytes: &'a [u8; N],
    endian: Endian,
}

impl<'a, const N: usize> Fields<'a, N> {
    #[inline]
    pub fn new(bytes: &'a [u8; N], endian: Endian) -> Fields<'a, N> {
        Fields { bytes, endian }
    }

    /// The bytes from `AT` on.
    #[inline]
    pub fn array<const AT: usize, const LEN: usize>(&self) -> [u8; LEN] {
        const { assert!(AT.saturating_add(LEN) <= N, "a field outside of the fixed part") };
        let field = self.bytes.get(AT..).and_then(|rest| rest.first_chunk());
        // Decided by the assertion.
        field.copied().unwrap_or([0; LEN])
    }

    #[inline]
    pub fn u16<const AT: usize>(&self) -> u16 {
        let value = u16::from_le_bytes(self.array::<AT, 2>());
        if self.endian == Endian::Big { value.swap_bytes() } else { value }
    }

    #[inline]
    pub fn u32<const AT: usize>(&self) -> u32 {
        let value = u32::from_le_bytes(self.array::<AT, 4>());
        if self.endian == Endian::Big { value.swap_bytes() } else { value }
    }

    /// 8 bytes: high word, low word.
    #[inline]
    pub fn sequence_number<const AT: usize>(&self) -> SequenceNumber {
        let words = u64::from_le_bytes(self.array::<AT, 8>());
        // Each word by itself, the first of which is the high one.
        let number = if self.endian == Endian::Big { words.swap_bytes() } else { words.rotate_right(32) };
        SequenceNumber(number.cast_signed())
    }

    #[inline]
    pub fn entity_id<const AT: usize>(&self) -> EntityId {
        EntityId(self.array::<AT, 4>())
    }

    #[inline]
    pub fn guid_prefix<const AT: usize>(&self) -> GuidPrefix {
        GuidPrefix(self.array::<AT, 12>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let (big, little) = (Fields::new(&bytes, Endian::Big), Fields::new(&bytes, Endian::Little));
        assert_eq!((big.u16::<1>(), little.u16::<1>()), (0x0203, 0x0302));
        assert_eq!((big.u32::<5>(), little.u32::<5>()), (0x0607_0809, 0x0908_0706));
        assert_eq!(big.sequence_number::<1>(), SequenceNumber(0x0203_0405_0607_0809));
        assert_eq!(little.sequence_number::<1>(), SequenceNumber(0x0504_0302_0908_0706));
        assert_eq!(big.entity_id::<0>(), EntityId([1, 2, 3, 4]));
    }
}
