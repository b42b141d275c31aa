//! A user's writer that has fallen back: it says for a while that it has written less than is believed. RTPS 2.5 §8.3.5.4
//! (sequence numbers only rise).
//!
//! Somebody else has started again under its name, or a number far ahead was forged or damaged. Whatever it was: who goes on to
//! wait for what comes behind that number hears no more of the writer for good.

use taut_base::Time;
use taut_wire::Heartbeat;

use super::WriterProxy;

impl WriterProxy {
    /// Is this a heartbeat of one that has [started again](WriterProxy::has_restarted)? Then its stream is heard as if it were
    /// matched just now: what it still has is taken, also what came before. Of one with a lane numbers here say little.
    #[inline]
    pub fn has_fallen_back(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        let is_doubtful = self.doubted.is_some() || heartbeat.last_sn.next() < self.next;
        is_doubtful && !self.lane && self.history_until.is_none() && self.falls_back(now, heartbeat)
    }

    #[cold]
    fn falls_back(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        let falls_back = self.reliable && !self.held && self.has_restarted(now, heartbeat);
        if falls_back {
            self.hear_anew();
        }
        falls_back
    }

    /// Forgets the stream; what is known of the match stays.
    fn hear_anew(&mut self) {
        let locators = std::mem::take(&mut self.locators);
        let anew = WriterProxy::new(self.guid, self.reliable, self.strength, locators);
        let WriterProxy {
            skips_history,
            has_turn,
            heard,
            spoke_at,
            liveliness,
            alive,
            clock,
            least_patience,
            ..
        } = std::mem::replace(self, anew);
        (self.skips_history, self.has_turn, self.heard, self.spoke_at) =
            (skips_history, has_turn, heard, spoke_at);
        (self.liveliness, self.alive, self.clock, self.least_patience) =
            (liveliness, alive, clock, least_patience);
    }
}
