//! Types whose memory is their wire form: one copy instead of one step per member, or none at all.
//!
//! Decided at compile time: `#[dds(plain)]` refuses a type that is not. The Rust side of the promise (no
//! padding, every bit pattern valid, members in order) is `bytemuck::Pod`; the wire side is `Cdr::PLAIN`.

use bytemuck::Pod;

use crate::payload::Encapsulation;
use crate::{CdrError, Decoder, Encoder, Extensibility, Members, Result};

/// A final structure of primitives and arrays of primitives whose memory is its wire form.
///
/// Written by `#[derive(DdsType)] #[dds(final, plain)]` on a `#[repr(C)]` type that is `Pod`.
///
/// ```
/// use taut_cdr::bytemuck;
/// use taut_derive::DdsType;
///
/// #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Good { a: u64, b: u32, c: [i16; 2] }
/// ```
///
/// A gap is none of its members, so its bytes are not known.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Bad { a: u64, b: u32 }
/// ```
///
/// Not every byte is a `bool`.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Bad { a: u64, b: bool, c: [u8; 7] }
/// ```
///
/// CDR has no `char` of four bytes.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Bad { a: u64, b: char, c: [i16; 2] }
/// ```
///
/// The bytes of a string lie elsewhere.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Bad { a: u64, b: String }
/// ```
///
/// An array of structures has its length before it in XCDR2.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Bad { a: u64, b: [Inner; 1] }
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Inner { a: u64 }
/// ```
///
/// Without `repr(C)` Rust may order members as it likes.
///
/// ```compile_fail
/// # use taut_cdr::bytemuck;
/// # use taut_derive::DdsType;
/// # #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// # #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// struct Bad { a: u64, b: u32, c: [i16; 2] }
/// ```
pub trait Plain: Members + Pod {}

/// Writes a plain value: one copy if the byte order is that of this machine.
#[doc(hidden)]
#[inline]
pub fn put_plain<T: Plain>(value: &T, out: &mut Encoder<'_>) -> Result<()> {
    put_plain_slice(std::slice::from_ref(value), out)
}

/// Writes plain values behind each other: one copy for all of them.
#[doc(hidden)]
pub fn put_plain_slice<T: Plain>(slice: &[T], out: &mut Encoder<'_>) -> Result<()> {
    if slice.is_empty() {
        return Ok(());
    }
    if !out.is_native() || !out.starts_plain(T::FIRST_ALIGN, align_of::<T>()) {
        return slice.iter().try_for_each(|value| value.encode_members(out));
    }
    out.align(T::FIRST_ALIGN);
    out.put_bytes(bytemuck::cast_slice(slice));
    Ok(())
}

/// Reads a plain value.
#[doc(hidden)]
#[inline]
pub fn take_plain<T: Plain>(input: &mut Decoder<'_>) -> Result<T> {
    if !input.is_native() || !input.starts_plain(T::FIRST_ALIGN, align_of::<T>()) {
        return T::decode_members(input);
    }
    input.align(T::FIRST_ALIGN);
    input.take_bytes(size_of::<T>()).map(bytemuck::pod_read_unaligned)
}

/// Reads a plain value into this one.
#[doc(hidden)]
#[inline]
pub fn take_plain_into<T: Plain>(value: &mut T, input: &mut Decoder<'_>) -> Result<()> {
    if !input.is_native() || !input.starts_plain(T::FIRST_ALIGN, align_of::<T>()) {
        return take_members_into(value, input);
    }
    input.align(T::FIRST_ALIGN);
    bytemuck::bytes_of_mut(value).copy_from_slice(input.take_bytes(size_of::<T>())?);
    Ok(())
}

/// By a value on the stack, of which only its callers have to have room.
#[cold]
#[inline(never)]
fn take_members_into<T: Plain>(value: &mut T, input: &mut Decoder<'_>) -> Result<()> {
    *value = T::decode_members(input)?;
    Ok(())
}

/// Goes past a plain value.
#[doc(hidden)]
pub fn skip_plain<T: Plain>(input: &mut Decoder<'_>) -> Result<()> {
    if !input.starts_plain(T::FIRST_ALIGN, align_of::<T>()) {
        return T::skip_members(input);
    }
    input.align(T::FIRST_ALIGN);
    input.take_bytes(size_of::<T>()).map(drop)
}

/// Reads `count` plain values.
#[doc(hidden)]
pub fn take_plain_vec<T: Plain>(input: &mut Decoder<'_>, count: usize) -> Result<Vec<T>> {
    if !input.is_native() || !input.starts_plain(T::FIRST_ALIGN, align_of::<T>()) {
        return (0..count).map(|_| T::decode_members(input)).collect();
    }
    if count == 0 || size_of::<T>() == 0 {
        return Ok(vec![T::zeroed(); count]);
    }
    input.align(T::FIRST_ALIGN);
    let length = count.checked_mul(size_of::<T>()).ok_or(CdrError::EndOfData)?;
    let bytes = input.take_bytes(length)?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}

