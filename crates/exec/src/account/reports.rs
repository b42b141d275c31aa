//! Reports of the participant, as long as somebody reads them.
//!
//! A reader of the reports' topic in another participant is what asks for them. From then on the public API's
//! [`Reporter`] is called at each [`PERIOD`], by whichever thread drives, without the token; when the last
//! such reader has gone the reporter is dropped. Until then there is nothing: no writer, no timer. See
//! docs/adr/0009-reports-on-demand.md.

use std::sync::{Arc, OnceLock};

use taut_base::{Duration, Time};
use taut_dcps::{DomainParticipant, Entity, StatusMask};
use taut_lock::Mutex;

use crate::core::Core;
use crate::executor::{Executor, Inner};

/// Writes one report. Lives as long as somebody reads them.
pub type Reporter = Box<dyn FnMut() + Send>;

/// Makes the reporter, with an executor that shares the participant and does not keep it in the domain. `None`
/// if there is to be none.
pub type MakeReporter = fn(Executor) -> Option<Reporter>;

/// The time between reports, and between two changes of mind: readers that come and go have a writer announced
/// once in this time at most. Lower costs more, higher shows less.
const PERIOD: Duration = Duration::from_secs(1);

/// From the making of the reporter to the first report. Lower and its readers have not heard of the writer yet,
/// higher and who looks waits longer.
const FIRST: Duration = Duration::from_millis(200);

/// What is to be done without the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    Begin,
    Report,
    End,
}

/// What is to be done when; protected by the token.
pub(crate) struct Schedule {
    /// Whose readers ask for reports; `None`: nobody does.
    topic: Option<&'static str>,
    /// When to look next; `NEVER` while nobody asks.
    pub at: Time,
    not_before: Time,
    is_on: bool,
    task: Option<Task>,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { topic: None, at: Time::NEVER, not_before: Time::AT_ONCE, is_on: false, task: None }
    }
}

impl Schedule {
    /// Discovery has changed.
    pub fn notice(&mut self, now: Time, participant: &DomainParticipant) {
        if self.at == Time::NEVER && self.is_asked(participant) {
            self.at = self.not_before.max(now);
        }
    }

    fn is_asked(&self, participant: &DomainParticipant) -> bool {
        self.topic.is_some_and(|topic| participant.core().database().is_read(topic))
    }

    /// What is to be done now, once.
    pub fn take_task(&mut self) -> Option<Task> {
        self.task.take()
    }

    /// It is time to look.
    fn on_time(&mut self, now: Time, is_asked: bool) {
        let (task, at) = match (self.is_on, is_asked) {
            (false, true) => (Some(Task::Begin), now + FIRST),
            (true, true) => (Some(Task::Report), now + PERIOD),
            (true, false) => (Some(Task::End), Time::NEVER),
            (false, false) => (None, Time::NEVER),
        };
        if self.is_on != is_asked {
            self.not_before = now + PERIOD;
        }
        (self.is_on, self.task, self.at) = (is_asked, task, at);
    }
}

impl Core {
    /// Looks whether a report is due; it is made when the token is given back.
    pub fn look_at_reports(&mut self) {
        if self.reports.at > self.now {
            return;
        }
        let is_asked = self.reports.is_asked(&self.participant);
        self.reports.on_time(self.now, is_asked);
        self.participant.tell(Entity::Participant, StatusMask::NONE);
    }
}

/// The reporter, in the hands of who calls it or here.
#[derive(Default)]
pub(crate) struct Reports {
    make: OnceLock<MakeReporter>,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    /// Is there to be one?
    is_on: bool,
    /// There never will be one again.
    is_closed: bool,
    reporter: Option<Reporter>,
}

impl Reports {
    /// The participant leaves: from here on there is no reporter.
    pub fn close(&self) {
        let mut slot = self.slot.lock();
        (slot.is_on, slot.is_closed) = (false, true);
        let reporter = slot.reporter.take();
        // It owns a writer, whose end comes back here.
        drop(slot);
        drop(reporter);
    }
}

