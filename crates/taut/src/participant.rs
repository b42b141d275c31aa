//! DomainParticipant, Publisher, Subscriber. DCPS 1.4 §2.2.2.2, §2.2.2.4.1, §2.2.2.5.2.

use std::fmt::{self, Write};
use std::sync::{Arc, Weak};

use taut_base::{Duration, EntityId, Error, ErrorText, Guid, Result, Time};
use taut_cdr::DdsType;
use taut_exec::{Executor, FlightRecord, LatencyReport, Stats, Suspension, ends};
use taut_qos::{PublisherQos, SubscriberQos, TopicQos};
use taut_rtps::Participant;

use crate::config::{Config, closest};
use crate::report;
use crate::topic::Topic;
use crate::{DataReader, DataWriter, ReaderQos, WriterQos};

/// Longest topic and type names that discovery carries.
const MAX_NAME: usize = 255;

/// A member of a domain: what makes topics, writers and readers.
///
/// Clones are the same participant; it leaves the domain when the last clone, topic, writer, reader and built-in reader of it
/// is dropped: publishers and subscribers do not keep it. *Cost*: below 1 MiB, one thread, some 20 descriptors,
/// and over shared memory one more for each writer and three for each other process; no allocation once all is matched.
///
/// A child that is forked has the memory of its parent's participant, and no thread that drives it: it makes one of its own.
/// Each call of the parent's fails there at once ([`Error::PreconditionNotMet`]), what has no error to return does nothing and
/// finds nothing, and what is dropped there goes on in the parent. A sample that came by shared memory the child may drop, but
/// not look at once the parent may have dropped that: the writer uses the memory again. Nor may it fill a loan, which is the
/// parent's, or return from a listener that has forked, whose caller would go on to drive.
#[derive(Clone)]
pub struct DomainParticipant {
    pub(crate) executor: Arc<Executor>,
}

impl DomainParticipant {
    /// Joins a domain with the settings of the configuration file and the environment.
    ///
    /// *Errors*: a bad setting, or what the operating system refuses; the text has the remedy.
    pub fn new(domain_id: u32) -> Result<DomainParticipant> {
        DomainParticipant::with_config(&Config { domain_id, ..Config::load()? })
    }

    /// Joins a domain.
    pub fn with_config(config: &Config) -> Result<DomainParticipant> {
        let executor = Executor::start(&config.executor()?)?;
        if config.report {
            report::install(&executor);
        }
        Ok(DomainParticipant { executor: Arc::new(executor) })
    }

    /// Its GUID, by whose prefix its endpoints are known, and samples by their `publication_handle`.
    ///
    /// ```
    /// # use taut::{Config, DomainParticipant};
    /// # let config = Config { domain_id: 77, interfaces: vec!["lo".into()], ..Config::default() };
    /// let participant = DomainParticipant::with_config(&config)?;
    /// assert_eq!(participant.guid(), participant.discovered_participants()[0].guid);
    /// assert_eq!(participant.domain_id(), config.domain_id);
    /// # Ok::<(), taut::Error>(())
    /// ```
    pub fn guid(&self) -> Guid {
        Guid::new(self.executor.guid_prefix(), EntityId::PARTICIPANT)
    }

    /// DCPS's get_domain_id. In the child of a fork it is 0.
    pub fn domain_id(&self) -> u32 {
        self.executor.look(|participant, _| participant.core().config().domain_id).unwrap_or_default()
    }

    /// A topic with default QoS.
    ///
    /// *Errors*: [`Error::BadParameter`] for an empty name or one of more than 255 bytes.
    pub fn topic<T: DdsType>(&self, name: &str) -> Result<Topic<T>> {
        self.topic_with(name, TopicQos::default())
    }

    /// A topic with QoS of its own, of which TOPIC_DATA is announced: its writers and readers inherit nothing.
    pub fn topic_with<T: DdsType>(&self, name: &str, qos: TopicQos) -> Result<Topic<T>> {
        self.topic_as(name, T::TYPE_NAME, qos)
    }

    /// A topic whose type is registered under a name of the caller's choice, as `register_type` of
    /// DCPS 1.4 §2.2.2.3.6 has it: one Rust type serves every name that the peers call it by.
    pub fn topic_as<T: DdsType>(&self, name: &str, type_name: &str, qos: TopicQos) -> Result<Topic<T>> {
        self.executor.may_use()?;
        for (what, text) in [("topic", name), ("type", type_name)] {
            if text.is_empty() || text.len() > MAX_NAME || text.contains('\0') {
                return Err(Error::BadParameter(format!(
                    "{what} name {text:?}: use 1 to {MAX_NAME} bytes without NUL"
                )));
            }
        }
        qos.check()?;
        Ok(Topic::new(self.clone(), name, type_name, qos))
    }

