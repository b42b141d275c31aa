//! Strings and wide strings. XTypes 1.3 §7.4.3.5.2 (rules 7 and 8).

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::types::within;
use crate::{Cdr, CdrError, Decoder, Encoder, FieldKind, FieldValue, KeySize, Result, Step};

/// IDL `wstring`: held as UTF-8, sent as UTF-16 code units after their length in bytes, without terminator.
///
/// ```
/// use taut_cdr::WString;
/// let name = WString::from("Zürich");
/// assert_eq!(name.chars().count(), 6);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub String);

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        WString(text.to_owned())
    }
}
impl From<String> for WString {
    fn from(text: String) -> Self {
        WString(text)
    }
}
impl Deref for WString {
    type Target = String;
    fn deref(&self) -> &String {
        &self.0
    }
}
impl DerefMut for WString {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.0
    }
}
impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Is there a NUL, which ends a string on the wire? Eight bytes at a time: most strings are short, and a
/// search made for long ones costs more than writing them.
#[inline]
fn has_nul(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    if words.iter().any(|word| in_word(u64::from_ne_bytes(*word))) {
        return true;
    }
    // The last word again covers the rest; of less than a word its two halves do.
    if let Some(last) = text.last_chunk::<8>() {
        return in_word(u64::from_ne_bytes(*last));
    }
    match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (Some(first), Some(last)) => in_halves(*first, *last),
        _ => rest.contains(&0),
    }
}

/// Is there a byte that is 0?
#[inline]
fn in_word(word: u64) -> bool {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Taking 1 from a byte sets its high bit without having found one there only if the byte was 0, or
    // borrowed from by one below that was.
    word.wrapping_sub(LOW) & !word & HIGH != 0
}

#[inline]
fn in_halves(first: [u8; 4], last: [u8; 4]) -> bool {
    in_word(u64::from(u32::from_ne_bytes(first)) | u64::from(u32::from_ne_bytes(last)) << 32)
}

/// *Units*: bytes, of the two words, which may overlap, by which a text is copied while a NUL is looked for in them. Less, and
/// more texts are copied by a call, which takes longer than their bytes; more, and two words are not all of it.
const SHORT: usize = 16;

/// Copies a text to where it has room, if it has, and a NUL behind it. Is there a NUL within, too? Then the copy is of no use.
#[inline]
pub(crate) fn copy_text(text: &[u8], to: &mut [u8]) -> bool {
    let Some((end, to)) = to.split_last_mut().filter(|(_, to)| to.len() == text.len()) else {
        return has_nul_apart(text);
    };
    *end = 0;
    if text.len() > SHORT {
        to.copy_from_slice(text);
        return has_nul(text);
    }
    if let Some([first, last]) = copy_ends(text, to) {
        return in_word(u64::from_ne_bytes(first)) | in_word(u64::from_ne_bytes(last));
    }
    if let Some([first, last]) = copy_ends(text, to) {
        return in_halves(first, last);
    }
    // Of up to three one may be at neither end.
    let middle = text.len() / 2;
    if let (Some(byte), Some(to)) = (text.get(middle), to.get_mut(middle)) {
        *to = *byte;
    }
    copy_ends::<1>(text, to).is_some() && text.contains(&0)
}

/// Copies the first bytes and the last ones, some of which may be both. None: there are fewer.
#[inline]
fn copy_ends<const N: usize>(text: &[u8], to: &mut [u8]) -> Option<[[u8; N]; 2]> {
    let ends @ [first, last] = [*text.first_chunk()?, *text.last_chunk()?];
    *to.first_chunk_mut()? = first;
    *to.last_chunk_mut()? = last;
    Some(ends)
}

/// Of a text that has no room, and is written again.
#[cold]
#[inline(never)]
fn has_nul_apart(text: &[u8]) -> bool {
    has_nul(text)
}

/// The characters of a string where they lie. Apart, so that who makes something of them does that in line.
#[inline(never)]
fn text<'a>(input: &mut Decoder<'a>) -> Result<&'a str> {
    let length = input.take_length()?;
    // Some implementations send a length of 0 for an empty string, without its terminator.
    let Some((terminator, text)) = input.take_bytes(length)?.split_last() else { return Ok("") };
    if *terminator != 0 || has_nul(text) {
        return Err(CdrError::InvalidString);
    }
    std::str::from_utf8(text).map_err(|_| CdrError::InvalidString)
}

/// Goes past what is led by its length in bytes.
fn skip_text(input: &mut Decoder<'_>) -> Result<()> {
    let length = input.take_length()?;
    input.take_bytes(length).map(drop)
}

