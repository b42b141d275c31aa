//! What is heard and said at an address of IPv6: neighbour discovery, MLD, and answers to `ping`. RFC 4861, RFC 2710,
//! RFC 4443.
//!
//! All of it is messages of ICMPv6. Redirects and what routers say are not heard: whom to ask is a setting.

use std::net::{IpAddr, Ipv6Addr};

use super::OwnIp;
use crate::header::{Mac, Opened};
use crate::ipv6::{self, ALL_NODES, Message, Packet};
use crate::layer::Refused;
use crate::ndp::{self, Neighbour};
use crate::{mld, udp};

impl OwnIp {
    /// What is no datagram.
    pub(super) fn hear_v6(&mut self, own: Ipv6Addr, opened: &Opened<'_>) -> Result<(), Refused> {
        if opened.kind != udp::TYPE_IPV6 {
            return Err(Refused::NotOurs);
        }
        let packet = Packet::read(opened.content)?;
        let to = IpAddr::V6(packet.to);
        let is_for_us = packet.to == own || packet.to == ALL_NODES || self.groups.contains(&to);
        if !is_for_us || !self.is_way(to, opened.to) {
            return Err(Refused::NotOurs);
        }
        let message = packet.message()?;
        match message.kind {
            ndp::SOLICITATION | ndp::ADVERTISEMENT => {
                let said = Neighbour::read(&packet, &message)?;
                self.hear_neighbour(own, opened.from, &packet, &said)
            }
            mld::QUERY => self.hear_query(&mld::read(&packet, &message)?, to, ALL_NODES.into()),
            _ if packet.to == own => self.hear_echo_v6(opened, &packet, &message),
            _ => Err(Refused::NotOurs),
        }
    }

    fn hear_neighbour(
        &mut self,
        own: Ipv6Addr,
        station: Mac,
        packet: &Packet<'_>,
        said: &Neighbour,
    ) -> Result<(), Refused> {
        let (from, target) = (IpAddr::V6(packet.from), IpAddr::V6(said.target));
        if packet.from == own || !said.is_question && said.target == own {
            return Err(self.dispute(said.mac.unwrap_or(station)));
        }
        // Who only looks whether an address is free has none yet: all are told, and it is not known.
        if packet.from.is_unspecified() && said.target == own {
            self.waiting.put_message(ndp::answer(&self.station, own, None));
            return Ok(());
        }
        if !self.is_plausible(from) {
            return Err(Refused::Malformed);
        }
        if !said.is_question {
            // Who says nothing of a station may be still there, and is not found by that (RFC 4861 §7.2.5).
            let silent = Some(station).filter(|_| self.hops.is_known(target));
            let mac = said.mac.or(silent).ok_or(Refused::NotOurs)?;
            if said.is_solicited && self.hops.answered(target, mac) {
                return Ok(());
            }
            self.hops.doubted(target, mac);
            return Err(Refused::NotOurs);
        }
        if said.target != own {
            said.mac.into_iter().for_each(|mac| self.hops.doubted(from, mac));
            return Err(Refused::NotOurs);
        }
        if let Some(mac) = said.mac.filter(|_| self.own.is_neighbour(from)) {
            self.hops.heard(from, mac);
        }
        let to = (packet.from, said.mac.unwrap_or(station));
        self.waiting.put_message(ndp::answer(&self.station, own, Some(to)));
        Ok(())
    }

