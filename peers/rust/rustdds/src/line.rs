//! A writer and a reader of RustDDS as a [`Line`]: `write`, and the asynchronous stream of bare samples.

use std::task::Poll;
use std::time::{Duration, Instant};

use rustdds::no_key::{BareDataReaderStream, DataWriter};
use taut_perf_kit::{Line, Options, Payload, Stop};

use crate::ends::{Domain, MATCH_WITHIN, enough, readers_of, writers_of};
use crate::types::Data;
use crate::wait::Waiter;

/// The contract's limit.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);

/// Both directions, or one of them.
pub struct RustDdsLine<Out: Data, In: Data> {
    writer: Option<DataWriter<Out>>,
    reader: Option<BareDataReaderStream<In>>,
    waiter: Waiter,
    spin: bool,
    /// Outlives its ends.
    _domain: Domain,
}

impl<Out: Data, In: Data> RustDdsLine<Out, In> {
    /// Writes the one topic and reads the other; waits first until all directions are matched with all
    /// others, if it is to start the traffic.
    pub fn open(
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
        starts: bool,
    ) -> Result<Self, Stop> {
        let (domain, waiter) = (Domain::open(options)?, Waiter::new());
        let writer = writes.map(|name| domain.writer(&domain.topic(name, options)?)).transpose()?;
        let reader = reads.map(|name| domain.reader(&domain.topic(name, options)?)).transpose()?;
        let (count, until) = (options.remotes, Instant::now() + MATCH_WITHIN);
        if let Some(writer) = writer.as_ref().filter(|_| starts) {
            enough("writer", readers_of(writer, &waiter, count, until), count, MATCH_WITHIN)?;
        }
        if let Some(reader) = reader.as_ref().filter(|_| starts) {
            enough("reader", writers_of(reader, &waiter, count, until), count, MATCH_WITHIN)?;
        }
        let reader = reader.map(|reader| reader.async_bare_sample_stream());
        Ok(RustDdsLine { writer, reader, waiter, spin: options.spin(), _domain: domain })
    }

    /// Waits until all that was written is acknowledged, or the limit is over.
    pub fn flush(&mut self) -> Result<(), Stop> {
        let Some(writer) = &self.writer else { return Ok(()) };
        match writer.wait_for_acknowledgments(ACKNOWLEDGED_WITHIN) {
            Ok(true) => {}
            Ok(false) => eprintln!("not all acknowledged after {} s", ACKNOWLEDGED_WITHIN.as_secs()),
            Err(error) => return Err(Stop::Failed(error.to_string())),
        }
        Ok(())
    }
}

impl<Out: Data + Payload, In: Data + Payload> Line for RustDdsLine<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        let writer = self.writer.as_ref().ok_or_else(|| Stop::Failed("no writer in this role".into()))?;
        // Its error holds the sample, and so is none that `?` takes.
        writer.write(sample.clone(), None).map_err(|error| Stop::Failed(error.to_string()))
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let reader = self.reader.as_mut().ok_or_else(|| Stop::Failed("no reader in this role".into()))?;
        let sample = if self.spin || at_most.is_zero() {
            match self.waiter.poll(reader) {
                Poll::Ready(sample) => sample,
                Poll::Pending => None,
            }
        } else {
            self.waiter.next(reader, Instant::now() + at_most)
        };
        Ok(sample.transpose()?)
    }
}
