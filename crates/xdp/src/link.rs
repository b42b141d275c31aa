//! The attachment of a program to an interface: a descriptor. It ends with its owner, or with the last process that has a
//! copy of it if its owner is killed.
//!
//! Owns the program and the choice between native and generic. A socket is added to the link of its interface;
//! until one is, and after it has gone, all frames of the queue are the kernel's. The kernel asks for privileges
//! where a program is loaded and not here: whoever is given the descriptor of one can attach it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::bpf::{self, DRV_MODE, SKB_MODE};
use crate::interface::program_of;
use crate::program::refused;
use crate::socket::patiently;
use crate::vlan::is_bond;
use crate::{Error, Interface, Program, Socket};

/// How often it is tried, every 5 ms, where a program is attached: the link of one that has just ended may be open for a
/// moment more in a process that another thread forks. Less and a restart fails now and then; more and a program that
/// stays is told later.
const TRIES: u32 = 40;

/// Where the kernel runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachMode {
    /// In the driver, before the kernel makes anything of the frame.
    Native,
    /// At the beginning of the kernel's own path, with any driver.
    Generic,
}

/// An attached program; it is attached until this is dropped. If the process is killed, a child that was forked meanwhile
/// keeps it attached until it ends or becomes another program.
pub struct Link {
    program: Program,
    interface: Interface,
    attached: AttachMode,
    why_not_native: Option<Error>,
    fd: OwnedFd,
}

impl Link {
    /// Attaches a program as wanted; natively if possible, if nothing is wanted.
    ///
    /// *Errors*: [`Error::ProgramAttached`], [`Error::ProgramAbove`], [`Error::NoXdp`], [`Error::NotAllowed`]; if native
    /// is wanted, [`Error::MtuTooLarge`] and [`Error::TooFewRxQueues`]. *Cost*: some seven system calls, and five more
    /// for each refusal; a driver may set up its queues anew, and the link of the network be down for seconds.
    pub fn attach(
        program: Program,
        interface: &Interface,
        wanted: Option<AttachMode>,
    ) -> Result<Link, Error> {
        Link::attach_within(1, program, interface, wanted)
    }

    /// The same, where a program that is attached may just be on its way to go. *Cost*: up to 200 ms more for each mode
    /// in which another program stays attached.
    pub fn attach_patiently(
        program: Program,
        interface: &Interface,
        wanted: Option<AttachMode>,
    ) -> Result<Link, Error> {
        Link::attach_within(TRIES, program, interface, wanted)
    }

    fn attach_within(
        tries: u32,
        program: Program,
        interface: &Interface,
        wanted: Option<AttachMode>,
    ) -> Result<Link, Error> {
        let attach = |mode| match mode {
            AttachMode::Native if is_bond(interface.index) => Err(of_bond(interface)),
            _ => attach(&program, interface, mode, tries),
        };
        let (fd, attached, why_not_native) = match wanted {
            Some(mode) => (attach(mode)?, mode, None),
            None => match attach(AttachMode::Native) {
                Ok(fd) => (fd, AttachMode::Native, None),
                Err(error) => (attach(AttachMode::Generic)?, AttachMode::Generic, Some(error)),
            },
        };
        Ok(Link { program, interface: interface.clone(), attached, why_not_native, fd })
    }

    /// The program, whose destinations may change at any time.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The interface, as it was given.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Where the program runs.
    pub fn attached(&self) -> AttachMode {
        self.attached
    }

    /// Is our program still attached there? Not if the interface has been removed, or who may do so has detached the
    /// link or given it another program. *Cost*: two system calls.
    pub fn is_attached(&self) -> bool {
        let own = bpf::program_id(self.program.as_fd());
        let has = bpf::attached(self.fd.as_fd());
        // A kernel that does not tell has not detached it.
        let Ok((own, (program, interface))) = own.and_then(|own| Ok((own, has?))) else { return true };
        (program, interface) == (own, self.interface.index)
    }

    /// Why it does not run in the driver, if that was tried.
    pub fn why_not_native(&self) -> Option<&Error> {
        self.why_not_native.as_ref()
    }

