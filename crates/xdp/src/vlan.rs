//! Interfaces of a VLAN: which network one is of, and by which other interface its frames come and go.
//!
//! The kernel tells it (rtnetlink(7)). A program in the driver of that other one, the parent, sees frames with the tag of
//! the network; the interface of the VLAN itself is behind the kernel's own path and has no driver.

use std::os::fd::OwnedFd;

use libc::{IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINK_NETNSID, IFLA_LINKINFO};
use taut_netlink::{Errno, Socket, attribute, half, link_names, text, word};

use crate::interface::{asked, has_come_up, has_tags_taken_off, numbered, refused};
use crate::{Error, Interface};

// linux/if_link.h and linux/if_ether.h
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
/// IEEE 802.1Q; the other one that the kernel has is IEEE 802.1ad.
const TYPE_VLAN: u16 = 0x8100;

/// The VLAN of an interface, as a program on its parent has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vlan {
    /// The number of the network (VID). *Range*: 1 to 4,094.
    pub network: u16,
    /// The interface that its frames come and go by, with tags.
    pub parent: Interface,
}

impl Vlan {
    /// That of an interface of this network namespace, or a sentence that says why there is no parent for a program;
    /// `None` if it is of none.
    ///
    /// *Errors*: the kernel does not tell. *Cost*: some fifteen system calls; five for one of no VLAN.
    ///
    /// ```
    /// use taut_xdp::{Interface, Vlan};
    /// assert_eq!(Vlan::of(&Interface::named("lo")?)?, None);
    /// # Ok::<(), taut_xdp::Error>(())
    /// ```
    pub fn of(interface: &Interface) -> Result<Option<Result<Vlan, String>>, Error> {
        let mut kernel = Socket::of_routes().map_err(refused)?;
        let Some(told) = ask(&mut kernel, interface.index)? else { return Ok(None) };
        let name = &interface.name;
        let (network, parent) = match read(&told) {
            Told::Vlan { network, parent } => (network, parent),
            Told::Hidden(why) => return Ok(Some(Err(format!("{name} {why}")))),
            Told::Other(_) => return Ok(None),
        };
        let told = ask(&mut kernel, parent)?;
        Ok(Some(on(name, network, told.as_deref())))
    }
}

/// Looks whether the frames of a VLAN come by its parent, from any thread: at both interfaces by their numbers, in the
/// network namespace in which it was made.
pub struct ParentLook {
    socket: OwnedFd,
    interface: u32,
    parent: u32,
}

impl ParentLook {
    /// At the parent of this interface. *Cost*: one system call.
    pub fn open(interface: &Interface, parent: &Interface) -> Result<ParentLook, Error> {
        let socket = asked().map_err(|errno| Error::refused("socket AF_INET", errno))?;
        Ok(ParentLook { socket, interface: interface.index, parent: parent.index })
    }

    /// Why a program on the parent sees no tags; `None` if it does, as far as the kernel says. It may change at any time.
    /// *Cost*: two system calls, which wait for other changes of networks.
    pub fn why_no_tags(&self) -> Option<String> {
        let (mut request, parent) = numbered(&self.socket, self.parent)?;
        has_tags_taken_off(&self.socket, &mut request).then(|| {
            format!(
                "{parent} takes the tags of VLANs off before a program sees them: have it leave them (`ethtool -K \
                 {parent} rxvlan off`), or choose generic mode"
            )
        })
    }

    /// Why what comes and goes by the parent is none of the interface's any more: that, or it alone is down. *Cost*: five
    /// system calls, twelve if it is down alone, of which those of [`ParentLook::why_no_tags`] wait as above.
    pub fn why_lost(&self) -> Option<String> {
        // The kernel sets it up just after the parent, and tells the flags meanwhile, too: so it is believed the second
        // time, with the wait for the end of that between.
        self.why_no_tags().or_else(|| {
            self.why_down_alone().and_then(|_| self.why_no_tags().or_else(|| self.why_down_alone()))
        })
    }

    fn why_down_alone(&self) -> Option<String> {
        let is_up = |mut request| has_come_up(&self.socket, &mut request);
        let (own, interface) = numbered(&self.socket, self.interface)?;
        let (parent, _) = numbered(&self.socket, self.parent)?;
        let is_down_alone = is_up(own) == Ok(false) && is_up(parent) == Ok(true);
        is_down_alone.then(|| Error::InterfaceDown { interface }.to_string())
    }
}

/// Is the interface with this number a bond, as far as the kernel says? It takes a program, and frames come by the
/// interfaces that it is made of. *Cost*: five system calls.
pub(crate) fn is_bond(interface: u32) -> bool {
    let told = Socket::of_routes().ok().and_then(|mut kernel| ask(&mut kernel, interface).ok()?);
    told.is_some_and(|told| is_of_bond(&told))
}

fn is_of_bond(told: &[u8]) -> bool {
    read(told) == Told::Other("bond".to_owned())
}

/// The network on the parent of which the kernel says this.
fn on(name: &str, network: u16, parent: Option<&[u8]>) -> Result<Vlan, String> {
    let gone = || format!("the interface that {name} was made on has gone: make it anew");
    let told = parent.ok_or_else(gone)?;
    match read(told) {
        Told::Other(kind) if kind == "bond" => {
            return Err(format!(
                "{name} is on a bond, where frames come by the interfaces that it is made of"
            ));
        }
        Told::Other(_) => {}
        Told::Vlan { .. } | Told::Hidden(_) => {
            return Err(format!("{name} is of a VLAN within a VLAN, and a program looks at one tag"));
        }
    }
    let names = link_names(told);
    let parent = Interface::named(names.first().ok_or_else(gone)?).map_err(|error| error.to_string())?;
    Ok(Vlan { network, parent })
}

