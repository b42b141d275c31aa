//! What the holder of the token tells when it gives it back: news to who waits, listeners, joins, the log.
//!
//! Nothing of the user's is called with the token.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use log::Level;
use taut_base::{Duration, Time};
use taut_dcps::{Entity, StatusMask};
use taut_lock::MutexGuard;
use taut_rtps::{ReaderIndex, TxClass};

use crate::account::recorder::{self, Activity, FlightRecord, RecordCause};
use crate::account::reports::Task;
use crate::clock::monotonic_now;
use crate::core::Core;
use crate::driver::news::Topics;
use crate::executor::Inner;
use crate::hooks::to_log;

/// News handed out in one go, on the stack.
const NEWS: usize = 8;

/// What listeners have left, or came while they ran: to be told later.
#[derive(Default)]
pub(crate) struct Leftover {
    news: Vec<(Entity, StatusMask)>,
    /// When the first of them were called.
    began: Option<Time>,
}

/// How long listeners took.
pub(crate) struct Listening {
    /// Those that took this long are recorded.
    long: Duration,
    /// The longest that they took at a time.
    longest_ns: AtomicU64,
    /// What they took before counts no more.
    since: AtomicI64,
}

impl Listening {
    pub fn new(longest_step: Option<Duration>) -> Listening {
        Listening {
            long: recorder::long_listeners(longest_step),
            longest_ns: AtomicU64::new(0),
            since: AtomicI64::new(0),
        }
    }

    pub fn longest(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
    }

    pub fn begin_anew(&self) {
        self.since.store(monotonic_now().0, Ordering::Relaxed);
        self.longest_ns.store(0, Ordering::Relaxed);
    }

    /// They have run from one time to the other.
    fn note(&self, first: Time, now: Time) {
        let since = Time(self.since.load(Ordering::Relaxed));
        let ns = now.since(first.max(since)).0.max(0).unsigned_abs();
        if ns > self.longest_ns.load(Ordering::Relaxed) {
            self.longest_ns.fetch_max(ns, Ordering::Relaxed);
        }
    }
}

/// What comes with the news now and then.
struct Rare {
    record: Option<Arc<FlightRecord>>,
    report: Option<Task>,
    lines: Vec<(Level, String)>,
}

impl Core {
    /// After news of the participant itself, among them a sample that was late, or of a missed deadline.
    #[cold]
    fn look_for_rare<'a>(&mut self, news: impl Iterator<Item = &'a (Entity, StatusMask)>) -> Rare {
        for (entity, kinds) in news {
            if recorder::is_missed_deadline(*kinds) {
                self.record_missed_deadline(*entity);
            }
        }
        if let Some(late) = self.participant.take_late() {
            self.record_late(late);
        }
        self.reports.notice(self.now, &self.participant);
        let lines = std::mem::take(&mut self.lines);
        Rare { record: self.recorder.take_fresh(), report: self.reports.take_task(), lines }
    }
}

