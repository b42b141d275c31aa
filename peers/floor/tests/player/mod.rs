//! The driver's side of the contract, for one process of the adapter at a time. Every wait has a limit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The adapter that is tested.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_perf-peer-floor"))
}

/// Far above what any step takes on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// One process of the adapter. Dropped, it is killed without a chance to clean up.
pub struct Adapter {
    child: Child,
    /// Closed, it says that the driver is gone.
    pub stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Adapter {
    /// What the command starts must be the adapter itself.
    pub fn start(command: &mut Command) -> Adapter {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.expect("the adapter starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str(&line) else { break };
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Adapter { child, stdin, lines }
    }

    /// The next event, which must be this one.
    pub fn event(&self, expected: &str) -> Value {
        let event = self.lines.recv_timeout(LIMIT).expect("an event in time");
        assert_eq!(event["event"], expected, "{event}");
        event
    }

    /// Says a word of the driver's.
    pub fn say(&mut self, word: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{word}").expect("the adapter listens");
    }

    /// Its exit code, once it has ended by itself.
    pub fn code(&mut self) -> Option<i32> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("still there after {LIMIT:?}");
    }

    /// Its last event, after which it ends well.
    pub fn done(&mut self) -> Value {
        let done = self.event("done");
        assert_eq!(self.code(), Some(0));
        done
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
