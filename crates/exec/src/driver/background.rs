//! The background thread: drives while no thread of the user does.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use taut_base::{Error, Result};

use crate::clock::monotonic_now;
use crate::config::{Driver, ExecutorConfig};
use crate::driver::driving::Driving;
use crate::driver::role::GRACE;
use crate::executor::{Executor, Inner};
use crate::hooks;

/// How long the end of a participant waits for a listener that runs. Lower and more of them are still running when
/// it is gone, higher and a listener that waits for the thread that ends the participant holds it up for longer.
const LONGEST_LISTENER: Duration = Duration::from_secs(1);

/// How much later than asked for the last of its looks may come in which it stands by: a tick of most systems. Lower has
/// them interrupt more often, higher has nobody drive for longer.
const SLACK: Duration = Duration::from_millis(4);

/// So many changes of the role from one look to the next are one who hardly sleeps. Fewer, and a look of its own most likely
/// comes while nothing happens, where one at a timer's interrupt comes together with the user who has set the timer.
const BUSY: u32 = 128;

/// The thread, in the hands of who ends the participant.
pub(crate) struct Background {
    handle: JoinHandle<()>,
    life: Arc<Life>,
}

/// How far the thread is, for those who wait for it.
#[derive(Default)]
struct Life {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Default)]
struct Stage {
    /// It drives, unless it could not be scheduled as it is to be.
    began: Option<Result<()>>,
    ended: bool,
}

