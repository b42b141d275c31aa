//! Readers of the built-in topics: discovery as data to wait for and to take. DCPS 1.4 §2.2.5.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use taut_base::{Duration, Error, ErrorText, Guid, Result};
use taut_dcps::InstanceState;

use crate::DomainParticipant;
use crate::builtin::{EndpointKind, EndpointSummary, ParticipantSummary};
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
/// gone between two takes.
pub struct BuiltinReader<T> {
    participant: DomainParticipant,
    snapshot: fn(&DomainParticipant) -> Vec<T>,
    seen: RefCell<Seen<T>>,
}

struct Seen<T> {
    changes: Option<u64>,
    known: BTreeMap<Guid, T>,
}

impl<T: BuiltinData> BuiltinReader<T> {
    fn new(participant: &DomainParticipant, snapshot: fn(&DomainParticipant) -> Vec<T>) -> BuiltinReader<T> {
        let seen = RefCell::new(Seen { changes: None, known: BTreeMap::new() });
        BuiltinReader { participant: participant.clone(), snapshot, seen }
    }

    fn look(&self) -> BTreeMap<Guid, T> {
        (self.snapshot)(&self.participant).into_iter().map(|data| (data.guid(), data)).collect()
    }

    /// What is new, has changed or has gone since the last take; not what has come and gone since then. *Cost*: a copy of all
    /// that is known.
    pub fn take(&self) -> Result<Vec<BuiltinSample<T>>> {
        let mut seen = self.seen.borrow_mut();
        seen.changes = Some(self.changes()?);
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
            let seen = self.seen.borrow().changes.unwrap_or(0);
            let left = Duration(timeout.0.saturating_sub(Duration::from(begun.elapsed()).0));
            wait_for(&self.participant.executor, left, in_vain, |participant, _| {
                participant.discovery_changes() != seen
            })?;
            // The three topics change together.
            let changes = self.changes()?;
            if self.look() != self.seen.borrow().known {
                return Ok(());
            }
            // What changes all the time is found without a wait.
            if left <= Duration::ZERO {
                return Err(Error::Timeout(ErrorText::Fixed(in_vain)));
            }
            self.seen.borrow_mut().changes = Some(changes);
        }
    }

    fn changes(&self) -> Result<u64> {
        self.participant.executor.look(|participant, _| participant.discovery_changes())
    }
}

impl DomainParticipant {
    /// DCPSParticipant: the other participants of the domain.
    pub fn builtin_participants(&self) -> BuiltinReader<ParticipantSummary> {
        BuiltinReader::new(self, |participant| {
            participant.discovered_participants().into_iter().filter(|found| !found.own).collect()
        })
    }

    /// DCPSPublication: their writers.
    pub fn builtin_publications(&self) -> BuiltinReader<EndpointSummary> {
        BuiltinReader::new(self, |participant| others(participant, EndpointKind::Writer))
    }

    /// DCPSSubscription: their readers.
    pub fn builtin_subscriptions(&self) -> BuiltinReader<EndpointSummary> {
        BuiltinReader::new(self, |participant| others(participant, EndpointKind::Reader))
    }
}

fn others(participant: &DomainParticipant, kind: EndpointKind) -> Vec<EndpointSummary> {
    let endpoints = participant.discovered_endpoints().into_iter();
    endpoints.filter(|found| found.kind == kind && !found.own).collect()
}
