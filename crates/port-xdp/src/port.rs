//! The port: which datagrams go past the kernel's stack, and what comes of those that do.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use taut_base::{Error, Locator, Result, Time};
use taut_ethernet::{Carrier, Layer, Put, Reached, Station, Stats};
use taut_mem::Chunks;
use taut_port::Frame;
use taut_xdp::{AttachMode, BindMode, Glance, Interface};

use crate::attachment::{self, Attachment};
use crate::comeback::Comeback;
use crate::link::LinkWatch;
use crate::netd::Netd;
use crate::queue::{Queue, QueueCounts};

const _: () = assert!(taut_ethernet::ETHERTYPE == taut_xdp::ETHERTYPE, "what is sent is what is let through");

/// What a port past the kernel is opened with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct XdpConfig {
    /// The interface, by its name.
    pub interface: String,
    /// The queues, by their numbers: what comes by others is the kernel's. Which of them sends is said by
    /// [`XdpPort::set_mark`]. None named: the first.
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
    /// What each of the queues has done, in their order.
    pub queues: Vec<QueueCounts>,
}

impl XdpConfig {
    /// The numbers of the queues.
    pub(crate) fn numbers(&self) -> &[u32] {
        if self.queues.is_empty() { &[0] } else { &self.queues }
    }

    /// The first queue that is named a second time: who has it would be in its own way.
    fn twice(&self) -> Option<u32> {
        let mut named = BTreeSet::new();
        self.queues.iter().copied().find(|number| !named.insert(*number))
    }
}

/// From this priority on (SO_PRIORITY) nothing is to wait behind anything else: that of DSCP 46.
const FIRST_OF_ALL: i32 = 6;
/// From this one on not behind what has none.
const SOONER: i32 = 4;

/// The place of the queue that sends what has a priority, of so many: the last one what is not to wait, a second of three
/// or more what is to go sooner, and the first one all else.
fn sends_by(priority: i32, queues: usize) -> usize {
    match priority {
        FIRST_OF_ALL.. => queues.saturating_sub(1),
        SOONER.. if queues > 2 => 1,
        _ => 0,
    }
}

/// Frames to and from the hosts of one interface. Dropping it gives the interface back to the kernel.
pub struct XdpPort {
    // Ends first: frames go to the kernel again before their sockets are gone.
    /// `None` as long as the interface is lost; then there are no queues, either.
    pub(crate) attachment: Option<Attachment>,
    pub(crate) queues: Vec<Queue>,
    /// The place of the one that sends.
    pub(crate) sends_by: usize,
    /// The chunks of each queue, or of those that there were.
    pub(crate) chunks: Vec<Arc<Chunks>>,
    pub(crate) carrier: Carrier,
    pub(crate) interface: Interface,
    link: LinkWatch,
    /// Why netd does not have it receive, as it was told.
    refused: Option<String>,
    pub(crate) comeback: Comeback,
}

/// What is known of an interface before it is opened.
pub(crate) struct Ground {
    pub interface: Interface,
    pub layer: Layer,
    link: LinkWatch,
}

impl Ground {
    pub fn lay(config: &XdpConfig, reached: Reached) -> Result<Ground> {
        let mut interface =
            Interface::named(&config.interface).map_err(|error| Error::BadParameter(error.to_string()))?;
        if !interface.is_ethernet {
            let what = "frames of Ethernet";
            let error = taut_xdp::Error::NoXdp { interface: interface.name, what };
            return Err(Error::BadParameter(error.to_string()));
        }
        // What changes from now on is heard. An interface that has just been made is often given another address at once.
        let mut link = LinkWatch::open(interface.index, &interface.name)?;
        let now = link.look();
        (interface.mtu, interface.mac) = (now.mtu.unwrap_or(interface.mtu), now.mac.unwrap_or(interface.mac));
        let layer = Layer::open(&interface.name, interface.index, interface.mac, reached)?;
        Ok(Ground { interface, layer, link })
    }
}