impl Life {
    fn change(&self, change: impl FnOnce(&mut Stage)) {
        change(&mut self.stage.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for a stage for so long at most. `None` after that, else what `look` makes of it.
    fn wait<R>(&self, longest: Duration, look: impl Fn(&Stage) -> Option<R>) -> Option<R> {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(stage, longest, |stage| look(stage).is_none());
        look(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Tells of the thread's end, be it by a panic.
struct Ends(Arc<Life>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.change(|stage| stage.ended = true);
    }
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
        match self.life.wait(LONGEST_LISTENER, |stage| stage.ended.then_some(())) {
            None => hooks::to_log(|| {
                log::warn!(
                    "a participant ends while a listener of it runs, for {LONGEST_LISTENER:?} by now: it is left to itself. \
                     Does it wait for the thread that ends the participant, as for a lock or for room in a channel?"
                );
            }),
            Some(()) => drop(self.handle.join()),
        }
    }
}

/// What drives a participant, with its thread if it has one.
///
/// *Errors*: there is none to be had, or none as it is to be scheduled; the participant leaves again then, as others have
/// heard of it.
pub(crate) fn executor(inner: Arc<Inner>, config: &ExecutorConfig) -> Result<Executor> {
    let mut executor = Executor::of(inner, false);
    if config.driver != Driver::Inline {
        let background = spawn(&executor.inner, config)?;
        *executor.inner.background_thread.lock() = Some(background.thread().clone());
        executor.background = Some(background);
    }
    Ok(executor)
}

fn spawn(inner: &Arc<Inner>, config: &ExecutorConfig) -> Result<Background> {
    let (inner, scheduling, prefault) = (Arc::clone(inner), config.scheduling.clone(), config.lock_process);
    let life = Arc::new(Life::default());
    let ends = Ends(Arc::clone(&life));
    if inner.polling.has_thread() {
        // Before there is anybody who could wait: it keeps the role.
        inner.role.claim_background();
    }
    let builder = std::thread::Builder::new().name("taut".into());
    let handle = builder.spawn(move || {
        let ends = ends;
        if prefault {
            prefault_stack();
        }
        let outcome = scheduling.apply();
        let goes_on = outcome.is_ok();
        // Whoever starts it waits to hear it.
        ends.0.change(|stage| stage.began = Some(outcome));
        if goes_on {
            run(&inner);
        }
    });
    let handle = handle.map_err(|error| refused(&error))?;
    let began = |stage: &Stage| stage.began.clone().or_else(|| stage.ended.then_some(Ok(())));
    life.wait(Duration::MAX, began).unwrap_or(Ok(()))?;
    Ok(Background { handle, life })
}

/// Why there is no thread. The system has one number for a process that has too many and for one without room for a stack.
fn refused(error: &io::Error) -> Error {
    let is_bounded = getrlimit(Resource::RLIMIT_AS).is_ok_and(|(addresses, _)| addresses != RLIM_INFINITY);
    let of_addresses =
        if is_bounded { "of addresses, which its stack takes too (`ulimit -v`), or " } else { "" };
    Error::Error(format!(
        "pthread_create of the thread that drives: {error}: raise the limit {of_addresses}of threads (`ulimit -u`, \
         TasksMax= of a service, pids.max of a container), or have a thread of the program drive (Driver::Inline)"
    ))
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
            inner.drive_once(None, None);
        }
        return;
    }
    while !inner.closing.load(Ordering::SeqCst) {
        if inner.role.claim_background() {
            let role = Driving::new(inner);
            role.note_driven();
            while !inner.closing.load(Ordering::SeqCst) && !inner.role.is_to_step_aside() {
                inner.drive_once(None, None);
            }
            drop(role);
        }
        stand_by(inner);
    }
}

/// Waits until nobody has driven for a while, something is due that nobody does, or it is called. While users come and go it
/// looks now and then, [`GRACE`]; while one user's wait goes on it sleeps until that user wakes it.
fn stand_by(inner: &Inner) {
    let mut seen = None;
    let mut pause = Pause::default();
    while !inner.closing.load(Ordering::SeqCst) {
        let (called, look) = inner.role.look_when_called();
        let (free, user, _) = look;
        let due = inner.holding.due();
        let is_left = || called || seen == Some(look) || seen.is_some() && due <= monotonic_now();
        if free && !inner.role.is_wanted() && is_left() {
            return;
        }
        if seen == Some(look) && user {
            inner.role.rest_while(look, || {
                if !inner.closing.load(Ordering::SeqCst) {
                    thread::park();
                }
            });
            (seen, pause) = (None, Pause::default());
            continue;
        }
        let moved = seen.map_or(0, |(_, _, before)| look.2.wrapping_sub(before));
        seen = Some(look);
        match pause.next(inner.hooks.is_any(), moved, due.since(monotonic_now())) {
            (time, false) => thread::park_timeout(time),
            (time, true) => park_loosely(time),
        }
    }
}

/// The pauses between looks, by how many there were.
#[derive(Default)]
struct Pause {
    looks: u32,
}

impl Pause {
    /// How long until the next look, and may it be somewhat later? By whether anybody is to be told who does not drive, how
    /// often the role has changed since the last look, and in how long something is due.
    fn next(&mut self, is_listened_to: bool, moved: u32, due_in: taut_base::Duration) -> (Duration, bool) {
        let grown = GRACE.0.saturating_mul(1 << self.looks.min(8)).min(GRACE.1);
        self.looks = self.looks.saturating_add(1);
        let grace = if is_listened_to { GRACE.0 } else { grown };
        // What is overdue at this look a user does, who is there. Paced sending has timers without a pause between them.
        let due_in = Duration::from_nanos(u64::try_from(due_in.0).unwrap_or(0));
        let pause = if due_in.is_zero() { grace } else { grace.min(due_in.max(GRACE.0)) };
        (pause, pause == grown && moved >= BUSY && !is_listened_to)
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

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: taut_base::Duration = taut_base::Duration::from_secs(3_600);

    fn pauses(is_listened_to: bool) -> Vec<u128> {
        let mut pause = Pause::default();
        (0..5).map(|_| pause.next(is_listened_to, BUSY, NEVER).0.as_millis()).collect()
    }

    #[test]
    fn who_listens_is_not_left_waiting_as_who_drives_is() {
        assert_eq!(pauses(false), [1, 2, 4, 8, 8]);
        assert_eq!(pauses(true), [1; 5]);
    }

    /// Beside a user who hardly sleeps and goes just after a look: the next one finds that the role has moved.
    #[test]
    fn nobody_drives_for_no_longer_than_is_said() {
        let mut pause = Pause::default();
        let lasts = || {
            let (time, may_be_late) = pause.next(false, BUSY, NEVER);
            time + SLACK * u32::from(may_be_late)
        };
        let last: Vec<_> = std::iter::repeat_with(lasts).take(20).collect();
        let longest = last.windows(2).map(|two| two.iter().sum::<Duration>()).max();
        assert_eq!(longest, Some(Duration::from_millis(24)), "as in docs/real-time.md, \"Who drives\"");
    }

    #[test]
    fn a_look_comes_when_something_is_due() {
        let mut pause = Pause::default();
        let busy = |due_in| Pause { looks: 9 }.next(false, BUSY, due_in);
        assert_eq!(busy(NEVER), (GRACE.1, true));
        assert_eq!(busy(taut_base::Duration::from_millis(3)), (Duration::from_millis(3), false));
        assert_eq!(
            busy(taut_base::Duration::from_micros(5)),
            (GRACE.0, false),
            "one is no closer than another"
        );
        // What is overdue is a user's, who comes and goes.
        assert_eq!(busy(taut_base::Duration(-1)), (GRACE.1, true));
        assert_eq!(pause.next(false, 0, taut_base::Duration::from_millis(3)), (GRACE.0, false));
    }
}
