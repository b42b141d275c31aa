//! Readers of the built-in topics: discovery as data to wait for and to take. DCPS 1.4 §2.2.5.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use taut_base::{Duration, Error, ErrorText, Guid, Result};
use taut_dcps::{DiscoveryChanges, Entity, InstanceState, StatusMask};
use taut_exec::Executor;

use crate::DomainParticipant;
use crate::builtin::{EndpointKind, EndpointSummary, ParticipantSummary, others, others_endpoints};
use crate::participant::wait_for;

/// A change of what discovery knows.
#[derive(Clone, PartialEq, Debug)]
pub struct BuiltinSample<T> {
    /// What it is now, or was last.
    pub data: T,
    /// Alive: it is new or has changed. Not alive: it has gone.
    pub instance_state: InstanceState,
}

/// What a built-in topic carries.
pub trait BuiltinData: Clone + PartialEq {
    /// The instance.
    fn guid(&self) -> Guid;
}

impl BuiltinData for ParticipantSummary {
    fn guid(&self) -> Guid {
        self.guid
    }
}

impl BuiltinData for EndpointSummary {
    fn guid(&self) -> Guid {
        self.guid
    }
}

/// Reads a built-in topic: keep-last 1, transient-local, without this participant's own entities, and without what has come and
/// gone between two takes. It belongs to one thread at a time. Who waits for more than one such topic, or for samples, too, has
/// [`DomainParticipant::on_discovery`] tell when to take.
pub struct BuiltinReader<T> {
    participant: DomainParticipant,
    topic: BuiltinTopic<T>,
    seen: RefCell<Seen<T>>,
}

/// Where a built-in topic is found.
struct BuiltinTopic<T> {
    /// How often it has changed.
    changes: fn(DiscoveryChanges) -> u64,
    /// What it has.
    content: fn(&Executor) -> Vec<T>,
}

struct Seen<T> {
    changes: u64,
    known: BTreeMap<Guid, T>,
}

impl<T: BuiltinData> BuiltinReader<T> {
    fn new(participant: &DomainParticipant, topic: BuiltinTopic<T>) -> BuiltinReader<T> {
        let seen = RefCell::new(Seen { changes: 0, known: BTreeMap::new() });
        BuiltinReader { participant: participant.clone(), topic, seen }
    }

    fn look(&self) -> BTreeMap<Guid, T> {
        (self.topic.content)(&self.participant.executor).into_iter().map(|data| (data.guid(), data)).collect()
    }

    /// What is new, has changed or has gone since the last take; not what has come and gone since then. *Cost*: a copy of all
    /// that is known.
    pub fn take(&self) -> Result<Vec<BuiltinSample<T>>> {
        let mut seen = self.seen.borrow_mut();
        seen.changes = self.changes()?;
        let now = self.look();
        let before = std::mem::replace(&mut seen.known, now);
        let alive = seen.known.iter().filter(|(guid, data)| before.get(guid) != Some(data));
        let mut samples: Vec<_> = alive
            .map(|(_, data)| BuiltinSample { data: data.clone(), instance_state: InstanceState::Alive })
            .collect();
        let gone = before.into_iter().filter(|(guid, _)| !seen.known.contains_key(guid));
        samples.extend(
            gone.map(|(_, data)| BuiltinSample { data, instance_state: InstanceState::NotAliveDisposed }),
        );
        Ok(samples)
    }

    /// Waits until discovery has found, changed or lost something of this topic since the last take.
    ///
    /// *Errors*: [`crate::Error::Timeout`]; [`crate::Error::PreconditionNotMet`] from a listener.
    pub fn wait(&self, timeout: impl Into<Duration>) -> Result<()> {
        let (timeout, begun) = (timeout.into(), Instant::now());
        let in_vain = "discovery has found, changed and lost nothing since the last take";
        loop {
            let seen = self.seen.borrow().changes;
            let left = Duration(timeout.0.saturating_sub(Duration::from(begun.elapsed()).0));
            wait_for(&self.participant.executor, left, in_vain, |participant, _| {
                (self.topic.changes)(participant.discovery_changes()) != seen
            })?;
            // What has come may have gone since.
            let changes = self.changes()?;
            if self.look() != self.seen.borrow().known {
                return Ok(());
            }
            // What changes all the time is found without a wait.
            if left <= Duration::ZERO {
                return Err(Error::Timeout(ErrorText::Fixed(in_vain)));
            }
            self.seen.borrow_mut().changes = changes;
        }
    }

    fn changes(&self) -> Result<u64> {
        self.participant.executor.look(|participant, _| (self.topic.changes)(participant.discovery_changes()))
    }
}

impl DomainParticipant {
    /// DCPSParticipant: the other participants of the domain.
    pub fn builtin_participants(&self) -> BuiltinReader<ParticipantSummary> {
        let changes = |changes: DiscoveryChanges| changes.participants;
        BuiltinReader::new(self, BuiltinTopic { changes, content: others })
    }

    /// DCPSPublication: their writers.
    pub fn builtin_publications(&self) -> BuiltinReader<EndpointSummary> {
        let content = |executor: &Executor| others_endpoints(executor, EndpointKind::Writer);
        BuiltinReader::new(self, BuiltinTopic { changes: |changes| changes.publications, content })
    }

