//! The lines between the driver and an adapter.
//!
//! A thread reads stdin for as long as the process lives: at its end the process exits at once, so that
//! nothing outlives a driver that was killed.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

/// Why there is no `done`.
#[derive(Debug)]
pub enum Stop {
    /// There is no such path, type, size or wait.
    Absent(String),
    /// It should have worked.
    Failed(String),
}

impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// The way to the driver.
pub struct Control {
    go: Receiver<()>,
    end: Arc<AtomicBool>,
    last: Arc<OnceLock<LastAct>>,
    /// When the program began.
    begin_ns: u64,
    allocations: OnceLock<fn() -> u64>,
    /// At the beginning, then of the traffic alone.
    allocated: AtomicU64,
}

type LastAct = Box<dyn Fn() + Send + Sync>;

impl Control {
    /// Begins to listen to the driver.
    pub(crate) fn start(begin_ns: u64) -> Control {
        let (sender, go) = channel();
        let end = Arc::new(AtomicBool::new(false));
        let last = Arc::new(OnceLock::<LastAct>::new());
        let (told, act) = (Arc::clone(&end), Arc::clone(&last));
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                match line.as_deref() {
                    // The adapter may have gone past its last wait: then nobody is to be told.
                    Ok("go") => drop(sender.send(())),
                    Ok("end") => told.store(true, Ordering::SeqCst),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            if let Some(act) = act.get() {
                act();
            }
            std::process::exit(3);
        });
        Control { go, end, last, begin_ns, allocations: OnceLock::new(), allocated: AtomicU64::new(0) }
    }

    /// What counts the heap allocations of the process: `done` then has those from `go` to `stop`.
    pub fn count_allocations(&self, count: fn() -> u64) {
        let _ = self.allocations.set(count);
    }

    /// What to do last when the driver is gone, in well under a second: to remove files that outlive the
    /// process. Only the first one counts.
    pub fn at_loss(&self, act: impl Fn() + Send + Sync + 'static) {
        let _ = self.last.set(Box::new(act));
    }

    /// Says that it is ready, waits in this way for data, and waits for the driver to begin.
    pub fn ready(&self, wait: &str) {
        say(&json!({"event": "ready", "wait": wait}));
        self.wait_go();
        self.note_allocations();
    }

    /// The allocations since the last call.
    fn note_allocations(&self) {
        let Some(count) = self.allocations.get() else { return };
        let now = count();
        let before = self.allocated.load(Ordering::Relaxed);
        self.allocated.store(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Says that it is ready without waiting for the driver: `pong`, `sub` and the like.
    pub fn serving(&self, wait: &str) {
        say(&json!({"event": "ready", "wait": wait}));
    }

    /// Says that the measurement is over, and waits until the driver has read its accounts.
    pub fn stop(&self) {
        self.note_allocations();
        say(&json!({"event": "stop"}));
        self.wait_go();
    }

    /// Says something of the role's own.
    pub fn event(&self, event: &Value) {
        say(event);
    }

    /// Waits for the driver's word.
    pub fn wait_go(&self) {
        // The other side of the channel lives as long as the process.
        let _ = self.go.recv();
    }

    /// Did the driver ask to end?
    pub fn ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self, ended: Result<Value, Stop>) -> ExitCode {
        match ended {
            Ok(mut done) => {
                done["event"] = json!("done");
                done["begin_ns"] = json!(self.begin_ns);
                if self.allocations.get().is_some() {
                    done["allocations"] = json!(self.allocated.load(Ordering::Relaxed));
                }
                say(&done);
                ExitCode::SUCCESS
            }
            Err(Stop::Absent(reason)) => {
                say(&json!({"event": "absent", "reason": reason}));
                ExitCode::SUCCESS
            }
            Err(Stop::Failed(reason)) => {
                say(&json!({"event": "failed", "reason": reason}));
                ExitCode::FAILURE
            }
        }
    }
}

fn say(event: &Value) {
    let mut out = std::io::stdout().lock();
    // A driver that does not read any more has ended: so do we.
    if writeln!(out, "{event}").and_then(|()| out.flush()).is_err() {
        std::process::exit(3);
    }
}
