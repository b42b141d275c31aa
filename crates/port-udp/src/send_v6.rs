//! Datagrams that leave over IPv6.

use std::io::IoSlice;
use std::net::{Ipv6Addr, SocketAddr};

use taut_base::Locator;

use crate::Interface;
use crate::group_sockets::GroupSockets;
use crate::interface::is_of_link;
use crate::links::Links;
use crate::mark::Marked;
use crate::send::{How, Refused, Sender, send_by};
use crate::stats::Stats;

pub(crate) struct SenderV6 {
    pub(crate) unicast: Marked,
    multicast: GroupSockets,
    /// By which interface peers are reached whose addresses are of the link.
    links: Links,
}

impl SenderV6 {
    pub(crate) fn new(unicast: Marked) -> SenderV6 {
        SenderV6 { unicast, multicast: Vec::new(), links: Links::default() }
    }

    pub(crate) fn follow(&mut self, sockets: GroupSockets, interfaces: &[Interface]) {
        self.multicast = sockets;
        self.links.follow(interfaces.iter().filter(|own| own.address.is_ipv6()));
    }
}

impl Sender {
    /// Notes by which interface a peer is reached whose address is of the link: `note` says whether it is another one.
    pub(crate) fn note_link(&mut self, peer: Ipv6Addr, note: impl FnOnce(&mut Links) -> bool) {
        if self.v6.as_mut().is_some_and(|v6| note(&mut v6.links)) {
            self.paths.forget_one(peer.into());
        }
    }

    /// The address to send to, with the link if it is one of that; `None` for what is not reached.
    pub(crate) fn address_of(&self, to: &Locator) -> Option<SocketAddr> {
        let mut address = to.socket_addr()?;
        if let SocketAddr::V6(address) = &mut address {
            let v6 = self.v6.as_ref()?;
            if is_of_link((*address.ip()).into()) {
                address.set_scope_id(v6.links.find(*address.ip()));
            }
        }
        Some(address)
    }

    /// Sends to what is no address of IPv4.
    #[cold]
    pub(crate) fn send_v6(
        &mut self,
        to: &Locator,
        parts: &[IoSlice<'_>],
        how: &mut How<'_>,
        stats: &mut Stats,
    ) -> Option<Refused> {
        let (Some(address), Some(v6)) = (self.address_of(to), &mut self.v6) else {
            stats.dropped_unreachable += 1;
            return None;
        };
        if to.is_multicast() {
            let sockets = v6.multicast.iter_mut().map(|(_, socket)| socket);
            send_by(sockets, Some(address), parts, how, stats)
        } else {
            send_by([&mut v6.unicast], Some(address), parts, how, stats)
        }
    }
}
