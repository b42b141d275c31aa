//! The AF_XDP socket of one queue: its four rings, and how the kernel is woken and waited for.
//!
//! Owns the descriptor and the rings; shares the UMEM. Which frame is where is the caller's account: what is in
//! a ring is the kernel's, what was taken out is the caller's. Nothing here waits but [`Socket::open`], for a
//! queue whose last owner has just gone, and [`Socket::wait`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt};
use rustix::process::{Resource, getrlimit};

use crate::error::SOCKET_CAPABILITY;
use crate::{AttachMode, ChunkSize, Consumer, Descriptor, Error, Glance, Interface, Link, Producer, Umem};

/// How long a queue that is taken is tried for: the kernel frees one some 40 ms after its socket was closed.
/// Less and a restart fails; more and a queue that stays taken is told later.
const QUEUE_TRIES: u32 = 200;
/// Shorter and the tries take the processor from the kernel's clean-up; longer and the queue is had later.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// How the kernel moves frames between the UMEM and the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindMode {
    /// The device reads and writes the UMEM.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

/// How many entries each ring has; powers of two.
///
/// The default is 8,192: with 2,048, half of the frames of a fast stream are lost when the receiver is pre-empted
/// once. More costs memory only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rings {
    /// Frames to receive into.
    pub fill: u32,
    /// Frames that were sent. No fewer than TX, or the kernel stops sending until some are taken.
    pub completion: u32,
    /// Frames that were received.
    pub rx: u32,
    /// Frames to send.
    pub tx: u32,
}

impl Default for Rings {
    fn default() -> Rings {
        Rings { fill: 8_192, completion: 8_192, rx: 8_192, tx: 8_192 }
    }
}

/// What the kernel dropped or refused since the socket was opened (XDP_STATISTICS).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Received frames that were dropped where the kernel copies, as the fill ring was empty (then they count there, too)
    /// or they are too long.
    pub rx_dropped: u64,
    /// Entries of the fill ring that are no frame of the UMEM.
    pub rx_invalid: u64,
    /// Entries of the TX ring that are no frame of the UMEM.
    pub tx_invalid: u64,
    /// Received frames that found the RX ring full.
    pub rx_ring_full: u64,
    /// How often the kernel or the device found the fill ring empty.
    pub fill_ring_empty: u64,
    /// How often the kernel found the TX ring empty.
    pub tx_ring_empty: u64,
}

/// A socket that is bound to a queue.
///
/// The order of its fields is that of their end: rings before the descriptor, or the queue stays taken for
/// longer, and the frames last.
pub struct Socket {
    /// Frames to receive into. The kernel gives the room of an entry back after it has shown the frame in RX: a
    /// ring that was full may have no room yet for the frame that replaces one just received.
    pub fill: Producer<u64>,
    /// Frames that were sent.
    pub completion: Consumer<u64>,
    /// Frames that were received.
    pub rx: Consumer<Descriptor>,
    /// Frames to send.
    pub tx: Producer<Descriptor>,
    fd: OwnedFd,
    umem: Arc<Umem>,
    interface: Interface,
    queue: u32,
    bound: BindMode,
}

impl Socket {
    /// Binds a socket to a queue of the link's interface, as wanted; without copies if possible, if nothing is
    /// wanted. It receives once it is added to the link. For a queue that is taken it waits, if that is to be.
    ///
    /// *Errors*: [`Error::NotAllowed`], [`Error::NoQueue`], [`Error::QueueTaken`], [`Error::InterfaceDown`],
    /// [`Error::NoXdp`], [`Error::ChunkTooSmall`], [`Error::LockedMemory`]. *Cost*: some fifteen system calls; up
    /// to a second for a queue that is taken.
    pub fn open(
        link: &Link,
        queue: u32,
        umem: Arc<Umem>,
        rings: &Rings,
        wanted: Option<BindMode>,
        waits: bool,
    ) -> Result<Socket, Error> {
        let interface = link.interface();
        let fd = set_up(interface, &umem, rings)?;
        let (fill, completion, rx, tx) = map(&fd, rings)?;
        let binding = Binding::new(link, interface, umem.chunk_size(), wanted);
        bind_to(&fd, interface, queue, &binding, if waits { QUEUE_TRIES } else { 1 })?;
        let bound = bound(&fd)?;
        Ok(Socket { fill, completion, rx, tx, fd, umem, interface: interface.clone(), queue, bound })
    }

