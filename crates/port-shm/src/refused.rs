//! What the operating system refused, as an error of the caller with the remedy in its text.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use taut_base::Error;
use taut_port::PortError;

/// The error for a call that was refused. A want of memory, descriptors or length is `OUT_OF_RESOURCES`.
pub(crate) fn refused(call: impl Into<String>, errno: Errno) -> Error {
    let are_addresses_few = getrlimit(Resource::As).current.is_some();
    let error =
        PortError { call: call.into(), source: errno.into(), remedy: remedy(errno, are_addresses_few) };
    match errno {
        Errno::NOSPC | Errno::NOMEM | Errno::NOBUFS | Errno::MFILE | Errno::NFILE | Errno::FBIG => {
            Error::OutOfResources(error.to_string())
        }
        _ => Error::Error(error.to_string()),
    }
}

/// The error for a call that was to keep `what` from being swapped out. A limit of locked memory is
/// `OUT_OF_RESOURCES`.
pub(crate) fn not_locked(call: String, what: &str, errno: Errno) -> Error {
    match errno {
        Errno::NOMEM | Errno::AGAIN | Errno::PERM => Error::OutOfResources(format!(
            "{call}: {errno}; it keeps {what} from being swapped out, so that no thread waits for the disk: raise the \
             limit of locked memory (`ulimit -l unlimited`, LimitMEMLOCK=infinity for a service, memlock in \
             limits.conf) or grant CAP_IPC_LOCK"
        )),
        _ => refused(call, errno),
    }
}

/// The system has one number for a machine without memory and for a process that may have no more addresses.
fn remedy(errno: Errno, are_addresses_few: bool) -> &'static str {
    match errno {
        Errno::MFILE | Errno::NFILE => "raise the limit of open files (`ulimit -n`)",
        Errno::FBIG => {
            "raise the limit of file sizes (`ulimit -f unlimited`, LimitFSIZE=infinity for a service), which counts \
             for memory that is shared, too"
        }
        Errno::NOMEM if are_addresses_few => {
            "raise the limit of addresses (`ulimit -v`), of which a lane takes far more than of memory, or that of the \
             container (memory.max)"
        }
        Errno::NOSPC | Errno::NOMEM | Errno::NOBUFS => {
            "there is no memory left: raise the limit of the container (memory.max), or lower the \
             RESOURCE_LIMITS of the writer"
        }
        Errno::ACCESS | Errno::PERM => {
            "this process may not: allow it in the policy of its sandbox, container or security module"
        }
        Errno::ADDRINUSE => "another participant has this name: each needs a GUID prefix of its own",
        Errno::NAMETOOLONG => "choose a shorter path: the kernel takes 107 bytes in all",
        Errno::NOENT | Errno::NOTDIR => "make the directory, or mount it into this container",
        Errno::ROFS => "mount the directory writable",
        Errno::NOSYS | Errno::INVAL => "Linux 5.11 or later is needed",
        _ => "local samples go by UDP as long as this lasts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_of_addresses_is_none_of_memory() {
        let of = |errno, are_addresses_few| remedy(errno, are_addresses_few);
        assert!(of(Errno::NOMEM, true).contains("ulimit -v"));
        assert!(
            [of(Errno::NOMEM, false), of(Errno::NOSPC, true)]
                .iter()
                .all(|text| text.contains("no memory left"))
        );
    }
}
