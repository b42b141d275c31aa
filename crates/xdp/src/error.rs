//! What is refused: one sentence each, with the remedy.
//!
//! Owns the words, and what an error number means that means the same for each call. What it means for one
//! call only is decided where the call is made.

use std::fmt;

use rustix::io::Errno;

use crate::{ChunkSize, privileges};

/// Why something was refused. Nothing stays attached or bound after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// This process lacks a privilege.
    NotAllowed {
        /// The call that was refused.
        call: &'static str,
        /// The capabilities that the call needs.
        capabilities: &'static str,
        /// Those that the calling thread lacks of all that a queue needs, as a list; empty if it lacks none.
        missing: String,
    },
    /// There is no interface of that name in this network namespace.
    NoInterface {
        /// The name.
        interface: String,
    },
    /// The interface is down.
    InterfaceDown {
        /// Its name.
        interface: String,
    },
    /// The interface has no queue of that number.
    NoQueue {
        /// Its name.
        interface: String,
        /// The number, from 0.
        queue: u32,
        /// As many as it has, if it says so.
        queues: Option<u32>,
    },
    /// The driver of the interface, or the kernel, has no XDP of this kind.
    NoXdp {
        /// Its name.
        interface: String,
        /// What it does not have.
        what: &'static str,
    },
    /// A frame of the interface's MTU does not fit what the driver gives a native program.
    MtuTooLarge {
        /// Its name.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// A frame of the interface's MTU does not fit a chunk, nor several if the kernel takes such, and would be dropped.
    ChunkTooSmall {
        /// Its name.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The largest MTU whose frames fit.
        largest: u32,
    },
    /// A native program on a virtual interface needs as many receive queues as the peer has transmit queues.
    TooFewRxQueues {
        /// Its name.
        interface: String,
        /// As many receive queues as it has, if it says so.
        rx_queues: Option<u32>,
    },
    /// Another program is attached.
    ProgramAttached {
        /// The name of the interface.
        interface: String,
    },
    /// A program is attached to an interface that is on this one, as one of a VLAN.
    ProgramAbove {
        /// The name of this one.
        interface: String,
    },
    /// Another socket has the queue, and still had it after a second.
    QueueTaken {
        /// The name of the interface.
        interface: String,
        /// The number of the queue, from 0.
        queue: u32,
    },
    /// The socket is of another interface than the program.
    OtherInterface {
        /// The name of the program's interface.
        interface: String,
    },
    /// The limit of locked memory does not take the memory of the frames.
    LockedMemory {
        /// As many bytes as they are.
        bytes: usize,
        /// As many as a user without CAP_IPC_LOCK may lock, all processes together.
        limit: u64,
    },
    /// The limit of file sizes, which counts memory that has a descriptor, does not take the memory of the frames.
    FileLimit {
        /// As many bytes as they are.
        bytes: usize,
        /// As many as a file may have.
        limit: u64,
    },
    /// More destinations than the program has room for.
    TooManyDestinations,
    /// An argument is out of its range.
    BadParameter(String),
    /// The verifier of the kernel does not take the program.
    ProgramRejected {
        /// What it says.
        log: String,
    },
    /// The kernel knows the program by another tag than it should.
    OtherProgram {
        /// The tag.
        tag: [u8; 8],
    },
    /// The operating system refused for another reason.
    Refused {
        /// The call, and what it was for.
        call: String,
        /// The error number.
        errno: i32,
    },
}

/// The capabilities that a call of bpf(2) needs.
pub(crate) const BPF_CAPABILITIES: &str =
    "CAP_NET_ADMIN and CAP_BPF (or CAP_SYS_ADMIN) of the host, not of a user namespace";
/// The capability that an AF_XDP socket needs.
pub(crate) const SOCKET_CAPABILITY: &str = "CAP_NET_RAW";

impl Error {
    pub(crate) fn not_allowed(call: &'static str, capabilities: &'static str) -> Error {
        Error::NotAllowed { call, capabilities, missing: privileges::missing() }
    }

    pub(crate) fn refused(call: impl Into<String>, errno: Errno) -> Error {
        Error::Refused { call: call.into(), errno: errno.raw_os_error() }
    }

    /// The same sentence for who cannot be helped by `taut netd`, as netd itself.
    ///
    /// ```
    /// let error = taut_xdp::Error::ProgramAttached { interface: "eth0".into() };
    /// assert!(error.to_string().contains("`taut netd`"));
    /// assert!(!error.without_netd().to_string().contains("netd"));
    /// ```
    pub fn without_netd(&self) -> impl fmt::Display + '_ {
        WithoutNetd(self)
    }
}

struct WithoutNetd<'a>(&'a Error);

