//! What may make a thread wait for memory: swap, page faults, limits of what may be locked.

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::SystemTime;

use super::finding::{Finding, Lasts, Mend, Write};
use super::system::{System, bytes};

const PAGES: &str = "/sys/kernel/mm/transparent_hugepage";
/// From how many bytes of `prefault` on Taut asks for huge pages.
const HUGE: usize = 2 << 20;
/// What a writer with a reader on this machine locks at most with `lock_memory`.
const LOCKED: u64 = 1 << 30;
/// The bit of CAP_IPC_LOCK in a set of capabilities (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;

/// What the configuration asks to be locked.
#[derive(Clone, Copy)]
pub struct Locks {
    /// What writers share with readers.
    pub lanes: bool,
    /// All of the process.
    pub process: bool,
}

/// All checks of this module; `prefault` is that of the configuration.
pub fn check(system: &System, locks: Locks, prefault: usize) -> Vec<Finding> {
    vec![
        locked(system, locks),
        swap(system, locks),
        overcommit(system),
        huge_pages(system),
        shared_huge_pages(system, prefault),
    ]
}

/// The directory in which participants listen for those that share memory with them, tried as they do.
pub fn local_directory(directory: &Path) -> Finding {
    let name = "local directory";
    // As long as the name of a participant's socket, and none that a participant takes for one that was left.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let path = directory.join(format!("taut-doctor-{now:026}.sock"));
    let error = match UnixListener::bind(&path) {
        Ok(_) => {
            let _ = std::fs::remove_file(&path);
            return Finding::good(name, format!("{}: participants can listen there", directory.display()));
        }
        Err(error) => error,
    };
    let shown = directory.display();
    let (command, undo) = match error.kind() {
        ErrorKind::NotFound => (format!("mkdir -p -m 1777 {shown}"), format!("rmdir {shown}")),
        ErrorKind::PermissionDenied => (format!("chmod 1777 {shown}"), String::new()),
        _ => (
            "taut config   # look at local_directory: name a directory in which sockets can be made".into(),
            String::new(),
        ),
    };
    let cost = "no shared memory with other processes: samples for those on this machine go by UDP";
    Finding::harmful(name, format!("bind {}: {error}", path.display()), cost).mend(Mend::by_hand(
        command,
        Lasts::ForGood,
        undo,
    ))
}

fn locked(system: &System, asked: Locks) -> Finding {
    let name = "locked memory";
    let limit = match lockable(system) {
        Ok(Some(limit)) => limit,
        Ok(None) => return Finding::good(name, "unlimited for this user"),
        Err(why) => return Finding::not_looked(name, why),
    };
    let seen = format!("mlock: at most {}", bytes(limit));
    let mend = memlock();
    if asked.process {
        let cost = "lock_process wants it unlimited: no participant can be made, or large samples go by UDP";
        return Finding::harmful(name, seen, cost).mend(mend);
    }
    if limit >= LOCKED {
        return Finding::good(name, seen);
    }
    if !asked.lanes {
        return Finding::good(name, format!("{seen}; lock_memory is off and needs none"));
    }
    let cost = format!(
        "lock_memory wants up to {} for each writer and is refused: its memory may be swapped out, and whoever \
         touches it next waits for the disk",
        bytes(LOCKED)
    );
    Finding::harmful(name, seen, cost).mend(mend)
}

/// What a user without CAP_IPC_LOCK may lock, in bytes; `None` if there is no limit for this one.
pub fn lockable(system: &System) -> Result<Option<u64>, String> {
    let limits = system.text("/proc/self/limits").map_err(|unseen| unseen.to_string())?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let limit = limit.ok_or("/proc/self/limits has no line of locked memory")?;
    // Not a number: unlimited.
    let limit = limit.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(if has(system, CAP_IPC_LOCK) { None } else { limit })
}

/// Raises that limit.
pub fn memlock() -> Mend {
    Mend::by_hand(
        "echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/taut-mem.conf",
        Lasts::FromNextLogin,
        "sudo rm /etc/security/limits.d/taut-mem.conf",
    )
}

