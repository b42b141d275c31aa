//! What a participant has to be allowed, and this thread is not: named at once, where the kernel refuses one call at a time.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

/// The capabilities that this thread lacks of those that a queue takes, as a list; empty if it lacks none.
pub(crate) fn missing() -> String {
    let has = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    listed(has, getrlimit(Resource::Memlock).current.is_none())
}

fn listed(has: CapabilitySet, locks_all: bool) -> String {
    let lacks = |either: CapabilitySet| !has.intersects(either);
    let known = [
        ("CAP_NET_ADMIN", lacks(CapabilitySet::NET_ADMIN)),
        ("CAP_BPF", lacks(CapabilitySet::BPF | CapabilitySet::SYS_ADMIN)),
        ("CAP_NET_RAW", lacks(CapabilitySet::NET_RAW)),
        ("CAP_IPC_LOCK (or `ulimit -l unlimited`)", lacks(CapabilitySet::IPC_LOCK) && !locks_all),
    ];
    let names: Vec<&str> = known.iter().filter(|(_, lacks)| *lacks).map(|(name, _)| *name).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named() {
        let lock = "CAP_IPC_LOCK (or `ulimit -l unlimited`)";
        let all = CapabilitySet::all();
        for (has, locks_all, names) in [
            (CapabilitySet::empty(), false, format!("CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW and {lock}")),
            (CapabilitySet::empty(), true, "CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW".into()),
            (CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN, false, format!("CAP_NET_RAW and {lock}")),
            (all - CapabilitySet::NET_RAW, false, "CAP_NET_RAW".into()),
            (all - CapabilitySet::BPF, false, String::new()),
            (all - CapabilitySet::IPC_LOCK, true, String::new()),
        ] {
            assert_eq!(listed(has, locks_all), names, "{has:?}");
        }
    }
}