impl XdpPort {
    /// Loads the program, attaches it and takes the queues, or has `taut netd` do it. `sockets` are those of UDP where the
    /// user's samples are received, which prove to netd whose the ports are; without it they are not looked at.
    ///
    /// *Errors*: a queue that is named twice, and what the kernel or the driver refuses, each with the remedy. Nothing
    /// stays attached then. *Cost*: tens of system calls, 28 MiB for each queue; a driver may set up its queues anew,
    /// and the network be down for seconds.
    pub fn open(config: &XdpConfig, reached: Reached, sockets: &[BorrowedFd<'_>]) -> Result<XdpPort> {
        let refused = |why: String| Error::Error(format!("XDP on {}: {why}", config.interface));
        if let Some(queue) = config.twice() {
            return Err(refused(format!("xdp_queues names queue {queue} twice: name it once")));
        }
        let ground = Ground::lay(config, reached.clone())?;
        let (attachment, queues) =
            attachment::open(config, &ground.interface, &ground.layer, sockets).map_err(refused)?;
        Ok(XdpPort::with(config, &reached, ground, attachment, queues))
    }

    /// With what was opened.
    pub(crate) fn with(
        config: &XdpConfig,
        reached: &Reached,
        ground: Ground,
        attachment: Attachment,
        queues: Vec<Queue>,
    ) -> XdpPort {
        let Ground { interface, layer, link } = ground;
        let comeback = Comeback::new(config, reached, attachment.is_by_netd());
        let station = Station { mac: interface.mac, priority: config.priority };
        let room = queues.first().map_or(0, Queue::room);
        let carrier = Carrier::new(station, layer, room, interface.mtu as usize);
        let chunks = queues.iter().map(Queue::chunks).cloned().collect();
        let attachment = Some(attachment);
        XdpPort { attachment, queues, sends_by: 0, chunks, carrier, interface, link, refused: None, comeback }
    }

    /// Receives at these addresses from now on: the interface's have changed. Without IP there are none.
    pub fn follow(&mut self, now: Time, ends: &[SocketAddr]) {
        let old = self.carrier.layer().ends().to_vec();
        self.carrier.layer_mut().follow(ends);
        let Some(attachment) = &self.attachment else { return self.comeback.bring_forward(now) };
        let failed = attachment.follow(&self.queues, &old, self.carrier.layer().ends());
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

    /// What was probed; `None` while the interface is lost.
    pub fn probed(&self) -> Option<Probed> {
        let (attached, why_not_native) = self.attachment.as_ref()?.attached();
        let copies = self.queues.iter().any(|queue| queue.bound() == BindMode::Copy);
        let bound = if copies { BindMode::Copy } else { BindMode::ZeroCopy };
        let queues = self.queues.iter().map(Queue::counts).collect();
        Some(Probed { attached, why_not_native, bound, queues })
    }

    /// The same for people: `eth0 queue 0, native, zero-copy`.
    pub fn describe(&self) -> String {
        let numbers: Vec<String> = self.queues.iter().map(|queue| queue.number().to_string()).collect();
        let name = &self.interface.name;
        let Some(probed) = self.probed() else { return format!("{name}: lost") };
        let attached = if probed.attached == AttachMode::Native { "native" } else { "generic" };
        let bound = if probed.bound == BindMode::Copy { "copied by the kernel" } else { "zero-copy" };
        let why = probed.why_not_native.map(|why| format!(" (not native: {why})")).unwrap_or_default();
        let layer = if self.carrier.layer().bare_ends().is_some() { ", without IP" } else { "" };
        format!("{name} queue {}, {attached}, {bound}{layer}{why}", numbers.join(" and "))
    }

    /// The interface's number, which it keeps when it is given another name.
    pub fn index(&self) -> u32 {
        self.interface.index
    }

    /// The name that the interface was opened by, and is by again if it was lost.
    pub fn interface(&self) -> &str {
        &self.interface.name
    }

    /// The descriptors to wait on for frames, in the order of [`XdpPort::receive_from`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.iter().map(Queue::fd)
    }

    /// What tells whether frames have come, without a system call and without the port, in the same order. Each keeps its
    /// queue: those of a port that has lost its interface are to be dropped.
    pub fn glances(&self) -> impl Iterator<Item = Glance> + '_ {
        self.queues.iter().map(Queue::glance)
    }

