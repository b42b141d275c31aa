//! The port: which datagrams go past the kernel's stack, and what comes of those that do.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use taut_base::{Duration, Error, Locator, Result, Time};
use taut_ethernet::{Carrier, Layer, Put, Reached, Station, Stats, Tag};
use taut_mem::Chunks;
use taut_port::Frame;
use taut_xdp::{AttachMode, BindMode, Glance, Interface, Mode, Vlan};

use crate::attachment::{self, Attachment};
use crate::comeback::Comeback;
use crate::link::LinkWatch;
use crate::netd::Netd;
use crate::queue::{Queue, QueueCounts};

const _: () = assert!(taut_ethernet::ETHERTYPE == taut_xdp::ETHERTYPE, "what is sent is what is let through");

/// What a port past the kernel is opened with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct XdpConfig {
    /// The interface, by its name. One of a VLAN is used by the driver of its parent, with tags, if that can be.
    pub interface: String,
    /// The queues, by their numbers: what comes by others is the kernel's. They are those of the parent where that is
    /// used. Which of them sends is said by [`XdpPort::set_mark`]. None named: the first.
    pub queues: Vec<u32>,
    /// The priority that frames carry in a tag (IEEE 802.1Q, PCP), for switches and network cards that let some go
    /// first; `None`: they carry no tag, or that of the VLAN with the lowest priority. *Range*: 0 to 7.
    pub priority: Option<u8>,
    /// Where the kernel runs the program; `None`: in the driver if it can.
    pub attach: Option<AttachMode>,
    /// How frames are moved; `None`: without copies if the driver can.
    pub bind: Option<BindMode>,
    /// Who opens the interface.
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
    /// Do frames go without the priority that was wanted?
    leaves_priority: bool,
    link: LinkWatch,
    /// Why netd does not have it receive, as it was told.
    refused: Option<String>,
    pub(crate) comeback: Comeback,
    left: Left,
}

/// Frames that the kernel did not take when it was to send them: as many of a socket are on their way as may be, or the
/// interface is down. Nobody tells when it takes more.
struct Left {
    /// When it is asked again; at once if nobody has said what time it is since.
    ask_at: Time,
    pause: Duration,
}

impl Left {
    fn nothing() -> Left {
        Left { ask_at: Time::NEVER, pause: LEFT_PAUSE.0 }
    }
}

/// How long after a call that the kernel is asked again, at first, and at most, each time doubled. Lower makes calls in vain
/// on a slow link, higher has frames wait when it would take them.
const LEFT_PAUSE: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(100));

/// What is known of an interface before it is opened.
pub(crate) struct Ground {
    pub interface: Interface,
    pub layer: Layer,
    /// The VLAN that it is of, or why that cannot be had by its parent.
    pub vlan: Option<std::result::Result<Vlan, String>>,
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
        let vlan = Vlan::of(&interface).map_err(|error| Error::Error(error.to_string()))?;
        if let Some(Ok(vlan)) = &vlan {
            link.has_parent(vlan.parent.index);
        }
        Ok(Ground { interface, layer, vlan, link })
    }

    /// Which frames the program is to take.
    pub fn mode(&self) -> Mode {
        if self.layer.bare_ends().is_some() { Mode::L2 } else { Mode::L3 }
    }
}

impl XdpPort {
    /// Loads the program, attaches it and takes the queues, or has `taut netd` do it. `sockets` are those of UDP where the
    /// user's samples are received, which prove to netd whose the ports are; without it, and without IP, they are not
    /// looked at.
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
        let (attachment, queues) = attachment::open(config, &ground, sockets).map_err(refused)?;
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
        let Ground { interface, layer, vlan, link } = ground;
        let comeback = Comeback::new(config, reached, attachment.is_by_netd());
        let tag = match (attachment.vlan(), vlan) {
            (Some(vlan), _) => Tag::of(vlan.network, config.priority),
            // The kernel adds one to each frame, and switches look at no second one within.
            (None, Some(_)) => None,
            (None, None) => Tag::of(0, config.priority),
        };
        let leaves_priority = config.priority.is_some() && tag.is_none();
        let station = Station { mac: interface.mac, tag };
        let room = queues.first().map_or(0, Queue::room);
        let carrier = Carrier::new(station, layer, room, interface.mtu as usize);
        let chunks = queues.iter().map(Queue::chunks).cloned().collect();
        XdpPort {
            attachment: Some(attachment),
            queues,
            sends_by: 0,
            chunks,
            carrier,
            interface,
            leaves_priority,
            link,
            refused: None,
            comeback,
            left: Left::nothing(),
        }
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

