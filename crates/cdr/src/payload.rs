//! The serialized payload of a DATA submessage: encapsulation header, value, padding.
//!
//! RTPS 2.5 §10.2, XTypes 1.3 §7.6.3.1.2. The header's options carry the count of padding bytes.

use std::ops::Deref;

use taut_mem::Bytes;

use crate::encoder::append;
use crate::{CdrError, DdsType, Decoder, Encoder, Endian, Extensibility, Representation, Result};

/// What the 4 bytes in front of a serialized value say. *Source*: XTypes 1.3 §7.6.3.1.2 table 60.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// The version of the encoding.
    pub representation: Representation,
    /// The byte order of the value.
    pub endian: Endian,
    /// The extensibility of the outermost type; PLAIN_CDR of XCDR1 says `Final` for appendable ones too.
    pub extensibility: Extensibility,
}

impl Encapsulation {
    /// The header for a type, in this byte order.
    pub fn new(representation: Representation, endian: Endian, extensibility: Extensibility) -> Self {
        let extensibility = match (representation, extensibility) {
            (Representation::Xcdr1, Extensibility::Appendable) => Extensibility::Final,
            _ => extensibility,
        };
        Encapsulation { representation, endian, extensibility }
    }

    /// The identifier on the wire.
    pub fn id(self) -> u8 {
        let kind = match (self.representation, self.extensibility) {
            (Representation::Xcdr1, Extensibility::Mutable) => 0x02,
            (Representation::Xcdr1, _) => 0x00,
            (Representation::Xcdr2, Extensibility::Final) => 0x06,
            (Representation::Xcdr2, Extensibility::Appendable) => 0x08,
            (Representation::Xcdr2, Extensibility::Mutable) => 0x0a,
        };
        kind | u8::from(self.endian == Endian::Little)
    }

    /// Splits a payload into what its header says and the value's bytes, without their padding.
    ///
    /// *Errors*: `EndOfData`, or `Encapsulation` for an unknown identifier (XML among them).
    pub fn parse(payload: &[u8]) -> Result<(Encapsulation, &[u8])> {
        let (&[high, low, _, options], body) = payload.split_first_chunk().ok_or(CdrError::EndOfData)?;
        let (representation, extensibility) = match low & !1 {
            _ if high != 0 => return Err(CdrError::Encapsulation),
            0x00 => (Representation::Xcdr1, Extensibility::Final),
            0x02 => (Representation::Xcdr1, Extensibility::Mutable),
            0x06 => (Representation::Xcdr2, Extensibility::Final),
            0x08 => (Representation::Xcdr2, Extensibility::Appendable),
            0x0a => (Representation::Xcdr2, Extensibility::Mutable),
            _ => return Err(CdrError::Encapsulation),
        };
        let endian = if low & 1 == 0 { Endian::Big } else { Endian::Little };
        let length = body.len().checked_sub(usize::from(options & 3)).ok_or(CdrError::EndOfData)?;
        let body = body.get(..length).ok_or(CdrError::EndOfData)?;
        Ok((Encapsulation { representation, endian, extensibility }, body))
    }

    /// Can a type of this extensibility be inside?
    pub fn fits(self, extensibility: Extensibility) -> bool {
        Encapsulation::new(self.representation, self.endian, extensibility) == self
    }
}

/// Appends a payload.
fn append_payload<T: DdsType>(
    representation: Representation,
    endian: Endian,
    out: &mut Vec<u8>,
    value: impl Fn(&mut Encoder<'_>) -> Result<()>,
) -> Result<()> {
    let id = Encapsulation::new(representation, endian, T::EXTENSIBILITY).id();
    append(out, representation, endian, |out| out.encapsulated(id, &value))
}

/// Writes the serialized sample into memory, whatever is in it.
///
/// *Shape*: as [`to_payload`]. *Returns*: its length; if that is more than there is memory, try again with so much:
/// what lies in it is no sample then. *Cost*: no allocation. *Errors*: as [`to_payload`].
pub fn fill_payload<T: DdsType>(
    value: &T,
    representation: Representation,
    memory: &mut [u8],
) -> Result<usize> {
    let id = Encapsulation::new(representation, Endian::NATIVE, T::EXTENSIBILITY).id();
    let mut out = Encoder::new(memory, representation, Endian::NATIVE);
    out.encapsulated(id, |out| value.encode(out))?;
    Ok(out.len())
}

/// Appends the serialized sample: header, value in this machine's byte order, padding to 4 bytes.
///
/// *Shape*: 4 bytes and the value, a multiple of 4. *Cost*: no allocation but the growth of `out`, for which the sample is
/// written twice.
/// *Errors*: what the type forbids (bounds, NUL in a string, depth); `out` is then as before.
pub fn to_payload<T: DdsType>(value: &T, representation: Representation, out: &mut Vec<u8>) -> Result<()> {
    to_payload_in(value, representation, Endian::NATIVE, out)
}

/// As [`to_payload`], in a byte order of choice.
pub fn to_payload_in<T: DdsType>(
    value: &T,
    representation: Representation,
    endian: Endian,
    out: &mut Vec<u8>,
) -> Result<()> {
    append_payload::<T>(representation, endian, out, |out| value.encode(out))
}

/// Appends the serialized key alone, as DATA submessages for dispose and unregister carry it.
pub fn key_to_payload<T: DdsType>(
    value: &T,
    representation: Representation,
    out: &mut Vec<u8>,
) -> Result<()> {
    key_to_payload_in(value, representation, Endian::NATIVE, out)
}

/// Appends the serialized key of a serialized sample.
///
/// *Cost*: as [`key_hash_of_payload_in`](crate::key_hash_of_payload_in), what is behind the last key member is not read.
/// *Errors*: as decoding what is read.
pub fn key_payload_of<T: DdsType>(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let payload = SerializedPayload::from(payload);
    if !T::RECODES_KEY {
        return key_to_payload(&payload.decode::<T>()?, Representation::Xcdr1, out);
    }
    append_payload::<T>(Representation::Xcdr1, Endian::NATIVE, out, |out| {
        T::recode_key_of_sample(&mut payload.open::<T>()?, out)
    })
}

/// As [`key_to_payload`], in a byte order of choice.
pub fn key_to_payload_in<T: DdsType>(
    value: &T,
    representation: Representation,
    endian: Endian,
    out: &mut Vec<u8>,
) -> Result<()> {
    append_payload::<T>(
        representation,
        endian,
        out,
        |out| if T::HAS_KEY { value.encode_key(out) } else { Ok(()) },
    )
}

/// A serialized sample or key: bytes that values are copied out of, or a view of some, of which [`Octets`] keep their
/// part.
///
/// [`Octets`]: crate::Octets
#[derive(Clone, Copy)]
pub struct SerializedPayload<'a> {
    bytes: &'a [u8],
    whole: Option<&'a Bytes>,
}