    /// Readable when somebody tells something of hosts or of the interface: then call [`XdpPort::hear`].
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.carrier.layer().watch().into_iter().chain(self.watch_netd()).chain([self.link.fd()])
    }

    /// Readable when netd has something to say, if it has opened the interface or is asked to.
    fn watch_netd(&self) -> Option<BorrowedFd<'_>> {
        self.attachment.as_ref().map_or_else(|| self.comeback.watch(), Attachment::watch)
    }

    /// Takes what the kernel tells, and netd. Returns whether frames may have another length than before, up to that of
    /// the MTU that the port was opened with, and what to warn of. *Cost*: one system call for each read.
    pub fn hear(&mut self, now: Time) -> (bool, Option<String>) {
        self.carrier.layer_mut().hear();
        let told = self.link.hear();
        let is_other_length = told.mtu.is_some_and(|mtu| self.carrier.set_mtu(mtu as usize));
        let Some(attachment) = &self.attachment else {
            if told.is_any {
                self.comeback.bring_forward(now);
            }
            return (is_other_length, self.comeback.hear(now));
        };
        let heard = attachment.hear();
        let lost = if heard.is_gone {
            Some(heard.why_gone())
        } else if told.is_removed {
            Some("the interface was removed".into())
        } else if told.mac.is_some_and(|mac| mac != self.interface.mac) {
            Some("its address of Ethernet has changed".into())
        } else if told.is_any && !attachment.is_attached() {
            Some("the program was detached".into())
        } else {
            None
        };
        self.carrier.stats.errors += heard.refused;
        let refused = heard.answer.and_then(|answer| self.note(answer));
        (is_other_length, lost.and_then(|why| self.lose(now, &why)).or(refused))
    }

    /// What netd has answered to where this is to receive. Returns what to warn of: each reason once, until it is allowed.
    fn note(&mut self, answer: std::result::Result<(), String>) -> Option<String> {
        let before = std::mem::replace(&mut self.refused, answer.err());
        let why = self.refused.as_ref().filter(|_| before != self.refused)?;
        Some(format!(
            "XDP on {}: netd refuses some of what comes, which goes by sockets: {why}",
            self.interface.name
        ))
    }

    /// When to call [`XdpPort::on_timeout`], or [`XdpPort::next_try`].
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.carrier.layer().next_timeout().min(self.comeback.due())
    }

    /// Looks for the ways to hosts, and whether the program is still there, if it is time. Returns whether frames may have
    /// another length than before, and what to warn of.
    pub fn on_timeout(&mut self, now: Time) -> (bool, Option<String>) {
        let is_other_length = self.carrier.layer_mut().on_timeout(now);
        (is_other_length, self.look(now))
    }

    /// Looks whether the program is still there, if it is time. Returns what to warn of.
    fn look(&mut self, now: Time) -> Option<String> {
        let attachment = self.attachment.as_ref().filter(|_| self.comeback.due() <= now)?;
        if attachment.is_attached() {
            self.comeback.look_later(now);
            return None;
        }
        self.lose(now, "the program was detached")
    }

    /// Is there a way to a destination that is known, and past the kernel? If it is not known yet the kernel is asked soon.
    pub fn reaches(&mut self, to: &Locator) -> bool {
        !self.queues.is_empty() && self.carrier.layer_mut().route(to).is_ok()
    }

    /// What is sent from now on has this differentiated services code point, and this priority (SO_PRIORITY): by that it
    /// goes by the last of the queues, and waits behind nothing that others carry, from 6 on; by the second of three or
    /// more from 4 on; and else by the first.
    #[inline]
    pub fn set_mark(&mut self, mark: u8, priority: i32) {
        self.carrier.set_mark(mark);
        self.sends_by = sends_by(priority, self.queues.len());
    }

    /// Puts a datagram, to be sent with the next [`XdpPort::flush`]. `false` if it is to go by the kernel.
    ///
    /// *Cost*: a copy, of the headers alone if the payload lies in a chunk; a system call if the ring is full.
    #[inline]
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]]) -> bool {
        let Some(queue) = self.queues.get_mut(self.sends_by) else { return false };
        self.carrier.send(to, parts, |datagram| queue.put(datagram).unwrap_or(Put::Failed))
    }

    /// The chunks of frames to send with this priority: a payload that was written into one of them is sent from there. They
    /// are there for as long as somebody has them, if the port has gone, too.
    pub fn chunks(&self, priority: i32) -> Option<&Arc<Chunks>> {
        self.chunks.get(sends_by(priority, self.chunks.len()))
    }

    /// Sends what was put, what is not to wait first. *Cost*: none if nothing was; else a system call for each 32 frames
    /// where the kernel copies, or one where it wants to be woken.
    pub fn flush(&mut self) {
        for queue in self.queues.iter_mut().rev() {
            if queue.flush().is_err() {
                self.carrier.stats.errors += 1;
            }
        }
    }

    /// Takes at most `budget` datagrams of samples that have come by the queue at this place; what comes of discovery
    /// with them is put aside. Returns how many frames.
    ///
    /// *Cost*: no copy, but of what is at most 68 bytes long and of what comes while readers hold too many frames; no
    /// system call.
    pub fn receive_from(&mut self, place: usize, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        let XdpPort { queues, carrier, .. } = self;
        let Some(queue) = queues.get_mut(place) else { return 0 };
        queue.receive(budget, carrier, sink)
    }

    /// The counters. *Cost*: one system call for each queue.
    pub fn stats(&self) -> Stats {
        let mut stats = self.carrier.stats;
        for queue in &self.queues {
            stats.receive_overflow += queue.overflow();
            stats.kicks += queue.kicks();
            stats.frames_free += queue.chunks().free() as u64;
            stats.copied_out += queue.chunks().copied();
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::netd::{Client, Connection, Message};

    /// A port without queues, and the netd that it has them by.
    fn by_netd() -> (XdpPort, Connection) {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let client = Client::new(Connection::of(own), AttachMode::Native, String::new());
        let config = XdpConfig { interface: "lo".into(), ..XdpConfig::default() };
        let reached = Reached::Ip(vec![([127, 0, 0, 1], 7_411).into()]);
        let ground = Ground::lay(&config, reached.clone()).unwrap();
        let port = XdpPort::with(&config, &reached, ground, Attachment::Netd(client), Vec::new());
        (port, Connection::of(other))
    }

    /// After a comeback nobody waits for the first answer.
    #[test]
    fn what_netd_refuses_is_told_once() {
        let (mut port, netd) = by_netd();
        let mut hears = |message: Message| {
            netd.send(&message, &[]).unwrap();
            let (_, warning) = port.hear(Time(0));
            (warning, port.carrier.stats.errors)
        };
        let refused = || Message::Refused { why: "there is no room".into() };
        let line = "XDP on lo: netd refuses some of what comes, which goes by sockets: there is no room";
        assert_eq!(hears(refused()), (Some(line.into()), 1));
        assert_eq!(hears(refused()), (None, 2), "it was said");
        let (other, _) = hears(Message::Refused { why: "it has no address".into() });
        assert!(other.unwrap().ends_with("it has no address"));
        assert_eq!(hears(Message::Receiving), (None, 3));
        assert_eq!(hears(refused()), (Some(line.into()), 4), "anew");
    }

    /// As netd does when its rules have changed.
    #[test]
    fn what_netd_takes_back_is_lost_with_its_reason() {
        let (mut port, netd) = by_netd();
        netd.send(&Message::Refused { why: "no rule is for it".into() }, &[]).unwrap();
        drop(netd);
        let line =
            "XDP on lo: netd has hung up: no rule is for it: samples go by sockets until it can be had again";
        assert_eq!(port.hear(Time(0)).1.as_deref(), Some(line));
        assert!(port.is_to_try(Time(0)));
        let (mut port, netd) = by_netd();
        drop(netd);
        assert!(port.hear(Time(0)).1.is_some_and(|line| line.starts_with("XDP on lo: netd has ended: ")));
    }

    #[test]
    fn a_queue_that_is_named_twice() {
        let config = XdpConfig { interface: "lo".into(), queues: vec![3, 1, 3], ..XdpConfig::default() };
        let reached = Reached::Ip(vec![([127, 0, 0, 1], 7_411).into()]);
        let told = XdpPort::open(&config, reached, &[]).err().unwrap().to_string();
        assert!(told.contains("xdp_queues names queue 3 twice: name it once"), "{told}");
    }

    #[test]
    fn the_queue_of_a_priority() {
        let of = |queues| [0, 2, 4, 6].map(|priority| sends_by(priority, queues));
        assert_eq!([0, 1, 2, 3, 4].map(of), [[0; 4], [0; 4], [0, 0, 0, 1], [0, 0, 1, 2], [0, 0, 1, 3]]);
    }
}
