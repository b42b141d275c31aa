//! Which reliable readers a writer waits for, for people who ask. No part of the path of a sample.

use std::fmt;

use taut_base::{Guid, GuidPrefix, SequenceNumber, Time};

use super::Writer;
use super::window::DATAGRAM;
use crate::{Participant, ReaderIndex, limits};

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

/// What a KEEP_ALL writer has as much of as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Changes, by RESOURCE_LIMITS `max_samples`.
    MaxSamples(u64),
    /// Changes of an instance, by `max_samples_per_instance`.
    MaxSamplesPerInstance(usize),
    /// Changes in its lane, which has so many places.
    Lane(u64),
    /// Changes that are not acknowledged.
    Changes,
    /// Bytes or datagrams that are not acknowledged; so many bytes, fewer than at first where more were lost.
    Window(usize),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::MaxSamples(samples) => write!(f, "max_samples {samples} reached"),
            Limit::MaxSamplesPerInstance(samples) => write!(f, "max_samples_per_instance {samples} reached"),
            Limit::Lane(places) => write!(f, "the lane of {places} samples is full"),
            Limit::Changes => write!(f, "{} samples are not acknowledged", limits::WINDOW_CHANGES),
            Limit::Window(bytes) => {
                let datagrams = bytes / DATAGRAM;
                write!(f, "the window of {datagrams} datagrams or {} KiB is full", bytes >> 10)
            }
        }
    }
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

    /// What keeps a KEEP_ALL writer from one more change: the first question of [`Writer::has_room`] that has no for an
    /// answer, or else what an instance may have.
    #[cold]
    pub fn limit(&self) -> Option<Limit> {
        if self.held() >= self.max_samples {
            return Some(Limit::MaxSamples(self.max_samples as u64));
        }
        if self.has_room() {
            let per_instance = Limit::MaxSamplesPerInstance(self.max_samples_per_instance);
            return self.counts_instances.then_some(per_instance);
        }
        let unacked =
            usize::try_from(self.last.0.saturating_sub(self.acked_by_all().0)).unwrap_or(usize::MAX);
        if unacked >= limits::WINDOW_CHANGES {
            return Some(Limit::Changes);
        }
        let bytes = if self.window.has_room() { limits::WINDOW_BYTES } else { self.window.limit };
        Some(Limit::Window(bytes))
    }

    fn lag(&self, reader: Lagging, acked: SequenceNumber, heard: Option<Time>, sent_again: u64) -> Lag {
        let behind = u64::try_from(self.last.0.saturating_sub(acked.0)).unwrap_or(0);
        let since = self.history.first_from(acked.next()).map(|change| change.time);
        Lag { reader, behind, since, heard, sent_again, is_joining: false }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::{EntityId, SequenceNumberSet};
    use taut_mem::Bytes;
    use taut_qos::{EndpointQos, History, ReliabilityKind};

    use super::*;
    use crate::WriterIndex;
    use crate::writer::{Full, MulticastChoice, NewChange, ReaderProxy, change};

    /// A KEEP_ALL writer with a reliable reader.
    fn writer(max_samples: Option<u32>) -> Writer {
        let guid =
            |prefix, is_writer| Guid::new(GuidPrefix([prefix; 12]), EntityId::user(1, is_writer, false));
        let mut qos = EndpointQos::default_writer();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let (history, choice) = (History::KeepAll, MulticastChoice::Auto);
        let mut writer = Writer::new(guid(1, true), WriterIndex(0), &qos, history, max_samples, choice);
        writer.match_reader(ReaderProxy::new(guid(2, false), true, Vec::new(), Vec::new()), false);
        assert_eq!(writer.limit(), None);
        writer
    }

    /// What it says of a reader that acknowledges nothing, after as many changes of so many bytes as it takes.
    fn limit_of(max_samples: Option<u32>, bytes: usize) -> String {
        let mut writer = writer(max_samples);
        let new = || NewChange { payload: Bytes::copy_from(&vec![0; bytes]), ..change() };
        for _ in 0..=limits::WINDOW_CHANGES {
            if writer.write(Time(0), &mut new()) == Err(Full) {
                return writer.limit().unwrap().to_string();
            }
        }
        panic!("it takes more than {} changes", limits::WINDOW_CHANGES);
    }

    /// Its owner sees that it is full, and leaves no more.
    #[test]
    fn what_was_left_goes_above_the_limit_and_is_the_last_to_be_left() {
        let mut writer = writer(None);
        let write = |writer: &mut Writer, was_left| {
            let outcome = writer.write(Time(0), &mut NewChange { was_left, ..change() });
            (outcome.is_ok(), writer.link.is_full())
        };
        (0..limits::WINDOW_CHANGES).for_each(|_| assert_eq!(write(&mut writer, false), (true, false)));
        assert_eq!(write(&mut writer, true), (true, true));
        assert_eq!(write(&mut writer, false), (false, true));
        let (all, reader) = (SequenceNumber(writer.last.0 + 1), writer.proxies.values().next().unwrap().guid);
        writer.sent = writer.last;
        writer.on_acknack(Time(0), reader, &SequenceNumberSet::new(all), 1, true);
        assert!(!writer.link.is_full());
    }

    #[test]
    fn a_writer_says_which_of_its_limits_it_has_come_to() {
        assert_eq!(limit_of(Some(8), 1), "max_samples 8 reached");
        assert_eq!(limit_of(None, 8 << 20), "the window of 1024 datagrams or 16384 KiB is full");
        assert_eq!(limit_of(None, 1), "4096 samples are not acknowledged");
    }
}