    /// Answers `ping`. RFC 4443 §4.2.
    fn hear_echo_v6(
        &mut self,
        opened: &Opened<'_>,
        packet: &Packet<'_>,
        message: &Message<'_>,
    ) -> Result<(), Refused> {
        if !self.is_plausible(packet.from.into()) {
            return Err(Refused::NotOurs);
        }
        let answer = ipv6::echo(&self.station, opened.from, packet, message)?;
        self.waiting.put_echo(answer.bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Station, group, open};
    use crate::ipv6::{Way, frame, solicited_node};
    use crate::layer::{Datagram, FrameEnds, NoRoute};
    use crate::own::address::OwnAddress;
    use crate::own::waiting::{WAITING, WAITING_ECHOES};
    use crate::short::{LONGEST, ShortFrame};
    use taut_base::{Duration, Locator, Time};
    use taut_port::Traffic;

    const OURS: Mac = [2, 0, 0, 0, 0, 2];
    const STATION: Station = Station { mac: OURS, tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const OTHER: Mac = [2, 0, 0, 0, 0, 9];
    const PEER_STATION: Station = Station { mac: THEIRS, tag: None };
    const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const PEER_LINK: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);

    fn end(address: Ipv6Addr, port: u16) -> Locator {
        std::net::SocketAddr::from((address, port)).into()
    }

    fn layer() -> OwnIp {
        let ends = FrameEnds {
            user: vec![end(OWN, 7_411), end(GROUP, 7_401)],
            metatraffic: vec![end(OWN, 7_410), end(GROUP, 7_400)],
        };
        let gateway = Some(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xfe).into());
        let own = OwnAddress { address: OWN.into(), prefix_len: 64, gateway };
        let mut layer = OwnIp::new(OURS, own, ends, Vec::new());
        layer.set_linked();
        layer
    }

    fn said(layer: &mut OwnIp) -> Vec<Vec<u8>> {
        let mut frame = [0; LONGEST];
        std::iter::from_fn(|| layer.say(&mut frame).map(|len| frame[..len].to_vec())).collect()
    }

    /// Has the layer hear a frame that is no datagram.
    fn tell(layer: &mut OwnIp, frame: &[u8]) -> Refused {
        layer.read(&open(frame, &STATION).unwrap()).unwrap_err()
    }

    fn hear(layer: &mut OwnIp, frame: Option<ShortFrame>) -> Refused {
        tell(layer, frame.unwrap().bytes())
    }

    /// What the peer sends there.
    fn datagram(station: Mac, to: Ipv6Addr, port: u16) -> Vec<u8> {
        let ends = ((PEER, 7_411).into(), (to, port).into());
        let mut frame = vec![0; 200];
        let len = udp::write(&mut frame, &PEER_STATION, station, ends, 0, &[b"RTPS and more"]).unwrap();
        frame.truncate(len);
        frame
    }

    /// The same datagram in parts of so many bytes, as the kernel sends it, with this number.
    fn parts(number: u8, len: usize) -> Vec<Vec<u8>> {
        let whole = datagram(OURS, OWN, 7_411);
        let content = &whole[54..];
        let part = |at: usize| {
            let bytes = &content[at..content.len().min(at + len)];
            let more = u8::from(at + len < content.len());
            let header = [udp::PROTOCOL, 0, 0, at as u8 | more, 0, 0, 0, number];
            let payload_len = (8 + bytes.len()) as u8;
            [&whole[..18], &[0, payload_len, 44, 64], &whole[22..54], &header, bytes].concat()
        };
        (0..content.len()).step_by(len).map(part).collect()
    }

    fn pass(layer: &mut OwnIp, millis: i64) {
        layer.on_timeout(Time(0) + Duration::from_millis(millis));
    }

    /// One that has said who it is.
    fn announced() -> OwnIp {
        let mut layer = layer();
        (1..=2).for_each(|at| pass(&mut layer, at * 2_000));
        said(&mut layer);
        layer
    }

    /// The stations that a datagram to a host goes to.
    fn station(layer: &mut OwnIp, to: Ipv6Addr) -> Result<Mac, NoRoute> {
        layer.route(&end(to, 7_411)).map(|(_, station, _)| station)
    }

    #[test]
    fn what_comes_is_for_samples_or_discovery() {
        let mut layer = layer();
        let all = group(GROUP.into());
        for (station, to, port, traffic) in [
            (OURS, OWN, 7_411, Traffic::User),
            (all, GROUP, 7_401, Traffic::User),
            (OURS, OWN, 7_410, Traffic::Meta),
            (all, GROUP, 7_400, Traffic::MetaMulticast),
        ] {
            let frame = datagram(station, to, port);
            let expected = Datagram { from: end(PEER, 7_411), traffic, payload: b"RTPS and more" };
            assert_eq!(layer.read(&open(&frame, &STATION).unwrap()), Ok(expected), "[{to}]:{port}");
        }
        for (station, to, port) in
            [(all, OWN, 7_411), (OURS, GROUP, 7_400), (OURS, OWN, 7_412), (OURS, PEER, 7_411)]
        {
            assert_eq!(tell(&mut layer, &datagram(station, to, port)), Refused::NotOurs, "[{to}]:{port}");
        }
    }

