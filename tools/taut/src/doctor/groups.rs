//! Limits of the control groups that this process is in, of both versions: what a container, a service or a
//! batch system gives it of processors and memory.

use procfs::FromBufRead;
use procfs::ProcessCGroups;
use procfs::process::MountInfos;

use super::finding::{Finding, Lasts, Mend};
use super::system::{System, bytes};

/// Levels of groups that are looked at. Container engines nest four or five.
const LEVELS: usize = 16;
/// The kernel's "no limit" of version 1 is a little below 2^63: whatever is above 2^60 is none.
const UNLIMITED: u64 = 1 << 60;
/// Taut takes memory for readers of this machine only as long as this part of a limit stays untouched, and at most
/// so many bytes.
const RESERVE_PART: u64 = 4;
const RESERVE_MOST: u64 = 256 << 20;

/// All checks of this module.
pub fn check(system: &System) -> Vec<Finding> {
    vec![quota(system), memory(system)]
}

/// A directory of a group; its files are named as the version has it.
struct Level {
    directory: String,
    second: bool,
}

impl Level {
    /// The file of this level's version.
    fn file(&self, first: &str, second: &str) -> String {
        format!("{}/{}", self.directory, if self.second { second } else { first })
    }
}

/// The groups with a controller, from the process's own up to where they are mounted.
fn levels(system: &System, controller: &str) -> Vec<Level> {
    let read = |path: &str| system.text(path).unwrap_or_default();
    let groups = ProcessCGroups::from_buf_read(read("/proc/self/cgroup").as_bytes())
        .map_or_else(|_| Vec::new(), |all| all.0);
    let mounts = MountInfos::from_buf_read(read("/proc/self/mountinfo").as_bytes())
        .map_or_else(|_| Vec::new(), |all| all.0);
    let mut levels = Vec::new();
    for group in groups {
        let second = group.controllers.is_empty();
        if !second && !group.controllers.iter().any(|name| name == controller) {
            continue;
        }
        let mount = mounts.iter().find(|mount| match mount.fs_type.as_str() {
            "cgroup2" => second,
            "cgroup" => !second && mount.super_options.contains_key(controller),
            _ => false,
        });
        let Some(mount) = mount else { continue };
        // What is mounted may be a part of the hierarchy: its root then stands in front of the path.
        let below = group.pathname.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or_default();
        let own = mount.mount_point.join(below.trim_matches('/'));
        let up =
            own.ancestors().take_while(|directory| directory.starts_with(&mount.mount_point)).take(LEVELS);
        levels.extend(up.filter_map(|directory| {
            let directory = directory.to_str()?.trim_end_matches('/').to_owned();
            Some(Level { directory, second })
        }));
    }
    levels
}

/// The file by which the own group gives its threads no time under SCHED_FIFO, whatever their privileges are. Only
/// kernels with groups of real-time threads have it, and only version 1.
pub fn without_real_time(system: &System) -> Option<String> {
    let own = levels(system, "cpu").into_iter().find(|level| !level.second)?;
    let path = format!("{}/cpu.rt_runtime_us", own.directory);
    (system.number::<i64>(&path).ok()? == 0).then_some(path)
}

/// Microseconds of processors in each period, and the period; `None` without a quota.
fn quota_of(system: &System, level: &Level) -> Option<(u64, u64)> {
    let text = system.text(&level.file("cpu.cfs_quota_us", "cpu.max")).ok()?;
    let mut words = text.split_whitespace();
    let quota = words.next()?.parse().ok()?;
    let period = match words.next() {
        Some(period) => period.parse().ok()?,
        None => system.number(&level.file("cpu.cfs_period_us", "cpu.max.period")).ok()?,
    };
    (period > 0).then_some((quota, period))
}

fn quota(system: &System) -> Finding {
    let name = "processor quota";
    let levels = levels(system, "cpu");
    let limited = levels.iter().filter_map(|level| Some((level, quota_of(system, level)?)));
    let share = |(quota, period): (u64, u64)| quota as f64 / period as f64;
    let Some((level, own)) = limited.min_by(|(_, a), (_, b)| share(*a).total_cmp(&share(*b))) else {
        return Finding::good(name, "none");
    };
    let (quota, period) = own;
    let stopped = system.text(&format!("{}/cpu.stat", level.directory)).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
        line.trim().parse::<u64>().ok()
    });
    let stopped = stopped.map_or_else(String::new, |count| format!("; stopped {count} times so far"));
    let seen = format!("{:.1} processors of {}{stopped}", share(own), level.directory);
    let cost = format!(
        "once the threads of the group have run {} ms together, all of them stand still until the next {} ms begin, \
         those under SCHED_FIFO excepted",
        quota / 1_000,
        period / 1_000
    );
    let file = level.file("cpu.cfs_quota_us", "cpu.max");
    let (none, back) = if level.second {
        ("max".to_owned(), format!("{quota} {period}"))
    } else {
        ("-1".to_owned(), quota.to_string())
    };
    let mend =
        Mend::by_hand(format!("echo {none} > {file}"), Lasts::UntilReboot, format!("echo {back} > {file}"));
    Finding::worth_changing(name, seen, cost).mend(mend)
}