/// What the kernel says of the interface with this number; `None` if there is none.
fn ask(kernel: &mut Socket, interface: u32) -> Result<Option<Vec<u8>>, Error> {
    match kernel.link(interface) {
        Ok(told) => Ok(Some(told)),
        Err(Errno::ENODEV) => Ok(None),
        Err(errno) => Err(refused(errno)),
    }
}

/// What is said of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    /// It is none of a VLAN, but of this kind, if it has one.
    Other(String),
    /// It is of this network, on the interface with this number.
    Vlan { network: u16, parent: u32 },
    /// It is of a VLAN, and its frames cannot be had by the parent: why.
    Hidden(&'static str),
}

/// Reads it.
fn read(told: &[u8]) -> Told {
    let info = attribute(told, IFLA_LINKINFO).unwrap_or_default();
    let kind = attribute(info, IFLA_INFO_KIND).map(text).unwrap_or_default();
    if kind != "vlan" {
        return Told::Other(kind);
    }
    let data = attribute(info, IFLA_INFO_DATA).unwrap_or_default();
    let network = attribute(data, IFLA_VLAN_ID).and_then(|value| half(value, 0));
    let protocol = attribute(data, IFLA_VLAN_PROTOCOL).and_then(|value| half(value, 0)).map(u16::from_be);
    let parent = attribute(told, IFLA_LINK).and_then(|value| word(value, 0));
    if attribute(told, IFLA_LINK_NETNSID).is_some() {
        return Told::Hidden("is here, and its parent in another network namespace");
    }
    match (network, parent) {
        // A tag of network 0 is a priority only, which those without a network may have, too.
        (Some(network @ 1..), Some(parent)) if protocol.is_none_or(|of| of == TYPE_VLAN) => {
            Told::Vlan { network, parent }
        }
        _ => Told::Hidden(
            "has tags that a program does not look at: those of a network by IEEE 802.1Q it does",
        ),
    }
}

#[cfg(test)]
mod tests {
    use libc::IFLA_IFNAME;
    use taut_netlink::Attributes;

    use super::*;

    fn told(kind: &str, network: u16, protocol: u16, more: Attributes) -> Vec<u8> {
        let data = Attributes::default()
            .with(IFLA_VLAN_ID, &network.to_ne_bytes())
            .with(IFLA_VLAN_PROTOCOL, &protocol.to_be_bytes());
        let info = Attributes::default().with_text(IFLA_INFO_KIND, kind).with_nested(IFLA_INFO_DATA, &data);
        more.with_nested(IFLA_LINKINFO, &info).0
    }

    fn link_to(parent: u32) -> Attributes {
        Attributes::default().with_word(IFLA_LINK, parent)
    }

    #[test]
    fn what_the_kernel_says_of_a_vlan() {
        assert_eq!(read(&told("vlan", 5, TYPE_VLAN, link_to(7))), Told::Vlan { network: 5, parent: 7 });
        for kind in ["veth", "vlan ", "macvlan", ""] {
            assert_eq!(read(&told(kind, 5, TYPE_VLAN, link_to(7))), Told::Other(kind.to_owned()));
        }
        let elsewhere = link_to(7).with_word(IFLA_LINK_NETNSID, 0);
        for (hidden, part) in [
            (told("vlan", 5, 0x88a8, link_to(7)), "802.1Q"),
            (told("vlan", 0, TYPE_VLAN, link_to(7)), "802.1Q"),
            (told("vlan", 5, TYPE_VLAN, Attributes::default()), "802.1Q"),
            (told("vlan", 5, TYPE_VLAN, elsewhere), "another network namespace"),
        ] {
            let Told::Hidden(why) = read(&hidden) else { panic!("{part}") };
            assert!(why.contains(part), "{why}");
        }
        let whole = told("vlan", 5, TYPE_VLAN, link_to(7));
        (0..whole.len()).for_each(|len| assert_ne!(read(&whole[..len]), read(&whole), "{len} bytes"));
    }

    #[test]
    fn a_bond_is_told_from_all_else() {
        assert!(is_of_bond(&told("bond", 0, 0, Attributes::default())));
        for kind in ["", "veth", "vlan", "bridge", "bonded"] {
            assert!(!is_of_bond(&told(kind, 0, 0, Attributes::default())), "{kind}");
        }
        assert!(!is_bond(1), "loopback is none");
    }

    #[test]
    fn what_a_parent_may_be() {
        let lo = Interface::named("lo").unwrap();
        let told_of_lo = ask(&mut Socket::of_routes().unwrap(), lo.index).unwrap();
        assert_eq!(on("lo.5", 5, told_of_lo.as_deref()), Ok(Vlan { network: 5, parent: lo }));
        let called = || Attributes::default().with_text(IFLA_IFNAME, "lo");
        for (parent, part) in [
            (None, "lo.5 was made on has gone"),
            (Some(told("veth", 0, 0, Attributes::default())), "lo.5 was made on has gone"),
            (Some(told("bond", 0, 0, called())), "lo.5 is on a bond"),
            (Some(told("vlan", 7, TYPE_VLAN, called())), "lo.5 is of a VLAN within a VLAN"),
            (Some(told("vlan", 7, 0x88a8, called())), "lo.5 is of a VLAN within a VLAN"),
        ] {
            let why = on("lo.5", 5, parent.as_deref()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn loopback_is_of_no_vlan() {
        let lo = Interface::named("lo").unwrap();
        assert_eq!(Vlan::of(&lo), Ok(None));
        let gone = Interface { index: 1 << 30, ..lo };
        assert_eq!(Vlan::of(&gone), Ok(None), "that it has gone is told elsewhere");
    }
}
