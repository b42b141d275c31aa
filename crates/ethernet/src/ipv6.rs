//! Packets of IPv6 that carry no whole datagram of ours, and messages of ICMPv6: what the kernel would make of them.
//! RFC 8200, RFC 4443.
//!
//! Of the headers that may stand between IPv6 and what it carries two are understood: that of a fragment before a
//! datagram, and the options that every router looks at before a message of ICMPv6, as those about groups have them.

use std::net::{IpAddr, Ipv6Addr};

use crate::checksum::{Sum, pseudo_header};
use crate::fragments::Fragment;
use crate::header::{Header, Mac, Station};
use crate::layer::{Carried, Refused};
use crate::short::ShortFrame;
use crate::udp;

/// The protocol of messages about IP.
pub(crate) const ICMP: u8 = 58;
/// All hosts of a network.
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const HEADER: usize = 40;
const HOP_BY_HOP: u8 = 0;
const FRAGMENT: u8 = 44;
/// The header of a fragment.
const FRAGMENT_LEN: usize = 8;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
/// What an answer is sent with.
const HOPS: u8 = 64;

/// The options that have each router look at a message about groups, with the header that they stand in (RFC 2711).
const ROUTER_ALERT: [u8; 8] = [ICMP, 0, 5, 2, 0, 0, 1, 0];

/// The group in which whoever has an address is asked for it (RFC 4291 §2.7.1).
pub(crate) fn solicited_node(of: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = of.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The address of the link that follows from a station (RFC 4291 appendix A).
pub(crate) fn of_link([a, b, c, d, e, f]: Mac) -> Ipv6Addr {
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// What a packet carries.
#[inline]
pub(crate) fn carried(packet: &[u8]) -> Carried {
    match (packet.get(6), packet.get(HEADER)) {
        (Some(&udp::PROTOCOL), _) => Carried::Datagram,
        (Some(&FRAGMENT), Some(&udp::PROTOCOL)) => Carried::Part,
        _ => Carried::Other,
    }
}

/// A packet behind its first header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// What `content` begins with.
    pub next: u8,
    pub hops: u8,
    pub from: Ipv6Addr,
    pub to: Ipv6Addr,
    pub content: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads one.
    #[inline]
    pub fn read(packet: &'a [u8]) -> Result<Packet<'a>, Refused> {
        let (fixed, rest) = packet.split_first_chunk::<HEADER>().ok_or(Refused::Malformed)?;
        let [first, _, _, _, a, b, next, hops, addresses @ ..] = fixed;
        let content = rest.get(..usize::from(u16::from_be_bytes([*a, *b]))).ok_or(Refused::Malformed)?;
        let (from, to) = addresses.split_first_chunk::<16>().ok_or(Refused::Malformed)?;
        let to = to.first_chunk::<16>().ok_or(Refused::Malformed)?;
        if first >> 4 != 6 {
            return Err(Refused::Malformed);
        }
        Ok(Packet { next: *next, hops: *hops, from: (*from).into(), to: (*to).into(), content })
    }

    /// The message of ICMPv6 in it, whose checksum is right.
    ///
    /// *Errors*: `NotOurs` for other contents, and for options that who does not know them is to drop.
    pub fn message(&self) -> Result<Message<'a>, Refused> {
        let (next, content, has_alert) = match self.next {
            HOP_BY_HOP => behind_options(self.content)?,
            next => (next, self.content, false),
        };
        if next != ICMP {
            return Err(Refused::NotOurs);
        }
        let ([kind, code, _, _], body) = content.split_first_chunk::<4>().ok_or(Refused::Malformed)?;
        // No packet is longer than its length of 16 bits says.
        if !sum(self.from, self.to, content.len() as u16).and(content).is_right() {
            return Err(Refused::Damaged);
        }
        Ok(Message { kind: *kind, code: *code, has_alert, body })
    }
}

/// A message of ICMPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message<'a> {
    pub kind: u8,
    pub code: u8,
    /// Was each router on its way to look at it?
    pub has_alert: bool,
    /// What is behind the checksum.
    pub body: &'a [u8],
}