/// What is left of the limit, page cache that can be dropped included, and the limit; `None` without.
fn memory_of(system: &System, level: &Level) -> Option<(u64, u64)> {
    let value = |first, second| system.number::<u64>(&level.file(first, second)).ok();
    let limit = value("memory.limit_in_bytes", "memory.max").filter(|limit| *limit < UNLIMITED)?;
    let used = value("memory.usage_in_bytes", "memory.current")?;
    let stat = system.text(&format!("{}/memory.stat", level.directory)).unwrap_or_default();
    let key = if level.second { "inactive_file " } else { "total_inactive_file " };
    let dropped = stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0);
    Some((limit.saturating_sub(used.saturating_sub(dropped)), limit))
}

fn memory(system: &System) -> Finding {
    let name = "memory of the group";
    let levels = levels(system, "memory");
    let limited = levels.iter().filter_map(|level| Some((level, memory_of(system, level)?)));
    let Some((level, (left, limit))) = limited.min_by_key(|(_, (left, _))| *left) else {
        return Finding::good(name, "no limit");
    };
    let seen = format!("{} of {} left", bytes(left), bytes(limit));
    if left >= (limit / RESERVE_PART).min(RESERVE_MOST) {
        return Finding::good(name, seen);
    }
    let file = level.file("memory.limit_in_bytes", "memory.max");
    let cost = "writers get no more shared memory, and their samples for readers of this machine go by UDP; who takes \
                the rest is killed";
    Finding::worth_changing(name, format!("{seen} in {}", level.directory), cost).mend(Mend::by_hand(
        format!("echo {} > {file}", limit.saturating_mul(2)),
        Lasts::UntilReboot,
        format!("echo {limit} > {file}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    const FIRST: &str = "30 28 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                         31 28 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const SECOND: &str = "30 28 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_tightest_quota_of_either_version() {
        let base = [("/proc/self/cgroup", "0::/docker/x/own\n"), ("/proc/self/mountinfo", SECOND)];
        let of = |own: &str, up: &str| {
            let limits = [("/sys/fs/cgroup/own/cpu.max", own), ("/sys/fs/cgroup/cpu.max", up)];
            let stat = [("/sys/fs/cgroup/cpu.stat", "nr_periods 9\nnr_throttled 4\n")];
            let (_directory, system) = tree(&[&base[..], &limits, &stat].concat());
            quota(&system)
        };
        assert_eq!(of("max 100000\n", "max 100000\n").state, State::Good);
        let found = of("200000 100000\n", "50000 100000\n");
        assert_eq!(found.seen, "0.5 processors of /sys/fs/cgroup; stopped 4 times so far");
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, "echo max > /sys/fs/cgroup/cpu.max");
        assert_eq!(mend.undo, "echo 50000 100000 > /sys/fs/cgroup/cpu.max");

        let place = "/sys/fs/cgroup/cpu/a";
        let (quota_path, period_path) =
            (format!("{place}/cpu.cfs_quota_us"), format!("{place}/cpu.cfs_period_us"));
        let first = |own: &str| {
            let files = [
                ("/proc/self/cgroup", "2:cpu,cpuacct:/a\n0::/a\n"),
                ("/proc/self/mountinfo", FIRST),
                (&quota_path, own),
                (&period_path, "20000\n"),
            ];
            let (_directory, system) = tree(&files);
            quota(&system)
        };
        assert_eq!(first("-1\n").state, State::Good);
        assert_eq!(first("10000\n").mend.unwrap().undo, format!("echo 10000 > {quota_path}"));
    }

    #[test]
    fn what_is_left_of_the_memory() {
        let of = |used: &str| {
            let place = "/sys/fs/cgroup/memory/a";
            let files = ["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"]
                .map(|name| format!("{place}/{name}"));
            let (_directory, system) = tree(&[
                ("/proc/self/cgroup", "4:memory:/a\n"),
                ("/proc/self/mountinfo", FIRST),
                (&files[0], "67108864\n"),
                (&files[1], used),
                (&files[2], "total_inactive_file 1048576\n"),
            ]);
            memory(&system)
        };
        assert_eq!(of("51380224\n").state, State::Good);
        assert_eq!(of("51380224\n").seen, "16 MiB of 64 MiB left");
        let found = of("60817408\n");
        assert_eq!(
            (found.state, found.seen.as_str()),
            (State::WorthChanging, "7 MiB of 64 MiB left in /sys/fs/cgroup/memory/a")
        );
        assert_eq!(memory(&tree(&[]).1).state, State::Good);
    }
}