impl Inner {
    /// Gives the token back with all that there is to tell. Returns whether there were more news than that; adds what is to
    /// [be told later](Inner::leave_for_later).
    #[cold]
    pub fn tell(&self, mut core: MutexGuard<'_, Core>, left: &mut Leftover) -> bool {
        self.role.note_told();
        let lines: Vec<String> = std::iter::from_fn(|| core.participant.poll_log()).collect();
        let mut news = [(Entity::Participant, StatusMask::NONE); NEWS];
        let (mut count, mut kinds, mut has_own) = (0, StatusMask::NONE, false);
        for slot in &mut news {
            let Some(one) = core.participant.poll_news() else { break };
            has_own |= one.0 == Entity::Participant;
            kinds = kinds | one.1;
            *slot = one;
            count += 1;
        }
        let rare = has_own || recorder::is_missed_deadline(kinds);
        let rare = rare.then(|| core.look_for_rare(news.iter().take(count)));
        let more_news = core.participant.has_news();
        let matches: Vec<_> = std::iter::from_fn(|| core.participant.poll_match()).collect();
        let tells = self.hooks.is_any();
        let is_busy = tells || rare.as_ref().is_some_and(|rare| rare.report.is_some());
        // With the token: from here on no sample is left to who may be busy with a listener or a report.
        let telling = is_busy.then(|| self.holding.tell());
        if telling.is_some() {
            self.owed.asleep.wake_all();
            self.release(&mut core);
            self.send(&mut core, TxClass::Data);
        }
        // Most of the time there is nothing between the last step and the listeners.
        let began = (lines.is_empty() && matches.is_empty() && rare.is_none()).then_some(core.now);
        self.let_go(core, count > 0);
        // Before all that is the user's and may take long.
        let helped = self.help_alone();
        let began = began.filter(|_| helped.is_none());
        // A logger is the user's, too.
        let calls_users = tells || !lines.is_empty() || rare.is_some();
        let first = calls_users.then(|| began.unwrap_or_else(monotonic_now));
        left.began = left.began.or(first);
        lines.iter().for_each(|line| to_log(|| log::warn!("{line}")));
        self.leave_matches(matches);
        if let Some(rare) = &rare {
            rare.lines.iter().for_each(|(level, line)| to_log(|| log::log!(*level, "{line}")));
            rare.record
                .iter()
                .for_each(|record| to_log(|| log::warn!(target: recorder::TARGET, "{}", record.for_log())));
        }
        let began = tells.then(|| began.unwrap_or_else(monotonic_now));
        self.tell_of(news.get_mut(..count).unwrap_or_default());
        if let Some(first) = left.began.filter(|_| calls_users) {
            self.note_listeners(began, first);
        }
        if let Some(task) = rare.and_then(|rare| rare.report) {
            self.report(task);
        }
        drop(telling);
        self.note_left(news.into_iter().take(count), left);
        more_news || helped == Some(true)
    }

    fn note_left(&self, news: impl Iterator<Item = (Entity, StatusMask)>, left: &mut Leftover) {
        for of in news.filter(|(_, kinds)| *kinds != StatusMask::NONE) {
            if left.news.capacity() == 0 {
                left.news = std::mem::take(&mut *self.leftover.lock());
            }
            left.news.push(of);
        }
    }

    /// Has whoever drives tell listeners what they have left, after a step.
    #[inline]
    pub fn leave_for_later(&self, left: Leftover) {
        if !left.news.is_empty() {
            self.leave_any_for_later(left.news);
        }
    }

    #[cold]
    fn leave_any_for_later(&self, mut left: Vec<(Entity, StatusMask)>) {
        let mut core = self.enter();
        left.drain(..).for_each(|(entity, kinds)| core.participant.tell(entity, kinds));
        *self.leftover.lock() = left;
        self.leave_to_driver(core);
    }

