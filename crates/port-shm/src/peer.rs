//! Who is at the other end of a connection, and whether to deal with it.
//!
//! The kernel vouches for what is here: it noted the credentials when the peer connected or began to
//! listen. A process of the same user is *trusted*: it could as well trace us or write our files. One that
//! is only of an allowed group may read along, but its payloads are copied before anybody looks at them,
//! and it is rung by [`crate::Message::Ring`].

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use taut_base::Result;

use crate::refused::refused;
use crate::{kernel_file, sockopt};

/// The kernel shows a user or group that a user namespace has no number for as this. *Source*: the
/// default of /proc/sys/kernel/overflowuid.
const OVERFLOW: u32 = 65_534;

/// The process at the other end.
#[derive(Debug)]
pub struct Peer {
    /// Its process id; `None` if it has none in this process-id namespace.
    pub pid: Option<u32>,
    /// Its effective user when it connected or listened.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Its supplementary groups.
    pub groups: Vec<u32>,
    pidfd: Option<OwnedFd>,
    ended: bool,
}

/// Whom to deal with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Policy {
    /// Beside processes of the same user, those of these groups.
    pub allowed_gids: Vec<u32>,
}

/// How far a peer is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// The same user: its payloads are viewed in place.
    Trusted,
    /// An allowed group: its payloads are copied, then looked at.
    Untrusted,
}

/// Why a peer is not dealt with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotAdmitted {
    pid: Option<u32>,
    uid: u32,
    gid: u32,
    own_uid: u32,
}

impl Peer {
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Result<Peer> {
        let (pid, uid, gid) =
            sockopt::credentials(socket).map_err(|errno| refused("getsockopt SO_PEERCRED", errno))?;
        let pidfd = match sockopt::pidfd(socket) {
            Some(pidfd) => Ok(pidfd),
            // Before Linux 6.5, or it has ended. Its id may have been given away in between; then the socket
            // has hung up.
            None => i32::try_from(pid)
                .ok()
                .and_then(Pid::from_raw)
                .ok_or(Errno::INVAL)
                .and_then(|pid| pidfd_open(pid, PidfdFlags::empty())),
        };
        let ended = pidfd.as_ref().err() == Some(&Errno::SRCH);
        let pidfd = pidfd.ok();
        let pid = Some(pid).filter(|pid| *pid != 0);
        Ok(Peer { pid, uid, gid, groups: sockopt::groups(socket), pidfd, ended })
    }

    /// Readable once the process has ended; `None` where the kernel gives none.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Is it the same process of the same user, as far as this process-id namespace can tell?
    pub fn is(&self, other: &Peer) -> bool {
        (self.pid, self.uid) == (other.pid, other.uid)
    }

    /// Had the process ended when it was looked at? Then it has no [`Peer::pidfd`].
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

impl Policy {
    /// Looks at a peer's user and groups.
    ///
    /// *Errors*: it is of another user and of no allowed group; or of none that this namespace can name.
    pub fn admit(&self, peer: &Peer) -> std::result::Result<Admitted, NotAdmitted> {
        let own_uid = geteuid().as_raw();
        if peer.uid == own_uid && (peer.uid != OVERFLOW || names_all_users()) {
            return Ok(Admitted::Trusted);
        }
        let is_allowed = |gid: &u32| *gid != OVERFLOW && self.allowed_gids.contains(gid);
        if is_allowed(&peer.gid) || peer.groups.iter().any(is_allowed) {
            return Ok(Admitted::Untrusted);
        }
        Err(NotAdmitted { pid: peer.pid, uid: peer.uid, gid: peer.gid, own_uid })
    }
}

/// Has this user namespace a number of its own for each user of the host, so that 65534 is a user?
fn names_all_users() -> bool {
    let map = kernel_file::text("/proc/thread-self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotAdmitted { pid, uid, gid, own_uid } = self;
        match pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("a process of another process-id namespace")?,
        }
        if uid == own_uid {
            return write!(f, " is of a user that this user namespace has no number for (shown as {uid})");
        }
        write!(f, " is of user {uid}, this one of user {own_uid}: run both as one user, or allow group {gid}")
    }
}

impl std::error::Error for NotAdmitted {}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: u32, gid: u32, groups: &[u32]) -> Peer {
        Peer { pid: Some(7), uid, gid, groups: groups.to_vec(), pidfd: None, ended: false }
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_user() {
        let nameless = |uid| Peer { pid: None, ..peer(uid, 1, &[]) };
        assert!(peer(5, 1, &[]).is(&peer(5, 2, &[])));
        assert!(!peer(5, 1, &[]).is(&peer(6, 1, &[])) && !peer(5, 1, &[]).is(&nameless(5)));
        assert!(!peer(5, 1, &[]).is(&Peer { pid: Some(8), ..peer(5, 1, &[]) }));
        assert!(nameless(5).is(&nameless(5)) && !nameless(5).is(&nameless(6)));
    }

    #[test]
    fn the_same_user_or_an_allowed_group() {
        let own = geteuid().as_raw();
        let policy = Policy { allowed_gids: vec![500, OVERFLOW] };
        assert_eq!(policy.admit(&peer(own, 1, &[])), Ok(Admitted::Trusted));
        assert_eq!(policy.admit(&peer(own + 1, 500, &[])), Ok(Admitted::Untrusted));
        assert_eq!(policy.admit(&peer(own + 1, 1, &[2, 500])), Ok(Admitted::Untrusted));
        assert!(policy.admit(&peer(own + 1, OVERFLOW, &[OVERFLOW])).is_err(), "that is anybody's group");
        let text = policy.admit(&peer(own + 1, 1, &[2])).unwrap_err().to_string();
        assert!(text.starts_with("process 7 is of user") && text.ends_with("allow group 1"), "{text}");
    }
}