/// Does this process have a capability?
pub fn has(system: &System, capability: u32) -> bool {
    let status = system.text("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set >> capability & 1 == 1)
}

fn swap(system: &System, locks: Locks) -> Finding {
    let name = "swap";
    let table = match system.text("/proc/swaps") {
        Ok(table) => table,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let column = |at: usize| -> u64 {
        let of_line = |line: &str| line.split_whitespace().nth(at)?.parse::<u64>().ok();
        table.lines().skip(1).filter_map(of_line).sum::<u64>() * 1024
    };
    let (size, used) = (column(2), column(3));
    if size == 0 {
        return Finding::good(name, "none");
    }
    let seen = format!("{} of {} used", bytes(used), bytes(size));
    if locks.process {
        return Finding::good(name, format!("{seen}; lock_process keeps the process out of it"));
    }
    if locks.lanes {
        return Finding::good(name, format!("{seen}; lock_memory keeps what readers share out of it"));
    }
    let cost =
        "memory that was not used for a while may have to be read from the disk: milliseconds for one sample";
    Finding::worth_changing(name, seen, cost).mend(Mend::by_hand(
        "swapoff --all",
        Lasts::UntilReboot,
        "swapon --all",
    ))
}

fn overcommit(system: &System) -> Finding {
    let name = "promised memory";
    let policy: u8 = match system.number("/proc/sys/vm/overcommit_memory") {
        Ok(policy) => policy,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    if policy != 2 {
        return Finding::good(name, format!("vm.overcommit_memory = {policy}: counted when it is used"));
    }
    let left = system.text("/proc/meminfo").ok().and_then(|text| {
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(of("CommitLimit:")?.saturating_sub(of("Committed_AS:")?) * 1024)
    });
    let left = left.map_or_else(String::new, |left| format!(", {} left to promise", bytes(left)));
    let cost = "memory is refused that would never be used: threads' stacks and the allocator's reserve count in full";
    Finding::worth_changing(name, format!("vm.overcommit_memory = 2{left}"), cost).mend(Mend::by_hand(
        "sysctl -w vm.overcommit_memory=0",
        Lasts::UntilReboot,
        "sysctl -w vm.overcommit_memory=2",
    ))
}

fn huge_pages(system: &System) -> Finding {
    let name = "transparent huge pages";
    let path = format!("{PAGES}/enabled");
    match system.value(&path) {
        Err(unseen) if unseen.is_absent() => Finding::good(name, "not in this kernel"),
        Err(unseen) => Finding::not_looked(name, unseen),
        Ok(value) if value == "always" => {
            let write = Write { path: path.clone(), value: "madvise".to_owned(), of_namespace: false };
            let cost = "any page fault may collect and clear 2 MiB while a thread waits for it, and khugepaged moves memory \
                        that is in use";
            Finding::worth_changing(name, value, cost)
                .mend(Mend::writes(format!("echo madvise > {path}"), vec![write]))
        }
        Ok(value) => Finding::good(name, value),
    }
}

fn shared_huge_pages(system: &System, prefault: usize) -> Finding {
    let name = "shared huge pages";
    let path = format!("{PAGES}/shmem_enabled");
    let value = match system.value(&path) {
        Ok(value) => value,
        Err(unseen) if unseen.is_absent() => return Finding::good(name, "not in this kernel"),
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    if !matches!(value.as_str(), "never" | "deny") {
        return Finding::good(name, value);
    }
    if prefault < HUGE {
        return Finding::good(
            name,
            format!("{value}; prefault is below {} and asks for none", bytes(HUGE as u64)),
        );
    }
    let write = Write { path: path.clone(), value: "advise".to_owned(), of_namespace: false };
    let cost = "prefault gets pages of 4 KiB: samples of megabytes cost more misses of the TLB";
    Finding::worth_changing(name, value, cost)
        .mend(Mend::writes(format!("echo advise > {path}"), vec![write]))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    const NONE: Locks = Locks { lanes: false, process: false };
    const LANES: Locks = Locks { lanes: true, process: false };
    const PROCESS: Locks = Locks { lanes: false, process: true };

    fn limits(limit: &str, capabilities: &str, asked: Locks) -> Finding {
        let limits =
            format!("Limit   Soft Limit  Hard Limit  Units\nMax locked memory   {limit}   {limit}   bytes\n");
        let status = format!("Name:\ttaut\nCapEff:\t{capabilities}\n");
        let (_directory, system) = tree(&[("/proc/self/limits", &limits), ("/proc/self/status", &status)]);
        locked(&system, asked)
    }

    #[test]
    fn a_directory_in_which_nobody_can_listen() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| local_directory(&directory.path().join(name));
        assert_eq!(of("").state, State::Good);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing stays there");
        let absent = of("none");
        assert!(
            absent.state == State::Harmful && absent.seen.ends_with("No such file or directory (os error 2)")
        );
        assert!(absent.mend.unwrap().command.starts_with("mkdir -p -m 1777 /"));
        std::fs::write(directory.path().join("file"), "").unwrap();
        std::fs::create_dir(directory.path().join("long".repeat(20))).unwrap();
        for name in ["file", &"long".repeat(20)] {
            let found = of(name);
            assert!(found.state == State::Harmful, "{found:?}");
            assert!(found.mend.unwrap().command.starts_with("taut config "), "{name}");
        }
    }

    #[test]
    fn memory_that_may_be_locked() {
        assert_eq!(limits("unlimited", "0", LANES).state, State::Good);
        assert_eq!(limits("8388608", "0", NONE).state, State::Good);
        assert_eq!(limits("8388608", "0000000000004000", PROCESS).state, State::Good, "CAP_IPC_LOCK");
        let found = limits("8388608", "0000000000002000", LANES);
        assert_eq!((found.state, found.seen.as_str()), (State::Harmful, "mlock: at most 8 MiB"));
        assert_eq!(limits("4294967296", "0", LANES).state, State::Good);
        assert_eq!(limits("4294967296", "0", PROCESS).state, State::Harmful);
    }

    #[test]
    fn memory_on_a_disk() {
        let head = "Filename Type Size Used Priority\n";
        let (_directory, none) = tree(&[("/proc/swaps", head)]);
        assert_eq!(swap(&none, NONE).state, State::Good);
        let (_directory, some) =
            tree(&[("/proc/swaps", &format!("{head}/dev/sda2 partition 2048 1024 -2\n"))]);
        let found = swap(&some, NONE);
        assert_eq!((found.state, found.seen.as_str()), (State::WorthChanging, "1 MiB of 2 MiB used"));
        assert_eq!([LANES, PROCESS].map(|locks| swap(&some, locks).state), [State::Good, State::Good]);
    }

    #[test]
    fn memory_that_is_promised() {
        let of = |policy: &str| {
            let meminfo = "CommitLimit:  3072 kB\nCommitted_AS:  1024 kB\n";
            let (_directory, system) =
                tree(&[("/proc/sys/vm/overcommit_memory", policy), ("/proc/meminfo", meminfo)]);
            overcommit(&system)
        };
        assert_eq!(of("0").state, State::Good);
        assert_eq!(of("2").seen, "vm.overcommit_memory = 2, 2 MiB left to promise");
    }

    #[test]
    fn pages() {
        let (enabled, shared) = (format!("{PAGES}/enabled"), format!("{PAGES}/shmem_enabled"));
        let of = |value: &str| {
            let (_directory, system) = tree(&[(&enabled, value), (&shared, "always advise [never] deny\n")]);
            (huge_pages(&system), shared_huge_pages(&system, 0), shared_huge_pages(&system, HUGE))
        };
        assert_eq!(of("[always] madvise never").0.mend.unwrap().writes[0].value, "madvise");
        let (found, unasked, asked) = of("always [madvise] never");
        assert_eq!(
            [found.state, unasked.state, asked.state],
            [State::Good, State::Good, State::WorthChanging]
        );
    }
}
