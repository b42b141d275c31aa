//! The role `local`: both ends in this process.

use std::time::Duration;

use serde_json::Value;
use taut::Driver;
use taut_perf_kit::clock::{now_ns, wait_until};
use taut_perf_kit::ping::Pinger;
use taut_perf_kit::{Control, Line, Options, Payload, Stamp, Stop};

use crate::line::Lines;
use crate::settings::config;

/// A sample within a process that is not there by then is lost.
const GIVE_UP: Duration = Duration::from_secs(1);

/// One thread that writes and takes, or two that answer each other.
pub fn local<T: Payload + 'static, A: Payload + 'static>(
    options: &Options,
    control: &Control,
    lines: &Lines<T, A>,
) -> Result<Value, Stop> {
    let one_thread = options.transport == "thread";
    // One thread that does both needs no other; two wait for each other.
    let driver = if one_thread || options.spin() { Driver::Inline } else { Driver::Threaded };
    let settings = taut::Config { driver, ..config(options) };
    let participant = taut::DomainParticipant::with_config(&settings)?;
    if one_thread {
        let mut line = (lines.one)(participant, options, Some("perf_ping"), Some("perf_ping"))?;
        line.wait_matched(1)?;
        return exchange(options, control, &mut line, true);
    }
    let mut back = (lines.back)(participant.clone(), options, Some("perf_pong"), Some("perf_ping"))?;
    let mut there = (lines.there)(participant, options, Some("perf_ping"), Some("perf_pong"))?;
    there.wait_matched(1)?;
    back.wait_matched(1)?;
    let answer = lines.answer;
    // It ends with the process.
    std::thread::spawn(move || {
        loop {
            if let Ok(Some(mut sample)) = back.receive(GIVE_UP) {
                sample.set_stamp(Stamp { seen_ns: now_ns(), ..sample.stamp() });
                // An answer that is not written is lost: the other thread counts it.
                let answer = answer(sample);
                let _ = back.send(&answer);
                back.give_back_answer(answer);
            }
        }
    });
    exchange(options, control, &mut there, false)
}

fn exchange<L: Line>(
    options: &Options,
    control: &Control,
    line: &mut L,
    one_thread: bool,
) -> Result<Value, Stop> {
    let mut pinger = Pinger::new(options);
    let mut sample = L::Out::sized(options.size);
    control.ready(if options.spin() { "spin" } else { "waitset" });
    loop {
        let waited = wait_until(pinger.due_ns(), options.spin()).then_some(0);
        let Some(stamp) = pinger.send(waited) else { break };
        sample.set_stamp(stamp);
        line.send(&sample)?;
        let written_ns = now_ns();
        let end_ns = written_ns + GIVE_UP.as_nanos() as u64;
        loop {
            if let Some(answer) = line.receive(GIVE_UP)? {
                let stamp = answer.stamp();
                let seen_ns = if one_thread { written_ns } else { stamp.seen_ns };
                let is_last = pinger.answer(Stamp { seen_ns, ..stamp }, answer.intact(options.size));
                line.give_back(answer);
                if is_last {
                    break;
                }
            }
            if now_ns() >= end_ns {
                break;
            }
            std::hint::spin_loop();
        }
    }
    control.stop();
    Ok(pinger.done(options)?)
}
