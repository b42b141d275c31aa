//! Payloads that are sent from the chunk that they were written into.
//!
//! Owns what is written around them, and the account of which are on their way. Who moves the bytes, and when a chunk is
//! back, is the port's business.

use std::ops::Range;
use std::sync::Arc;

use crate::Chunks;

/// A datagram in parts, one of which may be a payload in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Wrap<'a> {
    /// The parts before it.
    pub before: &'a [&'a [u8]],
    /// The payload.
    pub payload: &'a [u8],
    /// The parts behind it.
    pub after: &'a [&'a [u8]],
    /// How many bytes of headers go in front of the datagram.
    pub header_len: usize,
}

/// The one that writes around the payloads of its chunks.
///
/// Invariant: there is one for its chunks. A chunk that is leaving has this as one of its holders, and what is around its
/// payload is the driver's to read.
pub struct Outbound {
    chunks: Arc<Chunks>,
    is_leaving: Box<[bool]>,
}

impl Outbound {
    /// For these chunks, none of which is on its way.
    ///
    /// # Safety
    /// There is no other for these chunks, and nobody else uses [`Chunks::around`] where there is a payload (F).
    pub unsafe fn new(chunks: Arc<Chunks>) -> Outbound {
        let is_leaving = vec![false; chunks.count()].into_boxed_slice();
        Outbound { chunks, is_leaving }
    }

    /// Writes a datagram and its headers around the payload, and returns the chunk's number and where in it all of that
    /// lies: from now on it is leaving. `None` if the payload is not all that was written into a chunk, there is no room
    /// around it, or it is leaving already. `header` writes the headers for the datagram in one piece into a place of their
    /// length; `None` if it cannot.
    ///
    /// *Cost*: a copy of all but the payload, and what `header` costs.
    #[inline]
    pub fn wrap(
        &mut self,
        datagram: Wrap<'_>,
        header: impl FnOnce(&[u8], &mut [u8]) -> Option<()>,
    ) -> Option<(u32, Range<usize>)> {
        let Wrap { before, payload, after, header_len } = datagram;
        let len = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
        let (number, range) = self.chunks.payload(payload)?;
        let is_leaving = self.is_leaving.get_mut(number as usize).filter(|is_leaving| !**is_leaving)?;
        let start = range.start.checked_sub(len(before))?;
        let first = start.checked_sub(header_len)?;
        let end = range.end + len(after);
        // SAFETY: whoever lends the payload is a holder. Only this value writes around payloads, and the chunk is not on
        // its way out; the slices that are written are not alive at the same time as others of the same bytes.
        unsafe {
            gather(self.chunks.around(number, start..range.start)?, before);
            gather(self.chunks.around(number, range.end..end)?, after);
            let place = self.chunks.around(number, first..start)?;
            header(self.chunks.bytes(number, start..end)?, place)?;
            // It becomes one more holder, until the chunk is back.
            self.chunks.hold(number);
        }
        *is_leaving = true;
        Some((number, first..end))
    }

    /// A chunk is back: if it was leaving, this is no holder of it any more. Returns whether it was.
    ///
    /// # Safety
    /// The driver does not have it.
    #[inline]
    pub unsafe fn is_back(&mut self, number: u32) -> bool {
        let was_leaving = self.is_leaving.get_mut(number as usize).is_some_and(std::mem::take);
        if was_leaving {
            // SAFETY: the type's invariant: this is a holder of what is leaving.
            unsafe { self.chunks.let_go(number) }
        }
        was_leaving
    }
}

/// The parts of a datagram one behind the other; `place` is as long as they are.
pub fn gather(mut place: &mut [u8], parts: &[&[u8]]) {
    for part in parts {
        let (now, later) = place.split_at_mut(part.len().min(place.len()));
        now.copy_from_slice(part);
        place = later;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::chunks::tests::chunks;

    fn wrap(outbound: &mut Outbound, payload: &[u8], header_len: usize) -> Option<(u32, Range<usize>)> {
        let header = |datagram: &[u8], place: &mut [u8]| {
            assert_eq!(datagram, [b"ab", payload, b"cde"].concat());
            gather(place, &[&vec![b'h'; header_len]]);
            (header_len > 0).then_some(())
        };
        outbound.wrap(Wrap { before: &[b"a", b"b"], payload, after: &[b"cde"], header_len }, header)
    }

    #[test]
    fn a_payload_leaves_once_at_a_time() {
        let chunks = chunks(2);
        // SAFETY: it is the only one.
        let mut outbound = unsafe { Outbound::new(Arc::clone(&chunks)) };
        let mut chunk = chunks.claim(100).unwrap();
        chunk[..100].fill(7);
        let payload = chunk.share(100);
        let (_, place) = chunks.payload(&payload).unwrap();
        for other in [&payload[1..], &[7; 100]] {
            assert!(wrap(&mut outbound, other, 5).is_none(), "not a payload");
        }
        assert!(wrap(&mut outbound, &payload, 251).is_none(), "no room for so long a header");
        assert!(wrap(&mut outbound, &payload, 0).is_none(), "the header was refused");
        let (number, range) = wrap(&mut outbound, &payload, 250).unwrap();
        assert_eq!(range, 0..place.end + 3);
        // SAFETY: nobody writes now.
        let frame = unsafe { chunks.bytes(number, range) }.unwrap();
        assert_eq!(frame, [&[b'h'; 250], &b"ab"[..], &[7; 100], b"cde"].concat());
        assert!(wrap(&mut outbound, &payload, 5).is_none(), "it is leaving");
        drop(payload);
        assert_eq!(chunks.free(), 1, "it is held");
        // SAFETY: no driver has it.
        assert!(unsafe { outbound.is_back(number) } && !unsafe { outbound.is_back(number) });
        assert_eq!(chunks.free(), 2);
    }
}
