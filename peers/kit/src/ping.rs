//! The state of a ping: which sample is next, which answer is awaited, what came back.
//!
//! Knows neither threads nor sockets: a loop drives it, or a sender and a callback share it in a lock.

use serde_json::{Value, json};

use crate::clock::now_ns;
use crate::schedule::Schedule;
use crate::table::Table;
use crate::{Options, Stamp, Stop};

/// An answer that is not there by then counts as lost: above any latency that a user would bear, and short
/// enough for a run that loses each of its samples to end.
pub const GIVE_UP_NS: u64 = 1_000_000_000;

/// Lost in a row from the first on, so many say that the path does not work. Fewer may be what discovery
/// costs at the beginning; more only take the time of a run.
const HOPELESS: u64 = 5;

/// What a ping has sent and received.
pub struct Pinger {
    table: Table,
    total: u64,
    warmup: u64,
    duration_ns: u64,
    schedule: Schedule,
    end_ns: u64,
    next: u64,
    answered: u64,
    received: u64,
    corrupt: u64,
    duplicates: u64,
}

impl Pinger {
    /// With room for all samples of the options.
    pub fn new(options: &Options) -> Pinger {
        Pinger {
            table: Table::new(options.total()),
            total: options.total(),
            warmup: options.warmup,
            duration_ns: options.duration_ms * 1_000_000,
            schedule: Schedule::new(options.period_ns, options.warmup),
            end_ns: u64::MAX,
            next: 0,
            answered: 0,
            received: 0,
            corrupt: 0,
            duplicates: 0,
        }
    }

    /// When the next sample is due; 0 is at once. That of the first one starts the pace.
    pub fn due_ns(&mut self) -> u64 {
        if self.next == 0 {
            self.schedule.begin(now_ns());
        }
        self.schedule.due_ns(self.next)
    }

    /// The next sample, noted as sent now; `None` when all are out or the time is up. `waited`: see
    /// [`Schedule::counts_from`].
    pub fn send(&mut self, waited: Option<u64>) -> Option<Stamp> {
        let now = now_ns();
        if self.next == self.warmup && self.duration_ns > 0 {
            self.end_ns = now + self.duration_ns;
        }
        if self.next == self.total || now >= self.end_ns {
            return None;
        }
        let seq = self.next;
        self.next += 1;
        // The last reading before the write: what stands above is not measured.
        let sent_ns = now_ns();
        let counts_from_ns = self.schedule.counts_from(seq, sent_ns, waited);
        if let Some(record) = self.table.get_mut(seq) {
            record[0] = counts_from_ns;
        }
        Some(Stamp { seq, sent_ns, seen_ns: 0 })
    }

    /// Takes an answer. True if it is that to the last sample sent: the next one may go.
    pub fn answer(&mut self, stamp: Stamp, intact: bool) -> bool {
        let now = now_ns();
        // What is not as it was sent is no answer: its number says nothing.
        let Some(record) = self.table.get_mut(stamp.seq).filter(|record| intact && record[0] != 0) else {
            self.corrupt += 1;
            return false;
        };
        if record[2] != 0 {
            self.duplicates += 1;
            return false;
        }
        if !self.schedule.is_open() && stamp.seq + 1 != self.next {
            // It was given up before it came, and stays lost.
            return false;
        }
        (record[1], record[2]) = (stamp.seen_ns, now);
        self.received += 1;
        self.answered = self.answered.max(stamp.seq + 1);
        self.answered == self.next
    }

    /// Is the last sample that was sent answered by nobody within the limit, or is nothing left to send?
    pub fn given_up(&self) -> bool {
        let sent_ns = self.next.checked_sub(1).map_or(0, |last| self.table.get(last)[0]);
        let now = now_ns();
        self.next == self.total || now >= self.end_ns || now > sent_ns + GIVE_UP_NS
    }

    /// Are all samples that were sent answered?
    pub fn all_answered(&self) -> bool {
        self.received == self.next
    }

