//! Writes values behind each other with CDR's alignment, delimiters and member headers.
//!
//! XTypes 1.3 §7.4.3. Fills memory of the caller; what does not fit is counted, so that the caller finds memory that is
//! long enough and tries again.

use crate::strings::copy_text;
use crate::types::wire_length;
use crate::{Cdr, CdrError, Endian, Extensibility, Representation, Result};

/// How many bytes of a buffer are room at first, if it has them. Lower and more values are written twice, higher and more zeros are
/// written for nothing.
const FIRST: usize = 4_096;

/// How deep structures may nest, on both sides. Too low refuses honest recursive values, too high lets
/// a hostile peer exhaust the stack.
pub(crate) const MAX_DEPTH: u32 = 32;

// XTypes 1.3 §7.4.1.2, parameter identifiers of XCDR1.
pub(crate) const PID_MAX_SHORT: u32 = 0x3f00;
pub(crate) const PID_EXTENDED: u16 = 0x3f01;
pub(crate) const PID_LIST_END: u16 = 0x3f02;
pub(crate) const PID_IGNORE: u16 = 0x3f03;
pub(crate) const PID_MASK: u16 = 0x3fff;
pub(crate) const PID_MUST_UNDERSTAND: u16 = 0x4000;
pub(crate) const PID_IMPLEMENTATION: u16 = 0x8000;
pub(crate) const LONG_MUST_UNDERSTAND: u32 = 0x4000_0000;
pub(crate) const LONG_IMPLEMENTATION: u32 = 0x8000_0000;
pub(crate) const EM_MUST_UNDERSTAND: u32 = 0x8000_0000;
pub(crate) const MEMBER_ID_MASK: u32 = 0x0fff_ffff;

/// A cursor that fills memory with values.
///
/// ```
/// use taut_cdr::{Cdr, Encoder, Endian, Representation};
/// let mut memory = [0; 8];
/// let mut out = Encoder::new(&mut memory, Representation::Xcdr2, Endian::Big);
/// 1u8.encode(&mut out).unwrap();
/// 2u32.encode(&mut out).unwrap();
/// assert_eq!(out.len(), 8);
/// 3u8.encode(&mut out).unwrap();
/// assert_eq!(out.len(), 9, "so many it would take");
/// assert_eq!(memory, [1, 0, 0, 0, 0, 0, 0, 2]);
/// ```
pub struct Encoder<'a> {
    memory: &'a mut [u8],
    /// Bytes so far; what lies behind them in the memory is not theirs.
    len: usize,
    /// The index from which alignment counts.
    origin: usize,
    max_align: usize,
    representation: Representation,
    swap: bool,
    /// Key hash: every structure counts as final (XTypes 1.3 §7.6.8).
    key_hash: bool,
    depth: u32,
}

