//! The roles of two processes, for whoever can send and wait: the loops over a [`Line`].

use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::{Waited, left, now_ns, wait_until};
use crate::ping::{GIVE_UP_NS, Pinger};
use crate::table::Table;
use crate::tally::Tally;
use crate::{Control, Line, Options, Payload, Stamp, Stop};

/// How long a serving role waits before it looks whether it is to end: the driver does not notice it, and
/// ten looks a second cost nothing.
const LOOK: Duration = Duration::from_millis(100);

/// A subscriber that is to end goes on while samples come within this time.
const SETTLE: Duration = Duration::from_millis(200);

/// The role `ping`: one thread sends, waits and takes.
pub fn ping<L: Line>(line: &mut L, options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut pinger = Pinger::new(options);
    let mut sample = L::Out::sized(options.size);
    control.ready(line.wait(options));
    loop {
        let due_ns = pinger.due_ns();
        // In the open loop answers are taken until the next sample is due. Who is behind takes what is
        // there all the same: else nobody empties the queues that answers stand in.
        if options.period_ns > 0 && due_ns <= now_ns() {
            take_answer(line, &mut pinger, options, Duration::ZERO)?;
        }
        let waited = if options.period_ns > 0 { wait_due(line, &mut pinger, options, due_ns)? } else { None };
        let Some(stamp) = pinger.send(waited) else { break };
        sample.set_stamp(stamp);
        line.send(&sample)?;
        if options.period_ns == 0 {
            let end_ns = stamp.sent_ns + GIVE_UP_NS;
            while take_answer(line, &mut pinger, options, span_until(end_ns, options))? != Some(true)
                && now_ns() < end_ns
            {}
            pinger.unheard()?;
        }
    }
    let end_ns = now_ns() + GIVE_UP_NS;
    while options.period_ns > 0 && !pinger.all_answered() && now_ns() < end_ns {
        take_answer(line, &mut pinger, options, span_until(end_ns, options))?;
    }
    control.stop();
    Ok(pinger.done(options)?)
}

/// Takes answers until the sample is due: how long this thread then ran in its last wait since, if there was one. Whom an
/// answer kept until then did not wait.
fn wait_due<L: Line>(
    line: &mut L,
    pinger: &mut Pinger,
    options: &Options,
    due_ns: u64,
) -> Result<Option<u64>, Stop> {
    let mut wait = Waited::begin(options.spin());
    let mut waited = false;
    while due_ns > now_ns() {
        // Looks without a sleep are one wait: a system call before each would slow them.
        if !options.spin() {
            wait = Waited::begin(false);
        }
        waited = take_answer(line, pinger, options, span_until(due_ns, options))?.is_none();
    }
    Ok(waited.then(|| wait.cpu_since_ns(due_ns)))
}

fn span_until(end_ns: u64, options: &Options) -> Duration {
    if options.spin() { Duration::ZERO } else { left(end_ns) }
}

/// Did an answer come, and is the last sample that was sent answered by it?
fn take_answer<L: Line>(
    line: &mut L,
    pinger: &mut Pinger,
    options: &Options,
    at_most: Duration,
) -> Result<Option<bool>, Stop> {
    let Some(answer) = line.receive(at_most)? else { return Ok(None) };
    let is_last = pinger.answer(answer.stamp(), answer.intact(options.size));
    line.give_back(answer);
    Ok(Some(is_last))
}

/// The role `pong`: sends what `answer` makes of each sample, whose `seen_ns` is set. That is the sample
/// itself (`|sample| sample`), or an `Ack`.
pub fn pong<L: Line>(
    line: &mut L,
    options: &Options,
    control: &Control,
    answer: impl Fn(L::In) -> L::Out,
) -> Result<Value, Stop> {
    let (mut received, mut corrupt) = (0u64, 0u64);
    control.serving(line.wait(options));
    while !control.ended() {
        let at_most = if options.spin() { Duration::ZERO } else { LOOK };
        let Some(mut sample) = line.receive(at_most)? else { continue };
        let stamp = Stamp { seen_ns: now_ns(), ..sample.stamp() };
        received += 1;
        corrupt += u64::from(!sample.intact(options.size));
        sample.set_stamp(stamp);
        let answer = answer(sample);
        line.send(&answer)?;
        line.give_back_answer(answer);
    }
    Ok(json!({"received": received, "corrupt": corrupt}))
}

