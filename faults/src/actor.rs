//! A process that plays a part, as the one that started it sees it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Longest wait for an answer. Lower and a machine that is busy fails a run, higher and one that hangs takes
/// long to be found.
const ANSWER: Duration = Duration::from_secs(20);

/// A child. Killed on drop, which does not wait for its end: to leave a multicast group it needs a lock of the kernel's, one for
/// all network namespaces, which others may hold for long.
pub struct Actor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
}

/// What it has answered.
pub struct Reply(BTreeMap<String, String>);

impl Reply {
    pub fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.parse().unwrap_or(0)))
    }
}

impl Actor {
    /// Starts this program with a part.
    pub fn start(part: &str) -> Actor {
        Actor::spawn(&mut Actor::command(part))
    }

    /// This program with a part, to be changed before it is spawned.
    pub fn command(part: &str) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg("play").args(part.split_whitespace());
        command
    }

    pub fn spawn(command: &mut Command) -> Actor {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("RUST_LOG", "warn");
        let mut child = command.spawn().expect("a child can be started");
        let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || keep(err, &kept));
        Actor { stdin: child.stdin.take(), child, lines, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks and waits for the answer.
    ///
    /// *Errors*: it has ended, or does not answer.
    pub fn ask(&mut self, what: &str) -> Result<Reply, String> {
        self.tell(what)?;
        let line = self.lines.recv_timeout(ANSWER);
        let line = line.map_err(|_| format!("no answer to {what}: {}", self.log()))?;
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        Ok(Reply(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }

    /// Writes a line to its standard input. *Errors*: it has ended.
    pub fn tell(&mut self, what: &str) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("it was told to end")?;
        writeln!(stdin, "{what}").map_err(|_| format!("it does not hear {what}: {}", self.log()))
    }

    /// Asks for a report until it fits. *Errors*: it never did.
    pub fn await_report(
        &mut self,
        what: &str,
        limit: Duration,
        fits: impl Fn(&Reply) -> bool,
    ) -> Result<Reply, String> {
        let until = Instant::now() + limit;
        loop {
            let reply = self.ask("report")?;
            if fits(&reply) {
                return Ok(reply);
            }
            if Instant::now() > until {
                return Err(format!("waited {limit:?} until {what}: {:?}", reply.0));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Has it stand still, all of its threads: on a busy machine some go on after the signal.
    pub fn stop(&self) -> Result<(), String> {
        self.signal(Signal::SIGSTOP);
        let child = Pid::from_raw(self.child.id() as i32);
        let until = Instant::now() + ANSWER;
        while Instant::now() < until {
            match waitid(Id::Pid(child), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
                Ok(WaitStatus::Stopped(..)) => return Ok(()),
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        Err(format!("it does not stand still: {}", self.log()))
    }

    /// Waits for its end. `None` if it does not come.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Tells it to end. *Errors*: it did not, or not in peace.
    pub fn end(mut self) -> Result<(), String> {
        self.stdin = None;
        match self.wait(ANSWER) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("it ended with {status}: {}", self.log())),
            None => Err("it does not end".to_owned()),
        }
    }

    /// What it has written to its standard error.
    pub fn log(&self) -> String {
        self.log.lock().expect("no panic").clone()
    }
}

/// Was it struck at its point?
pub fn was_struck(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGKILL as i32)
}

/// Keeps the last of what comes, at most some 64 KiB.
fn keep(mut from: impl Read, log: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let mut log = log.lock().expect("no panic");
        if log.len() > 64 << 10 {
            log.clear();
        }
        log.push_str(&String::from_utf8_lossy(&buffer[..len]));
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        if matches!(self.child.try_wait(), Ok(None)) {
            let child = Pid::from_raw(self.child.id() as i32);
            std::thread::spawn(move || waitid(Id::Pid(child), WaitPidFlag::WEXITED));
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// The first process of a namespace ends once all others of it have, and were waited for.
    #[test]
    fn who_was_killed_and_does_not_end_holds_nobody_up() {
        let start = || Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child can be started");
        // A thread whose children have another namespace starts no others.
        let started =
            std::thread::spawn(move || unshare(CloneFlags::CLONE_NEWPID).map(|()| (start(), start())));
        // It takes root.
        let Ok((child, mut other)) = started.join().expect("no panic") else { return };
        let first = Actor { child, stdin: None, lines: channel().1, log: Arc::default() };
        let (tell, told) = channel();
        std::thread::spawn(move || {
            drop(first);
            tell.send(())
        });
        let goes_on = told.recv_timeout(ANSWER);
        // At the end of its input it would end by itself.
        let input = other.stdin.take();
        let ended = other.wait().expect("it is ours");
        drop(input);
        assert!(was_struck(ended) && goes_on.is_ok(), "{goes_on:?}");
    }
}