    #[test]
    fn datagrams_come_in_parts() {
        let mut layer = layer();
        for (number, len) in [(1, 8), (2, 16), (3, 24)] {
            let mut parts = parts(number, len);
            let last = parts.pop().unwrap();
            // From the last one on, as they may come.
            for part in parts.iter().rev() {
                assert_eq!(tell(&mut layer, part), Refused::Part);
            }
            let datagram = layer.read(&open(&last, &STATION).unwrap());
            let payload = datagram.map(|datagram| (datagram.from, datagram.payload.to_vec()));
            assert_eq!(payload, Ok((end(PEER, 7_411), b"RTPS and more".to_vec())), "{len} bytes each");
        }
        // One that is all that there is does not wait for others of its number, nor do these for it.
        let [first, second] = &parts(4, 16)[..] else { panic!("two") };
        let all = &parts(4, 64)[0];
        assert_eq!(tell(&mut layer, first), Refused::Part);
        assert!(layer.read(&open(all, &STATION).unwrap()).is_ok());
        assert!(layer.read(&open(second, &STATION).unwrap()).is_ok());
        let mut wrong = all.clone();
        wrong[70] ^= 1;
        assert_eq!(tell(&mut layer, &wrong), Refused::Damaged);
        let mut of_nobody = all.clone();
        of_nobody[22..38].fill(0);
        assert_eq!(tell(&mut layer, &of_nobody), Refused::Malformed);
    }

    #[test]
    fn who_we_are_and_our_groups_are_said() {
        let mut layer = layer();
        layer.is_linked = false;
        pass(&mut layer, 1);
        assert!(said(&mut layer).is_empty());
        layer.set_linked();
        for at in [100, 2_100] {
            pass(&mut layer, at);
            let of_link = ipv6::of_link(OURS);
            let expected = [
                ndp::question(&STATION, Ipv6Addr::UNSPECIFIED, OWN, None),
                ndp::answer(&STATION, OWN, None),
                mld::report(&STATION, of_link, solicited_node(OWN)),
                mld::report(&STATION, of_link, GROUP),
            ];
            let expected = expected.map(|frame| frame.unwrap().bytes().to_vec());
            assert_eq!(said(&mut layer), expected);
        }
        assert_eq!(layer.next_timeout(), Time::NEVER);
    }

    #[test]
    fn who_asks_for_us_is_answered_and_known() {
        let mut layer = announced();
        for (from, station) in [(PEER, None), (PEER_LINK, Some(OURS))] {
            let question = ndp::question(&PEER_STATION, from, OWN, station);
            assert_eq!(hear(&mut layer, question), Refused::Control);
            let answer = ndp::answer(&STATION, OWN, Some((from, THEIRS))).unwrap();
            assert_eq!(said(&mut layer), [answer.bytes()]);
        }
        assert_eq!(station(&mut layer, PEER), Ok(THEIRS));
        assert_eq!(station(&mut layer, PEER_LINK), Err(NoRoute::Elsewhere), "no network of ours");
        assert!(!layer.hops.is_known(PEER_LINK.into()));
        // Who only looks whether the address is free.
        let question = ndp::question(&PEER_STATION, Ipv6Addr::UNSPECIFIED, OWN, None);
        assert_eq!(hear(&mut layer, question), Refused::Control);
        assert_eq!(said(&mut layer), [ndp::answer(&STATION, OWN, None).unwrap().bytes()]);
        let of_another = ndp::question(&PEER_STATION, PEER, Ipv6Addr::new(0xfd00, 0, 0, 0, 1, 0, 0, 2), None);
        assert_eq!(hear(&mut layer, of_another), Refused::NotOurs);
        assert!(said(&mut layer).is_empty());
    }

