//! Two network namespaces with a cable between them, as two containers have.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::actor::Actor;
use crate::sight;

const SOON: Duration = Duration::from_secs(20);
/// The two ends of the cable.
const HERE: &str = "10.213.7.1";
const THERE: &str = "10.213.7.2";

/// With a directory that both mount they share memory, without one they use UDP.
pub fn run() -> Result<(), String> {
    let directory = Directory::new()?;
    let shared = format!("--directory {}", directory.0.display());
    for (what, option) in [("a directory that both have", shared.as_str()), ("no directory", "")] {
        // The other one starts in a namespace of its own and is told to go on when the cable is there.
        let part = format!("--reader --reliable --interface {THERE} {option}");
        let mut command = Command::new("unshare");
        let wait = "read -r _ && exec \"$@\"";
        command.args(["--net", "sh", "-c", wait, "sh", &own_path()?, "play"]).args(part.split_whitespace());
        let mut reader = Actor::spawn(&mut command);
        let cable = connect(reader.pid())?;
        reader.tell("go")?;
        let mut writer = Actor::start(&format!("--writer 1 --reliable --interface {HERE} {option}"));
        let arrives = |report: &crate::actor::Reply| report.number("received") > 1_000;
        let report = reader.await_report("samples arrive", SOON, arrives)?;
        let shares = sight::reads_foreign_lane(reader.pid());
        let received = report.number("received");
        println!("containers: with {what}: {received} samples, shared memory: {shares}");
        if shares == option.is_empty() || report.number("disorder") > 0 {
            return Err(format!("with {what} they do not use what they should: {}", writer.log()));
        }
        writer.ask("report")?;
        writer.end()?;
        reader.end()?;
        // It goes with the namespace of its other end, but some time later, and has the address that the next one gets.
        let _ = Command::new("ip").args(["link", "del", &cable]).stderr(Stdio::null()).status();
    }
    Ok(())
}

/// The path of this program, for a command that is not started by it.
fn own_path() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    path.to_str().map(str::to_owned).ok_or_else(|| "the path of this program is no text".to_owned())
}

/// Lays a cable from this namespace to that of a process. Returns the name of this end.
fn connect(pid: u32) -> Result<String, String> {
    let until = std::time::Instant::now() + SOON;
    let own = std::fs::read_link("/proc/self/ns/net").ok();
    // It has started when its namespace is another.
    while std::fs::read_link(format!("/proc/{pid}/ns/net")).ok() == own {
        if std::time::Instant::now() > until {
            return Err("the other namespace does not come".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let there = format!("nsenter --net=/proc/{pid}/ns/net ip");
    let name = format!("cable{}", pid % 1_000_000);
    for line in [
        format!("ip link add {name} type veth peer name {name}b netns {pid}"),
        format!("ip addr add {HERE}/24 dev {name}"),
        format!("ip link set {name} up"),
        format!("{there} link set lo up"),
        format!("{there} addr add {THERE}/24 dev {name}b"),
        format!("{there} link set {name}b up"),
    ] {
        let mut words = line.split(' ');
        let status = Command::new(words.next().unwrap_or_default()).args(words).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("`{line}` failed: it takes root and iproute2"));
        }
    }
    Ok(name)
}

/// A directory that goes with this value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Directory, String> {
        let path = std::env::temp_dir().join(format!("taut-faults-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
