//! The ports of a participant as one: its sockets, and past the kernel's stack beside them.
//!
//! Sockets have all that is received but what the program of XDP takes, and send what it does not reach.

use std::net::SocketAddr;

use taut_base::{Locator, LocatorKind, Result, Time};
use taut_ethernet::{BareEnds, Carrier, Reached};
use taut_port::{Frame, Port, Traffic, split};
use taut_port_udp::{Multicast, UdpConfig, UdpPort};
use taut_port_xdp::XdpPort;
use taut_rtps::{Addresses, Interface};

use crate::config::{ExecutorConfig, XdpChoice, XdpLayer};
use crate::network::tell_of_buffers;

/// The number of the first queue among the sources; sockets have small ones.
pub(crate) const QUEUES: usize = 1 << 16;
/// The number of discovery that came with samples among the sources.
pub(crate) const ASIDE: usize = QUEUES - 1;

/// A station that stands for the interface's own.
const OWN: [u8; 6] = [0; 6];

/// The ports.
pub(crate) struct Ports {
    pub udp: UdpPort,
    pub xdp: Option<XdpPort>,
    /// Destinations of one call that sockets have.
    left: Vec<Locator>,
}

impl Ports {
    /// Sockets, and what goes past them if that is wanted.
    pub fn open(config: &ExecutorConfig) -> Result<Ports> {
        let udp = UdpPort::open(&config.udp)?;
        tell_of_buffers(config.udp.receive_buffer, udp.receive_buffer());
        let sockets: Vec<_> = udp.fds().filter(|of| of.traffic == Traffic::User).map(|of| of.fd).collect();
        let open = |choice: &XdpChoice| {
            let ends = match choice.layer {
                XdpLayer::Ip => Reached::Ip(ends(&udp, |own| own.name == choice.port.interface)),
                XdpLayer::Bare => Reached::Bare(bare_ends(&udp, &config.udp)),
            };
            XdpPort::open(&choice.port, ends, &sockets)
        };
        let xdp = config.xdp.as_ref().map(open).transpose()?;
        if let Some(xdp) = &xdp {
            log::info!("XDP on {}", xdp.describe());
        }
        Ok(Ports { udp, xdp, left: Vec::new() })
    }

    /// What arrives at a source.
    #[inline]
    pub fn traffic(&self, source: usize) -> Option<Traffic> {
        match source {
            ASIDE => Some(Traffic::Meta),
            QUEUES.. => Some(Traffic::User),
            _ => self.udp.traffic(source),
        }
    }

    /// Takes what has arrived at a source; see [`UdpPort::receive_from`].
    #[inline]
    pub fn receive_from(&mut self, source: usize, budget: usize, sink: &mut dyn FnMut(Frame)) -> usize {
        match (source.checked_sub(QUEUES), &mut self.xdp) {
            (Some(place), Some(xdp)) => xdp.receive_from(place, budget, sink),
            (None, Some(xdp)) if source == ASIDE => xdp.carrier_mut().take_aside(budget, sink),
            _ => self.udp.receive_from(source, budget, sink),
        }
    }

    fn carrier(&self) -> Option<&Carrier> {
        self.xdp.as_ref().map(XdpPort::carrier)
    }

    /// Is there something at [`ASIDE`]?
    #[inline]
    pub fn has_aside(&self) -> bool {
        self.carrier().is_some_and(Carrier::has_aside)
    }

    /// Where the participant is reached.
    pub fn addresses(&self) -> Addresses {
        let udp = &self.udp;
        let mut all = Addresses {
            metatraffic_unicast: udp.metatraffic_unicast().to_vec(),
            metatraffic_multicast: udp.metatraffic_multicast().to_vec(),
            default_unicast: udp.user_unicast().to_vec(),
            default_multicast: udp.user_multicast().to_vec(),
            interfaces: udp
                .interfaces()
                .iter()
                .map(|own| Interface { address: own.address, prefix_len: own.prefix_len })
                .collect(),
        };
        if let Some(bare) = self.carrier().and_then(|carrier| carrier.layer().bare_ends()) {
            for (ends, unicast, multicast) in [
                (&bare.user, &mut all.default_unicast, &mut all.default_multicast),
                (&bare.metatraffic, &mut all.metatraffic_unicast, &mut all.metatraffic_multicast),
            ] {
                for end in ends {
                    if end.is_multicast() { multicast.push(*end) } else { unicast.push(*end) }
                }
            }
        }
        all
    }