impl Inner {
    /// Does what is due. Called without the token; nobody's lock is held while the reporter runs, as listeners may
    /// run within it.
    pub fn report(&self, task: Task) {
        let mut slot = self.reports.slot.lock();
        slot.is_on = task != Task::End && !slot.is_closed;
        let (is_on, reporter) = (slot.is_on, slot.reporter.take());
        drop(slot);
        let reporter = match reporter {
            _ if !is_on => return,
            Some(mut reporter) => {
                reporter();
                Some(reporter)
            }
            None if task == Task::Begin => self.make_reporter(),
            // Another thread is at it still.
            None => return,
        };
        let mut slot = self.reports.slot.lock();
        let is_wanted = slot.is_on && slot.reporter.is_none();
        let left = if is_wanted { std::mem::replace(&mut slot.reporter, reporter) } else { reporter };
        drop(slot);
        drop(left);
    }

    fn make_reporter(&self) -> Option<Reporter> {
        let make = self.reports.make.get()?;
        make(Executor::guest(self.me.upgrade()?))
    }
}

impl Executor {
    /// From now on whoever reads `topic` in another participant has a reporter made, which is called about each
    /// second. *Cost*: a look at the topic's readers with each change of what discovery knows.
    pub fn report_on(&self, topic: &'static str, make: MakeReporter) {
        if self.inner.reports.make.set(make).is_err() {
            return;
        }
        let mut core = self.inner.enter();
        core.reports.topic = Some(topic);
        // Discovery may have been quicker.
        core.participant.tell(Entity::Participant, StatusMask::NONE);
        self.inner.give_back(core);
    }

    fn guest(inner: Arc<Inner>) -> Executor {
        Executor::of(inner, true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::executor_tests::{config, own_domain};

    const S: i64 = 1_000_000_000;

    #[test]
    fn readers_that_come_and_go_have_a_writer_announced_once_a_second_at_most() {
        let mut schedule = Schedule::default();
        let mut changes = Vec::new();
        let (mut rng, mut now) = (taut_base::Rng::new(1), 0);
        while now < 100 * S {
            now += S / 100;
            let asked = rng.below(2) == 0;
            if asked && schedule.at == Time::NEVER {
                schedule.at = schedule.not_before.max(Time(now));
            }
            if schedule.at <= Time(now) {
                schedule.on_time(Time(now), asked);
                if let Some(Task::Begin | Task::End) = schedule.take_task() {
                    changes.push(now);
                }
            }
        }
        let begins: Vec<i64> = changes.iter().step_by(2).copied().collect();
        assert!(begins.len() > 10 && begins.windows(2).all(|pair| pair[1] - pair[0] >= S), "{begins:?}");
    }

    #[test]
    fn who_reads_is_told_soon_and_then_each_second() {
        let mut schedule = Schedule::default();
        schedule.on_time(Time(0), true);
        assert_eq!((schedule.take_task(), schedule.at), (Some(Task::Begin), Time(S / 5)));
        schedule.on_time(Time(S / 5), true);
        assert_eq!((schedule.take_task(), schedule.at), (Some(Task::Report), Time(S / 5 + S)));
        schedule.on_time(Time(2 * S), false);
        assert_eq!((schedule.take_task(), schedule.at), (Some(Task::End), Time::NEVER));
        assert_eq!(schedule.take_task(), None);
    }

    /// The executor that is to end within a report, as a listener that runs there may end it.
    static LAST: Mutex<Option<Executor>> = Mutex::new(None);
    static ENDED: AtomicUsize = AtomicUsize::new(0);

    struct Owned {
        _guest: Executor,
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            ENDED.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn ends_within(guest: Executor) -> Option<Reporter> {
        let owned = Owned { _guest: guest };
        Some(Box::new(move || {
            let _ = &owned;
            let last = LAST.lock().take();
            drop(last);
        }))
    }

    #[test]
    fn a_participant_may_end_within_its_report() {
        let executor = Executor::start(&config(own_domain(), true)).unwrap();
        let inner = Arc::clone(&executor.inner);
        executor.report_on("reports", ends_within);
        inner.report(Task::Begin);
        inner.report(Task::Report);
        assert_eq!(ENDED.load(Ordering::SeqCst), 0);
        *LAST.lock() = Some(executor);
        inner.report(Task::Report);
        assert_eq!(ENDED.load(Ordering::SeqCst), 1, "the reporter goes with the participant");
        inner.report(Task::Begin);
        assert_eq!(Arc::strong_count(&inner), 1, "nothing keeps it");
    }
}
