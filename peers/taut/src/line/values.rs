//! Lines whose samples are values: a reader hands each one on as a whole.

use std::any::Any;
use std::time::Duration;

use taut::{DdsType, DomainParticipant};
use taut_perf_kit::{Line, Options, Payload, Stop};

use super::{AnyLine, Ends, Opened};
use crate::settings::wait;

/// Samples as values.
pub struct ValueLine<Out: DdsType, In: DdsType> {
    ends: Ends<Out, In>,
    /// What the next one is decoded into: its strings and sequences keep their memory.
    into: Option<In>,
}

impl<Out, In> ValueLine<Out, In>
where
    Out: DdsType + Payload + Send + Sync + 'static,
    In: DdsType + Payload + Send + Sync + 'static,
{
    pub fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<AnyLine<Out, In>, Stop> {
        Ok(Box::new(ValueLine { ends: Ends::open(participant, options, writes, reads)?, into: None }))
    }
}

impl<Out: DdsType + Payload + 'static, In: DdsType + Payload + 'static> Opened for ValueLine<Out, In> {
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        self.ends.wait_matched(remotes)
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.ends.flush()
    }
}

impl<Out: DdsType + Payload + 'static, In: DdsType + Payload + 'static> Line for ValueLine<Out, In> {
    type Out = Out;
    type In = In;

    fn wait(&self, options: &Options) -> &'static str {
        wait(options)
    }

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        Ok(self.ends.writer()?.write(sample)?)
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.ends.push()
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let ValueLine { ends, into } = self;
        let into = into.get_or_insert_with(|| In::sized(0));
        let found =
            ends.next(at_most, |reader| Ok(reader.take_into(into)?.filter(|info| info.valid_data)))?;
        Ok(found.and_then(|_| self.into.take()))
    }

    fn give_back(&mut self, taken: In) {
        self.into = Some(taken);
    }

    fn give_back_answer(&mut self, answer: Out) {
        // What answers itself is of the type that is received.
        let answer: &mut dyn Any = &mut Some(answer);
        if let Some(taken) = answer.downcast_mut::<Option<In>>() {
            self.into = taken.take();
        }
    }
}
