//! Reads values with CDR's alignment, delimiters and member headers, never beyond the bytes.
//!
//! XTypes 1.3 §7.4.3. Every length is checked against the bytes that remain before it is believed.

use taut_mem::Bytes;

use crate::encoder::{
    EM_MUST_UNDERSTAND, LONG_IMPLEMENTATION, LONG_MUST_UNDERSTAND, MAX_DEPTH, MEMBER_ID_MASK, PID_EXTENDED,
    PID_IGNORE, PID_IMPLEMENTATION, PID_LIST_END, PID_MASK, PID_MUST_UNDERSTAND,
};
use crate::{Cdr, CdrError, Encoder, Endian, Extensibility, Representation, Result};

/// How many elements without a byte all sequences of a value may have together. Too low refuses sequences of empty
/// structures, too high lets a few bytes cost much time.
const MAX_EMPTY_ELEMENTS: usize = 4_096;

/// What an optional member of XCDR1 takes at least: the header of a parameter. *Units*: bytes.
const PARAMETER: usize = 4;

/// A checked cursor over the bytes of a value.
///
/// ```
/// use taut_cdr::{Cdr, CdrError, Decoder, Endian, Representation};
/// let mut input = Decoder::new(&[1, 0, 0, 0, 0, 0, 0, 2], Representation::Xcdr2, Endian::Big);
/// assert_eq!(u8::decode(&mut input), Ok(1));
/// assert_eq!(u32::decode(&mut input), Ok(2));
/// assert_eq!(u8::decode(&mut input), Err(CdrError::EndOfData));
/// ```
pub struct Decoder<'a> {
    /// Ends where the innermost delimiter ends.
    data: &'a [u8],
    pos: usize,
    /// The index in `data` from which alignment counts.
    origin: usize,
    max_align: usize,
    representation: Representation,
    swap: bool,
    depth: u32,
    /// How many more elements may be declared that need not have a byte. Each that has one has one that is no other's.
    elements: usize,
    /// A key without the headers of structures, its members in the order of their ids.
    bare: bool,
    /// What `data` lies in, if values may keep parts of that.
    whole: Option<&'a Bytes>,
}

/// The header of a parameter of XCDR1.
struct Parameter {
    pid: u16,
    id: u32,
    length: usize,
    must_understand: bool,
    /// Only the sender's implementation knows it: its number is no member's id.
    implementation: bool,
}

fn size(length: u32) -> Result<usize> {
    usize::try_from(length).map_err(|_| CdrError::EndOfData)
}

impl<'a> Decoder<'a> {
    /// Reads `data` from its start; alignment counts from there.
    pub fn new(data: &'a [u8], representation: Representation, endian: Endian) -> Decoder<'a> {
        let max_align = match representation {
            Representation::Xcdr1 => 8,
            Representation::Xcdr2 => 4,
        };
        let swap = endian != Endian::NATIVE;
        Decoder {
            data,
            pos: 0,
            origin: 0,
            max_align,
            representation,
            swap,
            depth: 0,
            elements: data.len().saturating_add(MAX_EMPTY_ELEMENTS),
            bare: false,
            whole: None,
        }
    }

    /// The same bytes, which lie in `whole`: values may keep parts of that.
    #[inline]
    pub(crate) fn within_whole(self, whole: Option<&'a Bytes>) -> Decoder<'a> {
        Decoder { whole, ..self }
    }

    /// The same bytes, to be read as a key without the headers of structures, its members in the order of their ids.
    pub(crate) fn bare(self) -> Decoder<'a> {
        Decoder { bare: true, ..self }
    }

    /// Does it read a key without the headers of structures, with the members in the order of their ids?
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// What these bytes lie in, if values may keep parts of it.
    pub(crate) fn whole(&self) -> Option<&'a Bytes> {
        self.whole
    }

