//! UDP over IPv4 at an address of our own, of which the kernel knows nothing: what it does for others is done here.
//!
//! That is who the next hop is and which station (ARP), that others find us (answers, an announcement), groups (IGMP),
//! and an answer to `ping`. Fragments are received and not sent, as RTPS has its own;
//! options are neither.
//!
//! Nothing here knows the time but [`OwnIp::on_timeout`], which says what is to be said then. What is said waits to be
//! asked for by [`OwnIp::say`].

mod address;
mod waiting;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use taut_base::{Duration, Locator, Time};

use crate::arp::{self, Arp};
use crate::fragments::Fragments;
use crate::header::{Header, Mac, Opened, Station, Tag};
use crate::hops::Hops;
use crate::ipv4::{self, Packet};
use crate::layer::{Datagram, FrameEnds, NoRoute, Refused};
use crate::{bare, igmp, udp};

pub use address::{OwnAddress, SocketNetwork};
use waiting::{LONGEST, Waiting};

/// How often we say unasked who we are and what groups we are in, and the time between (RFC 5227 §1.1, ANNOUNCE_NUM and
/// ANNOUNCE_INTERVAL; RFC 2236 §8.10 has the groups said again later: this long is enough for one frame to be lost).
const ANNOUNCEMENTS: u32 = 2;
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(2);
/// So often it is looked whether somebody is at the other end, who could hear it. Lower asks the device more often,
/// higher is found later.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Reports of groups are no closer.
const REPORT_AGAIN: Duration = Duration::from_secs(1);
/// So often our address is defended, and a conflict told (RFC 5227 §1.1, DEFEND_INTERVAL).
const DEFEND_AGAIN: Duration = Duration::from_secs(10);

/// The layer of an address of our own.
pub struct OwnIp {
    station: Station,
    own: OwnAddress,
    ends: FrameEnds,
    /// Where samples are sent from.
    from: SocketAddrV4,
    groups: Vec<Ipv4Addr>,
    /// What is the sockets'.
    sockets: Vec<SocketNetwork>,
    hops: Hops,
    fragments: Fragments,
    waiting: Waiting,
    /// Is there somebody at the other end?
    is_linked: bool,
    announcements: u32,
    announce_at: Time,
    reports: u32,
    report_at: Time,
    /// No report before.
    may_report: Time,
    /// Somebody asks for groups, and how long there is to answer.
    asked: Option<Duration>,
    /// Another station that has our address.
    conflict: Option<Mac>,
    defend_at: Time,
    /// The same, to be told to people.
    to_tell: Option<Mac>,
}

impl OwnIp {
    /// At this station, for a participant that is reached at these ends of `own`, and at groups.
    pub(crate) fn new(mac: Mac, own: OwnAddress, ends: FrameEnds, sockets: Vec<SocketNetwork>) -> OwnIp {
        let all = ends.user.iter().chain(&ends.metatraffic);
        let mut groups: Vec<Ipv4Addr> = all.filter_map(v4).map(|end| *end.ip()).collect();
        groups.retain(Ipv4Addr::is_multicast);
        groups.sort();
        groups.dedup();
        let ours = ends.user.iter().filter_map(v4).find(|end| *end.ip() == own.address);
        OwnIp {
            station: Station { mac, tag: None },
            own,
            from: ours.unwrap_or(SocketAddrV4::new(own.address, 0)),
            ends,
            groups,
            sockets,
            hops: Hops::new(),
            fragments: Fragments::default(),
            waiting: Waiting::new(),
            is_linked: false,
            announcements: ANNOUNCEMENTS,
            announce_at: Time(0),
            reports: ANNOUNCEMENTS,
            report_at: Time(0),
            may_report: Time(0),
            asked: None,
            conflict: None,
            defend_at: Time(0),
            to_tell: None,
        }
    }

    /// What is said from here on has this tag, as datagrams have.
    pub(crate) fn set_tag(&mut self, tag: Option<Tag>) {
        self.station.tag = tag;
    }

    /// Where the participant is reached.
    pub fn ends(&self) -> &FrameEnds {
        &self.ends
    }

