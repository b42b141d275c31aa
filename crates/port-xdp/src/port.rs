//! The port: which datagrams go past the kernel's stack, and what comes of those that do.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use taut_base::{Error, Locator, Result, Time};
use taut_mem::Pool;
use taut_port::{Frame, Traffic};
use taut_xdp::{AttachMode, BindMode, Glance, Interface};

use crate::attachment::{self, Attachment};
use crate::frame::{self, Own, Refused};
use crate::hosts::Hosts;
use crate::netd::Netd;
use crate::queue::Queue;

/// Bytes of a buffer that a datagram is received into: those of the largest frame that is taken.
const SLOT: usize = 4_096;
/// How many buffers are remembered: those of the fragments of a large sample or two. More pins memory after a burst,
/// fewer allocates.
const KEEP: usize = 1_024;

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
    /// Who opens the interface.
    pub netd: Netd,
}

/// What the port has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Bytes of their payloads.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Bytes of their payloads.
    pub bytes_out: u64,
    /// Times that the kernel was woken to send.
    pub kicks: u64,
    /// Datagrams left to the kernel: no way was known, or they were too long for a frame.
    pub left_to_kernel: u64,
    /// Datagrams dropped because the kernel took no more frames.
    pub dropped_full: u64,
    /// Calls that failed: the interface is down or gone.
    pub errors: u64,
    /// Frames that end too early or say another length than they have.
    pub malformed: u64,
    /// Frames for another station, address or network.
    pub not_ours: u64,
    /// Frames with a wrong checksum.
    pub damaged: u64,
    /// Frames that the kernel dropped, as a ring was full or empty.
    pub receive_overflow: u64,
}

/// Frames to and from the hosts of one interface. Dropping it gives the interface back to the kernel.
pub struct XdpPort {
    // Ends first: frames go to the kernel again before their sockets are gone.
    attachment: Attachment,
    queues: Vec<Queue>,
    hosts: Hosts,
    own: Own,
    mark: u8,
    pool: Pool,
    stats: Stats,
}

impl XdpPort {
    /// Loads the program, attaches it and takes the queues, or has `taut netd` do it. `ends` are where the user's samples
    /// are received: all of this port's that the interface has. `sockets` are those of UDP that are bound there, which
    /// prove to netd whose the ports are; without it they are not looked at.
    ///
    /// *Errors*: what the kernel or the driver refuses, each with the remedy. Nothing stays attached then. *Cost*:
    /// tens of system calls, 20 MiB for each queue; a driver may set up its queues anew, and the network be down for
    /// seconds.
    pub fn open(config: &XdpConfig, ends: &[SocketAddr], sockets: &[BorrowedFd<'_>]) -> Result<XdpPort> {
        let interface =
            Interface::named(&config.interface).map_err(|error| Error::BadParameter(error.to_string()))?;
        let hosts = Hosts::open(interface.index)
            .map_err(|errno| Error::Error(format!("netlink: {errno}; use UDP where that is not allowed")))?;
        let own = Own { mac: interface.mac, priority: config.priority, ends: taken(ends) };
        if own.ends.is_empty() {
            return Err(Error::BadParameter(format!(
                "XDP on {}: it has no address that the participant uses; give it one (`ip address add`), or name it \
                 among the interfaces",
                config.interface
            )));
        }
        let (attachment, queues) = attachment::open(config, interface, &own.ends, sockets)?;
        let pool = Pool::new(SLOT, KEEP);
        Ok(XdpPort { attachment, queues, hosts, own, mark: 0, pool, stats: Stats::default() })
    }

    /// Receives at these addresses from now on: the interface's have changed.
    pub fn follow(&mut self, ends: &[SocketAddr]) {
        let ends = taken(ends);
        self.stats.errors += self.attachment.follow(&self.queues, &self.own.ends, &ends);
        self.own.ends = ends;
    }

    /// What was probed, for people: `eth0 queue 0, native, zero-copy`.
    pub fn describe(&self) -> String {
        let numbers: Vec<String> = self.queues.iter().map(|queue| queue.number().to_string()).collect();
        let (attached, why) = self.attachment.describe();
        let copies = self.queues.iter().any(|queue| queue.bound() == BindMode::Copy);
        let bound = if copies { "copied by the kernel" } else { "zero-copy" };
        let name = &self.attachment.interface().name;
        let why = why.map(|why| format!(" (not native: {why})")).unwrap_or_default();
        format!("{name} queue {}, {attached}, {bound}{why}", numbers.join(" and "))
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

    /// Readable when the kernel has something to tell of the hosts: then call [`XdpPort::hear`].
    pub fn watch(&self) -> BorrowedFd<'_> {
        self.hosts.fd()
    }

    /// Readable when netd has something to say, if it has opened the interface: then call [`XdpPort::hear`].
    pub fn watch_netd(&self) -> Option<BorrowedFd<'_>> {
        self.attachment.watch()
    }

