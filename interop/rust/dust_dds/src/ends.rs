//! A writer and a reader of Dust DDS, as the loops use them.

use std::time::Duration;

use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::instance::InstanceHandle;
use dust_dds::infrastructure::sample_info::InstanceStateKind;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use taut_interop_kit::{Ended, Event, Publisher, Result, Sample, Subscriber};

use crate::refused;
use crate::types::Data;

/// A writer.
pub struct Writer<T>(pub DataWriter<T>);

impl<T: Data> Publisher for Writer<T> {
    fn matched(&mut self) -> usize {
        let status = self.0.get_publication_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or(0))
    }

    fn write(&mut self, sample: Sample) -> Result<()> {
        self.0.write(T::try_from(sample)?, None).map_err(refused("write"))
    }

    fn dispose(&mut self, sample: Sample) -> Result<()> {
        self.0.dispose(T::try_from(sample)?, None).map_err(refused("dispose"))
    }

    fn unregister(&mut self, sample: Sample) -> Result<()> {
        self.0.unregister_instance(T::try_from(sample)?, None).map_err(refused("unregister_instance"))
    }

    fn wait_for_acknowledgments(&mut self, at_most: Duration) -> Result<bool> {
        Ok(self.0.wait_for_acknowledgments(at_most.into()).is_ok())
    }
}

/// A reader.
pub struct Reader<T> {
    reader: DataReader<T>,
    /// What ends an instance may carry no key: the instances that samples have come of, few in the matrix.
    instances: Vec<(InstanceHandle, Option<u32>)>,
}

impl<T> Reader<T> {
    /// Of this reader.
    pub fn new(reader: DataReader<T>) -> Reader<T> {
        Reader { reader, instances: Vec::new() }
    }
}

impl<T: Data> Subscriber for Reader<T> {
    fn matched(&mut self) -> usize {
        let status = self.reader.get_subscription_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or(0))
    }

    fn take(&mut self) -> Result<Vec<Event>> {
        let taken = match self.reader.take_next_sample() {
            Ok(taken) => taken,
            Err(DdsError::NoData) => return Ok(Vec::new()),
            Err(error) => return Err(refused("take_next_sample")(error)),
        };
        let (info, data) = (taken.sample_info, taken.data.map(Into::<Sample>::into));
        let known = self.instances.iter().find(|(handle, _)| *handle == info.instance_handle);
        match data {
            Some(sample) if info.valid_data => {
                if known.is_none() {
                    self.instances.push((info.instance_handle, sample.id()));
                }
                Ok(vec![Event::Data(sample)])
            }
            data => {
                let id = known.map_or_else(|| data.and_then(|key| key.id()), |(_, id)| *id);
                let ended = match info.instance_state {
                    InstanceStateKind::NotAliveDisposed => Ended::Disposed,
                    InstanceStateKind::NotAliveNoWriters => Ended::NoWriters,
                    InstanceStateKind::Alive => {
                        return Err("an invalid sample of an instance that lives".into());
                    }
                };
                Ok(vec![Event::State(id, ended)])
            }
        }
    }
}
