//! What changes for a writer whose changes also go through a lane, memory that its readers share.
//!
//! A lane keeps order and loses nothing for a reliable reader, so what goes through it is as good as
//! acknowledged: it needs no datagram, no heartbeat and, for a volatile writer, no place in the history.
//! What does not fit into a lane that is full goes the usual way, and the reader, which knows which number
//! comes next, puts the two together.

use taut_base::{Guid, SequenceNumber};

use super::{Owed, ReaderProxy, Writer};
use crate::ReaderIndex;
use crate::limits;

/// Numbers from the first to the last of a replay that grows while it waits.
const REPLAY_NUMBERS: i64 = limits::REPLAY_CHANGES as i64;

/// A reader of the same participant: changes go straight into its cache.
pub struct LocalReader {
    /// Which.
    pub reader: ReaderIndex,
    /// Does a change wait for room in its cache?
    pub reliable: bool,
    /// All changes up to this one are in its cache, or it takes them from the lane.
    pub delivered: SequenceNumber,
    /// Some of what follows waits for a step of its own.
    pub is_behind: bool,
    /// From this change on it takes from the lane what goes through it.
    pub lane_from: Option<SequenceNumber>,
    /// It knows that up to this change it has all that it does not take from the lane.
    pub told: SequenceNumber,
}

impl ReaderProxy {
    fn reads_lane(&self, number: SequenceNumber) -> bool {
        self.lane_from.is_some_and(|from| from <= number)
    }
}

impl LocalReader {
    /// The number up to which nothing more comes beside the lane, if the reader has all that and does not know it.
    fn untold(&self, off_lane: SequenceNumber) -> Option<SequenceNumber> {
        let beside = off_lane.max(self.lane_from?.prev());
        (self.delivered >= beside && self.told < beside).then_some(beside)
    }

    fn reads_lane(&self, number: SequenceNumber) -> bool {
        self.lane_from.is_some_and(|from| from <= number)
    }
}

impl Writer {
    /// All that was written through the protocol is with the readers of this participant, or on its way to the others: the
    /// lane may go on.
    #[inline]
    pub(crate) fn say_seen(&self) {
        self.link.set_seen(self.last);
    }

    /// A reader, of another participant, reads the lane from this change on; `None`: no longer.
    pub fn set_lane(&mut self, reader: Guid, from: Option<SequenceNumber>) {
        self.catch_up();
        let last = self.last;
        let Some(proxy) = self.proxies.get_mut(&reader) else { return };
        proxy.lane_from = from;
        proxy.come_back();
        let owed = if from.is_none() { last } else { self.off_lane };
        if proxy.reliable && proxy.acked < owed {
            proxy.heartbeat_due = true;
            self.owe(reader);
        }
        self.release();
        self.count_lane_readers();
        self.update_route();
        self.skip_lane();
        self.update_link();
    }

    /// The same for a reader of this participant. Returns the number after all that it was given.
    pub fn set_local_lane(
        &mut self,
        reader: ReaderIndex,
        from: Option<SequenceNumber>,
    ) -> Option<SequenceNumber> {
        self.catch_up();
        let local = self.local.iter_mut().find(|local| local.reader == reader)?;
        local.lane_from = from;
        let next = local.delivered.next();
        self.count_lane_readers();
        self.skip_lane();
        self.update_link();
        Some(next)
    }

