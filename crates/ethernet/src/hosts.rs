//! Which hosts are reached by our interface, and by which address of Ethernet.
//!
//! The kernel knows, and tells when it changes (rtnetlink(7)). What the kernel itself is to find out, by ARP and
//! neighbour discovery, it does for what its own sockets send: as long as a way is not known those send, and now and
//! then they do for a known one, so that the kernel looks whether it is still right. So nothing is asked for here that
//! needs a privilege or waits for other changes of networks.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use taut_base::{Duration, Time};
use taut_netlink::{
    Attributes, DUMP, Errno, Heard, IPV4, IPV6, NEIGHBOURS, ROUTES, Result, Socket, Watch, attribute, half,
    word,
};

use crate::header::Mac;

/// Hosts that are known, and stations. A hundred participants have as many; more, as peers may announce what they
/// like, go by the kernel.
const KNOWN: usize = 4_096;
/// So often one datagram to a host that is sent to goes by the kernel. Lower takes it out of its way more often, higher
/// finds out later that an address has moved; the kernel doubts one that it has not heard from for half a minute or so.
const REFRESH: Duration = Duration::from_secs(20);
/// After so long the kernel is asked for a route that it has told for the first time, or with another MTU; the time doubles
/// with each that is as before, up to [`REFRESH`]. What a router on the way says of a smaller MTU it tells to the kernel,
/// which tells nobody. Lower asks more often, higher sends for longer what that router drops.
const FIRST: Duration = Duration::from_millis(100);

// linux/rtnetlink.h and linux/neighbour.h
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
/// Before the attributes: `ndmsg` and `rtmsg` are of the same length.
const FIXED: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// An address is known: reachable, stale, delay, probe, permanent.
const KNOWN_STATES: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_VIA: u16 = 18;
/// Bytes before the address in it, of its family.
const VIA_FAMILY: usize = 2;
const RTA_ENCAP: u16 = 22;
const RTAX_MTU: u16 = 2;
const RTN_UNICAST: u8 = 1;

/// What the kernel answers where a host has no route, or one that is unreachable, prohibited or a black hole. All else is
/// of the request: of the route it says nothing.
const NO_ROUTE: [Errno; 4] = [Errno::ENETUNREACH, Errno::EHOSTUNREACH, Errno::EACCES, Errno::EINVAL];

/// The way to a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// Who takes the frame: the host, or the router on the way to it.
    pub to: Mac,
    /// Our address on that way.
    pub from: IpAddr,
    /// The longest packet of IP that it takes, in bytes, where that is not known to be the interface's MTU.
    pub mtu: Option<u32>,
}

/// Who is next on the way to a host, and from which address of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hop {
    to: IpAddr,
    from: IpAddr,
    mtu: Option<u32>,
}

/// What is known of a host.
struct Host {
    /// When to ask the kernel for its route, and how long after that again.
    ask_at: Time,
    pause: Duration,
    /// The route, if our interface is on it.
    hop: Option<Hop>,
    /// The way, once the address of Ethernet is known.
    way: Option<Way>,
    /// When to look after it again.
    due: Time,
    /// Was it sent to since it was last looked after?
    used: bool,
    /// Does the next datagram go by the kernel?
    by_kernel: bool,
}

/// The hosts that are sent to.
pub struct Hosts {
    interface: u32,
    watch: Watch,
    socket: Socket,
    /// The neighbours on the interface.
    stations: BTreeMap<IpAddr, Mac>,
    known: BTreeMap<IpAddr, Host>,
    /// When the first of them is to be looked after.
    due: Time,
    /// Did the kernel have more to tell of neighbours than was heard?
    missed: bool,
}

impl Hosts {
    /// Of the interface with this number.
    pub(crate) fn open(interface: u32) -> Result<Hosts> {
        // What changes while the neighbours are listed is heard.
        let (watch, socket) = (Watch::open(NEIGHBOURS | ROUTES)?, Socket::of_routes()?);
        let (stations, known) = (BTreeMap::new(), BTreeMap::new());
        let mut hosts = Hosts { interface, watch, socket, stations, known, due: Time::NEVER, missed: false };
        hosts.list()?;
        Ok(hosts)
    }

    /// Readable when the kernel tells something: then call [`Hosts::hear`].
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// The way to a host, if it is known. Else the kernel is the way, and is asked soon.
    #[inline]
    pub(crate) fn way(&mut self, to: IpAddr) -> Option<Way> {
        match self.known.get_mut(&to) {
            Some(host) => {
                host.used = true;
                host.way.filter(|_| !std::mem::take(&mut host.by_kernel))
            }
            None => {
                self.want(to);
                None
            }
        }
    }

