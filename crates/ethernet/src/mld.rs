//! Which groups of IPv6 a host is in, so that switches that look pass their frames on: reports, and the questions they
//! answer. RFC 2710; questions of RFC 3810 are understood, and who asks so understands these reports (§8.3.2 there).

use std::net::Ipv6Addr;

use taut_base::Duration;

use crate::header::{Station, group};
use crate::igmp::Query;
use crate::ipv6::{Message, Packet, Way, frame};
use crate::layer::Refused;
use crate::short::ShortFrame;

pub(crate) const QUERY: u8 = 130;
const REPORT: u8 = 131;
/// No message leaves its network.
const HOPS: u8 = 1;
/// How long there is to answer, two bytes that say nothing, and the group.
const LEN: usize = 20;

/// The frame that says that we are in a group, from an address of the link: others are not heard (RFC 3590 §4).
pub(crate) fn report(own: &Station, from: Ipv6Addr, of: Ipv6Addr) -> Option<ShortFrame> {
    let mut body = [0; LEN];
    body.iter_mut().skip(4).zip(of.octets()).for_each(|(to, from)| *to = from);
    let message = Message { kind: REPORT, code: 0, has_alert: true, body: &body };
    frame(own, &Way { from, to: of, station: group(of.into()), hops: HOPS }, &message)
}

/// Reads a question, whose checksum is right.
///
/// *Errors*: `NotOurs` for messages of others that are no question, and for one that nobody on this network asks so: from
/// no address of the link, past a router, or without what has routers look (RFC 3810 §5.1.14, §6.2).
pub(crate) fn read(packet: &Packet<'_>, message: &Message<'_>) -> Result<Query, Refused> {
    let is_near = packet.from.is_unicast_link_local() && packet.hops == HOPS && message.has_alert;
    if message.kind != QUERY || !is_near {
        return Err(Refused::NotOurs);
    }
    let [a, b, _, _, group @ ..] = *message.body.first_chunk::<LEN>().ok_or(Refused::Malformed)?;
    let millis = match u16::from_be_bytes([a, b]) {
        // RFC 3810 §5.1.3: twelve bits of a number and three of how often it is doubled, in longer questions.
        code @ 0x8000.. if message.body.len() > LEN => {
            i64::from(code & 0xfff | 0x1000) << ((code >> 12 & 7) + 3)
        }
        code => i64::from(code),
    };
    let of = Some(Ipv6Addr::from(group)).filter(|group| !group.is_unspecified());
    Ok(Query { of: of.map(Into::into), within: Duration::from_millis(millis) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Mac, open};
    use crate::ipv6::ALL_NODES;

    const OWN: Station = Station { mac: [2, 0, 0, 0, 0, 2], tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const LINK: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);

    fn asked(
        way: &Way,
        has_alert: bool,
        kind: u8,
        code: u16,
        of: Ipv6Addr,
        more: &[u8],
    ) -> Result<Query, Refused> {
        let [a, b] = code.to_be_bytes();
        let body = [&[a, b, 0, 0][..], &of.octets(), more].concat();
        let frame = frame(&OWN, way, &Message { kind, code: 0, has_alert, body: &body }).unwrap();
        let packet = Packet::read(open(frame.bytes(), &OWN)?.content)?;
        read(&packet, &packet.message()?)
    }

    const WAY: Way = Way { from: LINK, to: ALL_NODES, station: THEIRS, hops: 1 };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let report = report(&OWN, LINK, GROUP).unwrap();
        let bytes = report.bytes();
        assert_eq!(&bytes[..14], &[0x33, 0x33, 0xef, 0xff, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd]);
        // 32 bytes, options for each router, past none.
        assert_eq!(&bytes[14..22], &[0x60, 0, 0, 0, 0, 32, 0, 1]);
        assert_eq!((&bytes[22..38], &bytes[38..54]), (&LINK.octets()[..], &GROUP.octets()[..]));
        assert_eq!(&bytes[54..62], &[58, 0, 5, 2, 0, 0, 1, 0]);
        assert_eq!((&bytes[62..64], &bytes[66..70]), (&[131, 0][..], &[0; 4][..]));
        assert_eq!((&bytes[70..], bytes.len()), (&GROUP.octets()[..], 86));
        let packet = Packet::read(&bytes[14..]).unwrap();
        assert_eq!(read(&packet, &packet.message().unwrap()), Err(Refused::NotOurs), "what another says");
    }

    #[test]
    fn questions_are_read() {
        let nobody = Ipv6Addr::UNSPECIFIED;
        let within = |code, more: &[u8]| asked(&WAY, true, QUERY, code, nobody, more).unwrap().within;
        assert_eq!(within(10_000, &[]), Duration::from_secs(10));
        assert_eq!(within(0, &[]), Duration::ZERO, "at once");
        assert_eq!(within(0x9001, &[]), Duration::from_millis(0x9001), "version 1 has a number");
        assert_eq!(within(0x9001, &[0; 4]), Duration::from_millis(0x1001 << 4), "version 2 doubles");
        assert_eq!(asked(&WAY, true, QUERY, 1, nobody, &[]).unwrap().of, None);
        assert_eq!(asked(&WAY, true, QUERY, 1, GROUP, &[]).unwrap().of, Some(GROUP.into()));
    }

    #[test]
    fn only_who_is_near_is_answered() {
        let global = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
        for (way, has_alert, kind) in [
            (Way { hops: 255, ..WAY }, true, QUERY),
            (Way { from: global, ..WAY }, true, QUERY),
            (Way { from: Ipv6Addr::UNSPECIFIED, ..WAY }, true, QUERY),
            (WAY, false, QUERY),
            (WAY, true, 132),
        ] {
            assert_eq!(asked(&way, has_alert, kind, 1, GROUP, &[]), Err(Refused::NotOurs));
        }
        let short = Message { kind: QUERY, code: 0, has_alert: true, body: &[0; LEN - 1] };
        let frame = frame(&OWN, &WAY, &short).unwrap();
        let packet = Packet::read(&frame.bytes()[14..]).unwrap();
        assert_eq!(read(&packet, &packet.message().unwrap()), Err(Refused::Malformed));
    }
}