    /// The socket that another process has bound with a [`Handover`](crate::Handover) and passed, with the frames and the rings that it
    /// told. Linux 6.4: earlier ones map no rings of a socket that is bound.
    ///
    /// *Errors*: [`Error::BadParameter`] if it is no socket of AF_XDP, [`Error::NoXdp`] if the kernel maps no such rings.
    /// *Cost*: seven system calls.
    pub fn adopt(
        fd: OwnedFd,
        queue: u32,
        interface: &Interface,
        umem: Arc<Umem>,
        rings: &Rings,
    ) -> Result<Socket, Error> {
        if sockopt::socket_domain(&fd) != Ok(AddressFamily::XDP) {
            let what =
                "the descriptor that was passed is no socket of AF_XDP: use one version of Taut at both ends";
            return Err(Error::BadParameter(what.into()));
        }
        check(interface, &umem, rings)?;
        let too_early = [Errno::INVAL, Errno::BUSY].map(Errno::raw_os_error);
        let (fill, completion, rx, tx) = map(&fd, rings).map_err(|error| match error {
            Error::Refused { errno, .. } if too_early.contains(&errno) => {
                let what = "AF_XDP whose sockets can be passed on, or not these rings (Linux 6.4 has it)";
                Error::NoXdp { interface: interface.name.clone(), what }
            }
            other => other,
        })?;
        let bound = bound(&fd)?;
        Ok(Socket { fill, completion, rx, tx, fd, umem, interface: interface.clone(), queue, bound })
    }

    /// How frames are moved.
    pub fn bound(&self) -> BindMode {
        self.bound
    }

    /// The number of its queue.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// The memory of its frames.
    pub fn umem(&self) -> &Arc<Umem> {
        &self.umem
    }

    /// For looking from elsewhere whether there is something in the RX ring.
    pub fn glance(&self) -> Glance {
        Glance::new(self.rx.window(), Arc::clone(&self.umem))
    }

    /// Readable when there is something in the RX ring. For waiting with others, and for passing it on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Has the kernel send what is in the TX ring; whether it does. If not, call again for what is left: it takes
    /// 32 frames with a call when it copies, none while the completion ring is full, and a driver may be busy. Needed only
    /// where [`Producer::needs_wakeup`] says so, which is always the case when it copies.
    ///
    /// *Errors*: [`Error::InterfaceDown`]; [`Error::NoInterface`] once it has been removed, which nothing else
    /// tells. *Cost*: one system call, in which the frames are copied and sent if the socket is bound so.
    pub fn kick(&self) -> Result<bool, Error> {
        match send(&self.fd, &[], SendFlags::DONTWAIT) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => Ok(false),
            Err(Errno::NXIO) => Err(Error::NoInterface { interface: self.interface.name.clone() }),
            Err(Errno::NETDOWN) => Err(Error::InterfaceDown { interface: self.interface.name.clone() }),
            Err(errno) => Err(Error::refused("sendto AF_XDP", errno)),
        }
    }

    /// Waits until there is something in the RX ring, at most for so long; whether there is. With no time at all
    /// it wakes the kernel for the fill ring, if that says that it needs it.
    ///
    /// *Cost*: one system call.
    pub fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        let timeout = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => Ok(polled[0].revents().contains(PollFlags::IN)),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(Error::refused("poll AF_XDP", errno)),
        }
    }

    /// What the kernel dropped or refused. *Cost*: one system call.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let counts =
            sockopt::xdp_statistics(&self.fd).map_err(|errno| Error::refused("XDP_STATISTICS", errno))?;
        Ok(Statistics {
            rx_dropped: counts.rx_dropped,
            rx_invalid: counts.rx_invalid_descs,
            tx_invalid: counts.tx_invalid_descs,
            rx_ring_full: counts.rx_ring_full.unwrap_or_default(),
            fill_ring_empty: counts.rx_fill_ring_empty_descs.unwrap_or_default(),
            tx_ring_empty: counts.tx_ring_empty_descs.unwrap_or_default(),
        })
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.interface
    }
}

