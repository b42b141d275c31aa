//! UDP over IPv4 or IPv6 at an address of our own, of which the kernel knows nothing: what it does for others is done
//! here.
//!
//! That is who the next hop is and which station (ARP, neighbour discovery), that others find us (answers, an
//! announcement), groups (IGMP, MLD), and an answer to `ping`. Fragments are received and not sent, as RTPS has its own;
//! options are neither.
//!
//! Here is what both kinds of IP have in common; what is said and heard is [`v4`] and [`v6`].
//!
//! Nothing here knows the time but [`OwnIp::on_timeout`], which says what is to be said then. What is said waits to be
//! asked for by [`OwnIp::say`].

mod address;
mod v4;
mod v6;
mod waiting;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use taut_base::{Duration, Locator, LocatorKind, Time};

use crate::fragments::Fragments;
use crate::header::{Mac, Opened, Station, Tag, group};
use crate::hops::Hops;
use crate::igmp::Query;
use crate::layer::Carried;
use crate::layer::{Datagram, FrameEnds, NoRoute, Refused};
use crate::{igmp, ipv4, ipv6, mld, ndp, udp};

use address::Routes;
pub use address::{OwnAddress, SocketNetwork};
use waiting::Waiting;

/// How often we say unasked who we are and what groups we are in, and the time between (RFC 5227 §1.1, ANNOUNCE_NUM and
/// ANNOUNCE_INTERVAL; RFC 4861 §7.2.6 has no more than three. RFC 2236 §8.10 and RFC 2710 §7.10 have the groups said
/// again later: this long is enough for one frame to be lost).
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
    /// The type of frames that carry the kind of IP that it is of.
    kind: [u8; 2],
    ends: FrameEnds,
    /// Where samples are sent from.
    from: SocketAddr,
    /// Those of the ends, and that in which our address is asked for where it is asked for in one.
    groups: Vec<IpAddr>,
    routes: Routes,
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
        let mut groups: Vec<IpAddr> = all.filter_map(Locator::ip).filter(IpAddr::is_multicast).collect();
        if let IpAddr::V6(own) = own.address {
            groups.push(ipv6::solicited_node(own).into());
        }
        groups.sort();
        groups.dedup();
        let ours = ends.user.iter().filter_map(Locator::socket_addr).find(|end| end.ip() == own.address);
        OwnIp {
            station: Station { mac, tag: None },
            own,
            kind: if own.address.is_ipv4() { udp::TYPE_IPV4 } else { udp::TYPE_IPV6 },
            from: ours.unwrap_or(SocketAddr::new(own.address, 0)),
            ends,
            groups,
            routes: Routes::new(own, &sockets),
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
        self.routes.follow(&sockets);
    }

    /// From where, to which station, and to where.
    #[inline]
    pub(crate) fn route(&mut self, to: &Locator) -> Result<(SocketAddr, Mac, SocketAddr), NoRoute> {
        let to = to.socket_addr().ok_or(NoRoute::Elsewhere)?;
        let station = match self.routes.hop(to.ip()).ok_or(NoRoute::Elsewhere)? {
            all if all.is_multicast() => group(all),
            hop => self.hops.station(hop).ok_or(NoRoute::Unknown)?,
        };
        Ok((self.from, station, to))
    }

    /// Is it of the kind of IP that our address is of?
    #[inline]
    pub(crate) fn is_of_kind(&self, to: &Locator) -> bool {
        to.kind == if self.own.address.is_ipv4() { LocatorKind::UDP_V4 } else { LocatorKind::UDP_V6 }
    }

    /// Would this go by the device, if the station is known?
    pub(crate) fn is_for_device(&self, to: &Locator) -> bool {
        to.socket_addr().is_some_and(|to| self.routes.hop(to.ip()).is_some())
    }

    /// Reads a frame, and hears what is said to us in it.
    #[inline]
    pub(crate) fn read<'a>(&'a mut self, opened: &Opened<'a>) -> Result<Datagram<'a>, Refused> {
        let is_of_one = opened.from[0] & 1 == 0;
        if opened.from == self.station.mac || !is_of_one {
            return Err(Refused::NotOurs);
        }
        let carried = match opened.kind {
            kind if kind != self.kind => Carried::Other,
            udp::TYPE_IPV4 => ipv4::carried(opened.content),
            _ => ipv6::carried(opened.content),
        };
        match carried {
            Carried::Datagram => {}
            Carried::Part => return self.read_part(opened),
            Carried::Other => return Err(self.hear(opened)),
        }
        let datagram = udp::read(opened, |to| {
            self.ends.traffic(&to.into()).filter(|_| self.is_way(to.ip(), opened.to))
        })?;
        self.judge(datagram)
    }

    /// A part of a datagram: that, if it is whole now.
    #[cold]
    fn read_part<'a>(&'a mut self, opened: &Opened<'a>) -> Result<Datagram<'a>, Refused> {
        let fragment = match self.own.address {
            IpAddr::V4(_) => ipv4::fragment(opened.content),
            IpAddr::V6(_) => ipv6::fragment(opened.content),
        }?;
        let (from, to, _) = fragment.key;
        if !self.is_way(to, opened.to) || to != self.own.address && !self.groups.contains(&to) {
            return Err(Refused::NotOurs);
        }
        if !self.is_plausible(from) {
            return Err(Refused::Malformed);
        }
        let OwnIp { fragments, ends, .. } = self;
        // Over IPv6 one may be all that there is (RFC 6946).
        let datagram = match fragment.start == 0 && fragment.is_last {
            true => fragment.bytes,
            false => fragments.add(&fragment)?.ok_or(Refused::Part)?,
        };
        let packet = udp::Packet { from, to, datagram };
        of_rtps(udp::read_datagram(&packet, |to| ends.traffic(&to.into()))?)
    }

    #[inline]
    fn judge<'a>(&self, datagram: Datagram<'a>) -> Result<Datagram<'a>, Refused> {
        if !datagram.from.ip().is_some_and(|from| self.is_plausible(from)) {
            return Err(Refused::Malformed);
        }
        of_rtps(datagram)
    }

    /// A station's address with a group's, or the other way round, is no way for a datagram to come.
    #[inline]
    fn is_way(&self, to: IpAddr, station: Mac) -> bool {
        station == if to.is_multicast() { group(to) } else { self.station.mac }
    }

    /// Can somebody else have sent from there? RFC 1122 §3.2.1.3, RFC 4291 §2.5.2, §2.5.3, §2.7.
    #[inline]
    fn is_plausible(&self, from: IpAddr) -> bool {
        !address::is_nobody(from) && !from.is_loopback() && from != self.own.address
    }

    /// What is no datagram for us, but may be a question or an answer.
    #[cold]
    fn hear(&mut self, opened: &Opened<'_>) -> Refused {
        let heard = match self.own.address {
            IpAddr::V4(own) => self.hear_v4(own, opened),
            IpAddr::V6(own) => self.hear_v6(own, opened),
        };
        heard.err().unwrap_or(Refused::Control)
    }

    /// Somebody asks which groups we are in, by this address; about all of them by the one of `all`.
    fn hear_query(&mut self, query: &Query, to: IpAddr, all: IpAddr) -> Result<(), Refused> {
        let is_ours = |group: &IpAddr| self.groups.contains(group) && to == *group;
        if !query.of.as_ref().map_or(to == all, is_ours) {
            return Err(Refused::NotOurs);
        }
        self.asked = Some(self.asked.map_or(query.within, |before| before.min(query.within)));
        Ok(())
    }

    /// Another station says that our address is its own.
    fn dispute(&mut self, mac: Mac) -> Refused {
        if mac == self.station.mac {
            return Refused::NotOurs;
        }
        self.conflict = Some(mac);
        Refused::Conflict
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
            self.ask_for_own();
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
            !waiting.is_full()
                && match (own.address, target) {
                    (IpAddr::V4(own), IpAddr::V4(target)) => {
                        waiting.put(v4::question(station, own, target, mac).bytes())
                    }
                    (IpAddr::V6(own), IpAddr::V6(target)) => {
                        waiting.put_message(ndp::question(station, own, target, mac))
                    }
                    // No hop is of another kind.
                    _ => false,
                }
        });
    }

    /// Asks who else has our address. Over IPv4 what announces it is such a question (RFC 5227 §2.3).
    fn ask_for_own(&mut self) {
        if let IpAddr::V6(own) = self.own.address {
            self.waiting.put_message(ndp::question(&self.station, Ipv6Addr::UNSPECIFIED, own, None));
        }
    }

    /// Says who we are, to all.
    fn announce(&mut self) {
        match self.own.address {
            IpAddr::V4(own) => self.waiting.put(v4::question(&self.station, own, own, None).bytes()),
            IpAddr::V6(own) => self.waiting.put_message(ndp::answer(&self.station, own, None)),
        };
    }

    /// Says which groups we are in, if it is time.
    fn report(&mut self, now: Time) {
        if let Some(within) = self.asked.take() {
            // Hosts are to answer at different times (RFC 2236 §3, RFC 2710 §4): each has another station.
            let [.., a, b] = self.station.mac;
            let share = i64::from(u16::from_be_bytes([a, b]));
            let at = now + Duration(within.0 / (1 << 16) * share);
            (self.report_at, self.reports) =
                (self.report_at.min(at.max(self.may_report)), self.reports.max(1));
        }
        if self.report_at > now || !self.is_linked {
            return;
        }
        let OwnIp { groups, waiting, station, own, .. } = self;
        for group in groups {
            match (own.address, *group) {
                (IpAddr::V4(own), IpAddr::V4(group)) => {
                    waiting.put(igmp::report(station, own, group).bytes())
                }
                (IpAddr::V6(own), IpAddr::V6(group)) => {
                    let from = if own.is_unicast_link_local() { own } else { ipv6::of_link(station.mac) };
                    waiting.put_message(mld::report(station, from, group))
                }
                // No group is of another kind.
                _ => false,
            };
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

#[cfg(test)]
mod tests {
    use super::waiting::{WAITING, WAITING_ECHOES};
    use super::*;
    use crate::arp::{self, Arp};
    use crate::checksum::Sum;
    use crate::header::open;
    use crate::short::LONGEST;
    use std::net::Ipv4Addr;
    use taut_port::Traffic;

    const OURS: Mac = [2, 0, 0, 0, 0, 2];
    const STATION: Station = Station { mac: OURS, tag: None };
    const THEIRS: Mac = [2, 0, 0, 0, 0, 1];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const OWN: OwnAddress = OwnAddress { address: IpAddr::V4(ADDRESS), prefix_len: 24, gateway: None };
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

    fn layer(gateway: Option<IpAddr>) -> OwnIp {
        let ends = FrameEnds {
            user: vec![Locator::udp_v4(ADDRESS, 7_411), Locator::udp_v4(GROUP, 7_401)],
            metatraffic: vec![Locator::udp_v4(ADDRESS, 7_410), Locator::udp_v4(GROUP, 7_400)],
        };
        let sockets = [(Ipv4Addr::new(192, 168, 7, 1), 24), (Ipv4Addr::new(10, 0, 0, 9), 32)];
        let sockets = sockets.map(|(ip, prefix_len)| (ip.into(), prefix_len)).to_vec();
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
        let group = group(GROUP.into());
        for (station, to, port, traffic) in [
            (OURS, ADDRESS, 7_411, Traffic::User),
            (group, GROUP, 7_401, Traffic::User),
            (OURS, ADDRESS, 7_410, Traffic::Meta),
            (group, GROUP, 7_400, Traffic::MetaMulticast),
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
        let (sender, target) = (ADDRESS, ADDRESS);
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
        let all = group(igmp::ALL_HOSTS.into());
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
        let ping = ip(OURS, ADDRESS, 64, ipv4::ICMP, &[8, 0, 0, 0, 0, 7, 0, 1]);
        (0..1_000).for_each(|_| assert_eq!(tell(&mut layer, &ping), Refused::Control));
        let (sender, target) = (PEER, ADDRESS);
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
        let ask =
            Arp { is_request: true, sender: PEER, sender_mac: THEIRS, target: ADDRESS, target_mac: [0; 6] };
        let mut seeds = vec![
            frame(OURS, ADDRESS, 7_411),
            frame(group(GROUP.into()), GROUP, 7_400),
            ask.frame(&ours, arp::BROADCAST).bytes().to_vec(),
            Arp { is_request: false, ..ask }.frame(&ours, OURS).bytes().to_vec(),
            igmp::report(&ours, PEER, GROUP).bytes().to_vec(),
        ];
        let mut part = frame(OURS, ADDRESS, 7_411);
        part[20] = 0x20;
        seeds.push(part);
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut layer = layer(Some(Ipv4Addr::new(10, 0, 0, 254).into()));
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
