//! A writer whose destinations are paced: what it may send again, and what it holds while it waits.

use taut_base::{Guid, Locator, SequenceNumber};

use super::{Owed, Writer};
use crate::limits;
use crate::message::Tx;
use crate::schedule::Work;

impl Writer {
    /// May a reader be sent now what it is owed, and how much of it? If not the writer waits for that, and the reader gets a
    /// heartbeat that is due. One that is owed nothing else is not waited for.
    #[cold]
    pub(super) fn may_repair(
        &mut self,
        tx: &mut Tx<'_>,
        reader: Guid,
        group: Option<Locator>,
        part: &mut usize,
    ) -> bool {
        let Some(proxy) = self.proxies.get(&reader) else { return true };
        let is_owed_data = !matches!(proxy.owed, Owed::Nothing) || !proxy.fragments.is_empty();
        if !is_owed_data || proxy.is_paused() {
            return true;
        }
        // What others of its group need as well goes there.
        let route = &mut self.repair_route;
        route.clear();
        route.extend(proxy.unicast.iter().copied().chain(group));
        let (work, datagram) = (Work::Repair(self.index), self.paths.datagram());
        let Some(flow) = &mut tx.flow else { return true };
        match flow.admit(tx.now, work, self.priority, (route, datagram), 0) {
            Some(room) => {
                (tx.pays, tx.room) = (true, room);
                // Headers are not counted there: of the smallest fragments they are a quarter.
                let room = usize::try_from(room.saturating_mul(3).saturating_div(4)).unwrap_or(usize::MAX);
                *part = room.clamp(1, *part);
                true
            }
            None => {
                self.tell_one(tx, reader);
                false
            }
        }
    }

    /// The change that is half out, if one is.
    pub(super) fn under_way(&self) -> SequenceNumber {
        if self.fragment.0 > self.sent { self.fragment.0 } else { SequenceNumber::ZERO }
    }

    /// Before a write of so many bytes with KEEP_ALL, while what was written before waits to be sent: what all have that
    /// may ask for it, and is only to be sent once to those that may not, gives way where more than may be under way is
    /// held. Not what is half out.
    #[cold]
    pub(super) fn overwrite_acknowledged(&mut self, bytes: usize) {
        if !self.keep_all || self.durable {
            return;
        }
        let (acked, under_way) = (self.acked_by_all(), self.under_way());
        let most = limits::WINDOW_CHANGES.min(self.max_samples);
        loop {
            let is_full = self.history.len() >= most
                || self.history.bytes().saturating_add(bytes) > limits::WINDOW_BYTES;
            let numbers = self.history.from(SequenceNumber::ZERO).map(|change| change.sequence_number);
            let oldest = numbers.take(2).find(|number| *number != under_way);
            match oldest.filter(|oldest| is_full && *oldest <= acked) {
                Some(oldest) => self.history.remove(oldest),
                None => return,
            }
        }
    }
}
