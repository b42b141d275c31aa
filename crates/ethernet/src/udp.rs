//! Messages as UDP over IP. RFC 791, 8200, 768.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use taut_mem::gather;
use taut_port::Traffic;

use crate::checksum::{Sum, pseudo_header};
use crate::header::{Header, Mac, Opened, Station};
use crate::ipv6;
use crate::layer::{Datagram, Refused};

const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// Bytes to leave free before a frame that is received, so that values of eight bytes in its first sample are where memory
/// has them: headers have 42, over IPv4.
pub const SHIFT: u16 = 2;
/// The same over IPv6, where they have 62.
pub(crate) const SHIFT_V6: u16 = 6;

pub(crate) const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
pub(crate) const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
pub(crate) const PROTOCOL: u8 = 17;
/// What the kernel sends with: a frame passes so many routers at most.
const HOPS: u8 = 64;
/// The same to a group: none, as with sockets (RFC 1112 §6.1, RFC 3493 §5.2).
const HOPS_TO_GROUP: u8 = 1;

/// Bytes of headers before the payload of a datagram to this address.
pub(crate) fn header_len(own: &Station, to: IpAddr) -> usize {
    own.header_len() + if to.is_ipv4() { IPV4 + UDP } else { IPV6 + UDP }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The headers before a datagram. Both ends are of one kind.
pub(crate) fn header(
    own: &Station,
    to_station: Mac,
    (from, to): (SocketAddr, SocketAddr),
    dscp: u8,
    datagram: &[u8],
) -> Option<Header> {
    let len = u16::try_from(UDP + datagram.len()).ok()?.to_be_bytes();
    let kind = if to.is_ipv4() { TYPE_IPV4 } else { TYPE_IPV6 };
    let mut header = Header::new(own, to_station, kind);
    put_ip(&mut header, from.ip(), to.ip(), dscp, UDP + datagram.len());
    let ([a, b], [c, d], [e, f]) = (from.port().to_be_bytes(), to.port().to_be_bytes(), len);
    let unsummed = [a, b, c, d, e, f, 0, 0];
    let sum = pseudo_header(PROTOCOL, from.ip(), to.ip(), len).and(&unsummed).and(datagram).complement();
    // RFC 768: zero says that there is none.
    let sum = if sum == [0; 2] { [0xff; 2] } else { sum };
    let [ports_and_len @ .., _, _] = unsummed;
    header.put(&ports_and_len);
    header.put(&sum);
    Some(header)
}

/// Writes a frame; see [`crate::Route::write`].
pub(crate) fn write(
    frame: &mut [u8],
    own: &Station,
    to_station: Mac,
    ends: (SocketAddr, SocketAddr),
    dscp: u8,
    parts: &[&[u8]],
) -> Option<usize> {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let start = header_len(own, ends.1.ip());
    let frame = frame.get_mut(..start + payload)?;
    let (header_place, payload_place) = frame.split_at_mut(start);
    gather(payload_place, parts);
    header_place.copy_from_slice(header(own, to_station, ends, dscp, payload_place)?.bytes());
    Some(frame.len())
}

/// The header of IP, before so many bytes.
fn put_ip(header: &mut Header, from: IpAddr, to: IpAddr, dscp: u8, len: usize) {
    let class = dscp << 2;
    let hops = if to.is_multicast() { HOPS_TO_GROUP } else { HOPS };
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (start, len) = (header.bytes().len(), (IPV4 + len) as u16);
            header.put(&[0x45, class]);
            header.put(&len.to_be_bytes());
            // Not to be fragmented, so that no number is needed to tell fragments (RFC 6864 §4.1).
            header.put(&[0, 0, 0x40, 0, hops, PROTOCOL, 0, 0]);
            header.put(&from.octets());
            header.put(&to.octets());
            let sum = Sum::default().and(header.bytes().get(start..).unwrap_or_default());
            header.set(start + 10, sum.complement());
        }
        (from, to) => {
            header.put(&(6 << 28 | u32::from(class) << 20).to_be_bytes());
            header.put(&(len as u16).to_be_bytes());
            header.put(&[PROTOCOL, hops]);
            header.put(&v6(from).octets());
            header.put(&v6(to).octets());
        }
    }
}

