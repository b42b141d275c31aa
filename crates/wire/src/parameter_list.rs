//! Parameter lists: pid, length, value, up to the sentinel. RTPS 2.5 §9.4.2.11.

use taut_base::{Duration, EntityId, Guid, Locator};

use crate::{Cursor, Endian, Out, WireError, pid};

/// What a parameter is. The constants are in [`pid`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ParameterId(pub u16);

impl ParameterId {
    const VENDOR_SPECIFIC: u16 = 0x8000;
    const MUST_UNDERSTAND: u16 = 0x4000;

    /// Does only its vendor know it? Read it from the same vendor only: the number of another may mean something else.
    pub const fn is_vendor_specific(self) -> bool {
        self.0 & Self::VENDOR_SPECIFIC != 0
    }

    /// Does it make the sample unreadable for who does not know it? RTPS 2.5 §9.6.2.2.1.
    pub const fn must_understand(self) -> bool {
        self.0 & Self::MUST_UNDERSTAND != 0
    }

    /// The same id with the must-understand bit.
    #[must_use]
    pub const fn with_must_understand(self) -> ParameterId {
        ParameterId(self.0 | Self::MUST_UNDERSTAND)
    }

    /// The same id without the must-understand bit.
    #[must_use]
    pub const fn without_must_understand(self) -> ParameterId {
        ParameterId(self.0 & !Self::MUST_UNDERSTAND)
    }
}

/// One parameter, read in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter<'a> {
    /// What it is.
    pub pid: ParameterId,
    /// Its value with its padding. *Shape*: a multiple of 4 bytes.
    pub value: &'a [u8],
    /// The byte order of the value.
    pub endian: Endian,
}

impl<'a> Parameter<'a> {
    /// A reader over the value; alignment counts from the value's first byte.
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.value, self.endian)
    }
}

/// A parameter list, read in place.
///
/// ```
/// use taut_wire::{Endian, ParameterList, ParameterListWriter, pid};
/// let mut bytes = Vec::new();
/// let mut writer = ParameterListWriter::new(&mut bytes, Endian::Little);
/// writer.put_u32(pid::DOMAIN_ID, 7);
/// writer.finish();
/// let list = ParameterList::new(&bytes, Endian::Little);
/// assert_eq!(list.get(pid::DOMAIN_ID)?.and_then(|p| p.cursor().u32().ok()), Some(7));
/// # Ok::<(), taut_wire::WireError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterList<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> ParameterList<'a> {
    /// Over bytes that have not been looked at yet: the iteration checks them as it goes.
    pub const fn new(bytes: &'a [u8], endian: Endian) -> ParameterList<'a> {
        ParameterList { bytes, endian }
    }

    /// Takes a list off the front of a cursor. *Errors*: [`WireError::BadParameterList`] if it is not
    /// well formed to its sentinel, so that iterating over what this returns gives no error.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<ParameterList<'a>, WireError> {
        let mut iter = ParameterList::new(cursor.rest(), cursor.endian()).into_iter();
        iter.by_ref().try_for_each(|parameter| parameter.map(|_| ()))?;
        let length = cursor.remaining().saturating_sub(iter.cursor.remaining());
        let bytes = cursor.bytes(length)?;
        Ok(ParameterList { bytes, endian: cursor.endian() })
    }

    /// The bytes, sentinel included.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The byte order.
    pub const fn endian(&self) -> Endian {
        self.endian
    }

    /// The first parameter of a kind. *Cost*: a walk over the list.
    pub fn get(&self, pid: ParameterId) -> Result<Option<Parameter<'a>>, WireError> {
        for parameter in *self {
            let parameter = parameter?;
            if parameter.pid == pid {
                return Ok(Some(parameter));
            }
        }
        Ok(None)
    }
}

impl<'a> IntoIterator for ParameterList<'a> {
    type Item = Result<Parameter<'a>, WireError>;
    type IntoIter = ParameterIter<'a>;

    fn into_iter(self) -> ParameterIter<'a> {
        ParameterIter { cursor: Cursor::new(self.bytes, self.endian), done: false }
    }
}

/// Iterates over a [`ParameterList`]; ends at the sentinel or after an error. Leaves PID_PAD out.
///
/// *Cost*: no allocation; each step takes at least 4 bytes off, so it ends.
#[derive(Clone, Debug)]
pub struct ParameterIter<'a> {
    cursor: Cursor<'a>,
    done: bool,
}

impl<'a> ParameterIter<'a> {
    fn step(&mut self) -> Result<Option<Parameter<'a>>, WireError> {
        loop {
            let (pid, length) = (ParameterId(self.cursor.u16()?), self.cursor.u16()?);
            if pid == pid::SENTINEL {
                return Ok(None);
            }
            // RTPS 2.5 §9.4.2.11: the length is a multiple of 4, so that each one starts aligned.
            if !length.is_multiple_of(4) {
                return Err(WireError::BadParameterList);
            }
            let value = self.cursor.bytes(usize::from(length))?;
            if pid != pid::PAD {
                return Ok(Some(Parameter { pid, value, endian: self.cursor.endian() }));
            }
        }
    }
}

impl<'a> Iterator for ParameterIter<'a> {
    type Item = Result<Parameter<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let result = self.step().map_err(|_| WireError::BadParameterList).transpose();
        self.done = !matches!(result, Some(Ok(_)));
        result
    }
}

/// Appends a parameter list.
///
/// *Range*: a value takes at most 65,532 bytes; a longer one is left out and the `put` says `false`.
#[derive(Debug)]
pub struct ParameterListWriter<'a> {
    out: Out<'a>,
}

