//! Strings and wide strings. XTypes 1.3 §7.4.3.5.2 (rules 7 and 8).

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{Cdr, CdrError, Decoder, Encoder, KeySize, Result};

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

fn within(length: usize, bounds: &[usize]) -> Result<()> {
    match bounds.first() {
        Some(&bound) if bound != 0 && length > bound => Err(CdrError::Bound),
        _ => Ok(()),
    }
}

impl Cdr for String {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = 5;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        if self.as_bytes().contains(&0) {
            return Err(CdrError::InvalidString);
        }
        out.put_length(self.len().wrapping_add(1))?;
        out.put_bytes(self.as_bytes());
        out.put_bytes(&[0]);
        Ok(())
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let length = input.take_length()?;
        // Some implementations send a length of 0 for an empty string, without its terminator.
        let Some((terminator, text)) = input.take_bytes(length)?.split_last() else {
            return Ok(String::new());
        };
        if *terminator != 0 || text.contains(&0) {
            return Err(CdrError::InvalidString);
        }
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| CdrError::InvalidString)
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

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.len(), bounds)
    }
}

impl Cdr for WString {
    const MIN_SIZE: usize = 4;
    const LENGTH_CODE: u32 = 5;

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        if self.0.as_bytes().contains(&0) {
            return Err(CdrError::InvalidString);
        }
        out.put_length(self.0.encode_utf16().count().saturating_mul(2))?;
        self.0.encode_utf16().for_each(|unit| out.put(unit.to_ne_bytes()));
        Ok(())
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let length = input.take_length()?;
        let native = input.is_native();
        let (units, []) = input.take_bytes(length)?.as_chunks::<2>() else {
            return Err(CdrError::InvalidString);
        };
        let units = units.iter().map(|&pair| {
            let unit = u16::from_ne_bytes(pair);
            if native { unit } else { unit.swap_bytes() }
        });
        let text: std::result::Result<String, _> = char::decode_utf16(units).collect();
        match text {
            Ok(text) if !text.as_bytes().contains(&0) => Ok(WString(text)),
            _ => Err(CdrError::InvalidString),
        }
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

    fn check_bounds(&self, bounds: &[usize]) -> Result<()> {
        within(self.0.encode_utf16().count(), bounds)
    }
}
