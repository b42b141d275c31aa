//! Samples as bytes: the fields of each type packed, little-endian, in buffers that are used again.
//!
//! `simple` and `complex` are the same number of bytes with an index in front: bare memory has no
//! structure to build.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use taut_perf_kit::line::{mark, marked};
use taut_perf_kit::{Payload, Stamp};

/// Where the fields of a type stand.
pub trait Fields {
    /// All bytes of a sample of this `--size`.
    fn wire_len(size: usize) -> usize;
    /// Where its data begins.
    fn data_at(wire_len: usize) -> usize;
    /// Reads what the type carries.
    fn stamp(bytes: &[u8]) -> Stamp;
    /// Writes what the type carries.
    fn set_stamp(bytes: &mut [u8], stamp: Stamp);
}

/// `bytes`: three numbers, the length of the data, data.
pub struct Bytes;
/// `plain`: three numbers and data; of 16 bytes two numbers.
pub struct Plain;
/// `simple` and `complex`: an index, the length of the data, data.
pub struct Numbered;
/// The answer to `Numbered`: its index.
pub struct Index;

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn set_number(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(word) = bytes.get_mut(at..at + 8) {
        word.copy_from_slice(&value.to_le_bytes());
    }
}

fn three_numbers(bytes: &[u8]) -> Stamp {
    Stamp { seq: number(bytes, 0), sent_ns: number(bytes, 8), seen_ns: number(bytes, 16) }
}

fn set_three_numbers(bytes: &mut [u8], stamp: Stamp) {
    set_number(bytes, 0, stamp.seq);
    set_number(bytes, 8, stamp.sent_ns);
    set_number(bytes, 16, stamp.seen_ns);
}

fn index(bytes: &[u8]) -> Stamp {
    let seq = bytes.get(..4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
    Stamp { seq: u64::from(seq), ..Stamp::default() }
}

fn set_index(bytes: &mut [u8], stamp: Stamp) {
    if let Some(word) = bytes.get_mut(..4) {
        word.copy_from_slice(&(stamp.seq as u32).to_le_bytes());
    }
}

impl Fields for Bytes {
    fn wire_len(size: usize) -> usize {
        size.max(28)
    }
    fn data_at(_: usize) -> usize {
        28
    }
    fn stamp(bytes: &[u8]) -> Stamp {
        three_numbers(bytes)
    }
    fn set_stamp(bytes: &mut [u8], stamp: Stamp) {
        set_three_numbers(bytes, stamp);
    }
}

impl Fields for Plain {
    fn wire_len(size: usize) -> usize {
        size.max(16)
    }
    fn data_at(wire_len: usize) -> usize {
        wire_len.min(24)
    }
    fn stamp(bytes: &[u8]) -> Stamp {
        three_numbers(bytes)
    }
    fn set_stamp(bytes: &mut [u8], stamp: Stamp) {
        set_three_numbers(bytes, stamp);
    }
}

impl Fields for Numbered {
    fn wire_len(size: usize) -> usize {
        8 + size
    }
    fn data_at(_: usize) -> usize {
        8
    }
    fn stamp(bytes: &[u8]) -> Stamp {
        index(bytes)
    }
    fn set_stamp(bytes: &mut [u8], stamp: Stamp) {
        set_index(bytes, stamp);
    }
}

impl Fields for Index {
    fn wire_len(_: usize) -> usize {
        4
    }
    fn data_at(_: usize) -> usize {
        4
    }
    fn stamp(bytes: &[u8]) -> Stamp {
        index(bytes)
    }
    fn set_stamp(bytes: &mut [u8], stamp: Stamp) {
        set_index(bytes, stamp);
    }
}

/// Buffers that wait for the next sample, so that none is allocated while it is measured.
#[derive(Clone)]
pub struct Pool {
    free: Rc<RefCell<Vec<Vec<u8>>>>,
    room: usize,
}

impl Pool {
    /// Of buffers with this much room, the first of them made and touched.
    pub fn new(room: usize) -> Pool {
        // Two: one in the hands of the role, one that is being filled.
        Pool { free: Rc::new(RefCell::new(vec![filled(room), filled(room)])), room }
    }

    /// An empty sample with room.
    pub fn sample<F>(&self) -> Sample<F> {
        let bytes = self.free.borrow_mut().pop().unwrap_or_else(|| filled(self.room));
        Sample { bytes, len: 0, pool: Some(self.clone()), fields: PhantomData }
    }
}

/// Pages that were written once: else the first use would pay for the fault.
fn filled(len: usize) -> Vec<u8> {
    vec![0xa5; len]
}

/// One sample.
pub struct Sample<F> {
    bytes: Vec<u8>,
    len: usize,
    pool: Option<Pool>,
    fields: PhantomData<F>,
}

impl<F> Sample<F> {
    /// What it is made of.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// All room of its buffer, to receive into.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// So much of the room is the sample.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.bytes.len());
    }

    /// The answer in the same buffer: the sample itself, or its index.
    pub fn into_answer<A: Fields>(mut self, size: usize) -> Sample<A> {
        let (bytes, pool) = (std::mem::take(&mut self.bytes), self.pool.take());
        let len = A::wire_len(size).min(bytes.len());
        Sample { bytes, len, pool, fields: PhantomData }
    }
}

