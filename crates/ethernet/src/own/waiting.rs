//! Frames of our own that wait to be sent, with a bound.

use std::collections::VecDeque;

use crate::header::Header;

/// Frames that wait. Lower drops answers that came in one burst, higher answers a flood for longer.
pub(super) const WAITING: usize = 64;
/// Answers to `ping` leave so many for the others.
pub(super) const WAITING_ECHOES: usize = WAITING / 2;
/// Bytes of the longest of them: `ping` sends 98.
pub(super) const LONGEST: usize = 128;
/// Networks take no shorter frame.
const SHORTEST: usize = 60;

struct Frame {
    bytes: [u8; LONGEST],
    len: usize,
}

pub(super) struct Waiting {
    frames: VecDeque<Frame>,
    dropped: u64,
}

impl Waiting {
    pub fn new() -> Waiting {
        Waiting { frames: VecDeque::with_capacity(WAITING), dropped: 0 }
    }

    /// Has a frame wait that is a header only. `false`: there is no room.
    pub fn put(&mut self, header: &Header) -> bool {
        let mut bytes = [0; LONGEST];
        bytes.iter_mut().zip(header.bytes()).for_each(|(to, from)| *to = *from);
        self.push(Frame { bytes, len: header.bytes().len().max(SHORTEST) }, WAITING)
    }

    /// The same of an answer to `ping`, the first `len` bytes; zeros are behind it.
    pub fn put_echo(&mut self, bytes: [u8; LONGEST], len: usize) -> bool {
        self.push(Frame { bytes, len: len.max(SHORTEST) }, WAITING_ECHOES)
    }

    fn push(&mut self, frame: Frame, room: usize) -> bool {
        let has_room = self.frames.len() < room;
        if has_room {
            self.frames.push_back(frame);
        }
        self.dropped += u64::from(!has_room);
        has_room
    }

    /// Takes the next, written into `frame`: its length. `None`: there is none.
    pub fn take(&mut self, frame: &mut [u8]) -> Option<usize> {
        let Frame { bytes, len } = self.frames.pop_front()?;
        frame.get_mut(..len)?.copy_from_slice(bytes.get(..len)?);
        Some(len)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.frames.len() >= WAITING
    }

    /// How many there was no room for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