    /// The same for people: `eth0 queue 0, native, zero-copy`, `eth0.5 (VLAN 5 of eth0) queue 0, native, zero-copy`.
    pub fn describe(&self) -> String {
        let numbers: Vec<String> = self.queues.iter().map(|queue| queue.number().to_string()).collect();
        let name = &self.interface.name;
        let Some(probed) = self.probed() else { return format!("{name}: lost") };
        let attached = if probed.attached == AttachMode::Native { "native" } else { "generic" };
        let bound = if probed.bound == BindMode::Copy { "copied by the kernel" } else { "zero-copy" };
        let why = probed.why_not_native.map(|why| format!(" (not native: {why})")).unwrap_or_default();
        let layer = if self.carrier.layer().bare_ends().is_some() { ", without IP" } else { "" };
        let vlan = self.attachment.as_ref().and_then(Attachment::vlan);
        let of = vlan.map(|Vlan { network, parent }| format!(" (VLAN {network} of {})", parent.name));
        let of = of.unwrap_or_default();
        let tag = if self.leaves_priority { ", without xdp_pcp" } else { "" };
        format!("{name}{of} queue {}, {attached}, {bound}{layer}{tag}{why}", numbers.join(" and "))
    }

    /// Receive queues of the interface beside those that it has; 0 where the driver does not say.
    pub fn other_queues(&self) -> usize {
        let all = self.interface.rx_queues.unwrap_or(0) as usize;
        all.saturating_sub(self.queues.len())
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
        } else if told.is_any {
            attachment.why_lost().map(Into::into)
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
        self.carrier.layer().next_timeout().min(self.comeback.due()).min(self.left.ask_at)
    }

    /// Looks for the ways to hosts, whether frames still come to the program, and sends what is left, if it is time. Returns
    /// whether frames may have another length than before, and what to warn of.
    pub fn on_timeout(&mut self, now: Time) -> (bool, Option<String>) {
        if self.left.ask_at <= now {
            self.send_left(now);
        }
        let is_other_length = self.carrier.layer_mut().on_timeout(now);
        (is_other_length, self.look(now))
    }

