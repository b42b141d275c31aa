//! The role `local`: both ends in this process.

use std::time::Duration;

use serde_json::Value;
use taut::{DataReader, DataWriter, Driver};
use taut_perf_kit::clock::now_ns;
use taut_perf_kit::ping::Pinger;
use taut_perf_kit::{Control, Options, Payload, Stamp, Stop};

use crate::line::{MATCH_WITHIN, config, qos};
use crate::types::Type;

/// A sample within a process that is not there by then is lost.
const GIVE_UP: Duration = Duration::from_secs(1);

/// One thread that writes and takes, or two that answer each other.
pub fn local<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let one_thread = options.transport == "thread";
    // One thread that does both needs no other; two wait for each other.
    let driver = if one_thread || options.spin() { Driver::Inline } else { Driver::Threaded };
    let settings = taut::Config { driver, ..config(options) };
    let participant = taut::DomainParticipant::with_config(&settings)?;
    let topic = participant.topic::<T>("perf_ping")?;
    let (writer, taker) = (topic.writer(qos(options))?, topic.reader(qos(options))?);
    writer.wait_matched(MATCH_WITHIN)?;
    taker.wait_matched(MATCH_WITHIN)?;
    if one_thread {
        let take = |at_most| take(&taker, options.spin(), at_most);
        return exchange(options, control, &writer, true, take);
    }
    let topic = participant.topic::<T::Answer>("perf_pong")?;
    let (answers, answered) = (topic.writer(qos(options))?, topic.reader(qos(options))?);
    answered.wait_matched(MATCH_WITHIN)?;
    let spin = options.spin();
    // It ends with the process.
    std::thread::spawn(move || {
        loop {
            if let Ok(Some(mut sample)) = take(&taker, spin, GIVE_UP) {
                sample.set_stamp(Stamp { seen_ns: now_ns(), ..sample.stamp() });
                // An answer that is not written is lost: the other thread counts it.
                let _ = answers.write(&sample.answer());
            }
        }
    });
    exchange(options, control, &writer, false, |at_most| take(&answered, spin, at_most))
}

fn exchange<T: Type, A: Payload>(
    options: &Options,
    control: &Control,
    writer: &DataWriter<T>,
    one_thread: bool,
    take: impl Fn(Duration) -> taut::Result<Option<A>>,
) -> Result<Value, Stop> {
    let mut pinger = Pinger::new(options);
    let mut sample = T::sized(options.size);
    control.ready(if options.spin() { "spin" } else { "waitset" });
    while let Some(stamp) = pinger.send() {
        sample.set_stamp(stamp);
        writer.write(&sample)?;
        let written_ns = now_ns();
        if let Some(answer) = take(GIVE_UP)? {
            let stamp = answer.stamp();
            let seen_ns = if one_thread { written_ns } else { stamp.seen_ns };
            pinger.answer(Stamp { seen_ns, ..stamp }, answer.intact(options.size));
        }
    }
    control.stop();
    Ok(pinger.done(options)?)
}

fn take<T: taut::DdsType>(reader: &DataReader<T>, spin: bool, at_most: Duration) -> taut::Result<Option<T>> {
    let end_ns = now_ns() + at_most.as_nanos() as u64;
    loop {
        if let Some(sample) = reader.take_next()? {
            if sample.data.is_some() {
                return Ok(sample.data);
            }
        } else if now_ns() >= end_ns {
            return Ok(None);
        } else if spin {
            std::hint::spin_loop();
        } else if let Err(error) = reader.wait(at_most) {
            return if matches!(error, taut::Error::Timeout) { Ok(None) } else { Err(error) };
        }
    }
}
