//! Lines whose samples are plain memory and never move: who plays a role has only the mark of each.

use std::time::Duration;

use bytemuck::allocation::zeroed_box;
use taut::{DdsType, DomainParticipant, Plain};
use taut_perf_kit::{Line, Options, Payload, Stamp, Stop};

use super::{AnyLine, Ends, Opened};
use crate::settings::wait;

/// What a plain sample is known by, apart from its memory.
#[derive(Default)]
pub struct Mark {
    stamp: Stamp,
    intact: bool,
}

impl Payload for Mark {
    fn sized(_size: usize) -> Self {
        Mark::default()
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }

    fn intact(&self, _size: usize) -> bool {
        self.intact
    }
}

/// Plain samples of any size: copied from and into memory of this program, or written and looked at in place.
pub struct PlainLine<T: DdsType + Plain> {
    ends: Ends<T, T>,
    out: Box<T>,
    into: Box<T>,
    loan: bool,
    size: usize,
}

impl<T: DdsType + Plain + Payload + Send + Sync + 'static> PlainLine<T> {
    pub fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<AnyLine<Mark, Mark>, Stop> {
        let ends = Ends::open(participant, options, writes, reads)?;
        let (out, into) = (zeroed_box(), zeroed_box());
        Ok(Box::new(PlainLine::<T> { ends, out, into, loan: options.loan(), size: options.size }))
    }
}

impl<T: DdsType + Plain + Payload> Opened for PlainLine<T> {
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        self.ends.wait_matched(remotes)
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.ends.flush()
    }
}

impl<T: DdsType + Plain + Payload> Line for PlainLine<T> {
    type Out = Mark;
    type In = Mark;

    fn wait(&self, options: &Options) -> &'static str {
        wait(options)
    }

    fn send(&mut self, sample: &Mark) -> Result<(), Stop> {
        let writer = self.ends.writer()?;
        if self.loan {
            let mut loan = writer.loan()?;
            loan.set_stamp(sample.stamp);
            return Ok(loan.write()?);
        }
        self.out.set_stamp(sample.stamp);
        Ok(writer.write(&self.out)?)
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.ends.push()
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Mark>, Stop> {
        let PlainLine { ends, into, loan, size, .. } = self;
        let mark = |value: &T| Mark { stamp: value.stamp(), intact: value.intact(*size) };
        if *loan {
            return ends
                .next(at_most, |reader| Ok(reader.take_view()?.and_then(|view| view.data().map(mark))));
        }
        ends.next(at_most, |reader| {
            let info = reader.take_into(into)?;
            Ok(info.filter(|info| info.valid_data).map(|_| mark(into)))
        })
    }
}
