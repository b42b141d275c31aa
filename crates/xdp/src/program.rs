//! The program in the kernel, with its maps: which destinations are ours, and which queue has which socket.
//!
//! Owns the descriptors. What the program does is said by [`crate::filter`], where it is attached by
//! [`crate::Link`].

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::Error;
use crate::bpf::{self, ARRAY, HASH, Map, XSKMAP};
use crate::error::BPF_CAPABILITIES;
use crate::filter::{DESTINATIONS, Key, Mode, NETWORKS, SOCKETS, assemble, longest_datagram, tags};

/// How many destinations a program takes. A participant has one for each address of the interface and each of its
/// queues, and a network has room for 120 participants by the rules of RTPS 2.5 §9.6.2.3; more cost 100 bytes each.
pub const MAX_DESTINATIONS: u32 = 1_024;
/// How many queues: virtual interfaces have up to 4,096. A slot costs eight bytes.
pub const MAX_QUEUES: u32 = 4_096;

/// Our program, loaded and not attached.
pub struct Program {
    fd: OwnedFd,
    mtu: u32,
    /// The network that frames are of; 0: none.
    network: u16,
    sockets: Map<u32, u32>,
    ours: Ours,
}

/// The map of what is ours.
enum Ours {
    /// The destinations, each with the longest datagram to it.
    Destinations(Map<Key, u32>),
    /// 1 for our network, 0 for others.
    Networks(Map<u32, u32>),
}

/// What the program says to a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// XDP_PASS: it is the kernel's.
    Pass,
    /// XDP_REDIRECT: it is the socket's.
    Redirect,
    /// Anything else, by its number: never said by ours.
    Other(u32),
}

/// What a run of the program came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The result.
    pub verdict: Verdict,
    /// The mean of all runs, in nanoseconds.
    pub duration_ns: u32,
}

impl Program {
    /// Makes the maps, loads the program and looks whether the kernel has the one that was meant. Its frames have no tag,
    /// or one of network 0; [`Program::load_for`] is for others. `mtu` is that of the interface, in bytes: in mode L3
    /// longer packets are left to the kernel, now and if the interface's changes. The program takes frames that lie in
    /// several buffers, if the kernel has such (Linux 5.18): then drivers that have them run it natively at any MTU, also
    /// of the other end of a virtual cable.
    ///
    /// *Errors*: [`Error::NotAllowed`], [`Error::ProgramRejected`], [`Error::OtherProgram`]. *Cost*: four system
    /// calls, in mode L2 five, and less than a millisecond of the verifier's.
    pub fn load(mode: Mode, mtu: u32) -> Result<Program, Error> {
        Program::load_for(mode, 0, mtu)
    }

    /// The same for frames with a tag of this network (IEEE 802.1Q, VID), and for no others. `mtu` is that of the VLAN's
    /// interface. A frame that the driver has taken the tag off is the kernel's.
    ///
    /// *Errors*: a number above 4,094, and as above. *Cost*: as above.
    pub fn load_for(mode: Mode, network: u16, mtu: u32) -> Result<Program, Error> {
        if u32::from(network) >= NETWORKS - 1 {
            let what = format!("no VLAN {network} can be: choose one below {}", NETWORKS - 1);
            return Err(Error::BadParameter(what));
        }
        let create = |errno| refused("bpf(BPF_MAP_CREATE)", errno);
        let sockets = Map::create(XSKMAP, MAX_QUEUES, "taut_sockets").map_err(create)?;
        let ours = match mode {
            Mode::L3 => Ours::Destinations(Map::create(HASH, MAX_DESTINATIONS, "taut_ends").map_err(create)?),
            Mode::L2 => Ours::Networks(Map::create(ARRAY, NETWORKS, "taut_networks").map_err(create)?),
        };
        let mut maps = [-1; 2];
        maps[SOCKETS] = sockets.as_fd().as_raw_fd();
        maps[DESTINATIONS] = ours.as_fd().as_raw_fd();
        let code = assemble(mode).with_maps(&maps);
        let load = |takes_pieces| bpf::load(&code, "taut_xdp", takes_pieces);
        let loaded = match load(true) {
            // An earlier kernel, which does not know the flag.
            Err((Errno::INVAL, log)) if log.is_empty() => load(false),
            loaded => loaded,
        };
        let fd = loaded.map_err(rejected)?;
        let tag = bpf::tag(fd.as_fd()).map_err(|errno| refused("bpf(BPF_OBJ_GET_INFO_BY_FD)", errno))?;
        meant(mode, tag)?;
        if let Ours::Networks(networks) = &ours {
            networks.update(network.into(), 1).map_err(|errno| refused("bpf(BPF_MAP_UPDATE_ELEM)", errno))?;
        }
        Ok(Program { fd, mtu, network, sockets, ours })
    }

    /// Which frames it redirects.
    pub fn mode(&self) -> Mode {
        match self.ours {
            Ours::Destinations(_) => Mode::L3,
            Ours::Networks(_) => Mode::L2,
        }
    }

    /// The tag by which the kernel knows it, as `bpftool prog` shows it.
    pub fn tag(&self) -> Result<[u8; 8], Error> {
        bpf::tag(self.fd.as_fd()).map_err(|errno| refused("bpf(BPF_OBJ_GET_INFO_BY_FD)", errno))
    }

    /// Redirects messages to this address and UDP port that come by this queue, from now on; the same by another queue
    /// stays the kernel's. Again is harmless, and in mode L2 it does nothing.
    ///
    /// *Errors*: [`Error::TooManyDestinations`]. *Cost*: one system call.
    pub fn add(&self, to: SocketAddr, queue: u32) -> Result<(), Error> {
        self.add_up_to(to, queue, self.mtu)
    }