    /// Takes what the kernel tells, and netd. *Cost*: one system call for each read.
    pub fn hear(&mut self) {
        self.hosts.hear();
        self.stats.errors += self.attachment.hear();
    }

    /// When to call [`XdpPort::on_timeout`].
    pub fn next_timeout(&self) -> Time {
        self.hosts.next_timeout()
    }

    /// Asks the kernel for the way to a host, if it is time. *Cost*: up to six system calls.
    pub fn on_timeout(&mut self, now: Time) {
        self.hosts.ask(now);
    }

    /// What is sent from now on has this differentiated services code point.
    pub fn set_mark(&mut self, mark: u8) {
        self.mark = mark;
    }

    /// Is the way to a destination known, and past the kernel? If it is not known yet the kernel is asked soon.
    pub fn reaches(&mut self, to: &Locator) -> bool {
        let host = to.ip().filter(|ip| !is_of_group_or_link(*ip));
        self.attachment.is_there() && host.is_some_and(|ip| self.hosts.way(ip).is_some())
    }

    /// Puts a datagram, to be sent with the next [`XdpPort::flush`]. `false` if it is to go by the kernel.
    ///
    /// *Cost*: a copy; a system call if the ring is full.
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]]) -> bool {
        // Who has opened the queues has gone: they are to be free again, not used on.
        let is_there = self.attachment.is_there();
        let to = to.socket_addr().filter(|to| is_there && !is_of_group_or_link(to.ip()));
        let Some(to) = to else { return false };
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let Some(queue) = self.queues.first_mut() else { return false };
        let fits = frame::header_len(&self.own, to.ip()) + len
            <= queue.room().min(longest(self.attachment.interface(), &self.own));
        let way = self.hosts.way(to.ip());
        let ends = way.and_then(|way| Some((way, self.own.end(way.from)?)));
        let Some((way, from)) = ends.filter(|_| fits) else {
            self.stats.left_to_kernel += 1;
            return false;
        };
        let (own, mark) = (&self.own, self.mark);
        match queue.put(|frame| frame::write(frame, own, &way, (from, to), mark, parts)) {
            Ok(true) => {
                self.stats.datagrams_out += 1;
                self.stats.bytes_out += len as u64;
                true
            }
            Ok(false) => {
                self.stats.dropped_full += 1;
                true
            }
            Err(_) => {
                self.stats.errors += 1;
                false
            }
        }
    }

    /// Sends what was put. *Cost*: none if nothing was; else a system call for each 32 frames where the kernel copies,
    /// or one where it wants to be woken.
    pub fn flush(&mut self) {
        let Some(queue) = self.queues.first_mut() else { return };
        match queue.flush() {
            Ok(kicked) => self.stats.kicks += u64::from(kicked),
            Err(_) => self.stats.errors += 1,
        }
    }

    /// Takes at most `budget` datagrams that have come by the queue at this place. Returns how many frames.
    ///
    /// *Cost*: a copy of each payload; no system call.
    pub fn receive_from(&mut self, place: usize, budget: usize, sink: &mut dyn FnMut(Frame)) -> usize {
        let XdpPort { queues, own, pool, stats, .. } = self;
        let Some(queue) = queues.get_mut(place) else { return 0 };
        queue.receive(budget, &mut |bytes| {
            let datagram = match frame::read(bytes, own) {
                Ok(datagram) => datagram,
                Err(refused) => return count(stats, refused),
            };
            stats.datagrams_in += 1;
            stats.bytes_in += datagram.payload.len() as u64;
            let mut slot = pool.claim();
            slot.clear();
            slot.extend_from_slice(datagram.payload);
            let bytes = pool.share(slot);
            sink(Frame { source: datagram.from.into(), traffic: Traffic::User, bytes });
        })
    }

    /// The counters. *Cost*: one system call for each queue.
    pub fn stats(&self) -> Stats {
        let dropped = self.queues.iter().map(|queue| {
            let of = queue.statistics();
            of.rx_dropped + of.rx_ring_full + of.fill_ring_empty
        });
        Stats { receive_overflow: dropped.sum(), ..self.stats }
    }
}

fn count(stats: &mut Stats, refused: Refused) {
    *match refused {
        Refused::Malformed => &mut stats.malformed,
        Refused::NotOurs => &mut stats.not_ours,
        Refused::Damaged => &mut stats.damaged,
    } += 1;
}

/// Those that are received at. An address of the link means something with its interface only, which a frame does not
/// say: the kernel has it.
fn taken(ends: &[SocketAddr]) -> Vec<SocketAddr> {
    ends.iter().filter(|end| end.port() != 0 && !is_of_group_or_link(end.ip())).copied().collect()
}

fn is_of_group_or_link(ip: IpAddr) -> bool {
    ip.is_multicast() || matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Bytes of the longest frame that the interface takes: the MTU is without the header of Ethernet.
fn longest(interface: &Interface, own: &Own) -> usize {
    interface.mtu as usize + if own.priority.is_some() { 18 } else { 14 }
}
