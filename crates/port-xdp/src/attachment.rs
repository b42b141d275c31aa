//! How a port has got its interface: by this process itself, or by `taut netd`.
//!
//! Owns what keeps the program attached. What is received at is told here; frames go by the queues, which are the port's
//! either way.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use taut_base::Locator;
use taut_ethernet::{BARE_SHIFT, UDP_SHIFT, shift_with_tag};
use taut_xdp::{AttachMode, Error, Interface, Link, Membership, Mode, ParentLook, Program, Vlan, program_of};

use crate::XdpConfig;
use crate::netd::{Asking, Client, Connection, Heard, MAX_ENDS, connect};
use crate::port::Ground;
use crate::queue::Queue;
use crate::vlan::{behind_driver, leaves_parent, taken};

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
    Own { attached: Attached, _groups: Option<Membership> },
    /// By netd, which sees to the groups as well.
    Netd {
        client: Client,
        /// Whether it is told where this is to receive: over IP only.
        layer: Mode,
        /// Why it is not on the parent, if the interface is of a VLAN.
        why_not_parent: Option<String>,
    },
}

/// A program that is attached.
pub(crate) struct Attached {
    link: Link,
    /// The VLAN whose frames it looks for on the parent, and what looks whether they come there; `None`: it is on the
    /// interface itself.
    vlan: Option<(Vlan, ParentLook)>,
    /// Why it is not on the parent, if it was to be there.
    why_not_parent: Option<String>,
}

