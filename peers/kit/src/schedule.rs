//! When samples of an open loop are due, and from when they count. In a closed loop each counts from its write.
//!
//! Has no clock: `peers/schedule.txt` holds it and the C kit's to one rule, which is the contract's.

/// The schedule of one sender.
#[derive(Default)]
pub struct Schedule {
    /// 0 is a closed loop.
    period_ns: u64,
    start_ns: u64,
    /// Samples that do not count as late or behind.
    warmup: u64,
    /// The first write after the sender's last wait, less the time that it ran since the sample was due: before, it could
    /// not have sent what was due.
    woke_ns: u64,
    late: u64,
    behind_ns: u64,
}

impl Schedule {
    /// One that has not begun; period 0 is a closed loop.
    pub fn new(period_ns: u64, warmup: u64) -> Schedule {
        Schedule { period_ns, warmup, ..Schedule::default() }
    }

    /// Sample 0 is due a period from now.
    pub fn begin(&mut self, now_ns: u64) {
        if self.is_open() {
            self.start_ns = now_ns + self.period_ns;
        }
    }

    /// Are samples due at times, whether or not answers are there?
    pub fn is_open(&self) -> bool {
        self.period_ns > 0
    }

    /// When sample 0 is due; 0 in a closed loop.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// When a sample is due; in a closed loop at once, which is 0.
    pub fn due_ns(&self, seq: u64) -> u64 {
        self.start_ns + seq * self.period_ns
    }

    /// From when a sample counts that is written now. `waited`: its sender had nothing to do but to wait for it, and ran
    /// so long in that wait since it was due.
    ///
    /// Who is held up by the middleware sends late: counted from the write, the wait of the samples behind it would be
    /// nobody's. Who is woken late is held up by the machine; but who runs in a wait works for the middleware.
    pub fn counts_from(&mut self, seq: u64, sent_ns: u64, waited: Option<u64>) -> u64 {
        if !self.is_open() {
            return sent_ns;
        }
        let due_ns = self.due_ns(seq);
        if seq >= self.warmup {
            let behind_ns = sent_ns.saturating_sub(due_ns);
            self.late += u64::from(behind_ns > self.period_ns);
            self.behind_ns += behind_ns;
        }
        if let Some(cpu_ns) = waited {
            self.woke_ns = sent_ns.saturating_sub(cpu_ns);
        }
        due_ns.max(self.woke_ns)
    }

    /// Measured samples that were written more than a period after they were due.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// From due to write, all measured samples together.
    pub fn behind_ns(&self) -> u64 {
        self.behind_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_as_the_contract_says() {
        let text = include_str!("../../schedule.txt");
        let mut rows = text.lines().filter(|line| !line.starts_with('#'));
        let mut schedule = Schedule::new(100, 0);
        schedule.begin(900);
        let mut seq = 0;
        let last = loop {
            let row = rows.next().unwrap();
            let numbers: Vec<i64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
            let [ran_ns, written_ns, expected_ns] = numbers[..] else { break row };
            let counted_ns = schedule.counts_from(seq, written_ns as u64, u64::try_from(ran_ns).ok());
            assert_eq!(counted_ns, expected_ns as u64, "sample {seq}");
            seq += 1;
        };
        assert_eq!(last.trim(), format!("late {} behind {}", schedule.late(), schedule.behind_ns()));
        assert_eq!(seq, 18);
    }

    #[test]
    fn a_sample_of_a_closed_loop_counts_from_its_write() {
        let mut schedule = Schedule::new(0, 0);
        schedule.begin(1_000);
        assert_eq!((schedule.due_ns(7), schedule.counts_from(7, 1_234, None)), (0, 1_234));
        assert_eq!((schedule.late(), schedule.behind_ns()), (0, 0));
    }
}
