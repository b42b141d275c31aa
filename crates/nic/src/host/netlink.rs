//! Messages to the kernel and their answers: one request at a time, over one socket. netlink(7).

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
/// All there is of a kind.
pub const DUMP: u16 = 0x300;
pub const REPLACE: u16 = 0x100;
pub const CREATE: u16 = 0x400;

const ERROR: u16 = 0x2;
const DONE: u16 = 0x3;
/// nlmsghdr: length, kind, flags, sequence number, address.
const HEADER: usize = 16;
/// Bytes of one read; the kernel writes at most 32 KiB at once.
const READ: usize = 64 << 10;
/// Reads for one request. A dump of the disciplines of a thousand interfaces takes some dozens; higher, and a kernel
/// that answers without end holds us.
const READS: usize = 4_096;
/// Set for attributes that hold attributes.
const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;

/// A socket for requests.
pub struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    pub fn open(protocol: SockProtocol) -> nix::Result<Socket> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Socket { socket, sequence: 0 })
    }

    /// Sends a request and returns the answers, without their headers.
    pub fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> nix::Result<Vec<Vec<u8>>> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = REQUEST | flags | if flags & DUMP == DUMP { 0 } else { ACK };
        let mut message =
            u32::try_from(HEADER + body.len()).map_err(|_| Errno::EMSGSIZE)?.to_ne_bytes().to_vec();
        message.extend([kind, flags].iter().flat_map(|half| half.to_ne_bytes()));
        message.extend([self.sequence, 0].iter().flat_map(|word| word.to_ne_bytes()));
        message.extend(body);
        sendto(self.socket.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; READ];
        for _ in 0..READS {
            let len = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            if self.take(buffer.get(..len).unwrap_or_default(), &mut answers)? {
                return Ok(answers);
            }
        }
        Err(Errno::ETIMEDOUT)
    }

    /// Takes the messages of one read; true once the last was there.
    fn take(&self, mut bytes: &[u8], answers: &mut Vec<Vec<u8>>) -> nix::Result<bool> {
        while let (Some(len), Some(kind), Some(sequence)) = (word(bytes, 0), half(bytes, 4), word(bytes, 8)) {
            let Some(body) = bytes.get(HEADER..len as usize) else { return Err(Errno::EBADMSG) };
            bytes = bytes.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
            if sequence != self.sequence {
                continue;
            }
            match kind {
                ERROR => match word(body, 0).unwrap_or(0).cast_signed() {
                    0 => return Ok(true),
                    error => return Err(Errno::from_raw(error.saturating_neg())),
                },
                DONE => return Ok(true),
                _ => answers.push(body.to_vec()),
            }
        }
        Ok(false)
    }
}

pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

pub fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// Attributes, one behind the other.
#[derive(Clone, Default)]
pub struct Attributes(pub Vec<u8>);

impl Attributes {
    pub fn with(mut self, kind: u16, value: &[u8]) -> Attributes {
        let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend([len, kind].iter().flat_map(|half| half.to_ne_bytes()));
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn with_word(self, kind: u16, value: u32) -> Attributes {
        self.with(kind, &value.to_ne_bytes())
    }

    pub fn with_text(self, kind: u16, value: &str) -> Attributes {
        self.with(kind, &[value.as_bytes(), &[0]].concat())
    }

    pub fn with_nested(self, kind: u16, value: &Attributes) -> Attributes {
        self.with(kind | NESTED, &value.0)
    }
}

/// The value of the first attribute of this kind.
pub fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let (Some(len), Some(kind)) = (half(bytes, 0), half(bytes, 2)) {
        let value = bytes.get(4..usize::from(len))?;
        if kind & KIND == wanted {
            return Some(value);
        }
        bytes = bytes.get(usize::from(len).next_multiple_of(4)..)?;
    }
    None
}

/// A text that the kernel ends with a zero.
pub fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_again() {
        let inner = Attributes::default().with_text(2, "veth0").with_word(1, 7);
        let all = Attributes::default().with(9, &[1]).with_nested(3, &inner);
        let nested = attribute(&all.0, 3).unwrap();
        assert_eq!(attribute(nested, 2).map(text).as_deref(), Some("veth0"));
        assert_eq!(attribute(nested, 1).and_then(|value| word(value, 0)), Some(7));
        assert_eq!((attribute(&all.0, 9), attribute(&all.0, 4)), (Some([1].as_slice()), None));
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let whole = Attributes::default().with_word(1, 7).0;
        for len in 0..whole.len() {
            assert_eq!(attribute(&whole[..len], 1), None, "{len} bytes");
        }
        assert_eq!(attribute(&[0, 0, 1, 0], 2), None, "a length of nothing");
    }

    #[test]
    fn what_the_kernel_refuses_is_an_error() {
        let mut socket = Socket::open(SockProtocol::NetlinkRoute).unwrap();
        assert!(socket.request(0xffff, 0, &[0; 4]).is_err());
    }
}