/// Reads what is in a frame, if `traffic` knows what comes to where it is sent to.
#[inline]
pub(crate) fn read<'a>(
    opened: &Opened<'a>,
    traffic: impl FnOnce(SocketAddr) -> Option<Traffic>,
) -> Result<Datagram<'a>, Refused> {
    let packet = match opened.kind {
        TYPE_IPV4 => read_ipv4(opened.content)?,
        TYPE_IPV6 => read_ipv6(opened.content)?,
        _ => return Err(Refused::NotOurs),
    };
    read_datagram(&packet, traffic)
}

/// What IP carries.
pub(crate) struct Packet<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub datagram: &'a [u8],
}

#[inline]
fn read_ipv4(packet: &[u8]) -> Result<Packet<'_>, Refused> {
    let header = packet.first_chunk::<IPV4>().ok_or(Refused::Malformed)?;
    let [first, _, len @ .., _, _] = header.first_chunk::<6>().ok_or(Refused::Malformed)?;
    let len = usize::from(u16::from_be_bytes(*len));
    // Neither options, nor fragments: bit 14 says that there may be none.
    let whole = header[6] & 0xbf == 0 && header[7] == 0;
    if *first != 0x45 || !whole || header[9] != PROTOCOL {
        return Err(Refused::Malformed);
    }
    if !Sum::default().and(header).is_right() {
        return Err(Refused::Damaged);
    }
    let datagram = packet.get(IPV4..len).ok_or(Refused::Malformed)?;
    let [.., a, b, c, d, e, f, g, h] = *header;
    let (from, to) = (Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into());
    Ok(Packet { from, to, datagram })
}

fn read_ipv6(packet: &[u8]) -> Result<Packet<'_>, Refused> {
    let packet = ipv6::Packet::read(packet).ok().filter(|packet| packet.next == PROTOCOL);
    let packet = packet.ok_or(Refused::Malformed)?;
    Ok(Packet { from: packet.from.into(), to: packet.to.into(), datagram: packet.content })
}

