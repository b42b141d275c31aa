//! What the kernel tells of the interface: its MTU, as frames that are longer the other end drops without a word; its
//! address of Ethernet, as frames to another one are for somebody else; that it has been removed; and that it has changed
//! in another way, or that there is one of its name again.

use std::os::fd::BorrowedFd;

use libc::{IFLA_ADDRESS, IFLA_MTU, RTM_DELLINK, RTM_NEWLINK};
use taut_base::{Error, Result};
use taut_netlink::{Errno, Heard, LINKS, Socket, Watch, attribute, link, link_names, remedy, word};

/// What has been heard of it since the last call.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Told {
    /// Its MTU in bytes, if that was told.
    pub mtu: Option<u32>,
    /// Its address of Ethernet, if that was told.
    pub mac: Option<[u8; 6]>,
    /// It has been removed from this network, or its parent has.
    pub is_removed: bool,
    /// Something was told of it, of its parent, or of another one that has its name.
    pub is_any: bool,
}

pub(crate) struct LinkWatch {
    interface: u32,
    /// The number of the parent, if it is an interface of a VLAN.
    parent: Option<u32>,
    name: String,
    watch: Watch,
    /// It is made with the port: whoever asks later may be a thread in another network.
    socket: Socket,
}

impl LinkWatch {
    /// Of the interface with this number and name.
    pub fn open(interface: u32, name: &str) -> Result<LinkWatch> {
        let refused = |errno| Error::Error(format!("netlink: {errno}; {}", remedy(errno)));
        let watch = Watch::open(LINKS).map_err(refused)?;
        let socket = Socket::of_routes().map_err(refused)?;
        Ok(LinkWatch { interface, parent: None, name: name.into(), watch, socket })
    }

    /// What is told of this one, its parent, is something of it, too: frames come by that.
    pub fn has_parent(&mut self, parent: u32) {
        self.parent = Some(parent);
    }

    /// Readable when the kernel tells something: then call [`LinkWatch::hear`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// What the kernel has told since the last call. *Cost*: one system call for each read; only if it had more to tell
    /// than the socket holds it is asked, which may wait.
    pub fn hear(&mut self) -> Told {
        let (mut told, mut missed) = (Told::default(), false);
        let LinkWatch { interface, parent, name, watch, .. } = self;
        watch.hear(|heard| {
            let Heard::Message(kind, body) = heard else { return missed = true };
            let Some((of, said)) = link(body) else { return };
            let is_own = of == *interface || Some(of) == *parent;
            match kind {
                RTM_NEWLINK => {
                    if of == *interface {
                        told.note(said);
                    }
                    told.is_any |= is_own || link_names(said).contains(name);
                }
                RTM_DELLINK => told.is_removed |= is_own && is_of_links(body),
                _ => {}
            }
        });
        if missed {
            told.is_any = true;
            told.is_removed |= self.ask(&mut told) == Err(Errno::ENODEV);
        }
        told
    }

    /// What the kernel says when it is asked: what has changed before it was listened to nobody tells. *Cost*: two system
    /// calls.
    pub fn look(&mut self) -> Told {
        let mut told = Told::default();
        // Who opens one that has gone is refused.
        let _ = self.ask(&mut told);
        told
    }

    fn ask(&mut self, told: &mut Told) -> std::result::Result<(), Errno> {
        told.note(&self.socket.link(self.interface)?);
        Ok(())
    }
}

impl Told {
    /// What is said of this interface.
    fn note(&mut self, said: &[u8]) {
        let mtu = attribute(said, IFLA_MTU).and_then(|value| word(value, 0));
        let mac = attribute(said, IFLA_ADDRESS).and_then(|value| value.try_into().ok());
        (self.mtu, self.mac) = (mtu.or(self.mtu), mac.or(self.mac));
    }
}

