//! What writers have for readers of their own participant: it goes from one to the other, without a datagram.
//!
//! A history may be long. It is delivered in steps, and behind each of them others have their turn; what is written meanwhile
//! comes behind the history. A reader that has all before it gets what is written with the write: no step may be too short for
//! that. Called by writes, by matching, and by who has made room in a reader's cache.

use taut_base::{Guid, Time};

use crate::counters::bump;
use crate::event::Event;
use crate::limits;
use crate::participant::{Participant, Sink};
use crate::receiver::pass_lane;
use crate::timers::Timer;
use crate::writer::Writer;
use crate::{ReaderIndex, WriterIndex};

impl Participant {
    /// Gives the readers of this participant what a writer has for them: `left` changes, and at least one to each. What is
    /// more comes with [`Participant::match_more`].
    pub(crate) fn deliver_local(
        &mut self,
        now: Time,
        index: WriterIndex,
        sink: &mut dyn Sink,
        left: &mut usize,
    ) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        if writer.local.is_empty() {
            return;
        }
        let strength =
            self.locals.get(&writer.guid.entity).map_or(0, |local| local.data.qos.ownership_strength);
        let is_silent = writer.manual.is_lost;
        let (mut late, mut caught_up, mut is_any_left) = (Vec::new(), Vec::new(), false);
        for at in 0..writer.local.len() {
            let Some(before) = writer.local.get(at).map(|local| local.delivered) else { break };
            let delivered = deliver_to(writer, at, strength, sink, left);
            if delivered == Delivered::Refused {
                bump(&mut self.counters.refused_by_cache);
            }
            writer.pass_expired(at);
            let next = writer.tell_off_lane(at);
            let Some(local) = writer.local.get_mut(at) else { break };
            if is_silent && before < local.delivered {
                late.push(local.reader);
            }
            let was_behind = std::mem::replace(&mut local.is_behind, delivered == Delivered::Some);
            is_any_left |= local.is_behind;
            if was_behind && !local.is_behind {
                caught_up.push(local.reader);
            }
            if let Some(next) = next {
                sink.lane_next(local.reader, writer.guid, next);
            }
        }
        writer.after_delivery();
        let writer = writer.guid;
        late.into_iter().for_each(|reader| self.push_event(Event::DeliveredLate { reader, writer }));
        caught_up.into_iter().for_each(|reader| self.push_event(Event::HistoryReceived { reader, writer }));
        if is_any_left {
            self.deliver_later(now, index);
        }
    }

    /// A writer gives its readers here more when it is its turn, behind others, and behind timers that are due before.
    #[cold]
    fn deliver_later(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        if !std::mem::replace(&mut writer.queued.delivery, true) {
            self.undelivered.push_back(index);
        }
        self.timers.set(now, Timer::Beside);
    }

    /// Goes on where writers have more for readers here. *Cost*: about `left` changes.
    pub(crate) fn deliver_more(&mut self, now: Time, sink: &mut dyn Sink, left: &mut usize) {
        while *left > 0
            && let Some(index) = self.undelivered.pop_front()
        {
            if let Some(writer) = self.writers.get_mut(index.0) {
                writer.queued.delivery = false;
            }
            *left = left.saturating_sub(1);
            self.deliver_local(now, index, sink, left);
            self.push_event(Event::Acknowledged { writer: index });
            self.wake_writer(now, index);
        }
        let at = if self.undelivered.is_empty() { Time::NEVER } else { now };
        self.timers.set(at, Timer::Beside);
    }

    /// A reader's cache has room again: delivers what waits for it, of writers of this participant as much as one step may.
    /// They and those of others come first in turn, and so does each of both: no writer has all the room.
    pub fn on_room(&mut self, now: Time, index: ReaderIndex, sink: &mut dyn Sink) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        if reader.offers_to_local() {
            self.offer_to_local(now, index, sink);
            self.offer_to_remote(index, sink);
        } else {
            self.offer_to_remote(index, sink);
            self.offer_to_local(now, index, sink);
        }
    }

    /// Delivers what waits of writers of other participants.
    fn offer_to_remote(&mut self, index: ReaderIndex, sink: &mut dyn Sink) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        let mut late = Vec::new();
        reader.for_each_blocked(|proxy| {
            let (strength, before) = (proxy.strength, proxy.next_expected());
            proxy.deliver_pending(|offer| sink.deliver(index, strength, offer));
            // Behind what was delivered is what does not come any more.
            pass_lane(index, proxy, sink);
            late.extend((!proxy.alive && proxy.next_expected() > before).then_some(proxy.guid));
        });
        self.wake_reader(index);
        late.into_iter().for_each(|writer| self.push_event(Event::DeliveredLate { reader: index, writer }));
    }

    /// Delivers what waits of writers of this participant.
    fn offer_to_local(&mut self, now: Time, index: ReaderIndex, sink: &mut dyn Sink) {
        for at in 0_usize.. {
            let local = self.readers.get(index.0).and_then(|reader| reader.local.get(at));
            let Some(writer) = local.copied() else { break };
            self.deliver_later(now, writer);
        }
        self.deliver_more(now, sink, &mut { limits::LOCAL_CHANGES });
    }

    /// Is the history of a writer of this participant not yet all with a reader?
    pub(crate) fn is_behind(&self, reader: ReaderIndex, writer: Guid) -> bool {
        let writer = self.local_writer(writer).and_then(|index| self.writers.get(index.0));
        writer
            .is_some_and(|writer| writer.local.iter().any(|local| local.reader == reader && local.is_behind))
    }
}

/// What of a writer's changes a reader has been given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivered {
    /// All.
    All,
    /// As many as may be in one step.
    Some,
    /// All that there was room for.
    Refused,
}

fn deliver_to(
    writer: &mut Writer,
    at: usize,
    strength: i32,
    sink: &mut dyn Sink,
    left: &mut usize,
) -> Delivered {
    let mut most = (*left).max(1);
    while let Some(change) = writer.undelivered(at) {
        if most == 0 {
            return Delivered::Some;
        }
        let (number, change) = (change.sequence_number, change.clone());
        let Some(local) = writer.local.get_mut(at) else { break };
        if let Some(passage) = writer.calls.as_ref().and_then(|calls| calls.passage(&change)) {
            sink.note_passage(local.reader, writer.guid, number, passage);
        }
        let mut offer = Some(change);
        sink.deliver(local.reader, strength, &mut offer);
        if offer.is_some() && local.reliable {
            return Delivered::Refused;
        }
        local.delivered = number;
        most = most.saturating_sub(1);
        *left = left.saturating_sub(1);
    }
    Delivered::All
}
