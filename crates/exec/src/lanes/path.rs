//! Which way the samples of a matched pair go now, and why no better one: for people who ask.
//!
//! Only what the joins have come to counts, not what they are expected to come to. Locks are taken one
//! after another, never one within another, so an answer may be older than a join that runs meanwhile.

use std::collections::BTreeMap;
use std::fmt;

use taut_base::{Guid, GuidPrefix};
use taut_lock::Mutex;

use crate::executor::{Executor, Inner};
use crate::lanes::neighbours::{ENDED, NOT_JOINED};
use crate::lanes::own::HOST_PROPERTY;
use crate::lanes::pairs::PAIRS;
use crate::process::Process;

/// Reasons that are kept: those of as many pairs as a neighbour may have. Lower and among many that are refused some are
/// told less of why; higher and one that is met again and again under new names takes more memory.
const REASONS: usize = PAIRS;

/// The way of samples between a writer and a reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SamplePath {
    /// Both are in this process: the reader looks at what the writer has written.
    Process,
    /// The reader's process looks at memory of the writer's.
    SharedMemory,
    /// Datagrams.
    Network,
}

impl fmt::Display for SamplePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SamplePath::Process => "same process",
            SamplePath::SharedMemory => "shared memory",
            SamplePath::Network => "network",
        })
    }
}

/// Of what a reason is kept: of a pair, or of a participant of this host that was not reached, or refused, or has broken
/// off. The first are the first to make room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A writer and a reader, until they are unmatched. It counts while their participants are connected.
    Pair(Guid, Guid),
    Participant(GuidPrefix),
    /// It was refused before it said which participant it is.
    Process(u32),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Pair(writer, reader) => write!(f, "writer {writer}, reader {reader}"),
            Who::Participant(prefix) => write!(f, "{prefix}"),
            Who::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

/// Why participants of this host share no memory with this one.
#[derive(Default)]
pub(crate) struct Reasons(Mutex<BTreeMap<Who, String>>);

impl Reasons {
    pub fn note(&self, who: Who, why: String) {
        let mut reasons = self.0.lock();
        reasons.insert(who, why);
        if reasons.len() > REASONS {
            reasons.pop_first();
        }
    }

    pub fn forget(&self, who: Who) {
        self.0.lock().remove(&who);
    }

    /// The same of all pairs of an endpoint.
    pub fn forget_pairs_of(&self, endpoint: Guid) {
        let is_of =
            |who: &Who| matches!(who, Who::Pair(writer, reader) if [*writer, *reader].contains(&endpoint));
        self.0.lock().retain(|who, _| !is_of(who));
    }

    pub fn find(&self, who: Who) -> Option<String> {
        self.0.lock().get(&who).cloned()
    }
}

impl Executor {
    /// The way that samples between a local endpoint and one that it has matched go now, and, if that is
    /// the network, why.
    ///
    /// *Cost*: the token up to three times; not for the data path.
    pub fn path(&self, local: Guid, remote: Guid) -> (SamplePath, Option<String>) {
        match self.inner.joined(local, remote) {
            Some(path) => (path, None),
            None => (SamplePath::Network, Some(self.inner.why_network(local, remote))),
        }
    }
}

impl Inner {
    /// The way that a matched pair has been joined by.
    fn joined(&self, local: Guid, remote: Guid) -> Option<SamplePath> {
        if local.prefix == remote.prefix {
            // Without a lane the protocol puts samples into the caches of its own readers.
            return Some(SamplePath::Process);
        }
        let (writer, reader) = self.peek(|core| {
            let core = core.participant.core();
            (core.local_writer(local), core.local_reader(local))
        });
        let is_here = match (writer, reader) {
            (Some(index), _) => self.joins.route(index).is_here(remote),
            (_, Some(index)) => self.doors.get(index)?.is_here(remote),
            _ => None,
        }?;
        Some(if is_here { SamplePath::Process } else { SamplePath::SharedMemory })
    }

    fn why_network(&self, local: Guid, remote: Guid) -> String {
        if !self.local {
            return "local is off here".to_owned();
        }
        if let Some(other) = Process::this().find(remote.prefix) {
            let why = if other.local { NOT_JOINED } else { "local is off on the other side" };
            return why.to_owned();
        }
        let Some(own) = &self.neighbours.own else {
            return "this process could not open its memory to others: the log says why".to_owned();
        };
        let Some(announced) = self.announced(remote.prefix) else {
            return "the other participant has gone".to_owned();
        };
        match announced.host {
            None if !announced.is_taut => "another vendor".to_owned(),
            None => "local is off on the other side".to_owned(),
            Some(host) if host != own.host => "another host".to_owned(),
            Some(_) => self.why_not_met(local, remote, announced.pid),
        }
    }

    /// Why a participant of this host, that would share memory, does not.
    fn why_not_met(&self, local: Guid, remote: Guid, pid: Option<u32>) -> String {
        let reasons = &self.neighbours.reasons;
        let noted = reasons.find(Who::Participant(remote.prefix));
        if let Some(state) = self.neighbours.state(remote.prefix) {
            let of_pair =
                || reasons.find(Who::Pair(local, remote)).or_else(|| reasons.find(Who::Pair(remote, local)));
            // Since it was connected, what is noted of the participant is of the end.
            return match state {
                NOT_JOINED => of_pair(),
                ENDED => noted.map(|why| format!("{ENDED}: {why}")),
                _ => None,
            }
            .unwrap_or_else(|| state.to_owned());
        }
        let noted = noted.or_else(|| reasons.find(Who::Process(pid?)));
        noted.unwrap_or_else(|| {
            let other = "it has not connected: it may be of another network namespace, or of another user";
            if remote.prefix > self.prefix { NOT_JOINED } else { other }.to_owned()
        })
    }

    fn announced(&self, remote: GuidPrefix) -> Option<Announced> {
        self.peek(|core| {
            let peer = core.participant.core().database().peer(remote)?;
            let value = |name: &str| {
                let found = peer.data.properties.iter().find(|(key, _)| key == name);
                found.map(|(_, value)| value.clone())
            };
            Some(Announced {
                host: value(HOST_PROPERTY),
                is_taut: value("taut.version").is_some(),
                pid: value("taut.pid").and_then(|pid| pid.parse().ok()),
            })
        })
    }
}

/// What a participant says of itself that lanes depend on.
struct Announced {
    host: Option<String>,
    is_taut: bool,
    pid: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_bounded() {
        let reasons = Reasons::default();
        for pid in 0..2 * REASONS as u32 {
            reasons.note(Who::Process(pid), pid.to_string());
        }
        let last = 2 * REASONS as u32 - 1;
        assert_eq!(reasons.find(Who::Process(last)), Some(last.to_string()));
        assert_eq!(reasons.find(Who::Process(0)), None);
        assert_eq!(reasons.0.lock().len(), REASONS);
    }
}
