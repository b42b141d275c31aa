//! Frames of Ethernet with UDP in them: how they are written, and what is made of those that come.
//!
//! Owns the headers: IEEE 802.3 and 802.1Q, RFC 791, 8200, 768. Knows nothing of rings and routes. What comes was let
//! through by the program in the kernel, and is looked at as if it were not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::checksum::Sum;

/// An address of Ethernet.
pub(crate) type Mac = [u8; 6];

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// No header is longer.
const LONGEST_HEADER: usize = ETHERNET + TAG + IPV6 + UDP;

const TYPE_VLAN: [u8; 2] = [0x81, 0x00];
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_UDP: u8 = 17;
/// What the kernel sends with: a frame passes so many routers at most.
const HOPS: u8 = 64;
/// The bits of a tag that name the network.
const VLAN_ID: u16 = 0x0fff;

/// The way to a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// Who takes the frame: the host, or the router on the way to it.
    pub to: Mac,
    /// Our address on that way.
    pub from: IpAddr,
}

/// What all frames of a port have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Own {
    /// The interface's address of Ethernet.
    pub mac: Mac,
    /// The priority that frames carry in a tag (IEEE 802.1Q, PCP), if they carry one.
    pub priority: Option<u8>,
    /// Where the port is reached, one for each address of the interface.
    pub ends: Vec<SocketAddr>,
}

impl Own {
    /// Our end with this address.
    pub(crate) fn end(&self, address: IpAddr) -> Option<SocketAddr> {
        self.ends.iter().find(|end| end.ip() == address).copied()
    }
}

/// Bytes of headers before the payload of a datagram to this address.
pub(crate) fn header_len(own: &Own, to: IpAddr) -> usize {
    let tag = if own.priority.is_some() { TAG } else { 0 };
    ETHERNET + tag + if to.is_ipv4() { IPV4 + UDP } else { IPV6 + UDP }
}

/// Headers in the making.
struct Header {
    bytes: [u8; LONGEST_HEADER],
    len: usize,
}

impl Header {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn set(&mut self, at: usize, bytes: [u8; 2]) {
        if let Some(place) = self.bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&bytes);
        }
    }
}

/// What UDP sums up of the packet around it.
fn pseudo_header(from: IpAddr, to: IpAddr, len: [u8; 2]) -> Sum {
    let sum = Sum::default().and(&[0, PROTOCOL_UDP]).and(&len);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => sum.and(&from.octets()).and(&to.octets()),
        (from, to) => sum.and(&v6(from).octets()).and(&v6(to).octets()),
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Writes a datagram made of `parts` into a frame, by this way, with the differentiated services code point `dscp`.
/// Returns the length of the frame; `None` if it has no room, or the ends are of different kinds.
///
/// *Cost*: a copy of the parts, and a sum of them.
pub(crate) fn write(
    frame: &mut [u8],
    own: &Own,
    way: &Way,
    (from, to): (SocketAddr, SocketAddr),
    dscp: u8,
    parts: &[&[u8]],
) -> Option<usize> {
    if from.is_ipv4() != to.is_ipv4() {
        return None;
    }
    let header_len = header_len(own, to.ip());
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let udp_len = u16::try_from(UDP + payload).ok()?.to_be_bytes();
    let (header_place, mut place) = frame.get_mut(..header_len + payload)?.split_at_mut(header_len);
    let mut header = Header { bytes: [0; LONGEST_HEADER], len: 0 };
    header.put(&way.to);
    header.put(&own.mac);
    if let Some(priority) = own.priority {
        header.put(&TYPE_VLAN);
        // Of no network: the tag is for the priority.
        header.put(&(u16::from(priority) << 13).to_be_bytes());
    }
    put_ip(&mut header, from.ip(), to.ip(), dscp, UDP + payload);
    header.put(&from.port().to_be_bytes());
    header.put(&to.port().to_be_bytes());
    header.put(&udp_len);
    for part in parts {
        let (now, later) = place.split_at_mut(part.len());
        now.copy_from_slice(part);
        place = later;
    }
    header_place.copy_from_slice(header.bytes.get(..header_len).filter(|_| header.len + 2 == header_len)?);
    // All of UDP but the place of the sum, which is zero.
    let datagram = frame.get(header_len - UDP..header_len + payload)?;
    let sum = pseudo_header(from.ip(), to.ip(), udp_len).and(datagram).complement();
    // RFC 768: zero says that there is none.
    let sum = if sum == [0; 2] { [0xff; 2] } else { sum };
    frame.get_mut(header_len - 2..header_len)?.copy_from_slice(&sum);
    Some(header_len + payload)
}

/// The ethertype and the header of IP, before so many bytes.
fn put_ip(header: &mut Header, from: IpAddr, to: IpAddr, dscp: u8, len: usize) {
    let class = dscp << 2;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.put(&TYPE_IPV4);
            let (start, len) = (header.len, (IPV4 + len) as u16);
            header.put(&[0x45, class]);
            header.put(&len.to_be_bytes());
            // Not to be fragmented, so that no number is needed to tell fragments (RFC 6864 §4.1).
            header.put(&[0, 0, 0x40, 0, HOPS, PROTOCOL_UDP, 0, 0]);
            header.put(&from.octets());
            header.put(&to.octets());
            let sum = Sum::default().and(header.bytes.get(start..header.len).unwrap_or_default());
            header.set(start + 10, sum.complement());
        }
        (from, to) => {
            header.put(&TYPE_IPV6);
            header.put(&(6 << 28 | u32::from(class) << 20).to_be_bytes());
            header.put(&(len as u16).to_be_bytes());
            header.put(&[PROTOCOL_UDP, HOPS]);
            header.put(&v6(from).octets());
            header.put(&v6(to).octets());
        }
    }
}

