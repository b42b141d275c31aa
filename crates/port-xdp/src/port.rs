//! The port: which datagrams go past the kernel's stack, and what comes of those that do.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use taut_base::{Error, Locator, Result};
use taut_ethernet::{Carrier, Layer, Put, Reached, Station, Stats};
use taut_mem::Chunks;
use taut_port::Frame;
use taut_xdp::{AttachMode, BindMode, Glance, Interface};

use crate::attachment::{self, Attachment};
use crate::mtu::MtuWatch;
use crate::netd::Netd;
use crate::queue::Queue;

const _: () = assert!(taut_ethernet::ETHERTYPE == taut_xdp::ETHERTYPE, "what is sent is what is let through");

/// What a port past the kernel is opened with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct XdpConfig {
    /// The interface, by its name.
    pub interface: String,
    /// The queues, by their numbers: what comes by others is the kernel's. The first one sends. None named: the first.
    pub queues: Vec<u32>,
    /// The priority that frames carry in a tag (IEEE 802.1Q, PCP), for switches and network cards that let some go
    /// first; `None`: they carry no tag. *Range*: 0 to 7.
    pub priority: Option<u8>,
    /// Where the kernel runs the program; `None`: in the driver if it can.
    pub attach: Option<AttachMode>,
    /// How frames are moved; `None`: without copies if the driver can.
    pub bind: Option<BindMode>,
    /// Who opens the interface, over IP.
    pub netd: Netd,
}

/// How an interface is used, where there was a choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probed {
    /// Where the kernel runs the program.
    pub attached: AttachMode,
    /// Why that is not in the driver; `None` if it is, or nobody has tried.
    pub why_not_native: Option<String>,
    /// How frames are moved; without copies if that is so in each of the queues.
    pub bound: BindMode,
}

/// Frames to and from the hosts of one interface. Dropping it gives the interface back to the kernel.
pub struct XdpPort {
    // Ends first: frames go to the kernel again before their sockets are gone.
    attachment: Attachment,
    queues: Vec<Queue>,
    carrier: Carrier,
    mtu: MtuWatch,
}

impl XdpPort {
    /// Loads the program, attaches it and takes the queues, or has `taut netd` do it. `sockets` are those of UDP where the
    /// user's samples are received, which prove to netd whose the ports are; without it they are not looked at.
    ///
    /// *Errors*: what the kernel or the driver refuses, each with the remedy. Nothing stays attached then. *Cost*:
    /// tens of system calls, 28 MiB for each queue; a driver may set up its queues anew, and the network be down for
    /// seconds.
    pub fn open(config: &XdpConfig, reached: Reached, sockets: &[BorrowedFd<'_>]) -> Result<XdpPort> {
        let interface =
            Interface::named(&config.interface).map_err(|error| Error::BadParameter(error.to_string()))?;
        let station = Station { mac: interface.mac, priority: config.priority };
        // What changes from now on is heard.
        let watch = MtuWatch::open(interface.index)?;
        let layer = Layer::open(&interface.name, interface.index, interface.mac, reached)?;
        let mtu = interface.mtu as usize;
        let (attachment, queues) = attachment::open(config, interface, &layer, sockets)?;
        let room = queues.first().map_or(0, Queue::room);
        let carrier = Carrier::new(station, layer, room, mtu);
        Ok(XdpPort { attachment, queues, carrier, mtu: watch })
    }

    /// Receives at these addresses from now on: the interface's have changed. Without IP there are none.
    pub fn follow(&mut self, ends: &[SocketAddr]) {
        let old = self.carrier.layer().ends().to_vec();
        self.carrier.layer_mut().follow(ends);
        let new = self.carrier.layer().ends();
        let failed = self.attachment.follow(&self.queues, &old, new);
        self.carrier.stats.errors += failed;
    }

    /// How datagrams become frames.
    #[inline]
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// How datagrams become frames, to be told what the kernel tells.
    #[inline]
    pub fn carrier_mut(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// What was probed; `None` once the netd that had opened the interface has ended.
    pub fn probed(&self) -> Option<Probed> {
        let (attached, why_not_native) = self.attachment.attached()?;
        let copies = self.queues.iter().any(|queue| queue.bound() == BindMode::Copy);
        let bound = if copies { BindMode::Copy } else { BindMode::ZeroCopy };
        Some(Probed { attached, why_not_native, bound })
    }

    /// The same for people: `eth0 queue 0, native, zero-copy`.
    pub fn describe(&self) -> String {
        let numbers: Vec<String> = self.queues.iter().map(|queue| queue.number().to_string()).collect();
        let name = &self.attachment.interface().name;
        let Some(probed) = self.probed() else { return format!("{name}: netd has ended") };
        let attached = if probed.attached == AttachMode::Native { "native" } else { "generic" };
        let bound = if probed.bound == BindMode::Copy { "copied by the kernel" } else { "zero-copy" };
        let why = probed.why_not_native.map(|why| format!(" (not native: {why})")).unwrap_or_default();
        let layer = if self.carrier.layer().bare_ends().is_some() { ", without IP" } else { "" };
        format!("{name} queue {}, {attached}, {bound}{layer}{why}", numbers.join(" and "))
    }

    /// The index of the interface.
    pub fn interface(&self) -> u32 {
        self.attachment.interface().index
    }

    /// The descriptors to wait on for frames, in the order of [`XdpPort::receive_from`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.iter().map(Queue::fd)
    }

    /// What tells whether frames have come, without a system call and without the port, in the same order.
    pub fn glances(&self) -> impl Iterator<Item = Glance> + '_ {
        self.queues.iter().map(Queue::glance)
    }

