//! How memory goes from one process to another: by SCM_RIGHTS over an abstract socket, whose name goes
//! with the process that listens.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use taut_perf_kit::clock::{now_ns, wait_until};
use taut_perf_kit::{Options, Stop};

use crate::udp::MEET;

/// A connection is tried again after this time.
const TRY_AGAIN_NS: u64 = 10_000_000;

/// Who connected sends the memory at once.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Two rings and two eventfds.
const MOST_FDS: usize = 4;

/// What is handed over.
pub struct Handed {
    /// Which reader of the ring the receiver is.
    pub index: usize,
    /// So many of the descriptors are rings, the others eventfds.
    pub rings: usize,
    /// Rings first.
    pub fds: Vec<OwnedFd>,
}

fn name(options: &Options, index: usize) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("taut-perf-floor-{}-{index}", options.domain))
}

/// Where the other side of this role will connect.
pub fn listen(options: &Options) -> Result<UnixListener, Stop> {
    let listener = UnixListener::bind_addr(&name(options, options.index)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Gives the descriptors to the other side of this index, and waits until it has them.
pub fn give(options: &Options, index: usize, rings: usize, fds: &[BorrowedFd<'_>]) -> Result<(), Stop> {
    let to = name(options, index)?;
    let end_ns = now_ns() + MEET.as_nanos() as u64;
    let mut stream = loop {
        match UnixStream::connect_addr(&to) {
            Ok(stream) => break stream,
            Err(error) if now_ns() > end_ns => return Err(error.into()),
            Err(_) => {
                wait_until(now_ns() + TRY_AGAIN_NS, false);
            }
        }
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Stop::Failed(format!("{} descriptors at once", fds.len())));
    }
    let numbers = [index as u8, rings as u8];
    sendmsg(&stream, &[IoSlice::new(&numbers)], &mut control, SendFlags::empty())?;
    stream.set_read_timeout(Some(MEET))?;
    Ok(stream.read_exact(&mut [0])?)
}

/// Takes what the other side gives.
pub fn take(listener: &UnixListener) -> Result<(UnixStream, Handed), Stop> {
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(HAND_OVER))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut numbers = [0; 2];
    recvmsg(&stream, &mut [IoSliceMut::new(&mut numbers)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((stream, Handed { index: numbers[0].into(), rings: numbers[1].into(), fds }))
}

/// Says that what was taken is in use.
pub fn confirm(mut stream: UnixStream) -> Result<(), Stop> {
    Ok(stream.write_all(&[1])?)
}
