//! A counted view of a buffer that nobody writes any more.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::chunks::Lent;
use crate::lane::{Hold, INLINE};

/// A part of an immutable buffer: a shared buffer of the heap, a slot of a lane's arena, or a chunk that a driver
/// shares. What is short enough for a lane's cell lies in the view itself.
///
/// *Cost*: clone and drop are at most two atomic adds; only what is short is copied.
#[derive(Clone, Default)]
pub struct Bytes(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Empty,
    Short {
        len: u8,
        /// What lies before a word. Where it has no name, the compiler copies the bytes twice to move it along.
        _padding: u16,
        bytes: Word,
    },
    Heap {
        buffer: Arc<Vec<u8>>,
        start: usize,
        end: usize,
    },
    Held(Hold),
    Lent(Lent),
}

/// A payload's header is four bytes: with the mark of its kind before it, a value behind it starts at a word.
#[derive(Clone)]
#[repr(align(4))]
struct Word([u8; INLINE]);

#[cfg(not(loom))]
const _: () =
    assert!(size_of::<Bytes>() == INLINE + 4, "what a short view has besides its bytes is one word");

impl Bytes {
    /// No bytes; allocates nothing.
    pub const fn new() -> Bytes {
        Bytes(Kind::Empty)
    }

    #[inline]
    pub(crate) fn from_shared(buffer: Arc<Vec<u8>>, len: usize) -> Bytes {
        let end = len.min(buffer.len());
        Bytes(Kind::Heap { buffer, start: 0, end })
    }

    /// The buffer of the heap that it is a view of.
    #[inline]
    pub(crate) fn into_shared(self) -> Option<Arc<Vec<u8>>> {
        match self.0 {
            Kind::Heap { buffer, .. } => Some(buffer),
            _ => None,
        }
    }

    pub(crate) fn held(slot: Hold) -> Bytes {
        Bytes(Kind::Held(slot))
    }

    pub(crate) fn lent(chunk: Lent) -> Bytes {
        Bytes(Kind::Lent(chunk))
    }

    /// Does it lie in a chunk of [`crate::Chunks`], from which a port may send it as it is?
    #[inline]
    pub fn is_lent(&self) -> bool {
        matches!(self.0, Kind::Lent(_))
    }

    /// How many bytes it shows.
    #[inline]
    pub fn len(&self) -> usize {
        // A small sample is asked many times on its way, and a jump through a table each time would be a sixth of that.
        match &self.0 {
            Kind::Short { len, .. } => usize::from(*len),
            _ => self.len_elsewhere(),
        }
    }

    #[cold]
    #[inline(never)]
    fn len_elsewhere(&self) -> usize {
        match &self.0 {
            Kind::Empty => 0,
            Kind::Short { len, .. } => usize::from(*len),
            Kind::Heap { start, end, .. } => end.saturating_sub(*start),
            Kind::Held(_) | Kind::Lent(_) => self.deref().len(),
        }
    }

    /// Does it show none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of `bytes` in a buffer of its own. *Cost*: two allocations and a copy; no allocation for what is
    /// short.
    pub fn copy_from(bytes: &[u8]) -> Bytes {
        Bytes::short(bytes).unwrap_or_else(|| Bytes::from(bytes.to_vec()))
    }

