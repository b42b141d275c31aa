//! The state of a ping: which sample is next, which answer is awaited, what came back.
//!
//! Knows neither threads nor sockets: a loop drives it, or a sender and a callback share it in a lock.

use serde_json::{Value, json};

use crate::clock::now_ns;
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
    period_ns: u64,
    duration_ns: u64,
    begin_ns: u64,
    end_ns: u64,
    next: u64,
    answered: u64,
    received: u64,
    corrupt: u64,
    duplicates: u64,
    late: u64,
    /// How long after they were due samples were written, all measured ones together.
    behind_ns: u64,
}

impl Pinger {
    /// With room for all samples of the options.
    pub fn new(options: &Options) -> Pinger {
        Pinger {
            table: Table::new(options.total()),
            total: options.total(),
            warmup: options.warmup,
            period_ns: options.period_ns,
            duration_ns: options.duration_ms * 1_000_000,
            begin_ns: 0,
            end_ns: u64::MAX,
            next: 0,
            answered: 0,
            received: 0,
            corrupt: 0,
            duplicates: 0,
            late: 0,
            behind_ns: 0,
        }
    }

    /// When the next sample is due; 0 is at once. The first call starts the pace.
    pub fn due_ns(&mut self) -> u64 {
        if self.begin_ns == 0 {
            self.begin_ns = now_ns();
        }
        if self.period_ns == 0 { 0 } else { self.begin_ns + self.next * self.period_ns }
    }

    /// The next sample, noted as sent now, in an open loop as sent when it was due; `None` when all are out or the time
    /// is up.
    pub fn send(&mut self) -> Option<Stamp> {
        let now = now_ns();
        if self.next == self.warmup && self.duration_ns > 0 {
            self.end_ns = now + self.duration_ns;
        }
        if self.next == self.total || now >= self.end_ns {
            return None;
        }
        let due_ns = self.due_ns();
        if self.period_ns > 0 && now > due_ns + self.period_ns {
            self.late += 1;
        }
        let seq = self.next;
        self.next += 1;
        // The last reading before the write: what stands above is not measured.
        let sent_ns = now_ns();
        if self.period_ns > 0 && seq >= self.warmup {
            self.behind_ns += sent_ns.saturating_sub(due_ns);
        }
        if let Some(record) = self.table.get_mut(seq) {
            // Who is held up sends late: counted from the write, the wait of the samples behind it would be nobody's.
            record[0] = if self.period_ns > 0 { due_ns.min(sent_ns) } else { sent_ns };
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
        if self.period_ns > 0 || self.received > 0 || self.next < HOPELESS || !self.given_up() {
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
            "late": self.late,
            "behind_ns": self.behind_ns / measured,
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
    fn a_sample_of_an_open_loop_counts_from_when_it_was_due() {
        const PERIOD_NS: u64 = 1_000_000;
        let mut pinger = pinger(PERIOD_NS);
        let begin_ns = pinger.due_ns();
        // Held up for five periods.
        crate::clock::wait_until(begin_ns + 5 * PERIOD_NS, false);
        for seq in 0..3 {
            let stamp = pinger.send().unwrap();
            assert!(stamp.sent_ns >= begin_ns + 5 * PERIOD_NS, "the sample tells when it was written");
            assert_eq!(pinger.table.get(seq)[0], begin_ns + seq * PERIOD_NS);
        }
        assert_eq!(pinger.late, 3, "each was more than a period late");
        assert!(pinger.behind_ns >= (5 + 4 + 3) * PERIOD_NS);
    }

    #[test]
    fn a_sample_of_a_closed_loop_counts_from_its_write() {
        let mut pinger = pinger(0);
        let stamp = pinger.send().unwrap();
        assert_eq!(pinger.table.get(0)[0], stamp.sent_ns);
    }

    #[test]
    fn an_answer_that_is_corrupt_is_none() {
        let mut pinger = pinger(0);
        let stamp = pinger.send().unwrap();
        assert!(!pinger.answer(stamp, false) && !pinger.answer(Stamp { seq: 3, ..stamp }, true));
        assert_eq!((pinger.corrupt, pinger.received), (2, 0));
        assert!(pinger.answer(stamp, true) && !pinger.answer(stamp, true));
        assert_eq!((pinger.received, pinger.duplicates), (1, 1));
    }
}
