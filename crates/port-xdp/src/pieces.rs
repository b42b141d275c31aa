//! Frames that come in pieces, each in a chunk of its own, as they are longer than one.

use taut_mem::{Bytes, Pool, Slot};

/// How many buffers are remembered: those of the fragments of a large sample or two. More pins memory after a burst,
/// fewer allocates.
const KEEP: usize = 256;

/// What has become of a piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// More of its frame are to come.
    Kept,
    /// It was the last one: the frame.
    Last(Bytes),
    /// It was the last one of a frame that is longer than any is here.
    TooLong,
}

/// The frame that has come in part.
pub(crate) struct Pieces {
    pool: Pool,
    room: usize,
    begun: Option<Slot>,
    is_too_long: bool,
}

impl Pieces {
    /// Of frames of at most `room` bytes.
    pub fn new(room: usize) -> Pieces {
        Pieces { pool: Pool::new(room, KEEP), room, begun: None, is_too_long: false }
    }

    /// Has some of a frame come, and is its end still to come?
    #[inline]
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// The next piece, which may be the last one. *Cost*: a copy.
    pub fn add(&mut self, piece: &[u8], goes_on: bool) -> Piece {
        let mut slot = self.begun.take().unwrap_or_else(|| {
            self.is_too_long = false;
            let mut slot = self.pool.claim();
            slot.clear();
            slot
        });
        self.is_too_long |= slot.len() + piece.len() > self.room;
        if !self.is_too_long {
            slot.extend_from_slice(piece);
        }
        if goes_on {
            self.begun = Some(slot);
            return Piece::Kept;
        }
        if self.is_too_long {
            self.pool.give_back(slot);
            return Piece::TooLong;
        }
        Piece::Last(self.pool.share(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_frames() {
        let mut pieces = Pieces::new(200);
        assert_eq!(pieces.add(&[1; 90], true), Piece::Kept);
        assert!(pieces.is_begun());
        assert_eq!(pieces.add(&[2; 90], true), Piece::Kept);
        let Piece::Last(frame) = pieces.add(&[3; 20], false) else { panic!("it is whole") };
        assert_eq!(*frame, *[[1; 90].as_slice(), &[2; 90], &[3; 20]].concat());
        assert!(!pieces.is_begun());
        assert_eq!(pieces.add(&[4; 5], false), Piece::Last(Bytes::copy_from(&[4; 5])));
        assert_eq!(frame[199], 3, "who has the first one keeps it");
    }

    #[test]
    fn a_frame_that_is_too_long_is_none_and_the_next_one_is() {
        let mut pieces = Pieces::new(200);
        for (piece, goes_on, became) in
            [(150, true, Piece::Kept), (51, true, Piece::Kept), (1, false, Piece::TooLong)]
        {
            assert_eq!(pieces.add(&vec![7; piece], goes_on), became);
        }
        assert_eq!(pieces.add(&[8; 150], true), Piece::Kept);
        assert_eq!(pieces.add(&[8; 50], false), Piece::Last(Bytes::copy_from(&[8; 200])));
    }
}
