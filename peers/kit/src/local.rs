//! The role `local`: both ends in one process, for whoever has a [`Line`].

use std::time::Duration;

use serde_json::Value;

use crate::clock::{now_ns, wait_until};
use crate::ping::{GIVE_UP_NS, Pinger};
use crate::{Control, Line, Options, Payload, Stamp, Stop};

/// One thread that writes and takes: the line sends to itself.
pub fn thread<L: Line>(line: &mut L, options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut pinger = Pinger::new(options);
    let mut sample = L::Out::sized(options.size);
    control.ready(line.wait(options));
    loop {
        let waited = wait_until(pinger.due_ns(), options.spin()).then_some(0);
        let Some(stamp) = pinger.send(waited) else { break };
        sample.set_stamp(stamp);
        line.send(&sample)?;
        let written_ns = now_ns();
        let end_ns = stamp.sent_ns + GIVE_UP_NS;
        loop {
            if let Some(taken) = line.receive(Duration::ZERO)? {
                let stamp = Stamp { seen_ns: written_ns, ..taken.stamp() };
                let is_last = pinger.answer(stamp, taken.intact(options.size));
                line.give_back(taken);
                if is_last {
                    break;
                }
            }
            if now_ns() >= end_ns {
                break;
            }
        }
    }
    control.stop();
    Ok(pinger.done(options)?)
}

/// The other thread of `intra`: answers until the process ends, or until it cannot.
pub fn answer<L: Line>(line: &mut L, options: &Options, answer: impl Fn(L::In) -> L::Out) -> Stop {
    let at_most = if options.spin() { Duration::ZERO } else { Duration::from_nanos(GIVE_UP_NS) };
    loop {
        let sent = match line.receive(at_most) {
            Ok(Some(mut sample)) => {
                sample.set_stamp(Stamp { seen_ns: now_ns(), ..sample.stamp() });
                let answer = answer(sample);
                let sent = line.send(&answer);
                line.give_back_answer(answer);
                sent
            }
            Ok(None) => Ok(()),
            Err(stop) => Err(stop),
        };
        if let Err(stop) = sent {
            return stop;
        }
    }
}
