//! A writer and a reader of Taut, as the loops use them.

use std::sync::Arc;
use std::time::Duration;

use taut::{DataReader, DataWriter, Error, InstanceState, Selection};
use taut_interop_kit::{Ended, Event, Publisher, Result, Sample, Subscriber};

use crate::types::Data;

/// Samples that are taken at a time, as in the other peers.
const BATCH: Selection = Selection { max_samples: 32, ..Selection::ANY };

/// A writer.
pub struct Writer<T> {
    pub writer: DataWriter<T>,
    /// If it is one of several, what they write waits for what comes next until all is written: whether their samples meet
    /// in datagrams is luck without.
    pub suspended: Option<Arc<taut::Publisher>>,
}

impl<T: Data> Publisher for Writer<T> {
    fn matched(&mut self) -> usize {
        self.writer.publication_matched_status().current_count as usize
    }

    fn write(&mut self, sample: Sample) -> Result<()> {
        self.suspended.iter().for_each(|publisher| publisher.suspend_publications());
        Ok(self.writer.write(&T::try_from(sample)?)?)
    }

    fn dispose(&mut self, sample: Sample) -> Result<()> {
        Ok(self.writer.dispose(&T::try_from(sample)?)?)
    }

    fn unregister(&mut self, sample: Sample) -> Result<()> {
        Ok(self.writer.unregister_instance(&T::try_from(sample)?)?)
    }

    fn wait_for_acknowledgments(&mut self, at_most: Duration) -> Result<bool> {
        // The first one's call is for all.
        let _ = self.suspended.as_ref().map(|publisher| publisher.resume_publications());
        match self.writer.wait_for_acknowledgments(at_most) {
            Err(Error::Timeout(_)) => Ok(false),
            outcome => Ok(outcome.map(|()| true)?),
        }
    }
}

/// A reader.
pub struct Reader<T>(pub DataReader<T>);

impl<T: Data> Subscriber for Reader<T> {
    fn matched(&mut self) -> usize {
        self.0.subscription_matched_status().current_count as usize
    }

    fn take(&mut self) -> Result<Vec<Event>> {
        Ok(self.0.take_with(&BATCH)?.into_iter().flat_map(events).collect())
    }
}

/// What one sample that was taken says.
fn events<T: Data>(sample: taut::Sample<T>) -> impl Iterator<Item = Event> {
    let ended = match sample.info.instance_state {
        InstanceState::Alive => None,
        InstanceState::NotAliveDisposed => Some(Ended::Disposed),
        InstanceState::NotAliveNoWriters => Some(Ended::NoWriters),
    };
    // An instance that has ended says so on its last valid sample when that one has not been taken yet; no
    // separate invalid sample follows then.
    let ended = ended.filter(|_| sample.data.is_none() || (sample.info.sample_rank == 0 && T::HAS_KEY));
    let data: Option<Sample> = sample.data.map(Into::into);
    let id = data.as_ref().map_or_else(|| sample.key.and_then(|key| key.into().id()), Sample::id);
    data.map(Event::Data).into_iter().chain(ended.map(|ended| Event::State(id, ended)))
}
