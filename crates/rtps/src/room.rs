//! Writes that have found no room, and writers that go: what they are told when there is some, or all is sent.

use taut_base::Time;

use crate::timers::Timer;
use crate::writer::{NewChange, Writer};
use crate::{Event, Participant, WriterIndex};

impl Participant {
    /// A write has found no room: readers are to be asked for some.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_refused(&mut self, now: Time, index: WriterIndex, refused: &NewChange) {
        let Some(writer) = self.writers.get_mut(index.0) else { return };
        self.has_refused |= writer.note_refused(refused);
        if let Some(at) = writer.ask_for_room(now) {
            self.timers.set_heartbeat(at, index);
        }
    }

    /// A writer is to go: where sending is paced [`Event::Acknowledged`] tells when it has nothing unsent any more.
    pub fn note_going(&mut self, index: WriterIndex) {
        self.has_refused |= self.writers.get_mut(index.0).is_some_and(Writer::note_going);
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
    use crate::message::{Message, Tx};
    use crate::writer::{MulticastChoice, ReaderProxy, change};
    use taut_base::{EntityId, Guid, GuidPrefix, InstanceHandle, Locator, ProtocolVersion, VendorId};
    use taut_port::Loopback;
    use taut_qos::{EndpointQos, History, ReliabilityKind};
    use taut_wire::Header;

    /// A KEEP_ALL writer with so many samples of an instance, and a reader that acknowledges nothing.
    fn writer(of_each: usize, reliability: ReliabilityKind) -> Writer {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user(1, true, true));
        let mut qos = EndpointQos::default_writer();
        qos.reliability.kind = reliability;
        let mut writer =
            Writer::new(guid, WriterIndex(0), &qos, History::KeepAll, Some(2), MulticastChoice::Auto);
        writer.limit_instances(of_each);
        let reader = Guid::new(GuidPrefix([2; 12]), EntityId::user(1, false, true));
        writer.match_reader(ReaderProxy::new(reader, true, vec![Locator::INVALID], Vec::new()), false);
        writer
    }

    /// Writes one instance until there is no room.
    fn fill(writer: &mut Writer) {
        let mut of_one = NewChange { instance: InstanceHandle([7; 16]), ..change() };
        while writer.write(Time(1), &mut of_one).is_ok() {}
        assert!(writer.note_refused(&of_one));
        writer.ask_for_room(Time(1));
        assert!(!writer.takes_again(), "there is none");
        assert_eq!(writer.ask_for_room(Time(1)), None, "they were asked");
        assert!(writer.has_refused());
    }

    #[test]
    fn who_waits_for_its_instance_is_not_told_of_room_for_others() {
        for of_each in [1, 2] {
            let mut writer = writer(of_each, ReliabilityKind::Reliable);
            fill(&mut writer);
            assert_eq!(writer.has_room(), of_each == 1, "for others");
        }
    }

    #[test]
    fn who_waits_for_its_instance_is_told_once_of_room_that_comes_by_sending() {
        for of_each in [1, 2] {
            let mut writer = writer(of_each, ReliabilityKind::BestEffort);
            fill(&mut writer);
            let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
            let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
            writer.push(&mut Tx::new(Time(1), &mut Loopback::new(), &mut message, 9));
            assert!(writer.takes_again() && !writer.has_refused() && !writer.takes_again());
        }
    }

    #[test]
    fn who_goes_is_told_once_of_all_that_is_sent() {
        let mut writer = writer(1, ReliabilityKind::BestEffort);
        assert!(!writer.note_going(), "there is nothing to send");
        writer.write(Time(1), &mut change()).unwrap();
        assert!(writer.note_going() && !writer.takes_again());
        let (version, vendor) = (ProtocolVersion::RTPS_2_5, VendorId::UNKNOWN);
        let mut message = Message::new(Header { version, vendor, prefix: writer.guid.prefix });
        writer.push(&mut Tx::new(Time(1), &mut Loopback::new(), &mut message, 9));
        assert!(writer.takes_again() && !writer.has_refused() && !writer.takes_again());
    }
}
