//! What the port has moved, and what it has dropped and why.

use nix::errno::Errno;

/// How many different error numbers are told apart; the rest is counted together.
pub(crate) const KINDS: usize = 8;

/// Counts by error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrnoCounts {
    counts: [(i32, u64); KINDS],
    other: u64,
}

impl ErrnoCounts {
    pub(crate) fn count(&mut self, errno: i32) {
        let known = self.counts.iter_mut().find(|(number, count)| *number == errno || *count == 0);
        match known {
            Some(entry) => *entry = (errno, entry.1 + 1),
            None => self.other += 1,
        }
    }

    /// Each error number that occurred, with its count; at most eight, in order of occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.counts.iter().copied().filter(|(_, count)| *count > 0)
    }

    /// How often `errno` occurred.
    pub fn of(&self, errno: i32) -> u64 {
        self.iter().find(|(number, _)| *number == errno).map_or(0, |(_, count)| count)
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.other + self.iter().map(|(_, count)| count).sum::<u64>()
    }
}

impl std::fmt::Display for ErrnoCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (errno, count) in self.iter() {
            write!(f, "{count} x {} ", Errno::from_raw(errno))?;
        }
        write!(f, "{} x other", self.other)
    }
}

/// Counters since the port was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Bytes of their payloads.
    pub bytes_in: u64,
    /// Datagrams the kernel took, one for each destination and interface.
    pub datagrams_out: u64,
    /// Bytes of their payloads.
    pub bytes_out: u64,
    /// Receiving syscalls, those that found nothing included, but for looks of [`crate::Direct`] in vain.
    pub receive_calls: u64,
    /// Sending syscalls, those that failed included.
    pub send_calls: u64,
    /// Rows of datagrams that the kernel would not cut: sent one by one.
    pub rows_refused: u64,
    /// Datagrams of more parts than one call gathers: copied together first.
    pub sends_copied: u64,
    /// Sends that had to wait for room in the send buffer.
    pub sends_waited: u64,
    /// Datagrams dropped because the send buffer stayed full.
    pub dropped_full: u64,
    /// Destinations of a kind or an address that the port does not reach: not UDP, IPv6 where that is not used, no
    /// port, or multicast without an interface for it.
    pub dropped_unreachable: u64,
    /// ICMP refusals that the kernel reported: a peer went away.
    pub refused: u64,
    /// Datagrams that the kernel did not take for another reason, as a rule of a firewall. [`crate::UdpPort::warn_of_unsent`]
    /// tells of them.
    pub send_errors: ErrnoCounts,
    /// Receive calls that failed for a reason other than an empty queue.
    pub receive_errors: ErrnoCounts,
    /// Datagrams that the kernel dropped before the port could read them: full receive buffers.
    pub receive_overflow: u64,
    /// Receive buffers allocated; constant once warm.
    pub buffers_allocated: u64,
    /// Times that the kernel's word of changed interfaces was taken.
    pub changes_heard: u64,
    /// As many as `changes_heard` once it was looked which interfaces there are now.
    pub changes_followed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_kinds_than_places() {
        let mut counts = ErrnoCounts::default();
        for errno in (1..=10).chain(1..=10) {
            counts.count(errno);
        }
        assert_eq!((counts.of(1), counts.of(8), counts.of(9), counts.total()), (2, 2, 0, 20));
        assert!(counts.to_string().ends_with("4 x other"), "{counts}");
    }
}