/// Is a message about the interface itself, and not about what another part of the kernel has with it, such as a bridge?
fn is_of_links(body: &[u8]) -> bool {
    body.first() == Some(&0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
    use taut_testbed::{End, ip, starts, with_pair};
    use taut_xdp::Interface;

    use super::*;

    #[test]
    fn the_kernel_tells_of_loopback() {
        let mut watch = LinkWatch::open(1, "lo").unwrap();
        assert_eq!(watch.hear(), Told::default(), "it has not changed");
        let told = watch.look();
        assert!(told.mtu.is_some_and(|mtu| mtu >= 1_500) && told.mac == Some([0; 6]), "{told:?}");
        let none = LinkWatch::open(1 << 30, "none").unwrap().look();
        assert_eq!(none, Told::default(), "there is no such interface");
    }

    /// Has the interface change so often that the socket does not hold what is told of it.
    fn change_too_often() {
        let batch = || Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
        let mut child = starts(batch).unwrap();
        let lines = "link set xa mtu 1400\nlink set xa mtu 1500\n".repeat(200);
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// What is told as long as the socket is readable.
    fn heard(watch: &mut LinkWatch) -> Told {
        let is_readable = |watch: &LinkWatch| {
            let mut fds = [PollFd::new(watch.fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() > 0
        };
        let mut all = Told::default();
        while is_readable(watch) {
            let told = watch.hear();
            all = Told { mtu: told.mtu.or(all.mtu), is_removed: told.is_removed | all.is_removed, ..told };
        }
        all
    }

    #[test]
    fn the_last_mtu_of_very_many() {
        with_pair("the_last_mtu_of_very_many", ["", ""], |pair| {
            pair.enter(End::A);
            let index = Interface::named("xa").unwrap().index;
            // What a full socket holds is read in parts: it ends within one, or with one.
            for size in (8..72).map(|kib| kib * 1_024) {
                let mut watch = LinkWatch::open(index, "xa").unwrap();
                setsockopt(&watch.fd(), RcvBuf, &size).unwrap();
                change_too_often();
                ip("link set xa mtu 1300");
                assert_eq!(heard(&mut watch).mtu, Some(1_300), "{size}");
            }
        });
    }

    #[test]
    fn a_removal_that_the_kernel_could_not_tell() {
        with_pair("a_removal_that_the_kernel_could_not_tell", ["", ""], |pair| {
            pair.enter(End::A);
            let mut watch = LinkWatch::open(Interface::named("xa").unwrap().index, "xa").unwrap();
            change_too_often();
            ip("link del xa");
            assert!(heard(&mut watch).is_removed);
        });
    }

    #[test]
    fn what_is_told_of_the_parent_is_something_of_it() {
        with_pair("what_is_told_of_the_parent_is_something_of_it", ["", ""], |pair| {
            pair.enter(End::A);
            ip("link add ya type veth peer name yb");
            let mut watch = LinkWatch::open(1, "lo").unwrap();
            ip("link set ya mtu 1400");
            assert_eq!(watch.hear(), Told::default(), "it is nobody's parent");
            watch.has_parent(Interface::named("ya").unwrap().index);
            ip("link set ya mtu 1300");
            assert_eq!(watch.hear(), Told { is_any: true, ..Told::default() });
            ip("link del ya");
            assert!(watch.hear().is_removed);
        });
    }

    /// The one that it was opened by may have been made anew, with another number.
    #[test]
    fn one_of_the_same_name_is_known() {
        with_pair("one_of_the_same_name_is_known", ["", ""], |pair| {
            pair.enter(End::A);
            ip("link property add dev xa altname enp1s0");
            for (name, is_known) in [("xa", true), ("enp1s0", true), ("x", false), ("xab", false)] {
                let mut watch = LinkWatch::open(1 << 30, name).unwrap();
                ip("link set xa mtu 1400");
                ip("link set xa mtu 1500");
                assert_eq!(watch.hear(), Told { is_any: is_known, ..Told::default() }, "{name}");
            }
        });
    }
}
