//! The flight recorder: the last steps of a participant, copied out when something has come too late.
//!
//! Every step leaves an entry in a ring. Once a deadline is missed or a step has run for too long the ring is
//! copied into a [`FlightRecord`], which stays until the next. Called with the token.

use std::fmt;
use std::sync::Arc;

use taut_base::{Duration, Time};
use taut_dcps::StatusMask;

use crate::account::jobs::JobClass;

/// Steps that are kept. Lower and what has held up the others is gone from the ring when a deadline is missed,
/// higher takes more memory (32 B each) and a longer copy. Places are counted in a `u8`.
const STEPS: usize = 256;

/// The time from one record to the next, at least. Lower and a participant that always misses deadlines spends
/// its time on the log, higher and what is kept is older.
const EVERY: Duration = Duration::from_secs(1);

/// A record goes into the log if none was to be made for so long before: when something begins to come too late. Lower and
/// what does so now and then fills the log, higher and what begins anew is not in it.
const QUIET: Duration = Duration::from_secs(60);

/// What the lines of the log name as their source, for who wants all others.
pub(crate) const TARGET: &str = "taut_exec::flight_recorder";

/// Lines of a record that go into the log: what happened just before.
const LOGGED: usize = 24;

/// Listeners that took this long together have an entry of their own, for which the token is taken. Lower costs
/// that more often, higher hides what delays all steps of the thread that drives.
const LONG_LISTENERS: Duration = Duration::from_micros(100);

/// The same where what runs for longer than `limit`, if there is one, is too long.
pub(crate) fn long_listeners(limit: Option<Duration>) -> Duration {
    limit.map_or(LONG_LISTENERS, |limit| limit.min(LONG_LISTENERS))
}

/// The same for a call of the API, unless it is too long by itself. Lower and calls leave less of the other steps,
/// higher hides them.
const LONG_CALLS: Duration = LONG_LISTENERS;

/// What a participant's threads spend time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// A step of this class; of [`JobClass::Calls`] only what took 100 us or more, or too long, is recorded.
    Step(JobClass),
    /// The user's listeners, on the thread that drives: no step of that thread can begin. Only what took 100 us
    /// or more, or too long, is recorded.
    Listeners,
}

impl Activity {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Step(class) => class.name(),
            Activity::Listeners => "listeners",
        }
    }
}

/// One step as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedStep {
    /// What it was.
    pub activity: Activity,
    /// From its begin to when the record was made.
    pub began_before: std::time::Duration,
    /// How long it could have begun and did not.
    pub waited: std::time::Duration,
    /// From its begin to its end.
    pub ran: std::time::Duration,
    /// Datagrams received or sent, or changes written, as its class has it.
    pub done: u32,
}

/// Why a record was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordCause {
    /// OFFERED_DEADLINE_MISSED or REQUESTED_DEADLINE_MISSED on this topic.
    DeadlineMissed {
        /// The topic's name.
        topic: String,
    },
    /// A sample of this topic took longer than its writer's LATENCY_BUDGET.
    LatencyBudgetExceeded {
        /// The topic's name.
        topic: String,
        /// From the write, by the writer's clock, to the delivery.
        took: std::time::Duration,
        /// The budget.
        budget: std::time::Duration,
    },
    /// Something ran for longer than the setting `flight_recorder_step` allows.
    LongStep(Activity),
}

impl fmt::Display for RecordCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordCause::DeadlineMissed { topic } => write!(f, "a deadline of topic {topic} was missed"),
            RecordCause::LatencyBudgetExceeded { topic, took, budget } => {
                write!(f, "a sample of topic {topic} took {took:?}, its LATENCY_BUDGET is {budget:?}")
            }
            RecordCause::LongStep(activity) => {
                write!(f, "{} ran for longer than flight_recorder_step", activity.name())
            }
        }
    }
}

/// The last steps before something came too late, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlightRecord {
    /// Why it was made.
    pub cause: RecordCause,
    /// At most 256.
    pub steps: Vec<RecordedStep>,
}

impl FlightRecord {
    /// The longest of them.
    pub fn longest(&self) -> Option<&RecordedStep> {
        self.steps.iter().max_by_key(|step| step.ran)
    }

    /// As it goes into the log: cause, longest step, and the last of them.
    pub(crate) fn for_log(&self) -> String {
        let last = self.steps.get(self.steps.len().saturating_sub(LOGGED)..).unwrap_or_default();
        let (more, table) = (self.steps.len() - last.len(), Table(last));
        let longest = self.longest().map(|step| Table(std::slice::from_ref(step)).to_string());
        let longest = longest.as_deref().and_then(|table| table.lines().nth(1)).unwrap_or_default();
        let more = if more > 0 { format!(", {more} more in flight_record()") } else { String::new() };
        format!("{}; the last steps{more}:\n{table}\nlongest:\n{longest}", self.cause)
    }
}

/// A table, in microseconds.
impl fmt::Display for FlightRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.cause, Table(&self.steps))
    }
}