/// Looks at a serialized plain sample in place, without a copy.
///
/// *Errors*: [`CdrError::NotInPlace`] if the byte order is foreign or the body (4 bytes behind the start
/// of the payload) is not aligned for `T`: decode then.
///
/// ```
/// use taut_cdr::{Representation, bytemuck, to_payload, view};
/// use taut_derive::DdsType;
///
/// #[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
/// #[bytemuck(crate = "taut_cdr::bytemuck")]
/// #[dds(final, plain, crate = taut_cdr)]
/// #[repr(C)]
/// struct Point {
///     x: f32,
///     y: f32,
/// }
/// let point = Point { x: 1.0, y: 2.0 };
/// let mut payload = Vec::new();
/// to_payload(&point, Representation::Xcdr2, &mut payload).unwrap();
/// assert_eq!(view::<Point>(&payload), Ok(&point));
/// ```
pub fn view<T: Plain>(payload: &[u8]) -> Result<&T> {
    let (encapsulation, body) = Encapsulation::parse(payload)?;
    if !encapsulation.fits(Extensibility::Final) {
        return Err(CdrError::Encapsulation);
    }
    if encapsulation.endian != crate::Endian::NATIVE {
        return Err(CdrError::NotInPlace);
    }
    let bytes = body.get(..size_of::<T>()).ok_or(CdrError::EndOfData)?;
    bytemuck::try_from_bytes(bytes).map_err(|_| CdrError::NotInPlace)
}

/// Reads a serialized plain sample into memory of its own, without a place on the stack.
///
/// *Errors*: as decoding. *Cost*: one allocation and one copy; a value in foreign byte order goes over the
/// stack.
pub fn take_plain_boxed<T: Plain>(payload: &[u8]) -> Result<Box<T>> {
    let (encapsulation, body) = Encapsulation::parse(payload)?;
    if !encapsulation.fits(Extensibility::Final) {
        return Err(CdrError::Encapsulation);
    }
    if encapsulation.endian != crate::Endian::NATIVE {
        return take_members_boxed(payload);
    }
    let bytes = body.get(..size_of::<T>()).ok_or(CdrError::EndOfData)?;
    let mut value = bytemuck::allocation::zeroed_box::<T>();
    bytemuck::bytes_of_mut(&mut *value).copy_from_slice(bytes);
    Ok(value)
}

/// By a value on the stack, of which only its callers have to have room.
#[cold]
#[inline(never)]
fn take_members_boxed<T: Plain>(payload: &[u8]) -> Result<Box<T>> {
    crate::from_payload(payload).map(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Representation, to_payload, to_payload_in};
    use taut_derive::DdsType;

    #[derive(DdsType, Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[dds(final, plain, crate = crate)]
    #[repr(C)]
    struct Pair {
        a: u64,
        b: u32,
        c: u32,
    }

    #[test]
    fn a_box_holds_what_was_written_in_either_byte_order() {
        let pair = Pair { a: 1 << 40, b: 2, c: 3 };
        let (mut native, mut swapped) = (Vec::new(), Vec::new());
        to_payload(&pair, Representation::Xcdr2, &mut native).unwrap();
        to_payload_in(&pair, Representation::Xcdr1, crate::Endian::Big, &mut swapped).unwrap();
        for payload in [&native, &swapped] {
            assert_eq!(take_plain_boxed::<Pair>(payload).as_deref(), Ok(&pair));
            assert!(take_plain_boxed::<Pair>(&payload[..payload.len() - 1]).is_err());
        }
    }

    #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    #[dds(final, plain, crate = crate)]
    #[repr(C)]
    struct Large {
        bytes: [u8; 8 << 20],
    }

    #[test]
    fn a_large_value_is_read_into_its_place_without_one_on_the_stack() {
        let payload = [[0, 7, 0, 0].as_slice(), &vec![5; 8 << 20]].concat();
        let small_stack = std::thread::Builder::new().stack_size(512 << 10);
        let thread = small_stack.spawn(move || {
            let mut into = bytemuck::allocation::zeroed_box::<Large>();
            crate::from_payload_into(&payload, &mut *into).unwrap();
            let boxed = take_plain_boxed::<Large>(&payload).unwrap();
            into.bytes.iter().chain(&boxed.bytes).all(|byte| *byte == 5)
        });
        assert!(thread.unwrap().join().unwrap());
    }

    #[derive(DdsType)]
    #[dds(final, crate = crate)]
    struct BehindLarge {
        large: Box<Large>,
        #[dds(key)]
        number: u32,
    }

    #[test]
    fn a_key_behind_a_large_value_is_found_without_one_on_the_stack() {
        let payload = [[0, 7, 0, 0].as_slice(), &vec![5; 8 << 20], &[9, 0, 0, 0]].concat();
        let small_stack = std::thread::Builder::new().stack_size(512 << 10);
        let thread = small_stack.spawn(move || crate::key_hash_of_payload::<BehindLarge>(&payload, false));
        assert_eq!(thread.unwrap().join().unwrap().unwrap().0[..4], [0, 0, 0, 9]);
    }
}
