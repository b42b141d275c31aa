//! The whole life of a publisher.

use std::time::{Duration, Instant};

use crate::options::{Final, Options};
use crate::samples::Sample;
use crate::tally::{Matched, emit_acknowledged, emit_count};
use crate::{COMPLETE, LOOK_AGAIN, Publisher, TIMED_OUT, after};

/// Waits for readers, writes, waits for acknowledgments and for the readers to leave; gives the exit code.
pub fn publish(options: &Options, publisher: &mut dyn Publisher) -> Result<u8, String> {
    let end = after(options.timeout);
    let mut matched = Matched::default();
    if !wait_matched(publisher, &mut matched, end, &|count| count >= options.wait_matched) {
        return Ok(TIMED_OUT);
    }
    if options.hold {
        let mut line = String::new();
        std::io::stdin()
            .read_line(&mut line)
            .map_err(|error| format!("stdin: {error}; --hold reads a line from it"))?;
    }
    write_all(options, publisher)?;
    if options.wait_matched == 0 && !wait_matched(publisher, &mut matched, end, &|count| count >= 1) {
        return Ok(TIMED_OUT);
    }
    let mut all = true;
    if options.is_reliable() {
        all = publisher.wait_for_acknowledgments(end.saturating_duration_since(Instant::now()));
        emit_acknowledged(all);
    }
    wait_matched(publisher, &mut matched, after(options.linger), &|count| count == 0);
    Ok(if all { COMPLETE } else { TIMED_OUT })
}

/// Waits until so many readers are matched, but not beyond `end`; true if they are.
fn wait_matched(
    publisher: &mut dyn Publisher,
    matched: &mut Matched,
    end: Instant,
    enough: &dyn Fn(usize) -> bool,
) -> bool {
    loop {
        matched.update(publisher.matched());
        if enough(matched.count) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn write_all(options: &Options, publisher: &mut dyn Publisher) -> Result<(), String> {
    let start = Instant::now();
    for seq in 0..options.count {
        if options.rate > 0.0 {
            // The next write is due at a time that does not depend on how long the last one took.
            let due = start + Duration::from_secs_f64(f64::from(seq) / options.rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        publisher.write(Sample::make(options, seq))?;
    }
    for id in 0..options.instances {
        let sample = Sample::make(options, id);
        match options.r#final {
            Final::None => break,
            Final::Dispose => publisher.dispose(sample)?,
            Final::Unregister => publisher.unregister(sample)?,
        }
    }
    emit_count("sent", u64::from(options.count));
    Ok(())
}
