//! From what people write for a peer to where it is looked for.

use std::net::{SocketAddr, ToSocketAddrs};

use taut_base::{Error, Locator, Result};
use taut_port_udp::{Interface, UdpConfig, UdpPort};

/// Participants per host that an initial peer without a port is asked for, by index.
const INITIAL_PEER_INDEXES: u32 = 10;

/// Where initial peers are looked for: at the port that is named, else at the well-known ones of a host.
/// The port is told which interface reaches a peer of the link (`[fe80::1%eth0]`).
///
/// Where frames go over IPv6 (`by_frames`), all addresses of a peer are asked: sockets may reach no other host.
///
/// *Errors*: `BadParameter` for one that is not known, or that only IPv6 reaches if that is not used.
pub(crate) fn resolve(
    peers: &[String],
    config: &UdpConfig,
    port: &mut UdpPort,
    by_frames: bool,
) -> Result<Vec<Locator>> {
    let uses = (uses_v4(port.interfaces()), port.uses_ipv6());
    let mut locators = Vec::new();
    for peer in peers {
        let (host, named) = parse(peer)?;
        let found = (host, named.unwrap_or(0)).to_socket_addrs().map_err(|error| {
            Error::BadParameter(format!(
                "initial peer {peer:?} is not known: {error}; give an address, as 192.168.1.7, 192.168.1.7:7410 or \
                 [fd00::7]:7410"
            ))
        })?;
        let found = if by_frames { found.collect() } else { chosen(peer, found.collect(), uses)? };
        for mut address in found {
            if let SocketAddr::V6(v6) = address
                && v6.scope_id() != 0
            {
                port.set_link(*v6.ip(), v6.scope_id());
            }
            if named.is_some() {
                locators.push(address.into());
                continue;
            }
            for port in well_known(config) {
                address.set_port(port);
                locators.push(address.into());
            }
        }
    }
    Ok(locators)
}

/// Where participants of a host may listen: the ports of the first of them, and that of the group, which those have open, too,
/// whose own ports are whatever the system gives, as Cyclone DDS's are.
fn well_known(config: &UdpConfig) -> impl Iterator<Item = u16> {
    let (ports, domain) = (&config.ports, config.domain_id);
    let own = (0..INITIAL_PEER_INDEXES).filter_map(move |index| ports.unicast(domain, index));
    own.map(|(metatraffic, _)| metatraffic).chain(ports.metatraffic_multicast(domain))
}

/// Is each of these written as an initial peer is? Asks nobody whether it is known.
///
/// *Errors*: `BadParameter` for one whose port is none.
///
/// ```
/// assert!(taut_exec::check_peers(&["robot.local:7410".into()]).is_ok());
/// assert!(taut_exec::check_peers(&["robot.local:74100".into()]).is_err());
/// ```
pub fn check_peers(peers: &[String]) -> Result<()> {
    peers.iter().try_for_each(|peer| parse(peer).map(|_| ()))
}

/// The host and the port. An address of IPv6 has a port only behind brackets.
fn parse(peer: &str) -> Result<(&str, Option<u16>)> {
    let (host, port) = match peer.strip_prefix('[').and_then(|inner| inner.rsplit_once(']')) {
        Some((host, "")) => return Ok((host, None)),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match peer.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => return Ok((peer, None)),
        },
    };
    // Nobody can be reached at port 0.
    match port.and_then(|port| port.parse().ok()).filter(|port| *port != 0) {
        Some(port) => Ok((host, Some(port))),
        None => Err(Error::BadParameter(format!(
            "initial peer {peer:?} has no port from 1 to 65535 behind its host: write HOST:PORT, as 192.168.1.7:7410 or \
             [fd00::7]:7410, or HOST alone to ask the ports of its first {INITIAL_PEER_INDEXES} participants"
        ))),
    }
}

/// Does IPv4 lead to other hosts, or to this one if nothing does?
fn uses_v4(interfaces: &[Interface]) -> bool {
    let none_is_far = interfaces.iter().all(|own| own.loopback);
    interfaces.iter().any(|own| own.address.is_ipv4() && (none_is_far || !own.loopback))
}