    /// Nothing came of so many samples that nothing will: who sends them one by one fails now, not after
    /// a second for each of the rest.
    pub fn unheard(&self) -> Result<(), Stop> {
        if self.schedule.is_open() || self.received > 0 || self.next < HOPELESS || !self.given_up() {
            return Ok(());
        }
        Err(Stop::Failed(format!("none of the first {HOPELESS} samples was answered within 1 s")))
    }

    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Writes the file of samples; the `done` line.
    pub fn done(&self, options: &Options) -> std::io::Result<Value> {
        self.table.write(&options.samples, self.next)?;
        let measured = self.next.saturating_sub(self.warmup).max(1);
        Ok(json!({
            "sent": self.next,
            "received": self.received,
            "corrupt": self.corrupt,
            "duplicates": self.duplicates,
            "late": self.schedule.late(),
            "behind_ns": self.schedule.behind_ns() / measured,
            "start_ns": self.schedule.start_ns(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinger(period_ns: u64) -> Pinger {
        let words = format!("ping --warmup 0 --count 10 --period-ns {period_ns}");
        Pinger::new(&Options::read(words.split(' ').map(String::from)).unwrap())
    }

    #[test]
    fn who_is_held_up_counts_from_when_a_sample_was_due() {
        const PERIOD_NS: u64 = 1_000_000;
        let mut pinger = pinger(PERIOD_NS);
        let begin_ns = pinger.due_ns();
        // Held up for five periods.
        crate::clock::wait_until(begin_ns + 5 * PERIOD_NS, false);
        for seq in 0..3 {
            let stamp = pinger.send(None).unwrap();
            assert!(stamp.sent_ns >= begin_ns + 5 * PERIOD_NS, "the sample tells when it was written");
            assert_eq!(pinger.table.get(seq)[0], begin_ns + seq * PERIOD_NS);
        }
        assert_eq!(pinger.schedule.late(), 3, "each was more than a period late");
        assert!(pinger.schedule.behind_ns() >= (5 + 4 + 3) * PERIOD_NS);
    }

    #[test]
    fn who_overslept_counts_from_the_write() {
        const PERIOD_NS: u64 = 1_000_000;
        let mut pinger = pinger(PERIOD_NS);
        let begin_ns = pinger.due_ns();
        crate::clock::wait_until(begin_ns + 5 * PERIOD_NS, false);
        let woke_ns = pinger.send(Some(0)).unwrap().sent_ns;
        pinger.send(None).unwrap();
        assert_eq!((pinger.table.get(0)[0], pinger.table.get(1)[0]), (woke_ns, woke_ns));
        assert_eq!(pinger.schedule.late(), 2, "that it was late is told all the same");
    }

    #[test]
    fn a_sample_of_a_closed_loop_counts_from_its_write() {
        let mut pinger = pinger(0);
        let stamp = pinger.send(None).unwrap();
        assert_eq!(pinger.table.get(0)[0], stamp.sent_ns);
    }

    #[test]
    fn an_answer_after_the_next_sample_stays_lost() {
        let mut closed = pinger(0);
        let [given_up, next] = [0; 2].map(|_| closed.send(None).unwrap());
        assert!(!closed.answer(given_up, true), "the next one is not answered by it");
        assert_eq!((closed.received, closed.table.get(0)[2]), (0, 0));
        assert!(closed.answer(next, true));
        assert_eq!((closed.received, closed.duplicates, closed.corrupt), (1, 0, 0));
        let mut open = pinger(1_000_000);
        open.due_ns();
        let [first, _] = [0; 2].map(|_| open.send(None).unwrap());
        open.answer(first, true);
        assert_eq!(open.received, 1, "others are under way in an open loop");
    }

    #[test]
    fn an_answer_that_is_corrupt_is_none() {
        let mut pinger = pinger(0);
        let stamp = pinger.send(None).unwrap();
        assert!(!pinger.answer(stamp, false) && !pinger.answer(Stamp { seq: 3, ..stamp }, true));
        assert_eq!((pinger.corrupt, pinger.received), (2, 0));
        assert!(pinger.answer(stamp, true) && !pinger.answer(stamp, true));
        assert_eq!((pinger.received, pinger.duplicates), (1, 1));
    }
}
