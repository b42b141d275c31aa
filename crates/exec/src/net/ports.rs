//! The ports of a participant as one: its sockets, and past the kernel's stack beside them.
//!
//! Sockets have all that is received but what comes as frames, and send what those do not reach.

use std::sync::Arc;

use taut_base::{Locator, LocatorKind, Result, Time};
use taut_ethernet::{Carrier, OwnIp};
use taut_mem::Chunks;
use taut_port::{Frame, Port, Traffic, split};
use taut_port_udp::{Multicast, UdpConfig, UdpPort, mark_of, queue_of};
use taut_rtps::{Addresses, Interface};

use crate::config::{ExecutorConfig, FramesChoice};
use crate::lanes::peers;
use crate::net::frames::{Frames, Heard};
use crate::net::network::tell_of_buffers;
use crate::write::burst::FULL;

/// The number of the first queue among the sources; sockets have small ones.
pub(crate) const QUEUES: usize = 1 << 16;
/// The number of discovery that came with samples among the sources.
pub(crate) const ASIDE: usize = QUEUES - 1;
/// The number among the sources of what a driver has in hand which looks at a socket or a device itself.
pub(crate) const HAND: usize = QUEUES - 2;

/// Samples of a burst that wait for each other fill so many frames, of what one call sends by AF_XDP. Lower makes more calls,
/// and for small samples shorter frames; higher, and the next frames come when who receives has looked for them in vain and
/// sleeps: to wake it takes the sender longer than to send all of them.
const FRAMES: usize = 10;

/// The ports.
pub(crate) struct Ports {
    pub udp: UdpPort,
    pub frames: Option<Frames>,
    /// Frames are for what is critical.
    pub only_critical: bool,
    /// A device has a queue for what is critical, which is looked at first.
    has_critical_queue: bool,
    /// The priorities in tags of DPDK's frames, as [`crate::DpdkChoice`] has them.
    tagged: Vec<(i32, u8)>,
    /// What is sent now may go by frames.
    by_frames: bool,
    /// How many of the sources are of what is critical: the first ones.
    critical: usize,
    /// Destinations of one call that sockets have.
    left: Vec<Locator>,
}

impl Ports {
    /// Sockets, and what goes past them if that is wanted.
    pub fn open(config: &ExecutorConfig) -> Result<Ports> {
        let mut udp = UdpPort::open(&config.udp)?;
        let warnings = udp.take_warnings();
        warnings.iter().for_each(|line| log::warn!("{line}"));
        tell_of_buffers(config.udp.receive_buffer, udp.receive_buffer());
        let frames = config.frames.as_ref().map(|choice| Frames::open(choice, &udp, &config.udp));
        let only_critical = matches!(&config.frames, Some(FramesChoice::Xdp(xdp)) if xdp.only_critical);
        let (tagged, has_critical_queue) = match &config.frames {
            Some(FramesChoice::Dpdk(dpdk)) => (dpdk.priorities.clone(), dpdk.critical_queue),
            _ => (Vec::new(), false),
        };
        let (frames, left) = (frames.transpose()?, Vec::new());
        let (by_frames, critical) = (frames.is_some(), udp.critical_sources());
        let mut ports =
            Ports { udp, frames, only_critical, has_critical_queue, tagged, by_frames, critical, left };
        ports.set_priority(0);
        // What the kernel has refused is told by now.
        if warnings.is_empty() && config.udp.multicast == Multicast::Auto && config.initial_peers.is_empty() {
            ports.warn_without_groups();
        }
        Ok(ports)
    }

    /// Nobody is found by a group, though it was not told to do without, and no peer is named.
    fn warn_without_groups(&self) {
        let interfaces = self.udp.interfaces();
        let has_groups = !self.addresses().metatraffic_multicast.is_empty();
        let Some(own) = interfaces.first().filter(|_| !has_groups) else { return };
        let why = match own.loopback {
            true => "the kernel carries none of IPv6 on loopback".into(),
            false => format!("`ip link set {} multicast on` allows it", own.name),
        };
        let names: Vec<_> = interfaces.iter().map(|own| format!("{} ({})", own.name, own.address)).collect();
        log::warn!(
            "no multicast on {}: {why}. Hosts are found only if a `peer` names them, as `peer = [\"{}\"]` does this one",
            names.join(", "),
            own.address
        );
    }

    /// What arrives at a source.
    #[inline]
    pub fn traffic(&self, source: usize) -> Option<Traffic> {
        match source {
            ASIDE => Some(Traffic::Meta),
            HAND | QUEUES.. => Some(Traffic::User),
            _ => self.udp.traffic(source),
        }
    }

