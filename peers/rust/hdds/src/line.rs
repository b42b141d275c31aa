//! A writer and a reader of HDDS as a [`Line`]: WaitSet and `take`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdds::dds::{Error, StatusMask};
use hdds::{DataReader, DataWriter, DdsTrait, Participant, TransportMode, WaitSet};
use taut_perf_kit::{Line, Options, Payload, Stop};

use crate::ends::{self, Matches};

/// Both directions, or one of them.
pub struct HddsLine<Out: DdsTrait, In: DdsTrait> {
    writer: Option<(DataWriter<Out>, Matches)>,
    reader: Option<(DataReader<In>, Matches)>,
    waitset: WaitSet,
    spin: bool,
    /// Outlives its ends.
    _participant: Arc<Participant>,
}

impl<Out: DdsTrait, In: DdsTrait> HddsLine<Out, In> {
    /// Writes the one topic and reads the other, over the network.
    pub fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, Stop> {
        let participant = ends::participant(options, TransportMode::UdpMulticast)?;
        HddsLine::of(participant, options, writes, reads)
    }

    /// The same with a given participant.
    pub fn of(
        participant: Arc<Participant>,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<Self, Stop> {
        let writer = writes.map(|topic| ends::writer(&participant, topic, options)).transpose()?;
        let reader = reads.map(|topic| ends::reader(&participant, topic, options, |_| {})).transpose()?;
        let waitset = WaitSet::new();
        if let Some((reader, _)) = &reader {
            let condition = reader.get_status_condition();
            condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
            waitset.attach_condition(condition)?;
        }
        Ok(HddsLine { writer, reader, waitset, spin: options.spin(), _participant: participant })
    }

    /// Waits until all directions are matched with all others.
    pub fn wait_matched(&self, options: &Options) -> Result<(), Stop> {
        let writes = self.writer.as_ref().map(|(_, matches)| matches);
        ends::wait_matched(writes, self.reader.as_ref().map(|(_, matches)| matches), options)
    }

    /// Binds its reader to the writer of another line of this process: HDDS's shortest way.
    pub fn bind<Other: DdsTrait>(&self, to: &HddsLine<In, Other>) {
        if let (Some((reader, _)), Some((writer, _))) = (&self.reader, &to.writer) {
            reader.bind_to_writer(writer.merger());
        }
    }
}

impl<Out: DdsTrait + Payload, In: DdsTrait + Payload> Line for HddsLine<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        let (writer, _) =
            self.writer.as_ref().ok_or_else(|| Stop::Failed("no writer in this role".into()))?;
        Ok(writer.write(sample)?)
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let (reader, _) =
            self.reader.as_ref().ok_or_else(|| Stop::Failed("no reader in this role".into()))?;
        let begin = Instant::now();
        loop {
            if let Some(sample) = reader.take()? {
                return Ok(Some(sample));
            }
            let left = at_most.saturating_sub(begin.elapsed());
            if self.spin || left.is_zero() {
                return Ok(None);
            }
            match self.waitset.wait(Some(left)) {
                // Its word for a wait that was too long.
                Ok(_) | Err(Error::WouldBlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
