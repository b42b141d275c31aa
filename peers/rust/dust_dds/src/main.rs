//! The adapter of `taut perf` for Dust DDS: the contract of `peers/README.md` over its public interface.
//!
//! `waitset` is the way of its own ping and pong examples; `spin` takes without waiting. Its listeners are
//! asynchronous tasks of its executor, from which its synchronous `write` must not be called.
#![forbid(unsafe_code)]

mod ends;
mod entities;
mod line;
mod types;

use std::process::ExitCode;

use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, roles};

use line::DustLine;
use types::*;

/// The library tells it nowhere; the manifest pins it.
const VERSION: &str = "0.16.0";

fn main() -> ExitCode {
    let info = json!({
        "peer": "dust_dds",
        "version": VERSION,
        "transports": ["udp"],
        "roles": ["ping", "pong", "pub", "sub", "entities", "node"],
        "types": ["bytes", "plain", "simple", "complex"],
        "waits": ["waitset", "spin"],
        "variants": [],
        "multicast": false,
        "loan": false,
        "daemon": false,
        "note": "plain up to 16,384 B. Its write takes the sample, so each is cloned. Its listeners are \
                 tasks of its executor; data is waited for with a WaitSet, as in its own ping and pong. \
                 Within a process all goes through UDP: no thread, no intra. Its encoder is not public: no \
                 cdr",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.transport != "udp" {
        return Err(Stop::Absent(format!("no transport {} for this role", options.transport)));
    }
    if options.loan() {
        return Err(Stop::Absent("no loans".into()));
    }
    if options.wait == "listener" {
        return Err(Stop::Absent("no listener that may write".into()));
    }
    match options.role {
        Role::Entities => entities::steps(options, control),
        Role::Node => entities::node(options, control),
        _ => by_type(options, control),
    }
}

fn by_type(options: &Options, control: &Control) -> Result<Value, Stop> {
    match (options.kind.as_str(), options.size) {
        ("bytes", 28..) => with_type::<Sample>(options, control),
        ("simple", 4..) => with_type::<Simple>(options, control),
        ("complex", ..) => with_type::<Complex>(options, control),
        ("plain", 16) => with_type::<Plain16>(options, control),
        ("plain", 64) => with_type::<Plain64>(options, control),
        ("plain", 256) => with_type::<Plain256>(options, control),
        ("plain", 512) => with_type::<Plain512>(options, control),
        ("plain", 1_024) => with_type::<Plain1024>(options, control),
        ("plain", 4_096) => with_type::<Plain4096>(options, control),
        ("plain", 8_192) => with_type::<Plain8192>(options, control),
        ("plain", 16_384) => with_type::<Plain16384>(options, control),
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

fn with_type<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let (ping, pong, data) = (Some("perf_ping"), Some("perf_pong"), Some("perf_data"));
    match options.role {
        Role::Ping => {
            let mut line = DustLine::<T, T::Answer>::open(options, ping, pong, true)?;
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = DustLine::<T::Answer, T>::open(options, pong, ping, false)?;
            roles::pong(&mut line, options, control, T::answer)
        }
        Role::Pub => {
            let mut line = DustLine::<T, Ack>::open(options, data, None, true)?;
            roles::publish(&mut line, options, control, DustLine::flush)
        }
        Role::Sub => {
            let mut line = DustLine::<Ack, T>::open(options, None, data, false)?;
            roles::subscribe(&mut line, options, control)
        }
        role => Err(Stop::Absent(format!("no role {role:?}"))),
    }
}