    /// Gives the frames of a socket's queue to the socket, from now on. Its fill ring should have frames by then.
    ///
    /// *Errors*: [`Error::OtherInterface`]: the kernel would drop them without a word. *Cost*: one system call.
    pub fn add(&self, socket: &Socket) -> Result<(), Error> {
        // Indices are those of one namespace; the MTU may have changed meanwhile.
        let identity = |interface: &Interface| (interface.index, interface.name.clone(), interface.mac);
        if identity(socket.interface()) != identity(&self.interface) {
            return Err(self.is_of_another());
        }
        self.program.add_socket(socket.fd(), socket.queue())
    }

    /// The same for a socket of this network namespace, whose interface was asked later than the link's: its name and its
    /// address of Ethernet may be others by now. An index is given again, but not while our program is attached there.
    pub(crate) fn add_bound(&self, fd: BorrowedFd<'_>, to: &Interface, queue: u32) -> Result<(), Error> {
        if to.index != self.interface.index || !self.is_attached() {
            return Err(self.is_of_another());
        }
        self.program.add_socket(fd, queue)
    }

    fn is_of_another(&self) -> Error {
        Error::OtherInterface { interface: self.interface.name.clone() }
    }

    /// Passes the frames of a queue to the kernel, from now on; whether a socket had them. One that is dropped
    /// needs no removal.
    pub fn remove(&self, queue: u32) -> Result<bool, Error> {
        self.program.remove_socket(queue)
    }
}

impl Drop for Link {
    /// A child that was forked has the descriptor, too. A program that somebody has put in the place of ours is not touched.
    fn drop(&mut self) {
        if self.is_attached() {
            // A process that has given up the right to it ends it with the last descriptor.
            let _ = bpf::detach(self.fd.as_fd());
        }
    }
}

fn attach(program: &Program, interface: &Interface, mode: AttachMode, tries: u32) -> Result<OwnedFd, Error> {
    let flags = match mode {
        AttachMode::Native => DRV_MODE,
        AttachMode::Generic => SKB_MODE,
    };
    let attached = patiently(tries, || bpf::attach(program.as_fd(), interface.index, flags));
    attached.map_err(|errno| refusal(errno, interface, mode))
}

/// Its driver takes a program, and the kernel passes no frame of it to a socket.
fn of_bond(interface: &Interface) -> Error {
    Error::NoXdp { interface: interface.name.clone(), what: "native XDP for sockets, as it is a bond" }
}

/// What it means that the kernel does not attach a program.
fn refusal(errno: Errno, interface: &Interface, mode: AttachMode) -> Error {
    let name = interface.name.clone();
    match errno {
        // Or a program runs in the other mode.
        Errno::EXIST if program_of(interface.index) == Ok(None) => Error::ProgramAbove { interface: name },
        Errno::BUSY | Errno::EXIST => Error::ProgramAttached { interface: name },
        Errno::OPNOTSUPP if mode == AttachMode::Native => {
            Error::NoXdp { interface: name, what: "native XDP" }
        }
        Errno::OPNOTSUPP => Error::NoXdp { interface: name, what: "generic XDP" },
        Errno::RANGE => Error::MtuTooLarge { interface: name, mtu: interface.mtu },
        Errno::NOSPC => Error::TooFewRxQueues { interface: name, rx_queues: interface.rx_queues },
        // No error number of its own says that the interface has gone.
        Errno::NODEV | Errno::INVAL if has_gone(interface) => Error::NoInterface { interface: name },
        _ => refused("bpf(BPF_LINK_CREATE)", errno),
    }
}

/// Is there no interface of that name and index any more?
fn has_gone(interface: &Interface) -> bool {
    match Interface::named(&interface.name) {
        Ok(found) => found.index != interface.index,
        Err(error) => matches!(error, Error::NoInterface { .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bond_has_a_remedy() {
        let lo = Interface::named("lo").expect("there is one");
        let text = of_bond(&lo).to_string();
        assert!(text.contains("it is a bond") && text.contains("choose another mode or interface"), "{text}");
    }

    /// No driver refuses it here: all that are at hand take frames in several buffers.
    #[test]
    fn an_mtu_too_large_for_the_driver() {
        let lo = Interface::named("lo").expect("there is one");
        let error = refusal(Errno::RANGE, &lo, AttachMode::Native);
        assert_eq!(error, Error::MtuTooLarge { interface: "lo".into(), mtu: lo.mtu });
        let text = error.to_string();
        assert!(text.contains("mtu 1500") && text.contains("choose generic mode"), "{text}");
    }
}