/// The UTF-16 code units of a wide string where they lie.
fn units<'a>(input: &mut Decoder<'a>) -> Result<impl Iterator<Item = u16> + Clone + use<'a>> {
    let length = input.take_length()?;
    let native = input.is_native();
    let (units, []) = input.take_bytes(length)?.as_chunks::<2>() else {
        return Err(CdrError::InvalidString);
    };
    Ok(units.iter().map(move |&pair| {
        let unit = u16::from_ne_bytes(pair);
        if native { unit } else { unit.swap_bytes() }
    }))
}

/// Writes the code units of a wide string that is known to have no NUL.
fn put_units(units: impl Iterator<Item = u16> + Clone, out: &mut Encoder<'_>) -> Result<()> {
    out.put_length(units.clone().count().saturating_mul(2))?;
    units.for_each(|unit| out.put(unit.to_ne_bytes()));
    Ok(())
}

impl Cdr for String {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = 5;
    const BOUNDS: usize = 1;
    const KEY_UNIT: usize = 4;

    #[inline]
    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        out.put_text(self.as_bytes())
    }

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        text(input).map(str::to_owned)
    }

    fn decode_into(&mut self, input: &mut Decoder<'_>) -> Result<()> {
        let text = text(input)?;
        self.clear();
        self.push_str(text);
        Ok(())
    }

    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        skip_text(input)
    }

    fn recode_key(input: &mut Decoder<'_>, bounds: &[usize], out: &mut Encoder<'_>) -> Result<()> {
        let text = text(input)?;
        within(text.len(), bounds)?;
        out.put_text(text.as_bytes())
    }

    fn initial() -> Self {
        String::new()
    }

    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        match bounds.first() {
            Some(&bound) if bound != 0 => size.primitive(4).bytes(bound.saturating_add(1)),
            _ => size.unbounded(),
        }
    }

    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        path.is_empty().then_some(FieldKind::String)
    }

    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        path.is_empty().then_some(FieldValue::String(self))
    }

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)
    }
}

impl Cdr for WString {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = 5;
    const BOUNDS: usize = 1;
    const KEY_UNIT: usize = 4;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        if has_nul(self.0.as_bytes()) {
            return Err(CdrError::InvalidString);
        }
        put_units(self.0.encode_utf16(), out)
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let text: std::result::Result<String, _> = char::decode_utf16(units(input)?).collect();
        match text {
            Ok(text) if !has_nul(text.as_bytes()) => Ok(WString(text)),
            _ => Err(CdrError::InvalidString),
        }
    }

    fn skip(input: &mut Decoder<'_>) -> Result<()> {
        skip_text(input)
    }

    fn recode_key(input: &mut Decoder<'_>, bounds: &[usize], out: &mut Encoder<'_>) -> Result<()> {
        let units = units(input)?;
        if !char::decode_utf16(units.clone()).all(|char| char.is_ok_and(|char| char != '\0')) {
            return Err(CdrError::InvalidString);
        }
        within(units.clone().count(), bounds)?;
        put_units(units, out)
    }

    fn initial() -> Self {
        WString::default()
    }

    fn key_size(size: KeySize, bounds: &[usize]) -> KeySize {
        match bounds.first() {
            Some(&bound) if bound != 0 => size.primitive(4).bytes(bound.saturating_mul(2)),
            _ => size.unbounded(),
        }
    }

    fn field_kind(path: &[Step]) -> Option<FieldKind> {
        path.is_empty().then_some(FieldKind::String)
    }

    fn field(&self, path: &[Step]) -> Option<FieldValue<'_>> {
        path.is_empty().then_some(FieldValue::String(self))
    }

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.0.encode_utf16().count(), bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a NUL found in what is copied as a whole?
    fn copied(text: &[u8]) -> bool {
        let mut to = vec![0xee; text.len() + 1];
        let has_nul = copy_text(text, &mut to);
        assert!(has_nul || to.split_last() == Some((&0, text)), "{to:x?} of {text:x?}");
        has_nul
    }

    #[test]
    fn a_nul_is_found_wherever_it_is_and_only_there() {
        for len in 0..=40 {
            for other in [0x01, 0x7f, 0x80, 0x81, 0xff] {
                let mut text = vec![other; len];
                assert!(!has_nul(&text) && !copied(&text), "{text:x?}");
                for at in 0..len {
                    text[at] = 0;
                    assert!(has_nul(&text) && copied(&text), "{text:x?}");
                    text[at] = other;
                }
            }
        }
    }
}
