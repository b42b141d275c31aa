//! A sample's payload as a reader finds it: short bytes of a cell by value, all others as a view.

use std::ops::{Deref, DerefMut};

use super::{INLINE, INLINE_WORDS, LEAD};
use crate::region::WORD;
use crate::{Bytes, Pool};

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
#[repr(align(8))]
pub struct Short {
    bytes: [u8; LEAD + INLINE],
    len: u8,
}

impl Short {
    #[inline]
    pub(super) fn of(words: &[u64; INLINE_WORDS], len: usize) -> Short {
        let mut bytes = [0; LEAD + INLINE];
        for (chunk, word) in bytes[LEAD..].chunks_exact_mut(WORD).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Short { bytes, len: len.min(INLINE) as u8 }
    }

    /// What a [`Short`] is aligned to.
    pub const ALIGN: usize = align_of::<Short>();

    /// `len` zeros; `None` if they are too many.
    pub fn zeros(len: usize) -> Option<Short> {
        (len <= INLINE).then_some(Short { bytes: [0; LEAD + INLINE], len: len as u8 })
    }
}

impl Payload {
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
        self.bytes.get(LEAD..LEAD + usize::from(self.len)).unwrap_or(&[])
    }
}

impl DerefMut for Short {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(LEAD..LEAD + usize::from(self.len)).unwrap_or(&mut [])
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
