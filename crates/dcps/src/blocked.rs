//! What waits in the protocol for room in a reader's cache, and how much room is worth to be told of.
//!
//! Each time the driver hears of room it takes the token, delivers what fits and acknowledges that, and a writer that is blocked
//! wakes up. A full reader that told of the place of each sample it takes would have all that for each sample.

use taut_base::{Duration, Time};
use taut_rtps::limits;

use crate::reader_side::ReaderSide;

/// So many samples that were taken are room enough, or a quarter of those that the cache had held: what one step delivers
/// elsewhere, too. Lower has a reader that falls behind acknowledge more often, higher makes that step longer.
const ROOM: usize = limits::LOCAL_CHANGES;

/// Less room is told of after so long, if the owner takes no more meanwhile. Lower tells of little room to a slow reader, higher
/// has what waits wait longer while there is room for it.
pub(crate) const LATEST: Duration = Duration::from_millis(1);

/// Does something wait for room, and since when is there some?
#[derive(Debug)]
pub(crate) struct Blocked {
    is: bool,
    /// What the cache held when it was full.
    held: usize,
    /// When who drives is to look, as there is some room.
    look_at: Time,
}

impl Default for Blocked {
    fn default() -> Blocked {
        Blocked { is: false, held: 0, look_at: Time::NEVER }
    }
}

impl Blocked {
    /// When to call [`Blocked::is_due`].
    pub fn next_timeout(&self) -> Time {
        self.look_at
    }

    /// Is it time to tell of what room there is? Forgets that.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.look_at <= now;
        if is_due {
            self.look_at = Time::NEVER;
        }
        is_due
    }
}

impl ReaderSide {
    /// A change found no room. One that is refused when another one waits does not know what room that waits for.
    #[cold]
    pub(crate) fn note_blocked(&mut self) {
        let Blocked { held, look_at, .. } = self.blocked;
        self.blocked = Blocked { is: true, held: held.max(self.cache.len()), look_at };
    }

    /// Does a change wait in the protocol for room?
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.is
    }

    /// Does a change wait in the protocol for room, and is there some? Forgets both.
    pub(crate) fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.cache.freed) && std::mem::take(&mut self.blocked).is
    }

    /// The owner has taken samples: does a change wait in the protocol for room, and is there enough to tell of? Forgets it
    /// then. Of less who drives tells after a while. Asks for the time only if it needs to know.
    #[inline]
    pub fn take_blocked(&mut self, now: impl FnOnce() -> Time) -> bool {
        self.blocked.is && self.has_room_to_tell(now)
    }

    #[cold]
    fn has_room_to_tell(&mut self, now: impl FnOnce() -> Time) -> bool {
        let Blocked { held, look_at, .. } = self.blocked;
        let enough = (held / 4).clamp(1, ROOM);
        if self.cache.len() + enough <= held || self.cache.unread_count() == 0 {
            self.blocked = Blocked::default();
            return true;
        }
        if look_at == Time::NEVER {
            self.blocked.look_at = now() + LATEST;
            (self.cache.alarm, self.cache.separation.untold) = (true, true);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use taut_base::InstanceHandle;
    use taut_qos::{DataReaderQos, ReliabilityKind, ResourceLimits};
    use taut_rtps::ChangeKind;

    use super::*;
    use crate::reader_cache_tests::change;
    use crate::{Selection, TypeSupport};

    const NOW: Time = Time(1_000);

    /// A reader that holds as many samples as it may, and one more has come.
    fn full(max_samples: u32) -> ReaderSide {
        let resource_limits = ResourceLimits { max_samples: Some(max_samples), ..ResourceLimits::default() };
        let mut qos = DataReaderQos { resource_limits, ..DataReaderQos::default() }.keep_all();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let mut side = ReaderSide::new(&qos, &TypeSupport::default());
        for number in 1..=i64::from(max_samples) + 1 {
            side.deliver(NOW, 0, &mut Some(change(ChangeKind::Alive, 1, 1, number)));
        }
        assert!(side.is_blocked() && side.cache.len() == max_samples as usize);
        side
    }

    #[test]
    fn of_a_full_cache_a_quarter_is_room_enough_and_never_more_than_some() {
        for (max_samples, enough) in [(1, 1), (4, 1), (8, 2), (400, 100), (4_000, ROOM)] {
            let mut side = full(max_samples);
            let mut takes = || side.take_next(NOW).is_some() && !side.take_blocked(|| NOW);
            assert_eq!(1 + std::iter::from_fn(|| takes().then_some(())).count(), enough, "of {max_samples}");
            assert!(!side.take_blocked(|| NOW), "it is told once");
        }
    }

    #[test]
    fn who_has_read_all_waits_for_what_has_no_room() {
        let mut side = full(8);
        side.read(NOW, &Selection::ANY, |_| ());
        side.take(NOW, &Selection { max_samples: 1, ..Selection::ANY }, |_| ());
        assert!(side.take_blocked(|| NOW));
    }

    /// Instance 2 is full, which says nothing of the room that there is for instance 1.
    #[test]
    fn who_is_refused_for_another_reason_takes_no_look_from_who_waits() {
        let limits =
            ResourceLimits { max_samples: Some(8), max_samples_per_instance: Some(6), ..Default::default() };
        let mut qos = DataReaderQos { resource_limits: limits, ..DataReaderQos::default() }.keep_all();
        qos.reliability.kind = ReliabilityKind::Reliable;
        let key_hash = |payload: &[u8], _| payload.first().map(|key| InstanceHandle([*key; 16]));
        let mut side = ReaderSide::new(&qos, &TypeSupport { key_hash: Some(key_hash), ..Default::default() });
        let deliver = |side: &mut ReaderSide, writer: u8, number: i64| {
            let mut change = Some(change(ChangeKind::Alive, writer, writer, number));
            side.deliver(NOW, 0, &mut change);
            change.is_none()
        };
        assert!((1..=2).all(|number| deliver(&mut side, 1, number)));
        assert!((1..=6).all(|number| deliver(&mut side, 2, number)));
        assert!(!deliver(&mut side, 1, 3) && side.take_next(NOW).is_some() && !side.take_blocked(|| NOW));
        assert!(!deliver(&mut side, 2, 7));
        let ((_, next), _) = side.look_at_deadlines(NOW, &mut 9);
        assert_eq!(next, NOW + LATEST);
        side.look_at_deadlines(NOW + LATEST, &mut 9);
        assert!(side.take_freed());
    }

    #[test]
    fn of_little_room_who_drives_is_told_once_when_to_look() {
        let mut side = full(12);
        for (later, told) in [(0, Some(NOW + LATEST)), (500, None)] {
            assert!(side.take_next(NOW).is_some());
            assert!(!side.take_blocked(|| NOW + Duration(later)));
            assert_eq!((side.take_untold(), side.take_alarm()), (told.is_some(), told));
        }
        let look = |side: &mut ReaderSide, at| side.look_at_deadlines(at, &mut 9).0.1;
        assert_eq!(look(&mut side, NOW), NOW + LATEST);
        assert!(!side.take_freed());
        assert_eq!(look(&mut side, NOW + LATEST), Time::NEVER);
        assert!(side.take_freed() && !side.is_blocked());
    }
}