    /// A publisher, to give several writers one PARTITION or PRESENTATION. What is refused of its QoS is with its first writer.
    pub fn publisher(&self, qos: PublisherQos) -> Publisher {
        Publisher { executor: Arc::downgrade(&self.executor), qos, suspension: Arc::default() }
    }

    /// A subscriber, to give several readers one PARTITION or PRESENTATION. What is refused of its QoS is with its first reader.
    pub fn subscriber(&self, qos: SubscriberQos) -> Subscriber {
        Subscriber { executor: Arc::downgrade(&self.executor), qos }
    }

    /// Says that all MANUAL_BY_PARTICIPANT writers are alive.
    pub fn assert_liveliness(&self) {
        let _ = self.executor.with(|participant, now| participant.assert_participant(now));
    }

    /// With [`crate::Driver::Inline`]: handles what has arrived and is due; waits at most `timeout` for it. It returns as soon as
    /// it has done something: for samples of each reader, whether that has a listener or not and whichever way they come, and
    /// for a timer or what discovery hears. So it is a wait for several readers at once ([`crate::DataReader::take_next`] says
    /// which of them have come).
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] while another thread drives, or from a listener or a waker.
    pub fn run_once(&self, timeout: impl Into<Duration>) -> Result<()> {
        let timeout = timeout.into();
        // Who does not want to wait need not know the time.
        if timeout == Duration::ZERO {
            return self.executor.run_once(Some(Time(0)));
        }
        self.executor.run_once_for(timeout)
    }

    /// With [`crate::Driver::Inline`]: drives without a sleep as long as `goes_on` says so, which is asked at least
    /// each 100 us while there is little to do. Threads that wait are served meanwhile. What `goes_on` itself waits for,
    /// samples or room for them, is driven meanwhile by its thread, and it may call [`DomainParticipant::run_once`]. Under a
    /// real-time policy it rests now and then, before the kernel would stop it, and says so in the log.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] while another thread drives, from `goes_on` itself, or from a listener or a
    /// waker.
    pub fn poll_while(&self, goes_on: impl FnMut() -> bool) -> Result<()> {
        self.executor.poll_while(goes_on)
    }

    /// Where the time of the participant's work has gone: how long its steps waited and ran, class by class,
    /// the longest of them, and what follows from that for the next.
    pub fn latency_report(&self) -> LatencyReport {
        self.executor.latency_report()
    }

    /// Begins the latency report anew: from now on it tells of the steps and listeners from here on. For a program whose endpoints
    /// are made and matched, as what it did until then is not what it will do. `taut top` and Prometheus tell the times since then
    /// as well. *Cost*: the token, for some 55 kB that are cleared.
    pub fn begin_latency_report(&self) {
        self.executor.begin_latency_report();
    }

    /// The last 256 steps before the last time that there was cause to keep them ([`crate::RecordCause`]): something had run for
    /// longer than [`Config::flight_recorder_step`], a deadline was missed, or a sample took longer than its writer's
    /// LATENCY_BUDGET. `None` if there was none. It is made at most once a second, and told in the log if none was to be made in
    /// the minute before.
    pub fn flight_record(&self) -> Option<FlightRecord> {
        self.executor.flight_record().map(Arc::unwrap_or_clone)
    }

    /// What the participant has done: tokens, system calls, refused input.
    pub fn stats(&self) -> Stats {
        self.executor.stats()
    }
}

/// The most endpoints whose refusal the text of a wait in vain has. Lower and the one that was meant may not be among them,
/// higher and nobody reads it.
const SHOWN_REFUSALS: usize = 3;

/// Waits until an endpoint is matched with `count` others. `matched` says with how many it is.
///
/// *Errors*: [`Error::Timeout`], whose text says why not.
pub(crate) fn wait_matched(
    executor: &Executor,
    local: Guid,
    (count, timeout): (usize, Duration),
    matched: impl Fn(&taut_dcps::DomainParticipant) -> usize,
) -> Result<()> {
    let asked =
        "it has fewer matches; DomainParticipant::matches() tells why, as does a wait of more than zero";
    match wait_for(executor, timeout, asked, |participant, _| matched(participant) >= count) {
        // Who only asks whether it is so is told where to look, at no cost.
        Err(Error::Timeout(_)) if timeout > Duration::ZERO => check_matched(executor, local, count, matched),
        outcome => outcome,
    }
}

