//! Sequences, arrays, maps and external members. XTypes 1.3 §7.4.3.5.3 (rules 9 to 17).

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::field::element;
use crate::types::within;
use crate::{Cdr, CdrError, Decoder, Encoder, Endian, FieldKind, FieldValue, KeySize, Result, Step, append};

fn inner(bounds: &[usize]) -> &[usize] {
    bounds.split_first().map_or(&[], |(_, rest)| rest)
}

/// Adds the key size of an element `count` times, stopping as soon as it no longer matters.
fn repeat(mut size: KeySize, count: usize, element: impl Fn(KeySize) -> KeySize) -> KeySize {
    for _ in 0..count {
        if size.exceeds_hash() {
            break;
        }
        size = element(size);
    }
    size
}

/// Goes past as many elements as a collection without delimiter has. An external one does not tell its size.
fn skip_elements<T: Cdr>(count: usize, input: &mut Decoder<'_>) -> Result<()> {
    if T::PRIMITIVE && T::MIN_SIZE > 0 {
        return input.skip_all(T::MIN_SIZE, count);
    }
    (0..count).try_for_each(|_| T::skip(input))
}

/// The length code of a sequence in a mutable structure, where its count can double as the length.
const fn sequence_code<T: Cdr>() -> u32 {
    match (T::PRIMITIVE, T::MIN_SIZE) {
        (true, 1) | (false, _) => 5,
        (true, 4) => 6,
        (true, 8) => 7,
        (true, _) => 4,
    }
}

impl<T: Cdr> Cdr for Vec<T> {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = sequence_code::<T>();
    const BOUNDS: usize = T::BOUNDS.saturating_add(1);

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.collection(T::PRIMITIVE, |out| {
            out.put_length(self.len())?;
            T::encode_slice(self, out)
        })
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        input.collection(T::PRIMITIVE, |input| {
            let count = input.take_count(T::MIN_SIZE)?;
            T::decode_vec(input, count)
        })
    }

    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        input.collection(T::PRIMITIVE, |input| {
            let count = input.take_count(T::MIN_SIZE)?;
            if T::PRIMITIVE {
                self.resize_with(count, T::initial);
                return T::decode_slice(input, self);
            }
            self.truncate(count);
            self.iter_mut().try_for_each(|value| value.decode_into(input))?;
            if self.capacity() < count {
                let mut rest = T::decode_vec(input, count.saturating_sub(self.len()))?;
                self.append(&mut rest);
            }
            while self.len() < count {
                self.push(T::decode(input)?);
            }
            Ok(())
        })
    }

    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        input.skip_collection(T::PRIMITIVE, |input| {
            let count = input.take_count(T::MIN_SIZE)?;
            skip_elements::<T>(count, input)
        })
    }

    fn initial() -> Self {
        Vec::new()
    }

    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.collection(T::PRIMITIVE, |out| {
            out.put_length(self.len())?;
            self.iter().try_for_each(|value| value.encode_key(out))
        })
    }

    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        input.collection(T::PRIMITIVE, |input| {
            // The key of an element may take no byte where the whole does.
            let count = input.take_count(0)?;
            let mut out = input.vec_for(count);
            for _ in 0..count {
                out.push(T::decode_key(input)?);
            }
            Ok(out)
        })
    }

    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        match bounds.first() {
            Some(&bound) if bound != 0 => {
                let start = size.header(T::PRIMITIVE).primitive(4);
                repeat(start, bound, |size| T::key_size(size, inner(bounds)))
            }
            _ => size.unbounded(),
        }
    }

    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        element(path).and_then(|(_, rest)| T::field_kind(rest))
    }

    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        element(path).and_then(|(at, rest)| self.get(at)?.field(rest))
    }

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)?;
        let rest = inner(bounds);
        if rest.is_empty() { Ok(()) } else { self.iter().try_for_each(|value| value.check_bounds(rest)) }
    }
}

impl<T: Cdr, const N: usize> Cdr for [T; N] {
    const ELEMENT_PRIMITIVE: bool = T::ELEMENT_PRIMITIVE;
    const IS_ARRAY: bool = true;
    const MIN_SIZE: usize = T::MIN_SIZE.saturating_mul(N);
    const LENGTH_CODE: u32 = if T::ELEMENT_PRIMITIVE { 4 } else { 5 };
    // An array of structures has a delimiter in XCDR2.
    const PLAIN: bool = T::PLAIN && T::ELEMENT_PRIMITIVE;
    const FIRST_ALIGN: usize = T::FIRST_ALIGN;
    const BOUNDS: usize = T::BOUNDS;
    const KEY_UNIT: usize = if T::ELEMENT_PRIMITIVE { T::KEY_UNIT } else { 0 };

