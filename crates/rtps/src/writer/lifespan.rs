//! What ends by itself: samples whose LIFESPAN is over leave the history. DCPS 1.4 §2.2.3.16.
//!
//! A sample's age counts from its write, by this side's own clock. Readers go by its source timestamp: one that is older
//! than its write is sent, and dropped there. Who asks for what has gone is told so, as of all that is not held.

use taut_base::{SequenceNumber, Time};

use super::Writer;
use crate::history_cache::ChangeKind;

impl Writer {
    /// Forgets what is too old. Did anything have to go? *Cost*: looks at each change once.
    #[inline]
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        !self.lifespan.is_infinite() && self.expire_until(now)
    }

    #[cold]
    fn expire_until(&mut self, now: Time) -> bool {
        let (mut any, before) = (false, self.expired);
        if !self.kept.is_empty() {
            self.expire_kept(now);
        }
        while let Some((number, kind, at)) = self.next_to_expire().filter(|(_, _, at)| *at <= now) {
            debug_assert!(at <= now && number > self.expired);
            self.expired = number;
            // That an instance has ended stays true.
            if kind == ChangeKind::Alive {
                self.history.remove(number);
                any = true;
            }
        }
        // Those that all are told of later go then.
        if self.expired > before {
            any |= self.forget_ends();
        }
        if any {
            self.pass_holes();
            self.update_link();
        }
        any
    }

    /// What is too old and still held is the ends of instances of which nothing from before is held. Once all have been told
    /// of them, those that may come back too, nobody misses them: of ever new instances there are ever more. Had any to go?
    #[cold]
    pub(super) fn forget_ends(&mut self) -> bool {
        let Some(first) = self.history.first().filter(|first| *first <= self.expired) else { return false };
        let told = self.told().min(self.expired);
        self.history.remove_through(told);
        first <= told
    }

    /// The next change whose time comes, unless a part of it is out: then it goes when it is sent.
    fn next_to_expire(&self) -> Option<(SequenceNumber, ChangeKind, Time)> {
        let change = self.history.first_from(self.expired.next())?;
        let (number, kind) = (change.sequence_number, change.kind);
        let is_under_way = number > self.sent && number == self.fragment.0;
        (!is_under_way).then(|| (number, kind, change.time + self.lifespan))
    }

    /// Readers of this participant wait for nothing that is not there.
    pub(super) fn pass_holes(&mut self) {
        (0..self.local.len()).for_each(|at| self.pass_holes_of(at));
    }

    fn pass_holes_of(&mut self, at: usize) {
        let next = self.undelivered(at).map_or(self.last, |change| change.sequence_number.prev());
        if let Some(local) = self.local.get_mut(at) {
            local.delivered = local.delivered.max(next);
        }
    }

    /// A reader of this participant has been given what there is for it: what followed may have been too old.
    #[inline]
    pub(crate) fn pass_expired(&mut self, at: usize) {
        if !self.lifespan.is_infinite() {
            self.pass_holes_of(at);
        }
    }

    /// When the timer is to be set that looks for what is too old; `None` if it is set, or nothing is held.
    #[inline]
    pub(crate) fn want_expiry(&mut self) -> Option<Time> {
        if self.lifespan.is_infinite() || self.expires_at != Time::NEVER {
            return None;
        }
        self.want_next_expiry()
    }

    #[cold]
    fn want_next_expiry(&mut self) -> Option<Time> {
        self.expires_at = self.next_to_expire()?.2;
        Some(self.expires_at)
    }

    /// The timer has run out. Did anything have to go?
    pub(crate) fn on_expiry_timer(&mut self, now: Time) -> bool {
        self.expires_at = Time::NEVER;
        self.expire(now)
    }
}
