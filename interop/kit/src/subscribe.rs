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
        // What has come is taken first: the last writer may have left behind more.
        let is_idle = events.is_empty();
        if is_idle && !lingers && (tally.is_complete() || (matched.left && matched.count == 0)) {
            lingers = true;
            end = after(options.linger);
        }
        if Instant::now() >= end {
            return Ok(tally.finish());
        }
        if is_idle {
            wait(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{COMPLETE, Event, Sample, TIMED_OUT};

    /// A reader that has this, one sample at a time; its writer has left when all is taken but so many.
    struct Reader {
        coming: Vec<Sample>,
        without_writer: usize,
        repeats: bool,
        until: Instant,
    }

    impl Subscriber for Reader {
        fn matched(&mut self) -> usize {
            usize::from(self.coming.len() > self.without_writer)
        }

        fn take(&mut self) -> Result<Vec<Event>> {
            assert!(Instant::now() < self.until, "it takes for ever");
            let next = if self.repeats { self.coming.last().cloned() } else { self.coming.pop() };
            Ok(next.map(Event::Data).into_iter().collect())
        }
    }

    fn ends_with(options: &Options, sequence: &[u32], without_writer: usize, repeats: bool) -> u8 {
        let coming = sequence.iter().rev().map(|seq| Sample::make(options, *seq)).collect();
        let until = Instant::now() + Duration::from_secs(10);
        let mut reader = Reader { coming, without_writer, repeats, until };
        subscribe(options, &mut reader, &crate::look_again).unwrap()
    }

    #[test]
    fn who_hears_the_same_without_end_is_through_in_time() {
        let options = |count| Options { count, timeout: 0.05, quiet: true, ..Options::of("sub") };
        assert_eq!(ends_with(&options(2), &[0], 0, true), TIMED_OUT);
        assert_eq!(ends_with(&options(1), &[0], 0, true), COMPLETE);
    }

    #[test]
    fn what_the_last_writer_has_left_behind_is_taken() {
        let options = Options { count: 3, quiet: true, ..Options::of("sub") };
        assert_eq!(ends_with(&options, &[0, 1, 2], 2, false), COMPLETE);
        assert_eq!(ends_with(&options, &[0, 1], 1, false), TIMED_OUT, "it left before all was written");
    }
}