    #[test]
    fn only_who_was_asked_is_believed() {
        let mut layer = announced();
        let say = |from: &Station| ndp::answer(from, PEER, Some((OWN, OURS)));
        assert_eq!(hear(&mut layer, say(&PEER_STATION)), Refused::NotOurs, "nobody has asked");
        assert_eq!(station(&mut layer, PEER), Err(NoRoute::Unknown));
        pass(&mut layer, 5_000);
        assert_eq!(said(&mut layer), [ndp::question(&STATION, OWN, PEER, None).unwrap().bytes()]);
        assert_eq!(hear(&mut layer, ndp::answer(&PEER_STATION, PEER, None)), Refused::NotOurs, "said to all");
        let silent = |target: Ipv6Addr| {
            let body = [&[0x60, 0, 0, 0][..], &target.octets()].concat();
            let message = Message { kind: ndp::ADVERTISEMENT, code: 0, has_alert: false, body: &body };
            frame(&PEER_STATION, &Way { from: target, to: OWN, station: OURS, hops: 255 }, &message)
        };
        assert_eq!(hear(&mut layer, silent(PEER)), Refused::NotOurs, "without a station");
        assert_eq!(station(&mut layer, PEER), Err(NoRoute::Unknown));
        assert_eq!(hear(&mut layer, say(&PEER_STATION)), Refused::Control);
        assert_eq!(station(&mut layer, PEER), Ok(THEIRS));
        // It is known, asked by itself after a while, and stays if it answers so, whatever others say.
        pass(&mut layer, 5_000);
        let lies = [
            say(&Station { mac: OTHER, tag: None }),
            ndp::answer(&Station { mac: OTHER, tag: None }, PEER, None),
        ];
        for lie in lies {
            assert_eq!(hear(&mut layer, lie), Refused::NotOurs);
            assert_eq!(station(&mut layer, PEER), Ok(THEIRS));
        }
        pass(&mut layer, 6_000);
        assert_eq!(said(&mut layer), [ndp::question(&STATION, OWN, PEER, Some(THEIRS)).unwrap().bytes()]);
        assert_eq!(hear(&mut layer, silent(PEER)), Refused::Control, "it is still there");
        assert_eq!(station(&mut layer, PEER), Ok(THEIRS));
    }

