//! Writers and readers of RustDDS, as the loops use them. RustDDS has other types for ends without a key.

use std::time::Duration;

use rustdds::dds::statusevents::{DataReaderStatus, DataWriterStatus};
use rustdds::{StatusEvented, no_key, with_key};
use taut_interop_kit::{Ended, Event, Publisher, Refusal, Result, Sample, Subscriber};

use crate::refused;
use crate::types::{Data, Plain};

/// An end, and how many others it was last told to be matched with.
pub struct End<T> {
    end: T,
    matched: usize,
}

impl<T> End<T> {
    /// Of this writer or reader.
    pub fn new(end: T) -> End<T> {
        End { end, matched: 0 }
    }
}

/// How many readers there are after what a writer has been told by now; `None` if that is nothing.
fn readers(told: impl FnMut() -> Option<DataWriterStatus>) -> Option<usize> {
    let counts = std::iter::from_fn(told).filter_map(|status| match status {
        DataWriterStatus::PublicationMatched { current, .. } => usize::try_from(current.count()).ok(),
        _ => None,
    });
    counts.last()
}

/// How many writers there are after what a reader has been told by now; `None` if that is nothing.
fn writers(told: impl FnMut() -> Option<DataReaderStatus>) -> Option<usize> {
    let counts = std::iter::from_fn(told).filter_map(|status| match status {
        DataReaderStatus::SubscriptionMatched { current, .. } => usize::try_from(current.count()).ok(),
        _ => None,
    });
    counts.last()
}

/// The sentence for what RustDDS has no call for.
fn has_no(what: &str) -> Refusal {
    format!("RustDDS has no call to {what}").into()
}

impl Publisher for End<no_key::DataWriterCdr<Plain>> {
    fn matched(&mut self) -> usize {
        self.matched = readers(|| self.end.try_recv_status()).unwrap_or(self.matched);
        self.matched
    }

    fn write(&mut self, sample: Sample) -> Result<()> {
        self.end.write(Plain::try_from(sample)?, None).map_err(refused("write"))
    }

    fn dispose(&mut self, _: Sample) -> Result<()> {
        Err(has_no("dispose of an instance without a key"))
    }

    fn unregister(&mut self, _: Sample) -> Result<()> {
        Err(has_no("unregister an instance"))
    }

    fn wait_for_acknowledgments(&mut self, at_most: Duration) -> Result<bool> {
        Ok(self.end.wait_for_acknowledgments(at_most).unwrap_or(false))
    }
}

impl<T: Data> Publisher for End<with_key::DataWriterCdr<T>> {
    fn matched(&mut self) -> usize {
        self.matched = readers(|| self.end.try_recv_status()).unwrap_or(self.matched);
        self.matched
    }

    fn write(&mut self, sample: Sample) -> Result<()> {
        self.end.write(T::try_from(sample)?, None).map_err(refused("write"))
    }

    fn dispose(&mut self, sample: Sample) -> Result<()> {
        self.end.dispose(&T::try_from(sample)?.key(), None).map_err(refused("dispose"))
    }

    fn unregister(&mut self, _: Sample) -> Result<()> {
        Err(has_no("unregister an instance"))
    }

    fn wait_for_acknowledgments(&mut self, at_most: Duration) -> Result<bool> {
        Ok(self.end.wait_for_acknowledgments(at_most).unwrap_or(false))
    }
}

impl Subscriber for End<no_key::DataReaderCdr<Plain>> {
    fn matched(&mut self) -> usize {
        self.matched = writers(|| self.end.try_recv_status()).unwrap_or(self.matched);
        self.matched
    }

    fn take(&mut self) -> Result<Vec<Event>> {
        let taken = self.end.take_next_sample().map_err(refused("take_next_sample"))?;
        Ok(taken.into_iter().map(|taken| Event::Data(taken.into_value().into())).collect())
    }
}

impl<T: Data> Subscriber for End<with_key::DataReaderCdr<T>> {
    fn matched(&mut self) -> usize {
        self.matched = writers(|| self.end.try_recv_status()).unwrap_or(self.matched);
        self.matched
    }

    fn take(&mut self) -> Result<Vec<Event>> {
        let taken = self.end.take_next_sample().map_err(refused("take_next_sample"))?;
        let events = taken.into_iter().map(|taken| match taken.into_value() {
            with_key::Sample::Value(sample) => Event::Data(sample.into()),
            with_key::Sample::Dispose(key) => Event::State(T::id(&key), Ended::Disposed),
        });
        Ok(events.collect())
    }
}
