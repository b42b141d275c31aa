//! What a reader of another participant had not read of a lane when it left. RTPS 2.5 §8.4.9 (reliable writer).
//!
//! What goes through a lane is as good as acknowledged, and a volatile writer has it nowhere else. A reader may leave the
//! lane and stay matched, as its connection has ended: what it had not read by then is kept for it beside the history, and
//! repaired as all that a reader misses. Who drives finds it in the lane, as the protocol never looks into one. The writer's
//! owner may be about to write one more change there: until it is known that it is not, what comes next is in doubt, and
//! no reader is told that it is gone. Must keep no more than the lane held.

use taut_base::{Guid, SequenceNumber, Time};

use super::{ReaderProxy, Writer};
use crate::history_cache::CacheChange;
use crate::{Participant, WriterIndex};

/// What a reader that leaves a lane has read of it, and what not.
#[derive(Debug, Default)]
pub struct Unread {
    /// The number of the last change that it has read; 0 if that is not known.
    pub read_to: SequenceNumber,
    /// What the lane holds behind that, with rising numbers.
    pub changes: Vec<CacheChange>,
    /// Does the writer's owner know that the reader has left, so that no more comes?
    pub is_all: bool,
}

impl ReaderProxy {
    /// Is this kept for it, as it left a lane without having read it?
    pub(super) fn has_left(&self, number: SequenceNumber) -> bool {
        number > self.acked && number <= self.left_to
    }

    /// Up to where it has all, if it must: what did not go through the lane it has acknowledged.
    fn read_to(&self, unread: &Unread, off_lane: SequenceNumber) -> Option<SequenceNumber> {
        let from = self.lane_from.filter(|_| self.reliable)?;
        let before = unread.changes.first().map(|first| first.sequence_number.prev());
        Some(before.unwrap_or(unread.read_to.max(off_lane).max(from.prev())))
    }
}

impl Writer {
    /// A reader of another participant reads the lane no longer. It is sent what it had not read.
    pub fn leave_lane(&mut self, reader: Guid, unread: Unread) {
        self.catch_up();
        let off_lane = self.off_lane;
        // Who has not said that it reads the lane is sent all as it is.
        let read_to = self.proxies.get(&reader).and_then(|proxy| proxy.read_to(&unread, off_lane));
        self.set_lane(reader, None);
        if let (Some(read_to), Some(proxy)) = (read_to, self.proxies.get_mut(&reader)) {
            proxy.acked = proxy.acked.min(read_to);
            proxy.in_doubt = Some(read_to.max(off_lane));
            self.keep_unread(reader, unread);
        }
    }

    /// What was written into the lane since its reader left.
    pub fn keep_unread(&mut self, reader: Guid, unread: Unread) {
        self.catch_up();
        let Unread { changes, is_all, .. } = unread;
        let Writer { proxies, history, kept, last, .. } = self;
        let left = proxies.get_mut(&reader).filter(|proxy| proxy.reliable && proxy.in_doubt.is_some());
        let Some(proxy) = left else { return };
        if let (Some(first), Some(end)) = (changes.first(), changes.last()) {
            proxy.acked = proxy.acked.min(first.sequence_number.prev());
            proxy.left_to = proxy.left_to.max(end.sequence_number);
            proxy.in_doubt = proxy.in_doubt.max(Some(end.sequence_number));
        }
        if is_all {
            proxy.in_doubt = None;
        }
        proxy.heartbeat_due |= proxy.acked < *last;
        let is_owed = proxy.is_owed();
        changes.into_iter().filter(|change| history.get(change.sequence_number).is_none()).for_each(
            |change| {
                kept.keep(change);
            },
        );
        self.note_doubt();
        if is_owed {
            self.owe(reader);
        }
        self.update_link();
    }

    /// From where on changes are in doubt that are not held.
    pub(super) fn note_doubt(&mut self) {
        let doubts = self.proxies.values().filter_map(|proxy| proxy.in_doubt);
        self.kept.set_doubt(doubts.min());
    }
}

impl Participant {
    /// A reader of another participant reads a local writer's lane no longer. It is sent what it had not read.
    pub fn leave_reader_lane(&mut self, now: Time, index: WriterIndex, reader: Guid, unread: Unread) {
        if let Some(writer) = self.writers.get_mut(index.0) {
            writer.leave_lane(reader, unread);
        }
        self.wake_writer(now, index);
    }

    /// The same of what was written into the lane since then.
    pub fn keep_unread(&mut self, now: Time, index: WriterIndex, reader: Guid, unread: Unread) {
        if let Some(writer) = self.writers.get_mut(index.0) {
            writer.keep_unread(reader, unread);
        }
        self.wake_writer(now, index);
    }
}