    #[inline]
    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.collection(T::ELEMENT_PRIMITIVE, |out| self.encode_flat(out))
    }

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        if Self::MIN_SIZE > input.remaining() {
            return Err(CdrError::EndOfData);
        }
        input.collection(T::ELEMENT_PRIMITIVE, T::decode_array)
    }

    #[inline]
    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        input.collection(T::ELEMENT_PRIMITIVE, |input| self.decode_flat(input))
    }

    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        input.skip_collection(T::ELEMENT_PRIMITIVE, |input| skip_elements::<T>(N, input))
    }

    #[inline]
    fn initial() -> Self {
        T::initial_array()
    }

    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.collection(T::ELEMENT_PRIMITIVE, |out| self.encode_key_flat(out))
    }

    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        let mut value = Self::initial();
        input.collection(T::ELEMENT_PRIMITIVE, |input| value.decode_key_flat(input))?;
        Ok(value)
    }

    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        Self::key_size_flat(size.header(T::ELEMENT_PRIMITIVE), bounds)
    }

    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        element(path).filter(|(at, _)| *at < N).and_then(|(_, rest)| T::field_kind(rest))
    }

    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        element(path).and_then(|(at, rest)| self.get(at)?.field(rest))
    }

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        if bounds.is_empty() { Ok(()) } else { self.iter().try_for_each(|value| value.check_bounds(bounds)) }
    }

    #[inline]
    fn encode_flat(&self, out: &mut Encoder<'_>) -> Result<()> {
        if T::IS_ARRAY {
            self.iter().try_for_each(|value| value.encode_flat(out))
        } else {
            T::encode_slice(self, out)
        }
    }

    #[inline]
    fn decode_flat(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        if T::IS_ARRAY {
            self.iter_mut().try_for_each(|value| value.decode_flat(input))
        } else {
            T::decode_slice(input, self)
        }
    }

    fn encode_key_flat(&self, out: &mut Encoder<'_>) -> Result<()> {
        self.iter().try_for_each(|value| value.encode_key_flat(out))
    }

    fn decode_key_flat(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        self.iter_mut().try_for_each(|value| value.decode_key_flat(input))
    }

    fn key_size_flat(size: KeySize, bounds: &[usize]) -> KeySize {
        repeat(size, N, |size| T::key_size_flat(size, bounds))
    }
}

/// Writes a value, or what is key in it.
type Write<T> = fn(&T, &mut Encoder<'_>) -> Result<()>;

/// What ordered and hashed maps share: an entry is written by these two, of the sample or of what is key.
fn encode_map<'m, K: Cdr + 'm, V: Cdr + 'm>(
    length: usize,
    entries: impl Iterator<Item = (&'m K, &'m V)>,
    out: &mut Encoder<'_>,
    (write_key, write_value): (Write<K>, Write<V>),
) -> Result<()> {
    out.collection(K::PRIMITIVE && V::PRIMITIVE, |out| {
        out.put_length(length)?;
        for (key, value) in entries {
            write_key(key, out)?;
            write_value(value, out)?;
        }
        Ok(())
    })
}

fn decode_map<K: Cdr, V: Cdr>(input: &mut Decoder<'_>, mut insert: impl FnMut(K, V)) -> Result<()> {
    input.collection(K::PRIMITIVE && V::PRIMITIVE, |input| {
        let count = input.take_count(K::MIN_SIZE.saturating_add(V::MIN_SIZE))?;
        for _ in 0..count {
            let key = K::decode(input)?;
            insert(key, V::decode(input)?);
        }
        Ok(())
    })
}

/// The same of what is key, which may take no byte where the whole does.
fn decode_key_map<K: Cdr, V: Cdr>(input: &mut Decoder<'_>, mut insert: impl FnMut(K, V)) -> Result<()> {
    input.collection(K::PRIMITIVE && V::PRIMITIVE, |input| {
        for _ in 0..input.take_count(0)? {
            let key = K::decode_key(input)?;
            insert(key, V::decode_key(input)?);
        }
        Ok(())
    })
}