    /// The address.
    pub fn address(&self) -> &OwnAddress {
        &self.own
    }

    /// These are the sockets' from now on.
    pub fn follow(&mut self, sockets: Vec<SocketNetwork>) {
        self.sockets = sockets;
    }

    /// From where, to which station, and to where.
    #[inline]
    pub(crate) fn route(&mut self, to: &Locator) -> Result<(SocketAddr, Mac, SocketAddr), NoRoute> {
        let to = v4(to).ok_or(NoRoute::Elsewhere)?;
        let station = match self.own.hop(*to.ip(), &self.sockets).ok_or(NoRoute::Elsewhere)? {
            group if group.is_multicast() => bare::group(group),
            hop => self.hops.station(hop).ok_or(NoRoute::Unknown)?,
        };
        Ok((self.from.into(), station, to.into()))
    }

    /// Would this go by the device, if the station is known?
    pub(crate) fn is_for_device(&self, to: &Locator) -> bool {
        v4(to).is_some_and(|to| self.own.hop(*to.ip(), &self.sockets).is_some())
    }

    /// Reads a frame, and hears what is said to us in it.
    #[inline]
    pub(crate) fn read<'a>(&'a mut self, opened: &Opened<'a>) -> Result<Datagram<'a>, Refused> {
        let is_of_one = opened.from[0] & 1 == 0;
        if opened.from == self.station.mac || !is_of_one {
            return Err(Refused::NotOurs);
        }
        if opened.kind != udp::TYPE_IPV4 || ipv4::protocol(opened.content) != Some(udp::PROTOCOL) {
            return Err(self.hear(opened));
        }
        if ipv4::is_fragment(opened.content) {
            return self.read_part(opened);
        }
        let datagram = udp::read(opened, |to| {
            self.ends.traffic(&to.into()).filter(|_| self.is_way(to.ip(), opened.to))
        })?;
        self.judge(datagram)
    }

    /// A part of a datagram: that, if it is whole now.
    #[cold]
    fn read_part<'a>(&'a mut self, opened: &Opened<'a>) -> Result<Datagram<'a>, Refused> {
        let fragment = ipv4::fragment(opened.content)?;
        let (from, to, _) = fragment.key;
        if !self.is_way(to.into(), opened.to) || to != self.own.address && !self.groups.contains(&to) {
            return Err(Refused::NotOurs);
        }
        if !self.is_plausible(from) {
            return Err(Refused::Malformed);
        }
        let OwnIp { fragments, ends, .. } = self;
        let datagram = fragments.add(&fragment)?.ok_or(Refused::Part)?;
        let packet = udp::Packet { from: from.into(), to: to.into(), datagram };
        of_rtps(udp::read_datagram(&packet, |to| ends.traffic(&to.into()))?)
    }

