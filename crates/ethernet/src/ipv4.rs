//! Packets of IPv4 that carry no whole datagram of ours: what the kernel would make of them. RFC 791, RFC 792.

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::fragments::Fragment;
use crate::layer::{Carried, Refused};
use crate::udp;

/// The protocol of messages about IP.
pub(crate) const ICMP: u8 = 1;

const HEADER: usize = 20;
const ECHO: u8 = 8;
/// What an answer is sent with.
const HOPS: u8 = 64;

/// What a packet carries.
#[inline]
pub(crate) fn carried(packet: &[u8]) -> Carried {
    match packet.first_chunk::<HEADER>() {
        Some([_, _, _, _, _, _, offset, more, _, udp::PROTOCOL, ..]) => {
            if offset & 0x3f == 0 && *more == 0 {
                Carried::Datagram
            } else {
                Carried::Part
            }
        }
        _ => Carried::Other,
    }
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
        key: (from.into(), to.into(), u32::from(u16::from_be_bytes([c, d]))),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(options: usize, content: &[u8]) -> Vec<u8> {
        let len = (HEADER + options + content.len()) as u8;
        let mut bytes =
            vec![0x45 + options as u8 / 4, 0, 0, len, 0, 7, 0, 0, 64, ICMP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.resize(HEADER + options, 0);
        let sum = Sum::default().and(&bytes).complement();
        bytes[10..12].copy_from_slice(&sum);
        [&bytes, content].concat()
    }

    fn question(payload: &[u8]) -> Vec<u8> {
        let mut bytes = [&[ECHO, 0, 0, 0, 0, 7, 0, 1][..], payload].concat();
        let sum = Sum::default().and(&bytes).complement();
        bytes[2..4].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn a_question_for_an_echo_is_answered_with_what_it_carries() {
        for payload in [&b""[..], b"odd", &[7; 56]] {
            let whole = packet(0, &question(payload));
            let mut frame = [0xee; 128];
            let len = echo(&mut frame, &[9; 14], &Packet::read(&whole).unwrap()).unwrap();
            assert_eq!((len, &frame[..14]), (14 + whole.len(), &[9; 14][..]));
            let answer = Packet::read(&frame[14..len]).unwrap();
            assert_eq!((answer.from, answer.to), ([10, 0, 0, 2].into(), [10, 0, 0, 1].into()));
            assert_eq!((answer.content[0], &answer.content[4..]), (0, &whole[HEADER + 4..]));
            assert!(Sum::default().and(answer.content).is_right());
        }
        let long = packet(0, &question(&[7; 100]));
        let refused = echo(&mut [0; 128], &[9; 14], &Packet::read(&long).unwrap());
        assert_eq!(refused, Err(Refused::NotOurs), "there is no room for it");
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for options in [0, 4, 40] {
            let whole = packet(options, b"content");
            let read = Packet::read(&whole).unwrap();
            assert_eq!((read.content, read.has_options), (&b"content"[..], options > 0));
            let padded = [&whole[..], &[0; 9]].concat();
            assert_eq!(Packet::read(&padded).unwrap().content, b"content");
            for len in 0..whole.len() {
                assert_eq!(Packet::read(&whole[..len]).err(), Some(Refused::Malformed), "{len} bytes");
            }
            for bit in 0..8 * (HEADER + options) {
                let mut wrong = whole.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(Packet::read(&wrong).is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let mut bytes = packet(0, &[7; 16]);
        let mut with = |high: u8, low: u8| {
            (bytes[6], bytes[7]) = (high, low);
            bytes[10..12].fill(0);
            let sum = Sum::default().and(&bytes[..HEADER]).complement();
            bytes[10..12].copy_from_slice(&sum);
            fragment(&bytes).map(|of| (of.key.2, of.start, of.is_last, of.bytes.len()))
        };
        assert_eq!(with(0x20, 0), Ok((7, 0, false, 16)));
        assert_eq!(with(0x21, 1), Ok((7, 8 * 257, false, 16)));
        assert_eq!(with(0x1f, 0xff), Ok((7, 65_528, true, 16)));
        assert_eq!(with(0xa0, 0), Err(Refused::Malformed), "a bit that is to be zero");
        assert_eq!(with(0, 1), Ok((7, 8, true, 16)));
        bytes[12] ^= 1;
        assert_eq!(fragment(&bytes).err(), Some(Refused::Damaged));
    }
}
