//! Packets of IPv4 that carry no whole datagram of ours: what the kernel would make of them. RFC 791, RFC 792.

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::fragments::Fragment;
use crate::layer::Refused;

/// The protocol of messages about IP.
pub(crate) const ICMP: u8 = 1;

const HEADER: usize = 20;
const ECHO: u8 = 8;
/// What an answer is sent with.
const HOPS: u8 = 64;

/// Which protocol a packet has; `None`: it has no whole header.
#[inline]
pub(crate) fn protocol(packet: &[u8]) -> Option<u8> {
    packet.first_chunk::<HEADER>().map(|header| header[9])
}

/// Is it a part of a packet? There are more, or it is not the first.
#[inline]
pub(crate) fn is_fragment(packet: &[u8]) -> bool {
    packet.first_chunk::<HEADER>().is_some_and(|header| header[6] & 0x3f != 0 || header[7] != 0)
}

/// Reads a part of a packet. Options are malformed, as they are in a whole one.
pub(crate) fn fragment(packet: &[u8]) -> Result<Fragment<'_>, Refused> {
    let header = packet.first_chunk::<HEADER>().ok_or(Refused::Malformed)?;
    let [first, _, a, b, c, d, offset, more, _, _, _, _, s0, s1, s2, s3, t0, t1, t2, t3] = *header;
    let bytes = packet.get(HEADER..usize::from(u16::from_be_bytes([a, b]))).ok_or(Refused::Malformed)?;
    if first != 0x45 || offset & 0x80 != 0 {
        return Err(Refused::Malformed);
    }
    if !Sum::default().and(header).is_right() {
        return Err(Refused::Damaged);
    }
    let (from, to) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(t0, t1, t2, t3));
    Ok(Fragment {
        key: (from, to, u16::from_be_bytes([c, d])),
        start: 8 * usize::from(u16::from_be_bytes([offset & 0x1f, more])),
        is_last: offset & 0x20 == 0,
        bytes,
    })
}

/// A whole packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub protocol: u8,
    pub hops: u8,
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    pub has_options: bool,
    pub content: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads one. Fragments are malformed.
    pub fn read(packet: &'a [u8]) -> Result<Packet<'a>, Refused> {
        let fixed = packet.first_chunk::<HEADER>().ok_or(Refused::Malformed)?;
        let [first, _, a, b, _, _, offset, more, hops, protocol, _, _, from @ .., e, f, g, h] = *fixed;
        let (header_len, len) = (4 * usize::from(first & 0xf), usize::from(u16::from_be_bytes([a, b])));
        let header = packet.get(..header_len).ok_or(Refused::Malformed)?;
        let content = packet.get(header_len..len).ok_or(Refused::Malformed)?;
        // Bit 14 says that there may be no fragments.
        if first >> 4 != 4 || header_len < HEADER || offset & 0xbf != 0 || more != 0 {
            return Err(Refused::Malformed);
        }
        if !Sum::default().and(header).is_right() {
            return Err(Refused::Damaged);
        }
        let (from, to, has_options) = (Ipv4Addr::from(from), Ipv4Addr::new(e, f, g, h), header_len > HEADER);
        Ok(Packet { protocol, hops, from, to, has_options, content })
    }
}

/// Writes the answer to a question for an echo into `frame`, behind this header of Ethernet. Returns its length.
///
/// *Errors*: `NotOurs` for what is no such question, or too long.
pub(crate) fn echo(frame: &mut [u8], ethernet: &[u8], question: &Packet<'_>) -> Result<usize, Refused> {
    let [ECHO, 0, _, _, _, _, _, _, ..] = *question.content else { return Err(Refused::NotOurs) };
    if !Sum::default().and(question.content).is_right() {
        return Err(Refused::Damaged);
    }
    let len = HEADER + question.content.len();
    let place = frame.get_mut(..ethernet.len() + len).ok_or(Refused::NotOurs)?;
    let (before, packet) = place.split_at_mut(ethernet.len());
    before.copy_from_slice(ethernet);
    let (header, message) = packet.split_at_mut(HEADER);
    let [a, b] = (len as u16).to_be_bytes();
    let fixed = [0x45, 0, a, b, 0, 0, 0x40, 0, HOPS, ICMP, 0, 0];
    let bytes = fixed.into_iter().chain(question.to.octets()).chain(question.from.octets());
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    let sum = Sum::default().and(header).complement();
    header.iter_mut().skip(10).zip(sum).for_each(|(to, from)| *to = from);
    message.copy_from_slice(question.content);
    message.iter_mut().take(4).for_each(|byte| *byte = 0);
    let sum = Sum::default().and(message).complement();
    message.iter_mut().skip(2).zip(sum).for_each(|(to, from)| *to = from);
    Ok(ethernet.len() + len)
}
