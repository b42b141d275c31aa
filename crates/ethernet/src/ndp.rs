//! Which station has an address of IPv6: the messages that ask for it and say so. RFC 4861 §4.3, §4.4, §7.

use std::net::Ipv6Addr;

use crate::header::{Mac, Station, group};
use crate::ipv6::{ALL_NODES, Message, Packet, Way, frame, solicited_node};
use crate::layer::Refused;
use crate::short::ShortFrame;

pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;

/// What only those send who are on this network: a router takes one away (§7.1).
const HOPS: u8 = 255;
/// Four bytes of flags, the address, and an option with a station.
const LEN: usize = 28;
const OPTION: usize = 8;
/// The options that say which station the sender has, and the target.
const SOURCE: u8 = 1;
const TARGET: u8 = 2;
const SOLICITED: u8 = 0x40;
/// What others have is not true any more.
const OVERRIDE: u8 = 0x20;

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    /// A question; else it says who the target is.
    pub is_question: bool,
    /// It says so as it was asked.
    pub is_solicited: bool,
    pub target: Ipv6Addr,
    /// The station of a question's sender, or of the target, if it is told.
    pub mac: Option<Mac>,
}

impl Neighbour {
    /// Reads one, whose checksum is right. §7.1.1, §7.1.2.
    ///
    /// *Errors*: `NotOurs` for what has come from another network, and for other messages.
    pub fn read(packet: &Packet<'_>, message: &Message<'_>) -> Result<Neighbour, Refused> {
        let is_question = message.kind == SOLICITATION;
        if packet.hops != HOPS || !is_question && message.kind != ADVERTISEMENT {
            return Err(Refused::NotOurs);
        }
        let ([flags, _, _, _], rest) = message.body.split_first_chunk::<4>().ok_or(Refused::Malformed)?;
        let (target, options) = rest.split_first_chunk::<16>().ok_or(Refused::Malformed)?;
        let mac = station_of(options, if is_question { SOURCE } else { TARGET })?;
        let (target, is_solicited) = (Ipv6Addr::from(*target), !is_question && flags & SOLICITED != 0);
        let is_of_nobody = packet.from.is_unspecified();
        let is_wrong = match is_question {
            // Who has no address yet asks the target's group, and can be told by the group of all only.
            true => is_of_nobody && (packet.to != solicited_node(target) || mac.is_some()),
            false => is_of_nobody || is_solicited && packet.to.is_multicast(),
        };
        if message.code != 0 || target.is_multicast() || is_wrong {
            return Err(Refused::Malformed);
        }
        Ok(Neighbour { is_question, is_solicited, target, mac })
    }
}

/// The station in the first option of this kind. One that is no single station is malformed: what is sent to it would go
/// to many. Each option is of eight bytes or more, so this ends.
fn station_of(mut options: &[u8], kind: u8) -> Result<Option<Mac>, Refused> {
    let mut found = None;
    while let [of, units, ..] = *options {
        let (option, rest) = options
            .split_at_checked(OPTION * usize::from(units))
            .filter(|_| units > 0)
            .ok_or(Refused::Malformed)?;
        if of == kind && found.is_none() {
            let [_, _, a, b, c, d, e, f, ..] = *option else { return Err(Refused::Malformed) };
            let mac = [a, b, c, d, e, f];
            found = Some(mac).filter(|_| a & 1 == 0 && mac != [0; 6]);
            if found.is_none() {
                return Err(Refused::Malformed);
            }
        }
        options = rest;
    }
    // One byte is no option.
    if options.is_empty() { Ok(found) } else { Err(Refused::Malformed) }
}

