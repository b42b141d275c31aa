//! How much memory may still be taken before the kernel kills somebody for it.
//!
//! Memory cgroups of both versions, from this process's own up to the mount's root, and the machine as a
//! whole. It is a look, not a reservation: another process may take the same bytes at the same time, which
//! is what the reserve is for. Memory that could be swapped out counts as taken: where it would not have
//! to, samples go by UDP although they could have gone by shared memory, which is the harmless mistake.

use std::fmt;
use std::path::Path;

use crate::kernel_file::{number, text};

/// Of each limit this part stays untouched, and at most so many bytes. Lower and what a neighbour takes at
/// the same moment gets one of the two killed, or what this process itself takes to send by UDP what finds
/// no place: at a 32nd a writer of 1 MB in 64 MiB was, three times of five. Higher and a small container has
/// no shared memory.
const RESERVE_PART: u64 = 4;
const RESERVE_MOST: u64 = 256 * 1024 * 1024;
/// Levels of cgroups that are looked at. Container engines nest four or five.
const LEVELS: usize = 16;
/// The kernel's "no limit" of version 1 is a little below 2^63: whatever is above 2^60 is none.
const UNLIMITED: u64 = 1 << 60;

/// The files to ask.
pub(crate) struct Headroom {
    levels: Vec<Level>,
}

/// One memory cgroup.
struct Level {
    directory: String,
    files: &'static Files,
}

/// How a version of cgroups names what is asked for.
struct Files {
    limit: &'static str,
    usage: &'static str,
    inactive: &'static str,
    active: &'static str,
}

static V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
    active: "total_active_file",
};
static V2: Files =
    Files { limit: "memory.max", usage: "memory.current", inactive: "inactive_file", active: "active_file" };

/// Who has too little.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Shortage {
    whose: String,
    left: u64,
    remedy: &'static str,
}

impl Headroom {
    /// Finds the cgroups that this process is in. One without /proc or cgroups has no limits to look at.
    pub fn of_this_process() -> Headroom {
        let own = text("/proc/thread-self/cgroup").unwrap_or_default();
        let mounts = text("/proc/thread-self/mountinfo").unwrap_or_default();
        Headroom { levels: levels(&own, &mounts) }
    }

    /// May `len` bytes more be taken? *Cost*: three system calls for each cgroup, twelve for one that has
    /// a limit.
    pub fn check(&self, len: u64) -> Result<(), Shortage> {
        for level in &self.levels {
            let Some((left, limit)) = level.left() else { continue };
            if len.saturating_add(reserve(limit)) > left {
                let whose = format!("the memory cgroup {}", level.directory);
                return Err(Shortage {
                    whose,
                    left,
                    remedy: "raise its limit (memory.max, `docker --memory`)",
                });
            }
        }
        let machine = text("/proc/meminfo").unwrap_or_default();
        let kibibytes = |key| number(&machine, key).map(|value| value.saturating_mul(1024));
        match (kibibytes("MemAvailable"), kibibytes("MemTotal")) {
            (Some(left), Some(total)) if len.saturating_add(reserve(total)) > left => {
                Err(Shortage { whose: "this machine".into(), left, remedy: "end what takes its memory" })
            }
            _ => Ok(()),
        }
    }
}

impl Level {
    /// What is left of the limit, page cache that can be dropped included, and the limit; `None` without.
    fn left(&self) -> Option<(u64, u64)> {
        let read = |name: &str| text(&format!("{}/{name}", self.directory)).ok();
        let value = |name| read(name)?.trim().parse::<u64>().ok();
        let limit = value(self.files.limit).filter(|limit| *limit < UNLIMITED)?;
        let usage = value(self.files.usage)?;
        let stat = read("memory.stat").unwrap_or_default();
        let cache = |key| number(&stat, key).unwrap_or_default();
        // Half of the active part, as the kernel's own MemAvailable assumes of what programs run from.
        let droppable = cache(self.files.inactive).saturating_add(cache(self.files.active) / 2);
        Some((limit.saturating_sub(usage.saturating_sub(droppable)), limit))
    }
}