    #[cold]
    fn want(&mut self, to: IpAddr) {
        if self.known.len() < KNOWN {
            let (ask_at, pause, hop, way) = (Time(0), FIRST, None, None);
            let (due, used, by_kernel) = (Time(0), true, false);
            self.known.insert(to, Host { ask_at, pause, hop, way, due, used, by_kernel });
            self.due = Time(0);
        }
    }

    /// When to call [`Hosts::ask`].
    pub(crate) fn next_timeout(&self) -> Time {
        self.due
    }

    /// Asks the kernel for one route, if one is to be asked for, and has it look after known addresses; forgets who is
    /// not sent to any more. Returns whether that route takes packets of another length than it did.
    ///
    /// *Cost*: two system calls, for which the kernel takes no lock of networks. Only if the kernel had more to tell
    /// than the socket holds, as when hundreds of neighbours come at once, are all listed anew, which may wait for one.
    pub(crate) fn ask(&mut self, now: Time) -> bool {
        if now < self.due {
            return false;
        }
        if self.missed {
            self.missed = self.list().is_err();
        }
        self.known.retain(|_, host| host.due > now || host.used);
        for host in self.known.values_mut().filter(|host| host.due <= now) {
            host.by_kernel = host.way.is_some();
            (host.due, host.used) = (now + REFRESH, false);
        }
        let next = self.known.iter().find(|(_, host)| host.ask_at <= now).map(|(to, _)| *to);
        let told = next.map(|to| (to, self.route(to)));
        let is_other_length = told.is_some_and(|(to, told)| {
            self.known.get_mut(&to).is_some_and(|host| host.told(now, told, &self.stations))
        });
        self.due = self.known.values().map(|host| host.due.min(host.ask_at)).min().unwrap_or(Time::NEVER);
        is_other_length
    }

    /// Lists the neighbours.
    fn list(&mut self) -> Result<()> {
        let found = self.socket.request(GET_NEIGHBOUR, DUMP, &[0; FIXED])?;
        let ours = found.iter().filter_map(|body| Neighbour::read(body));
        let ours = ours.filter(|neighbour| neighbour.interface == self.interface);
        self.stations = ours.filter_map(|own| Some((own.hop, own.mac?))).take(KNOWN).collect();
        self.known.values_mut().for_each(|host| host.find_way(&self.stations));
        Ok(())
    }

