//! Child processes that never outlive their owner: each is ended by its own handle.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The time between two looks at a child that is about to end.
const LOOK: Duration = Duration::from_millis(10);

/// A child process; killed when dropped.
pub struct Owned(pub Child);

impl Owned {
    /// Starts a process.
    pub fn spawn(command: &mut Command) -> std::io::Result<Owned> {
        command.spawn().map(Owned)
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Its exit status, if it ends in time.
    pub fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + longest;
        loop {
            let status = self.ended();
            if status.is_some() || Instant::now() >= end {
                return status;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // It may end by itself at this moment; then there is nothing left to kill.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
