//! The whole life of a publisher.

use std::time::{Duration, Instant};

use crate::options::{Final, Options};
use crate::samples::Sample;
use crate::tally::{Matched, emit_acknowledged, emit_count};
use crate::{COMPLETE, Publisher, Result, TIMED_OUT, after};

/// Waits for readers, writes, waits for acknowledgments and for the readers to leave; gives the exit code.
/// `wait` returns when another reader may be matched, or at the time that it is given.
pub fn publish<P: Publisher>(options: &Options, writers: &mut [P], wait: &dyn Fn(Instant)) -> Result<u8> {
    if writers.len() != options.writers as usize {
        return Err("it has one writer; run it without --writers".into());
    }
    let end = after(options.timeout);
    let mut matched = Matched::default();
    let mut wait_matched = |writers: &mut [P], end: Instant, enough: &dyn Fn(usize) -> bool| loop {
        matched.update(writers.iter_mut().map(P::matched).min().unwrap_or_default());
        if enough(matched.count) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        wait(end);
    };

    if !wait_matched(writers, end, &|count| count >= options.wait_matched) {
        return Ok(TIMED_OUT);
    }
    if options.hold {
        let mut line = String::new();
        std::io::stdin()
            .read_line(&mut line)
            .map_err(|error| format!("stdin: {error}; --hold reads a line from it"))?;
    }
    write_all(options, writers)?;
    if options.wait_matched == 0 && !wait_matched(writers, end, &|count| count >= 1) {
        return Ok(TIMED_OUT);
    }
    let mut all = true;
    if options.is_reliable() {
        for writer in &mut *writers {
            all &= writer.wait_for_acknowledgments(end.saturating_duration_since(Instant::now()))?;
        }
        emit_acknowledged(all);
    }
    wait_matched(writers, after(options.linger), &|count| count == 0);
    Ok(if all { COMPLETE } else { TIMED_OUT })
}

/// Writes in turns: each writer is of its instances, and the samples go through the instances.
fn write_all<P: Publisher>(options: &Options, writers: &mut [P]) -> Result<()> {
    let start = Instant::now();
    for seq in 0..options.count {
        if options.rate > 0.0 {
            // The next write is due at a time that does not depend on how long the last one took.
            let due = start + Duration::from_secs_f64(f64::from(seq) / options.rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        writers[options.writer_of(options.id(seq))].write(Sample::make(options, seq))?;
    }
    for id in 0..options.instances {
        let (writer, sample) = (&mut writers[options.writer_of(id)], Sample::make(options, id));
        match options.r#final {
            Final::None => break,
            Final::Dispose => writer.dispose(sample)?,
            Final::Unregister => writer.unregister(sample)?,
        }
    }
    emit_count("sent", u64::from(options.count));
    Ok(())
}
