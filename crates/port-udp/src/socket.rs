//! Opening sockets: which options, which ports, which words when the kernel refuses.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use taut_base::{Error, Result};
use taut_port::PortError;

use crate::bound::Bound;
use crate::config::LAST_PARTICIPANT_INDEX;
use crate::mark;
use crate::{Interface, UdpConfig};

/// A pair of unicast sockets: of discovery and of samples.
pub(crate) struct Pair {
    pub(crate) metatraffic: UdpSocket,
    pub(crate) user: UdpSocket,
}

/// The unicast sockets of a participant and the index whose ports they have, if any.
pub(crate) struct Unicast {
    pub(crate) index: Option<u32>,
    pub(crate) v4: Pair,
    pub(crate) v6: Option<Pair>,
}

/// The unicast sockets, at the ports of the asked for index, of the first free one, or, when all
/// are taken, at ports of the kernel's choice: so the host has no limit of participants. Peers
/// learn the ports from discovery; only peers that guess ports (unicast initial peers) miss them.
pub(crate) fn open_unicast(config: &UdpConfig, v4: Bound, v6: Option<Bound>) -> Result<Unicast> {
    let (first, last) = match config.participant_index {
        Some(index) => (index, index),
        None => (0, LAST_PARTICIPANT_INDEX),
    };
    let bind = |ports| -> std::result::Result<(Pair, Option<Pair>), (SocketAddr, io::Error)> {
        let pair = bind_pair(config, v4, ports)?;
        Ok((pair, v6.map(|v6| bind_pair(config, v6, ports)).transpose()?))
    };
    for index in first..=last {
        let Some(ports) = config.ports.unicast(config.domain_id, index) else { break };
        match bind(ports) {
            Ok((v4, v6)) => return Ok(Unicast { index: Some(index), v4, v6 }),
            Err((_, error)) if is_taken(&error) && config.participant_index.is_none() => {}
            Err((address, error)) => return Err(refused(format!("bind {address}"), error)),
        }
    }
    let (v4, v6) = bind((0, 0)).map_err(|(address, error)| refused(format!("bind {address}"), error))?;
    Ok(Unicast { index: None, v4, v6 })
}

/// The sockets at the critical port, of IPv4 and IPv6, if there is one.
pub(crate) fn open_critical(
    config: &UdpConfig,
    v4: Bound,
    v6: Option<Bound>,
) -> Result<Option<(UdpSocket, Option<UdpSocket>)>> {
    let Some(port) = config.critical_port else { return Ok(None) };
    let open = |to: Bound| {
        bind(config, to, port.get()).map_err(|(address, source)| {
            let remedy = match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program holds the critical port (`ss -ulpn` names it): stop it, or choose another port"
                }
                _ => "choose another critical port",
            };
            Error::Error(PortError { call: format!("bind {address}"), source, remedy }.to_string())
        })
    };
    Ok(Some((open(v4)?, v6.map(open).transpose()?)))
}

/// Both, or the address that failed and why.
fn bind_pair(
    config: &UdpConfig,
    to: Bound,
    (metatraffic, user): (u16, u16),
) -> std::result::Result<Pair, (SocketAddr, io::Error)> {
    let bind = |port| bind(config, to, port);
    Ok(Pair { metatraffic: bind(metatraffic)?, user: bind(user)? })
}

