//! The place where a run happens: a network, a process table and a `/dev/shm` of its own.
//!
//! The program starts itself again inside of new namespaces and waits outside. Nothing that a peer sends
//! can leave, and when the inner program ends, by whatever cause, the kernel ends every process that it
//! started: whoever ignores the end of its stdin too. The outer one passes on the wish to end by closing
//! the inner one's stdin, which also happens when it is killed itself.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::args::Net;
use crate::machine::receive_limit;
use crate::{Stop, Wrong};

/// Tells the inner program that it is there, the number of the outer one, and [`receive_limit`] if that one sees it.
const INSIDE: &str = "TAUT_PERF_INSIDE";

/// What the run has one of its own of.
const SHARED_MEMORY: &str = "/dev/shm";

/// How often the outer program looks at the inner one and at Ctrl-C. A user does not notice it.
const LOOK: Duration = Duration::from_millis(50);

/// How long the inner program may take to end after it was asked: each of its waits ends at once, so this
/// is for the last table of a loaded machine. After it everything is killed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// On which side of the namespaces the program is.
pub enum Side {
    /// Outside, and all is over: the exit code of the inner program.
    Outside(u8),
    /// Inside: where it may keep files that are to vanish, and what a reader must know.
    Inside {
        /// A directory of the run's own.
        scratch: PathBuf,
        /// What differs from a run with all namespaces.
        notes: Vec<String>,
    },
}

/// The number of the process that the user has started.
pub fn outer_process() -> String {
    told(0).unwrap_or_else(|| std::process::id().to_string())
}

/// The limit of receive buffers as the process sees it that the user has started.
pub fn outer_receive_limit() -> Option<u64> {
    told(1)?.parse().ok()
}

/// A word of what the outer program has told.
fn told(at: usize) -> Option<String> {
    std::env::var(INSIDE).ok()?.split(' ').nth(at).map(str::to_string)
}

/// Would a file at this path go with the run?
pub fn is_replaced(path: &Path) -> bool {
    // From where the program was started, a path leads to what was there before.
    let directory = path.is_absolute().then(|| path.parent()?.canonicalize().ok()).flatten();
    directory.is_some_and(|directory| directory.starts_with(SHARED_MEMORY))
}

/// Goes inside; returns twice, in two processes.
pub fn enter(net: Net, stop: Stop) -> Result<Side, Wrong> {
    if std::env::var_os(INSIDE).is_some() {
        return inside(net, stop);
    }
    let Some(flags) = possible(net) else {
        if net == Net::Private {
            return Err(Wrong::new(
                "this system makes no network namespace for this user: run it as root, or with --net host",
            ));
        }
        let notes = vec!["no process namespace".to_string()];
        return Ok(Side::Inside { scratch: std::env::temp_dir(), notes });
    };
    let program = std::env::current_exe().map_err(|error| Wrong(format!("this program's file: {error}")))?;
    let limit = receive_limit().map_or(String::new(), |limit| format!(" {limit}"));
    let child = Command::new("unshare")
        .args(flags)
        .arg("--")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, format!("{}{limit}", std::process::id()))
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| Wrong(format!("unshare: {error}")))?;
    Ok(Side::Outside(supervise(child, stop)))
}

/// The flags of `unshare` that work here.
fn possible(net: Net) -> Option<Vec<&'static str>> {
    let mut flags = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        flags.extend(["--user", "--map-root-user"]);
    }
    if net == Net::Private {
        flags.push("--net");
    }
    flags.extend(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    let probe = Command::new("unshare")
        .args(&flags)
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success()).then_some(flags)
}

/// Waits for the inner program.
fn supervise(mut child: Child, stop: Stop) -> u8 {
    let mut asked: Option<Instant> = None;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            Ok(None) => {}
            Err(_) => return 1,
        }
        if (stop.requested)() && asked.is_none() {
            drop(child.stdin.take());
            asked = Some(Instant::now());
        }
        if asked.is_some_and(|asked| asked.elapsed() > END_LIMIT) {
            let _ = child.kill();
            let _ = child.wait();
            return 1;
        }
        std::thread::sleep(LOOK);
    }
}

fn inside(net: Net, stop: Stop) -> Result<Side, Wrong> {
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().take(1).read_to_end(&mut rest);
        (stop.request)();
        std::thread::sleep(END_LIMIT);
        std::process::exit(1);
    });
    if net == Net::Private {
        for command in ["ip link set lo up", "ip link set lo multicast on", "ip route add 224.0.0.0/4 dev lo"]
        {
            run(command).map_err(|reason| Wrong(format!("{command}: {reason}")))?;
        }
    }
    let mut notes = Vec::new();
    if net == Net::Host {
        notes.push("network of the host".to_string());
    }
    let scratch = match run("mount -t tmpfs -o mode=1777 tmpfs /dev/shm") {
        Ok(()) => PathBuf::from(SHARED_MEMORY),
        Err(reason) => {
            notes.push(format!("/dev/shm of the host ({reason})"));
            std::env::temp_dir()
        }
    };
    Ok(Side::Inside { scratch, notes })
}

/// Runs a program of the system that ends at once; `Err` is what it says.
pub fn run(command: &str) -> Result<(), String> {
    run_words(&command.split_whitespace().map(OsString::from).collect::<Vec<_>>())
}

/// The same, of words that may have spaces in them.
pub fn run_words(words: &[OsString]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
}
