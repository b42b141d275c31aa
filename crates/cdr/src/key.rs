//! The key hash: 16 bytes that name an instance.
//!
//! RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8: the key members in the order of their ids, big-endian, every
//! structure as if final, in the version of the data; MD5 if the greatest size of that can exceed 16.

use md5::{Digest, Md5};
use taut_base::InstanceHandle;

use crate::payload::{Encapsulation, SerializedPayload, from_key_payload};
use crate::{DdsType, Encoder, Representation, Result};

/// The size of a key hash; a key that always fits is not hashed.
const HASH_SIZE: usize = 16;

/// Keys up to this are encoded on the stack where no buffer is kept. Lower allocates for more of them, higher clears more
/// memory for each. *Units*: bytes.
const SHORT_KEY: usize = 128;

/// The greatest size that a type's key can take in its hash form, counted member by member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySize {
    /// `None`: more than fits into the hash.
    end: Option<usize>,
    representation: Representation,
}

impl KeySize {
    /// Of a key without members.
    pub fn new(representation: Representation) -> KeySize {
        KeySize { end: Some(0), representation }
    }

    /// Can the key take more than 16 bytes?
    pub fn exceeds_hash(self) -> bool {
        self.end.is_none()
    }

    /// Adds something that has no bound.
    pub fn unbounded(self) -> KeySize {
        KeySize { end: None, ..self }
    }

    /// Adds bytes without alignment.
    pub fn bytes(self, count: usize) -> KeySize {
        let end = self.end.and_then(|end| end.checked_add(count)).filter(|&end| end <= HASH_SIZE);
        KeySize { end, ..self }
    }

    /// Adds a primitive of that size at its alignment.
    pub fn primitive(self, size: usize) -> KeySize {
        let greatest = match self.representation {
            Representation::Xcdr1 => 8,
            Representation::Xcdr2 => 4,
        };
        let end = self.end.and_then(|end| end.checked_next_multiple_of(size.min(greatest)));
        KeySize { end, ..self }.bytes(size)
    }

    /// Adds the delimiter of a collection, if it has one.
    pub fn header(self, primitive: bool) -> KeySize {
        if primitive || self.representation == Representation::Xcdr1 { self } else { self.primitive(4) }
    }

    /// The greater of two alternatives.
    pub fn max(self, other: KeySize) -> KeySize {
        let end = self.end.zip(other.end).map(|(a, b)| a.max(b));
        KeySize { end, ..self }
    }
}

/// Computes key hashes with a buffer that it keeps, so that it allocates only when a key is larger than
/// every key before.
///
/// ```
/// use taut_cdr::{DdsType as _, KeyHasher, Representation};
/// use taut_derive::DdsType;
///
/// #[derive(DdsType)]
/// #[dds(final, crate = taut_cdr)]
/// struct Sensor {
///     #[dds(key)]
///     id: u32,
///     celsius: f32,
/// }
/// let mut hasher = KeyHasher::default();
/// let hash = hasher.hash(&Sensor { id: 7, celsius: 21.5 }, Representation::Xcdr2).unwrap();
/// assert_eq!(hash.0, [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyHasher {
    scratch: Vec<u8>,
}

impl KeyHasher {
    /// The key hash of a sample that is, or would be, sent in `representation`; NIL without key.
    pub fn hash<T: DdsType>(&mut self, value: &T, representation: Representation) -> Result<InstanceHandle> {
        if !T::HAS_KEY {
            return Ok(InstanceHandle::NIL);
        }
        self.hash_what::<T>(representation, |out| value.encode_key(out))
    }

    /// The hash of the key that `encode` writes.
    fn hash_what<T: DdsType>(
        &mut self,
        representation: Representation,
        encode: impl Fn(&mut Encoder<'_>) -> Result<()>,
    ) -> Result<InstanceHandle> {
        let key = loop {
            let mut out = Encoder::for_key_hash(&mut self.scratch, representation);
            encode(&mut out)?;
            let len = out.len();
            match self.scratch.get(..len) {
                Some(key) => break key,
                None => self.scratch.resize(len, 0),
            }
        };
        Ok(hash_of::<T>(key, representation))
    }
}

/// The hash of an encoded key.
fn hash_of<T: DdsType>(key: &[u8], representation: Representation) -> InstanceHandle {
    let mut hash = [0; HASH_SIZE];
    let small = !T::key_size(KeySize::new(representation), &[]).exceeds_hash();
    match hash.get_mut(..key.len()).filter(|_| small) {
        Some(start) => start.copy_from_slice(key),
        None => hash = Md5::digest(key).into(),
    }
    InstanceHandle(hash)
}

/// The hash of the key that `encode` writes, where no buffer is kept.
fn hash_what<T: DdsType>(
    representation: Representation,
    encode: impl Fn(&mut Encoder<'_>) -> Result<()>,
) -> Result<InstanceHandle> {
    let mut memory = [0; SHORT_KEY];
    let mut out = Encoder::for_key_hash(&mut memory, representation);
    encode(&mut out)?;
    let len = out.len();
    match memory.get(..len) {
        Some(key) => Ok(hash_of::<T>(key, representation)),
        None => KeyHasher { scratch: vec![0; len] }.hash_what::<T>(representation, encode),
    }
}

/// The key hash of a sample; NIL for a type without key.
///
/// *Cost*: allocates the size of a key of more than 128 bytes; [`KeyHasher`] does not. *Errors*: as encoding.
/// The hash depends on the version where the key contains an 8-byte primitive behind a smaller one.
pub fn key_hash<T: DdsType>(value: &T, representation: Representation) -> Result<InstanceHandle> {
    if !T::HAS_KEY {
        return Ok(InstanceHandle::NIL);
    }
    hash_what::<T>(representation, |out| value.encode_key(out))
}

/// The key hash of a serialized sample (or of a serialized key, if `is_key_only`), in its own version.
///
/// *Cost*, *Errors*: as [`key_hash_of_payload_in`].
pub fn key_hash_of_payload<T: DdsType>(payload: &[u8], is_key_only: bool) -> Result<InstanceHandle> {
    let (encapsulation, _) = Encapsulation::parse(payload)?;
    key_hash_of_payload_in::<T>(payload, is_key_only, encapsulation.representation)
}

/// The same in this version, whatever the payload's: one hash for an instance that is written in both.
///
/// *Cost*: reads a sample to the last of its key members, goes past the others and allocates for none of them; decodes
/// all of a sample of a mutable type, of one with a base, and of one whose key members do not lie in the order of their
/// ids. *Errors*: as decoding what is read.
pub fn key_hash_of_payload_in<T: DdsType>(
    payload: &[u8],
    is_key_only: bool,
    representation: Representation,
) -> Result<InstanceHandle> {
    if is_key_only {
        return key_hash(&from_key_payload::<T>(payload)?, representation);
    }
    let payload = SerializedPayload::from(payload);
    if !T::HAS_KEY {
        return payload.open::<T>().map(|_| InstanceHandle::NIL);
    }
    if !T::RECODES_KEY {
        return key_hash(&payload.decode::<T>()?, representation);
    }
    hash_what::<T>(representation, |out| T::recode_key_of_sample(&mut payload.open::<T>()?, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_decides_whether_a_key_fits() {
        let one = |r| KeySize::new(r).primitive(1).primitive(8);
        assert!(!one(Representation::Xcdr1).exceeds_hash());
        assert!(one(Representation::Xcdr1).primitive(1).exceeds_hash());
        assert!(!one(Representation::Xcdr2).primitive(4).exceeds_hash());
        assert!(one(Representation::Xcdr2).primitive(4).bytes(1).exceeds_hash());
    }
}