/// Of the addresses of a peer those of the kinds that are used, of IPv4 and IPv6, IPv4 first: which of them it has sockets for its
/// name does not tell. If there are none, those of IPv4, whose sockets there always are.
fn chosen(peer: &str, found: Vec<SocketAddr>, uses: (bool, bool)) -> Result<Vec<SocketAddr>> {
    let (mut v4, v6): (Vec<_>, Vec<_>) = found.into_iter().partition(SocketAddr::is_ipv4);
    match uses {
        (false, true) if !v6.is_empty() => Ok(v6),
        (_, true) => {
            v4.extend(v6);
            Ok(v4)
        }
        (_, false) if !v4.is_empty() => Ok(v4),
        (_, false) => Err(Error::BadParameter(format!(
            "initial peer {peer:?} is reached by IPv6 only, which this participant does not use: set ipv6 to \"on\", with an \
             interface that has an address of it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (peer, host, port) in [
            ("robot.local", "robot.local", None),
            ("robot.local:7410", "robot.local", Some(7_410)),
            ("192.168.1.7:7410", "192.168.1.7", Some(7_410)),
            ("2001:db8::1", "2001:db8::1", None),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("[2001:db8::1]:7410", "2001:db8::1", Some(7_410)),
            ("[fe80::1%eth0]:7410", "fe80::1%eth0", Some(7_410)),
            ("[fe80::1%eth0]", "fe80::1%eth0", None),
        ] {
            assert_eq!(parse(peer).unwrap(), (host, port), "{peer}");
        }
    }

    #[test]
    fn what_is_no_port_is_not_left_out() {
        for peer in [
            "robot:x",
            "robot:",
            "10.0.0.7:0",
            "10.0.0.7:74100",
            "[fd00::7]:74100",
            "[fd00::7]:",
            "[fd00::7]7410",
        ] {
            let text = parse(peer).unwrap_err().to_string();
            assert!(text.contains(peer) && text.contains("no port from 1 to 65535"), "{text}");
            assert!(text.contains("write HOST:PORT, as 192.168.1.7:7410 or [fd00::7]:7410"), "{text}");
        }
    }

    #[test]
    fn a_host_is_asked_at_the_ports_of_its_first_participants_and_of_the_group() {
        let config = UdpConfig { domain_id: 1, ..UdpConfig::default() };
        let ports = Vec::from_iter(well_known(&config));
        assert_eq!(ports, [7_660, 7_662, 7_664, 7_666, 7_668, 7_670, 7_672, 7_674, 7_676, 7_678, 7_650]);
    }

    /// As DNS may tell them, in any order.
    #[test]
    fn the_kinds_of_address_that_are_used() {
        let (v4, v6) = ("10.0.0.1:1".parse().unwrap(), "[fd00::1]:1".parse().unwrap());
        let of = |found: &[SocketAddr], v4, v6| chosen("x", found.to_vec(), (v4, v6)).unwrap();
        assert_eq!(of(&[v6, v4], true, false), [v4]);
        assert_eq!(of(&[v6, v4], true, true), [v4, v6]);
        assert_eq!(of(&[v4, v6], false, true), [v6], "nothing leads to its address of IPv4");
        assert_eq!((of(&[v6], true, true), of(&[v4], true, true)), (vec![v6], vec![v4]));
        assert_eq!(of(&[v4], false, true), [v4], "it may be this host");
        let text = chosen("x", vec![v6], (true, false)).unwrap_err().to_string();
        assert!(text.contains("set ipv6 to \"on\""), "{text}");
    }

    #[test]
    fn loopback_leads_to_no_other_host() {
        let interface = |name: &str, address: &str| Interface {
            name: name.into(),
            index: 1,
            address: address.parse().unwrap(),
            prefix_len: 64,
            loopback: name == "lo",
            multicast: false,
        };
        let [lo, lo_v6] = ["127.0.0.1", "::1"].map(|address| interface("lo", address));
        let [far, far_v6] = ["10.0.0.1", "fd00::1"].map(|address| interface("eth0", address));
        assert!(uses_v4(&[far.clone(), far_v6.clone()]) && uses_v4(&[lo_v6.clone(), far]));
        assert!(!uses_v4(&[lo.clone(), far_v6]) && !uses_v4(std::slice::from_ref(&lo_v6)));
        assert!(uses_v4(&[lo, lo_v6]), "this host is all there is");
    }
}
