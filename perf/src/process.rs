//! One process of a peer: its group, its lines, the end of its stderr, and its end.
//!
//! Every process leads a group of its own and is reaped only after the group was killed, so the group's
//! number cannot have passed to somebody else. Threads read its output, so nothing here waits for it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// A line of the contract has a few hundred bytes. Longer ones are somebody's core dump; a smaller bound
/// would cut long reasons of failure.
const LINE_MOST: u64 = 64 << 10;

/// Lines of stderr that are kept: the end of a backtrace. Fewer hide the cause behind it, more fill the
/// screen.
const TAIL_LINES: usize = 12;

/// Characters of such a line that are kept, for whoever prints binary data.
const TAIL_LINE_CHARACTERS: usize = 400;

/// How long the rest of the stderr of a process that has ended is waited for: it is in the pipe already.
const TAIL_LIMIT: Duration = Duration::from_millis(200);

/// What came from a process.
#[derive(Debug)]
pub enum Output {
    /// A line of stdout.
    Line(String),
    /// A line longer than any of the contract.
    TooLong,
    /// stdout was closed.
    Closed,
}

/// A process and its group; killed when dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    tail: Arc<Mutex<VecDeque<String>>>,
    tail_reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `command[0]`; its lines go to `lines` with `index`.
    pub fn spawn(
        command: &[OsString],
        index: usize,
        lines: SyncSender<(usize, Output)>,
    ) -> std::io::Result<Process> {
        let (program, arguments) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take();
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || read_lines(stdout, index, &lines));
        }
        let tail_reader = child.stderr.take().map(|stderr| {
            let tail = Arc::clone(&tail);
            std::thread::spawn(move || keep_tail(stderr, &tail))
        });
        Ok(Process { child, stdin, tail, tail_reader })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a word to it. That it does not listen any more is seen when its lines end.
    pub fn say(&mut self, word: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{word}\n").as_bytes());
        }
    }

    /// Tells it that nobody listens any more: by the contract it exits at once.
    pub fn abandon(&mut self) {
        drop(self.stdin.take());
    }

    /// How it ended, if it has; it is not reaped.
    pub fn ended(&self) -> Option<Ending> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.pid()), flags) {
            Ok(WaitStatus::Exited(_, code)) => Some(Ending::Code(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ending::Signal(signal)),
            _ => None,
        }
    }

    /// The last lines of its stderr, in one. Of a process that has ended all is read first, unless a
    /// child of its still holds the pipe.
    pub fn tail(&self) -> String {
        let end = Instant::now() + TAIL_LIMIT;
        let reading = || self.tail_reader.as_ref().is_some_and(|reader| !reader.is_finished());
        while self.ended().is_some() && reading() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Adds what it printed to stdout besides its events.
    pub fn note(&self, line: &str) {
        push(&self.tail, line);
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.abandon();
        // It fails only if no process of the group is left.
        let _ = killpg(self.pid(), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(Signal),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Code(code) => write!(f, "exited with code {code}"),
            Ending::Signal(signal) => write!(f, "crashed with {signal}"),
        }
    }
}

fn read_lines(stdout: impl Read, index: usize, lines: &SyncSender<(usize, Output)>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let output = match stdout.by_ref().take(LINE_MOST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => Output::Closed,
            Ok(read) if read as u64 == LINE_MOST && line.last() != Some(&b'\n') => Output::TooLong,
            Ok(_) => Output::Line(String::from_utf8_lossy(&line).trim().to_string()),
        };
        let last = !matches!(output, Output::Line(_));
        // The channel is bounded: who prints without end waits. Who is gone is not told.
        if lines.send((index, output)).is_err() || last {
            return;
        }
    }
}

fn keep_tail(stderr: impl Read, tail: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!(stderr.by_ref().take(LINE_MOST).read_until(b'\n', &mut line), Ok(read) if read > 0) {
        push(tail, String::from_utf8_lossy(&line).trim());
        line.clear();
    }
}

fn push(tail: &Mutex<VecDeque<String>>, line: &str) {
    if line.is_empty() {
        return;
    }
    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
    if tail.len() == TAIL_LINES {
        tail.pop_front();
    }
    let printable = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    tail.push_back(printable.take(TAIL_LINE_CHARACTERS).collect());
}
