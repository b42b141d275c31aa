//! What the tests with real processes share: children that play a role, and waits with a limit.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use taut_base::{EntityId, Guid, GuidPrefix};
use taut_port_shm::{Connection, Listener, Message, Received, SendError};

/// No wait of a test is longer.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The variable that tells a child its role.
const ROLE: &str = "TAUT_SHM_TEST_ROLE";
/// In front of each line that a child says, among those of the test harness.
const SAYS: &str = "child: ";

/// The same test program in another process, which plays a role in its test named `child`. It ends when
/// its standard input does, at the latest when this is dropped.
pub struct Role {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

/// The role of this process and what goes with it, if it is a child.
pub fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    Some(role.split(' ').map(str::to_string).collect())
}

/// Tells the parent.
pub fn say(what: impl std::fmt::Display) {
    println!("\n{SAYS}{what}");
}

/// Waits until the parent says a line, or is gone: then the child's part is over.
pub fn hear() {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap_or_default() == 0 {
        std::process::exit(0);
    }
}

impl Role {
    pub fn start(role: impl std::fmt::Display) -> Role {
        Role::start_with(role, &[])
    }

    /// The same with these variables.
    pub fn start_with(role: impl std::fmt::Display, variables: &[(&str, &str)]) -> Role {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role.to_string())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().expect("it is piped"));
        Role { process, stdin, lines: BufReader::new(stdout) }
    }

    /// Runs a role that is played by the child alone, and fails if it does.
    pub fn alone(role: impl std::fmt::Display) {
        let mut child = Role::start(&role);
        assert_eq!(child.hear(), "done", "{role}");
        assert!(child.end().success(), "{role}");
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next line that the child says.
    pub fn hear(&mut self) -> String {
        loop {
            if self.lines.buffer().is_empty() {
                assert!(await_ready(self.lines.get_ref().as_fd(), LIMIT), "the child says nothing");
            }
            let mut line = String::new();
            let count = self.lines.read_line(&mut line).expect("a line");
            assert!(count > 0, "the child has ended: {:?}", self.process.wait());
            match line.trim_end().strip_prefix(SAYS) {
                Some(said) => return said.to_string(),
                None => print!("{line}"),
            }
        }
    }

    pub fn say(&mut self) {
        self.stdin.as_mut().expect("it listens").write_all(b"go\n").expect("the child listens");
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is killed");
    }

    pub fn end(&mut self) -> std::process::ExitStatus {
        self.stdin = None;
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "the child does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A participant that nobody else on the host is.
pub fn unused_prefix() -> GuidPrefix {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut prefix = [0x5e; 12];
    prefix[..4].copy_from_slice(&std::process::id().to_be_bytes());
    prefix[4..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    GuidPrefix(prefix)
}

/// A prefix as a child is told it.
pub fn parse_prefix(text: &str) -> GuidPrefix {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex");
    GuidPrefix(std::array::from_fn(byte))
}

pub fn pair() -> (Guid, Guid) {
    let prefix = GuidPrefix([4; 12]);
    (Guid::new(prefix, EntityId::user(1, true, false)), Guid::new(prefix, EntityId::user(2, false, false)))
}

/// Waits until the descriptor is readable or hung up; whether it is.
pub fn await_ready(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    !await_events(fd, limit).is_empty()
}

/// What has happened at the descriptor within the limit.
pub fn await_events(fd: BorrowedFd<'_>, limit: Duration) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    poll(&mut fds, Some(&limit)).expect("poll");
    fds[0].revents()
}

pub fn await_accept(listener: &mut Listener) -> Connection {
    assert!(await_ready(listener.fd(), LIMIT), "nobody connects");
    let connection = listener.accept().expect("accept").expect("somebody waits");
    connection.welcome();
    connection
}

/// Sends what has descriptors, as soon as the peer takes them.
pub fn send_welcome(connection: &Connection, message: &Message, fds: &[BorrowedFd<'_>]) {
    await_that("it is welcome", || match connection.send(message, fds) {
        Err(SendError::NotWelcome) => false,
        sent => sent.map(|()| true).expect("it is sent"),
    });
}

/// The next message, with its descriptors.
pub fn await_message(connection: &Connection) -> (Message, Vec<std::os::fd::OwnedFd>) {
    assert!(await_ready(connection.fd(), LIMIT), "nothing comes");
    match connection.receive() {
        Received::Message(message, fds) => (message, fds),
        other => panic!("no message: {other:?}"),
    }
}

/// Waits, with a limit, until something is so that nothing tells about.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        std::thread::yield_now();
    }
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// Is this process root? A test that cannot do without says that it is left out; with `CI=true` that is
/// a failure.
pub fn is_root(name: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        left_out(name, "it needs root");
    }
    root
}

pub fn left_out(name: &str, why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{name}: {why}");
    println!("LEFT OUT: {name}: {why}");
}
