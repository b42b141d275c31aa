//! Frames of our own that carry a message about IP, not one of its datagrams: all are short.

/// Bytes of the longest: `ping` sends 98 over IPv4 and 118 over IPv6, and 4 more with a tag. Lower leaves it without an answer,
/// higher is memory for each that waits.
pub(crate) const LONGEST: usize = 128;
/// Networks take no shorter frame.
const SHORTEST: usize = 60;

/// One of them.
pub(crate) struct ShortFrame {
    bytes: [u8; LONGEST],
    len: usize,
}

impl ShortFrame {
    /// With nothing in it.
    pub fn new() -> ShortFrame {
        ShortFrame { bytes: [0; LONGEST], len: 0 }
    }

    /// Adds bytes. `None`: there is no room.
    pub fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.len..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.len += bytes.len();
        Some(())
    }

    /// What was put into it.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The same, with zeros behind what is too short for a network.
    pub fn padded(&self) -> &[u8] {
        self.bytes.get(..self.len.max(SHORTEST)).unwrap_or_default()
    }
}