    /// DCPSSubscription: their readers.
    pub fn builtin_subscriptions(&self) -> BuiltinReader<EndpointSummary> {
        let content = |executor: &Executor| others_endpoints(executor, EndpointKind::Reader);
        BuiltinReader::new(self, BuiltinTopic { changes: |changes| changes.subscriptions, content })
    }

    /// Calls `listener` when discovery has found, changed or lost another participant or an endpoint of one, of whichever
    /// built-in topic, on the thread that drives: do not wait in it. Changes that come together are one call, and what was known
    /// before is none: take that once the listener is set.
    ///
    /// It takes the place of the one that was set before, and ends with the participant, as one of a reader
    /// [does](crate::DataReader::set_listener). One that has captured the participant or an entity of it keeps it for ever:
    /// have it send into a channel.
    ///
    /// ```
    /// # use taut::{Config, DomainParticipant};
    /// # let config = Config { domain_id: 195, interfaces: vec!["lo".into()], ..Config::default() };
    /// let participant = DomainParticipant::with_config(&config)?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// participant.on_discovery(move || _ = tell.send(()));
    /// let others = participant.builtin_participants();
    /// let other = DomainParticipant::with_config(&config)?;
    /// let mut found = others.take()?;
    /// while found.is_empty() {
    ///     told.recv().unwrap();
    ///     found = others.take()?;
    /// }
    /// assert_eq!(found[0].data.guid, other.guid());
    /// # Ok::<(), taut::Error>(())
    /// ```
    pub fn on_discovery(&self, mut listener: impl FnMut() + Send + 'static) {
        let tell = move |kinds: StatusMask| {
            if kinds.intersects(StatusMask::DATA_AVAILABLE) {
                listener();
            }
        };
        let _ = self.executor.set_listener(Entity::Participant, Some(taut_exec::listener(tell)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use taut_derive::DdsType;

    use super::*;
    use crate::{Config, Qos};

    const SOON: Duration = Duration::from_secs(20);

    #[derive(DdsType)]
    #[dds(final, crate = ::taut_cdr)]
    struct Number {
        value: u32,
    }

    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    fn participant(domain_id: u32) -> DomainParticipant {
        let config = Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() };
        DomainParticipant::with_config(&config).unwrap()
    }

    /// Counts how often it looks.
    fn counted(
        participant: &DomainParticipant,
        changes: fn(DiscoveryChanges) -> u64,
    ) -> BuiltinReader<EndpointSummary> {
        let content = |executor: &Executor| {
            LOOKS.set(LOOKS.get() + 1);
            others_endpoints(executor, EndpointKind::Writer)
        };
        BuiltinReader::new(participant, BuiltinTopic { changes, content })
    }

    #[test]
    fn what_changes_of_other_topics_is_not_looked_at() {
        let (a, b) = (participant(114), participant(114));
        let publications = counted(&a, |changes| changes.publications);
        let reader = b.topic::<Number>("Found").unwrap().reader(Qos::default()).unwrap();
        a.builtin_participants().wait(SOON).unwrap();
        a.builtin_subscriptions().wait(SOON).unwrap();
        let waited = publications.wait(Duration::ZERO);
        assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
        assert_eq!(LOOKS.get(), 0);
        let writer = b.topic::<Number>("Found").unwrap().writer(Qos::default()).unwrap();
        publications.wait(SOON).unwrap();
        let found = publications.take().unwrap();
        assert_eq!(found.iter().map(|found| found.data.guid).collect::<Vec<_>>(), [writer.guid()]);
        drop(reader);
    }

    #[test]
    fn a_listener_hears_when_there_is_something_to_take() {
        let a = participant(116);
        let (tell, told) = std::sync::mpsc::channel();
        a.on_discovery(move || _ = tell.send(()));
        let (participants, publications) = (a.builtin_participants(), a.builtin_publications());
        let is_told = || told.recv_timeout(SOON.into()).unwrap();
        let b = participant(116);
        is_told();
        while participants.take().unwrap().is_empty() {
            is_told();
        }
        let next = || {
            loop {
                is_told();
                if let Some(sample) = publications.take().unwrap().pop() {
                    return (sample.data.guid, sample.instance_state);
                }
            }
        };
        let writer = b.topic::<Number>("Told").unwrap().writer(Qos::default()).unwrap();
        let guid = writer.guid();
        assert_eq!(next(), (guid, InstanceState::Alive));
        drop(writer);
        assert_eq!(next(), (guid, InstanceState::NotAliveDisposed));
    }

    /// As where somebody comes and goes all the time: whenever it asks, something has changed since it asked before.
    #[test]
    fn a_wait_ends_while_discovery_changes_all_the_time() {
        thread_local! {
            static CHANGES: Cell<u64> = const { Cell::new(0) };
        }
        let alone = participant(115);
        let publications = counted(&alone, |_| {
            CHANGES.set(CHANGES.get() + 1);
            assert!(CHANGES.get() < 1_000_000, "it does not end");
            CHANGES.get()
        });
        for timeout in [Duration::ZERO, Duration::from_millis(2)] {
            LOOKS.set(0);
            let waited = publications.wait(timeout);
            assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
            // Who asks without a wait is answered by one look.
            assert!(LOOKS.get() == 1 || timeout > Duration::ZERO, "{}", LOOKS.get());
        }
    }
}
