//! Who shares no memory, and what happens when there is none left.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use crate::actor::{Actor, Reply};
use crate::sight::{self, Holdings};

const SOON: Duration = Duration::from_secs(20);
/// A user and a group that own nothing.
const STRANGER: u32 = 54_321;
/// The writer's memory cgroup: a few MiB for the program, the rest for what it writes.
const GROUP_LIMIT: u64 = 64 << 20;

fn some(report: &Reply) -> bool {
    report.number("received") > 100
}

/// A process of another user is served by UDP, with a sentence in the log; one of an allowed group is not.
pub fn users() -> Result<(), String> {
    for (what, group) in [("another user", ""), ("a user of an allowed group", "--group 54321")] {
        let mut writer = Actor::start(&format!("--writer 1 --reliable {group}"));
        let mut command = Actor::command(&format!("--reader --reliable --group {}", own_group()));
        command.uid(STRANGER).gid(STRANGER);
        let mut reader = Actor::spawn(&mut command);
        let report = reader.await_report("samples arrive", SOON, some)?;
        let shares = sight::reads_foreign_lane(reader.pid());
        let log = format!("{}{}", writer.log(), reader.log());
        let sentence = log.lines().find(|line| line.contains("no shared memory with a participant"));
        println!("users: a reader of {what}: {} samples, shared memory: {shares}", report.number("received"));
        println!("  the log says: {}", sentence.unwrap_or("nothing"));
        let (disorder, allowed) = (report.number("disorder"), !group.is_empty());
        if disorder > 0 || shares != allowed || sentence.is_some() == allowed {
            return Err(format!("a reader of {what} is not served as it should be: {log}"));
        }
        let doubts = writer.ask("report")?.number("doubts") + report.number("doubts");
        if !allowed && doubts == 0 {
            return Err("the refusal is not counted".to_owned());
        }
        writer.end()?;
        reader.end()?;
    }
    Ok(())
}

fn own_group() -> u32 {
    nix::unistd::getegid().as_raw()
}

/// A writer whose memory cgroup is full goes on, by UDP or with OUT_OF_RESOURCES.
pub fn memory() -> Result<(), String> {
    let Some(group) = Cgroup::with_limit(GROUP_LIMIT) else {
        return Err("there is no memory cgroup to make here: it takes root".to_owned());
    };
    let mut writer = Actor::start(
        "--writer 1 --reliable --sizes 1000000 --period-us 2000 --blocking-ms 1000 --max-samples 8",
    );
    writer.ask("rest")?;
    group.take(writer.pid())?;
    // It keeps what it takes, so that the writer finds no slot that it could use again.
    let mut hoarder = Actor::start("--reader --reliable --hoard 150");
    hoarder.await_report("they have met", SOON, |report| report.number("matched") == 1)?;
    writer.ask("go")?;
    let taken = hoarder.await_report("a hoard was taken", SOON, |report| report.number("received") >= 300);
    if let Some(status) = writer.wait(Duration::ZERO) {
        let killed = group.killed();
        return Err(format!(
            "the writer ended by {status}, {killed} killed for want of memory: {}",
            writer.log()
        ));
    }
    let report = taken?;
    let (sent, lane) = (writer.ask("report")?, Holdings::of(writer.pid()).lane_bytes);
    println!(
        "memory: limit {} MiB, the lane took {} MiB; {} samples of 1 MB sent, {} refused, {} arrived, {} out of order",
        GROUP_LIMIT >> 20,
        lane >> 20,
        sent.number("sent"),
        sent.number("refused"),
        report.number("received"),
        report.number("disorder"),
    );
    let killed = group.killed();
    println!("  killed for want of memory in its group: {killed}");
    if report.number("disorder") > 0 || report.text("wrong") != "0" {
        return Err("what was sent did not arrive in order and whole".to_owned());
    }
    if !(GROUP_LIMIT / 4..GROUP_LIMIT).contains(&lane) {
        return Err("the lane did not come to the limit, or beyond it".to_owned());
    }
    writer.end()?;
    hoarder.end()?;
    if killed == 0 { Ok(()) } else { Err("a process was killed for want of memory".to_owned()) }
}

/// A memory cgroup that goes when it is dropped.
struct Cgroup {
    directory: String,
}

impl Cgroup {
    fn with_limit(bytes: u64) -> Option<Cgroup> {
        let v1 = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
        let v2 = ("/sys/fs/cgroup", "memory.max");
        [v1, v2].into_iter().find_map(|(mount, file)| {
            let directory = format!("{mount}/taut-faults-{}", std::process::id());
            std::fs::create_dir(&directory).ok()?;
            let group = Cgroup { directory };
            std::fs::write(format!("{}/{file}", group.directory), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    fn take(&self, pid: u32) -> Result<(), String> {
        let file = format!("{}/cgroup.procs", self.directory);
        std::fs::write(file, pid.to_string()).map_err(|error| format!("the writer joins its group: {error}"))
    }

    /// How many of it the kernel has killed.
    fn killed(&self) -> u64 {
        let read = |name: &str| std::fs::read_to_string(format!("{}/{name}", self.directory)).ok();
        let text = read("memory.events").or_else(|| read("memory.oom_control")).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let until = std::time::Instant::now() + SOON;
        while std::fs::remove_dir(&self.directory).is_err() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
