//! How a port has got its interface: by this process itself, or by `taut netd`.
//!
//! Owns what keeps the program attached. What is received at is told here; frames go by the queues, which are the port's
//! either way.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use taut_base::{Error, Locator, Result};
use taut_ethernet::{BARE_SHIFT, Layer, UDP_SHIFT};
use taut_xdp::{AttachMode, Interface, Link, Membership, Mode, Program};

use crate::XdpConfig;
use crate::netd::{self, Client};
use crate::queue::Queue;

pub(crate) enum Attachment {
    /// By the process itself, which has the privileges, with the groups of a layer without IP.
    Own { link: Link, _groups: Option<Membership> },
    /// By netd.
    Netd(Client),
    /// By a netd that has ended.
    Gone(Interface),
}

/// Has the interface opened, with the queues and what is received at. `sockets` are those of the participant. netd opens
/// for IP only: what else is received nobody could prove to be one's own.
pub(crate) fn open(
    config: &XdpConfig,
    interface: Interface,
    layer: &Layer,
    sockets: &[BorrowedFd<'_>],
) -> Result<(Attachment, Vec<Queue>)> {
    let refused = |why: String| Error::Error(format!("XDP on {}: {why}", config.interface));
    let own = || own(config, &interface, layer).map_err(|error| refused(error.to_string()));
    if layer.bare_ends().is_some() {
        return own();
    }
    let Some(connection) = netd::connect(&config.netd).map_err(refused)? else { return own() };
    let ends = layer.ends();
    let (client, queues) = Client::take(connection, config, interface, ends, sockets).map_err(refused)?;
    client.receive_first(ends).map_err(refused)?;
    Ok((Attachment::Netd(client), queues))
}

fn own(
    config: &XdpConfig,
    interface: &Interface,
    layer: &Layer,
) -> std::result::Result<(Attachment, Vec<Queue>), taut_xdp::Error> {
    let numbers = if config.queues.is_empty() { &[0][..] } else { &config.queues };
    let (mode, groups) = match layer.bare_ends() {
        None => (Mode::L3, None),
        Some(bare) => {
            let groups = bare.user.iter().chain(&bare.metatraffic).filter(|end| end.is_multicast());
            let groups: Vec<_> = groups.filter_map(Locator::mac).collect();
            (Mode::L2, Some(Membership::join(interface, &groups)?))
        }
    };
    let program = Program::load(mode, interface.mtu)?;
    for number in numbers {
        layer.ends().iter().try_for_each(|end| program.add(*end, *number))?;
    }
    let link = Link::attach(program, interface, config.attach)?;
    let headroom = u32::from(if mode == Mode::L2 { BARE_SHIFT } else { UDP_SHIFT });
    let queues = numbers.iter().map(|number| Queue::open(&link, *number, config.bind, headroom));
    let queues = queues.collect::<std::result::Result<_, _>>()?;
    Ok((Attachment::Own { link, _groups: groups }, queues))
}

impl Attachment {
    pub(crate) fn interface(&self) -> &Interface {
        match self {
            Attachment::Own { link, .. } => link.interface(),
            Attachment::Netd(client) => client.interface(),
            Attachment::Gone(interface) => interface,
        }
    }

    /// Does the program of the interface know of this port?
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Attachment::Gone(_))
    }

    /// Where the program runs, and why it is not in the driver if that was tried; `None` if it runs no more.
    pub(crate) fn attached(&self) -> Option<(AttachMode, Option<String>)> {
        match self {
            Attachment::Own { link, .. } => {
                Some((link.attached(), link.why_not_native().map(ToString::to_string)))
            }
            Attachment::Netd(client) => Some((client.attached(), client.why_not_native())),
            Attachment::Gone(_) => None,
        }
    }

    /// Receives at the new ends from now on, and at none of the old ones besides. Returns how many changes failed.
    pub(crate) fn follow(&mut self, queues: &[Queue], old: &[SocketAddr], new: &[SocketAddr]) -> u64 {
        let link = match self {
            Attachment::Own { link, .. } => link,
            Attachment::Netd(client) => return u64::from(!client.receive(new)),
            Attachment::Gone(_) => return 0,
        };
        let (program, mut failed) = (link.program(), 0);
        for queue in queues.iter().map(Queue::number) {
            let gone =
                old.iter().filter(|end| !new.contains(end)).map(|end| program.remove(*end, queue).is_err());
            let come =
                new.iter().filter(|end| !old.contains(end)).map(|end| program.add(*end, queue).is_err());
            failed += gone.chain(come).filter(|failed| *failed).count() as u64;
        }
        failed
    }

    /// Readable when netd has something to say: then call [`Attachment::hear`].
    pub(crate) fn watch(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Attachment::Netd(client) => Some(client.fd()),
            Attachment::Own { .. } | Attachment::Gone(_) => None,
        }
    }

    /// Takes what netd says. Returns how many requests it has refused.
    pub(crate) fn hear(&mut self) -> u64 {
        let Attachment::Netd(client) = self else { return 0 };
        let heard = client.hear();
        if heard.is_gone {
            *self = Attachment::Gone(client.interface().clone());
        }
        heard.refused
    }
}
