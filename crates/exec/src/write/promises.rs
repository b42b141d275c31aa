//! The deadlines that writers have promised, between the threads that write and the one that drives.
//!
//! A write that goes through a lane alone meets no token, so what it has to say of its deadline is behind a lock of
//! its own, held for one write or for one look. Order of locks: the token, the list, a promise.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taut_base::{InstanceHandle, Time};
use taut_dcps::{DEADLINES_PER_STEP, Missed, OfferedDeadlines, SHORTEST_PAUSE};
use taut_lock::Mutex;
use taut_rtps::WriterIndex;
use taut_rtps::history_cache::ChangeKind;

/// What one writer has promised.
pub(crate) type Promise = Mutex<OfferedDeadlines>;

/// The writers of a participant whose DEADLINE is finite.
pub(crate) struct Promises {
    list: Mutex<Vec<(WriterIndex, Arc<Promise>)>>,
    /// When to look at them; may be early.
    next: AtomicI64,
    /// None comes before.
    rests_until: AtomicI64,
}

impl Default for Promises {
    fn default() -> Promises {
        let (next, rests_until) = (AtomicI64::new(Time::NEVER.0), AtomicI64::new(Time::AT_ONCE.0));
        Promises { list: Mutex::default(), next, rests_until }
    }
}

impl Promises {
    pub fn add(&self, writer: WriterIndex, deadlines: OfferedDeadlines) -> Arc<Promise> {
        let promise = Arc::new(Mutex::new(deadlines));
        self.list.lock().push((writer, Arc::clone(&promise)));
        promise
    }

    pub fn remove(&self, writer: WriterIndex) {
        self.list.lock().retain(|(known, _)| *known != writer);
    }

    /// When to look at them. *Cost*: one load. Who is about to sleep until then looks once more after having said so.
    #[inline]
    pub fn next(&self) -> Time {
        Time(self.next.load(Ordering::SeqCst))
    }

    /// An instance was written, disposed of or unregistered. Returns when the driver is to look, if it does not know.
    pub fn note(
        &self,
        promise: &Promise,
        at: Time,
        instance: InstanceHandle,
        kind: ChangeKind,
    ) -> Option<Time> {
        let next = {
            let mut deadlines = promise.lock();
            deadlines.note(at, instance, kind);
            deadlines.next()?.max(Time(self.rests_until.load(Ordering::SeqCst)))
        };
        // Most often it is later than that of another instance, or the same as before.
        self.hasten(next).then_some(next)
    }

    /// They are looked at then, too. Returns whether that is before all that the driver knows of.
    pub fn hasten(&self, next: Time) -> bool {
        next.0 < self.next.fetch_min(next.0, Ordering::SeqCst)
    }

    /// After a look: the next one is not at once, unless something is left to be told.
    pub fn rest(&self, now: Time) {
        if self.next() > now {
            let until = (now + SHORTEST_PAUSE).0;
            self.rests_until.store(until, Ordering::SeqCst);
            self.next.fetch_max(until, Ordering::SeqCst);
        }
    }

    /// Tells of the deadlines that were missed, as far as one step may look.
    pub fn look(&self, now: Time, mut tell: impl FnMut(WriterIndex, Missed)) {
        if self.next() > now {
            return;
        }
        // What is noted from here on is not overwritten.
        self.next.store(Time::NEVER.0, Ordering::SeqCst);
        let mut budget = DEADLINES_PER_STEP;
        for (writer, promise) in self.list.lock().iter() {
            let mut deadlines = promise.lock();
            let missed = deadlines.look(now, &mut budget);
            let next = deadlines.next().unwrap_or(Time::NEVER);
            drop(deadlines);
            self.next.fetch_min(next.0, Ordering::SeqCst);
            if missed.is_any() {
                tell(*writer, missed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_base::Duration;

    use super::*;

    #[test]
    fn the_driver_is_told_of_what_is_due_before_all_that_it_knows() {
        let promises = Promises::default();
        let deadlines = |period| OfferedDeadlines::new(Duration(period), None);
        let (slow, quick) =
            (promises.add(WriterIndex(0), deadlines(100)), promises.add(WriterIndex(1), deadlines(10)));
        let note = |promise, at, instance| {
            promises.note(promise, Time(at), InstanceHandle([instance; 16]), ChangeKind::Alive)
        };
        assert_eq!(promises.next(), Time::NEVER);
        assert_eq!((note(&slow, 0, 1), note(&slow, 1, 1), note(&slow, 2, 2)), (Some(Time(100)), None, None));
        assert_eq!((note(&quick, 3, 1), promises.next()), (Some(Time(13)), Time(13)));
        let look = |now| {
            let mut told = Vec::new();
            promises.look(Time(now), |writer, missed| told.push((writer.0, missed.count)));
            (told, promises.next())
        };
        assert_eq!(look(12), (vec![], Time(13)));
        assert_eq!(look(13), (vec![(1, 1)], Time(23)));
        promises.remove(WriterIndex(1));
        assert_eq!(look(100), (vec![], Time(101)), "one of the two was written again");
        assert_eq!(look(102), (vec![(0, 2)], Time(201)));
    }

    #[test]
    fn a_period_that_nobody_can_keep_is_looked_at_now_and_then() {
        let promises = Promises::default();
        let promise = promises.add(WriterIndex(0), OfferedDeadlines::new(Duration(1), None));
        let (start, pause) = (Time(0), SHORTEST_PAUSE);
        promises.note(&promise, start, InstanceHandle([1; 16]), ChangeKind::Alive);
        let look = |now: Time| {
            let mut told = 0;
            promises.look(now, |_, missed| told += missed.count);
            promises.rest(now);
            told
        };
        assert_eq!((look(Time(1)), promises.next()), (1, Time(1) + pause));
        let again = promises.note(&promise, Time(1), InstanceHandle([1; 16]), ChangeKind::Alive);
        assert_eq!((again, promises.next()), (None, Time(1) + pause), "nobody is woken for it");
        let all = u64::try_from(pause.0).unwrap();
        assert_eq!(look(Time(1) + pause), all, "each period counts, whenever it is looked at");
        // What is due later than that is looked at when it is due, and nothing is not looked at.
        let slow = promises.add(WriterIndex(1), OfferedDeadlines::new(pause.times(5), None));
        promises.remove(WriterIndex(0));
        promises.note(&slow, start + pause, InstanceHandle([1; 16]), ChangeKind::Alive);
        assert_eq!((look(start + pause.times(3)), promises.next()), (0, start + pause.times(6)));
        promises.remove(WriterIndex(1));
        assert_eq!((look(start + pause.times(6)), promises.next()), (0, Time::NEVER));
    }
}
