//! Writes that have found no room, and what they are told when there is some.

use taut_base::Time;

use crate::timers::Timer;
use crate::writer::Writer;
use crate::{Event, Participant, WriterIndex};

impl Participant {
    /// A write has found no room: readers are to be asked for some.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_refused(&mut self, now: Time, index: WriterIndex) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        self.has_refused |= writer.note_refused();
        if let Some(at) = writer.ask_for_room(now) {
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
        let Participant { writers, has_refused, .. } = self;
        let have_room =
            writers.iter_mut().filter_map(|(_, writer)| writer.takes_again().then_some(writer.index));
        let have_room: Vec<_> = have_room.collect();
        *has_refused = writers.values().any(Writer::has_refused);
        for writer in have_room {
            self.timers.set(now, Timer::Flow);
            self.push_event(Event::Acknowledged { writer });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{MulticastChoice, NewChange, ReaderProxy, change};
    use taut_base::{EntityId, Guid, GuidPrefix, InstanceHandle, Locator};
    use taut_qos::{EndpointQos, History, ReliabilityKind};

    /// A reliable KEEP_ALL writer with so many samples of an instance, and a reader that acknowledges nothing.
    fn writer(of_each: usize) -> Writer {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, true));
        let mut qos = EndpointQos::default_writer();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut writer =
            Writer::new(guid, WriterIndex(0), &qos, History::KeepAll, Some(2), MulticastChoice::Auto);
        writer.limit_instances(of_each);
        let reader = Guid::new(GuidPrefix([2; 12]), EntityId::user(1, false, true));
        writer.match_reader(ReaderProxy::new(reader, true, vec![Locator::INVALID], Vec::new()), false);
        writer
    }

    #[test]
    fn who_waits_for_its_instance_is_not_told_of_room_for_others() {
        for (of_each, waits) in [(1, false), (2, true)] {
            let mut writer = writer(of_each);
            while writer
                .write(Time(1), &mut NewChange { instance: InstanceHandle([7; 16]), ..change() })
                .is_ok()
            {}
            assert_eq!(writer.note_refused(), waits);
            writer.ask_for_room(Time(1));
            assert!(!writer.takes_again(), "there is none");
            assert_eq!(writer.ask_for_room(Time(1)), None, "they were asked");
            assert_eq!(writer.has_refused(), waits);
        }
    }
}