    /// A copy of what is short enough to lie in the view.
    pub fn short(from: &[u8]) -> Option<Bytes> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Bytes(Kind::Short { len: from.len() as u8, _padding: 0, bytes: Word(bytes) }))
    }

    /// Becomes a view of `len` bytes, if that is short enough to lie in the view: `write` gets them, all zeros. `false` if it
    /// is not.
    ///
    /// *Cost*: `write`; to return such a view is to copy it.
    #[inline]
    pub fn set_short_with(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        if len > INLINE {
            return false;
        }
        if !matches!(self.0, Kind::Empty) {
            self.0 = Kind::Empty;
        }
        self.put_short(len as u8, &[0; INLINE]);
        if let Kind::Short { bytes, .. } = &mut self.0 {
            write(bytes.0.get_mut(..len).unwrap_or_default());
        }
        true
    }

    /// Becomes a copy of the first `len` bytes where it is, if these are short enough; says whether they are.
    ///
    /// *Cost*: few instructions whatever the length, if it was empty or short, and as many bytes as it
    /// has room for are there: those come along, and nobody sees them.
    #[inline]
    pub fn set_short(&mut self, from: &[u8], len: usize) -> bool {
        match from.first_chunk::<INLINE>() {
            Some(bytes) if len <= INLINE && self.is_alone() => {
                self.put_short(len as u8, bytes);
                true
            }
            _ => self.set_short_alone(from, len),
        }
    }

    /// Is there nothing to be let go of?
    #[inline]
    fn is_alone(&self) -> bool {
        matches!(self.0, Kind::Short { .. } | Kind::Empty)
    }

    /// In the place of what [is alone](Bytes::is_alone): so nothing is lost that nobody drops.
    #[inline]
    fn put_short(&mut self, len: u8, bytes: &[u8; INLINE]) {
        std::mem::forget(std::mem::replace(
            &mut self.0,
            Kind::Short { len, _padding: 0, bytes: Word(*bytes) },
        ));
    }

    #[cold]
    fn set_short_alone(&mut self, from: &[u8], len: usize) -> bool {
        let short = from.get(..len).and_then(Bytes::short);
        let is_short = short.is_some();
        *self = short.unwrap_or_else(|| std::mem::take(self));
        is_short
    }

    /// The bytes of `range` of this view; the range is cut to what there is.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        if let Kind::Short { len, .. } = &self.0 {
            let end = range.end.min(usize::from(*len));
            let part = self.get(range.start.min(end)..end).unwrap_or(&[]);
            return Bytes::short(part).unwrap_or_default();
        }
        let mut view = self.clone();
        match &mut view.0 {
            Kind::Empty | Kind::Short { .. } => {}
            Kind::Heap { start, end, .. } => {
                let end_of_view = *end;
                *end = start.saturating_add(range.end).min(end_of_view);
                *start = start.saturating_add(range.start).min(end_of_view);
                *end = (*end).max(*start);
            }
            Kind::Held(slot) => slot.cut(range),
            Kind::Lent(chunk) => chunk.cut(range),
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

    /// Becomes what `from` is, which is left to be dropped. *Cost*: what is short is copied where it goes, and nothing else
    /// is moved.
    #[inline]
    pub fn take_over(&mut self, from: &mut Bytes) {
        match &from.0 {
            Kind::Short { len, bytes, .. } if self.is_alone() => self.put_short(*len, &bytes.0),
            _ => std::mem::swap(self, from),
        }
    }

    /// Lets go of the memory that others might use; what is short stays, whoever looks at it. For a view that is to be
    /// set anew later. *Cost*: a comparison for what is short.
    #[inline]
    pub fn release(&mut self) {
        if !self.is_alone() {
            *self = Bytes::new();
        }
    }

    /// Bytes of memory that this view keeps from being used again.
    pub fn pinned(&self) -> usize {
        match &self.0 {
            Kind::Empty => 0,
            Kind::Short { len, .. } => usize::from(*len),
            Kind::Heap { buffer, .. } => buffer.capacity(),
            Kind::Held(slot) => slot.len(),
            Kind::Lent(chunk) => chunk.chunk_size(),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Empty => &[],
            Kind::Short { len, bytes, .. } => bytes.0.get(..usize::from(*len)).unwrap_or(&[]),
            Kind::Heap { buffer, start, end } => buffer.get(*start..*end).unwrap_or(&[]),
            #[cfg(not(loom))]
            Kind::Held(slot) => slot.bytes(),
            #[cfg(loom)]
            Kind::Held(_) => &[],
            Kind::Lent(chunk) => chunk.bytes(),
        }
    }
}

#[cfg(loom)]
impl Bytes {
    /// The first word, read in place.
    pub fn first_word(&self) -> u64 {
        match &self.0 {
            Kind::Held(slot) => slot.watched(),
            Kind::Lent(chunk) => chunk.watched(),
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
    fn what_is_short_lies_in_its_view() {
        let long: Vec<u8> = (0..=INLINE as u8).collect();
        assert!(Bytes::short(&long).is_none());
        let mut set = Bytes::from(vec![7, 7]);
        assert!(!set.set_short(&long, INLINE + 1) && !set.set_short(&long[1..], INLINE + 1));
        assert_eq!(&*set, [7, 7], "it is as it was");
        for (from, len) in [(0, 5), (0, INLINE), (1, INLINE), (3, 5), (2, 0)] {
            assert!(set.set_short(&long[from..], len));
            assert_eq!((&*set, set.pinned()), (&long[from..from + len], len));
        }
        let short = Bytes::copy_from(&long[1..]);
        assert_eq!((&*short, short.pinned()), (&long[1..], INLINE));
        assert_eq!((short.as_ptr() as usize + 4) % 8, 0, "a value behind the header starts at a word");
        assert_eq!(&*short.slice(3..6), &[4, 5, 6]);
        assert_eq!(short.slice_of(&short[2..9]).unwrap(), short.slice(2..9));
        assert_eq!((short.slice(60..100).len(), short.slice(70..80).len()), (8, 0));
    }

    #[test]
    fn a_view_takes_the_place_of_another() {
        let long = Bytes::from(vec![1; 500]);
        let mut place = Bytes::new();
        for mut next in [Bytes::copy_from(&[1, 2]), Bytes::copy_from(&[3]), long.clone(), Bytes::new()] {
            let wanted = next.clone();
            place.take_over(&mut next);
            assert_eq!(place, wanted);
        }
        let Kind::Heap { buffer, .. } = &long.0 else { panic!("it is long") };
        assert_eq!(Arc::strong_count(buffer), 1);
    }

    #[test]
    fn what_others_may_use_is_let_go() {
        let whole = Bytes::from(vec![1; 500]);
        let mut view = whole.slice(0..300);
        view.release();
        let Kind::Heap { buffer, .. } = &whole.0 else { panic!("it is long") };
        assert_eq!((Arc::strong_count(buffer), view.len()), (1, 0));
    }

    #[test]
    fn views_of_views() {
        for all in
            [Bytes::from((0..10).collect::<Vec<u8>>()), Bytes::copy_from(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])]
        {
            looks_right(&all);
        }
    }

    fn looks_right(all: &Bytes) {
        let mid = all.slice(2..8);
        assert_eq!(&*mid.slice(1..3), &[3, 4]);
        assert_eq!(&*mid.slice(4..100), &[6, 7]);
        assert_eq!(mid.slice(9..12).len(), 0);
        assert_eq!(mid.slice_of(&mid[1..2]).unwrap(), mid.slice(1..2));
        assert!(mid.slice_of(&all[0..1]).is_none(), "outside of the view");
        assert!(mid.slice_of(&[1, 2, 3]).is_none(), "another buffer");
    }
}