/// A datagram that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Datagram<'a> {
    pub from: SocketAddr,
    pub payload: &'a [u8],
}

/// Why a frame is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It ends too early, or says another length than it has.
    Malformed,
    /// It is for somebody else: another station, address, port or virtual network.
    NotOurs,
    /// A checksum is wrong.
    Damaged,
}

/// The datagram in a frame.
pub(crate) fn read<'a>(frame: &'a [u8], own: &Own) -> Result<Datagram<'a>, Refused> {
    let (to, frame_type) = (frame.first_chunk::<6>(), frame.get(12..ETHERNET));
    let (Some(to), Some(mut frame_type)) = (to, frame_type) else { return Err(Refused::Malformed) };
    if *to != own.mac {
        return Err(Refused::NotOurs);
    }
    let mut packet = frame.get(ETHERNET..).unwrap_or_default();
    if frame_type == TYPE_VLAN {
        let Some((tag, rest)) = packet.split_first_chunk::<TAG>() else { return Err(Refused::Malformed) };
        // A tag of network 0 has a priority only.
        if u16::from_be_bytes([tag[0], tag[1]]) & VLAN_ID != 0 {
            return Err(Refused::NotOurs);
        }
        (frame_type, packet) = (frame.get(ETHERNET + 2..ETHERNET + TAG).unwrap_or_default(), rest);
    }
    let packet = match frame_type {
        of if of == TYPE_IPV4 => read_ipv4(packet)?,
        of if of == TYPE_IPV6 => read_ipv6(packet)?,
        _ => return Err(Refused::NotOurs),
    };
    read_udp(&packet, own)
}

/// What IP carries.
struct Packet<'a> {
    from: IpAddr,
    to: IpAddr,
    datagram: &'a [u8],
}

fn read_ipv4(packet: &[u8]) -> Result<Packet<'_>, Refused> {
    let header = packet.first_chunk::<IPV4>().ok_or(Refused::Malformed)?;
    let [first, _, len @ .., _, _] = header.first_chunk::<6>().ok_or(Refused::Malformed)?;
    let len = usize::from(u16::from_be_bytes(*len));
    // Neither options, nor fragments: bit 14 says that there may be none.
    let whole = header[6] & 0xbf == 0 && header[7] == 0;
    if *first != 0x45 || !whole || header[9] != PROTOCOL_UDP {
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
    let header = packet.first_chunk::<IPV6>().ok_or(Refused::Malformed)?;
    if header[0] >> 4 != 6 || header[6] != PROTOCOL_UDP {
        return Err(Refused::Malformed);
    }
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let datagram = packet.get(IPV6..IPV6 + len).ok_or(Refused::Malformed)?;
    let address = |at: usize| {
        let bytes = header.get(at..).and_then(|bytes| bytes.first_chunk::<16>());
        IpAddr::from(bytes.copied().unwrap_or_default())
    };
    Ok(Packet { from: address(8), to: address(24), datagram })
}

