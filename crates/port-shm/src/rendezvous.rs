//! Where participants of one host find each other: a listening socket that is named by the GUID prefix.
//!
//! Two kinds of names. An abstract one lives in the network namespace and nowhere else: nothing to clean
//! up, nothing to mount, and two containers with networks of their own do not see each other by it. A
//! path is for those: a directory that is mounted into both. There a killed process leaves its socket's
//! name behind, so whoever binds next in the directory removes the names that nobody answers to.
//!
//! A socket that is not listening yet would look like a dead one. So it gets its final name, by a rename,
//! only when it does.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, chmod, fstat, lstat, openat, rename, unlink};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    shutdown, socket_with,
};
use taut_base::{GuidPrefix, Result};

use crate::connection::Connection;
use crate::host::host_id;
use crate::refused::refused;
use crate::sockopt::pass_rights;

/// Connections that wait to be accepted. Lower and participants that start together find no place and
/// come back later; higher and who does not accept costs the kernel more. It caps both by its somaxconn.
const BACKLOG: i32 = 128;
/// Entries of the directory that one bind looks at for dead names: a bound on its time. Lower and in a
/// directory of many participants some dead names stay; higher and a bind takes longer.
const SWEPT: usize = 256;
/// How old a name is, in seconds, whose socket could still be about to listen, by the file system's clock. Lower and one
/// that starts on a busy machine may lose its name to another, higher and what a killed process left stays longer.
const YOUNG_FOR: i64 = 10;
/// Connections that ended before they were accepted, which one accept skips.
const ABORTED: usize = 16;

/// The socket that peers connect to. Its name goes with it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: Option<PathBuf>,
    /// Given up for a moment to turn a peer away when there are no descriptors left: one that stays in
    /// the queue would keep the socket readable, and its poller busy.
    spare: Option<OwnedFd>,
}

impl Listener {
    /// Listens for this participant: by an abstract name, or in `directory`, which containers share.
    ///
    /// *Errors*: another socket has the name; the directory is missing, not ours to write, or its path is
    /// too long; there are not two descriptors left.
    pub fn bind(prefix: GuidPrefix, directory: Option<&Path>) -> Result<Listener> {
        let socket = socket().map_err(|errno| refused("socket AF_UNIX", errno))?;
        let path = match directory {
            None => {
                let name = abstract_name(prefix);
                let address = SocketAddrUnix::new_abstract_name(name.as_bytes());
                let bound = address.and_then(|address| bind(&socket, &address));
                bound
                    .and_then(|()| listen(&socket, BACKLOG))
                    .map_err(|e| refused(format!("bind @{name}"), e))?;
                None
            }
            Some(directory) => {
                let path = socket_path(prefix, directory)?;
                bind_path(&socket, &path).map_err(|e| refused(format!("bind {}", path.display()), e))?;
                sweep(directory, made_at(&path));
                Some(path)
            }
        };
        let mut listener = Listener { socket, path, spare: None };
        let spare = fcntl_dupfd_cloexec(&listener.socket, 0);
        listener.spare = Some(spare.map_err(|errno| refused("a spare descriptor", errno))?);
        Ok(listener)
    }

    /// The next peer, who may be anybody: look at [`Connection::peer`], and [`Connection::welcome`] it. `None` if
    /// nobody waits.
    ///
    /// *Errors*: there are no descriptors left; the peer was then turned away and may come again.
    pub fn accept(&mut self) -> Result<Option<Connection>> {
        if self.spare.is_none() {
            // Another thread had the place of the last one when a peer was turned away.
            self.spare = fcntl_dupfd_cloexec(&self.socket, 0).ok();
        }
        for _ in 0..ABORTED {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => return Ok(Some(Connection::of(socket))),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                    self.turn_away();
                    return Err(refused("accept", errno));
                }
                Err(errno) => return Err(refused("accept", errno)),
            }
        }
        Ok(None)
    }

    /// What is readable when a peer waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn turn_away(&mut self) {
        self.spare = None;
        // The peer's own is the next spare, so that no other thread takes the place in between.
        self.spare = accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).ok();
        if let Some(peer) = &self.spare {
            let _ = shutdown(peer, Shutdown::Both);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = unlink(path);
        }
    }
}