    /// The same for a socket whose chunks were made for another MTU than that of the interface when this was loaded:
    /// longer packets are left to the kernel.
    pub fn add_up_to(&self, to: SocketAddr, queue: u32, mtu: u32) -> Result<(), Error> {
        let Ours::Destinations(destinations) = &self.ours else { return Ok(()) };
        destinations.update(self.key(to, queue)?, longest_datagram(to, mtu)).map_err(|errno| match errno {
            Errno::TOOBIG => Error::TooManyDestinations,
            _ => refused("bpf(BPF_MAP_UPDATE_ELEM)", errno),
        })
    }

    /// Passes messages to this address and UDP port that come by this queue, from now on; whether they were redirected.
    pub fn remove(&self, to: SocketAddr, queue: u32) -> Result<bool, Error> {
        let Ours::Destinations(destinations) = &self.ours else { return Ok(false) };
        destinations.delete(self.key(to, queue)?).map_err(|errno| refused("bpf(BPF_MAP_DELETE_ELEM)", errno))
    }

    /// Runs it on a frame without an interface, as one of queue 0, so many times. Frames have at least the 14
    /// bytes of Ethernet.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<Run, Error> {
        let run = bpf::test_run(self.fd.as_fd(), frame, repeat);
        let (result, duration_ns) = run.map_err(|errno| refused("bpf(BPF_PROG_TEST_RUN)", errno))?;
        let verdict = match result {
            2 => Verdict::Pass,
            4 => Verdict::Redirect,
            other => Verdict::Other(other),
        };
        Ok(Run { verdict, duration_ns })
    }

    /// Gives the frames of a socket's queue to the socket. Of which interface they are is the link's business.
    pub(crate) fn add_socket(&self, socket: BorrowedFd<'_>, queue: u32) -> Result<(), Error> {
        let fd = socket.as_raw_fd() as u32;
        self.sockets.update(queue, fd).map_err(|errno| refused("bpf(BPF_MAP_UPDATE_ELEM)", errno))
    }

    fn key(&self, to: SocketAddr, queue: u32) -> Result<Key, Error> {
        let number = u16::try_from(queue).ok().filter(|_| queue < MAX_QUEUES);
        let number =
            number.ok_or_else(|| Error::BadParameter(format!("no queue {queue} can be: choose a lower one")));
        Ok(Key::new(to, number?, self.network))
    }

    /// Passes the frames of a queue; whether a socket had them.
    pub(crate) fn remove_socket(&self, queue: u32) -> Result<bool, Error> {
        self.sockets.delete(queue).map_err(|errno| refused("bpf(BPF_MAP_DELETE_ELEM)", errno))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsFd for Ours {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Ours::Destinations(map) => map.as_fd(),
            Ours::Networks(map) => map.as_fd(),
        }
    }
}

/// What a refusal of bpf(2) means wherever it comes from.
pub(crate) fn refused(call: &'static str, errno: Errno) -> Error {
    match errno {
        Errno::PERM => Error::not_allowed(call, BPF_CAPABILITIES),
        _ => Error::refused(call, errno),
    }
}

fn rejected((errno, log): (Errno, String)) -> Error {
    // It says something of what it takes, too, which may then find no descriptor.
    if log.is_empty() || matches!(errno, Errno::PERM | Errno::MFILE | Errno::NFILE) {
        return refused("bpf(BPF_PROG_LOAD)", errno);
    }
    let mut text = log;
    let _ = write!(text, " ({errno})");
    Error::ProgramRejected { log: text }
}

/// Is a program that the kernel knows by this tag the one that this build means?
fn meant(mode: Mode, tag: [u8; 8]) -> Result<(), Error> {
    if tags(mode).contains(&tag) { Ok(()) } else { Err(Error::OtherProgram { tag }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::Register::R0;
    use crate::assembler::{Assembler, Size};

    #[test]
    fn the_verifier_says_what_it_does_not_take() {
        let mut assembler = Assembler::default();
        assembler.load(Size::Word, R0, crate::assembler::Register::R1, 4_000);
        assembler.exit();
        match bpf::load(&assembler.finish().with_maps(&[]), "bad", false).map_err(rejected).err() {
            Some(error @ Error::NotAllowed { .. }) => {
                taut_testbed::left_out("the_verifier_says_what_it_does_not_take", error);
            }
            Some(error @ Error::ProgramRejected { .. }) => {
                let text = error.to_string();
                assert!(text.contains("invalid bpf_context access off=4000"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unknown_tag_is_shown_in_full() {
        let text = Error::OtherProgram { tag: [0, 1, 0xfe, 3, 4, 5, 6, 7] }.to_string();
        assert!(text.contains("0001fe0304050607"), "{text}");
    }

    #[test]
    fn a_program_of_another_tag_is_not_taken() {
        for mode in [Mode::L3, Mode::L2] {
            for tag in tags(mode) {
                assert!(meant(mode, tag).is_ok());
                let mut other = tag;
                other[7] ^= 1;
                let refused = meant(mode, other);
                assert!(matches!(refused, Err(Error::OtherProgram { tag }) if tag == other), "{refused:?}");
            }
        }
        let of_the_other = meant(Mode::L2, tags(Mode::L3)[0]);
        assert!(matches!(of_the_other, Err(Error::OtherProgram { .. })), "{of_the_other:?}");
    }
}
