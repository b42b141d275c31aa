//! A sample's payload as a reader finds it: short bytes of a cell by value, all others as a view.

use std::ops::{Deref, DerefMut};

use super::{INLINE, INLINE_WORDS, LEAD, Meta};
use crate::region::WORD;
use crate::sync::{AtomicU64, Ordering};
use crate::{Bytes, Pool};

/// What a reader finds in a cell. Filled where it is, as it is too long to be moved for each sample.
#[derive(Default, Debug)]
pub struct Entry {
    /// Its words.
    pub meta: Meta,
    /// Its payload.
    pub payload: Payload,
}

/// A payload that was read.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Copied out of the cell.
    Short(Short),
    /// In its slot, or a copy of that.
    Long(Bytes),
}

/// At most [`INLINE`] bytes, from [`LEAD`] on, so that a value behind its header is aligned as in a slot.
#[derive(Clone, Copy)]
pub struct Short {
    words: [u64; INLINE_WORDS],
    len: usize,
}

impl Short {
    /// No bytes.
    pub const EMPTY: Short = Short { words: [0; INLINE_WORDS], len: 0 };

    /// What a [`Short`] is aligned to.
    pub const ALIGN: usize = align_of::<Short>();

    /// `len` zeros; `None` if they are too many.
    pub fn zeros(len: usize) -> Option<Short> {
        (len <= INLINE).then_some(Short { words: [0; INLINE_WORDS], len })
    }

    /// Takes the words of a cell.
    #[inline]
    pub(super) fn fill(&mut self, words: &[AtomicU64], len: usize) {
        for (to, word) in self.words.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed);
        }
        self.len = len.min(INLINE);
    }

    fn bytes(&self) -> &[u8; INLINE_WORDS * WORD] {
        // SAFETY: words are bytes, as many as that, and aligned to more.
        unsafe { &*(&raw const self.words).cast() }
    }

    fn bytes_mut(&mut self) -> &mut [u8; INLINE_WORDS * WORD] {
        // SAFETY: as above, and any bytes are words.
        unsafe { &mut *(&raw mut self.words).cast() }
    }
}

impl Payload {
    /// The short one in it, to be filled; what was there before is dropped.
    #[inline]
    pub(super) fn short_mut(&mut self) -> &mut Short {
        self.clear();
        match self {
            Payload::Short(short) => short,
            Payload::Long(_) => unreachable!("it was made a short one"),
        }
    }

    /// Lets go of a slot.
    #[inline]
    pub fn clear(&mut self) {
        if let Payload::Long(_) = self {
            *self = Payload::default();
        }
    }

    /// A view to keep. *Cost*: a copy of what is short, into a buffer of `pool`.
    pub fn keep(self, pool: &mut Pool) -> Bytes {
        let short = match self {
            Payload::Long(bytes) => return bytes,
            Payload::Short(short) if short.len == 0 => return Bytes::new(),
            Payload::Short(short) => short,
        };
        let mut slot = pool.claim();
        let buffer: &mut Vec<u8> = &mut slot;
        buffer.clear();
        buffer.extend_from_slice(&short);
        pool.share(slot)
    }
}

impl Deref for Short {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes().get(LEAD..LEAD + self.len).unwrap_or(&[])
    }
}

impl DerefMut for Short {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let end = LEAD + self.len;
        self.bytes_mut().get_mut(LEAD..end).unwrap_or(&mut [])
    }
}

impl Default for Payload {
    /// No bytes.
    fn default() -> Payload {
        Payload::Short(Short::EMPTY)
    }
}

impl Deref for Payload {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Payload::Short(short) => short,
            Payload::Long(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Short({} B)", self.len)
    }
}

impl From<Payload> for Bytes {
    /// *Cost*: what is short is copied into a buffer of its own.
    fn from(payload: Payload) -> Bytes {
        match payload {
            Payload::Long(bytes) => bytes,
            Payload::Short(short) => Bytes::copy_from(&short),
        }
    }
}
