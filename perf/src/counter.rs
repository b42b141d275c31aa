//! Counts the system calls of a process from outside, by the kernel's tracepoints: the same for each peer, whatever it
//! was built with. `perf` does it, which attaches to the threads that there are and to those that come.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::Bench;
use crate::namespace::run;
use crate::process::{Output, Process};
use crate::record::Calls;
use crate::session::Trouble;

const TRACING: &str = "/sys/kernel/tracing";

/// Every call, whatever it is.
const ALL: &str = "raw_syscalls:sys_enter";

/// The calls of each kind. Some machines have not all of them.
const SEND: &[&str] = &["sendto", "sendmsg", "sendmmsg", "write", "writev"];
const RECEIVE: &[&str] = &["recvfrom", "recvmsg", "recvmmsg", "read", "readv"];
const WAIT: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"];
const FUTEX: &[&str] = &["futex"];

/// Attaching to a process with a hundred threads takes a tenth of it on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What it says while it runs: a line for each word that it is told.
const LINES: usize = 16;

/// One process under count.
pub struct Counter {
    process: Process,
    lines: Receiver<(usize, Output)>,
    file: PathBuf,
    side: &'static str,
}

impl Counter {
    /// Attaches to a process, and counts from now.
    pub fn attach(bench: &Bench, side: &'static str, pid: u32) -> Result<Counter, Trouble> {
        let events = events()?;
        let file = bench.scratch().join(format!("calls-{side}"));
        // Its words come by stdin, its answers go to stdout.
        let command: Vec<OsString> = ["perf", "stat", "-x", ",", "-D", "-1", "--control", "fd:0,1", "-e"]
            .into_iter()
            .map(OsString::from)
            .chain([events.join(",").into(), "-p".into(), pid.to_string().into(), "-o".into()])
            .chain([file.clone().into()])
            .collect();
        let (sender, lines) = sync_channel(LINES);
        let process = Process::spawn(&command, 0, sender).map_err(|error| {
            Trouble::Absent(format!(
                "perf cannot start: {error}; it is in the package linux-perf or linux-tools"
            ))
        })?;
        let mut counter = Counter { process, lines, file, side };
        counter.tell("enable")?;
        Ok(counter)
    }

    /// Counts no more; what was counted.
    pub fn end(mut self) -> Result<Calls, Trouble> {
        self.tell("disable")?;
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT);
        while let Ok((_, output)) = self.lines.recv_timeout(ANSWER_LIMIT) {
            if matches!(output, Output::Closed) {
                break;
            }
        }
        let text = std::fs::read_to_string(&self.file)
            .map_err(|error| Trouble::Failed(format!("perf has left no counts: {error}")))?;
        let _ = std::fs::remove_file(&self.file);
        parse(self.side, &text).ok_or_else(|| Trouble::Failed(format!("perf has left no counts [{text}]")))
    }

    fn tell(&mut self, word: &str) -> Result<(), Trouble> {
        self.process.say(word);
        match self.lines.recv_timeout(ANSWER_LIMIT) {
            // It ends each answer with a zero, which is then the next line's.
            Ok((_, Output::Line(line))) if line.trim_matches('\0') == "ack" => Ok(()),
            _ => Err(Trouble::Absent(format!("perf counts no system calls here [{}]", self.process.tail()))),
        }
    }
}

/// The tracepoints that this machine has.
fn events() -> Result<Vec<String>, Trouble> {
    let has = |class: &str, event: &str| Path::new(TRACING).join("events").join(class).join(event).is_dir();
    if !has("raw_syscalls", "sys_enter") {
        // In the mount namespace of the run, if it has one.
        let _ = run(&format!("mount -t tracefs tracefs {TRACING}"));
    }
    if !has("raw_syscalls", "sys_enter") {
        return Err(Trouble::Absent("system calls are counted by root, in a kernel that traces them".into()));
    }
    let kinds = [SEND, RECEIVE, WAIT, FUTEX].concat();
    let there =
        kinds.into_iter().map(|name| format!("sys_enter_{name}")).filter(|name| has("syscalls", name));
    Ok(std::iter::once(ALL.to_string()).chain(there.map(|name| format!("syscalls:{name}"))).collect())
}

/// The counts of `perf stat -x ,`: `count,unit,event,...`. `None` where none is of all calls.
fn parse(side: &str, text: &str) -> Option<Calls> {
    let mut calls = Calls { side: side.to_string(), ..Calls::default() };
    let mut is_counted = false;
    for line in text.lines() {
        let mut fields = line.split(',');
        let (count, event) = (fields.next().and_then(|count| count.parse::<u64>().ok()), fields.nth(1));
        let (Some(count), Some(event)) = (count, event) else { continue };
        if event == ALL {
            calls.all += count;
            is_counted = true;
        }
        let name = event.strip_prefix("syscalls:sys_enter_").unwrap_or_default();
        for (kind, sum) in [
            (SEND, &mut calls.send),
            (RECEIVE, &mut calls.receive),
            (WAIT, &mut calls.wait),
            (FUTEX, &mut calls.futex),
        ] {
            if kind.contains(&name) {
                *sum += count;
            }
        }
    }
    is_counted.then_some(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_by_kind() {
        let text = "# started on some day\n\n2125,,raw_syscalls:sys_enter,2604193,100.00,,\n7,,syscalls:sys_enter_sendto,1,100.00,,\n\
                    3,,syscalls:sys_enter_writev,1,100.00,,\n5,,syscalls:sys_enter_recvmmsg,1,100.00,,\n\
                    2,,syscalls:sys_enter_epoll_wait,1,100.00,,\n<not counted>,,syscalls:sys_enter_poll,0,100.00,,\n\
                    4,,syscalls:sys_enter_futex,1,100.00,,\n";
        let counted = Calls { side: "writer".into(), all: 2_125, send: 10, receive: 5, wait: 2, futex: 4 };
        assert_eq!(parse("writer", text), Some(counted));
        assert_eq!(parse("writer", "# started on some day\n"), None, "it was ended before it wrote");
    }
}
