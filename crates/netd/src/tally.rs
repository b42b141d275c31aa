//! What has happened, counted, and told at a rate that nobody can drive.

use std::time::{Duration, Instant};

/// Lines of the log in one [`WINDOW`]. More and who connects again and again fills the disk, fewer and what explains a
/// failure is missing.
const LINES: u32 = 20;
/// How long until there is room for as many lines again.
const WINDOW: Duration = Duration::from_secs(10);

/// What has happened since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Connections.
    pub connected: u64,
    /// Participants that have got queues.
    pub granted: u64,
    /// Requests that were refused, for want of a rule or by the system.
    pub refused: u64,
    /// Participants that have lost their queues, as other rules do not allow them.
    pub revoked: u64,
    /// Clients that were dropped because they broke the rules.
    pub hostile: u64,
    /// Clients that were dropped because they were late or did not read.
    pub stalled: u64,
    /// Lines that were not written to the log.
    pub untold: u64,
}

/// The counts and the log.
pub(crate) struct Tally {
    pub counts: Counts,
    begun: Instant,
    lines: u32,
}

impl Tally {
    pub fn new(now: Instant) -> Tally {
        Tally { counts: Counts::default(), begun: now, lines: 0 }
    }

    /// Writes a line, if there is room for it.
    pub fn tell(&mut self, now: Instant, level: log::Level, line: &str) {
        if now >= self.begun + WINDOW {
            let untold = self.lines.saturating_sub(LINES);
            if untold > 0 {
                log::warn!("netd: {untold} lines were left out");
            }
            (self.begun, self.lines) = (now, 0);
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines <= LINES {
            log::log!(level, "netd: {line}");
        } else {
            self.counts.untold += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_told() {
        let now = Instant::now();
        let mut tally = Tally::new(now);
        (0..100).for_each(|_| tally.tell(now, log::Level::Info, "again"));
        assert_eq!(tally.counts.untold, u64::from(100 - LINES));
        (0..5).for_each(|_| tally.tell(now + WINDOW, log::Level::Info, "later"));
        assert_eq!(tally.counts.untold, u64::from(100 - LINES));
    }
}
