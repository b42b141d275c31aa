//! The port of one participant: opened whole, then asked for its addresses and descriptors.

use std::net::{Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::SockRef;
use taut_base::{Locator, Result};
use taut_port::Traffic;

use crate::bound::bound;
use crate::config::{DEFAULT_GROUP_V6, OTHER_GROUP_V6};
use crate::ends::{Ends, Opening};
use crate::group_sockets;
use crate::mark;
use crate::netlink::Watch;
use crate::receive::Receiver;
use crate::send::Sender;
use crate::socket::{self, Unicast};
use crate::stats::Stats;
use crate::sys;
use crate::warnings::Warnings;
use crate::{Interface, Multicast, UdpConfig};

/// The UDP sockets of one DomainParticipant. Dropping it closes them.
///
/// ```
/// use taut_base::Locator;
/// use taut_port::{Port, Receive, Traffic};
/// use taut_port_udp::{UdpConfig, UdpPort};
///
/// let config = UdpConfig { domain_id: 61, interfaces: vec!["lo".into()], ..UdpConfig::default() };
/// let mut port = UdpPort::open(&config)?;
/// let me: Locator = port.user_unicast()[0];
/// port.send(&[me], &[b"hello, ", b"me"]);
/// let mut heard = Vec::new();
/// port.receive(Traffic::User, 8, &mut |frame| heard.push(frame.bytes.clone()));
/// assert_eq!(&*heard[0], b"hello, me");
/// # Ok::<(), taut_base::Error>(())
/// ```
pub struct UdpPort {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) stats: Stats,
    pub(crate) config: UdpConfig,
    /// Those in use.
    pub(crate) interfaces: Vec<Interface>,
    /// The interfaces in use may not be those that there are: the last look has failed.
    pub(crate) stale: bool,
    pub(crate) watch: Option<Watch>,
    pub(crate) warnings: Warnings,
    participant_index: Option<u32>,
    pub(crate) metatraffic: Ends,
    pub(crate) user: Ends,
    critical: Option<Ends>,
}

/// A descriptor to wait on: when it is readable, call [`UdpPort::receive_from`] with its index.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What [`UdpPort::receive_from`] knows it by; constant for the life of the port.
    pub index: usize,
    /// Meant for level-triggered waiting: a budget may leave datagrams behind.
    pub fd: BorrowedFd<'a>,
    /// What arrives there.
    pub traffic: Traffic,
}

impl UdpPort {
    /// Opens the sockets and joins the groups.
    ///
    /// *Errors*: `BadParameter` for a domain id, index, DSCP or interface that cannot be;
    /// `Error` for what the operating system refused. Each text has the remedy.
    pub fn open(config: &UdpConfig) -> Result<UdpPort> {
        config.check()?;
        // Before it is looked what there is, so that no change is missed.
        let watch = Watch::open();
        let (mut interfaces, v6) =
            crate::interface::find(&config.interfaces, &config.preferred_interface, config.ipv6)?;
        if config.multicast == Multicast::Never {
            interfaces.iter_mut().for_each(|interface| interface.multicast = false);
        }
        let is_host_only = !interfaces.is_empty() && interfaces.iter().all(|own| own.loopback);
        let (follows, mut warnings) = (config.interfaces.is_empty() || !is_host_only, Warnings::default());
        // Without one, because a sandbox does not allow it, the interfaces stay those of the beginning.
        let watch = follows.then_some(watch);
        let watch = watch.and_then(|opened| opened.map_err(|errno| warnings.refused_watch(errno)).ok());
        let (v4, v6) = bound(&interfaces, v6, watch.is_none());
        let critical = socket::open_critical(config, v4, v6)?;
        let unicast = socket::open_unicast(config, v4, v6)?;
        let sender = Sender::new(&unicast, config)?;
        // Before groups are joined, as an interface that has none hears none either.
        let to_groups = group_sockets::open(config, &mut interfaces, &mut warnings)?;
        let Unicast { index, v4, v6 } = unicast;
        let (v6_metatraffic, v6_user) = v6.map(|pair| (pair.metatraffic, pair.user)).unzip();
        let (domain_id, ports) = (config.domain_id, &config.ports);
        let mut opening = Opening { config, stays: watch.is_some(), warnings };
        // First, as they are looked at first.
        let critical = critical.map(|(v4, v6)| opening.ends(0, v4, v6, None, &[], &mut interfaces));
        let (critical, mut user_sockets) = critical.transpose()?.unzip();
        let user_sockets = user_sockets.get_or_insert_default();
        let (first, port) = (user_sockets.len(), ports.user_multicast(domain_id));
        let (user, sockets) =
            opening.ends(first, v4.user, v6_user, port, &[DEFAULT_GROUP_V6], &mut interfaces)?;
        user_sockets.extend(sockets);
        let (first, port) = (user_sockets.len(), ports.metatraffic_multicast(domain_id));
        let groups = [DEFAULT_GROUP_V6, OTHER_GROUP_V6];
        let (metatraffic, metatraffic_sockets) =
            opening.ends(first, v4.metatraffic, v6_metatraffic, port, &groups, &mut interfaces)?;
        let receiver = Receiver::new(std::mem::take(user_sockets), metatraffic_sockets, &metatraffic.groups);
        let mut port = UdpPort {
            sender,
            participant_index: index,
            metatraffic,
            user,
            critical,
            receiver,
            config: config.clone(),
            interfaces,
            stale: false,
            watch,
            warnings: opening.warnings,
            stats: Stats::default(),
        };
        port.locate();
        // Now that it is known which interfaces take the groups.
        port.sender.follow(to_groups, &port.interfaces);
        Ok(port)
    }