impl<F> Drop for Sample<F> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.free.borrow_mut().push(std::mem::take(&mut self.bytes));
        }
    }
}

impl<F: Fields> Payload for Sample<F> {
    fn sized(size: usize) -> Self {
        let len = F::wire_len(size);
        let mut bytes = filled(len);
        let at = F::data_at(len);
        // The field before data of its own length says that length.
        if at == 28 || at == 8 {
            bytes[at - 4..at].copy_from_slice(&((len - at) as u32).to_le_bytes());
        }
        Sample { bytes, len, pool: None, fields: PhantomData }
    }

    fn stamp(&self) -> Stamp {
        F::stamp(self.bytes())
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        let len = self.len;
        let bytes = &mut self.bytes[..len];
        F::set_stamp(bytes, stamp);
        mark(&mut bytes[F::data_at(len).min(len)..], stamp.seq);
    }

    fn intact(&self, size: usize) -> bool {
        let (bytes, len) = (self.bytes(), F::wire_len(size));
        let at = F::data_at(len);
        bytes.len() == len && marked(&bytes[at..], len - at, F::stamp(bytes).seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travels<F: Fields>(size: usize, carried: Stamp) {
        let mut sample = Sample::<F>::sized(size);
        sample.set_stamp(Stamp { seq: 300, sent_ns: 5, seen_ns: 6 });
        let mut other = Pool::new(F::wire_len(size)).sample::<F>();
        let len = sample.bytes().len();
        other.room()[..len].copy_from_slice(sample.bytes());
        other.set_len(len);
        assert_eq!(other.stamp(), carried);
        assert!(other.intact(size));
        if F::data_at(len) < len {
            other.room()[len - 1] ^= 1;
            assert!(!other.intact(size));
            other.room()[len - 1] ^= 1;
        }
        other.set_len(len - 1);
        assert!(!other.intact(size));
    }

    #[test]
    fn fields_travel_and_damage_shows() {
        let whole = Stamp { seq: 300, sent_ns: 5, seen_ns: 6 };
        travels::<Bytes>(28, whole);
        travels::<Bytes>(64, whole);
        travels::<Plain>(64, whole);
        travels::<Plain>(16, Stamp { seen_ns: 0, ..whole });
        travels::<Numbered>(4, Stamp { seq: 300, ..Stamp::default() });
        travels::<Index>(4, Stamp { seq: 300, ..Stamp::default() });
    }

    #[test]
    fn a_buffer_comes_back_as_it_was() {
        let pool = Pool::new(64);
        let sample = pool.sample::<Numbered>();
        let answer: Sample<Index> = sample.into_answer(56);
        assert_eq!(answer.bytes().len(), 4);
        drop(answer);
        assert!(pool.free.borrow().iter().all(|buffer| buffer.len() == 64));
        assert_eq!(pool.free.borrow().len(), 2);
    }
}
