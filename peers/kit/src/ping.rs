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
        }
    }

    /// When the next sample is due; 0 is at once. The first call starts the pace.
    pub fn due_ns(&mut self) -> u64 {
        if self.begin_ns == 0 {
            self.begin_ns = now_ns();
        }
        if self.period_ns == 0 { 0 } else { self.begin_ns + self.next * self.period_ns }
    }

    /// The next sample, noted as sent now; `None` when all are out or the time is up.
    pub fn send(&mut self) -> Option<Stamp> {
        let now = now_ns();
        if self.next == self.warmup && self.duration_ns > 0 {
            self.end_ns = now + self.duration_ns;
        }
        if self.next == self.total || now >= self.end_ns {
            return None;
        }
        if self.period_ns > 0 && now > self.due_ns() + self.period_ns {
            self.late += 1;
        }
        let seq = self.next;
        self.next += 1;
        // The last reading before the write: what stands above is not measured.
        let sent_ns = now_ns();
        if let Some(record) = self.table.get_mut(seq) {
            record[0] = sent_ns;
        }
        Some(Stamp { seq, sent_ns, seen_ns: 0 })
    }

    /// Takes an answer. True if it is that to the last sample sent: the next one may go.
    pub fn answer(&mut self, stamp: Stamp, intact: bool) -> bool {
        let now = now_ns();
        if !intact {
            self.corrupt += 1;
        }
        let Some(record) = self.table.get_mut(stamp.seq).filter(|record| record[0] != 0) else {
            self.corrupt += u64::from(intact);
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
        Ok(json!({
            "sent": self.next,
            "received": self.received,
            "corrupt": self.corrupt,
            "duplicates": self.duplicates,
            "late": self.late,
        }))
    }
}
