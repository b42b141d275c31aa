//! A writer and a reader of Taut as a [`Line`].

use std::time::Duration;

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Error, Qos};
use taut_perf_kit::{Line, Options, Payload, Stop};

/// How long discovery may take: a hundred times what it takes on a loaded machine.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);

/// What a reliable writer may wait for its readers: the contract's limit after the last sample, and longer
/// than any machine stalls before it.
const BLOCK_AT_MOST: Duration = Duration::from_secs(5);

/// A participant.
pub struct Domain(pub DomainParticipant);

/// The settings that the options ask for.
pub fn config(options: &Options) -> Config {
    Config {
        domain_id: options.domain,
        interfaces: vec![options.interface.clone()],
        data_multicast: options.multicast(),
        driver: if options.spin() { Driver::Inline } else { Driver::Threaded },
        ..Config::default()
    }
}

/// The QoS that the options ask for.
pub fn qos(options: &Options) -> Qos {
    let qos = Qos::default().volatile();
    let qos =
        if options.reliable() { qos.reliable().max_blocking_time(BLOCK_AT_MOST) } else { qos.best_effort() };
    match options.depth() {
        Some(depth) => qos.keep_last(depth as u32),
        None => qos.keep_all(),
    }
}

/// Both directions, or one of them.
pub struct TautLine<Out: DdsType, In: DdsType> {
    domain: Domain,
    writer: Option<DataWriter<Out>>,
    reader: Option<DataReader<In>>,
    spin: bool,
}

impl<Out: DdsType, In: DdsType> TautLine<Out, In> {
    /// Writes one topic and reads the other.
    pub fn new(options: &Options, writes: &str, reads: &str) -> Result<Self, Stop> {
        TautLine::open(options, Some(writes), Some(reads))
    }

    /// Writes the topic of `pub` and `sub`.
    pub fn sender(options: &Options) -> Result<Self, Stop> {
        TautLine::open(options, Some("perf_data"), None)
    }

    /// Reads the topic of `pub` and `sub`.
    pub fn receiver(options: &Options) -> Result<Self, Stop> {
        TautLine::open(options, None, Some("perf_data"))
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, Stop> {
        let domain = Domain::open(options)?;
        let writer = writes.map(|name| domain.0.topic::<Out>(name)?.writer(qos(options))).transpose()?;
        let reader = reads.map(|name| domain.0.topic::<In>(name)?.reader(qos(options))).transpose()?;
        Ok(TautLine { domain, writer, reader, spin: options.spin() })
    }

    /// Waits until both directions are matched with all others.
    pub fn wait_matched(&self, options: &Options) -> Result<(), Stop> {
        if let Some(writer) = &self.writer {
            writer.wait_matched_count(options.remotes, MATCH_WITHIN)?;
        }
        if let Some(reader) = &self.reader {
            reader.wait_matched_count(options.remotes, MATCH_WITHIN)?;
        }
        Ok(())
    }

    /// Waits until all that was written is acknowledged.
    pub fn flush(&mut self) -> Result<(), Stop> {
        match &self.writer {
            Some(writer) => Ok(writer.wait_for_acknowledgments(BLOCK_AT_MOST)?),
            None => Ok(()),
        }
    }
}

impl<Out: DdsType + Payload, In: DdsType + Payload> Line for TautLine<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        let writer = self.writer.as_ref().ok_or_else(|| Stop::Failed("this role does not write".into()))?;
        Ok(writer.write(sample)?)
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let reader = self.reader.as_ref().ok_or_else(|| Stop::Failed("this role does not read".into()))?;
        loop {
            if let Some(sample) = reader.take_next()? {
                match sample.data {
                    Some(data) => return Ok(Some(data)),
                    None => continue,
                }
            }
            if self.spin {
                self.domain.0.run_once(taut::Duration::ZERO);
                return Ok(reader.take_next()?.and_then(|sample| sample.data));
            }
            match reader.wait(at_most) {
                Ok(()) => {}
                Err(Error::Timeout) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
