//! The header that all frames have: two stations, a tag perhaps, and the type of what follows.

use std::net::IpAddr;

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

/// The bytes to leave free before frames that are received, in the place of these, where all of them have a tag: what is
/// behind it is to be as well aligned, for values of eight bytes.
///
/// ```
/// use taut_ethernet::{BARE_SHIFT, UDP_SHIFT, shift_with_tag};
/// assert_eq!([UDP_SHIFT, BARE_SHIFT].map(shift_with_tag), [6, 2]);
/// ```
pub fn shift_with_tag(shift: u16) -> u16 {
    (shift + TAG as u16) % 8
}

/// The station that stands for a group of IP: the low 23 bits of an address of IPv4 behind 01:00:5e (RFC 1112 §6.4), the
/// low 32 of one of IPv6 behind 33:33 (RFC 2464 §7).
///
/// ```
/// use std::net::Ipv4Addr;
/// let of_discovery = taut_ethernet::group(Ipv4Addr::new(239, 255, 0, 1).into());
/// assert_eq!(of_discovery, [0x01, 0x00, 0x5e, 0x7f, 0x00, 0x01]);
/// let of_discovery = taut_ethernet::group("ff02::ffff:239.255.0.1".parse().unwrap());
/// assert_eq!(of_discovery, [0x33, 0x33, 0xef, 0xff, 0x00, 0x01]);
/// ```
pub fn group(of: IpAddr) -> Mac {
    match of {
        IpAddr::V4(v4) => {
            let [_, b, c, d] = v4.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

/// What all frames that a port sends have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// The interface's address of Ethernet.
    pub mac: Mac,
    /// The tag that frames carry, if they carry one.
    pub tag: Option<Tag>,
}

/// A tag of IEEE 802.1Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The network that frames are of (VID); 0: none, the tag is for the priority. *Range*: 0 to 4,094.
    pub network: u16,
    /// Their priority (PCP). *Range*: 0 to 7.
    pub priority: u8,
}

impl Tag {
    /// The tag of a network, 0 for none, and a priority, which is the lowest one if none is wanted; `None` where there is
    /// nothing to tell.
    ///
    /// ```
    /// use taut_ethernet::Tag;
    /// assert_eq!(Tag::of(0, None), None);
    /// assert_eq!(Tag::of(5, None), Some(Tag { network: 5, priority: 0 }));
    /// assert_eq!(Tag::of(0, Some(6)), Some(Tag { network: 0, priority: 6 }));
    /// ```
    pub fn of(network: u16, priority: Option<u8>) -> Option<Tag> {
        let is_any = network != 0 || priority.is_some();
        is_any.then(|| Tag { network: network & VLAN_ID, priority: priority.unwrap_or(0) })
    }

    /// As it stands behind its type, TCI.
    fn bytes(self) -> [u8; 2] {
        (u16::from(self.priority) << 13 | self.network).to_be_bytes()
    }
}

impl Station {
    /// Bytes of Ethernet's header.
    pub fn header_len(&self) -> usize {
        ETHERNET + TAG * usize::from(self.tag.is_some())
    }

    /// Is this the number of the network that its frames are of? 0: they are of none.
    #[inline]
    fn is_in(&self, network: u16) -> bool {
        self.tag.map_or(network == 0, |tag| tag.network == network)
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
        if let Some(tag) = from.tag {
            header.put(&TYPE_VLAN);
            header.put(&tag.bytes());
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

/// Reads the header of a frame, which is to be of the same network as those of this station.
#[inline]
pub(crate) fn open<'a>(frame: &'a [u8], own: &Station) -> Result<Opened<'a>, Refused> {
    let (header, mut content) = frame.split_first_chunk::<ETHERNET>().ok_or(Refused::Malformed)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, kind @ ..] = *header;
    let (to, from, mut kind) = ([a, b, c, d, e, f], [g, h, i, j, k, l], kind);
    let mut network = 0;
    if kind == TYPE_VLAN {
        let ([tag @ .., m, n], rest) = content.split_first_chunk::<TAG>().ok_or(Refused::Malformed)?;
        // A tag of network 0 has a priority only.
        network = u16::from_be_bytes(*tag) & VLAN_ID;
        (kind, content) = ([*m, *n], rest);
    }
    if !own.is_in(network) {
        return Err(Refused::NotOurs);
    }
    Ok(Opened { to, from, kind, content })
}
