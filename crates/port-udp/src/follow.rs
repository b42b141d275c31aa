//! Follows the interfaces of the host while the port is open.

use std::os::fd::BorrowedFd;

use taut_base::Result;

use crate::netlink::Watch;
use crate::{Multicast, UdpPort, group_sockets, interface};

impl UdpPort {
    /// A descriptor that is readable when interfaces have changed: then call [`UdpPort::hear_changes`], and
    /// [`UdpPort::follow`] once it has been quiet for a while, as changes come in groups. `None` if the port does
    /// not follow.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(Watch::fd)
    }

    /// Takes what the kernel has said of changes, so that [`UdpPort::watch`] is no longer readable. If an interface has
    /// another MTU, how large datagrams may be is asked for again from now on.
    ///
    /// *Cost*: one syscall for each message, and one more.
    pub fn hear_changes(&mut self) {
        if self.watch.is_some() {
            self.hear();
            self.stats.changes_heard += 1;
        }
    }

    fn hear(&mut self) {
        // At once: until then the kernel cuts what is too large.
        if self.watch.as_mut().is_some_and(Watch::hear) {
            self.forget_paths();
        }
    }

    /// Paths may have become narrower or wider: how large datagrams may be is asked for again.
    pub fn forget_paths(&mut self) {
        self.sender.paths.forget();
    }

    /// Could the last [`UdpPort::follow`] not use what there is? Then the interfaces are those of before, and some of their
    /// addresses may be gone.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Uses the interfaces that there are now. Returns whether that is another answer to who reaches the
    /// participant where; then locators and interfaces are to be asked for again, and warnings at any rate.
    ///
    /// *Errors*: `Error` or `BadParameter` if no interface can be used; the port stays as it was until the next
    /// call: after the next change or, as the system may have refused for a moment, a while. *Cost*: tens of syscalls, and
    /// eight for each interface.
    pub fn follow(&mut self) -> Result<bool> {
        if self.watch.is_none() {
            return Ok(false);
        }
        // Before it is looked what there is, so that no change is missed.
        self.hear();
        self.stats.changes_followed = self.stats.changes_heard;
        // Where an interface is another one's way out now, all addresses may be those of before.
        self.sender.forget_ways();
        // Until it has come to its end.
        let stale = std::mem::replace(&mut self.stale, true);
        let (asked, preferred) = (&self.config.interfaces, &self.config.preferred_interface);
        let mut found = interface::find_again(asked, preferred, self.sender.v6.is_some())?;
        if found.is_empty() {
            // Addresses of IPv6 that are not ready: the kernel tells when they are.
            return Ok(false);
        }
        if self.config.multicast == Multicast::Never {
            found.iter_mut().for_each(|own| own.multicast = false);
        }
        self.warnings.follow(&found);
        // Each time, as whether an interface takes one cannot be seen otherwise.
        let to_groups = group_sockets::open(&self.config, &mut found, &mut self.warnings)?;
        // Only now: what nothing can be done about yet is still lost at the next call.
        let lost = self.watch.as_mut().map(Watch::take_lost).unwrap_or_default();
        for ends in [&mut self.metatraffic, &mut self.user] {
            for group in &mut ends.groups {
                if let Some(socket) = self.receiver.socket(group.socket) {
                    group.follow(socket, &mut found, &lost, &mut self.warnings);
                }
            }
        }
        let touched = found.iter().any(|own| lost.has(own.index, own.address));
        if stale || touched || found != self.interfaces {
            self.sender.follow(to_groups, &found);
            self.interfaces = found;
            self.locate();
            self.stale = false;
            return Ok(true);
        }
        self.stale = false;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use taut_base::Locator;
    use taut_port::Port as _;

    use crate::{Multicast, UdpConfig, UdpPort};

    #[test]
    fn after_a_change_ways_begin_anew_though_the_addresses_are_the_same() {
        // Those that are named are not followed if they are of this host only.
        let config = UdpConfig { domain_id: 199, multicast: Multicast::Never, ..UdpConfig::default() };
        let mut port = UdpPort::open(&config).unwrap();
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = [Locator::from(listener.local_addr().unwrap())];
        let has_way = |port: &mut UdpPort, sent: usize| {
            (0..sent).for_each(|_| port.send(&to, &[b"sample"]));
            port.flush();
            port.sender.has_way()
        };
        assert!(has_way(&mut port, 100));
        assert_eq!(port.follow(), Ok(false));
        assert!(!has_way(&mut port, 0) && has_way(&mut port, 100));
    }
}
