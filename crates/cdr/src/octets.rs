//! Sequences of octets that stay where they were received. XTypes 1.3 §7.4.3.5.3 (rule 9).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use taut_mem::Bytes;

use crate::field::element;
use crate::types::within;
use crate::{Cdr, Decoder, Encoder, FieldKind, FieldValue, KeySize, Result, Step};

/// What is shorter is copied: it costs less than to keep the memory of a whole sample from being used again. Lower and a
/// small value holds frames of a network interface, higher and values of that length are copied.
const KEPT_AT_LEAST: usize = 4_096;

/// How much more memory a value may keep from being used again than it shows. Lower copies the members of a sample that
/// has several, higher lets a part hold the memory of the whole.
const KEPT_AT_MOST: usize = 4;

/// IDL `sequence<octet>` without a copy: an image's pixels, a cloud's points, what another program has packed.
///
/// *Shape*: on the wire that of `Vec<u8>`, with which it is interchangeable. Taken from a reader, 4,096 octets or more
/// are not copied: the value is a view of the memory that the sample was received in, or, on the same machine, written
/// into by its writer. It keeps that memory, at most four times its own length, until it is dropped; where it would be
/// more, or a reader holds 240 samples of one writer of this machine already, they are copied. What is made here, or
/// changed, has memory of its own.
///
/// *Cost*: no copy and no allocation for a taken one, and none for a clone of it; as a vector otherwise.
///
/// ```
/// use taut_cdr::Octets;
/// let mut pixels = Octets::from(vec![0; 640 * 480]);
/// pixels.to_mut()[7] = 255;
/// assert_eq!(pixels.iter().filter(|pixel| **pixel > 0).count(), 1);
/// ```
#[derive(Clone)]
pub struct Octets(Kind);

#[derive(Clone)]
enum Kind {
    Own(Vec<u8>),
    Kept(Bytes),
}

impl Octets {
    /// None; allocates nothing.
    pub const fn new() -> Octets {
        Octets(Kind::Own(Vec::new()))
    }

    /// The octets, to be changed. *Cost*: a copy, if they lie in the memory of a sample.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        if let Kind::Kept(bytes) = &self.0 {
            self.0 = Kind::Own(bytes.to_vec());
        }
        self.own_mut()
    }

    /// A vector of them. *Cost*: a copy, if they lie in the memory of a sample.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Kind::Own(octets) => octets,
            Kind::Kept(bytes) => bytes.to_vec(),
        }
    }

    /// Memory of its own, whatever is in it.
    fn own_mut(&mut self) -> &mut Vec<u8> {
        if let Kind::Kept(_) = self.0 {
            self.0 = Kind::Own(Vec::new());
        }
        match &mut self.0 {
            Kind::Own(octets) => octets,
            Kind::Kept(_) => unreachable!("it was made its own"),
        }
    }
}

/// The octets of a sequence where they lie, and a view of them if a value may keep it.
fn octets<'a>(input: &mut Decoder<'a>) -> Result<(&'a [u8], Option<Bytes>)> {
    let count = input.take_count(1)?;
    let octets = input.take_bytes(count)?;
    let may_keep =
        |whole: &&Bytes| count >= KEPT_AT_LEAST && whole.pinned() <= count.saturating_mul(KEPT_AT_MOST);
    let kept = input.whole().filter(may_keep).and_then(|whole| whole.slice_of(octets));
    Ok((octets, kept))
}

impl Cdr for Octets {
    const MIN_SIZE: usize = <Vec<u8>>::MIN_SIZE;
    const LENGTH_CODE: u32 = <Vec<u8>>::LENGTH_CODE;
    const BOUNDS: usize = <Vec<u8>>::BOUNDS;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.put_length(self.len())?;
        out.put_bytes(self);
        Ok(())
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let (octets, kept) = octets(input)?;
        Ok(kept.map_or_else(|| Octets::from(octets), |bytes| Octets(Kind::Kept(bytes))))
    }

    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        let (octets, kept) = octets(input)?;
        match kept {
            Some(bytes) => self.0 = Kind::Kept(bytes),
            None => {
                let own = self.own_mut();
                own.clear();
                own.extend_from_slice(octets);
            }
        }
        Ok(())
    }

    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        let count = input.take_count(1)?;
        input.take_bytes(count).map(drop)
    }

    fn initial() -> Self {
        Octets::new()
    }

    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        <Vec<u8>>::key_size(size, bounds)
    }

    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        <Vec<u8>>::field_kind(path)
    }

    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        element(path).and_then(|(at, rest)| self.get(at)?.field(rest))
    }

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)
    }
}

impl Deref for Octets {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Own(octets) => octets,
            Kind::Kept(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Octets {
    fn default() -> Octets {
        Octets::new()
    }
}

impl From<Vec<u8>> for Octets {
    fn from(octets: Vec<u8>) -> Octets {
        Octets(Kind::Own(octets))
    }
}

impl From<&[u8]> for Octets {
    fn from(octets: &[u8]) -> Octets {
        Octets::from(octets.to_vec())
    }
}

impl FromIterator<u8> for Octets {
    fn from_iter<I: IntoIterator<Item = u8>>(octets: I) -> Octets {
        Octets::from(octets.into_iter().collect::<Vec<u8>>())
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Octets {
    fn eq(&self, other: &Octets) -> bool {
        **self == **other
    }
}

impl Eq for Octets {}

impl PartialOrd for Octets {
    fn partial_cmp(&self, other: &Octets) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Octets {
    fn cmp(&self, other: &Octets) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Octets {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
