//! What a subscriber counts: every sample once, in a window of bits.

use serde_json::{Value, json};

/// How far behind the newest a sample may come and still be told from a duplicate: far above what any
/// history holds, and 128 KiB of memory.
const WINDOW: u64 = 1 << 20;

/// Where no count limits the numbers, a jump by more than this is a broken number: half an hour at two million a second.
const JUMP_MAX: u64 = 1 << 32;

/// Counts of one subscriber. Of several threads that write each has every so manieth number, and an order of its own: one may
/// be any number of samples ahead of the others.
pub struct Tally {
    threads: Vec<Counts>,
    received: u64,
}

impl Tally {
    /// Samples below `warmup` are not counted; so many follow them, 0 if that is not known.
    pub fn new(warmup: u64, count: u64, threads: usize) -> Tally {
        let all = threads as u64;
        let below = |seq: u64, first| seq.saturating_sub(first).div_ceil(all);
        let of = |first| {
            let limit = if count == 0 { 0 } else { below(warmup + count, first) };
            Counts::new(below(warmup, first), limit)
        };
        Tally { threads: (0..all).map(of).collect(), received: 0 }
    }

    /// Takes a sample that came at this time. True if it counts and is new.
    pub fn take(&mut self, seq: u64, intact: bool, now_ns: u64) -> bool {
        let is_new = match self.threads.as_mut_slice() {
            // A division for each sample is time that is not the peer's.
            [alone] => alone.take(seq, intact, now_ns),
            all => {
                let threads = all.len() as u64;
                all[(seq % threads) as usize].take(seq / threads, intact, now_ns)
            }
        };
        self.received += u64::from(is_new);
        is_new
    }

    /// How many were received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The `done` line.
    pub fn done(&self, size: usize) -> Value {
        let sum = |of: fn(&Counts) -> u64| self.threads.iter().map(of).sum::<u64>();
        let first_ns = self.threads.iter().map(|of| of.first_ns).filter(|ns| *ns > 0).min();
        json!({
            "received": self.received,
            "lost": sum(Counts::lost),
            "out_of_order": sum(|of| of.out_of_order),
            "duplicates": sum(|of| of.duplicates),
            "corrupt": sum(|of| of.corrupt),
            "bytes": self.received * size as u64,
            "first_ns": first_ns.unwrap_or(0),
            "last_ns": self.threads.iter().map(|of| of.last_ns).max(),
        })
    }
}

/// Those of one thread that writes.
struct Counts {
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

impl Counts {
    fn new(warmup: u64, limit: u64) -> Counts {
        Counts {
            warmup,
            limit,
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
    fn take(&mut self, seq: u64, intact: bool, now_ns: u64) -> bool {
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

    fn lost(&self) -> u64 {
        (self.next - self.warmup).saturating_sub(self.received)
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
        let mut tally = Tally::new(10, 0, 1);
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
    fn each_thread_has_an_order_of_its_own() {
        let counts = |threads, warmup, seqs: &[u64]| {
            let mut tally = Tally::new(warmup, 0, threads);
            seqs.iter().for_each(|seq| _ = tally.take(*seq, true, 7));
            let done = tally.done(1);
            ["received", "lost", "out_of_order", "duplicates"].map(|name| done[name].as_u64().unwrap())
        };
        let seqs = [0, 2, 4, 1, 3, 8, 6, 6];
        assert_eq!(counts(1, 0, &seqs), [7, 2, 3, 1]);
        assert_eq!(counts(2, 0, &seqs), [7, 0, 1, 1]);
        assert_eq!(counts(2, 3, &seqs), [4, 0, 1, 1], "2 and 1 are of the warm-up");
        // One is far ahead of the other, and of itself.
        assert_eq!(counts(2, 0, &[4 * WINDOW, 1, 3, 5, 4 * WINDOW + 2]), [5, 2 * WINDOW, 0, 0]);
    }

    #[test]
    fn what_is_not_as_it_was_sent_is_corrupt_and_not_received() {
        let mut tally = Tally::new(10, 5, 1);
        for (seq, intact) in [(3, true), (10, true), (11, false), (12, true), (15, true), (2, false)] {
            tally.take(seq, intact, 7);
        }
        let done = tally.done(1);
        for (name, count) in [("received", 2), ("lost", 1), ("corrupt", 3), ("duplicates", 0)] {
            assert_eq!(done[name], count, "{name} of {done}");
        }
        let mut endless = Tally::new(0, 0, 1);
        assert!(endless.take(1, true, 7) && !endless.take(u64::MAX, true, 7));
        assert_eq!(endless.done(1)["corrupt"], 1);
    }
}