    /// Runs what was left for the holder of the token when it was given back. Returns whether there is news of it, which
    /// the caller tells later: to tell it here would nest. `None` if nothing was left.
    fn help_alone(&self) -> Option<bool> {
        let has_news = Cell::new(None);
        let serve = |mut core: MutexGuard<'_, Core>| {
            core.enter(None);
            self.run_writes(&mut core);
            self.send(&mut core, TxClass::Data);
            let news = !core.participant.is_quiet();
            has_news.set(Some(news || has_news.get() == Some(true)));
            self.let_go(core, news);
        };
        self.writes.help_on(|| self.try_token(), serve, || self.has_driver_go_on());
        has_news.get()
    }

    /// Listeners have run since then, and before them others or a logger since `first`. That they did so for long is told later.
    fn note_listeners(&self, began: Option<Time>, first: Time) {
        let now = monotonic_now();
        self.listening.note(first, now);
        let Some(began) = began else { return };
        let ran = now.since(began);
        if ran < self.listening.long {
            return;
        }
        let mut core = self.enter();
        if core.recorder.note(Activity::Listeners, began, Duration::ZERO, ran, 0) {
            core.record(RecordCause::LongStep(Activity::Listeners));
        }
        self.leave_to_driver(core);
    }

    /// Tells who waits for news, and runs the listeners. Leaves of each what its listener is to be told later.
    fn tell_of(&self, news: &mut [(Entity, StatusMask)]) {
        let of = |entity: Entity| match entity {
            Entity::Reader(ReaderIndex(index)) => Topics::of_reader(index),
            Entity::Writer(_) | Entity::Participant => Topics::OTHERS,
        };
        let topics = news.iter().map(|(entity, _)| of(*entity)).reduce(Topics::and);
        if let Some(topics) = topics.filter(|_| self.role.has_followers()) {
            self.role.tell_followers(topics);
        }
        for (entity, kinds) in news {
            self.doors.wake(*entity);
            *kinds = self.hooks.tell(*entity, *kinds, || self.peek(|core| core.name_of(*entity)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Instant;

    use taut_dcps::Endpoint;
    use taut_qos::{DataReaderQos, DataWriterQos};

    use super::*;
    use crate::driver::role::Claim;
    use crate::executor_tests::{config, endpoint, executor, own_domain, with_both_ends, write};
    use crate::inheritance_tests::run_at;
    use crate::{Driver, Executor, ExecutorConfig, listener};

    const LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

    #[test]
    fn listeners_that_run_while_a_report_begins_anew_count_from_there() {
        let (listening, hour) = (Listening::new(None), Duration::from_secs(3_600));
        let begun = monotonic_now();
        listening.note(begun, begun + hour);
        assert_eq!(listening.longest(), hour.into());
        listening.begin_anew();
        listening.note(Time(begun.0 - hour.0), monotonic_now());
        assert!(listening.longest() < hour.into());
    }

    /// There is something to tell of the participant, which whoever gives the token back next finds.
    fn have_news(inner: &Inner) {
        let mut core = inner.token();
        core.participant.tell(Entity::Participant, StatusMask::INCONSISTENT_TOPIC);
    }

    /// Listeners may take as long as they like.
    #[test]
    fn a_write_under_a_real_time_policy_runs_no_listener() {
        let config = ExecutorConfig { driver: Driver::Threaded, ..config(own_domain(), false) };
        let (executor, index, _) = with_both_ends(Executor::start(&config).unwrap());
        let (tells, told) = channel();
        executor
            .set_listener(
                Entity::Participant,
                Some(listener(move |_| _ = tells.send(thread::current().id()))),
            )
            .unwrap();
        let mut outlet = executor.outlet(index, &DataWriterQos::default()).unwrap();
        let executor = &executor;
        thread::scope(|scope| {
            let writes = move || {
                if !run_at(1) {
                    return println!("not tested: no privilege for SCHED_FIFO");
                }
                for n in 1..=20 {
                    have_news(&executor.inner);
                    write(executor, &mut outlet, n);
                    let by = told.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{n}: nobody was told"));
                    assert_ne!(by, thread::current().id(), "{n}: by who writes");
                }
            };
            scope.spawn(writes).join().unwrap();
        });
    }

    /// In a storm of discovery there is more to tell each time that the token comes back, after a step each.
    #[test]
    fn a_write_tells_once_where_another_thread_drives() {
        let (executor, index, _) = executor();
        let inner = &executor.inner;
        let count = Arc::new(AtomicUsize::new(0));
        let readers = [(); 2 * NEWS + 1].map(|()| {
            let elsewhere = Endpoint { topic_name: "Others".into(), ..endpoint(DataReaderQos::default()) };
            let (reader, _) = executor.create_reader(elsewhere).unwrap();
            let told = Arc::clone(&count);
            let listens = move |_| _ = told.fetch_add(1, Ordering::SeqCst);
            executor.set_listener(Entity::Reader(reader), Some(listener(listens))).unwrap();
            reader
        });
        let mut outlet = executor.outlet(index, &DataWriterQos::default()).unwrap();
        while inner.peek(|core| !core.participant.is_quiet()) {
            executor.run_once(Some(Time(0))).unwrap();
        }
        assert_eq!(inner.role.claim(), Claim::Taken);
        let mut core = inner.token();
        for reader in readers {
            core.participant.tell(Entity::Reader(reader), StatusMask::DATA_AVAILABLE);
        }
        drop(core);
        write(&executor, &mut outlet, 1);
        assert_eq!(count.load(Ordering::SeqCst), NEWS);
        inner.role.release(true);
        let limit = Instant::now() + LIMIT;
        while count.load(Ordering::SeqCst) < readers.len() && Instant::now() < limit {
            executor.run_once(Some(Time(0))).unwrap();
        }
        assert_eq!(count.load(Ordering::SeqCst), readers.len(), "the others were lost");
    }

    /// By another thread while the one before runs, and by that one itself.
    #[test]
    fn a_listener_that_is_set_while_news_are_told_hears_of_all_that_is_left() {
        const ENTITY: Entity = Entity::Reader(ReaderIndex(7));
        for by_itself in [false, true] {
            let executor = Arc::new(executor().0);
            let (hears, heard) = channel();
            let second = move || Some(listener(move |kinds| hears.send(kinds).unwrap()));
            let mut sets_it = Some(second);
            let ((begins, begun), (goes_on, may_go_on)) = (channel(), channel());
            let (own, mut second) =
                (Arc::downgrade(&executor), if by_itself { sets_it.take() } else { None });
            let first = move |kinds| {
                assert_eq!(kinds, StatusMask::DATA_AVAILABLE);
                begins.send(()).unwrap();
                may_go_on.recv_timeout(LIMIT).unwrap();
                if let Some(second) = second.take() {
                    assert_eq!(own.upgrade().unwrap().set_listener(ENTITY, second()), Ok(true));
                }
                StatusMask::SAMPLE_REJECTED
            };
            executor.set_listener(ENTITY, Some(Box::new(first))).unwrap();
            // None of them waits for another: one that did would not end.
            let run = |call: Box<dyn FnOnce(&Executor) + Send>| {
                let (executor, (ends, ended)) = (Arc::clone(&executor), channel());
                thread::spawn(move || {
                    call(&executor);
                    ends.send(()).unwrap();
                });
                ended
            };
            let tell = |kinds| run(Box::new(move |of| of.with(|of, _| of.tell(ENTITY, kinds)).unwrap()));
            let told = tell(StatusMask::DATA_AVAILABLE);
            begun.recv_timeout(LIMIT).unwrap();
            tell(StatusMask::SAMPLE_LOST).recv_timeout(LIMIT).expect("it is left to who runs the first");
            if let Some(second) = sets_it {
                let set = run(Box::new(move |of| _ = of.set_listener(ENTITY, second()).unwrap()));
                set.recv_timeout(LIMIT).expect("it is set while the first runs");
                tell(StatusMask::LIVELINESS_CHANGED).recv_timeout(LIMIT).unwrap();
                assert_eq!(heard.try_recv(), Ok(StatusMask::LIVELINESS_CHANGED));
            }
            goes_on.send(()).unwrap();
            told.recv_timeout(LIMIT).expect("the first has ended");
            let drives = |of: &Executor| of.run_once(Some(Time(0))).unwrap();
            run(Box::new(drives)).recv_timeout(LIMIT).unwrap();
            let left = heard.try_iter().fold(StatusMask::NONE, |left, kinds| left | kinds);
            assert_eq!(left, StatusMask::SAMPLE_LOST | StatusMask::SAMPLE_REJECTED, "{by_itself}");
        }
    }
}