    /// The next hop of a route by our interface, and our address on it. An error is no answer.
    fn route(&mut self, to: IpAddr) -> Result<Option<Hop>> {
        let (family, bytes) = of(to);
        let mut body = vec![0; FIXED];
        if let [first, len, ..] = &mut body[..] {
            (*first, *len) = (family, 8 * bytes.len() as u8);
        }
        body.extend(Attributes::default().with(RTA_DST, &bytes).0);
        match self.socket.request(GET_ROUTE, 0, &body) {
            Ok(answers) => Ok(answers.first().and_then(|answer| self.hop(to, answer))),
            Err(errno) if NO_ROUTE.contains(&errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The same of what the kernel has answered.
    fn hop(&self, to: IpAddr, answer: &[u8]) -> Option<Hop> {
        let attributes = answer.get(FIXED..)?;
        let by = attribute(attributes, RTA_OIF).and_then(|value| word(value, 0))?;
        // What the kernel puts around packets there, as labels of MPLS, frames of ours would not have.
        let is_encapsulated = attribute(attributes, RTA_ENCAP).is_some();
        if answer.get(7) != Some(&RTN_UNICAST) || by != self.interface || is_encapsulated {
            return None;
        }
        // A router that is known by an address of the other kind of IP, as `via inet6` of ip-route(8) names it.
        let via = attribute(attributes, RTA_VIA).map(|via| via.get(VIA_FAMILY..).unwrap_or_default());
        let hop = attribute(attributes, RTA_GATEWAY).or(via).map_or(Some(to), address)?;
        let metrics = attribute(attributes, RTA_METRICS);
        let mtu = metrics.and_then(|metrics| word(attribute(metrics, RTAX_MTU)?, 0)).filter(|mtu| *mtu > 0);
        // Without a preferred address of ours it is not known here which one the other side would answer to.
        Some(Hop { to: hop, from: attribute(attributes, RTA_PREFSRC).and_then(address)?, mtu })
    }

    /// Takes what the kernel has told.
    pub(crate) fn hear(&mut self) {
        let Hosts { interface, watch, stations, known, due, missed, .. } = self;
        watch.hear(|heard| match heard {
            Heard::TooMuch | Heard::Message(NEW_ROUTE | DELETE_ROUTE, _) => {
                *missed |= heard == Heard::TooMuch;
                known.values_mut().for_each(|host| (host.ask_at, host.pause) = (Time(0), FIRST));
                *due = if known.is_empty() && !*missed { *due } else { Time(0) };
            }
            Heard::Message(kind @ (NEW_NEIGHBOUR | DELETE_NEIGHBOUR), body) => {
                let Some(told) = Neighbour::read(body).filter(|told| told.interface == *interface) else {
                    return;
                };
                note(stations, told.hop, told.mac.filter(|_| kind == NEW_NEIGHBOUR));
                let of = known.values_mut().filter(|host| host.hop.is_some_and(|hop| hop.to == told.hop));
                of.for_each(|host| host.find_way(stations));
            }
            Heard::Message(..) => {}
        });
    }
}

/// A neighbour has this address of Ethernet now, or none that is known.
fn note(stations: &mut BTreeMap<IpAddr, Mac>, hop: IpAddr, mac: Option<Mac>) {
    match mac {
        Some(mac) if stations.len() < KNOWN || stations.contains_key(&hop) => drop(stations.insert(hop, mac)),
        _ => drop(stations.remove(&hop)),
    }
}

impl Host {
    /// The kernel has told its route, or nothing: then it stays as it was. Returns whether it takes packets of another
    /// length than before.
    fn told(&mut self, now: Time, told: Result<Option<Hop>>, stations: &BTreeMap<IpAddr, Mac>) -> bool {
        let hop = told.unwrap_or(self.hop);
        let mtu = |hop: Option<Hop>| hop.and_then(|hop| hop.mtu);
        let is_other_length = mtu(hop) != mtu(self.hop);
        let pause = if is_other_length { FIRST } else { self.pause };
        (self.ask_at, self.pause) = (now + pause, pause.times(2).min(REFRESH));
        self.hop = hop;
        self.find_way(stations);
        is_other_length
    }

    fn find_way(&mut self, stations: &BTreeMap<IpAddr, Mac>) {
        let way = |hop: Hop| Some(Way { to: *stations.get(&hop.to)?, from: hop.from, mtu: hop.mtu });
        self.way = self.hop.and_then(way);
    }
}

/// What the kernel says of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Neighbour {
    interface: u32,
    hop: IpAddr,
    /// Its address of Ethernet, if it is known.
    mac: Option<Mac>,
}

impl Neighbour {
    fn read(body: &[u8]) -> Option<Neighbour> {
        let (interface, state, attributes) = (word(body, 4)?, half(body, 8)?, body.get(FIXED..)?);
        let hop = attribute(attributes, NDA_DST).and_then(address)?;
        let mac = attribute(attributes, NDA_LLADDR).and_then(|value| value.try_into().ok());
        Some(Neighbour { interface, hop, mac: mac.filter(|_| state & KNOWN_STATES != 0) })
    }
}

/// The kernel's number of the kind of an address, and its bytes.
fn of(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (IPV4, v4.octets().to_vec()),
        IpAddr::V6(v6) => (IPV6, v6.octets().to_vec()),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::process::{Command, Stdio};

    use nix::sys::socket::SockProtocol;
    use taut_testbed::{End, await_that, ip, with_pair};

    use super::*;

    /// So many neighbours from a number on, as quickly as the kernel takes them.
    fn add_neighbours(first: u32, count: u32) {
        let address = |number: u32| Ipv4Addr::from(0x0a63_0000 + number);
        let line =
            |number| format!("neigh add {} lladdr 02:00:00:00:00:99 nud permanent dev xa\n", address(number));
        let lines: String = (first..first + count).map(line).collect();
        let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// What the socket holds then is of before, and nothing more is told until all of that is read.
    #[test]
    fn a_station_that_changes_while_the_kernel_has_too_much_to_tell() {
        with_pair("a_station_that_changes", ["", ""], |pair| {
            pair.enter(End::A);
            let mut hosts = Hosts::open(nix::net::if_::if_nametoindex("xa").unwrap()).unwrap();
            let to = IpAddr::from(End::B.ipv4());
            let set = |last: u8| {
                ip(&format!("neigh replace {to} lladdr 02:00:00:00:00:{last:02} nud permanent dev xa"));
            };
            // As a driver does it.
            let turn = |hosts: &mut Hosts| {
                hosts.hear();
                hosts.ask(Time(0));
                hosts.way(to).map(|way| way.to)
            };
            set(1);
            await_that("the way is known", || turn(&mut hosts) == Some([2, 0, 0, 0, 0, 1]));
            add_neighbours(0, 100);
            set(2);
            add_neighbours(100, 1_000);
            turn(&mut hosts);
            set(3);
            // The socket holds some hundreds of messages, of which each turn reads a few.
            let last = (0..200).map(|_| turn(&mut hosts)).last();
            assert_eq!(last, Some(Some([2, 0, 0, 0, 0, 3])));
        });
    }

    #[test]
    fn neighbours_are_read() {
        let body = |state: u16, mac: &[u8]| {
            let mut body = vec![IPV4, 0, 0, 0, 7, 0, 0, 0];
            body.extend(state.to_ne_bytes());
            body.extend([0, 1]);
            body.extend(Attributes::default().with(NDA_DST, &[10, 0, 0, 2]).with(NDA_LLADDR, mac).0);
            body
        };
        let (hop, mac) = ("10.0.0.2".parse().unwrap(), [2, 0, 0, 0, 0, 1]);
        let interface = u32::from_ne_bytes([7, 0, 0, 0]);
        let told = |mac| Some(Neighbour { interface, hop, mac });
        for (state, known) in [(0x02, true), (0x04, true), (0x80, true), (0x01, false), (0x20, false)] {
            assert_eq!(Neighbour::read(&body(state, &mac)), told(known.then_some(mac)), "state {state}");
        }
        assert_eq!(
            Neighbour::read(&body(0x02, &[1; 20])),
            told(None),
            "an address of another kind of network"
        );
        let whole = body(0x02, &mac);
        (0..20).for_each(|len| assert_eq!(Neighbour::read(&whole[..len]), None, "{len} bytes"));
    }

    #[test]
    fn a_request_that_fails_takes_no_way() {
        let to: IpAddr = "192.0.2.1".parse().unwrap();
        let mut hosts = Hosts::open(1).unwrap();
        hosts.stations.insert(to, [2, 0, 0, 0, 0, 1]);
        hosts.want(to);
        let host = hosts.known.get_mut(&to).unwrap();
        host.told(Time(0), Ok(Some(Hop { to, from: to, mtu: Some(1_400) })), &hosts.stations);
        (host.ask_at, host.due, hosts.due) = (Time(0), Time::NEVER, Time(0));
        let way = hosts.way(to);
        assert!(way.is_some());
        // Nobody in the kernel listens there.
        hosts.socket = Socket::open(SockProtocol::NetlinkUserSock).unwrap();
        assert!(!hosts.ask(Time(1)), "of its MTU nothing was told");
        assert_eq!(hosts.way(to), way);
        assert!(hosts.next_timeout() <= Time(1) + REFRESH, "it is asked for again");
    }

    #[test]
    fn a_list_that_fails_is_asked_for_again() {
        let mut hosts = Hosts::open(1).unwrap();
        let of_routes =
            std::mem::replace(&mut hosts.socket, Socket::open(SockProtocol::NetlinkUserSock).unwrap());
        (hosts.missed, hosts.due) = (true, Time(0));
        hosts.ask(Time(0));
        assert!(hosts.missed && hosts.next_timeout() > Time(0));
        (hosts.socket, hosts.due) = (of_routes, Time(0));
        hosts.ask(Time(0));
        assert!(!hosts.missed);
    }

    #[test]
    fn an_answer_that_there_is_no_route_takes_the_way() {
        let to: IpAddr = "192.0.2.1".parse().unwrap();
        let stations = BTreeMap::from([(to, [2, 0, 0, 0, 0, 1])]);
        let mut hosts = Hosts::open(1).unwrap();
        hosts.want(to);
        let host = hosts.known.get_mut(&to).unwrap();
        host.told(Time(0), Ok(Some(Hop { to, from: to, mtu: None })), &stations);
        assert!(host.way.is_some());
        host.told(Time(0), Ok(None), &stations);
        assert_eq!(host.way, None);
    }

    #[test]
    fn who_is_known_stays_where_no_more_are() {
        let [one, two] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let address = |number: usize| IpAddr::from((number as u128).to_be_bytes());
        let mut stations: BTreeMap<_, _> = (0..KNOWN).map(|number| (address(number), one)).collect();
        note(&mut stations, address(7), Some(two));
        assert_eq!(stations.get(&address(7)), Some(&two), "told anew");
        note(&mut stations, address(KNOWN), Some(two));
        assert_eq!((stations.len(), stations.get(&address(KNOWN))), (KNOWN, None), "there is no room");
        note(&mut stations, address(7), None);
        assert_eq!(stations.get(&address(7)), None, "it has gone");
    }
}