impl fmt::Display for WithoutNetd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::NotAllowed { call, capabilities, missing } => {
                not_allowed(f, (call, capabilities), missing, false)
            }
            Error::ProgramAttached { interface } => program_attached(f, interface, false),
            Error::LockedMemory { bytes, limit } => locked_memory(f, *bytes, *limit, false),
            other => other.fmt(f),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAllowed { call, capabilities, missing } => {
                not_allowed(f, (call, capabilities), missing, true)
            }
            Error::NoInterface { interface } => {
                write!(f, "there is no interface {interface} here: `ip link` lists those of this namespace")
            }
            Error::InterfaceDown { interface } => {
                write!(f, "{interface} is down: `ip link set {interface} up` sets it up")
            }
            Error::NoQueue { interface, queue, queues } => no_queue(f, interface, *queue, *queues),
            Error::NoXdp { interface, what } => {
                write!(f, "{interface} has no {what}: choose another mode or interface, or stay with UDP")
            }
            Error::MtuTooLarge { interface, mtu } => write!(
                f,
                "an MTU of {mtu} B, or that of the other end of a virtual cable, is too large for native XDP on \
                 {interface}: lower it (`ip link set {interface} mtu 1500`), or choose generic mode"
            ),
            Error::ChunkTooSmall { interface, mtu, largest } => {
                write!(f, "frames of an MTU of {mtu} B on {interface} do not fit the chunks: lower it to {largest} B")?;
                let small = ChunkSize::B2048;
                let has_larger = [small.largest_mtu(), small.largest_mtu_in_pieces()].contains(largest);
                if has_larger { f.write_str(", or choose larger chunks") } else { Ok(()) }
            }
            Error::TooFewRxQueues { interface, rx_queues } => too_few_rx_queues(f, interface, *rx_queues),
            Error::ProgramAttached { interface } => program_attached(f, interface, true),
            Error::ProgramAbove { interface } => write!(
                f,
                "an XDP program is attached to an interface on {interface}, as one of a VLAN, and the kernel takes none \
                 below: end its owner (`bpftool net` names it), or stay with UDP"
            ),
            Error::QueueTaken { interface, queue } => write!(
                f,
                "another socket has queue {queue} of {interface}: end its owner, choose another queue, or stay with UDP"
            ),
            Error::OtherInterface { interface } => {
                write!(
                    f,
                    "the program is on {interface} and the socket is not: add it to the link of its own"
                )
            }
            Error::LockedMemory { bytes, limit } => locked_memory(f, *bytes, *limit, true),
            Error::FileLimit { bytes, limit } => file_limit(f, *bytes, *limit),
            Error::TooManyDestinations => f.write_str(
                "the program has room for no more addresses and ports: remove some, or use fewer participants",
            ),
            Error::BadParameter(text) => f.write_str(text),
            Error::ProgramRejected { log } => {
                write!(f, "the kernel's verifier rejects the program, use UDP and report what it says: {log}")
            }
            Error::OtherProgram { tag } => {
                f.write_str("the kernel has the program under the unknown tag ")?;
                tag.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(": something has changed it, use UDP and report the tag and the kernel's version")
            }
            Error::Refused { call, errno } => {
                let why = std::io::Error::from_raw_os_error(*errno);
                let remedy = match Errno::from_raw_os_error(*errno) {
                    Errno::MFILE | Errno::NFILE => "raise the limit of open files (`ulimit -n`)",
                    _ => "use UDP as long as this lasts",
                };
                write!(f, "{call}: {why}: {remedy}")
            }
        }
    }
}

impl std::error::Error for Error {}

fn no_queue(f: &mut fmt::Formatter<'_>, interface: &str, queue: u32, queues: Option<u32>) -> fmt::Result {
    write!(f, "{interface} has no queue {queue}: choose ")?;
    match queues {
        Some(queues) => write!(f, "one below {queues}")?,
        None => f.write_str("a lower one")?,
    }
    write!(f, ", or let it have more (`ethtool -L {interface}`)")
}

fn not_allowed(
    f: &mut fmt::Formatter<'_>,
    (call, capabilities): (&str, &str),
    missing: &str,
    by_netd: bool,
) -> fmt::Result {
    write!(f, "this process may not call {call}, which takes {capabilities}")?;
    if missing.is_empty() {
        f.write_str(
            ", and has that: have what confines it (a user namespace, seccomp, an LSM) allow the call",
        )?;
    } else {
        write!(f, ": give it all that it lacks, {missing} (`setcap`, or the policy of its container)")?;
    }
    let or_netd = if by_netd { ", or have `taut netd` do it for programs without privileges" } else { "" };
    write!(f, ", or run it as root{or_netd}")
}

fn program_attached(f: &mut fmt::Formatter<'_>, interface: &str, by_netd: bool) -> fmt::Result {
    let shared = "; several programs of Taut share it by `taut netd`, each with a queue of its own";
    let shared = if by_netd { shared } else { "" };
    write!(
        f,
        "another XDP program is attached to {interface}: end its owner (`bpftool net` names it), or `ip link set \
         {interface} xdp off` if nobody owns it{shared}, or stay with UDP"
    )
}

fn locked_memory(f: &mut fmt::Formatter<'_>, bytes: usize, limit: u64, by_netd: bool) -> fmt::Result {
    let or_netd = if by_netd { ", or have `taut netd` hold them" } else { "" };
    write!(
        f,
        "{bytes} B of frames are above the limit of locked memory, {limit} B for all of this user's: give the process \
         CAP_IPC_LOCK (`setcap`), or raise the limit (`ulimit -l unlimited`, LimitMEMLOCK=infinity for a \
         service){or_netd}"
    )
}

fn file_limit(f: &mut fmt::Formatter<'_>, bytes: usize, limit: u64) -> fmt::Result {
    write!(
        f,
        "{bytes} B of frames are above the limit of file sizes, {limit} B, which counts shared memory too: raise it \
         (`ulimit -f unlimited`, LimitFSIZE=infinity for a service), or take fewer chunks"
    )
}

fn too_few_rx_queues(f: &mut fmt::Formatter<'_>, interface: &str, rx_queues: Option<u32>) -> fmt::Result {
    match rx_queues {
        Some(queues) => write!(f, "{interface} has {queues} receive queues, fewer")?,
        None => write!(f, "{interface} has fewer receive queues")?,
    }
    write!(
        f,
        " than its peer has transmit queues, which native XDP needs: give it more (`ethtool -L {interface} \
         rx`), its peer fewer, or choose generic mode"
    )
}
