//! Runs the `taut` command for the tests, on the loopback interface, without the user's settings.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// The command, on loopback and in a domain; `arguments` as a user writes them.
pub fn taut(domain: u32, arguments: &str) -> Command {
    let mut command = bare(arguments);
    command.args(["--interface", "lo", "--domain", &domain.to_string()]);
    command
}

/// The command with these arguments only.
pub fn bare(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taut"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TAUT_")) {
        command.env_remove(name);
    }
    command.env_remove("DEMO_SECONDS").env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    command.env("TAUT_DEMO_PEERS", "/nonexistent");
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// The command on loopback, on a terminal of this kind and with so many columns.
pub fn on_terminal(kind: &str, columns: u16, arguments: &str) -> Command {
    let taut = env!("CARGO_BIN_EXE_taut");
    let mut script = Command::new("script");
    script.args([
        "-qec",
        &format!("stty rows 24 cols {columns}; {taut} --interface lo {arguments}"),
        "/dev/null",
    ]);
    script.env("TERM", kind).stdin(Stdio::null());
    script
}

/// Is strace here, by which a test kills at the call that it chooses?
pub fn has_strace() -> bool {
    let is_here = Command::new("strace").arg("-V").output().is_ok_and(|ended| ended.status.success());
    if !is_here {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs strace");
        println!("LEFT OUT: it needs strace");
    }
    is_here
}

/// A pipe that takes nothing more until somebody reads.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while writer.write(&[b'\n'; 4_096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
}

/// What a command that has ended says.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ended {
    command.output().unwrap().into()
}

/// So often a command that looks for a while is run anew, each of them a second or more.
const LOOKS: usize = 20;

/// Runs a command that looks for a while until it has seen what is there, on a machine that may be busy meanwhile. Returns
/// what it said last.
pub fn run_until(command: impl Fn() -> Command, has_seen: impl Fn(&Ended) -> bool) -> Ended {
    let mut looks = (1..LOOKS).map(|_| run(command()));
    looks.find(has_seen).unwrap_or_else(|| run(command()))
}

/// Runs a command with these times to wait, in seconds, until it has been told what it waits for. Returns the time with
/// what it said last.
pub fn run_longer(
    command: impl Fn(&str) -> Command,
    is_told: impl Fn(&Ended) -> bool,
) -> (&'static str, Ended) {
    /// Longer each time.
    const WAITS: [&str; 5] = ["0.5", "1", "4", "15", "60"];
    let [first, longer @ ..] = WAITS;
    let mut last = (first, run(command(first)));
    for wait in longer {
        if is_told(&last.1) {
            break;
        }
        last = (wait, run(command(wait)));
    }
    last
}

/// A command that runs; killed when dropped.
pub struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub fn start(command: Command) -> Running {
        Running::start_into(command, Stdio::piped())
    }

    /// What goes to stdout goes there.
    pub fn start_into(mut command: Command, stdout: impl Into<Stdio>) -> Running {
        let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of stdout; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next line of stderr; empty at its end.
    pub fn error_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Nobody reads stdout any more.
    pub fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Sends a signal to this process.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends by itself, as [`Running::end`].
    pub fn ends_within(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end()
    }

    /// Reads what it still says, until its end.
    pub fn end(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(mut rest) = self.stdout.take() {
            rest.read_to_string(&mut stdout).unwrap();
        }
        self.stderr.read_to_string(&mut stderr).unwrap();
        Ended { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The objects of a text, one in each line.
pub fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}
