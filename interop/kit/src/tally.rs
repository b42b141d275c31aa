//! What arrived, in which order, and the JSON lines that say so.

use std::collections::{BTreeMap, BTreeSet};

use crate::options::{Final, Options};
use crate::samples::Sample;
use crate::{COMPLETE, Ended, Event, TIMED_OUT};

/// Prints a line with a count.
pub fn emit_count(event: &str, count: u64) {
    println!(r#"{{"event":"{event}","count":{count}}}"#);
}

/// Prints whether all was acknowledged.
pub fn emit_acknowledged(all: bool) {
    println!(r#"{{"event":"acknowledged","all":{all}}}"#);
}

/// Prints `matched` and `unmatched` when the count changes.
#[derive(Default)]
pub struct Matched {
    /// How many there are.
    pub count: usize,
    /// It has fallen once.
    pub left: bool,
}

impl Matched {
    /// The count is this by now.
    pub fn update(&mut self, count: usize) {
        if count != self.count {
            self.left |= count < self.count;
            emit_count(if count > self.count { "matched" } else { "unmatched" }, count as u64);
            self.count = count;
        }
    }
}

/// The tally of one subscriber.
pub struct Tally<'a> {
    options: &'a Options,
    seen: BTreeSet<u32>,
    last: BTreeMap<u32, u32>,
    disposed: BTreeSet<u32>,
    no_writers: BTreeSet<u32>,
    received: u64,
    out_of_order: u64,
    duplicates: u64,
    corrupt: u64,
}

impl<'a> Tally<'a> {
    /// Of a subscriber with these options.
    pub fn new(options: &'a Options) -> Tally<'a> {
        Tally {
            options,
            seen: BTreeSet::new(),
            last: BTreeMap::new(),
            disposed: BTreeSet::new(),
            no_writers: BTreeSet::new(),
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            corrupt: 0,
        }
    }

    /// What was taken.
    pub fn count(&mut self, event: &Event) {
        match event {
            Event::Data(sample) => self.data(sample),
            Event::State(id, ended) => self.state(*id, *ended),
        }
    }

    fn data(&mut self, data: &Sample) {
        let (id, content) = (data.id(), data.content(self.options));
        let right = content.right && content.seq.is_some_and(|seq| id == Some(self.options.id(seq)));
        let seq = content.seq.unwrap_or(u32::MAX);
        self.received += 1;
        if !self.options.quiet {
            let (id, size) = (id.unwrap_or(u32::MAX), content.size);
            println!(r#"{{"event":"sample","seq":{seq},"id":{id},"size":{size},"valid":true,"ok":{right}}}"#);
        }
        if !right {
            self.corrupt += 1;
        } else if !self.seen.insert(seq) {
            self.duplicates += 1;
        } else {
            let before = self.last.insert(id.unwrap_or(0), seq);
            self.out_of_order += u64::from(before.is_some_and(|before| before > seq));
        }
    }

    fn state(&mut self, id: Option<u32>, state: Ended) {
        let (name, ended) = match state {
            Ended::Disposed => ("disposed", &mut self.disposed),
            Ended::NoWriters => ("no_writers", &mut self.no_writers),
        };
        if !self.options.quiet {
            println!(r#"{{"event":"instance","id":{},"state":"{name}"}}"#, id.unwrap_or(u32::MAX));
        }
        match id.filter(|id| *id < self.options.instances) {
            Some(id) => drop(ended.insert(id)),
            None => self.corrupt += 1,
        }
    }

    /// Has everything come that was asked for?
    pub fn is_complete(&self) -> bool {
        let instances = self.options.instances as usize;
        self.seen.len() >= self.options.count as usize
            && match self.options.expect_final {
                Final::None => true,
                Final::Dispose => self.disposed.len() == instances,
                Final::Unregister => self.no_writers.len() == instances,
            }
    }

    /// Prints the summary and gives the exit code.
    pub fn finish(&self) -> u8 {
        let Tally { received, out_of_order, duplicates, corrupt, .. } = self;
        println!(
            r#"{{"event":"summary","received":{received},"distinct":{},"out_of_order":{out_of_order},"duplicates":{duplicates},"corrupt":{corrupt},"disposed":{},"no_writers":{}}}"#,
            self.seen.len(),
            self.disposed.len(),
            self.no_writers.len(),
        );
        if self.is_complete() { COMPLETE } else { TIMED_OUT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SampleType;

    fn tally_of(options: &Options, events: &[Event]) -> [u64; 4] {
        let mut tally = Tally::new(options);
        events.iter().for_each(|event| tally.count(event));
        [tally.received, tally.corrupt, tally.duplicates, tally.out_of_order]
    }

    #[test]
    fn what_is_not_as_it_should_be_is_counted() {
        let options =
            |kind, count| Options { count, r#type: kind, instances: 2, quiet: true, ..Options::of("sub") };
        for kind in [SampleType::Plain, SampleType::Keyed, SampleType::Shape, SampleType::Metric] {
            let mut options = options(kind, 4);
            if kind == SampleType::Plain {
                options.instances = 1;
            }
            let sample = |seq| Event::Data(Sample::make(&options, seq));
            assert_eq!(tally_of(&options, &[sample(0), sample(1), sample(2)]), [3, 0, 0, 0], "{kind:?}");
            assert_eq!(tally_of(&options, &[sample(2), sample(0), sample(0)]), [3, 0, 1, 1], "{kind:?}");
        }
        let options = options(SampleType::Keyed, 4);
        let wrong = Sample::Keyed { id: 1, seq: 0, payload: vec![0; 64] };
        assert_eq!(tally_of(&options, &[Event::Data(wrong)]), [1, 1, 0, 0]);
        assert_eq!(tally_of(&options, &[Event::State(Some(2), Ended::Disposed)]), [0, 1, 0, 0]);
    }

    #[test]
    fn an_end_that_is_expected_is_waited_for() {
        let options = Options {
            count: 1,
            r#type: SampleType::Keyed,
            expect_final: Final::Dispose,
            quiet: true,
            ..Options::of("sub")
        };
        let mut tally = Tally::new(&options);
        tally.count(&Event::Data(Sample::make(&options, 0)));
        tally.count(&Event::State(Some(0), Ended::NoWriters));
        assert!(!tally.is_complete());
        tally.count(&Event::State(Some(0), Ended::Disposed));
        assert!(tally.is_complete());
    }
}