    fn judge<'a>(&self, datagram: Datagram<'a>) -> Result<Datagram<'a>, Refused> {
        let from = v4(&datagram.from).ok_or(Refused::Malformed)?;
        if !self.is_plausible(*from.ip()) {
            return Err(Refused::Malformed);
        }
        of_rtps(datagram)
    }

    /// A station's address with a group's, or the other way round, is no way for a datagram to come.
    #[inline]
    fn is_way(&self, to: IpAddr, station: Mac) -> bool {
        match to {
            IpAddr::V4(group) if group.is_multicast() => station == bare::group(group),
            _ => station == self.station.mac,
        }
    }

    /// Can somebody else have sent from there? RFC 1122 §3.2.1.3.
    fn is_plausible(&self, from: Ipv4Addr) -> bool {
        let is_nobody = from.is_unspecified() || from.is_broadcast() || from.is_multicast();
        !is_nobody && !from.is_loopback() && from != self.own.address
    }

    /// What is no datagram for us, but may be a question or an answer.
    #[cold]
    fn hear(&mut self, opened: &Opened<'_>) -> Refused {
        let heard = match opened.kind {
            arp::TYPE => self.hear_arp(opened),
            udp::TYPE_IPV4 => Packet::read(opened.content).and_then(|packet| match packet.protocol {
                igmp::PROTOCOL => self.hear_igmp(&packet),
                ipv4::ICMP if opened.to == self.station.mac => self.hear_echo(opened, &packet),
                _ => Err(Refused::NotOurs),
            }),
            _ => Err(Refused::NotOurs),
        };
        heard.err().unwrap_or(Refused::Control)
    }

    fn hear_arp(&mut self, opened: &Opened<'_>) -> Result<(), Refused> {
        if opened.to != self.station.mac && opened.to != arp::BROADCAST {
            return Err(Refused::NotOurs);
        }
        let said = Arp::read(opened.content)?;
        if said.sender == self.own.address {
            if said.sender_mac == self.station.mac {
                return Err(Refused::NotOurs);
            }
            self.conflict = Some(said.sender_mac);
            return Err(Refused::Conflict);
        }
        let is_for_us = said.target == self.own.address;
        if said.is_request && is_for_us {
            // Who only looks whether an address is free has none yet (RFC 5227 §2.1.1): it is told, and not known.
            if self.own.is_near(said.sender) {
                self.hops.heard(said.sender, said.sender_mac);
            }
            let answer = Arp {
                is_request: false,
                sender: self.own.address,
                sender_mac: self.station.mac,
                target: said.sender,
                target_mac: said.sender_mac,
            };
            self.waiting.put(&answer.frame(&self.station, said.sender_mac));
            return Ok(());
        }
        let is_answer = !said.is_request && is_for_us && opened.to == self.station.mac;
        if is_answer && self.hops.answered(said.sender, said.sender_mac) {
            return Ok(());
        }
        self.hops.doubted(said.sender, said.sender_mac);
        Err(Refused::NotOurs)
    }

    fn hear_igmp(&mut self, packet: &Packet<'_>) -> Result<(), Refused> {
        let query = igmp::read(packet.content)?;
        let is_ours = |group: &Ipv4Addr| self.groups.contains(group) && packet.to == *group;
        let is_ours = query.of.as_ref().map_or(packet.to == igmp::ALL_HOSTS, is_ours);
        // From another network nobody asks (RFC 2236 §9).
        if !is_ours || packet.hops != 1 {
            return Err(Refused::NotOurs);
        }
        self.asked = Some(self.asked.map_or(query.within, |before| before.min(query.within)));
        Ok(())
    }

    /// Answers `ping`. RFC 792, RFC 1122 §3.2.2.6.
    fn hear_echo(&mut self, opened: &Opened<'_>, packet: &Packet<'_>) -> Result<(), Refused> {
        if packet.to != self.own.address || !self.is_plausible(packet.from) || packet.has_options {
            return Err(Refused::NotOurs);
        }
        let mut bytes = [0; LONGEST];
        let header = Header::new(&self.station, opened.from, udp::TYPE_IPV4);
        let len = ipv4::echo(&mut bytes, header.bytes(), packet)?;
        self.waiting.put_echo(bytes, len);
        Ok(())
    }

    /// The next of our own frames to send, written into `frame`, which has room for 128 bytes: its length. `None`: there
    /// is none.
    pub fn say(&mut self, frame: &mut [u8]) -> Option<usize> {
        self.waiting.take(frame)
    }

    /// Is there one?
    #[inline]
    pub fn has_to_say(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Frames of our own that were dropped, as too many waited.
    pub fn dropped(&self) -> u64 {
        self.waiting.dropped()
    }

    /// Datagrams that were given up, as parts of them did not come.
    pub fn incomplete(&self) -> u64 {
        self.fragments.lost()
    }

    /// The station that has our address, too, for people to be told: at most once in ten seconds.
    pub fn take_conflict(&mut self) -> Option<Mac> {
        self.to_tell.take()
    }

    /// When to call [`OwnIp::on_timeout`].
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let asked = if self.asked.is_some() { Time(0) } else { Time::NEVER };
        let defend = if self.conflict.is_some() { self.defend_at } else { Time::NEVER };
        let parts = self.fragments.next_timeout();
        self.announce_at.min(self.report_at).min(asked).min(defend).min(parts).min(self.hops.next_timeout())
    }

    /// Is there somebody at the other end? Until then nothing is announced.
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// There is.
    pub fn set_linked(&mut self) {
        self.is_linked = true;
    }

    /// Has wait what is to be said by now: announcements, reports of groups, questions.
    pub fn on_timeout(&mut self, now: Time) {
        if self.announce_at <= now && self.is_linked {
            self.announce();
            self.announcements = self.announcements.saturating_sub(1);
            self.announce_at = if self.announcements > 0 { now + ANNOUNCE_AGAIN } else { Time::NEVER };
        }
        self.report(now);
        if !self.is_linked {
            (self.announce_at, self.report_at) = (now + LOOK_AGAIN, now + LOOK_AGAIN);
        }
        self.fragments.give_up(now);
        if self.conflict.is_some() && self.defend_at <= now {
            self.to_tell = self.conflict.take();
            self.announce();
            self.defend_at = now + DEFEND_AGAIN;
        }
        let OwnIp { hops, waiting, station, own, .. } = self;
        hops.look_after(now, |target, mac| {
            if waiting.is_full() {
                return false;
            }
            let (sender, sender_mac) = (own.address, station.mac);
            let question = Arp { is_request: true, sender, sender_mac, target, target_mac: [0; 6] };
            waiting.put(&question.frame(station, mac.unwrap_or(arp::BROADCAST)))
        });
    }

    /// Says who we are, to all (RFC 5227 §2.3).
    fn announce(&mut self) {
        let (sender, sender_mac) = (self.own.address, self.station.mac);
        let ours = Arp { is_request: true, sender, sender_mac, target: sender, target_mac: [0; 6] };
        self.waiting.put(&ours.frame(&self.station, arp::BROADCAST));
    }

    /// Says which groups we are in, if it is time.
    fn report(&mut self, now: Time) {
        if let Some(within) = self.asked.take() {
            // Hosts are to answer at different times (RFC 2236 §3): each has another station.
            let [.., a, b] = self.station.mac;
            let share = i64::from(u16::from_be_bytes([a, b]));
            let at = now + Duration(within.0 / (1 << 16) * share);
            (self.report_at, self.reports) =
                (self.report_at.min(at.max(self.may_report)), self.reports.max(1));
        }
        if self.report_at > now || !self.is_linked {
            return;
        }
        for place in 0..self.groups.len() {
            if let Some(group) = self.groups.get(place) {
                self.waiting.put(&igmp::report(&self.station, self.own.address, *group));
            }
        }
        self.reports = self.reports.saturating_sub(1);
        self.report_at = if self.reports > 0 { now + ANNOUNCE_AGAIN } else { Time::NEVER };
        self.may_report = now + REPORT_AGAIN;
    }
}