/// Appends what `body` writes to a buffer. *Cost*: `body` is called twice if the buffer has to be lengthened.
///
/// *Errors*: those of `body`; the buffer is as before then.
pub fn append(
    buffer: &mut Vec<u8>,
    representation: Representation,
    endian: Endian,
    body: impl Fn(&mut Encoder<'_>) -> Result<()>,
) -> Result<()> {
    let start = buffer.len();
    // As a rule that is enough, and is soon filled with zeros.
    buffer.resize(buffer.capacity().min(start.wrapping_add(FIRST)), 0);
    loop {
        let mut out = Encoder::new(buffer.get_mut(start..).unwrap_or_default(), representation, endian);
        let written = body(&mut out);
        let (fits, end) = (out.fits(), start.wrapping_add(out.len()));
        if fits || written.is_err() {
            buffer.truncate(if written.is_ok() { end } else { start });
            return written;
        }
        buffer.resize(end, 0);
    }
}

impl<'a> Encoder<'a> {
    /// Fills `memory`, whatever is in it; alignment counts from its start.
    #[inline]
    pub fn new(memory: &'a mut [u8], representation: Representation, endian: Endian) -> Encoder<'a> {
        let max_align = match representation {
            Representation::Xcdr1 => 8,
            Representation::Xcdr2 => 4,
        };
        let swap = endian != Endian::NATIVE;
        Encoder { memory, len: 0, origin: 0, max_align, representation, swap, key_hash: false, depth: 0 }
    }

    /// For the key hash: big-endian, without the headers of structures. *Source*: XTypes 1.3 §7.6.8.
    pub fn for_key_hash(memory: &'a mut [u8], representation: Representation) -> Encoder<'a> {
        Encoder { key_hash: true, ..Encoder::new(memory, representation, Endian::Big) }
    }

    /// How many bytes were written, or would have been in longer memory.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Was nothing written yet?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Did all that was written find room?
    #[inline]
    pub fn fits(&self) -> bool {
        self.len <= self.memory.len()
    }

    /// Writes a payload: its header, what `body` writes, and padding, of which the header tells.
    ///
    /// *Errors*: those of `body`; `TooLarge` for more than the 32 bits that RTPS has for a sample's size.
    #[inline]
    pub(crate) fn encapsulated(&mut self, id: u8, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.put_array([0, id, 0, 0]);
        self.origin = self.len;
        body(self)?;
        let padding = self.len.wrapping_neg() & 3;
        if padding != 0 {
            self.put_zeros(padding);
            self.patch(3, [u8::try_from(padding).unwrap_or(0)]);
        }
        wire_length(self.len).map(drop)
    }

    /// The version that is written.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Does it write a key for its hash, with the members in the order of their ids?
    pub fn is_key_hash(&self) -> bool {
        self.key_hash
    }

    /// Is the byte order that of this machine?
    pub(crate) fn is_native(&self) -> bool {
        !self.swap
    }

    /// Fills up with zeros to a multiple of `align` (capped by the version's greatest alignment).
    #[inline]
    pub fn align(&mut self, align: usize) {
        let pad = self.padding(align);
        if pad != 0 {
            self.put_zeros(pad);
        }
    }

    /// Writes so many zeros, at most 8.
    #[inline]
    fn put_zeros(&mut self, count: usize) {
        if let Some(to) = self.rest().first_chunk_mut() {
            // Eight are written faster than their number is looked at; the next bytes go over those beyond.
            *to = [0; 8];
        } else if let Some(to) = self.rest().get_mut(..count) {
            to.fill(0);
        }
        self.len = self.len.wrapping_add(count);
    }

    /// The memory that is left.
    #[inline]
    fn rest(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.len..).unwrap_or_default()
    }

    #[inline]
    fn put_array<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(to) = self.rest().first_chunk_mut() {
            *to = bytes;
        }
        self.len = self.len.wrapping_add(N);
    }

    #[inline]
    fn padding(&self, align: usize) -> usize {
        self.origin.wrapping_sub(self.len) & self.mask(align)
    }

    /// Up to 4 it is known when the code is compiled.
    #[inline]
    fn mask(&self, align: usize) -> usize {
        if align > 4 { align.min(self.max_align) } else { align }.wrapping_sub(1)
    }

    /// After padding to `first`, would memory of alignment `align` need no padding inside?
    pub(crate) fn starts_plain(&self, first: usize, align: usize) -> bool {
        let start = self.len.wrapping_add(self.padding(first));
        start.wrapping_sub(self.origin) & self.mask(align) == 0
    }

    /// Writes a primitive, given in the byte order of this machine, at its own alignment.
    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.align(N);
        self.put_array(self.ordered(bytes));
    }

    /// A primitive as it is written: of a byte order that is known only when the code runs.
    #[inline]
    fn ordered<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if !self.swap {
            return bytes;
        }
        // As a whole: swapped byte by byte it would be taken apart in the other order, too.
        if let Some(whole) = bytes.first_chunk_mut().filter(|_| N == 4) {
            *whole = u32::from_ne_bytes(*whole).swap_bytes().to_ne_bytes();
        } else if let Some(whole) = bytes.first_chunk_mut().filter(|_| N == 8) {
            *whole = u64::from_ne_bytes(*whole).swap_bytes().to_ne_bytes();
        } else {
            bytes.reverse();
        }
        bytes
    }

    /// Writes bytes as they are, without alignment.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        if let Some(to) = self.rest().get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
        }
        self.len = self.len.wrapping_add(bytes.len());
    }

    /// Writes primitives of `N` bytes each, given as the memory of a slice of them: one copy when the
    /// byte order is that of this machine.
    pub(crate) fn put_all<const N: usize>(&mut self, memory: &[u8]) {
        if memory.is_empty() {
            return;
        }
        self.align(N);
        if self.swap && N > 1 {
            for chunk in memory.as_chunks::<N>().0 {
                let mut bytes = *chunk;
                bytes.reverse();
                self.put_array(bytes);
            }
        } else {
            self.put_bytes(memory);
        }
    }

    /// Writes a count or length of 32 bits.
    #[inline]
    pub fn put_length(&mut self, length: usize) -> Result<()> {
        self.put(wire_length(length)?.to_ne_bytes());
        Ok(())
    }

    /// Writes a text with a NUL behind it, led by their length.
    ///
    /// *Errors*: there is a NUL within, too.
    // A call would take the encoder's address, and with it what `alone` is for.
    #[inline(always)]
    pub(crate) fn put_text(&mut self, text: &[u8]) -> Result<()> {
        let length = text.len().wrapping_add(1);
        let head = self.ordered(wire_length(length)?.to_ne_bytes());
        self.align(head.len());
        let whole = length.wrapping_add(head.len());
        let room = self.rest().get_mut(..whole).and_then(|to| to.split_first_chunk_mut());
        let has_nul = match room {
            Some((first, to)) => {
                *first = head;
                copy_text(text, to)
            }
            None => copy_text(text, &mut []),
        };
        self.len = self.len.wrapping_add(whole);
        if has_nul { Err(CdrError::InvalidString) } else { Ok(()) }
    }

    /// Has `body` write with an encoder of its own: nobody else knows its address, so that a loop keeps it in registers instead
    /// of looking into memory for how far it has come, value by value.
    #[inline]
    pub(crate) fn alone<T>(&mut self, body: impl FnOnce(&mut Encoder<'_>) -> T) -> T {
        let mut own = Encoder { memory: &mut *self.memory, ..*self };
        let written = body(&mut own);
        self.len = own.len;
        written
    }

    /// Writes over what was written before.
    fn patch<const N: usize>(&mut self, at: usize, mut bytes: [u8; N]) {
        if self.swap {
            bytes.reverse();
        }
        if let Some(to) = self.memory.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *to = bytes;
        }
    }

    fn since(&self, start: usize) -> Result<u32> {
        wire_length(self.len.wrapping_sub(start))
    }

    /// Writes a DHEADER and what it delimits.
    #[inline]
    pub fn delimited(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.put(0u32.to_ne_bytes());
        let start = self.len;
        body(self)?;
        let length = self.since(start)?;
        self.patch(start.wrapping_sub(4), length.to_ne_bytes());
        Ok(())
    }

    /// Writes a collection whose elements are not primitive: delimited in XCDR2.
    #[inline]
    pub(crate) fn collection(
        &mut self,
        primitive: bool,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if primitive || self.representation == Representation::Xcdr1 {
            body(self)
        } else {
            self.delimited(body)
        }
    }

    /// Writes the header, the members (by `body`) and the end of a structure or union.
    #[inline]
    pub fn structure(
        &mut self,
        extensibility: Extensibility,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(CdrError::Depth);
        }
        self.depth = self.depth.wrapping_add(1);
        match (extensibility, self.representation) {
            _ if self.key_hash => body(self)?,
            (Extensibility::Final, _) | (Extensibility::Appendable, Representation::Xcdr1) => body(self)?,
            (_, Representation::Xcdr2) => self.delimited(body)?,
            (Extensibility::Mutable, Representation::Xcdr1) => {
                body(self)?;
                self.align(4);
                self.put((PID_LIST_END | PID_MUST_UNDERSTAND).to_ne_bytes());
                self.put(0u16.to_ne_bytes());
            }
        }
        self.depth = self.depth.wrapping_sub(1);
        Ok(())
    }

    /// Writes a member of a mutable structure.
    pub fn member<T: Cdr>(&mut self, id: u32, must_understand: bool, value: &T) -> Result<()> {
        self.mutable_member(id, must_understand, T::LENGTH_CODE, |out| value.encode(out))
    }

    /// Writes a key member of a mutable structure.
    pub fn key_member<T: Cdr>(&mut self, id: u32, must_understand: bool, value: &T) -> Result<()> {
        if self.key_hash {
            return value.encode_key(self);
        }
        self.mutable_member(id, must_understand, T::LENGTH_CODE, |out| value.encode_key(out))
    }

    fn mutable_member(
        &mut self,
        id: u32,
        must_understand: bool,
        length_code: u32,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if id > MEMBER_ID_MASK {
            return Err(CdrError::MemberId);
        }
        if self.representation == Representation::Xcdr1 {
            return self.parameter(id, must_understand, true, body);
        }
        let flag = if must_understand { EM_MUST_UNDERSTAND } else { 0 };
        self.put((flag | length_code.wrapping_shl(28) | id).to_ne_bytes());
        if length_code == 4 { self.delimited(body) } else { body(self) }
    }

    /// Writes an optional member of a final or appendable structure.
    pub fn optional<T: Cdr>(&mut self, id: u32, must_understand: bool, value: Option<&T>) -> Result<()> {
        let write = |out: &mut Self| match value {
            Some(value) if out.key_hash => value.encode_key(out),
            Some(value) => value.encode(out),
            None => Ok(()),
        };
        if self.representation == Representation::Xcdr1 {
            return self.parameter(id, must_understand, false, write);
        }
        self.put([u8::from(value.is_some())]);
        write(self)
    }

    /// Writes a parameter of XCDR1: a short header when id and size allow it, else the extended one.
    fn parameter(
        &mut self,
        id: u32,
        must_understand: bool,
        pad: bool,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.align(4);
        let head = self.len;
        let flag = if must_understand { PID_MUST_UNDERSTAND } else { 0 };
        let short = u16::try_from(id).ok().filter(|_| id <= PID_MAX_SHORT);
        match short {
            Some(pid) => {
                self.put((flag | pid).to_ne_bytes());
                self.put(0u16.to_ne_bytes());
            }
            None => self.put_array([0; 12]),
        }
        let start = self.len;
        let outer = std::mem::replace(&mut self.origin, start);
        let written = body(self);
        self.origin = outer;
        written?;
        if pad {
            self.align(4);
        }
        let length = self.since(start)?;
        if let (Some(_), Ok(length)) = (short, u16::try_from(length)) {
            self.patch(head.wrapping_add(2), length.to_ne_bytes());
            return Ok(());
        }
        if short.is_some() {
            // The value turned out to be larger than 16 bits can say: make room for the extended header.
            // Its alignment counts from its own start, so it moves unchanged.
            let end = self.len;
            self.put_array([0; 8]);
            if self.fits() {
                self.memory.copy_within(start..end, start.wrapping_add(8));
            }
        }
        let flag = if must_understand { LONG_MUST_UNDERSTAND } else { 0 };
        self.patch(head, (PID_EXTENDED | PID_MUST_UNDERSTAND).to_ne_bytes());
        self.patch(head.wrapping_add(2), 8u16.to_ne_bytes());
        self.patch(head.wrapping_add(4), (flag | id).to_ne_bytes());
        self.patch(head.wrapping_add(8), length.to_ne_bytes());
        Ok(())
    }
}