/// The same of a packet that is whole.
pub(crate) fn read_datagram<'a>(
    packet: &Packet<'a>,
    traffic: impl FnOnce(SocketAddr) -> Option<Traffic>,
) -> Result<Datagram<'a>, Refused> {
    let (header, _) = packet.datagram.split_first_chunk::<UDP>().ok_or(Refused::Malformed)?;
    let [a, b, c, d, e, f, g, h] = *header;
    let to = SocketAddr::new(packet.to, u16::from_be_bytes([c, d]));
    let traffic = traffic(to).ok_or(Refused::NotOurs)?;
    let (len, sum) = ([e, f], [g, h]);
    let datagram = packet.datagram.get(..usize::from(u16::from_be_bytes(len))).ok_or(Refused::Malformed)?;
    let payload = datagram.get(UDP..).ok_or(Refused::Malformed)?;
    let pseudo = pseudo_header(PROTOCOL, packet.from, packet.to, len);
    // Over IPv4 zero says that there is none. Between interfaces that exist in one kernel only, the sum is that of the
    // pseudo header: the device that would complete it is none.
    let has_none = sum == [0; 2] && packet.to.is_ipv4();
    let is_partial = sum == pseudo.folded();
    if !has_none && !is_partial && !pseudo.and(datagram).is_right() {
        return Err(Refused::Damaged);
    }
    let from = SocketAddr::new(packet.from, u16::from_be_bytes([a, b])).into();
    Ok(Datagram { from, traffic, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Tag, open};

    const OURS: Mac = [2, 0, 0, 0, 0, 1];
    const THEIRS: Mac = [2, 0, 0, 0, 0, 2];
    const VLAN: [u8; 2] = [0x81, 0x00];

    fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
        let texts =
            if v6 { ["[fd00::1]:7411", "[fd00::2]:7413"] } else { ["10.0.0.1:7411", "10.0.0.2:7413"] };
        let [from, to] = texts.map(|text| text.parse().unwrap());
        (from, to)
    }

    /// Reads as the one does who gets what [`written`] sends.
    fn read_all(frame: &[u8]) -> Result<Datagram<'_>, Refused> {
        let opened = open(frame, &Station { mac: THEIRS, tag: None })?;
        if opened.to != THEIRS {
            return Err(Refused::NotOurs);
        }
        read(&opened, |to| [ends(false).1, ends(true).1].contains(&to).then_some(Traffic::User))
    }

    fn put(frame: &mut [u8], priority: Option<u8>, v6: bool, dscp: u8, parts: &[&[u8]]) -> Option<usize> {
        write(frame, &Station { mac: OURS, tag: Tag::of(0, priority) }, THEIRS, ends(v6), dscp, parts)
    }

    fn written(v6: bool, priority: Option<u8>, parts: &[&[u8]]) -> Vec<u8> {
        let mut frame = vec![0xee; 2_048];
        let len = put(&mut frame, priority, v6, 46, parts).unwrap();
        frame.truncate(len);
        frame
    }

    fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
        [&frame[..12], &VLAN, &tag.to_be_bytes(), &frame[12..]].concat()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for v6 in [false, true] {
            for parts in [&[&b"RTPS"[..]][..], &[b"RTP", b"S", b"", b"odd"], &[&[7; 1_400]], &[]] {
                let frame = written(v6, None, parts);
                let datagram = read_all(&frame).unwrap();
                assert_eq!((datagram.from, datagram.payload), (ends(v6).0.into(), &parts.concat()[..]));
                assert_eq!(read_all(&tagged(&frame, 6 << 13)), Ok(datagram), "a priority only");
                assert_eq!(read_all(&tagged(&frame, 5)), Err(Refused::NotOurs), "another network");
                let padded = [&frame[..], &[0; 18]].concat();
                assert_eq!(read_all(&padded), Ok(datagram));
            }
        }
    }

    #[test]
    fn a_priority_is_in_a_tag() {
        for v6 in [false, true] {
            let with = written(v6, Some(6), &[b"RTPS"]);
            assert_eq!(with, tagged(&written(v6, None, &[b"RTPS"]), 6 << 13));
        }
    }

    #[test]
    fn headers_are_those_of_the_standards() {
        let v4 = written(false, None, &[b"RTPS"]);
        assert_eq!(&v4[..14], &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        // Version and length, DSCP 46, total length, no number, not to be fragmented, hops, UDP.
        assert_eq!(&v4[14..24], &[0x45, 0xb8, 0, 32, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(&v4[26..42 - 2], &[10, 0, 0, 1, 10, 0, 0, 2, 0x1c, 0xf3, 0x1c, 0xf5, 0, 12]);
        let v6 = written(true, None, &[b"RTPS"]);
        assert_eq!(&v6[12..22], &[0x86, 0xdd, 0x6b, 0x80, 0, 0, 0, 12, 17, 64]);
    }

    #[test]
    fn each_bit_that_is_wrong_is_seen() {
        for v6 in [false, true] {
            let frame = written(v6, None, &[b"RTPS and more"]);
            for bit in 0..frame.len() * 8 {
                let mut wrong = frame.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                // Who it is from, and the class and label or the hops of IPv6, are in no sum.
                let unsummed = (6..12).contains(&(bit / 8))
                    || v6 && matches!(bit / 8, 15..18 | 21)
                    || v6 && bit / 8 == 14 && bit % 8 < 4;
                let got = read_all(&wrong);
                assert_eq!(got.is_ok(), unsummed, "bit {bit}, IPv6: {v6}, {got:?}");
            }
        }
    }

    #[test]
    fn sums_that_are_not_there() {
        for v6 in [false, true] {
            let frame = written(v6, None, &[b"RTPS"]);
            let at = header_len(&Station { mac: OURS, tag: None }, ends(v6).0.ip()) - 2;
            let with = |sum: [u8; 2]| {
                let mut frame = frame.clone();
                frame[at..at + 2].copy_from_slice(&sum);
                read_all(&frame).is_ok()
            };
            assert_eq!(with([0; 2]), !v6, "over IPv6 there is always one");
            let pseudo = pseudo_header(PROTOCOL, ends(v6).0.ip(), ends(v6).1.ip(), [0, 12]);
            assert!(with(pseudo.folded()), "what a device was to complete");
            assert!(!with([1, 2]));
        }
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        for v6 in [false, true] {
            let frame = written(v6, None, &[b"RTPS and more"]);
            for len in 0..frame.len() {
                assert!(read_all(&frame[..len]).is_err(), "{len} bytes");
                assert!(read_all(&tagged(&frame, 0)[..len]).is_err(), "{len} bytes, tagged");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        for (v6, len) in [(false, 46), (true, 66)] {
            let put = |room: usize| put(&mut vec![0; room], None, v6, 0, &[b"RTPS"]);
            assert_eq!((put(len), put(len - 1)), (Some(len), None));
        }
        assert_eq!(put(&mut vec![0; 100_000], None, false, 0, &[&[0; 65_528]]), None, "a length of 16 bits");
    }
}