/// Is an endpoint matched with `count` others? *Errors*: as of [`wait_matched`].
#[cold]
pub(crate) fn check_matched(
    executor: &Executor,
    local: Guid,
    count: usize,
    matched: impl Fn(&taut_dcps::DomainParticipant) -> usize,
) -> Result<()> {
    let unmatched = executor.look(|participant, _| {
        let matched = matched(participant);
        (matched < count).then(|| Unmatched::new(participant.core(), local, matched, count))
    })?;
    // What takes long is done without the token.
    let text = unmatched.map(|unmatched| unmatched.to_string());
    text.map_or(Ok(()), |text| Err(Error::Timeout(ErrorText::Kept(Arc::new(text)))))
}

/// So many endpoints of others are looked at for a topic of a similar name. Lower finds fewer, higher holds up who waits for
/// the token meanwhile.
const COMPARED: usize = 64;

/// Why an endpoint has not as many matches as were waited for, as far as is known.
struct Unmatched {
    text: String,
    /// If there is nobody of its topic: that, and others' on which others have endpoints to match with.
    topics: Option<(String, Vec<String>)>,
    /// What is said after those.
    others: String,
}

impl Unmatched {
    fn new(core: &Participant, local: Guid, matched: usize, count: usize) -> Unmatched {
        let (ours, theirs) =
            if local.entity.is_writer() { ("writer", "reader") } else { ("reader", "writer") };
        let own = core.endpoint(local);
        let topic = own.map_or("", |data| data.topic_name.as_str());
        let mut text = format!("the {ours} of topic {topic:?} has {matched} of {count} matches");
        let database = core.database();
        let mut refused = core.refusals_of(local.entity);
        let mut is_any = false;
        for (remote, why) in refused.by_ref().take(SHOWN_REFUSALS) {
            is_any = true;
            let _ = write!(text, "; {theirs} {} does not match: {why}", core.named(remote));
        }
        let more = refused.count();
        if more > 0 {
            let _ = write!(text, "; {more} more do not match: see DomainParticipant::matches");
        }
        if is_any {
            return Unmatched { text, topics: None, others: String::new() };
        }
        let peers = database.peers().count();
        let (more, s) = (if matched == 0 { "" } else { "other " }, if peers == 1 { "" } else { "s" });
        let _ = write!(text, "; no {more}{theirs} of it is known");
        let is_other_side = |remote: Guid| remote.entity.is_writer() != local.entity.is_writer();
        let remote = database.endpoints().take(COMPARED).filter(|data| is_other_side(data.guid));
        let others = remote.map(|data| data.topic_name.clone()).filter(|name| name != topic).collect();
        let topics = Some((topic.to_owned(), others));
        Unmatched { text, topics, others: format!(", and {peers} other participant{s}") }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        // The one that was meant, perhaps. ROS 2 puts `rt/` in front of names.
        if let Some((topic, others)) = &self.topics
            && let Some(like) = closest(topic, others.iter().map(String::as_str))
        {
            write!(f, " (there is one of topic {like:?})")?;
        }
        f.write_str(&self.others)
    }
}

/// Waits until `ready`, at most for `timeout`. *Errors*: [`Error::Timeout`] with the text `in_vain`; as of [`Executor::may_wait`].
pub(crate) fn wait_for(
    executor: &Executor,
    timeout: Duration,
    in_vain: &'static str,
    mut ready: impl FnMut(&mut taut_dcps::DomainParticipant, Time) -> bool,
) -> Result<()> {
    executor.may_wait()?;
    executor
        .wait(ends(timeout), |participant, now| ready(participant, now).then_some(()))
        .ok_or(Error::Timeout(ErrorText::Fixed(in_vain)))
}

/// Writers that share PARTITION and PRESENTATION, and that can be told to expect more. Dropped while it is suspended, it
/// resumes: nothing is discarded.
pub struct Publisher {
    executor: Weak<Executor>,
    qos: PublisherQos,
    suspension: Arc<Suspension>,
}

/// A group's entities are its participant's. DCPS 1.4 §2.2.2.4.1.5, §2.2.2.5.2.5.
fn check_own<T: DdsType>(executor: &Weak<Executor>, topic: &Topic<T>) -> Result<()> {
    if std::ptr::eq(executor.as_ptr(), Arc::as_ptr(&topic.participant.executor)) {
        return Ok(());
    }
    let text = format!("topic {} is of another participant: make it by this one", topic.name());
    Err(Error::BadParameter(text))
}

