//! The types of the contract as packed little-endian bytes: what a middleware without IDL sends.
//!
//! Works in place, on whatever memory the middleware hands out.

use std::marker::PhantomData;

use crate::line::{mark, marked};
use crate::{Payload, Stamp};

/// How the fields of a type stand in its bytes.
pub trait Layout: Send + Sync + 'static {
    /// Where `data` begins in a sample of so many bytes.
    fn data_at(bytes: usize) -> usize;
    /// Does the length of `data` stand in front of it?
    const PREFIXED: bool;
}

/// `Sample`.
#[derive(Debug)]
pub struct Bytes;

/// `Plain64` and its like.
#[derive(Debug)]
pub struct Plain;

impl Layout for Bytes {
    fn data_at(_: usize) -> usize {
        28
    }
    const PREFIXED: bool = true;
}

impl Layout for Plain {
    // `Plain16` ends before `seen_ns`.
    fn data_at(bytes: usize) -> usize {
        bytes.min(24)
    }
    const PREFIXED: bool = false;
}

/// A sample of this size, its data zero.
pub fn blank<L: Layout>(size: usize) -> Vec<u8> {
    let data = L::data_at(size);
    let mut bytes = vec![0; size.max(data)];
    if L::PREFIXED {
        let length = (bytes.len() - data) as u32;
        bytes[data - 4..data].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

/// The stamp of a sample; zeros if it is cut off.
pub fn stamp(bytes: &[u8]) -> Stamp {
    let field =
        |at: usize| bytes.get(at..at + 8).map_or(0, |field| u64::from_le_bytes(field.try_into().unwrap()));
    Stamp { seq: field(0), sent_ns: field(8), seen_ns: if bytes.len() < 24 { 0 } else { field(16) } }
}

/// Sets the stamp, the length and both ends of the data, and nothing else.
pub fn set_stamp<L: Layout>(bytes: &mut [u8], stamp: Stamp) {
    let data = L::data_at(bytes.len());
    let length = (bytes.len() - data) as u32;
    bytes[..8].copy_from_slice(&stamp.seq.to_le_bytes());
    bytes[8..16].copy_from_slice(&stamp.sent_ns.to_le_bytes());
    if data >= 24 {
        bytes[16..24].copy_from_slice(&stamp.seen_ns.to_le_bytes());
    }
    if L::PREFIXED {
        bytes[data - 4..data].copy_from_slice(&length.to_le_bytes());
    }
    mark(&mut bytes[data..], stamp.seq);
}

/// Are the length and the ends of the data what they were?
pub fn intact<L: Layout>(bytes: &[u8], size: usize) -> bool {
    let data = L::data_at(bytes.len());
    let Some(rest) = bytes.get(data..) else { return false };
    let length = || u32::from_le_bytes(bytes[data - 4..data].try_into().unwrap()) as usize;
    (!L::PREFIXED || length() == rest.len()) && marked(rest, size.saturating_sub(data), stamp(bytes).seq)
}

/// A sample that owns its bytes.
#[derive(Clone, Debug)]
pub struct Packed<L>(Vec<u8>, PhantomData<L>);

impl<L: Layout> Packed<L> {
    /// A sample that came as these bytes; `None` if they are too few for its fields.
    pub fn new(bytes: Vec<u8>) -> Option<Packed<L>> {
        let whole = bytes.len() >= 16 && bytes.len() >= L::data_at(bytes.len());
        whole.then_some(Packed(bytes, PhantomData))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Hands out its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl<L: Layout> Payload for Packed<L> {
    fn sized(size: usize) -> Self {
        Packed(blank::<L>(size), PhantomData)
    }

    fn stamp(&self) -> Stamp {
        stamp(&self.0)
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        set_stamp::<L>(&mut self.0, stamp);
    }

    fn intact(&self, size: usize) -> bool {
        intact::<L>(&self.0, size)
    }
}

/// What is left of a sample that was looked at where it lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    stamp: Stamp,
    intact: bool,
}

impl Seen {
    /// Looks at a sample.
    pub fn look<L: Layout>(bytes: &[u8], size: usize) -> Seen {
        Seen { stamp: stamp(bytes), intact: intact::<L>(bytes, size) }
    }
}

impl Payload for Seen {
    fn sized(_: usize) -> Self {
        Seen::default()
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }

    fn intact(&self, _: usize) -> bool {
        self.intact
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travels<L: Layout>(size: usize, seen_ns: u64) {
        let mut sample = Packed::<L>::sized(size);
        let stamp = Stamp { seq: 0x1_02, sent_ns: 7, seen_ns };
        sample.set_stamp(stamp);
        assert_eq!(sample.bytes().len(), size);
        assert_eq!((sample.stamp(), sample.intact(size)), (stamp, true));
        assert!(!sample.intact(size + 1));
        let mut bytes = sample.into_bytes();
        if let Some(last) = bytes.get_mut(28..).and_then(<[u8]>::last_mut) {
            *last += 1;
            assert!(!intact::<L>(&bytes, size));
        }
    }

    #[test]
    fn a_sample_is_what_it_was() {
        travels::<Bytes>(28, 9);
        travels::<Bytes>(29, 9);
        travels::<Bytes>(64, 9);
        travels::<Plain>(16, 0);
        travels::<Plain>(64, 9);
    }

    #[test]
    fn a_cut_sample_is_not_intact() {
        let mut bytes = blank::<Bytes>(64);
        set_stamp::<Bytes>(&mut bytes, Stamp::default());
        for len in 0..64 {
            assert!(!intact::<Bytes>(&bytes[..len], 64), "{len} bytes");
        }
        assert!(Packed::<Bytes>::new(vec![0; 27]).is_none());
        assert!(Packed::<Plain>::new(vec![0; 15]).is_none());
    }
}
