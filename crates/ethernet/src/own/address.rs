//! An address of our own, and which destinations go by its device: routes are one network and one gateway.

use std::net::Ipv4Addr;

/// An address of IPv4 that is a participant's alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of it that name the network. *Range*: 1 to 30.
    pub prefix_len: u8,
    /// Who passes on what is for hosts beyond that network, if somebody does.
    pub gateway: Option<Ipv4Addr>,
}

impl OwnAddress {
    fn mask(prefix_len: u8) -> u32 {
        u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(prefix_len))).unwrap_or(0)
    }

    /// Is it a host of that network, as far as its number says?
    pub fn is_near(&self, host: Ipv4Addr) -> bool {
        let mask = Self::mask(self.prefix_len);
        let (own, host) = (u32::from(self.address), u32::from(host));
        // The first and the last are those of the network and of all its hosts.
        own & mask == host & mask && host & !mask != 0 && host | mask != u32::MAX
    }

    /// Who takes what is for an address: itself, a group, or the gateway. `None` for what is not the device's: `sockets`
    /// reach it, or nobody is to get it.
    pub(super) fn hop(&self, to: Ipv4Addr, sockets: &[SocketNetwork]) -> Option<Ipv4Addr> {
        if to.is_multicast() {
            return Some(to);
        }
        let is_sockets = |(address, prefix_len): &SocketNetwork| {
            let mask = Self::mask(*prefix_len);
            u32::from(*address) & mask == u32::from(to) & mask
        };
        // A host of this machine, or one of a network within ours that is the sockets'.
        let is_nearer = |of: &SocketNetwork| of.0 == to || of.1 > self.prefix_len && is_sockets(of);
        if to == self.address || to.is_loopback() || sockets.iter().any(is_nearer) {
            return None;
        }
        if self.is_near(to) {
            return Some(to);
        }
        let is_host = !to.is_broadcast() && !to.is_unspecified() && !sockets.iter().any(is_sockets);
        self.gateway.filter(|_| is_host)
    }
}

/// Addresses of IPv4 that the host's sockets reach: one, and bits of it that name a network.
pub type SocketNetwork = (Ipv4Addr, u8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_way_a_destination_is() {
        let own = Ipv4Addr::new(10, 0, 0, 2);
        let router = Ipv4Addr::new(10, 0, 0, 254);
        let [alone, routed] =
            [None, Some(router)].map(|gateway| OwnAddress { address: own, prefix_len: 24, gateway });
        let sockets = [(Ipv4Addr::new(192, 168, 7, 1), 24), (Ipv4Addr::new(10, 0, 0, 9), 32)];
        let group = Ipv4Addr::new(239, 255, 0, 1);
        let (far, near) = (Ipv4Addr::new(172, 16, 0, 1), Ipv4Addr::new(10, 0, 0, 77));
        for (to, without, with) in [
            (near, Some(near), Some(near)),
            (group, Some(group), Some(group)),
            (far, None, Some(router)),
            (own, None, None),
            (Ipv4Addr::LOCALHOST, None, None),
            (Ipv4Addr::new(192, 168, 7, 8), None, None),
            (Ipv4Addr::new(10, 0, 0, 9), None, None),
            (Ipv4Addr::BROADCAST, None, None),
            (Ipv4Addr::UNSPECIFIED, None, None),
        ] {
            assert_eq!((alone.hop(to, &sockets), routed.hop(to, &sockets)), (without, with), "{to}");
        }
    }

    #[test]
    fn of_two_networks_the_narrower_one() {
        let own = OwnAddress { address: Ipv4Addr::new(10, 0, 0, 2), prefix_len: 16, gateway: None };
        let (ours, theirs) = (Ipv4Addr::new(10, 0, 9, 1), Ipv4Addr::new(10, 0, 7, 1));
        for (prefix_len, hop) in [(24, None), (16, Some(theirs)), (8, Some(theirs))] {
            let sockets = [(Ipv4Addr::new(10, 0, 7, 9), prefix_len)];
            assert_eq!(
                (own.hop(ours, &sockets), own.hop(theirs, &sockets)),
                (Some(ours), hop),
                "/{prefix_len}"
            );
        }
    }
}
