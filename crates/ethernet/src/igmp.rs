//! Which groups a host is in, so that switches that look pass their frames on: reports, and the questions they answer.
//! RFC 2236; questions of RFC 3376 are understood, and who asks so understands these reports (§7.2.1 there).

use std::net::{IpAddr, Ipv4Addr};

use taut_base::Duration;

use crate::checksum::Sum;
use crate::header::{Header, Station, group};
use crate::layer::Refused;
use crate::udp;

pub(crate) const PROTOCOL: u8 = 2;
/// Whom questions about all groups go to.
pub(crate) const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

const QUERY: u8 = 0x11;
const REPORT: u8 = 0x16;
const LEN: usize = 8;
/// The header of IP with the option that has routers look (RFC 2113).
const HEADER: usize = 24;
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// No message leaves its network.
const HOPS: u8 = 1;
/// How long there is to answer a question that does not say (RFC 2236 §4).
const USUAL: Duration = Duration::from_secs(10);

/// A question which of some groups somebody is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Query {
    /// The group; `None`: all.
    pub of: Option<IpAddr>,
    /// How long there is to answer.
    pub within: Duration,
}

/// The frame that says that we are in a group.
pub(crate) fn report(own: &Station, from: Ipv4Addr, of: Ipv4Addr) -> Header {
    let mut header = Header::new(own, group(of.into()), udp::TYPE_IPV4);
    let start = header.bytes().len();
    header.put(&[0x46, 0xc0, 0, (HEADER + LEN) as u8, 0, 0, 0x40, 0, HOPS, PROTOCOL, 0, 0]);
    header.put(&from.octets());
    header.put(&of.octets());
    header.put(&ROUTER_ALERT);
    let sum = Sum::default().and(header.bytes().get(start..).unwrap_or_default());
    header.set(start + 10, sum.complement());
    let start = header.bytes().len();
    header.put(&[REPORT, 0, 0, 0]);
    header.put(&of.octets());
    let sum = Sum::default().and(header.bytes().get(start..).unwrap_or_default());
    header.set(start + 2, sum.complement());
    header
}

/// Reads a question out of what IP carries.
///
/// *Errors*: `NotOurs` for messages of others that are no question.
pub(crate) fn read(message: &[u8]) -> Result<Query, Refused> {
    let [kind, code, _, _, group @ ..] = *message.first_chunk::<LEN>().ok_or(Refused::Malformed)?;
    if !Sum::default().and(message).is_right() {
        return Err(Refused::Damaged);
    }
    if kind != QUERY {
        return Err(Refused::NotOurs);
    }
    let tenths = match code {
        0 => None,
        // RFC 3376 §4.1.1: four bits of a number and three of how often it is doubled, in longer questions.
        128.. if message.len() > LEN => Some(i64::from(code & 0xf | 0x10) << ((code >> 4 & 7) + 3)),
        _ => Some(i64::from(code)),
    };
    let of = Some(Ipv4Addr::from(group)).filter(|group| !group.is_unspecified());
    Ok(Query {
        of: of.map(Into::into),
        within: tenths.map_or(USUAL, |tenths| Duration::from_millis(100 * tenths)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

    fn question(code: u8, group: [u8; 4], more: &[u8]) -> Vec<u8> {
        let mut message = [&[QUERY, code, 0, 0][..], &group, more].concat();
        let sum = Sum::default().and(&message).complement();
        message[2..4].copy_from_slice(&sum);
        message
    }

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let header = report(&Station { mac: [2, 0, 0, 0, 0, 1], tag: None }, OURS, GROUP);
        let expected = [
            &[0x01, 0x00, 0x5e, 0x7f, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0][..],
            // 24 bytes of header, of 32; TTL 1; the option of RFC 2113.
            &[0x46, 0xc0, 0, 32, 0, 0, 0x40, 0, 1, 2, 0xea, 0x15, 10, 0, 0, 2, 239, 255, 0, 1, 0x94, 4, 0, 0],
            &[0x16, 0, 0xf9, 0xfe, 239, 255, 0, 1],
        ];
        assert_eq!(header.bytes(), expected.concat());
        assert!(Sum::default().and(&header.bytes()[14..38]).is_right());
        assert!(Sum::default().and(&header.bytes()[38..]).is_right());
    }

    #[test]
    fn questions_are_read() {
        let within = |code, more: &[u8]| read(&question(code, [0; 4], more)).unwrap().within;
        assert_eq!(within(100, &[]), Duration::from_secs(10));
        assert_eq!(within(0, &[]), Duration::from_secs(10), "version 1 does not say");
        assert_eq!(within(0xff, &[]), Duration::from_millis(25_500), "version 2 has a number");
        assert_eq!(within(0x9a, &[0; 4]), Duration::from_millis((26 << 4) * 100), "version 3 doubles");
        assert_eq!(read(&question(1, [0; 4], &[])).unwrap().of, None);
        assert_eq!(read(&question(1, GROUP.octets(), &[])).unwrap().of, Some(GROUP.into()));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        let whole = question(100, GROUP.octets(), &[]);
        (0..LEN).for_each(|len| assert_eq!(read(&whole[..len]), Err(Refused::Malformed), "{len} bytes"));
        for bit in 0..whole.len() * 8 {
            let mut wrong = whole.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&wrong), Err(Refused::Damaged), "bit {bit}");
        }
        let report = report(&Station { mac: [2; 6], tag: None }, OURS, GROUP);
        assert_eq!(read(&report.bytes()[38..]), Err(Refused::NotOurs), "what another says");
    }
}