/// Has the interface opened, with the queues and what is received at. `sockets` are those of the participant.
///
/// *Errors*: one sentence.
pub(crate) fn open(
    config: &XdpConfig,
    ground: &Ground,
    sockets: &[BorrowedFd<'_>],
) -> Result<(Attachment, Vec<Queue>), String> {
    let Some(connection) = connect(&config.netd)? else { return own(config, ground, Awaited::All) };
    let (client, queues) = Client::take(ask(connection, config, ground, sockets)?)?;
    if ground.mode() == Mode::L3 {
        client.receive_first(ground.layer.ends())?;
    }
    Ok((Attachment::by_netd(client, ground), queues))
}

/// Asks netd, over this connection.
pub(crate) fn ask(
    connection: Connection,
    config: &XdpConfig,
    ground: &Ground,
    sockets: &[BorrowedFd<'_>],
) -> Result<Asking, String> {
    match behind_driver(ground) {
        Some(why) if config.attach == Some(AttachMode::Native) => return Err(why),
        Some(_) if config.attach.is_none() => leaves_parent(ground)?,
        _ => {}
    }
    let of = (ground.interface.clone(), ground.mode());
    Asking::new(connection, config, of, ground.layer.ends(), sockets)
}

/// What netd has passed, which has said all there is to say; that it lets it receive over IP is heard later.
pub(crate) fn adopt(asking: Asking, ground: &Ground) -> Result<(Attachment, Vec<Queue>), String> {
    let (client, queues) = asking.finish()?;
    if ground.mode() == Mode::L3 && !client.receive(ground.layer.ends()) {
        return Err("netd does not read what it is told: start it again".into());
    }
    Ok((Attachment::by_netd(client, ground), queues))
}

/// By this process.
pub(crate) fn own(
    config: &XdpConfig,
    ground: &Ground,
    awaited: Awaited,
) -> Result<(Attachment, Vec<Queue>), String> {
    let Ground { interface, layer, .. } = ground;
    let text = |error: Error| match (ground.mode(), &error) {
        // netd could not have several share it, either.
        (Mode::L2, Error::ProgramAttached { .. }) => error.without_netd().to_string(),
        _ => error.to_string(),
    };
    let groups = match layer.bare_ends() {
        None => None,
        Some(bare) => {
            let groups = bare.user.iter().chain(&bare.metatraffic).filter(|end| end.is_multicast());
            let groups: Vec<_> = groups.filter_map(Locator::mac).collect();
            Some(Membership::join(interface, &groups).map_err(text)?)
        }
    };
    let attached = attach(config, ground, awaited, text)?;
    let shift = if groups.is_some() { BARE_SHIFT } else { UDP_SHIFT };
    let shift = if attached.vlan.is_some() { shift_with_tag(shift) } else { shift };
    let (numbers, waits) = (config.numbers().iter(), awaited != Awaited::Nothing);
    let open = |number: &u32| Queue::open(&attached.link, *number, config.bind, shift.into(), waits);
    let queues =
        numbers.map(open).collect::<Result<_, _>>().map_err(|error| attached.with_reason(text(error)))?;
    Ok((Attachment::Own { attached, _groups: groups }, queues))
}

/// Attaches the program. That of a VLAN goes to the driver of the parent, where frames have tags; behind the driver it
/// goes to the interface itself, which has taken them off and adds them: there the parent may be anybody's.
fn attach(
    config: &XdpConfig,
    ground: &Ground,
    awaited: Awaited,
    text: impl Fn(Error) -> String,
) -> Result<Attached, String> {
    let load = |network, to: &Interface, wanted| load(config, ground, network, to, wanted, awaited);
    let itself = |wanted| load(0, &ground.interface, wanted).map_err(&text);
    let Some(vlan) = ground.vlan.as_ref().filter(|_| config.attach != Some(AttachMode::Generic)) else {
        return Ok(Attached { link: itself(config.attach)?, vlan: None, why_not_parent: None });
    };
    let is_bare = ground.mode() == Mode::L2;
    if is_bare {
        // An interface has one participant without IP, and one behind the driver would get nothing any more.
        itself(Some(AttachMode::Generic))?;
    }
    let why = match vlan {
        Ok(vlan) => {
            let parent = &vlan.parent;
            let taken = || taken(&parent.name, &ground.interface.name);
            let look = ParentLook::open(&ground.interface, parent).map_err(&text)?;
            let (is_taken, why) = match look.why_no_tags() {
                Some(why) => (is_bare && program_of(parent.index).map_err(&text)?.is_some(), why),
                None => match load(vlan.network, parent, Some(AttachMode::Native)) {
                    Ok(link) => {
                        let vlan = Some((vlan.clone(), look));
                        return Ok(Attached { link, vlan, why_not_parent: None });
                    }
                    Err(Error::ProgramAttached { .. }) => (true, taken()),
                    Err(error) => (false, text(error)),
                },
            };
            // It may take all that would come, also where there are no tags to tell it from its own.
            if is_taken && is_bare {
                return Err(taken());
            }
            why
        }
        Err(why) => why.clone(),
    };
    if config.attach.is_some() {
        return Err(why);
    }
    match itself(Some(AttachMode::Generic)) {
        Ok(link) => Ok(Attached { link, vlan: None, why_not_parent: Some(why) }),
        // It is refused everywhere, as without privileges.
        Err(again) if again == why => Err(why),
        Err(other) => Err(format!("{other} (not native: {why})")),
    }
}

/// Loads the program for frames of this network, and attaches it to this interface.
fn load(
    config: &XdpConfig,
    ground: &Ground,
    network: u16,
    to: &Interface,
    wanted: Option<AttachMode>,
    awaited: Awaited,
) -> Result<Link, Error> {
    let Ground { interface, layer, .. } = ground;
    let program = Program::load_for(ground.mode(), network, interface.mtu)?;
    for number in config.numbers() {
        layer.ends().iter().try_for_each(|end| program.add(*end, *number))?;
    }
    let attach = if awaited == Awaited::All { Link::attach_patiently } else { Link::attach };
    attach(program, to, wanted)
}

impl Attached {
    /// What is refused, with the reason why it is not on the parent.
    fn with_reason(&self, refused: String) -> String {
        match &self.why_not_parent {
            Some(why) => format!("{refused} (not native: {why})"),
            None => refused,
        }
    }
}

impl Attachment {
    pub(crate) fn by_netd(client: Client, ground: &Ground) -> Attachment {
        Attachment::Netd { client, layer: ground.mode(), why_not_parent: behind_driver(ground) }
    }

    /// Where the program runs, and why it is not in the driver if that was tried.
    pub fn attached(&self) -> (AttachMode, Option<String>) {
        match self {
            Attachment::Own { attached: Attached { link, why_not_parent, .. }, .. } => {
                let why = link.why_not_native().map(ToString::to_string);
                (link.attached(), why.or_else(|| why_not_parent.clone()))
            }
            Attachment::Netd { client, why_not_parent, .. } => {
                let why = client.why_not_native();
                (client.attached(), why.map(|why| why_not_parent.clone().unwrap_or(why)))
            }
        }
    }

    /// The VLAN whose frames come and go by the parent, with tags.
    pub fn vlan(&self) -> Option<&Vlan> {
        match self {
            Attachment::Own { attached, .. } => attached.vlan.as_ref().map(|(vlan, _)| vlan),
            Attachment::Netd { .. } => None,
        }
    }

    /// Why our program gets no frames any more, as far as this process can tell; netd looks itself. *Cost*: two system
    /// calls, seven by the parent of a VLAN and fourteen if its interface is down alone, or none.
    pub fn why_lost(&self) -> Option<String> {
        match self {
            Attachment::Own { attached, .. } if !attached.link.is_attached() => {
                Some("the program was detached".into())
            }
            Attachment::Own { attached, .. } => attached.vlan.as_ref().and_then(|(_, look)| look.why_lost()),
            Attachment::Netd { .. } => None,
        }
    }

    /// Receives at the new ends from now on, and at none of the old ones besides. Returns how many changes failed.
    pub fn follow(&self, queues: &[Queue], old: &[SocketAddr], new: &[SocketAddr]) -> u64 {
        let link = match self {
            Attachment::Own { attached, .. } => &attached.link,
            Attachment::Netd { layer: Mode::L2, .. } => return 0,
            Attachment::Netd { client, .. } if client.receive(new) => {
                return new.len().saturating_sub(MAX_ENDS) as u64;
            }
            Attachment::Netd { .. } => return 1,
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
            Attachment::Netd { client, .. } => Some(client.fd()),
            Attachment::Own { .. } => None,
        }
    }

    /// Takes what netd says.
    pub fn hear(&self) -> Heard {
        let Attachment::Netd { client, layer, .. } = self else { return Heard::default() };
        let heard = client.hear();
        // Without IP nothing is asked for but the queues, so that these are what is refused.
        let is_taken_back = *layer == Mode::L2 && matches!(heard.answer, Some(Err(_)));
        Heard { is_gone: heard.is_gone || is_taken_back, ..heard }
    }

    pub fn is_by_netd(&self) -> bool {
        matches!(self, Attachment::Netd { .. })
    }
}
