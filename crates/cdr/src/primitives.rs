//! The primitive types of IDL and their CDR forms. XTypes 1.3 §7.4.3.5.1.

use bytemuck::{Pod, Zeroable};

use crate::{Cdr, CdrError, Decoder, Encoder, FieldKind, FieldValue, KeySize, Result, Step};

/// IDL `char`: one byte, in whatever character set the peers agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Char(pub u8);

/// IDL `wchar`: one UTF-16 code unit, 2 bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct WChar(pub u16);

/// IDL `long double`: the 128 bits of an IEEE 754 binary128, which Rust has no arithmetic for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct LongDouble(pub u128);

/// Copies the bytes of as many primitives of `N` bytes into `values`.
fn fill<T: Pod, const N: usize>(values: &mut [T], bytes: &[u8], native: bool) {
    let memory: &mut [u8] = bytemuck::cast_slice_mut(values);
    if memory.len() == bytes.len() {
        memory.copy_from_slice(bytes);
    }
    if !native && N > 1 {
        memory.as_chunks_mut::<N>().0.iter_mut().for_each(|chunk| chunk.reverse());
    }
}

const INTEGER: Option<FieldKind> = Some(FieldKind::Integer);
const SINGLE: Option<FieldKind> = Some(FieldKind::Single);
const FLOAT: Option<FieldKind> = Some(FieldKind::Float);
const CHARACTER: Option<FieldKind> = Some(FieldKind::Character);
const NOTHING: Option<FieldKind> = None;

macro_rules! primitives {
    ($($type:ty, $bytes:literal, $code:literal, $plain:literal, $zero:expr, |$v:ident| $to:expr, |$b:ident| $from:expr, $kind:expr, |$f:ident| $value:expr;)*) => {$(
        impl Cdr for $type {
            const PRIMITIVE: bool = true;
            const MIN_SIZE: usize = $bytes;
            const LENGTH_CODE: u32 = $code;
            const KEY_UNIT: usize = if $bytes > 4 { 8 } else { 4 };
            const PLAIN: bool = $plain;
            const FIRST_ALIGN: usize = $bytes;

            #[inline]
            fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
                let $v = *self;
                out.put::<$bytes>($to);
                Ok(())
            }
            #[inline]
            fn decode(input: &mut Decoder<'_>) -> Result<Self> {
                let $b = input.take::<$bytes>()?;
                Ok($from)
            }
            #[inline]
            fn initial() -> Self {
                $zero
            }
            #[inline]
            fn initial_array<const N: usize>() -> [Self; N] {
                [$zero; N]
            }
            fn key_size(size: KeySize, _bounds: &[usize]) -> KeySize {
                size.primitive($bytes)
            }
            fn field_kind(path: &[Step]) -> Option<FieldKind> {
                $kind.filter(|_| path.is_empty())
            }
            fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
                let $f = *self;
                $value.filter(|_| path.is_empty())
            }
            fn encode_slice(slice: &[Self], out: &mut Encoder<'_>) -> Result<()> {
                out.put_all::<$bytes>(bytemuck::cast_slice(slice));
                Ok(())
            }
            fn decode_vec(input: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>> {
                let bytes = input.take_all::<$bytes>(count)?;
                if $bytes == 1 {
                    return Ok(bytemuck::cast_slice(bytes).to_vec());
                }
                let mut values = vec![$zero; count];
                fill::<$type, $bytes>(&mut values, bytes, input.is_native());
                Ok(values)
            }
            #[inline]
            fn decode_array<const N: usize>(input: &mut Decoder<'_>) -> Result<[Self; N]> {
                if !input.is_native() {
                    let mut values = [$zero; N];
                    Self::decode_slice(input, &mut values)?;
                    return Ok(values);
                }
                let bytes = input.take_all::<$bytes>(N)?;
                bytemuck::try_pod_read_unaligned(bytes).map_err(|_| CdrError::EndOfData)
            }
            #[inline]
            fn decode_slice(input: &mut Decoder<'_>, slice: &mut [Self]) -> Result<()> {
                let bytes = input.take_all::<$bytes>(slice.len())?;
                fill::<$type, $bytes>(slice, bytes, input.is_native());
                Ok(())
            }
        }
    )*};
}

primitives! {
    u8, 1, 0, true, 0, |v| [v], |b| b[0], INTEGER, |f| Some(FieldValue::Integer(f.into()));
    i8, 1, 0, true, 0, |v| v.to_ne_bytes(), |b| i8::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    u16, 2, 1, true, 0, |v| v.to_ne_bytes(), |b| u16::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    i16, 2, 1, true, 0, |v| v.to_ne_bytes(), |b| i16::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    u32, 4, 2, true, 0, |v| v.to_ne_bytes(), |b| u32::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    i32, 4, 2, true, 0, |v| v.to_ne_bytes(), |b| i32::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    u64, 8, 3, true, 0, |v| v.to_ne_bytes(), |b| u64::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    i64, 8, 3, true, 0, |v| v.to_ne_bytes(), |b| i64::from_ne_bytes(b), INTEGER, |f| Some(FieldValue::Integer(f.into()));
    f32, 4, 2, true, 0.0, |v| v.to_ne_bytes(), |b| f32::from_ne_bytes(b), SINGLE, |f| Some(FieldValue::Float(f.into()));
    f64, 8, 3, true, 0.0, |v| v.to_ne_bytes(), |b| f64::from_ne_bytes(b), FLOAT, |f| Some(FieldValue::Float(f));
    Char, 1, 0, true, Char(0), |v| [v.0], |b| Char(b[0]), CHARACTER, |f| Some(FieldValue::Character(f.0.into()));
    WChar, 2, 1, true, WChar(0), |v| v.0.to_ne_bytes(), |b| WChar(u16::from_ne_bytes(b)), CHARACTER, |f| char::from_u32(f.0.into()).map(FieldValue::Character);
    LongDouble, 16, 4, false, LongDouble(0), |v| v.0.to_ne_bytes(), |b| LongDouble(u128::from_ne_bytes(b)), NOTHING, |_f| None::<FieldValue<'_>>;
}

fn boolean(byte: u8) -> Result<bool> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(CdrError::InvalidBool),
    }
}

impl Cdr for bool {
    const PRIMITIVE: bool = true;
    const MIN_SIZE: usize = 1;
    const LENGTH_CODE: u32 = 0;
    const KEY_UNIT: usize = 4;

    #[inline]
    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.put([u8::from(*self)]);
        Ok(())
    }
    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let [byte] = input.take()?;
        boolean(byte)
    }
    fn initial() -> Self {
        false
    }
    fn key_size(size: KeySize, _bounds: &[usize]) -> KeySize {
        size.primitive(1)
    }
    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        path.is_empty().then_some(FieldKind::Boolean)
    }
    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        path.is_empty().then_some(FieldValue::Boolean(*self))
    }
    fn encode_slice(slice: &[Self], out: &mut Encoder<'_>) -> Result<()> {
        out.put_all::<1>(bytemuck::cast_slice(slice));
        Ok(())
    }
    fn decode_vec(input: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>> {
        input.take_all::<1>(count)?.iter().map(|&byte| boolean(byte)).collect()
    }
}