    /// Does something critical come at sources of its own?
    #[inline]
    pub fn has_critical(&self) -> bool {
        self.critical > 0
    }

    /// Does what is critical come at this source, and nothing else, or first?
    pub fn is_critical(&self, source: usize) -> bool {
        let is_of_hand = source == HAND && (self.frames.is_none() || self.has_critical_queue);
        let is_queue = || self.only_critical && (QUEUES..QUEUES + QUEUES).contains(&source);
        source < self.critical || is_of_hand || is_queue()
    }

    /// Takes what has arrived at a source; see [`UdpPort::receive_from`].
    #[inline]
    pub fn receive_from(&mut self, source: usize, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        match (source.checked_sub(QUEUES), &mut self.frames) {
            (Some(place), Some(frames)) => frames.receive_from(place, budget, sink),
            (None, Some(frames)) if source == ASIDE => frames.carrier_mut().take_aside(budget, sink),
            _ => self.udp.receive_from(source, budget, sink),
        }
    }

    /// The bytes of a burst that are to be sent together: no datagram is longer, and no row of frames is to be.
    #[inline]
    pub fn full(&self) -> usize {
        match &self.frames {
            Some(Frames::Xdp(xdp)) if !self.only_critical => FULL.min(FRAMES * xdp.carrier().longest()),
            _ => FULL,
        }
    }

    fn carrier(&self) -> Option<&Carrier> {
        self.frames.as_ref().map(Frames::carrier)
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
            critical_unicast: udp.critical_unicast().to_vec(),
            critical_from: udp.critical_from(),
            interfaces: udp
                .interfaces()
                .iter()
                .map(|own| Interface {
                    address: own.address,
                    prefix_len: own.prefix_len,
                    link: own.index,
                    multicast: own.multicast,
                })
                .collect(),
        };
        let Some(layer) = self.carrier().map(Carrier::layer) else { return all };
        if let Some(by_frames) = layer.frame_ends() {
            let critical_port = udp.critical_unicast().first().map(|end| end.port);
            for (ends, unicast, multicast) in [
                (&by_frames.user, &mut all.default_unicast, &mut all.default_multicast),
                (&by_frames.metatraffic, &mut all.metatraffic_unicast, &mut all.metatraffic_multicast),
            ] {
                for end in ends {
                    let list = match end.is_multicast() {
                        true => &mut *multicast,
                        false if Some(end.port) == critical_port => &mut all.critical_unicast,
                        false => &mut *unicast,
                    };
                    // A group of UDP may be the sockets', too.
                    if !list.contains(end) {
                        list.push(*end);
                    }
                }
            }
        }
        let own = layer.own().map(OwnIp::address);
        // The kernel numbers its own from 1 on.
        let own = own.map(|own| Interface {
            address: own.address,
            prefix_len: own.prefix_len,
            link: 0,
            multicast: true,
        });
        all.interfaces.extend(own);
        all
    }

    /// Where initial peers are looked for; see [`peers::resolve`].
    pub fn resolve(&mut self, initial_peers: &[String], config: &UdpConfig) -> Result<Vec<Locator>> {
        let own = self.carrier().and_then(|carrier| carrier.layer().own());
        let by_frames = own.is_some_and(|own| own.address().address.is_ipv6());
        peers::resolve(initial_peers, config, &mut self.udp, by_frames)
    }

    /// Uses the interfaces that there are now; see [`UdpPort::follow`].
    pub fn follow(&mut self, now: Time) -> Result<bool> {
        let followed = self.udp.follow();
        match (&followed, &mut self.frames) {
            (Ok(true), _) => self.follow_by_frames(now),
            // There is none to use, or none yet. What it had may be somebody else's now, whom this host passes on to.
            (_, Some(frames)) if self.udp.is_stale() => frames.leave_lost(now),
            _ => {}
        }
        followed
    }

    /// Receives by frames at the addresses that there are now.
    pub fn follow_by_frames(&mut self, now: Time) {
        if let Some(frames) = &mut self.frames {
            frames.follow(now, &self.udp, self.only_critical);
        }
    }

    /// Takes what the kernel tells of hosts and of the interface, and what `taut netd` does. Returns what to warn of.
    pub fn hear_hosts(&mut self, now: Time) -> Option<String> {
        let heard = self.frames.as_mut().map(|frames| frames.hear(now))?;
        self.note(heard)
    }

    /// Returns what to warn of.
    fn note(&mut self, heard: Heard) -> Option<String> {
        if heard.is_other_length {
            // No socket refuses what goes by frames.
            self.udp.forget_paths();
        }
        heard.warning
    }

    /// The counts of what goes past the kernel.
    pub fn frame_stats(&self) -> Option<taut_ethernet::Stats> {
        self.frames.as_ref().map(Frames::stats)
    }

    /// How AF_XDP uses its interface, if it does.
    pub fn xdp_probed(&self) -> Option<taut_port_xdp::Probed> {
        self.frames.as_ref().and_then(Frames::probed)
    }

    /// The chunks that a writer of this TRANSPORT_PRIORITY has its payloads sent from as they are.
    pub fn chunks(&self, priority: i32) -> Option<&Arc<Chunks>> {
        let mark = self.udp.mark_of(priority);
        self.frames
            .as_ref()
            .filter(|_| self.may_go_by_frames(priority))
            .and_then(|frames| frames.chunks(queue_of(mark)))
    }

    fn may_go_by_frames(&self, priority: i32) -> bool {
        !self.only_critical || priority >= self.udp.critical_from()
    }

    /// When to call [`Ports::on_timeout`].
    #[inline]
    pub fn next_timeout(&self, now: Time) -> Time {
        // A host that is new is to be asked for at once.
        self.frames.as_ref().map_or(Time::NEVER, |frames| frames.next_timeout().max(now))
    }

    /// Looks for the ways to hosts, if it is time. Returns what to warn of.
    pub fn on_timeout(&mut self, now: Time) -> Option<String> {
        let heard = self.frames.as_mut().map(|frames| frames.on_timeout(now))?;
        self.note(heard)
    }
}

