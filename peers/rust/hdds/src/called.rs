//! The roles whose data comes by `on_data_available`, on HDDS's router thread.
//!
//! The listener is given the decoded sample, and HDDS queues it for `take` as well: who does not take it
//! exhausts the process's pool of slots, from which the history of writers is served too. So each callback
//! takes what the ones before left, after it has answered.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hdds::{DataReader, DataWriter, DdsTrait, TransportMode};
use serde_json::Value;
use taut_perf_kit::called::{Counting, Pinging, Ponging};
use taut_perf_kit::{Control, Options, Payload, Stop};

use crate::ends::{participant, reader, wait_matched, writer};
use crate::types::Type;

/// A reader whose callbacks drain it.
struct Drain<T: DdsTrait>(OnceLock<Mutex<DataReader<T>>>);

impl<T: DdsTrait> Drain<T> {
    fn new() -> Arc<Self> {
        Arc::new(Drain(OnceLock::new()))
    }

    fn own(&self, reader: DataReader<T>) {
        let _ = self.0.set(Mutex::new(reader));
    }

    fn drain(&self) {
        if let Some(reader) = self.0.get() {
            let reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            while matches!(reader.take(), Ok(Some(_))) {}
        }
    }
}

/// A writer that callback and thread use, with the sample that they send again and again.
struct Sender<T: DdsTrait>(Mutex<(DataWriter<T>, T)>);

impl<T: DdsTrait + Payload> Sender<T> {
    fn send(&self, stamp: taut_perf_kit::Stamp) -> hdds::dds::Result<()> {
        let (writer, sample) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sample.set_stamp(stamp);
        writer.write(sample)
    }
}

/// The role `ping`.
pub fn ping<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let participant = participant(options, TransportMode::UdpMulticast)?;
    let (writer, writes) = writer::<T>(&participant, "perf_ping", options)?;
    let sender = Arc::new(Sender(Mutex::new((writer, T::sized(options.size)))));
    let pinging = Arc::new(Pinging::new(options));
    let drain = Drain::new();
    let (state, out, rest) = (Arc::clone(&pinging), Arc::clone(&sender), Arc::clone(&drain));
    let (answers, reads) = reader::<T::Answer>(&participant, "perf_pong", options, move |answer| {
        if let Some(stamp) = state.answer(answer) {
            // A write that fails is a sample that is lost, and counts as that.
            let _ = out.send(stamp);
        }
        rest.drain();
    })?;
    drain.own(answers);
    wait_matched(Some(&writes), Some(&reads), options)?;
    pinging.run(options, control, |stamp| Ok(sender.send(stamp)?))
}

/// The role `pong`.
pub fn pong<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let participant = participant(options, TransportMode::UdpMulticast)?;
    let (writer, _) = writer::<T::Answer>(&participant, "perf_pong", options)?;
    let sender = Sender(Mutex::new((writer, T::Answer::sized(options.size))));
    let ponging = Arc::new(Ponging::new(options));
    let drain = Drain::new();
    let (state, rest) = (Arc::clone(&ponging), Arc::clone(&drain));
    let (samples, _) = reader::<T>(&participant, "perf_ping", options, move |sample| {
        // A write that fails is an answer that is lost: ping counts it.
        let _ = sender.send(state.take(sample));
        rest.drain();
    })?;
    drain.own(samples);
    ponging.run(control)
}

/// The role `sub`.
pub fn subscribe<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let participant = participant(options, TransportMode::UdpMulticast)?;
    let counting = Arc::new(Counting::new(options));
    let drain = Drain::new();
    let (state, rest) = (Arc::clone(&counting), Arc::clone(&drain));
    let (samples, _) = reader::<T>(&participant, "perf_data", options, move |sample| {
        state.take(sample);
        rest.drain();
    })?;
    drain.own(samples);
    counting.run(options, control)
}
