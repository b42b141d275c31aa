//! The socket that participants connect to, and its name.

use std::fs::{Permissions, create_dir_all, set_permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use taut_port_xdp::netd::{Connection, pass_rights};

/// Connections that wait to be accepted. Lower and participants that start together wait for each other, higher and
/// the kernel keeps more for who does not.
const BACKLOG: i32 = 64;
/// How long nobody is accepted after the system has refused it, as there are no descriptors: whoever waits would keep
/// the loop busy. Lower and it does, higher and participants wait for longer.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    paused_until: Option<Instant>,
}

impl Listener {
    /// Listens by this name, to everybody: the policy decides. A name that a process left behind is taken.
    pub fn bind(path: &Path) -> Result<Listener, String> {
        remove_dead(path)?;
        let listening = listening(path).map_err(|error| {
            let shown = path.display();
            format!("netd cannot listen at {shown}: {error}; be root, or choose another place (--socket)")
        });
        Ok(Listener { socket: listening?, path: path.to_owned(), paused_until: None })
    }

    /// What is readable when somebody connects; nothing while nobody is accepted.
    pub fn fd(&mut self, now: Instant) -> Option<BorrowedFd<'_>> {
        self.paused_until = self.paused_until.filter(|until| now < *until);
        self.paused_until.is_none().then(|| self.socket.as_fd())
    }

    /// The next who has connected.
    ///
    /// *Errors*: the system refuses more; it is asked again after a pause.
    pub fn accept(&mut self, now: Instant) -> Result<Option<Connection>, Errno> {
        match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => Ok(Some(Connection::of(socket))),
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
            Err(errno) => {
                self.paused_until = Some(now + PAUSE);
                Err(errno)
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listening(path: &Path) -> io::Result<OwnedFd> {
    if let Some(directory) =
        path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists())
    {
        create_dir_all(directory)?;
        set_permissions(directory, Permissions::from_mode(0o755))?;
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // Whatever the umask.
    set_permissions(path, Permissions::from_mode(0o666))?;
    // Whoever is not served could otherwise have it wait for what it has passed to be closed.
    let _ = pass_rights(socket.as_fd(), false);
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Removes a socket that nobody listens at.
fn remove_dead(path: &Path) -> Result<(), String> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let shown = path.display();
    if !found.file_type().is_socket() {
        return Err(format!("{shown} is no socket: remove it, or choose another place (--socket)"));
    }
    match Connection::connect(path) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path)
            .map_err(|error| format!("{shown} cannot be removed: {error}; remove it")),
        _ => Err(format!("another netd listens at {shown}: end it, or choose another place (--socket)")),
    }
}
