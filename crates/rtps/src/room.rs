//! Writes that have found no room, and what they are told when there is some.

use taut_base::Time;

use crate::writer::Writer;
use crate::{Event, Participant, WriterIndex};

impl Participant {
    /// A write has found no room: readers are to be asked for some.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_refused(&mut self, now: Time, index: WriterIndex) {
        self.has_refused = true;
        if let Some(at) = self.writers.get_mut(index.0).and_then(|writer| writer.ask_for_room(now)) {
            self.timers.set_heartbeat(at, index);
        }
    }

    /// Tells of room that has come by sending alone: where that is paced, who acknowledges nothing makes none. Events are looked
    /// at behind a timer.
    #[cold]
    pub(crate) fn tell_of_room(&mut self, now: Time) {
        if !self.has_refused {
            return;
        }
        let Participant { writers, has_refused, timers, .. } = self;
        let refused = writers.iter_mut().filter(|(_, writer)| writer.has_refused());
        let have_room: Vec<_> =
            refused.filter_map(|(_, writer)| writer.takes_again().then_some(writer.index)).collect();
        *has_refused = writers.values().any(Writer::has_refused);
        have_room.iter().for_each(|writer| timers.set_heartbeat(now, *writer));
        have_room.into_iter().for_each(|writer| self.push_event(Event::Acknowledged { writer }));
    }
}
