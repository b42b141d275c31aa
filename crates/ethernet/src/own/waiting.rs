//! Frames of our own that wait to be sent, with a bound.

use std::collections::VecDeque;

use crate::ipv6;

/// Frames that wait. Lower drops answers that came in one burst, higher answers a flood for longer.
pub(super) const WAITING: usize = 64;
/// Answers to `ping` leave so many for the others.
pub(super) const WAITING_ECHOES: usize = WAITING / 2;
/// Bytes of the longest of them: `ping` sends 98, and 118 over IPv6.
pub(super) const LONGEST: usize = ipv6::LONGEST;
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

    /// Has a frame wait; zeros are behind one that is too short. `false`: there is no room.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        self.push(frame, WAITING)
    }

    /// The same of a message about IPv6, if there is one.
    pub fn put_message(&mut self, message: Option<ipv6::Frame>) -> bool {
        message.is_some_and(|message| self.put(message.bytes()))
    }

    /// The same of an answer to `ping`.
    pub fn put_echo(&mut self, frame: &[u8]) -> bool {
        self.push(frame, WAITING_ECHOES)
    }

    fn push(&mut self, frame: &[u8], room: usize) -> bool {
        let has_room = self.frames.len() < room;
        if has_room {
            let mut bytes = [0; LONGEST];
            bytes.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
            self.frames.push_back(Frame { bytes, len: frame.len().max(SHORTEST) });
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