struct Table<'a>(&'a [RecordedStep]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64() * 1e6);
        write!(f, "{:>12}  {:<13}{:>10}{:>10}{:>6}", "us ago", "step", "waits", "runs", "did")?;
        for step in self.0 {
            let (ago, waited, ran) = (us(step.began_before), us(step.waited), us(step.ran));
            write!(f, "\n{ago:>12}  {:<13}{waited:>10}{ran:>10}{:>6}", step.activity.name(), step.done)?;
        }
        Ok(())
    }
}

/// A place of the ring.
#[derive(Clone, Copy)]
struct Entry {
    began: Time,
    waited: Duration,
    ran: Duration,
    done: u32,
    /// `None`: never used.
    activity: Option<Activity>,
}

/// The ring, and the last record.
pub(crate) struct Recorder {
    ring: Box<[Entry; STEPS]>,
    /// The place of the next entry, which is that of the oldest.
    next: u8,
    /// What runs for longer makes a record.
    limit: Duration,
    kept: Option<Arc<FlightRecord>>,
    /// It is not in the log yet.
    fresh: bool,
    /// No record before that.
    not_before: Time,
    /// None for the log before that.
    quiet_until: Time,
}

impl Recorder {
    /// One that makes a record of what runs for longer than `limit`, if there is one.
    pub fn new(limit: Option<Duration>) -> Recorder {
        let (began, none) = (Time(0), Duration::ZERO);
        let unused = Entry { began, waited: none, ran: none, done: 0, activity: None };
        let (ring, limit) = (Box::new([unused; STEPS]), limit.unwrap_or(Duration::INFINITE));
        let at_once = Time::AT_ONCE;
        Recorder { ring, next: 0, limit, kept: None, fresh: false, not_before: at_once, quiet_until: at_once }
    }

    /// Keeps one step. Returns whether it ran for too long. *Cost*: one entry, no allocation.
    #[inline]
    pub fn note(
        &mut self,
        activity: Activity,
        began: Time,
        waited: Duration,
        ran: Duration,
        done: usize,
    ) -> bool {
        let is_too_long = ran > self.limit;
        // Who asks again and again leaves what has come in between.
        if activity == Activity::Step(JobClass::Calls) && ran < LONG_CALLS && !is_too_long {
            return false;
        }
        let entry = Entry { began, waited, ran, done: done as u32, activity: Some(activity) };
        self.ring[usize::from(self.next)] = entry;
        self.next = self.next.wrapping_add(1);
        is_too_long
    }

    /// Makes a record, unless the last one is too young. Returns whether it did.
    #[cold]
    pub fn make(&mut self, now: Time, cause: RecordCause) -> bool {
        let begins = now >= self.quiet_until;
        self.quiet_until = now + QUIET;
        if now < self.not_before {
            return false;
        }
        let (newest, oldest) = self.ring.split_at(usize::from(self.next));
        let steps = oldest.iter().chain(newest).filter_map(|entry| {
            Some(RecordedStep {
                activity: entry.activity?,
                began_before: now.since(entry.began).into(),
                waited: entry.waited.into(),
                ran: entry.ran.into(),
                done: entry.done,
            })
        });
        self.kept = Some(Arc::new(FlightRecord { cause, steps: steps.collect() }));
        self.fresh |= begins;
        self.not_before = now + EVERY;
        true
    }

    /// The last record.
    pub fn kept(&self) -> Option<Arc<FlightRecord>> {
        self.kept.clone()
    }

    /// The same, once, if it is one for the log.
    pub fn take_fresh(&mut self) -> Option<Arc<FlightRecord>> {
        if std::mem::take(&mut self.fresh) { self.kept() } else { None }
    }
}

/// Do these news tell of a missed deadline?
pub(crate) fn is_missed_deadline(kinds: StatusMask) -> bool {
    kinds.intersects(StatusMask::OFFERED_DEADLINE_MISSED | StatusMask::REQUESTED_DEADLINE_MISSED)
}

#[cfg(test)]
mod tests {
    use taut_dcps::{Endpoint, Entity, TypeSupport};
    use taut_qos::{DataReaderQos, SubscriberQos, TopicQos};

    use super::*;
    use crate::Executor;
    use crate::executor_tests::{config, own_domain};

    const US: Duration = Duration::from_micros(1);

    fn note(recorder: &mut Recorder, n: i64, ran: Duration) -> bool {
        let step = Activity::Step(JobClass::ReceiveUser);
        recorder.note(step, Time(n * 1_000_000), US, ran, n as usize)
    }

