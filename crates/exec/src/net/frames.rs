//! What moves frames past the kernel: AF_XDP, or a driver of DPDK.
//!
//! Owns the choice between them, and nothing of what is in a frame: that is `taut_ethernet`'s.

use std::io::ErrorKind;
#[cfg(feature = "dpdk")]
use std::net::IpAddr;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use taut_base::{Locator, Result, Time};
#[cfg(feature = "dpdk")]
use taut_ethernet::NoRoute;
use taut_ethernet::{Carrier, FrameEnds, Reached, Stats};
#[cfg(feature = "dpdk")]
use taut_ethernet::{OwnAddress, SocketNetwork, Tag};
use taut_mem::Chunks;
use taut_port::{Frame, Traffic};
#[cfg(feature = "dpdk")]
use taut_port_dpdk::{Critical, DpdkConfig, DpdkPort, Incoming, Steering};
#[cfg(feature = "dpdk")]
use taut_port_udp::{DEFAULT_GROUP, DEFAULT_GROUP_V6, Ipv6, OTHER_GROUP_V6, mark_of};
use taut_port_udp::{Multicast, UdpConfig, UdpPort};
use taut_port_xdp::{AttachMode, Glance, Probed, XdpPort};

use crate::config::{DpdkChoice, FramesChoice, XdpChoice, XdpLayer};

/// A station that stands for the interface's own.
const OWN: [u8; 6] = [0; 6];

/// What was heard of hosts and of the interface.
#[derive(Default)]
pub(crate) struct Heard {
    /// Paths take another length than before.
    pub is_other_length: bool,
    /// To be logged without the token.
    pub warning: Option<String>,
}

/// A port of frames.
pub(crate) enum Frames {
    Xdp(Box<XdpPort>),
    #[cfg(feature = "dpdk")]
    Dpdk(Box<DpdkPort>),
}

impl Frames {
    /// Opens what is chosen, for the participant of these sockets.
    pub fn open(choice: &FramesChoice, udp: &UdpPort, config: &UdpConfig) -> Result<Frames> {
        match choice {
            FramesChoice::Xdp(choice) => open_xdp(choice, udp, config),
            FramesChoice::Dpdk(choice) => open_dpdk(choice, udp, config),
        }
    }

    #[inline]
    pub fn carrier(&self) -> &Carrier {
        match self {
            Frames::Xdp(xdp) => xdp.carrier(),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.carrier(),
        }
    }

    #[inline]
    pub fn carrier_mut(&mut self) -> &mut Carrier {
        match self {
            Frames::Xdp(xdp) => xdp.carrier_mut(),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.carrier_mut(),
        }
    }