/// Writes refused in a row, for so long, say that no more will be accepted. Each may have taken as long as the
/// middleware blocks, or no time at all: fewer or shorter would judge a reader's pause as broken.
const REFUSED_IN_A_ROW_MAX: u64 = 100;
const REFUSED_NS: u64 = 1_000_000_000;

/// The role `pub`. `flush` waits until all is acknowledged, where there is something to wait for.
pub fn publish<L: Line>(
    line: &mut L,
    options: &Options,
    control: &Control,
    flush: impl FnOnce(&mut L) -> Result<(), Stop>,
) -> Result<Value, Stop> {
    let mut part = Part::new(options, 0, 1);
    control.ready(line.wait(options));
    part.write(line, options, now_ns())?;
    flush(line)?;
    control.stop();
    Part::done(vec![part], options)
}

/// The role `crowd`: each of these lines writes in a thread of its own, all at once.
pub fn crowd<L: Line + Send>(
    lines: Vec<L>,
    options: &Options,
    control: &Control,
    flush: impl Fn(&mut L) -> Result<(), Stop> + Sync,
) -> Result<Value, Stop> {
    let threads = lines.len() as u64;
    let parts: Vec<Part> = (0..threads).map(|first| Part::new(options, first, threads)).collect();
    let wait = lines.first().map_or("waitset", |line| line.wait(options));
    control.ready(wait);
    let start_ns = now_ns();
    let write = |(mut line, mut part): (L, Part)| {
        part.write(&mut line, options, start_ns)?;
        flush(&mut line)?;
        Ok((line, part))
    };
    let written: Result<Vec<(L, Part)>, Stop> = std::thread::scope(|scope| {
        let threads: Vec<_> = lines.into_iter().zip(parts).map(|own| scope.spawn(|| write(own))).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Stop::Failed("a thread panicked".into())))
        };
        threads.into_iter().map(ended).collect()
    });
    let (_lines, parts): (Vec<L>, Vec<Part>) = written?.into_iter().unzip();
    control.stop();
    Part::done(parts, options)
}

/// The part of a stream that one thread writes: each so manieth number.
struct Part {
    first: u64,
    threads: u64,
    /// By its own numbers.
    table: Table,
    /// How many it has written, warm-up included.
    written: u64,
    refusals: Refusals,
    start_ns: u64,
    stop_ns: u64,
}

impl Part {
    fn new(options: &Options, first: u64, threads: u64) -> Part {
        let is_noted = !options.samples.as_os_str().is_empty();
        let table = Table::new(if is_noted { options.total().div_ceil(threads) } else { 0 });
        let (refusals, written) = (Refusals::default(), 0);
        Part { first, threads, table, written, refusals, start_ns: 0, stop_ns: 0 }
    }

