//! The roles of whoever is called back when data comes: what the callback shares with the thread that
//! speaks with the driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::{now_ns, wait_until};
use crate::ping::{GIVE_UP_NS, Pinger};
use crate::table::Table;
use crate::tally::Tally;
use crate::{Control, Options, Payload, Stamp, Stop};

/// How long between two looks whether all is over: unnoticed by the driver, no load.
const LOOK: Duration = Duration::from_millis(10);

/// A subscriber that is to end goes on while samples come within this time.
const SETTLE_NS: u64 = 200_000_000;

/// The role `ping`: the callback answers an answer with the next sample.
pub struct Pinging {
    pinger: Mutex<Pinger>,
    size: usize,
    closed: bool,
}

impl Pinging {
    /// With room for all samples of the options.
    pub fn new(options: &Options) -> Pinging {
        Pinging {
            pinger: Mutex::new(Pinger::new(options)),
            size: options.size,
            closed: options.period_ns == 0,
        }
    }

    /// Takes an answer, in the callback: the sample to send at once, if there is one.
    pub fn answer(&self, answer: &impl Payload) -> Option<Stamp> {
        let mut pinger = lock(&self.pinger);
        let answered = pinger.answer(answer.stamp(), answer.intact(self.size));
        if answered && self.closed { pinger.send(None) } else { None }
    }

    /// The whole role, on the thread of the driver's words. `write` is called for all samples of an open
    /// loop; in a closed one for the first, and for the next after one that was lost.
    pub fn run(
        &self,
        options: &Options,
        control: &Control,
        mut write: impl FnMut(Stamp) -> Result<(), Stop>,
    ) -> Result<Value, Stop> {
        control.ready("listener");
        loop {
            let due_ns = lock(&self.pinger).due_ns();
            let waited = wait_until(due_ns, false).then_some(0);
            let Some(stamp) = lock(&self.pinger).send(waited) else { break };
            write(stamp)?;
            while self.closed && !lock(&self.pinger).given_up() {
                std::thread::sleep(LOOK);
            }
            lock(&self.pinger).unheard()?;
        }
        let end_ns = now_ns() + GIVE_UP_NS;
        while !lock(&self.pinger).all_answered() && now_ns() < end_ns {
            std::thread::sleep(LOOK);
        }
        control.stop();
        Ok(lock(&self.pinger).done(options)?)
    }
}

/// The role `pong`.
pub struct Ponging {
    size: usize,
    received: AtomicU64,
    corrupt: AtomicU64,
}

impl Ponging {
    /// Nothing received yet.
    pub fn new(options: &Options) -> Ponging {
        Ponging { size: options.size, received: AtomicU64::new(0), corrupt: AtomicU64::new(0) }
    }

    /// Counts a sample, in the callback: the stamp of its answer.
    pub fn take(&self, sample: &impl Payload) -> Stamp {
        let stamp = Stamp { seen_ns: now_ns(), ..sample.stamp() };
        self.received.fetch_add(1, Ordering::Relaxed);
        self.corrupt.fetch_add(u64::from(!sample.intact(self.size)), Ordering::Relaxed);
        stamp
    }

    /// Stays until the driver asks to end.
    pub fn run(&self, control: &Control) -> Result<Value, Stop> {
        control.serving("listener");
        while !control.ended() {
            std::thread::sleep(LOOK);
        }
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Ok(json!({"received": count(&self.received), "corrupt": count(&self.corrupt)}))
    }
}

/// The role `sub`.
pub struct Counting {
    size: usize,
    state: Mutex<(Tally, Table, u64)>,
}

impl Counting {
    /// With room for all samples of the options, if they are to be noted.
    pub fn new(options: &Options) -> Counting {
        let records = if options.samples.as_os_str().is_empty() { 0 } else { options.count };
        let state =
            (Tally::new(options.warmup, options.count, options.threads), Table::new(records), now_ns());
        Counting { size: options.size, state: Mutex::new(state) }
    }

    /// Counts a sample, in the callback.
    pub fn take(&self, sample: &impl Payload) {
        let (now, stamp) = (now_ns(), sample.stamp());
        let (tally, table, last_ns) = &mut *lock(&self.state);
        let at = tally.received();
        *last_ns = now;
        if tally.take(stamp.seq, sample.intact(self.size), now)
            && let Some(record) = table.get_mut(at)
        {
            *record = [stamp.sent_ns, stamp.seq, now];
        }
    }

    /// Stays until the driver asks to end and nothing comes any more.
    pub fn run(&self, options: &Options, control: &Control) -> Result<Value, Stop> {
        control.serving("listener");
        while !control.ended() || now_ns() < lock(&self.state).2 + SETTLE_NS {
            std::thread::sleep(LOOK);
        }
        let (tally, table, _) = &*lock(&self.state);
        table.write(&options.samples, tally.received())?;
        Ok(tally.done(options.size))
    }
}

/// A callback that panicked leaves its counts as they were: they are still to be told.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample(Stamp);

    impl Payload for Sample {
        fn sized(_: usize) -> Sample {
            Sample(Stamp::default())
        }

        fn stamp(&self) -> Stamp {
            self.0
        }

        fn set_stamp(&mut self, stamp: Stamp) {
            self.0 = stamp;
        }

        fn intact(&self, _: usize) -> bool {
            true
        }
    }

    /// Takes samples of these numbers, each sent at a hundred times its own; what was noted, without when it was taken.
    fn noted(line: &str, seqs: &[u64]) -> Vec<[u64; 2]> {
        let counting = Counting::new(&Options::read(line.split(' ').map(String::from)).unwrap());
        for &seq in seqs {
            counting.take(&Sample(Stamp { seq, sent_ns: 100 * seq, seen_ns: 0 }));
        }
        let (_, table, last_ns) = &*lock(&counting.state);
        let records = (0..seqs.len() as u64).map(|at| table.get(at));
        let in_use = records.filter(|record| record[2] > 0);
        in_use.inspect(|record| assert!(record[2] <= *last_ns)).map(|[sent, seq, _]| [sent, seq]).collect()
    }

    #[test]
    fn each_new_sample_is_noted_with_its_number_if_there_is_a_file() {
        let seqs = [1, 2, 4, 3, 3, 5];
        let with_file = noted("sub --warmup 2 --count 9 --samples some", &seqs);
        assert_eq!(with_file, [[200, 2], [400, 4], [300, 3], [500, 5]]);
        assert!(noted("sub --warmup 2 --count 9", &seqs).is_empty());
    }
}