    /// The descriptors to wait on for frames, in the order of [`Frames::receive_from`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.xdp().into_iter().flat_map(XdpPort::fds)
    }

    /// What tells of frames without the port, in the same order.
    pub fn looks(&self) -> Vec<Glance> {
        self.xdp().into_iter().flat_map(XdpPort::glances).collect()
    }

    /// Readable when somebody tells something of hosts or of the interface: then call [`Frames::hear`].
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.xdp().into_iter().flat_map(XdpPort::watched)
    }

    /// Takes what the kernel tells of hosts and of the interface, and what `taut netd` does.
    pub fn hear(&mut self, now: Time) -> Heard {
        match self {
            Frames::Xdp(xdp) => {
                let (is_other_length, warning) = xdp.hear(now);
                Heard { is_other_length, warning }
            }
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(_) => Heard::default(),
        }
    }

    /// Uses the addresses that the interface has now.
    pub fn follow(&mut self, now: Time, udp: &UdpPort, only_critical: bool) {
        match self {
            Frames::Xdp(xdp) => {
                let ends = ends(udp, only_critical, |own| own.index == xdp.index());
                xdp.follow(now, &ends);
            }
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => {
                if let Some(own) = dpdk.carrier_mut().layer_mut().own_mut() {
                    own.follow(of_sockets(udp, own.address().address));
                }
            }
        }
    }

    /// Leaves to the kernel what comes to addresses that this host no longer has. *Cost*: a socket for each.
    pub fn leave_lost(&mut self, now: Time) {
        match self {
            Frames::Xdp(xdp) => leave_lost(xdp, now),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(_) => {}
        }
    }

    /// Is there a way to a destination that is known, and by frames?
    #[inline]
    pub fn reaches(&mut self, to: &Locator) -> bool {
        match self {
            Frames::Xdp(xdp) => xdp.reaches(to),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.carrier_mut().layer_mut().route(to) != Err(NoRoute::Elsewhere),
        }
    }

    /// Does what goes there by frames go by sockets, too?
    #[inline]
    pub fn is_shared(&self, to: &Locator) -> bool {
        self.carrier().layer().is_shared(to)
    }

    /// Looks for the ways to hosts, if it is time.
    pub fn on_timeout(&mut self, now: Time) -> Heard {
        match self {
            Frames::Xdp(xdp) => {
                let (is_other_length, warning) = xdp.on_timeout(now);
                Heard { is_other_length, warning }
            }
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => {
                dpdk.on_timeout(now);
                Heard { is_other_length: false, warning: conflict(dpdk) }
            }
        }
    }

    /// When to call [`Frames::on_timeout`], and the same for what [`Frames::lost`] is.
    #[inline(never)]
    pub fn next_timeout(&self) -> Time {
        match self {
            Frames::Xdp(xdp) => xdp.next_timeout(),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.carrier().layer().next_timeout(),
        }
    }

    /// A port that has lost its interface, if it is time to do something about it.
    pub fn lost(&mut self, now: Time) -> Option<&mut XdpPort> {
        match self {
            Frames::Xdp(xdp) => Some(&mut **xdp).filter(|xdp| xdp.is_to_try(now)),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(_) => None,
        }
    }

    /// What is sent from now on has this differentiated services code point, and this priority in the interface's queues;
    /// over DPDK the priority `tagged` in its tag, if it has one.
    #[inline]
    #[cfg_attr(not(feature = "dpdk"), expect(unused_variables, reason = "tags of AF_XDP have one priority"))]
    pub fn set_mark(&mut self, mark: u8, priority: i32, tagged: u8) {
        match self {
            Frames::Xdp(xdp) => xdp.set_mark(mark, priority),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.set_mark(mark, priority, tagged),
        }
    }

    #[inline]
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]]) -> bool {
        match self {
            Frames::Xdp(xdp) => xdp.send(to, parts),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.send(to, parts),
        }
    }

    #[inline]
    pub fn flush(&mut self) {
        match self {
            Frames::Xdp(xdp) => xdp.flush(),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.flush(),
        }
    }

    #[inline]
    pub fn receive_from(&mut self, place: usize, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        match self {
            Frames::Xdp(xdp) => xdp.receive_from(place, budget, sink),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(_) => 0,
        }
    }

    /// What looks for frames where none can be waited for, once.
    #[cfg(feature = "dpdk")]
    pub fn incoming(&mut self) -> Option<Incoming> {
        match self {
            Frames::Xdp(_) => None,
            Frames::Dpdk(dpdk) => dpdk.incoming(),
        }
    }

    /// Takes what that has in hand, and more within the budget.
    #[cfg(feature = "dpdk")]
    pub fn receive(&mut self, incoming: &mut Incoming, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        match self {
            Frames::Xdp(_) => 0,
            Frames::Dpdk(dpdk) => dpdk.receive(incoming, budget, sink),
        }
    }

    /// The chunks that payloads with this priority in the interface's queues are sent from as they are.
    pub fn chunks(&self, priority: i32) -> Option<&Arc<Chunks>> {
        match self {
            Frames::Xdp(xdp) => xdp.chunks(priority),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.chunks(),
        }
    }

    pub fn stats(&self) -> Stats {
        match self {
            Frames::Xdp(xdp) => xdp.stats(),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(dpdk) => dpdk.stats(),
        }
    }

    /// The same for people, where it is AF_XDP.
    pub fn describe(&self) -> Option<String> {
        self.xdp().map(XdpPort::describe)
    }

    /// How AF_XDP uses the interface.
    pub fn probed(&self) -> Option<Probed> {
        self.xdp().and_then(XdpPort::probed)
    }

    fn xdp(&self) -> Option<&XdpPort> {
        match self {
            Frames::Xdp(xdp) => Some(xdp),
            #[cfg(feature = "dpdk")]
            Frames::Dpdk(_) => None,
        }
    }
}

/// That another station has the address of ours, once.
#[cfg(feature = "dpdk")]
fn conflict(dpdk: &mut DpdkPort) -> Option<String> {
    let own = dpdk.carrier_mut().layer_mut().own_mut()?;
    let (own, mac) = (own.address().address, own.take_conflict()?);
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    Some(format!("DPDK: the station {mac} has our address {own}, too: give one of us another (dpdk_address)"))
}