/// Does what goes there by frames go by sockets, too?
#[inline]
fn is_shared(frames: &Frames, udp: &UdpPort, to: &Locator) -> bool {
    frames.is_shared(to) && (to.kind == LocatorKind::UDP_V4 || udp.uses_ipv6())
}

impl Ports {
    /// Sends past the kernel what can go there, and the rest by sockets.
    #[inline(never)]
    fn send_by_frames(&mut self, to: &[Locator], parts: &[&[u8]]) {
        let Ports { udp, frames: Some(frames), left, .. } = self else { return };
        left.clear();
        left.extend(to.iter().filter(|to| !frames.send(to, parts) || is_shared(frames, udp, to)));
        if !left.is_empty() {
            udp.send(left, parts);
        }
    }
}

impl Port for Ports {
    #[inline]
    fn send(&mut self, to: &[Locator], parts: &[&[u8]]) {
        match self.by_frames {
            false => self.udp.send(to, parts),
            true => self.send_by_frames(to, parts),
        }
    }

    #[inline]
    fn send_row(&mut self, to: &[Locator], parts: &[&[u8]], each: usize) {
        let Some(frames) = self.frames.as_mut().filter(|_| self.by_frames) else {
            return self.udp.send_row(to, parts, each);
        };
        self.left.clear();
        for to in to {
            if !frames.reaches(to) {
                self.left.push(*to);
                continue;
            }
            let is_shared = is_shared(frames, &self.udp, to);
            split(parts, each, |datagram| {
                if !frames.send(to, datagram) && !is_shared {
                    self.udp.send(std::slice::from_ref(to), datagram);
                }
            });
            self.left.extend(is_shared.then_some(*to));
        }
        if !self.left.is_empty() {
            self.udp.send_row(&self.left, parts, each);
        }
    }

    /// With IP of the kernel's both take the same path, and the MTU of the interface is the bound of both.
    fn path_size(&mut self, to: &Locator) -> usize {
        let Some(frames) = &self.frames else { return self.udp.path_size(to) };
        match frames.carrier().path_size(to) {
            Some(size) if is_shared(frames, &self.udp, to) => size.min(self.udp.path_size(to)),
            Some(size) => size,
            None => self.udp.path_size(to),
        }
    }

    fn path_generation(&self) -> u64 {
        self.udp.path_generation()
    }

    #[inline]
    fn set_priority(&mut self, priority: i32) {
        self.udp.set_priority(priority);
        if self.frames.is_some() {
            self.by_frames = self.may_go_by_frames(priority);
        }
        if let Some(frames) = &mut self.frames {
            let mark = self.udp.mark();
            frames.set_mark(mark, queue_of(mark), mark_of(&self.tagged, 0, priority));
        }
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.flush();
        }
        self.udp.flush();
    }
}
