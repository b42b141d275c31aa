//! Where one kind of traffic reaches the participant: its ports, its groups, the locators that follow from them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use taut_base::{Locator, Result};

use crate::config::DEFAULT_GROUP;
use crate::group::{self, Group};
use crate::socket::{self, refused};
use crate::warnings::Warnings;
use crate::{Interface, Multicast, UdpConfig};

pub(crate) struct Ends {
    /// The port of the unicast socket.
    v4: u16,
    /// The same of IPv6; 0 if that is not used.
    v6: u16,
    pub(crate) groups: Vec<Group>,
    unicast: Vec<Locator>,
    multicast: Vec<Locator>,
}

impl Ends {
    pub(crate) fn unicast(&self) -> &[Locator] {
        &self.unicast
    }

    pub(crate) fn multicast(&self) -> &[Locator] {
        &self.multicast
    }

    /// Finds the locators anew.
    pub(crate) fn locate(&mut self, interfaces: &[Interface]) {
        let port = |address: &IpAddr| if address.is_ipv4() { self.v4 } else { self.v6 };
        let addresses = interfaces.iter().map(|own| own.address);
        self.unicast = addresses.map(|ip| SocketAddr::new(ip, port(&ip)).into()).collect();
        self.multicast = self.groups.iter().filter_map(Group::announced).collect();
    }
}

/// What the opening of a port's ends depends on.
pub(crate) struct Opening<'a> {
    pub(crate) config: &'a UdpConfig,
    /// Sockets of groups are kept for interfaces that may come.
    pub(crate) stays: bool,
    pub(crate) warnings: Warnings,
}

impl Opening<'_> {
    /// The ends of these unicast sockets and of the groups at `port`, those of IPv6 as named, and all their sockets in
    /// the order of the receiver, in which they are numbered from `first` on.
    pub(crate) fn ends(
        &mut self,
        first: usize,
        v4: UdpSocket,
        v6: Option<UdpSocket>,
        port: Option<u16>,
        groups_v6: &[Ipv6Addr],
        interfaces: &mut [Interface],
    ) -> Result<(Ends, Vec<UdpSocket>)> {
        let port_of = |socket: &UdpSocket| {
            let address = socket.local_addr().map_err(|error| refused("getsockname".into(), error))?;
            Ok(address.port())
        };
        let mut ends = Ends {
            v4: port_of(&v4)?,
            v6: v6.as_ref().map_or(Ok(0), port_of)?,
            groups: Vec::new(),
            unicast: Vec::new(),
            multicast: Vec::new(),
        };
        let mut sockets = Vec::new();
        let v4 = (Some(v4), vec![IpAddr::V4(DEFAULT_GROUP)]);
        let v6 = (v6, groups_v6.iter().copied().map(IpAddr::V6).collect());
        for (unicast, groups) in [v4, v6].into_iter().filter_map(|(unicast, groups)| Some((unicast?, groups)))
        {
            sockets.push(unicast);
            for group in groups {
                if let Some((socket, joined)) = self.join(group, port, interfaces)? {
                    let locator = SocketAddr::new(group, port.unwrap_or_default()).into();
                    ends.groups.push(Group::new(locator, first + sockets.len(), joined));
                    sockets.push(socket);
                }
            }
        }
        Ok((ends, sockets))
    }

    /// Joins a group on the interfaces that take the membership. None if there is nothing to hear: no interface
    /// does, and the socket is not kept for those to come.
    fn join(
        &mut self,
        group: IpAddr,
        port: Option<u16>,
        interfaces: &mut [Interface],
    ) -> Result<Option<(UdpSocket, Vec<u32>)>> {
        let stays = self.stays && self.config.multicast != Multicast::Never;
        let Some(port) = port.filter(|_| stays || interfaces.iter().any(|own| own.hears(group))) else {
            return Ok(None);
        };
        let (socket, mut joined) = (socket::open_multicast(self.config, group, port)?, Vec::new());
        group::join(&socket, group, interfaces, &mut joined, &mut self.warnings);
        let is_heard = stays || !joined.is_empty();
        Ok(is_heard.then_some((socket, joined)))
    }
}
