//! A counted view of a buffer that nobody writes any more.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::lane::Hold;

/// A part of an immutable buffer: a shared buffer of the heap, or a slot of a lane's arena.
///
/// *Cost*: clone and drop are at most two atomic adds; slicing copies nothing.
#[derive(Clone, Default)]
pub struct Bytes(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Empty,
    Heap {
        buffer: Arc<Vec<u8>>,
        start: usize,
        end: usize,
    },
    Held(Hold),
}

impl Bytes {
    /// No bytes; allocates nothing.
    pub const fn new() -> Bytes {
        Bytes(Kind::Empty)
    }

    pub(crate) fn from_shared(buffer: Arc<Vec<u8>>, len: usize) -> Bytes {
        let end = len.min(buffer.len());
        Bytes(Kind::Heap { buffer, start: 0, end })
    }

    pub(crate) fn held(slot: Hold) -> Bytes {
        Bytes(Kind::Held(slot))
    }

    /// A copy of `bytes` in a buffer of its own. *Cost*: two allocations and a copy.
    pub fn copy_from(bytes: &[u8]) -> Bytes {
        Bytes::from(bytes.to_vec())
    }

    /// The bytes of `range` of this view; the range is cut to what there is.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        let mut view = self.clone();
        match &mut view.0 {
            Kind::Empty => {}
            Kind::Heap { start, end, .. } => {
                let end_of_view = *end;
                *end = start.saturating_add(range.end).min(end_of_view);
                *start = start.saturating_add(range.start).min(end_of_view);
                *end = (*end).max(*start);
            }
            Kind::Held(slot) => slot.cut(range),
        }
        view
    }

    /// A counted view of `part`, which must lie inside of this view, as a parser's result does.
    /// `None` if it does not. An empty part gives an empty view.
    pub fn slice_of(&self, part: &[u8]) -> Option<Bytes> {
        if part.is_empty() {
            return Some(Bytes::new());
        }
        let offset = (part.as_ptr() as usize).checked_sub(self.as_ptr() as usize)?;
        let end = offset.checked_add(part.len()).filter(|end| *end <= self.len())?;
        Some(self.slice(offset..end))
    }

    /// Bytes of memory that this view keeps from being used again.
    pub fn pinned(&self) -> usize {
        match &self.0 {
            Kind::Empty => 0,
            Kind::Heap { buffer, .. } => buffer.capacity(),
            Kind::Held(slot) => slot.len(),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Empty => &[],
            Kind::Heap { buffer, start, end } => buffer.get(*start..*end).unwrap_or(&[]),
            #[cfg(not(loom))]
            Kind::Held(slot) => slot.bytes(),
            #[cfg(loom)]
            Kind::Held(_) => &[],
        }
    }
}

#[cfg(loom)]
impl Bytes {
    /// The first word, read in place.
    pub fn first_word(&self) -> u64 {
        match &self.0 {
            Kind::Held(slot) => slot.watched(),
            _ => u64::from_le_bytes(self[..8].try_into().expect("a payload of a word")),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let len = bytes.len();
        Bytes::from_shared(Arc::new(bytes), len)
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} B)", self.len())
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}
impl Eq for Bytes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_views() {
        let all = Bytes::from((0..10).collect::<Vec<u8>>());
        let mid = all.slice(2..8);
        assert_eq!(&*mid.slice(1..3), &[3, 4]);
        assert_eq!(&*mid.slice(4..100), &[6, 7]);
        assert_eq!(mid.slice(9..12).len(), 0);
        assert_eq!(mid.slice_of(&mid[1..2]).unwrap(), mid.slice(1..2));
        assert!(mid.slice_of(&all[0..1]).is_none(), "outside of the view");
        assert!(mid.slice_of(&[1, 2, 3]).is_none(), "another buffer");
    }
}