/// Is its address none of this host any more? *Cost*: a socket.
fn is_lost(end: &SocketAddr) -> bool {
    let bound = UdpSocket::bind((end.ip(), 0));
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
}

fn leave_lost(xdp: &mut XdpPort, now: Time) {
    let ends = xdp.carrier().layer().ends();
    let kept: Vec<SocketAddr> = ends.iter().filter(|end| !is_lost(end)).copied().collect();
    if kept.len() < ends.len() {
        xdp.follow(now, &kept);
    }
}

fn open_xdp(choice: &XdpChoice, udp: &UdpPort, config: &UdpConfig) -> Result<Frames> {
    let sockets = of_users(udp);
    let reached = match choice.layer {
        XdpLayer::Ip => Reached::Ip(ends_of(udp, choice.only_critical, &choice.port.interface)),
        XdpLayer::Bare => Reached::Bare(bare_ends(udp, config)),
    };
    let xdp = XdpPort::open(&choice.port, reached, &sockets)?;
    let is_slower = choice.port.attach.is_none()
        && xdp.probed().is_some_and(|probed| probed.attached == AttachMode::Generic);
    if is_slower {
        let text =
            "frames take longer behind the driver, and xdp_mode = \"generic\" takes that without a warning";
        log::warn!("XDP on {}: {text}", xdp.describe());
    } else {
        log::info!("XDP on {}", xdp.describe());
    }
    // Over IP it has no address then, and is refused.
    if let Err(error) = taut_port_xdp::is_up(&choice.port.interface) {
        log::warn!("XDP on {}: {error}; nothing comes or goes there before", xdp.describe());
    }
    let others = xdp.other_queues();
    if choice.layer == XdpLayer::Bare && others > 0 {
        log::warn!(
            "XDP on {}: what comes by the other {others} receive queues is lost, as without IP no socket has it: have \
             `xdp_queues` name all of them, or let the interface have no other (`ethtool -L {} combined 1`)",
            xdp.describe(),
            xdp.interface()
        );
    }
    Ok(Frames::Xdp(Box::new(xdp)))
}

#[cfg(feature = "dpdk")]
fn open_dpdk(choice: &DpdkChoice, udp: &UdpPort, config: &UdpConfig) -> Result<Frames> {
    // That of the sockets, which was free.
    let critical_port = udp.critical_unicast().first().and_then(|end| u16::try_from(end.port).ok());
    let critical = critical_port
        .filter(|_| choice.critical_queue)
        .map(|port| Critical { port, priority: mark_of(&choice.priorities, 0, udp.critical_from()) });
    let config_of_port = DpdkConfig {
        device: choice.device.clone(),
        huge_pages: choice.huge_pages,
        arguments: choice.arguments.clone(),
        tag: Tag::of(choice.vlan.unwrap_or(0), (!choice.priorities.is_empty()).then_some(0)),
        critical,
    };
    let reached = match choice.own {
        None => Reached::Bare(bare_ends(udp, config)),
        Some(own) => reached_at(own, udp, config)?,
    };
    let dpdk = DpdkPort::open(&config_of_port, reached)?;
    match dpdk.steering() {
        Some(Steering::None(_)) => log::warn!("DPDK on {}", dpdk.describe()),
        _ => log::info!("DPDK on {}", dpdk.describe()),
    }
    Ok(Frames::Dpdk(Box::new(dpdk)))
}

#[cfg(not(feature = "dpdk"))]
fn open_dpdk(choice: &DpdkChoice, _: &UdpPort, _: &UdpConfig) -> Result<Frames> {
    Err(taut_base::Error::BadParameter(format!(
        "dpdk_device is {}, and this program was built without DPDK: build it with the feature `dpdk`, or use \
         xdp_interface",
        choice.device
    )))
}

/// The sockets that samples are received at.
pub(crate) fn of_users(udp: &UdpPort) -> Vec<BorrowedFd<'_>> {
    udp.fds().filter(|of| of.traffic == Traffic::User).map(|of| of.fd).collect()
}