fn reserve(limit: u64) -> u64 {
    (limit / RESERVE_PART).min(RESERVE_MOST)
}

/// The directories from the process's own cgroup up to where its hierarchy is mounted.
fn levels(own: &str, mounts: &str) -> Vec<Level> {
    let mut levels = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let files = match controllers {
            "" => &V2,
            list if list.split(',').any(|name| name == "memory") => &V1,
            _ => continue,
        };
        let Some((root, point)) = mounts.lines().find_map(|mount| mounted(mount, std::ptr::eq(files, &V1)))
        else {
            continue;
        };
        // What is mounted may be a part of the hierarchy: its root then stands in front of the path.
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or_default();
        let own = Path::new(point).join(below.trim_matches('/'));
        let up = own.ancestors().take_while(|directory| directory.starts_with(point)).take(LEVELS);
        levels.extend(up.filter_map(|directory| {
            let directory = directory.to_str()?.trim_end_matches('/').to_string();
            Some(Level { directory, files })
        }));
    }
    levels
}

/// The root and the mount point of a line of mountinfo, if it is of cgroups with memory.
fn mounted(line: &str, v1: bool) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let fits = match kind.next()? {
        "cgroup2" => !v1,
        "cgroup" => v1 && kind.nth(1)?.split(',').any(|option| option == "memory"),
        _ => false,
    };
    let mut place = place.split(' ').skip(3);
    fits.then_some((place.next()?, place.next()?))
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {} KiB left, part of it in reserve; {}", self.whose, self.left / 1024, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "25 22 0:22 / /proc rw - proc proc rw\n\
        30 28 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        31 28 0:27 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

    fn directories(own: &str, mounts: &str) -> Vec<String> {
        levels(own, mounts).into_iter().map(|level| level.directory).collect()
    }

    #[test]
    fn every_level_up_to_the_mount() {
        assert_eq!(
            directories("5:devices:/\n4:memory:/a/b\n0::/c\n", MOUNTS),
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/unified/c",
                "/sys/fs/cgroup/unified"
            ]
        );
    }

    #[test]
    fn a_container_sees_its_part_of_the_hierarchy() {
        let mounts = "30 28 0:26 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(directories("4:memory:/docker/x\n", mounts), ["/sys/fs/cgroup/memory"]);
        assert_eq!(
            directories("4:memory:/docker/x/y\n", mounts),
            ["/sys/fs/cgroup/memory/y", "/sys/fs/cgroup/memory"]
        );
        let own_namespace = "30 28 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(directories("0::/\n", own_namespace), ["/sys/fs/cgroup"]);
        assert!(directories("0::/\n4:memory:/a\n", "").is_empty());
    }

    #[test]
    fn what_is_left_of_a_limit_of_either_version() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        let left = |files| Level { directory: place.path().to_str().unwrap().into(), files }.left();
        assert_eq!((left(&V1), left(&V2)), (None, None), "a root has no limit, and no file for it");
        write(
            "memory.stat",
            "inactive_file 7\nactive_file 4\ntotal_inactive_file 70\ntotal_active_file 40\n",
        );
        write("memory.max", "max\n");
        write("memory.current", "600\n");
        assert_eq!(left(&V2), None);
        write("memory.max", "1000\n");
        assert_eq!(left(&V2), Some((409, 1000)), "600 are used, 7 of them and half of 4 can be dropped");
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "1100\n");
        assert_eq!(left(&V1), None);
        write("memory.limit_in_bytes", "1050\n");
        assert_eq!(left(&V1), Some((40, 1050)));
        write("memory.limit_in_bytes", "500\n");
        assert_eq!(left(&V1), Some((0, 500)), "more is used than a limit that was lowered");
    }

    #[test]
    fn a_machine_has_its_end() {
        let headroom = Headroom { levels: Vec::new() };
        assert_eq!(headroom.check(4096), Ok(()));
        let shortage = headroom.check(1 << 50).unwrap_err().to_string();
        assert!(shortage.starts_with("this machine has"), "{shortage}");
    }
}
