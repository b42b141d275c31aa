//! Which station has an address of IPv4: the messages that ask for it and say so. RFC 826, RFC 5227.

use std::net::Ipv4Addr;

use crate::header::{Header, Mac, Station};
use crate::layer::Refused;

pub(crate) const TYPE: [u8; 2] = [0x08, 0x06];
/// All stations.
pub(crate) const BROADCAST: Mac = [0xff; 6];

const LEN: usize = 28;
/// Addresses of Ethernet, of 6 bytes, for addresses of IPv4, of 4.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// A message. The station of a request's target is not known, and not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arp {
    pub is_request: bool,
    pub sender: Ipv4Addr,
    pub sender_mac: Mac,
    pub target: Ipv4Addr,
    pub target_mac: Mac,
}

impl Arp {
    /// Reads one. A sender that is no single station is malformed: what is sent to it would go to many.
    pub fn read(content: &[u8]) -> Result<Arp, Refused> {
        let bytes = content.first_chunk::<LEN>().ok_or(Refused::Malformed)?;
        let [k0, k1, k2, k3, k4, k5, 0, operation @ (REQUEST | REPLY), rest @ ..] = *bytes else {
            return Err(Refused::Malformed);
        };
        let [a, b, c, d, e, f, s0, s1, s2, s3, g, h, i, j, k, l, t0, t1, t2, t3] = rest;
        let message = Arp {
            is_request: operation == REQUEST,
            sender: Ipv4Addr::new(s0, s1, s2, s3),
            sender_mac: [a, b, c, d, e, f],
            target: Ipv4Addr::new(t0, t1, t2, t3),
            target_mac: [g, h, i, j, k, l],
        };
        let is_one = a & 1 == 0 && message.sender_mac != [0; 6];
        ([k0, k1, k2, k3, k4, k5] == KINDS && is_one).then_some(message).ok_or(Refused::Malformed)
    }

    /// The frame that says so to a station.
    pub fn frame(&self, own: &Station, to: Mac) -> Header {
        let mut header = Header::new(own, to, TYPE);
        header.put(&KINDS);
        header.put(&[0, if self.is_request { REQUEST } else { REPLY }]);
        header.put(&self.sender_mac);
        header.put(&self.sender.octets());
        header.put(&self.target_mac);
        header.put(&self.target.octets());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::open;

    const OURS: Mac = [2, 0, 0, 0, 0, 1];
    const OWN: Station = Station { mac: OURS, tag: None };

    fn question() -> Arp {
        Arp {
            is_request: true,
            sender: Ipv4Addr::new(10, 0, 0, 1),
            sender_mac: OURS,
            target: Ipv4Addr::new(10, 0, 0, 2),
            target_mac: [0; 6],
        }
    }

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let header = question().frame(&OWN, BROADCAST);
        let expected = [
            &[0xff; 6][..],
            &OURS,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &OURS,
            &[10, 0, 0, 1],
            &[0; 6],
            &[10, 0, 0, 2],
        ];
        assert_eq!(header.bytes(), expected.concat());
        let answer = Arp { is_request: false, ..question() }.frame(&OWN, OURS);
        assert_eq!(answer.bytes()[20..22], [0, 2]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for is_request in [true, false] {
            let message = Arp { is_request, ..question() };
            let header = message.frame(&OWN, BROADCAST);
            let padded = [header.bytes(), &[0; 18]].concat();
            assert_eq!(Arp::read(open(&padded, &OWN).unwrap().content), Ok(message));
        }
    }

    #[test]
    fn what_is_no_message_is_malformed() {
        let whole = question().frame(&OWN, BROADCAST);
        let whole = &whole.bytes()[14..];
        for len in 0..whole.len() {
            assert_eq!(Arp::read(&whole[..len]), Err(Refused::Malformed), "{len} bytes");
        }
        // Another network, another protocol, other lengths, no operation, a group or nobody as the sender.
        let changes: [&[(usize, u8)]; 10] = [
            &[(0, 1)],
            &[(1, 6)],
            &[(2, 0x86)],
            &[(4, 8)],
            &[(5, 16)],
            &[(6, 1)],
            &[(7, 0)],
            &[(7, 3)],
            &[(8, 3)],
            &[(8, 0), (13, 0)],
        ];
        for change in changes {
            let mut wrong = whole.to_vec();
            change.iter().for_each(|(at, byte)| wrong[*at] = *byte);
            assert_eq!(Arp::read(&wrong), Err(Refused::Malformed), "{change:?}");
        }
    }
}