/// A socket with its frames and rings, not bound yet.
pub(crate) fn set_up(interface: &Interface, umem: &Umem, rings: &Rings) -> Result<OwnedFd, Error> {
    check(interface, umem, rings)?;
    let fd =
        socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None).map_err(|errno| {
            match errno {
                Errno::PERM => Error::not_allowed("socket AF_XDP", SOCKET_CAPABILITY),
                Errno::AFNOSUPPORT => {
                    Error::NoXdp { interface: interface.name.clone(), what: "kernel with AF_XDP" }
                }
                _ => Error::refused("socket AF_XDP", errno),
            }
        })?;
    register(&fd, umem)?;
    size(&fd, rings).map_err(refused_rings)?;
    Ok(fd)
}

fn refused_rings(errno: Errno) -> Error {
    Error::refused("rings of an AF_XDP socket", errno)
}

/// How a socket is bound to its queue.
pub(crate) struct Binding {
    /// The modes, in this order.
    probed: &'static [BindMode],
    chunk_size: ChunkSize,
    /// Is a frame longer than a chunk? Then it lies in several.
    in_pieces: bool,
}

impl Binding {
    /// A driver moves frames without copies for its own program only.
    pub fn new(
        link: &Link,
        interface: &Interface,
        chunk_size: ChunkSize,
        wanted: Option<BindMode>,
    ) -> Binding {
        let probed: &[BindMode] = match (wanted, link.attached()) {
            (Some(BindMode::ZeroCopy), _) => &[BindMode::ZeroCopy],
            (None, AttachMode::Native) => &[BindMode::ZeroCopy, BindMode::Copy],
            _ => &[BindMode::Copy],
        };
        Binding { probed, chunk_size, in_pieces: interface.mtu > chunk_size.largest_mtu() }
    }
}

/// How the kernel moves the frames of a socket that is bound.
fn bound(fd: &OwnedFd) -> Result<BindMode, Error> {
    let options = sockopt::xdp_options(fd).map_err(|errno| Error::refused("XDP_OPTIONS", errno))?;
    let zero_copy = options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
    Ok(if zero_copy { BindMode::ZeroCopy } else { BindMode::Copy })
}

fn check(interface: &Interface, umem: &Umem, rings: &Rings) -> Result<(), Error> {
    for size in [rings.fill, rings.completion, rings.rx, rings.tx] {
        if !size.is_power_of_two() {
            let nearest = size.checked_next_power_of_two().unwrap_or(8_192);
            return Err(Error::BadParameter(format!("a ring of {size} entries cannot be: choose {nearest}")));
        }
    }
    let largest = umem.chunk_size().largest_mtu_in_pieces();
    if interface.mtu > largest {
        let interface_name = interface.name.clone();
        return Err(Error::ChunkTooSmall { interface: interface_name, mtu: interface.mtu, largest });
    }
    Ok(())
}

