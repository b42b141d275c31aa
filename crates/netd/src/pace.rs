//! How often a participant is given what costs netd much.

use std::time::{Duration, Instant};

/// Requests at once. Lower and a participant whose addresses change in a row waits between them, higher and all of them
/// together take the others' time for longer.
const AT_ONCE: u32 = 10;
/// How long until one more is answered. Lower and who asks without end takes more of the processor, as each one has all
/// sockets of the host listed; higher and a participant whose addresses change often gets what it is sent by the kernel
/// for longer.
const EACH: Duration = Duration::from_millis(100);

/// How much of that one participant has had.
pub(crate) struct Pace {
    /// When there is room for [`AT_ONCE`] again.
    free_at: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace { free_at: now }
    }

    /// A request is answered.
    pub fn count(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now) + EACH;
    }

    /// How long until the next one may be; `None`: it may be now.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
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
        let mut pace = Pace::new(begun);
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
}
