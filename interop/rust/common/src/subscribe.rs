//! The whole life of a subscriber.

use std::time::Instant;

use crate::options::Options;
use crate::tally::{Matched, Tally};
use crate::{LOOK_AGAIN, Subscriber, after};

/// Takes until everything has come, the last writer has left or the time is over; gives the exit code.
pub fn subscribe(options: &Options, subscriber: &mut dyn Subscriber) -> Result<u8, String> {
    let mut end = after(options.timeout);
    let mut tally = Tally::new(options);
    let mut matched = Matched::default();
    let mut lingers = false;
    loop {
        matched.update(subscriber.matched());
        if let Some(event) = subscriber.take()? {
            tally.count(&event);
            continue;
        }
        if !lingers && (tally.is_complete() || (matched.left && matched.count == 0)) {
            lingers = true;
            end = after(options.linger);
        }
        if Instant::now() >= end {
            return Ok(tally.finish());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
