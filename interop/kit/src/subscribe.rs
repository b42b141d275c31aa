//! The whole life of a subscriber.

use std::time::Instant;

use crate::options::Options;
use crate::tally::{Matched, Tally};
use crate::{Result, Subscriber, after};

/// Takes until everything has come, the last writer has left or the time is over; gives the exit code. `wait`
/// returns when there may be something new, or at the time that it is given.
pub fn subscribe(options: &Options, subscriber: &mut dyn Subscriber, wait: &dyn Fn(Instant)) -> Result<u8> {
    let mut end = after(options.timeout);
    let mut tally = Tally::new(options);
    let mut matched = Matched::default();
    let mut lingers = false;
    loop {
        matched.update(subscriber.matched());
        let events = subscriber.take()?;
        events.iter().for_each(|event| tally.count(event));
        if !events.is_empty() {
            continue;
        }
        if !lingers && (tally.is_complete() || (matched.left && matched.count == 0)) {
            lingers = true;
            end = after(options.linger);
        }
        if Instant::now() >= end {
            return Ok(tally.finish());
        }
        wait(end);
    }
}