impl<'a> ParameterListWriter<'a> {
    /// Appends to the end of `buf`, where a 4-byte boundary must be.
    pub fn new(buf: &'a mut Vec<u8>, endian: Endian) -> ParameterListWriter<'a> {
        ParameterListWriter { out: Out::new(buf, endian) }
    }

    /// Any value; alignment inside of it counts from its first byte. `false` if it is too long.
    pub fn put(&mut self, pid: ParameterId, value: impl FnOnce(&mut Out<'_>)) -> bool {
        let start = self.out.position();
        self.out.put_u16(pid.0);
        self.out.put_u16(0);
        let value_start = self.out.position();
        value(&mut self.out);
        self.out.align(4);
        let length = self.out.position().saturating_sub(value_start);
        let Ok(length) = u16::try_from(length) else {
            self.out.truncate(start);
            return false;
        };
        let bytes = match self.out.endian() {
            Endian::Big => length.to_be_bytes(),
            Endian::Little => length.to_le_bytes(),
        };
        let place = self.out.written().get_mut(start.saturating_add(2)..);
        if let Some(place) = place.and_then(|tail| tail.first_chunk_mut()) {
            *place = bytes;
        }
        true
    }

    /// Four bytes.
    pub fn put_u32(&mut self, pid: ParameterId, value: u32) -> bool {
        self.put(pid, |out| out.put_u32(value))
    }

    /// Four bytes with a sign.
    pub fn put_i32(&mut self, pid: ParameterId, value: i32) -> bool {
        self.put(pid, |out| out.put_i32(value))
    }

    /// One byte, 0 or 1, padded.
    pub fn put_boolean(&mut self, pid: ParameterId, value: bool) -> bool {
        self.put(pid, |out| out.put_boolean(value))
    }

    /// A string with its length and NUL.
    pub fn put_string(&mut self, pid: ParameterId, text: &str) -> bool {
        self.put(pid, |out| out.put_string(text))
    }

    /// A sequence of octets with its length.
    pub fn put_octets(&mut self, pid: ParameterId, bytes: &[u8]) -> bool {
        self.put(pid, |out| out.put_octets(bytes))
    }

    /// Bytes without a length of their own.
    pub fn put_bytes(&mut self, pid: ParameterId, bytes: &[u8]) -> bool {
        self.put(pid, |out| out.put_bytes(bytes))
    }

    /// 16 bytes.
    pub fn put_guid(&mut self, pid: ParameterId, guid: Guid) -> bool {
        self.put(pid, |out| out.put_guid(guid))
    }

    /// 4 bytes.
    pub fn put_entity_id(&mut self, pid: ParameterId, id: EntityId) -> bool {
        self.put(pid, |out| out.put_entity_id(id))
    }

    /// 24 bytes.
    pub fn put_locator(&mut self, pid: ParameterId, locator: &Locator) -> bool {
        self.put(pid, |out| out.put_locator(locator))
    }

    /// 8 bytes.
    pub fn put_duration(&mut self, pid: ParameterId, span: Duration) -> bool {
        self.put(pid, |out| out.put_duration(span))
    }

    /// Appends the sentinel.
    pub fn finish(mut self) {
        self.out.put_u16(pid::SENTINEL.0);
        self.out.put_u16(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_padded_and_read_back() {
        for endian in [Endian::Big, Endian::Little] {
            let mut bytes = Vec::new();
            let mut writer = ParameterListWriter::new(&mut bytes, endian);
            assert!(writer.put_string(pid::TOPIC_NAME, "ab"));
            assert!(!writer.put_octets(pid::USER_DATA, &[0; 65_530]));
            assert!(writer.put_boolean(pid::EXPECTS_INLINE_QOS, true));
            writer.finish();
            assert_eq!(bytes.len(), 4 + 8 + 4 + 4 + 4);
            let list: Vec<_> =
                ParameterList::new(&bytes, endian).into_iter().collect::<Result<_, _>>().unwrap();
            assert_eq!(list.len(), 2);
            assert_eq!(list[0].cursor().string(), Ok("ab"));
            assert_eq!(list[1].cursor().boolean(), Ok(true));
        }
    }

    #[test]
    fn refused_lists() {
        let read = |bytes: &[u8]| {
            ParameterList::new(bytes, Endian::Big).into_iter().map(|p| p.map(|p| p.pid.0)).collect::<Vec<_>>()
        };
        let bad = Err(WireError::BadParameterList);
        assert_eq!(read(&[]), [bad]);
        assert_eq!(read(&[0, 1, 0xff, 0xff]), [], "the length of the sentinel does not count");
        assert_eq!(read(&[0, 5, 0xff, 0xff, 0, 0, 0, 0]), [bad]);
        assert_eq!(read(&[0, 5, 0, 3, 0, 0, 0, 0, 0, 1, 0, 0]), [bad]);
        assert_eq!(read(&[0, 5, 0, 0]), [Ok(5), bad], "no sentinel");
        assert_eq!(read(&[0, 0, 0, 4, 1, 2, 3, 4, 0, 6, 0, 0, 0, 1, 0, 0]), [Ok(6)], "PAD is passed over");
    }

    #[test]
    fn bits_of_the_id() {
        assert!(pid::DOMAIN_TAG.must_understand() && !pid::DOMAIN_TAG.is_vendor_specific());
        assert_eq!(pid::STATUS_INFO.with_must_understand().without_must_understand(), pid::STATUS_INFO);
    }
}
