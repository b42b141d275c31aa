//! The program in the kernel, with its maps: which destinations are ours, and which queue has which socket.
//!
//! Owns the descriptors. What the program does is said by [`crate::filter`], where it is attached by
//! [`crate::Link`].

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::Error;
use crate::bpf::{self, HASH, Map, XSKMAP};
use crate::error::BPF_CAPABILITIES;
use crate::filter::{DESTINATIONS, Key, Mode, SOCKETS, assemble, longest_datagram, tags};

/// How many destinations a program takes. A participant has one for each address of the interface and each of its
/// queues, and a network has room for 120 participants by the rules of RTPS 2.5 §9.6.2.3; more cost 100 bytes each.
pub const MAX_DESTINATIONS: u32 = 1_024;
/// How many queues: virtual interfaces have up to 4,096. A slot costs eight bytes.
pub const MAX_QUEUES: u32 = 4_096;

/// Our program, loaded and not attached.
pub struct Program {
    fd: OwnedFd,
    mode: Mode,
    mtu: u32,
    sockets: Map<u32, u32>,
    destinations: Option<Map<Key, u32>>,
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
    /// Makes the maps, loads the program and looks whether the kernel has the one that was meant. `mtu` is that of the
    /// interface, in bytes: in mode L3 longer packets are left to the kernel, now and if the interface's changes. The
    /// program takes frames that lie in several buffers, if the kernel has such (Linux 5.18): then drivers that have them
    /// run it natively at any MTU, also of the other end of a virtual cable.
    ///
    /// *Errors*: [`Error::NotAllowed`], [`Error::ProgramRejected`], [`Error::OtherProgram`]. *Cost*: four system
    /// calls, and less than a millisecond of the verifier's.
    pub fn load(mode: Mode, mtu: u32) -> Result<Program, Error> {
        let create = |errno| refused("bpf(BPF_MAP_CREATE)", errno);
        let sockets = Map::create(XSKMAP, MAX_QUEUES, "taut_sockets").map_err(create)?;
        let destinations = match mode {
            Mode::L3 => Some(Map::create(HASH, MAX_DESTINATIONS, "taut_ends").map_err(create)?),
            Mode::L2 => None,
        };
        let mut maps = [-1; 2];
        maps[SOCKETS] = sockets.as_fd().as_raw_fd();
        maps[DESTINATIONS] = destinations.as_ref().map_or(-1, |map| map.as_fd().as_raw_fd());
        let code = assemble(mode).with_maps(&maps);
        let load = |takes_pieces| bpf::load(&code, "taut_xdp", takes_pieces);
        let loaded = match load(true) {
            // An earlier kernel, which does not know the flag.
            Err((Errno::INVAL, log)) if log.is_empty() => load(false),
            loaded => loaded,
        };
        let fd = loaded.map_err(rejected)?;
        let tag = bpf::tag(fd.as_fd()).map_err(|errno| refused("bpf(BPF_OBJ_GET_INFO_BY_FD)", errno))?;
        if !tags(mode).contains(&tag) {
            return Err(Error::OtherProgram { tag });
        }
        Ok(Program { fd, mode, mtu, sockets, destinations })
    }

    /// Which frames it redirects.
    pub fn mode(&self) -> Mode {
        self.mode
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
        let Some(destinations) = &self.destinations else { return Ok(()) };
        destinations.update(key(to, queue)?, longest_datagram(to, mtu)).map_err(|errno| match errno {
            Errno::TOOBIG => Error::TooManyDestinations,
            _ => refused("bpf(BPF_MAP_UPDATE_ELEM)", errno),
        })
    }

    /// Passes messages to this address and UDP port that come by this queue, from now on; whether they were redirected.
    pub fn remove(&self, to: SocketAddr, queue: u32) -> Result<bool, Error> {
        let Some(destinations) = &self.destinations else { return Ok(false) };
        destinations.delete(key(to, queue)?).map_err(|errno| refused("bpf(BPF_MAP_DELETE_ELEM)", errno))
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

fn key(to: SocketAddr, queue: u32) -> Result<Key, Error> {
    let number = u16::try_from(queue).ok().filter(|_| queue < MAX_QUEUES);
    let number =
        number.ok_or_else(|| Error::BadParameter(format!("no queue {queue} can be: choose a lower one")));
    Ok(Key::new(to, number?))
}

/// What a refusal of bpf(2) means wherever it comes from.
pub(crate) fn refused(call: &'static str, errno: Errno) -> Error {
    match errno {
        Errno::PERM => Error::NotAllowed { call, capabilities: BPF_CAPABILITIES },
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
            Some(Error::NotAllowed { .. }) => println!("LEFT OUT: bpf(2) needs root"),
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
}
