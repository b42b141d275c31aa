//! Messages in frames of our own type, without IP: a header as UDP's, of ports and a length, follows Ethernet's.
//!
//! There is no checksum: that of the frame, which the hardware makes and looks at, covers the same bytes.

use taut_base::Locator;
use taut_mem::gather;

use crate::header::{Header, Mac, Opened, Station};
use crate::layer::{Datagram, FrameEnds, Refused};

/// The type of our frames: the first of the two that IEEE 802 leaves to local experiments.
pub const ETHERTYPE: u16 = 0x88b5;

/// Bytes to leave free before a frame that is received, so that values of eight bytes in its first sample are where memory
/// has them: headers have 22.
pub const SHIFT: u16 = 6;

/// Ports of the sender and of the receiver, the length of the payload, and two bytes of zeros.
const PORTS: usize = 8;
/// Networks take no shorter frame.
const SHORTEST: usize = 60;

/// Bytes of headers before the payload, without IP.
pub(crate) fn header_len(own: &Station) -> usize {
    own.header_len() + PORTS
}

/// The headers before a datagram of so many bytes.
pub(crate) fn header(
    own: &Station,
    to: Mac,
    (from_port, to_port): (u16, u16),
    datagram: usize,
) -> Option<Header> {
    let mut header = Header::new(own, to, ETHERTYPE.to_be_bytes());
    for half in [from_port, to_port, u16::try_from(datagram).ok()?, 0] {
        header.put(&half.to_be_bytes());
    }
    Some(header)
}

/// Writes a frame; see [`crate::Route::write`].
pub(crate) fn write(
    frame: &mut [u8],
    own: &Station,
    to: Mac,
    ports: (u16, u16),
    parts: &[&[u8]],
) -> Option<usize> {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let header = header(own, to, ports, payload)?;
    let header = header.bytes();
    let len = header.len() + payload;
    let whole = frame.get_mut(..len.max(SHORTEST))?;
    let (place, padding) = whole.split_at_mut(len);
    padding.fill(0);
    let (header_place, payload_place) = place.split_at_mut(header.len());
    header_place.copy_from_slice(header);
    gather(payload_place, parts);
    Some(whole.len())
}

