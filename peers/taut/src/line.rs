//! A writer and a reader of Taut as a [`Line`]: values, and plain memory of any size.

mod plain;
mod values;

use std::time::Duration;

use taut::{DataReader, DataWriter, DdsType, DomainParticipant, Error, Plain, Publisher, PublisherQos};
use taut_perf_kit::{Line, Options, Payload, Stop};

use crate::settings::{BLOCK_AT_MOST, MATCH_WITHIN, SUSPENDED, is_network, qos};
use crate::types::Type;

use plain::{Mark, PlainLine};
use values::ValueLine;

/// How often who drives itself looks in one call. Lower asks more often whether the run has ended or the next is to be sent, higher comes late to that.
const LOOKS: usize = 8;

/// A line over a participant of Taut.
pub trait Opened: Line {
    /// Waits until both directions are matched with so many others.
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop>;

    /// Waits until all that was written is acknowledged.
    fn flush(&mut self) -> Result<(), Stop>;
}

/// A line whose type is known to who opened it. The loops of the roles are there once for all plain types: a
/// program of one user has one or two types, and what it takes of memory is to be told, too.
pub type AnyLine<Out, In> = Box<dyn Opened<Out = Out, In = In> + Send>;

impl<Out: Payload, In: Payload> Line for AnyLine<Out, In> {
    type Out = Out;
    type In = In;

    fn wait(&self, options: &Options) -> &'static str {
        (**self).wait(options)
    }

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        (**self).send(sample)
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        (**self).receive(at_most)
    }

    fn push(&mut self) -> Result<(), Stop> {
        (**self).push()
    }

    fn give_back(&mut self, taken: In) {
        (**self).give_back(taken);
    }

    fn give_back_answer(&mut self, answer: Out) {
        (**self).give_back_answer(answer);
    }
}

/// Opens a line with the ends that a role has: what it writes and what it reads.
type Open<Out, In> =
    fn(DomainParticipant, &Options, Option<&str>, Option<&str>) -> Result<AnyLine<Out, In>, Stop>;

/// How lines of a type are opened.
pub struct Lines<T, A> {
    /// To oneself, or with one end only.
    pub one: Open<T, T>,
    /// To who answers.
    pub there: Open<T, A>,
    /// Of who answers.
    pub back: Open<A, T>,
    pub answer: fn(T) -> A,
}

impl<T: Type> Lines<T, T::Answer> {
    pub fn of_values() -> Self {
        Lines { one: ValueLine::open, there: ValueLine::open, back: ValueLine::open, answer: T::answer }
    }
}

impl Lines<Mark, Mark> {
    pub fn of_plain<T: DdsType + Plain + Payload + Send + Sync + 'static>() -> Self {
        let open = PlainLine::<T>::open;
        Lines { one: open, there: open, back: open, answer: |mark| mark }
    }
}

/// A writer and a reader of one participant, or one of them.
pub struct Ends<Out: DdsType, In: DdsType> {
    participant: DomainParticipant,
    /// Of the writer, suspended while it has not said that a burst is over.
    publisher: Option<Publisher>,
    writer: Option<DataWriter<Out>>,
    reader: Option<DataReader<In>>,
    /// It drives the participant itself while it looks for samples.
    drives: bool,
    spin: bool,
}

impl<Out: DdsType, In: DdsType> Ends<Out, In> {
    fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<Self, Stop> {
        let publisher =
            (options.variant == SUSPENDED).then(|| participant.publisher(PublisherQos::default()));
        let open_writer = |name| {
            let topic = participant.topic::<Out>(name)?;
            publisher.as_ref().map_or_else(
                || topic.writer(qos(options)),
                |publisher| publisher.writer(&topic, qos(options).writer),
            )
        };
        let writer = writes.map(open_writer).transpose()?;
        if let Some(publisher) = &publisher {
            publisher.suspend_publications();
        }
        let reader = reads.map(|name| participant.topic::<In>(name)?.reader(qos(options))).transpose()?;
        let spin = options.spin();
        Ok(Ends { participant, publisher, writer, reader, drives: spin && is_network(options), spin })
    }

    fn writer(&self) -> Result<&DataWriter<Out>, Stop> {
        self.writer.as_ref().ok_or_else(|| Stop::Failed("this role does not write".into()))
    }

    /// The next that `take` finds, waited for at most so long.
    fn next<X>(
        &self,
        at_most: Duration,
        mut take: impl FnMut(&DataReader<In>) -> taut::Result<Option<X>>,
    ) -> Result<Option<X>, Stop> {
        let reader = self.reader.as_ref().ok_or_else(|| Stop::Failed("this role does not read".into()))?;
        loop {
            if let Some(found) = take(reader)? {
                return Ok(Some(found));
            }
            if self.drives {
                for _ in 0..LOOKS {
                    self.participant.run_once(taut::Duration::ZERO)?;
                    if let Some(found) = take(reader)? {
                        return Ok(Some(found));
                    }
                }
                return Ok(None);
            }
            if self.spin {
                return Ok(None);
            }
            match reader.wait(at_most) {
                Ok(()) => {}
                Err(Error::Timeout(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        if let Some(writer) = &self.writer {
            writer.wait_matched_count(remotes, MATCH_WITHIN)?;
        }
        if let Some(reader) = &self.reader {
            reader.wait_matched_count(remotes, MATCH_WITHIN)?;
        }
        Ok(())
    }

    /// A burst is over, and the next is to wait for its end.
    fn push(&self) -> Result<(), Stop> {
        if let Some(publisher) = &self.publisher {
            publisher.resume_publications()?;
            publisher.suspend_publications();
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Stop> {
        match &self.writer {
            Some(writer) => Ok(writer.wait_for_acknowledgments(BLOCK_AT_MOST)?),
            None => Ok(()),
        }
    }
}