    /// Readable when somebody tells something of hosts or of the interface: then call [`XdpPort::hear`].
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let netd = self.watch_netd();
        self.carrier.layer().watch().into_iter().chain(netd).chain([self.mtu.fd()])
    }

    /// Readable when netd has something to say, if it has opened the interface.
    pub fn watch_netd(&self) -> Option<BorrowedFd<'_>> {
        self.attachment.watch()
    }

    /// Takes what the kernel tells, and netd. Returns whether frames may have another length than before, up to that of
    /// the MTU that the port was opened with. *Cost*: one system call for each read.
    pub fn hear(&mut self) -> bool {
        self.carrier.layer_mut().hear();
        self.carrier.stats.errors += self.attachment.hear();
        self.mtu.hear().is_some_and(|mtu| self.carrier.set_mtu(mtu as usize))
    }

    /// Is there a way to a destination that is known, and past the kernel? If it is not known yet the kernel is asked soon.
    pub fn reaches(&mut self, to: &Locator) -> bool {
        self.attachment.is_there() && self.carrier.layer_mut().route(to).is_ok()
    }

    /// Puts a datagram, to be sent with the next [`XdpPort::flush`]. `false` if it is to go by the kernel.
    ///
    /// *Cost*: a copy, of the headers alone if the payload lies in a chunk; a system call if the ring is full.
    #[inline]
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]]) -> bool {
        // Who has opened the queues has gone: they are to be free again, not used on.
        let queue = self.queues.first_mut().filter(|_| self.attachment.is_there());
        let Some(queue) = queue else { return false };
        self.carrier.send(to, parts, |datagram| queue.put(datagram).unwrap_or(Put::Failed))
    }

    /// The chunks of frames to send: a payload that was written into one of them is sent from there. They are there for as
    /// long as somebody has them, if the port has gone, too.
    pub fn chunks(&self) -> Option<&Arc<Chunks>> {
        self.queues.first().map(Queue::chunks)
    }

    /// Sends what was put. *Cost*: none if nothing was; else a system call for each 32 frames where the kernel copies,
    /// or one where it wants to be woken.
    pub fn flush(&mut self) {
        let Some(queue) = self.queues.first_mut() else { return };
        if queue.flush().is_err() {
            self.carrier.stats.errors += 1;
        }
    }

    /// Takes at most `budget` datagrams of samples that have come by the queue at this place; what comes of discovery
    /// with them is put aside. Returns how many frames.
    ///
    /// *Cost*: no copy, but of what is at most 68 bytes long and of what comes while readers hold too many frames; no
    /// system call.
    pub fn receive_from(&mut self, place: usize, budget: usize, sink: &mut dyn FnMut(Frame)) -> usize {
        let XdpPort { queues, carrier, .. } = self;
        let Some(queue) = queues.get_mut(place) else { return 0 };
        queue.receive(budget, carrier, sink)
    }

    /// The counters. *Cost*: one system call for each queue.
    pub fn stats(&self) -> Stats {
        let dropped = self.queues.iter().map(|queue| {
            let of = queue.statistics();
            of.rx_dropped + of.rx_ring_full + of.fill_ring_empty
        });
        let chunks = || self.queues.iter().map(Queue::chunks);
        let copied: u64 = chunks().map(|chunks| chunks.copied()).sum();
        Stats {
            kicks: self.queues.iter().map(Queue::kicks).sum(),
            receive_overflow: dropped.sum(),
            frames_free: chunks().map(|chunks| chunks.free() as u64).sum(),
            copied_out: self.carrier.stats.copied_out + copied,
            ..self.carrier.stats
        }
    }
}
