//! What is asked of the machine itself: the interfaces in use, and whether datagrams come back.
//!
//! A datagram of the self-test is an RTPS header with nothing behind it, which participants that hear it pass over.
//! It never leaves the machine: its time to live is 0.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{getsockopt, sockopt::IpMtu};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use taut::Interface;

use super::finding::{Finding, Lasts, Mend};
use super::multicast::{GROUP, Link};

/// How long a datagram may take on its way inside of this machine. Lower and a busy machine seems to drop it;
/// higher and each interface that drops costs its user that long.
const LIMIT: Duration = Duration::from_millis(200);
/// So many datagrams of others may lie before the one that is awaited when its time is over. Lower and what came in time
/// seems lost where many send there; higher and those that send on and on hold it up for longer.
const OTHERS: usize = 1_000;
/// Participants of a host and a domain whose ports are given by the standard: an index up to 119.
const PARTICIPANTS: u16 = 120;

/// The addresses in use, with what the kernel says of their interfaces.
pub fn links(interfaces: &[Interface]) -> Vec<Link> {
    let flagged: BTreeSet<String> = nix::ifaddrs::getifaddrs()
        .map(|all| {
            let flagged = all.filter(|one| one.flags.contains(InterfaceFlags::IFF_MULTICAST));
            flagged.map(|one| one.interface_name).collect()
        })
        .unwrap_or_default();
    let link = |interface: &Interface| Link {
        name: interface.name.clone(),
        index: interface.index,
        address: interface.address,
        loopback: interface.loopback,
        flagged: flagged.contains(&interface.name),
        mtu: match interface.address {
            IpAddr::V4(address) => mtu(address).map_err(|error| format!("getsockopt IP_MTU: {error}")),
            IpAddr::V6(_) => mtu_v6(&interface.name),
        },
    };
    interfaces.iter().map(link).collect()
}

/// Bytes of a packet of IPv6 on this interface.
fn mtu_v6(name: &str) -> Result<u32, String> {
    let path = format!("/proc/sys/net/ipv6/conf/{name}/mtu");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    text.trim().parse().map_err(|_| format!("{path}: {text:?} is no number"))
}

/// Bytes of a packet on the interface with this address, from a socket that would send to the group by it.
fn mtu(address: Ipv4Addr) -> io::Result<u32> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&SocketAddrV4::new(address, 0).into())?;
    socket.set_multicast_if_v4(&address)?;
    socket.connect(&SocketAddrV4::new(GROUP, 9).into())?;
    Ok(u32::try_from(getsockopt(&socket, IpMtu)?).unwrap_or(0))
}

/// The first port of a domain, that of discovery by multicast: RTPS 2.5 §9.6.1.1, with the default parameters.
pub fn first_port(domain_id: u32) -> u16 {
    u16::try_from(7_400 + 250 * domain_id).unwrap_or(u16::MAX)
}

/// Sends datagrams to the domain's ports on each interface in use, and waits for them.
pub fn check(links: &[Link], domain_id: u32, multicast: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_down = is_loopback_down();
    for link in links {
        if multicast && link.carries_multicast() {
            findings.push(finding(link, "multicast", to_group(link, first_port(domain_id)), is_down));
        }
        findings.push(finding(link, "unicast", to_address(link, first_port(domain_id)), is_down));
    }
    findings
}

/// Then a host does not reach its own addresses, whichever interface has them.
fn is_loopback_down() -> bool {
    let is_up = |flags: InterfaceFlags| flags.contains(InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_UP);
    nix::ifaddrs::getifaddrs().is_ok_and(|mut all| !all.any(|one| is_up(one.flags)))
}

fn finding(
    link: &Link,
    kind: &str,
    took: Result<(SocketAddr, Duration), String>,
    is_loopback_down: bool,
) -> Finding {
    let over = if link.address.is_ipv4() { "" } else { " over IPv6" };
    let name = format!("{kind} test on {}{over}", link.name);
    match took {
        Ok((to, took)) => Finding::good(&name, format!("to {to}, back after {} us", took.as_micros())),
        Err(why) if kind == "unicast" && is_loopback_down => {
            let cost = "participants of this host do not reach each other";
            let mend = Mend::by_hand("ip link set lo up", Lasts::UntilReboot, "ip link set lo down");
            Finding::harmful(&name, format!("{why}; lo is down"), cost).mend(mend)
        }
        Err(why) => {
            let cost = if kind == "multicast" {
                "participants do not find each other by multicast on this interface, nor get samples by it"
            } else {
                "no sample and no acknowledgement arrives there"
            };
            let command = "nft list ruleset   # or iptables-save: look for a drop of these ports";
            Finding::harmful(&name, why, cost).mend(Mend::by_hand(command, Lasts::UntilReboot, ""))
        }
    }
}