/// What is behind the options that every router looks at (RFC 8200 §4.2, §4.3), and is there one that says so of a
/// message about groups?
fn behind_options(content: &[u8]) -> Result<(u8, &[u8], bool), Refused> {
    let [next, len, ..] = *content else { return Err(Refused::Malformed) };
    let (header, rest) = content.split_at_checked(8 * (usize::from(len) + 1)).ok_or(Refused::Malformed)?;
    let mut options = header.get(2..).unwrap_or_default();
    let mut has_alert = false;
    loop {
        options = match *options {
            [] => return Ok((next, rest, has_alert)),
            [0, ref rest @ ..] => rest,
            [kind, len, ref rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(len)).ok_or(Refused::Malformed)?;
                has_alert |= kind == 5 && value == [0, 0];
                // The first two bits say what to do who does not know it.
                if !matches!(kind, 1 | 5) && kind >> 6 != 0 {
                    return Err(Refused::NotOurs);
                }
                rest
            }
            [_] => return Err(Refused::Malformed),
        };
    }
}

/// Reads a part of a datagram.
pub(crate) fn fragment(packet: &[u8]) -> Result<Fragment<'_>, Refused> {
    let packet = Packet::read(packet)?;
    let (header, bytes) = packet.content.split_first_chunk::<FRAGMENT_LEN>().ok_or(Refused::Malformed)?;
    let [_, _, high, low, number @ ..] = *header;
    Ok(Fragment {
        key: (packet.from.into(), packet.to.into(), u32::from_be_bytes(number)),
        start: usize::from(u16::from_be_bytes([high, low & 0xf8])),
        is_last: low & 1 == 0,
        bytes,
    })
}

fn sum(from: Ipv6Addr, to: Ipv6Addr, len: u16) -> Sum {
    pseudo_header(ICMP, IpAddr::V6(from), IpAddr::V6(to), len.to_be_bytes())
}

/// How a message goes: between which addresses, to which station, past how many routers.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub from: Ipv6Addr,
    pub to: Ipv6Addr,
    pub station: Mac,
    pub hops: u8,
}

/// The frame of a message. `None`: it is too long.
pub(crate) fn frame(own: &Station, way: &Way, message: &Message<'_>) -> Option<ShortFrame> {
    let options: &[u8] = if message.has_alert { &ROUTER_ALERT } else { &[] };
    let message_len = u16::try_from(4 + message.body.len()).ok()?;
    let head = [message.kind, message.code, 0, 0];
    let [a, b] = sum(way.from, way.to, message_len).and(&head).and(message.body).complement();
    let len = u16::try_from(options.len() + usize::from(message_len)).ok()?;
    let mut frame = ShortFrame::new();
    frame.put(Header::new(own, way.station, udp::TYPE_IPV6).bytes())?;
    frame.put(&[0x60, 0, 0, 0])?;
    frame.put(&len.to_be_bytes())?;
    frame.put(&[if message.has_alert { HOP_BY_HOP } else { ICMP }, way.hops])?;
    frame.put(&way.from.octets())?;
    frame.put(&way.to.octets())?;
    frame.put(options)?;
    frame.put(&[message.kind, message.code, a, b])?;
    frame.put(message.body)?;
    Some(frame)
}

