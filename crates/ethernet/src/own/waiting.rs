//! Frames of our own that wait to be sent, with a bound.

use std::collections::VecDeque;

use crate::short::ShortFrame;

/// Frames that wait. Lower drops answers that came in one burst, higher answers a flood for longer.
pub(super) const WAITING: usize = 64;
/// Answers to `ping` leave so many for the others.
pub(super) const WAITING_ECHOES: usize = WAITING / 2;

pub(super) struct Waiting {
    frames: VecDeque<ShortFrame>,
    dropped: u64,
}

impl Waiting {
    pub fn new() -> Waiting {
        Waiting { frames: VecDeque::with_capacity(WAITING), dropped: 0 }
    }

    /// Has a frame wait. `false`: there is no room, or it is too long.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        self.push(frame, WAITING)
    }

    /// The same of a message about IPv6, if there is one.
    pub fn put_message(&mut self, message: Option<ShortFrame>) -> bool {
        message.is_some_and(|message| self.put(message.bytes()))
    }

    /// The same of an answer to `ping`.
    pub fn put_echo(&mut self, frame: &[u8]) -> bool {
        self.push(frame, WAITING_ECHOES)
    }

    fn push(&mut self, frame: &[u8], room: usize) -> bool {
        let mut copy = ShortFrame::new();
        let has_room = self.frames.len() < room && copy.put(frame).is_some();
        if has_room {
            self.frames.push_back(copy);
        }
        self.dropped += u64::from(!has_room);
        has_room
    }

    /// Takes the next, written into `frame`: its length. `None`: there is none.
    pub fn take(&mut self, frame: &mut [u8]) -> Option<usize> {
        let next = self.frames.pop_front()?;
        let bytes = next.padded();
        frame.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(bytes.len())
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