    #[test]
    fn the_last_steps_are_kept_in_their_order() {
        let mut recorder = Recorder::new(None);
        (0..300).for_each(|n| assert!(!note(&mut recorder, n, US.times(n))));
        let cause = RecordCause::DeadlineMissed { topic: "Square".into() };
        assert!(recorder.make(Time(300_000_000), cause));
        let record = recorder.kept().unwrap();
        let done: Vec<u32> = record.steps.iter().map(|step| step.done).collect();
        assert_eq!(done, (44..300).collect::<Vec<_>>());
        assert_eq!(record.longest().unwrap().ran, std::time::Duration::from_micros(299));
        assert_eq!(record.steps[255].began_before, std::time::Duration::from_millis(1));
        let text = record.to_string();
        assert!(text.starts_with("a deadline of topic Square was missed\n"), "{text}");
        assert_eq!(text.lines().count(), 258);
        let last = "      1000.0  receive_user        1.0     299.0   299";
        assert_eq!(text.lines().last(), Some(last));
        let logged = record.for_log();
        assert!(logged.ends_with(last) && logged.contains("the last steps, 232 more in"), "{logged}");
    }

    #[test]
    fn calls_that_are_short_leave_the_other_steps() {
        let mut recorder = Recorder::new(Some(US.times(50)));
        assert!(!note(&mut recorder, 0, US));
        let call = Activity::Step(JobClass::Calls);
        let mut calls = |ran: Duration| recorder.note(call, Time(0), US, ran, 1);
        assert!((0..300).all(|_| !calls(US.times(50))));
        assert!(calls(US.times(51)));
        assert!(recorder.make(Time(0), RecordCause::LongStep(call)));
        assert_eq!(recorder.kept().unwrap().steps.len(), 2);
    }

    #[test]
    fn records_are_made_once_a_second_at_most() {
        let mut recorder = Recorder::new(Some(US.times(10)));
        assert!(!note(&mut recorder, 1, US.times(10)));
        assert!(note(&mut recorder, 2, US.times(11)));
        let cause = || RecordCause::LongStep(Activity::Listeners);
        assert!(recorder.make(Time(0), cause()));
        assert_eq!(recorder.take_fresh().map(|record| record.steps.len()), Some(2));
        assert!(recorder.take_fresh().is_none(), "it is logged once");
        note(&mut recorder, 3, US);
        assert!(!recorder.make(Time(999_999_999), cause()));
        assert_eq!(recorder.kept().unwrap().steps.len(), 2);
        assert!(recorder.make(Time(1_000_000_000), cause()));
        assert_eq!(recorder.kept().unwrap().steps.len(), 3);
    }

    #[test]
    fn what_goes_on_is_logged_when_it_begins() {
        let (mut recorder, cause) = (Recorder::new(None), || RecordCause::LongStep(Activity::Listeners));
        let mut is_logged = |now: Time| {
            recorder.make(now, cause());
            recorder.take_fresh().is_some()
        };
        let logged: Vec<i64> =
            (0..200).filter(|n| is_logged(Time(0) + Duration::from_millis(500 * n))).collect();
        assert_eq!(logged, [0], "as long as it goes on");
        let last = Time(0) + Duration::from_millis(500 * 199);
        assert!(!is_logged(last + Duration::from_secs(59)));
        assert!(is_logged(last + Duration::from_secs(59) + QUIET));
    }

    /// A participant whose listener takes its time, and then a reader of the topic `Square` that has missed its
    /// deadline: what the listener did to the steps behind it is in the record.
    #[test]
    fn a_missed_deadline_shows_the_listener_that_took_its_time() {
        const SLEEP: std::time::Duration = std::time::Duration::from_millis(20);
        let executor = Executor::start(&config(own_domain(), true)).unwrap();
        let sleeps = crate::listener(|_| std::thread::sleep(SLEEP));
        executor.set_listener(Entity::Participant, Some(sleeps)).unwrap();
        let reader = executor.inner.with(|participant, now| participant.create_reader(now, square()));
        executor
            .inner
            .with(|participant, _| participant.tell(Entity::Participant, StatusMask::INCONSISTENT_TOPIC));
        assert_eq!(executor.flight_record(), None, "nothing was late yet");
        executor.inner.with(|participant, _| {
            participant.tell(Entity::Reader(reader), StatusMask::REQUESTED_DEADLINE_MISSED);
        });
        let record = executor.flight_record().unwrap();
        assert_eq!(record.cause, RecordCause::DeadlineMissed { topic: "Square".into() });
        let longest = record.longest().unwrap();
        assert_eq!(longest.activity, Activity::Listeners, "{record}");
        assert!(longest.ran >= SLEEP && longest.began_before >= longest.ran, "{record}");
        let is_step = |step: &&RecordedStep| matches!(step.activity, Activity::Step(_));
        assert!(record.steps.iter().filter(is_step).any(|step| step.done > 0), "{record}");
    }

    fn square() -> Endpoint<DataReaderQos, SubscriberQos> {
        Endpoint {
            topic_name: "Square".into(),
            topic_qos: TopicQos::default(),
            type_support: TypeSupport { type_name: "ShapeType".into(), ..TypeSupport::default() },
            qos: DataReaderQos::default(),
            group: SubscriberQos::default(),
        }
    }
}