/// Reads what is in a frame of our type.
pub(crate) fn read<'a>(opened: &Opened<'a>, ends: &FrameEnds) -> Result<Datagram<'a>, Refused> {
    let (header, rest) = opened.content.split_first_chunk::<PORTS>().ok_or(Refused::Malformed)?;
    let half = |at: usize| u16::from_be_bytes([header[2 * at], header[2 * at + 1]]);
    let (from, to, len) = (half(0), half(1), usize::from(half(2)));
    let traffic = ends.traffic(&Locator::ethernet(opened.to, to)).ok_or(Refused::NotOurs)?;
    let payload = rest.get(..len).ok_or(Refused::Malformed)?;
    Ok(Datagram { from: Locator::ethernet(opened.from, from), traffic, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::group;
    use crate::header::{Tag, open};
    use std::net::Ipv4Addr;
    use taut_port::Traffic;

    const OURS: Mac = [2, 0, 0, 0, 0, 1];
    const THEIRS: Mac = [2, 0, 0, 0, 0, 2];

    fn ends() -> FrameEnds {
        let all = group(Ipv4Addr::new(239, 255, 0, 1).into());
        FrameEnds {
            user: vec![Locator::ethernet(THEIRS, 7411)],
            metatraffic: vec![Locator::ethernet(THEIRS, 7410), Locator::ethernet(all, 7400)],
        }
    }

    const VLAN_5: Option<Tag> = Some(Tag { network: 5, priority: 6 });

    fn written(tag: Option<Tag>, to: (Mac, u16), parts: &[&[u8]]) -> Vec<u8> {
        let mut frame = vec![0xee; 2_048];
        let own = Station { mac: OURS, tag };
        let len = write(&mut frame, &own, to.0, (7411, to.1), parts).unwrap();
        frame.truncate(len);
        frame
    }

    /// Reads as the one does who gets what [`written`] sends, in the network of this tag.
    fn read_in(frame: &[u8], tag: Option<Tag>) -> Result<Datagram<'_>, Refused> {
        read(&open(frame, &Station { mac: THEIRS, tag })?, &ends())
    }

    fn read_all(frame: &[u8]) -> Result<Datagram<'_>, Refused> {
        read_in(frame, None)
    }

    #[test]
    fn what_is_written_is_read_again() {
        for tag in [None, Tag::of(0, Some(6)), VLAN_5] {
            for parts in [&[&b"RTPS"[..]][..], &[b"RTP", b"S", b"", b"odd"], &[&[7; 1_400]], &[]] {
                let frame = written(tag, (THEIRS, 7411), parts);
                let datagram = read_in(&frame, tag).unwrap();
                assert_eq!(datagram.from, Locator::ethernet(OURS, 7411));
                assert_eq!((datagram.traffic, datagram.payload), (Traffic::User, &parts.concat()[..]));
                assert!(frame.len() >= SHORTEST);
            }
        }
    }

    #[test]
    fn headers_are_those_of_the_page() {
        let frame = written(Tag::of(0, Some(6)), (THEIRS, 7411), &[b"RTPS"]);
        assert_eq!(&frame[..18], &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xc0, 0, 0x88, 0xb5]);
        assert_eq!(&frame[18..30], b"\x1c\xf3\x1c\xf3\x00\x04\x00\x00RTPS");
        assert!(frame[30..].iter().all(|byte| *byte == 0), "what was in the memory before is not sent");
    }

    #[test]
    fn a_network_is_in_the_tag_and_nobody_reads_that_of_another() {
        let frame = written(VLAN_5, (THEIRS, 7411), &[b"RTPS"]);
        assert_eq!(&frame[12..18], &[0x81, 0, 0xc0, 5, 0x88, 0xb5]);
        let others = [None, Tag::of(0, Some(6)), Tag::of(6, Some(6)), Tag::of(0x0fff, None)];
        for tag in others {
            assert_eq!(read_in(&frame, tag), Err(Refused::NotOurs), "{tag:?}");
            assert_eq!(read_in(&written(tag, (THEIRS, 7411), &[b"RTPS"]), VLAN_5), Err(Refused::NotOurs));
        }
        let other_priority = written(Tag::of(5, None), (THEIRS, 7411), &[b"RTPS"]);
        assert!(read_in(&other_priority, VLAN_5).is_ok());
        let two = [&frame[..12], &frame[12..16], &frame[12..]].concat();
        let within = open(&two, &Station { mac: THEIRS, tag: VLAN_5 }).unwrap().kind;
        assert_eq!(within, [0x81, 0], "a tag within the tag is no type of ours");
    }

    #[test]
    fn who_it_is_for() {
        let all = group(Ipv4Addr::new(239, 255, 0, 1).into());
        assert_eq!(all, [0x01, 0x00, 0x5e, 0x7f, 0x00, 0x01]);
        let kind = |to| read_all(&written(None, to, &[b"RTPS"])).map(|datagram| datagram.traffic);
        assert_eq!(
            (kind((THEIRS, 7410)), kind((all, 7400))),
            (Ok(Traffic::Meta), Ok(Traffic::MetaMulticast))
        );
        for other in [(OURS, 7411), (THEIRS, 7400), (all, 7411), (all, 7401)] {
            assert_eq!(kind(other), Err(Refused::NotOurs), "{other:?}");
        }
    }

    #[test]
    fn nothing_is_made_of_scraps() {
        let frame = written(None, (THEIRS, 7411), &[&[7; 100]]);
        for len in 0..frame.len() {
            assert_eq!(read_all(&frame[..len]).err(), Some(Refused::Malformed), "{len} bytes");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let own = Station { mac: OURS, tag: None };
        let put = |room: usize, len: usize| write(&mut vec![0; room], &own, THEIRS, (1, 2), &[&vec![0; len]]);
        assert_eq!((put(60, 38), put(60, 39), put(59, 1)), (Some(60), None, None));
        assert_eq!(put(100_000, 65_536), None, "a length of 16 bits");
    }
}
