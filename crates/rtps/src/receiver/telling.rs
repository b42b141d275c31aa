//! What the layer above is to hear of what a datagram has done.
//!
//! A datagram may have each of many readers lose much, one after the other: each is told once, or nobody would be told of
//! what is behind that.

use taut_base::Guid;

use super::Rx;
use crate::ReaderIndex;
use crate::counters::bump;
use crate::event::Event;
use crate::limits;
use crate::reader::WriterProxy;

/// How many of the latest events are looked through for the same of the same reader. Lower and a datagram that many readers
/// lose much of tells of it often, higher and each costs as many looks.
const LATEST: usize = 64;

impl Rx<'_> {
    #[inline(always)]
    pub fn note_lost(&mut self, reader: ReaderIndex, count: u64) {
        if count > 0 {
            self.again().add_lost(reader, count);
        }
    }

    #[cold]
    fn add_lost(&mut self, lost_by: ReaderIndex, more: u64) {
        let latest = self.events.iter_mut().rev().map_while(|event| match event {
            Event::SampleLost { reader, count } => Some((reader, count)),
            _ => None,
        });
        let same = latest.take(LATEST).find(|(reader, _)| **reader == lost_by);
        match same {
            Some((_, count)) => *count = count.saturating_add(more),
            None => self.note(Event::SampleLost { reader: lost_by, count: more }),
        }
    }

    /// Something was delivered that had waited.
    #[inline]
    pub fn note_late(&mut self, reader: ReaderIndex, proxy: &WriterProxy, delivers: bool) {
        if delivers && !proxy.alive {
            self.add_late(reader, proxy.guid);
        }
    }

    #[cold]
    fn add_late(&mut self, late: ReaderIndex, of: Guid) {
        let is_same = |latest: &Event| matches!(latest, Event::DeliveredLate { reader, writer } if *reader == late && *writer == of);
        if !self.events.iter().rev().take(LATEST).any(is_same) {
            self.note(Event::DeliveredLate { reader: late, writer: of });
        }
    }

    pub fn note(&mut self, event: Event) {
        if self.events.len() < limits::EVENTS {
            self.events.push_back(event);
        } else {
            bump(&mut self.counters.too_many_events);
        }
    }
}
