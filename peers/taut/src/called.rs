//! The roles whose data comes by `on_data_available`.
//!
//! The writer of ping stands in a lock that the same thread may take again: `write` drives, and whoever
//! drives calls back.

use std::sync::Arc;

use parking_lot::{Mutex, ReentrantMutex};
use serde_json::Value;
use taut_perf_kit::called::{Counting, Pinging, Ponging};
use taut_perf_kit::{Control, Options, Stop};

use crate::settings::{Domain, MATCH_WITHIN, qos};
use crate::types::Type;

/// The role `ping`.
pub fn ping<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let writer = domain.0.topic::<T>("perf_ping")?.writer(qos(options))?;
    let reader = domain.0.topic::<T::Answer>("perf_pong")?.reader(qos(options))?;
    writer.wait_matched_count(options.remotes, MATCH_WITHIN)?;
    reader.wait_matched_count(options.remotes, MATCH_WITHIN)?;
    let pinging = Arc::new(Pinging::new(options));
    let writer = Arc::new(ReentrantMutex::new(writer));
    let (state, out) = (Arc::clone(&pinging), Arc::clone(&writer));
    let sample = Mutex::new(T::sized(options.size));
    reader.on_data_available(move |answer| {
        let Some(stamp) = answer.data.and_then(|data| state.answer(&data)) else { return };
        let mut sample = sample.lock();
        sample.set_stamp(stamp);
        // A write that fails is a sample that is lost, and counts as that.
        let _ = out.lock().write(&sample);
    });
    let mut sample = T::sized(options.size);
    pinging.run(options, control, |stamp| {
        sample.set_stamp(stamp);
        Ok(writer.lock().write(&sample)?)
    })
}

/// The role `pong`.
pub fn pong<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let writer = domain.0.topic::<T::Answer>("perf_pong")?.writer(qos(options))?;
    let reader = domain.0.topic::<T>("perf_ping")?.reader(qos(options))?;
    let ponging = Arc::new(Ponging::new(options));
    let state = Arc::clone(&ponging);
    reader.on_data_available(move |sample| {
        let Some(mut data) = sample.data else { return };
        data.set_stamp(state.take(&data));
        // A write that fails is an answer that is lost: ping counts it.
        let _ = writer.write(&data.answer());
    });
    ponging.run(control)
}

/// The role `sub`.
pub fn subscribe<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let reader = domain.0.topic::<T>("perf_data")?.reader(qos(options))?;
    let counting = Arc::new(Counting::new(options));
    let state = Arc::clone(&counting);
    reader.on_data_available(move |sample| {
        if let Some(data) = sample.data {
            state.take(&data);
        }
    });
    counting.run(options, control)
}