/// Where samples, or critical ones only, are received by these interfaces, at addresses that this host has: one that the
/// sockets could not leave behind may be somebody else's, whom this host passes on to.
fn ends(
    udp: &UdpPort,
    only_critical: bool,
    is_of: impl Fn(&taut_port_udp::Interface) -> bool,
) -> Vec<SocketAddr> {
    let others = if only_critical { &[] } else { udp.user_unicast() };
    let own = others.iter().chain(udp.critical_unicast()).filter_map(Locator::socket_addr);
    own.filter(|end| udp.interfaces().iter().any(|own| own.address == end.ip() && is_of(own)))
        .filter(|end| !udp.is_stale() || !is_lost(end))
        .collect()
}

/// The same by the interface that is called so. The kernel knows one by other names, too (`altname` of ip-link(8)), and lists
/// it by the first.
pub(crate) fn ends_of(udp: &UdpPort, only_critical: bool, name: &str) -> Vec<SocketAddr> {
    let index = nix::net::if_::if_nametoindex(name).ok();
    ends(udp, only_critical, |own| own.name == name || Some(own.index) == index)
}

/// The ports of the sockets, on the interface's station and on those of the groups.
fn bare_ends(udp: &UdpPort, config: &UdpConfig) -> FrameEnds {
    let group = taut_ethernet::group(taut_port_udp::DEFAULT_GROUP.into());
    frame_ends(udp, config, |port| Locator::ethernet(OWN, port), |port| Locator::ethernet(group, port))
}

/// The ports of the sockets, at the participant itself and at the groups.
fn frame_ends(
    udp: &UdpPort,
    config: &UdpConfig,
    own: impl Fn(u16) -> Locator,
    group: impl Fn(u16) -> Locator,
) -> FrameEnds {
    let of_group = |port: Option<u16>| port.filter(|_| config.multicast != Multicast::Never).map(&group);
    let of_own = |ends: &[Locator]| ends.first().and_then(|end| u16::try_from(end.port).ok()).map(&own);
    let ends = |unicast: &[Locator], port| -> Vec<Locator> {
        of_own(unicast).into_iter().chain(of_group(port)).collect()
    };
    let mut user = ends(udp.user_unicast(), config.ports.user_multicast(config.domain_id));
    user.extend(of_own(udp.critical_unicast()));
    FrameEnds {
        user,
        metatraffic: ends(udp.metatraffic_unicast(), config.ports.metatraffic_multicast(config.domain_id)),
    }
}

/// The same by UDP, at an address that the kernel does not have.
#[cfg(feature = "dpdk")]
fn reached_at(own: OwnAddress, udp: &UdpPort, config: &UdpConfig) -> Result<Reached> {
    let is_v4 = own.address.is_ipv4();
    let group = if is_v4 { DEFAULT_GROUP.into() } else { DEFAULT_GROUP_V6.into() };
    let at = |ip: IpAddr| move |port| Locator::from(SocketAddr::new(ip, port));
    let mut ends = frame_ends(udp, config, at(own.address), at(group));
    // By another group some meet, of whom all samples are sent to the one of all.
    let meet = ends.metatraffic.iter().filter(|end| !is_v4 && end.is_multicast());
    let meet: Vec<Locator> = meet.map(|end| Locator { address: OTHER_GROUP_V6.octets(), ..*end }).collect();
    ends.metatraffic.extend(meet);
    let sockets = of_sockets(udp, own.address);
    if sockets.iter().any(|(address, _)| *address == own.address) {
        return Err(taut_base::Error::BadParameter(format!(
            "dpdk_address: the kernel has {}, too, and would answer for it: choose another, or take it from the \
             kernel's interface (`ip address del`)",
            own.address
        )));
    }
    Ok(Reached::Own { own, ends, sockets })
}

/// What of the kind of this address is the sockets': each address of this host, and the networks of those that the
/// participant uses.
#[cfg(feature = "dpdk")]
fn of_sockets(udp: &UdpPort, own: IpAddr) -> Vec<SocketNetwork> {
    let ipv6 = if own.is_ipv4() { Ipv6::Off } else { Ipv6::On };
    // A host that has none has nothing else to reach.
    let of_host = taut_port_udp::interfaces(&[], "", ipv6).unwrap_or_default();
    // All bits, of either kind.
    let of_host = of_host.iter().map(|own| (own.address, u8::MAX));
    let used = udp.interfaces().iter().map(|own| (own.address, own.prefix_len));
    used.chain(of_host).filter(|(ip, _)| ip.is_ipv4() == own.is_ipv4()).collect()
}