impl Link {
    /// An address as seen from this interface: some mean something on one link only.
    fn reach(&self, ip: IpAddr, port: u16) -> SocketAddr {
        match ip {
            IpAddr::V4(v4) => SocketAddrV4::new(v4, port).into(),
            IpAddr::V6(v6) if v6.is_unicast_link_local() || v6.is_multicast() => {
                SocketAddrV6::new(v6, port, 0, self.index).into()
            }
            IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, 0).into(),
        }
    }

    fn socket(&self) -> io::Result<Socket> {
        let any = SocketAddr::new(self.address, 0);
        let socket = Socket::new(Domain::for_address(any), Type::DGRAM, Some(Protocol::UDP))?;
        if any.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        Ok(socket)
    }
}

/// To the port of discovery, which participants share; to a free one if somebody has it for himself.
fn to_group(link: &Link, port: u16) -> Result<(SocketAddr, Duration), String> {
    let group = link.group();
    let open = |port: u16| -> io::Result<Socket> {
        let socket = link.socket()?;
        socket.set_reuse_address(true)?;
        socket.bind(&link.reach(group, port).into())?;
        Ok(socket)
    };
    let receiver =
        open(port).or_else(|_| open(0)).map_err(|error| format!("bind {group}:{port}: {error}"))?;
    let joined = match group {
        IpAddr::V4(group) => {
            receiver.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(link.index))
        }
        IpAddr::V6(group) => receiver.join_multicast_v6(&group, link.index),
    };
    joined.map_err(|error| format!("joining {group}: {error}"))?;
    round(link, &receiver.into(), group)
}

/// To the first port of a participant that is free.
fn to_address(link: &Link, port: u16) -> Result<(SocketAddr, Duration), String> {
    let own = (0..PARTICIPANTS).filter_map(|index| port.checked_add(10 + 2 * index));
    let bind = |port| UdpSocket::bind(link.reach(link.address, port));
    let receiver = own.map(bind).find_map(Result::ok).map_or_else(|| bind(0), Ok);
    let receiver = receiver.map_err(|error| format!("bind {}: {error}", link.address))?;
    round(link, &receiver, link.address)
}

/// A socket that sends from this interface, to groups as far as this host.
fn sender(link: &Link) -> io::Result<UdpSocket> {
    let socket = link.socket()?;
    socket.bind(&link.reach(link.address, 0).into())?;
    match link.address {
        IpAddr::V4(address) => {
            socket.set_multicast_ttl_v4(0)?;
            socket.set_multicast_if_v4(&address)?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_hops_v6(0)?;
            socket.set_multicast_if_v6(link.index)?;
        }
    }
    Ok(socket.into())
}

/// One datagram from the interface to the port of `receiver` at `to`: how long it took.
fn round(link: &Link, receiver: &UdpSocket, to: IpAddr) -> Result<(SocketAddr, Duration), String> {
    let call = |name: &'static str| move |error: io::Error| format!("{name}: {error}");
    let port = receiver.local_addr().map_err(call("getsockname"))?.port();
    let to = link.reach(to, port);
    let sender = sender(link).map_err(|error| format!("a socket at {}: {error}", link.address))?;
    let own = sender.local_addr().map_err(call("getsockname"))?;
    let begin = Instant::now();
    sender.send_to(&header(port), to).map_err(|error| format!("sendto {to}: {error}"))?;
    match receive(receiver, own, begin + LIMIT) {
        Ok(true) => Ok((to, begin.elapsed())),
        Ok(false) => Err(format!("to {to}: not back within {} ms", LIMIT.as_millis())),
        Err(error) => Err(format!("receiving at {to}: {error}")),
    }
}

