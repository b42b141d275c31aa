//! Ctrl-C and the signals that ask a process to end: a flag that every wait looks at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use taut::{Duration, Error, Result};

use crate::failure::Failure;

/// How long a wait goes on before it looks at the flag: what a user does not notice after Ctrl-C, and
/// what costs nothing when it is looked at ten times a second.
const LOOK: Duration = Duration::from_millis(100);

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Has the flag set by SIGINT, SIGTERM and SIGHUP. The last is left alone where it is ignored: `nohup` has it so, for a
/// command that is to outlive its terminal, and for the processes that it starts. These have handlers of their own, where
/// signals that were blocked here would be blocked there, too.
/// A second one does no more than the first: GNU `timeout` sends each of its signals twice, to the process and to its group.
pub fn install() -> std::result::Result<(), Failure> {
    if !ignores_hangup() {
        register(SIGHUP, &STOP)?;
    }
    [SIGINT, SIGTERM].into_iter().try_for_each(|signal| register(signal, &STOP))
}

/// The same for what has no use for a terminal: SIGHUP sets the flag that is returned.
pub fn install_but_hangup() -> std::result::Result<Arc<AtomicBool>, Failure> {
    let hangup = Arc::default();
    register(SIGHUP, &hangup)?;
    [SIGINT, SIGTERM].into_iter().try_for_each(|signal| register(signal, &STOP))?;
    Ok(hangup)
}

fn register(signal: i32, flag: &Arc<AtomicBool>) -> std::result::Result<(), Failure> {
    let failed = |error| Failure::System(format!("no handler for signal {signal}: {error}"));
    flag::register(signal, Arc::clone(flag)).map(drop).map_err(failed)
}

/// Was SIGHUP ignored from the start?
fn ignores_hangup() -> bool {
    let status = procfs::process::Process::myself().and_then(|process| process.status());
    status.is_ok_and(|status| status.sigign & 1 << (SIGHUP - 1) != 0)
}

/// Sets the flag.
pub fn request() {
    STOP.store(true, Ordering::SeqCst);
}

/// Was the process asked to end?
pub fn requested() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// The end of a wait: `None` waits for ever.
#[derive(Clone, Copy)]
pub struct Until(Option<std::time::Instant>);

impl Until {
    /// No end.
    pub const NEVER: Until = Until(None);

    /// So many seconds from now.
    pub fn after(seconds: Option<f64>) -> Until {
        let span = seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
        Until(span.and_then(|span| std::time::Instant::now().checked_add(span)))
    }

    /// This time.
    pub fn at(instant: impl Into<Option<std::time::Instant>>) -> Until {
        Until(instant.into())
    }

    /// Is it over?
    pub fn over(self) -> bool {
        self.0.is_some_and(|end| std::time::Instant::now() >= end)
    }

    /// Is the process to end: is it over, or was that asked for?
    pub fn is_to_end(self) -> bool {
        self.over() || requested()
    }

    /// What is left of it, at most until the next look at the flag.
    fn slice(self) -> Duration {
        let left = self.0.map(|end| end.saturating_duration_since(std::time::Instant::now()));
        left.map_or(LOOK, |left| Duration::from(left).min(LOOK))
    }
}

/// Repeats a wait of the library in slices until it succeeds, the time is over or the process is asked
/// to end; the last two are [`Error::Timeout`].
pub fn wait(until: Until, mut step: impl FnMut(Duration) -> Result<()>) -> Result<()> {
    loop {
        match step(until.slice()) {
            Err(Error::Timeout(_)) if !until.is_to_end() => {}
            other => return other,
        }
    }
}

/// Sleeps until a time or until the process is asked to end.
pub fn sleep(until: Until) {
    while !until.is_to_end() {
        std::thread::sleep(until.slice().into());
    }
}
