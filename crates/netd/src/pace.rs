//! How often a user's participants are given what costs netd much.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Requests at once. Lower and participants that start together wait for each other, higher and all of them take the
/// others' time for longer.
const AT_ONCE: u32 = 10;
/// How long until one more is answered. Lower and who asks without end takes more of the processor, as each one has all
/// sockets of the host listed; higher and a participant starts later, or whose addresses change often gets what it is sent
/// by the kernel for longer.
const EACH: Duration = Duration::from_millis(100);

/// How much of that each user has had, whose connections come and go.
#[derive(Default)]
pub(crate) struct Paces(BTreeMap<u32, Pace>);

impl Paces {
    /// A request of this user's is answered.
    pub fn count(&mut self, uid: u32, now: Instant) {
        // Whose pace is free may have as much as who has had none: there are no more than have asked just now.
        self.0.retain(|_, pace| pace.free_at > now);
        self.0.entry(uid).or_insert(Pace { free_at: now }).count(now);
    }

    /// How long until the next one of this user's may be; `None`: it may be now.
    pub fn wait(&self, uid: u32, now: Instant) -> Option<Duration> {
        self.0.get(&uid)?.wait(now)
    }
}

/// How much of that one has had.
struct Pace {
    /// When there is room for [`AT_ONCE`] again.
    free_at: Instant,
}

impl Pace {
    /// A request is answered.
    fn count(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now) + EACH;
    }

    /// How long until the next one may be; `None`: it may be now.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let left = self.free_at.saturating_duration_since(now + EACH * (AT_ONCE - 1));
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_one_each_time() {
        let begun = Instant::now();
        let mut pace = Pace { free_at: begun };
        for _ in 0..AT_ONCE {
            assert_eq!(pace.wait(begun), None);
            pace.count(begun);
        }
        for number in 1..=5 {
            let due = begun + EACH * number;
            assert_eq!(pace.wait(due - EACH / 4), Some(EACH / 4));
            assert_eq!(pace.wait(due), None);
            pace.count(due);
        }
        let later = begun + EACH * 100;
        (0..AT_ONCE).for_each(|_| pace.count(later));
        assert_eq!(pace.wait(later), Some(EACH), "no more at once after a long time");
    }

    #[test]
    fn each_user_has_its_own_and_is_forgotten() {
        let begun = Instant::now();
        let mut paces = Paces::default();
        (0..AT_ONCE).for_each(|_| paces.count(7, begun));
        assert_eq!((paces.wait(7, begun), paces.wait(8, begun)), (Some(EACH), None));
        paces.count(8, begun + EACH * AT_ONCE);
        assert_eq!(paces.0.keys().collect::<Vec<_>>(), [&8]);
    }
}
