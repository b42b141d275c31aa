//! The header that all frames have: two stations, a tag perhaps, and the type of what follows.

use crate::Refused;

/// An address of Ethernet.
pub type Mac = [u8; 6];

pub(crate) const ETHERNET: usize = 14;
pub(crate) const TAG: usize = 4;
/// The tag, and IPv6 with UDP: no header is longer.
const LONGEST: usize = ETHERNET + TAG + 48;

const TYPE_VLAN: [u8; 2] = [0x81, 0x00];
/// The bits of a tag that name the network.
const VLAN_ID: u16 = 0x0fff;

/// What all frames that a port sends have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// The interface's address of Ethernet.
    pub mac: Mac,
    /// The priority that frames carry in a tag (IEEE 802.1Q, PCP), if they carry one. *Range*: 0 to 7.
    pub priority: Option<u8>,
}

impl Station {
    /// Bytes of Ethernet's header.
    pub fn header_len(&self) -> usize {
        if self.priority.is_some() { ETHERNET + TAG } else { ETHERNET }
    }
}

/// The headers of a frame.
pub struct Header {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Header {
    /// Begins a frame from a station to another.
    pub(crate) fn new(from: &Station, to: Mac, kind: [u8; 2]) -> Header {
        let mut header = Header { bytes: [0; LONGEST], len: 0 };
        header.put(&to);
        header.put(&from.mac);
        if let Some(priority) = from.priority {
            header.put(&TYPE_VLAN);
            // Of no network: the tag is for the priority.
            header.put(&(u16::from(priority) << 13).to_be_bytes());
        }
        header.put(&kind);
        header
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    pub(crate) fn set(&mut self, at: usize, bytes: [u8; 2]) {
        if let Some(place) = self.bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&bytes);
        }
    }

    /// Their bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A frame behind Ethernet's header.
pub(crate) struct Opened<'a> {
    pub to: Mac,
    pub from: Mac,
    pub kind: [u8; 2],
    pub content: &'a [u8],
}

/// Reads the header of a frame.
pub(crate) fn open(frame: &[u8]) -> Result<Opened<'_>, Refused> {
    let (header, mut content) = frame.split_first_chunk::<ETHERNET>().ok_or(Refused::Malformed)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, kind @ ..] = *header;
    let (to, from, mut kind) = ([a, b, c, d, e, f], [g, h, i, j, k, l], kind);
    if kind == TYPE_VLAN {
        let ([tag @ .., m, n], rest) = content.split_first_chunk::<TAG>().ok_or(Refused::Malformed)?;
        // A tag of network 0 has a priority only.
        if u16::from_be_bytes(*tag) & VLAN_ID != 0 {
            return Err(Refused::NotOurs);
        }
        (kind, content) = ([*m, *n], rest);
    }
    Ok(Opened { to, from, kind, content })
}
