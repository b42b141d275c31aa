//! Attributes: what messages are made of behind their fixed part.

/// Set for attributes that hold attributes.
const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;

/// A number of 32 bits.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A number of 16 bits.
pub fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// Attributes, one behind the other.
#[derive(Clone, Default)]
pub struct Attributes(pub Vec<u8>);

impl Attributes {
    /// One more of this kind.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Attributes {
        let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend([len, kind].iter().flat_map(|half| half.to_ne_bytes()));
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// The same of a number.
    #[must_use]
    pub fn with_word(self, kind: u16, value: u32) -> Attributes {
        self.with(kind, &value.to_ne_bytes())
    }

    /// The same of a text, which the kernel wants to end with a zero.
    #[must_use]
    pub fn with_text(self, kind: u16, value: &str) -> Attributes {
        self.with(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// The same of attributes.
    #[must_use]
    pub fn with_nested(self, kind: u16, value: &Attributes) -> Attributes {
        self.with(kind | NESTED, &value.0)
    }
}

/// The value of the first attribute of this kind.
pub fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let (Some(len), Some(kind)) = (half(bytes, 0), half(bytes, 2)) {
        let value = bytes.get(4..usize::from(len))?;
        if kind & KIND == wanted {
            return Some(value);
        }
        bytes = bytes.get(usize::from(len).next_multiple_of(4)..)?;
    }
    None
}

/// A text that the kernel ends with a zero.
pub fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_again() {
        let inner = Attributes::default().with_text(2, "veth0").with_word(1, 7);
        let all = Attributes::default().with(9, &[1]).with_nested(3, &inner);
        let nested = attribute(&all.0, 3).unwrap();
        assert_eq!(attribute(nested, 2).map(text).as_deref(), Some("veth0"));
        assert_eq!(attribute(nested, 1).and_then(|value| word(value, 0)), Some(7));
        assert_eq!((attribute(&all.0, 9), attribute(&all.0, 4)), (Some([1].as_slice()), None));
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let whole = Attributes::default().with_word(1, 7).0;
        for len in 0..whole.len() {
            assert_eq!(attribute(&whole[..len], 1), None, "{len} bytes");
        }
        assert_eq!(attribute(&[0, 0, 1, 0], 2), None, "a length of nothing");
    }
}
