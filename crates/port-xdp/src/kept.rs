//! The chunks that datagrams are copied into: in groups of as many as the longest frame takes, one behind the other, so
//! that a frame is written as if it lay in one.

use taut_mem::Chunks;

/// Groups of chunks. Each has none on its way out and is free, or is in the hands of the caller, or comes back.
pub(crate) struct Kept {
    /// The number of the first chunk of the first group.
    first: u32,
    /// How many chunks a group has.
    pieces: u32,
    /// The groups that are free, by their place. The one that came back last is taken first: the processor has its memory
    /// near.
    free: Vec<u32>,
    /// How many chunks of each are on their way out.
    out: Vec<u8>,
}

impl Kept {
    /// Takes so many chunks for ever, which are the first ones that are given: their numbers follow each other.
    pub fn new(chunks: &Chunks, count: u32, pieces: u32) -> Kept {
        let numbers: Vec<u32> = (0..count).map_while(|_| chunks.take()).collect();
        let first = numbers.first().copied().unwrap_or(0);
        debug_assert!(
            numbers.iter().copied().eq(first..first + numbers.len() as u32),
            "one behind the other"
        );
        let pieces = pieces.max(1);
        let groups = numbers.len() as u32 / pieces;
        Kept { first, pieces, free: (0..groups).rev().collect(), out: vec![0; groups as usize] }
    }

    /// How many chunks a group has.
    #[inline]
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Is no group free?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// A group to write into, if `write` does so: it is given the number of the first chunk, and returns what is to be sent
    /// and how many of the chunks that takes.
    #[inline]
    pub fn write<R>(&mut self, write: impl FnOnce(u32) -> Option<(R, u32)>) -> Option<R> {
        let group = *self.free.last()?;
        let (written, pieces) = write(self.first + group * self.pieces)?;
        self.free.pop();
        if let Some(out) = self.out.get_mut(group as usize) {
            *out = pieces.min(self.pieces) as u8;
        }
        Some(written)
    }

    /// A chunk has been sent. The last one of those that were written gives the group back.
    #[inline]
    pub fn is_back(&mut self, number: u32) {
        let group = number.wrapping_sub(self.first) / self.pieces;
        let Some(out @ 1..) = self.out.get_mut(group as usize) else { return };
        *out -= 1;
        if *out == 0 {
            self.free.push(group);
        }
    }
}
