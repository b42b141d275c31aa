//! The submessages that change how later ones are read: INFO_TS, INFO_DST, INFO_SRC, INFO_REPLY,
//! INFO_REPLY_IP4, and PAD. RTPS 2.5 §8.3.8.8-9, §8.3.8.11-14, §9.4.5.9-15.

use taut_base::{GuidPrefix, Locator, LocatorKind, ProtocolVersion, Timestamp, VendorId};

use crate::short::Short;
use crate::submessage::write_submessage;
use crate::{Cursor, Endian, Out, SUBMESSAGE_HEADER_LEN, SubmessageKind, WireError};

const FLAG_INVALIDATE: u8 = 0x02;
const FLAG_MULTICAST: u8 = 0x02;

/// The length of a locator on the wire. *Units*: bytes.
const LOCATOR_LEN: usize = 24;

#[inline]
pub(crate) fn read_info_ts(flags: u8, mut cursor: Cursor<'_>) -> Result<Option<Timestamp>, WireError> {
    if flags & FLAG_INVALIDATE != 0 {
        return Ok(None);
    }
    let fixed = cursor.fixed::<8>()?;
    let time = Timestamp { seconds: fixed.u32::<0>(), fraction: fixed.u32::<4>() };
    Ok(Some(time).filter(|time| *time != Timestamp::INVALID))
}

/// Appends INFO_TS: the source timestamp of what follows; `None` takes it away.
pub fn write_info_ts(out: &mut Vec<u8>, endian: Endian, time: Option<Timestamp>) {
    let Some(time) = time else {
        return write_submessage(out, endian, SubmessageKind::INFO_TS, FLAG_INVALIDATE, |_| {});
    };
    let mut short = Short::<INFO_TS_LEN>::new(endian);
    put_info_ts(&mut short, time);
    short.append_to(out);
}

/// Bytes of an INFO_TS with a time.
pub(crate) const INFO_TS_LEN: usize = SUBMESSAGE_HEADER_LEN + 8;

#[inline]
pub(crate) fn put_info_ts<const N: usize>(short: &mut Short<N>, time: Timestamp) {
    short.put_header(SubmessageKind::INFO_TS, 0, 8);
    short.put_u32(time.seconds);
    short.put_u32(time.fraction);
}

/// Appends INFO_DST: who what follows is for.
pub fn write_info_dst(out: &mut Vec<u8>, endian: Endian, prefix: GuidPrefix) {
    let mut short = Short::<{ SUBMESSAGE_HEADER_LEN + 12 }>::new(endian);
    short.put_header(SubmessageKind::INFO_DST, 0, 12);
    short.put(prefix.0);
    short.append_to(out);
}

/// Appends PAD with `words` times 4 bytes of nothing.
pub fn write_pad(out: &mut Vec<u8>, endian: Endian, words: u16) {
    write_submessage(out, endian, SubmessageKind::PAD, 0, |body| {
        (0..words).for_each(|_| body.put_u32(0));
    });
}

/// Who what follows is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoSource {
    /// The source's version of the protocol.
    pub version: ProtocolVersion,
    /// The source's vendor.
    pub vendor: VendorId,
    /// The source's participant.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    pub(crate) fn read(mut cursor: Cursor<'_>) -> Result<InfoSource, WireError> {
        let _unused = cursor.u32()?;
        let version = cursor.protocol_version()?;
        if version.major != ProtocolVersion::RTPS_2_5.major {
            return Err(WireError::BadVersion);
        }
        Ok(InfoSource { version, vendor: cursor.vendor_id()?, prefix: cursor.guid_prefix()? })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        write_submessage(out, endian, SubmessageKind::INFO_SRC, 0, |body| {
            body.put_u32(0);
            body.put_protocol_version(self.version);
            body.put_vendor_id(self.vendor);
            body.put_guid_prefix(self.prefix);
        });
    }
}

/// Locators, read in place. *Shape*: 24 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocatorList<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> LocatorList<'a> {
    /// *Errors*: [`WireError::BadCount`] if the bytes cannot hold as many as announced.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<LocatorList<'a>, WireError> {
        let count = cursor.count(LOCATOR_LEN)?;
        let bytes = cursor.bytes(count.saturating_mul(LOCATOR_LEN))?;
        Ok(LocatorList { bytes, endian: cursor.endian() })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / LOCATOR_LEN
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The locators as they came; whether they are plausible is for the caller to ask.
    pub fn iter(&self) -> LocatorIter<'a> {
        LocatorIter(Cursor::new(self.bytes, self.endian))
    }
}