    /// Writes until its numbers or the time are over. `start_ns`: when its first sample is due.
    fn write<L: Line>(&mut self, line: &mut L, options: &Options, start_ns: u64) -> Result<(), Stop> {
        let mut sample = L::Out::sized(options.size);
        let mut pace = Pace { start_ns, burst_ns: start_ns };
        let mut end_ns = u64::MAX;
        self.start_ns = start_ns;
        loop {
            let seq = self.first + self.written * self.threads;
            if seq >= options.total() {
                break;
            }
            if self.refusals.in_a_row == 0 {
                pace.wait(line, options, self.written)?;
            }
            let sent_ns = now_ns();
            if sent_ns >= end_ns {
                break;
            }
            sample.set_stamp(Stamp { seq, sent_ns, seen_ns: 0 });
            match line.send(&sample) {
                Ok(()) => self.refusals.in_a_row = 0,
                // It is written again: a number that never went out would look like a loss.
                Err(Stop::Failed(reason)) => {
                    self.refusals.add(seq >= options.warmup, now_ns(), &reason)?;
                    continue;
                }
                Err(absent) => return Err(absent),
            }
            if let Some(record) = self.table.get_mut(self.written) {
                *record = [sent_ns, 0, now_ns()];
            }
            if seq >= options.warmup && seq < options.warmup + self.threads {
                self.start_ns = sent_ns;
                end_ns = match options.duration_ms {
                    0 => u64::MAX,
                    duration_ms => sent_ns + duration_ms * 1_000_000,
                };
            }
            self.written += 1;
        }
        line.push()?;
        self.stop_ns = now_ns();
        Ok(())
    }

    /// How many of its numbers are below this one.
    fn below(&self, seq: u64) -> u64 {
        seq.saturating_sub(self.first).div_ceil(self.threads)
    }

    /// The `done` line of all parts, and the file: as many records as all threads have written.
    fn done(parts: Vec<Part>, options: &Options) -> Result<Value, Stop> {
        let measured = |part: &Part| part.written.saturating_sub(part.below(options.warmup));
        let sent: u64 = parts.iter().map(measured).sum();
        let refused: u64 = parts.iter().map(|part| part.refusals.measured).sum();
        let start_ns = parts.iter().map(|part| part.start_ns).min();
        let stop_ns = parts.iter().map(|part| part.stop_ns).max();
        let whole = parts.iter().map(|part| part.written).min().unwrap_or(0) * parts.len() as u64;
        let tables: Vec<Table> = parts.into_iter().map(|part| part.table).collect();
        Table::write_in_turns(&tables, &options.samples, whole)?;
        Ok(json!({"sent": sent, "refused": refused, "start_ns": start_ns, "stop_ns": stop_ns}))
    }
}

/// When the next sample of a publisher may go.
struct Pace {
    start_ns: u64,
    burst_ns: u64,
}

impl Pace {
    fn wait<L: Line>(&mut self, line: &mut L, options: &Options, written: u64) -> Result<(), Stop> {
        if options.period_ns > 0 {
            line.push()?;
            wait_until(self.start_ns + written * options.period_ns, options.spin());
        } else if options.burst > 0 && written.is_multiple_of(options.burst) {
            if written > 0 {
                line.push()?;
                wait_until(self.burst_ns + options.interval_ns, options.spin());
            }
            self.burst_ns = now_ns();
        }
        Ok(())
    }
}

/// The writes that were refused.
#[derive(Default)]
struct Refusals {
    /// Of measured samples.
    measured: u64,
    in_a_row: u64,
    /// Since when.
    since_ns: u64,
}

impl Refusals {
    /// One more; an error if it is hopeless.
    fn add(&mut self, is_measured: bool, now_ns: u64, reason: &str) -> Result<(), Stop> {
        self.measured += u64::from(is_measured);
        self.in_a_row += 1;
        if self.in_a_row == 1 {
            self.since_ns = now_ns;
        }
        if self.in_a_row < REFUSED_IN_A_ROW_MAX || now_ns < self.since_ns + REFUSED_NS {
            return Ok(());
        }
        Err(Stop::Failed(format!("{} writes in a row were refused: {reason}", self.in_a_row)))
    }
}