    #[test]
    fn a_router_may_be_known_by_its_address_of_the_link() {
        let mut layer = announced();
        let (far, router) =
            (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xfe));
        assert_eq!(station(&mut layer, far), Err(NoRoute::Unknown));
        pass(&mut layer, 5_000);
        assert_eq!(said(&mut layer), [ndp::question(&STATION, OWN, router, None).unwrap().bytes()]);
        assert_eq!(hear(&mut layer, ndp::answer(&PEER_STATION, router, Some((OWN, OURS)))), Refused::Control);
        assert_eq!(station(&mut layer, far), Ok(THEIRS));
        let (from, all, to) = layer.route(&end(GROUP, 7_400)).unwrap();
        assert_eq!((from, all), ((OWN, 7_411).into(), [0x33, 0x33, 0xef, 0xff, 0, 1]));
        let mut frame = [0; 100];
        udp::write(&mut frame, &STATION, all, (from, to), 0, &[b"RTPS"]).unwrap();
        assert_eq!(frame[21], 1, "no router passes it on");
        assert_eq!(layer.route(&Locator::udp_v4([10, 0, 0, 1].into(), 7_411)), Err(NoRoute::Elsewhere));
    }

    #[test]
    fn an_address_is_defended_once_in_ten_seconds() {
        let mut layer = announced();
        let other = Station { mac: OTHER, tag: None };
        let say = |from: Ipv6Addr| {
            let body = [&[0; 4][..], &OWN.octets()].concat();
            let message = Message { kind: ndp::ADVERTISEMENT, code: 0, has_alert: false, body: &body };
            frame(&other, &Way { from, to: ALL_NODES, station: group(ALL_NODES.into()), hops: 255 }, &message)
        };
        let claims = [
            say(PEER),
            say(OWN),
            ndp::answer(&other, OWN, None),
            ndp::answer(&other, OWN, Some((OWN, OURS))),
            ndp::question(&other, OWN, OWN, None),
        ];
        for claim in claims {
            assert_eq!(hear(&mut layer, claim), Refused::Conflict);
        }
        let (mut defended, mut told) = (0, 0);
        for at in 1..=250 {
            assert_eq!(hear(&mut layer, ndp::answer(&other, OWN, None)), Refused::Conflict);
            pass(&mut layer, 5_000 + 100 * at);
            defended += said(&mut layer).len();
            told += layer.take_conflict().map_or(0, |mac| usize::from(mac == OTHER));
        }
        assert_eq!((defended, told), (3, 3), "in 25 seconds");
    }

    fn query(of: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
        let body = [&[0, 100, 0, 0][..], &of.octets()].concat();
        let message = Message { kind: mld::QUERY, code: 0, has_alert: true, body: &body };
        let way = Way { from: PEER_LINK, to, station: group(to.into()), hops: 1 };
        frame(&PEER_STATION, &way, &message).unwrap().bytes().to_vec()
    }

    #[test]
    fn groups_are_said_once_in_a_second_at_most() {
        let mut layer = announced();
        let mut reports = 0;
        for at in 1..=500 {
            assert_eq!(tell(&mut layer, &query(Ipv6Addr::UNSPECIFIED, ALL_NODES)), Refused::Control);
            assert_eq!(tell(&mut layer, &query(GROUP, GROUP)), Refused::Control);
            pass(&mut layer, 5_000 + 10 * at);
            reports += said(&mut layer).len();
        }
        assert_eq!(reports, 10, "of two groups in 5 seconds");
        let other = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 2);
        assert_eq!(tell(&mut layer, &query(other, other)), Refused::NotOurs);
        assert_eq!(tell(&mut layer, &query(other, GROUP)), Refused::NotOurs);
    }

    #[test]
    fn a_flood_of_echoes_leaves_room_for_other_answers() {
        let mut layer = announced();
        let ping = Message { kind: 128, code: 0, has_alert: false, body: &[0, 7, 0, 1] };
        let way = Way { from: PEER, to: OWN, station: OURS, hops: 64 };
        let ping = frame(&PEER_STATION, &way, &ping).unwrap();
        (0..1_000).for_each(|_| assert_eq!(tell(&mut layer, ping.bytes()), Refused::Control));
        assert_eq!(hear(&mut layer, ndp::question(&PEER_STATION, PEER, OWN, None)), Refused::Control);
        let said = said(&mut layer);
        assert_eq!((said.len(), layer.dropped()), (WAITING_ECHOES + 1, 1_000 - WAITING_ECHOES as u64));
        assert_eq!(said[WAITING_ECHOES], ndp::answer(&STATION, OWN, Some((PEER, THEIRS))).unwrap().bytes());
        // A group is not answered for, nor whom nobody is.
        for way in [
            Way { to: GROUP, station: group(GROUP.into()), ..way },
            Way { from: GROUP, ..way },
            Way { from: OWN, ..way },
        ] {
            let message = Message { kind: 128, code: 0, has_alert: false, body: &[0, 7, 0, 1] };
            assert_eq!(hear(&mut layer, frame(&PEER_STATION, &way, &message)), Refused::NotOurs);
        }
    }

    fn changed(frame: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        changes.iter().for_each(|(at, byte)| frame[*at] = *byte);
        frame
    }

    /// With headers between that of IPv6 and what it carries, the first of this kind.
    fn behind(frame: &[u8], kind: u8, headers: &[u8]) -> Vec<u8> {
        let len = (frame.len() - 54 + headers.len()) as u8;
        [&frame[..18], &[0, len, kind], &frame[21..54], headers, &frame[54..]].concat()
    }

    /// A message of ICMPv6 to us, or to all.
    fn icmp(kind: u8, hops: u8, from: Ipv6Addr, body: &[u8]) -> Vec<u8> {
        let way = Way { from, to: OWN, station: OURS, hops };
        let message = Message { kind, code: 0, has_alert: false, body };
        frame(&PEER_STATION, &way, &message).unwrap().bytes().to_vec()
    }

    #[test]
    fn each_frame_that_no_peer_sends_is_refused_for_its_reason() {
        let mut layer = announced();
        let good = datagram(OURS, OWN, 7_411);
        let of = |from: Ipv6Addr| {
            let ends = ((from, 7_411).into(), (OWN, 7_411).into());
            let mut frame = vec![0; 75];
            udp::write(&mut frame, &PEER_STATION, OURS, ends, 0, &[b"RTPS and more"]).unwrap();
            frame
        };
        let (first, second) = (parts(9, 16)[0].clone(), parts(9, 16)[1].clone());
        let mapped = std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped();
        let mut malformed = vec![
            // Other versions, lies of length, nobody.
            changed(&good, &[(14, 0x40)]),
            changed(&good, &[(14, 0x70)]),
            changed(&good, &[(18, 0xff)]),
            changed(&good, &[(19, 7)]),
            changed(&good, &[(58, 0xff)]),
            changed(&good, &[(58, 0), (59, 7)]),
            of(Ipv6Addr::UNSPECIFIED),
            of(Ipv6Addr::LOCALHOST),
            of(GROUP),
            of(OWN),
            of(mapped),
            // Fragments of nothing, of seven bytes, and past the longest datagram.
            changed(&first[..62], &[(19, 8)]),
            changed(&first[..69], &[(19, 15)]),
            changed(&first, &[(56, 0xff), (57, 0xf9)]),
            // Who asks from nowhere or to whom, and options that end too early or never.
            icmp(135, 255, Ipv6Addr::UNSPECIFIED, &[&[0; 4], &OWN.octets()[..]].concat()),
            icmp(135, 255, GROUP, &[&[0; 4], &OWN.octets()[..]].concat()),
            icmp(135, 255, PEER, &[&[0; 4], &GROUP.octets()[..]].concat()),
            icmp(135, 255, PEER, &[&[0; 4], &OWN.octets()[..], &[1, 0, 2, 0, 0, 0, 0, 1]].concat()),
            icmp(136, 255, PEER, &[0x60, 0, 0, 0]),
            icmp(128, 64, PEER, &[0, 7]),
            behind(&icmp(128, 64, PEER, &[0, 7, 0, 1]), 0, &[58, 9, 1, 4, 0, 0, 0, 0]),
        ];
        malformed.extend((14..14 + 48).map(|len| good[..len].to_vec()).filter(|frame| frame.len() > 20));
        let ipv4 = [&OURS[..], &THEIRS, &[8, 0, 0x45]].concat();
        let not_ours = vec![
            datagram(OURS, OWN, 7_412),
            datagram(OURS, PEER, 7_411),
            datagram(group(GROUP.into()), OWN, 7_411),
            datagram(OURS, GROUP, 7_400),
            datagram([0xff; 6], OWN, 7_411),
            datagram(OTHER, OWN, 7_411),
            changed(&good, &[(6, OURS[0]), (11, OURS[5])]),
            changed(&good, &[(6, 3)]),
            changed(&icmp(128, 64, PEER, &[0, 7, 0, 1]), &[(0, 0xff)]),
            changed(ndp::question(&PEER_STATION, PEER, OWN, None).unwrap().bytes(), &[(5, 3)]),
            ipv4,
            [&OURS[..], &THEIRS, &[8, 6], &[0; 28]].concat(),
            // Headers between, whatever they are: options, a route, options of the end, of IPsec, nothing, themselves.
            behind(&good, 0, &[17, 0, 1, 4, 0, 0, 0, 0]),
            behind(&good, 43, &[17, 0, 0, 0, 0, 0, 0, 0]),
            behind(&good, 60, &[17, 0, 1, 4, 0, 0, 0, 0]),
            behind(&good, 51, &[17, 4, 0, 0, 0, 0, 0, 0]),
            behind(&good, 59, &[]),
            behind(&good, 0, &[0, 0, 1, 4, 0, 0, 0, 0].repeat(12)),
            changed(&first, &[(54, 44)]),
            changed(&first, &[(54, 58)]),
            changed(&first, &[(54, 0)]),
            // From another network, of routers, of other groups, to all.
            icmp(135, 64, PEER, &[&[0; 4], &OWN.octets()[..]].concat()),
            icmp(134, 255, PEER_LINK, &[0; 12]),
            icmp(137, 255, PEER_LINK, &[0; 36]),
            icmp(1, 64, PEER, &[0; 48]),
            icmp(129, 64, PEER, &[0, 7, 0, 1]),
            icmp(130, 1, PEER, &[0; 20]),
            mld::report(&PEER_STATION, PEER_LINK, GROUP).unwrap().bytes().to_vec(),
            ndp::answer(&PEER_STATION, PEER, None).unwrap().bytes().to_vec(),
        ];
        let ping = icmp(128, 64, PEER, &[0, 7, 0, 1]);
        let damaged = vec![
            changed(&good, &[(60, 1), (61, 2)]),
            changed(&good, &[(60, 0), (61, 0)]),
            changed(&good, &[(70, 0)]),
            changed(&good, &[(37, 9)]),
            changed(&ping, &[(60, 1)]),
            changed(ndp::question(&PEER_STATION, PEER, OWN, None).unwrap().bytes(), &[(78, 2)]),
        ];
        for (frames, reason) in
            [(malformed, Refused::Malformed), (not_ours, Refused::NotOurs), (damaged, Refused::Damaged)]
        {
            for (number, frame) in frames.iter().enumerate() {
                assert_eq!(tell(&mut layer, frame), reason, "{number}: {frame:02x?}");
            }
        }
        assert!(said(&mut layer).is_empty(), "nothing is said to any of them");
        assert!(layer.read(&open(&good, &STATION).unwrap()).is_ok());
        assert_eq!(tell(&mut layer, &first), Refused::Part);
        assert!(layer.read(&open(&second, &STATION).unwrap()).is_ok());
    }

    /// Frames of all kinds, with bytes changed and ends cut off.
    #[test]
    fn no_frame_is_a_panic() {
        let mut seeds = vec![
            datagram(OURS, OWN, 7_411),
            datagram(group(GROUP.into()), GROUP, 7_400),
            query(Ipv6Addr::UNSPECIFIED, ALL_NODES),
            query(GROUP, GROUP),
        ];
        let messages = [
            ndp::question(&PEER_STATION, PEER, OWN, None),
            ndp::question(&PEER_STATION, Ipv6Addr::UNSPECIFIED, OWN, None),
            ndp::answer(&PEER_STATION, PEER, Some((OWN, OURS))),
            ndp::answer(&PEER_STATION, PEER, None),
            mld::report(&PEER_STATION, PEER_LINK, GROUP),
        ];
        seeds.extend(messages.map(|frame| frame.unwrap().bytes().to_vec()));
        seeds.extend(parts(7, 8));
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut layer = layer();
        for round in 0..200_000 {
            let mut frame = seeds[random(seeds.len())].clone();
            for _ in 0..random(4) {
                let at = random(frame.len());
                frame[at] = random(256) as u8;
            }
            frame.truncate(if random(3) == 0 { random(frame.len()) } else { frame.len() });
            // Half of them with the checksum of ICMPv6 that they have then.
            if random(2) == 0
                && let Ok(opened) = open(&frame, &STATION)
                && let Ok(packet) = Packet::read(opened.content)
                && packet.content.len() >= 4
            {
                let (way, content) = (
                    Way { from: packet.from, to: packet.to, station: opened.to, hops: packet.hops },
                    packet.content,
                );
                let message = Message {
                    kind: content[0],
                    code: content[1],
                    has_alert: packet.next == 0,
                    body: &content[4..],
                };
                if let Some(summed) = super::ipv6::frame(&PEER_STATION, &way, &message) {
                    frame = summed.bytes().to_vec();
                }
            }
            if let Ok(opened) = open(&frame, &STATION) {
                let _ = layer.read(&opened);
            }
            if round % 100 == 0 {
                pass(&mut layer, round);
                assert!(said(&mut layer).len() <= WAITING);
            }
        }
    }
}