    /// Takes note of what was written past the protocol: through the lane, or gone while that had no reader.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        let written = self.link.last();
        if written > self.last {
            self.catch_up_to(written);
        }
    }

    #[inline(never)]
    fn catch_up_to(&mut self, written: SequenceNumber) {
        if self.sent == self.last {
            self.sent = written;
        }
        // Nothing of it is in the history: who had all before has all that there is.
        for local in self.local.iter_mut().filter(|local| local.delivered >= self.last) {
            local.delivered = written;
        }
        self.last = written;
        let off_lane = self.link.off_lane();
        if off_lane > self.off_lane {
            self.off_lane = off_lane;
            let Writer { proxies, owed, .. } = self;
            let waits =
                |proxy: &ReaderProxy| proxy.reliable && proxy.lane_from.is_some() && proxy.acked < off_lane;
            for proxy in proxies.values_mut().filter(|proxy| waits(proxy)) {
                proxy.heartbeat_due = true;
                owed.add(proxy);
            }
        }
        self.skip_lane();
    }

    /// For a reader of this participant that has all that did not go through the lane, and has not been told
    /// so: the number after the last of it. Its lane may go on there.
    pub fn tell_off_lane(&mut self, at: usize) -> Option<SequenceNumber> {
        let off_lane = self.off_lane;
        let local = self.local.get_mut(at)?;
        local.told = local.untold(off_lane)?;
        Some(local.told.next())
    }

    /// Do all readers take a change from the lane that goes through it now?
    pub(super) fn all_read_the_lane(&self) -> bool {
        self.proxies.values().all(|proxy| proxy.reads_lane(self.last))
            && self.local.iter().all(|local| local.reads_lane(self.last))
    }

    /// Do readers of other participants take from the lane what tells them no more than that the writer is alive?
    pub(crate) fn is_unheard(&self) -> bool {
        !self.automatic && self.proxies.values().any(|proxy| proxy.lane_from.is_some())
    }

    /// Readers that have all that did not go through the lane have all.
    #[inline]
    pub(super) fn skip_lane(&mut self) {
        if self.has_lane_readers {
            self.skip_read_lane();
        }
    }

    #[inline(never)]
    fn skip_read_lane(&mut self) {
        let (off_lane, last) = (self.off_lane, self.last);
        let has_all = |from: Option<SequenceNumber>, has: SequenceNumber| {
            from.is_some_and(|from| has >= from.prev().max(off_lane))
        };
        for proxy in self.proxies.values_mut().filter(|proxy| has_all(proxy.lane_from, proxy.acked)) {
            proxy.acked = last;
        }
        for local in self.local.iter_mut().filter(|local| has_all(local.lane_from, local.delivered)) {
            local.delivered = last;
        }
    }

    /// The last change finds no room in the lane: who reads there gets it by itself.
    #[inline]
    pub(super) fn owe_to_lane_readers(&mut self) {
        if self.has_lane_readers {
            self.owe_last_to_lane_readers();
        }
    }

    #[inline(never)]
    fn owe_last_to_lane_readers(&mut self) {
        let last = self.last;
        let Writer { proxies, owed, .. } = self;
        for proxy in proxies.values_mut().filter(|proxy| proxy.lane_from.is_some()) {
            proxy.owed = match std::mem::take(&mut proxy.owed) {
                Owed::Nothing => Owed::Replay(last, last),
                Owed::Replay(from, _) if last.0.saturating_sub(from.0) < REPLAY_NUMBERS => {
                    Owed::Replay(from, last)
                }
                // A reliable reader asks for the rest when it hears of it.
                owed => owed,
            };
            proxy.heartbeat_due |= proxy.reliable;
            owed.add(proxy);
        }
    }

    /// Tells the owner whether the protocol has to see the next change.
    #[inline]
    pub(crate) fn update_link(&mut self) {
        // A route leads to who does not read the lane.
        let idle = self.route.is_empty() && self.is_idle();
        self.link.set_direct(idle);
    }

    #[inline(never)]
    fn is_idle(&self) -> bool {
        let may = !self.durable && self.automatic && self.owed.is_empty();
        may && self.sent >= self.last && self.all_read_the_lane() && self.is_acknowledged()
    }

    fn count_lane_readers(&mut self) {
        self.has_lane_readers = self.proxies.values().any(|proxy| proxy.lane_from.is_some())
            || self.local.iter().any(|local| local.lane_from.is_some());
    }
}
