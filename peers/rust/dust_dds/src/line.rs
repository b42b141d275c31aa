//! A writer and a reader of Dust DDS as a [`Line`]: WaitSet and `take_next_sample`.

use std::time::{Duration, Instant};

use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::status::StatusKind;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::wait_set::{Condition, WaitSet};
use taut_perf_kit::{Line, Options, Payload, Stop};

use crate::ends::{BLOCK_AT_MOST, Domain, MATCH_WITHIN, enough, readers_of, writers_of};
use crate::types::Data;

/// Both directions, or one of them.
pub struct DustLine<Out: Data, In: Data> {
    writer: Option<DataWriter<Out>>,
    reader: Option<DataReader<In>>,
    waitset: WaitSet,
    spin: bool,
    /// Outlives its ends.
    _domain: Domain,
}

impl<Out: Data, In: Data> DustLine<Out, In> {
    /// Writes the one topic and reads the other; waits first until all directions are matched with all
    /// others, if it is to start the traffic.
    pub fn open(
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
        starts: bool,
    ) -> Result<Self, Stop> {
        let domain = Domain::open(options)?;
        let writer = writes.map(|name| domain.writer(&domain.topic::<Out>(name)?, options)).transpose()?;
        let reader = reads.map(|name| domain.reader(&domain.topic::<In>(name)?, options)).transpose()?;
        let (count, until) = (options.remotes, Instant::now() + MATCH_WITHIN);
        if let Some(writer) = writer.as_ref().filter(|_| starts) {
            enough("writer", readers_of(writer, count, until)?, count, MATCH_WITHIN)?;
        }
        if let Some(reader) = reader.as_ref().filter(|_| starts) {
            enough("reader", writers_of(reader, count, until)?, count, MATCH_WITHIN)?;
        }
        let mut waitset = WaitSet::new();
        if let Some(reader) = &reader {
            let condition = reader.get_statuscondition();
            condition.set_enabled_statuses(&[StatusKind::DataAvailable])?;
            waitset.attach_condition(Condition::StatusCondition(condition))?;
        }
        Ok(DustLine { writer, reader, waitset, spin: options.spin(), _domain: domain })
    }

    /// Waits until all that was written is acknowledged, or the limit is over.
    pub fn flush(&mut self) -> Result<(), Stop> {
        let Some(writer) = &self.writer else { return Ok(()) };
        match writer.wait_for_acknowledgments(BLOCK_AT_MOST.into()) {
            Ok(()) => {}
            Err(DdsError::Timeout) => {
                eprintln!("not all acknowledged after {} s", BLOCK_AT_MOST.as_secs());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl<Out: Data + Payload, In: Data + Payload> Line for DustLine<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        let writer = self.writer.as_ref().ok_or_else(|| Stop::Failed("no writer in this role".into()))?;
        writer.write(sample.clone(), None).map_err(|error| Stop::Failed(format!("write: {error}")))
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let reader = self.reader.as_ref().ok_or_else(|| Stop::Failed("no reader in this role".into()))?;
        let begin = Instant::now();
        loop {
            match reader.take_next_sample() {
                // One without data tells of an instance.
                Ok(sample) if sample.data.is_none() => continue,
                Ok(sample) => return Ok(sample.data),
                Err(DdsError::NoData) => {}
                Err(error) => return Err(Stop::Failed(format!("take_next_sample: {error}"))),
            }
            let left = at_most.saturating_sub(begin.elapsed());
            if self.spin || left.is_zero() {
                return Ok(None);
            }
            match self.waitset.wait(left.into()) {
                Ok(_) | Err(DdsError::Timeout) => {}
                Err(error) => return Err(Stop::Failed(format!("WaitSet: {error}"))),
            }
        }
    }
}