    /// The version that is read.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// The bytes that are left in the innermost delimiter.
    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.pos)
    }

    pub(crate) fn is_native(&self) -> bool {
        !self.swap
    }

    #[inline]
    fn aligned(&self, align: usize) -> usize {
        let mask = align.min(self.max_align).wrapping_sub(1);
        self.pos.wrapping_add(self.origin.wrapping_sub(self.pos) & mask)
    }

    /// Skips padding.
    pub(crate) fn align(&mut self, align: usize) {
        self.pos = self.aligned(align);
    }

    /// See the encoder's method of this name.
    pub(crate) fn starts_plain(&self, first: usize, align: usize) -> bool {
        let mask = align.min(self.max_align).wrapping_sub(1);
        self.aligned(first).wrapping_sub(self.origin) & mask == 0
    }

    /// Reads a primitive at its own alignment, into the byte order of this machine.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let pos = self.aligned(N);
        let rest = self.data.get(pos..).ok_or(CdrError::EndOfData)?;
        let mut bytes = *rest.first_chunk::<N>().ok_or(CdrError::EndOfData)?;
        self.pos = pos.wrapping_add(N);
        if self.swap {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// Reads `length` bytes without alignment.
    #[inline]
    pub fn take_bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let rest = self.data.get(self.pos..).ok_or(CdrError::EndOfData)?;
        let bytes = rest.get(..length).ok_or(CdrError::EndOfData)?;
        self.pos = self.pos.wrapping_add(length);
        Ok(bytes)
    }

    /// The bytes of `count` primitives of `N` bytes, in the byte order of the wire.
    pub(crate) fn take_all<const N: usize>(&mut self, count: usize) -> Result<&'a [u8]> {
        if count == 0 {
            return Ok(&[]);
        }
        self.align(N);
        self.take_bytes(count.checked_mul(N).ok_or(CdrError::EndOfData)?)
    }

    /// Goes past `count` primitives of `size` bytes.
    pub(crate) fn skip_all(&mut self, size: usize, count: usize) -> Result<()> {
        if count > 0 {
            self.align(size);
            self.take_bytes(count.checked_mul(size).ok_or(CdrError::EndOfData)?)?;
        }
        Ok(())
    }

    fn take_u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    /// Reads a length in bytes.
    pub(crate) fn take_length(&mut self) -> Result<usize> {
        let length = size(self.take_u32()?)?;
        if length > self.remaining() { Err(CdrError::EndOfData) } else { Ok(length) }
    }

    /// Reads the count of a collection whose elements take at least `min` bytes each.
    pub(crate) fn take_count(&mut self, min: usize) -> Result<usize> {
        let count = size(self.take_u32()?)?;
        match self.remaining().checked_div(min) {
            Some(possible) if count > possible => return Err(CdrError::Count),
            Some(_) => {}
            None => self.elements = self.elements.checked_sub(count).ok_or(CdrError::Count)?,
        }
        Ok(count)
    }

    /// A vector with room for `count` elements, but not for more than four times the bytes that remain.
    #[doc(hidden)]
    pub fn vec_for<T>(&self, count: usize) -> Vec<T> {
        let affordable = self.remaining().saturating_mul(4).checked_div(size_of::<T>()).unwrap_or(0);
        Vec::with_capacity(count.min(affordable))
    }

    /// Reads with the end set to `length` bytes from here, and goes on from there.
    fn within<R>(&mut self, length: usize, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let end = self.pos.checked_add(length).ok_or(CdrError::Header)?;
        let inner = self.data.get(..end).ok_or(CdrError::Header)?;
        let outer = std::mem::replace(&mut self.data, inner);
        let value = body(self)?;
        self.data = outer;
        self.pos = end;
        Ok(value)
    }

    /// Reads a DHEADER and what it delimits; skips what `body` leaves.
    #[inline]
    pub fn delimited<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let length = size(self.take_u32()?)?;
        self.within(length, body)
    }

    /// Reads a collection whose elements are not primitive: delimited in XCDR2.
    #[inline]
    pub(crate) fn collection<R>(
        &mut self,
        primitive: bool,
        body: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        if primitive || self.representation == Representation::Xcdr1 {
            body(self)
        } else {
            self.delimited(body)
        }
    }

    /// Goes past a collection; past its elements by `body`, if it has no delimiter.
    pub(crate) fn skip_collection(
        &mut self,
        primitive: bool,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let is_delimited = !primitive && self.representation == Representation::Xcdr2;
        if is_delimited { self.delimited(|_| Ok(())) } else { body(self) }
    }

    #[inline]
    fn deeper<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.depth >= MAX_DEPTH {
            return Err(CdrError::Depth);
        }
        self.depth = self.depth.wrapping_add(1);
        let value = body(self)?;
        self.depth = self.depth.wrapping_sub(1);
        Ok(value)
    }

    /// Reads a final or appendable structure or union, whose members `body` reads in order.
    #[inline]
    pub fn structure<R>(
        &mut self,
        extensibility: Extensibility,
        body: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.deeper(|input| match (extensibility, input.representation) {
            (Extensibility::Appendable, Representation::Xcdr2) if !input.bare => input.delimited(body),
            _ => body(input),
        })
    }

    /// Goes past a structure; past its members by `body`, if it is one that has neither a delimiter nor an end.
    pub fn skip_structure(
        &mut self,
        extensibility: Extensibility,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match (extensibility, self.representation) {
            (Extensibility::Final, _) | (Extensibility::Appendable, Representation::Xcdr1) => {
                self.deeper(body)
            }
            (_, Representation::Xcdr2) => self.delimited(|_| Ok(())),
            (Extensibility::Mutable, Representation::Xcdr1) => self.mutable(|_, _| Ok(true)),
        }
    }

    /// Reads a mutable structure or union: `member` reads the value with that id, or says that it has none.
    pub fn mutable(&mut self, member: impl FnMut(u32, &mut Self) -> Result<bool>) -> Result<()> {
        self.deeper(|input| match input.representation {
            Representation::Xcdr1 => input.parameters(member),
            Representation::Xcdr2 => input.delimited(|input| input.members(member)),
        })
    }

    fn members(&mut self, mut member: impl FnMut(u32, &mut Self) -> Result<bool>) -> Result<()> {
        while self.remaining() > 0 {
            let header = self.take_u32()?;
            let code = header.wrapping_shr(28) & 7;
            let length = match code {
                0..=3 => 1usize.wrapping_shl(code),
                4 => size(self.take_u32()?)?,
                _ => {
                    // The length doubles as the count that the value begins with: look, do not take.
                    let at = self.pos;
                    let count = size(self.take_u32()?)?;
                    self.pos = at;
                    let scale = [1usize, 4, 8].get(size(code.wrapping_sub(5))?).copied().unwrap_or(1);
                    count.checked_mul(scale).and_then(|n| n.checked_add(4)).ok_or(CdrError::Header)?
                }
            };
            let must_understand = header & EM_MUST_UNDERSTAND != 0;
            let id = header & MEMBER_ID_MASK;
            let known = self.within(length, |input| member(id, input))?;
            if !known && must_understand {
                return Err(CdrError::MustUnderstand);
            }
        }
        Ok(())
    }

    fn take_parameter(&mut self) -> Result<Parameter> {
        self.align(4);
        let head = self.take().map(u16::from_ne_bytes)?;
        let length = usize::from(self.take().map(u16::from_ne_bytes)?);
        let pid = head & PID_MASK;
        if pid != PID_EXTENDED {
            let must_understand = head & PID_MUST_UNDERSTAND != 0;
            let implementation = head & PID_IMPLEMENTATION != 0;
            return Ok(Parameter { pid, id: u32::from(pid), length, must_understand, implementation });
        }
        if length != 8 {
            return Err(CdrError::Header);
        }
        let head = self.take_u32()?;
        let length = size(self.take_u32()?)?;
        let must_understand = head & LONG_MUST_UNDERSTAND != 0;
        let implementation = head & LONG_IMPLEMENTATION != 0;
        Ok(Parameter { pid, id: head & MEMBER_ID_MASK, length, must_understand, implementation })
    }

    /// A parameter's value: its alignment counts from its own start.
    fn parameter_value<R>(&mut self, length: usize, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let outer = std::mem::replace(&mut self.origin, self.pos);
        let value = self.within(length, body);
        self.origin = outer;
        value
    }

    fn parameters(&mut self, mut member: impl FnMut(u32, &mut Self) -> Result<bool>) -> Result<()> {
        loop {
            let parameter = self.take_parameter()?;
            if parameter.pid == PID_LIST_END {
                return Ok(());
            }
            let known = self.parameter_value(parameter.length, |input| match parameter.pid {
                PID_IGNORE => Ok(true),
                _ if parameter.implementation => Ok(false),
                _ => member(parameter.id, input),
            })?;
            if !known && parameter.must_understand {
                return Err(CdrError::MustUnderstand);
            }
        }
    }

    /// Did the sender's older type end before the next member of an appendable structure, of at least `min` bytes, which
    /// `skip` goes past?
    ///
    /// XCDR1 has no delimiters, so there only the outermost structure can tell. What fills the submessage up to 4 bytes
    /// is no member, if one takes more: not all senders count it in the options.
    #[inline]
    fn is_over(&mut self, min: usize, skip: impl FnOnce(&mut Self) -> Result<()>) -> bool {
        let rest = self.remaining();
        if rest >= 4 {
            return false;
        }
        let is_over = match self.representation {
            Representation::Xcdr2 => rest == 0,
            Representation::Xcdr1 if self.depth > 1 => false,
            Representation::Xcdr1 if rest == 0 || rest < min => true,
            // Nor is what fills it, to its last byte, if it is no value of the member.
            Representation::Xcdr1 => skip(&mut Decoder { ..*self })
                .is_err_and(|error| error == CdrError::EndOfData || self.is_filled_up()),
        };
        if is_over {
            self.pos = self.data.len();
        }
        is_over
    }

    /// Is all that is left zeros up to a multiple of 4?
    fn is_filled_up(&self) -> bool {
        let rest = self.data.get(self.pos..).unwrap_or_default();
        self.data.len().is_multiple_of(4) && rest.iter().all(|byte| *byte == 0)
    }

    /// Did the sender's older type end before the next member of its key? A key without headers has all of them.
    pub fn is_key_over(&self) -> bool {
        let can_tell = self.representation == Representation::Xcdr2 || self.depth <= 1;
        !self.bare && can_tell && self.remaining() == 0
    }

    /// Reads the next member of an appendable structure, or gives its initial value if it was not sent.
    pub fn appended<T: Cdr>(&mut self) -> Result<T> {
        if self.is_over(T::MIN_SIZE, T::skip) { Ok(T::initial()) } else { T::decode(self) }
    }

    /// Reads the next member of an appendable structure into `value`, or gives it its initial value if it was not sent.
    pub fn appended_into<T: Cdr>(&mut self, value: &mut T) -> Result<()> {
        if self.is_over(T::MIN_SIZE, T::skip) {
            *value = T::initial();
            return Ok(());
        }
        value.decode_into(self)
    }

    /// As [`Decoder::appended`] for an optional member.
    pub fn appended_optional<T: Cdr>(&mut self, id: u32) -> Result<Option<T>> {
        if self.is_over(PARAMETER, |input| input.skip_optional::<T>(id)) {
            Ok(None)
        } else {
            self.optional(id)
        }
    }

    /// Reads the next member of an appendable structure, or takes its initial value if it was not sent, and writes its key
    /// members.
    pub fn recode_appended_key<T: Cdr>(&mut self, bounds: &[usize], out: &mut Encoder<'_>) -> Result<()> {
        if self.is_over(T::MIN_SIZE, T::skip) {
            T::initial().encode_key(out)
        } else {
            T::recode_key(self, bounds, out)
        }
    }

    /// Goes past the next member of an appendable structure, if it was sent.
    pub fn skip_appended<T: Cdr>(&mut self) -> Result<()> {
        if self.is_over(T::MIN_SIZE, T::skip) { Ok(()) } else { T::skip(self) }
    }

    /// As [`Decoder::skip_appended`] for an optional member.
    pub fn skip_appended_optional<T: Cdr>(&mut self, id: u32) -> Result<()> {
        let is_over = self.is_over(PARAMETER, |input| input.skip_optional::<T>(id));
        if is_over { Ok(()) } else { self.skip_optional::<T>(id) }
    }

    /// Goes past an optional member of a final or appendable structure.
    pub fn skip_optional<T: Cdr>(&mut self, id: u32) -> Result<()> {
        if self.representation == Representation::Xcdr2 {
            return if bool::decode(self)? { T::skip(self) } else { Ok(()) };
        }
        let parameter = self.take_parameter()?;
        if parameter.id != id {
            return Err(CdrError::Header);
        }
        self.parameter_value(parameter.length, |_| Ok(()))
    }

    /// Reads an optional member of a final or appendable structure.
    pub fn optional<T: Cdr>(&mut self, id: u32) -> Result<Option<T>> {
        if self.representation == Representation::Xcdr2 {
            return if bool::decode(self)? { self.present().map(Some) } else { Ok(None) };
        }
        let parameter = self.take_parameter()?;
        if parameter.id != id {
            return Err(CdrError::Header);
        }
        if parameter.length == 0 {
            return Ok(None);
        }
        self.parameter_value(parameter.length, |input| T::decode(input)).map(Some)
    }

    /// Reads an optional member that is there.
    fn present<T: Cdr>(&mut self) -> Result<T> {
        if self.bare { T::decode_key(self) } else { T::decode(self) }
    }
}