    /// Looks whether frames still come to the program, if it is time. Returns what to warn of.
    fn look(&mut self, now: Time) -> Option<String> {
        let attachment = self.attachment.as_ref().filter(|_| self.comeback.due() <= now)?;
        let Some(why) = attachment.why_lost() else {
            self.comeback.look_later(now);
            return None;
        };
        self.lose(now, &why)
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
        if self.left.ask_at == Time::NEVER && self.has_left() {
            self.left.ask_at = Time::AT_ONCE;
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

    fn has_left(&self) -> bool {
        self.queues.iter().any(Queue::is_left)
    }

    #[cold]
    fn send_left(&mut self, now: Time) {
        let pause = self.left.pause;
        self.left = Left::nothing();
        self.flush();
        if self.has_left() {
            self.left = Left { ask_at: now + pause, pause: pause.times(2).min(LEFT_PAUSE.1) };
        }
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
    use taut_ethernet::FrameEnds;
    use taut_testbed::{End, Pair, await_that, ip, set_feature, while_none_starts, with_pair};

    use super::*;
    use crate::attachment::Awaited;
    use crate::comeback::LOOK;
    use crate::netd::{Client, Connection, MAX_ENDS, Message, Received};

    fn over_ip() -> Reached {
        Reached::Ip(vec![([127, 0, 0, 1], 7_411).into()])
    }

    /// A port without queues, and the netd that it has them by.
    fn by_netd(reached: Reached) -> (XdpPort, Connection) {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let client = Client::new(Connection::of(own), AttachMode::Native, String::new());
        let config = XdpConfig { interface: "lo".into(), ..XdpConfig::default() };
        let ground = Ground::lay(&config, reached.clone()).unwrap();
        let attachment = Attachment::by_netd(client, &ground);
        let port = XdpPort::with(&config, &reached, ground, attachment, Vec::new());
        (port, Connection::of(other))
    }

    /// netd is told of so many; what comes for the others goes by sockets.
    #[test]
    fn ends_beyond_what_netd_takes_are_counted() {
        let (mut port, _netd) = by_netd(over_ip());
        let ends: Vec<SocketAddr> =
            (0..MAX_ENDS as u16 + 2).map(|n| ([10, 0, 0, 1], 7_000 + n).into()).collect();
        for (count, failed) in [(MAX_ENDS, 0), (MAX_ENDS + 2, 2)] {
            let before = port.stats().errors;
            port.follow(Time(0), &ends[..count]);
            assert_eq!(port.stats().errors - before, failed);
        }
    }

    /// A rule of netd names one network, and who has a queue of the parent sends into all.
    #[test]
    fn netd_opens_that_of_a_vlan_behind_the_driver() {
        let (own, _netd) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let connection = || Connection::of(own.try_clone().unwrap());
        let config = XdpConfig { interface: "lo".into(), priority: Some(6), ..XdpConfig::default() };
        let reached = over_ip();
        let lay = || {
            let mut ground = Ground::lay(&config, reached.clone()).unwrap();
            ground.vlan = Some(Ok(Vlan { network: 5, parent: ground.interface.clone() }));
            ground
        };
        let why = "`taut netd` opens lo behind its driver only, as it is of a VLAN: ";
        for (attach, is_asked) in
            [(None, true), (Some(AttachMode::Generic), true), (Some(AttachMode::Native), false)]
        {
            let asked = attachment::ask(connection(), &XdpConfig { attach, ..config.clone() }, &lay(), &[]);
            assert!(asked.as_ref().err().is_none_or(|refused| refused.starts_with(why)));
            assert_eq!(asked.is_ok(), is_asked, "{attach:?}");
        }
        for (told, is_said) in [("lo has no native XDP", true), ("", false)] {
            let (client, ground) = (Client::new(connection(), AttachMode::Generic, told.into()), lay());
            let attachment = Attachment::by_netd(client, &ground);
            let text = XdpPort::with(&config, &reached, ground, attachment, Vec::new()).describe();
            assert!(text.contains("generic, zero-copy, without xdp_pcp"), "{text}");
            assert_eq!(text.contains(&format!("(not native: {why}")), is_said, "{text}");
        }
    }

    /// After a comeback nobody waits for the first answer.
    #[test]
    fn what_netd_refuses_is_told_once() {
        let (mut port, netd) = by_netd(over_ip());
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

    /// As netd does when its rules have changed. A child of another test would keep its end open.
    #[test]
    fn what_netd_takes_back_is_lost_with_its_reason() {
        while_none_starts(|| {
            let (mut port, netd) = by_netd(over_ip());
            netd.send(&Message::Refused { why: "no rule is for it".into() }, &[]).unwrap();
            drop(netd);
            let line = "XDP on lo: netd has hung up: no rule is for it: samples go by sockets until it can be had again";
            assert_eq!(port.hear(Time(0)).1.as_deref(), Some(line));
            assert!(port.is_to_try(Time(0)));
            let (mut port, netd) = by_netd(over_ip());
            drop(netd);
            assert!(port.hear(Time(0)).1.is_some_and(|line| line.starts_with("XDP on lo: netd has ended: ")));
        });
    }

    /// Addresses of this host are nothing to it, and what netd refuses later is all that it has given.
    #[test]
    fn without_ip_netd_is_told_nothing_and_refuses_all() {
        let end = ([127, 0, 0, 2], 7_411).into();
        let (mut port, netd) = by_netd(over_ip());
        port.follow(Time(0), &[end]);
        assert!(matches!(netd.receive(), Received::Message(Message::Receive { ends }, _) if ends == [end]));
        let (mut port, netd) = by_netd(Reached::Bare(FrameEnds::default()));
        port.follow(Time(0), &[end]);
        assert!(matches!(netd.receive(), Received::Empty));
        netd.send(&Message::Refused { why: "no rule is for it".into() }, &[]).unwrap();
        let line = "XDP on lo: netd has hung up: no rule is for it: nobody is reached there until it can be had again";
        assert_eq!(port.hear(Time(0)).1.as_deref(), Some(line));
        assert!(port.is_to_try(Time(0)));
    }

    const PORT: u16 = 7_411;

    /// Without IP at one end of a cable, for frames of this network, as if its interface was one of a VLAN.
    fn of_vlan(pair: &Pair, end: End, network: u16, priority: Option<u8>) -> XdpPort {
        pair.enter(end);
        set_feature(end.name(), "rx-vlan-hw-parse", false);
        let config = XdpConfig { interface: end.name().into(), priority, ..XdpConfig::default() };
        let own = Locator::ethernet([0; 6], PORT);
        let reached = Reached::Bare(FrameEnds { user: vec![own], metatraffic: Vec::new() });
        let mut ground = Ground::lay(&config, reached.clone()).unwrap();
        assert_eq!(ground.vlan, None);
        ground.vlan = (network > 0).then(|| Ok(Vlan { network, parent: ground.interface.clone() }));
        let (attachment, queues) = attachment::own(&config, &ground, Awaited::All).unwrap();
        XdpPort::with(&config, &reached, ground, attachment, queues)
    }

    /// The first that comes, and where it lies, of eight bytes.
    fn first(port: &mut XdpPort) -> (Vec<u8>, usize) {
        let mut got = None;
        await_that("something comes", || {
            port.receive_from(0, 1, &mut |frame| {
                got = Some((frame.bytes.to_vec(), frame.bytes.as_ptr() as usize % 8));
            });
            got.is_some()
        });
        got.unwrap_or_default()
    }

    /// Nobody sends more behind it, and a kernel that has taken some of a burst does not tell when it takes the rest.
    #[test]
    fn what_the_kernel_did_not_take_is_sent_later() {
        with_pair("what_the_kernel_did_not_take_is_sent_later", ["", ""], |pair| {
            let (mut far, mut near) = (of_vlan(pair, End::B, 0, None), of_vlan(pair, End::A, 0, None));
            let to = Locator::ethernet(far.interface.mac, PORT);
            pair.enter(End::A);
            ip(&format!("link set {} down", End::A.name()));
            assert!(near.send(&to, &[&[7; 8]]));
            near.flush();
            let mut now = Time(1);
            assert!(near.next_timeout() <= now);
            for pause in [LEFT_PAUSE.0, LEFT_PAUSE.0.times(2)] {
                near.on_timeout(now);
                assert_eq!(near.next_timeout(), now + pause, "it is down");
                now = now + pause;
            }
            ip(&format!("link set {} up", End::A.name()));
            near.on_timeout(now);
            assert!(near.next_timeout() > now + LEFT_PAUSE.1, "nothing is left");
            assert_eq!(first(&mut far).0, [7; 8]);
        });
    }

    #[test]
    fn frames_of_a_vlan_are_for_those_of_it_only() {
        with_pair("frames_of_a_vlan_are_for_those_of_it_only", ["", ""], |pair| {
            for of in [0, 5, 6] {
                let mut far = of_vlan(pair, End::B, of, None);
                let to = Locator::ethernet(far.interface.mac, PORT);
                // Those of others come before those of its own, and are the kernel's.
                let networks = [0, 5, 6].into_iter().filter(|network| *network != of).chain([of]);
                for network in networks {
                    let mut near = of_vlan(pair, End::A, network, Some(6));
                    let text = near.describe();
                    let called = format!("xa (VLAN {network} of xa) queue 0, native");
                    assert_eq!(text.starts_with(&called), network > 0, "{text}");
                    assert!(near.send(&to, &[b"VLAN", &[network as u8; 1_400]]));
                    near.flush();
                    assert_eq!(near.stats().datagrams_out, 1);
                }
                let (bytes, place) = first(&mut far);
                assert_eq!(bytes, [&b"VLAN"[..], &[of as u8; 1_400]].concat());
                assert_eq!(
                    place,
                    if of == 0 { 0 } else { 4 },
                    "a tag that only some have moves what is behind it"
                );
                assert_eq!(far.stats().in_place_in, 1);
                assert_eq!((far.stats().not_ours, far.stats().malformed), (0, 0));
            }
        });
    }

    #[test]
    fn tags_that_are_taken_off_later_are_noticed() {
        with_pair("tags_that_are_taken_off_later_are_noticed", ["", ""], |pair| {
            let mut port = of_vlan(pair, End::A, 5, None);
            assert_eq!((port.look(Time(0)), port.next_timeout()), (None, Time(0) + LOOK));
            assert_eq!(port.hear(Time(0)), (false, None));
            set_feature("xa", "rx-vlan-hw-parse", true);
            let why = "xa takes the tags of VLANs off before a program sees them: have it leave them (`ethtool -K xa \
                       rxvlan off`), or choose generic mode";
            let instead = "nobody is reached there until it can be had again";
            assert_eq!(port.hear(Time(0)).1, Some(format!("XDP on xa: {why}: {instead}")));
            assert!(port.is_to_try(Time(0)));
            drop(port);
            let mut plain = of_vlan(pair, End::A, 0, None);
            set_feature("xa", "rx-vlan-hw-parse", true);
            assert_eq!((plain.hear(Time(0)).1, plain.look(Time(0))), (None, None), "it looks at no tag");
        });
    }

    /// Who drives may be in another network namespace than the interface, where another one may have the name.
    #[test]
    fn tags_that_are_taken_off_are_noticed_from_elsewhere_and_by_any_name() {
        with_pair("tags_that_are_taken_off_are_noticed_from_elsewhere", ["", ""], |pair| {
            for is_renamed in [false, true] {
                let mut port = of_vlan(pair, End::A, 5, None);
                assert_eq!(port.look(Time(0)), None);
                let name = if is_renamed { "renamed" } else { "xa" };
                if is_renamed {
                    for what in ["xa down", "xa name renamed", "renamed up"] {
                        ip(&format!("link set {what}"));
                    }
                    assert_eq!((port.hear(Time(0)).1, port.look(Time(0) + LOOK)), (None, None));
                }
                set_feature(name, "rx-vlan-hw-parse", true);
                pair.enter(End::B);
                let told = port.look(Time(0) + LOOK + LOOK).unwrap();
                assert!(
                    told.starts_with(&format!("XDP on xa: {name} takes the tags of VLANs off")),
                    "{told}"
                );
            }
        });
    }

    /// As if xa was the interface of a VLAN on another one, whose driver takes tags off.
    #[test]
    fn somebody_has_the_parent_without_ip() {
        with_pair("somebody_has_the_parent_without_ip", ["", ""], |pair| {
            pair.enter(End::A);
            ip("link add ya type veth peer name yb");
            set_feature("ya", "rx-vlan-hw-parse", true);
            let parent = Interface::named("ya").unwrap();
            let lay = |attach, reached| {
                let config = XdpConfig { interface: "xa".into(), attach, ..XdpConfig::default() };
                let mut ground = Ground::lay(&config, reached).unwrap();
                ground.vlan = Some(Ok(Vlan { network: 5, parent: parent.clone() }));
                (config, ground)
            };
            let (own, _netd) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
            let ask = |attach, reached| {
                let (config, ground) = lay(attach, reached);
                attachment::ask(Connection::of(own.try_clone().unwrap()), &config, &ground, &[]).err()
            };
            let bare = || Reached::Bare(FrameEnds::default());
            let open = |attach| {
                let (config, ground) = lay(attach, bare());
                attachment::own(&config, &ground, Awaited::All).map(|(attachment, _)| attachment.attached().0)
            };
            for mode in [AttachMode::Native, AttachMode::Generic] {
                let program = taut_xdp::Program::load(taut_xdp::Mode::L2, 1_500).unwrap();
                let link = taut_xdp::Link::attach(program, &parent, Some(mode)).unwrap();
                for attach in [None, Some(AttachMode::Native)] {
                    let told = open(attach).unwrap_err();
                    assert!(
                        told.starts_with("another XDP program is attached to ya, which has one"),
                        "{told}"
                    );
                }
                let told = ask(None, bare()).expect("netd would go behind the driver");
                assert!(told.starts_with("another XDP program is attached to ya, which has one"), "{told}");
                assert_eq!((ask(Some(AttachMode::Generic), bare()), ask(None, over_ip())), (None, None));
                assert_eq!(open(Some(AttachMode::Generic)), Ok(AttachMode::Generic), "it was wanted so");
                drop(link);
                assert_eq!(ask(None, bare()), None);
                assert_eq!(open(None), Ok(AttachMode::Generic));
            }
        });
    }

    /// A tag of its own would stand within the one that the interface adds.
    #[test]
    fn behind_the_driver_of_a_vlan_there_is_no_tag() {
        with_pair("behind_the_driver_of_a_vlan_there_is_no_tag", ["", ""], |pair| {
            pair.enter(End::A);
            let config = XdpConfig { interface: "xa".into(), priority: Some(6), ..XdpConfig::default() };
            let reached = Reached::Bare(FrameEnds::default());
            let open = |vlan: &str, attach, queues: &[u32]| {
                let config = XdpConfig { attach, queues: queues.to_vec(), ..config.clone() };
                let mut ground = Ground::lay(&config, reached.clone()).unwrap();
                ground.vlan = Some(Err(vlan.to_owned()));
                let (attachment, queues) = attachment::own(&config, &ground, Awaited::All)?;
                let port = XdpPort::with(&config, &reached, ground, attachment, queues);
                Ok::<_, String>((port.describe(), port.carrier.path_size(&Locator::ethernet([2; 6], 1))))
            };
            let bare = 1_500 - 8;
            let (text, size) = open("tags are off", None, &[0]).unwrap();
            let wanted =
                "generic, copied by the kernel, without IP, without xdp_pcp (not native: tags are off)";
            assert_eq!((text.as_str(), size), (&*format!("xa queue 0, {wanted}"), Some(bare)));
            let (text, _) = open("tags are off", Some(AttachMode::Generic), &[0]).unwrap();
            assert!(text.ends_with("without xdp_pcp"), "it was wanted so: {text}");
            assert_eq!(open("tags are off", Some(AttachMode::Native), &[0]).err().unwrap(), "tags are off");
            let told = open("tags are off", None, &[7]).err().unwrap();
            assert!(told.contains("no queue 7") && told.ends_with("(not native: tags are off)"), "{told}");
        });
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