/// What begins as RTPS does: others may send to our ports by mistake.
fn of_rtps(datagram: Datagram<'_>) -> Result<Datagram<'_>, Refused> {
    if datagram.payload.starts_with(b"RTPS") { Ok(datagram) } else { Err(Refused::NotOurs) }
}

fn v4(of: &Locator) -> Option<SocketAddrV4> {
    match of.socket_addr()? {
        SocketAddr::V4(v4) => Some(v4),
        SocketAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::waiting::{WAITING, WAITING_ECHOES};
    use super::*;
    use crate::checksum::Sum;
    use crate::header::open;
    use taut_port::Traffic;

    const OURS: Mac = [2, 0, 0, 0, 0, 2];
    const STATION: Station = Station { mac: OURS, tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const OWN: OwnAddress = OwnAddress { address: Ipv4Addr::new(10, 0, 0, 2), prefix_len: 24, gateway: None };
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

    fn layer(gateway: Option<Ipv4Addr>) -> OwnIp {
        let ends = FrameEnds {
            user: vec![Locator::udp_v4(OWN.address, 7_411), Locator::udp_v4(GROUP, 7_401)],
            metatraffic: vec![Locator::udp_v4(OWN.address, 7_410), Locator::udp_v4(GROUP, 7_400)],
        };
        let sockets = vec![(Ipv4Addr::new(192, 168, 7, 1), 24), (Ipv4Addr::new(10, 0, 0, 9), 32)];
        let mut layer = OwnIp::new(OURS, OwnAddress { gateway, ..OWN }, ends, sockets);
        layer.set_linked();
        layer
    }

    fn said(layer: &mut OwnIp) -> Vec<Vec<u8>> {
        let mut frame = [0; LONGEST];
        std::iter::from_fn(|| layer.say(&mut frame).map(|len| frame[..len].to_vec())).collect()
    }

    /// What the peer sends there.
    fn frame(station: Mac, to: Ipv4Addr, port: u16) -> Vec<u8> {
        let peer = Station { mac: THEIRS, tag: None };
        let ends = ((PEER, 7_411).into(), (to, port).into());
        let mut frame = vec![0; 200];
        let len = udp::write(&mut frame, &peer, station, ends, 0, &[b"RTPS and more"]).unwrap();
        frame.truncate(len);
        frame
    }

    #[test]
    fn what_comes_is_for_samples_or_discovery() {
        let mut layer = layer(None);
        let group = bare::group(GROUP);
        for (station, to, port, traffic) in [
            (OURS, OWN.address, 7_411, Traffic::User),
            (group, GROUP, 7_401, Traffic::User),
            (OURS, OWN.address, 7_410, Traffic::Meta),
            (group, GROUP, 7_400, Traffic::Meta),
        ] {
            let frame = frame(station, to, port);
            let datagram = layer.read(&open(&frame, &STATION).unwrap());
            let datagram = datagram.map(|datagram| (datagram.from, datagram.traffic));
            assert_eq!(datagram, Ok((Locator::udp_v4(PEER, 7_411), traffic)), "{to}:{port}");
        }
    }

    #[test]
    fn nothing_is_said_before_somebody_is_there() {
        let mut layer = layer(None);
        layer.is_linked = false;
        for at in 1..10 {
            layer.on_timeout(Time(0) + LOOK_AGAIN.times(at));
            assert!(said(&mut layer).is_empty());
        }
        layer.set_linked();
        let mut now = layer.next_timeout();
        for _ in 0..ANNOUNCEMENTS {
            layer.on_timeout(now);
            let said: Vec<[u8; 2]> = said(&mut layer).iter().map(|frame| [frame[12], frame[13]]).collect();
            assert_eq!(said, [arp::TYPE, udp::TYPE_IPV4], "who we are, and our group");
            now = now + ANNOUNCE_AGAIN;
        }
        assert_eq!(layer.next_timeout(), Time::NEVER);
    }

    /// Has the layer hear a frame that is no datagram.
    fn tell(layer: &mut OwnIp, frame: &[u8]) -> Refused {
        layer.read(&open(frame, &STATION).unwrap()).unwrap_err()
    }

    fn ip(station: Mac, to: Ipv4Addr, hops: u8, protocol: u8, message: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 0, 0, 0, hops, protocol, 0, 0];
        header.extend(PEER.octets());
        header.extend(to.octets());
        let sum = Sum::default().and(&header).complement();
        header[10..12].copy_from_slice(&sum);
        let mut message = message.to_vec();
        let sum = Sum::default().and(&message).complement();
        message[2..4].copy_from_slice(&sum);
        [&station[..], &THEIRS, &udp::TYPE_IPV4, &header, &message].concat()
    }

    #[test]
    fn an_address_is_defended_once_in_ten_seconds() {
        let mut layer = layer(None);
        (layer.announce_at, layer.report_at) = (Time::NEVER, Time::NEVER);
        let theirs = Station { mac: THEIRS, tag: None };
        let (sender, target) = (OWN.address, OWN.address);
        let claim = Arp { is_request: true, sender, sender_mac: THEIRS, target, target_mac: [0; 6] };
        let claim = claim.frame(&theirs, arp::BROADCAST);
        let (mut defended, mut told) = (0, 0);
        for at in 1..=250 {
            assert_eq!(tell(&mut layer, claim.bytes()), Refused::Conflict);
            layer.on_timeout(Time(0) + Duration::from_millis(100 * at));
            defended += said(&mut layer).len();
            told += layer.take_conflict().map_or(0, |mac| usize::from(mac == THEIRS));
        }
        assert_eq!((defended, told), (3, 3), "in 25 seconds");
    }

    #[test]
    fn groups_are_said_once_in_a_second_at_most() {
        let mut layer = layer(None);
        let all = bare::group(igmp::ALL_HOSTS);
        let query = ip(all, igmp::ALL_HOSTS, 1, igmp::PROTOCOL, &[0x11, 1, 0, 0, 0, 0, 0, 0]);
        (layer.announce_at, layer.report_at) = (Time::NEVER, Time::NEVER);
        let mut reports = 0;
        for at in 1..=500 {
            assert_eq!(tell(&mut layer, &query), Refused::Control);
            layer.on_timeout(Time(0) + Duration::from_millis(10 * at));
            reports += said(&mut layer).len();
        }
        assert_eq!(reports, 5, "in 5 seconds");
    }

    #[test]
    fn a_flood_of_echoes_leaves_room_for_other_answers() {
        let mut layer = layer(None);
        let ping = ip(OURS, OWN.address, 64, ipv4::ICMP, &[8, 0, 0, 0, 0, 7, 0, 1]);
        (0..1_000).for_each(|_| assert_eq!(tell(&mut layer, &ping), Refused::Control));
        let (sender, target) = (PEER, OWN.address);
        let ask = Arp { is_request: true, sender, sender_mac: THEIRS, target, target_mac: [0; 6] };
        let ask = ask.frame(&Station { mac: THEIRS, tag: None }, OURS);
        assert_eq!(tell(&mut layer, ask.bytes()), Refused::Control);
        let said = said(&mut layer);
        assert_eq!((said.len(), layer.dropped()), (WAITING_ECHOES + 1, 1_000 - WAITING_ECHOES as u64));
        assert_eq!(said[WAITING_ECHOES][12..14], arp::TYPE);
        // `ping -s 0`: what it carries is shorter than a frame.
        assert!(said.iter().all(|frame| frame.len() == 60), "networks take no shorter frame");
    }

    /// Frames of all kinds, with bytes changed and ends cut off.
    #[test]
    fn no_frame_is_a_panic() {
        let ours = Station { mac: THEIRS, tag: None };
        let ask = Arp {
            is_request: true,
            sender: PEER,
            sender_mac: THEIRS,
            target: OWN.address,
            target_mac: [0; 6],
        };
        let mut seeds = vec![
            frame(OURS, OWN.address, 7_411),
            frame(bare::group(GROUP), GROUP, 7_400),
            ask.frame(&ours, arp::BROADCAST).bytes().to_vec(),
            Arp { is_request: false, ..ask }.frame(&ours, OURS).bytes().to_vec(),
            igmp::report(&ours, PEER, GROUP).bytes().to_vec(),
        ];
        let mut part = frame(OURS, OWN.address, 7_411);
        part[20] = 0x20;
        seeds.push(part);
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut layer = layer(Some(Ipv4Addr::new(10, 0, 0, 254)));
        for round in 0..200_000 {
            let mut frame = seeds[random(seeds.len())].clone();
            for _ in 0..random(4) {
                let at = random(frame.len());
                frame[at] = random(256) as u8;
            }
            // Half of them with the checksum of IP that they have then.
            if random(2) == 0 && frame.len() >= 34 && frame[12..14] == udp::TYPE_IPV4 {
                frame[24..26].fill(0);
                let sum = Sum::default().and(&frame[14..34]).complement();
                frame[24..26].copy_from_slice(&sum);
            }
            frame.truncate(if random(3) == 0 { random(frame.len()) } else { frame.len() });
            if let Ok(opened) = open(&frame, &STATION) {
                let _ = layer.read(&opened);
            }
            if round % 100 == 0 {
                layer.on_timeout(Time(0) + Duration::from_millis(round));
                assert!(said(&mut layer).len() <= WAITING);
            }
        }
    }
}