/// The frame that asks for the station of an address: that one alone, or all. Without an address of the sender it asks
/// whether somebody has it (RFC 4862 §5.4.2).
pub(crate) fn question(
    own: &Station,
    from: Ipv6Addr,
    target: Ipv6Addr,
    mac: Option<Mac>,
) -> Option<ShortFrame> {
    let all = solicited_node(target);
    let (to, station) = mac.map_or((all, group(all.into())), |mac| (target, mac));
    let body = body(0, target, SOURCE, own.mac);
    // Who has no address has no station to be kept by it (§4.3).
    let len = if from.is_unspecified() { LEN - OPTION } else { LEN };
    let body = body.get(..len)?;
    let message = Message { kind: SOLICITATION, code: 0, has_alert: false, body };
    frame(own, &Way { from, to, station, hops: HOPS }, &message)
}

/// The frame that says that an address is ours: to whom has asked, or to all.
pub(crate) fn answer(own: &Station, address: Ipv6Addr, to: Option<(Ipv6Addr, Mac)>) -> Option<ShortFrame> {
    let flags = if to.is_some() { SOLICITED | OVERRIDE } else { OVERRIDE };
    let (to, station) = to.unwrap_or((ALL_NODES, group(ALL_NODES.into())));
    let body = body(flags, address, TARGET, own.mac);
    let message = Message { kind: ADVERTISEMENT, code: 0, has_alert: false, body: &body };
    frame(own, &Way { from: address, to, station, hops: HOPS }, &message)
}

