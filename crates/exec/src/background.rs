//! The background thread: drives while no thread of the user does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use nix::sys::prctl;
use taut_base::{Error, Result};
use taut_lock::Mutex;

use crate::config::{Driver, ExecutorConfig};
use crate::driving::Driving;
use crate::executor::{Executor, Inner};
use crate::hooks;
use crate::role::GRACE;

/// How long the end of a participant waits for a listener that runs. Lower and more of them are still running when
/// it is gone, higher and a listener that waits for the thread that ends the participant holds it up for longer.
const LONGEST_LISTENER: Duration = Duration::from_secs(1);

/// How much later than asked for the last of its looks may come in which it stands by: a tick of most systems. Lower has
/// them interrupt more often, higher has nobody drive for longer.
const SLACK: Duration = Duration::from_millis(4);

/// The thread, in the hands of who ends the participant.
pub(crate) struct Background {
    handle: JoinHandle<()>,
    /// Closed by the thread's end.
    ended: Mutex<Receiver<()>>,
}

impl Background {
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Waits for its end, which it has been told of; not from a listener, which may be what it runs or waits for, and
    /// not for long for one.
    pub fn end(self) {
        self.thread().unpark();
        if hooks::runs_listener() || self.thread().id() == thread::current().id() {
            return;
        }
        match self.ended.into_inner().recv_timeout(LONGEST_LISTENER) {
            Err(RecvTimeoutError::Timeout) => log::warn!(
                "a participant ends while a listener of it runs, for {LONGEST_LISTENER:?} by now: it is left to itself. \
                 Does it wait for the thread that ends the participant, as for a lock or for room in a channel?"
            ),
            _ => drop(self.handle.join()),
        }
    }
}

/// What drives a participant, with its thread if it has one.
///
/// *Errors*: there is none to be had, or none as it is to be scheduled; the participant leaves again then, as others have
/// heard of it.
pub(crate) fn executor(inner: Arc<Inner>, config: &ExecutorConfig) -> Result<Executor> {
    let mut executor = Executor { inner, background: None, is_guest: false };
    if config.driver != Driver::Inline {
        let background = spawn(&executor.inner, config)?;
        *executor.inner.background_thread.lock() = Some(background.thread().clone());
        executor.background = Some(background);
    }
    Ok(executor)
}

fn spawn(inner: &Arc<Inner>, config: &ExecutorConfig) -> Result<Background> {
    let (inner, scheduling, prefault) = (Arc::clone(inner), config.scheduling.clone(), config.lock_process);
    let (tell, told) = sync_channel(1);
    let (ends, ended) = sync_channel(0);
    if inner.polling.has_thread() {
        // Before there is anybody who could wait: it keeps the role.
        inner.role.claim_background();
    }
    let builder = std::thread::Builder::new().name("taut".into());
    let handle = builder.spawn(move || {
        let _ends = ends;
        if prefault {
            prefault_stack();
        }
        let outcome = scheduling.apply();
        let goes_on = outcome.is_ok();
        // Whoever starts it waits to hear it.
        let _ = tell.send(outcome);
        if goes_on {
            run(&inner);
        }
    });
    let handle = handle.map_err(|error| {
        Error::Error(format!("no thread: {error}; raise the limit (ulimit -u) or use the inline driver"))
    })?;
    told.recv().unwrap_or(Ok(()))?;
    Ok(Background { handle, ended: Mutex::new(ended) })
}

/// What the driver's thread needs of its stack, and as much again for listeners. Lower and a deep call costs page
/// faults, higher takes memory for each participant.
const STACK: usize = 256 << 10;

/// Takes the memory of the calling thread's stack.
#[inline(never)]
fn prefault_stack() {
    std::hint::black_box(&mut [u8::MAX; STACK]);
}

fn run(inner: &Inner) {
    if inner.polling.has_thread() {
        let _polls = inner.begin_polling();
        while !inner.closing.load(Ordering::SeqCst) {
            inner.drive_once(None);
        }
        return;
    }
    while !inner.closing.load(Ordering::SeqCst) {
        if inner.role.claim_background() {
            let role = Driving::new(inner);
            role.note_driven();
            while !inner.closing.load(Ordering::SeqCst) && !inner.role.is_wanted() {
                inner.drive_once(None);
            }
            drop(role);
        }
        stand_by(inner);
    }
}

/// Waits until nobody has driven for a while, or it is called. While users come and go it looks now and then, [`GRACE`];
/// while one user's wait goes on it sleeps until that user wakes it.
fn stand_by(inner: &Inner) {
    let mut seen = None;
    let mut grace = GRACE.0;
    while !inner.closing.load(Ordering::SeqCst) {
        let look = inner.role.look();
        let (free, user, _) = look;
        if free && !inner.role.is_wanted() && (seen == Some(look) || inner.role.is_called()) {
            return;
        }
        if seen == Some(look) && user {
            inner.role.rest_while(look, || {
                if !inner.closing.load(Ordering::SeqCst) {
                    thread::park();
                }
            });
            (seen, grace) = (None, GRACE.0);
            continue;
        }
        if seen.is_some() {
            grace = (grace * 2).min(GRACE.1);
        }
        seen = Some(look);
        if grace < GRACE.1 {
            thread::park_timeout(grace);
        } else {
            park_loosely(grace);
        }
    }
}

/// Parks for so long, or until the system looks at its timers for another reason within [`SLACK`] after that: a timer
/// interrupt of its own in each look takes a virtual machine, and with it a user who does not wait, tens of microseconds.
fn park_loosely(time: Duration) {
    // Where it is refused, time is kept as always. Real-time threads have no slack.
    let _ = prctl::set_timerslack(SLACK.as_nanos() as u64);
    thread::park_timeout(time);
    // The thread's own again.
    let _ = prctl::set_timerslack(0);
}
