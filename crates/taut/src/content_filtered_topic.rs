//! ContentFilteredTopic: some of a topic's samples. DCPS 1.4 §2.2.2.3.3.

use std::sync::Arc;

use taut_base::Result;
use taut_cdr::{DdsType, FieldValue, Step};
use taut_dcps::{ContentFilter, Expression, Filter};
use taut_lock::Mutex;

use crate::topic::ReaderQos;
use crate::{DataReader, Topic};

/// The samples of a topic for which an expression holds.
///
/// *Semantics*: a sample that does not pass is as if it was never written: it takes no place in a history
/// and wakes nobody. An instance's end is told once a sample of it has passed. A comparison with a member
/// that a sample has not (an optional one that is absent, an element behind the last) is false. *Cost*: the
/// reader decodes each sample once more.
///
/// The expression is that of DCPS 1.4 Annex B: members as `speed`, `position.x` or `ranges[2]`, compared by
/// `=`, `<>`, `<`, `<=`, `>`, `>=`, `LIKE` (`%` any characters, `_` one) and `BETWEEN low AND high`, joined by `AND`,
/// `OR`, `NOT` and parentheses. Texts and the literals of enumerations stand in apostrophes, one within a text is doubled
/// (`name = 'it''s'`). A parameter may go without those around it, and then has one within as it is. A number is rounded to
/// an `f32` that it is compared with.
///
/// ```
/// use taut::{DdsType, Duration, Qos};
/// # use taut::{Config, DomainParticipant};
///
/// #[derive(DdsType)]
/// #[dds(final)]
/// struct Reading {
///     sensor: String,
///     celsius: f64,
/// }
/// # fn main() -> taut::Result<()> {
/// # let config = Config { domain_id: 81, interfaces: vec!["lo".into()], ..Config::default() };
/// # let participant = DomainParticipant::with_config(&config)?;
/// let topic = participant.topic::<Reading>("Reading")?;
/// let hot = topic.filtered("Hot", "sensor LIKE 'boiler%' AND celsius > %0", &["90"])?;
/// let (writer, reader) = (topic.writer(Qos::default())?, hot.reader(Qos::default())?);
/// writer.wait_matched(Duration::from_secs(1))?;
/// for celsius in [20.0, 95.0] {
///     writer.write(&Reading { sensor: "boiler 3".into(), celsius })?;
/// }
/// reader.wait(Duration::from_secs(1))?;
/// assert_eq!(reader.take_next()?.unwrap().data.unwrap().celsius, 95.0);
///
/// hot.set_expression_parameters(&["10"])?; // from now on
/// # Ok(())
/// # }
/// ```
pub struct ContentFilteredTopic<'t, T> {
    topic: &'t Topic<T>,
    name: String,
    expression: Expression,
    chosen: Arc<Chosen>,
}

/// The parameters that count, for the topic and its readers.
///
/// Who delivers samples comes by here with a reader's door in its hands, or the token. So the lock lends its holder the
/// priority of who waits, and is held only while a pointer is copied or exchanged: what a filter is made of is read
/// before, and it is asked and given back after.
struct Chosen(Mutex<Arc<Choice>>);

/// Parameters, and the filter that they make of the expression.
struct Choice {
    parameters: Vec<String>,
    filter: Filter,
}

impl Chosen {
    fn get(&self) -> Arc<Choice> {
        Arc::clone(&self.0.lock())
    }

    fn set(&self, choice: Choice) {
        let choice = Arc::new(choice);
        let before = std::mem::replace(&mut *self.0.lock(), choice);
        drop(before);
    }

    /// Does a sample with these members pass?
    fn passes<'v>(&self, value: impl Fn(&[Step]) -> Option<FieldValue<'v>>) -> bool {
        let choice = self.get();
        choice.filter.passes(|path| value(path))
    }
}

impl Choice {
    fn new(expression: &Expression, parameters: &[&str]) -> Result<Choice> {
        let filter = expression.with(parameters)?;
        Ok(Choice { parameters: parameters.iter().map(|text| (*text).to_owned()).collect(), filter })
    }
}

