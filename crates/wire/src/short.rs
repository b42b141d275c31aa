//! A piece of a message whose length the code knows.
//!
//! Must never allocate or be filled beyond its length, which a debug build asserts. Called for what every sample
//! brings: headers, INFO_DST, INFO_TS, DATA up to its payload, HEARTBEAT, ACKNACK up to what is missing.

use taut_base::SequenceNumber;

use crate::{Endian, SubmessageKind};

/// `N` bytes that are put together first and appended at once: one check for room instead of one a field.
pub(crate) struct Short<const N: usize> {
    bytes: [u8; N],
    at: usize,
    endian: Endian,
}

impl<const N: usize> Short<N> {
    #[inline]
    pub fn new(endian: Endian) -> Short<N> {
        Short { bytes: [0; N], at: 0, endian }
    }

    /// Bytes as they are.
    #[inline]
    pub fn put<const M: usize>(&mut self, bytes: [u8; M]) {
        let place = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut());
        debug_assert!(place.is_some(), "a field that has no room in {N} bytes");
        if let Some(place) = place {
            *place = bytes;
        }
        self.at = self.at.saturating_add(M);
    }

    #[inline]
    pub fn put_u16(&mut self, value: u16) {
        self.put(match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        });
    }

    #[inline]
    pub fn put_u32(&mut self, value: u32) {
        self.put(match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        });
    }

    /// 8 bytes: high word, low word.
    #[inline]
    pub fn put_sequence_number(&mut self, number: SequenceNumber) {
        let [h0, h1, h2, h3, l0, l1, l2, l3] = number.0.to_be_bytes();
        self.put_u32(u32::from_be_bytes([h0, h1, h2, h3]));
        self.put_u32(u32::from_be_bytes([l0, l1, l2, l3]));
    }

    /// A submessage header; a length above 65,535 is 0, "to the end of the message".
    #[inline]
    pub fn put_header(&mut self, kind: SubmessageKind, flags: u8, length: usize) {
        self.put([kind.0, flags | self.endian.flag()]);
        self.put_u16(u16::try_from(length).unwrap_or(0));
    }

    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        debug_assert_eq!(self.at, N, "it has its length");
        out.extend_from_slice(&self.bytes);
    }
}
