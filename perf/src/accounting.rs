//! What processes have used: CPU time, context switches, memory, threads, descriptors. From `/proc`.

use std::collections::HashMap;

use procfs::process::Process;

/// Processes below an adapter that are followed. A broker has a handful; a bound ends a fork bomb.
const CHILDREN_MOST: usize = 256;

/// CPU time and context switches of each thread of some processes, their children included.
#[derive(Clone, Debug, Default)]
pub struct Accounts(HashMap<i32, Usage>);

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
            for task in tasks.flatten() {
                let usage = Usage {
                    cpu_ns: task.schedstat().map_or(0, |schedstat| schedstat.sum_exec_runtime),
                    switches: task.status().map_or(0, |status| {
                        status.voluntary_ctxt_switches.unwrap_or(0)
                            + status.nonvoluntary_ctxt_switches.unwrap_or(0)
                    }),
                    allocations: None,
                };
                accounts.0.insert(task.tid, usage);
                left.extend(task.children().unwrap_or_default().into_iter().map(|child| child as i32));
            }
        }
        accounts
    }

    /// What was used since then. A thread that has ended in between is not counted: nobody can ask it.
    pub fn since(&self, before: &Accounts) -> Usage {
        let mut used = Usage::default();
        for (tid, after) in &self.0 {
            let before = before.0.get(tid).copied().unwrap_or_default();
            used.cpu_ns += after.cpu_ns.saturating_sub(before.cpu_ns);
            used.switches += after.switches.saturating_sub(before.switches);
        }
        used
    }
}

/// What a process holds, its children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Proportional set size in bytes.
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
        sum.bytes += proportional_set_size(&process).unwrap_or(0);
        sum.descriptors += process.fd_count().unwrap_or(0) as u64;
        for task in process.tasks().into_iter().flatten().flatten() {
            sum.threads += 1;
            left.extend(task.children().unwrap_or_default().into_iter().map(|child| child as i32));
        }
    }
    sum
}

fn proportional_set_size(process: &Process) -> Option<u64> {
    let rollup = process.smaps_rollup().ok()?;
    let map = rollup.memory_map_rollup.iter().next()?;
    map.extension.map.get("Pss").copied()
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
    use super::*;

    #[test]
    fn work_and_memory_of_this_process_are_seen() {
        let own = std::process::id();
        let before = Accounts::read([own]);
        let (mut sum, start) = (0u64, std::time::Instant::now());
        while start.elapsed().as_millis() < 20 {
            sum = std::hint::black_box(sum + 1);
        }
        let used = Accounts::read([own]).since(&before);
        assert!(used.cpu_ns >= 10_000_000, "20 ms of work are {used:?}");
        let held = holding(own);
        assert!(held.bytes > 100_000 && held.threads >= 1 && held.descriptors >= 3, "{held:?}");
    }

    #[test]
    fn who_is_gone_has_nothing() {
        // Above the largest pid of Linux, 2^22.
        let none = Accounts::read([5_000_000]);
        assert_eq!(none.since(&Accounts::default()), Usage::default());
        assert_eq!(holding(5_000_000), Holding::default());
    }
}