/// Iterates over a [`LocatorList`].
#[derive(Clone, Debug)]
pub struct LocatorIter<'a>(Cursor<'a>);

impl Iterator for LocatorIter<'_> {
    type Item = Locator;

    fn next(&mut self) -> Option<Locator> {
        self.0.locator().ok()
    }
}

/// Where to reply to what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoReply<'a> {
    /// Instead of the source of the message.
    pub unicast: LocatorList<'a>,
    /// For replies that may go to a group.
    pub multicast: Option<LocatorList<'a>>,
}

impl<'a> InfoReply<'a> {
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'a>) -> Result<InfoReply<'a>, WireError> {
        Ok(InfoReply {
            unicast: LocatorList::read(&mut cursor)?,
            multicast: match flags & FLAG_MULTICAST {
                0 => None,
                _ => Some(LocatorList::read(&mut cursor)?),
            },
        })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let unicast = |body: &mut Out<'_>| put_locators(body, self.unicast.len(), self.unicast.iter());
        let flags = if self.multicast.is_some() { FLAG_MULTICAST } else { 0 };
        write_submessage(out, endian, SubmessageKind::INFO_REPLY, flags, |body| {
            unicast(body);
            if let Some(list) = &self.multicast {
                put_locators(body, list.len(), list.iter());
            }
        });
    }

    /// Appends an INFO_REPLY made from slices of locators.
    pub fn write_locators(
        out: &mut Vec<u8>,
        endian: Endian,
        unicast: &[Locator],
        multicast: Option<&[Locator]>,
    ) {
        let flags = if multicast.is_some() { FLAG_MULTICAST } else { 0 };
        write_submessage(out, endian, SubmessageKind::INFO_REPLY, flags, |body| {
            put_locators(body, unicast.len(), unicast.iter().copied());
            if let Some(list) = multicast {
                put_locators(body, list.len(), list.iter().copied());
            }
        });
    }
}

fn put_locators(body: &mut Out<'_>, count: usize, locators: impl Iterator<Item = Locator>) {
    body.put_count(count);
    locators.for_each(|locator| body.put_locator(&locator));
}

/// An IPv4 address and a port. *Shape*: two 32-bit numbers in the byte order of the submessage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocatorUdpV4 {
    /// The address as a number: 127.0.0.1 is 0x7f00_0001.
    pub address: u32,
    /// The port.
    pub port: u32,
}

impl LocatorUdpV4 {
    /// LOCATOR_INVALID for this kind.
    pub const INVALID: LocatorUdpV4 = LocatorUdpV4 { address: 0, port: 0 };

    /// The same as a general locator.
    pub fn to_locator(self) -> Locator {
        let [a, b, c, d] = self.address.to_be_bytes();
        let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d];
        Locator { kind: LocatorKind::UDP_V4, port: self.port, address }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<LocatorUdpV4, WireError> {
        Ok(LocatorUdpV4 { address: cursor.u32()?, port: cursor.u32()? })
    }

    fn put(self, body: &mut Out<'_>) {
        body.put_u32(self.address);
        body.put_u32(self.port);
    }
}

/// Where to reply to what follows, UDPv4 only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoReplyIp4 {
    /// Instead of the source of the message.
    pub unicast: LocatorUdpV4,
    /// For replies that may go to a group.
    pub multicast: Option<LocatorUdpV4>,
}

impl InfoReplyIp4 {
    pub(crate) fn read(flags: u8, mut cursor: Cursor<'_>) -> Result<InfoReplyIp4, WireError> {
        Ok(InfoReplyIp4 {
            unicast: LocatorUdpV4::read(&mut cursor)?,
            multicast: match flags & FLAG_MULTICAST {
                0 => None,
                _ => Some(LocatorUdpV4::read(&mut cursor)?),
            },
        })
    }

    /// Appends the whole submessage.
    pub fn write(&self, out: &mut Vec<u8>, endian: Endian) {
        let flags = if self.multicast.is_some() { FLAG_MULTICAST } else { 0 };
        write_submessage(out, endian, SubmessageKind::INFO_REPLY_IP4, flags, |body| {
            self.unicast.put(body);
            if let Some(multicast) = self.multicast {
                multicast.put(body);
            }
        });
    }
}
