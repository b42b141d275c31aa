//! The programs of `interop/` that were built with other vendors' DDS: they join the demo if they are
//! there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taut::Config;

use super::children::Owned;
use super::{RATE_HZ, TOPIC};

/// The variable that names the directory of the programs.
const VARIABLE: &str = "TAUT_DEMO_PEERS";
/// The programs, and whose they are.
const PROGRAMS: [(&str, &str); 2] = [("Cyclone DDS", "peer-cyclone"), ("Fast DDS", "peer-fastdds")];
/// What a peer's publisher writes: instances of its own.
const INSTANCES: u64 = 1;
/// More than any demo sends, and what the programs can count (their `SEQ_LIMIT`).
const COUNT: u64 = (1 << 22) - 1;
/// How often a program that fails is started again; one that does so every time stays away.
const MAX_RESTARTS: u32 = 3;
/// How much longer than the demo a program may run, to join and to leave.
const GRACE_S: u64 = 20;

/// A program that is there.
#[derive(Clone)]
pub struct Peer {
    /// Whose DDS it was built with.
    pub vendor: &'static str,
    program: PathBuf,
}

/// The programs in the directory that the environment names, else next to the repository that this
/// command was built in.
pub fn find() -> Vec<Peer> {
    let directory = std::env::var_os(VARIABLE).map(PathBuf::from).or_else(beside_the_program);
    let Some(directory) = directory else { return Vec::new() };
    let there = |(vendor, name): (&'static str, &str)| {
        let program = directory.join(name);
        program.is_file().then_some(Peer { vendor, program })
    };
    PROGRAMS.into_iter().filter_map(there).collect()
}

/// `target/release/taut` is three below the repository.
fn beside_the_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let build = |directory: &Path| directory.join("interop/build");
    let ancestors = program.ancestors().skip(1).take(4).map(build);
    let current = std::env::current_dir().ok();
    ancestors.chain(current.as_deref().map(build)).find(|directory| directory.is_dir())
}

impl Peer {
    fn command(&self, role: &str, config: &Config, seconds: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(role).args(["--type", "metric", "--topic", TOPIC]);
        command.args(["--reliability", "reliable", "--history", "keep-all"]);
        command.arg("--domain").arg(config.domain_id.to_string());
        command.arg("--timeout").arg((seconds + GRACE_S).to_string());
        if let Some(interface) = config.interfaces.first() {
            command.arg("--interface").arg(interface);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts its publisher, which begins when it has found so many readers.
    pub fn publisher(&self, config: &Config, seconds: u64, readers: usize) -> std::io::Result<Running> {
        let mut command = self.command("pub", config, seconds);
        command.arg("--count").arg((seconds * RATE_HZ).to_string());
        command.arg("--rate").arg(RATE_HZ.to_string());
        command.arg("--instances").arg(INSTANCES.to_string());
        command.arg("--wait-matched").arg(readers.to_string());
        command.stdout(Stdio::null());
        Running::start(self.vendor, command)
    }

    /// Starts its subscriber: what it prints goes into the view.
    pub fn subscriber(&self, config: &Config, seconds: u64) -> std::io::Result<Running> {
        let mut command = self.command("sub", config, seconds);
        command.arg("--count").arg(COUNT.to_string());
        command.stdout(Stdio::piped());
        Running::start(self.vendor, command)
    }
}

/// A program of another vendor that runs.
pub struct Running {
    /// Whose DDS it was built with.
    pub vendor: &'static str,
    command: Command,
    child: Owned,
    view: View,
    restarts: u32,
}

impl Running {
    fn start(vendor: &'static str, mut command: Command) -> std::io::Result<Running> {
        let child = Owned::spawn(&mut command)?;
        let mut running = Running { vendor, command, child, view: View::default(), restarts: 0 };
        running.look_on();
        Ok(running)
    }

    fn look_on(&mut self) {
        if let Some(stdout) = self.child.0.stdout.take() {
            let view = self.view.clone();
            std::thread::spawn(move || view.follow(stdout));
        }
    }

    /// Starts it again if it has failed. Fast DDS 2.9 aborts now and then while it finds the others: an
    /// assertion of its statistics (eProsima/Fast-DDS issue 3285).
    pub fn keep(&mut self) {
        let failed = self.child.ended().is_some_and(|status| !status.success());
        if !failed || self.restarts >= MAX_RESTARTS {
            return;
        }
        self.restarts += 1;
        if let Ok(child) = Owned::spawn(&mut self.command) {
            self.child = child;
            self.look_on();
        }
    }

    /// Did it end as it should, in time?
    pub fn finished(&mut self, longest: Duration) -> bool {
        self.child.wait(longest).is_some_and(|status| status.success())
    }

    /// What it has seen.
    pub fn seen(&self) -> Seen {
        self.view.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is seen so far; the thread that reads the program's output writes it.
#[derive(Clone, Default)]
struct View(Arc<Mutex<Seen>>);

/// What a peer's subscriber has seen.
#[derive(Clone, Default)]
pub struct Seen {
    /// Samples of each name.
    pub received: BTreeMap<String, u64>,
    /// The newest value of each name.
    pub newest: BTreeMap<String, f64>,
}

impl View {
    fn follow(&self, stdout: ChildStdout) {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(event) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            let (Some("metric"), Some(name)) = (event["event"].as_str(), event["name"].as_str()) else {
                continue;
            };
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *seen.received.entry(name.to_owned()).or_default() += 1;
            if let Some(value) = event["value"].as_f64() {
                seen.newest.insert(name.to_owned(), value);
            }
        }
    }
}
