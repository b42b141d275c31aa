//! What processes have used: CPU time, context switches, memory, threads, descriptors. From `/proc`, and CPU time from the
//! clock that each process has.

use std::collections::HashMap;

use nix::sys::time::TimeValLike;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use procfs::process::Process;

/// Processes below an adapter that are followed. A broker has a handful; a bound ends a fork bomb.
const CHILDREN_MOST: usize = 256;

/// What some processes have used so far, their children included.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// CPU time of each process in nanoseconds, that of threads which have ended included: some begin one for each sample.
    cpu_ns: HashMap<i32, u64>,
    /// Context switches of each thread.
    switches: HashMap<i32, u64>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Voluntary and involuntary context switches.
    pub switches: u64,
    /// Heap allocations of the process that began, if it counts them.
    pub allocations: Option<u64>,
}

impl Usage {
    /// Adds what another round has used.
    pub fn add(&mut self, other: Usage) {
        self.cpu_ns += other.cpu_ns;
        self.switches += other.switches;
        if let Some(more) = other.allocations {
            *self.allocations.get_or_insert(0) += more;
        }
    }
}

impl Accounts {
    /// Reads the accounts of these processes; one that is gone has none.
    pub fn read(pids: impl IntoIterator<Item = u32>) -> Accounts {
        let mut accounts = Accounts::default();
        let mut left: Vec<i32> = pids.into_iter().map(|pid| pid as i32).collect();
        let mut seen = 0;
        while let Some(pid) = left.pop() {
            seen += 1;
            if seen > CHILDREN_MOST {
                break;
            }
            let Ok(tasks) = Process::new(pid).and_then(|process| process.tasks()) else { continue };
            accounts.cpu_ns.extend(cpu_ns(pid).map(|used_ns| (pid, used_ns)));
            for task in tasks.flatten() {
                let switches = task.status().map_or(0, |status| {
                    status.voluntary_ctxt_switches.unwrap_or(0)
                        + status.nonvoluntary_ctxt_switches.unwrap_or(0)
                });
                accounts.switches.insert(task.tid, switches);
                left.extend(task.children().unwrap_or_default().into_iter().map(|child| child as i32));
            }
        }
        accounts
    }

    /// What was used since then. The context switches of a thread that has ended in between are not counted: nobody can
    /// ask it.
    pub fn since(&self, before: &Accounts) -> Usage {
        let since = |after: &HashMap<i32, u64>, before: &HashMap<i32, u64>| {
            after.iter().map(|(id, after)| after.saturating_sub(before.get(id).copied().unwrap_or(0))).sum()
        };
        Usage {
            cpu_ns: since(&self.cpu_ns, &before.cpu_ns),
            switches: since(&self.switches, &before.switches),
            allocations: None,
        }
    }
}

/// What all threads of a process have used, whether or not they are there still.
fn cpu_ns(pid: i32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
    Some(clock_gettime(clock).ok()?.num_nanoseconds() as u64)
}

/// What a process holds, its children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Resident set size in bytes, pages that others have, too, included.
    pub bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub descriptors: u64,
}

/// Reads it; a process that is gone holds nothing.
pub fn holding(pid: u32) -> Holding {
    let mut sum = Holding::default();
    let mut left = vec![pid as i32];
    for _ in 0..CHILDREN_MOST {
        let Some(process) = left.pop().and_then(|pid| Process::new(pid).ok()) else { break };
        sum.bytes += resident_set_size(&process).unwrap_or(0);
        sum.descriptors += process.fd_count().unwrap_or(0) as u64;
        for task in process.tasks().into_iter().flatten().flatten() {
            sum.threads += 1;
            left.extend(task.children().unwrap_or_default().into_iter().map(|child| child as i32));
        }
    }
    sum
}

/// Counted page by page: what `status` says is behind by some.
fn resident_set_size(process: &Process) -> Option<u64> {
    let rollup = process.smaps_rollup().ok()?;
    let map = rollup.memory_map_rollup.iter().next()?;
    map.extension.map.get("Rss").copied()
}

/// What an interface of this network has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes, headers included.
    pub bytes: u64,
    /// Packets: on loopback each is a datagram, however large.
    pub packets: u64,
}

impl Sent {
    /// Reads it; an interface that is not there has sent nothing.
    pub fn by(interface: &str) -> Sent {
        let interfaces = procfs::net::dev_status().unwrap_or_default();
        interfaces.get(interface).map_or_else(Sent::default, |status| Sent {
            bytes: status.sent_bytes,
            packets: status.sent_packets,
        })
    }

    /// What was sent since then.
    pub fn since(self, before: Sent) -> Sent {
        Sent {
            bytes: self.bytes.saturating_sub(before.bytes),
            packets: self.packets.saturating_sub(before.packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::time::ClockId;

    use super::*;

    /// Takes so much time of a processor, in nanoseconds.
    fn work(ns: i64) {
        let own_ns = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().num_nanoseconds();
        let end = own_ns() + ns;
        while own_ns() < end {}
    }

    #[test]
    fn work_and_memory_of_this_process_are_seen() {
        let own = std::process::id();
        let before = Accounts::read([own]);
        work(20_000_000);
        let used = Accounts::read([own]).since(&before);
        assert!(used.cpu_ns >= 10_000_000, "20 ms of work are {used:?}");
        let held = holding(own);
        assert!(held.bytes > 100_000 && held.threads >= 1 && held.descriptors >= 3, "{held:?}");
    }

    #[test]
    fn the_work_of_a_thread_that_has_ended_is_counted() {
        let before = Accounts::read([std::process::id()]);
        std::thread::spawn(|| work(100_000_000)).join().unwrap();
        let used = Accounts::read([std::process::id()]).since(&before);
        assert!(used.cpu_ns >= 100_000_000, "100 ms of work are {used:?}");
    }

    #[test]
    fn who_is_gone_has_nothing() {
        // Above the largest pid of Linux, 2^22.
        let none = Accounts::read([5_000_000]);
        assert_eq!(none.since(&Accounts::default()), Usage::default());
        assert_eq!(holding(5_000_000), Holding::default());
    }
}