fn read_udp<'a>(packet: &Packet<'a>, own: &Own) -> Result<Datagram<'a>, Refused> {
    let (header, _) = packet.datagram.split_first_chunk::<UDP>().ok_or(Refused::Malformed)?;
    let [a, b, c, d, e, f, g, h] = *header;
    let to = SocketAddr::new(packet.to, u16::from_be_bytes([c, d]));
    if !own.ends.contains(&to) {
        return Err(Refused::NotOurs);
    }
    let (len, sum) = ([e, f], [g, h]);
    let datagram = packet.datagram.get(..usize::from(u16::from_be_bytes(len))).ok_or(Refused::Malformed)?;
    let payload = datagram.get(UDP..).ok_or(Refused::Malformed)?;
    let pseudo = pseudo_header(packet.from, packet.to, len);
    // Over IPv4 zero says that there is none. Between interfaces that exist in one kernel only, the sum is that of the
    // pseudo header: the device that would complete it is none.
    let has_none = sum == [0; 2] && packet.to.is_ipv4();
    let is_partial = sum == pseudo.folded();
    if !has_none && !is_partial && !pseudo.and(datagram).is_right() {
        return Err(Refused::Damaged);
    }
    Ok(Datagram { from: SocketAddr::new(packet.from, u16::from_be_bytes([a, b])), payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Mac = [2, 0, 0, 0, 0, 1];
    const THEIRS: Mac = [2, 0, 0, 0, 0, 2];

    fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
        let texts =
            if v6 { ["[fd00::1]:7411", "[fd00::2]:7413"] } else { ["10.0.0.1:7411", "10.0.0.2:7413"] };
        let [from, to] = texts.map(|text| text.parse().unwrap());
        (from, to)
    }

    /// Who gets what [`written`] sends.
    fn receiver() -> Own {
        Own { mac: THEIRS, priority: None, ends: vec![ends(false).1, ends(true).1] }
    }

    fn sender() -> Own {
        Own { mac: OURS, priority: None, ends: Vec::new() }
    }

    fn written(v6: bool, parts: &[&[u8]]) -> Vec<u8> {
        let (from, to) = ends(v6);
        let mut frame = vec![0xee; 2_048];
        let way = Way { to: THEIRS, from: from.ip() };
        let len = write(&mut frame, &sender(), &way, (from, to), 46, parts).unwrap();
        frame.truncate(len);
        frame
    }

    fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
        [&frame[..12], &TYPE_VLAN, &tag.to_be_bytes(), &frame[12..]].concat()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for v6 in [false, true] {
            for parts in [&[&b"RTPS"[..]][..], &[b"RTP", b"S", b"", b"odd"], &[&[7; 1_400]], &[]] {
                let frame = written(v6, parts);
                let datagram = read(&frame, &receiver()).unwrap();
                assert_eq!((datagram.from, datagram.payload), (ends(v6).0, &parts.concat()[..]));
                assert_eq!(read(&tagged(&frame, 6 << 13), &receiver()), Ok(datagram), "a priority only");
                assert_eq!(read(&tagged(&frame, 5), &receiver()), Err(Refused::NotOurs), "another network");
                let padded = [&frame[..], &[0; 18]].concat();
                assert_eq!(read(&padded, &receiver()), Ok(datagram));
            }
        }
    }

    #[test]
    fn a_priority_is_in_a_tag() {
        for v6 in [false, true] {
            let (from, to) = ends(v6);
            let (own, way) = (Own { priority: Some(6), ..sender() }, Way { to: THEIRS, from: from.ip() });
            let mut frame = vec![0; 2_048];
            let len = write(&mut frame, &own, &way, (from, to), 46, &[b"RTPS"]).unwrap();
            assert_eq!(frame[..len], tagged(&written(v6, &[b"RTPS"]), 6 << 13));
        }
    }

    #[test]
    fn headers_are_those_of_the_standards() {
        let v4 = written(false, &[b"RTPS"]);
        assert_eq!(&v4[..14], &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        // Version and length, DSCP 46, total length, no number, not to be fragmented, hops, UDP.
        assert_eq!(&v4[14..24], &[0x45, 0xb8, 0, 32, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(&v4[26..42 - 2], &[10, 0, 0, 1, 10, 0, 0, 2, 0x1c, 0xf3, 0x1c, 0xf5, 0, 12]);
        let v6 = written(true, &[b"RTPS"]);
        assert_eq!(&v6[12..22], &[0x86, 0xdd, 0x6b, 0x80, 0, 0, 0, 12, 17, 64]);
    }

    #[test]
    fn each_bit_that_is_wrong_is_seen() {
        for v6 in [false, true] {
            let frame = written(v6, &[b"RTPS and more"]);
            for bit in 0..frame.len() * 8 {
                let mut wrong = frame.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                // Who it is from, and the class and label or the hops of IPv6, are in no sum.
                let unsummed = (6..12).contains(&(bit / 8))
                    || v6 && matches!(bit / 8, 15..18 | 21)
                    || v6 && bit / 8 == 14 && bit % 8 < 4;
                let got = read(&wrong, &receiver());
                assert_eq!(got.is_ok(), unsummed, "bit {bit}, IPv6: {v6}, {got:?}");
            }
        }
    }

    #[test]
    fn sums_that_are_not_there() {
        for v6 in [false, true] {
            let frame = written(v6, &[b"RTPS"]);
            let at = header_len(&sender(), ends(v6).0.ip()) - 2;
            let with = |sum: [u8; 2]| {
                let mut frame = frame.clone();
                frame[at..at + 2].copy_from_slice(&sum);
                read(&frame, &receiver()).is_ok()
            };
            assert_eq!(with([0; 2]), !v6, "over IPv6 there is always one");
            let pseudo = pseudo_header(ends(v6).0.ip(), ends(v6).1.ip(), [0, 12]);
            assert!(with(pseudo.folded()), "what a device was to complete");
            assert!(!with([1, 2]));
        }
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        for v6 in [false, true] {
            let frame = written(v6, &[b"RTPS and more"]);
            for len in 0..frame.len() {
                assert!(read(&frame[..len], &receiver()).is_err(), "{len} bytes");
                assert!(read(&tagged(&frame, 0)[..len], &receiver()).is_err(), "{len} bytes, tagged");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let (from, to) = ends(false);
        let way = Way { to: THEIRS, from: from.ip() };
        let put = |room: usize, to| write(&mut vec![0; room], &sender(), &way, (from, to), 0, &[b"RTPS"]);
        assert_eq!((put(46, to), put(45, to), put(46, ends(true).1)), (Some(46), None, None));
    }
}
