//! The roles whose data comes by `on_data_available`.
//!
//! The callback owns nothing that a waiting thread holds while it writes: writers stand in a lock that the
//! same thread may take again, since `write` drives, and whoever drives calls back.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, ReentrantMutex};
use serde_json::{Value, json};
use taut_perf_kit::clock::{now_ns, wait_until};
use taut_perf_kit::ping::{GIVE_UP_NS, Pinger};
use taut_perf_kit::table::Table;
use taut_perf_kit::tally::Tally;
use taut_perf_kit::{Control, Options, Payload, Stamp, Stop};

use crate::line::{Domain, MATCH_WITHIN, qos};
use crate::types::Type;

/// How long between two looks whether all is over: unnoticed by the driver, no load.
const LOOK: Duration = Duration::from_millis(10);

/// A subscriber that is to end goes on while samples come within this time.
const SETTLE_NS: u64 = 200_000_000;

/// The role `ping`.
pub fn ping<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let writer = domain.0.topic::<T>("perf_ping")?.writer(qos(options))?;
    let reader = domain.0.topic::<T::Answer>("perf_pong")?.reader(qos(options))?;
    writer.wait_matched_count(options.remotes, MATCH_WITHIN)?;
    reader.wait_matched_count(options.remotes, MATCH_WITHIN)?;
    let pinger = Arc::new(Mutex::new(Pinger::new(options)));
    let writer = Arc::new(ReentrantMutex::new(writer));
    let closed = options.period_ns == 0;
    let (size, state, out) = (options.size, Arc::clone(&pinger), Arc::clone(&writer));
    let sample = Mutex::new(T::sized(size));
    reader.on_data_available(move |answer| {
        let Some(data) = answer.data else { return };
        let stamp = {
            let mut pinger = state.lock();
            let answered = pinger.answer(data.stamp(), data.intact(size));
            if answered && closed { pinger.send() } else { None }
        };
        if let Some(stamp) = stamp {
            let mut sample = sample.lock();
            sample.set_stamp(stamp);
            // A write that fails is a sample that is lost, and counts as that.
            let _ = out.lock().write(&sample);
        }
    });
    control.ready("listener");
    send_all::<T>(options, &pinger, |sample| writer.lock().write(sample))?;
    control.stop();
    let done = pinger.lock().done(options)?;
    Ok(done)
}

/// Sends what is due: all samples of an open loop; of a closed one the first, and the next after one that
/// was lost.
fn send_all<T: Type>(
    options: &Options,
    pinger: &Mutex<Pinger>,
    write: impl Fn(&T) -> taut::Result<()>,
) -> Result<(), Stop> {
    let mut sample = T::sized(options.size);
    loop {
        let due_ns = pinger.lock().due_ns();
        wait_until(due_ns, false);
        let stamp = pinger.lock().send();
        let Some(stamp) = stamp else { break };
        sample.set_stamp(stamp);
        write(&sample)?;
        while options.period_ns == 0 && !pinger.lock().given_up() {
            std::thread::sleep(LOOK);
        }
    }
    let end_ns = now_ns() + GIVE_UP_NS;
    while !pinger.lock().all_answered() && now_ns() < end_ns {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// The role `pong`.
pub fn pong<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let writer = domain.0.topic::<T::Answer>("perf_pong")?.writer(qos(options))?;
    let reader = domain.0.topic::<T>("perf_ping")?.reader(qos(options))?;
    let counts = Arc::new(Mutex::new((0u64, 0u64)));
    let (size, told) = (options.size, Arc::clone(&counts));
    reader.on_data_available(move |sample| {
        let Some(mut data) = sample.data else { return };
        data.set_stamp(Stamp { seen_ns: now_ns(), ..data.stamp() });
        let intact = data.intact(size);
        // A write that fails is an answer that is lost: ping counts it.
        let _ = writer.write(&data.answer());
        let mut counts = told.lock();
        *counts = (counts.0 + 1, counts.1 + u64::from(!intact));
    });
    control.serving("listener");
    while !control.ended() {
        std::thread::sleep(LOOK);
    }
    let (received, corrupt) = *counts.lock();
    Ok(json!({"received": received, "corrupt": corrupt}))
}

/// The role `sub`.
pub fn subscribe<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    let reader = domain.0.topic::<T>("perf_data")?.reader(qos(options))?;
    let records = if options.samples.as_os_str().is_empty() { 0 } else { options.count };
    let state = Arc::new(Mutex::new((Tally::new(options.warmup), Table::new(records), now_ns())));
    let (size, told) = (options.size, Arc::clone(&state));
    reader.on_data_available(move |sample| {
        let Some(data) = sample.data else { return };
        let (now, stamp) = (now_ns(), data.stamp());
        let (tally, table, last_ns) = &mut *told.lock();
        let at = tally.received();
        *last_ns = now;
        if tally.take(stamp.seq, data.intact(size), now)
            && let Some(record) = table.get_mut(at)
        {
            *record = [stamp.sent_ns, 0, now];
        }
    });
    control.serving("listener");
    while !control.ended() || now_ns() < state.lock().2 + SETTLE_NS {
        std::thread::sleep(LOOK);
    }
    let (tally, table, _) = &*state.lock();
    table.write(&options.samples, tally.received())?;
    Ok(tally.done(size))
}
