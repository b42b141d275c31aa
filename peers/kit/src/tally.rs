//! What a subscriber counts: every sample once, in a window of bits.

use serde_json::{Value, json};

/// How far behind the newest a sample may come and still be told from a duplicate: far above what any
/// history holds, and 128 KiB of memory.
const WINDOW: u64 = 1 << 20;

/// Counts of one subscriber.
pub struct Tally {
    warmup: u64,
    /// Bit `seq % WINDOW`: was it seen. Cleared as the window moves on.
    seen: Vec<u64>,
    /// One above the highest number seen.
    next: u64,
    received: u64,
    out_of_order: u64,
    duplicates: u64,
    corrupt: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Tally {
    /// Samples below `warmup` are not counted.
    pub fn new(warmup: u64) -> Tally {
        Tally {
            warmup,
            seen: vec![0; (WINDOW / 64) as usize],
            next: warmup,
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            corrupt: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// Takes a sample that came at this time. True if it counts and is new.
    pub fn take(&mut self, seq: u64, intact: bool, now_ns: u64) -> bool {
        if seq < self.warmup {
            return false;
        }
        self.corrupt += u64::from(!intact);
        if seq >= self.next {
            // No more bits than there are have to be cleared, however far it jumps.
            for skipped in self.next.max(seq.saturating_sub(WINDOW - 1))..=seq {
                self.set(skipped, false);
            }
            self.next = seq + 1;
        } else if self.next - seq > WINDOW || self.is_set(seq) {
            self.duplicates += 1;
            return false;
        } else {
            self.out_of_order += 1;
        }
        self.set(seq, true);
        self.received += 1;
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = now_ns;
        true
    }

    /// How many were received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The `done` line.
    pub fn done(&self, size: usize) -> Value {
        json!({
            "received": self.received,
            "lost": (self.next - self.warmup).saturating_sub(self.received),
            "out_of_order": self.out_of_order,
            "duplicates": self.duplicates,
            "corrupt": self.corrupt,
            "bytes": self.received * size as u64,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
        })
    }

    fn set(&mut self, seq: u64, seen: bool) {
        let (word, bit) = ((seq % WINDOW / 64) as usize, 1 << (seq % 64));
        if seen {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }

    fn is_set(&self, seq: u64) -> bool {
        self.seen[(seq % WINDOW / 64) as usize] & (1 << (seq % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(seqs: &[u64]) -> (u64, u64, u64, u64) {
        let mut tally = Tally::new(10);
        for (at, seq) in seqs.iter().enumerate() {
            tally.take(*seq, true, 1_000 + at as u64);
        }
        let done = tally.done(1);
        let number = |name: &str| done[name].as_u64().unwrap();
        (number("received"), number("lost"), number("out_of_order"), number("duplicates"))
    }

    #[test]
    fn every_sample_counts_once() {
        assert_eq!(counts(&[3, 10, 11, 12]), (3, 0, 0, 0));
        assert_eq!(counts(&[10, 12, 11, 11, 15]), (4, 2, 1, 1));
        assert_eq!(counts(&[11]), (1, 1, 0, 0));
        assert_eq!(counts(&[10, 10 + 3 * WINDOW, 11]), (2, 3 * WINDOW - 1, 0, 1));
        assert_eq!(counts(&[10, 10 + WINDOW, 11, 11]), (3, WINDOW - 2, 1, 1));
    }
}
