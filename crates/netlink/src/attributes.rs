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
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// All attributes with their kinds, up to the first that is none.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (len, kind) = (usize::from(half(bytes, 0)?), half(bytes, 2)?);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & KIND, value))
    })
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
    fn a_list_of_one_kind() {
        let all = Attributes::default().with(1, &[7]).with_nested(1, &Attributes::default()).with(1, &[9, 9]);
        let listed: Vec<_> = attributes(&all.0).collect();
        assert_eq!(listed, [(1, [7].as_slice()), (1, &[]), (1, &[9, 9])]);
        assert_eq!(attributes(&all.0[..13]).count(), 2, "the third has an end");
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
