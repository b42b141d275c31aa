//! The port of one participant: opened whole, then asked for its addresses and descriptors.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::SockRef;
use taut_base::{Locator, Result};
use taut_port::Traffic;

use crate::config::DEFAULT_GROUP;
use crate::receive::Receiver;
use crate::send::Sender;
use crate::socket::{self, refused};
use crate::stats::Stats;
use crate::sys;
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
/// port.receive(Traffic::User, 8, &mut |frame| heard.push(frame.bytes));
/// assert_eq!(&*heard[0], b"hello, me");
/// # Ok::<(), taut_base::Error>(())
/// ```
pub struct UdpPort {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) stats: Stats,
    interfaces: Vec<Interface>,
    participant_index: Option<u32>,
    metatraffic_unicast: Vec<Locator>,
    metatraffic_multicast: Vec<Locator>,
    user_unicast: Vec<Locator>,
    user_multicast: Vec<Locator>,
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
        let mut interfaces = crate::interface::interfaces(&config.interfaces)?;
        if config.multicast == Multicast::Never {
            interfaces.iter_mut().for_each(|interface| interface.multicast = false);
        }
        let unicast = socket::open_unicast(config, unicast_address(&interfaces))?;
        let (metatraffic_port, user_port) = (port_of(&unicast.metatraffic)?, port_of(&unicast.user)?);
        let metatraffic_group =
            join(config, config.ports.metatraffic_multicast(config.domain_id), &mut interfaces)?;
        let user_group = join(config, config.ports.user_multicast(config.domain_id), &mut interfaces)?;
        let locators = |port: u16| interfaces.iter().map(|i| Locator::udp_v4(i.address, port)).collect();
        Ok(UdpPort {
            sender: Sender::new(config, unicast.user.try_clone().map_err(os("dup"))?, &interfaces)?,
            participant_index: unicast.index,
            metatraffic_unicast: locators(metatraffic_port),
            user_unicast: locators(user_port),
            metatraffic_multicast: metatraffic_group.iter().map(|(_, locator)| *locator).collect(),
            user_multicast: user_group.iter().map(|(_, locator)| *locator).collect(),
            receiver: Receiver::new(
                [Some(unicast.user), user_group.map(|(socket, _)| socket)],
                [Some(unicast.metatraffic), metatraffic_group.map(|(socket, _)| socket)],
            ),
            interfaces,
            stats: Stats::default(),
        })
    }

    /// The addresses that are used, with the network they are in.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The index whose ports these are; `None` when all were taken and the kernel chose.
    pub fn participant_index(&self) -> Option<u32> {
        self.participant_index
    }

    /// Where discovery reaches this participant: one for each address in use.
    pub fn metatraffic_unicast(&self) -> &[Locator] {
        &self.metatraffic_unicast
    }

    /// The group of discovery; empty without multicast.
    pub fn metatraffic_multicast(&self) -> &[Locator] {
        &self.metatraffic_multicast
    }

    /// Where samples reach this participant: one for each address in use.
    pub fn user_unicast(&self) -> &[Locator] {
        &self.user_unicast
    }

    /// The group of samples; empty without multicast.
    pub fn user_multicast(&self) -> &[Locator] {
        &self.user_multicast
    }

    /// The descriptors to wait on; they stay the same for the life of the port.
    pub fn fds(&self) -> impl Iterator<Item = Source<'_>> + '_ {
        self.receiver.sockets().map(|(index, socket, traffic)| Source { index, fd: socket.as_fd(), traffic })
    }

    /// The traffic of the socket with this index.
    pub fn traffic(&self, index: usize) -> Option<Traffic> {
        self.receiver.sockets().find(|(at, _, _)| *at == index).map(|(_, _, traffic)| traffic)
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

/// Loopback only: nobody else shall reach it. Otherwise every address, as peers on this host may
/// send to 127.0.0.1 whatever was announced.
fn unicast_address(interfaces: &[Interface]) -> Ipv4Addr {
    match interfaces {
        [only] if only.loopback => only.address,
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

fn join(
    config: &UdpConfig,
    port: Option<u16>,
    interfaces: &mut [Interface],
) -> Result<Option<(UdpSocket, Locator)>> {
    let Some(port) = port.filter(|_| interfaces.iter().any(|interface| interface.multicast)) else {
        return Ok(None);
    };
    let socket = socket::open_multicast(config, port, interfaces)?;
    Ok(socket.map(|socket| (socket, Locator::udp_v4(DEFAULT_GROUP, port))))
}

fn port_of(socket: &UdpSocket) -> Result<u16> {
    socket.local_addr().map(|address| address.port()).map_err(os("getsockname"))
}

fn os(call: &'static str) -> impl Fn(std::io::Error) -> taut_base::Error {
    move |error| refused(call.into(), error)
}
