//! Reliable readers that are taking a history: whom a KEEP_ALL writer waits for meanwhile. DCPS 1.4 §2.2.3.4, RTPS 2.5
//! §8.4.9.
//!
//! What they have not got yet a durable history holds in any case, and not because of them. To wait until they have it
//! would keep nothing, and keep all other readers waiting for as long as it takes to send a history. So the writer goes by
//! the others, if there are any. Once such a reader is through with what there was it is waited for as all are, unless so
//! much was written meanwhile that this would be a long wait, too. Called by the writer only.

use taut_base::{Guid, SequenceNumber};

use super::Writer;
use crate::limits;

/// So many changes are a long wait. Lower lets a reader go on joining that is nearly there, higher has others wait for it.
const MANY: i64 = limits::WINDOW_CHANGES as i64 / 2;

/// How far a reader is that is taking a history.
#[derive(Clone, Copy)]
pub(super) struct Joining {
    /// It is through once it has all up to this change.
    to: SequenceNumber,
    /// How many it missed when that was the last one.
    missed: i64,
}

impl Joining {
    /// One that has up to `acked` of a history up to `last`.
    pub fn begin(acked: SequenceNumber, last: SequenceNumber) -> Joining {
        Joining { to: last, missed: last.0.saturating_sub(acked.0) }
    }

    /// The same once it has more. One that misses more than half of what it missed when it began does not keep up with its
    /// writer, and never will: it is waited for, as every slow reader is.
    fn go_on(self, acked: SequenceNumber, last: SequenceNumber) -> Option<Joining> {
        if acked < self.to {
            return Some(self);
        }
        let rest = Joining::begin(acked, last);
        (rest.missed > MANY && rest.missed <= self.missed / 2).then_some(rest)
    }
}

impl Writer {
    /// A matched reader is to have what there is from the beginning on. With KEEP_LAST nobody waits for it.
    pub(super) fn begin_joining(&mut self, reader: Guid) {
        let (last, waits) = (self.last, self.keep_all);
        if let Some(proxy) = self.proxies.get_mut(&reader).filter(|proxy| proxy.reliable && waits) {
            proxy.joining = Some(Joining::begin(SequenceNumber::ZERO, last));
            self.proxies.has_joiners = true;
        }
    }

    /// A matched reader has forgotten what it had acknowledged. A durable history has it still.
    #[cold]
    pub(super) fn fall_back(&mut self, reader: Guid) {
        if self.durable {
            self.begin_joining(reader);
        }
    }

    /// The readers have changed.
    pub(super) fn look_for_joiners(&mut self) {
        let any = self.proxies.values().any(|proxy| proxy.joining.is_some());
        self.proxies.has_joiners = any;
    }

    /// A reader has acknowledged more. Returns up to where all have that the writer waits for.
    #[cold]
    pub(super) fn settle_joiners(&mut self) -> SequenceNumber {
        let last = self.last;
        for proxy in self.proxies.values_mut() {
            proxy.joining = proxy.joining.and_then(|joining| joining.go_on(proxy.acked, last));
        }
        self.look_for_joiners();
        self.acked_beside_joiners()
    }

    /// Up to where all have acknowledged that the writer waits for: those that are not joining, if there are any.
    fn acked_beside_joiners(&self) -> SequenceNumber {
        let others = self.proxies.values().filter(|proxy| proxy.reliable && proxy.joining.is_none());
        let local = self.local.iter().filter(|local| local.reliable).map(|local| local.delivered);
        let acked = others.map(|proxy| proxy.acked).chain(local).min();
        acked.unwrap_or_else(|| self.acked_by_all())
    }

    /// Is there room for one more change, as far as those are concerned?
    #[cold]
    pub(super) fn has_room_beside_joiners(&self) -> bool {
        let unacked = self.last.0.saturating_sub(self.acked_beside_joiners().0);
        usize::try_from(unacked).is_ok_and(|unacked| unacked < limits::WINDOW_CHANGES)
            && self.window.has_room()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_keep_up_is_waited_for() {
        let (number, long) = (SequenceNumber, 100 * MANY);
        let joining = Joining::begin(number(0), number(long));
        let missed = |acked, last| joining.go_on(number(acked), number(last)).map(|joining| joining.missed);
        assert_eq!(missed(long - 1, 9 * long), Some(long), "it is not through with what there was");
        assert_eq!(missed(long, long + MANY), None, "it is as good as there");
        assert_eq!(missed(long, long + MANY + 1), Some(MANY + 1), "it takes them twice as fast at least");
        assert_eq!(missed(long, long + long / 2), Some(long / 2));
        assert_eq!(missed(long, long + long / 2 + 1), None);
    }
}