/// A socket that has this address, or the address and why not. Never shared: a datagram has one participant.
fn bind(config: &UdpConfig, to: Bound, port: u16) -> std::result::Result<UdpSocket, (SocketAddr, io::Error)> {
    let address = SocketAddr::new(to.address, port);
    let failed = |error| (address, error);
    let socket = socket(address.ip()).map_err(failed)?;
    to.restrict(&socket).map_err(failed)?;
    socket.bind(&address.into()).map_err(failed)?;
    set_buffers(&socket, config);
    mark::set_first(&socket, address.ip(), config.dscp);
    Ok(socket.into())
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// A socket that hears `port` of the group wherever that is joined.
pub(crate) fn open_multicast(config: &UdpConfig, group: IpAddr, port: u16) -> Result<UdpSocket> {
    let call = || format!("bind {}", SocketAddr::new(group, port));
    let socket = socket(group).map_err(|error| refused(call(), error))?;
    // Every participant of the host hears this port. Linux shares it if both sides set either
    // option; peers of other vendors set the one or the other.
    socket.set_reuse_address(true).map_err(|error| refused(call(), error))?;
    // Kernels without the second option do with the first.
    let _ = socket.set_reuse_port(true);
    // Bound to the group: unicast to this port is not ours. A group of the link would bind to one
    // interface as well. Without MULTICAST_ALL: what arrives through another program's membership
    // on another interface is not ours either; over IPv6 Linux delivers that all the same, if we have
    // joined the group anywhere.
    let address = if group.is_ipv4() { group } else { Ipv6Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(address, port).into()).map_err(|error| refused(call(), error))?;
    let _ = match group {
        IpAddr::V4(_) => socket.set_multicast_all_v4(false),
        IpAddr::V6(_) => socket.set_multicast_all_v6(false),
    };
    set_buffers(&socket, config);
    Ok(socket.into())
}

/// A socket for what leaves by one interface to a group.
pub(crate) fn open_multicast_sender(config: &UdpConfig, interface: &Interface) -> io::Result<UdpSocket> {
    let address = interface.address;
    let socket = socket(address)?;
    // Bound, so that the source is this address on loopback too, and no other address of the
    // host can fill a queue that nobody reads.
    socket.bind(&interface.socket_addr().into())?;
    match address {
        IpAddr::V4(address) => {
            // By address, which needs no route; by index Linux would take the source from elsewhere.
            socket.set_multicast_if_v4(&address)?;
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(u32::from(config.ttl))?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_if_v6(interface.index)?;
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(u32::from(config.ttl))?;
        }
    }
    let _ = socket.set_send_buffer_size(config.send_buffer);
    let _ = socket.set_recv_buffer_size(0);
    mark::set_first(&socket, address, config.dscp);
    Ok(socket.into())
}

/// A socket to be connected to one address of IPv4. It sends from where `unicast` does, by a port of the kernel's choice.
pub(crate) fn open_way(config: &UdpConfig, unicast: &UdpSocket) -> Result<UdpSocket> {
    let open = || -> io::Result<Socket> {
        let own = unicast.local_addr()?.ip();
        let socket = socket(own)?;
        if !own.is_unspecified() {
            socket.bind(&SocketAddr::new(own, 0).into())?;
        }
        let _ = socket.set_send_buffer_size(config.send_buffer);
        let _ = socket.set_recv_buffer_size(0);
        mark::set_first(&socket, own, config.dscp);
        Ok(socket)
    };
    open().map(Into::into).map_err(|error| refused("socket to send by".into(), error))
}

/// A socket for addresses of the same kind as this.
fn socket(address: IpAddr) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // Those of IPv4 have sockets of their own, at the same ports.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Best effort: the kernel caps both silently, and the port reports what came of it. What is received is not capped where
/// this process has CAP_NET_ADMIN.
fn set_buffers(socket: &Socket, config: &UdpConfig) {
    if setsockopt(socket, sockopt::RcvBufForce, &config.receive_buffer).is_err() {
        let _ = socket.set_recv_buffer_size(config.receive_buffer);
    }
    let _ = socket.set_send_buffer_size(config.send_buffer);
}

/// The error of a call that the operating system refused, with the remedy for its reason.
pub(crate) fn refused(call: String, source: io::Error) -> Error {
    let remedy = match source.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            "another program holds this port (`ss -ulpn` names it): stop it, or choose another participant \
             index or domain id"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "this process may not: allow it in the policy of its sandbox, container or security module, and \
             choose ports above 1023"
        }
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (`ulimit -n`)",
        Some(libc::ENOBUFS | libc::ENOMEM) => "the kernel has no memory left for sockets: free some",
        Some(libc::EADDRNOTAVAIL | libc::ENODEV) => "the interface has just changed: try again",
        Some(libc::EAFNOSUPPORT) => "enable IPv4 and IPv6 in this system, or use no IPv6 (`ipv6 = \"off\"`)",
        _ => "check the network set-up (`ip addr`)",
    };
    Error::Error(PortError { call, source, remedy }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_remedies() {
        let text = |errno| refused("bind x".into(), io::Error::from_raw_os_error(errno)).to_string();
        assert!(text(libc::EACCES).contains("this process may not"), "{}", text(libc::EACCES));
        assert!(text(libc::EMFILE).contains("ulimit -n"));
        assert!(text(libc::EADDRINUSE).starts_with("bind x: Address already in use"));
    }
}
