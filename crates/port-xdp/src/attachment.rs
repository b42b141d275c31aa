//! How a port has got its interface: by this process itself, or by `taut netd`.
//!
//! Owns what keeps the program attached. What is received at is told here; frames go by the queues, which are the port's
//! either way.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use taut_base::Locator;
use taut_ethernet::{BARE_SHIFT, Layer, UDP_SHIFT};
use taut_xdp::{AttachMode, Interface, Link, Membership, Mode, Program};

use crate::XdpConfig;
use crate::netd::{Asking, Client, Heard, connect};
use crate::queue::Queue;

/// What is waited for where it is taken, as it may just be on its way to be free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaited {
    /// The interface and its queues, which a process may have had that has just ended.
    All,
    /// The queues, which this process has just let go.
    Queues,
    /// Nothing: it is tried again later.
    Nothing,
}

/// Who has opened it.
pub(crate) enum Attachment {
    /// By the process itself, which has the privileges, with the groups of a layer without IP.
    Own { link: Link, _groups: Option<Membership> },
    /// By netd.
    Netd(Client),
}

/// Has the interface opened, with the queues and what is received at. `sockets` are those of the participant. netd opens
/// for IP only: what else is received nobody could prove to be one's own.
///
/// *Errors*: one sentence.
pub(crate) fn open(
    config: &XdpConfig,
    interface: &Interface,
    layer: &Layer,
    sockets: &[BorrowedFd<'_>],
) -> Result<(Attachment, Vec<Queue>), String> {
    let connection = if layer.bare_ends().is_some() { None } else { connect(&config.netd)? };
    let Some(connection) = connection else { return own(config, interface, layer, Awaited::All) };
    let ends = layer.ends();
    let asking = Asking::new(connection, config, interface.clone(), ends, sockets)?;
    let (client, queues) = Client::take(asking)?;
    client.receive_first(ends)?;
    Ok((Attachment::Netd(client), queues))
}

/// What netd has passed, which has said all there is to say; that it lets it receive is heard later.
pub(crate) fn adopt(asking: Asking, ends: &[SocketAddr]) -> Result<(Attachment, Vec<Queue>), String> {
    let (client, queues) = asking.finish()?;
    if !client.receive(ends) {
        return Err("netd does not read what it is told: start it again".into());
    }
    Ok((Attachment::Netd(client), queues))
}

/// By this process.
pub(crate) fn own(
    config: &XdpConfig,
    interface: &Interface,
    layer: &Layer,
    awaited: Awaited,
) -> Result<(Attachment, Vec<Queue>), String> {
    opened(config, interface, layer, awaited).map_err(|error| match layer.bare_ends() {
        // It is not asked there.
        Some(_) => error.without_netd().to_string(),
        None => error.to_string(),
    })
}

fn opened(
    config: &XdpConfig,
    interface: &Interface,
    layer: &Layer,
    awaited: Awaited,
) -> Result<(Attachment, Vec<Queue>), taut_xdp::Error> {
    let numbers = config.numbers();
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
    let attach = if awaited == Awaited::All { Link::attach_patiently } else { Link::attach };
    let link = attach(program, interface, config.attach)?;
    let headroom = u32::from(if mode == Mode::L2 { BARE_SHIFT } else { UDP_SHIFT });
    let waits = awaited != Awaited::Nothing;
    let queues = numbers.iter().map(|number| Queue::open(&link, *number, config.bind, headroom, waits));
    let queues = queues.collect::<Result<_, _>>()?;
    Ok((Attachment::Own { link, _groups: groups }, queues))
}

impl Attachment {
    /// Where the program runs, and why it is not in the driver if that was tried.
    pub fn attached(&self) -> (AttachMode, Option<String>) {
        match self {
            Attachment::Own { link, .. } => (link.attached(), link.why_not_native().map(ToString::to_string)),
            Attachment::Netd(client) => (client.attached(), client.why_not_native()),
        }
    }

    /// Is our program still there, as far as this process can tell? netd looks itself. *Cost*: two system calls, or none.
    pub fn is_attached(&self) -> bool {
        match self {
            Attachment::Own { link, .. } => link.is_attached(),
            Attachment::Netd(_) => true,
        }
    }

    /// Receives at the new ends from now on, and at none of the old ones besides. Returns how many changes failed.
    pub fn follow(&self, queues: &[Queue], old: &[SocketAddr], new: &[SocketAddr]) -> u64 {
        let link = match self {
            Attachment::Own { link, .. } => link,
            Attachment::Netd(client) => return u64::from(!client.receive(new)),
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
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Attachment::Netd(client) => Some(client.fd()),
            Attachment::Own { .. } => None,
        }
    }

    /// Takes what netd says.
    pub fn hear(&self) -> Heard {
        match self {
            Attachment::Netd(client) => client.hear(),
            Attachment::Own { .. } => Heard::default(),
        }
    }

    pub fn is_by_netd(&self) -> bool {
        matches!(self, Attachment::Netd(_))
    }
}
