//! What a subscriber counts: every sample once, in a window of bits.

use serde_json::{Value, json};

/// How far behind the newest a sample may come and still be told from a duplicate: far above what any
/// history holds, and 128 KiB of memory.
const WINDOW: u64 = 1 << 20;

/// Where no count limits the numbers, a jump by more than this is a broken number: half an hour at two million a second.
const JUMP_MAX: u64 = 1 << 32;

/// Counts of one subscriber.
pub struct Tally {
    warmup: u64,
    /// Numbers from here on are corrupt; 0 is none.
    limit: u64,
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
    /// Samples below `warmup` are not counted; so many follow them, 0 if that is not known.
    pub fn new(warmup: u64, count: u64) -> Tally {
        Tally {
            warmup,
            limit: if count == 0 { 0 } else { warmup + count },
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

    /// Takes a sample that came at this time. True if it counts and is new. One that is not what was sent is corrupt and
    /// nothing else: its number says nothing.
    pub fn take(&mut self, seq: u64, intact: bool, now_ns: u64) -> bool {
        if intact && seq < self.warmup {
            return false;
        }
        let beyond =
            if self.limit > 0 { seq >= self.limit } else { seq.saturating_sub(self.next) > JUMP_MAX };
        if !intact || beyond {
            self.corrupt += 1;
            return false;
        }
        self.last_ns = now_ns;
        if seq >= self.next {
            // No more bits than there are have to be cleared, however far it jumps.
            for skipped in self.next.max(seq.saturating_sub(WINDOW - 1))..=seq {
                self.set(skipped, false);
            }
            self.next = seq + 1;
        } else if self.next - seq > WINDOW {
            // So late that nobody knows whether it came before: it stays lost.
            self.out_of_order += 1;
            return false;
        } else if self.is_set(seq) {
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
        let mut tally = Tally::new(10, 0);
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
        assert_eq!(counts(&[10, 10 + 3 * WINDOW, 11]), (2, 3 * WINDOW - 1, 1, 0));
        assert_eq!(counts(&[10, 10 + WINDOW, 11, 11]), (3, WINDOW - 2, 1, 1));
    }

    #[test]
    fn what_is_not_as_it_was_sent_is_corrupt_and_not_received() {
        let mut tally = Tally::new(10, 5);
        for (seq, intact) in [(3, true), (10, true), (11, false), (12, true), (15, true), (2, false)] {
            tally.take(seq, intact, 7);
        }
        let done = tally.done(1);
        for (name, count) in [("received", 2), ("lost", 1), ("corrupt", 3), ("duplicates", 0)] {
            assert_eq!(done[name], count, "{name} of {done}");
        }
        let mut endless = Tally::new(0, 0);
        assert!(endless.take(1, true, 7) && !endless.take(u64::MAX, true, 7));
        assert_eq!(endless.done(1)["corrupt"], 1);
    }
}