fn register(fd: &OwnedFd, umem: &Umem) -> Result<(), Error> {
    let registration = XdpUmemReg {
        addr: umem.base().as_ptr() as u64,
        len: u64::from(umem.chunks()) * u64::from(umem.chunk_size().bytes()),
        chunk_size: umem.chunk_size().bytes(),
        headroom: umem.headroom(),
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    sockopt::set_xdp_umem_reg(fd, registration).map_err(|errno| match errno {
        Errno::NOBUFS => {
            let limit = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
            Error::LockedMemory { bytes: umem.len(), limit }
        }
        _ => Error::refused("XDP_UMEM_REG", errno),
    })
}

type Mapped = (Producer<u64>, Consumer<u64>, Consumer<Descriptor>, Producer<Descriptor>);

fn size(fd: &OwnedFd, rings: &Rings) -> Result<(), Errno> {
    sockopt::set_xdp_umem_fill_ring_size(fd, rings.fill)?;
    sockopt::set_xdp_umem_completion_ring_size(fd, rings.completion)?;
    sockopt::set_xdp_rx_ring_size(fd, rings.rx)?;
    sockopt::set_xdp_tx_ring_size(fd, rings.tx)
}

/// The kernel maps no more of a ring than it has.
fn map(fd: &OwnedFd, rings: &Rings) -> Result<Mapped, Error> {
    let map = || -> Result<Mapped, Errno> {
        let at = sockopt::xdp_mmap_offsets(fd)?;
        Ok((
            Producer::map(fd.as_fd(), XDP_UMEM_PGOFF_FILL_RING, &at.fr, rings.fill)?,
            Consumer::map(fd.as_fd(), XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, rings.completion)?,
            Consumer::map(fd.as_fd(), XDP_PGOFF_RX_RING, &at.rx, rings.rx)?,
            Producer::map(fd.as_fd(), XDP_PGOFF_TX_RING, &at.tx, rings.tx)?,
        ))
    };
    map().map_err(refused_rings)
}

/// Binds in the first of the probed modes that is there; so many tries for a queue that is taken.
pub(crate) fn bind_to(
    fd: &OwnedFd,
    interface: &Interface,
    queue: u32,
    binding: &Binding,
    tries: u32,
) -> Result<(), Error> {
    let mut refused = Errno::OPNOTSUPP;
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_USE_SG, binding.in_pieces);
    for mode in binding.probed {
        let mode = match mode {
            BindMode::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
            BindMode::Copy => SocketAddrXdpFlags::XDP_COPY,
        };
        let address = SocketAddrXdp::new(flags | mode, interface.index, queue);
        refused = match patiently(tries, || bind(fd, &address)) {
            Ok(()) => return Ok(()),
            Err(errno) => errno,
        };
        // In no mode would it go better.
        if matches!(refused, Errno::BUSY | Errno::PERM | Errno::NETDOWN | Errno::NODEV) {
            break;
        }
    }
    let name = interface.name.clone();
    let queues = interface.rx_queues.max(interface.tx_queues);
    Err(match refused {
        Errno::BUSY => Error::QueueTaken { interface: name, queue },
        Errno::NETDOWN => Error::InterfaceDown { interface: name },
        Errno::NODEV => Error::NoInterface { interface: name },
        Errno::OPNOTSUPP => Error::NoXdp { interface: name, what: "AF_XDP of this kind" },
        Errno::INVAL if queues.is_none_or(|queues| queue >= queues) => {
            Error::NoQueue { interface: name, queue, queues }
        }
        // An earlier kernel, which does not know the flag.
        Errno::INVAL if binding.in_pieces => {
            let largest = binding.chunk_size.largest_mtu();
            Error::ChunkTooSmall { interface: name, mtu: interface.mtu, largest }
        }
        errno => Error::refused(format!("bind AF_XDP to queue {queue} of {name}"), errno),
    })
}

/// Again for as long as what is taken may just be on its way to be free.
pub(crate) fn patiently<T>(tries: u32, mut ask: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let pause = Timespec { tv_sec: 0, tv_nsec: QUEUE_PAUSE.subsec_nanos().into() };
    for _ in 1..tries {
        match ask() {
            Err(Errno::BUSY | Errno::EXIST) => drop(rustix::thread::nanosleep(&pause)),
            other => return other,
        }
    }
    ask()
}