/// Has a datagram of this sender come by then? Others may send to this socket, too.
fn receive(receiver: &UdpSocket, own: SocketAddr, end: Instant) -> io::Result<bool> {
    let mut bytes = [0; 64];
    let mut is_own =
        || receiver.recv_from(&mut bytes).map(|(_, from)| (from.ip(), from.port()) == (own.ip(), own.port()));
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        receiver.set_read_timeout(Some(left))?;
        // A time that is over is told by the loop.
        if is_own().unwrap_or(false) {
            return Ok(true);
        }
    }
    // Who was kept from the processor until now has not looked at what came in time.
    receiver.set_nonblocking(true)?;
    Ok((0..OTHERS).map_while(|_| is_own().ok()).any(|is_own| is_own))
}

/// RTPS 2.5 §8.3.3.1: protocol, version, a vendor that there is not, and a prefix of nobody.
fn header(port: u16) -> [u8; 20] {
    let mut header = *b"RTPS\x02\x05\x00\x00taut doctor.";
    header[18..].copy_from_slice(&port.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn datagrams_come_back_on_loopback() {
        let config = taut::Config { interfaces: vec!["lo".to_owned()], ..taut::Config::default() };
        let links = links(&config.network_interfaces().unwrap());
        assert_eq!(
            (links[0].index, links[0].mtu.as_ref().is_ok_and(|mtu| *mtu > 1_500)),
            (1, true),
            "{links:?}"
        );
        let findings = check(&links, 173, true);
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.state == State::Good), "{findings:?}");
        assert!(findings[0].seen.starts_with("to 239.255.0.1:50650, back after"), "{findings:?}");
    }

    #[test]
    fn what_came_while_nobody_could_look_has_come() {
        let [receiver, other, own, silent] = [(); 4].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (to, over) = (receiver.local_addr().unwrap(), Instant::now());
        let send = |from: &UdpSocket| assert_eq!(from.send_to(&[0; 20], to).unwrap(), 20);
        [&other, &other, &own].into_iter().for_each(send);
        let come = |from: &UdpSocket, end| receive(&receiver, from.local_addr().unwrap(), end).unwrap();
        assert!(come(&own, over), "behind those of others");
        assert!(!come(&own, over), "once");
        send(&other);
        assert!(!come(&silent, over), "that of another");
        receiver.set_nonblocking(false).unwrap();
        send(&own);
        assert!(come(&own, over + LIMIT), "in time");
    }

    #[test]
    fn over_ipv6_as_well() {
        let interfaces = vec!["lo".to_owned()];
        let config = taut::Config { interfaces, ipv6: taut::Ipv6::On, ..taut::Config::default() };
        let links: Vec<Link> = links(&config.network_interfaces().unwrap());
        let links: Vec<Link> = links.into_iter().filter(|link| link.address.is_ipv6()).collect();
        let [link] = &links[..] else { panic!("no IPv6 on loopback: {links:?}") };
        assert!(link.mtu.as_ref().is_ok_and(|mtu| *mtu >= 1_280), "{link:?}");
        let findings = check(&links, 174, true);
        let [unicast] = &findings[..] else { panic!("groups on loopback: {findings:?}") };
        assert_eq!((unicast.state, unicast.name.as_str()), (State::Good, "unicast test on lo over IPv6"));
        assert!(unicast.seen.starts_with("to [::1]:50910, back after"), "{findings:?}");
    }

    #[test]
    fn an_interface_that_there_is_not() {
        let gone = super::super::multicast::tests::link("eth0");
        let findings = check(&[Link { address: Ipv4Addr::new(203, 0, 113, 9).into(), ..gone }], 173, false);
        assert!(
            findings[0].state == State::Harmful && findings[0].seen.starts_with("bind 203.0.113.9"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_loopback_interface_that_is_down_is_no_firewall() {
        assert!(!is_loopback_down(), "the tests need it");
        let link = super::super::multicast::tests::link("eth0");
        let lost = |kind, is_down| {
            let finding = finding(&link, kind, Err("not back".into()), is_down);
            (finding.seen, finding.mend.unwrap().command)
        };
        assert_eq!(lost("unicast", true), ("not back; lo is down".into(), "ip link set lo up".into()));
        for (kind, is_down) in [("unicast", false), ("multicast", true)] {
            let (seen, mend) = lost(kind, is_down);
            assert!(seen == "not back" && mend.contains("nft list ruleset"), "{seen}: {mend}");
        }
    }
}
