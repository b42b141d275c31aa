//! Where records are kept of what was changed on this machine, for what takes it back.
//!
//! A file that a reboot takes away, as it does what was changed; one process at a time holds it. `doctor` and `nic`
//! have one each.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use taut_nic::{Host, Namespace};

use crate::failure::Failure;

/// The records of one command, held by this process.
pub struct Store {
    directory: PathBuf,
    /// The command: `doctor`, `nic`.
    name: &'static str,
    /// `None` while there is nothing to hold.
    _lock: Option<Flock<File>>,
}

/// Who may open the file that a process holds: whoever can, can hold it, and for ever.
const OF_LOCK: u32 = 0o600;

/// Where those of root are.
const OF_ROOT: &str = "/run/taut";

/// Where the records of this user are.
///
/// *Errors*: [`Failure::Wrong`] where there is no such place.
pub fn directory(command: &str) -> Result<PathBuf, Failure> {
    if is_root() {
        return Ok(PathBuf::from(OF_ROOT));
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    own.map(|directory| Path::new(&directory).join("taut")).ok_or_else(|| {
        Failure::Wrong(format!(
            "there is no place to record what was before: XDG_RUNTIME_DIR is not set; use `sudo {command}`"
        ))
    })
}

/// Where those of root of this command are.
pub fn of_root(name: &str) -> String {
    format!("{OF_ROOT}/{}", file(name))
}

/// Has root records of this command?
pub fn has_of_root(name: &str) -> bool {
    Path::new(&of_root(name)).exists()
}

fn file(name: &str) -> String {
    format!("{name}.json")
}

fn lock(name: &str) -> String {
    format!("{name}.lock")
}

/// The network namespace of this process.
///
/// *Errors*: [`Failure::System`] without /proc.
pub fn namespace() -> Result<Namespace, Failure> {
    let name = std::fs::read_link("/proc/self/ns/net").map_err(|error| {
        Failure::System(format!(
            "readlink /proc/self/ns/net: {error}; mount /proc, values belong to a namespace"
        ))
    })?;
    Ok(Namespace { name: name.to_string_lossy().into_owned(), cookie: Host::cookie() })
}

/// May the records of a namespace of this name be forgotten by one who is in `here`?
///
/// *Errors*: [`Failure::Wrong`] for the own one, and for what is no name of one.
pub fn may_forget(name: &str, here: &Namespace) -> Result<(), Failure> {
    let number = name.strip_prefix("net:[").and_then(|rest| rest.strip_suffix(']'));
    if !number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) {
        let why = "is no name of a network namespace: write it as undo tells it, as 'net:[4026532288]'";
        return Err(Failure::Wrong(format!("{name} {why}")));
    }
    if name != here.name {
        return Ok(());
    }
    let why = "is the network namespace that this is in, and not gone: undo without --forget";
    Err(Failure::Wrong(format!("{name} {why}")))
}

/// Is this root?
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Makes a directory that others can pass through, whatever the umask: the socket of netd may be there, too.
fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, Permissions::from_mode(0o755))
}

impl Store {
    /// Takes the file for this process, with the records in it.
    ///
    /// *Errors*: [`Failure::System`] if the file cannot be made, read or understood; [`Failure::Wrong`] while another
    /// process has it.
    pub fn open<R: DeserializeOwned>(
        directory: PathBuf,
        name: &'static str,
    ) -> Result<(Store, Vec<R>), Failure> {
        let refused = |call: &str, path: &Path, error: io::Error| {
            Failure::System(format!(
                "{call} {}: {error}; what was before is recorded there: without it nothing is changed",
                path.display()
            ))
        };
        make(&directory).map_err(|error| refused("mkdir", &directory, error))?;
        let lock = directory.join(lock(name));
        let file = File::options()
            .create(true)
            .append(true)
            .mode(OF_LOCK)
            .open(&lock)
            .map_err(|error| refused("open", &lock, error))?;
        // One that is there may be of a version that left it open to others.
        file.set_permissions(Permissions::from_mode(OF_LOCK))
            .map_err(|error| refused("fchmod", &lock, error))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
            Failure::Wrong(format!(
                "flock {}: {errno}; another taut {name} is at work, wait for it",
                lock.display()
            ))
        })?;
        let store = Store { directory, name, _lock: Some(lock) };
        let path = store.path();
        let records = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Failure::System(format!(
                    "{} holds no records: {error}; remove it, and what it was about is as it was after a reboot",
                    path.display()
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(refused("read", &path, error)),
        };
        Ok((store, records))
    }

    /// The same for what takes back, which makes nothing where there is none.
    ///
    /// *Errors*: as [`Store::open`].
    pub fn open_existing<R: DeserializeOwned>(
        directory: PathBuf,
        name: &'static str,
    ) -> Result<(Store, Vec<R>), Failure> {
        if [file(name), lock(name)].iter().any(|file| directory.join(file).exists()) {
            return Store::open(directory, name);
        }
        Ok((Store { directory, name, _lock: None }, Vec::new()))
    }

    fn path(&self) -> PathBuf {
        self.directory.join(file(self.name))
    }

    /// Writes the records, so that a process that ends meanwhile leaves the old ones or the new ones.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn save<R: Serialize>(&self, records: &[R]) -> Result<(), String> {
        let saved = if records.is_empty() {
            match std::fs::remove_file(self.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        } else {
            self.replace(records)
        };
        saved.map_err(|error| format!("record it in {}: {error}; make room", self.directory.display()))
    }

    fn replace<R: Serialize>(&self, records: &[R]) -> io::Result<()> {
        let new = self.directory.join(format!("{}.json.new", self.name));
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(records).map_err(io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(new, self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever may open the lock may keep it from root.
    #[test]
    fn no_other_user_may_open_the_lock() {
        for was in [None, Some(0o644)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(lock("nic"));
            if let Some(mode) = was {
                std::fs::write(&path, "").unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
            let (_store, records) = Store::open::<u32>(directory.path().to_owned(), "nic").unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!((mode & 0o077, records), (0, Vec::new()), "it was {was:?} and is {mode:o}");
        }
    }
}