/// What a [`Qos`](crate::Qos) says of the group is the group's already, or nothing: an entity has none of its own.
fn is_of_group<P: Default + PartialEq>(said: &P, own: &P) -> bool {
    said == own || *said == P::default()
}

/// *Errors*: [`Error::InconsistentPolicy`] for the first of these policies of a group that is not the group's.
fn check_of_group(policies: [(&str, bool); 3], group: &str) -> Result<()> {
    let Some((policy, _)) = policies.iter().find(|(_, is_of_group)| !is_of_group) else { return Ok(()) };
    Err(Error::InconsistentPolicy(format!(
        "{policy} is that of the {group}: give it to DomainParticipant::{group}, or leave the {group} out and make this one \
         by its topic"
    )))
}

impl Publisher {
    /// A writer of a topic.
    ///
    /// *Errors*: as [`Topic::writer`]; [`Error::BadParameter`] for a topic of another participant;
    /// [`Error::InconsistentPolicy`] for a [`Qos`](crate::Qos) with a PARTITION or PRESENTATION that is not the publisher's.
    pub fn writer<T: DdsType>(&self, topic: &Topic<T>, qos: impl Into<WriterQos>) -> Result<DataWriter<T>> {
        check_own(&self.executor, topic)?;
        let WriterQos { qos, publisher } = qos.into();
        let policies = [
            ("PRESENTATION", is_of_group(&publisher.presentation, &self.qos.presentation)),
            ("PARTITION", is_of_group(&publisher.partition, &self.qos.partition)),
            ("GROUP_DATA", is_of_group(&publisher.group_data, &self.qos.group_data)),
        ];
        check_of_group(policies, "publisher")?;
        let qos = WriterQos { qos, publisher: self.qos.clone() };
        topic.writer_of(qos, Some(Arc::clone(&self.suspension)))
    }

    /// Says that several writes follow: until [`Publisher::resume_publications`], for a second at most (with
    /// [`crate::Driver::Inline`] until a call finds it over), what its writers write may wait for what comes next, so that
    /// they share datagrams and leave by one call. What readers on this machine get past the network does not wait, nor do
    /// disposals and what has a TRANSPORT_PRIORITY; and what waits goes with whatever else there is to send. DCPS 1.4
    /// §2.2.2.4.1.8.
    pub fn suspend_publications(&self) {
        self.suspension.set(true);
    }

    /// Sends what waits. *Cost*: the token; a system call for what fills a row of datagrams. DCPS 1.4 §2.2.2.4.1.9.
    ///
    /// *Errors*: [`Error::PreconditionNotMet`] without [`Publisher::suspend_publications`].
    pub fn resume_publications(&self) -> Result<()> {
        let executor = self.executor.upgrade();
        executor.as_ref().map_or(Ok(()), |executor| executor.may_use())?;
        if !self.suspension.set(false) {
            let text = "the publisher is not suspended: call suspend_publications before";
            return Err(Error::PreconditionNotMet(text.into()));
        }
        // Without a participant there are no writers.
        if let Some(executor) = executor {
            executor.end_burst();
        }
        Ok(())
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if self.suspension.is_set() {
            // In the child of a fork the writers are the parent's.
            let _ = self.resume_publications();
        }
    }
}

/// Readers that share PARTITION and PRESENTATION.
pub struct Subscriber {
    executor: Weak<Executor>,
    qos: SubscriberQos,
}

impl Subscriber {
    /// A reader of a topic.
    ///
    /// *Errors*: as [`Topic::reader`]; [`Error::BadParameter`] for a topic of another participant;
    /// [`Error::InconsistentPolicy`] for a [`Qos`](crate::Qos) with a PARTITION or PRESENTATION that is not the subscriber's.
    pub fn reader<T: DdsType>(&self, topic: &Topic<T>, qos: impl Into<ReaderQos>) -> Result<DataReader<T>> {
        check_own(&self.executor, topic)?;
        let ReaderQos { qos, subscriber } = qos.into();
        let policies = [
            ("PRESENTATION", is_of_group(&subscriber.presentation, &self.qos.presentation)),
            ("PARTITION", is_of_group(&subscriber.partition, &self.qos.partition)),
            ("GROUP_DATA", is_of_group(&subscriber.group_data, &self.qos.group_data)),
        ];
        check_of_group(policies, "subscriber")?;
        topic.reader(ReaderQos { qos, subscriber: self.qos.clone() })
    }
}