fn body(flags: u8, target: Ipv6Addr, option: u8, mac: Mac) -> [u8; LEN] {
    let mut body = [0; LEN];
    let bytes = [flags, 0, 0, 0].into_iter().chain(target.octets()).chain([option, 1]).chain(mac);
    body.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::open;

    const OWN: Station = Station { mac: [2, 0, 0, 0, 0, 2], tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const A: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn read(frame: &[u8]) -> Result<Neighbour, Refused> {
        let packet = Packet::read(open(frame, &OWN)?.content)?;
        Neighbour::read(&packet, &packet.message()?)
    }

    /// What is read of a message that was changed, with the checksum that it has then.
    fn changed(
        frame: &ShortFrame,
        change: impl FnOnce(&mut Way, &mut u8, &mut Vec<u8>),
    ) -> Result<Neighbour, Refused> {
        let packet = Packet::read(open(frame.bytes(), &OWN)?.content)?;
        let message = packet.message()?;
        let (mut body, mut code) = (message.body.to_vec(), message.code);
        let mut way = Way { from: packet.from, to: packet.to, station: THEIRS, hops: packet.hops };
        change(&mut way, &mut code, &mut body);
        read(super::frame(&OWN, &way, &Message { code, body: &body, ..message }).unwrap().bytes())
    }

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let asked = question(&OWN, B, A, None).unwrap();
        let bytes = asked.bytes();
        assert_eq!(&bytes[..14], &[0x33, 0x33, 0xff, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd]);
        assert_eq!(&bytes[18..22], &[0, 32, 58, 255]);
        assert_eq!(&bytes[38..54], &solicited_node(A).octets());
        assert_eq!((&bytes[54..56], &bytes[58..62]), (&[135, 0][..], &[0; 4][..]));
        assert_eq!((&bytes[62..78], &bytes[78..]), (&A.octets()[..], &[1, 1, 2, 0, 0, 0, 0, 2][..]));
        let alone = question(&OWN, B, A, Some(THEIRS)).unwrap();
        assert_eq!((&alone.bytes()[..6], &alone.bytes()[38..54]), (&THEIRS[..], &A.octets()[..]));
        let to_one = answer(&OWN, B, Some((A, THEIRS))).unwrap();
        assert_eq!((&to_one.bytes()[54..56], &to_one.bytes()[58..62]), (&[136, 0][..], &[0x60, 0, 0, 0][..]));
        assert_eq!(to_one.bytes()[78..], [2, 1, 2, 0, 0, 0, 0, 2]);
        let to_all = answer(&OWN, B, None).unwrap();
        assert_eq!((&to_all.bytes()[..6], to_all.bytes()[58]), (&[0x33, 0x33, 0, 0, 0, 1][..], 0x20));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mac = Some(OWN.mac);
        let asked = Neighbour { is_question: true, is_solicited: false, target: A, mac };
        for to in [None, Some(THEIRS)] {
            assert_eq!(read(question(&OWN, B, A, to).unwrap().bytes()), Ok(asked));
        }
        let of_nobody = question(&OWN, Ipv6Addr::UNSPECIFIED, A, None).unwrap();
        assert_eq!(read(of_nobody.bytes()), Ok(Neighbour { mac: None, ..asked }));
        for (to, is_solicited) in [(None, false), (Some((A, THEIRS)), true)] {
            let said = Neighbour { is_question: false, is_solicited, target: B, mac };
            assert_eq!(read(answer(&OWN, B, to).unwrap().bytes()), Ok(said));
        }
    }

    #[test]
    fn what_the_rfc_has_dropped_is_dropped() {
        let asked = question(&OWN, B, A, None).unwrap();
        let (to_one, to_all) = (answer(&OWN, B, Some((A, THEIRS))).unwrap(), answer(&OWN, B, None).unwrap());
        for message in [&asked, &to_one, &to_all] {
            for hops in [0, 1, 64, 254] {
                assert_eq!(
                    changed(message, |way, _, _| way.hops = hops),
                    Err(Refused::NotOurs),
                    "a router's"
                );
            }
            assert_eq!(changed(message, |_, code, _| *code = 1), Err(Refused::Malformed));
            for len in 0..20 {
                assert_eq!(
                    changed(message, |_, _, body| body.truncate(len)),
                    Err(Refused::Malformed),
                    "{len}"
                );
            }
            for len in 21..28 {
                assert_eq!(
                    changed(message, |_, _, body| body.truncate(len)),
                    Err(Refused::Malformed),
                    "{len}"
                );
            }
            assert_eq!(changed(message, |_, _, body| body.truncate(20)).map(|said| said.mac), Ok(None));
            // An option of no length, which would never end, or of too much.
            for units in [0, 2, 255] {
                assert_eq!(
                    changed(message, |_, _, body| body[21] = units),
                    Err(Refused::Malformed),
                    "{units}"
                );
            }
            let none = changed(message, |_, _, body| body.extend([14, 0, 0, 0, 0, 0, 0, 0]));
            assert_eq!(none, Err(Refused::Malformed), "behind one that is right");
            // A group, and nobody.
            assert_eq!(changed(message, |_, _, body| body[22] = 3), Err(Refused::Malformed));
            assert_eq!(changed(message, |_, _, body| body[22..].fill(0)), Err(Refused::Malformed));
            let group = changed(message, |_, _, body| body[4..20].copy_from_slice(&ALL_NODES.octets()));
            assert_eq!(group, Err(Refused::Malformed));
            // Other options are passed over.
            let other = changed(message, |_, _, body| {
                let mac = body.split_off(20);
                body.extend([14, 1, 3, 3, 3, 3, 3, 3]);
                body.extend(mac);
            });
            assert_eq!(other.map(|said| said.mac), Ok(Some(OWN.mac)));
        }
        // Who has no address asks a group, without a station, and tells nobody anything.
        let nobody = Ipv6Addr::UNSPECIFIED;
        assert_eq!(changed(&asked, |way, _, _| way.from = nobody), Err(Refused::Malformed));
        let to_host = changed(&asked, |way, _, body| {
            (way.from, way.to) = (nobody, A);
            body.truncate(20);
        });
        assert_eq!(to_host, Err(Refused::Malformed));
        assert_eq!(changed(&to_one, |way, _, _| way.from = nobody), Err(Refused::Malformed));
        // Nobody has asked for what is said to all.
        assert_eq!(changed(&to_one, |way, _, _| way.to = ALL_NODES), Err(Refused::Malformed));
    }
}