    /// Finds the locators anew.
    pub(crate) fn locate(&mut self) {
        self.metatraffic.locate(&self.interfaces);
        self.user.locate(&self.interfaces);
        if let Some(critical) = &mut self.critical {
            critical.locate(&self.interfaces);
        }
    }

    /// Which interface reaches a peer whose address of IPv6 is of the link, for who knows it from elsewhere than by
    /// hearing the peer, and whatever is heard later. *Source*: RFC 4007 §6, the zone index.
    pub fn set_link(&mut self, peer: Ipv6Addr, interface: u32) {
        self.sender.note_link(peer, |links| links.name(peer, interface));
    }

    /// The addresses that are used, with the network they are in.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Is IPv6 used beside IPv4?
    pub fn uses_ipv6(&self) -> bool {
        self.sender.v6.is_some()
    }

    /// The index whose ports these are; `None` when all were taken and the kernel chose.
    pub fn participant_index(&self) -> Option<u32> {
        self.participant_index
    }

    /// Where discovery reaches this participant: one for each address in use.
    pub fn metatraffic_unicast(&self) -> &[Locator] {
        self.metatraffic.unicast()
    }

    /// The group of discovery; empty without multicast.
    pub fn metatraffic_multicast(&self) -> &[Locator] {
        self.metatraffic.multicast()
    }

    /// Where samples reach this participant: one for each address in use.
    pub fn user_unicast(&self) -> &[Locator] {
        self.user.unicast()
    }

    /// Where what is critical reaches this participant: one for each address in use; empty without a critical port.
    pub fn critical_unicast(&self) -> &[Locator] {
        self.critical.as_ref().map(Ends::unicast).unwrap_or_default()
    }

    /// How many of [`UdpPort::fds`] are of the critical port: the first ones.
    pub fn critical_sources(&self) -> usize {
        match &self.critical {
            None => 0,
            Some(_) if self.uses_ipv6() => 2,
            Some(_) => 1,
        }
    }

    /// From which TRANSPORT_PRIORITY on an endpoint is critical: that of the first mark of what waits behind nothing else.
    pub fn critical_from(&self) -> i32 {
        mark::critical_from(&self.sender.marks)
    }

    /// The group of samples; empty without multicast.
    pub fn user_multicast(&self) -> &[Locator] {
        self.user.multicast()
    }

    /// The descriptors to wait on for datagrams; they stay the same for the life of the port.
    pub fn fds(&self) -> impl Iterator<Item = Source<'_>> + '_ {
        self.receiver.sockets().map(|(index, socket, traffic)| Source { index, fd: socket.as_fd(), traffic })
    }

    /// The traffic of the socket with this index.
    #[inline]
    pub fn traffic(&self, index: usize) -> Option<Traffic> {
        self.receiver.traffic_of(index)
    }

    /// The differentiated services code point of what is sent now; see [`taut_port::Port::set_priority`].
    pub fn mark(&self) -> u8 {
        self.sender.mark
    }

    /// The same of what has this priority.
    pub fn mark_of(&self, priority: i32) -> u8 {
        mark::mark_of(&self.sender.marks, self.sender.first_mark, priority)
    }

    /// Takes the memory that it receives into, so that no datagram waits for it. *Cost*: 1 MiB.
    pub fn prefault(&mut self) {
        self.receiver.prefault();
    }

    /// What the system has refused since the last call without which the port goes on: the call, the error, what it costs
    /// and the remedy. An interface is warned of once. *Range*: 25 at most.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.take()
    }

    /// Adds to the warnings what the kernel has not sent since the last call, one for each kind of error: not what peers that
    /// have gone refuse, and a missing route once. How often is for the caller to say.
    pub fn warn_of_unsent(&mut self) {
        self.warnings.refused_sends(&self.stats.send_errors);
    }

    /// Bytes of the receive buffer that the kernel gave each socket, the smallest of them. Less
    /// than asked for means that `net.core.rmem_max` is in the way.
    pub fn receive_buffer(&self) -> usize {
        let granted = |socket: &UdpSocket| SockRef::from(socket).recv_buffer_size().unwrap_or(0);
        // Linux reports twice what it was asked for, the other half being its own accounts.
        self.receiver.sockets().map(|(_, socket, _)| granted(socket) / 2).min().unwrap_or(0)
    }

    /// Bytes of the send buffer that the kernel gave for unicast.
    pub fn send_buffer(&self) -> usize {
        self.sender.send_buffer() / 2
    }

    /// The counters. *Cost*: one syscall for each receiving socket.
    pub fn stats(&self) -> Stats {
        let dropped =
            self.receiver.sockets().map(|(_, socket, _)| u64::from(sys::kernel_drops(socket.as_fd())));
        Stats {
            receive_overflow: dropped.sum(),
            buffers_allocated: self.receiver.buffers_allocated(),
            ..self.stats
        }
    }
}
