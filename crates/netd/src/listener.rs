//! The socket that participants connect to, and its name.
//!
//! Three names in one directory. The lock (`.lock`) is whose the others are: held as long as netd lives, given back by the
//! kernel however it ends, and never removed, as who waits for a name that is removed has another file than who comes
//! next. The socket is made under a name of its own (`.new`) and gets the one that participants know only when all may
//! connect and it listens. No link is followed, and no mode changed by a name: whoever can write the directory could put
//! another file there.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::umask;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
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
    /// Given back when the names are no longer ours.
    _lock: OwnedFd,
}

impl Listener {
    /// Listens by this name, to everybody: the policy decides. A name that a process left behind is taken.
    ///
    /// *Errors*: one sentence with the remedy: another netd, a file that is no socket, a place that cannot be written.
    pub fn bind(path: &Path) -> Result<Listener, String> {
        let refused = |error: io::Error| {
            let shown = path.display();
            format!("netd cannot listen at {shown}: {error}; be root, or choose another place (--socket)")
        };
        directory_of(path).map_err(refused)?;
        let lock = lock(path)?;
        let young = beside(path, ".new");
        remove_dead(path)?;
        remove_dead(&young)?;
        let socket = listening(&young).map_err(refused)?;
        std::fs::rename(&young, path).map_err(|error| {
            let _ = std::fs::remove_file(&young);
            refused(error)
        })?;
        Ok(Listener { socket, path: path.to_owned(), paused_until: None, _lock: lock })
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

/// The name with something behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// Makes the directory of a name, and those above it, if there are none: who connects has to pass through all of them.
fn directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match directory.filter(|directory| !directory.exists()) {
        Some(directory) => {
            with_umask(0o022, || DirBuilder::new().recursive(true).mode(0o755).create(directory))
        }
        None => Ok(()),
    }
}

/// Takes the lock of a name. Nobody else may open it: whoever can, can have the lock.
///
/// *Errors*: one sentence: another one has it.
fn lock(path: &Path) -> Result<OwnedFd, String> {
    let name = beside(path, ".lock");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(&name, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| {
        let shown = name.display();
        format!("{shown} cannot be opened: {errno}; be root, remove it, or choose another place (--socket)")
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(another(path)),
        Err(errno) => {
            Err(format!("{} cannot be locked: {errno}; choose another place (--socket)", name.display()))
        }
    }
}

/// A socket that listens there, to which all may connect.
fn listening(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // Whoever is not served could otherwise have it wait for what it has passed to be closed.
    let _ = pass_rights(socket.as_fd(), false);
    bind_open(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })?;
    Ok(socket)
}

/// Gives a socket a name that all may use.
fn bind_open(socket: &OwnedFd, address: &SocketAddrUnix) -> io::Result<()> {
    with_umask(0o111, || Ok(bind(socket, address)?))
}

/// Makes a file with a mode that the process's umask has no part in: in a thread with one of its own, as to change the
/// mode of what is there by its name would be to change it of what somebody else has put there.
fn with_umask(mask: u32, make: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    let make_there = || {
        // A container may forbid that. Then it is the process's umask, for this one call.
        let _ = unshare(CloneFlags::CLONE_FS);
        let before = umask(nix::sys::stat::Mode::from_bits_truncate(mask));
        let made = make();
        umask(before);
        made
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("netd-make".into()).spawn_scoped(scope, make_there)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes it has ended")))
    })
}

fn another(path: &Path) -> String {
    format!("another netd listens at {}: end it, or choose another place (--socket)", path.display())
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
        // By whatever program, of whatever version.
        _ => Err(another(path)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    use taut_testbed::while_none_starts;

    use super::*;

    // A program that another test starts has what is open here, too, until it is its program: what is dropped would live on.

    /// A directory that goes with the test.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let place =
                std::env::temp_dir().join(format!("taut-netd-listener-{}-{name}", std::process::id()));
            std::fs::create_dir(&place).unwrap();
            Place(place)
        }

        fn name(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn of_those_that_start_at_once_one_has_the_name() {
        let place = Place::new("race");
        let path = place.name("netd.sock");
        (0..200).for_each(|round| while_none_starts(|| one_has(&path, round)));
    }

    /// Four begin at once, of which one gets the name and gives it back.
    fn one_has(path: &Path, round: u32) {
        // As one that was killed leaves it.
        drop(UnixListener::bind(path).unwrap());
        let begin = Barrier::new(4);
        let bind = || {
            begin.wait();
            Listener::bind(path)
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(bind)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let (have, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert_eq!(have.len(), 1, "{round}");
        for other in others.into_iter().filter_map(Result::err) {
            assert!(other.contains("another netd listens at") && other.contains("--socket"), "{other}");
        }
        assert!(Connection::connect(path).is_ok(), "{round}");
        drop(have);
        assert!(!path.exists(), "{round}");
    }

    #[test]
    fn what_one_that_was_killed_leaves_behind_hinders_nobody() {
        let place = Place::new("killed");
        while_none_starts(|| {
            let path = place.name("netd.sock");
            let first = Listener::bind(&path).unwrap();
            let left: Vec<_> =
                std::fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().path()).collect();
            drop(first);
            // Its names, and one that it was about to rename.
            std::fs::write(place.name("netd.sock.lock"), "").unwrap();
            for name in [path.clone(), place.name("netd.sock.new")] {
                drop(UnixListener::bind(name).unwrap());
            }
            let again = Listener::bind(&path).unwrap();
            assert!(Connection::connect(&path).is_ok());
            let found: Vec<_> =
                std::fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(found, left);
            drop(again);
            assert!(Listener::bind(&path).is_ok());
        });
    }

    #[test]
    fn everybody_may_connect_whatever_the_umask() {
        let place = Place::new("umask");
        let path = place.name("run/taut/netd.sock");
        let strict = std::thread::spawn({
            let path = path.clone();
            move || {
                // This thread's alone.
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).unwrap();
                nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
                Listener::bind(&path).unwrap()
            }
        });
        let _listener = strict.join().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        for made in ["run", "run/taut"] {
            assert_eq!(std::fs::metadata(place.name(made)).unwrap().mode() & 0o777, 0o755, "{made}");
        }
        let lock = std::fs::metadata(place.name("run/taut/netd.sock.lock")).unwrap();
        assert_eq!(lock.mode() & 0o777, 0o600, "who could open it could have it");
    }

    /// Whoever can write the directory puts links where the names are to be, before and while they are made.
    #[test]
    fn links_at_its_names_change_nothing_elsewhere() {
        let place = Place::new("links");
        let (path, victim) = (place.name("netd.sock"), place.name("victim"));
        std::fs::write(&victim, "its own").unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        let names = ["netd.sock", "netd.sock.lock", "netd.sock.new"];
        for name in names {
            let _ = std::fs::remove_file(place.name(name));
            symlink(&victim, place.name(name)).unwrap();
            assert!(Listener::bind(&path).is_err_and(|why| why.contains(name)), "{name}");
            std::fs::remove_file(place.name(name)).unwrap();
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for name in ["netd.sock", "netd.sock.new"] {
                        if std::fs::remove_file(place.name(name)).is_ok() {
                            let _ = symlink(&victim, place.name(name));
                        }
                    }
                }
            });
            for _ in 0..500 {
                drop(Listener::bind(&path));
                for name in names {
                    let _ = std::fs::remove_file(place.name(name));
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "its own");
    }
}