    /// Uses the interfaces that there are now; see [`UdpPort::follow`].
    pub fn follow(&mut self) -> Result<bool> {
        let changed = self.udp.follow()?;
        if let Some(xdp) = self.xdp.as_mut().filter(|_| changed) {
            let index = xdp.interface();
            xdp.follow(&ends(&self.udp, |own| own.index == index));
        }
        Ok(changed)
    }

    /// Takes what the kernel tells of hosts, and `taut netd` of the interface.
    pub fn hear_hosts(&mut self) {
        if let Some(xdp) = &mut self.xdp {
            let is_by_netd = xdp.watch_netd().is_some();
            xdp.hear();
            if is_by_netd && xdp.watch_netd().is_none() {
                log::warn!("XDP: netd has ended: samples go by sockets until the participant is made again");
            }
        }
    }

    /// The counts of what goes past the kernel.
    pub fn xdp_stats(&self) -> Option<taut_ethernet::Stats> {
        self.xdp.as_ref().map(XdpPort::stats)
    }

    /// When to call [`Ports::on_timeout`].
    #[inline]
    pub fn next_timeout(&self, now: Time) -> Time {
        // A host that is new is to be asked for at once.
        self.carrier().map_or(Time::NEVER, |carrier| carrier.layer().next_timeout().max(now))
    }

    /// Looks for the ways to hosts, if it is time.
    pub fn on_timeout(&mut self, now: Time) {
        if let Some(xdp) = &mut self.xdp {
            xdp.carrier_mut().layer_mut().on_timeout(now);
        }
    }
}

/// Where samples are received by these interfaces.
fn ends(udp: &UdpPort, is_of: impl Fn(&taut_port_udp::Interface) -> bool) -> Vec<SocketAddr> {
    let own = udp.user_unicast().iter().filter_map(Locator::socket_addr);
    own.filter(|end| udp.interfaces().iter().any(|own| own.address == end.ip() && is_of(own))).collect()
}

/// The ports of the sockets, on the interface's station and on those of the groups.
fn bare_ends(udp: &UdpPort, config: &UdpConfig) -> BareEnds {
    let domain_id = config.domain_id;
    let group = |port: Option<u16>| {
        let port = port.filter(|_| config.multicast != Multicast::Never)?;
        Some(Locator::ethernet(taut_ethernet::group(taut_port_udp::DEFAULT_GROUP), port))
    };
    let own = |ends: &[Locator]| {
        let port = ends.first().and_then(|end| u16::try_from(end.port).ok())?;
        Some(Locator::ethernet(OWN, port))
    };
    let ends = |unicast: &[Locator], port| own(unicast).into_iter().chain(group(port)).collect();
    BareEnds {
        user: ends(udp.user_unicast(), config.ports.user_multicast(domain_id)),
        metatraffic: ends(udp.metatraffic_unicast(), config.ports.metatraffic_multicast(domain_id)),
    }
}

impl Port for Ports {
    #[inline]
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        let Some(xdp) = &mut self.xdp else { return self.udp.send(to, parts) };
        self.left.clear();
        self.left.extend(to.iter().filter(|to| !xdp.send(to, parts)));
        if !self.left.is_empty() {
            self.udp.send(&self.left, parts);
        }
    }

    #[inline]
    fn send_row(&mut self, to: &[Locator], parts: &[&[u8]], each: usize) {
        let Some(xdp) = &mut self.xdp else { return self.udp.send_row(to, parts, each) };
        self.left.clear();
        for to in to {
            if !xdp.reaches(to) {
                self.left.push(*to);
                continue;
            }
            split(parts, each, |datagram| {
                if !xdp.send(to, datagram) {
                    self.udp.send(std::slice::from_ref(to), datagram);
                }
            });
        }
        if !self.left.is_empty() {
            self.udp.send_row(&self.left, parts, each);
        }
    }

    /// Over IP both take the same path, and the MTU of the interface is the bound of both.
    fn path_size(&mut self, to: &Locator) -> usize {
        match &self.xdp {
            Some(xdp) if to.kind == LocatorKind::ETHERNET => xdp.carrier().bare_size(),
            _ => self.udp.path_size(to),
        }
    }

    fn path_generation(&self) -> u64 {
        self.udp.path_generation()
    }

    #[inline]
    fn set_priority(&mut self, priority: i32) {
        self.udp.set_priority(priority);
        if let Some(xdp) = &mut self.xdp {
            xdp.carrier_mut().set_mark(self.udp.mark());
        }
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(xdp) = &mut self.xdp {
            xdp.flush();
        }
        self.udp.flush();
    }
}