impl<'t, T: DdsType> ContentFilteredTopic<'t, T> {
    pub(crate) fn new(
        topic: &'t Topic<T>,
        name: &str,
        expression: &str,
        parameters: &[&str],
    ) -> Result<ContentFilteredTopic<'t, T>> {
        topic.participant.executor.may_use()?;
        let expression = Expression::new(expression, T::field_kind)?;
        let choice = Choice::new(&expression, parameters)?;
        let chosen = Arc::new(Chosen(Mutex::new(Arc::new(choice))));
        Ok(ContentFilteredTopic { topic, name: name.to_owned(), expression, chosen })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The topic that it selects from.
    pub fn related_topic(&self) -> &'t Topic<T> {
        self.topic
    }

    /// The expression.
    pub fn filter_expression(&self) -> &str {
        self.expression.text()
    }

    /// The parameters.
    pub fn expression_parameters(&self) -> Vec<String> {
        if self.topic.participant.executor.is_forked() {
            return Vec::new();
        }
        self.chosen.get().parameters.clone()
    }

    /// Other parameters, for all of its readers, from the samples on that they have not got yet.
    ///
    /// *Errors*: as [`Topic::filtered`]; the parameters then stay as they were.
    pub fn set_expression_parameters(&self, parameters: &[&str]) -> Result<()> {
        self.topic.participant.executor.may_use()?;
        self.chosen.set(Choice::new(&self.expression, parameters)?);
        Ok(())
    }

    /// A reader of the samples that pass. *Errors*: as [`Topic::reader`].
    pub fn reader(&self, qos: impl Into<ReaderQos>) -> Result<DataReader<T>> {
        let chosen = Arc::clone(&self.chosen);
        let passes = move |payload: &[u8]| {
            let Ok(sample) = taut_cdr::from_payload::<T>(payload) else { return true };
            chosen.passes(|path| sample.field(path))
        };
        self.topic.reader_of(qos, Some(ContentFilter::new(passes)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use taut_cdr::FieldKind;
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    use super::*;

    /// How long a thread of medium priority runs. Below what of each second the kernel leaves to real-time threads.
    const MEDIUM: Duration = Duration::from_millis(45);

    /// The parameter of `n > %0`.
    fn choice(above: &str) -> Choice {
        Choice::new(&Expression::new("n > %0", |_| Some(FieldKind::Integer)).unwrap(), &[above]).unwrap()
    }

    fn chosen(above: &str) -> Chosen {
        Chosen(Mutex::new(Arc::new(choice(above))))
    }

    /// Has the calling thread run under SCHED_FIFO on the last of the process's processors. `false` without the privilege.
    fn run_at(priority: u8) -> bool {
        let cpus = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let last = (0..CpuSet::count()).rfind(|cpu| cpus.is_set(*cpu).unwrap_or(false)).unwrap();
        let mut set = CpuSet::new();
        set.set(last).unwrap();
        sched_setaffinity(Pid::from_raw(0), &set).unwrap();
        let priority = ThreadPriority::Crossplatform(ThreadPriorityValue::try_from(priority).unwrap());
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        set_thread_priority_and_policy(thread_native_id(), priority, fifo).is_ok()
    }

    /// The one of low priority is stopped where it exchanges the parameters, by one of medium priority.
    #[test]
    fn who_asks_a_filter_waits_for_who_sets_it_only() {
        if !thread::spawn(|| run_at(1)).join().unwrap() {
            println!("not tested: no privilege for SCHED_FIFO");
            return;
        }
        let (chosen, is_done) = (&chosen("3"), &AtomicBool::new(false));
        let [ready, medium_begins, high_begins] = &[3, 2, 2].map(Barrier::new);
        // Behind it the thread of low priority runs when the others wait.
        let run_ready_at = |priority| {
            assert!(run_at(priority));
            ready.wait();
        };
        let goes_on = thread::scope(|scope| {
            scope.spawn(|| {
                run_ready_at(30);
                high_begins.wait();
                assert!(chosen.passes(|_| Some(FieldValue::Integer(4))));
                is_done.store(true, Ordering::SeqCst);
            });
            let medium = scope.spawn(|| {
                run_ready_at(20);
                medium_begins.wait();
                high_begins.wait();
                let began = Instant::now();
                while !is_done.load(Ordering::SeqCst) && began.elapsed() < MEDIUM {
                    std::hint::spin_loop();
                }
                is_done.load(Ordering::SeqCst)
            });
            scope.spawn(|| {
                run_ready_at(10);
                let held = chosen.0.lock();
                // From here on it runs only if it is lent a priority, or the other two are done.
                medium_begins.wait();
                drop(held);
            });
            medium.join().unwrap()
        });
        assert!(goes_on, "it waited for a thread of lower priority that had nothing of it");
    }

    #[test]
    fn a_filter_is_exchanged_while_it_is_asked() {
        let chosen = chosen("3");
        let passes = chosen.passes(|_| {
            chosen.set(choice("5"));
            Some(FieldValue::Integer(4))
        });
        assert!(passes, "what has begun ends with the filter that it began with");
        assert!(!chosen.passes(|_| Some(FieldValue::Integer(4))));
        assert_eq!(chosen.get().parameters, ["5"]);
    }
}
