//! From what people write for a peer to where it is looked for.

use std::net::{SocketAddr, ToSocketAddrs};

use taut_base::{Error, Locator, Result};
use taut_port_udp::{UdpConfig, UdpPort};

/// Participants per host that an initial peer without a port is asked for, by index.
const INITIAL_PEER_INDEXES: u32 = 10;

/// Where initial peers are looked for: at the port that is named, else at those of the first participants of a host.
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
    let uses_v6 = port.uses_ipv6();
    let mut locators = Vec::new();
    for peer in peers {
        let (host, named) = parse(peer)?;
        let found = (host, named.unwrap_or(0)).to_socket_addrs().map_err(|error| {
            Error::BadParameter(format!(
                "initial peer {peer:?} is not known: {error}; give an address, as 192.168.1.7, 192.168.1.7:7410 or \
                 [fd00::7]:7410"
            ))
        })?;
        let found = if by_frames { found.collect() } else { chosen(peer, found.collect(), uses_v6)? };
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
            for index in 0..INITIAL_PEER_INDEXES {
                if let Some((metatraffic, _)) = config.ports.unicast(config.domain_id, index) {
                    address.set_port(metatraffic);
                    locators.push(address.into());
                }
            }
        }
    }
    Ok(locators)
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

/// Of the addresses of a peer those of IPv4, and those of IPv6 if there are no others and it is used.
fn chosen(peer: &str, found: Vec<SocketAddr>, uses_v6: bool) -> Result<Vec<SocketAddr>> {
    let (v4, v6): (Vec<_>, Vec<_>) = found.into_iter().partition(SocketAddr::is_ipv4);
    match (v4.is_empty(), uses_v6) {
        (false, _) => Ok(v4),
        (true, true) => Ok(v6),
        (true, false) => Err(Error::BadParameter(format!(
            "initial peer {peer:?} is reached by IPv6 only, which this participant does not use: set ipv6 to \"on\""
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
    fn ipv4_first() {
        let (v4, v6) = ("10.0.0.1:1".parse().unwrap(), "[fd00::1]:1".parse().unwrap());
        assert_eq!(chosen("x", vec![v6, v4], true).unwrap(), [v4]);
        assert_eq!(chosen("x", vec![v6], true).unwrap(), [v6]);
        let text = chosen("x", vec![v6], false).unwrap_err().to_string();
        assert!(text.contains("set ipv6 to \"on\""), "{text}");
    }
}
