//! Datagrams that come over IPv6: one for each call, as few networks have no IPv4 beside it.

use std::net::SocketAddr;

use taut_port::Frame;

use crate::UdpPort;
use crate::interface::is_of_link;
use crate::receive::{Receiver, counted, weight};
use crate::stats::Stats;
use crate::sys::BURST;

impl Receiver {
    /// As a burst over IPv4.
    pub(crate) fn burst_v6(
        &mut self,
        index: usize,
        budget: usize,
        stats: &mut Stats,
        sink: &mut dyn FnMut(Frame),
    ) -> (usize, usize, bool) {
        let mut left = budget;
        for taken in 0..BURST {
            self.make_ready(1);
            let (Some(from), Some(slot)) = (self.sockets.get(index), self.ready.last_mut()) else {
                return (taken, left, false);
            };
            let traffic = from.traffic;
            let Some((len, source)) = counted(from.socket.recv_from(slot), stats) else {
                return (taken, left, false);
            };
            if let SocketAddr::V6(v6) = source
                && is_of_link(source.ip())
                && self.heard.last() != Some(&(*v6.ip(), v6.scope_id()))
            {
                self.heard.push((*v6.ip(), v6.scope_id()));
            }
            left = left.saturating_sub(weight(len));
            self.deliver_from(traffic, source.into(), (len, len), stats, sink);
            if left == 0 {
                return (taken + 1, left, true);
            }
        }
        (BURST, left, true)
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
