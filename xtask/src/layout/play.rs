//! Runs of Taut's adapter under callgrind, in the words of `peers/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::names::{often, patterns};

/// A run takes seconds. Lower stops one on a busy machine, higher makes a hang look like work.
const RUN_LIMIT_SECONDS: &str = "120";

/// How many round trips.
const SAMPLES: &str = "1000";

const OPTIONS: &[(&str, &str)] = &[
    ("--domain", "200"),
    ("--interface", "lo"),
    ("--address", "127.0.0.1"),
    ("--remote", "127.0.0.1"),
    ("--reliability", "reliable"),
    ("--history", "keep-last:1"),
    ("--multicast", "yes"),
    ("--wait", "block"),
    ("--type", "bytes"),
    ("--size", "64"),
    ("--loan", "no"),
    ("--warmup", "10"),
    ("--count", SAMPLES),
    ("--duration-ms", "0"),
    ("--period-ns", "0"),
    ("--remotes", "1"),
    ("--samples", ""),
    ("--variant", ""),
];

/// What runs in a process until it has a participant.
pub fn begun(valgrind: &Path, program: &Path) -> Result<BTreeSet<String>, String> {
    let mut role = Role::start(valgrind, program, ("entities", "udp"))?;
    role.event()?;
    role.say("go")?;
    match role.event()?.as_str() {
        "step" => role.functions_so_far(),
        other => Err(format!("entities: {other} before there is a participant")),
    }
}

/// What runs in a process whose participant, writers and readers have no peer.
pub fn alone(valgrind: &Path, program: &Path) -> Result<BTreeSet<String>, String> {
    let mut role = Role::start(valgrind, program, ("entities", "udp"))?;
    while role.event()? != "done" {
        role.say("go")?;
    }
    role.functions()
}

/// What runs.
pub struct Ran {
    pub functions: BTreeSet<String>,
    /// Of these, what runs for each sample, or at least for every other one: a wait may find two.
    pub for_each: BTreeSet<String>,
}

/// What runs in two that find each other and exchange samples by this transport.
pub fn with_peer(valgrind: &Path, program: &Path, transport: &'static str) -> Result<Ran, String> {
    let mut pong = Role::start(valgrind, program, ("pong", transport))?;
    let mut ping = Role::start(valgrind, program, ("ping", transport))?;
    pong.event()?;
    while ping.event()? != "done" {
        ping.say("go")?;
    }
    pong.say("end")?;
    pong.event()?;
    let (ping, pong) = (ping.counted()?, pong.counted()?);
    let samples: u64 = SAMPLES.parse().map_err(|error| format!("{SAMPLES}: {error}"))?;
    Ok(Ran {
        functions: &patterns(&ping) | &patterns(&pong),
        for_each: &often(&ping, samples / 2) | &often(&pong, samples / 2),
    })
}

/// A running adapter. It goes when its input ends, thus when this is dropped, whatever it is doing.
struct Role {
    name: &'static str,
    counted: PathBuf,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Role {
    fn start(
        valgrind: &Path,
        program: &Path,
        (name, transport): (&'static str, &str),
    ) -> Result<Role, String> {
        let counted = program.with_file_name(format!("layout-{name}.callgrind"));
        let mut file = std::ffi::OsString::from("--callgrind-out-file=");
        file.push(&counted);
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", RUN_LIMIT_SECONDS])
            .arg(valgrind)
            .args(["--quiet", "--tool=callgrind"]);
        command.args(["--demangle=no", "--compress-strings=no"]).arg(file).arg(program).arg(name);
        command.args(["--transport", transport]);
        command.args(OPTIONS.iter().flat_map(|(key, value)| [key, value]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("timeout: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("timeout: it has no input and output".to_string());
        };
        let output = BufReader::new(output).lines();
        Ok(Role { name, counted, child, input, output })
    }

    /// The next event.
    fn event(&mut self) -> Result<String, String> {
        let line = self.output.next().ok_or_else(|| format!("{}: ended too early", self.name))?;
        let line = line.map_err(|error| format!("{}: {error}", self.name))?;
        let value: Value = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
        match value.get("event").and_then(Value::as_str) {
            Some(event) if !["absent", "failed"].contains(&event) => Ok(event.to_string()),
            _ => Err(format!("{}: {line}", self.name)),
        }
    }

    fn say(&mut self, word: &str) -> Result<(), String> {
        writeln!(self.input, "{word}").map_err(|error| format!("{}: {error}", self.name))
    }

    /// Ends it, and reads what ran: nothing of what it would do in the end.
    fn functions_so_far(self) -> Result<BTreeSet<String>, String> {
        let is_told = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .is_ok_and(|status| status.success());
        if is_told { self.functions() } else { Err(format!("kill: {} does not end", self.name)) }
    }

    /// The same at its end.
    fn functions(self) -> Result<BTreeSet<String>, String> {
        let (name, text) = (self.name, self.counted()?);
        let found = patterns(&text);
        if found.is_empty() { Err(format!("{name}: callgrind names no function of ours")) } else { Ok(found) }
    }

    /// Waits for its end, and reads what callgrind has counted.
    fn counted(mut self) -> Result<String, String> {
        drop(self.input);
        self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        let path = self.counted.display();
        let text = fs::read_to_string(&self.counted).map_err(|error| format!("{path}: {error}"))?;
        let _ = fs::remove_file(&self.counted);
        Ok(text)
    }
}