/// The role `sub`.
pub fn subscribe<L: Line>(line: &mut L, options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut table = Table::new(if options.samples.as_os_str().is_empty() { 0 } else { options.count });
    let mut tally = Tally::new(options.warmup, options.count, options.threads);
    control.serving(line.wait(options));
    let mut last_ns = now_ns();
    while !control.ended() || now_ns() < last_ns + SETTLE.as_nanos() as u64 {
        let at_most = if options.spin() { Duration::ZERO } else { LOOK };
        let Some(sample) = line.receive(at_most)? else { continue };
        let (stamp, at) = (sample.stamp(), tally.received());
        last_ns = now_ns();
        if tally.take(stamp.seq, sample.intact(options.size), last_ns)
            && let Some(record) = table.get_mut(at)
        {
            *record = [stamp.sent_ns, stamp.seq, last_ns];
        }
        line.give_back(sample);
    }
    table.write(&options.samples, tally.received())?;
    Ok(tally.done(options.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::thread_cpu_ns;
    use crate::packed::Seen;
    use crate::schedule::Schedule;

    const PERIOD_NS: u64 = 5_000_000;

    /// Nothing ever comes, and each wait takes three periods: at work, or asleep.
    struct Busy {
        works: bool,
    }

    impl Line for Busy {
        type Out = Seen;
        type In = Seen;

        fn send(&mut self, _: &Seen) -> Result<(), Stop> {
            Ok(())
        }

        fn receive(&mut self, _: Duration) -> Result<Option<Seen>, Stop> {
            if !self.works {
                wait_until(now_ns() + 3 * PERIOD_NS, false);
            }
            // By the clock of its CPU time: whatever else the machine does, it runs for so long.
            let work_ns = thread_cpu_ns();
            while self.works && thread_cpu_ns() < work_ns + 3 * PERIOD_NS {}
            Ok(None)
        }
    }

    /// When the first sample of an open loop is due, is written, and counts from, in this order.
    fn first(works: bool, how: &str) -> [u64; 3] {
        let words = format!("ping --warmup 0 --count 1 --period-ns {PERIOD_NS} --wait {how}");
        let options = Options::read(words.split(' ').map(String::from)).unwrap();
        let mut pinger = Pinger::new(&options);
        loop {
            let mut schedule = Schedule::new(PERIOD_NS, 0);
            schedule.begin(now_ns());
            let due_ns = schedule.due_ns(0);
            let waited = wait_due(&mut Busy { works }, &mut pinger, &options, due_ns).unwrap();
            let sent_ns = now_ns();
            // On a busy machine it may be due before there is a wait.
            if waited.is_some() {
                return [due_ns, sent_ns, schedule.counts_from(0, sent_ns, waited)];
            }
        }
    }

    #[test]
    fn who_works_in_a_wait_counts_from_when_a_sample_was_due_and_who_sleeps_from_the_write() {
        for how in ["waitset", "spin"] {
            let [due_ns, sent_ns, counts_from_ns] = first(true, how);
            // One period of the work may be before; what the machine took meanwhile is left out, and nothing else.
            assert!(counts_from_ns <= due_ns.max(sent_ns - 2 * PERIOD_NS), "{how}: from {counts_from_ns}");
        }
        let [due_ns, sent_ns, counts_from_ns] = first(false, "waitset");
        assert!(sent_ns > due_ns + PERIOD_NS, "it overslept");
        assert!(counts_from_ns > sent_ns - PERIOD_NS, "a sleep is no work: from {counts_from_ns}");
    }

    #[test]
    fn writes_that_are_refused_are_hopeless_after_some_and_some_time() {
        let mut refusals = Refusals::default();
        for at in 0..200 {
            assert!(refusals.add(at >= 50, 5 + at, "full").is_ok(), "none of them took any time");
        }
        let ended = refusals.add(true, 5 + REFUSED_NS, "full");
        assert!(matches!(ended, Err(Stop::Failed(why)) if why == "201 writes in a row were refused: full"));
        assert_eq!(refusals.measured, 151);
        refusals.in_a_row = 0;
        assert!(refusals.add(true, 9 * REFUSED_NS, "full").is_ok(), "a write was accepted in between");
    }
}
