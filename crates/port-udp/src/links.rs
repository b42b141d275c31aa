//! By which interface peers were heard whose addresses mean something on one link only. A locator has no room for
//! it. RFC 4007 §6.

use std::net::SocketAddrV6;

use crate::UdpPort;
use crate::interface::is_of_link;
use crate::receive::Receiver;

impl Receiver {
    /// A datagram came from there.
    #[inline]
    pub(crate) fn note_link(&mut self, source: &SocketAddrV6) {
        let heard = (*source.ip(), source.scope_id());
        if is_of_link(heard.0.into()) && self.heard.last() != Some(&heard) {
            self.heard.push(heard);
        }
    }
}

impl UdpPort {
    /// Hands on which peers have been heard on which links.
    #[inline]
    pub(crate) fn learn_links(&mut self) {
        if !self.receiver.heard.is_empty() {
            let heard = self.receiver.heard.drain(..);
            heard.for_each(|(peer, link)| self.sender.learn_link(peer, link));
        }
    }
}
