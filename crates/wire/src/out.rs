//! The writer that mirrors [`Cursor`](crate::Cursor). RTPS 2.5 §9.3.2, §9.4.2.

use taut_base::{
    Duration, EntityId, FragmentNumberSet, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, Timestamp, VendorId,
};

use crate::Endian;

/// Appends values to a buffer that the caller keeps and reuses.
///
/// *Cost*: allocates only when the buffer has to grow.
///
/// ```
/// use taut_wire::{Endian, Out};
/// let mut buf = Vec::new();
/// let mut out = Out::new(&mut buf, Endian::Little);
/// out.put_u8(1);
/// out.align(4);
/// out.put_u16(2);
/// assert_eq!(buf, [1, 0, 0, 0, 2, 0]);
/// ```
#[derive(Debug)]
pub struct Out<'a> {
    buf: &'a mut Vec<u8>,
    endian: Endian,
    base: usize,
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $kind:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, value: $kind) {
            self.buf.extend_from_slice(&match self.endian {
                Endian::Big => value.to_be_bytes(),
                Endian::Little => value.to_le_bytes(),
            });
        }
    )*};
}

impl<'a> Out<'a> {
    /// Appends from the end of `buf` on, which is also the origin of [`Out::align`].
    pub fn new(buf: &'a mut Vec<u8>, endian: Endian) -> Out<'a> {
        let base = buf.len();
        Out { buf, endian, base }
    }

    /// The byte order of the numbers.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// How many bytes were written since [`Out::new`].
    pub fn position(&self) -> usize {
        self.buf.len().saturating_sub(self.base)
    }

    /// The bytes written since [`Out::new`], to set a length once it is known.
    pub fn written(&mut self) -> &mut [u8] {
        self.buf.get_mut(self.base..).unwrap_or_default()
    }

    /// Drops what was written after `position`.
    pub fn truncate(&mut self, position: usize) {
        self.buf.truncate(self.base.saturating_add(position));
    }

    /// Pads with zeros to a multiple of `n` bytes from the origin.
    pub fn align(&mut self, n: usize) {
        let padded = self.position().checked_next_multiple_of(n).unwrap_or(self.position());
        self.buf.resize(self.base.saturating_add(padded), 0);
    }

    /// Bytes as they are.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// One byte.
    pub fn put_u8(&mut self, value: u8) {
        self.buf.push(value);
    }

    numbers! {
        /// Two bytes.
        put_u16: u16;
        /// Four bytes.
        put_u32: u32;
        /// Four bytes with a sign.
        put_i32: i32;
        /// Eight bytes.
        put_u64: u64;
        /// Eight bytes with a sign.
        put_i64: i64;
    }

    /// One byte, 0 or 1.
    pub fn put_boolean(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    /// 12 bytes.
    pub fn put_guid_prefix(&mut self, prefix: GuidPrefix) {
        self.put_bytes(&prefix.0);
    }

    /// 4 bytes.
    pub fn put_entity_id(&mut self, id: EntityId) {
        self.put_bytes(&id.0);
    }

    /// 16 bytes.
    pub fn put_guid(&mut self, guid: Guid) {
        self.put_bytes(&guid.to_bytes());
    }

    /// 2 bytes.
    pub fn put_vendor_id(&mut self, vendor: VendorId) {
        self.put_bytes(&vendor.0);
    }

    /// 2 bytes.
    pub fn put_protocol_version(&mut self, version: ProtocolVersion) {
        self.put_bytes(&[version.major, version.minor]);
    }

    /// 24 bytes: kind, port, address.
    pub fn put_locator(&mut self, locator: &Locator) {
        self.put_i32(locator.kind.0);
        self.put_u32(locator.port);
        self.put_bytes(&locator.address);
    }

    /// 8 bytes: high word, low word.
    pub fn put_sequence_number(&mut self, sn: SequenceNumber) {
        let [h0, h1, h2, h3, l0, l1, l2, l3] = sn.0.to_be_bytes();
        self.put_u32(u32::from_be_bytes([h0, h1, h2, h3]));
        self.put_u32(u32::from_be_bytes([l0, l1, l2, l3]));
    }

    /// Base, number of bits, the words that are needed.
    pub fn put_sequence_number_set(&mut self, set: &SequenceNumberSet) {
        self.put_sequence_number(set.base());
        self.put_words(set.num_bits(), set.words());
    }

    /// Base, number of bits, the words that are needed.
    pub fn put_fragment_number_set(&mut self, set: &FragmentNumberSet) {
        self.put_u32(set.base());
        self.put_words(set.num_bits(), set.words());
    }

    fn put_words(&mut self, num_bits: u32, words: &[u32]) {
        self.put_u32(num_bits);
        words.iter().for_each(|word| self.put_u32(*word));
    }

    /// Seconds and 2^-32 s since 1970.
    pub fn put_timestamp(&mut self, time: Timestamp) {
        self.put_u32(time.seconds);
        self.put_u32(time.fraction);
    }

    /// Seconds and 2^-32 s.
    pub fn put_duration(&mut self, span: Duration) {
        let (seconds, fraction) = span.to_wire();
        self.put_i32(seconds);
        self.put_u32(fraction);
    }

    /// A CDR string: length with the NUL, the bytes, the NUL. Does not align.
    ///
    /// *Range*: what follows a NUL inside of `text` is left out, as no reader could take it.
    pub fn put_string(&mut self, text: &str) {
        let text = text.split('\0').next().unwrap_or_default();
        self.put_u32(length_u32(text.len().saturating_add(1)));
        self.put_bytes(text.as_bytes());
        self.put_u8(0);
    }

    /// A sequence of octets: length, then the bytes. Does not align.
    pub fn put_octets(&mut self, bytes: &[u8]) {
        self.put_u32(length_u32(bytes.len()));
        self.put_bytes(bytes);
    }

    /// The count of a sequence.
    pub fn put_count(&mut self, count: usize) {
        self.put_u32(length_u32(count));
    }
}

/// Memory ends long before: no sequence here has 2^32 bytes.
fn length_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cursor;

    #[test]
    fn aligns_from_its_own_start() {
        let mut buf = vec![1];
        let mut out = Out::new(&mut buf, Endian::Big);
        out.put_u8(2);
        out.align(4);
        assert_eq!(buf, [1, 2, 0, 0, 0]);
    }

    #[test]
    fn unknown_sequence_number() {
        let mut buf = Vec::new();
        Out::new(&mut buf, Endian::Little).put_sequence_number(SequenceNumber::UNKNOWN);
        assert_eq!(buf, [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(Cursor::new(&buf, Endian::Little).sequence_number(), Ok(SequenceNumber::UNKNOWN));
    }
}