impl<'a> From<&'a [u8]> for SerializedPayload<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> SerializedPayload<'a> {
        SerializedPayload { bytes, whole: None }
    }
}

impl<'a> From<&'a Bytes> for SerializedPayload<'a> {
    #[inline]
    fn from(whole: &'a Bytes) -> SerializedPayload<'a> {
        SerializedPayload { bytes: whole, whole: Some(whole) }
    }
}

impl Deref for SerializedPayload<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl<'a> SerializedPayload<'a> {
    #[inline]
    pub(crate) fn open<T: DdsType>(self) -> Result<Decoder<'a>> {
        let (encapsulation, body) = Encapsulation::parse(self.bytes)?;
        if !encapsulation.fits(T::EXTENSIBILITY) {
            return Err(CdrError::Encapsulation);
        }
        let input = Decoder::new(body, encapsulation.representation, encapsulation.endian);
        Ok(input.within_whole(self.whole))
    }

    /// As [`from_payload`].
    #[inline]
    pub fn decode<T: DdsType>(self) -> Result<T> {
        T::decode(&mut self.open::<T>()?)
    }

    /// As [`from_payload_into`].
    #[inline]
    pub fn decode_into<T: DdsType>(self, into: &mut T) -> Result<()> {
        into.decode_into(&mut self.open::<T>()?)
    }
}

/// Reads a serialized sample in any version and byte order.
///
/// *Cost*: allocates for strings and collections only, in proportion to the bytes by a factor that the type decides: an
/// element of a sequence takes its size in memory, however few bytes it came in. A string may come in 4, and so may a
/// mutable structure of any size and, in XCDR2, an appendable one. *Errors*: never a panic.
#[inline]
pub fn from_payload<T: DdsType>(payload: &[u8]) -> Result<T> {
    SerializedPayload::from(payload).decode()
}

/// Reads a serialized sample into a value, whose strings and sequences keep their memory.
///
/// *Cost*: allocates for what has grown only. *Errors*: as [`from_payload`]; `into` then holds some of what was
/// read.
#[inline]
pub fn from_payload_into<T: DdsType>(payload: &[u8], into: &mut T) -> Result<()> {
    SerializedPayload::from(payload).decode_into(into)
}

/// Reads a serialized key; members outside of the key take their initial value.
///
/// Also as Cyclone DDS 0.10 writes it: in XCDR2, but as for its hash, without the headers of structures and in the order
/// of the members' ids.
pub fn from_key_payload<T: DdsType>(payload: &[u8]) -> Result<T> {
    let mut input = SerializedPayload::from(payload).open::<T>()?;
    if !T::HAS_KEY {
        return Ok(T::initial());
    }
    let (len, representation) = (input.remaining(), input.representation());
    let key = T::decode_key(&mut input);
    if representation == Representation::Xcdr1 || key.as_ref().is_ok_and(|key| is_within(key, len)) {
        return key;
    }
    let mut bare = SerializedPayload::from(payload).open::<T>()?.bare();
    match T::decode_key(&mut bare) {
        // Cyclone DDS does not tell of the padding.
        Ok(bare_key) if bare.remaining() < 4 => Ok(bare_key),
        _ => key,
    }
}

/// Does the key in XCDR2 take that many bytes at most? What lacks members takes more.
fn is_within<T: DdsType>(key: &T, len: usize) -> bool {
    let mut out = Encoder::new(&mut [], Representation::Xcdr2, Endian::NATIVE);
    key.encode_key(&mut out).is_ok() && out.len() <= len
}
