//! Opening sockets: which options, which ports, which words when the kernel refuses.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use taut_base::{Error, Result};
use taut_port::PortError;

use crate::config::{DEFAULT_GROUP, LAST_PARTICIPANT_INDEX};
use crate::{Interface, UdpConfig};

/// The unicast sockets of a participant and the index whose ports they have, if any.
pub(crate) struct Unicast {
    pub(crate) index: Option<u32>,
    pub(crate) metatraffic: UdpSocket,
    pub(crate) user: UdpSocket,
}

/// The unicast sockets, at the ports of the asked for index, of the first free one, or, when all
/// are taken, at ports of the kernel's choice: so the host has no limit of participants. Peers
/// learn the ports from discovery; only peers that guess ports (unicast initial peers) miss them.
pub(crate) fn open_unicast(config: &UdpConfig, address: Ipv4Addr) -> Result<Unicast> {
    let (first, last) = match config.participant_index {
        Some(index) => (index, index),
        None => (0, LAST_PARTICIPANT_INDEX),
    };
    for index in first..=last {
        let Some(ports) = config.ports.unicast(config.domain_id, index) else { break };
        match bind_pair(config, address, ports) {
            Ok((metatraffic, user)) => return Ok(Unicast { index: Some(index), metatraffic, user }),
            Err((_, error)) if is_taken(&error) && config.participant_index.is_none() => {}
            Err((port, error)) => return Err(refused(format!("bind {address}:{port}"), error)),
        }
    }
    let (metatraffic, user) = bind_pair(config, address, (0, 0))
        .map_err(|(_, error)| refused(format!("bind {address}:0"), error))?;
    Ok(Unicast { index: None, metatraffic, user })
}

/// Both, or the port that failed and why. Never shared: a datagram has one participant.
fn bind_pair(
    config: &UdpConfig,
    address: Ipv4Addr,
    (metatraffic, user): (u16, u16),
) -> std::result::Result<(UdpSocket, UdpSocket), (u16, io::Error)> {
    let bind = |port| {
        let socket = socket().map_err(|error| (port, error))?;
        socket.bind(&SocketAddrV4::new(address, port).into()).map_err(|error| (port, error))?;
        Ok(socket)
    };
    let (metatraffic, user) = (bind(metatraffic)?, bind(user)?);
    for socket in [&metatraffic, &user] {
        set_buffers(socket, config);
        // A mark that a host does not allow is no reason not to talk.
        let _ = socket.set_tos_v4(u32::from(config.dscp) << 2);
    }
    Ok((metatraffic.into(), user.into()))
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// A socket that hears `port` of the group on each of `interfaces` that takes the membership;
/// those that do not are marked. `None` if no interface does.
pub(crate) fn open_multicast(
    config: &UdpConfig,
    port: u16,
    interfaces: &mut [Interface],
) -> Result<Option<UdpSocket>> {
    let call = || format!("bind {DEFAULT_GROUP}:{port}");
    let socket = socket().map_err(|error| refused(call(), error))?;
    // Every participant of the host hears this port. Linux shares it if both sides set either
    // option; peers of other vendors set the one or the other.
    socket.set_reuse_address(true).map_err(|error| refused(call(), error))?;
    // Kernels without the second option do with the first.
    let _ = socket.set_reuse_port(true);
    // Bound to the group: unicast to this port is not ours. Without MULTICAST_ALL: what arrives
    // through another program's membership on another interface is not ours either.
    socket.bind(&SocketAddrV4::new(DEFAULT_GROUP, port).into()).map_err(|error| refused(call(), error))?;
    let _ = socket.set_multicast_all_v4(false);
    set_buffers(&socket, config);
    let mut joined: Vec<u32> = Vec::new();
    for interface in interfaces.iter_mut().filter(|interface| interface.multicast) {
        if joined.contains(&interface.index) {
            continue;
        }
        let on = InterfaceIndexOrAddress::Index(interface.index);
        match socket.join_multicast_v4_n(&DEFAULT_GROUP, &on) {
            Ok(()) => joined.push(interface.index),
            Err(_) => interface.multicast = false,
        }
    }
    Ok(if joined.is_empty() { None } else { Some(socket.into()) })
}

/// A socket for what leaves by one interface to a group.
pub(crate) fn open_multicast_sender(config: &UdpConfig, interface: &Interface) -> Result<UdpSocket> {
    let address = interface.address;
    let open = || -> io::Result<Socket> {
        let socket = socket()?;
        // Bound, so that the source is this address on loopback too, and no other address of the
        // host can fill a queue that nobody reads.
        socket.bind(&SocketAddrV4::new(address, 0).into())?;
        // By address, which needs no route; by index Linux would take the source from elsewhere.
        socket.set_multicast_if_v4(&address)?;
        socket.set_multicast_loop_v4(true)?;
        socket.set_multicast_ttl_v4(u32::from(config.ttl))?;
        Ok(socket)
    };
    let socket =
        open().map_err(|error| refused(format!("multicast by {} ({address})", interface.name), error))?;
    let _ = socket.set_send_buffer_size(config.send_buffer);
    let _ = socket.set_recv_buffer_size(0);
    let _ = socket.set_tos_v4(u32::from(config.dscp) << 2);
    Ok(socket.into())
}

fn socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Best effort: the kernel caps both silently, and the port reports what came of it.
fn set_buffers(socket: &Socket, config: &UdpConfig) {
    let _ = socket.set_recv_buffer_size(config.receive_buffer);
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
        Some(libc::EAFNOSUPPORT) => "enable IPv4 in this system",
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
