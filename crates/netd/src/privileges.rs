//! What netd may do once it listens: what it takes to open queues, and nothing else.
//!
//! Owns which capabilities those are. They are a thread's own, and those of threads that it starts later; so this comes
//! before all that start some.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What is done for participants takes these: a program of XDP and its maps (CAP_BPF and CAP_NET_ADMIN), a socket of
/// AF_XDP and one that has the card take frames for groups (CAP_NET_RAW), and frames beyond the limit of locked memory
/// (CAP_IPC_LOCK).
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::IPC_LOCK);

/// As many as a set has room for.
const MOST: u32 = u64::BITS;

/// Gives up all privileges of this thread, and of those that it starts, but CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and
/// CAP_IPC_LOCK, for good: no program that is run can have others. To be called once the server listens, as the place of
/// its socket may take more; CAP_SYS_ADMIN stays where it is held in the place of CAP_BPF.
///
/// *Errors*: one sentence: the kernel refuses. *Cost*: some fifty system calls.
///
/// ```no_run
/// let policy = taut_netd::Policy::parse("", "netd.toml")?;
/// let mut server = taut_netd::Server::open(policy, taut_netd::SOCKET.as_ref())?;
/// taut_netd::keep_least_privileges()?;
/// server.turn(std::time::Duration::from_secs(1))?;
/// # Ok::<(), String>(())
/// ```
pub fn keep_least_privileges() -> Result<(), String> {
    let refused = |call: &str, errno: Errno| {
        format!("{call}: {errno}; netd gives up what it does not need, which its container is to allow")
    };
    forget_others();
    // A kernel without ambient capabilities has none to clear.
    let _ = clear_ambient_capability_set();
    let has = capabilities(None).map_err(|errno| refused("capget", errno))?.permitted;
    let kept = has & needed(has);
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|errno| refused("capset", errno))?;
    set_no_new_privs(true).map_err(|errno| refused("PR_SET_NO_NEW_PRIVS", errno))
}

/// What is needed by who has these.
fn needed(has: CapabilitySet) -> CapabilitySet {
    if has.contains(CapabilitySet::BPF) { KEPT } else { KEPT | CapabilitySet::SYS_ADMIN }
}

/// Empties the bounding set, which takes CAP_SETPCAP: who has not got it can run nothing that has more either.
fn forget_others() {
    for number in 0..MOST {
        // The first number that the kernel does not know is beyond the last one.
        if remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_bpf_keeps_what_stands_for_it() {
        let admin = CapabilitySet::SYS_ADMIN;
        assert!(!needed(CapabilitySet::all()).contains(admin));
        assert!(needed(admin | CapabilitySet::NET_ADMIN).contains(admin));
    }

    /// In a thread of its own: the others keep what they have.
    #[test]
    fn nothing_else_is_left() {
        let left = std::thread::spawn(|| {
            keep_least_privileges().unwrap();
            // What is started later has no more.
            let status = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
            (capabilities(None).unwrap(), std::thread::spawn(status).join().unwrap())
        });
        let (left, status) = left.join().unwrap();
        assert!(KEPT.contains(left.permitted) && KEPT.contains(left.effective), "{left:?}");
        assert!(left.inheritable.is_empty() && status.contains("NoNewPrivs:\t1"), "{status}");
        assert!(status.contains("CapAmb:\t0000000000000000"), "{status}");
    }
}
