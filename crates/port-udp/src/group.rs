//! A multicast group of the participant: on which interfaces it is heard.

use std::io;
use std::net::{IpAddr, UdpSocket};

use socket2::{InterfaceIndexOrAddress, SockRef};
use taut_base::Locator;

use crate::Interface;
use crate::netlink::Lost;
use crate::warnings::Warnings;

/// The group of one kind of traffic.
pub(crate) struct Group {
    /// Its address and port.
    pub(crate) locator: Locator,
    /// Which of the receiver's sockets hears it.
    pub(crate) socket: usize,
    /// The interfaces on which it is joined.
    joined: Vec<u32>,
}

impl Group {
    pub(crate) fn new(locator: Locator, socket: usize, joined: Vec<u32>) -> Group {
        Group { locator, socket, joined }
    }

    /// The locator to announce: none if nothing is heard there.
    pub(crate) fn announced(&self) -> Option<Locator> {
        (!self.joined.is_empty()).then_some(self.locator)
    }

    /// Joins and leaves as the interfaces are now; see [`join`].
    pub(crate) fn follow(
        &mut self,
        socket: &UdpSocket,
        interfaces: &mut [Interface],
        lost: &Lost,
        warnings: &mut Warnings,
    ) {
        let Some(ip) = self.locator.ip() else { return };
        let is_used = |index: &u32| interfaces.iter().any(|own| own.hears(ip) && own.index == *index);
        self.joined.retain(|index| {
            let stays = is_used(index) && !lost.has(*index, ip);
            if !stays {
                // It fails for an interface that is gone, whose membership is gone with it.
                let _ = leave(socket, ip, *index);
            }
            stays
        });
        join(socket, ip, interfaces, &mut self.joined, warnings);
    }
}

impl Interface {
    /// Is this group heard by this address, as far as is known?
    pub(crate) fn hears(&self, group: IpAddr) -> bool {
        self.multicast && self.address.is_ipv4() == group.is_ipv4()
    }
}

/// Joins the group on each interface that uses multicast and has not joined it; those that do not take the
/// membership are marked, and warned of.
pub(crate) fn join(
    socket: &UdpSocket,
    group: IpAddr,
    interfaces: &mut [Interface],
    joined: &mut Vec<u32>,
    warnings: &mut Warnings,
) {
    for interface in interfaces.iter_mut().filter(|own| own.hears(group)) {
        if joined.contains(&interface.index) {
            continue;
        }
        let on = InterfaceIndexOrAddress::Index(interface.index);
        let socket = SockRef::from(socket);
        let outcome = match group {
            IpAddr::V4(group) => socket.join_multicast_v4_n(&group, &on),
            IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.index),
        };
        match outcome {
            Ok(()) => joined.push(interface.index),
            Err(error) => {
                interface.multicast = false;
                warnings.refused_group(interface, group, error);
            }
        }
    }
}

fn leave(socket: &UdpSocket, group: IpAddr, index: u32) -> io::Result<()> {
    let socket = SockRef::from(socket);
    match group {
        IpAddr::V4(group) => socket.leave_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index)),
        IpAddr::V6(group) => socket.leave_multicast_v6(&group, index),
    }
}
