//! What the protocol learns of a reader that takes a remote writer's samples from a lane: where that begins, and what is
//! left when it ends. It never looks into a lane; who delivers does, and calls.

use taut_base::{Guid, SequenceNumber};

use crate::history_cache::CacheChange;
use crate::{Event, Participant, ReaderIndex, Sink};

impl Participant {
    /// The match of a local reader with a remote writer has ended. All below `next` had come through the lane, and what that
    /// held up to `told` was counted as lost.
    pub fn lose_writer_lane(
        &mut self,
        reader: ReaderIndex,
        writer: Guid,
        (next, told): (SequenceNumber, SequenceNumber),
    ) {
        if let Some(reader) = self.readers.get_mut(reader.0) {
            reader.lose_lane(writer, next, told);
        }
    }

    /// A local reader reads a remote writer's lane from now on. Returns which number it expects next, if the two
    /// are matched.
    pub fn begin_writer_lane(&mut self, reader: ReaderIndex, writer: Guid) -> Option<SequenceNumber> {
        let proxy = self.readers.get_mut(reader.0)?.proxies.get_mut(&writer)?;
        proxy.lane = true;
        Some(proxy.next_expected())
    }

    /// It reads the lane no longer; all below `next` has come, and so have these, which wait. What is next is delivered.
    pub fn end_writer_lane(
        &mut self,
        index: ReaderIndex,
        writer: Guid,
        next: SequenceNumber,
        waiting: Vec<CacheChange>,
        sink: &mut dyn Sink,
    ) {
        let Some(reader) = self.readers.get_mut(index.0) else { return };
        let Some(proxy) = reader.proxies.get_mut(&writer) else { return };
        proxy.lane = false;
        proxy.pass(next);
        let lost = proxy.put_all_back(waiting);
        let strength = proxy.strength;
        proxy.deliver_pending(|offer| sink.deliver(index, strength, offer));
        if proxy.reliable {
            proxy.ack_due = true;
            reader.queue_ack(writer);
        }
        self.wake_reader(index);
        if lost > 0 {
            self.push_event(Event::SampleLost { reader: index, count: lost });
        }
    }
}
