//! Which reliable readers a writer waits for, for people who ask. No part of the path of a sample.

use taut_base::{Guid, GuidPrefix, SequenceNumber, Time};

use super::Writer;
use crate::{Participant, ReaderIndex};

/// Who it is that lags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lagging {
    /// A reader of another participant.
    Remote(Guid),
    /// A reader of this one.
    Local(ReaderIndex),
}

/// A reliable reader that does not have all that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lag {
    /// The reader.
    pub reader: Lagging,
    /// How many changes it has not acknowledged.
    pub behind: u64,
    /// When the first of them that is still held was written.
    pub since: Option<Time>,
    /// When it last answered, if it is of another participant and ever did.
    pub heard: Option<Time>,
    /// Changes and fragments that were sent to it alone.
    pub sent_again: u64,
    /// It is taking a history, for which its writer does not wait while there are others to wait for.
    pub is_joining: bool,
}

impl Participant {
    /// When a reader of another participant last answered a writer of this one, of whatever topic. That its discovery answers
    /// says nothing of what its readers take.
    /// *Cost*: a look at each reader of each writer.
    pub fn last_answer(&self, from: GuidPrefix) -> Option<Time> {
        let writers = self.writers.values().filter(|writer| !writer.guid.entity.is_builtin());
        let proxies = writers.flat_map(|writer| writer.proxies.values());
        proxies.filter(|proxy| proxy.guid.prefix == from).filter_map(|proxy| proxy.heard).max()
    }
}

impl Writer {
    /// The reliable readers that have not acknowledged all.
    /// *Cost*: a look at each reader, and at the history for each that lags; no allocation.
    pub fn lags(&self) -> impl Iterator<Item = Lag> {
        let remote = self.proxies.values().filter(|proxy| proxy.reliable).map(|proxy| {
            let reader = Lagging::Remote(proxy.guid);
            let is_joining = proxy.joining.is_some();
            Lag { is_joining, ..self.lag(reader, proxy.acked, proxy.heard, proxy.sent_again) }
        });
        let local = self.local.iter().filter(|local| local.reliable);
        let local = local.map(|local| self.lag(Lagging::Local(local.reader), local.delivered, None, 0));
        remote.chain(local).filter(|lag| lag.behind > 0)
    }

    fn lag(&self, reader: Lagging, acked: SequenceNumber, heard: Option<Time>, sent_again: u64) -> Lag {
        let behind = u64::try_from(self.last.0.saturating_sub(acked.0)).unwrap_or(0);
        let since = self.history.first_from(acked.next()).map(|change| change.time);
        Lag { reader, behind, since, heard, sent_again, is_joining: false }
    }
}
