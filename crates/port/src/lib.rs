//! The contract between the core and whatever moves its bytes.
//!
//! A port owns its sockets or queues and the buffers that it receives into; it knows nothing of
//! RTPS. The core builds datagrams out of parts and gives them to [`Port::send`]; a driver pulls
//! bursts with [`Receive::receive`] and gives them to the core. Ports live on floor 3, one
//! mechanism of the operating system each; [`Loopback`] is the one in memory, for tests.
#![forbid(unsafe_code)]

mod loopback;

use std::fmt;

use taut_base::Locator;
use taut_mem::Bytes;

pub use loopback::Loopback;

/// Which of a participant's addresses a frame came in by; it decides the job class of its handling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Discovery and liveliness.
    Meta,
    /// The same, to a group, as far as the port can tell: it is received with the rest of [`Traffic::Meta`], and only a frame
    /// says so. One that never does has peers sent to by unicast what groups bring them as well.
    MetaMulticast,
    /// The user's samples.
    User,
}

/// One received datagram.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where it came from, as it says: no proof, so nothing is sent there unless a peer has announced it.
    pub source: Locator,
    /// By which address it came in.
    pub traffic: Traffic,
    /// The bytes, in a buffer of the port. Keep a view as long as needed: the port takes another buffer then.
    pub bytes: Bytes,
}

/// The sending side, as the core sees it.
pub trait Port {
    /// Sends one datagram, gathered from `parts`, to each of `to`.
    ///
    /// A destination that fails does not stop the others: the port counts it and goes on. Bytes
    /// may stay in the port until [`Port::flush`].
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]);

    /// Sends `parts` as a row of datagrams of `each` bytes, the last one of what is left, to each of `to`.
    /// Where one datagram ends and the next begins does not depend on where parts do.
    ///
    /// A port that can give the row to the system in one call does; the others send one after the other.
    fn send_row(&mut self, to: &[Locator], parts: &[&[u8]], each: usize) {
        split(parts, each, |datagram| self.send(to, datagram));
    }

    /// Bytes of the largest datagram that reaches `to` without being cut in pieces on the way, as far as
    /// the port knows: a datagram in pieces is lost when one of them is.
    fn path_size(&mut self, to: &Locator) -> usize {
        let _ = to;
        usize::MAX
    }

    /// Another number than before says that [`Port::path_size`] may have other answers.
    fn path_generation(&self) -> u64 {
        0
    }

    /// What is sent from now on is of writers with this TRANSPORT_PRIORITY; 0 at first. A port that can have the
    /// network treat it accordingly does.
    fn set_priority(&mut self, priority: i32) {
        let _ = priority;
    }

    /// Hands over all that [`Port::send`] has collected.
    fn flush(&mut self);
}

/// Calls with the parts of each datagram of a row. See [`Port::send_row`]. *Cost*: an allocation if one has more than 16.
pub fn split(parts: &[&[u8]], each: usize, mut call: impl FnMut(&[&[u8]])) {
    let mut datagram = Parts { few: [&[]; FEW], len: 0, many: Vec::new() };
    let mut room = each.max(1);
    for part in parts {
        let mut rest = *part;
        while let Some((now, later)) = rest.split_at_checked(room) {
            datagram.push(now);
            call(datagram.all());
            datagram.clear();
            (rest, room) = (later, each.max(1));
        }
        if !rest.is_empty() {
            room = room.saturating_sub(rest.len());
            datagram.push(rest);
        }
    }
    if !datagram.all().is_empty() {
        call(datagram.all());
    }
}

/// Parts that a datagram of a row mostly has no more of: payloads between headers.
const FEW: usize = 16;

/// The parts of one datagram: here while they are few.
struct Parts<'a> {
    few: [&'a [u8]; FEW],
    len: usize,
    /// All of them, if they are not.
    many: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn push(&mut self, part: &'a [u8]) {
        match self.few.get_mut(self.len) {
            Some(place) if self.many.is_empty() => {
                *place = part;
                self.len += 1;
            }
            _ => {
                if self.many.is_empty() {
                    self.many.extend(self.few);
                }
                self.many.push(part);
            }
        }
    }

    fn all(&self) -> &[&'a [u8]] {
        if self.many.is_empty() { self.few.get(..self.len).unwrap_or_default() } else { &self.many }
    }

    fn clear(&mut self) {
        self.len = 0;
        self.many.clear();
    }
}

/// The receiving side, as a driver sees it.
pub trait Receive {
    /// Takes at most `budget` datagrams that have arrived of `traffic`, without waiting, and gives
    /// each to `sink`; a port may count a large one as several. Returns how many; none means that none is left.
    fn receive(&mut self, traffic: Traffic, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize;
}

/// What the operating system refused, with the remedy.
#[derive(Debug)]
pub struct PortError {
    /// The call, as `bind 0.0.0.0:7400`.
    pub call: String,
    /// What it answered.
    pub source: std::io::Error,
    /// What to do about it.
    pub remedy: &'static str,
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.call, self.source, self.remedy)
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_row_is_cut_where_its_datagrams_end() {
        let mut port = Loopback::new();
        let to = [Locator::udp_v4(Ipv4Addr::LOCALHOST, 1)];
        port.send_row(&to, &[b"ab", b"cdefg", b"", b"hijk"], 3);
        let datagrams: Vec<_> = std::iter::from_fn(|| port.take()).map(|(_, bytes)| bytes.to_vec()).collect();
        assert_eq!(datagrams, [&b"abc"[..], b"def", b"ghi", b"jk"]);
        port.send_row(&to, &[b"abcdef"], 3);
        assert_eq!(port.len(), 2, "nothing behind the last");
    }

    #[test]
    fn datagrams_of_many_parts_are_whole() {
        let bytes: Vec<u8> = (0..200).collect();
        let parts: Vec<&[u8]> = bytes.chunks(1).collect();
        for each in [FEW - 1, FEW, FEW + 1, 50] {
            let mut datagrams = Vec::new();
            split(&parts, each, |datagram| datagrams.push(datagram.concat()));
            assert_eq!(datagrams, bytes.chunks(each).map(<[u8]>::to_vec).collect::<Vec<_>>(), "{each} B");
        }
    }
}