/// A socket of packets that are delivered in order, whole, or not at all, to which nobody can pass descriptors yet: neither
/// to it nor to those that it accepts.
pub(crate) fn socket() -> std::result::Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // Before Linux 6.16 everybody can.
    let _ = pass_rights(socket.as_fd(), false);
    Ok(socket)
}

/// Where the participant listens.
pub(crate) fn address(prefix: GuidPrefix, directory: Option<&Path>) -> Result<SocketAddrUnix> {
    let address = match directory {
        None => SocketAddrUnix::new_abstract_name(abstract_name(prefix).as_bytes()),
        Some(directory) => SocketAddrUnix::new(socket_path(prefix, directory)?),
    };
    address.map_err(|errno| refused("name a socket", errno))
}

fn abstract_name(prefix: GuidPrefix) -> String {
    format!("taut-shm/{prefix}")
}

/// The host is in the name so that nobody removes a name of another host that has mounted the directory.
fn socket_path(prefix: GuidPrefix, directory: &Path) -> Result<PathBuf> {
    Ok(directory.join(format!("{}{prefix}{SUFFIX}", names_of_this_host()?)))
}

const SUFFIX: &str = ".sock";
/// The extension of a name whose socket does not listen yet.
const YOUNG: &str = "new";

fn names_of_this_host() -> Result<String> {
    let [a, b, c, d, ..] = host_id()?;
    Ok(format!("taut-{a:02x}{b:02x}{c:02x}{d:02x}-"))
}

fn bind_path(socket: &OwnedFd, path: &Path) -> std::result::Result<(), Errno> {
    if path.exists() && !is_dead(path)? {
        return Err(Errno::ADDRINUSE);
    }
    let young = path.with_extension(YOUNG);
    let address = SocketAddrUnix::new(young.as_path())?;
    let bound = bind(socket, &address).or_else(|errno| match errno {
        Errno::ADDRINUSE if is_dead(&young)? => unlink(&young).and_then(|()| bind(socket, &address)),
        other => Err(other),
    });
    bound?;
    open_to_all(&young);
    let named = listen(socket, BACKLOG).and_then(|()| rename(&young, path));
    named.inspect_err(|_| {
        let _ = unlink(&young);
    })
}

/// Whoever reaches the directory may connect, whatever the umask: [`crate::Policy`] decides, as it does
/// for abstract names. If it fails, peers of other users cannot connect.
fn open_to_all(path: &Path) {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()) else { return };
    // By the descriptor: whoever can write the directory could have put a link of that name there.
    if fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket) {
        let _ = chmod(format!("/proc/thread-self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(0o666));
    }
}

/// Does no socket answer to the name any more? Asked with a socket of another type, so that one that
/// lives is not disturbed by a connection.
fn is_dead(path: &Path) -> std::result::Result<bool, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    Ok(connect(&probe, &SocketAddrUnix::new(path)?) == Err(Errno::CONNREFUSED))
}

/// When the name was made, in seconds by the file system's clock.
fn made_at(path: &Path) -> Option<i64> {
    lstat(path).ok().map(|stat| stat.st_mtime)
}

/// Removes the names of dead sockets of this host, at this time. What cannot be read or removed is another's business.
fn sweep(directory: &Path, now: Option<i64>) {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(prefix) = names_of_this_host() else { return };
    let Ok(opened) = openat(CWD, directory, flags, Mode::empty()) else { return };
    let Ok(entries) = Dir::read_from(&opened) else { return };
    for entry in entries.take(SWEPT).flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        let path = directory.join(name);
        let is_young = path.extension().is_some_and(|extension| extension == YOUNG);
        // A name is there for a moment before its socket has it.
        let is_left = || now.zip(made_at(&path)).is_some_and(|(now, made)| now - made >= YOUNG_FOR);
        let is_one = name.ends_with(SUFFIX) || is_young && is_left();
        if name.starts_with(&prefix) && is_one && is_dead(&path) == Ok(true) {
            let _ = unlink(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_descriptor_that_was_lost_is_made_again() {
        let mut listener = Listener::bind(GuidPrefix(*b"lost a spare"), None).unwrap();
        listener.spare = None;
        assert!(listener.accept().unwrap().is_none() && listener.spare.is_some());
    }
}
