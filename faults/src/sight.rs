//! What can be seen of a process and of the machine from outside.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// What a process holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    pub descriptors: usize,
    /// Mappings of shared memory of ours, and of anything.
    pub shared_maps: usize,
    pub maps: usize,
    /// Bytes that are taken for the lanes it has made.
    pub lane_bytes: u64,
    pub resident_kib: u64,
}

impl Holdings {
    pub fn of(pid: u32) -> Holdings {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let links: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        let is_lane = |path: &&std::path::PathBuf| {
            fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:taut-lane"))
        };
        let lane_bytes = links.iter().filter(is_lane).filter_map(|path| fs::metadata(path).ok());
        Holdings {
            descriptors: links.len(),
            shared_maps: maps.lines().filter(|line| line.contains("/memfd:taut-")).count(),
            maps: maps.lines().count(),
            lane_bytes: lane_bytes.map(|file| file.blocks() * 512).sum(),
            resident_kib: status_kib(pid, "VmRSS:"),
        }
    }
}

fn status_kib(pid: u32, key: &str) -> u64 {
    number(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(), key)
}

fn number(text: &str, key: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Does it map a lane that another process writes?
pub fn reads_foreign_lane(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.contains("/memfd:taut-lane") && line.contains("r--s"))
}

/// Shared memory of the machine.
pub fn shmem_kib() -> u64 {
    number(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "Shmem:")
}

/// Files of ours in /dev/shm: there should never be any.
pub fn shm_files() -> usize {
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().contains("taut");
    fs::read_dir("/dev/shm").map_or(0, |entries| entries.flatten().filter(ours).count())
}

/// Sockets of this network namespace by which participants meet.
pub fn meeting_points() -> usize {
    let sockets = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    let listens =
        |line: &&str| line.contains("@taut-shm/") && line.split_whitespace().nth(3) == Some("00010000");
    sockets.lines().filter(listens).count()
}

/// The clock that all processes of the machine share.
pub fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("the clock can be read");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