fn skip_map<K: Cdr, V: Cdr>(input: &mut Decoder<'_>) -> Result<()> {
    input.skip_collection(K::PRIMITIVE && V::PRIMITIVE, |input| {
        let count = input.take_count(K::MIN_SIZE.saturating_add(V::MIN_SIZE))?;
        (0..count).try_for_each(|_| K::skip(input).and_then(|()| V::skip(input)))
    })
}

/// The bounds of a map are those of the map, then of its values.
impl<K: Cdr + Ord, V: Cdr> Cdr for BTreeMap<K, V> {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = if K::PRIMITIVE && V::PRIMITIVE { 4 } else { 5 };
    const BOUNDS: usize = V::BOUNDS.saturating_add(1);

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        encode_map(self.len(), self.iter(), out, (K::encode, V::encode))
    }
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let mut map = BTreeMap::new();
        decode_map(input, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }
    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        skip_map::<K, V>(input)
    }
    fn initial() -> Self {
        BTreeMap::new()
    }
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        encode_map(self.len(), self.iter(), out, (K::encode_key, V::encode_key))
    }
    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        let mut map = BTreeMap::new();
        decode_key_map(input, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }
    fn key_size(size: KeySize, _bounds: &[usize]) -> KeySize {
        size.unbounded()
    }
    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)?;
        self.values().try_for_each(|value| value.check_bounds(inner(bounds)))
    }
}

/// The key form in the order of its keys' bytes, so that equal maps are the same key.
fn encode_key_map_in_order<'m, K: Cdr + 'm, V: Cdr + 'm>(
    entries: impl Iterator<Item = (&'m K, &'m V)>,
    out: &mut Encoder<'_>,
) -> Result<()> {
    let representation = out.representation();
    let with_bytes = entries.map(|entry| {
        let mut bytes = Vec::new();
        append(&mut bytes, representation, Endian::Big, |out| entry.0.encode_key(out))?;
        Ok((bytes, entry))
    });
    let mut entries = with_bytes.collect::<Result<Vec<_>>>()?;
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    encode_map(entries.len(), entries.iter().map(|(_, entry)| *entry), out, (K::encode_key, V::encode_key))
}

/// Like the ordered map; the order of the entries on the wire is that of the hasher, in a key hash that of their bytes.
impl<K: Cdr + Eq + Hash, V: Cdr, S: BuildHasher + Default> Cdr for HashMap<K, V, S> {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = if K::PRIMITIVE && V::PRIMITIVE { 4 } else { 5 };
    const BOUNDS: usize = V::BOUNDS.saturating_add(1);

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        encode_map(self.len(), self.iter(), out, (K::encode, V::encode))
    }
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let mut map = HashMap::default();
        decode_map(input, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }
    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        skip_map::<K, V>(input)
    }
    fn initial() -> Self {
        HashMap::default()
    }
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        if out.is_key_hash() {
            return encode_key_map_in_order(self.iter(), out);
        }
        encode_map(self.len(), self.iter(), out, (K::encode_key, V::encode_key))
    }
    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        let mut map = HashMap::default();
        decode_key_map(input, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }
    fn key_size(size: KeySize, _bounds: &[usize]) -> KeySize {
        size.unbounded()
    }
    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)?;
        self.values().try_for_each(|value| value.check_bounds(inner(bounds)))
    }
}

/// An external member: its wire form is that of its content.
impl<T: Cdr> Cdr for Box<T> {
    const PRIMITIVE: bool = T::PRIMITIVE;
    const ELEMENT_PRIMITIVE: bool = T::ELEMENT_PRIMITIVE;
    // `T` may contain this box again, so nothing may be asked of it here.
    const MIN_SIZE: usize = 0;
    const LENGTH_CODE: u32 = T::LENGTH_CODE;
    const BOUNDS: usize = T::BOUNDS;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        T::encode(self, out)
    }
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        T::decode(input).map(Box::new)
    }
    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        T::decode_into(self, input)
    }
    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        T::skip(input)
    }
    fn initial() -> Self {
        Box::new(T::initial())
    }
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<()> {
        T::encode_key(self, out)
    }
    fn decode_key(input: &mut Decoder<'_>) -> Result<Self> {
        T::decode_key(input).map(Box::new)
    }
    fn recode_key(input: &mut Decoder<'_>, bounds: &[usize], out: &mut Encoder<'_>) -> Result<()> {
        T::recode_key(input, bounds, out)
    }
    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        T::key_size(size, bounds)
    }
    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        T::field_kind(path)
    }
    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        T::field(self, path)
    }
    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        T::check_bounds(self, bounds)
    }
    fn last_bound() -> usize {
        T::last_bound()
    }
}