/// The frame that answers a question for an echo, to the station that has sent it. RFC 4443 §4.2.
///
/// *Errors*: `NotOurs` for what is no such question, or too long.
pub(crate) fn echo(
    own: &Station,
    station: Mac,
    packet: &Packet<'_>,
    question: &Message<'_>,
) -> Result<ShortFrame, Refused> {
    if question.kind != ECHO_REQUEST || question.code != 0 {
        return Err(Refused::NotOurs);
    }
    // A number and a place in a row are in each.
    if question.body.len() < 4 {
        return Err(Refused::Malformed);
    }
    let way = Way { from: packet.to, to: packet.from, station, hops: HOPS };
    let answer = Message { kind: ECHO_REPLY, has_alert: false, ..*question };
    frame(own, &way, &answer).ok_or(Refused::NotOurs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::open;
    use crate::short::LONGEST;

    const OWN: Station = Station { mac: [2, 0, 0, 0, 0, 2], tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const A: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn written(message: &Message<'_>) -> Vec<u8> {
        frame(&OWN, &Way { from: A, to: B, station: THEIRS, hops: 64 }, message).unwrap().bytes().to_vec()
    }

    fn question(body: &[u8]) -> Message<'_> {
        Message { kind: ECHO_REQUEST, code: 0, has_alert: false, body }
    }

    /// A packet with what each router is to look at before a message, as `options` have it.
    fn with_options(options: &[u8]) -> Vec<u8> {
        let plain = written(&question(b"1234"));
        let len = (plain.len() - 54 + options.len()) as u8;
        [&plain[14..18], &[0, len, HOP_BY_HOP], &plain[21..54], options, &plain[54..]].concat()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for has_alert in [false, true] {
            for body in [&b""[..], b"odd", &[7; 56]] {
                let message = Message { kind: 130, code: 3, has_alert, body };
                let frame = written(&message);
                let opened = open(&frame, &Station { mac: THEIRS, tag: None }).unwrap();
                assert_eq!((opened.to, opened.kind), (THEIRS, udp::TYPE_IPV6));
                let packet = Packet::read(opened.content).unwrap();
                assert_eq!((packet.from, packet.to, packet.hops), (A, B, 64));
                assert_eq!(packet.message(), Ok(message));
                let padded = [opened.content, &[0; 9]].concat();
                assert_eq!(Packet::read(&padded).unwrap().message(), Ok(message));
            }
        }
        let long = Message { kind: 130, code: 0, has_alert: false, body: &[0; LONGEST - 57] };
        assert!(frame(&OWN, &Way { from: A, to: B, station: THEIRS, hops: 1 }, &long).is_none());
    }

    #[test]
    fn bytes_are_those_of_the_rfcs() {
        let frame = written(&Message { kind: 128, code: 0, has_alert: true, body: &[0, 7, 0, 1] });
        assert_eq!(&frame[14..22], &[0x60, 0, 0, 0, 0, 16, 0, 64]);
        // ICMPv6 follows, 8 bytes; router alert, 2 bytes, about MLD; nothing, 0 bytes.
        assert_eq!(&frame[54..62], &[58, 0, 5, 2, 0, 0, 1, 0]);
        let words = |bytes: &[u8]| -> u32 {
            bytes.chunks(2).map(|half| u32::from(u16::from_be_bytes([half[0], half[1]]))).sum()
        };
        // Addresses, length and protocol, and the message with its checksum (RFC 8200 §8.1).
        assert_eq!((words(&frame[22..54]) + 8 + 58 + words(&frame[62..])) % 0xffff, 0);
    }

    #[test]
    fn each_bit_that_is_wrong_is_seen() {
        for has_alert in [false, true] {
            let frame = written(&Message { kind: 130, code: 0, has_alert, body: b"12345678" });
            let whole = &frame[14..];
            for bit in 0..whole.len() * 8 {
                let mut wrong = whole.to_vec();
                wrong[bit / 8] ^= 0x80 >> (bit % 8);
                let read = Packet::read(&wrong).and_then(|packet| packet.message());
                // The class and label, the hops, and the options are in no sum; the last of those says nothing.
                let unsummed =
                    (4..32).contains(&bit) || bit / 8 == 7 || has_alert && (40..48).contains(&(bit / 8));
                assert!(unsummed || read.is_err(), "bit {bit}: {read:?}");
            }
            for len in 0..whole.len() {
                let read = Packet::read(&whole[..len]).and_then(|packet| packet.message());
                assert!(read.is_err(), "{len} bytes: {read:?}");
            }
        }
    }

    #[test]
    fn options_are_walked_to_their_end() {
        let alert = |options: &[u8]| {
            Packet::read(&with_options(options)).unwrap().message().map(|message| message.has_alert)
        };
        assert_eq!(alert(&ROUTER_ALERT), Ok(true));
        assert_eq!(alert(&[ICMP, 0, 0, 0, 5, 2, 0, 0]), Ok(true), "behind padding of one byte each");
        assert_eq!(alert(&[ICMP, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 5, 2, 0, 0, 0]), Ok(true));
        assert_eq!(alert(&[ICMP, 0, 1, 4, 0, 0, 0, 0]), Ok(false));
        assert_eq!(alert(&[ICMP, 0, 5, 2, 0, 1, 0, 0]), Ok(false), "about something else");
        assert_eq!(alert(&[ICMP, 0, 0x1e, 4, 0, 0, 0, 0]), Ok(false), "not known, to be passed over");
        assert_eq!(alert(&[ICMP, 0, 0xc2, 4, 0, 0, 0, 0]), Err(Refused::NotOurs), "not known, to be dropped");
        assert_eq!(alert(&[ICMP, 0, 1, 5, 0, 0, 0, 0]), Err(Refused::Malformed), "longer than the header");
        assert_eq!(alert(&[ICMP, 0, 1, 3, 0, 0, 0, 1]), Err(Refused::Malformed), "it ends within an option");
        assert_eq!(alert(&[ICMP, 255, 1, 4, 0, 0, 0, 0]), Err(Refused::Malformed), "longer than the packet");
        assert_eq!(alert(&[6, 0, 1, 4, 0, 0, 0, 0]), Err(Refused::NotOurs), "another protocol");
        // Each names the next one, itself: none is followed.
        let chain = [HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(8);
        assert_eq!(alert(&chain), Err(Refused::NotOurs));
    }

    #[test]
    fn a_question_for_an_echo_is_answered_with_what_it_carries() {
        let whole = written(&question(b"1234 and more"));
        let packet = Packet::read(&whole[14..]).unwrap();
        let answer = echo(&OWN, THEIRS, &packet, &packet.message().unwrap()).ok().unwrap();
        let read = Packet::read(&answer.bytes()[14..]).unwrap();
        assert_eq!((read.from, read.to, read.hops), (B, A, HOPS));
        let expected = Message { kind: ECHO_REPLY, ..question(b"1234 and more") };
        assert_eq!(read.message(), Ok(expected));
        let refused = |message: &Message<'_>| echo(&OWN, THEIRS, &packet, message).err();
        assert_eq!(refused(&question(b"123")), Some(Refused::Malformed));
        assert_eq!(refused(&question(&[0; LONGEST])), Some(Refused::NotOurs), "there is no room for it");
        assert_eq!(refused(&expected), Some(Refused::NotOurs));
        assert_eq!(refused(&Message { code: 1, ..question(b"1234") }), Some(Refused::NotOurs));
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let part = |high: u8, low: u8| {
            let fragment_header = [udp::PROTOCOL, 0, high, low, 0, 1, 0, 7];
            [&[0x60, 0, 0, 0, 0, 24, FRAGMENT, 64], &A.octets()[..], &B.octets(), &fragment_header, &[7; 16]]
                .concat()
        };
        for (high, low, start, is_last) in [
            (0, 1, 0, false),
            (8, 9, 2_056, false),
            (0xff, 0xf8, 65_528, true),
            (0, 0, 0, true),
            (0, 6, 0, true),
        ] {
            let bytes = part(high, low);
            assert_eq!(carried(&bytes), Carried::Part);
            let read = fragment(&bytes).unwrap();
            assert_eq!((read.start, read.is_last, read.bytes.len()), (start, is_last, 16));
            assert_eq!(read.key, (A.into(), B.into(), 0x1_0007));
            for len in 0..bytes.len() {
                assert_eq!(fragment(&bytes[..len]).err(), Some(Refused::Malformed), "{len} bytes");
            }
        }
        let mut of_another = part(0, 1);
        of_another[HEADER] = FRAGMENT;
        assert_eq!(carried(&of_another), Carried::Other, "a fragment in a fragment");
    }

    #[test]
    fn addresses_follow_from_addresses() {
        let of = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        assert_eq!(solicited_node(of("4037::1:800:200e:8c6c")), of("ff02::1:ff0e:8c6c"), "RFC 4291 §2.7.1");
        assert_eq!(of_link([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]), of("fe80::3656:78ff:fe9a:bcde"));
    }
}
